"""For any input each request has one response, the session goes on, and nothing leaks."""

import json
import logging
import os
import random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
SERVERS = ("Kitchen", "Pantry", "Asker")
PATIENCE = 60


@pytest.fixture(scope="module", autouse=True)
def quiet():
    """Disable logging, as tracebacks of crashes are expected."""
    logger = logging.getLogger("noizu_mcp")
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(logging.NOTSET)


class Conversation:
    """Reads everything from a server, and checks its form."""

    def __init__(self, wire):
        self.answers = []
        self._wire = wire
        self._alive = trio.Event()

    async def read(self):
        """Read until the server closes the connection."""
        while arrived := await self._wire.stream.receive():
            for received in arrived:
                value = json.loads(received.data)
                for message in value if isinstance(value, list) else [value]:
                    self._take(message)

    def _take(self, message):
        assert message["jsonrpc"] == "2.0"
        if message.get("id") == "alive":
            assert "result" in message
            self._alive.set()
        elif "method" not in message:
            assert ("result" in message) != ("error" in message)
            self.answers.append(message)

    async def is_alive(self):
        """Make a request that every server answers."""
        method = "server/discover" if self._wire.stateless else "ping"
        await self._wire.stream.send([json.dumps(self._wire.message(method, id_="alive")).encode()])
        await self._alive.wait()


def cancellation(line):
    """Make the line that cancels the request in a line; None without a request."""
    try:
        id_ = json.loads(line)["id"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}
    return json.dumps(message).encode()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(SERVERS),
    revision=st.sampled_from(REVISIONS),
    choose=st.randoms(use_true_random=False),
    count=st.integers(1, 60),
    cancel=st.booleans(),
)
def test_in_memory(name, revision, choose, count, cancel, loaded, served):
    """Thousands of valid and invalid messages are sent in any order, on every revision."""
    hostile = loaded("hostile")
    lines = [hostile.line(choose) for _ in range(count)]
    if cancel:
        lines = [line for line in lines if not line.startswith(b"[")]
        lines += [made for made in map(cancellation, lines) if made is not None]

    async def main():
        async with served(name, revision, 0) as wire, trio.open_nursery() as nursery:
            wire.capabilities = loaded("asking").ABLE[revision]
            await wire.start()
            said = Conversation(wire)
            nursery.start_soon(said.read)
            with trio.fail_after(PATIENCE):
                await wire.stream.send(lines)
                await said.is_alive()
            if cancel:  # nothing of it remains while the connection is open
                assert wire.connection.requests == {}
                assert wire.connection.peer.ledger.inbound == 0
                interests = wire.connection.feed.subscriptions
                assert interests._used == len(interests._watched)
                assert len(wire.connection.pending) == 0
            wire.connection.stop()
        debts = hostile.Debts(batches=revision == "2025-03-26")
        for line in lines:
            debts.add(line)
        debts.check(said.answers)

    trio.run(main)


async def write_all(fd, data):
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(fd)


def half_close(fd):
    """Close the server's input while its output is still read."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, fd)
    os.close(null)


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", SERVERS)
def test_over_stdio(name, revision, loaded, forked):
    """A thousand lines in chunks of any size, a far too long one, and half a line at the end."""
    hostile = loaded("hostile")
    choose = random.Random(f"seed of {name} {revision}")
    lines = [hostile.line(choose) for _ in range(1000)]

    async def main():
        async with forked(name, revision, 0) as wire, trio.open_nursery() as nursery:
            wire.capabilities = loaded("asking").ABLE[revision]
            await wire.start()
            said = Conversation(wire)
            nursery.start_soon(said.read)
            fd = wire.stream._write_fd
            with trio.fail_after(PATIENCE):
                data = b"\n \r\n\n".join(lines) + b"\n"
                while data:
                    size = choose.choice([1, 3, 1000, 60_000])
                    await write_all(fd, data[:size])
                    data = data[size:]
                await write_all(fd, b"x" * (17 * 1024 * 1024) + b"\n")
                await said.is_alive()
            await write_all(fd, b'{"jsonrpc":"2.0","id":"half","method":"pi')
            half_close(fd)
        assert sum("Message over" in str(answer.get("error")) for answer in said.answers) == 1
        debts = hostile.Debts(batches=revision == "2025-03-26")
        for line in [*lines, b"a line that was too long"]:
            debts.add(line)
        debts.check(said.answers)

    trio.run(main)
