"""The outbox: in order, one writer, bounded, and nothing lost at the end."""

import pytest
import trio
import trio.testing

from noizu_mcp.engine import MessageStream, Outbox


class Narrow(MessageStream):
    """Accepts one message without waiting, and the rest when the test opens it."""

    def __init__(self):
        self.written = []
        self.open = trio.Event()
        self.writers = 0
        self.broken = None

    async def receive(self):
        raise AssertionError

    def send_nowait(self, messages):
        if self.broken:
            raise self.broken
        self._rest = messages[1:]
        self.written += messages[:1]
        return not self._rest

    async def send(self, messages):
        self.writers += 1
        assert self.writers == 1, "two writers"
        await self.open.wait()
        if self.broken:
            raise self.broken
        self.written += [*getattr(self, "_rest", []), *messages]
        self._rest = []
        self.writers -= 1

    async def aclose(self):
        raise AssertionError


@pytest.fixture
async def stream():
    return Narrow()


async def test_what_does_not_fit_is_left_to_the_writer(stream, nursery):
    """`flush_now` writes what it can; the writer writes the rest, alone and in order."""
    outbox = Outbox(stream, 100)
    nursery.start_soon(outbox.write)
    for message in (b"1", b"2", b"3"):
        outbox.put(message)
    outbox.flush_now()
    outbox.put(b"4")
    outbox.flush_now()
    await trio.testing.wait_all_tasks_blocked()
    assert stream.written == [b"1"]
    outbox.put(b"5")
    outbox.flush_now()
    stream.open.set()
    await outbox.drain()
    assert stream.written == [b"1", b"2", b"3", b"4", b"5"]


async def test_draining_waits_for_the_writer(stream, nursery):
    """Draining waits for the messages that the writer holds, though the queue is empty."""
    outbox = Outbox(stream, 100)
    nursery.start_soon(outbox.write)
    outbox.put(b"1")
    outbox.flush_soon()
    await trio.testing.wait_all_tasks_blocked()
    drained = []

    async def drain():
        await outbox.drain()
        drained.append(True)

    nursery.start_soon(drain)
    await trio.testing.wait_all_tasks_blocked()
    assert drained == []
    stream.open.set()
    await trio.testing.wait_all_tasks_blocked()
    assert (drained, stream.written) == ([True], [b"1"])


async def test_room_is_waited_for_and_notices_are_dropped(stream, nursery):
    """Above the limit notices are dropped; a task that awaits room gets it after the writes."""
    outbox = Outbox(stream, 3)
    nursery.start_soon(outbox.write)
    outbox.put(b"1234")
    assert not outbox.has_room
    outbox.put(b"dropped", droppable=True)
    outbox.put(b"kept")
    assert outbox.dropped == 1
    outbox.flush_soon()
    waited = []

    async def wait():
        await outbox.room()
        waited.append(True)

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    assert waited == []
    stream.open.set()
    await trio.testing.wait_all_tasks_blocked()
    assert (waited, stream.written) == ([True], [b"1234", b"kept"])


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
async def test_a_peer_that_is_gone_costs_nothing(stream, nursery, error):
    """Messages to a disconnected peer are dropped and counted, and no task waits for room."""
    outbox = Outbox(stream, 1)
    nursery.start_soon(outbox.write)
    outbox.put(b"12")
    outbox.flush_soon()
    await trio.testing.wait_all_tasks_blocked()
    stream.broken = error()
    outbox.put(b"34")
    stream.open.set()
    await outbox.room()
    await outbox.drain()
    outbox.put(b"56")
    outbox.flush_now()
    assert (stream.written, outbox.dropped, outbox.has_room) == ([], 2, True)


async def test_a_peer_that_goes_while_we_write_at_once(stream):
    """The same holds for `flush_now`."""
    outbox = Outbox(stream, 1)
    stream.broken = trio.BrokenResourceError()
    outbox.put(b"12")
    outbox.flush_now()
    outbox.put(b"34")
    assert (outbox.dropped, outbox.has_room) == (1, True)


async def test_closing_wakes_waiting_tasks(stream, nursery):
    """After `close` nothing is queued, and no task waits."""
    outbox = Outbox(stream, 1)
    outbox.put(b"12")
    nursery.start_soon(outbox.room)
    await trio.testing.wait_all_tasks_blocked()
    outbox.close()
    await outbox.room()
    outbox.put(b"34")
    assert outbox.dropped == 2
