"""Sessions in the order in which they were used."""

from collections import OrderedDict
from typing import Final, Protocol, TypeVar

#: Sessions that are looked at to find an idle one: more would cost each refused client too much.
LOOKS: Final = 100


class Idle(Protocol):
    """What a table has to know of a session."""

    @property
    def id(self) -> str:
        """What the client names it by."""

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
                return oldest if oldest.idle >= seconds else None  # what is behind was used later
            self.move_to_end(oldest.id)
        return None
