"""Quotas: the memory, the requests and the sessions of each client, and of all together.

A bound on all of them alone would let one client use up the share of everybody else.

Theory of operation of the memory. Each client has an `Account` with one number, `held`: the bytes
that are held for it. An object that holds bytes for a client has a `Hold`: the request of a POST
for its body and its answer, an event stream for its queue, a session for its client's data and its
events, and the tasks of one owner. `Hold.reserve` counts bytes before they are held, and makes room
if there is none; `release` and `close` count them no more. An object closes its hold when it ends,
so a failure, a disconnect or a cancellation leaves no count behind.

Room is made in this order, and only as much as needed: kept events of the same client, kept events
of the client that holds the most, idle sessions of that client. A client that has used up its own
part pays with its own events and sessions only. Nothing waits between the look at the numbers and
their change.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary, ref

from ...._limits import PART
from ...._util import network_of
from ....engine import throttled_log
from ._asgi import HttpRequest, unavailable
from ._http_options import HttpLimits

if TYPE_CHECKING:
    from ._event_store import History
    from ._http_session import HttpSession


#: Sessions that are looked at to find an idle one: more would cost each refused client too much.
LOOKS: Final = 100
#: Seconds that a session must have been idle before another one may take its place, or its memory,
#: unless its client has more of that than others.
EVICTABLE: Final = 60.0
#: The name of the account of all tasks without a verified principal; no address has spaces.
_UNVERIFIED: Final = "tasks without a principal"


class SessionTable(OrderedDict[str, "HttpSession"]):
    """Sessions by their ids, the least recently used first."""

    def find_idle(self, seconds: float) -> "HttpSession | None":
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
        accounts: See Args.
        sessions: Its sessions.
        requests: Number of its requests that are being answered.
        held: Bytes that are held for it.
        histories: The sessions' histories that keep events, the oldest first.
    """

    __slots__ = ("__weakref__", "accounts", "held", "histories", "name", "requests", "sessions")

    def __init__(self, name: str, accounts: "Accounts") -> None:
        self.name = name
        self.accounts = accounts
        self.sessions = SessionTable()
        self.requests = 0
        self.held = 0
        self.histories: OrderedDict[History, None] = OrderedDict()

    def begin(self) -> None:
        """Count a request that is to be answered, until `finish`.

        Raises:
            Refused: There are too many (503).
        """
        limits = self.accounts.limits
        # The client's own limit first: that one it can keep by itself.
        if self.requests >= limits.streams:
            raise unavailable(f"More than {limits.streams} requests at once", 1)
        if self.accounts.requests >= limits.requests:
            raise unavailable("Too many requests of all clients at once", 1)
        self.requests += 1
        self.accounts.requests += 1

    def finish(self) -> None:
        """Count a request no more."""
        self.requests -= 1
        self.accounts.requests -= 1

    def excess(self, size: int) -> int:
        """Return how far more bytes would exceed the limits; not above 0: they would not."""
        accounts = self.accounts
        # One client gets a part only: others must find room when it has used up its own.
        return size + max(self.held - accounts.part, accounts.held - accounts.limits.memory)

    def forget_events(self, size: int) -> bool:
        """Forget kept events until there is room; False if that does not suffice."""
        accounts = self.accounts
        while (excess := self.excess(size)) > 0:
            histories = self.histories
            if not histories and self.held + size <= accounts.part:
                histories = accounts.heaviest.find(accounts.held).histories or accounts.histories
            if not histories:
                return False
            next(iter(histories)).forget(excess)
        return True

    def make_room(self, size: int) -> bool:
        """Give up kept events, then idle sessions, until there is room; False if there is none."""
        while not self.forget_events(size):
            idle = self._find_idle(size)
            if idle is None:
                text = "HttpLimits.memory is used up: clients are refused"
                throttled_log.warning("HttpLimits.memory", text)
                return False
            idle.stop()
        return True

    def _find_idle(self, size: int) -> "HttpSession | None":
        """Find a session that makes room."""
        accounts = self.accounts
        if self.held + size > accounts.part:
            return self.sessions.find_idle(EVICTABLE)
        heaviest = accounts.heaviest.find(accounts.held)
        # At once, so that nobody is locked out by a client that holds more.
        found = heaviest.sessions.find_idle(0) if heaviest.held > self.held + size else None
        return found or accounts.sessions.find_idle(EVICTABLE)


class Hold:
    """The bytes that one object holds for a client, and the request that it answers, if any.

    Args:
        account: The account of the client.

    Attributes:
        account: See Args.
        size: The bytes.
    """

    __slots__ = ("_closed", "_counted", "account", "size")

    def __init__(self, account: Account) -> None:
        self.size = 0
        self.account = account
        self._closed = False
        self._counted = False  # among the requests of the account

    def begin(self) -> None:
        """Count a request that is to be answered, until `close`.

        Raises:
            Refused: There are too many (503).
        """
        self.account.begin()
        self._counted = True

    def reserve(self, size: int) -> bool:
        """Count more bytes, and make room for them if need be.

        Returns:
            False if there is no room, or the hold is closed: then nothing is counted.
        """
        account = self.account
        accounts = account.accounts
        # `excess`, written out: every request passes here.
        if (
            account.held + size > accounts.part or accounts.held + size > accounts.limits.memory
        ) and not account.make_room(size):
            return False
        # Asked last: the room may have been made by the end of the session of this very hold.
        if self._closed:
            return False
        account.held += size
        accounts.held += size
        self.size += size
        return True

    def release(self, size: int) -> None:
        """Count bytes no more; once the hold is closed, there are none to release."""
        if not self._closed:
            self.account.held -= size
            self.account.accounts.held -= size
            self.size -= size

    def close(self) -> None:
        """Count nothing any more; closing twice is fine."""
        self.release(self.size)
        self._closed = True
        if self._counted:
            self._counted = False
            self.account.finish()


class Accounts:
    """The accounts of all clients that hold something; the `TaskMemory` of an application.

    Args:
        limits: Their bounds.

    Attributes:
        limits: See Args.
        part: Bytes that may be held for one client.
        requests: Number of requests that are being answered.
        held: Bytes that are held.
        sessions: All sessions.
        histories: The histories that keep events, the oldest first.
        busiest: Finds the account with the most sessions.
        heaviest: Finds the account with the most bytes.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self.limits = limits
        self.part = limits.memory // PART
        self.requests = 0
        self.held = 0
        self.sessions = SessionTable()
        self.histories: OrderedDict[History, None] = OrderedDict()
        # Weak: requests, sessions and streams hold their account, so it vanishes with the last of
        # them, and nobody has to remove it.
        self._accounts: WeakValueDictionary[str, Account] = WeakValueDictionary()
        # Held, so that a client with one request after the other needs no new account each time.
        self._latest: Account | None = None
        self._tasks: dict[str, Hold] = {}
        self.busiest = Most(self._accounts, lambda account: len(account.sessions))
        self.heaviest = Most(self._accounts, lambda account: account.held)

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
            account = self._latest = self.named(name)
        return account

    def named(self, name: str) -> Account:
        """Find the account of a client by the key of its principal, or its address."""
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = Account(name, self)
        return account

    def make_room(self, owner: str | None, size: int) -> bool:
        """Make room for bytes of a task; see `TaskMemory`."""
        account = self.named(owner or _UNVERIFIED)
        return account.excess(size) <= 0 or account.make_room(size)

    def count(self, owner: str | None, change: int) -> None:
        """Count more or fewer bytes of tasks; see `TaskMemory`."""
        name = owner or _UNVERIFIED
        hold = self._tasks.get(name)
        if hold is None:
            hold = self._tasks[name] = Hold(self.named(name))
        if change > 0:
            hold.reserve(change)  # `make_room` has made it
        else:
            hold.release(-change)
        if not hold.size:
            del self._tasks[name]


class Most:
    """Finds an account with the most of something, or at least with more than the average.

    Args:
        accounts: The accounts.
        amount: Returns the amount that an account has.
    """

    __slots__ = ("_accounts", "_amount", "_found")

    def __init__(
        self, accounts: WeakValueDictionary[str, Account], amount: Callable[[Account], int]
    ) -> None:
        self._accounts = accounts
        self._amount = amount
        self._found: Callable[[], Account | None] = _nobody

    def note(self, account: Account) -> None:
        """Take note of an account that has more than before."""
        found = self._found()
        if found is None or self._amount(account) > self._amount(found):
            self._found = ref(account)

    def find(self, total: int) -> Account:
        """Find the account; there must be one.

        Args:
            total: The amount that all accounts have.
        """
        # A search looks at every account. The last result will do while it has more than the
        # average: each client that is refused would pay for a search otherwise.
        found = self._found()
        if found is None or self._amount(found) * len(self._accounts) <= total:
            found = max(self._accounts.values(), key=self._amount)
            self._found = ref(found)
        return found


def size_of(value: object) -> int:
    """Add up the bytes of a value and of the values in it; other objects count without their parts.

    Args:
        value: Any value; one that contains itself is fine.
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


def _nobody() -> None:
    """Refer to nothing, as a dead weak reference does."""
