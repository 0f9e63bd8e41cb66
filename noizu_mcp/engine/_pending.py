"""Outbound requests without an answer, and the tasks that wait for the answers.

A pending request ends in one of four ways: its answer, an exception of the stream instead, its
timeout, or the end of the connection. Progress restarts the timeout, up to a maximum that no peer
can extend (2025-11-25 `basic/lifecycle`, "Timeouts": a maximum should always be enforced).

The timeouts of all requests share one task, the *watch*, and its cancel scope, the *alarm*. The
alarm goes off at or before the earliest deadline. It is set when a request with an earlier deadline
is added, and not changed when a request is answered: then it goes off too early, and is set to the
next deadline, or the watch ends. So among consecutive requests with the same timeout only the first
one sets it; a scope for each would take longer than the rest of the wait.
"""

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import trio

from .._errors import ConnectionClosed, McpError, RequestTimeout
from .._value import JSONMapping
from ..jsonrpc import ErrorResponse, Id, Response
from ._failure import crashes_logged

#: A request ends after this many times its timeout, however much progress it reports: without a
#: maximum a peer could keep the task waiting forever with one notification per timeout.
MAX_EXTENSIONS: Final = 10

OnProgress = Callable[[JSONMapping], None]
#: Starts a task beside the requests; see `Dispatcher.spawn`.
SpawnTask = Callable[[Callable[[], Awaitable[object]]], object]


class Arrival(Protocol):
    """An event of trio, or of asyncio if an asyncio task waits."""

    def set(self) -> None:
        """Wake the task that waits."""

    async def wait(self) -> object:
        """Wait until it is set."""


class PendingRequest:
    """One outbound request without an answer.

    Args:
        method: The method, for error texts.
        timeout: Seconds without an answer or progress before it fails; may be infinite.
        on_progress: Called with the params of each progress notification.
        arrived: The event of the waiting task; None for a trio task.

    Attributes:
        deadline: Time of its expiry on trio's clock.
    """

    __slots__ = (
        "_arrived",
        "_is_paused",
        "_is_unsent",
        "_last",
        "_outcome",
        "_timeout",
        "deadline",
        "method",
        "on_progress",
    )

    def __init__(
        self,
        method: str,
        timeout: float,
        on_progress: OnProgress | None,
        arrived: Arrival | None = None,
    ) -> None:
        self.method = method
        self.on_progress = on_progress
        now = trio.current_time()
        self.deadline = now + timeout
        self._last = now + timeout * MAX_EXTENSIONS
        self._timeout = timeout
        self._is_paused = False
        self._is_unsent = False
        self._arrived = arrived or trio.Event()
        self._outcome: Response | ErrorResponse | Exception | None = None

    async def wait(self) -> JSONMapping:
        """Wait for the answer.

        Returns:
            The result.

        Raises:
            McpError: The peer answered with an error.
            RequestTimeout: No answer, and no progress, within the timeout.
            ConnectionClosed: The connection ended first.
            Exception: The stream reported that no answer will come, and why.
        """
        await self._arrived.wait()
        outcome = self._outcome
        if isinstance(outcome, Response) and not isinstance(outcome.result, tuple):
            return outcome.result
        if isinstance(outcome, ErrorResponse):
            raise McpError(outcome.code, outcome.message, outcome.data)
        if isinstance(outcome, Exception):
            raise outcome
        # `close` resolves without an outcome.
        raise ConnectionClosed(f"the connection ended before {self.method} was answered")

    def extend(self) -> None:
        """Start the timeout again, from now, up to `MAX_EXTENSIONS` timeouts in all."""
        if not self._is_paused:
            self.deadline = min(trio.current_time() + self._timeout, self._last)

    def pause(self) -> None:
        """Stop the timeout and its maximum until `resume`."""
        self._is_paused = True
        self.deadline = math.inf

    def resume(self, seconds: float) -> None:
        """End a pause; `extend` or `hold` starts the timeout again.

        Args:
            seconds: Length of the pause in seconds; the maximum deadline moves by it.
        """
        self._is_paused = False
        self._last += seconds

    def hold(self) -> None:
        """Stop the timeout, except the limit of `MAX_EXTENSIONS`; `extend` starts it again."""
        # The maximum stays in force: a peer that never withdraws its question must not hold our
        # request for ever.
        if not self._is_paused:
            self.deadline = self._last

    def report(self, params: JSONMapping) -> None:
        """Pass progress to the callback; a failure of the callback is logged and ends nothing."""
        if self.on_progress is not None:
            with crashes_logged("the progress callback of %s failed", self.method):
                self.on_progress(params)

    def resolve(self, outcome: Response | ErrorResponse | Exception | None) -> None:
        """Wake the waiting task; None: the connection ended."""
        self._outcome = outcome
        self._arrived.set()

    def note_unsent(self, seconds: float) -> None:
        """Wait for some seconds more: the request could not be sent, so no answer can come.

        Args:
            seconds: Seconds in which the end of the stream may tell the reason.
        """
        self._is_unsent = True
        self.deadline = self._last = trio.current_time() + seconds

    def expire(self) -> None:
        """Wake the waiting task: the deadline has passed."""
        if self._is_unsent:
            text = f"the connection ended before {self.method} was sent"
            self.resolve(ConnectionClosed(text))
        else:
            text = f"{self.method} was not answered within {self._timeout:g} s"
            self.resolve(RequestTimeout(text))


class PendingRequests:
    """The outbound requests of one connection."""

    def __init__(self) -> None:
        self._waiting: dict[Id, PendingRequest] = {}
        self._closed = False
        self._held = 0
        self._paused = 0
        self._pause_began = 0.0
        self._alarm: trio.CancelScope | None = None  # while the watch runs
        # Of tasks that answer questions of the peer between two requests. A tuple, since every
        # idle session of a server would have the memory of an empty set.
        self._answering: tuple[trio.CancelScope, ...] = ()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_closed(self) -> bool:
        """True once the connection has ended: no more requests can be sent."""
        return self._closed

    def add(self, id_: Id, pending: PendingRequest, spawn: SpawnTask) -> None:
        """Enter a request.

        Args:
            id_: Its id.
            pending: The request.
            spawn: Starts the watch, if the request needs it and it does not run.

        Raises:
            ConnectionClosed: The connection has ended.
        """
        if self._closed:
            raise ConnectionClosed(f"the connection ended before {pending.method} was sent")
        self._waiting[id_] = pending
        deadline = pending.deadline
        if self._paused:
            pending.pause()
        self._watch_from(deadline, spawn)

    def note_unsent(self, pending: PendingRequest, seconds: float, spawn: SpawnTask) -> None:
        """Let a request that could not be sent end soon; see `PendingRequest`."""
        pending.note_unsent(seconds)
        self._watch_from(pending.deadline, spawn)

    def _watch_from(self, deadline: float, spawn: SpawnTask) -> None:
        """Set the alarm to a deadline that is earlier, and start the watch if it does not run."""
        if self._alarm is not None:
            self._advance_alarm(deadline)
        elif deadline < math.inf:
            self._alarm = trio.CancelScope(deadline=deadline)
            spawn(self._watch)

    def _advance_alarm(self, deadline: float) -> None:
        if self._alarm is not None and deadline < self._alarm.deadline:
            self._alarm.deadline = deadline

    async def _watch(self) -> None:
        """End requests whose deadline has passed, until none has a deadline, or will have one."""
        while self._alarm is not None:
            with self._alarm:
                await trio.sleep_forever()
            self._alarm = None
            now = trio.current_time()
            for id_, pending in list(self._waiting.items()):
                if pending.deadline <= now:
                    del self._waiting[id_]
                    pending.expire()
            nearest = min((each.deadline for each in self._waiting.values()), default=math.inf)
            if nearest < math.inf or (self._paused and self._waiting):
                self._alarm = trio.CancelScope(deadline=nearest)

    @contextmanager
    def end_with_connection(self) -> Iterator[None]:
        """Cancel the block when the connection ends.

        For answers to questions of the peer that come with a result: no request waits meanwhile.

        Raises:
            ConnectionClosed: The connection ended.
        """
        with trio.CancelScope() as scope:
            self._answering += (scope,)
            if self._closed:
                scope.cancel()
            try:
                yield
            finally:
                self._answering = tuple(each for each in self._answering if each is not scope)
        if scope.cancelled_caught:
            raise ConnectionClosed("the connection ended while questions of the server were open")

    @contextmanager
    def hold_timeouts(self) -> Iterator[None]:
        """Stop the timeouts while the block runs: the peer waits for us meanwhile."""
        # Counted: several questions of the peer may be open at the same time.
        self._held += 1
        for pending in self._waiting.values():
            pending.hold()
        try:
            yield
        finally:
            self._held -= 1
            self._restart()

    @contextmanager
    def pause_timeouts(self) -> Iterator[None]:
        """Stop the timeouts and their maximum while the block runs.

        For what must happen before a request can be sent, such as a login. It holds for requests
        that are added meanwhile, too. The block must end by itself.
        """
        # Several tasks may pause, one after the other: the time counts from the first to the last.
        if not self._paused:
            self._pause_began = trio.current_time()
        self._paused += 1
        for pending in self._waiting.values():
            pending.pause()
        try:
            yield
        finally:
            self._paused -= 1
            if not self._paused:
                paused = trio.current_time() - self._pause_began
                for pending in self._waiting.values():
                    pending.resume(paused)
            self._restart()

    def _restart(self) -> None:
        for pending in self._waiting.values():
            # The peer may still wait for the answer to another question.
            pending.hold() if self._held else pending.extend()
            self._advance_alarm(pending.deadline)

    def discard(self, id_: Id) -> None:
        """Forget a request, answered or not."""
        self._waiting.pop(id_, None)

    def resolve(self, id_: Id | None, outcome: Response | ErrorResponse | Exception) -> None:
        """Pass an answer, or the reason for its absence, to the task that waits for it."""
        # Taken out first: the second of two answers with one id must find nothing.
        pending = self._waiting.pop(id_, None) if id_ is not None else None
        if pending is not None:
            pending.resolve(outcome)

    def report_progress(self, id_: Id, params: JSONMapping) -> None:
        """Pass progress to its request, and start the timeout of the request again."""
        pending = self._waiting.get(id_)
        if pending is not None:
            # While the peer waits for us no clock runs that progress could extend.
            if not self._held:
                pending.extend()
            pending.report(params)

    def close(self) -> None:
        """End every request: the connection is gone."""
        # For requests that are made later: no message would ever wake them.
        self._closed = True
        for pending in self._waiting.values():
            pending.resolve(None)
        self._waiting.clear()
        for scope in self._answering:
            scope.cancel()
        if self._alarm is not None:
            self._alarm.deadline = -math.inf  # nothing is left to watch
