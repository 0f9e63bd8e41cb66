"""Renewal of sessions: a new one begins when the server has ended the one before.

Theory of operation. A server may forget a session at any time and answers 404 from then on. A
request that reads it was not carried out, so it may be sent again in a new session. States:

- *live*: requests are sent as they come;
- *lost*: a request, or the GET stream, has met the 404 (`lose`). `generation` counts the sessions,
  so that a request of an older one cannot declare the present one lost;
- *renewing*: one handshake runs, and all requests that need it wait for it (`renew`). It
  leads to *live* with the next generation, or back to *lost* with an error that is raised in each
  waiting task.

Requests renew a lost session themselves. A client that only listens sends none; for it `run` waits
for the end that the GET stream finds, and renews with growing pauses, at most `MAX_ATTEMPTS` times
in a row; a session that ends within `LIVED` seconds counts as a failed attempt. So a server that
ends every session at once is not asked for ever.

A handshake runs in the nursery of `run`: a request that times out while it waits cancels nobody
else's handshake, and the end of the connection ends it.

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

#: Attempts in a row of a client that only listens; after them the next request makes one.
MAX_ATTEMPTS: Final = 5
#: The pause after the first of them that fails, and the longest pause, in seconds.
FIRST_PAUSE: Final = 6.0
MAX_PAUSE: Final = 60.0
#: Seconds after which a session counts as a success; one that ends earlier is a failed attempt.
LIVED: Final = 10.0


class _Attempt:
    """One handshake, and its error for all tasks that wait for it."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.error: Exception | None = ConnectionClosed("the connection ended")


class Renewal:
    """Begins new sessions; one handshake at a time, however many requests need it.

    Attributes:
        begin: Shakes hands and restores the state of the session; the negotiation sets it.
        generation: The number of sessions that were renewed.
        is_lost: True from the end of a session to the beginning of the next.
    """

    begin: Callable[[], Awaitable[None]]

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._attempt: _Attempt | None = None
        self._began = 0.0
        self.generation = 0
        self.is_lost = False

    async def run(self, stream: MessageStream) -> None:
        """Make renewals possible, and renew whenever the stream finds that the session is over.

        Args:
            stream: Finds the end of a session that no request has met.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                await self._renew_unasked(stream)
        finally:
            self._nursery = None

    def lose(self, generation: int) -> None:
        """Declare a session lost, unless another has begun since.

        Args:
            generation: The generation in which the request was sent that met the end.
        """
        # Many requests may meet one 404; those of an older generation come after the renewal.
        if generation == self.generation:
            self.is_lost = True

    async def renew(self, patience: float) -> None:
        """Wait until a new session has begun in the place of the lost one.

        Args:
            patience: Seconds to wait.

        Raises:
            AuthError: The server wants other credentials.
            TransportError: It cannot be reached, or cannot answer now.
            ConnectionClosed: The handshake failed for another reason, or the connection ended.
            RequestTimeout: No session began in time; the handshake goes on.
        """
        # One handshake for all: each would begin a session that the others do not know.
        attempt = self._attempt or self._start()
        # Only the wait ends: the handshake goes on, for the others who wait and for the next
        # request.
        with trio.move_on_after(patience):
            await attempt.done.wait()
        if not attempt.done.is_set():
            raise RequestTimeout(f"the session is over; no new one began within {patience:g} s")
        if attempt.error is not None:
            # A new exception for each task: a shared one would collect all their tracebacks.
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
            # Before the event: a task that it wakes must be able to start the next attempt.
            self._attempt = None
            attempt.done.set()

    async def _renew_unasked(self, stream: MessageStream) -> None:
        """Renew for a client that only listens; no request of its own would meet the end."""
        self._began, failures = trio.current_time(), 0
        while True:
            await stream.wait_session_end()
            # The stream speaks of the present session: it is left when another one begins.
            self.lose(self.generation)
            lived = trio.current_time() - self._began
            failures = 0 if lived > LIVED else failures + 1
            # A request may renew the session during a pause; then nothing is left to do here.
            while self.is_lost and failures < MAX_ATTEMPTS:
                await trio.sleep(growing_pause(failures, first=FIRST_PAUSE, longest=MAX_PAUSE))
                try:
                    await self.renew(math.inf)
                except (AuthError, ConnectionClosed, TransportError) as error:
                    # Nobody waits here; the next request meets the failure as well.
                    logger.warning("%s", error)
                    failures += 1


def _failure(error: Exception) -> Exception:
    """Make the exception that a waiting request raises, of the kind that it would meet alone."""
    text = f"the session is over, and no new one began: {error}"
    if isinstance(error, AuthError):
        return AuthError(text)
    if isinstance(error, TransportError):
        return TransportError(text, status=error.status)
    if isinstance(error, McpError | ProtocolError):
        text += "; if the server speaks another revision now, connect again"
    return ConnectionClosed(text)
