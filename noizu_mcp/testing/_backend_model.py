"""Random steps against a backend, compared with a model. Needs Hypothesis.

The model knows when each record and stream expires, up to the time that an operation takes. Before
each step it waits until everything is certainly live or certainly expired; where an operation took
so long that this changed meanwhile, its outcome is not judged, and the model begins anew.
"""

import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import trio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ..backends import Backend, Conflict, Full, Gap, LogEntry
from ._backend_rules import LONG, SHORT, must, must_equal

#: Seconds by which an engine's expiry may differ from the model's.
_BLUR: Final = 0.02
_ROOM: Final = {"pair": 2, "single": 1}

_keys = st.sampled_from(["a", "b", "c"])
_streams = st.sampled_from(["s", "t"])
_ttls = st.sampled_from([LONG, LONG, SHORT])
_versions = st.sampled_from(["any", "any", "absent", "present", "former"])
_groups = st.sets(st.sampled_from(sorted(_ROOM))).map(sorted)
_put = st.tuples(st.just("put"), _keys, st.binary(max_size=3), _ttls, _versions, _groups)
_append = st.tuples(st.just("append"), _streams, st.binary(max_size=3), st.integers(1, 3), _ttls)
_read = st.tuples(st.just("read"), _streams, st.sampled_from([0.0, 0.01]))
_steps: Final = st.lists(
    st.one_of(
        *(_put, _put, _append, _append, _read),
        st.tuples(st.just("get"), _keys, st.none() | _ttls, _versions),
        st.tuples(st.just("delete"), _keys, _versions),
        st.tuples(st.just("members"), st.sampled_from(sorted(_ROOM))),
        st.tuples(st.just("end_of"), _streams),
        st.tuples(st.just("sleep")),
    ),
    min_size=10,
    max_size=40,
)
#: A sequence with each outcome, for those who have no luck.
_EVERY_OUTCOME: Final = [
    ("put", "a", b"1", LONG, "absent", ["single"]),
    ("put", "b", b"2", LONG, "any", ["pair", "single"]),
    ("put", "b", b"3", SHORT, "absent", ["pair"]),
    ("put", "a", b"4", LONG, "absent", []),
    ("put", "a", b"5", LONG, "present", ["pair"]),
    ("get", "a", SHORT, "present"),
    ("members", "pair"),
    ("put", "a", b"6", LONG, "former", []),
    ("sleep",),
    ("get", "a", None, "any"),
    ("append", "s", b"1", 1, LONG),
    ("append", "s", b"2", 1, SHORT),
    ("read", "s", 0.0),
    ("append", "s", b"3", 3, SHORT),
    ("sleep",),
    ("append", "s", b"4", 3, LONG),
    ("read", "s", 0.0),
    ("end_of", "s"),
    ("delete", "a", "present"),
]


def walk(
    run: Callable[[Callable[[Backend, Backend], Awaitable[None]]], None], examples: int
) -> None:
    """Run random sequences of steps.

    Args:
        run: Runs one check with two nodes of a new backend.
        examples: The number of sequences.
    """

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(_steps)
    @example(_EVERY_OUTCOME)
    def follow(steps: list[tuple[Any, ...]]) -> None:
        async def check(one: Backend, two: Backend) -> None:
            """Random steps have the outcomes of the model."""
            await _Model(one, two).follow(steps)

        run(check)

    follow()


@attrs.define
class _Known:
    """A record that the model knows."""

    value: bytes
    version: int
    # Earliest and latest time of its expiry.
    until: tuple[float, float]
    groups: set[str]


@attrs.define
class _KnownStream:
    """A stream that the model knows, with one reader."""

    name: str
    position: str
    # The number of the newest entry that the reader has had, or has lost.
    read: int = 0
    last: int = 0
    kept: list[tuple[int, bytes]] = attrs.field(factory=list)
    until: tuple[float, float] = (float("inf"), float("inf"))
    # Whether the stream has expired since the reader's position: a gap may be told without loss.
    has_begun_anew: bool = False

    def go_on(self, position: str) -> None:
        """Let the reader go on from the end."""
        self.position, self.read, self.has_begun_anew = position, self.last, False


class _Uncertain(Exception):
    """Something may have expired during an operation."""


class _Model:
    def __init__(self, one: Backend, two: Backend) -> None:
        # Steps alternate between the nodes; the clock is of the first one.
        self._nodes = itertools.cycle((one, two))
        self._node = one
        self._clock = one
        self._records: dict[str, _Known] = {}
        self._streams: dict[str, _KnownStream] = {}
        self._names = itertools.count()
        self._seen: set[tuple[str, int]] = set()
        self._former: dict[str, int] = {}
        # When the present step began.
        self._before = 0.0

    async def follow(self, steps: list[tuple[Any, ...]]) -> None:
        for name, *arguments in steps:
            await self._settle()
            self._node, self._before = next(self._nodes), self._clock.now()
            try:
                await getattr(self, f"_{name}")(*arguments)
            except _Uncertain:
                await self._begin_anew()

    async def _settle(self) -> None:
        """Wait until nothing is about to expire, and forget what has expired."""
        while left := [  # noqa: ASYNC110 - expiry has no event
            until[1] + _BLUR - self._clock.now()
            for until in self._times()
            if until[0] - _BLUR <= self._clock.now() <= until[1] + _BLUR
        ]:
            await trio.sleep(max(left) + 0.001)
        now = self._clock.now()
        for key in [key for key, each in self._records.items() if each.until[1] < now]:
            del self._records[key]
        for stream in self._streams.values():
            if stream.until[1] < now:
                stream.kept, stream.has_begun_anew = [], True
                stream.until = (float("inf"), float("inf"))

    def _times(self) -> list[tuple[float, float]]:
        records = [each.until for each in self._records.values()]
        return records + [each.until for each in self._streams.values()]

    def _check_certain(self) -> None:
        """Raise where something may have expired since the last `_settle`."""
        now = self._clock.now()
        if any(now >= until[0] - _BLUR for until in self._times()):
            raise _Uncertain

    async def _begin_anew(self) -> None:
        for key in ("a", "b", "c"):
            await self._node.delete(key)
        self._records.clear()
        self._streams.clear()

    def _until(self, ttl: float) -> tuple[float, float]:
        return self._before + ttl, self._clock.now() + ttl

    def _version(self, key: str, which: str) -> int | None:
        known = self._records.get(key)
        if which == "any":
            return None
        if which == "former":
            return self._former.get(key, 1)
        return known.version if known is not None and which == "present" else 0

    def _refusal(self, key: str, version: int | None, groups: list[str]) -> object:
        """Return what refuses a write: a version, a set of groups, or None."""
        known = self._records.get(key)
        present = 0 if known is None else known.version
        if version not in (None, present):
            return present
        others = {other: each for other, each in self._records.items() if other != key}
        full = {
            group
            for group in groups
            if (known is None or group not in known.groups)
            and sum(group in each.groups for each in others.values()) >= _ROOM[group]
        }
        return full or None

    async def _put(
        self,
        key: str,
        value: bytes,
        ttl: float,
        which: str,
        groups: list[str],
    ) -> None:
        version = self._version(key, which)
        refusal = self._refusal(key, version, groups)
        outcome: object
        try:
            outcome = new = await self._node.put(
                key, value, ttl=ttl, version=version, groups={name: _ROOM[name] for name in groups}
            )
        except Conflict as conflict:
            outcome, new = conflict, 0
        except Full as full:
            outcome, new = full, 0
        until = self._until(ttl)
        self._check_certain()
        step = f"put({key!r}, version={version}, groups={groups})"
        if isinstance(refusal, int):
            must(isinstance(outcome, Conflict), f"{step} must raise Conflict: {outcome!r}")
            must_equal(getattr(outcome, "version", None), refusal, f"the Conflict of {step}")
        elif isinstance(refusal, set):
            must(isinstance(outcome, Full), f"{step} must raise Full: {outcome!r}")
            must(getattr(outcome, "group", None) in refusal, f"{outcome!r} names another group")
        else:
            must(new > 0, f"{step} must succeed: {outcome!r}")
            must((key, new) not in self._seen, f"the version {new} of {key!r} repeats")
            self._seen.add((key, new))
            known = self._records.get(key)
            if known is not None:
                self._former[key] = known.version
            joined = set(groups) | (set() if known is None else known.groups)
            self._records[key] = _Known(value, new, until, joined)

    async def _get(self, key: str, ttl: float | None, which: str) -> None:
        known_version = self._version(key, which) or 0
        record = await self._node.get(key, ttl=ttl, known=known_version)
        until = None if ttl is None else self._until(ttl)
        self._check_certain()
        known = self._records.get(key)
        if known is None or record is None:
            is_right = known is None and record is None
            must(is_right, f"get({key!r}): expected {known!r}, got {record!r}")
            return
        value = b"" if known_version == known.version else known.value
        must_equal((record.value, record.version), (value, known.version), f"get({key!r})")
        known.until = until or known.until
        earliest, latest = known.until
        in_time = earliest - _BLUR <= record.expires_at <= latest + _BLUR
        must(in_time, f"expires_at of {key!r} is {record.expires_at}, not in {known.until}")

    async def _delete(self, key: str, which: str) -> None:
        version = self._version(key, which)
        deleted = await self._node.delete(key, version=version)
        self._check_certain()
        known = self._records.get(key)
        expected = known is not None and version in (None, known.version)
        must_equal(deleted, expected, f"delete({key!r}, version={version})")
        if deleted:
            self._former[key] = self._records.pop(key).version

    async def _members(self, group: str) -> None:
        members = await self._node.members(group)
        self._check_certain()
        live = sorted(key for key, each in self._records.items() if group in each.groups)
        must_equal(sorted(members), live, f"members({group!r})")

    async def _stream(self, name: str) -> _KnownStream:
        if name not in self._streams:
            # A new name after a new beginning, which leaves old streams behind.
            real = f"{name} {next(self._names)}"
            self._streams[name] = _KnownStream(real, await self._node.end_of(real))
        return self._streams[name]

    async def _append(self, name: str, entry: bytes, keep: int, ttl: float) -> None:
        stream = await self._stream(name)
        entry = entry or b"-"
        await self._node.append(stream.name, entry, keep=keep, ttl=ttl)
        until = self._until(ttl)
        self._check_certain()
        stream.last += 1
        stream.kept = [*stream.kept, (stream.last, entry)][-keep:]
        stream.until = until

    async def _read(self, name: str, wait: float) -> None:
        stream = await self._stream(name)
        items = await self._node.read({stream.name: stream.position}, wait=wait)
        self._check_certain()
        entries = [item.entry for item in items if isinstance(item, LogEntry)]
        expected = [(number, entry) for number, entry in stream.kept if number > stream.read]
        must_equal(entries, [entry for _, entry in expected], f"the entries of {name!r}")
        has_gap = any(isinstance(item, Gap) for item in items)
        if expected and expected[0][0] > stream.read + 1:
            must(isinstance(items[0], Gap), f"read({name!r}) must begin with a gap: {items!r}")
        else:
            must(not has_gap or stream.has_begun_anew, f"nothing was dropped: {items!r}")
        if items:
            stream.go_on(items[-1].position)

    async def _end_of(self, name: str) -> None:
        stream = await self._stream(name)
        position = await self._node.end_of(stream.name)
        self._check_certain()
        stream.go_on(position)

    async def _sleep(self) -> None:
        await trio.sleep(SHORT + 2 * _BLUR)
