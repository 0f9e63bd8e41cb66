"""A handler that raises `GeneratorExit` fails; it ends no connection."""

import pytest
import trio

from noizu_mcp import (
    ClientHandler,
    McpError,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Toolkit,
    connect,
    mcp,
)
from noizu_mcp.server.calls._user_code import run_user_code


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
    """Async, in a thread, on the loop, in a nursery of its own: one failed call each."""
    async with connect(Exits, version=version) as client:
        for tool in await client.list_tools():
            result = await client.call_tool(tool.name)
            assert result.is_error
            assert result.content[0].text == "Tool execution failed"
        await client.request("tools/list", {})


@VERSIONS
@pytest.mark.parametrize("server", [Exits, Overriding])
async def test_other_handlers_that_leave_have_failed(server, version):
    """Each request has its error, and the connection serves the next."""
    async with connect(server, version=version) as client:
        for method, params in REQUESTS[2 if server is Exits else 0 :]:
            if (server, method) == (Overriding, "resources/list"):
                continue
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
    """The same through `super().call_tool`."""
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
    """The server hears of a failure, and is served on."""
    async with connect(Asks, handler=LeavingClient(), version="2025-11-25") as client:
        with pytest.raises(McpError, match="Handler failed"):
            await client.call_tool("roots")
        assert len(await client.list_tools()) == 1


class Suspended:
    """Gives control away, and never gets it back."""

    def __await__(self):
        yield


def test_a_coroutine_that_is_closed_ends():
    """What Python raises to close it passes: here nothing may be awaited any more."""

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
    """A cancellation beside it is one still."""
    with trio.CancelScope() as scope:

        async def cancelled():
            scope.cancel()
            await trio.sleep_forever()

        await run_user_code(leave_group(cancelled))
    assert scope.cancelled_caught
