"""Calls that go on as tasks: from a request to what runs without it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from .._errors import InsufficientScope, McpError
from ..components import Context, ToolSpec
from ..engine import Exchange, Job
from ..jsonrpc import MISSING_CLIENT_CAPABILITY, memory_of
from ..protocol import Envelope
from ..types import TASKS, RequireScopes, ToolResult
from ._call import Call
from ._calls import fate_of
from ._clock import enter_task
from ._record import observe_task
from ._rounds import LiveAsker, ReplayAsker
from ._scopes import denial, needed
from ._task import RunningTask

if TYPE_CHECKING:
    from ._connection import Connection

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


@attrs.define(eq=False)
class TaskCall(Call):
    """The call of a tool in its task: what it asks and tells goes into the task.

    Attributes:
        task: The task.
    """

    task: RunningTask = attrs.field(kw_only=True)

    @property
    def cancelled(self) -> bool:
        """Whether the task is to stop, or has ended."""
        return self.task.cancelling or self.task.ended

    def require(self, requires: RequireScopes) -> None:
        """Go on only if the caller holds scopes; whoever looks at the task must hold them, too."""
        super().require(requires)
        self.connection.gate.run(lambda: self.task.require(requires))

    @property
    def threads(self) -> trio.CapacityLimiter:
        """What bounds its sync handlers: others than those of requests."""
        limiter: trio.CapacityLimiter = self.server.task_threads
        return limiter

    def progress(
        self, progress: float, total: float | None, message: str | None
    ) -> Awaitable[None]:
        """Say in the task how far it is: there are no progress notices of tasks."""
        nothing = super().progress(progress, total, message)
        far = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        self.connection.gate.run(lambda: self.task.say(message or far))
        return nothing


class Opening:
    """The call of a tool that may go on as a task.

    Args:
        connection: The connection.
        exchange: The request.
        spec: The tool.
        work: Calls it.

    Attributes:
        possible: Whether the client knows tasks, and, if the tool can do without, there is room.
        begin_task: Begins the task when the handler says so; None where it begins at once.
    """

    def __init__(
        self,
        connection: "Connection",
        exchange: Exchange,
        spec: ToolSpec,
        work: Callable[[Context], Awaitable[ToolResult]],
    ) -> None:
        self.possible = declares_tasks(exchange.envelope)
        self.begin_task = self._begin_for if spec.starts_task else None
        self._connection = connection
        self._exchange = exchange
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
        if self._exchange.envelope.revision.stateless:
            require_tasks(self._exchange.envelope)
        self._connection.reply(self._exchange, _NEEDED.to_wire())
        return True

    @cached_property
    def _size(self) -> int:
        """Bytes that the task holds while it runs: those of its request."""
        return memory_of(self._exchange.request.params)

    def leaving(self, job: Job) -> Job:
        """Do the rest of the work on the request, and note when the handler is through with it."""

        async def whole() -> None:
            try:
                await job()
            finally:
                self._left.set()

        return whole

    async def _begin_for(self, call: Call) -> None:
        """Begin the task for a handler; with that, its call in the request is over."""
        if not self.possible:
            return
        exchange = self._exchange
        if not exchange.answered and not exchange.cancelled:
            if not self._has_room():
                return
            self._begin(call.asker)
            exchange.stop()
        await trio.sleep_forever()

    def _has_room(self) -> bool:
        """Tell whether there may be a task; without room for one the tool can do without it."""
        if self.possible and self._spec.task == "optional":
            owner = owner_of(self._exchange.envelope)
            self.possible = self._connection.task_store.make_room(owner, self._size)
        return self.possible

    def _begin(self, asker: LiveAsker | ReplayAsker | None) -> None:
        """Enter the task, and only then answer with it: whoever asks for it must find it."""
        before = asker if isinstance(asker, ReplayAsker) else None
        timeout = self._spec.timeout if isinstance(self._spec.timeout, float) else None
        store = self._connection.task_store
        task = store.create(owner_of(self._exchange.envelope), self._size)
        if self._spec.requires is not None:
            task.require(self._spec.requires)
        record = observe_task(self._connection, self._exchange, task)
        store.start(task, partial(self._run, task, before), timeout, record)
        answer = task.to_wire(detailed=False)
        self._connection.reply(self._exchange, {"resultType": "task", **answer})

    async def _run(self, task: RunningTask, before: ReplayAsker | None) -> Mapping[str, Any]:
        # Steps of the request must be over, and in the record, before they are asked for again.
        await self._left.wait()
        asker = LiveAsker(task, before)
        call = TaskCall(
            self._connection,
            # The request is over, and with it what its progress and log messages belonged to.
            self._exchange.envelope._replace(progress_token=None, log_level=None),
            {},
            self._exchange,
            input_responses=asker.responses,
            request_state=asker.state,
            asker=asker,
            begin_task=_begun if self.begin_task else None,
            task=task,
        )
        try:
            enter_task()
            result = await self._work(Context(call))
            task.fate = fate_of(result)
            return result.to_wire()
        except InsufficientScope as error:
            connection, exchange = self._connection, self._exchange
            scopes = needed(connection.server, exchange.request, error.scopes)
            raise denial(exchange, scopes, connection.transport) from None


async def _begun(_: Call) -> None:
    """The handler has been here before, in the request."""
