"""The logger of the package, and a log that peers cannot fill.

Details of failures go here and never to a peer.
"""

import logging
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Any, Final

from ._printable import LINES, printable


class _OneLine(logging.Filter):
    """Makes each record one line, whatever the texts in it say; a traceback below is indented."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = printable(record.getMessage()), ()
        if record.exc_info and record.exc_info[1] is not None:
            # A factory of records may have written it already, without its secrets.
            text = record.exc_text or "".join(traceback.format_exception(record.exc_info[1]))
            record.exc_text = indented(text)
        return True


def indented(text: str) -> str:
    """Indent a traceback for a log or a terminal: none of its lines looks like one of the program.

    Args:
        text: The traceback. The text of the exception may come from a peer.
    """
    return textwrap.indent(printable(text.rstrip("\n"), kept=LINES), "  ")


def get_logger(name: str) -> logging.Logger:
    """Get a logger of the package; no text of a peer can forge a line of what it logs."""
    found = logging.getLogger(name)
    found.addFilter(_OneLine())
    return found


logger: Final = get_logger("noizu_mcp")

#: Seconds after which entries of a kind are shown again.
PERIOD: Final = 60.0
#: Kinds that a log distinguishes within a period by default.
MOST: Final = 100
#: Kinds of crashes within a period: more than any server has handlers. A kind takes below 1 KiB.
MOST_CRASHES: Final = 1000
#: Entries of one kind that are shown in a period: enough to see how they differ.
SHOWN: Final = 5
#: Characters of an entry that its count repeats.
_REPEATED: Final = 200
#: Frames of a traceback that identify a place: a handler behind up to two wrappers.
_FRAMES: Final = 3
#: Packages with frames between every handler and its entry; they do not identify a place.
_BETWEEN: Final = frozenset({"noizu_mcp", "trio", "outcome"})


class _LogEntries:
    """The entries of one kind in this period."""

    __slots__ = ("count", "left_out", "level")

    def __init__(self) -> None:
        self.count = 0
        self.left_out = ""  # the first entry that was not shown
        self.level = 0


class ThrottledLog:
    """A log that neither a peer nor a failing handler can fill.

    The first entries of each kind in a period of a minute are shown. If it shows several,
    a line after them says that more are left out. The first entry of the next period gives their
    number. Kinds beyond a limit count as one kind, so memory is bounded too.

    Args:
        clock: Returns the time in seconds.
        log: Receives the entries.
        shown: Entries of each kind that are shown in a period.
        most: Kinds that are distinguished within a period.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        log: logging.Logger = logger,
        *,
        shown: int = 1,
        most: int = MOST,
    ) -> None:
        self._clock = clock
        self._log = log
        self._shown = shown
        self._most = most
        self._until = clock()
        self._kinds: dict[Hashable, _LogEntries] = {}
        self._lock = threading.Lock()  # a server may serve in several threads

    def warning(self, about: Hashable, text: str, *args: object, exc_info: object = None) -> None:
        """Log a warning; see `entry`."""
        self.entry(logging.WARNING, about, text, *args, exc_info=exc_info)

    def crash(self, about: Hashable, text: str, *args: object, error: BaseException) -> None:
        """Log a failure with its traceback. The place that raised it is a part of its kind.

        Args:
            about: The code that failed, if it is known; see `entry`.
            text: A format string, as `logging` takes it.
            args: Arguments of the format string.
            error: The failure.
        """
        kind = (about, type(error).__qualname__, *islice(_places(error), _FRAMES))
        self.entry(logging.ERROR, kind, text, *args, exc_info=error)

    def entry(
        self, level: int, about: Hashable, text: str, *args: object, exc_info: Any = None
    ) -> None:
        """Log an entry, or count it.

        Args:
            level: A level of `logging`.
            about: The kind. The log keeps it, so it must be short, and must not refer to objects
                of the user.
            text: A format string, as `logging` takes it.
            args: Arguments of the format string.
            exc_info: An exception whose traceback is logged.
        """
        now = self._clock()
        over: dict[Hashable, _LogEntries] = {}
        with self._lock:
            if now >= self._until:
                self._until = now + PERIOD
                over, self._kinds = self._kinds, over
            if about not in self._kinds and len(self._kinds) >= self._most:
                about = _OTHERS
            kind = self._kinds.setdefault(about, _LogEntries())
            kind.count += 1
            left_out = kind.count - self._shown
            if left_out == 1:
                kind.level = level
                told = text % args if args else text
                kind.left_out = "other entries" if about is _OTHERS else told[:_REPEATED]
        for each in over.values():
            if each.count > self._shown:
                number = each.count - self._shown
                self._log.log(each.level, "%s: %d more within a minute", each.left_out, number)
        if left_out <= 0:
            self._log.log(level, text, *args, exc_info=exc_info)
        elif left_out == 1 and (self._shown > 1 or about is _OTHERS):
            # If one entry of a kind is shown, the next ones would say nothing new.
            more = "%s: more of these are counted, not shown, for up to a minute"
            self._log.log(level, more, kind.left_out)


#: The kind of all entries beyond the most kinds of a period.
_OTHERS: Final = object()


def _places(error: BaseException) -> Iterator[Hashable]:
    """Name the functions of the user that an exception passed, the outermost first.

    Functions identify a place better than lines: a handler cannot make new kinds by failing at
    another line.
    """
    # An exception that our own code raised about one of the user has the latter as its cause.
    for each in (error, error.__cause__):
        traceback = None if each is None else each.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            module = str(frame.f_globals.get("__name__", ""))
            if module.partition(".")[0] not in _BETWEEN:
                yield frame.f_code.co_filename, frame.f_code.co_firstlineno
            traceback = traceback.tb_next


#: The log for failures outside of any server. Every server has a log of its own.
throttled_log: Final = ThrottledLog(shown=SHOWN, most=MOST_CRASHES)
