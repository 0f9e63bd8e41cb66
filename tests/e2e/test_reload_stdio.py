"""`noizu-mcp run --reload` on stdio: a server that restarts behind one connection."""

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

import noizu_mcp
from noizu_mcp import Accept, ClientHandler, McpError, Stdio, connect
from noizu_mcp.transports import LineStream

ROOT = str(Path(noizu_mcp.__file__).parents[1])
PATIENCE = 60
ERAS = ("2025-11-25", "2026-07-28")
SERVER = """
import os, sys, trio
from noizu_mcp import Context, Resource, Server, Toolkit, mcp

class Kit(Toolkit):
    @mcp
    def NAME(self) -> str:
        return "NAME"

    @mcp
    async def waits(self, ctx: Context) -> str:
        await ctx.report_progress(1)
        await trio.sleep_forever()

    @mcp
    async def asks(self, ctx: Context) -> str:
        await ctx.info("asking")
        answer = await ctx.elicit("Sure?", {"type": "object", "properties": {}})
        await ctx.debug("told only at level debug")
        return f"{answer.action} NAME"

    @mcp
    def dies(self) -> None:
        os._exit(3)

class Note(Resource, uri="note://x", subscribable=True):
    def read(self, uri, ctx):
        return "NAME"

class Reloaded(Server, name="reloaded", version="1"):
    tools = [Kit]
    resources = [Note]
"""


class Heard(ClientHandler):
    """Hears changes and levels of log messages, and says yes."""

    def __init__(self):
        self.levels = set()
        self.changed = trio.Event()

    async def handle_notification(self, method, params):
        if method == "notifications/message":
            self.levels.add(params["level"])
        if method == "notifications/tools/list_changed":
            self.changed.set()
            self.changed = trio.Event()

    async def handle_elicitation(self, params):
        return Accept(None)


@pytest.fixture
def app(tmp_path):
    """Write the server with a tool of this name."""

    def write(name):
        # In one step: the server must not start with half of a file.
        (tmp_path / "new").write_text(SERVER.replace("NAME", name) if name.isidentifier() else name)
        (tmp_path / "new").rename(tmp_path / "app.py")

    write("one")
    return write


@asynccontextmanager
async def reloading(folder, version, **options):
    handler = Heard()
    words = (sys.executable, "-m", "noizu_mcp", "run", "app.py", "--reload")
    env = {**os.environ, "PYTHONPATH": ROOT}
    target = Stdio(*words, cwd=folder, env=env, stderr=subprocess.DEVNULL)
    with trio.fail_after(PATIENCE):
        async with connect(target, version=version, handler=handler, **options) as client:
            yield client, handler


async def change(app, handler, name):
    changed = handler.changed
    app(name)
    await changed.wait()


async def names(client):
    return [each.name for each in await client.list_tools()][:1]


@pytest.mark.parametrize("version", ERAS)
async def test_a_change_keeps_the_connection(tmp_path, app, version):
    """The new server has the session, and the client gets notices of changed lists."""
    async with reloading(tmp_path, version) as (client, handler):
        assert await names(client) == ["one"]
        await client.set_log_level("info")
        async with client.listen(tools=True):
            await change(app, handler, "two")
            assert await names(client) == ["two"]
            assert (await client.call_tool("asks")).text == "accept two"
            await change(app, handler, "three")
            assert (await client.call_tool("three")).text == "three"
        # The level was sent again.
        assert handler.levels == {"info"}


async def _list_until_it_fails(client):
    while True:
        await client.list_tools()


@pytest.mark.parametrize("version", ERAS)
async def test_a_broken_file(tmp_path, app, version):
    """Requests get an error that says so, until the file is corrected."""
    async with reloading(tmp_path, version) as (client, handler), client.listen(tools=True):
        app("(")
        with pytest.raises(McpError, match="the server has ended by itself"):
            await _list_until_it_fails(client)
        with pytest.raises(McpError, match="It starts with the next change"):
            await client.call_tool("one")
        await change(app, handler, "two")
        assert await names(client) == ["two"]


@pytest.mark.slow
async def test_a_server_that_dies(tmp_path, app):
    """The request that ends it gets an error, and the next change restarts it."""
    async with reloading(tmp_path, ERAS[0]) as (client, handler):
        with pytest.raises(McpError, match="the server has ended by itself"):
            await client.call_tool("dies")
        await change(app, handler, "two")
        assert await names(client) == ["two"]


async def test_subscriptions(tmp_path, app):
    """The new server gets the open subscriptions."""
    async with reloading(tmp_path, ERAS[0]) as (client, handler):
        await client.subscribe("note://x")
        await change(app, handler, "two")
        await client.unsubscribe("note://x")
        await change(app, handler, "three")
        assert (await client.read_resource("note://x")).contents[0].text == "three"


@pytest.mark.slow
async def test_a_request_that_does_not_end(tmp_path, app):
    """It gets the grace period, then an error; a cancelled request is not waited for."""
    async with reloading(tmp_path, ERAS[0]) as (client, handler):
        with trio.CancelScope() as scope:
            await client.call_tool("waits", progress=lambda _: scope.cancel())
        assert scope.cancelled_caught
        await change(app, handler, "two")
        failures = []
        running = trio.Event()

        async def call():
            try:
                await client.call_tool("waits", progress=lambda _: running.set())
            except McpError as error:
                failures.append(str(error))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await running.wait()
            await change(app, handler, "three")
            # Held back until the new server runs.
            assert await names(client) == ["three"]
        assert failures == ["the server was started again (-32603)"]


def test_the_answers_after_the_end(tmp_path, app):
    """A client that closes its side still gets its answers, and errors of the framing."""
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-03-26", "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        [
            {"jsonrpc": "2.0", "id": 2, "method": "ping"},
            {"jsonrpc": "2.0", "id": 3, "method": "ping"},
        ],
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}},
        {"jsonrpc": "2.0", "id": 5, "result": 3},
    ]  # fmt: skip
    lines = "".join(f"{json.dumps(each)}\n" for each in requests) + "{\n"
    done = subprocess.run(
        [sys.executable, "-m", "noizu_mcp", "run", "app.py:Reloaded", "--reload"],
        check=True,
        input=lines.encode(),
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ROOT},
        timeout=PATIENCE,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    ids = [
        each.get("id") for part in answers for each in (part if isinstance(part, list) else [part])
    ]
    assert sorted(ids, key=str) == [1, 2, 3, None]
    assert done.stderr.decode() == f"noizu-mcp: watching {tmp_path}\n"


def test_a_change_in_the_middle_of_a_handshake(start, command, tmp_path, app):
    """The new server gets the part of it that the client has sent."""
    command = command("run", "app.py", "--reload")
    peer = start(command, cwd=tmp_path, env={"PYTHONPATH": ROOT})
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
    hello["clientInfo"] = {"name": "x", "version": "1"}
    peer.write({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    assert peer.read()["id"] == 1
    app("two")
    while b"has changed" not in peer.process.stderr.readline():
        pass
    peer.write({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert peer.read() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    peer.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
    peer.write({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
    assert peer.read()["result"]["tools"][0]["name"] == "two"
    peer.close()
    assert peer.end()[0] == 0


async def test_a_client_that_is_gone():
    """Nothing is sent to it."""
    from noizu_mcp.cli._relay import ServerRelay

    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    client = LineStream(ours_in, ours_out)
    relay = ServerRelay(client, Stdio("false"))
    for fd in (theirs_in, theirs_out):
        os.close(fd)
    scope = trio.CancelScope()
    await relay.serve_client(scope)
    await relay._send_to_client(b"{}")
    await relay._send_to_server(b"{}")
    assert scope.cancel_called
    await client.aclose()
