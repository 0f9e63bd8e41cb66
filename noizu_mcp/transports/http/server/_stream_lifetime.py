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
        principal: Who opened it.
        life: Seconds after which a token is to be shown again, whenever it ends: it may have been
            revoked, and whoever reads sends nothing.
    """
    if principal is None:
        return math.inf
    if principal.expires_at is None:
        return life
    return min(max(principal.expires_at - time.time(), LEAST), life)
