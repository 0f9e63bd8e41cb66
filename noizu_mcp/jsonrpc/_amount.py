"""How many values JSON text holds, told from its bytes before anything is made of them.

Values cost: two bytes may become an object of a hundred, and everything that walks a message walks
them all. Counting takes a fraction of what reading takes.
"""

from typing import Final

#: Bytes that are cut into strings and the rest at a time: cut at once, the pieces would need many
#: times the size of the message.
_WINDOW: Final = 64 * 1024
#: Every value but the first has one of these before it.
_MARKS: Final = (b"[", b"{", b",")


def holds_more_values(data: bytes, limit: int) -> bool:
    """Tell whether JSON text holds more values than that, at any depth.

    Members and elements count, not the outermost value; an empty array or object counts twice.

    Args:
        data: The text; of one that is no JSON, what is readable from its start counts.
        limit: How many values it may hold.
    """
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    count = inside = 0
    for start in range(0, len(data), _WINDOW):
        # Strings are left out first: they hold such marks, too, and are skipped fastest.
        parts = data[start : start + _WINDOW].split(b'"')
        outside = b"".join(parts[inside::2])
        count += sum(map(outside.count, _MARKS))
        inside ^= (len(parts) - 1) & 1
    return count > limit
