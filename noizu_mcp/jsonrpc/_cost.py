"""The cost of JSON: its values, counted in the text before they are made, and its memory.

Values cost: two bytes may become an object of a hundred, and everything that walks a message walks
them all. Counting takes a fraction of the time of parsing.
"""

import sys
from typing import Any, Final

#: Bytes that are cut into strings and the rest at a time: cut at once, the pieces would need many
#: times the size of the message.
_WINDOW: Final = 64 * 1024
#: Every value but the first has one of these before it.
_MARKS: Final = (b"[", b"{", b",")


def holds_more_values(data: bytes, limit: int) -> bool:
    """Tell whether JSON text holds more values than a limit, at any depth.

    Members and elements count, not the outermost value; an empty array or object counts twice.

    Args:
        data: The text. It need not be valid JSON; the marks outside of strings are counted.
        limit: The most values.
    """
    if b"\\" in data:
        # Escaped quotes end no string. Removed before the windows are cut: none can split an
        # escape.
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    count = inside = 0
    for start in range(0, len(data), _WINDOW):
        # Strings are left out first: they hold such marks, too, and are skipped fastest.
        parts = data[start : start + _WINDOW].split(b'"')
        outside = b"".join(parts[inside::2])
        count += sum(map(outside.count, _MARKS))
        # An odd number of quotes: the next window begins inside of a string.
        inside ^= (len(parts) - 1) & 1
    return count > limit


def memory_of(value: Any) -> int:
    """Add up the bytes of memory that a JSON value takes, parts shared with other values included.

    Args:
        value: The value; it must not contain itself.
    """
    size = 0
    # Level by level: recursion would need a stack as deep as the value.
    level = [value]
    while level:
        size += sum(map(sys.getsizeof, level))
        inner = [each for each in level if type(each) is dict]
        parts = [[*each, *each.values()] for each in inner]
        parts += [each for each in level if type(each) is list]
        level = [each for part in parts for each in part]
    return size
