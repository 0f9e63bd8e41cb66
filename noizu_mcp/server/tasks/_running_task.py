"""One task: its status, its questions and its result.

Source: the extension `io.modelcontextprotocol/tasks`, `specification/2026-07-28/tasks`.

Theory of operation. A task is `working`, or `input_required` while at least one question waits. It
moves between the two any number of times, and then once to `completed`, `failed` or `cancelled`,
which are final. `_note_questions` moves between the first two, `_end` to a final state. The handler
owns its questions: each leaves the table when it is answered, when it times out, or when the task
ends, and no exit of `ask` leaves one behind. The store owns the lifetime: `hold` accounts for each
byte that the task uses, and `expires` limits how long it is kept. All of this runs in the loop's
thread. Only `ask` waits, for an event that an answer, the timeout or the end of the task sets. At a
node of many, clients must not see an end that can still be lost: `shown` is the state before the
end until `show_end`.
"""

import json
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import trio

from ... import types
from ..._errors import ConnectionClosed, McpError, RequestTimeout
from ..._util import UNSET, Unset, utc_text
from ..._value import JSONObject
from ...engine import Ending, throttled_log
from ...events import Outcome
from ...jsonrpc import INTERNAL_ERROR, memory_of, render
from ...types import InputRequest
from ._known_task import KnownTask

if TYPE_CHECKING:
    from ...types import RequireScopes, TaskStatus

#: Random bytes of an id: without authentication, anyone who knows the id can use the task. The
#: extension requires ids that cannot be guessed; 192 bits also exclude collisions.
ENTROPY: Final = 24
#: The final states (extension).
ENDED: Final = frozenset({"completed", "failed", "cancelled"})


class _TaskQuestion:
    """A question that waits for its answer."""

    __slots__ = ("answer", "closed", "wire")

    def __init__(self, wire: JSONObject) -> None:
        self.wire = wire
        self.answer: Any = UNSET
        self.closed = trio.Event()  # set with the answer, or at the end of the task


class RunningTask(KnownTask):
    """A task that runs, or that has ended and is stored with its result.

    The result is stored as JSON text: later changes of the handler's object do not affect it.

    Args:
        owner: The key of its principal; None without authentication.
        size: Bytes of its request.
        hold: Changes the bytes that the task uses; returns False if there is no room.
        ttl: Seconds that the task may run, and that its result is kept afterwards.
        poll_interval: Seconds between two polls, as advice to clients.
        on_change: Called after each change.

    Attributes:
        id: The unguessable name of the task.
        owner: See Args.
        size: Bytes that it uses: for its request and answers, later for its result.
        status: The state.
        expires: When it expires, on trio's clock.
        deadline: The timeout of the tool, on trio's clock.
        scope: Cancels the handler.
        cancelling: True once `cancel` was called.
        ending: The reason for its end, if the result does not show it.
        attempt: The number of this run, from 1; nodes run some tasks again.
        hides_end: True if the end is shown only after `show_end`.
        is_told: True once all nodes learn that the owner has seen the end.
        left: Set once the handler has ended.
    """

    def __init__(
        self,
        owner: str | None,
        *,
        size: int,
        hold: Callable[["RunningTask", int], bool],
        ttl: float,
        poll_interval: float,
        on_change: Callable[["RunningTask"], None],
    ) -> None:
        self.id = os.urandom(ENTROPY).hex()
        self.owner = owner
        self.size = size
        self.status: TaskStatus = "working"
        self.scope = trio.CancelScope()
        self.cancelling = False
        self.ending: Ending | None = None
        self.attempt = 1
        self.hides_end = False
        self.is_told = False
        self.left = trio.Event()
        self._hidden: JSONObject | None = None  # the state before an end that is not shown yet
        self._hold = hold
        self._ttl = ttl
        self._poll_interval = poll_interval
        self._on_change = on_change
        self._born = trio.current_time()
        self._created = self._updated = utc_text()
        self._message: str | None = None
        self._questions: dict[str, _TaskQuestion] = {}
        self._asked = 0
        self._required: dict[RequireScopes, None] = {}
        # Bytes, not objects: they are counted exactly, and most results are read once.
        self._kept = b""
        self._outcome: tuple[Outcome, int | None] = ("cancelled", None)
        # Two separate limits: the timeout of the tool stops while a person is asked, `expires` does
        # not. `expire_at` sets the scope to the earlier one.
        self.expires = self._born + ttl
        self.expire_at(math.inf)

    @property
    def ended(self) -> bool:
        """True in a final state."""
        return self.status in ENDED

    @property
    def is_over(self) -> bool:
        """True in a final state that clients may see."""
        return self.ended and self._hidden is None

    def resume(self, attempt: int, created: str, age: float) -> None:
        """Become a later attempt at a task that was created at another time.

        Args:
            attempt: The number of the attempt.
            created: The time of the creation, as text.
            age: Seconds since then.
        """
        self.attempt, self._created = attempt, created
        self._born -= age

    @property
    def age(self) -> float:
        """Seconds since the creation of the task."""
        return trio.current_time() - self._born

    @property
    def outcome(self) -> tuple[Outcome, int | None]:
        """The outcome for listeners, and the code of the error; `cancelled` has priority."""
        outcome, code = self._outcome
        return self.ending or outcome, code

    def to_wire(self, *, detailed: bool = True) -> JSONObject:
        """Return the task in wire format, in its current state.

        Args:
            detailed: Include its questions, result or error. The extension forbids them in the
                result that begins a task.
        """
        task = types.Task(
            self.id,
            self.status,
            created_at=self._created,
            last_updated_at=self._updated,
            ttl_ms=_milliseconds(self.expires - self._born),
            poll_interval_ms=_milliseconds(self._poll_interval),
            status_message=self._message,
        ).to_wire()
        return {**task, **self._details()} if detailed else task

    @property
    def shown(self) -> JSONObject:
        """The task in wire format, in the state that clients may see."""
        return self.to_wire() if self._hidden is None else self._hidden

    def show_end(self) -> None:
        """Let clients see the end."""
        self._hidden = None

    def _details(self) -> JSONObject:
        if self.status == "input_required":
            return {"inputRequests": {key: each.wire for key, each in self._questions.items()}}
        if self.status == "completed":
            return {"result": json.loads(self._kept)}
        return {"error": json.loads(self._kept)} if self.status == "failed" else {}

    def say(self, message: str) -> None:
        """Set the status message, a text for people."""
        if not self.ended:
            self._message = message
            self._changed()

    def _changed(self) -> None:
        # Before the listeners: a notification has the whole task, with this time.
        self._updated = utc_text()
        self._on_change(self)

    # Access

    def require(self, requires: "RequireScopes") -> None:
        """Add required scopes: only callers who have them may read its questions and result."""
        self._required[requires] = None

    @property
    def required(self) -> "Sequence[RequireScopes]":
        """The required scopes; see `KnownTask`."""
        return tuple(self._required)

    # Asking

    async def ask(self, request: InputRequest, timeout: float | Unset | None) -> Any:
        """Ask the client, and wait until it answers.

        Args:
            request: The question.
            timeout: Seconds; UNSET and None for no limit except the lifetime of the task.

        Raises:
            ConnectionClosed: The task has ended, or ends before it is answered.
            RequestTimeout: The timeout has passed; the question is withdrawn.
        """
        if self.ended:
            raise ConnectionClosed(f"the task ended before {request.method} was sent")
        wire = request.to_wire()
        # Rendered only as a check: a question that is not JSON must raise here, in its handler. In
        # the table it would break every `tasks/get` of the client.
        render(wire)
        # Keys are never reused: clients poll, and recognize by the key which questions they have
        # shown (extension, `tasks/update`).
        self._asked += 1
        attempt = "" if self.attempt == 1 else f"{self.attempt}-"
        key = f"{request.method.partition('/')[0]}-{attempt}{self._asked}"
        question = self._questions[key] = _TaskQuestion(wire)
        self._note_questions()
        seconds = math.inf if timeout is None or isinstance(timeout, Unset) else timeout
        try:
            with trio.move_on_after(seconds):
                await question.closed.wait()
        finally:
            # In `finally`, for a cancelled handler too. An answer or the end of the task has
            # removed it already; then the status is right.
            if self._questions.pop(key, None) is not None:
                self._note_questions()
        if question.answer is not UNSET:
            return question.answer
        if question.closed.is_set():
            raise ConnectionClosed(f"the task ended before {request.method} was answered")
        raise RequestTimeout(f"{request.method} was not answered within {seconds:g} s")

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Store answers by key. Unknown and answered keys are ignored (extension).

        Raises:
            McpError: Tasks use too many bytes to store them (-32603).
        """
        meant = {key: answers[key] for key in answers if key in self._questions}
        # Counted before anything changes, and only for known keys: a client can send any number of
        # unknown keys.
        if meant and not self._hold(self, self.size + memory_of(meant)):
            raise McpError(INTERNAL_ERROR, "Tasks hold too many bytes to take more answers")
        found = {key: self._questions.pop(key) for key in meant}
        for key, question in found.items():
            question.answer = answers[key]
            # After the answer is set: the waiting task reads it when it wakes up.
            question.closed.set()
        if found:
            self._note_questions()

    def _note_questions(self) -> None:
        # Derived from the table, so the status cannot contradict `inputRequests`.
        self.status = "input_required" if self._questions else "working"
        self._changed()

    # Time

    def expire_at(self, deadline: float) -> None:
        """Set the deadline of the handler, on trio's clock; `expires` is its upper bound."""
        self.deadline = deadline
        self.scope.deadline = min(deadline, self.expires)

    # End

    def cancel(self) -> None:
        """Cancel the handler. A task that has ended is not changed."""
        if not self.ended:
            # Before the scope: the flag distinguishes a cancellation from a timeout, which cancels
            # the same scope. The status does not change yet: cancellation is cooperative
            # (extension), and a task that ends first completes.
            self.cancelling = True
            self.scope.cancel()

    def complete(self, result: Mapping[str, Any]) -> None:
        """End with a result; an `isError` result completes a task as well (extension).

        A result that is not JSON, or does not fit, ends the task with an error.
        """
        try:
            text = render({"resultType": "complete", **result})
        except (ValueError, TypeError, RecursionError) as error:
            throttled_log.crash("task", "the result of a task is not JSON", error=error)
            self.ending = "crashed"
            self.fail(INTERNAL_ERROR, "Result is not JSON")
            return
        # The request is released here: from now on only the result counts.
        if not self._hold(self, len(text)):
            entry = "the result of a task is not kept: Limits.task_memory is reached"
            throttled_log.entry(logging.ERROR, entry, entry)
            self.fail(INTERNAL_ERROR, "The result could not be kept: tasks hold too many bytes")
            return
        self._outcome = "tool_error" if result.get("isError") is True else "ok", None
        self._end("completed", None, text)

    def fail(self, code: int, message: str, data: object = None) -> None:
        """End with a JSON-RPC error: the only way to `failed` (extension)."""
        bare = {"code": code, "message": message}
        try:
            text = render(bare if data is None else {**bare, "data": data})
        except (ValueError, TypeError, RecursionError) as error:
            throttled_log.crash("task", "the data of an error is not JSON", error=error)
            # The error is sent even if the author's data is not JSON.
            text = render(bare)
        if not self._hold(self, len(text)):
            text = render(bare)
            # Without its data the error has a few bytes. It is kept in any case: a task without an
            # end would be polled until it expires.
            self._hold(self, len(text))
        self._outcome = "error", code
        self._end("failed", message, text)

    def end_cancelled(self) -> None:
        """End as cancelled, without a result or an error."""
        self._hold(self, 0)
        self._end("cancelled", None)

    def _end(self, status: "TaskStatus", message: str | None, kept: bytes = b"") -> None:
        if self.hides_end:
            self._hidden = self.to_wire()
        self.status = status
        self._kept = kept
        self._message = message
        # Emptied before the events are set: `ask` finds nothing to remove, and cannot set the
        # status back to `working`.
        questions, self._questions = self._questions, {}
        for question in questions.values():
            question.closed.set()
        # A full `ttl` from the end, so that a slow poller does not miss the result of a long task.
        self.expires = trio.current_time() + self._ttl
        self._changed()


def _milliseconds(seconds: float) -> int:
    # Never 0: `ttlMs` 0 would mean an expired task, `pollIntervalMs` 0 a busy loop.
    return max(1, round(seconds * 1000))
