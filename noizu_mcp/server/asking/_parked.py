"""Handlers that wait for the retry of their request (2026-07-28 `basic/patterns/mrtr`).

Theory of operation. A parked handler is the task of a request that was answered with questions. It
stays in its nursery and waits at its questions. The table holds its request under the exact text of
the state that the answer carried, which no client can forge: it is sealed with a random nonce. The
entry leaves the table once, in one of three ways. `take` gives it to the first retry that has this
text and the owner that the state is bound to. `discard` removes it when its task ends, by itself or
with the server. Or it is given up, when its time is over or to make room, and its task is
cancelled. A retry that comes later finds no entry. It opens the state, which has everything to run
the handler from the start.

Number, bytes and time are bounded, and one client may use a part of the first two only. The oldest
handler is removed to make room: its user has most likely gone. All are parked for the same time, so
the oldest also expires first, and one task, `_expire`, waits for it.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from ..._limits import PART, Limits
from ..._value import JSONObject
from ...jsonrpc import memory_of

if TYPE_CHECKING:
    from ...engine import SpawnTask
    from .._server_request import ServerRequest


#: Maximum bytes of memory for each character of JSON text: `{}` takes 64.
EXPANSION: Final = 32
#: Bytes of memory below which the size is not counted exactly.
SMALL: Final = 64 * 1024


class _Parked(NamedTuple):
    ctx: "ServerRequest"
    binding: JSONObject
    expires: float
    client: str | None
    size: int


class _Share:
    """Parked handlers in order of arrival, and their share of the room.

    Args:
        number: The maximum number of handlers.
        memory: The maximum number of bytes.
    """

    __slots__ = ("_held", "_memory", "_number", "parked")

    def __init__(self, number: int, memory: int) -> None:
        self._number = number
        self._memory = memory
        self._held = 0
        self.parked: dict[str, _Parked] = {}

    def add(self, state: str, parked: _Parked) -> None:
        self.parked[state] = parked
        self._held += parked.size

    def remove(self, state: str) -> None:
        self._held -= self.parked.pop(state).size

    def could_hold(self, size: int) -> bool:
        return self._number > 0 and size <= self._memory

    def has_room(self, size: int) -> bool:
        return len(self.parked) < self._number and self._held + size <= self._memory


class ParkedHandlers:
    """The parked handlers of one served server.

    Args:
        limits: The limits of number, bytes and time.
        ttl: Seconds for which a state is valid.
        spawn: Runs the task that gives up expired handlers.
    """

    def __init__(self, limits: Limits, ttl: float, spawn: "SpawnTask") -> None:
        self._seconds = min(limits.parked_seconds, ttl)
        self._spawn = spawn
        self._expiring = False
        self._all = _Share(limits.parked, limits.parked_memory)
        # Rounded up, so that each client may have at least one.
        self._part = -(-limits.parked // PART), limits.parked_memory // PART
        self._shares: dict[str, _Share] = {}

    def __len__(self) -> int:
        return len(self._all.parked)

    def add(self, state: str, binding: JSONObject, ctx: "ServerRequest") -> bool:
        """Park the handler of a request, and give up older ones to make room.

        Args:
            state: The state that the retry will carry.
            binding: The owner of the state.
            ctx: The request; it is answered already.

        Returns:
            False if there is no room for it.
        """
        client = ctx.envelope.origin.client
        size = len(state) + _memory_of(ctx)
        # A client with a server of its own, as on a pipe, has no name and may use all the room.
        shares = [self._all]
        if client is not None:
            shares.insert(0, self._shares.get(client) or _Share(*self._part))
        if not all(share.could_hold(size) for share in shares):
            return False
        for share in shares:
            while not share.has_room(size):
                self._give_up(next(iter(share.parked)))
        parked = _Parked(ctx, binding, trio.current_time() + self._seconds, client, size)
        for share in shares:
            share.add(state, parked)
        if client is not None:
            self._shares[client] = shares[0]
        if not self._expiring:
            self._expiring = True
            self._spawn(self._expire)
        return True

    def take(self, state: str, binding: JSONObject) -> "ServerRequest | None":
        """Remove and return the handler that waits for a state. At most one caller gets it.

        Args:
            state: The state of a retry.
            binding: The owner of the retry's states.

        Returns:
            The request that was answered with this state; None if its handler is gone, or the owner
            differs.
        """
        parked = self._all.parked.get(state)
        if parked is None or parked.binding != binding:
            return None
        self.discard(state)
        return parked.ctx

    def waits_for(self, state: object) -> bool:
        """Tell whether a handler waits for a state."""
        return state in self._all.parked

    def give_up(self, tail: str) -> None:
        """Cancel the handler that waits for the state with this end: another node has its retry."""
        for state in self._all.parked:
            if state.endswith(tail):
                self._give_up(state)
                return

    def discard(self, state: str) -> None:
        """Remove a handler, if it is still there."""
        parked = self._all.parked.get(state)
        if parked is None:
            return
        self._all.remove(state)
        if parked.client is not None:
            share = self._shares[parked.client]
            share.remove(state)
            # Clients come and go while the server runs: an empty share must not stay.
            if not share.parked:
                del self._shares[parked.client]

    async def _expire(self) -> None:
        """Give up handlers whose time is over, while there are any."""
        while self._all.parked:
            state, oldest = next(iter(self._all.parked.items()))
            if trio.current_time() < oldest.expires:
                await trio.sleep_until(oldest.expires)
            else:
                self._give_up(state)
        # No checkpoint since the table was seen empty: the next handler starts a new task.
        self._expiring = False

    def _give_up(self, state: str) -> None:
        ctx = self._all.parked[state].ctx
        self.discard(state)
        ctx.stop()


def _memory_of(ctx: "ServerRequest") -> int:
    """Return the approximate bytes of memory that the message of a request takes; never too few."""
    # For a small message an upper bound is enough: counting takes longer than sending it.
    size = EXPANSION * (ctx.size or SMALL)
    return size if size <= SMALL else memory_of(ctx.request.params)
