"""The part of one request that its application has not received yet."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from ._options import PACE

_DISCONNECT: Final = {"type": "http.disconnect"}


class Inbox:
    """The events of one request, from the connection to the application.

    The body is handed out in as few pieces as possible: all of it at once, if it came at once. A
    body that the application does not take fills one buffer and then holds up its connection.

    Args:
        limit: Bytes waiting above which `put` waits.
        patience: Seconds in which `PACE` bytes, or the end, must come while they are waited for.
        wanted: Called once, before the body is first waited for.
        taken: Called with the bytes that will not be waiting any longer.
        late: Called when patience is at an end.
    """

    def __init__(
        self,
        *,
        limit: float,
        patience: float,
        wanted: Callable[[], Awaitable[None]],
        taken: Callable[[int], Awaitable[None]],
        late: Callable[[], Awaitable[None]],
    ) -> None:
        self._limit = limit
        self._patience = patience
        self._wanted: Callable[[], Awaitable[None]] | None = wanted
        self._taken = taken
        self._late = late
        self._left = patience
        self._chunks: list[bytes] = []
        self._size = 0
        self._fresh = 0
        self._ended = False
        self._delivered = False
        self._gone = False
        self._closed = False
        self._waiting: trio.Event | None = None

    async def put(self, event: Any) -> None:
        """Take an event of hypercorn; wait while too much of a body is waiting."""
        if event["type"] == "http.request":
            await self._add(event["body"], ended=not event["more_body"])
        else:
            self._gone = True
            self._notify()

    async def receive(self) -> Any:
        """Receive as an ASGI application does; no checkpoint where something is there."""
        while True:
            if self._gone and not self._ended:
                return _DISCONNECT
            if self._chunks or (self._ended and not self._delivered):
                return await self._take()
            if self._gone:
                return _DISCONNECT
            await self._wait_for_more()

    async def close(self) -> None:
        """Drop what is left and what still comes: the application has ended."""
        self._closed = True
        self._notify()
        await self._drop()

    async def _add(self, body: bytes, *, ended: bool) -> None:
        self._chunks += [body] if body else []
        self._size += len(body)
        self._fresh += len(body)
        self._ended = ended
        self._notify()
        if self._closed:
            await self._drop()
        while self._size > self._limit and not (self._closed or self._gone):
            await self._wait()

    async def _drop(self) -> None:
        size, self._size = self._size, 0
        self._chunks.clear()
        await self._taken(size)

    async def _take(self) -> Any:
        body = b"".join(self._chunks)
        self._delivered = self._ended
        self._notify()
        await self._drop()
        return {"type": "http.request", "body": body, "more_body": not self._delivered}

    async def _wait_for_more(self) -> None:
        if self._ended:  # only the disconnect is left, whenever it comes
            await self._wait()
            return
        if self._wanted is not None:
            wanted, self._wanted = self._wanted, None
            await wanted()
        if self._fresh >= PACE:
            self._fresh, self._left = 0, self._patience
        start = trio.current_time()
        with trio.move_on_after(max(0.0, self._left)) as scope:
            await self._wait()
        self._left -= trio.current_time() - start
        if scope.cancelled_caught:
            self._gone = True
            await self._late()

    async def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = trio.Event()
        await self._waiting.wait()

    def _notify(self) -> None:
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None
