"""`connect_all`: several servers, any of which may be down."""

import json
import logging
import os
import re
import signal
import sys
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from noizu_mcp import (
    Accept,
    Cache,
    ClientHandler,
    ConnectionClosed,
    Context,
    McpError,
    RequestTimeout,
    Schema,
    Server,
    Stdio,
    Toolkit,
    TransportError,
    connect_all,
    mcp,
    tool,
)
from noizu_mcp.client import bound_name
from noizu_mcp.transports import memory_pair

ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
DEAD = Stdio("no-such-command")


class Form(Schema):
    """The form of the questions."""

    name: str


class Life:
    """The present run of a server, which a test may end.

    Attributes:
        server: The class of the server.
        runs: The number of its runs.
        refusal: Raised at the beginning of a run.
        leaving: Awaited at the end of a run.
    """

    def __init__(self, name):
        self.runs = 0
        self.refusal = None
        self.leaving = None
        self.called = trio.Event()
        self._killed = trio.Event()
        life = self

        class Kit(Toolkit):
            @mcp
            async def who(self, number: int) -> str:
                """Tell who answers, after some time."""
                life.called.set()
                await trio.sleep(number % 4)
                return f"{name} {number}"

            @mcp
            async def wait(self) -> str:
                life.called.set()
                await trio.sleep_forever()

            @mcp
            async def ask(self, ctx: Context) -> str:
                ctx.notify.tools()
                return (await ctx.elicit("who?", Form)).content.name

        class Made(Server, name=name, version="1"):
            tools = [Kit]

            @asynccontextmanager
            async def lifespan(self):
                life.runs += 1
                if life.refusal is not None:
                    raise life.refusal
                life._killed = trio.Event()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(life._die)
                    try:
                        yield
                    finally:
                        if life.leaving is not None:
                            with trio.CancelScope(shield=True):
                                await life.leaving()
                    nursery.cancel_scope.cancel()

        self.server = Made

    async def _die(self):
        await self._killed.wait()
        raise LookupError("killed")

    def kill(self):
        self._killed.set()


@pytest.fixture
def lives():
    """Return three servers by name."""
    return {name: Life(name) for name in "abc"}


def servers(lives):
    return {name: life.server for name, life in lives.items()}


def shown(result):
    return result.content[0].text


async def until(condition):
    """Wait for a condition that other tasks cause, on a clock that jumps."""
    with trio.fail_after(3600):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await trio.sleep(0.1)


# One list


@ERAS
async def test_one_list_of_tools(lives, version):
    """The tools of all servers are in one list, and are called by their names in it."""
    async with connect_all(servers(lives), version=version) as clients:
        assert (list(clients), len(clients), "a" in clients, "x" in clients) == (
            ["a", "b", "c"],
            3,
            True,
            False,
        )
        assert clients.status == dict.fromkeys("abc", "connected")
        assert clients.failures == {}
        tools = await clients.list_tools()
        assert [f"{name}_{each}" for name in "abc" for each in ("who", "wait", "ask")] == [
            each.name for each in tools
        ]
        assert tools[0].description == "Tell who answers, after some time."
        assert shown(await clients.call_tool("b_who", {"number": 0})) == "b 0"
        assert clients["c"].server_info.name == "c"
        assert shown(await clients["c"].call_tool("who", {"number": 4})) == "c 4"


async def test_a_call_needs_no_list(lives):
    """The first call finds its tool without a list; an unknown name raises with a suggestion."""
    async with connect_all(servers(lives) | {"dead": DEAD}) as clients:
        assert shown(await clients.call_tool("b_who", {"number": 0})) == "b 0"
        with pytest.raises(ConnectionClosed, match=r"^dead is not connected: command not found"):
            await clients.call_tool("dead_who")
        with pytest.raises(McpError, match=r"^Unknown tool: b_whoo; did you mean b_who\?; not con"):
            await clients.call_tool("b_whoo")
        with pytest.raises(McpError, match=r"^Unknown tool: frobnicate; not connected: dead \("):
            await clients.call_tool("frobnicate")
        with pytest.raises(KeyError, match=r"no server d; there are: a, b, c, dead"):
            clients["d"]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        (True, ["My_Files_read", "web_get"]),
        (None, ["read", "get"]),
        (False, ["read", "get"]),
        ({"web": "w"}, ["My_Files_read", "w_get"]),
        ({"My Files": "", "web": "a-b.c"}, ["read", "a-b.c_get"]),
    ],
)
async def test_prefixes(prefix, expected):
    """The prefix is the name of the server, as far as it fits, or a given text."""
    targets = {"My Files": one_tool("read"), "web": one_tool("get")}
    async with connect_all({"mcpServers": targets}, prefix=prefix) as clients:
        assert [each.name for each in await clients.list_tools()] == expected
        assert shown(await clients.call_tool(expected[1])) == "get"


def telling(name, text=None):
    """Make a tool that returns its name, or a text."""

    async def call() -> str:
        return name if text is None else text

    return tool(call, name=name)


def one_tool(*names):
    """Make a server of tools that return their names."""

    class One(Server, name="one", version="1"):
        tools = [telling(name) for name in names]

    return One


def saying(text, *names):
    """Make a server of tools that return a text."""

    class One(Server, name="one", version="1"):
        tools = [telling(name, text) for name in names]

    return One


@ERAS
async def test_the_list_is_fresh_after_a_notice(version):
    """A list with a TTL of an hour is requested again after a notice of changes."""

    def named(name):
        return tool(lambda: name, name=name, description=name)

    class Changing(Server, name="changing", version="1", cache={"tools": Cache(ttl=3600)}):
        tools = [named("get")]

    server, host = Changing(), Host("s")
    async with connect_all({"s": server}, handler=host, version=version) as clients:
        assert [each.name for each in await clients.list_tools()] == ["s_get"]
        server.tools.add(named("put"))
        with trio.fail_after(60):
            await host.noticed.wait()
        assert [each.name for each in await clients.list_tools()] == ["s_get", "s_put"]


async def test_long_names():
    """A name that exceeds the limit with its prefix is cut deterministically, and stays unique."""
    long = ["x" * 127 + "a", "x" * 127 + "b", "x" * 126]
    async with connect_all({"s": one_tool(*long)}) as clients:
        names = [each.name for each in await clients.list_tools()]
        assert [len(each) for each in names] == [128, 128, 128]
        assert len(set(names)) == 3
        assert names[2] == f"s_{long[2]}"
        for name, expected in zip(names, long, strict=True):
            assert shown(await clients.call_tool(name)) == expected
    async with connect_all({"s": one_tool(*long)}, prefix=None) as clients:
        assert [each.name for each in await clients.list_tools()] == long


@pytest.mark.parametrize("order", [1, -1])
async def test_a_name_with_the_prefix_of_another_server(order, caplog):
    """It belongs to the server with the prefix, in any order; the log names the other server."""
    targets = {"a": saying("bad", "b_get", "b_put", "get"), "a_b": saying("good", "get")}
    async with connect_all(dict(list(targets.items())[::order])) as clients:
        assert shown(await clients.call_tool("a_b_get")) == "good"
        names = [each.name for each in await clients.list_tools()]
        assert sorted(names) == ["a_b_get", "a_get"]
        assert shown(await clients.call_tool("a_get")) == "bad"
        with pytest.raises(McpError, match="Unknown tool: a_b_put"):
            await clients.call_tool("a_b_put")
    text = "the tool 'a_b_get' of a is left out: the name is taken by the prefix of another server"
    assert text in caplog.text
    assert len([each for each in caplog.messages if "left out" in each]) <= 6
    async with connect_all(targets, prefix={"a_b": "other"}) as clients:
        assert len(await clients.list_tools()) == 4


async def test_a_name_of_a_server_that_is_down():
    """It does not go to a server with a shorter prefix, though that lists the name."""
    targets = {"a": saying("bad", "b_get"), "a_b": Stdio("no-such-command")}
    async with connect_all(targets) as clients:
        with pytest.raises(ConnectionClosed, match="a_b is not connected"):
            await clients.call_tool("a_b_get")
        assert await clients.list_tools() == []


async def test_two_servers_with_one_prefix():
    """Both are asked for such a tool; of two tools with one name the first server's is used."""
    targets = {"one": saying("one", "get"), "two": saying("two", "get", "put")}
    async with connect_all(targets, prefix={"one": "x", "two": "x"}) as clients:
        assert shown(await clients.call_tool("x_put")) == "two"
        assert shown(await clients.call_tool("x_get")) == "one"


@pytest.mark.parametrize("is_first", [True, False])
async def test_the_present_owner_of_a_name_stays(is_first, caplog):
    """A name without a prefix stays with its server if another one lists it, too."""
    owner, taker = saying("mine", "get")(), saying("other", "put")()
    targets = {"a": owner, "b": taker} if is_first else {"b": taker, "a": owner}
    async with connect_all(targets, prefix=None) as clients:
        assert len(await clients.list_tools()) == 2
        taker.tools.add(telling("get", "other"))
        assert sorted(each.name for each in await clients.list_tools()) == ["get", "put"]
        assert shown(await clients.call_tool("get")) == "mine"
        owner.tools.remove("get")
        assert len(await clients.list_tools()) == 2
        assert shown(await clients.call_tool("get")) == "other"
    assert "the tool 'get' of b is left out: the name is taken by a; connect" in caplog.text


async def test_a_silent_server_delays_no_call(script_on, autojump_clock):
    """The first call of a tool requests the list of only the server with its prefix."""
    ours, theirs = memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(script_on(theirs, {"tools/list": None}).run)
        targets = {"silent": ours, "good": saying("good", "get")}
        async with connect_all(targets, version="2025-11-25") as clients:
            began = trio.current_time()
            assert shown(await clients.call_tool("good_get")) == "good"
            assert trio.current_time() == began
        nursery.cancel_scope.cancel()


WORDS = st.text("ab_", min_size=1, max_size=140)


@given(prefix=WORDS, tools=st.sets(WORDS, max_size=5))
def test_names_stay_unique(prefix, tools):
    """Tools of one server have different names of bounded length."""
    names = {bound_name(f"{prefix}_{name}") for name in tools}

    assert len(names) == len(tools)
    assert all(len(name) <= 128 for name in names)


# Dead servers


async def test_a_dead_server_takes_no_other_down(lives, caplog, autojump_clock):
    """A failure is logged once; the server is connected as soon as possible, also logged."""
    lives["b"].refusal = LookupError("no database")
    with caplog.at_level(logging.INFO, "noizu_mcp"):
        async with connect_all({**servers(lives), "dead": DEAD}) as clients:
            assert clients.status == {
                "a": "connected",
                "b": "waiting",
                "c": "connected",
                "dead": "waiting",
            }
            assert repr(clients.failures["b"]) == "LookupError('no database')"
            assert {each.name[:2] for each in await clients.list_tools()} == {"a_", "c_"}
            with pytest.raises(ConnectionClosed, match=r"^b is not connected: LookupError: no dat"):
                clients["b"]
            lives["b"].refusal = None
            await until(lambda: clients.status["b"] == "connected")
            assert list(clients.failures) == ["dead"]
            assert shown(await clients.call_tool("b_who", {"number": 0})) == "b 0"
    assert [each for each in caplog.messages if each.startswith("the server b")] == [
        "the server b is not connected: LookupError: no database",
        "the server b is connected",
    ]
    assert caplog.text.count("the server dead is not connected: command not found: no-such") == 1


async def test_the_pauses_grow(lives, autojump_clock):
    """A server that stays down is tried after longer and longer pauses, without an end."""
    lives["a"].refusal = LookupError("no")
    async with connect_all({"a": lives["a"].server}):
        await trio.sleep(60)
        first, lives["a"].runs = lives["a"].runs, 0
        await trio.sleep(600)
    assert 6 <= first <= 8
    assert 10 <= lives["a"].runs <= 21


@ERAS
async def test_a_server_that_dies_in_a_call(lives, version, autojump_clock):
    """The call raises one exception, which names the server; the others go on."""
    async with connect_all(servers(lives), version=version) as clients:
        results = {}

        async def call(name, arguments=None):
            try:
                results[name] = shown(await clients.call_tool(name, arguments))
            except ConnectionClosed as error:
                results[name] = str(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, "a_wait")
            nursery.start_soon(call, "b_who", {"number": 3})
            await lives["a"].called.wait()
            await lives["b"].called.wait()
            lives["a"].kill()
        assert results == {
            "a_wait": "a: the connection ended before tools/call was answered",
            "b_who": "b 3",
        }
        await until(lambda: clients.status["a"] == "connected")
        assert (lives["a"].runs, lives["b"].runs) == (2, 1)
        assert shown(await clients.call_tool("a_who", {"number": 0})) == "a 0"


async def test_a_call_while_a_server_is_started_again(lives, autojump_clock):
    """After a long life the server is restarted at once, and a call waits for it."""
    async with connect_all(servers(lives)) as clients:
        await clients.list_tools()
        await trio.sleep(11)
        before = clients["a"]
        lives["a"].kill()
        await until(lambda: clients.status["a"] == "connecting" or lives["a"].runs == 2)
        assert shown(await clients.call_tool("a_who", {"number": 0})) == "a 0"
        assert clients["a"] is not before
        assert lives["a"].runs == 2


async def test_a_call_while_a_server_is_down(lives, autojump_clock):
    """A call fails at once, with the reason, although its tool is known."""
    async with connect_all(servers(lives)) as clients:
        await clients.list_tools()
        lives["a"].refusal = LookupError("no database")
        lives["a"].kill()
        await until(lambda: clients.status["a"] == "waiting")
        await until(lambda: "no database" in str(clients.failures["a"]))
        now = trio.current_time()
        with pytest.raises(ConnectionClosed, match=r"^a is not connected: LookupError: no datab"):
            await clients.call_tool("a_who", {"number": 0})
        assert trio.current_time() == now


async def test_a_server_that_hangs(lives, autojump_clock):
    """The block begins without it; a call waits for it until its timeout."""
    ours, theirs = memory_pair()
    targets = {"a": lives["a"].server, "mute": ours}
    async with connect_all(targets, start_timeout=2, timeout=100) as clients:
        assert clients.status == {"a": "connected", "mute": "connecting"}
        with pytest.raises(
            ConnectionClosed, match=r"^mute is not connected: it is being connected$"
        ):
            clients["mute"]
        with trio.move_on_after(1):
            await clients.list_tools()
        connection = clients._connections["mute"]
        with pytest.raises(RequestTimeout, match=r"^mute did not connect within 5 s$"):
            await connection.ready(5)
        await theirs.aclose()
        await until(lambda: clients.status["mute"] == "failed")
        assert [each.name for each in await clients.list_tools()] == ["a_who", "a_wait", "a_ask"]


async def test_a_stream_is_used_once(script_on):
    """A stream cannot be reopened: its server stays down when it has ended."""
    ours, theirs = memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(script_on(theirs, {}).run)
        async with connect_all({"s": ours}) as clients:
            assert clients.status == {"s": "connected"}
            await theirs.aclose()
            while clients.status != {"s": "failed"}:
                await trio.lowlevel.checkpoint()
            with pytest.raises(ConnectionClosed, match="s is not connected: the connection ended"):
                clients["s"]
        nursery.cancel_scope.cancel()


async def test_entries_that_are_wrong(lives, tmp_path, caplog):
    """A malformed entry is a failure of its server, and is not tried again."""
    path = tmp_path / "mcp.json"
    entries = {
        "old": {"type": "sse", "url": "http://x"},
        "unset": {"command": "a", "env": {"KEY": "${NOIZU_MCP_NO_SUCH}"}},
        "off": {"command": "a", "disabled": True},
    }
    path.write_text(json.dumps({"mcpServers": entries}))
    async with connect_all(path) as clients:
        assert clients.status == {"old": "failed", "unset": "failed"}
        assert str(clients.failures["old"]).startswith('old: type "sse" is the transport of')
        assert len(caplog.messages) == 2
    targets = {"ftp": "ftp://x", "five": 5, "a": lives["a"].server}
    async with connect_all(targets) as clients:
        assert clients.status == {"ftp": "failed", "five": "failed", "a": "connected"}
    with pytest.raises(TransportError, match=r"^cannot read no.json"):
        async with connect_all("no.json"):
            pass


@pytest.mark.slow
async def test_processes(tmp_path):
    """Of real servers in a host's file one exits during a call, and its reason is reported."""
    (tmp_path / "app.py").write_text(
        "import os, sys\n"
        "from noizu_mcp import Server\n"
        "def ping() -> str:\n    return 'pong'\n"
        "def leave() -> str:\n    os._exit(3)\n"
        "class App(Server, name='app', version='1'):\n    tools = [ping, leave]\n"
    )
    entry = {
        "command": sys.executable,
        "args": ["-m", "noizu_mcp", "run", "app.py"],
        "cwd": str(tmp_path),
    }
    config = {"mcpServers": {"one": entry, "two": entry, "dead": {"command": "no-such-command"}}}
    with trio.fail_after(120):
        async with connect_all(config) as clients:
            assert list(clients.failures) == ["dead"]
            with pytest.raises(ConnectionClosed, match=r"^one: the connection ended before"):
                await clients.call_tool("one_leave")
            assert shown(await clients.call_tool("two_ping")) == "pong"
            while clients.status["one"] != "connected":
                if "one" in clients.failures:
                    assert "exited with status 3" in str(clients.failures["one"])
                await trio.sleep(0.01)
            assert shown(await clients.call_tool("one_ping")) == "pong"


#: A server of a few lines, which starts at once; it returns its name and its process id.
TINY = """
import json, os, sys
schema = {"type": "object"}
results = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": sys.argv[1], "version": "1"},
    },
    "tools/list": {"tools": [{"name": "who", "inputSchema": schema}]},
}
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message["method"], {"jsonrpc": "2.0", "id": message.get("id")}
    if method == "tools/call":
        words = (sys.argv[1], message["params"]["arguments"]["number"], os.getpid())
        content = {"type": "text", "text": " ".join(map(str, words))}
        answer["result"] = {"content": [content]}
    elif method in results:
        answer["result"] = results[method]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
"""


@pytest.mark.slow
async def test_processes_that_are_killed():
    """If processes are killed during calls, each call has its own answer or one exception."""
    targets = {name: Stdio(sys.executable, "-c", TINY, name) for name in "abc"}
    outcomes, pids = {}, {}

    async def call(clients, number):
        server = "abc"[number % 3]
        try:
            told = shown(await clients.call_tool(f"{server}_who", {"number": number}))
        except ConnectionClosed as error:
            told = str(error)
        outcomes[number] = re.fullmatch(rf"{server} {number} \d+|{server}( is not|:) .*", told)

    async def round_of(clients, begin):
        async with trio.open_nursery() as nursery:
            for number in range(begin, begin + 30):
                nursery.start_soon(call, clients, number)
                if number % 10 == 5:
                    server = "abc"[number % 3]
                    os.kill(pids[server], signal.SIGKILL)
                await trio.lowlevel.checkpoint()

    with trio.fail_after(60):
        async with connect_all(targets) as clients:
            for begin in (0, 30):
                for server in targets:
                    await until(lambda server=server: clients.status[server] == "connected")
                    told = shown(await clients.call_tool(f"{server}_who", {"number": -1}))
                    pids[server] = int(told.split()[-1])
                await round_of(clients, begin)
    assert outcomes.keys() == set(range(60))
    assert all(outcomes.values())


async def test_nothing_is_left_of_many_restarts(lives, autojump_clock):
    """Thirty restarts leave no task behind."""
    living, before = set(), trio.lowlevel.current_statistics().tasks_living
    async with connect_all({"a": lives["a"].server}) as clients:
        for runs in range(1, 31):
            await until(lambda runs=runs: lives["a"].runs == runs and clients.failures == {})
            assert shown(await clients.call_tool("a_who", {"number": 0})) == "a 0"
            await trio.sleep(11)  # after a long life it is restarted at once
            living.add(trio.lowlevel.current_statistics().tasks_living)
            lives["a"].kill()
    assert len(living) == 1
    assert trio.lowlevel.current_statistics().tasks_living == before


# Lists that fail


async def test_lists_that_fail(script_on, caplog):
    """A server that cannot list its tools, or has none, is left out of the list."""
    discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    answers = {
        "refuses": {"tools/list": Exception(-32603, "no")},
        "none": {"server/discover": discovered},
    }
    async with trio.open_nursery() as nursery:
        targets = {"one": one_tool("get")}
        for name, each in answers.items():
            targets[name], theirs = memory_pair()
            nursery.start_soon(script_on(theirs, each).run)
        async with connect_all(targets) as clients:
            assert [each.name for each in await clients.list_tools()] == ["one_get"]
        nursery.cancel_scope.cancel()
    assert [each for each in caplog.messages if "tools" in each] == [
        "left out the tools of refuses: no (-32603)"
    ]


# Handlers


class Host(ClientHandler):
    """Answers with the name of the server, and keeps its notices."""

    def __init__(self, server):
        self.server = server
        self.notices = []
        self.noticed = trio.Event()

    async def handle_elicitation(self, params):
        return Accept({"name": self.server})

    async def handle_notification(self, method, params):
        self.notices.append(method)
        self.noticed.set()


@ERAS
async def test_a_handler_for_each_server(lives, version):
    """A handler class gets the name of each server, and list changes without `listen`."""
    hosts = {}

    def make(name):
        hosts[name] = Host(name)
        return hosts[name]

    async with connect_all(servers(lives), handler=make, version=version) as clients:
        with trio.fail_after(60):
            assert shown(await clients.call_tool("b_ask")) == "b"
            assert shown(await clients.call_tool("c_ask")) == "c"
            await hosts["b"].noticed.wait()
    assert hosts["b"].notices[0] == "notifications/tools/list_changed"
    assert hosts["a"].notices == []


@ERAS
async def test_a_server_that_came_back(lives, version, autojump_clock):
    """Its handler gets notices for lists that may have changed, and later changes as before."""
    host = Host("a")
    targets = {"a": lives["a"].server}
    async with connect_all(targets, handler=host, version=version) as clients:
        lives["a"].kill()
        await until(lambda: lives["a"].runs == 2 and clients.status["a"] == "connected")
        await host.noticed.wait()
        assert host.notices == ["notifications/tools/list_changed"]
        assert shown(await clients.call_tool("a_ask")) == "a"
        await until(lambda: len(host.notices) == 2)


async def test_one_handler_for_all(lives):
    """One handler answers the questions of all servers; its client is that of the asking server."""

    class Namer(ClientHandler):
        async def handle_elicitation(self, params):
            return Accept({"name": f"asked by {self.client.server_info.name}"})

    async with connect_all(servers(lives), handler=Namer()) as clients:
        assert shown(await clients.call_tool("a_ask")) == "asked by a"
        assert shown(await clients.call_tool("b_ask")) == "asked by b"


async def test_listening_goes_on(script_on, autojump_clock):
    """A listen request that fails or ends is sent again, and the handler gets the changes."""
    ours, theirs = memory_pair()
    requests = []

    def listen(request):
        requests.append(request["id"])
        if len(requests) == 1:
            return Exception(-32000, "not now")
        meta = {"io.modelcontextprotocol/subscriptionId": request["id"]}
        params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
        method = "notifications/subscriptions/acknowledged"
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        theirs.send_nowait([json.dumps(message).encode()])
        return {"resultType": "complete"} if len(requests) < 4 else None

    host = Host("s")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(script_on(theirs, {"subscriptions/listen": listen}).run)
        async with connect_all({"s": ours}, handler=host) as clients:
            await until(lambda: len(host.notices) == 2)
            assert clients.status == {"s": "connected"}
        nursery.cancel_scope.cancel()
    assert len(requests) == 4
    assert host.notices == ["notifications/tools/list_changed"] * 2


async def test_a_server_that_tells_no_changes(script_on, caplog, autojump_clock):
    """A server without the method is not asked again, and can be used."""
    ours, theirs = memory_pair()
    answers = {"subscriptions/listen": Exception(-32601, "no"), "tools/list": {"tools": []}}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(script_on(theirs, answers).run)
        async with connect_all({"s": ours}, handler=Host("s")) as clients:
            await trio.sleep(600)
            assert await clients.list_tools() == []
        nursery.cancel_scope.cancel()
    assert caplog.messages == ["the server s tells no changes: no (-32601)"]


# The beginning and the end


async def test_they_end_together(lives):
    """Servers end concurrently."""
    leaving = set()
    everybody = trio.Event()

    async def leave(name):
        leaving.add(name)
        if leaving == set(lives):
            everybody.set()
        await everybody.wait()

    for name, life in lives.items():
        life.leaving = partial(leave, name)
    with trio.fail_after(60):
        async with connect_all(servers(lives)) as clients:
            pass
    assert leaving == set(lives)
    assert clients.status == dict.fromkeys("abc", "failed")
    with pytest.raises(
        ConnectionClosed, match="a is not connected: the connection is no longer kept"
    ):
        clients["a"]


async def test_a_failure_of_the_block(lives):
    """An exception of the block is raised unchanged."""
    with pytest.raises(ZeroDivisionError):
        async with connect_all(servers(lives)):
            raise ZeroDivisionError


async def test_no_servers():
    """An empty configuration has no tools."""
    async with connect_all({"mcpServers": {}}) as clients:
        assert await clients.list_tools() == []
        with pytest.raises(McpError, match=r"^Unknown tool: a_who \(-32602\)$"):
            await clients.call_tool("a_who")


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"auth": 5}, TypeError, r"auth= would send the credentials of one server to all"),
        (
            {"tiemout": 5},
            TypeError,
            r"connect_all has no option tiemout; did you mean timeout\?",
        ),
        ({"target": 5}, TypeError, r"connect_all has no option target"),
        ({"per_server": {"a": {"handler": 5}}}, TypeError, "connect_all has no option handler"),
        ({"per_server": {"x": {}}}, ValueError, "per_server names no server x; there are: a$"),
        ({"prefix": {"x": "y"}}, ValueError, "prefix names no server x"),
        ({"prefix": {"a": "b c"}}, ValueError, "a prefix has letters, digits, _, - and . only"),
        ({"handler": 5}, TypeError, "handler must be a ClientHandler, or make one, not 5"),
        ({"handler": str}, TypeError, "handler must return an instance of a ClientHandler, not 'a"),
    ],
)
async def test_options_that_are_wrong(lives, options, kind, message):
    """A mistake of the program is raised at once."""
    with pytest.raises(kind, match=message):
        async with connect_all({"a": lives["a"].server}, **options):
            raise AssertionError


async def test_options_of_one_server(lives):
    """An option of one server overrides that of all."""
    own = {"b": {"version": "2025-06-18"}}
    async with connect_all(servers(lives), version="2025-11-25", per_server=own) as clients:
        versions = [clients[name].protocol_version for name in "abc"]
    assert versions == ["2025-11-25", "2025-06-18", "2025-11-25"]


def test_it_is_for_trio():
    """On another loop the error says what to write."""
    with pytest.raises(RuntimeError, match="connect_all is for trio programs"):
        connect_all({}).__aenter__().send(None)


# The law

STEPS = st.lists(
    st.tuples(st.sampled_from(["call", "call", "kill", "wait"]), st.sampled_from("abc")),
    max_size=25,
)


@pytest.mark.slow
@given(steps=STEPS)
def test_a_call_ends_in_its_own_answer_or_one_exception(steps):
    """No call gets another call's answer, or none, whichever servers die at whatever time."""
    outcomes = {}

    async def call(clients, server, number):
        try:
            outcome = shown(await clients.call_tool(f"{server}_who", {"number": number}))
        except Exception as error:
            outcome = error
        assert number not in outcomes
        outcomes[number] = outcome

    async def play():
        lives = {name: Life(name) for name in "abc"}
        with trio.fail_after(3600):
            async with connect_all(servers(lives)) as clients, trio.open_nursery() as nursery:
                for number, (step, server) in enumerate(steps):
                    if step == "call":
                        nursery.start_soon(call, clients, server, number)
                    elif step == "kill":
                        lives[server].kill()
                    else:
                        await trio.sleep(0.7)

    trio.run(play, clock=MockClock(autojump_threshold=0))

    calls = {number: server for number, (step, server) in enumerate(steps) if step == "call"}
    assert outcomes.keys() == calls.keys()
    for number, server in calls.items():
        outcome = outcomes[number]
        if isinstance(outcome, str):
            assert outcome == f"{server} {number}"
        else:
            assert type(outcome) is ConnectionClosed
            assert str(outcome).startswith(server)
