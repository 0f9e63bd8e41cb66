"""The shared part of an application while it runs, and groups of tasks in its nursery."""

from typing import TYPE_CHECKING

import trio

from ....engine import crashes_logged
from ....events import Place, observe_message
from ....jsonrpc import Decoded
from ....protocol import SUPPORTED_VERSIONS, PeerEvent
from ....server import ROUTES, RunningServer, Server
from ._asgi import HttpRequest
from ._event_writer import OpenStreams, TaskWork
from ._http_options import HttpOptions
from ._quotas import Quotas

if TYPE_CHECKING:
    from ....server import Node


class TaskGroup:
    """Tasks that end together: the tasks of the application, or of one session.

    A nursery for each session would need a task while it is idle.

    Args:
        nursery: Runs the tasks.
    """

    __slots__ = ("_closed", "_nursery", "_scopes")

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._scopes: dict[trio.CancelScope, None] = {}  # an empty set is three times as large
        self._closed = False

    def __len__(self) -> int:
        return len(self._scopes)

    def sibling(self) -> "TaskGroup":
        """Make another group in this nursery."""
        return TaskGroup(self._nursery)

    def spawn(self, work: TaskWork) -> trio.CancelScope:
        """Run a coroutine function until it ends or `close` is called. A failure is logged.

        Returns:
            The scope that cancels this task only. Once the group is closed, nothing is run.
        """
        scope = trio.CancelScope()
        if not self._closed:
            self._scopes[scope] = None
            self._nursery.start_soon(self._run, work, scope)
        return scope

    def close(self) -> None:
        """Cancel the tasks, and start no more."""
        # Without waiting: each task removes itself, and its nursery waits for the last one.
        self._closed = True
        for scope in self._scopes:
            scope.cancel()

    async def _run(self, work: TaskWork, scope: trio.CancelScope) -> None:
        try:
            # The nursery belongs to the application: a failure must not end its other tasks.
            with crashes_logged("a task of an HTTP connection failed"), scope:
                await work()
        finally:
            del self._scopes[scope]


class RunningApp:
    """The shared part of all sessions and requests of one application while it runs.

    Args:
        server: The server.
        options: How it is served.
        state: The value that the server's lifespan yielded.
        tasks: Tasks that outlive sessions and requests, such as `unsubscribe` calls.
        node: See `RunningServer`.

    Attributes:
        running: The server while it is served.
        limits: The limits of `options`.
        streams: The open event streams.
        quotas: The quotas of each client.
        tasks: See Args.
        seal_sessions: See `HttpOptions`.
    """

    def __init__(
        self,
        server: Server,
        options: HttpOptions,
        state: object,
        tasks: TaskGroup,
        node: "Node | None" = None,
    ) -> None:
        self.quotas = Quotas(options.limits)
        self.running = RunningServer(
            server,
            ROUTES,
            state,
            "http",
            tasks.spawn,
            memory=self.quotas,
            node=node,
        )
        self.limits = options.limits
        # Any node may get the next request of a session.
        self.seal_sessions = options.seal_sessions or node is not None
        # Not in the tasks of a session: when it ends, waiting bytes are still written.
        self.streams = OpenStreams(options.limits, server.telemetry.streams, tasks.spawn)
        self.tasks = tasks

    def observe(self, http: HttpRequest, message: Decoded, event: PeerEvent | None) -> None:
        """Show a message that reaches no session to the listeners."""
        telemetry = self.running.server.telemetry
        if telemetry.listeners:
            # Other texts are not passed on: labels of metrics must not come from clients.
            version = http.version
            place = Place("http", version if version in SUPPORTED_VERSIONS else None)
            observe_message(telemetry, place, message, event, http.size)
