"""Quotas: memory, requests and sessions of each client, and of all clients together.

With only a total limit, one client could use up the share of all others.

Theory of operation of the memory. Each client has a `Quota` with one number, `held`: the bytes that
are used for it. An object that uses memory for a client has a `Reservation`: a POST for its body
and its answer, an event stream for its queue, a session for the data and the events of its client,
and the tasks of one owner. `Reservation.reserve` counts bytes before they are used, and makes room
if necessary; `release` and `close` subtract them. An object closes its reservation when it ends, so
a failure, a disconnect or a cancellation leaves no count behind.

Room is made in this order, and only as much as needed: stored events of the same client, stored
events of the client that uses the most, idle sessions of that client. A client that has used up its
own part loses only its own events and sessions. Nothing waits between the check of the numbers and
their change.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol
from weakref import WeakValueDictionary, ref

from ...._limits import PART
from ...._util import network_of
from ....engine import throttled_log
from ._asgi import HttpRequest, unavailable
from ._http_options import HttpLimits

#: Maximum sessions checked to find an idle one: more would make each refused client too costly.
LOOKS: Final = 100
#: Seconds that a session must be idle before it can be evicted for another one, or for its memory,
#: unless its client has more than others.
EVICTABLE: Final = 60.0
#: The name of the quota of tasks without a verified principal. No address has spaces.
_UNVERIFIED: Final = "tasks without a principal"


class KeptEvents(Protocol):
    """An event log, whose events can be dropped."""

    def forget(self, size: int) -> None:
        """Drop events of at least so many bytes, if there are as many."""


class HeldSession(Protocol):
    """A session that can be evicted.

    Attributes:
        id: The `Mcp-Session-Id`.
        quota: The quota of its client.
    """

    id: str
    quota: "Quota"

    @property
    def is_used(self) -> bool:
        """True while a client waits for an answer or reads a stream."""
        ...

    @property
    def idle(self) -> float:
        """Seconds since it was last used."""
        ...

    def evict(self) -> None:
        """End it, and remove it from the quotas."""


class SessionTable(OrderedDict[str, HeldSession]):
    """Sessions by their ids, the least recently used first."""

    def find_idle(self, seconds: float) -> HeldSession | None:
        """Find the session that has been idle longest.

        Args:
            seconds: The minimum time that it must have been idle.
        """
        for _ in range(min(LOOKS, len(self))):
            oldest = next(iter(self.values()))
            if not oldest.is_used:
                return oldest if oldest.idle >= seconds else None  # all others were used later
            # In use: moved to the end, so that the next search does not find it again.
            self.move_to_end(oldest.id)
        return None


class Quota:
    """The quota of one client: a principal, or an address without authentication.

    Args:
        name: The key of the principal, or the address.
        quotas: The quotas of all clients.

    Attributes:
        name: See Args.
        quotas: See Args.
        sessions: Its sessions.
        requests: Number of its running requests.
        held: Bytes used for it.
        logs: The event logs of its sessions that store events, the oldest first.
    """

    __slots__ = ("__weakref__", "held", "logs", "name", "quotas", "requests", "sessions")

    def __init__(self, name: str, quotas: "Quotas") -> None:
        self.name = name
        self.quotas = quotas
        self.sessions = SessionTable()
        self.requests = 0
        self.held = 0
        self.logs: OrderedDict[KeptEvents, None] = OrderedDict()

    def excess(self, size: int) -> int:
        """Return by how many bytes the limits would be exceeded; 0 or less if the size fits."""
        quotas = self.quotas
        # One client may use a part only, which leaves room for others.
        return size + max(self.held - quotas.part, quotas.held - quotas.limits.memory)

    def forget_events(self, size: int) -> bool:
        """Drop stored events until there is room; False if that is not enough."""
        quotas = self.quotas
        while (excess := self.excess(size)) > 0:
            logs = self.logs
            if not logs and self.held + size <= quotas.part:
                logs = quotas.heaviest.find(quotas.held).logs or quotas.logs
            if not logs:
                return False
            next(iter(logs)).forget(excess)
        return True

    def make_room(self, size: int) -> bool:
        """Drop stored events, then idle sessions, until there is room; False if not enough."""
        while not self.forget_events(size):
            idle = self._find_idle(size)
            if idle is None:
                text = "HttpLimits.memory is used up: clients are refused"
                throttled_log.warning("HttpLimits.memory", text)
                return False
            idle.evict()
        return True

    def _find_idle(self, size: int) -> HeldSession | None:
        """Find an idle session to evict."""
        quotas = self.quotas
        if self.held + size > quotas.part:
            return self.sessions.find_idle(EVICTABLE)
        heaviest = quotas.heaviest.find(quotas.held)
        # At once, so that a client that uses more cannot lock out others.
        found = heaviest.sessions.find_idle(0) if heaviest.held > self.held + size else None
        return found or quotas.sessions.find_idle(EVICTABLE)


class Reservation:
    """The bytes that one object uses for a client, and its running request, if any.

    Args:
        quota: The quota of the client.

    Attributes:
        quota: See Args.
        size: The bytes.
    """

    __slots__ = ("_closed", "_counted", "quota", "size")

    def __init__(self, quota: Quota) -> None:
        self.size = 0
        self.quota = quota
        self._closed = False
        self._counted = False  # whether it counts as a request of the quota

    def begin(self) -> None:
        """Count a running request, until `close`.

        Raises:
            HttpRefusal: There are too many (503).
        """
        quota, quotas = self.quota, self.quota.quotas
        # The client's own limit first: a client can respect it by itself.
        if quota.requests >= quotas.limits.streams:
            raise unavailable(f"More than {quotas.limits.streams} requests at once", 1)
        if quotas.requests >= quotas.limits.requests:
            raise unavailable("Too many requests of all clients at once", 1)
        quota.requests += 1
        quotas.requests += 1
        self._counted = True

    def reserve(self, size: int) -> bool:
        """Count more bytes, and make room for them if necessary.

        Returns:
            False if there is no room, or the reservation is closed. Nothing is counted then.
        """
        quota = self.quota
        quotas = quota.quotas
        # `excess`, inlined: every request runs this.
        if (
            quota.held + size > quotas.part or quotas.held + size > quotas.limits.memory
        ) and not quota.make_room(size):
            return False
        if self._closed:  # checked last: the end of its own session may have made the room
            return False
        quota.held += size
        quotas.held += size
        self.size += size
        return True

    def release(self, size: int) -> None:
        """Subtract bytes; does nothing once the reservation is closed."""
        if not self._closed:
            self.quota.held -= size
            self.quota.quotas.held -= size
            self.size -= size

    def close(self) -> None:
        """Subtract all bytes, and the request; a second call does nothing."""
        self.release(self.size)
        self._closed = True
        if self._counted:
            self._counted = False
            self.quota.requests -= 1
            self.quota.quotas.requests -= 1


class Quotas:
    """The quotas of all active clients; the `TaskMemory` of an application.

    Args:
        limits: The limits of one client and of all.

    Attributes:
        limits: See Args.
        part: Maximum bytes for one client.
        requests: Number of running requests.
        held: Bytes in use.
        sessions: All sessions.
        logs: The event logs that store events, the oldest first.
        heaviest: Finds the quota with the most bytes.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self.limits = limits
        self.part = limits.memory // PART
        self.requests = 0
        self.held = 0
        self.sessions = SessionTable()
        self.logs: OrderedDict[KeptEvents, None] = OrderedDict()
        # Weak: requests, sessions and streams refer to their quota, which is freed with the last of
        # them.
        self._quotas: WeakValueDictionary[str, Quota] = WeakValueDictionary()
        # Kept alive, so that a client with consecutive requests does not need a new quota each
        # time.
        self._latest: Quota | None = None
        self._tasks: dict[str, Reservation] = {}
        self._busiest = Most(self._quotas, lambda quota: len(quota.sessions))
        self.heaviest = Most(self._quotas, lambda quota: quota.held)

    def __len__(self) -> int:
        return len(self._quotas)

    def of(self, http: HttpRequest) -> Quota:
        """Return the quota of the client of a request."""
        # Inlined: every POST runs this, usually for the latest client.
        client = http.scope.get("client")
        name = str(client[0]) if client else "unknown"
        if http.principal is not None:
            name = http.principal.key
        elif ":" in name:
            name = network_of(name)
        quota = self._latest
        if quota is None or quota.name != name:
            quota = self._latest = self.named(name)
        return quota

    def named(self, name: str) -> Quota:
        """Return the quota of a client by the key of its principal, or its address."""
        quota = self._quotas.get(name)
        if quota is None:
            quota = self._quotas[name] = Quota(name, self)
        return quota

    def add_session(self, session: HeldSession) -> None:
        """Add a session."""
        self.sessions[session.id] = session.quota.sessions[session.id] = session
        self._busiest.note(session.quota)

    def remove_session(self, session: HeldSession) -> None:
        """Remove a session."""
        del self.sessions[session.id], session.quota.sessions[session.id]

    def touch_session(self, session: HeldSession) -> None:
        """Record that a session was used."""
        self.sessions.move_to_end(session.id)
        session.quota.sessions.move_to_end(session.id)

    def find_spare(self, quota: Quota) -> HeldSession | None:
        """Find a session to evict for a new one of a client."""
        busiest = self._busiest.find(len(self.sessions))
        # A client with the most sessions gives up one of its own. A client with two more than the
        # new session's client loses an idle session at once, so others cannot lock a client out.
        # Otherwise a session must have been idle for a minute.
        if busiest is quota and len(quota.sessions) > 1:
            return quota.sessions.find_idle(EVICTABLE)
        if len(busiest.sessions) > len(quota.sessions) + 1:
            return busiest.sessions.find_idle(0)
        return self.sessions.find_idle(EVICTABLE)

    def make_room(self, owner: str | None, size: int) -> bool:
        """Make room for bytes of a task; see `TaskMemory`."""
        quota = self.named(owner or _UNVERIFIED)
        return quota.excess(size) <= 0 or quota.make_room(size)

    def count(self, owner: str | None, change: int) -> None:
        """Count more or fewer bytes of tasks; see `TaskMemory`."""
        name = owner or _UNVERIFIED
        reservation = self._tasks.get(name)
        if reservation is None:
            reservation = self._tasks[name] = Reservation(self.named(name))
        if change > 0:
            reservation.reserve(change)  # `make_room` was called before
        else:
            reservation.release(-change)
        if not reservation.size:
            del self._tasks[name]


class Most:
    """Finds a quota with the most of something, or at least with more than the average.

    Args:
        quotas: The quotas.
        amount: Returns the amount that a quota has.
    """

    __slots__ = ("_amount", "_found", "_quotas")

    def __init__(
        self, quotas: WeakValueDictionary[str, Quota], amount: Callable[[Quota], int]
    ) -> None:
        self._quotas = quotas
        self._amount = amount
        self._found: Callable[[], Quota | None] = _no_quota

    def note(self, quota: Quota) -> None:
        """Check a quota that has more than before."""
        found = self._found()
        if found is None or self._amount(quota) > self._amount(found):
            self._found = ref(quota)

    def find(self, total: int) -> Quota:
        """Find the quota; there must be at least one.

        Args:
            total: The sum over all quotas.
        """
        # A search checks every quota. The last result is used while it has more than the average:
        # otherwise each refused client would cost a search.
        found = self._found()
        if found is None or self._amount(found) * len(self._quotas) <= total:
            found = max(self._quotas.values(), key=self._amount)
            self._found = ref(found)
        return found


def size_of(value: object) -> int:
    """Return the bytes of a value and of the values in it; parts of other objects are not counted.

    Args:
        value: Any value; cycles are allowed.
    """
    sizes: dict[int, int] = {}
    rest = [value]
    while rest:
        each = rest.pop()
        if id(each) not in sizes:
            sizes[id(each)] = sys.getsizeof(each)
            if isinstance(each, dict):
                rest += [*each, *each.values()]
            elif isinstance(each, list | tuple | set | frozenset):
                rest += each
    return sum(sizes.values())


def _no_quota() -> None:
    """Return None, like a dead weak reference."""
