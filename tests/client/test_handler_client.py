"""`ClientHandler.client`: the client for which a handler answers."""

import asyncio

import pytest
import trio

from noizu_mcp import (
    Accept,
    Client,
    ClientHandler,
    ConnectionClosed,
    Context,
    Server,
    SyncClient,
    Toolkit,
    aio,
    connect,
    mcp,
)

VERSIONS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
FORM = {"type": "object", "properties": {}}


class Kit(Toolkit):
    """Asks, and answers."""

    @mcp
    async def ask(self, ctx: Context) -> str:
        await ctx.elicit("Sure?", FORM)
        return "asked"

    @mcp
    def number(self) -> int:
        return 7


class First(Server, name="first", version="1"):
    tools = [Kit]


class Second(Server, name="second", version="1"):
    tools = [Kit]


class Looks(ClientHandler):
    """Calls the server that asks, and notes its name."""

    def __init__(self):
        self.seen = []
        self.clients = []

    async def handle_elicitation(self, params):
        result = await self.client.call_tool("number")
        self.clients.append(self.client)
        self.seen.append((self.client.server_info.name, result.content[0].text))
        return Accept({})


@VERSIONS
async def test_a_handler_knows_its_client(version):
    """It can call the server that asks, and it is the client of the program."""
    handler = Looks()
    async with connect(First, handler=handler, version=version) as client:
        await client.call_tool("ask")
        assert handler.client is client
    assert handler.clients == [client]
    assert handler.seen == [("first", "7")]


@VERSIONS
async def test_a_handler_of_two_connections(version):
    """In its methods it is the asking server's client; elsewhere it is ambiguous, and raises."""
    handler = Looks()
    async with (
        connect(First, handler=handler, version=version) as first,
        connect(Second, handler=handler, version=version) as second,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.call_tool, "ask")
            nursery.start_soon(second.call_tool, "ask")
        with pytest.raises(RuntimeError, match="Looks answers for 2 connections"):
            handler.client  # noqa: B018 - looking is what is tested
    assert sorted(handler.seen) == [("first", "7"), ("second", "7")]


async def test_a_handler_inside_of_its_own_method():
    """Within a connection that a method opens, its handler has its own client."""

    class Nested(Looks):
        async def handle_elicitation(self, params):
            if not self.seen:
                self.seen.append((self.client.server_info.name, 0))
                async with connect(Second, handler=self) as client:
                    await client.call_tool("ask")
                assert self.client.server_info.name == "first"
                return Accept({})
            return await super().handle_elicitation(params)

    handler = Nested()
    async with connect(First, handler=handler) as client:
        await client.call_tool("ask")
    assert handler.seen == [("first", 0), ("second", "7")]


async def test_no_connection():
    """Before and after a connection there is no client; the error says what to do."""
    handler = Looks()
    with pytest.raises(RuntimeError, match=r"answers for no connection: give it to connect"):
        handler.client  # noqa: B018 - looking is what is tested

    async def fail():
        async with connect(First, handler=handler) as client:
            assert handler.client is client
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    with pytest.raises(RuntimeError, match="answers for no connection"):
        handler.client  # noqa: B018 - looking is what is tested


async def test_a_plain_method():
    """A plain method runs in a thread, and uses the client through trio."""

    class Plain(ClientHandler):
        def handle_elicitation(self, params):
            seen.append(trio.from_thread.run(self.client.call_tool, "number").content[0].text)
            return Accept({})

    seen = []
    async with connect(First, handler=Plain()) as client:
        await client.call_tool("ask")
    assert seen == ["7"]


async def test_a_notification():
    """`handle_notification` has the client, too."""

    class Notes(ClientHandler):
        async def handle_notification(self, method, params):
            seen.append(self.client.server_info.name)

    class Tells(Toolkit):
        @mcp
        async def tell(self, ctx: Context) -> str:
            await ctx.warning("hm")
            return "told"

    class Telling(Server, name="telling", version="1"):
        tools = [Tells]

    seen = []
    async with connect(Telling, handler=Notes(), version="2025-11-25") as client:
        await client.call_tool("tell")
    assert seen == ["telling"]


@VERSIONS
def test_under_asyncio(version):
    """The client is that of the program, for its own loop."""

    async def main():
        handler = Looks()
        async with aio.connect(First, handler=handler, version=version) as client:
            await client.call_tool("ask")
            assert handler.client is client
        assert handler.clients == [client]
        assert handler.seen == [("first", "7")]

    asyncio.run(main())


@VERSIONS
def test_in_plain_code(version):
    """A plain method has the `SyncClient`, a coroutine function a client for its loop."""

    class Plain(ClientHandler):
        def handle_elicitation(self, params):
            assert self.client is client
            seen.append(self.client.call_tool("number").content[0].text)
            return Accept({})

    seen = []
    handler, looks = Plain(), Looks()
    with SyncClient(First, handler=handler, version=version) as client:
        client.call_tool("ask")
        assert handler.client is client
    assert seen == ["7"]
    with SyncClient(First, handler=looks, version=version) as client:
        client.call_tool("ask")
    assert looks.seen == [("first", "7")]
    assert isinstance(looks.clients[0], Client)


async def test_notifications_before_the_end():
    """Notifications that arrived before the answer are delivered, even if the block ends then."""

    class Slow(ClientHandler):
        async def handle_notification(self, method, params):
            await trio.lowlevel.checkpoint()
            if method == "notifications/message":
                seen.append(params["data"])

    class Tells(Toolkit):
        @mcp
        async def tell(self, ctx: Context) -> str:
            for number in range(20):
                await ctx.warning(str(number))
            return "told"

    class Telling(Server, name="telling", version="1"):
        tools = [Tells]

    seen = []
    async with connect(Telling, handler=Slow(), version="2025-11-25") as client:
        await client.call_tool("tell")
    assert seen == [str(number) for number in range(20)]


async def test_notifications_of_a_handler_that_hangs(autojump_clock):
    """The end of the block waits only for a limited time."""

    class Hangs(ClientHandler):
        async def handle_notification(self, method, params):
            await trio.sleep_forever()

    class Tells(Toolkit):
        @mcp
        async def tell(self, ctx: Context) -> str:
            await ctx.warning("hm")
            return "told"

    class Telling(Server, name="telling", version="1"):
        tools = [Tells]

    with trio.fail_after(10):
        async with connect(Telling, handler=Hangs(), version="2025-11-25") as client:
            await client.call_tool("tell")


async def test_any_task_may_close():
    """Calls of all tasks end, later ones fail, and the block ends normally."""

    class Waits(Toolkit):
        @mcp
        async def wait(self) -> str:
            began.set()
            await trio.sleep_forever()
            return "never"

    class Waiting(Server, name="waiting", version="1"):
        tools = [Waits]

    async def call():
        with pytest.raises(ConnectionClosed):
            await client.call_tool("wait")
        ended.set()

    async def close():
        await began.wait()
        await client.aclose()
        await client.aclose()

    began, ended = trio.Event(), trio.Event()
    async with connect(Waiting) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            nursery.start_soon(close)
            nursery.start_soon(client.wait_closed)
        assert ended.is_set()
        with pytest.raises(ConnectionClosed):
            await client.ping()


async def test_a_task_that_holds_a_connection():
    """A connection lives in its own task, and another task ends it."""

    async def hold(*, task_status):
        async with connect(First) as client:
            task_status.started(client)
            await client.wait_closed()

    async with trio.open_nursery() as nursery:
        client = await nursery.start(hold)
        assert (await client.call_tool("number")).content[0].text == "7"
        await client.aclose()
