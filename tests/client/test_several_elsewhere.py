"""Several servers in programs on asyncio, and in blocking code."""

import asyncio
import inspect
import json
import sys

import pytest
import trio

from noizu_mcp import (
    Accept,
    Client,
    ClientHandler,
    Clients,
    ConnectionClosed,
    Context,
    McpError,
    Schema,
    Server,
    Stdio,
    SyncClient,
    SyncClients,
    TransportError,
    aio,
    connect_all,
)

DEAD = Stdio("no-such-command")


class Form(Schema):
    """The form of the questions."""

    name: str


def echo(text: str) -> str:
    """Say it again."""
    return text


async def ask(ctx: Context) -> str:
    """Ask."""
    return (await ctx.elicit("who?", Form)).content.name


class One(Server, name="one", version="1"):
    """A server in memory."""

    tools = [echo, ask]


class Two(Server, name="two", version="1"):
    """Another one."""

    tools = [echo, ask]


SERVERS = {"one": One, "two": Two, "dead": DEAD}


class Human(ClientHandler):
    """Answers on asyncio, with its own name and that of the server."""

    def __init__(self, name):
        self.name = name

    async def handle_elicitation(self, params):
        await asyncio.sleep(0)
        return Accept({"name": f"{self.name} of {self.client.server_info.name}"})


class Plain(Human):
    """Answers in a thread."""

    def handle_elicitation(self, params):
        echoed = self.client.call_tool("echo", {"text": self.name}).content[0].text
        return Accept({"name": f"{echoed} of {self.client.server_info.name}"})


def shown(result):
    return result.content[0].text


def test_asyncio():
    """The methods are asyncio coroutines, and failures of one server do not affect others."""

    async def main():
        async with asyncio.timeout(60), aio.connect_all(SERVERS, handler=Human) as clients:
            assert isinstance(clients, Clients)
            assert clients.status == {"one": "connected", "two": "connected", "dead": "waiting"}
            assert list(clients.failures) == ["dead"]
            assert len(await clients.list_tools()) == 4
            assert shown(await clients.call_tool("two_echo", {"text": "x"})) == "x"
            assert shown(await clients.call_tool("two_ask")) == "two of two"
            client = clients["one"]
            assert isinstance(client, Client)
            assert shown(await client.call_tool("echo", {"text": "y"})) == "y"
            with pytest.raises(
                ConnectionClosed, match=r"^dead is not connected: command not found"
            ):
                clients["dead"]
            with pytest.raises(McpError, match="Unknown tool"):
                await clients.call_tool("three_echo")
        async with aio.connect_all({"one": One}, handler=Human("all")) as clients:
            assert shown(await clients.call_tool("one_ask")) == "all of one"
        for handler in (None, str):
            await refuse(handler)

    async def refuse(handler):
        kind = TransportError if handler is None else TypeError
        target = {"one": One} if handler else "no.json"
        with pytest.raises(kind):
            async with aio.connect_all(target, handler=handler):
                raise AssertionError

    asyncio.run(main())


def test_plain_code():
    """The methods block, and each server has a `SyncClient`."""
    with SyncClients(SERVERS, handler=Plain, timeout=60) as clients:
        assert (list(clients), len(clients)) == (["one", "two", "dead"], 3)
        assert clients.status == {"one": "connected", "two": "connected", "dead": "waiting"}
        assert list(clients.failures) == ["dead"]
        assert len(clients.list_tools()) == 4
        assert shown(clients.call_tool("two_echo", {"text": "x"})) == "x"
        assert shown(clients.call_tool("two_ask")) == "two of two"
        client = clients["one"]
        assert isinstance(client, SyncClient)
        assert client.server_info.name == "one"
        assert shown(client.call_tool("echo", {"text": "y"})) == "y"
        with pytest.raises(RuntimeError, match="is open already"):
            client.open()
        client.close()
        assert shown(clients.call_tool("one_echo", {"text": "z"})) == "z"
        with pytest.raises(ConnectionClosed, match=r"^dead is not connected: command not found"):
            clients["dead"]
    with pytest.raises(ConnectionClosed, match="the client is closed"):
        clients.list_tools()
    with pytest.raises(RuntimeError, match="is not open"):
        SyncClients({}).status  # noqa: B018 - looking is what is tested


@pytest.mark.parametrize(
    ("handler", "expected"), [(Plain("all"), "all of two"), (None, None), (str, TypeError)]
)
def test_handlers_of_plain_code(handler, expected):
    """One handler may answer for all servers; a factory that makes no handler is refused."""
    clients = SyncClients({"two": Two}, handler=handler)
    if expected is TypeError:
        with pytest.raises(TypeError, match="handler must return an instance"):
            clients.open()
        return
    clients.open()
    try:
        if expected is None:
            assert len(clients.list_tools()) == 2
        else:
            assert shown(clients.call_tool("two_ask")) == expected
    finally:
        clients.close()


async def test_plain_code_in_a_loop():
    """In a trio task it would block the loop."""
    with pytest.raises(RuntimeError, match="would stop the trio loop"):
        SyncClients({"one": One}).open()


def test_the_three_forms_are_alike():
    """They have the same signature, methods and attributes."""
    options = dict(inspect.signature(connect_all).parameters)
    public = {name for name in dir(Clients) if not name.startswith("_")}

    assert dict(inspect.signature(aio.connect_all).parameters) == options
    assert dict(inspect.signature(SyncClients).parameters) == options
    assert public | {"open", "close"} == {x for x in dir(SyncClients) if not x.startswith("_")}
    for name in ("list_tools", "call_tool"):
        ours = getattr(SyncClients, name)
        assert inspect.signature(ours) == inspect.signature(getattr(Clients, name))


@pytest.mark.slow
def test_a_server_that_dies(tmp_path):
    """A process that exits during a call is restarted, and blocking code can wait for it."""
    (tmp_path / "app.py").write_text(
        "import os\nfrom noizu_mcp import Server\n"
        "def ping() -> str:\n    return 'pong'\n"
        "def leave() -> str:\n    os._exit(3)\n"
        "class App(Server, name='app', version='1'):\n    tools = [ping, leave]\n"
    )
    args = ["-m", "noizu_mcp", "run", str(tmp_path / "app.py")]
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"servers": {"app": {"command": sys.executable, "args": args}}}))
    with SyncClients(path) as clients:
        with pytest.raises(ConnectionClosed, match=r"^app: the connection ended before tools/call"):
            clients.call_tool("app_leave")
        while clients.status["app"] != "connected":
            trio.run(trio.sleep, 0.01)
        assert shown(clients.call_tool("app_ping")) == "pong"
