"""Reading along."""

from noizu_mcp.jsonrpc import Oversized
from noizu_mcp.transports import TappedStream, memory_pair


async def test_a_tap_sees_both_directions_in_order():
    """Every message is shown once, with its direction; of an oversized one, its head."""
    ours, theirs = memory_pair(10)
    seen = []
    tapped = TappedStream(ours, lambda direction, message: seen.append((direction, message)))
    assert tapped.send_nowait([b"1", b"2"])
    await tapped.send([b"3"])
    assert await theirs.receive() == [b"1", b"2", b"3"]
    await theirs.send([b"4", b"0123456789X"])
    assert await tapped.receive() == [b"4", Oversized(b"0123456789X")]
    assert seen == [
        ("sent", b"1"),
        ("sent", b"2"),
        ("sent", b"3"),
        ("received", b"4"),
        ("received", b"0123456789X"),
    ]
    await tapped.aclose()
    assert await theirs.receive() == []
