"""One task: its status, what it asks, and what comes of it.

Source: the extension `io.modelcontextprotocol/tasks`, `specification/2026-07-28/tasks`.
"""

import json
import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import trio

from ..._errors import ConnectionClosed, InsufficientScope, McpError, RequestTimeout
from ..._util import UNSET, Unset
from ...engine import Ending, seldom
from ...jsonrpc import INTERNAL_ERROR, memory_of, render
from ...types import InputRequest, Principal, RequireScopes, Task, TaskStatus
from ..events._event import Outcome

#: Random bytes of an id: where nobody is verified, who knows the id has the task.
ENTROPY: Final = 24
#: A task with one of these changes no more.
ENDED: Final = frozenset({"completed", "failed", "cancelled"})


class _Question:
    """A question that waits for its answer."""

    __slots__ = ("answer", "closed", "wire")

    def __init__(self, wire: dict[str, Any]) -> None:
        self.wire = wire
        self.answer: Any = UNSET
        self.closed = trio.Event()  # it has its answer, or will have none


class RunningTask:
    """A task that runs, or has run and is kept for its result.

    Its result, once there, is a copy: whatever the handler does with its own later changes nothing.

    Args:
        owner: Names the principal that it belongs to; None where nobody is verified.
        size: Bytes that it holds from the start.
        hold: Lets it hold so many bytes instead of `size`, or gives False: there is no room.
        ttl: Seconds that it may run, and that its result is kept afterwards.
        poll_interval: Seconds that clients are told to leave between two looks at it.
        on_change: Called after each change.

    Attributes:
        id: What names it; not to be guessed.
        owner: See Args.
        size: Bytes that it holds: what it was sent, then what came of it.
        status: What it does.
        expires: When it is forgotten, on trio's clock.
        scope: Cancels it.
        cancelling: True once it is to stop.
        ending: How it ends, where the answer does not tell.
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
        self._hold = hold
        self._ttl = ttl
        self._poll_interval = poll_interval
        self._on_change = on_change
        self._born = trio.current_time()
        self._created = self._updated = _now()
        self._message: str | None = None
        self._questions: dict[str, _Question] = {}
        self._asked = 0
        self._required: dict[RequireScopes, None] = {}
        self._kept = b""  # what came of it, as JSON: it is asked for once, as a rule
        self._outcome: tuple[Outcome, int | None] = ("cancelled", None)
        self._deadline = self._left = math.inf
        self.expires = self._born + ttl
        self.expire_at(math.inf)

    @property
    def ended(self) -> bool:
        """True once it changes no more."""
        return self.status in ENDED

    @property
    def outcome(self) -> tuple[Outcome, int | None]:
        """The outcome for listeners, and the code of its error; `cancelled` if it has no other."""
        outcome, code = self._outcome
        return self.ending or outcome, code

    def to_wire(self, *, detailed: bool = True) -> dict[str, Any]:
        """Write it as it is now.

        Args:
            detailed: With what it asks, or what came of it; what begins it has neither.
        """
        task = Task(
            self.id,
            self.status,
            created_at=self._created,
            last_updated_at=self._updated,
            ttl_ms=_milliseconds(self.expires - self._born),
            poll_interval_ms=_milliseconds(self._poll_interval),
            status_message=self._message,
        ).to_wire()
        return {**task, **self._details()} if detailed else task

    def _details(self) -> dict[str, Any]:
        if self.status == "input_required":
            return {"inputRequests": {key: each.wire for key, each in self._questions.items()}}
        if self.status == "completed":
            return {"result": json.loads(self._kept)}
        return {"error": json.loads(self._kept)} if self.status == "failed" else {}

    def say(self, message: str) -> None:
        """Say what it does, for people."""
        if not self.ended:
            self._message = message
            self._changed()

    def _changed(self) -> None:
        self._updated = _now()
        self._on_change(self)

    # Who may see it

    def require(self, requires: RequireScopes) -> None:
        """Note what its call needed: it shows what only holders of these scopes may see."""
        self._required[requires] = None

    def admits(self, caller: Principal | None) -> bool:
        """Tell whether somebody holds all that its call needed."""
        return all(each.admits(caller) for each in self._required)

    def admit(self, caller: Principal | None) -> None:
        """Go on only for somebody who holds all that its call needed.

        Raises:
            InsufficientScope: With all of it.
        """
        if not self.admits(caller):
            raise InsufficientScope([scope for each in self._required for scope in each.scopes])

    # Asking

    async def ask(self, request: InputRequest, timeout: float | Unset | None) -> Any:
        """Ask the client, and wait until it answers.

        Args:
            request: The question.
            timeout: Seconds; UNSET and None for the life of the task.

        Raises:
            ConnectionClosed: The task has ended, or ends before there is an answer.
            RequestTimeout: The time is over; the question is no longer there.
        """
        if self.ended:
            raise ConnectionClosed(f"the task ended before {request.method} was sent")
        wire = request.to_wire()
        render(wire)  # what is no JSON is the handler's to hear of, and nobody else's
        # Never the same twice: clients tell by it what they have shown already.
        self._asked += 1
        key = f"{request.method.partition('/')[0]}-{self._asked}"
        question = self._questions[key] = _Question(wire)
        self._note_questions()
        seconds = math.inf if timeout is None or isinstance(timeout, Unset) else timeout
        try:
            with trio.move_on_after(seconds):
                await question.closed.wait()
        finally:
            if self._questions.pop(key, None) is not None:
                self._note_questions()
        if question.answer is not UNSET:
            return question.answer
        if question.closed.is_set():
            raise ConnectionClosed(f"the task ended before {request.method} was answered")
        raise RequestTimeout(f"{request.method} was not answered within {seconds:g} s")

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Take answers, by key; those to nothing, or to what has its answer, mean nothing.

        Raises:
            McpError: Tasks hold too many bytes for them (-32603).
        """
        meant = {key: answers[key] for key in answers if key in self._questions}
        if meant and not self._hold(self, self.size + memory_of(meant)):
            raise McpError(INTERNAL_ERROR, "Tasks hold too many bytes to take more answers")
        found = {key: self._questions.pop(key) for key in meant}
        for key, question in found.items():
            question.answer = answers[key]
            question.closed.set()
        if found:
            self._note_questions()

    def _note_questions(self) -> None:
        self.status = "input_required" if self._questions else "working"
        self._changed()

    # Its time: that of a person does not count.

    def expire_at(self, deadline: float) -> None:
        """Move the deadline; on trio's clock. Past `expires` it never runs."""
        self._deadline = deadline
        self.scope.deadline = min(deadline, self.expires)

    def stop_clock(self) -> None:
        """Stop the clock of the deadline; `resume_clock` lets it go on with what was left."""
        self._left = self._deadline - trio.current_time()
        self.expire_at(math.inf)

    def resume_clock(self) -> None:
        """Let the clock go on."""
        self.expire_at(trio.current_time() + self._left)

    # Its end

    def cancel(self) -> None:
        """Ask it to stop; one that has ended stays as it is."""
        if not self.ended:
            self.cancelling = True
            self.scope.cancel()

    def complete(self, result: Mapping[str, Any]) -> None:
        """End with a result, one with `isError` too.

        One that is no JSON is an error, and so is one that there is no room for.
        """
        try:
            text = render({"resultType": "complete", **result})
        except (ValueError, TypeError, RecursionError) as error:
            seldom.crash("task", "the result of a task is not JSON", error=error)
            self.ending = "crashed"
            self.fail(INTERNAL_ERROR, "Result is not JSON")
            return
        if not self._hold(self, len(text)):
            entry = "the result of a task is not kept: Limits.task_memory is reached"
            seldom.entry(logging.ERROR, entry, entry)
            self.fail(INTERNAL_ERROR, "The result could not be kept: tasks hold too many bytes")
            return
        self._outcome = "tool_error" if result.get("isError") is True else "ok", None
        self._end("completed", None, text)

    def fail(self, code: int, message: str, data: Any = None) -> None:
        """End with an error of the protocol."""
        bare = {"code": code, "message": message}
        try:
            text = render(bare if data is None else {**bare, "data": data})
        except (ValueError, TypeError, RecursionError) as error:
            seldom.crash("task", "the data of an error is not JSON", error=error)
            text = render(bare)
        if not self._hold(self, len(text)):
            text = render(bare)
            self._hold(self, len(text))
        self._outcome = "error", code
        self._end("failed", message, text)

    def end_cancelled(self) -> None:
        """End without either: it was cancelled."""
        self._hold(self, 0)
        self._end("cancelled", None)

    def _end(self, status: TaskStatus, message: str | None, kept: bytes = b"") -> None:
        self.status = status
        self._kept = kept
        self._message = message
        questions, self._questions = self._questions, {}
        for question in questions.values():
            question.closed.set()
        # Whoever waited for it has as long again to fetch what came of it.
        self.expires = trio.current_time() + self._ttl
        self._changed()


def _now() -> str:
    """Write the time of day as ISO 8601; `datetime` would be loaded by every server for it."""
    seconds, rest = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03}Z"


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
