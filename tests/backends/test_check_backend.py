"""`check_backend` finds the faults that engines have."""

import sys

import pytest
import trio
from trio.testing import MockClock

from noizu_mcp.backends import Conflict, Full, Gap, LogEntry, Memory, Record
from noizu_mcp.testing import check_backend


class ForgetsVersions(Memory):
    """Writes whatever the version is."""

    async def put(self, key, value, *, version=None, **options):
        return await super().put(key, value, **options)


class ChecksThenWrites(Memory):
    """Has a checkpoint between the check of a version and the write."""

    async def put(self, key, value, *, version=None, **options):
        record = await self.get(key)
        present = record.version if record else 0
        if version not in (None, present):
            raise Conflict(present)
        return await super().put(key, value, **options)


class CountsFromOne(Memory):
    """Begins to count again after a deletion."""

    def __init__(self):
        super().__init__()
        self.versions = {}

    async def put(self, key, value, *, version=None, **options):
        record = await self.get(key)
        real = {0: 0, None: None, record and record.version: record and self.versions[key][0]}
        present = record.version if record else 0
        try:
            new = await super().put(key, value, version=real.get(version, -1), **options)
        except Conflict:
            raise Conflict(present) from None
        self.versions[key] = (new, present + 1)
        return present + 1

    async def get(self, key, *, ttl=None, known=0):
        record = await super().get(key, ttl=ttl)
        if record is None:
            return None
        version = self.versions[key][1]
        return Record(b"" if version == known else record.value, version, record.expires_at)

    async def delete(self, key, *, version=None):
        record = await self.get(key)
        if record is None or version not in (None, record.version):
            return False
        return await super().delete(key)


class NeverRenews(Memory):
    """Ignores the TTL of `get`."""

    async def get(self, key, *, ttl=None, known=0):
        return await super().get(key, known=known)


class NeverExpires(Memory):
    """Adds two seconds to each TTL."""

    async def put(self, key, value, *, ttl, **options):
        return await super().put(key, value, ttl=ttl + 2, **options)


class IgnoresKnown(Memory):
    """Sends the value of a known version."""

    async def get(self, key, *, ttl=None, known=0):
        return await super().get(key, ttl=ttl)


class OneTooMany(Memory):
    """Admits one member more."""

    async def put(self, key, value, *, groups=None, **options):
        more = {group: most + 1 for group, most in (groups or {}).items()}
        return await super().put(key, value, groups=more, **options)


class RefusesMembers(Memory):
    """Is full for a key that is a member already."""

    async def put(self, key, value, **options):
        for group, most in options.get("groups", {}).items():
            if len(await self.members(group)) >= most:
                raise Full(group)
        return await super().put(key, value, **options)


class WritesBeforeFull(Memory):
    """Writes the record, and then finds the group full."""

    async def put(self, key, value, **options):
        try:
            return await super().put(key, value, **options)
        except Full:
            await super().put(key, value, ttl=options["ttl"])
            raise


class Generous(Memory):
    """Admits one use more at once."""

    async def take(self, key, *, limit, period):
        return await super().take(key, limit=limit + 1, period=period)


class NeverTellsGaps(Memory):
    """Leaves gaps out."""

    async def read(self, positions, *, wait):
        items = await super().read(positions, wait=wait)
        return [item for item in items if isinstance(item, LogEntry)]


class AlwaysGaps(Memory):
    """Tells a gap before every entry."""

    async def read(self, positions, *, wait):
        items = await super().read(positions, wait=wait)
        return [Gap(items[0].stream, positions[items[0].stream]), *items] if items else []


class KeepsAll(Memory):
    """Drops no entry."""

    async def append(self, stream, entry, *, keep, ttl):
        return await super().append(stream, entry, keep=keep + 1, ttl=ttl)


class Newest(Memory):
    """Reads the newest entry first."""

    async def read(self, positions, *, wait):
        return (await super().read(positions, wait=wait))[::-1]


class NeverWakes(Memory):
    """Looks for entries only before it waits."""

    async def read(self, positions, *, wait):
        if items := await super().read(positions, wait=0.0):
            return items
        await trio.sleep(wait)
        return []


class Deaf(Memory):
    """Is not usable after a cancelled operation."""

    broken = False

    async def get(self, key, *, ttl=None, known=0):
        if self.broken:
            return None
        try:
            return await super().get(key, ttl=ttl, known=known)
        except trio.Cancelled:
            self.broken = True
            raise


class Silent(Memory):
    """Reports no operation."""

    def observed(self, operation):
        self.observe = None
        return super().observed(operation)


class Cuts(Memory):
    """Stores the first bytes of a value that is too large."""

    async def put(self, key, value, **options):
        return await super().put(key, value[: 16 * 2**20], **options)


class OwnClock(Memory):
    """Gives expiry by another clock than `now`."""

    async def get(self, key, *, ttl=None, known=0):
        record = await super().get(key, ttl=ttl, known=known)
        return record and Record(record.value, record.version, record.expires_at + 100)


FAULTY = [
    *(ForgetsVersions, ChecksThenWrites, CountsFromOne, NeverRenews, NeverExpires, IgnoresKnown),
    *(
        OneTooMany,
        RefusesMembers,
        WritesBeforeFull,
        Generous,
        NeverTellsGaps,
        AlwaysGaps,
        KeepsAll,
        Newest,
    ),
    *(NeverWakes, Deaf, Silent, Cuts, OwnClock),
]


@pytest.mark.parametrize("engine", FAULTY)
def test_faults_are_found(engine):
    """An engine with a fault fails, and the message names the check."""
    with pytest.raises((AssertionError, Conflict, Full)) as failure:
        check_backend(engine, clock=lambda: MockClock(autojump_threshold=0), examples=100)

    texts = [str(failure.value), *getattr(failure.value, "__notes__", [])]
    assert any(text.startswith(("in the check: ", "it did not end within")) for text in texts)


class Slow(Memory):
    """Takes longer than a short TTL for some operations, after the first checks."""

    made = 0

    def __init__(self):
        super().__init__()
        type(self).made += 1
        self.operations = 0

    async def _pause(self):
        self.operations += 1
        if self.made > 12 and self.operations % 3 == 0:
            await trio.sleep(0.04)

    async def get(self, key, **options):
        await self._pause()
        return await super().get(key, **options)

    async def put(self, key, value, **options):
        await self._pause()
        return await super().put(key, value, **options)

    async def delete(self, key, **options):
        await self._pause()
        return await super().delete(key, **options)

    async def members(self, group):
        await self._pause()
        return await super().members(group)

    async def append(self, stream, entry, **options):
        await self._pause()
        return await super().append(stream, entry, **options)

    async def read(self, positions, *, wait):
        await self._pause()
        return await super().read(positions, wait=wait)

    async def end_of(self, stream):
        await self._pause()
        return await super().end_of(stream)


def test_slow_engines_pass():
    """Where an operation takes so long that data expires meanwhile, its outcome is not judged."""
    check_backend(Slow, clock=lambda: MockClock(autojump_threshold=0), examples=40)


def test_hypothesis_is_needed(monkeypatch):
    """Where it is missing, one line says what to install."""
    monkeypatch.delitem(sys.modules, "noizu_mcp.testing._backend_model", raising=False)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match=r"need hypothesis: pip install 'noizu-mcp\[testing\]'"):
        check_backend(Memory)
