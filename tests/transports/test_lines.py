"""Lines over pipes, sockets, terminals, files and devices that are always ready."""

import os
import resource
import socket
import tracemalloc
import tty

import pytest
import trio

from noizu_mcp import Limits
from noizu_mcp.transports import LineStream

LIMIT = Limits(message_size=1024 * 1024)


async def taken(stream):
    """Receive once; return the bytes of each message."""
    return [received.data for received in await stream.receive()]


@pytest.fixture
async def stream(pipes):
    """Make a stream and the ends of its peer."""
    read_fd, their_out = pipes()
    their_in, write_fd = pipes()
    made = LineStream(read_fd, write_fd, LIMIT)
    yield made, their_in, their_out
    await made.aclose()


async def test_receives_the_lines_of_one_read_together(stream):
    """Lines of one write arrive together, without blank lines."""
    ours, _, out = stream
    os.write(out, b'{"a":1}\n\n  \r\n{"b":2}\r\n{"c"')
    assert await taken(ours) == [b'{"a":1}', b'{"b":2}\r']
    os.write(out, b":3}\n")
    assert await taken(ours) == [b'{"c":3}']


async def test_blank_lines_alone_are_waited_out(stream, autojump_clock):
    """A read without a message does not wake the receiver."""
    ours, _, out = stream
    os.write(out, b"\n\n")
    with trio.move_on_after(1) as scope:
        await taken(ours)
    assert scope.cancelled_caught


async def test_oversized_lines_are_reported_and_passed(pipes):
    """A line above the limit arrives as its beginning, and the next one is complete."""
    read_fd, out = pipes()
    _, write_fd = pipes()
    ours = LineStream(read_fd, write_fd, Limits(message_size=10))
    os.write(out, b"0123456789X\nshort\n")
    assert await taken(ours) == [b"0123456789", b"short"]
    await ours.aclose()


async def test_half_a_line_at_the_end_is_no_message(stream):
    """EOF comes after the last complete line, and `ended` reports it."""
    ours, _, out = stream
    os.write(out, b"1\n2")
    os.close(out)
    assert await taken(ours) == [b"1"]
    assert not ours.ended
    assert await taken(ours) == []
    assert ours.ended


async def test_two_readers_of_one_pipe(pipes):
    """If another program took the line, the reader waits for the next one."""
    read_fd, out = pipes()
    _, first_out = pipes()
    _, second_out = pipes()
    streams = LineStream(os.dup(read_fd), first_out, LIMIT), LineStream(read_fd, second_out, LIMIT)
    got = []

    async def take(ours):
        got.extend(await taken(ours))

    async with trio.open_nursery() as nursery:
        for ours in streams:
            nursery.start_soon(take, ours)
        await trio.testing.wait_all_tasks_blocked()
        for line in (b"1\n", b"2\n"):
            os.write(out, line)
            await trio.testing.wait_all_tasks_blocked(0.01)
    assert got == [b"1", b"2"]
    for ours in streams:
        await ours.aclose()


async def test_sends_lines(stream):
    """Each message is one line, and a batch is one write."""
    ours, their_in, _ = stream
    assert ours.send_nowait([b"1", b"2"])
    assert os.read(their_in, 100) == b"1\n2\n"
    await ours.send([b"3"])
    assert os.read(their_in, 100) == b"3\n"


async def test_a_full_pipe_makes_send_wait(stream):
    """Bytes that the pipe does not accept are kept, in order, and written later."""
    ours, their_in, _ = stream
    big = b"x" * 300_000
    assert not ours.send_nowait([big, b"1"])
    assert not ours.send_nowait([b"2"])
    received = bytearray()

    async def drain():
        while not received.endswith(b"3\n"):
            await trio.lowlevel.wait_readable(their_in)
            received.extend(os.read(their_in, 65536))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain)
        await ours.send([b"3"])
    assert received == big + b"\n1\n2\n3\n"


async def test_what_is_left_of_a_message_is_not_copied(stream):
    """A large message is copied once, not for every piece that the pipe accepts."""
    ours, their_in, _ = stream
    assert not ours.send_nowait([b"x" * 4_000_000])
    os.read(their_in, 65536)
    tracemalloc.start()
    assert not ours.send_nowait(())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


async def test_a_reader_that_is_gone_breaks_the_stream(stream):
    """Sending raises `BrokenResourceError`."""
    ours, their_in, _ = stream
    os.close(their_in)
    with pytest.raises(trio.BrokenResourceError):
        ours.send_nowait([b"1"])
    with pytest.raises(trio.BrokenResourceError):
        await ours.send([b"1"])


async def test_a_terminal():
    """A terminal is awaited, its hang-up breaks the stream, and it is blocking again afterwards."""
    leader, terminal = os.openpty()
    tty.setraw(terminal)
    kept = os.dup(terminal)
    ours = LineStream(terminal, os.dup(terminal), LIMIT)
    assert not os.get_blocking(kept)
    os.write(leader, b"1\n")
    assert await taken(ours) == [b"1"]
    await ours.send([b"2"])
    assert os.read(leader, 10) == b"2\n"
    os.close(leader)
    with pytest.raises(trio.BrokenResourceError):
        await ours.send([b"3"])
    await ours.aclose()
    assert os.get_blocking(kept)
    os.close(kept)


async def test_one_socket_for_both_directions():
    """One socket can be both ends; it is closed once."""
    here, there = socket.socketpair()
    fd = here.detach()
    ours = LineStream(fd, fd, LIMIT)
    await ours.send([b"1"])
    assert there.recv(10) == b"1\n"
    there.sendall(b"2\n")
    assert await taken(ours) == [b"2"]
    await ours.aclose()
    assert there.recv(10) == b""
    there.close()


async def test_a_connection_that_is_reset_breaks_the_stream():
    """A peer that closed without reading everything breaks the stream."""
    here, there = socket.socketpair()
    fd = here.detach()
    ours = LineStream(fd, fd, LIMIT)
    await ours.send([b"1"])
    there.close()
    with pytest.raises(trio.BrokenResourceError):
        await taken(ours)
    assert ours.ended
    await ours.aclose()


@pytest.mark.slow
async def test_files(tmp_path):
    """Files are read to EOF and written to."""
    (tmp_path / "in").write_bytes(b"1\n" * 50_000)
    read_fd = os.open(tmp_path / "in", os.O_RDONLY)
    write_fd = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    ours = LineStream(read_fd, write_fd, LIMIT)
    count = 0
    while lines := await taken(ours):
        count += len(lines)
        await ours.send(lines)
    assert count == 50_000
    await ours.aclose()
    assert (tmp_path / "out").stat().st_size == 100_000


async def test_a_file_that_cannot_grow_breaks_the_stream(tmp_path):
    """A full disk breaks the stream."""
    read_fd = os.open(os.devnull, os.O_RDONLY)
    write_fd = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    ours = LineStream(read_fd, write_fd, LIMIT)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(trio.BrokenResourceError):
            await ours.send([b"x" * 200])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    await ours.aclose()
    assert (tmp_path / "out").stat().st_size == 100


async def test_dev_null():
    """The null device is at EOF at once and accepts everything."""
    ours = LineStream(os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY), LIMIT)
    await ours.send([b"1"])
    assert await taken(ours) == []
    await ours.aclose()


async def test_closing_wakes_the_receiver(stream):
    """The receiver gets `ClosedResourceError`; a second close does nothing."""
    ours, _, _ = stream
    woken = trio.Event()

    async def receive():
        with pytest.raises(trio.ClosedResourceError):
            await taken(ours)
        woken.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        await ours.aclose()
        await ours.aclose()
        await woken.wait()
    with pytest.raises(trio.ClosedResourceError):
        await taken(ours)
    with pytest.raises(trio.BrokenResourceError):
        ours.send_nowait([b"1"])


async def test_a_reader_that_closes_is_noticed(stream):
    """The wait ends with the close of the reader, or with that of the stream."""
    ours, their_in, _ = stream
    results = []

    async def wait():
        results.append(await ours.wait_unread())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await ours.send([b"1"])
        await trio.testing.wait_all_tasks_blocked()
        assert results == []
        os.close(their_in)
    assert results == [True]
    await ours.aclose()
    assert not await ours.wait_unread()


@pytest.mark.parametrize(("half", "gone"), [(False, True), (True, False)])
async def test_a_socket_of_its_own_tells_of_its_reader(half, gone):
    """A socket pair as on Node.js reports its close, but not a half-close."""
    here, there = socket.socketpair()
    ours = LineStream(os.open(os.devnull, os.O_RDONLY), here.detach(), LIMIT)
    with there:
        if half:
            there.shutdown(socket.SHUT_WR)
        else:
            there.close()
        assert await ours.wait_unread() is gone
    await ours.aclose()


async def test_closing_ends_the_wait_for_the_reader(stream):
    """That does not mean that the reader has gone."""
    ours, _, _ = stream

    async def wait():
        assert not await ours.wait_unread()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await ours.aclose()


async def test_where_no_reader_can_be_told(tmp_path):
    """Where a reader cannot be observed: sockets for both directions, files, own named pipes."""
    here, there = socket.socketpair()
    with here, there:
        ours = LineStream(os.dup(here.fileno()), os.dup(here.fileno()), LIMIT)
        assert not await ours.wait_unread()
        await ours.aclose()
    path = tmp_path / "pipe"
    os.mkfifo(path)
    ours = LineStream(os.open(os.devnull, os.O_RDONLY), os.open(path, os.O_RDWR), LIMIT)
    await ours.send([b"1"])
    assert not await ours.wait_unread()
    await ours.aclose()
