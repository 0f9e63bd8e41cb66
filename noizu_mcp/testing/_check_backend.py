"""`check_backend`: the suite that every engine of a backend passes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio
from trio.abc import Clock

from .._groups import single_failure
from ..backends import Backend, BackendUnavailable, Conflict, Full, Gap, LogEntry
from ._backend_rules import LONG, SHORT, must, must_equal

#: Seconds within which everything must happen that a check waits for.
PATIENCE: Final = 20.0
#: The number of tasks that do the same at once.
_CROWD: Final = 32

_NEEDS: Final = "checks of a backend need hypothesis: pip install 'noizu-mcp[testing]'"

_Check = Callable[[Backend, Backend], Awaitable[None]]


def check_backend(
    make: Callable[[], Backend],
    *,
    clock: Callable[[], Clock] | None = None,
    examples: int = 30,
) -> None:
    """Check that an engine keeps the contract of `noizu_mcp.backends.Backend`.

    Call it in a test that is not async; each check has a `trio.run` and a backend of its own:

        def test_the_engine() -> None:
            check_backend(lambda: Shelf("shelf://127.0.0.1", prefix=token_hex(8)))

    A backend is opened twice at once, for two nodes. Random steps are compared with a model, with
    Hypothesis, which needs the extra `testing`. The checks wait for TTLs of 50 ms.

    Args:
        make: Returns a new backend without data that is not open.
        clock: Makes the clock of each run, such as `MockClock(autojump_threshold=0)` for an engine
            whose time is trio's.
        examples: Number of random sequences of steps.

    Raises:
        AssertionError: The engine breaks the contract; the message says in which way.
        ImportError: Hypothesis is not installed.
    """
    try:
        from ._backend_model import walk
    except ModuleNotFoundError as error:
        raise ImportError(_NEEDS) from error
    for check in CHECKS:
        trio.run(partial(_run_check, make, check), clock=clock and clock())
    walk(
        lambda steps: trio.run(partial(_run_check, make, steps), clock=clock and clock()), examples
    )


async def _run_check(make: Callable[[], Backend], check: _Check) -> None:
    try:
        with trio.fail_after(PATIENCE), single_failure():
            async with two_nodes(make()) as (one, two):
                await check(one, two)
    except trio.TooSlowError:
        text = f"it did not end within {PATIENCE:g} s: {check.__doc__}"
        raise AssertionError(text) from None
    except Exception as error:
        error.add_note(f"in the check: {check.__doc__}")
        raise


@asynccontextmanager
async def two_nodes(backend: Backend) -> AsyncIterator[tuple[Backend, Backend]]:
    """Open a backend for two nodes of a server."""
    async with backend.open("check") as one, backend.open("check") as two:
        yield one, two


async def gone(backend: Backend, key: str) -> None:
    """Wait until a record has expired."""
    while await backend.get(key) is not None:  # noqa: ASYNC110 - expiry has no event
        await trio.sleep(SHORT / 5)


async def conflict_of(write: Awaitable[int]) -> int:
    """Return the version of the `Conflict` that a write must raise."""
    try:
        version = await write
    except Conflict as conflict:
        return conflict.version
    raise AssertionError(f"the write must raise Conflict, and returned the version {version}")


async def full_group(write: Awaitable[int]) -> str:
    """Return the group of the `Full` that a write must raise."""
    try:
        version = await write
    except Full as full:
        return full.group
    raise AssertionError(f"the write must raise Full, and returned the version {version}")


async def _values(one: Backend, two: Backend) -> None:
    """Records hold their bytes for all nodes, under any key."""
    keys = ["", "key", "a:b", "{a}", "line\nbreak", "\0", "ключ 🗝", "k" * 300]
    for number, key in enumerate(keys):
        await one.put(key, bytes(range(256)) * number, ttl=LONG)
    for number, key in enumerate(keys):
        record = await two.get(key)
        must(record is not None, f"the record {key!r} is not there for the other node")
        must_equal(record and record.value, bytes(range(256)) * number, f"the value of {key!r}")
    must_equal(await one.get("unknown"), None, "get of an unknown key")


async def _versions(one: Backend, two: Backend) -> None:
    """A write replaces the version that it names, and no other one."""
    first = await one.put("key", b"1", ttl=LONG, version=0)
    must(first > 0, "a version is above 0")
    must_equal(await conflict_of(two.put("key", b"x", ttl=LONG, version=0)), first, "Conflict")
    second = await two.put("key", b"2", ttl=LONG, version=first)
    must_equal(await conflict_of(one.put("key", b"x", ttl=LONG, version=first)), second, "Conflict")
    third = await one.put("key", b"3", ttl=LONG)
    must_equal(await conflict_of(one.put("none", b"x", ttl=LONG, version=first)), 0, "Conflict")
    record = await two.get("key", known=second)
    must(record and record.value == b"3" and record.version == third, "the last write stays")
    known = await two.get("key", known=third)
    must(known and known.value == b"" and known.version == third, "a known value is left out")
    must_equal(await one.delete("key", version=first), False, "delete of another version")
    must_equal(await two.delete("key", version=third), True, "delete of the version")
    must_equal(await one.delete("key"), False, "delete of nothing")
    must_equal(await one.get("key"), None, "get after delete")
    fourth = await one.put("key", b"4", ttl=LONG, version=0)
    must(len({first, second, third, fourth}) == 4, "versions repeat after delete")
    await one.put("key", b"5", ttl=SHORT)
    await gone(two, "key")
    must(await two.put("key", b"6", ttl=LONG) not in {first, second, third, fourth}, "repeated")


async def _expiry(one: Backend, two: Backend) -> None:
    """A record lasts until its TTL is over, unless a `get` renews it."""
    before = one.now()
    version = await one.put("short", b"x", ttl=SHORT)
    await one.put("renewed", b"x", ttl=SHORT)
    await one.put("long", b"x", ttl=LONG)
    for record in (await two.get("renewed", ttl=LONG), await two.get("long")):
        until = record.expires_at if record else 0.0
        # A second is for a slow machine.
        must(-1 < until - before - LONG < 1, "expires_at is not now() plus the TTL")
    must(abs(one.now() - two.now()) < 1, "the clocks of two nodes differ")
    await gone(two, "short")
    must(one.now() - before > SHORT / 2, "the record expired too early")
    must(await one.get("renewed") is not None, "`get` with a TTL must renew the record")
    must_equal(await conflict_of(one.put("short", b"x", ttl=LONG, version=version)), 0, "Conflict")
    await one.get("renewed", ttl=SHORT)
    await gone(one, "renewed")
    must_equal(await one.delete("renewed"), False, "delete of an expired record")


async def _groups(one: Backend, two: Backend) -> None:
    """A group has at most as many live members as each write allows."""
    room = {"pair": 2, "all": 9}
    for key in ("a", "b"):
        await one.put(key, b"x", ttl=LONG, groups=room)
    must_equal(await full_group(two.put("c", b"x", ttl=LONG, groups=room)), "pair", "Full")
    must_equal(await two.get("c"), None, "a refused write must write nothing")
    must_equal(sorted(await two.members("all")), ["a", "b"], "a refused write joins no group")
    await two.put("a", b"y", ttl=LONG, groups=room)
    await two.put("a", b"z", ttl=LONG)
    must_equal(sorted(await one.members("pair")), ["a", "b"], "a member stays without groups")
    await two.delete("a")
    must_equal(await one.members("pair"), ["b"], "delete leaves the groups")
    await one.put("c", b"x", ttl=SHORT, groups=room)
    await one.put("d", b"x", ttl=SHORT, groups={"renewed": 1})
    await one.get("d", ttl=LONG)
    await gone(one, "c")
    must_equal(await two.members("pair"), ["b"], "an expired member leaves")
    await two.put("e", b"x", ttl=LONG, groups=room)
    must_equal(await full_group(one.put("f", b"", ttl=LONG, groups={"renewed": 1})), "renewed", "")
    must_equal(await one.members("unknown"), [], "the members of an unknown group")


async def _rates(one: Backend, two: Backend) -> None:
    """A rate limit admits its burst, and then what its period allows."""
    for _ in range(3):
        must_equal(await one.take("key", limit=3, period=LONG), 0.0, "a use within the limit")
    wait = await two.take("key", limit=3, period=LONG)
    must(LONG / 3 - 1 < wait <= LONG / 3, f"the wait must be a third of the period, got {wait}")
    must_equal(await two.take("other", limit=1, period=LONG), 0.0, "another key")
    must_equal(await one.take("fast", limit=1, period=SHORT), 0.0, "a use within the limit")
    while wait := await two.take("fast", limit=1, period=SHORT):
        must(wait <= SHORT, "the wait is longer than the period")
        await trio.sleep(wait)
    # The same name elsewhere is another thing.
    await one.put("key", b"x", ttl=LONG, groups={"key": 1})
    await one.append("key", b"x", keep=1, ttl=LONG)
    must(await one.take("key", limit=3, period=LONG) > 0, "a record changes a rate limit")


async def _races(one: Backend, two: Backend) -> None:
    """Of writes at one time as many succeed as the contract says, whatever node they come from."""
    won: list[int] = []
    taken: list[int] = []
    joined: list[int] = []

    async def race(number: int) -> None:
        backend = (one, two)[number % 2]
        try:
            await backend.put("one", b"%d" % number, ttl=LONG, version=0)
            won.append(number)
        except Conflict:
            pass
        if not await backend.take("rate", limit=5, period=LONG):
            taken.append(number)
        try:
            await backend.put(f"member {number}", b"", ttl=LONG, groups={"group": 7})
            joined.append(number)
        except Full:
            pass
        while True:
            record = await backend.get("sum")
            value, version = (record.value, record.version) if record else (b"0", 0)
            try:
                await backend.put("sum", b"%d" % (int(value) + 1), ttl=LONG, version=version)
            except Conflict:
                continue
            break

    async with trio.open_nursery() as nursery:
        for number in range(_CROWD):
            nursery.start_soon(race, number)
    must_equal(len(won), 1, "writes with version=0 that succeeded")
    must_equal(len(taken), 5, "admitted uses of a limit of 5")
    must_equal(len(joined), 7, "members of a group of 7")
    must_equal(len(await one.members("group")), 7, "members of a group of 7")
    record = await one.get("sum")
    must_equal(record and record.value, b"%d" % _CROWD, "increments with compare-and-set")


async def _order(one: Backend, two: Backend) -> None:
    """All nodes read the same entries of a stream in the same order, each from its position."""
    start = await one.end_of("log")

    async def append(number: int) -> None:
        backend = (one, two)[number % 2]
        for part in range(4):
            await backend.append("log", b"%d.%d" % (number, part), keep=1000, ttl=LONG)

    async with trio.open_nursery() as nursery:
        for number in range(_CROWD):
            nursery.start_soon(append, number)
    seen = [await _drain(backend, "log", start) for backend in (one, two)]
    must_equal(seen[0], seen[1], "what two nodes read")
    must_equal(len(seen[0]), 4 * _CROWD, "the number of entries")
    for number in range(_CROWD):
        own = [entry for entry in seen[0] if entry.startswith(b"%d." % number)]
        must_equal(own, [b"%d.%d" % (number, part) for part in range(4)], "the order of one node")
    must_equal(await two.read({"log": await two.end_of("log")}, wait=0.0), [], "after the end")


async def _drain(backend: Backend, stream: str, position: str) -> list[bytes]:
    """Read a stream to its end."""
    found: list[bytes] = []
    while items := await backend.read({stream: position}, wait=0.0):
        must(len(items) <= 100, f"one read returned {len(items)} items of a stream")
        entries = [item.entry for item in items if isinstance(item, LogEntry)]
        must_equal(len(entries), len(items), "a gap where nothing was dropped")
        found += entries
        position = items[-1].position
    return found


async def _waits(one: Backend, two: Backend) -> None:
    """A reader wakes with the next entry of any of its streams."""
    places = {name: await one.end_of(name) for name in ("a", "b")}
    must_equal(await one.read(places, wait=SHORT), [], "nothing came")
    async with trio.open_nursery() as nursery:
        got: list[list[LogEntry | Gap]] = []

        async def read() -> None:
            got.append(await one.read(places, wait=PATIENCE))

        nursery.start_soon(read)
        await trio.sleep(SHORT / 5)
        position = await two.append("b", b"x", keep=9, ttl=LONG)
    must_equal(got, [[LogEntry("b", position, b"x")]], "the entry that a reader waits for")
    await two.append("a", b"y", keep=9, ttl=LONG)
    items = await one.read(places, wait=PATIENCE)
    names = sorted((item.stream, getattr(item, "entry", None)) for item in items)
    must_equal(names, [("a", b"y"), ("b", b"x")], "the entries of two streams")


async def _gaps(one: Backend, two: Backend) -> None:
    """Whoever lost entries reads a gap in their place."""
    start = await one.end_of("log")
    for number in range(5):
        await two.append("log", b"%d" % number, keep=2, ttl=LONG)
    items = await one.read({"log": start}, wait=1.0)
    must_equal([getattr(item, "entry", None) for item in items], [None, b"3", b"4"], "after a loss")
    first, *rest = items
    again = await two.read({"log": first.position}, wait=0.0)
    must_equal(again, rest, "what is read from the position of a gap")
    for position in ("", "x", f"{start}0000000000000000000000000", "-1", "ключ", "0-0", "\0:9-9"):
        items = await one.read({"log": position}, wait=1.0)
        must(items and isinstance(items[0], Gap), f"the position {position!r} must be a gap")
        must(await one.read({"log": items[-1].position}, wait=0.0) == [], "it leads to the end")
    # The whole stream expires unread.
    start = await one.end_of("short")
    await one.append("short", b"lost", keep=9, ttl=SHORT)
    await trio.sleep(2 * SHORT)
    await two.append("short", b"new", keep=9, ttl=LONG)
    items = await one.read({"short": start}, wait=1.0)
    is_told = len(items) > 1 and isinstance(items[0], Gap)
    must(is_told, f"an expired stream must leave a gap: {items!r}")
    must_equal(getattr(items[-1], "entry", None), b"new", "the entry after a gap")


async def _cancellation(one: Backend, two: Backend) -> None:
    """A cancelled operation leaves the backend usable, and answers go to their callers."""
    for number in range(_CROWD):
        await one.put(f"key {number}", b"%d" % number, ttl=LONG)
    start = await one.end_of("log")
    answers: list[tuple[int, bytes | None]] = []

    async def ask(number: int) -> None:
        record = await one.get(f"key {number}")
        answers.append((number, record.value if record else None))

    async def give_up(number: int) -> None:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one.get, f"key {number}")
                # Some before the request is sent, some after it.
                for _ in range(number % 6):
                    await trio.lowlevel.checkpoint()
                scope.cancel()

    for _ in range(4):
        async with trio.open_nursery() as nursery:
            for number in range(_CROWD):
                nursery.start_soon(ask, number)
                nursery.start_soon(give_up, number)
    wrong = [each for each in answers if each[1] != b"%d" % each[0]]
    must_equal(wrong, [], "wrong answers beside cancelled operations")
    must_equal(len(answers), 4 * _CROWD, "answers beside cancelled operations")
    with trio.move_on_after(SHORT):
        await one.read({"log": start}, wait=PATIENCE)
    position = await two.append("log", b"x", keep=9, ttl=LONG)
    items = await one.read({"log": start}, wait=PATIENCE)
    must_equal(items, [LogEntry("log", position, b"x")], "a read after a cancelled one")


async def _bounds(one: Backend, two: Backend) -> None:
    """Large values are stored, and larger ones are refused."""
    value = bytes(range(256)) * 4096
    await one.put("large", value, ttl=LONG)
    record = await two.get("large")
    must(record and record.value == value, "a value of 1 MiB comes back as it is")
    entry = value[: 64 * 1024]
    start = await one.end_of("log")
    await one.append("log", entry, keep=1, ttl=LONG)
    must_equal(await _drain(two, "log", start), [entry], "an entry of 64 KiB")
    for write in (
        partial(one.put, "large", bytes(16 * 2**20 + 1), ttl=LONG),
        partial(one.append, "log", bytes(64 * 1024 + 1), keep=1, ttl=LONG),
    ):
        try:
            await write()
        except ValueError:
            continue
        raise AssertionError("a value above the bound must raise ValueError")


async def _manners(one: Backend, two: Backend) -> None:
    """An open backend is up, has a lease and an epoch, and reports its operations."""
    must(one.lease > 0, "the lease must be above 0")
    must(one.is_up and two.is_up, "an open backend is up")
    must(one.epoch and one.epoch == two.epoch, "two nodes read one epoch")
    must(issubclass(BackendUnavailable, Exception), "")
    reports: list[tuple[str, str]] = []

    def observe(operation: str, outcome: str, seconds: float) -> None:
        must(seconds >= 0, "an operation takes time")
        reports.append((operation, outcome))

    one.observe = observe
    await one.put("key", b"", ttl=LONG)
    await conflict_of(one.put("key", b"", ttl=LONG, version=0))
    await one.get("key")
    await one.members("group")
    await one.delete("key")
    await one.take("key", limit=1, period=1.0)
    position = await one.end_of("log")
    await one.append("log", b"x", keep=1, ttl=LONG)
    await one.read({"log": position}, wait=0.0)
    names = ["put", "put", "get", "members", "delete", "take", "end_of", "append", "read"]
    must_equal(reports, [(name, "ok") for name in names], "the reports to `observe`")


CHECKS: Final[tuple[_Check, ...]] = (
    _values,
    _versions,
    _expiry,
    _groups,
    _rates,
    _races,
    _order,
    _waits,
    _gaps,
    _cancellation,
    _bounds,
    _manners,
)
