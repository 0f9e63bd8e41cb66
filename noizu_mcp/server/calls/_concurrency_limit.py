"""The places of calls whose tool has `max_concurrency`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

import trio


class Slot:
    """The place of one call among those of its tool; given back while somebody is asked.

    Args:
        limiter: Bounds the calls.
    """

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self._limiter = limiter
        self._place: object | None = None
        self._asking = 0
        self._taking = trio.Lock()  # two tasks of one handler must not wait for a place each

    async def take(self) -> None:
        """Wait for a place, and take it, unless another task of the handler was first."""
        # At once where it can be: also by who was cancelled while it waited for an answer.
        try:
            self._taking.acquire_nowait()
        except trio.WouldBlock:
            await self._taking.acquire()
        try:
            if self._place is None and not self._asking:
                await self._take_one()
        finally:
            self._taking.release()

    async def _take_one(self) -> None:
        place = object()
        try:
            self._limiter.acquire_on_behalf_of_nowait(place)
        except trio.WouldBlock:
            await self._limiter.acquire_on_behalf_of(place)
        self._place = place
        if self._asking:  # another task of the handler has asked meanwhile
            self.give_back()

    def give_back(self) -> None:
        """Let another call have the place."""
        if self._place is not None:
            self._limiter.release_on_behalf_of(self._place)
            self._place = None

    def ask(self) -> None:
        """Give the place back, until as many `answered` have come."""
        self._asking += 1
        self.give_back()

    async def answered(self) -> None:
        """Take the place again, if nobody is asked any more."""
        self._asking -= 1
        if self._asking == 0:
            await self.take()


# A variable of the task: a call may call other tools, each with a place of its own, and what they
# ask they ask through the one context of the request.
_CURRENT: Final[ContextVar[Slot | None]] = ContextVar("slot", default=None)


@asynccontextmanager
async def one_of(limiter: trio.CapacityLimiter) -> AsyncIterator[None]:
    """Run the block when a place is free; while it asks somebody, another call may have it."""
    slot = Slot(limiter)
    await slot.take()
    token = _CURRENT.set(slot)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        slot.give_back()


@asynccontextmanager
async def given_back() -> AsyncIterator[None]:
    """Hold no place while the block runs; the call has it again after."""
    slot = _CURRENT.get()
    if slot is None:
        yield
        return
    slot.ask()
    try:
        yield
    finally:
        await slot.answered()
