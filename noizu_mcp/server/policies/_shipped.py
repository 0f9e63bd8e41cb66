"""The policies that come with the package: by name, by rate, by time of day."""

import re
import threading
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, get_args

from ..._errors import Denied
from ..._util import is_number
from ._patterns import first_match, read_patterns
from ._policy import CallKind, Policy, PolicyCall, SharedPolicy

if TYPE_CHECKING:
    from ...components import Context

#: Maximum number of callers or tools whose rate is counted at one time.
MAX_BUCKETS: Final = 10_000
#: What each bucket of a rate belongs to.
RateKey = Literal["principal", "tool", "both"]


class SharedCounter(Protocol):
    """A node, as a rate limit uses it."""

    async def count(self, name: str, *, limit: int, period: float) -> float | None:
        """Count one use at all nodes; see `Node`."""


class _ByName(Policy):
    """Checks the names of tools against patterns."""

    kinds: ClassVar[frozenset[CallKind]] = frozenset({"tool"})

    def __init__(self, *patterns: str) -> None:
        self.patterns: Final = read_patterns(patterns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.patterns))})"


class DenyTools(_ByName):
    """Denies tools by their names.

    Args:
        patterns: Names; `*` matches any text.

    Raises:
        ValueError: There are no patterns, or a pattern is not a text.
    """

    def check(self, call: PolicyCall, ctx: "Context") -> None:
        """Deny a tool whose name matches; see `Policy`."""
        pattern = first_match(self.patterns, call.name)
        if pattern is not None:
            raise Denied(f"tool {call.name!r} is blocked by the pattern {pattern!r}")


class AllowTools(_ByName):
    """Denies every tool except those with certain names.

    Args:
        patterns: Names; `*` matches any text.

    Raises:
        ValueError: There are no patterns, or a pattern is not a text.
    """

    def check(self, call: PolicyCall, ctx: "Context") -> None:
        """Deny a tool whose name does not match; see `Policy`."""
        if first_match(self.patterns, call.name) is None:
            raise Denied(f"tool {call.name!r} is not among the allowed tools")


class RateLimit(SharedPolicy):
    """Limits the rate of calls of tools, prompts and resources; a token bucket.

    A bucket holds `n` calls and fills evenly, so `n` calls may come at once after a pause. A denied
    call takes no token. At most 10,000 buckets are kept. When all are in use, calls that need a new
    bucket are denied until the least recently used bucket is full again.

    The nodes of a server with a backend share the buckets. While the backend cannot be reached each
    node counts for itself, unless the limit is strict.

    Args:
        n: Calls per period.
        per: The period in seconds.
        key: Each `principal` has a bucket, or each `tool`, or each principal for each tool
            (`both`). Without authentication the client's network address is used as principal.
        strict: True to deny calls while the backend cannot be reached.
        clock: Returns the time in seconds.

    Raises:
        ValueError: An argument is not valid.
    """

    kinds: ClassVar[frozenset[CallKind]] = frozenset({"tool", "prompt", "resource"})

    def __init__(
        self,
        n: int,
        per: float,
        key: RateKey = "principal",
        *,
        strict: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _check_number("n", n, "a whole number of calls", int)
        _check_number("per", per, "seconds", int | float)
        if key not in get_args(RateKey):
            raise ValueError(f"key must be one of {', '.join(get_args(RateKey))}, got {key!r}")
        self._n = n
        self._per = per
        self._one = per / n  # the share of one call
        # Numbers are rounded: the last call of a bucket must not be denied for that.
        self._most = per * (1 + 1e-9)
        self._key = key
        self._strict = strict
        self._clock = clock
        # Buckets of all nodes that were empty, and when they are not any longer: a client that
        # goes on calling costs the backend nothing.
        self._empty_until: dict[Hashable, float] = {}
        # Each bucket is stored as the time at which it is full: one number, and no refilling. In
        # order of last use.
        self._full_at: dict[Hashable, float] = {}
        self._lock = threading.Lock()  # a server may serve in several threads

    def __repr__(self) -> str:
        return f"RateLimit({self._n}, per={self._per:g}, key={self._key!r})"

    def check(self, call: PolicyCall, ctx: "Context") -> Awaitable[None] | None:
        """Take one call from its bucket, or deny it; see `Policy`.

        Returns:
            The rest of the work where the server has several nodes; else None.
        """
        key = self._owner_of(call)
        # A test may call it with a context of its own.
        running = getattr(ctx, "running", None)
        if running is not None and running.node is not None:
            return self._check_shared(key, running.node, ctx)
        self._take(key)
        return None

    async def _check_shared(self, key: Hashable, node: SharedCounter, ctx: "Context") -> None:
        """Take one call from a bucket of all nodes; see `check`."""
        now, until = self._clock(), self._empty_until.get(key, 0.0)
        if now < until:
            raise self._refusal(until - now)
        # The place among the policies: two of them may have equal arguments.
        place = list(ctx.server.policies).index(self)
        name = f"{ctx.server.options.name} {place} {self!r} {key!r}"
        wait = await node.count(name, limit=self._n, period=self._per)
        if wait is None:
            if self._strict:
                raise Denied("the calls of all nodes cannot be counted now; try again in a moment")
            self._take(key)
            return
        if wait > 0:
            self._empty_until[key] = now + wait
            if len(self._empty_until) > MAX_BUCKETS:
                del self._empty_until[next(iter(self._empty_until))]
            raise self._refusal(wait)

    def _refusal(self, wait: float) -> Denied:
        text = f"rate limit exceeded: max {self._n}/{self._per:g}s"
        return Denied(f"{text}; try again in {wait:.3g} s")

    def _take(self, key: Hashable) -> None:
        """Take one call from a bucket of this process, or deny it."""
        now, one = self._clock(), self._one
        with self._lock:
            # Each call moves the time by the share of one call; the bucket is empty `per` seconds
            # ahead.
            full_at = self._full_at.pop(key, now)
            full_at = (max(now, full_at)) + one
            wait = full_at - now - self._most
            if wait <= 0 and self._make_room(now):
                self._full_at[key] = full_at
                return
            if full_at - one > now:
                self._full_at[key] = full_at - one
        raise self._refusal(wait if wait > 0 else one)

    def _make_room(self, now: float) -> bool:
        """Remove full buckets, the least recently used first; False if there are still too many."""
        # From the front only: each bucket is checked once, no matter how many calls come.
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
        # Not the name as sent: a client could send any number of names.
        tool = call.kind, call.registered
        return tool if self._key == "tool" else (caller, tool)


class TimeWindow(Policy):
    """Denies calls of tools, prompts and resources outside certain hours of the day.

    Args:
        start: The first minute of the window, `HH:MM`.
        end: The minute after the last one, `HH:MM`; `24:00` for the end of the day. If it is before
            `start`, the window ends on the next day.
        tz: The time zone, a name of the IANA database.
        clock: Returns Unix time in seconds.

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
        # The last checked minute since the epoch, and whether it is in the window. One object,
        # replaced as a whole: a server may serve in several threads.
        self._last = (-1, False)

    def check(self, call: PolicyCall, ctx: "Context") -> None:
        """Deny a call outside the window; see `Policy`."""
        # Time zone offsets are whole minutes, so a whole minute has one result.
        now = int(self._clock() // 60)
        last, within = self._last
        if last != now:
            within = self._is_within(now)
            self._last = now, within
        if not within:
            raise Denied(self._text)

    def _is_within(self, minutes: int) -> bool:
        """Tell whether a minute, counted since the epoch, is in the window."""
        now = self._zone(minutes * 60)
        minute: int = now.hour * 60 + now.minute
        if self._start < self._end:
            return self._start <= minute < self._end
        return minute >= self._start or minute < self._end


def _check_number(name: str, value: Any, meaning: str, kind: Any) -> None:
    if not is_number(value) or not isinstance(value, kind) or value <= 0:
        raise ValueError(f"{name} must be {meaning} above 0, got {value!r}")


def _minute(text: object) -> int:
    """Parse a time of day, in minutes since midnight."""
    found = re.fullmatch(r"(\d\d?):(\d\d)", text) if isinstance(text, str) else None
    if found is not None:
        hour, minute = map(int, found.groups())
        if minute < 60 and hour * 60 + minute <= 24 * 60:
            return hour * 60 + minute
    raise ValueError(f"{text!r} is no time of day; write it as '08:00'")


def _zone(name: str) -> Callable[[float], Any]:
    """Return the function that converts Unix time to the local time of a zone."""
    # Loaded with the first window: most programs need no time zones.
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo

    if name == "UTC":  # works without a database, too
        return lambda seconds: datetime.fromtimestamp(seconds, UTC)
    try:
        zone = ZoneInfo(name)
    except (OSError, ValueError, LookupError, TypeError):
        text = "is no time zone of this system; names are like 'Europe/Berlin'"
        raise ValueError(f"{name!r} {text}, and `pip install tzdata` brings all of them") from None
    return lambda seconds: datetime.fromtimestamp(seconds, zone)
