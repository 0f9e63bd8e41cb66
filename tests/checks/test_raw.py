"""Raw connections: their limits, and their end."""

from contextlib import suppress
from functools import partial

import trio

from noizu_mcp import Http, Server
from noizu_mcp.check.raw import MemoryLink, Receiver, WebLink


class Empty(Server, name="empty", version="1.0.0"):
    """A server without components."""


class Notes:
    """Records faults."""

    def __init__(self):
        self.found = []

    def check(self, rule, holds, sent, seen):
        if not holds:
            self.found.append((rule, seen))
        return bool(holds)


def test_answers_are_kept_up_to_a_limit():
    """An answer to a request that was dropped counts as an answer to none."""
    notes = Notes()
    receiver = Receiver(notes)
    for number in range(1001):
        receiver.expect(number)
    receiver.take(b'{"jsonrpc":"2.0","id":0,"result":{}}', "x")

    ((rule, seen),) = notes.found
    assert rule == "message"
    assert seen.startswith("an answer to no request")


def test_lists_are_messages_where_they_are_allowed():
    """A list is split on 2025-03-26, and a fault in other revisions."""
    text = b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]'
    notes = Notes()
    receiver = Receiver(notes)
    for number in (1, 2):
        receiver.expect(number)
    receiver.take(text, "x")
    assert notes.found
    assert not receiver.has_answers([1, 2])

    receiver.takes_lists = True
    receiver.take(text, "x")
    assert receiver.has_answers([1, 2])


async def test_a_server_in_memory_that_has_ended(nursery):
    """It reads nothing more, and requests have no answer."""
    link = MemoryLink(Empty(), Notes())
    nursery.start_soon(link.serve)
    await link.aclose()
    await trio.lowlevel.checkpoint()
    found = await link.exchange({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {}, 5.0)

    assert found.ended
    assert found.failure == "the server has ended"


async def test_a_server_that_does_not_read(autojump_clock):
    """A message that is not read completely ends the connection, also one without an answer."""
    link = MemoryLink(Empty(), Notes())
    note = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"text": "x" * 2**24}}
    await link.exchange(note, {}, 0.1)
    found = await link.exchange(note, {}, 0.1)

    assert found.failure == "the server does not read"
    assert link.ended


async def test_an_event_without_end(nursery):
    """An event stream is read up to a limit of one event."""

    async def answer(stream):
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        with suppress(trio.BrokenResourceError):
            await stream.receive_some()
            await stream.send_all(head + b"data: ")
            while True:
                await stream.send_all(b"x" * 2**20)

    (listener, *_) = await nursery.start(partial(trio.serve_tcp, answer, 0, host="127.0.0.1"))
    port = listener.socket.getsockname()[1]
    link = WebLink(Http(f"http://127.0.0.1:{port}/mcp"), Notes())
    found = await link.exchange({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {}, 60.0)
    await link.aclose()

    assert found.answer is None
    assert found.failure == f"an answer of over {2**24} bytes"
