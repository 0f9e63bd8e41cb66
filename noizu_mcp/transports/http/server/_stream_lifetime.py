"""Lifetime of an SSE stream: it ends when its token must be verified again."""

import math
import time
from typing import Final

from ....types import Principal

#: Seconds that a stream gets at least. Verifiers take a token a little after its end, as clocks
#: differ; a stream that ended at once would be opened again at once.
LEAST: Final = 30.0


def time_left(principal: Principal | None, life: float) -> float:
    """Return the seconds after which a stream is ended; infinite where nobody is verified.

    Args:
        principal: The principal that opened the stream.
        life: Seconds after which a token must be shown again, even if it is valid for longer. It
            may have been revoked, and a client that only reads sends no request.
    """
    if principal is None:
        return math.inf
    if principal.expires_at is None:
        return life
    # `expires_at` is a date, so the clock of the system counts here, and not trio's.
    return min(max(principal.expires_at - time.time(), LEAST), life)
