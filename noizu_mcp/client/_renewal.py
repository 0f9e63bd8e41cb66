"""Renewal of sessions: a new session begins when the server has ended the previous one.

Theory of operation. A server may forget a session at any time, and then answers 404. A request that
gets it was not processed, so it may be sent again in a new session. States:

- *live*: requests are sent;
- *lost*: a request, or the GET stream, got the 404 (`lose`). `generation` counts the sessions, so
  that a request of an older one cannot declare the current one lost;
- *renewing*: one handshake is running, and all requests that need it wait for it (`renew`). It
  leads to *live* with the next generation, or back to *lost* with an error that is raised in each
  waiting task.

Requests renew a lost session. A client that only listens sends none; for it `run` waits until the
GET stream finds the end, and renews with growing pauses, at most `MAX_ATTEMPTS` times in a row; a
session that ends within `LIVED` seconds counts as a failed attempt. So a server that ends every
session at once is not asked forever.

A handshake runs in the nursery of `run`: a request that times out while it waits does not cancel
the handshake for others, and the end of the connection ends it.

Source: 2025-11-25 `basic/transports`, "Session Management".
"""

import math
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from .._errors import (
    PEER_FAILURES,
    AuthError,
    ConnectionClosed,
    McpError,
    ProtocolError,
    RequestTimeout,
    TransportError,
)
from .._util import growing_pause
from ..engine import MessageStream, logger

#: Consecutive attempts for a client that only listens; then the next request makes one.
MAX_ATTEMPTS: Final = 5
#: The pause after the first failed attempt, and the maximum pause, in seconds.
FIRST_PAUSE: Final = 6.0
MAX_PAUSE: Final = 60.0
#: Seconds after which a session counts as a success; an earlier end is a failed attempt.
LIVED: Final = 10.0


class _Attempt:
    """One handshake, and its error for all tasks that wait for it."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.error: Exception | None = ConnectionClosed("the connection ended")


class Renewal:
    """Begins new sessions: one handshake at a time, for all requests that need it.

    Attributes:
        begin: Does a handshake and restores the state of the session; set by the negotiation.
        generation: The number of renewals.
        is_lost: True from the end of a session to the start of the next.
    """

    begin: Callable[[], Awaitable[None]]

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._attempt: _Attempt | None = None
        self._began = 0.0
        self.generation = 0
        self.is_lost = False

    async def run(self, stream: MessageStream) -> None:
        """Make renewals possible, and renew whenever the stream finds that the session has ended.

        Args:
            stream: Finds the end of a session that no request has noticed.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                await self._renew_unasked(stream)
        finally:
            self._nursery = None

    def lose(self, generation: int) -> None:
        """Declare a session lost, unless another one has begun since.

        Args:
            generation: The generation in which the failed request was sent.
        """
        # Many requests may get a 404; some of an older generation arrive after the renewal.
        if generation == self.generation:
            self.is_lost = True

    async def renew(self, patience: float) -> None:
        """Wait until a new session has replaced the lost one.

        Args:
            patience: Seconds to wait.

        Raises:
            AuthError: The server requires other credentials.
            TransportError: It cannot be reached, or cannot answer now.
            ConnectionClosed: The handshake failed for another reason, or the connection ended.
            RequestTimeout: No session began in time. The handshake continues.
        """
        # One handshake for all: otherwise each would begin a session.
        attempt = self._attempt or self._start()
        # Only the wait ends: the handshake continues, for other tasks and for the next request.
        with trio.move_on_after(patience):
            await attempt.done.wait()
        if not attempt.done.is_set():
            raise RequestTimeout(f"the session is over; no new one began within {patience:g} s")
        if attempt.error is not None:
            # A new exception for each task: a shared one would collect all tracebacks.
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
        except PEER_FAILURES as error:  # raised in each task that waits in `renew`
            attempt.error = error
        else:
            attempt.error = None
            self.is_lost = False
            self.generation += 1
            self._began = trio.current_time()
        finally:
            # Before the event: a task that it wakes must be able to start another attempt.
            self._attempt = None
            attempt.done.set()

    async def _renew_unasked(self, stream: MessageStream) -> None:
        """Renew for a client that only listens: it has no requests that would notice the end."""
        self._began, failures = trio.current_time(), 0
        while True:
            await stream.wait_session_end()
            # The stream belongs to the current session: it is closed when another one begins.
            self.lose(self.generation)
            lived = trio.current_time() - self._began
            failures = 0 if lived > LIVED else failures + 1
            # A request may renew the session during a pause; then there is nothing to do.
            while self.is_lost and failures < MAX_ATTEMPTS:
                await trio.sleep(growing_pause(failures, first=FIRST_PAUSE, longest=MAX_PAUSE))
                try:
                    await self.renew(math.inf)
                except (AuthError, ConnectionClosed, TransportError) as error:
                    # No task waits here; the next request gets the failure as well.
                    logger.warning("%s", error)
                    failures += 1


def _failure(error: Exception) -> Exception:
    """Make the exception for a waiting request, of the type that it would get itself."""
    text = f"the session is over, and no new one began: {error}"
    if isinstance(error, AuthError):
        return AuthError(text)
    if isinstance(error, TransportError):
        return TransportError(text, status=error.status)
    if isinstance(error, McpError | ProtocolError):
        text += "; if the server speaks another revision now, connect again"
    return ConnectionClosed(text)
