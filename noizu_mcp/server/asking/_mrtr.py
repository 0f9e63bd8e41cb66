"""Asking the client in the middle of a handler: one way to write it, both eras to serve it.

Up to 2025-11-25 a question is a live request to the client, and the handler waits. 2026-07-28 has
no such requests: there the round ends with an `InputRequiredResult` that carries everything the
handler waits for, and the client comes back with the answers. The handler then runs again from the
start, and gets every answer that it has had before, in the same places (`basic/patterns/mrtr`).
"""

import hashlib
import inspect
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from ..._errors import McpError, ProtocolError
from ..._util import UNSET, Unset, json_text
from ...components import TIMEOUTS
from ...engine import call_in_thread
from ...jsonrpc import INVALID_PARAMS, parse_json
from ...types import InputRequest, InputRequired
from ..calls._concurrency_limit import given_back
from ..calls._refusal import ClientRefusal
from ..calls._time_limit import clocks_stopped

if TYPE_CHECKING:
    from .._request_context import RequestContext
    from .._session import Session

#: Questions of one request, one after the other: past it a handler is asking in circles.
MAX_ROUNDS: Final = 50
#: Times that one question is asked again after an answer that is none: who has not understood it
#: by then will not.
MAX_REASKS: Final = 3
#: Characters of sealed state. Clients carry it in every retry.
MAX_STATE: Final = 64 * 1024
#: Turns of the loop that other tasks of a handler get to ask in the same round.
SETTLING_TURNS: Final = 5
#: Seconds that a handler has to come to a question that it asked in an earlier round.
PATIENCE: Final = 1.0

#: Reads an answer off the wire; raises ProtocolError for one that is none.
Reader = Callable[[Any], Any]


class _Record:
    """Answers and side effects of a handler, under keys that hold when it runs again.

    Args:
        answers: The answers by key.
        steps: What the side effects gave, by key.
        refused: How many answers to a question were none, by key.
    """

    def __init__(
        self, answers: dict[str, Any], steps: dict[str, Any], refused: Mapping[str, int]
    ) -> None:
        self.answers = answers
        self.steps = steps
        self.refused = Counter(refused)
        self._counts: Counter[str] = Counter()

    def rewind(self) -> None:
        """Begin from the start: the handler is run again."""
        self._counts.clear()

    def key(self, kind: str, content: Any) -> str:
        """Name a question by what it asks; the n-th of the same question by its number.

        So questions of concurrent tasks find their answers whichever task runs first.
        """
        name = kind.partition("/")[0]
        digest = _digest([kind, content])[:16]
        self._counts[digest] += 1
        return f"{name}-{digest}-{self._counts[digest]}"

    def check_patience(self, key: str, request: InputRequest) -> None:
        """Check that a question may be asked, or asked again.

        Raises:
            McpError: It was answered wrongly too often.
        """
        if self.refused[key] > MAX_REASKS:
            text = f"No valid answer to {_asked(request)} in {MAX_REASKS + 1} tries"
            raise McpError(INVALID_PARAMS, text)

    async def step(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run a side effect, or give what it gave before."""
        key = self.key("step", name)
        if key not in self.steps:
            self.steps[key] = _as_json(name, await run())
        return parse_json(json_text(self.steps[key]).encode())


class Line(Protocol):
    """A way to a client that answers while the handler waits."""

    async def ask(self, request: InputRequest, timeout: float | Unset | None) -> Any:
        """Ask, and wait for the answer as it comes.

        Args:
            request: The question.
            timeout: Seconds; None for no limit, UNSET for what is usual on this way.
        """

    def stop_clock(self) -> None:
        """Stop the clock of the handler; `resume_clock` lets it go on."""

    def resume_clock(self) -> None:
        """Let the clock go on."""


class RequestLine:
    """Asks with requests to the client, over a connection that lasts.

    Args:
        ctx: The request whose handler asks.
        session: Its session.
    """

    def __init__(self, ctx: "RequestContext", session: "Session") -> None:
        self._ctx = ctx
        self._session = session
        self.stop_clock = ctx.stop_clock
        self.resume_clock = ctx.resume_clock

    async def ask(self, request: InputRequest, timeout: float | Unset | None) -> Mapping[str, Any]:
        """Send the request, and wait for its answer; see `Dispatcher.send_request`.

        Raises:
            ClientRefusal: The client answered with an error.
        """
        if isinstance(timeout, Unset):
            timeout = TIMEOUTS.get(request.method)
        session, observer = self._session, self._ctx.observer
        message = session.peer.ledger.open(request.method, _live_params(request))
        try:
            # On the channel of its request: over HTTP the client reads it in that answer.
            with nullcontext() if observer is None else observer.surround_question(message):
                return await session.send_request(
                    message, channel=self._ctx.channel, patience=timeout
                )
        except McpError as error:
            raise ClientRefusal(request.method, error) from None


class LiveAsker:
    """Asks a client that answers while the handler waits.

    Args:
        line: The way to the client.
        before: Who asked before: its answers and steps count here, too.

    Attributes:
        responses: The answers to what the handler asked by hand before; with a request come none.
        state: The state of a handler that asked by hand before.
    """

    def __init__(self, line: Line, before: "ReplayAsker | None" = None) -> None:
        self.responses: Mapping[str, Any] = {} if before is None else before.responses
        self.state: str | None = None if before is None else before.state
        self._line = line
        self._record = _Record({}, {}, {}) if before is None else before.record
        self._record.rewind()
        self._rounds = 0
        self._waiting = 0

    async def ask(self, request: InputRequest, read: Reader, timeout: float | Unset | None) -> Any:
        """Send the request, and again while the answer is none.

        Raises:
            McpError: The client refused; or it answered badly too often.
            RequestTimeout: It did not answer in time; it has been told to stop.
        """
        key = self._record.key(request.method, request.params)
        if key in self._record.answers:  # asked before the handler was run again
            await trio.lowlevel.checkpoint()
            return read(self._record.answers[key])
        while True:
            self._record.check_patience(key, request)
            self._count_round()
            answer = await self._send(request, timeout)
            try:
                value = read(answer)
            except ProtocolError:
                self._record.refused[key] += 1
                continue
            self._record.answers[key] = answer
            return value

    def _count_round(self) -> None:
        """Count a round; a question beside one that waits belongs to the round of that."""
        if self._waiting == 0:
            self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            raise too_many_rounds()

    async def _send(
        self, request: InputRequest, timeout: float | Unset | None
    ) -> Mapping[str, Any]:
        # The place is waited for with the clock running, as it was at first.
        async with given_back():
            self._pause()
            try:
                with clocks_stopped():
                    answer: Mapping[str, Any] = await self._line.ask(request, timeout)
                return answer
            finally:
                self._resume()

    def _pause(self) -> None:
        """Stop the clock of the handler: the time of a person is not its own."""
        if self._waiting == 0:
            self._line.stop_clock()
        self._waiting += 1

    def _resume(self) -> None:
        self._waiting -= 1
        if self._waiting == 0:
            self._line.resume_clock()

    async def step(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run the side effect, unless it was before the handler was run again."""
        return await self._record.step(name, run)

    async def retry(self, required: InputRequired) -> tuple[Mapping[str, Any], str | None] | None:
        """Ask all questions at once, live; the handler is to be run again with the answers."""
        answers: dict[str, Any] = {}

        async def one(key: str, request: InputRequest) -> None:
            answers[key] = await self._send(request, UNSET)

        self._record.rewind()
        self._count_round()
        async with trio.open_nursery() as nursery:
            for key, request in required.requests.items():
                nursery.start_soon(one, key, request)
        return answers, required.state


class ReplayAsker:
    """Asks by ending the round; replays the answers of earlier ones.

    Args:
        ctx: The request whose handler asks.

    Attributes:
        responses: The answers to what the handler asked by hand.
        state: The state of a handler that asks by hand.
        record: What it was answered and what it did.

    Raises:
        McpError: The state is not good for this request (-32602).
    """

    def __init__(self, ctx: "RequestContext") -> None:
        self._ctx = ctx
        self._sealer = ctx.running.server.sealer
        params = ctx.request.params or {}
        self._binding = _binding(ctx, params)
        given = params.get("inputResponses")
        #: What the client sent along; only trusted where the state says it was asked.
        self._given: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        recorded: dict[str, Any] = {}
        if params.get("requestState") is not None:
            recorded = self._sealer.open(params["requestState"], self._binding)
        self._round: int = recorded.get("round", 0)
        parts = [recorded.get(name, {}) for name in ("answers", "steps", "refused")]
        self.record = _Record(*parts)
        self._asked: list[str] = recorded.get("asked", [])
        #: The answers to these: the client's newest, and those that no task has come to yet.
        self._answered: dict[str, Any] = {**recorded.get("unread", {}), **self._given}
        self.responses = recorded.get("given", {}) if self._asked else self._given
        self.state: str | None = recorded.get("state")
        self._missing = {*self.record.answers, *self._asked}  # what is not asked again yet
        self._remembered = trio.Event()  # set once all of it is
        self._pending: dict[str, InputRequest] = {}
        self._running = 0
        self._idle = trio.Event()  # set while no step runs
        self._ending = False

    async def ask(self, request: InputRequest, read: Reader, timeout: float | Unset | None) -> Any:
        """Give the recorded answer, or end the round with this question and its like.

        Raises:
            McpError: Too many rounds, or too many answers that are none.
        """
        await trio.lowlevel.checkpoint()
        answers = self.record.answers
        key = self.record.key(request.method, request.params)
        self._missing.discard(key)
        if not self._missing:
            self._remembered.set()
        if key in answers:
            return read(answers[key])
        if key in self._asked and key in self._answered:
            try:
                answer = read(self._answered[key])
            except ProtocolError:
                self.record.refused[key] += 1  # no answer: it is asked again
            else:
                answers[key] = self._answered[key]
                return answer
        self.record.check_patience(key, request)
        self._pending[key] = request
        self._end_soon()
        return await trio.sleep_forever()

    async def step(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run the side effect, or give what it gave in an earlier round."""
        await trio.lowlevel.checkpoint()
        if self._running == 0:
            self._idle = trio.Event()
        self._running += 1
        try:
            return await self.record.step(name, run)
        finally:
            self._running -= 1
            if self._running == 0:
                self._idle.set()

    async def retry(self, required: InputRequired) -> tuple[Mapping[str, Any], str | None] | None:
        """End the round with the handler's own questions and state."""
        self._check_rounds()
        self._reply(required.requests, {"asked": [], "state": required.state})
        await trio.lowlevel.checkpoint()
        return None

    def _end_soon(self) -> None:
        if not self._ending:
            self._check_rounds()
            self._ending = True
            self._ctx.running.linger(self._end)

    def _check_rounds(self) -> None:
        if self._round >= MAX_ROUNDS:
            raise too_many_rounds()

    async def _end(self) -> None:
        """End the round once the handler has asked all that it asks now, and no step runs."""
        quiet = 0
        while quiet < SETTLING_TURNS:
            before = len(self._pending)
            await trio.lowlevel.checkpoint()
            quiet = quiet + 1 if len(self._pending) == before else 0
            if self._running:
                await self._idle.wait()
                quiet = 0
        if self._ctx.answered or self._ctx.withdrawn:
            return
        if not self._is_held_up() and await self._forgot():
            self._ctx.send_reason(_not_deterministic(self._pending))
        else:
            unread = {key: self._answered[key] for key in self._unread()}
            asked = {"asked": [*self._pending, *unread], "unread": unread}
            content = {**asked, "given": self.responses, "state": self.state}
            self._reply(self._pending, content)
        self._ctx.stop()

    def _is_held_up(self) -> bool:
        """Tell whether a task waits only because another one asked the same and took its answer.

        Which of them comes first may differ from round to round. The one that waits gets an
        answer of its own in the next, and goes on to what it asked before.
        """
        recorded = {*self.record.answers, *self._asked}
        return any(_one_before(key) in recorded for key in self._pending)

    def _unread(self) -> list[str]:
        """List what was answered, and is waited for by a task that did not come to it."""
        return [key for key in self._asked if key in self._missing and key in self._answered]

    async def _forgot(self) -> bool:
        """Tell whether something that was asked before is not asked now.

        A task of the handler that is slower this time gets a moment to ask it.
        """
        with trio.move_on_after(PATIENCE):
            await self._remembered.wait()
        return bool(self._missing)

    def _reply(self, requests: Mapping[str, InputRequest], content: Mapping[str, Any]) -> None:
        record = self.record
        kept = {"answers": record.answers, "steps": record.steps, "refused": record.refused}
        content = {**content, **kept, "round": self._round + 1}
        state = self._sealer.seal(content, self._binding)
        if len(state) > MAX_STATE:
            text = f"The answers and steps so far exceed {MAX_STATE} characters of sealed state"
            self._ctx.send_reason(text)
            return
        result: dict[str, Any] = {"resultType": "input_required", "requestState": state}
        if requests:
            result["inputRequests"] = {key: each.to_wire() for key, each in requests.items()}
        self._ctx.complete(result)


def _one_before(key: str) -> str:
    """Name the same question, asked one time earlier."""
    name, _, number = key.rpartition("-")
    return f"{name}-{int(number) - 1}"


def _live_params(request: InputRequest) -> dict[str, Any]:
    """Give a URL the id that 2025-11-25 wants with it (client/elicitation, URL Mode)."""
    params = dict(request.params)
    if params.get("mode") == "url":
        params.setdefault("elicitationId", os.urandom(16).hex())
    return params


def make_asker(ctx: "RequestContext") -> LiveAsker | ReplayAsker:
    """Make the asker for the era of a request.

    Raises:
        McpError: It carries a state that is not good for it (-32602).
    """
    if ctx.dispatcher is None or ctx.envelope.revision.stateless:
        return ReplayAsker(ctx)
    return LiveAsker(RequestLine(ctx, ctx.dispatcher))


async def run_step(
    rounds: LiveAsker | ReplayAsker, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    """Run a side effect once: `ctx.step`.

    Raises:
        TypeError: The arguments, or what it returned, are no JSON values.
    """
    name = getattr(function, "__qualname__", type(function).__qualname__)
    try:
        key = f"{name}{json_text(list(args))}"
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"ctx.step needs JSON values as arguments of {name}: {error}") from None

    async def run() -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        return await trio.to_thread.run_sync(call_in_thread, partial(function, *args))

    return await rounds.step(key, run)


def too_many_rounds() -> McpError:
    """Make the error for a handler that never stops asking."""
    return McpError(INVALID_PARAMS, f"More than {MAX_ROUNDS} rounds of questions")


def _asked(request: InputRequest) -> str:
    """Name a question in a message: by what it says, if it says anything."""
    return json_text(request.params.get("message", request.method))


def _not_deterministic(pending: Mapping[str, InputRequest]) -> str:
    asked = ", ".join(map(_asked, pending.values()))
    return (
        "the handler is not deterministic: in an earlier round it asked something else than"
        f" {asked}; what it asks may depend on its arguments, on answers and on ctx.step only"
    )


def _binding(ctx: "RequestContext", params: Mapping[str, Any]) -> dict[str, Any]:
    """Say what a state belongs to: server, caller, method, and everything it was asked for."""
    own = {
        key: value
        for key, value in params.items()
        if key not in {"_meta", "inputResponses", "requestState"}
    }
    caller = ctx.envelope.origin.principal
    return {
        "server": ctx.running.server.options.name,
        "principal": None if caller is None else caller.key,
        "method": ctx.request.method,
        "name": own.get("name", own.get("uri")),
        "arguments": _digest(own),
    }


def _digest(value: Any) -> str:
    """Name a JSON value; two spellings of one value, which order their keys otherwise, are one."""
    # The one class of values here that `json` does not know is the read-only mapping.
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=dict).encode()).hexdigest()


def _as_json(key: str, value: Any) -> Any:
    """Give a step's result the shape that it will have when it is replayed."""
    try:
        return parse_json(json_text(value).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"ctx.step needs a JSON value from {key}: {error}") from None
