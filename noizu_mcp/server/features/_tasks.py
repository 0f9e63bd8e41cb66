"""Tasks (the extension `io.modelcontextprotocol/tasks`): their methods, and calls that begin one.

Theory of operation. An `OfferedTask` decides once for each call. A tool with `starts_task` runs in
its request until the handler awaits `ctx.start_task()`; any other begins its task before the
handler runs. `_begin` enters the task in the store, starts it and answers the request with it. The
handler in the request is then cancelled, and the task runs it from the start, with the answers and
steps of the request. `_left` keeps the two from overlapping: the task waits until the handler has
left the request. It is set in a `finally`, so the task cannot wait for ever. At a node of many, a
task is stored before it begins (`enter_stored`), and a request for a task may have to ask for it
(`_serve`). `run_again` is the second begin, from a stored call at another node.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from ..._errors import InsufficientScope, McpError
from ..._value import JSONMapping, JSONObject
from ...components import ToolSpec
from ...engine import Job
from ...events import EventEmitter
from ...jsonrpc import INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, memory_of
from ...protocol import Dispatch, Envelope
from ...types import TASKS, ToolResult
from .._server_context import NOT_SENT
from .._server_request import ServerRequest
from ..asking._live import EarlierRun, LiveAsker
from ..asking._rounds import RoundAsker
from ..calls._answers import as_result
from ..calls._call import RequestedCall, ToolCall
from ..calls._emitters import observe_second_run, observe_task
from ..calls._invoke import ending_of
from ..calls._scope_checks import denial, needed
from ..calls._time_limit import enter_task
from ..tasks._running_task import RunningTask
from ..tasks._task_store import unknown_task
from ..threads._fair_limiter import ClientShare
from ._stored_call import read_call, store_call
from ._work import in_time

if TYPE_CHECKING:
    from ...types import RequireScopes
    from .._running import RunningServer
    from ..tasks._task_records import TaskRecord

#: The result for a handshake client, which cannot declare the extension.
_NEEDED: Final = ToolResult.error(
    f"This tool runs as a task: it needs a client of 2026-07-28 with the extension {TASKS}"
)


def declares_tasks(envelope: Envelope) -> bool:
    """Tell whether the request declares tasks; 2026-07-28 forbids remembering earlier requests."""
    extensions = envelope.client_capabilities.get("extensions")
    declared = isinstance(extensions, Mapping) and isinstance(extensions.get(TASKS), Mapping)
    return envelope.revision.stateless and declared


def require_tasks(envelope: Envelope) -> None:
    """Check that a request declares tasks.

    Raises:
        McpError: The request does not declare tasks (-32021).
    """
    if not declares_tasks(envelope):
        # An object in the form of `ClientCapabilities`, not a list of names (2026-07-28
        # `basic/index`).
        data: JSONObject = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise McpError(MISSING_CLIENT_CAPABILITY, "Missing required client capability", data)


def owner_of(envelope: Envelope) -> str | None:
    """Return the key of the principal of a request; None without authentication."""
    principal = envelope.origin.principal
    return None if principal is None else str(principal.key)


def get_task(ctx: ServerRequest) -> Job | None:
    """Answer `tasks/get`: the current state, with questions, result or error."""
    return _serve(ctx, _get)


def _get(ctx: ServerRequest, task: "RunningTask | TaskRecord") -> None:
    ctx.complete(task.shown)
    # After the answer, and only for an ended task: the task may now be removed to make room.
    ctx.running.tasks.note_delivered(task)


def update_task(ctx: ServerRequest) -> Job | None:
    """Answer `tasks/update`: store answers to some or all questions of the task."""
    return _serve(ctx, _update)


def _update(ctx: ServerRequest, task: "RunningTask | TaskRecord") -> Awaitable[None] | None:
    answers = (ctx.request.params or {}).get("inputResponses")
    if not isinstance(answers, Mapping):
        raise McpError(INVALID_PARAMS, "tasks/update requires an inputResponses object")
    if not isinstance(task, RunningTask):
        return _update_elsewhere(ctx, task, answers)
    task.answer(answers)
    ctx.complete({})
    return None


async def _update_elsewhere(ctx: ServerRequest, task: "TaskRecord", answers: JSONMapping) -> None:
    await ctx.running.shared_tasks.messages.answer(task, answers)
    ctx.complete({})


def cancel_task(ctx: ServerRequest) -> Job | None:
    """Answer `tasks/cancel` at once; the cancellation is cooperative (extension)."""
    return _serve(ctx, _cancel)


def _cancel(ctx: ServerRequest, task: "RunningTask | TaskRecord") -> None:
    if isinstance(task, RunningTask):
        task.cancel()
    else:
        ctx.running.shared_tasks.messages.cancel(task)
    ctx.complete({})


#: Answers a request for a task; returns the rest of the work, if any.
_Act = Callable[[ServerRequest, "RunningTask | TaskRecord"], Awaitable[None] | None]


def _serve(ctx: ServerRequest, act: _Act) -> Job | None:
    """Find the task of a request, and answer the request.

    Raises:
        McpError: The server has no tasks (-32601), the request does not declare them (-32021), or
            the task is unknown (-32602).
        InsufficientScope: The caller lacks scopes that the call needed.
    """
    # Both checks: a tool with tasks may be removed while one of its tasks is still stored.
    if not ctx.running.server.registry.has_tasks and not len(ctx.running.tasks):
        raise ctx.unknown_method()
    require_tasks(ctx.envelope)
    running, owner = ctx.running, owner_of(ctx.envelope)
    id_: Any = (ctx.request.params or {}).get("taskId")
    # Over HTTP, the transport of nodes, a header repeats the id, so it is a text.
    if running.node is not None and not running.shared_tasks.is_here(id_):
        return in_time(ctx, partial(_serve_elsewhere, ctx, id_, act))
    task = running.tasks.find(id_, owner)
    task.admit(ctx.envelope.origin.principal)
    act(ctx, task)
    return None


async def _serve_elsewhere(ctx: ServerRequest, id_: str, act: _Act) -> None:
    task = await ctx.running.shared_tasks.find(id_)
    if task is None or task.owner != owner_of(ctx.envelope):
        raise unknown_task()
    task.admit(ctx.envelope.origin.principal)
    rest = act(ctx, task)
    if rest is not None:
        await rest


class TaskRequest(ServerRequest):
    """The call of a tool in its task: questions and progress go into the task.

    Args:
        request: The request that began the task; it is answered.
        task: The task.
        before: The asker of the request. The task keeps its answers and steps.
        emitter: The emitter of the task; None without listeners.
        task_start: Lets the handler call `ctx.start_task()` again.
    """

    def __init__(
        self,
        request: ServerRequest,
        task: RunningTask,
        before: EarlierRun | None,
        emitter: EventEmitter | None,
        *,
        task_start: "BegunTask",
    ) -> None:
        # The request is answered, and the extension forbids progress and log notifications for
        # tasks: sending one with the old token would be a protocol error.
        envelope = request.envelope._replace(progress_token=None, log_level=None)
        super().__init__(
            request.running,
            request.dispatcher,
            request.in_flight,
            Dispatch(request.request, envelope),
            request.channel,
            key=request.key,
        )
        # Nothing may be sent on the channel of the request after its answer.
        self.answered = True
        self.task = task
        self.attempt = task.attempt
        self.asker = LiveAsker(task, task, before)
        self.task_start = task_start
        self._emitter = emitter

    @property
    def emitter(self) -> EventEmitter | None:
        """The emitter of the task. The emitter of the request has ended."""
        return self._emitter

    @property
    def cancelled(self) -> bool:
        """True once the task was cancelled or has ended."""
        return self.task.cancelling or self.task.ended

    def check_scopes(self, scopes: "RequireScopes") -> None:
        """Check the scopes of the caller. Access to the task requires them from now on."""
        super().check_scopes(scopes)
        self.running.portal.run(lambda: self.running.tasks.require(self.task, scopes))

    @property
    def threads(self) -> ClientShare:
        """The threads of sync handlers in tasks, separate from the threads of requests."""
        return self.running.server.task_threads.of(self.envelope.origin.client)

    def send_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> Awaitable[None]:
        """Set the progress as status message: tasks have no progress notifications (extension)."""
        far = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        # In the loop's thread: a sync handler calls this in another thread.
        self.running.portal.run(lambda: self.task.say(message or far))
        return NOT_SENT


class BegunTask(NamedTuple):
    """A running task; a `TaskStart`.

    Attributes:
        begins_itself: As in `TaskStart`.
    """

    begins_itself: bool

    async def begin(self) -> None:
        """Do nothing: the handler of a running task calls `ctx.start_task()` again."""
        await trio.lowlevel.checkpoint()

    def takes_task(self) -> bool:
        """Return True: the task has begun."""
        return True


class OfferedTask:
    """The call of a tool that may become a task; a `TaskStart`.

    Args:
        call: The call.
        request: Its request.
        spec: The tool.

    Attributes:
        possible: True if the request declares tasks, and there is room for an optional task.
        begins_itself: As in `TaskStart`.
        waits: As in `CallTaskStart`.
    """

    def __init__(self, call: ToolCall, request: ServerRequest, spec: ToolSpec) -> None:
        self.possible = declares_tasks(request.envelope)
        self.begins_itself = spec.starts_task
        self.waits = False
        self._ctx = request
        self._spec = spec
        self._call = call
        # set once the handler has left the request, or if it never ran there
        self._left = trio.Event()
        self._beginning = trio.Lock()  # several tasks of a handler may call `begin`

    def enter(self) -> bool:
        """Begin the task or refuse the call, if the handler need not run first.

        Returns:
            True if the request is answered.

        Raises:
            McpError: The request does not declare tasks (-32021), or a limit is reached.
        """
        if not self.begins_itself and self._has_room():
            self._left.set()
            if self._ctx.running.node is not None:
                self.waits = True
                return False
            self._begin(self._create(), None)
            return True
        if self.possible or self._spec.task == "optional":
            self._ctx.offer_task(self)
            return False
        if self._ctx.envelope.revision.stateless:
            require_tasks(self._ctx.envelope)
        self._ctx.complete(_NEEDED.to_wire())
        return True

    async def enter_stored(self) -> bool:
        """Store the task, and begin it.

        Returns:
            True if the request is answered; False if the call runs in the request.

        Raises:
            McpError: A limit is reached, or the task cannot be stored now (-32603).
        """
        if await self._begin_stored(None):
            return True
        self._ctx.offer_task(self)
        return False

    async def _begin_stored(self, before: RoundAsker | None) -> bool:
        ctx, spec = self._ctx, self._spec
        call = store_call(ctx, before) if spec.restartable else None
        try:
            task = await ctx.running.shared_tasks.create(
                owner_of(ctx.envelope), self._size, spec.requires, call
            )
        except McpError:
            if spec.task == "required":
                raise
            self.possible = False
            return False
        self._begin(task, before)
        return True

    @cached_property
    def _size(self) -> int:
        """Bytes that the task uses while it runs: the size of its request."""
        return memory_of(self._ctx.request.params)

    def leaving(self, job: Job) -> Job:
        """Wrap the job of the request, to record when its handler has left it."""

        async def whole() -> None:
            try:
                await job()
            finally:
                self._left.set()

        return whole

    async def begin(self) -> None:
        """Begin the task for a handler, whose run in the request then ends."""
        ctx = self._ctx
        async with self._beginning:
            if not self.possible:
                return
            # The client may have cancelled, or another task of the handler may have called this.
            if not ctx.cancelled:
                if not self._has_room():
                    return
                before = ctx.asker if isinstance(ctx.asker, RoundAsker) else None
                if ctx.running.node is None:
                    self._begin(self._create(), before)
                elif not await self._begin_stored(before):
                    return
                ctx.stop()
        # The cancellation of the request ends this call. If it returned, the handler would run
        # twice.
        await trio.sleep_forever()

    def takes_task(self) -> bool:
        """Tell whether `begin` begins a task."""
        return self.begins_itself and self._has_room()

    def _has_room(self) -> bool:
        """Tell whether a task may begin. Without room, an optional task runs in its request."""
        if self.possible and self._spec.task == "optional":
            owner = owner_of(self._ctx.envelope)
            self.possible = self._ctx.running.tasks.make_room(owner, self._size)
        return self.possible

    def _create(self) -> RunningTask:
        task = self._ctx.running.tasks.create(owner_of(self._ctx.envelope), self._size)
        if self._spec.requires is not None:
            task.require(self._spec.requires)
        return task

    def _begin(self, task: RunningTask, before: RoundAsker | None) -> None:
        """Start the task, and then answer the request: `tasks/get` must find the task at once."""
        timeout = self._spec.timeout if isinstance(self._spec.timeout, float) else None
        store = self._ctx.running.tasks
        record = observe_task(self._ctx.context, task)
        store.start(task, partial(self._run, task, before, record), timeout, record)
        answer = task.to_wire(detailed=False)
        self._ctx.complete({"resultType": "task", **answer})

    async def _run(
        self, task: RunningTask, before: RoundAsker | None, emitter: EventEmitter | None
    ) -> JSONMapping:
        # A step of the request may still run. It must be recorded before the task looks for it, or
        # its side effect would happen twice.
        await self._left.wait()
        begun = BegunTask(self.begins_itself)
        request = TaskRequest(self._ctx, task, before, emitter, task_start=begun)
        return await _run_call(self._call, self._ctx, request)


async def _run_call(call: ToolCall, ctx: ServerRequest, request: TaskRequest) -> JSONMapping:
    """Run the call of a task.

    Args:
        call: The call, as its request has begun it.
        ctx: That request.
        request: The task in its place.
    """
    try:
        enter_task()
        result = as_result(await call.on_request(request).run())
        request.task.ending = ending_of(result)
        return result.to_wire()
    except InsufficientScope as error:
        scopes = needed(ctx.request, ctx.context, error.scopes)
        raise denial(ctx, scopes, ctx.running.transport) from None


#: Nothing is sent for a request that another node has answered.
_NOWHERE: Any = None


def run_again(running: "RunningServer", stored: JSONObject, task: RunningTask) -> None:
    """Run a task from its stored call, whose request another node has answered.

    Args:
        running: The server while it is served.
        stored: The call, from `store_call`.
        task: The task; it is not running.
    """
    event, before = read_call(stored)
    ctx = ServerRequest(running, None, _NOWHERE, event, _NOWHERE)
    record = observe_second_run(ctx.request, ctx.context, task)
    running.tasks.start(task, partial(_find_and_run, ctx, task, before, record), None, record)


async def _find_and_run(
    ctx: ServerRequest, task: RunningTask, before: EarlierRun | None, emitter: EventEmitter | None
) -> JSONMapping:
    running, params = ctx.running, ctx.request.params or {}
    if running.server.registry.providers is not None:
        await running.provider_lists.prepare(ctx.context, "tools")
    name, arguments = params["name"], params.get("arguments") or {}
    call = RequestedCall(ctx, name, arguments, OfferedTask)
    call.find()
    call.check_known()
    # The policies have admitted the call already, once for all of its runs.
    ctx.context.let_through("tool", name, arguments)
    refusal = call.read_arguments()
    if refusal is not None:
        return refusal.to_wire()
    spec = call.spec
    starts, timeout = (False, None) if spec is None else (spec.starts_task, spec.timeout)
    if isinstance(timeout, float):
        task.expire_at(trio.current_time() + timeout)
    begun = BegunTask(starts)
    return await _run_call(call, ctx, TaskRequest(ctx, task, before, emitter, task_start=begun))
