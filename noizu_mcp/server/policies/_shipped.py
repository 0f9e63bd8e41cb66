"""The policies that come with the package: by name, by rate, by time of day."""

import re
import threading
import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

from ..._errors import Denied
from ..._util import is_number
from ._patterns import first_match, read_patterns
from ._policy import CallKind, Policy, PolicyCall

if TYPE_CHECKING:
    from ...components import Context

#: Callers or tools whose rate is counted at one time.
MAX_BUCKETS: Final = 10_000
#: The owners of a rate.
RateKey = Literal["principal", "tool", "both"]


class _ByName(Policy):
    """Judges the names of tools by patterns."""

    kinds: ClassVar[frozenset[CallKind]] = frozenset({"tool"})

    def __init__(self, *patterns: str) -> None:
        self.patterns: Final = read_patterns(patterns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.patterns))})"


class DenyTools(_ByName):
    """Refuses tools by their names.

    Args:
        patterns: Names; `*` in them stands for any text.

    Raises:
        ValueError: There is no pattern, or one is no text.
    """

    def check(self, call: PolicyCall, ctx: "Context") -> None:
        """Refuse a tool with such a name; see `Policy`."""
        pattern = first_match(self.patterns, call.name)
        if pattern is not None:
            raise Denied(f"tool {call.name!r} is blocked by the pattern {pattern!r}")


class AllowTools(_ByName):
    """Refuses every tool but those with certain names.

    Args:
        patterns: Names; `*` in them stands for any text.

    Raises:
        ValueError: There is no pattern, or one is no text.
    """

    def check(self, call: PolicyCall, ctx: "Context") -> None:
        """Refuse a tool with another name; see `Policy`."""
        if first_match(self.patterns, call.name) is None:
            raise Denied(f"tool {call.name!r} is not among the allowed tools")


class RateLimit(Policy):
    """Bounds the number of calls of tools, prompts and resources in a time; a token bucket.

    A bucket holds `n` calls and fills up evenly, so that `n` calls may come at once after a pause.
    A refused call takes nothing out. At most 10,000 buckets are kept. When they are in use, calls
    of further owners are refused until the bucket that was used least recently is full again.

    Args:
        n: Calls in each `per`.
        per: Seconds.
        key: Each `principal` has a bucket, or each `tool`, or each principal for each tool
            (`both`). Without authentication the client counts, by its network address.
        clock: Tells seconds.

    Raises:
        ValueError: An argument is wrong.
    """

    kinds: ClassVar[frozenset[CallKind]] = frozenset({"tool", "prompt", "resource"})

    def __init__(
        self,
        n: int,
        per: float,
        key: RateKey = "principal",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _check_number("n", n, "a whole number of calls", int)
        _check_number("per", per, "seconds", int | float)
        if key not in get_args(RateKey):
            raise ValueError(f"key must be one of {', '.join(get_args(RateKey))}, got {key!r}")
        self._n = n
        self._per = per
        self._one = per / n  # the share of one call
        # Numbers are rounded: the last call of a bucket must not be refused for it.
        self._most = per * (1 + 1e-9)
        self._key = key
        self._clock = clock
        # Each bucket as the time at which it is full: that takes one number, and an old one needs
        # no refilling. In the order of the last use.
        self._full_at: dict[Hashable, float] = {}
        self._lock = threading.Lock()  # a server may serve in several threads

    def __repr__(self) -> str:
        return f"RateLimit({self._n}, per={self._per:g}, key={self._key!r})"

    def check(self, call: PolicyCall, ctx: "Context") -> None:
        """Take a call out of its bucket, or refuse it; see `Policy`."""
        key = self._owner_of(call)
        now, one = self._clock(), self._one
        with self._lock:
            # Each call moves the time by the share of one; the bucket is empty a whole `per` away.
            full_at = self._full_at.pop(key, now)
            full_at = (max(now, full_at)) + one
            wait = full_at - now - self._most
            if wait <= 0 and self._make_room(now):
                self._full_at[key] = full_at
                return
            if full_at - one > now:
                self._full_at[key] = full_at - one
        text = f"rate limit exceeded: max {self._n}/{self._per:g}s"
        raise Denied(f"{text}; try again in {wait if wait > 0 else one:.3g} s")

    def _make_room(self, now: float) -> bool:
        """Forget full buckets, the least recently used first; False if there are too many."""
        # From the front only: each bucket is looked at once, however many calls come.
        while self._full_at:
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now:
                break
            del self._full_at[oldest]
        return len(self._full_at) < MAX_BUCKETS

    def _owner_of(self, call: PolicyCall) -> Hashable:
        caller = call.client if call.caller is None else call.caller.key
        if self._key == "principal":
            return caller
        # Not the name as sent: a client could make up as many as it likes.
        tool = call.kind, call.registered
        return tool if self._key == "tool" else (caller, tool)


class TimeWindow(Policy):
    """Refuses calls of tools, prompts and resources outside of certain hours of the day.

    Args:
        start: The first minute, `HH:MM`.
        end: The minute after the last one, `HH:MM`; `24:00` for the end of the day. One before
            `start` is a minute of the next day.
        tz: The time zone, a name of the IANA database.
        clock: Tells seconds of Unix time.

    Raises:
        ValueError: A time is malformed, both are equal, or the time zone is unknown.
    """

    kinds: ClassVar[frozenset[CallKind]] = frozenset({"tool", "prompt", "resource"})

    def __init__(
        self, start: str, end: str, tz: str = "UTC", *, clock: Callable[[], float] = time.time
    ) -> None:
        self._start, self._end = _minute(start), _minute(end)
        if self._start == self._end:
            raise ValueError(f"{start} to {end} is no time: the end must differ from the start")
        self._text = f"outside of the allowed hours, {start} to {end} {tz}"
        self._clock = clock
        self._zone = _zone(tz)
        # The last minute that was looked up, since the epoch, and if it is one of the hours. One
        # object, replaced as a whole: a server may serve in several threads.
        self._last = (-1, False)

    def check(self, call: PolicyCall, ctx: "Context") -> None:
        """Refuse a call at another time; see `Policy`."""
        # Offsets of zones are whole minutes, so that all of a minute is alike.
        now = int(self._clock() // 60)
        last, within = self._last
        if last != now:
            within = self._is_within(now)
            self._last = now, within
        if not within:
            raise Denied(self._text)

    def _is_within(self, minutes: int) -> bool:
        """Tell whether a minute, counted since the epoch, is one of the hours."""
        now = self._zone(minutes * 60)
        minute: int = now.hour * 60 + now.minute
        if self._start < self._end:
            return self._start <= minute < self._end
        return minute >= self._start or minute < self._end


def _check_number(name: str, value: Any, meaning: str, kind: Any) -> None:
    if not is_number(value) or not isinstance(value, kind) or value <= 0:
        raise ValueError(f"{name} must be {meaning} above 0, got {value!r}")


def _minute(text: Any) -> int:
    """Read a time of day as minutes since midnight."""
    found = re.fullmatch(r"(\d\d?):(\d\d)", text) if isinstance(text, str) else None
    if found is not None:
        hour, minute = map(int, found.groups())
        if minute < 60 and hour * 60 + minute <= 24 * 60:
            return hour * 60 + minute
    raise ValueError(f"{text!r} is no time of day; write it as '08:00'")


def _zone(name: str) -> Callable[[float], Any]:
    """Return the function that turns Unix time into the local time of a zone."""
    # Loaded with the first window: most programs need no calendar.
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo

    if name == "UTC":  # known where there is no database, too
        return lambda seconds: datetime.fromtimestamp(seconds, UTC)
    try:
        zone = ZoneInfo(name)
    except (OSError, ValueError, LookupError, TypeError):
        text = "is no time zone of this system; names are like 'Europe/Berlin'"
        raise ValueError(f"{name!r} {text}, and `pip install tzdata` brings all of them") from None
    return lambda seconds: datetime.fromtimestamp(seconds, zone)
