"""Faults in the head of a request that h11 accepts, and that are not safe.

A proxy in front may read the same bytes in another way and let a second request slip through
(RFC 9112 sections 2.2, 5.2, 6.1, 6.3; request smuggling, 11.2). So whatever can be read in two
ways is refused.
"""

import re
from typing import Final

#: Statuses of refusals.
BAD_REQUEST: Final = 400
TOO_LARGE: Final = 431

# What h11 takes for the end of a head.
_END: Final = re.compile(rb"\n\r?\n")
_CONTROLS: Final = bytes(each for each in (*range(32), 127) if each not in b"\t\n\r")
_LENGTH: Final = b"\ncontent-length:"
_CODING: Final = b"\ntransfer-encoding:"
_LENGTHS: Final = re.compile(rb"\ncontent-length:[^\n]*,")


def head_fault(data: bytes, limit: int) -> int | None:
    """Look at a head before it is parsed.

    Args:
        data: What was received of it, and what came after it.
        limit: Bytes that it may have.

    Returns:
        The status to refuse it with; None if nothing is wrong, or it is not complete.
    """
    end = _END.search(data)
    if end is None:
        return None  # h11 watches its size by then
    if end.start() > limit:
        return TOO_LARGE
    return BAD_REQUEST if _is_ambiguous(data[: end.end()].lower()) else None


def _is_ambiguous(head: bytes) -> bool:
    lengths, codings = head.count(_LENGTH), head.count(_CODING)
    return (
        # A bare LF, which not everybody takes for the end of a line.
        head.count(b"\n") != head.count(b"\r\n")
        # A folded line, which is one header or two (5.2).
        or b"\n " in head
        or b"\n\t" in head
        # Two lengths, were they equal, or a length beside a coding (6.3).
        or lengths + codings > 1
        or _LENGTHS.search(head) is not None
        # Characters that some take for the end of something (RFC 9110 5.5).
        or len(head.translate(None, _CONTROLS)) != len(head)
        # HTTP/1.0 knows no coding (6.1).
        or (codings > 0 and b" http/1.0\r\n" in head)
    )
