"""The parts of the transport on their own."""

from functools import partial

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import Limits
from noizu_mcp.transports.http import HttpLimits
from noizu_mcp.transports.http.server._event_store import MAX_ENDED, EventLog
from noizu_mcp.transports.http.server._event_writer import (
    CHUNK,
    QUIET,
    EventWriter,
    OpenStreams,
    event,
    priming_event,
)
from noizu_mcp.transports.http.server._quotas import Quota, Quotas, Reservation
from noizu_mcp.transports.http.server._running_app import TaskGroup

from ...kit.servers import Small
from .wire import settled

LIMITS = HttpLimits(silence=1, keepalive=10, stall=10, room=100)


def make_quota():
    """Make the quota of a client."""
    return Quota("ann", Quotas(HttpLimits()))


def make_log(limit, quota=None):
    """Make the streams of one session."""
    return EventLog(limit, Reservation(quota or make_quota()))


def make_writer(spawn=None):
    """Make a writer, with or without a function that runs tasks."""
    return EventWriter(OpenStreams(LIMITS, set(), spawn), make_quota())


def refuse(data):
    """Write nothing at once, as a host whose connection is busy."""


class Reader:
    """A request from the view of a writer."""

    extra = ((b"x-extra", b"1"),)
    hand_over = None

    def __init__(self, write_nowait=refuse):
        self.parts = []
        self.write_nowait = write_nowait

    async def send(self, part):
        await trio.lowlevel.checkpoint()
        self.parts.append(part.get("body", part))

    async def wait_disconnect(self):
        await trio.sleep_forever()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"health": 3}, "health must be True or False, not 3"),
        ({"seal_sessions": None}, "seal_sessions must be True or False, not None"),
        ({"limits": 3}, "limits must be HttpLimits, not 3"),
        (
            {"limits": Limits()},
            (
                "limits must be HttpLimits, not Limits: those of messages are the option limits of"
                " the server class"
            ),
        ),
    ],
)
def test_options_that_cannot_be_right(options, text):
    """Impossible options are refused when they are made, with what is expected."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - all of the text is looked at
        Small().asgi(**options)

    assert str(caught.value) == text


def test_events():
    """Each line has its field; the id is first."""
    assert event(b"{}") == b"event: message\ndata: {}\n\n"
    assert event(b"{}", "1-2") == b"id: 1-2\nevent: message\ndata: {}\n\n"
    assert priming_event("1-1", 0.25) == b"id: 1-1\nretry: 250\ndata: \n\n"


async def test_a_writer_writes_in_parts():
    """A part is all that is queued, up to a limit; the end of the body is in the last part."""
    writer, reader = make_writer(), Reader()
    blocks = [b"x" * (CHUNK // 2 - 1)] * 5
    for block in blocks:
        writer.put(block)
    writer.end()
    await writer.serve(reader)
    head, *rest = reader.parts
    assert (b"x-extra", b"1") in head["headers"]
    assert b"".join(rest) == b"".join(blocks)
    assert [len(part) // (CHUNK // 2 - 1) for part in rest] == [3, 2, 0]
    assert (writer.closed, writer.complete) == (True, True)
    writer.put(b"late")
    assert writer.dropped == 1


async def test_a_writer_that_is_closed_first(autojump_clock):
    """Nothing is written, and waiting tasks continue."""
    writer, reader = make_writer(), Reader()
    writer.put(b"x" * 101)
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(writer.room)
        await settled()
        writer.close()
    await writer.serve(reader)
    assert reader.parts == []


async def test_after_quiet_an_event_is_written_at_once(nursery, autojump_clock):
    """If the host allows it; later events are written together, by a task."""
    written, left = [], 0

    def write_nowait(data):
        written.append(data)
        return left

    writer, reader = make_writer(TaskGroup(nursery).spawn), Reader(write_nowait)
    writer.put(b"0")  # not before there is a response
    nursery.start_soon(writer.serve, reader)
    await settled()
    writer.put(b"1")
    await settled()
    await trio.sleep(QUIET)
    for data in (b"2", b"3", b"4"):
        writer.put(data)
    assert written == [b"2"]
    await settled()
    assert reader.parts[1:] == [b"0", b"1", b"34"]
    await trio.sleep(QUIET)
    left = 7
    writer.put(b"5")
    await settled()
    assert (written, reader.parts[4:]) == ([b"2", b"5"], [b""])
    await trio.sleep(QUIET)
    left = None
    writer.put(b"6")
    await settled()
    assert (written, reader.parts[5:]) == ([b"2", b"5", b"6"], [b"6"])
    await trio.sleep(QUIET)
    writer.end()
    writer.put(b"7")
    await settled()
    assert (written, reader.parts[6:]) == ([b"2", b"5", b"6"], [b"7", b""])


async def test_a_large_event_is_not_written_at_once(nursery, autojump_clock):
    """A large event waits for the task, since the host would copy it."""
    written = []
    reader = Reader(lambda data: written.append(data) or 0)
    writer = make_writer(TaskGroup(nursery).spawn)
    nursery.start_soon(writer.serve, reader)
    await settled()
    await trio.sleep(QUIET)
    writer.put(b"1" * (CHUNK + 1))
    await settled()
    assert (written, len(reader.parts[-1])) == ([], CHUNK + 1)
    writer.close()


async def test_no_event_overtakes_a_part_that_is_being_sent(nursery, autojump_clock):
    """An event waits for the part before it, however long that takes."""
    written, go_on = [], trio.Event()

    class Slow(Reader):
        async def send(self, part):
            await super().send(part)
            if part.get("body") == b"1":
                await go_on.wait()

    def write_nowait(data):
        written.append(data)
        return 0

    writer, reader = make_writer(TaskGroup(nursery).spawn), Slow(write_nowait)
    nursery.start_soon(writer.serve, reader)
    await settled()
    writer.put(b"1")
    await settled()
    await trio.sleep(QUIET)
    writer.put(b"2")
    assert written == []
    go_on.set()
    await settled()
    assert reader.parts[1:] == [b"", b"1", b"2"]
    writer.close()


async def test_a_writer_whose_host_waits_for_the_client(nursery, autojump_clock):
    """It has a task only while it writes; it and the host notify each other of their ends."""
    handed, let_go = [], []

    def hand_over(on_gone):
        handed.append(on_gone)
        return partial(let_go.append, on_gone)

    streams = OpenStreams(LIMITS, set(), TaskGroup(nursery).spawn)
    writers = [EventWriter(streams, make_quota()) for _ in range(3)]
    readers = [Reader() for _ in writers]
    for writer, reader in zip(writers, readers, strict=True):
        reader.hand_over = hand_over
        assert await writer.serve(reader, may_hand_over=True)
    ended, gone, closed = writers
    ended.put(b"1")
    ended.end()
    handed[1]()
    assert (ended.closed, gone.closed) == (False, True)
    nursery.start_soon(streams.wait_for_end)
    await settled()
    assert (ended.complete, readers[0].parts[2:]) == (True, [b"1", b""])
    assert len(streams) == 1
    streams.close()
    await streams.wait_for_end()
    assert closed.closed
    assert [handed.index(each) for each in let_go] == [1, 0, 2]


async def test_tasks_of_a_set(nursery, caplog):
    """They end together; exceptions are logged, and nothing runs afterwards."""
    tasks, done = TaskGroup(nursery), []

    async def fail():
        raise ValueError("mine")

    tasks.spawn(fail)
    tasks.spawn(trio.sleep_forever)
    alone = tasks.spawn(trio.sleep_forever)
    await settled()
    assert (len(tasks), "mine" in caplog.text) == (2, True)
    alone.cancel()
    await settled()
    assert len(tasks) == 1
    other = tasks.sibling()
    other.spawn(trio.sleep_forever)
    tasks.close()
    tasks.spawn(lambda: done.append(1))
    await settled()
    assert (len(tasks), len(other), done) == (0, 1, [])
    other.close()


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["put", "end"]), st.integers(0, 60)),
        max_size=60,
    ),
    st.integers(50, 1000),
)
def test_what_is_kept_is_the_end_of_what_was_said(steps, limit):
    """Each stream keeps its last events within the bound, in order, without a gap."""
    quota = make_quota()
    log = make_log(limit, quota)
    streams, said = [log.open() for _ in range(4)], {}
    for number, kind, size in steps:
        stream = streams[number]
        if kind == "end":
            stream.end()
        else:
            if not stream.ended:
                said.setdefault(stream.name, []).append(b"%d" % size * size)
            stream.deliver(b"%d" % size * size)
        kept = [found[0] for each in streams if (found := log.find(f"{each.name}-0"))]
        assert sum(each.size for each in kept) == log.size <= limit
        assert quota.held == log.size
    for stream in streams:
        writer = make_writer()
        stream.attach(writer, None)
        stream.replay(0)
        writer.end()
        sent = Reader()
        trio.run(writer.serve, sent)
        lines = b"".join(sent.parts[1:]).split(b"\n")
        replayed = [line[6:] for line in lines if line.startswith(b"data: ")]
        everything = said.get(stream.name, [])
        assert replayed == everything[len(everything) - len(replayed) :]
    log.end()
    assert quota.held == 0


def test_streams_that_have_ended_are_bounded():
    """The stream that ended first is dropped first."""
    log = make_log(10_000)
    streams = [log.open() for _ in range(MAX_ENDED + 3)]
    for stream in reversed(streams):
        stream.answer(b"{}")
        stream.end()
    assert [log.find(f"{each.name}-0") is None for each in streams[-4:]] == [
        False,
        True,
        True,
        True,
    ]


async def test_a_stream_without_a_reader():
    """Without a reader there is room, and `release`, `replay` and `prime` do nothing."""
    log = make_log(1000)
    stream = log.open()
    stream.release(1)
    stream.prime(1)
    stream.replay(None)
    assert stream.has_room
    await stream.room()
    stream.offer(b"{}")
    assert not log.is_read
    stream.abandon()
    stream.deliver(b"late")
    reader = make_writer()
    stream.attach(reader, None)
    assert stream.has_room
    await stream.room()
    stream.replay(0)
    other = make_writer()
    stream.detach(other)
    assert log.is_read
    stream.detach(reader)
    assert not log.is_read
    sent = Reader()
    await reader.serve(sent)
    assert b"".join(sent.parts[1:]) == event(b"{}", f"{stream.name}-1")


@pytest.mark.parametrize("limit", [10, 1000])
def test_a_stream_of_which_nothing_is_kept(limit):
    """It cannot be resumed, since it would appear to have ended."""
    log = make_log(limit)
    stream = log.open()
    stream.answer(b"x" * 50)
    assert (log.find(f"{stream.name}-0") is None) == (limit == 10)
