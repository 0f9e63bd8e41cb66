"""Questions on 2026-07-28: each ends the round, and the next round brings its answer.

The revision has no live requests to a client: a round ends with an `InputRequiredResult` that
carries every question that the handler waits for, and the client retries with the answers
(`basic/patterns/mrtr`).

Theory of operation. A `RoundAsker` belongs to one run of a handler. It is *open* while a request is
in flight. The handler runs until each of its tasks waits for an unanswered question or has ended.
The first such question starts `_end` as a task that outlives the request. `_end` waits until no new
question comes and no step runs, seals answers and steps into `requestState`, and answers the
request. If the handler has one task, its question does this directly, without waiting. The handler
is then *parked*, if `ParkedHandlers` has room for it: its tasks keep waiting, its clocks stop and
its steps are held, until `resume` of the retry opens it again under the id of that request.
Answers wake the questions that wait for them; if others are left the round ends again.

Without room, or if the parked handler is gone by then, the handler is *replayed*: it was cancelled,
it runs again from its start with the retry, and each question finds its recorded answer. The
answers on the wire are the same either way, since the state is always complete: no step runs while
the handler is parked. Only a task that works beside a question may be ahead of a replay, and ask in
an earlier round. A state is used once, by its first valid retry, even if that retry fails: one
answer of a person must not approve two payments.

A task that asks sleeps until a retry wakes it or the end of the handler cancels it. It holds no
lock, so it cannot block another task. `MAX_ROUNDS`, `MAX_REASKS` and `MAX_STATE` bound the rounds,
the repeats of one question and the size of the state; `Limits` bounds the parked handlers.
"""

import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

import trio

from ..._errors import McpError, ProtocolError
from ..._util import UNSET, Unset
from ..._value import JSONMapping, JSONObject
from ...engine import logger
from ...jsonrpc import INVALID_PARAMS
from ...types import InputRequest, InputRequired
from ..calls._time_limit import Pause
from ._record import MAX_ROUNDS, Reader, Record, text_of, too_many_rounds
from ._seal import USED_STATE

if TYPE_CHECKING:
    from .._server_request import ServerRequest

#: Maximum characters of sealed state. Clients send it in every retry, and HTTP servers limit the
#: body of a request: a larger state would fail there without a clear error.
MAX_STATE: Final = 64 * 1024
#: Turns of the trio loop in which other tasks of a handler may ask in the same round. Concurrent
#: tasks reach their questions a few checkpoints apart: ending at once would take a round for each.
SETTLING_TURNS: Final = 5
#: Seconds in which a handler must reach a question that it asked in an earlier round. In seconds,
#: not turns of the loop, since there may be real work before the question.
PATIENCE: Final = 1.0

#: The packages whose frames are not the author's.
_NOT_OWN: Final = frozenset({"noizu_mcp", "trio"})


class _Question:
    """A question that waits for its answer."""

    __slots__ = ("error", "request", "woken")

    def __init__(self, request: InputRequest) -> None:
        self.request = request
        self.woken = trio.Event()  # set once its answer or `error` is there
        self.error: McpError | None = None


def resume(ctx: "ServerRequest") -> bool:
    """Take up the answers and the state of a retry, before its handler runs.

    Returns:
        True if the handler of the previous round was parked and continues; False to run the
        handler.

    Raises:
        McpError: The state is not valid for this request, or was used before (-32602).
    """
    params = ctx.request.params or {}
    given, state = params.get("inputResponses"), params.get("requestState")
    given = given if isinstance(given, Mapping) else {}
    binding = binding_of(ctx)
    sealer = ctx.running.server.sealer
    if isinstance(state, str):
        # No need to open it: only this server can have sealed this exact text.
        parked = ctx.running.parked.take(state, binding)
        if parked is not None and ctx.scope is not None:
            # Its providers were asked first, in a task with its own scope, which cannot continue
            # for another request: the handler runs again.
            parked.stop()
        elif parked is not None and isinstance(parked.asker, RoundAsker):
            sealer.use(state)
            parked.resume_as(ctx)
            if ctx.running.node is None:
                parked.asker.reopen(given)
            else:
                reopen = partial(parked.asker.reopen, given)
                ctx.running.linger(partial(_reopen_claimed, parked, state, reopen))
            return True
    recorded = {} if state is None else sealer.open_once(state, binding)
    ctx.take_asker(RoundAsker(ctx, recorded, given))
    return False


async def _reopen_claimed(parked: "ServerRequest", state: str, reopen: Callable[[], None]) -> None:
    """Let a parked handler go on with a retry, unless another node has got the same retry."""
    if await parked.running.claims.claim(state):
        reopen()
    else:
        parked.send_error(INVALID_PARAMS, USED_STATE)
        parked.stop()


class RoundAsker:
    """Asks by ending the round, and continues with the answers of the next round.

    Args:
        ctx: The request whose handler asks.
        recorded: The contents of the state that the request carries; None in a first round, and for
            a server without state.
        given: The answers that the request carries, to any questions; None for no answers.

    Attributes:
        responses: The answers to the handler's own `InputRequired`.
        state: The state of the handler's own `InputRequired`.
        record: The answers and steps so far.
    """

    def __init__(
        self,
        ctx: "ServerRequest",
        recorded: JSONMapping | None = None,
        given: JSONMapping | None = None,
    ) -> None:
        recorded, given = recorded or {}, given or {}
        self._ctx = ctx
        self._pause = Pause(ctx)
        self._binding = binding_of(ctx)
        self._round: int = recorded.get("round", 0)
        self._asked: Sequence[str] = recorded.get("asked", ())
        # Answers that no task has read yet. The client sends each answer once, so an unread answer
        # must be kept in the state.
        self._unread: JSONObject = {**recorded.get("unread", {}), **self._meant(given)}
        parts = [recorded.get(name) for name in ("answers", "steps", "refused")]
        self.record = Record(*parts)
        # A handler may mix both styles. Answers to `asked` questions are not for its
        # `InputRequired`, which keeps the answers of the previous round.
        self.responses = recorded.get("given", {}) if self._asked else given
        self.state: str | None = recorded.get("state")
        # Questions of earlier rounds that this run has not asked yet. A run that never asks them is
        # not deterministic, and its answers would go to the wrong questions.
        self._missing = {*self.record.answers, *self._asked}
        self._remembered: trio.Event | None = None  # while `_end` waits for `_missing` to be empty
        self._pending: dict[str, _Question] = {}
        self._count = 0  # number of questions that ever waited
        self._running = 0
        self._idle: trio.Event | None = None  # while `_end` waits until no step runs
        self._ending = False
        self._reopened: trio.Event | None = None  # while the handler is parked
        self._sealed = ""  # the state of the last answer
        # Until the handler asks or runs a step: code before that may have run twice.
        self._replays = bool(self._asked)

    def _meant(self, given: JSONMapping) -> JSONObject:
        """Select the answers to questions that were asked.

        Clients may send any answers. An answer is used only if the state says that its question was
        asked: else a client could confirm a question that it never showed.
        """
        return {key: given[key] for key in self._asked if key in given}

    # Asking

    async def ask(self, request: InputRequest, read: Reader, timeout: float | Unset | None) -> Any:
        """Return the recorded answer, or end the round with this question and wait for it.

        Raises:
            McpError: Too many rounds, or too many invalid answers.
        """
        if self._replays:
            self._note_replay()
        key = self.record.key(request.method, request.params)
        answers = self.record.answers
        if key in answers or key in self._unread:
            # Also for a recorded answer: an await that sometimes does not yield surprises its
            # caller, and concurrent tasks get their turns in every run.
            await trio.lowlevel.checkpoint()
        # No checkpoint from here until an answer is recorded: `_end` may seal at any checkpoint.
        self._missing.discard(key)
        if self._remembered is not None and not self._missing:
            self._remembered.set()
        if key in answers:
            return read(answers[key])
        value = self._read(key, read)
        if value is UNSET:
            value = await self._pause.around(partial(self._read_next, key, request, read))
        return value

    def _read(self, key: str, read: Reader) -> Any:
        """Return the answer of a retry; UNSET if it is missing or invalid."""
        if key not in self._unread:
            return UNSET
        answer = self._unread.pop(key)
        try:
            value = read(answer)
        except ProtocolError:
            # `basic/patterns/mrtr` allows an error or a new question: a person who mistyped is
            # asked again. The count is kept in the state, so that repeats are bounded.
            self.record.refuse(key)
            return UNSET
        self.record.answers[key] = answer
        return value

    async def _read_next(self, key: str, request: InputRequest, read: Reader) -> Any:
        """Ask, and repeat the question while the answer is invalid."""
        while True:
            self.record.check_patience(key, request)
            await self._wait(key, request)
            value = self._read(key, read)
            if value is not UNSET:
                return value

    async def _wait(self, key: str, request: InputRequest) -> None:
        """Wait until a retry brings the answer to a question.

        Raises:
            McpError: Too many rounds.
        """
        question = self._pending[key] = _Question(request)
        self._count += 1
        try:
            self._end_soon()
            await question.woken.wait()
        finally:
            # Also runs if the handler cancels the question.
            del self._pending[key]
        if question.error is not None:
            raise question.error

    async def step(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run the side effect, or return its result from an earlier round."""
        self._replays = False
        # Also for a recorded result: concurrent tasks get their turns in every run, so that more of
        # them reach their questions in this round.
        await trio.lowlevel.checkpoint()
        # The client's state has no results of later steps: a replay would repeat them.
        while self._reopened is not None:
            await self._reopened.wait()
        # Counted for `_end`: if a round ended in the middle of a step, its result would be lost,
        # and the next round would repeat the side effect.
        self._running += 1
        try:
            return await self.record.step(name, run)
        finally:
            self._running -= 1
            if self._idle is not None and self._running == 0:
                self._idle.set()

    async def retry(self, required: InputRequired) -> bool:
        """End the round with the questions and the state of an `InputRequired`."""
        if self._round >= MAX_ROUNDS:
            raise too_many_rounds()
        # `asked` is empty: the next answers belong to the handler, which reads them from
        # `ctx.input_responses`, and not to calls of `ask`.
        self._reply(required.requests, {"asked": [], "state": required.state})
        await trio.lowlevel.checkpoint()
        return False

    def _note_replay(self) -> None:
        """Log once that a handler ran code again before its first question."""
        self._replays = False
        code = _code_before()
        if code is not None and code not in self._ctx.running.replayed:
            self._ctx.running.replayed.add(code)
            logger.warning(
                "%s (%s:%d) ran again from its first line: its code before its first question has"
                " run twice; put side effects into ctx.step",
                code.co_qualname,
                code.co_filename,
                code.co_firstlineno,
            )

    # The end of a round

    def _end_soon(self) -> None:
        """Start to end the round, if a request is in flight and the round is not ending yet."""
        if self._ending or self._reopened is not None:
            return
        if self._round >= MAX_ROUNDS:
            for key, question in self._pending.items():
                if key not in self._unread:
                    question.error = too_many_rounds()
                    question.woken.set()
            return
        if not self._missing and self._is_alone():
            self._end_now()
            return
        self._ending = True
        # Not in the nursery of the handler: `_end` may cancel that nursery, and would cancel
        # itself.
        self._ctx.running.linger(self._end)

    def _is_alone(self) -> bool:
        """Tell whether the handler has one task, the calling one, so that nothing else can ask."""
        task, own = trio.lowlevel.current_task(), self._ctx.trio_task
        return (own is None or own is task) and not task.child_nurseries

    async def _end(self) -> None:
        """End the round once the handler has asked all its current questions and no step runs."""
        # Turns are counted from the last new question, not from the first: each question may let
        # another task of the handler reach its own.
        quiet = 0
        while quiet < SETTLING_TURNS:
            before = self._count
            await trio.lowlevel.checkpoint()
            quiet = quiet + 1 if self._count == before else 0
            while self._running:
                self._idle = trio.Event()
                await self._idle.wait()
                quiet = 0
        pending = self._pending
        forgot = bool(pending) and not self._is_held_up() and await self._forgot()
        self._ending = False
        # The handler may have cancelled its questions, and continues.
        if pending:
            self._end_now(forgot=forgot)

    def _end_now(self, *, forgot: bool = False) -> None:
        """Answer the request with the open questions, and park the handler or cancel it."""
        ctx, pending = self._ctx, self._pending
        # The handler may have returned or failed beside the question, or the client may be gone. A
        # request has one answer.
        if ctx.answered or ctx.withdrawn:
            return
        if forgot:
            ctx.send_reason(_not_deterministic(each.request for each in pending.values()))
        else:
            # Also kept as `asked`: in the next round these answers must count as answers to
            # questions.
            unread = {key: self._unread[key] for key in self._unread if key in self._missing}
            self._asked, self._unread = [*pending, *unread], unread
            asked = {"asked": self._asked, "unread": unread}
            content = {**asked, "given": self.responses, "state": self.state}
            requests = {key: question.request for key, question in pending.items()}
            if self._reply(requests, content) and self._park():
                return
        ctx.stop()

    def _is_held_up(self) -> bool:
        """Tell whether a task waits only because another task took the answer to an equal question.

        The order of the two may differ between rounds. The waiting task gets an answer in the next
        round, and then reaches its earlier questions.
        """
        recorded = {*self.record.answers, *self._asked}
        # The number of a key counts equal questions: number - 1 is the previous one.
        parts = (key.rpartition("-") for key in self._pending)
        return any(f"{name}-{int(number) - 1}" in recorded for name, _, number in parts)

    async def _forgot(self) -> bool:
        """Tell whether a question of an earlier round is missing in this one.

        A slower task of the handler gets `PATIENCE` seconds to ask it.
        """
        if self._missing:
            self._remembered = trio.Event()
            with trio.move_on_after(PATIENCE):
                await self._remembered.wait()
        return bool(self._missing)

    def _reply(self, requests: Mapping[str, InputRequest], content: JSONMapping) -> bool:
        """Answer with questions and state; False if it had to answer with an error."""
        record = self.record
        kept = {"answers": record.answers, "steps": record.steps, "refused": record.refused}
        self._round += 1
        content = {**content, **kept, "round": self._round}
        state = self._ctx.running.server.sealer.seal(content, self._binding)
        # Checked after sealing: the limit applies to the text that a client sends.
        if len(state) > MAX_STATE:
            text = f"The answers and steps so far exceed {MAX_STATE} characters of sealed state"
            self._ctx.send_reason(text)
            return False
        self._sealed = state
        result: JSONObject = {"resultType": "input_required", "requestState": state}
        # State without questions is a valid result: the client retries at once (2026-07-28
        # `basic/patterns/mrtr`). An empty `inputRequests` would be ambiguous.
        if requests:
            result["inputRequests"] = {key: each.to_wire() for key, each in requests.items()}
        self._ctx.complete(result)
        return True

    # Parked

    def _park(self) -> bool:
        """Keep the handler for the retry, if there is room for it."""
        ctx = self._ctx
        # If a tool begins its task itself, the task runs the handler from the start.
        task_start = ctx.task_start
        begins = task_start is not None and task_start.begins_itself
        if begins or not ctx.running.parked.add(self._sealed, self._binding, ctx):
            return False
        # Together with the clocks of the questions: the handler may cancel those.
        self._pause.begin()
        self._reopened = trio.Event()
        # It waits for a person, not for the program.
        ctx.running.working.pop(ctx, None)
        return True

    @property
    def parked(self) -> bool:
        """True while the handler waits for a retry."""
        return self._reopened is not None

    def reopen(self, given: JSONMapping) -> None:
        """Go on with the answers of a retry.

        Args:
            given: The answers of the retry, to any questions.
        """
        self._unread |= self._meant(given)
        reopened: Any = self._reopened
        self._reopened = None
        self._pause.end()
        reopened.set()
        for key, question in self._pending.items():
            if key in self._unread:
                question.woken.set()
        # The client has not answered all of them, or the handler has asked more in the meantime.
        if not self._unread.keys() >= self._pending.keys():
            self._end_soon()

    async def stay_open(self) -> None:
        """Wait until a request is in flight that can carry the result of the handler."""
        while self._reopened is not None:
            try:
                # A parked handler may end by itself: it may cancel its questions.
                await self._reopened.wait()
            finally:
                self._ctx.running.parked.discard(self._sealed)


def _not_deterministic(pending: Iterable[InputRequest]) -> str:
    asked = ", ".join(map(text_of, pending))
    return (
        "the handler is not deterministic: in an earlier round it asked something else than"
        f" {asked}; what it asks may depend on its arguments, on answers and on ctx.step only"
    )


def binding_of(ctx: "ServerRequest") -> JSONObject:
    """Return the owner of a state: server, caller, method and arguments.

    2026-07-28 `basic/patterns/mrtr` requires the principal, the method and a digest of the salient
    parameters in the protected payload. Otherwise a client could replay the approval of one call in
    another one.
    """
    params = ctx.request.params or {}
    caller = ctx.envelope.origin.principal
    return {
        "server": ctx.running.server.options.name,
        "principal": None if caller is None else caller.key,
        "method": ctx.request.method,
        "name": params.get("name", params.get("uri")),
        "arguments": ctx.params_digest,
    }


def _code_before() -> CodeType | None:
    """Find the handler that asks now, if it has run another statement before.

    Returns:
        Its code; None if its question is the first statement, also within the functions it calls.
    """
    found: CodeType | None = None
    before = False
    for frame in _own_frames():
        found = frame.f_code
        lines = (line for _, _, line in found.co_lines() if line)
        first = next((line for line in lines if line > found.co_firstlineno), frame.f_lineno)
        before = before or frame.f_lineno > first
    return found if before else None


def _own_frames() -> list[FrameType]:
    """List the author's frames of this task, the innermost first."""
    # The frames below the trio loop belong to the program that runs it.
    frames = (frame for frame, _ in traceback.walk_stack(None))
    of_task = takewhile(lambda frame: _module_of(frame) != "trio._core._run", frames)
    return [each for each in of_task if _module_of(each).partition(".")[0] not in _NOT_OWN]


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
