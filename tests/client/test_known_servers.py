"""Servers that are known to shake hands: the next connection to them sends no probe."""

import sys
import threading

import pytest

from noizu_mcp import McpError, ProtocolError, RequestTimeout, Stdio, connect
from noizu_mcp.client._negotiate import KNOWN, MAX_KNOWN, HandshakeServers
from noizu_mcp.engine import single_failure

HERE = ("server", (), None)
#: A server of a handshake version: it knows no `server/discover`.
OLD = {"server/discover": ValueError(-32601, "Method not found")}
NAMES_NEWEST = ValueError(-32022, "Unsupported protocol version", {"supported": ["2026-07-28"]})


def sent(script):
    """List the methods of the requests."""
    return [m["method"] for m in script.received if "id" in m and "method" in m]


async def test_the_second_connection_sends_no_probe(scripted):
    """A server that has answered a probe with a handshake is asked for one at once."""
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
    """`cache=False` and a pinned version neither remember a server nor use what is known."""
    async with scripted(OLD, address=HERE, **option):
        pass
    async with scripted(OLD, address=HERE) as (_, script):
        pass
    assert sent(script) == ["server/discover", "initialize"]
    async with scripted(OLD, address=HERE, cache=False) as (_, script):
        pass
    assert sent(script) == ["server/discover", "initialize"]


async def test_a_stream_without_an_address_is_not_remembered(scripted):
    """Two servers without names are not taken for one."""
    for _ in range(2):
        async with scripted(OLD) as (_, script):
            pass
        assert sent(script) == ["server/discover", "initialize"]


async def test_a_server_that_learned_the_newest_revision(scripted):
    """The handshake fails, so the server is probed after all, and forgotten."""
    async with scripted(OLD, address=HERE):
        pass
    new = {"initialize": ValueError(-32601, "Method not found")}
    for expected in (["initialize", "server/discover"], ["server/discover"]):
        async with scripted(new, address=HERE) as (client, script):
            assert client.protocol_version == "2026-07-28"
        assert sent(script) == expected


async def test_a_server_that_names_the_newest_revision(scripted):
    """A server that refuses the handshake and names the revision is discovered, and forgotten."""
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
    """Only a handshake that succeeded tells the era of a server."""
    refusal = {**OLD, "initialize": ValueError(-32603, "broken")}
    with pytest.raises(McpError, match="broken"), single_failure():
        async with scripted(refusal, address=HERE):
            pass
    async with scripted(OLD, address=HERE) as (_, script):
        pass
    assert sent(script) == ["server/discover", "initialize"]


def test_a_server_is_known_for_an_hour():
    """Then it is probed again, whatever happened in between."""
    now = [0.0]
    known = HandshakeServers(lambda: now[0])
    known.add("a")
    now[0] = KNOWN - 1
    assert "a" in known
    assert "b" not in known
    now[0] = KNOWN
    assert "a" not in known


def test_few_servers_are_known():
    """The one that was added first goes first."""
    known = HandshakeServers()
    for number in range(MAX_KNOWN):
        known.add(number)
    known.add(0)
    known.add("new")
    assert (0 in known, 1 in known, "new" in known) == (True, False, True)
    known.discard("new")
    known.discard("never added")
    assert "new" not in known


def test_threads_share_what_is_known():
    """Clients in many threads do not break the table."""
    known = HandshakeServers()

    def work(number):
        for each in range(200):
            known.add((number, each))
            known.discard((number, each - 1))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all((number, 199) in known for number in range(4))


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
    """A program that is started again is not probed again."""
    log = tmp_path / "log"
    command = Stdio(sys.executable, "-c", OLD_PROGRAM, log)
    for _ in range(2):
        async with connect(command) as client:
            assert client.server_info.name == "old"
    methods = log.read_text().split()
    assert [each for each in methods if "/" not in each] == ["initialize"] * 2
    assert methods.count("server/discover") == 1
