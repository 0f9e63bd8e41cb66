"""Connected streams in memory."""

import pytest
import trio
import trio.testing

from noizu_mcp import Limits
from noizu_mcp.transports import memory_pair

#: More than one end holds before its sender waits.
BIG = b"x" * (1024 * 1024 + 1)


async def taken(stream):
    """Receive once; return the bytes of each message."""
    return [received.data for received in await stream.receive()]


async def test_messages_arrive_in_order():
    """One end receives the messages of the other in order, together if they were waiting."""
    ours, theirs = memory_pair()
    assert ours.send_nowait([b"1", b"2"])
    await ours.send([b"3"])
    assert await taken(theirs) == [b"1", b"2", b"3"]
    await theirs.send([b"4"])
    assert await taken(ours) == [b"4"]


async def test_receiving_waits():
    """The receiver wakes when something is sent."""
    ours, theirs = memory_pair()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def receive():
            assert await taken(theirs) == [b"1"]

        await trio.testing.wait_all_tasks_blocked()
        ours.send_nowait([b"1"])


async def test_a_full_end_makes_send_wait():
    """At its capacity `send` waits until the other end receives, or closes."""
    ours, theirs = memory_pair()
    assert not ours.send_nowait([BIG])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.send, [b"1"])
        await trio.testing.wait_all_tasks_blocked()
        assert await taken(theirs) == [BIG, b"1"]
    assert not ours.send_nowait([BIG])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.send, [b"2"])
        await trio.testing.wait_all_tasks_blocked()
        await theirs.aclose()


async def test_oversized_messages_arrive_as_their_head():
    """A message above the limit arrives as its beginning, as with lines."""
    ours, theirs = memory_pair(theirs=Limits(message_size=3))
    ours.send_nowait([b"1234", b"123"])
    assert await taken(theirs) == [b"1234", b"123"]


async def test_closing_ends_both_directions():
    """The other end reads what is left, then EOF; sending to it raises."""
    ours, theirs = memory_pair()
    ours.send_nowait([b"1"])
    await ours.aclose()
    assert await taken(theirs) == [b"1"]
    assert not await taken(theirs)
    with pytest.raises(trio.BrokenResourceError):
        theirs.send_nowait([b"2"])


async def test_all_who_wait_for_room_get_it():
    """Tasks that wait for room all continue when the other end has received."""
    ours, theirs = memory_pair()
    assert not ours.send_nowait([BIG])
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for message in (b"1", b"2"):
                nursery.start_soon(ours.send, [message])
            await trio.testing.wait_all_tasks_blocked()
            assert set(await taken(theirs)) == {BIG, b"1", b"2"}
