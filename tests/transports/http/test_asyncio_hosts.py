"""Hosts on asyncio: the application runs its server on a trio loop in the thread of the host."""

import asyncio
import contextvars
import json
import threading
from contextlib import asynccontextmanager

import pytest
import trio
import uvloop

from noizu_mcp import ConnectionClosed, Server, Tool, serve_http, serve_stdio
from noizu_mcp.engine.aio import from_asyncio, trio_side
from noizu_mcp.transports.http import HttpApp, HttpLimits, HttpOptions

from ...kit.messages import call as tool_call
from ...kit.messages import modern_request

TENANT = contextvars.ContextVar("tenant", default="nobody")


class Where(Tool):
    """Say which thread and loop this is."""

    async def call(self):
        await trio.lowlevel.checkpoint()
        return threading.current_thread().name


class WhereOnAsyncio(Tool, loop="asyncio"):
    """Say which thread this is, and use an object of the host."""

    async def call(self, ctx):
        await asyncio.sleep(0)
        ctx.state.loops.append(asyncio.get_running_loop())
        return threading.current_thread().name


class Whose(Tool):
    """Say what a middleware of the host has set; change it for this request alone."""

    async def call(self):
        await trio.lowlevel.checkpoint()
        tenant = TENANT.get()
        TENANT.set("the handler's")
        return tenant


class Wait(Tool):
    """Wait until cancelled."""

    async def call(self, args, ctx):
        ctx.state.started.set()
        try:
            await trio.sleep_forever()
        finally:
            ctx.state.cancelled.set()


class State:
    """The thread and the loop of the server, as tests see them."""

    def __init__(self):
        self.started = threading.Event()
        self.cancelled = threading.Event()
        self.loops = []


class Host(Server, name="host", version="1"):
    tools = [Where, WhereOnAsyncio, Whose, Wait]
    state = State()
    fails_at = ""

    @asynccontextmanager
    async def lifespan(self):
        if self.fails_at == "start":
            raise ValueError("no database")
        yield self.state
        if self.fails_at == "end":
            raise ValueError("no goodbye")


def make_app(server):
    return HttpApp(server, HttpOptions(limits=HttpLimits(grace=0.01)))


def request(name):
    body, headers = modern_request(tool_call(name), {"host": "localhost"})
    headers["content-type"] = "application/json"
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }
    return scope, json.dumps(body).encode()


async def call(app, name, gone=None):
    """Make one request; setting `gone` disconnects the client."""
    scope, body = request(name)
    gone = gone or (trio if trio.lowlevel.in_trio_task() else asyncio).Event()
    parts = [{"type": "http.request", "body": body}]
    sent = []

    async def receive():
        if parts:
            return parts.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("name", ["where", "where_on_asyncio"])
def test_a_server_answers_a_host_on_asyncio(run, name):
    """Handlers run in the thread of the host, those on asyncio on the loop of the host."""
    server = Host()
    server.state = state = State()

    async def main():
        app = make_app(server)
        async with app.lifespan():
            start, body = await call(app, name)
        assert start["status"] == 200
        text = json.loads(body["body"])["result"]["content"][0]["text"]
        assert threading.current_thread().name == text
        assert state.loops == [asyncio.get_running_loop()][: len(state.loops)]
        start, body = await call(app, name)
        assert start["status"] == 500
        assert b"lifespan=app.lifespan" in body["body"]

    run(main())


def run_on_trio(main):
    async def whole():
        await main

    trio.run(whole)


def of_tenant(app, tenant):
    """Wrap an application in middleware that sets a context variable."""

    async def middleware(scope, receive, send):
        TENANT.set(tenant)
        await app(scope, receive, send)

    return middleware


@pytest.mark.parametrize("run", [asyncio.run, run_on_trio])
def test_handlers_see_the_context_variables_of_the_host(run):
    """Handlers see the variables that middleware set for their request, on either loop."""

    async def main():
        app, said = make_app(Host()), []
        async with app.lifespan():
            for tenant in ("ada", "bob"):
                _, *body = await call(of_tenant(app, tenant), "whose")
                text = b"".join(part.get("body", b"") for part in body)
                said.append(json.loads(text)["result"]["content"][0]["text"])
        assert said == ["ada", "bob"]
        assert TENANT.get() == "bob"  # the middleware ran in this task

    run(main())


def test_trio_ends_with_the_lifespan():
    """Afterwards the thread can run another trio loop."""

    async def main():
        async with make_app(Host()).lifespan():
            assert trio.lowlevel.in_trio_run()
        assert not trio.lowlevel.in_trio_run()

    asyncio.run(main())


def test_two_applications_share_one_trio_loop():
    """A host can mount two servers, and end them one after the other."""

    async def main():
        first, second = make_app(Host()), make_app(Host())
        async with first.lifespan():
            async with second.lifespan():
                for app in (first, second):
                    assert (await call(app, "where"))[0]["status"] == 200
            assert (await call(first, "where"))[0]["status"] == 200
        async with second.lifespan():
            assert (await call(second, "where"))[0]["status"] == 200

    asyncio.run(main())


def test_a_client_that_leaves_cancels_its_call():
    """The disconnect cancels the handler."""
    server = Host()
    server.state = state = State()

    async def main():
        app, gone = make_app(server), asyncio.Event()
        async with app.lifespan(), asyncio.timeout(30):
            calling = asyncio.create_task(call(app, "wait", gone))
            await asyncio.to_thread(state.started.wait, 30)
            gone.set()
            await calling
            assert state.cancelled.is_set()

    asyncio.run(main())


def test_a_host_that_cancels_a_request_cancels_its_call():
    """A cancellation on asyncio cancels the trio task, and is raised as a cancellation."""
    server = Host()
    server.state = state = State()

    async def main():
        app = make_app(server)
        async with app.lifespan(), asyncio.timeout(30):
            calling = asyncio.create_task(call(app, "wait"))
            await asyncio.to_thread(state.started.wait, 30)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            assert state.cancelled.is_set()

    asyncio.run(main())


def test_a_host_that_cancels_twice_does_no_more_harm():
    """A handler that resists is not waited for again, and the server goes on."""
    stuck, release = threading.Event(), threading.Event()

    async def work():
        with trio.CancelScope(shield=True):
            stuck.set()
            await trio.to_thread.run_sync(release.wait, 30)

    async def main():
        async with asyncio.timeout(30), trio_side() as side:
            running = asyncio.create_task(side.run_trio(work))
            await asyncio.to_thread(stuck.wait, 30)
            for _ in range(2):
                running.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await running
            release.set()
            await side.run_trio(trio.lowlevel.checkpoint)

    asyncio.run(main())


def test_a_call_that_outlives_the_server_is_answered():
    """During shutdown a running call gets the grace period, then an error."""
    server = Host()
    server.state = state = State()

    async def main():
        app = make_app(server)
        async with asyncio.timeout(30):
            async with app.lifespan():
                calling = asyncio.create_task(call(app, "wait"))
                await asyncio.to_thread(state.started.wait, 30)
            _, body = await calling
            assert b"The server is shutting down" in body["body"]

    asyncio.run(main())


@pytest.mark.parametrize(("at", "text"), [("start", "no database"), ("end", "no goodbye")])
def test_a_lifespan_that_fails_fails_on_asyncio(at, text):
    """An exception of the author's lifespan is raised on the asyncio side."""
    server = Host()
    server.fails_at = at

    async def main():
        with pytest.raises(ValueError, match=text):
            async with make_app(server).lifespan():
                assert at == "end"

    asyncio.run(main())


def test_work_that_is_left_when_the_loop_ends_fails():
    """The asyncio side never waits for a loop that has ended."""

    async def main():
        async with asyncio.timeout(30):
            async with trio_side() as side:
                running = asyncio.create_task(side.run_trio(trio.sleep_forever))
                await side.run_trio(trio.lowlevel.checkpoint)
            with pytest.raises(RuntimeError, match="was cancelled"):
                await running
            with pytest.raises(ConnectionClosed, match="has ended"):
                await side.run_trio(trio.lowlevel.checkpoint)

    asyncio.run(main())


def test_failures_cross_both_loops():
    """An exception on one side is raised where the other side awaits the work."""

    async def receive():
        raise OSError("gone")

    async def main():
        async with trio_side() as side:
            with pytest.raises(OSError, match="gone"):
                await side.run_trio(from_asyncio(receive))

    asyncio.run(main())


def test_serving_on_trio_says_what_to_write_under_asyncio():
    """Functions for trio programs raise an error that says what to write."""

    async def main():
        with pytest.raises(RuntimeError, match=r"serve `Name\(\)\.asgi\(\)`"):
            await serve_http(Host())
        with pytest.raises(RuntimeError, match=r"write `Name\(\)\.run\(\)`"):
            await serve_stdio(Host())

    asyncio.run(main())
