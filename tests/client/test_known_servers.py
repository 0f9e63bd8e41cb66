"""Servers that are known to need a handshake: the next connection sends no probe."""

import sys

import pytest

from noizu_mcp import McpError, ProtocolError, RequestTimeout, Stdio, connect
from noizu_mcp.engine import single_failure

HERE = ("server", (), None)
#: A server of a handshake version: it does not know `server/discover`.
OLD = {"server/discover": ValueError(-32601, "Method not found")}
NAMES_NEWEST = ValueError(-32022, "Unsupported protocol version", {"supported": ["2026-07-28"]})


def sent(script):
    """List the methods of the requests."""
    return [m["method"] for m in script.received if "id" in m and "method" in m]


async def test_the_second_connection_sends_no_probe(scripted):
    """A server that has answered a probe with a handshake gets one at once the next time."""
    async with scripted(OLD, address=HERE) as (_, first):
        pass
    async with scripted(OLD, address=HERE) as (client, second):
        assert client.protocol_version == "2025-11-25"
    async with scripted(OLD, address=("another", (), None)) as (_, other):
        pass
    assert sent(first) == sent(other) == ["server/discover", "initialize"]
    assert sent(second) == ["initialize"]


@pytest.mark.parametrize("option", [{"cache": False}, {"version": "2025-11-25"}])
async def test_options_that_remember_nothing(scripted, option):
    """`cache=False` and a pinned version neither store nor use this knowledge."""
    async with scripted(OLD, address=HERE, **option):
        pass
    async with scripted(OLD, address=HERE) as (_, script):
        pass
    assert sent(script) == ["server/discover", "initialize"]
    async with scripted(OLD, address=HERE, cache=False) as (_, script):
        pass
    assert sent(script) == ["server/discover", "initialize"]


async def test_a_stream_without_an_address_is_not_remembered(scripted):
    """Streams without an address are not remembered."""
    for _ in range(2):
        async with scripted(OLD) as (_, script):
            pass
        assert sent(script) == ["server/discover", "initialize"]


async def test_a_server_that_learned_the_newest_revision(scripted):
    """If the handshake fails, the server is probed and forgotten."""
    async with scripted(OLD, address=HERE):
        pass
    new = {"initialize": ValueError(-32601, "Method not found")}
    for expected in (["initialize", "server/discover"], ["server/discover"]):
        async with scripted(new, address=HERE) as (client, script):
            assert client.protocol_version == "2026-07-28"
        assert sent(script) == expected


async def test_a_server_that_names_the_newest_revision(scripted):
    """If the refused handshake names the newest revision, it is used, and the server forgotten."""
    async with scripted(OLD, address=HERE):
        pass
    for expected in (["initialize", "server/discover"], ["server/discover"]):
        async with scripted({"initialize": NAMES_NEWEST}, address=HERE) as (client, script):
            assert client.protocol_version == "2026-07-28"
        assert sent(script) == expected


@pytest.mark.parametrize(
    ("answer", "error"),
    [(None, RequestTimeout), ({"protocolVersion": "1.0"}, ProtocolError)],
)
async def test_a_handshake_that_fails_otherwise(scripted, autojump_clock, answer, error):
    """The failure is raised, and the next connection probes."""
    async with scripted(OLD, address=HERE):
        pass
    with pytest.raises(error), single_failure():
        async with scripted({**OLD, "initialize": answer}, address=HERE, timeout=1):
            pass
    async with scripted(OLD, address=HERE) as (_, script):
        pass
    assert sent(script) == ["server/discover", "initialize"]


async def test_a_server_that_fails_is_not_remembered(scripted):
    """Only a successful handshake is remembered."""
    refusal = {**OLD, "initialize": ValueError(-32603, "broken")}
    with pytest.raises(McpError, match="broken"), single_failure():
        async with scripted(refusal, address=HERE):
            pass
    async with scripted(OLD, address=HERE) as (_, script):
        pass
    assert sent(script) == ["server/discover", "initialize"]


async def test_a_server_is_known_for_an_hour(scripted, monkeypatch):
    """After an hour a server is probed again, however often it was connected to."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for now[0], probes in ((0, 1), (3599, 0), (3600, 1)):
        async with scripted(OLD, address=HERE) as (_, script):
            pass
        assert sent(script).count("server/discover") == probes


async def test_few_servers_are_known(scripted):
    """The server that was added first is forgotten first."""
    for number in range(101):
        async with scripted(OLD, address=number):
            pass
    found = []
    for number in (100, 1, 0):
        async with scripted(OLD, address=number) as (_, script):
            found.append(sent(script).count("server/discover"))
    assert found == [0, 0, 1]


OLD_PROGRAM = """
import json, sys
with open(sys.argv[1], "a") as log:
    for line in sys.stdin:
        message = json.loads(line)
        log.write(message["method"] + "\\n")
        log.flush()
        answer = {"jsonrpc": "2.0", "id": message.get("id")}
        if message["method"] == "initialize":
            info = {"name": "old", "version": "0"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
            print(json.dumps({**answer, "result": result}), flush=True)
        elif "id" in message:
            error = {"code": -32601, "message": "Method not found"}
            print(json.dumps({**answer, "error": error}), flush=True)
"""


async def test_a_command_is_known(tmp_path):
    """A command that is started again is not probed again."""
    log = tmp_path / "log"
    command = Stdio(sys.executable, "-c", OLD_PROGRAM, log)
    for _ in range(2):
        async with connect(command) as client:
            assert client.server_info.name == "old"
    methods = log.read_text().split()
    assert [each for each in methods if "/" not in each] == ["initialize"] * 2
    assert methods.count("server/discover") == 1
