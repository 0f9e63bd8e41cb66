"""The request of a client, as the handlers of a mounted server see it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..._util import Unset
from ...components import Capability
from ...types import InputRequest, InputRequired, ToolResult
from .._server_context import ServerContext
from ..policies._patterns import read_patterns

if TYPE_CHECKING:
    from ..._errors import Denied
    from .._running import RunningServer


def _of_the_request(name: str) -> Any:
    # Not copied when the object is made: a parked handler goes on with another request.
    return property(lambda self: getattr(self._ctx, name))


class MountedCapability(Capability):
    """A capability, with the names of a mounted server.

    Args:
        outer: The capability, with the names of the server that mounts it.
        rename: As in `MountedContext`.
    """

    __slots__ = ("_rename", "outer")

    outer: Any
    _rename: Callable[[str, str], str]

    def __init__(self, outer: Any, rename: Callable[[str, str], str]) -> None:
        # Past `__setattr__`, which refuses every change.
        object.__setattr__(self, "outer", outer)
        object.__setattr__(self, "_rename", rename)

    def __getattr__(self, name: str) -> Any:
        """Look up an attribute of the capability."""
        return getattr(self.outer, name)

    def __repr__(self) -> str:
        return repr(self.outer)

    def __str__(self) -> str:
        return str(self.outer)

    def attenuate(
        self,
        *,
        tools: Iterable[str] | None = None,
        expires_in: float | None = None,
        depth: int | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> "MountedCapability":
        """Make a capability that allows no more than this one; see `Capability`."""
        if tools is not None:
            tools = [self._rename("name", each) for each in read_patterns(tools)]
        narrower = self.outer.attenuate(
            tools=tools, expires_in=expires_in, depth=depth, arguments=arguments
        )
        return MountedCapability(narrower, self._rename)


class MountedContext(ServerContext):
    """A request whose `server`, `state` and `read_resource` are those of a mounted server.

    Everything else is that of the request: its client, its progress, its questions.

    Args:
        ctx: The request, which may be one of a mounted server itself.
        running: The mounted server.
        rename: Gives the name or URI that the server has for one of the mounted server.
    """

    __slots__ = ("_ctx", "_rename", "admitted", "passed_on", "provided", "running")

    envelope: Any = _of_the_request("envelope")
    dispatcher: Any = _of_the_request("dispatcher")
    parked: Any = _of_the_request("parked")
    request_id: Any = _of_the_request("request_id")
    session: Any = _of_the_request("session")
    cancelled: Any = _of_the_request("cancelled")
    input_responses: Any = _of_the_request("input_responses")
    request_state: Any = _of_the_request("request_state")
    completion_arguments: Any = _of_the_request("completion_arguments")
    chain: Any = _of_the_request("chain")
    around: Any = _of_the_request("around")
    held: Any = _of_the_request("held")
    recording: Any = _of_the_request("recording")

    def __init__(
        self, ctx: Any, running: "RunningServer", rename: Callable[[str, str], str]
    ) -> None:
        self._ctx: Any = ctx
        self._rename = rename
        self.running = running
        self.provided: Mapping[str, Any] | None = None
        self.admitted = None
        self.passed_on = False

    async def _ask(
        self, request: InputRequest, read: Callable[[Any], Any], timeout: float | Unset | None
    ) -> Any:
        return await self._ctx._ask(request, read, timeout)  # noqa: SLF001  (the same method)

    def _send(self, method: str, params: Mapping[str, Any]) -> Awaitable[None]:
        sent: Awaitable[None] = self._ctx._send(method, params)  # noqa: SLF001  (the same method)
        return sent

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Send progress; see `Context`."""
        sent: Awaitable[None] = self._ctx.report_progress(progress, total, message)
        return sent

    def release_stream(self, retry_after: float = 1.0) -> Awaitable[None]:
        """Let the client come back for the rest; see `Context`."""
        sent: Awaitable[None] = self._ctx.release_stream(retry_after)
        return sent

    def _notify_session(self, kind: str) -> None:
        if self.dispatcher is not None and self.running.server.registry.providers is not None:
            self.running.provider_lists.forget(self.dispatcher)
        self._ctx._notify_session(kind)  # noqa: SLF001  (the same method)

    def note_coercion(self) -> None:
        """Note for listeners that the arguments of a call had text for other types."""
        self._ctx.note_coercion()

    # Calls of tools go through the server that mounts, by the names that they have there: its
    # policies hold, and conditions of capabilities are about these names.

    def refusal_of(self, name: str, arguments: Mapping[str, Any]) -> "Denied | None":
        """Tell why the capability does not allow a call; see `ServerContext`."""
        refusal: Denied | None = self._ctx.refusal_of(self._rename("name", name), arguments)
        return refusal

    @property
    def capability(self) -> "MountedCapability":  # type: ignore[override]
        """The capability of the call; see `Context`."""
        return MountedCapability(self._ctx.capability, self._rename)

    async def open_capability(self, text: str) -> "MountedCapability":  # type: ignore[override]
        """Open the text of a capability; see `Context`."""
        return MountedCapability(await self._ctx.open_capability(text), self._rename)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        capability: "Capability | str | None" = None,
    ) -> ToolResult:
        """Call another tool of the mounted server; see `Context`."""
        if isinstance(capability, MountedCapability):
            capability = capability.outer
        renamed = self._rename("name", name)
        result: ToolResult = await self._ctx.call_tool(renamed, arguments, capability=capability)
        return result

    async def step(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a side effect once; see `Context`."""
        return await self._ctx.step(function, *args)

    async def start_task(self) -> None:
        """Begin the task of a tool that does so by itself; see `Context`."""
        await self._ctx.start_task()

    def takes_task(self) -> bool:
        """Tell whether the client takes a task; see `ServerContext`."""
        takes: bool = self._ctx.takes_task()
        return takes

    async def retry(self, required: InputRequired) -> bool:
        """Ask the questions of a handler that asks by hand; see `ServerContext`."""
        again: bool = await self._ctx.retry(required)
        return again

    async def stay_open(self) -> None:
        """Wait until a request is in flight that can take the result; see `RequestContext`."""
        await self._ctx.stay_open()
