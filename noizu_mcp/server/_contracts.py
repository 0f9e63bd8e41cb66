"""Contracts of a context: with its request, its server, its loop, and a server around it.

They are at the bottom of everything that handles a request, so that types are imported one way.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from .._util import Returned, Unset
from .._value import JSONMapping, JSONObject
from ..components import Context, ToolSpec
from ..engine import Ending, Job
from ..jsonrpc import Request
from ..protocol import Envelope
from ..types import InputRequest, InputRequired, ToolResult
from .threads._fair_limiter import ClientShare

if TYPE_CHECKING:
    from .._errors import Denied
    from ..components import Capability
    from ..engine import ThrottledLog
    from ..events import EventEmitter, Place, Telemetry
    from ..protocol import Revision
    from ..types import ReadResult, RequireScopes
    from ._server_context import ServerContext
    from .calls._answers import EncodingTurns
    from .changes._bus import Bus
    from .nodes._node import Node
    from .policies._capability import CapabilityIssuer
    from .policies._policy_set import PolicySet
    from .registry._registry import Registry
    from .registry._server_options import ServerOptions
    from .threads._abandoned import AbandonedThreads


EMPTY: Final[JSONMapping] = MappingProxyType({})


class ServedServer(Protocol):
    """A server, as calls and features use it; see `Server` for its attributes and methods."""

    options: "ServerOptions"
    registry: "Registry"
    telemetry: "Telemetry"
    policies: "PolicySet"
    bus: "Bus"
    abandoned: "AbandonedThreads"
    crash_log: "ThrottledLog"

    @property
    def capability_issuer(self) -> "CapabilityIssuer":
        """Makes, opens and redeems capabilities."""

    async def call_tool(self, name: str, args: dict[str, Any], ctx: Context) -> Any:
        """Call a tool."""

    async def read_resource(self, uri: str, ctx: Context) -> Any:
        """Read a resource."""


class Running(Protocol):
    """A server while it is served, as contexts use it; see `RunningServer`."""

    state: Any
    transport: str
    turns: "EncodingTurns"
    node: "Node | None"

    @property
    def admit(self) -> Callable[..., Awaitable[None] | None]:
        """Checks the policies of a call."""

    @property
    def server(self) -> ServedServer:
        """The server."""

    @property
    def handles(self) -> "Handles":
        """The handles of the server."""

    def forget_lists(self, session: "HandledSession") -> None:
        """Ask the providers again for the lists of a session."""

    async def open_text(self, ctx: "ServerContext", text: str) -> "Capability":
        """Open the text of a capability; see `Context`."""

    async def call_nested(
        self,
        ctx: "ServerContext",
        name: str,
        arguments: JSONMapping | None,
        capability: "Capability | str | None",
    ) -> ToolResult:
        """Call a tool for a handler; see `Context`."""

    async def read_within(self, ctx: "ServerContext", uri: str) -> "ReadResult":
        """Read a resource for a handler; see `Context`."""


class Handles(Protocol):
    """The handles of a server, as calls use them; see `HandleStore`."""

    async def run(self, call: Any, spec: ToolSpec, /) -> ToolResult | str:
        """Run the handler of a tool that takes handles, and store what it has changed."""

    async def answer(self, call: Any, value: object, /) -> ToolResult | str:
        """Answer with a value that has new handles."""

    async def save(self, ctx: "ServerContext", handle: Any, /) -> None:
        """Store a handle before the handler has returned."""


class CallHandles(Protocol):
    """The handles that a call has loaded."""

    def use_side(self, side: "AsyncioSide") -> None:
        """Let the handler call the methods of the objects on asyncio."""


class Claims(Protocol):
    """Lets one node of a server use each state of 2026-07-28; see `StateClaims`."""

    async def take(self, state: str, binding: JSONObject) -> None:
        """Claim the state of a retry whose handler does not wait at this node.

        Raises:
            McpError: The state is not valid for the retry, or was used (-32602).
        """

    async def claim(self, state: str) -> bool:
        """Claim a state whose handler waits at this node; False if it was used."""


class HandledSession(Protocol):
    """A session, as contexts use it.

    Attributes:
        values: The values that handlers stored with `put_session`.
    """

    values: JSONMapping

    @property
    def log_level(self) -> str | None:
        """The least level of log messages that the client wants; None for no messages."""

    async def store_value(self, key: str, value: object) -> None:
        """Store a value for later requests."""

    def report_change(self, kind: str) -> None:
        """Notify the client that a list changed, from any thread."""

    def place(self, revision: "Revision") -> "Place":
        """Describe the connection for listeners."""


class Asker(Protocol):
    """Asks the client.

    Attributes:
        responses: The answers to an `InputRequired` of the handler.
    """

    responses: JSONMapping

    async def stay_open(self) -> None:
        """Wait until the handler may return without questions."""


class HandledRequest(Protocol):
    """A request, a task or a session, as the contexts of its handlers use it.

    Attributes:
        envelope: The metadata of the request.
        attempt: The number of this run of a task, from 1.
    """

    envelope: Envelope
    attempt: int

    @property
    def running(self) -> Running:
        """The server while it is served."""

    @property
    def dispatcher(self) -> HandledSession | None:
        """The session; None for a request of 2026-07-28 over HTTP."""

    @property
    def context(self) -> "ServerContext":
        """The context of the handler."""

    @property
    def id(self) -> str | int:
        """The id of the request."""

    @property
    def cancelled(self) -> bool:
        """True once the peer expects no answer."""

    @property
    def threads(self) -> ClientShare:
        """The threads of sync handlers."""

    @property
    def emitter(self) -> "EventEmitter | None":
        """The emitter of the request or task; None without listeners."""

    @property
    def input_responses(self) -> JSONMapping:
        """The answers to an `InputRequired` of the handler."""

    @property
    def request_state(self) -> str | None:
        """The state of an `InputRequired` of the handler."""

    @property
    def completion_arguments(self) -> Mapping[str, str]:
        """In a completion: the arguments that are filled in already."""

    @property
    def task_start(self) -> "TaskStart | None":
        """The start of the task of the call; None if the call has no task."""

    @property
    def asker(self) -> Asker | None:
        """Asks the client; None until the handler asks something."""

    def stop(self) -> None:
        """Cancel the work: the request has its answer."""

    def need(self, missing: str) -> None:
        """Do nothing for a request; raise for a session.

        Args:
            missing: What a session does not have.

        Raises:
            LocalProtocolError: This is a session.
        """

    def check_scopes(self, scopes: "RequireScopes") -> None:
        """Check that the caller holds some scopes."""

    def send(self, method: str, params: JSONMapping) -> Awaitable[None]:
        """Send a notice, from any thread."""

    def send_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> Awaitable[None]:
        """Send progress, from any thread; the numbers are checked."""

    def end_stream(self, retry_after: float) -> None:
        """Let the client reconnect for the rest, from any thread. The number is checked."""

    async def ask(
        self, request: InputRequest, read: Callable[[Any], Any], timeout: float | Unset | None
    ) -> Any:
        """Ask the client; see `Context`."""

    async def step(self, function: Callable[..., Any], *args: object) -> Any:
        """Run a side effect once; see `Context`."""

    async def retry(self, required: InputRequired) -> bool:
        """Ask the questions of an `InputRequired` that a handler returned.

        Returns:
            True if the answers are here and the handler runs again; False if they come with another
            request, and this one is answered.
        """


class TaskStart(Protocol):
    """The start of the task of a call, if its tool supports tasks."""

    @property
    def begins_itself(self) -> bool:
        """True if the handler begins the task with `ctx.start_task()`."""

    async def begin(self) -> None:
        """Begin the task if the client accepts one; this call is then cancelled. A checkpoint."""

    def takes_task(self) -> bool:
        """Tell whether `begin` starts a task, or has started it."""


class CallTaskStart(TaskStart, Protocol):
    """The same for the call of a request, before its handler runs."""

    def enter(self) -> bool:
        """Begin the task or refuse the call, if the handler need not run first.

        Returns:
            True if the request is answered.
        """

    @property
    def waits(self) -> bool:
        """True if the task must be stored before it begins: `enter_stored` does both."""

    async def enter_stored(self) -> bool:
        """Store the task, and begin it.

        Returns:
            True if the request is answered; False if the call runs in the request.
        """

    def leaving(self, job: Job) -> Job:
        """Wrap the job of the request, to record when its handler has left it."""


class AnswerableRequest(HandledRequest, Protocol):
    """A request in flight, as the call that answers it uses it; see `ServerRequest`."""

    request: Request
    known_context: "ServerContext | None"

    def resume_rounds(self) -> bool:
        """Resume with the answers and the state of an earlier round of this request."""

    def serve_with(self, component: ToolSpec | None) -> None:
        """Store the registration that answers the request."""

    def limit_time(self, component: ToolSpec | None) -> None:
        """Set the deadline of the request."""

    def reserve(self, size: int) -> bool:
        """Reserve bytes for the answer, or answer with an error and return False."""

    def mark_ending(self, ending: Ending) -> None:
        """Tell the observer how the request is about to end."""

    def complete(self, result: JSONMapping) -> None:
        """Answer with a complete result."""

    def complete_rendered(self, *members: bytes) -> None:
        """Answer with the members of a result, which are JSON text already."""

    def send_failure(self, error: BaseException) -> None:
        """Answer with the error that the handler raised."""


class AsyncioSide(Protocol):
    """The asyncio side of a handler, as its context uses it.

    Attributes:
        ctx: The same context for trio.
    """

    ctx: Context[Any]

    def run_trio(self, work: Callable[[], Awaitable[Returned]]) -> Awaitable[Returned]:
        """Run trio code from the asyncio task, and wait for it."""

    def from_trio(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make a coroutine function of asyncio callable from trio; others are unchanged."""


class MountedView(Protocol):
    """The server around a mounted server, as contexts of the mounted server use it."""

    @property
    def capability(self) -> "Capability":
        """The capability of the call, in the names of the mounted server."""

    async def open_capability(self, text: str) -> "Capability":
        """Open the text of a capability; see `Context`."""

    async def call_tool(
        self,
        name: str,
        arguments: JSONMapping | None,
        capability: "Capability | str | None",
    ) -> ToolResult:
        """Call a tool of the mounted server through the server around it."""

    def refusal_of(self, name: str, arguments: JSONMapping) -> "Denied | None":
        """Tell why the capability does not allow a call; None if it does."""

    def notify_session(self, kind: str) -> None:
        """Tell the session that a list changed."""
