"""Calls that go on as tasks: from a request to what runs without it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, partial
from typing import Any, Final

import trio

from ..._errors import InsufficientScope, McpError
from ...components import Context, ToolSpec
from ...engine import Job
from ...jsonrpc import MISSING_CLIENT_CAPABILITY, memory_of
from ...protocol import Envelope
from ...types import TASKS, RequireScopes, ToolResult
from .._request_context import RequestContext
from ..asking._mrtr import LiveAsker, ReplayAsker
from ..calls._invoke import ending_of
from ..calls._scope_checks import denial, needed
from ..calls._time_limit import enter_task
from ..events._recording import observe_task
from ..tasks._running_task import RunningTask

#: What a model reads that called a tool which its client cannot run.
_NEEDED: Final = ToolResult.error(
    f"This tool runs as a task: it needs a client of 2026-07-28 with the extension {TASKS}"
)


def declares_tasks(envelope: Envelope) -> bool:
    """Tell whether the client of a request knows tasks; earlier requests do not count."""
    extensions = envelope.client_capabilities.get("extensions")
    declared = isinstance(extensions, Mapping) and isinstance(extensions.get(TASKS), Mapping)
    return envelope.revision.stateless and declared


def require_tasks(envelope: Envelope) -> None:
    """Check that the client of a request knows tasks.

    Raises:
        McpError: It does not say so (-32021).
    """
    if not declares_tasks(envelope):
        data: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise McpError(MISSING_CLIENT_CAPABILITY, "Missing required client capability", data)


def owner_of(envelope: Envelope) -> str | None:
    """Name the principal that a request comes from; None where nobody is verified."""
    principal = envelope.origin.principal
    return None if principal is None else str(principal.key)


class TaskContext(RequestContext):
    """The call of a tool in its task: questions and progress go into the task.

    Args:
        ctx: The request that began the task; it has its answer.
        task: The task.
        asker: Asks the client through the task.
    """

    def __init__(self, ctx: RequestContext, task: RunningTask, asker: LiveAsker) -> None:
        # The request is over, and with it its progress notices and log messages.
        envelope = ctx.envelope._replace(progress_token=None, log_level=None)
        super().__init__(ctx.in_flight, ctx.request, envelope, ctx.channel, key=ctx.key)
        self.running = ctx.running
        self.dispatcher = ctx.dispatcher
        self.answered = True
        self.task = task
        self.asker = asker
        self.input_responses, self.request_state = asker.responses, asker.state

    @property
    def cancelled(self) -> bool:
        """True once the task is to stop, or has ended."""
        return self.task.cancelling or self.task.ended

    def check_scopes(self, scopes: RequireScopes) -> None:
        """Check the scopes of the caller; whoever looks at the task must hold them, too."""
        super().check_scopes(scopes)
        self.running.portal.run(lambda: self.task.require(scopes))

    @property
    def threads(self) -> trio.CapacityLimiter:
        """Bounds its sync handlers: not the limiter of requests, which tasks would keep."""
        return self.running.server.task_threads

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Show progress in the task: there are no progress notices of tasks."""
        nothing = super().report_progress(progress, total, message)
        far = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        self.running.portal.run(lambda: self.task.say(message or far))
        return nothing


class Opening:
    """The call of a tool that may go on as a task.

    Args:
        ctx: The request.
        spec: The tool.
        work: Calls it.

    Attributes:
        possible: Whether the client knows tasks, and, if the tool can do without, there is room.
        begin_task: Begins the task when the handler says so; None where it begins at once.
    """

    def __init__(
        self,
        ctx: RequestContext,
        spec: ToolSpec,
        work: Callable[[Context], Awaitable[ToolResult]],
    ) -> None:
        self.possible = declares_tasks(ctx.envelope)
        self.begin_task = self._begin_for if spec.starts_task else None
        self._ctx = ctx
        self._spec = spec
        self._work = work
        self._left = trio.Event()  # set once the handler has left the request

    def enter(self) -> bool:
        """Begin the task, or refuse the call, if either is due at once.

        Returns:
            True if the request has its answer.

        Raises:
            McpError: The tool needs a client that knows tasks (-32021), or there are too many.
        """
        if self.begin_task is None and self._has_room():
            self._left.set()
            self._begin(None)
            return True
        if self.possible or self._spec.task == "optional":
            return False
        if self._ctx.envelope.revision.stateless:
            require_tasks(self._ctx.envelope)
        self._ctx.complete(_NEEDED.to_wire())
        return True

    @cached_property
    def _size(self) -> int:
        """Bytes that the task holds while it runs: those of its request."""
        return memory_of(self._ctx.request.params)

    def leaving(self, job: Job) -> Job:
        """Do the rest of the work on the request, and note when the handler is through with it."""

        async def whole() -> None:
            try:
                await job()
            finally:
                self._left.set()

        return whole

    async def _begin_for(self, call: RequestContext) -> None:
        """Begin the task for a handler; with that, its call in the request is over."""
        if not self.possible:
            return
        ctx = self._ctx
        if not ctx.cancelled:
            if not self._has_room():
                return
            self._begin(call.asker)
            ctx.stop()
        await trio.sleep_forever()

    def _has_room(self) -> bool:
        """Tell whether there may be a task; without room for one the tool can do without it."""
        if self.possible and self._spec.task == "optional":
            owner = owner_of(self._ctx.envelope)
            self.possible = self._ctx.running.tasks.make_room(owner, self._size)
        return self.possible

    def _begin(self, asker: LiveAsker | ReplayAsker | None) -> None:
        """Enter the task, and only then answer with it: whoever asks for it must find it."""
        before = asker if isinstance(asker, ReplayAsker) else None
        timeout = self._spec.timeout if isinstance(self._spec.timeout, float) else None
        store = self._ctx.running.tasks
        task = store.create(owner_of(self._ctx.envelope), self._size)
        if self._spec.requires is not None:
            task.require(self._spec.requires)
        record = observe_task(self._ctx, task)
        store.start(task, partial(self._run, task, before), timeout, record)
        answer = task.to_wire(detailed=False)
        self._ctx.complete({"resultType": "task", **answer})

    async def _run(self, task: RunningTask, before: ReplayAsker | None) -> Mapping[str, Any]:
        # Steps of the request must be over, and in the record, before they are asked for again.
        await self._left.wait()
        asker = LiveAsker(task, before)
        ctx = TaskContext(self._ctx, task, asker)
        ctx.begin_task = _begun if self.begin_task else None
        try:
            enter_task()
            result = await self._work(ctx)
            task.ending = ending_of(result)
            return result.to_wire()
        except InsufficientScope as error:
            running = self._ctx.running
            scopes = needed(running.server, self._ctx.request, error.scopes)
            raise denial(self._ctx, scopes, running.transport) from None


async def _begun(_: RequestContext) -> None:
    """Do nothing: the handler has been here before, in the request."""
