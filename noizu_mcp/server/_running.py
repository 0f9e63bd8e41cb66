"""A server while it is served: the objects that its sessions and requests share."""

import threading
from collections.abc import Awaitable, Callable, Hashable, Mapping
from functools import cached_property, partial
from types import CodeType
from typing import TYPE_CHECKING, NamedTuple

import attrs
import trio

from .._errors import McpError
from .._util import Returned
from .._value import JSONMapping
from ..engine import Job, SpawnTask
from ..types import ToolResult
from .calls._answers import EncodingTurns
from .changes._bus import Merger, Subscriber

if TYPE_CHECKING:
    from ..components import Capability
    from ..types import ReadResult
    from ._contracts import Claims, HandledSession
    from ._server import Server
    from ._server_context import ServerContext
    from ._server_request import ServerRequest
    from .asking._parked import ParkedHandlers
    from .changes._shared import SharedChanges
    from .handles._backing import HandleBacking
    from .handles._handle_store import HandleStore
    from .nodes._node import Node
    from .providers._provider_lists import ProviderLists
    from .tasks._known_task import KnownTask
    from .tasks._shared_tasks import SharedTasks
    from .tasks._task_quota import TaskMemory
    from .tasks._task_store import TaskStore


#: Serves one method: answers at once, or returns the rest of the work. It may raise `McpError`.
Route = Callable[["ServerRequest"], Job | None]


class Portal:
    """Runs functions in the thread of the trio loop in which it was made, from any thread."""

    def __init__(self) -> None:
        # Made in the loop: a worker thread has no running loop to take a token from.
        self._thread = threading.get_ident()
        self._token = trio.lowlevel.current_trio_token()

    def run(self, function: Callable[[], Returned]) -> Returned:
        """Run a function in the loop's thread, and wait for its return value.

        Raises:
            trio.RunFinishedError: The loop has ended.
        """
        # trio refuses `from_thread` in its own thread: the loop would wait for itself.
        if threading.get_ident() == self._thread:
            return function()
        return trio.from_thread.run_sync(function, trio_token=self._token)

    def run_soon(self, function: Callable[[], object]) -> None:
        """Run a function in the loop's thread. Does not wait.

        Runs it at once if the calling thread is the loop's. Does nothing once the loop has ended.
        """
        if threading.get_ident() == self._thread:
            function()
            return
        try:
            # Not `from_thread.run_sync`: its caller would wait for the loop, and may hold a lock
            # that a task of the loop wants.
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return


class Joined(NamedTuple):
    """What a node shares with the other nodes.

    Attributes:
        changes: The changes of lists and resources.
        claims: The claims of states.
        tasks: The tasks.
    """

    changes: "SharedChanges"
    claims: "Claims"
    tasks: "SharedTasks"


class RunningServer:
    """A server while one connection on a pipe, or one application over HTTP, is served.

    Made in the loop that serves it.

    Args:
        server: The server.
        routes: The feature that serves each method.
        state: The value that the server's lifespan yielded.
        transport: `stdio`, `http` or `memory`.
        linger: Runs work that outlives the requests; the work must be bounded.
        memory: Counts the bytes of tasks, where a transport bounds them together with others.
        parks: False to run each handler again from its start for each answer.
        node: One of the processes that serve the server; None for the only one.

    Attributes:
        node: See Args.
        linger: See Args.
        portal: Runs functions in the loop from other threads.
        merger: Passes changes on to the subscribers.
        listeners: The listeners to the server's telemetry.
        turns: The turns in which large results are encoded.
        working: The requests whose handlers run. They may have been refused in the meantime.
        replayed: The handlers that were logged because they ran again.
        on_denied: Called before a request is answered with a missing scope.
        shared_changes: The changes of all nodes; None without other nodes.
        claims: The claims of states; only where there are other nodes.
        shared_tasks: The tasks of all nodes; only where there are other nodes.
    """

    def __init__(
        self,
        server: "Server",
        routes: Mapping[str, Route],
        state: object,
        transport: str,
        linger: SpawnTask,
        *,
        memory: "TaskMemory | None" = None,
        parks: bool = True,
        node: "Node | None" = None,
    ) -> None:
        self.server = server
        self.routes = routes
        self.state = state
        self.transport = transport
        self.linger = linger
        self.node = node
        self.portal = Portal()
        self._memory = memory
        self._parks = parks
        self.merger = Merger(self._find_task, linger)
        self.listeners = server.telemetry.listeners
        self.turns = EncodingTurns()
        self.working: dict[ServerRequest, None] = {}
        self.replayed: set[CodeType] = set()
        self.on_denied: Callable[[ServerRequest, McpError], None] | None = None
        self.shared_changes: SharedChanges | None = None
        self.claims: Claims
        self.shared_tasks: SharedTasks

    @cached_property
    def tasks(self) -> "TaskStore":
        """The calls that run as tasks. Loaded on first use."""
        from .tasks._task_store import TaskStore

        return TaskStore(self.server.options, self.linger, self.server.telemetry, self._memory)

    @cached_property
    def handles(self) -> "HandleStore":
        """The handles that calls take and return. Loaded on first use."""
        from .handles._handle_store import HandleStore

        return HandleStore(self._handle_backing(), self.server.options, self.linger)

    def _handle_backing(self) -> "HandleBacking":
        if self.node is None:
            return self.server.local_handles()
        from .handles._backing import HandleBacking

        records, limits = self.node.records, self.server.options.limits
        return HandleBacking(self.node.backend, limits, records.seal, records.unseal)

    @cached_property
    def parked(self) -> "ParkedHandlers":
        """The handlers that wait for the retry of their requests."""
        from .asking._parked import ParkedHandlers

        options = self.server.options
        limits = options.limits if self._parks else attrs.evolve(options.limits, parked=0)
        parked = ParkedHandlers(limits, options.state_ttl, self.linger)
        self.server.telemetry.count_parked(parked)
        return parked

    @cached_property
    def admit(self) -> "Callable[..., Awaitable[None] | None]":
        """Checks the policies of a call. Loaded on first use."""
        # Stored, since an import inside a function takes as long as three policies in each call.
        from .calls._policy_checks import admit

        return admit

    @cached_property
    def provider_lists(self) -> "ProviderLists":
        """The lists of the providers. Loaded on first use."""
        from .providers._provider_lists import ProviderLists

        return ProviderLists(self, self.server.providers)

    async def begin_serving(self, join: "Callable[[RunningServer], Joined] | None" = None) -> None:
        """Start what runs beside the requests: providers, if there are any.

        Args:
            join: Shares what is served with the other nodes; None without other nodes, and for a
                mounted server, since its outer server does.
        """
        self.server.bus.running[self] = None
        if join is not None:
            self.shared_changes, self.claims, self.shared_tasks = join(self)
            self.shared_changes.begin()
        if self.server.registry.providers is not None:
            await self.provider_lists.begin()

    def update_providers(self) -> None:
        """Add and remove providers that changed. Runs in the loop's thread."""
        self.provider_lists.update()

    def forget_lists(self, session: "HandledSession") -> None:
        """Ask the providers again for the lists of a session."""
        if self.server.registry.providers is not None:
            self.provider_lists.forget(session)

    def end_serving(self) -> None:
        """Stop what runs beside the requests. Does not wait."""
        del self.server.bus.running[self]
        if self.shared_changes is not None:
            self.shared_changes.end()
        if "provider_lists" in vars(self):
            self.provider_lists.end()

    # Calls by handlers. Most servers have none, and their code is not loaded.

    async def open_text(self, ctx: "ServerContext", text: str) -> "Capability":
        """Open the text of a capability; see `Context`."""
        from .calls._nested import open_text

        return await open_text(ctx, text)

    async def call_nested(
        self,
        ctx: "ServerContext",
        name: str,
        arguments: JSONMapping | None,
        capability: "Capability | str | None",
    ) -> ToolResult:
        """Call a tool for a handler; see `Context`."""
        from .calls._nested import call_nested

        return await call_nested(ctx, name, arguments, capability)

    async def read_within(self, ctx: "ServerContext", uri: str) -> "ReadResult":
        """Read a resource for a handler; see `Context`."""
        from .calls._nested import read_within

        return await read_within(ctx, uri)

    # Changes

    def add_subscriber(self, subscriber: Subscriber) -> None:
        """Subscribe a listener to changes."""
        # Without listeners a change costs this loop nothing.
        if not self.merger.subscribers:
            self.server.bus.add(self._forward)
        self.merger.subscribers[subscriber] = None

    def discard_subscriber(self, subscriber: Subscriber) -> None:
        """Unsubscribe a listener."""
        del self.merger.subscribers[subscriber]
        if not self.merger.subscribers:
            self.server.bus.discard(self._forward)

    def _forward(self, change: Hashable) -> None:
        # The bus calls in the thread that reports a change, so this switches to the loop's thread.
        self.portal.run_soon(partial(self.merger.report, change))

    def _find_task(self, id_: str) -> "KnownTask | None":
        return self.tasks.find_known(id_)  # here, since the store is loaded with the first task

    async def settle_tasks(self, patience: float) -> None:
        """Wait for the tasks, and cancel tasks that take longer.

        Args:
            patience: Seconds.
        """
        if "tasks" in vars(self):
            await self.tasks.settle(patience)
