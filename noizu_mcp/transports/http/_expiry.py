"""How long a stream may live whose reader was let in once: until the token ends."""

import math
import time
from typing import Final

from ...types import Principal

#: Seconds that a stream gets at least. Verifiers take a token a little after its end, as clocks
#: differ; a stream that ended at once would be opened again at once.
LEAST: Final = 30.0


def time_left(principal: Principal | None) -> float:
    """Give the seconds after which a stream is ended; infinite where nothing expires.

    Args:
        principal: Who opened it.
    """
    if principal is None or principal.expires_at is None:
        return math.inf
    return max(principal.expires_at - time.time(), LEAST)
