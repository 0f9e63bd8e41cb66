"""Tasks over HTTP: they belong to the application, and outlive requests and connections."""

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from noizu_mcp import Context, Limits, Schema, Server, Toolkit, mcp
from noizu_mcp.transports.http import HttpApp, HttpLimits, HttpOptions

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
EXTENSION = f"{PREFIX}tasks"
NAMED = {"tools/call": "name", "tasks/get": "taskId", "tasks/update": "taskId"}
NAMED["tasks/cancel"] = "taskId"
PATIENCE = 60


class Name(Schema):
    name: str


class Jobs(Toolkit):
    def __init__(self):
        self.go_on = trio.Event()
        self.ended = []

    @mcp(task="optional")
    async def work(self) -> str:
        try:
            await self.go_on.wait()
        finally:
            self.ended.append("work")
        return "done"

    @mcp(task="optional")
    async def ask(self, args, ctx: Context):
        return (await ctx.elicit("Name?", Name)).content.name

    @mcp(task="required")
    def think(self) -> str:
        return "thought"

    @mcp(task="optional", starts_task=True)
    async def later(self, args, ctx: Context):
        answer = await ctx.elicit("Name?", Name)
        await ctx.start_task()
        await self.go_on.wait()
        return f"{answer.content.name} over {ctx.transport}"


class Verified(HttpApp):
    """Trusts a header of the client that names it."""

    async def _route(self, http):
        name = http.header(b"x-name")
        http.principal = None if name is None else SimpleNamespace(key=name, expires_at=None)
        await super()._route(http)


class Browser:
    """Posts requests to an application."""

    def __init__(self, app, kit):
        self.app = app
        self.kit = kit
        self.headers = {}
        self.capabilities = {"extensions": {EXTENSION: {}}, "elicitation": {}}

    def _scope(self, method, params, headers):
        headers = {
            "host": "localhost",
            "content-type": "application/json",
            "mcp-protocol-version": VERSION,
            "mcp-method": method,
            **({"mcp-name": params[NAMED[method]]} if method in NAMED else {}),
            **self.headers,
            **headers,
        }
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        return {"type": "http", "method": "POST", "path": "/mcp", "headers": raw}

    def _body(self, method, params):
        meta = {f"{PREFIX}protocolVersion": VERSION}
        meta[f"{PREFIX}clientCapabilities"] = self.capabilities
        params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return {"type": "http.request", "body": json.dumps(message).encode()}

    async def post(self, method, /, headers=None, **params):
        """Send a request; return the status and the answer."""
        sent = []
        parts = [self._body(method, params)]

        async def receive():
            return parts.pop() if parts else await trio.sleep_forever()

        async def send(message):
            sent.append(message)

        with trio.fail_after(PATIENCE):
            await self.app(self._scope(method, params, headers or {}), receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    async def result(self, method, /, **params):
        status, message = await self.post(method, **params)
        assert status == 200, message
        return message["result"]

    async def error(self, method, /, **params):
        status, message = await self.post(method, **params)
        return status, message["error"]["code"]

    async def begin(self, tool):
        result = await self.result("tools/call", name=tool, arguments={})
        assert result["resultType"] == "task"
        return result["taskId"]

    async def look(self, id_, until):
        with trio.fail_after(PATIENCE):
            while True:
                task = await self.result("tasks/get", taskId=id_)
                if task["status"] == until:
                    return task
                await trio.lowlevel.checkpoint()

    async def listen(self, nursery, **wanted):
        """Open a stream; return a channel with its messages."""
        heard, messages = trio.open_memory_channel(100)
        method, params = "subscriptions/listen", {"notifications": wanted}
        parts = [self._body(method, params)]

        async def receive():
            return parts.pop() if parts else await trio.sleep_forever()

        async def send(message):
            for line in message.get("body", b"").splitlines():
                if line.startswith(b"data: "):
                    await heard.send(json.loads(line[6:]))

        nursery.start_soon(self.app, self._scope(method, params, {}), receive, send)
        return messages


@asynccontextmanager
async def serving(**limits):
    kit = Jobs()

    class Office(Server, name="office", version="1", limits=Limits(tasks_per_principal=2)):
        tools = [kit]

    app = Verified(Office(), HttpOptions(limits=HttpLimits(**{"grace": 0.05, **limits})))
    async with app.lifespan():
        yield Browser(app, kit)


async def test_a_task_outlives_its_request():
    """The next request, on another connection, finds it."""
    async with serving() as browser:
        id_ = await browser.begin("work")
        assert (await browser.result("tasks/get", taskId=id_))["status"] == "working"
        browser.kit.go_on.set()
        task = await browser.look(id_, "completed")
        assert task["result"]["content"][0]["text"] == "done"
        task = await browser.look(await browser.begin("think"), "completed")
        assert task["result"]["content"][0]["text"] == "thought"


async def test_headers_name_the_task():
    """They allow a proxy to route by task; a header that differs from the body is refused."""
    async with serving() as browser:
        id_ = await browser.begin("work")
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            status, message = await browser.post(method, {"mcp-name": "other"}, taskId=id_)
            assert (status, message["error"]["code"]) == (400, -32020)
        assert (await browser.result("tasks/get", taskId=id_))["status"] == "working"


async def test_what_is_refused():
    """It has the status of its error."""
    async with serving() as browser:
        assert await browser.error("tasks/get", taskId="x") == (200, -32602)
        assert await browser.error("tasks/result", taskId="x") == (404, -32601)
        browser.capabilities = {}
        assert await browser.error("tasks/get", taskId="x") == (400, -32021)
        assert await browser.error("tools/call", name="think", arguments={}) == (400, -32021)


async def test_questions_before_and_in_a_task():
    """Rounds of the request end when the task begins; then `tasks/update` has the answers."""
    async with serving() as browser:
        first = await browser.result("tools/call", name="later", arguments={})
        (key,) = first["inputRequests"]
        answer = {"action": "accept", "content": {"name": "Ann"}}
        more = {"requestState": first["requestState"], "inputResponses": {key: answer}}
        second = await browser.result("tools/call", name="later", arguments={}, **more)
        assert second["resultType"] == "task"
        browser.kit.go_on.set()
        task = await browser.look(second["taskId"], "completed")
        assert task["result"]["content"][0]["text"] == "Ann over http"
        id_ = await browser.begin("ask")
        (key,) = (await browser.look(id_, "input_required"))["inputRequests"]
        await browser.result("tasks/update", taskId=id_, inputResponses={key: answer})
        task = await browser.look(id_, "completed")
        assert task["result"]["content"][0]["text"] == "Ann"


async def test_a_task_belongs_to_its_principal():
    """Other principals get "unknown task", and no notification of it on their listen streams."""
    async with serving() as browser, trio.open_nursery() as nursery:
        browser.headers = {"x-name": "ann"}
        id_ = await browser.begin("work")
        for headers in ({"x-name": "bob"}, {}):
            browser.headers = headers
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                params = {"taskId": id_, "inputResponses": {}}
                assert await browser.error(method, **params) == (200, -32602)
            messages = await browser.listen(nursery, taskIds=[id_])
            assert (await messages.receive())["params"]["notifications"] == {}
        browser.headers = {"x-name": "ann"}
        await browser.begin("work")
        assert await browser.error("tools/call", name="think", arguments={}) == (200, -32603)
        browser.headers = {"x-name": "bob"}
        await browser.begin("work")
        nursery.cancel_scope.cancel()


async def test_streams_hear_of_tasks():
    """Each stream has the tasks that it asked for, whichever request changes them."""
    async with serving() as browser, trio.open_nursery() as nursery:
        one, two = await browser.begin("work"), await browser.begin("ask")
        messages = await browser.listen(nursery, taskIds=[one])
        others = await browser.listen(nursery, taskIds=[two])
        with trio.fail_after(PATIENCE):
            assert (await messages.receive())["params"]["notifications"] == {"taskIds": [one]}
            assert (await messages.receive())["params"]["status"] == "working"
            browser.kit.go_on.set()
            params = (await messages.receive())["params"]
            assert (params["taskId"], params["status"]) == (one, "completed")
            assert params["_meta"] == {f"{PREFIX}subscriptionId": 1}
            await others.receive()
            while (params := (await others.receive())["params"])["status"] != "input_required":
                pass
            await browser.result("tasks/cancel", taskId=two)
            while (params := (await others.receive())["params"])["status"] != "cancelled":
                pass
            assert params["taskId"] == two
        nursery.cancel_scope.cancel()


async def test_a_task_may_be_gone_before_its_listen_request_is_open():
    """A task may end while a hook decides about the stream; then it is not in the stream."""
    opening, go_on = trio.Event(), trio.Event()

    class Slow(Server, name="slow", version="1", limits=Limits(tasks=1)):
        tools = [Jobs]

        async def read_resource(self, uri, ctx):
            return ""

        async def can_watch(self, uri, ctx):
            opening.set()
            await go_on.wait()
            return True

    app = HttpApp(Slow(), HttpOptions())
    async with app.lifespan(), trio.open_nursery() as nursery:
        browser = Browser(app, None)
        id_ = await browser.begin("think")
        messages = await browser.listen(nursery, taskIds=[id_], resourceSubscriptions=["a://b"])
        await opening.wait()
        await browser.look(id_, "completed")
        await browser.begin("think")
        go_on.set()
        agreed = (await messages.receive())["params"]["notifications"]
        await trio.testing.wait_all_tasks_blocked()
        assert agreed["taskIds"] == [id_]
        with pytest.raises(trio.WouldBlock):
            messages.receive_nowait()
        nursery.cancel_scope.cancel()


async def test_the_end_of_the_application(autojump_clock, caplog):
    """Running tasks get the grace period, then they are cancelled; no result is sent."""
    async with serving(grace=5.0) as browser:
        await browser.begin("work")
        await browser.look(await browser.begin("ask"), "input_required")
        start = trio.current_time()
    assert trio.current_time() == start + 5
    assert browser.kit.ended == ["work"]
    assert caplog.records == []


async def test_the_end_without_running_tasks(autojump_clock):
    """The end does not wait for a task that waits for an answer."""
    async with serving(grace=5.0) as browser:
        await browser.look(await browser.begin("think"), "completed")
        await browser.look(await browser.begin("ask"), "input_required")
        start = trio.current_time()
    assert trio.current_time() == start
