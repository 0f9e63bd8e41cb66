"""Exceptions like `Cancelled` and `SystemExit`: which ones pass through a handler."""

import pytest
import trio

from noizu_mcp import (
    ClientHandler,
    Context,
    McpError,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Toolkit,
    connect,
    mcp,
)
from noizu_mcp.engine import enter_user_code, run_user_code
from noizu_mcp.events import Listener

from ..kept import keep, stray


def leave():
    raise GeneratorExit


async def leave_group(*others):
    async def fail():
        leave()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail)
        for other in others:
            nursery.start_soon(other)


async def stumble():
    raise ValueError("also")


class Leaving(Toolkit):
    @mcp
    async def asynchronous(self):
        leave()

    @mcp
    def thread(self):
        leave()

    @mcp(inline=True)
    def inline(self):
        leave()

    @mcp
    async def group(self):
        await leave_group()

    @mcp
    async def mixed(self):
        await leave_group(stumble)


class Gone(Resource, uri="x:gone"):
    def read(self):
        leave()


class Listing(ResourceTemplate, uri_template="x:{a}"):
    def read(self, uri, args):
        leave()

    async def list(self):
        leave()

    async def complete(self, variable, prefix, ctx):
        leave()


class Leave(Prompt):
    async def get(self):
        leave()


class Exits(Server, name="exits", version="1"):
    tools = [Leaving]
    resources = [Gone, Listing]
    prompts = [Leave]

    async def subscribe(self, uri, ctx):
        leave()


class Overriding(Server, name="overriding", version="1"):
    async def list_tools(self, cursor, ctx):
        leave()

    async def call_tool(self, name, args, ctx):
        leave()

    async def list_prompts(self, cursor, ctx):
        leave()

    async def get_prompt(self, name, args, ctx):
        leave()

    async def read_resource(self, uri, ctx):
        leave()

    async def complete(self, ref, argument, prefix, ctx):
        leave()


REQUESTS = [
    ("tools/list", {}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "leave"}),
    ("resources/list", {}),
    ("resources/read", {"uri": "x:gone"}),
    ("resources/read", {"uri": "x:y"}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "x:{a}"},
            "argument": {"name": "a", "value": "b"},
        },
    ),
]
VERSIONS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


@VERSIONS
async def test_a_tool_that_leaves_has_failed(version):
    """Async, in a thread, on the loop, in a nursery: each exit is one failed call."""
    async with connect(Exits, version=version) as client:
        for tool in await client.list_tools():
            result = await client.call_tool(tool.name)
            assert result.is_error
            assert result.content[0].text == "Tool execution failed"
        await client.request("tools/list", {})


@VERSIONS
@pytest.mark.parametrize("server", [Exits, Overriding])
async def test_other_handlers_that_leave_have_failed(server, version):
    """Each request gets an error, and the connection serves the next one."""
    async with connect(server, version=version) as client:
        for method, params in REQUESTS[2 if server is Exits else 0 :]:
            if method == "resources/list":
                continue  # for a template only its own resources are missing
            with pytest.raises(McpError, match="failed") as caught:
                await client.request(method, params)
            assert caught.value.code == -32603
        if server is Overriding:
            assert (await client.call_tool("x")).is_error
        elif version == "2025-11-25":
            with pytest.raises(McpError, match="failed"):
                await client.subscribe("x:gone")


class Wrapping(Exits, name="wrapping", version="1"):
    async def call_tool(self, name, args, ctx):
        return await super().call_tool(name, args, ctx)


async def test_a_tool_behind_an_override_has_failed():
    """`super().call_tool` in an override treats such an exception as a failed call."""
    async with connect(Wrapping) as client:
        for tool in await client.list_tools():
            assert (await client.call_tool(tool.name)).is_error


class Asking(Toolkit):
    @mcp
    async def roots(self, args, ctx):
        return [root.uri for root in await ctx.list_roots()]


class Asks(Server, name="asks", version="1"):
    tools = [Asking]


class LeavingClient(ClientHandler):
    async def list_roots(self):
        leave()


async def test_a_handler_of_a_client_that_leaves_has_failed():
    """The server gets an error for the request, and the connection goes on."""
    async with connect(Asks, handler=LeavingClient(), version="2025-11-25") as client:
        result = await client.call_tool("roots")
        assert result.is_error
        assert result.content[0].text == "The client refused roots/list: Handler failed (-32603)"
        assert len(await client.list_tools()) == 1


class Suspended:
    """Gives control away, and never gets it back."""

    def __await__(self):
        yield


def test_a_coroutine_that_is_closed_ends():
    """`GeneratorExit`, with which Python closes a coroutine, passes through."""

    async def begin():
        work = run_user_code(Suspended())
        work.send(None)
        return work

    async def begin_and_close():
        work = None

        async def other():
            nonlocal work
            work = await begin()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
        work.close()

    trio.run(begin).close()
    trio.run(begin_and_close)


async def test_what_must_go_on_goes_on():
    """A real cancellation beside the failure takes effect."""
    with trio.CancelScope() as scope:

        async def cancelled():
            scope.cancel()
            await trio.sleep_forever()

        await run_user_code(leave_group(cancelled))
    assert scope.cancelled_caught


# Cancellations that belong to no scope


class StrayClient(ClientHandler):
    """Lets a kept cancellation out of each of its methods."""

    def __init__(self):
        self.noticed = 0
        self.twice = trio.Event()

    async def list_roots(self):
        await stray()

    async def handle_elicitation(self, params):
        await stray()

    async def handle_notification(self, method, params):
        self.noticed += 1
        if self.noticed == 2:
            self.twice.set()
        await stray()


class Noticing(Toolkit):
    @mcp
    async def notices(self, args, ctx: Context):
        await ctx.error("one")
        await ctx.error("two")

    @mcp
    async def progresses(self, args, ctx: Context):
        await ctx.report_progress(1)
        await ctx.report_progress(2)

    @mcp
    async def elicits(self, args, ctx: Context):
        await ctx.elicit("Name?", {"name": str})


class Notices(Asks, name="notices", version="1"):
    tools = [Asking, Noticing]


@VERSIONS
@pytest.mark.parametrize("tool", ["roots", "elicits"])
async def test_a_client_s_handler_that_cancels_nothing_has_failed(version, tool, caplog):
    """The requester gets an error; the connection goes on, and the failure is logged."""
    async with connect(Notices, handler=StrayClient(), version=version) as client:
        try:
            text = (await client.call_tool(tool)).content[0].text
        except McpError as error:  # on 2026-07-28 the client drives the rounds
            text = str(error)
        assert "Handler failed" in text
        assert len(await client.list_tools()) == 4
    assert "the handler raised Cancelled" in caplog.text


async def test_a_client_hears_on_after_a_notification_that_cancels_nothing(caplog):
    """Each notification fails on its own."""
    handler = StrayClient()
    async with connect(Notices, handler=handler, version="2025-11-25") as client:
        await client.set_log_level("error")
        await client.call_tool("notices")
        with trio.fail_after(60):
            await handler.twice.wait()
    assert caplog.text.count("RuntimeError: the handler raised Cancelled") == 2


@VERSIONS
async def test_a_progress_callback_that_cancels_nothing_has_failed(version, caplog):
    """The call of the callback goes on."""
    kept = await keep()
    heard = []

    def callback(progress):
        heard.append(progress.progress)
        raise kept

    async with connect(Notices, version=version) as client:
        assert not (await client.call_tool("progresses", progress=callback)).is_error
    assert heard == [1, 2]
    assert caplog.text.count("the progress callback of tools/call failed") == 2


class StrayListener(Listener):
    """Raises in all that a listener does."""

    def __init__(self, error, at):
        self.error = error
        self.at = at

    def _maybe(self, at):
        if at == self.at:
            raise self.error

    def __call__(self, event):
        self._maybe("call")

    def around(self, event):
        self._maybe("around")
        return self

    def __enter__(self):
        self._maybe("enter")

    def __exit__(self, *_):
        self._maybe("exit")


@VERSIONS
@pytest.mark.parametrize("at", ["call", "around", "enter", "exit"])
@pytest.mark.parametrize("group", [False, True])
async def test_a_listener_that_cancels_nothing_has_failed(version, at, group, caplog):
    """Requests do not depend on their listeners."""
    kept = await keep()
    error = BaseExceptionGroup("g", [kept, GeneratorExit()]) if group else kept
    server = Notices()
    server.telemetry.add(StrayListener(error, at))
    async with connect(server, version=version) as client:
        assert not (await client.call_tool("progresses")).is_error
    said = "Cancelled and GeneratorExit" if group else "Cancelled"
    assert f"RuntimeError: the handler raised {said}" in caplog.text


async def test_a_manager_that_raises_by_itself_has_failed():
    """Exceptions of `__aenter__` and `__aexit__` are treated like a handler's exceptions."""

    class Manager:
        def __init__(self, at):
            self.at = at

        async def __aenter__(self):
            if self.at == "enter":
                await stray()
            return self.at

        async def __aexit__(self, *_):
            if self.at == "exit":
                await stray()
            return self.at == "swallow"

    for at in ("enter", "exit"):
        with pytest.raises(RuntimeError, match="the handler raised Cancelled"):
            async with enter_user_code(Manager(at)):
                pass
    async with enter_user_code(Manager("swallow")) as value:
        assert value == "swallow"
        raise ValueError
    with pytest.raises(ValueError, match="goes on"):
        async with enter_user_code(Manager("not")):
            raise ValueError("goes on")
    with trio.CancelScope() as scope:
        async with enter_user_code(Manager("not")):
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught


def test_a_stray_cancellation_passes_where_no_loop_runs():
    """Outside of a loop the exception passes to the code that closes the coroutine."""
    kept = trio.run(keep)

    class Closing:
        def __await__(self):
            try:
                yield
            finally:
                raise kept

    async def begin():
        work = run_user_code(Closing())
        work.send(None)
        return work

    work = trio.run(begin)
    with pytest.raises(trio.Cancelled):
        work.close()


async def test_a_stray_cancellation_while_another_one_is_real(caplog):
    """The real cancellation takes effect, and the other failures of the group are raised."""
    kept = await keep()

    async def work():
        try:
            await trio.sleep_forever()
        except trio.Cancelled as error:
            raise BaseExceptionGroup("g", [kept, error, ValueError("beside")]) from None

    with pytest.RaisesGroup(ValueError), trio.move_on_after(0) as scope:
        await run_user_code(work())
    assert scope.cancelled_caught
