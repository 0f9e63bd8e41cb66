"""Lines of the log that a client can cause: no client may fill it."""

import logging
from math import inf
from typing import Any, Final

import trio

#: Seconds between two lines of one kind.
PERIOD: Final = 60.0


class Seldom:
    """Writes one warning of each kind a minute, and says how many were left out.

    The kinds must be few, and none of them the client's to choose: they are remembered.

    Args:
        logger: Where to.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger: Final = logger
        # When the next line of a kind is due, and how many were left out since the last.
        self._kinds: Final[dict[str, tuple[float, int]]] = {}

    def say(self, kind: str, text: str, *args: object, exc_info: Any = None) -> None:
        """Write a warning, or leave it out.

        Args:
            kind: What is written once a minute.
            text: The line, as for `logging`.
            args: What belongs into the text.
            exc_info: As for `logging`.
        """
        now = trio.current_time()
        due, left_out = self._kinds.get(kind, (-inf, 0))
        if now < due:
            self._kinds[kind] = (due, left_out + 1)
            return
        self._kinds[kind] = (now + PERIOD, 0)
        if left_out:
            text, args = f"{text} (and %d more of them before)", (*args, left_out)
        self._logger.warning(text, *args, exc_info=exc_info)
