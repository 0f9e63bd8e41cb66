"""The request of a client, as the handlers of a mounted server see it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..._util import Unset
from ...types import InputRequest, InputRequired
from .._server_context import ServerContext

if TYPE_CHECKING:
    from .._running import RunningServer


def _of_the_request(name: str) -> Any:
    # Not copied when the object is made: a parked handler goes on with another request.
    return property(lambda self: getattr(self._ctx, name))


class MountedContext(ServerContext):
    """A request whose `server`, `state` and `read_resource` are those of a mounted server.

    Everything else is that of the request: its client, its progress, its questions.

    Args:
        ctx: The request, which may be one of a mounted server itself.
        running: The mounted server.
    """

    __slots__ = ("_ctx", "provided", "running")

    envelope: Any = _of_the_request("envelope")
    dispatcher: Any = _of_the_request("dispatcher")
    parked: Any = _of_the_request("parked")
    request_id: Any = _of_the_request("request_id")
    session: Any = _of_the_request("session")
    cancelled: Any = _of_the_request("cancelled")
    input_responses: Any = _of_the_request("input_responses")
    request_state: Any = _of_the_request("request_state")
    completion_arguments: Any = _of_the_request("completion_arguments")

    def __init__(self, ctx: Any, running: "RunningServer") -> None:
        self._ctx: Any = ctx
        self.running = running
        self.provided: Mapping[str, Any] | None = None

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

    async def step(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a side effect once; see `Context`."""
        return await self._ctx.step(function, *args)

    async def start_task(self) -> None:
        """Begin the task of a tool that does so by itself; see `Context`."""
        await self._ctx.start_task()

    async def retry(self, required: InputRequired) -> bool:
        """Ask the questions of a handler that asks by hand; see `ServerContext`."""
        again: bool = await self._ctx.retry(required)
        return again

    async def stay_open(self) -> None:
        """Wait until a request is in flight that can take the result; see `RequestContext`."""
        await self._ctx.stay_open()
