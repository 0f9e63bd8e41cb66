"""Lists in pages with opaque cursors (`server/utilities/pagination`)."""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from ..._errors import McpError
from ...jsonrpc import INVALID_PARAMS

#: Entries per page of a list. Most servers have one page; a model cannot read a thousand tools.
PAGE_SIZE: Final = 50


def write_cursor(offset: int, last: str) -> str:
    """Write a cursor: the offset of the next page and, in case of changes, the entry before it."""
    return base64.urlsafe_b64encode(f"{offset}:{last}".encode()).rstrip(b"=").decode()


def read_cursor(cursor: object) -> tuple[int, str]:
    """Parse a cursor.

    Returns:
        The offset, and the key of the entry before it.

    Raises:
        McpError: The cursor was not made by `write_cursor` (-32602).
    """
    try:
        text = str(cursor)
        padded = text + "=" * (-len(text) % 4)
        decoded = base64.b64decode(padded.encode("ascii"), b"-_", validate=True).decode()
        offset, separator, last = decoded.partition(":")
        # An offset has fewer than ten digits: `int` of a long text takes quadratic time. Writing
        # the cursor again and comparing rejects every other spelling.
        if separator and offset.isascii() and offset.isdigit() and len(offset) < 10:
            position = int(offset)
            if write_cursor(position, last) == cursor and position > 0:
                return position, last
    except (ValueError, binascii.Error):
        pass
    raise McpError(INVALID_PARAMS, "Invalid cursor")


def find_start(keys: Sequence[str], cursor: object) -> int:
    """Find the start of a page, even if the entries changed since the cursor was made.

    Args:
        keys: The keys of all entries, in order.
        cursor: The cursor, or None for the first page.

    Raises:
        McpError: The cursor was not made by `write_cursor` (-32602).
    """
    if cursor is None:
        return 0
    offset, last = read_cursor(cursor)
    # The usual case, an unchanged list, needs no search. Otherwise the page begins after the entry
    # that the client saw last, so that no entry is repeated. If that entry was removed, the others
    # moved forward by one, and none of them must be skipped.
    if 0 < offset <= len(keys) and keys[offset - 1] == last:
        return offset
    return keys.index(last) + 1 if last in keys else min(offset - 1, len(keys))
