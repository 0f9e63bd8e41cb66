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
    """Receive once; gives the bytes of each message."""
    return [received.data for received in await stream.receive()]


@pytest.fixture
async def stream(pipes):
    """Make a stream, with the ends of its peer."""
    read_fd, their_out = pipes()
    their_in, write_fd = pipes()
    made = LineStream(read_fd, write_fd, LIMIT)
    yield made, their_in, their_out
    await made.aclose()


async def test_receives_the_lines_of_one_read_together(stream):
    """Lines that were written together arrive together, without blank lines."""
    ours, _, out = stream
    os.write(out, b'{"a":1}\n\n  \r\n{"b":2}\r\n{"c"')
    assert await taken(ours) == [b'{"a":1}', b'{"b":2}\r']
    os.write(out, b":3}\n")
    assert await taken(ours) == [b'{"c":3}']


async def test_blank_lines_alone_are_waited_out(stream, autojump_clock):
    """A read that brings no message does not wake the receiver."""
    ours, _, out = stream
    os.write(out, b"\n\n")
    with trio.move_on_after(1) as scope:
        await taken(ours)
    assert scope.cancelled_caught


async def test_oversized_lines_are_reported_and_passed(pipes):
    """A line over the limit arrives as its head, and the next one is whole."""
    read_fd, out = pipes()
    _, write_fd = pipes()
    ours = LineStream(read_fd, write_fd, Limits(message_size=10))
    os.write(out, b"0123456789X\nshort\n")
    assert await taken(ours) == [b"0123456789", b"short"]
    await ours.aclose()


async def test_half_a_line_at_the_end_is_no_message(stream):
    """The end of the stream comes after the last whole line, and `ended` says so."""
    ours, _, out = stream
    os.write(out, b"1\n2")
    os.close(out)
    assert await taken(ours) == [b"1"]
    assert not ours.ended
    assert await taken(ours) == []
    assert ours.ended


async def test_two_readers_of_one_pipe(pipes):
    """A reader that finds the line gone, because another program took it, waits for the next."""
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
    """Each message goes out as one line, all of a batch in one write."""
    ours, their_in, _ = stream
    assert ours.send_nowait([b"1", b"2"])
    assert os.read(their_in, 100) == b"1\n2\n"
    await ours.send([b"3"])
    assert os.read(their_in, 100) == b"3\n"


async def test_a_full_pipe_makes_send_wait(stream):
    """The bytes that the pipe does not take are kept, in order, and written once there is room."""
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
    """A large message costs its size, not its size for every piece that the pipe takes."""
    ours, their_in, _ = stream
    assert not ours.send_nowait([b"x" * 4_000_000])
    os.read(their_in, 65536)
    tracemalloc.start()
    assert not ours.send_nowait(())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


async def test_a_reader_that_is_gone_breaks_the_stream(stream):
    """Writing to nobody raises what the contract says."""
    ours, their_in, _ = stream
    os.close(their_in)
    with pytest.raises(trio.BrokenResourceError):
        ours.send_nowait([b"1"])
    with pytest.raises(trio.BrokenResourceError):
        await ours.send([b"1"])


async def test_a_terminal():
    """A terminal is waited for, its end breaks the stream, and it blocks again afterwards."""
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
    """A socket may be both ends; it is closed once."""
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
    """A peer that left without reading what it was sent has broken the stream."""
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
    """Files are read to their end and written to."""
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
    """A disk that is full is a peer that is gone."""
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
    """The null device is at its end at once and takes everything."""
    ours = LineStream(os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY), LIMIT)
    await ours.send([b"1"])
    assert await taken(ours) == []
    await ours.aclose()


async def test_closing_wakes_the_receiver(stream):
    """Closing twice is fine, and whoever still uses the stream is told."""
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


async def test_a_reader_that_goes_is_told(stream):
    """The news comes while nothing is written, too; the wait ends with it, or with the close."""
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
    """As clients on Node.js give one: its close is told, the end of one direction is not."""
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
    """It is no sign of the reader."""
    ours, _, _ = stream

    async def wait():
        assert not await ours.wait_unread()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await ours.aclose()


async def test_where_no_reader_can_be_told(tmp_path):
    """A socket tells by its other direction, a file has none, a named pipe may be its own."""
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
