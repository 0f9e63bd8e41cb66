"""Twenty distributed faults, each put into the package for a while: do the laws find them?

`python -m tests.nodes.seeded_faults` says how many are found, and by which seed.
"""

import itertools
import sys
from contextlib import contextmanager
from time import monotonic

import pytest
import trio

from noizu_mcp.backends import Conflict, Memory
from noizu_mcp.server.changes import _shared
from noizu_mcp.server.nodes import _node, _queue, _records
from noizu_mcp.transports.http.server import _shared_feed, _shared_session, _shared_sessions

from . import laws

Node, Records = _node.Node, _records.Records
#: The clients of one trial. Sessions find what stateless clients do not, and the reverse.
ERAS = [laws.SESSION, laws.STATELESS, laws.SESSION]
FAULTS = {}


def fault(function):
    """Register a fault: a function that changes the package with a `MonkeyPatch`."""
    FAULTS[function.__name__] = function
    return function


@fault
def lost_wake_up(patch):
    """A reader that waits does not learn of a new entry."""
    append = Memory.append

    async def quiet(self, *args, **options):
        self._wake = lambda: None
        try:
            return await append(self, *args, **options)
        finally:
            del self._wake

    patch.setattr(Memory, "append", quiet)


@fault
def stale_lease(patch):
    """A node renews its lease too late."""
    patch.setattr(_node, "RENEWAL", 25.0)
    patch.setattr(_node, "min", lambda *seconds: max(seconds), raising=False)


@fault
def change_lost_with_a_failure(patch):
    """What could not be appended is not tried again."""
    patch.setattr(_queue.MessageQueue, "put_back", lambda self, taken: None)


@fault
def dedupe_against_an_entry_in_flight(patch):
    """A change that is being sent counts as queued."""
    take = _queue.MessageQueue.take

    def keep(self):
        before = set(self._changes)
        taken = take(self)
        self._changes |= before
        return taken

    patch.setattr(_queue.MessageQueue, "take", keep)


@fault
def gap_not_told(patch):
    """Entries that were dropped are not noticed."""
    patch.setattr(_shared.SharedChanges, "report_all", lambda self: None)


@fault
def version_reused(patch):
    """Versions count from 1 for each key."""
    put = Memory.put

    async def count(self, key, value, **options):
        await put(self, key, value, **options)
        stored = self._records[key]
        seen = self.__dict__.setdefault("seen", {})
        stored.version = seen[key] = seen.get(key, 0) % 3 + 1
        return stored.version

    patch.setattr(Memory, "put", count)


@fault
def inbox_read_by_two(patch):
    """Two read one inbox, and each message reaches one of them."""
    dispatch, entries = Node._dispatch, itertools.count()

    def half(self, entry):
        if entry.stream == _node.ALL or next(entries) % 2:
            dispatch(self, entry)

    patch.setattr(Node, "_dispatch", half)


@fault
def compare_without_set(patch):
    """A write ignores the version that it expects."""
    put = Memory.put

    async def overwrite(self, key, value, *, version=None, **options):
        return await put(self, key, value, version=None, **options)

    patch.setattr(Memory, "put", overwrite)


@fault
def lost_update(patch):
    """A record is read and written without a comparison, with time in between."""

    async def change(self, key, edit, *, ttl, attempts=50):
        stored = await self.get(key)
        if stored is None or (value := edit(stored.value)) is None:
            return stored
        await trio.sleep(0.2)
        return _records.Stored(value, await self.put(key, value, ttl=ttl))

    patch.setattr(Records, "change", change)


@fault
def change_not_shared(patch):
    """A node tells its own clients only."""
    patch.setattr(_shared.SharedChanges, "_publish", lambda self, change: None)


@fault
def copy_not_refreshed(patch):
    """A node serves its copy of a session, whatever the record says."""

    async def look_up(self, session):
        return True

    patch.setattr(_shared_sessions.SharedSessions, "look_up", look_up)


@fault
def loss_not_noticed(patch):
    """A node does not see that the epoch has changed."""
    patch.setattr(Node, "note_loss", lambda self: False)


@fault
def nothing_written_again(patch):
    """After a loss a node writes nothing."""

    async def write_again(self, session):
        return None

    patch.setattr(_shared_sessions.SharedSessions, "write_again", write_again)


@fault
def older_copy_overrules(patch):
    """After a loss the last writer counts, whatever it knew."""
    patch.setattr(_shared_session.SharedSession, "known", property(lambda self: 2**50))


@fault
def reader_not_told(patch):
    """The node with the stream does not learn what another one has watched."""

    async def tell_reader(self, uri, *, is_watched):
        return None

    patch.setattr(_shared_feed.SharedFeed, "_tell_reader", tell_reader)


@fault
def counted_by_each_node(patch):
    """A rate limit holds for each node."""

    async def count(self, name, *, limit, period):
        return None

    patch.setattr(Node, "count", count)


@fault
def the_dead_are_not_found(patch):
    """No node acts on the death of another one."""

    async def bury(self, node):
        return None

    patch.setattr(Node, "_bury", bury)


@fault
def judged_too_early(patch):
    """After an outage each node takes all others for dead."""
    patch.setattr(
        Node, "_steady_since", property(lambda self: -1e9, lambda self, at: None), raising=False
    )


@fault
def write_after_fencing(patch):
    """A task that is another node's is ended nevertheless."""
    put = Records.put

    async def force(self, key, value, *, version=None, **options):
        if key.startswith("t:"):
            version = None
        return await put(self, key, value, version=version, **options)

    patch.setattr(Records, "put", force)
    patch.setattr(
        Node, "on_declared_dead", property(lambda self: [], lambda self, hooks: None), raising=False
    )


@fault
def known_before_alive(patch):
    """A node that enters is known for a moment, and not alive."""

    async def enter(self):
        self._version = await self.backend.put(
            f"{_node._KNOWN}:{self.id}",
            b"",
            ttl=_node.KEEP_SECONDS,
            version=self._version,
            groups={_node._KNOWN: _node.MAX_NODES},
        )
        await trio.sleep(0.5)
        await self.backend.put(
            f"{_node._ALIVE}:{self.id}",
            b"",
            ttl=self.backend.lease,
            groups={_node._ALIVE: _node.MAX_NODES},
        )
        self._renewed_at = trio.current_time()

    patch.setattr(Node, "_enter", enter)


@fault
def lost_renewal_counts_as_death(patch):
    """A node whose answer was lost gives its tasks up, and goes on."""
    patch.setattr(Conflict, "__init__", lambda self, _: setattr(self, "version", 0))


@contextmanager
def seeded_fault(name):
    """Put a fault into the package while the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        FAULTS[name](patch)
        yield


def find(name, seconds):
    """Run trials until a law is broken.

    Returns:
        The seed and what was found; None when the time is over.
    """
    end, seed = monotonic() + seconds, 0
    with seeded_fault(name):
        while monotonic() < end:
            try:
                # Many faults at once excuse much: every other day is calmer.
                days = ((), laws.FAULTS, ("kill", "stop"), laws.FAULTS)
                trial = laws.run_trial(seed, eras=ERAS, time_limit=300.0, faults=days[seed % 4])
                findings = trial.world.findings
            except Exception as error:  # whatever breaks finds the fault
                findings = [repr(error)]
            if findings:
                return seed, findings[0]
            seed += 1
    return None


def main():
    """Look for each fault for a twentieth of a minute, or the seconds of the argument."""
    seconds = float(sys.argv[1]) if sys.argv[1:] else 60 / len(FAULTS)
    began, found = monotonic(), 0
    for name in FAULTS:
        result = find(name, seconds)
        found += result is not None
        print(
            f"{name:34} {'not found' if result is None else f'seed {result[0]}: {result[1][:90]}'}",
            flush=True,
        )
    print(f"{found} of {len(FAULTS)} in {monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
