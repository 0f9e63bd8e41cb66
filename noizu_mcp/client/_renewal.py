"""A new session where the server has ended the one before; nobody has to connect again.

Source: 2025-11-25 `basic/transports`, "Session Management".
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from .._errors import (
    AuthError,
    ConnectionClosed,
    McpError,
    ProtocolError,
    RequestTimeout,
    TransportError,
)
from ..engine import MessageStream, SessionEnded, logger

#: Attempts in a row for a client that only listens; then the next request makes one.
MAX_ATTEMPTS: Final = 5
#: Seconds before the next of them, at most.
MAX_PAUSE: Final = 60.0
#: Seconds that a session lives at least; one that ends before counts as an attempt that failed.
LIVED: Final = 10.0

#: What comes of a handshake that a server, or the way to it, does not let through.
_REFUSALS: Final = (
    AuthError,
    ConnectionClosed,
    McpError,
    ProtocolError,
    RequestTimeout,
    TransportError,
)

Send = Callable[[], Awaitable[Any]]


class _Attempt:
    """One handshake, and all who wait for it."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.error: Exception | None = ConnectionClosed("the connection ended")


class Renewal:
    """Begins new sessions; one handshake at a time, however many requests need it.

    Attributes:
        begin: Shakes hands and restores what the session had; the negotiation sets it.
    """

    begin: Callable[[], Awaitable[None]]

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._attempt: _Attempt | None = None
        self._began = 0.0
        self._sessions = 0
        self._is_lost = False

    async def run(self, stream: MessageStream) -> None:
        """Make new sessions possible, and begin one whenever the stream finds that it is over."""
        try:
            async with trio.open_nursery() as self._nursery:
                await self._watch(stream)
        finally:
            self._nursery = None

    async def send(self, send: Send, patience: float) -> Any:
        """Send a request; if its session is over, which means that it was not done, in a new one.

        Args:
            send: Sends it, under a new id each time.
            patience: Seconds to wait for a new session.

        Returns:
            What it returns.

        Raises:
            AuthError: No new session: the server wants other credentials.
            TransportError: No new session: it cannot be reached, or cannot answer now.
            ConnectionClosed: No new session for another reason, or the new one has ended, too.
            RequestTimeout: There was none in time.
        """
        session = self._sessions
        if not self._is_lost:
            try:
                return await send()
            except SessionEnded:
                self._lose(session)
        await self._renew(patience)
        try:
            return await send()
        except SessionEnded as error:
            text = f"the session is over, and so is the one that began in its place: {error}"
            raise ConnectionClosed(text) from error

    def _lose(self, session: int) -> None:
        if session == self._sessions:  # else there is a new one by now
            self._is_lost = True

    async def _renew(self, patience: float) -> None:
        if not self._is_lost:
            return
        attempt = self._attempt or self._start()
        with trio.move_on_after(patience):
            await attempt.done.wait()
        if not attempt.done.is_set():
            raise RequestTimeout(f"the session is over; no new one began within {patience:g} s")
        if attempt.error is not None:
            raise _failure(attempt.error) from attempt.error

    def _start(self) -> _Attempt:
        if self._nursery is None:
            raise ConnectionClosed("the connection ended before a new session began")
        self._attempt = _Attempt()
        self._nursery.start_soon(self._try, self._attempt)
        return self._attempt

    async def _try(self, attempt: _Attempt) -> None:
        try:
            await self.begin()
        except _REFUSALS as error:  # raised where the session is awaited
            attempt.error = error
        else:
            attempt.error = None
            self._is_lost = False
            self._sessions += 1
            self._began = trio.current_time()
        finally:
            self._attempt = None
            attempt.done.set()

    async def _watch(self, stream: MessageStream) -> None:
        """Let who only listens hear again; a server that ends sessions at once is left alone."""
        self._began, failures = trio.current_time(), 0
        while True:
            await stream.wait_session_end()
            self._lose(self._sessions)
            lived = trio.current_time() - self._began
            failures = 0 if lived > LIVED else failures + 1
            while self._is_lost and failures < MAX_ATTEMPTS:
                await trio.sleep(min(failures * 2.0**failures, MAX_PAUSE))
                try:
                    await self._renew(math.inf)
                except (AuthError, ConnectionClosed, TransportError) as error:
                    # The next request meets it as well.
                    logger.warning("%s", error)
                    failures += 1


def _failure(error: Exception) -> Exception:
    """Make an exception for each who waited, as a request by itself would have met it."""
    text = f"the session is over, and no new one began: {error}"
    if isinstance(error, AuthError):
        return AuthError(text)
    if isinstance(error, TransportError):
        return TransportError(text, status=error.status)
    if isinstance(error, McpError | ProtocolError):
        text += "; if the server speaks another revision now, connect again"
    return ConnectionClosed(text)
