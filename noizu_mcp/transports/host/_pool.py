"""The connections of a host: limited in number, shared between addresses, idle ones first."""

from collections import Counter
from collections.abc import Hashable, Iterable
from math import inf
from typing import Final, Protocol

import trio

#: Seconds that a client may owe the rest of a body before its connection may be closed to make
#: room: far longer than the gap between two packets of a sending client.
QUIET: Final = 1.0
#: Seconds that an application may take before the host watches for its client's disconnect. An
#: application that wants to know at once calls `receive`.
WATCH_AFTER: Final = 1.0


class PooledConnection(Protocol):
    """A connection, as the pool uses it."""

    def drop(self) -> None:
        """Close at once."""
        ...

    def watch(self) -> None:
        """Start to watch for the client's disconnect."""
        ...


class ConnectionPool:
    """All connections, and waiting ones by kind, each kind in order of time.

    A connection is idle between two requests, and until the first one is complete. While it waits
    for the answer to a complete request it keeps its place, however long that takes, unless its
    address has more connections than others.

    One task, `sweep`, enforces the deadlines that every request has. A timer for each request would
    cost as much as parsing it.

    Args:
        limit: The maximum number of connections.
        idle_timeout: Seconds that a connection may be idle between two requests.

    Attributes:
        idle: The idle connections, with the time on trio's clock since when; infinity for
            connections with another deadline, because no request was answered yet or one has begun.
        owing: Connections whose clients owe a part of a body, with the time since when.
        working: Connections whose applications wait, with the time since when.
        unbegun: The number of accepted connections whose tasks have not begun.
    """

    def __init__(self, limit: int, idle_timeout: float) -> None:
        self.idle: Final[dict[PooledConnection, float]] = {}
        self.owing: Final[dict[PooledConnection, float]] = {}
        self.working: Final[dict[PooledConnection, float]] = {}
        self.unbegun = 0
        self._all: Final[dict[PooledConnection, Hashable]] = {}
        self._counts: Final[Counter[Hashable]] = Counter()  # by address
        self._limit: Final = limit
        self._idle_timeout: Final = idle_timeout
        self._due = inf  # when the sweeper wakes up
        self._sleeping = trio.CancelScope()

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: PooledConnection, address: Hashable) -> None:
        """Add a new connection of an address.

        It keeps its place until its task has looked for a request (`begin`): many connections are
        accepted in one turn of the loop, and the last one must not close the first.
        """
        self._all[connection] = address
        self._counts[address] += 1
        self.unbegun += 1

    def begin(self, connection: PooledConnection) -> None:
        """Record that the task of a new connection has begun. It is idle until it has a request."""
        self.unbegun -= 1
        self.idle[connection] = inf

    def remove(self, connection: PooledConnection) -> None:
        """Remove a connection, if it is still known, which makes room for another one."""
        self._give_up_place(connection)
        self.working.pop(connection, None)

    def note_working(self, connection: PooledConnection) -> None:
        """Record that the application of a connection waits."""
        now = self.working[connection] = trio.current_time()
        if now + WATCH_AFTER < self._due:
            # Usually the sweeper wakes up within a second anyway, and moving its deadline costs
            # more.
            self._due = self._sleeping.deadline = now + WATCH_AFTER

    def make_room(self, address: Hashable) -> bool:
        """Tell whether there is room for one more connection of an address; may close another one.

        No address with fewer connections than this one loses a connection. The address with the
        most loses one first, if it has at least two more: an idle one, or else any. So a client
        that keeps its connections busy, with calls or streams that hang, locks no other client out,
        and two addresses never take the same place from each other in turns. If no address has two
        more, an idle connection is closed. While `unbegun`, no busy connection is closed: there may
        be room in the next turn.
        """
        if len(self._all) < self._limit:
            return True
        own = self._counts[address]
        heaviest, count = self._counts.most_common(1)[0]
        if count < own + 2:
            return self.drop_one(max(own, 1))
        if self.drop_one(count):
            return True
        if self.unbegun:
            return False
        self._drop(next(each for each, its in self._all.items() if its == heaviest))
        return True

    def drop_one(self, least: int = 1) -> bool:
        """Close the least useful connection without a running request, if there is one.

        It belongs to the address with the most connections. It is the one that was idle for the
        longest time, or else the one with the longest owed part of a body: a client can easily
        open thousands of both.

        Args:
            least: The minimum number of connections of its address.
        """
        quiet_since = trio.current_time() - QUIET
        quiet = [each for each, since in self.owing.items() if since <= quiet_since]
        kinds: tuple[Iterable[PooledConnection], ...] = (
            self.idle,  # the oldest first
            sorted(quiet, key=self.owing.__getitem__),
        )
        for kind in kinds:
            found = max(kind, key=self._count_beside, default=None)
            if found is not None and self._count_beside(found) >= least:
                self._drop(found)
                return True
        return False

    def _count_beside(self, connection: PooledConnection) -> int:
        """Count the connections from the address of a connection; 0 if it was removed."""
        return self._counts[self._all.get(connection)]

    def _drop(self, connection: PooledConnection) -> None:
        self._give_up_place(connection)  # at once, so that it makes room only once
        connection.drop()

    def _give_up_place(self, connection: PooledConnection) -> None:
        # It may still be working: `sweep` lets its application see the disconnect.
        address = self._all.pop(connection, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]
        self.idle.pop(connection, None)
        self.owing.pop(connection, None)

    async def sweep(self) -> None:
        """Close connections that were idle for too long; watch connections that work for long."""
        while True:
            now = trio.current_time()
            for each, since in list(self.idle.items()):
                if since + self._idle_timeout <= now:
                    each.drop()
            while self.working:
                each, since = next(iter(self.working.items()))
                if since + WATCH_AFTER > now:
                    break
                del self.working[each]
                each.watch()
            # Both are in order of time, except idle ones with another deadline.
            dues = [since + WATCH_AFTER for since in list(self.working.values())[:1]]
            dues += [since + self._idle_timeout for since in self.idle.values() if since < inf][:1]
            # A connection that becomes idle now has at least that long.
            self._due = min([*dues, now + self._idle_timeout])
            with trio.CancelScope(deadline=self._due) as self._sleeping:
                await trio.sleep_forever()
