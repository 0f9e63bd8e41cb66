"""The live list of the tools of several servers."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import trio

from noizu_mcp import ClientHandler, Server, SyncClients, aio, connect_all, tool
from noizu_mcp.transports import memory_pair

ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
CHANGED = "notifications/tools/list_changed"


def named(name):
    """Make a tool that returns its name."""

    async def call() -> str:
        return name

    return tool(call, name=name)


class Life:
    """A server that a test stops and restarts.

    Attributes:
        target: The class of the server.
        server: Its present instance.
        is_down: True if it cannot begin.
    """

    def __init__(self, *names):
        self.is_down = False
        self._killed = trio.Event()
        life = self

        class Made(Server, name="made", version="1"):
            tools = [named(name) for name in names]

            @asynccontextmanager
            async def lifespan(self):
                if life.is_down:
                    raise LookupError("down")
                life.server, life._killed = self, trio.Event()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(life._die)
                    yield
                    nursery.cancel_scope.cancel()

        self.target = Made

    async def _die(self):
        await self._killed.wait()
        raise LookupError("killed")

    def kill(self):
        self._killed.set()


async def until(tools, *names):
    """Wait until these are the tools."""
    with trio.fail_after(3600):
        while [each.name for each in tools] != list(names):
            await tools.wait_changed()


@ERAS
async def test_it_follows_every_server(version, autojump_clock):
    """Changes of any server arrive in the list with their prefix, and at the handler."""
    told = []

    class Host(ClientHandler):
        async def handle_notification(self, method, params):
            told.append((self.client.server_info.name, method))

    class One(Server, name="one", version="1"):
        tools = [named("get")]

    class Two(Server, name="two", version="1"):
        tools = []

    one, two = One(), Two()
    servers = {"a": one, "b": two}
    async with connect_all(servers, version=version, handler=Host()) as clients:
        async with clients.tools as tools:
            assert [each.name for each in tools] == ["a_get"]
            two.tools.add(named("put"))
            await until(tools, "a_get", "b_put")
            one.tools.remove("get")
            await until(tools, "b_put")
            assert (await clients.call_tool("b_put")).text == "put"
            assert "b_put" in tools
        with pytest.raises(RuntimeError, match="while its block runs"):
            tools.get("b_put")
    assert sorted(set(told)) == [("one", CHANGED), ("two", CHANGED)]


@ERAS
async def test_servers_come_and_go(version, autojump_clock):
    """The tools of a server vanish and return with it, changed or not."""
    life, late = Life("get"), Life("late")
    late.is_down = True
    servers = {"a": life.target, "b": late.target, "c": Life("stay").target}
    async with connect_all(servers, version=version) as clients, clients.tools as tools:
        assert [each.name for each in tools] == ["a_get", "c_stay"]
        late.is_down = False
        await until(tools, "a_get", "b_late", "c_stay")
        life.is_down = True
        life.kill()
        await until(tools, "b_late", "c_stay")
        life.is_down = False
        await until(tools, "a_get", "b_late", "c_stay")
        life.server.tools.add(named("more"))
        await until(tools, "a_get", "a_more", "b_late", "c_stay")


async def test_a_reading_that_fails_in_part(script_on, autojump_clock):
    """A connected server that cannot list keeps its tools, and is asked again without a notice."""

    class One(Server, name="one", version="1"):
        tools = []

    def listed(*names):
        schema = {"type": "object"}
        return {"tools": [{"name": name, "inputSchema": schema} for name in names]}

    one, (ours, theirs) = One(), memory_pair()
    answers = [listed("x"), Exception(-32603, "not now"), Exception(-32603, "no"), listed("y")]
    handshake = {"tools/list": answers}
    async with trio.open_nursery() as nursery:
        script = script_on(theirs, handshake)
        nursery.start_soon(script.run)
        servers = {"one": one, "s": ours}
        async with connect_all(servers, version="2025-11-25") as clients, clients.tools as tools:
            assert [each.name for each in tools] == ["s_x"]
            await script.say(method=CHANGED)
            one.tools.add(named("get"))
            await until(tools, "one_get", "s_x")
            await until(tools, "one_get", "s_y")
        nursery.cancel_scope.cancel()


@ERAS
@pytest.mark.parametrize("answer", [None, Exception(-32603, "not now")], ids=["silent", "refusing"])
async def test_a_server_without_a_list_delays_no_other(script_on, autojump_clock, answer, version):
    """Changes of other servers arrive at once, and its own tools when it lists them."""

    class One(Server, name="one", version="1"):
        tools = [named("get")]

    def listed(request):
        return answers.pop(0)

    one, (ours, theirs) = One(), memory_pair()
    answers = [answer] * 6 + [{"tools": [{"name": "late", "inputSchema": {"type": "object"}}]}]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(script_on(theirs, {"tools/list": listed}).run)
        servers = {"one": one, "s": ours}
        began = trio.current_time()
        async with connect_all(servers, version=version) as clients, clients.tools as tools:
            assert [each.name for each in tools] == ["one_get"]
            assert [each.name for each in await clients.list_tools()] == ["one_get"]
            assert trio.current_time() - began <= 21
            for number in range(30):
                one.tools.add(named(f"get{number}"))
                with trio.fail_after(2):
                    while f"one_get{number}" not in tools:
                        await tools.wait_changed()
            await tools.refresh()
            with trio.fail_after(600):
                while "s_late" not in tools:
                    await tools.wait_changed()
        nursery.cancel_scope.cancel()


async def test_a_server_that_ends_while_it_is_read(script_on, caplog, autojump_clock):
    """Its tools vanish, and no failure of the list is logged."""
    ours, theirs = memory_pair()

    async def end(request):
        await theirs.aclose()
        await trio.sleep_forever()

    schema = {"type": "object"}
    answers = [{"tools": [{"name": "x", "inputSchema": schema}]}, end]
    script = script_on(theirs, {"tools/list": answers})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(script.run)
        async with connect_all({"s": ours}) as clients, clients.tools as tools:
            assert [each.name for each in tools] == ["s_x"]
            await script.say(method=CHANGED)
            await until(tools)
            assert "tried again" not in caplog.text
        nursery.cancel_scope.cancel()


async def test_two_tools_of_one_name(caplog, autojump_clock):
    """The first owner keeps the name, other changes arrive, and the log names the other server."""

    class One(Server, name="one", version="1"):
        tools = [named("get")]

    one, two = One(), One()
    servers = {"a": one, "b": two}
    async with connect_all(servers, prefix=None) as clients, clients.tools as tools:
        assert [each.name for each in tools] == ["get"]
        two.tools.add(named("put"))
        await until(tools, "get", "put")
    assert [each for each in caplog.messages if "'get' of b is left out" in each]


def test_asyncio():
    """The list is followed in asyncio programs."""

    class One(Server, name="one", version="1"):
        tools = [named("get")]

    async def main():
        one = One()
        async with (
            asyncio.timeout(60),
            aio.connect_all({"a": one}) as clients,
            clients.tools as tools,
        ):
            one.tools.add(named("put"))
            await tools.wait_changed()
            assert [each.name for each in tools] == ["a_get", "a_put"]

    asyncio.run(main())


def test_plain_code():
    """The list is followed in plain code."""

    class One(Server, name="one", version="1"):
        tools = [named("get")]

    one = One()
    with SyncClients({"a": one}, timeout=60) as clients, clients.tools as tools:
        assert [each.name for each in tools] == ["a_get"]
        tools.refresh()
        assert len(tools) == 1
