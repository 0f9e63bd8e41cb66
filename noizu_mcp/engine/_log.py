"""The one logger: what no peer may see goes here."""

import logging
import time
from collections.abc import Callable, Hashable
from typing import Any, Final

logger: Final = logging.getLogger("noizu_mcp")

#: Seconds in which the same thing is said once, and how many different ones are.
PERIOD: Final = 60.0
MOST: Final = 100


class Seldom:
    """Logs what a peer can cause, so that no peer can fill the log.

    Args:
        clock: Tells the time in seconds.
        log: Where to.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, log: logging.Logger = logger
    ) -> None:
        self._clock = clock
        self._log = log
        self._until = clock()
        self._said: set[Hashable] = set()

    def warning(self, about: Hashable, text: str, *args: object, exc_info: Any = None) -> None:
        """Log a warning, unless it was logged within the last minute, or too many others were.

        Args:
            about: What tells it from others; it is kept, and must be short.
            text: As for `logger.warning`.
            args: As for `logger.warning`.
            exc_info: As for `logger.warning`.
        """
        now = self._clock()
        if now >= self._until:
            self._until = now + PERIOD
            self._said.clear()
        if about not in self._said and len(self._said) < MOST:
            self._said.add(about)
            self._log.warning(text, *args, exc_info=exc_info)
            if len(self._said) == MOST:
                self._log.warning("more warnings like the last one are left out for up to a minute")
