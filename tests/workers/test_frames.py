"""Frames between two processes, over one stream."""

import socket

import pytest
import trio

from noizu_mcp.workers import FrameStream


@pytest.fixture
async def pair():
    """Two ends of a socket pair."""
    one, other = map(trio.socket.from_stdlib_socket, socket.socketpair())
    async with trio.SocketStream(one) as here, trio.SocketStream(other) as there:
        yield here, there


async def test_any_bytes(pair):
    """Frames arrive as they were sent, in order, however the bytes are cut."""
    here, there = pair
    frames = [b"", b"\0\1", bytes(range(256)) * 2000]
    sent = b"".join(len(each).to_bytes(4, "big") + each for each in frames)
    reader, got = FrameStream(there, 2**20), []

    async def write():
        for start in range(0, len(sent), 1021):
            await here.send_all(sent[start : start + 1021])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        got += [await reader.receive() for _ in frames]
    assert frames == got
    await FrameStream(there, 2**20).send(b"back")
    assert await here.receive_some() == b"\0\0\0\4back"


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\0\0\0\4abc", b"\0\0\0\5abcde"])
async def test_the_end(pair, data):
    """The other process ends, in a frame or not, or sends a frame that is too large."""
    here, there = pair
    await here.send_all(data)
    await here.send_eof()
    assert await FrameStream(there, 4).receive() is None


async def test_a_process_that_is_killed(pair):
    """It has not read everything: that is its end, too."""
    here, there = pair
    await there.send_all(b"unread")
    await here.aclose()
    assert await FrameStream(there, 4).receive() is None
