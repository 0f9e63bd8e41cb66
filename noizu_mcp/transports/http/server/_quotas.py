"""Quotas: the memory and the requests of each client, and of all together.

A bound on all of them alone would let one client use up the share of everybody else.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from weakref import WeakValueDictionary, ref

from ...._limits import PART
from ._asgi import HttpRequest, unavailable
from ._http_options import HttpLimits

if TYPE_CHECKING:
    from ._http_session import HttpSession


#: Sessions that are looked at to find an idle one: more would cost each refused client too much.
LOOKS: Final = 100


class Idle(Protocol):
    """A session, as a table sees it."""

    @property
    def id(self) -> str:
        """The name that the client uses."""

    @property
    def idle(self) -> float:
        """Seconds since it was used."""

    @property
    def is_used(self) -> bool:
        """True while a client waits for an answer or reads a stream."""


Each = TypeVar("Each", bound=Idle)


class SessionTable(OrderedDict[str, Each]):
    """Sessions by their ids, the least recently used first."""

    def touch(self, session: Each) -> None:
        """Note that a session is used now, if it is there."""
        if session.id in self:
            self.move_to_end(session.id)

    def find_idle(self, seconds: float) -> Each | None:
        """Find the session that has been idle for longest.

        Args:
            seconds: How long that has to be at least.
        """
        for _ in range(min(LOOKS, len(self))):
            oldest = next(iter(self.values()))
            if not oldest.is_used:
                return oldest if oldest.idle >= seconds else None  # later ones were used later
            # In use: behind the others, so that the next search does not meet it again.
            self.move_to_end(oldest.id)
        return None


class Account:
    """The quota of one client: a principal, or an address where nobody is verified.

    Args:
        name: The key of the principal, or the address.
        accounts: The accounts of all clients.

    Attributes:
        name: See Args.
        sessions: Its sessions.
        requests: Number of its requests that are being answered.
        held: Bytes of its requests.
        kept: Bytes of events that are kept for it.
    """

    __slots__ = ("__weakref__", "_accounts", "held", "kept", "name", "requests", "sessions")

    def __init__(self, name: str, accounts: "Accounts") -> None:
        self.name = name
        self.sessions: SessionTable[HttpSession] = SessionTable()
        self.requests = 0
        self.held = 0
        self.kept = 0
        self._accounts = accounts

    def begin(self) -> None:
        """Count a request that is to be answered, until `end`.

        Raises:
            Refused: There are too many (503).
        """
        limits = self._accounts.limits
        # The client's own limit first: that one it can keep by itself.
        if self.requests >= limits.streams:
            raise unavailable(f"More than {limits.streams} requests at once", 1)
        if self._accounts.requests >= limits.requests:
            raise unavailable("Too many requests of all clients at once", 1)
        self.requests += 1
        self._accounts.requests += 1

    def end(self) -> None:
        """Count a request no more."""
        self.requests -= 1
        self._accounts.requests -= 1

    def hold(self, size: int) -> None:
        """Count bytes of a request, until `release`.

        Raises:
            Refused: There are too many (503).
        """
        # One client gets a part only: others must find room when it has used up its own.
        room = self._accounts.limits.memory
        if self.held + size > room // PART or self._accounts.held + size > room:
            raise unavailable("Too many bytes of requests at once", 1)
        self.held += size
        self._accounts.held += size

    def release(self, size: int) -> None:
        """Count bytes of a request no more."""
        self.held -= size
        self._accounts.held -= size

    def keep(self, size: int) -> None:
        """Count bytes of events; below 0: of events that are forgotten."""
        self.kept += size
        self._accounts.kept += size

    @property
    def excess(self) -> int:
        """Bytes of events beyond the limits."""
        room = self._accounts.limits.memory
        return max(self.kept - room // PART, self._accounts.kept - room)


class Accounts:
    """The accounts of all clients that hold something.

    Args:
        limits: Their bounds.

    Attributes:
        limits: See Args.
        requests: Number of requests that are being answered.
        held: Bytes of requests.
        kept: Bytes of events that are kept.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self.limits = limits
        self.requests = 0
        self.held = 0
        self.kept = 0
        # Weak: requests, sessions and streams hold their account, so it vanishes with the last of
        # them, and nobody has to remove it.
        self._accounts: WeakValueDictionary[str, Account] = WeakValueDictionary()
        # Held, so that a client with one request after the other needs no new account each time.
        self._latest: Account | None = None
        self._heaviest: Callable[[], Account | None] = _nobody

    def __len__(self) -> int:
        return len(self._accounts)

    def of(self, http: HttpRequest) -> Account:
        """Find the account of the client that sends a request."""
        # Written out: each POST comes here, nearly always from the latest client.
        client = http.scope.get("client")
        name = str(client[0]) if client else "unknown"
        if http.principal is not None:
            name = http.principal.key
        elif ":" in name:
            name = network_of(name)
        account = self._latest
        if account is None or account.name != name:
            account = self._accounts.get(name)
            if account is None:
                account = self._accounts[name] = Account(name, self)
            self._latest = account
        return account

    def note(self, account: Account) -> None:
        """Take note of an account that has one more session."""
        heaviest = self._heaviest()
        if heaviest is None or len(account.sessions) > len(heaviest.sessions):
            self._heaviest = ref(account)

    def heaviest(self) -> Account:
        """Find an account with the most sessions, or at least with more than its share."""
        # A search looks at every account. The last result will do while it has more than the
        # average: each client that is refused would pay for a search otherwise.
        found = self._heaviest()
        if found is None or len(found.sessions) * len(self) <= self.limits.sessions:
            found = max(self._accounts.values(), key=lambda each: len(each.sessions))
            self._heaviest = ref(found)
        return found


def _nobody() -> None:
    """Refer to nothing, as a dead weak reference does."""


def network_of(address: str) -> str:
    """Name the network of an IPv6 address: one client has a whole network of addresses."""
    # /64 is the network of one site; behind `%` stands a zone, which only this machine knows.
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
