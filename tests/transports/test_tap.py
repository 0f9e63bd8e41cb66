"""Taps on a stream."""

from noizu_mcp import Limits
from noizu_mcp.transports import TappedStream, memory_pair


async def taken(stream):
    """Receive once; return the bytes of each message."""
    return [received.data for received in await stream.receive()]


async def test_a_tap_sees_both_directions_in_order():
    """Every message is passed once, with its direction; an oversized message is cut off."""
    ours, theirs = memory_pair(Limits(message_size=10))
    seen = []
    tapped = TappedStream(ours, lambda direction, message: seen.append((direction, message)))
    assert tapped.send_nowait([b"1", b"2"])
    await tapped.send([b"3"])
    assert await taken(theirs) == [b"1", b"2", b"3"]
    await theirs.send([b"4", b"0123456789X"])
    assert await taken(tapped) == [b"4", b"0123456789X"]
    assert seen == [
        ("sent", b"1"),
        ("sent", b"2"),
        ("sent", b"3"),
        ("received", b"4"),
        ("received", b"0123456789X"),
    ]
    await tapped.aclose()
    assert await taken(theirs) == []
