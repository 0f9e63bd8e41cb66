"""Questions on 2026-07-28: each ends the round, and its answer is replayed in the next one.

The revision has no live requests to a client: a round ends with an `InputRequiredResult` that
carries every question that the handler waits for, and the client retries with the answers. The
handler then runs again from the start, and each question finds its recorded answer
(`basic/patterns/mrtr`).

Theory of operation. A `ReplayAsker` lives for one round. Its handler runs until each of its tasks
waits for an unanswered question or has ended. The first such question starts `_end` as a task that
outlives the request. `_end` waits until no new question comes and no step runs, seals answers and
steps into `requestState`, answers the request, and cancels the handler. The server keeps nothing
between two rounds, so an abandoned round costs nothing. A task that asks sleeps until `_end`
cancels it: it holds no lock, so it cannot block another task. `MAX_ROUNDS`, `MAX_REASKS` and
`MAX_STATE` bound the rounds, the repeats of one question and the size of the state.
"""

import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from ..._errors import McpError, ProtocolError
from ..._util import Unset, json_text
from ..._value import JSONObject
from ...engine import call_in_thread
from ...jsonrpc import INVALID_PARAMS, parse_json
from ...types import InputRequest, InputRequired

if TYPE_CHECKING:
    from .._request_context import RequestContext

#: Rounds of questions in one request. A handler with more of them asks in circles, and each round
#: runs it again from the start.
MAX_ROUNDS: Final = 50
#: Repeats of one question after an invalid answer (2026-07-28 `basic/patterns/mrtr` lets a server
#: ask again). Without a bound a client that always answers badly keeps its handler in a circle.
MAX_REASKS: Final = 3
#: Characters of sealed state. Clients carry it in every retry, and HTTP servers bound the
#: body of a request: a larger state would fail there, without a clear error.
MAX_STATE: Final = 64 * 1024
#: Turns of the trio loop that other tasks of a handler get to ask in the same round. Concurrent
#: tasks reach their questions a few checkpoints apart: ending at once would cost a round for each.
SETTLING_TURNS: Final = 5
#: Seconds that a handler has to reach a question that it asked in an earlier round. Real work may
#: lie before the question, so turns of the loop are no measure here.
PATIENCE: Final = 1.0

#: Reads an answer off the wire; raises ProtocolError for an invalid one.
Reader = Callable[[Any], Any]


class Record:
    """Answers and side effects of a handler, under keys that are stable when it runs again.

    Args:
        answers: The answers by key.
        steps: The results of the side effects, by key.
        refused: The number of invalid answers to a question, by key.
    """

    def __init__(self, answers: JSONObject, steps: JSONObject, refused: Mapping[str, int]) -> None:
        self.answers = answers
        self.steps = steps
        self.refused = Counter(refused)
        self._counts: Counter[str] = Counter()

    def rewind(self) -> None:
        """Begin from the start: the handler is run again."""
        self._counts.clear()

    def key(self, kind: str, content: Any) -> str:
        """Name a question by its content; number the repeats of an equal question.

        A key that counts all questions would depend on which of two concurrent tasks runs first,
        and trio shuffles them. A key made of the content does not.
        """
        name = kind.partition("/")[0]
        # 64 bits of the digest: the questions of one handler are few, and each character of a key
        # travels in every retry.
        digest = digest_of([kind, content])[:16]
        self._counts[digest] += 1
        return f"{name}-{digest}-{self._counts[digest]}"

    def check_patience(self, key: str, request: InputRequest) -> None:
        """Check that a question may be asked, or asked again.

        Raises:
            McpError: It was answered wrongly too often.
        """
        if self.refused[key] > MAX_REASKS:
            text = f"No valid answer to {text_of(request)} in {MAX_REASKS + 1} tries"
            raise McpError(INVALID_PARAMS, text)

    async def step(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run a side effect, or return its recorded result."""
        key = self.key("step", name)
        if key not in self.steps:
            self.steps[key] = _as_json(name, await run())
        # A fresh copy: a handler that changes the result of a step must not change the record,
        # which is sealed later. It is also a copy in the first run, so both runs see the same
        # types.
        return parse_json(json_text(self.steps[key]).encode())


def too_many_rounds() -> McpError:
    """Make the error for a handler that exceeds `MAX_ROUNDS`."""
    return McpError(INVALID_PARAMS, f"More than {MAX_ROUNDS} rounds of questions")


def text_of(request: InputRequest) -> str:
    """Return the text of a question for an error; its method if it has none."""
    return json_text(request.params.get("message", request.method))


def digest_of(value: Any) -> str:
    """Hash a JSON value; the order of keys in an object does not matter."""
    # The one class of values here that `json` does not know is the read-only mapping.
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=dict).encode()).hexdigest()


class ReplayAsker:
    """Asks by ending the round, and replays the answers of earlier rounds.

    Args:
        ctx: The request whose handler asks.

    Attributes:
        responses: The answers to the handler's own `InputRequired`.
        state: The state of the handler's own `InputRequired`.
        record: The answers and steps so far.

    Raises:
        McpError: The state is not valid for this request (-32602).
    """

    def __init__(self, ctx: "RequestContext") -> None:
        self._ctx = ctx
        self._sealer = ctx.running.server.sealer
        params = ctx.request.params or {}
        self._binding = _binding(ctx, params)
        given = params.get("inputResponses")
        # Clients may send answers to anything. `ask` takes one only if the sealed state says that
        # its question was asked: else a client could confirm a question that it never showed.
        self._given: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        # No state: the first round, or a server that wants none. Everything below then has its
        # default.
        recorded: JSONObject = {}
        if params.get("requestState") is not None:
            recorded = self._sealer.open(params["requestState"], self._binding)
        self._round: int = recorded.get("round", 0)
        parts = [recorded.get(name, {}) for name in ("answers", "steps", "refused")]
        self.record = Record(*parts)
        self._asked: list[str] = recorded.get("asked", [])
        # The answers to these: the newest ones, and those that no task has reached yet. The client
        # sends each answer once, so an unread one has to travel on in the state.
        self._answered: JSONObject = {**recorded.get("unread", {}), **self._given}
        # A handler may mix both styles. Answers that belong to `asked` questions are not for its
        # `InputRequired`, whose own answers stay those of the round before.
        self.responses = recorded.get("given", {}) if self._asked else self._given
        self.state: str | None = recorded.get("state")
        # Questions of earlier rounds that this run has not asked yet. A run that never asks them is
        # not deterministic, and its answers would be given to the wrong questions.
        self._missing = {*self.record.answers, *self._asked}
        self._remembered = trio.Event()  # set once `_missing` is empty
        self._pending: dict[str, InputRequest] = {}
        self._running = 0
        self._idle = trio.Event()  # set while no step runs
        self._ending = False

    async def ask(self, request: InputRequest, read: Reader, timeout: float | Unset | None) -> Any:
        """Return the recorded answer, or end the round with this question.

        Raises:
            McpError: Too many rounds, or too many invalid answers.
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
                # `basic/patterns/mrtr` allows an error or a new question: a person who mistyped is
                # asked again. The count travels in the state, else there would be no bound.
                self.record.refused[key] += 1
            else:
                answers[key] = self._answered[key]
                return answer
        self.record.check_patience(key, request)
        self._pending[key] = request
        if not self._ending:
            self._check_rounds()
            self._ending = True
            # Not in the nursery of the handler: `_end` cancels that, and would cancel itself.
            self._ctx.running.linger(self._end)
        # `_end` cancels the whole handler. It must not see an exception of its own for that: a
        # broad `except` in the author's code would swallow it and go on without an answer.
        return await trio.sleep_forever()

    async def step(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run the side effect, or return its result from an earlier round."""
        # Also for a recorded answer: concurrent tasks get their turns in every run, so that more of
        # them reach their questions in this round.
        await trio.lowlevel.checkpoint()
        if self._running == 0:
            self._idle = trio.Event()
        # Counted for `_end`: a round that ended in the middle of a step would lose its result, and
        # the next round would repeat the side effect.
        self._running += 1
        try:
            return await self.record.step(name, run)
        finally:
            self._running -= 1
            if self._running == 0:
                self._idle.set()

    async def retry(self, required: InputRequired) -> tuple[Mapping[str, Any], str | None] | None:
        """End the round with the questions and the state of an `InputRequired`."""
        self._check_rounds()
        # `asked` is empty: the answers of the next round belong to the handler, which reads them
        # from `ctx.input_responses`, and not to calls of `ask`.
        self._reply(required.requests, {"asked": [], "state": required.state})
        await trio.lowlevel.checkpoint()
        return None

    def _check_rounds(self) -> None:
        if self._round >= MAX_ROUNDS:
            raise too_many_rounds()

    async def _end(self) -> None:
        """End the round once the handler has asked all that it asks now, and no step runs."""
        # Counting turns from the last new question, not from the first: each question may let
        # another task of the handler reach its own.
        quiet = 0
        while quiet < SETTLING_TURNS:
            before = len(self._pending)
            await trio.lowlevel.checkpoint()
            quiet = quiet + 1 if len(self._pending) == before else 0
            if self._running:
                await self._idle.wait()
                quiet = 0
        # The handler may have returned or failed beside the question, or the client may have gone.
        # One request has one answer.
        if self._ctx.answered or self._ctx.withdrawn:
            return
        if not self._is_held_up() and await self._forgot():
            self._ctx.send_reason(_not_deterministic(self._pending))
        else:
            # Also kept as `asked`: in the next round these answers must count as answers to
            # questions.
            answered = self._answered
            unread = {
                key: answered[key]
                for key in self._asked
                if key in self._missing and key in answered
            }
            asked = {"asked": [*self._pending, *unread], "unread": unread}
            content = {**asked, "given": self.responses, "state": self.state}
            self._reply(self._pending, content)
        self._ctx.stop()

    def _is_held_up(self) -> bool:
        """Tell whether a task waits only because another task took the answer to an equal question.

        The order of the two may differ from round to round. The waiting task gets an answer of its
        own in the next round, and continues to its earlier questions then.
        """
        recorded = {*self.record.answers, *self._asked}
        # The number of a key counts equal questions: the one before is the previous equal one.
        parts = (key.rpartition("-") for key in self._pending)
        return any(f"{name}-{int(number) - 1}" in recorded for name, _, number in parts)

    async def _forgot(self) -> bool:
        """Tell whether a question of an earlier round is missing in this one.

        A task of the handler that is slower this time gets `PATIENCE` seconds to ask it.
        """
        with trio.move_on_after(PATIENCE):
            await self._remembered.wait()
        return bool(self._missing)

    def _reply(self, requests: Mapping[str, InputRequest], content: Mapping[str, Any]) -> None:
        record = self.record
        kept = {"answers": record.answers, "steps": record.steps, "refused": record.refused}
        content = {**content, **kept, "round": self._round + 1}
        state = self._sealer.seal(content, self._binding)
        # Checked after sealing: the limit is for the text that a client must carry.
        if len(state) > MAX_STATE:
            text = f"The answers and steps so far exceed {MAX_STATE} characters of sealed state"
            self._ctx.send_reason(text)
            return
        result: JSONObject = {"resultType": "input_required", "requestState": state}
        # State without questions is a valid result: the client retries at once (2026-07-28
        # `basic/patterns/mrtr`). An empty `inputRequests` would be ambiguous.
        if requests:
            result["inputRequests"] = {key: each.to_wire() for key, each in requests.items()}
        self._ctx.complete(result)


def as_step(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[str, Callable[[], Awaitable[Any]]]:
    """Make the two arguments of an asker's `step` from those of `ctx.step`.

    Raises:
        TypeError: The arguments are not JSON values.
    """
    # Partials and callable objects have no name of their own.
    name = getattr(function, "__qualname__", type(function).__qualname__)
    try:
        key = f"{name}{json_text(list(args))}"
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"ctx.step needs JSON values as arguments of {name}: {error}") from None

    async def run() -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        return await trio.to_thread.run_sync(call_in_thread, partial(function, *args))

    return key, run


def _as_json(key: str, value: Any) -> Any:
    """Convert the result of a step into the JSON values that a replay will return."""
    try:
        return parse_json(json_text(value).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"ctx.step needs a JSON value from {key}: {error}") from None


def _not_deterministic(pending: Mapping[str, InputRequest]) -> str:
    asked = ", ".join(map(text_of, pending.values()))
    return (
        "the handler is not deterministic: in an earlier round it asked something else than"
        f" {asked}; what it asks may depend on its arguments, on answers and on ctx.step only"
    )


def _binding(ctx: "RequestContext", params: Mapping[str, Any]) -> JSONObject:
    """Return the owner of a state: server, caller, method and arguments.

    2026-07-28 `basic/patterns/mrtr` wants the principal, the method and a digest of the salient
    parameters in the protected payload. Without them a client could replay the approval of one
    call in another one.
    """
    # `_meta` is fresh in each retry, and the other two are what a retry adds.
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
        "arguments": digest_of(own),
    }
