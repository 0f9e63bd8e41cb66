"""The places of a host: which connections there are, and which of them makes room for another."""

from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

import trio

#: Seconds after which a client that owes the rest of a request may lose its place: far more than
#: lies between two packets of one that is sending. Bytes take off the seconds that they may take.
QUIET: Final = 1.0


class Occupant(Protocol):
    """A thing that has a place."""

    def drop(self) -> None:
        """Leave at once."""
        ...


_Occupant = TypeVar("_Occupant", bound=Occupant)


class Places(Generic[_Occupant]):
    """A bounded number of connections.

    One that waits for the answer to a whole request keeps its place, however long that takes.

    Args:
        limit: How many there may be.
    """

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._all: Final[dict[_Occupant, None]] = {}
        # In the order in which they became idle.
        self._idle: Final[dict[_Occupant, None]] = {}
        # Those that wait for the rest of a request, and since when.
        self._waiting: Final[dict[_Occupant, float]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[_Occupant]:
        return iter(self._all)

    def add(self, occupant: _Occupant) -> None:
        """Give a place to a connection; nothing has come from it yet."""
        self._all[occupant] = self._idle[occupant] = None

    def remove(self, occupant: _Occupant) -> None:
        """Take back the place of a connection, if it still has one."""
        self._all.pop(occupant, None)
        self._idle.pop(occupant, None)
        self._waiting.pop(occupant, None)

    def set_idle(self, occupant: _Occupant, *, idle: bool) -> None:
        """Note that a connection has nothing to do any more, or has something."""
        self._idle.pop(occupant, None)
        if idle and occupant in self._all:
            self._idle[occupant] = None

    def set_waiting(self, occupant: _Occupant, since: float | None) -> None:
        """Note that a connection waits for the rest of a request, and since when; None: no more."""
        self._waiting.pop(occupant, None)
        if since is not None and occupant in self._all:
            self._waiting[occupant] = since

    def make_room(self) -> bool:
        """Tell whether there is a place for one more; if need be another one loses it.

        That is the one that was idle for longest, else the one that has owed the rest of a request
        for longest, be it with its first byte: thousands of them cost a client next to nothing.
        """
        if len(self._all) < self._limit:
            return True
        oldest = self._oldest()
        if oldest is None:
            return False
        self.remove(oldest)  # at once, so that it makes room for one only
        oldest.drop()
        return True

    def _oldest(self) -> _Occupant | None:
        for each in self._idle:
            return each
        oldest = min(self._waiting, key=self._waiting.__getitem__, default=None)
        if oldest is None or trio.current_time() - self._waiting[oldest] < QUIET:
            return None
        return oldest
