"""A server while it is served: the objects that its sessions and requests share."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from .._errors import McpError
from ..engine import Job, Portal
from .changes._bus import MergeWindows
from .tasks._task_store import TaskStore

if TYPE_CHECKING:
    from ._request_context import RequestContext
    from ._server import Server

#: Serves one method: answers at once, or returns the rest of the work. It may raise `McpError`.
Route = Callable[["RequestContext"], Job | None]
#: Runs something in a nursery of its owner.
Spawn = Callable[[Callable[[], Awaitable[object]]], object]


class RunningServer:
    """A server while one connection on a pipe, or one application over HTTP, is served.

    Made in the loop that serves it.

    Args:
        server: The server.
        routes: The feature that serves each method.
        state: The value that the server's lifespan yielded.
        transport: `stdio`, `http` or `memory`.
        linger: Runs work that outlives the requests; the work must be bounded.

    Attributes:
        linger: See Args.
        portal: The way in for other threads.
        tasks: The calls that go on as tasks.
        windows: The windows in which change notices are merged.
        listeners: The listeners to the server's telemetry.
        working: The requests whose handlers run; they may have been refused by now.
        on_denied: Called before a request is answered with a lack of scopes.
    """

    __slots__ = (
        "linger",
        "listeners",
        "on_denied",
        "portal",
        "routes",
        "server",
        "state",
        "tasks",
        "transport",
        "windows",
        "working",
    )

    def __init__(
        self,
        server: "Server",
        routes: Mapping[str, Route],
        state: Any,
        transport: str,
        linger: Spawn,
    ) -> None:
        self.server = server
        self.routes = routes
        self.state = state
        self.transport = transport
        self.linger = linger
        self.portal = Portal()
        self.tasks = TaskStore(server.options, linger, server.telemetry)
        self.windows = MergeWindows(linger)
        self.listeners = server.telemetry.listeners
        self.working: dict[RequestContext, None] = {}
        self.on_denied: Callable[[RequestContext, McpError], None] | None = None
