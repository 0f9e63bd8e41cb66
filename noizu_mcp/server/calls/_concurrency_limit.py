"""Slots of calls whose tool has `max_concurrency`.

Theory of operation. A slot holds a token of its tool's limiter, or waits for a token, or has
released it while the handler asks the client. Without the last state, calls that wait for people
would block all others, and a tool with one slot could deadlock when its question leads to another
call. `_asking` counts the questions: the first one releases the token, the last answer acquires one
again. The token belongs to the slot, not to a task, since several tasks of one handler may ask.
Every exit of `in_slot` releases the token, so a cancelled call leaves nothing behind.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, TypeVar

import trio

from ..threads._fair_limiter import ClientShare

Result = TypeVar("Result")


class Slot:
    """The slot of one call. Its token is released while the client is asked.

    Args:
        share: The tokens of the tool, as this client may use them.
    """

    def __init__(self, share: ClientShare) -> None:
        self._share = share
        self._held = False
        self._asking = 0
        # Two tasks of one handler must not acquire a token each: one would never be released.
        self._taking = trio.Lock()

    async def take(self, *, again: bool = True) -> None:
        """Wait for a token and acquire it, unless another task of the handler did.

        Args:
            again: False for the first token of the call.

        Raises:
            QueueFull: Too many calls wait for their first token.
        """
        # Without a checkpoint if possible. A task that was cancelled while it waited for an answer
        # also runs this, and `acquire` would raise `Cancelled` although a token is free.
        try:
            self._taking.acquire_nowait()
        except trio.WouldBlock:
            await self._taking.acquire()
        try:
            if not self._held and not self._asking:
                await self._take_one(again=again)
        finally:
            self._taking.release()

    async def _take_one(self, *, again: bool) -> None:
        await self._share.acquire(again=again)
        self._held = True
        # While this task waited, another task of the handler may have begun to ask.
        if self._asking:
            self.give_back()

    def give_back(self) -> None:
        """Release the token, if the slot holds one."""
        if self._held:
            self._held = False
            self._share.release()

    def ask(self) -> None:
        """Release the token, until each `ask` has its `answered`."""
        self._asking += 1
        self.give_back()

    async def answered(self) -> None:
        """Acquire a token again after the last answer."""
        self._asking -= 1
        if self._asking == 0:
            await self.take()


#: The slot of the current call; None if its tool has no limit. A context variable, not an attribute
#: of the request's context: a call may call other tools, each with its own slot, and all of them
#: ask through the one context of the request.
current_slot: Final[ContextVar[Slot | None]] = ContextVar("slot", default=None)


async def in_slot(share: ClientShare, work: Callable[[], Awaitable[Result]]) -> Result:
    """Run work with a slot. While the work asks the client, another call may use the slot.

    Args:
        share: The tokens of the tool, as this client may use them.
        work: The work.

    Raises:
        QueueFull: Too many calls wait.
    """
    slot = Slot(share)
    await slot.take(again=False)
    token = current_slot.set(slot)
    try:
        return await work()
    finally:
        current_slot.reset(token)
        slot.give_back()
