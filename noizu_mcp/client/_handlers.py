"""`ClientHandler`: the answers of a client to its server; and a handler bound to one client."""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import trio

from .._class_body import statement_frame
from .._errors import McpError
from .._util import Returned
from .._value import JSON, JSONObject
from ..engine import run_user_code
from ..jsonrpc import METHOD_NOT_FOUND
from ..protocol import Revision
from ..types import Accept, Cancel, Decline, Root, SamplingResult

if TYPE_CHECKING:
    from ._client import Client

RunTrio = Callable[[Callable[[], Awaitable[JSON]]], Awaitable[JSON]]

#: Results that `handle_elicitation`, `handle_sampling` and `list_roots` may return.
Elicited = Accept[Any] | Decline | Cancel | Mapping[str, JSON]
Sampled = SamplingResult | Mapping[str, JSON]
Roots = Sequence[Root | str | Mapping[str, JSON]] | Mapping[str, JSON]

#: The methods that a handler may override, and their parameters.
HANDLER_METHODS: Final = {
    "handle_elicitation": ("params",),
    "handle_sampling": ("params",),
    "list_roots": (),
    "handle_notification": ("method", "params"),
}
#: The handlers of the open connections.
OPEN: Final[set["BoundHandler"]] = set()
#: The handler whose method is running, bound to the client of the asking server.
RUNNING: Final[ContextVar["BoundHandler"]] = ContextVar("noizu_mcp.handler")


class ClientHandler:
    """Answers requests of a server and handles its notifications; meant to be subclassed.

    Overriding a method advertises its capability.

    Its methods answer live requests (up to 2025-11-25) and the input requests of 2026-07-28.
    Each request runs in its own task, so a slow person delays nothing else; when the server no
    longer needs an answer, the task is cancelled. A method may be `async def`, or `def`: then it
    runs in a thread, which cannot be cancelled, and its result is dropped. `handle_sampling = None`
    disables a method of a base class.

    The class is checked when it is defined: a method with a wrong name or wrong parameters is a
    `DefinitionError`.

    Attributes:
        elicitation_modes: The modes that `handle_elicitation` supports: `form`, `url`, or both.
        sampling_tools: True if `handle_sampling` can offer tools to its model.

    Raises:
        DefinitionError: The class has errors; it lists all of them.
    """

    elicitation_modes: ClassVar[Sequence[str]] = ("form", "url")
    sampling_tools: ClassVar[bool] = False

    @property
    def client(self) -> "Client":
        """The client of this handler, from the start of its connection.

        One handler may serve several connections. In its methods this is the client whose server
        asks. Elsewhere it is the client of the only open connection. Under `aio.connect` it is the
        client for asyncio; under `SyncClient`, the `SyncClient` in plain methods, and a client on
        trio in coroutine functions.

        Raises:
            RuntimeError: There is no open connection; or there are several, and no method of the
                handler is running.
        """
        running = RUNNING.get(None)
        if running is not None and running.owner is self:
            return running.client
        found = [bound for bound in tuple(OPEN) if bound.owner is self]
        if len(found) == 1:
            return found[0].client
        if found:
            text = f"answers for {len(found)} connections: ask for its client in its methods only"
        else:
            text = "answers for no connection: give it to connect(…, handler=…)"
        raise RuntimeError(f"this {type(self).__name__} {text}")

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__()
        # No metaclass: a handler may be an `ABC`, or a widget with another metaclass. Loaded here:
        # it needs the code that reads class statements.
        from ._handler_checks import check_handler

        check_handler(cls, ClientHandler, HANDLER_METHODS, keywords, statement_frame())

    def handle_elicitation(self, params: Mapping[str, JSON]) -> Awaitable[Elicited] | Elicited:
        """Ask the user; show the name of the server, and let the user decline.

        Args:
            params: `message`, and `requestedSchema` for a form or `url` for a URL.

        Returns:
            `Accept` with a mapping or an instance with the fields of the form, `Decline`, or
            `Cancel`; or a mapping in wire format, `{"action": "accept", "content": {…}}`.
        """
        raise _unknown("elicitation/create")

    def handle_sampling(self, params: Mapping[str, JSON]) -> Awaitable[Sampled] | Sampled:
        """Ask the model, with the consent of the user.

        Args:
            params: `messages`, `maxTokens` and further members of the request.

        Returns:
            A `SamplingResult`; or a mapping in wire format, with `role`, `content` and `model`.

        Raises:
            McpError: To refuse; -1 means that the user rejected the request.
        """
        raise _unknown("sampling/createMessage")

    def list_roots(self) -> Awaitable[Roots] | Roots:
        """List the folders in which the server may work.

        Returns:
            Roots, `file://` URIs, and mappings in wire format, `{"uri": "file:///…"}`; or all of
            them in one mapping, `{"roots": […]}`.
        """
        raise _unknown("roots/list")

    def handle_notification(self, method: str, params: Mapping[str, JSON]) -> Any:
        """Handle a notification: a log message, a list change, an updated resource.

        Notifications come one at a time, in order. Progress is passed to the call that asked for
        it. After a session was renewed, the client generates one notification for each list and
        each watched resource, since changes in between were lost.

        Args:
            method: `notifications/message`, `notifications/tools/list_changed`, …
            params: As sent; empty if missing.
        """
        return _Done()


class _Done:
    """An awaitable, for overrides that await the base method and for those that do not."""

    def __await__(self) -> Iterator[None]:
        return iter(())


def _unknown(method: str) -> McpError:
    return McpError(METHOD_NOT_FOUND, f"Method not found: {method}")


def overrides(handler: ClientHandler, name: str) -> bool:
    """Tell whether a handler overrides a method; None disables it.

    Args:
        handler: The handler; attributes of the instance count.
        name: The method.
    """
    method, base = getattr(handler, name), vars(ClientHandler)[name]
    return method is not None and getattr(method, "__func__", method) is not base


def abilities(handler: ClientHandler, *, roots: bool) -> JSONObject:
    """Return the capabilities of a handler, in the wire form of 2026-07-28.

    Args:
        handler: The handler.
        roots: True if the client has roots, whatever the handler does.
    """
    found: JSONObject = {}
    if roots or overrides(handler, "list_roots"):
        found["roots"] = {}
    if overrides(handler, "handle_sampling"):
        found["sampling"] = {"tools": {}} if handler.sampling_tools else {}
    if overrides(handler, "handle_elicitation"):
        found["elicitation"] = {mode: {} for mode in handler.elicitation_modes}
    return found


def adapt_abilities(capabilities: Mapping[str, JSON], revision: Revision) -> JSONObject:
    """Convert capabilities to the wire form of a revision with a handshake."""
    adapted = dict(capabilities)
    adapted.pop("extensions", None)
    if "roots" in adapted:
        adapted["roots"] = {"listChanged": True}
    if not revision.elicitation:
        adapted.pop("elicitation", None)
    if not revision.modes:
        for name in ("elicitation", "sampling"):
            if name in adapted:
                adapted[name] = {}
    return adapted


async def run_on_trio(work: Callable[[], Awaitable[Returned]]) -> Returned:
    """Run code of a handler on the trio loop of its connection.

    Args:
        work: The coroutine function.

    Raises:
        BaseException: Raised by the code.
    """
    if trio.lowlevel.in_trio_task():
        return await work()
    result: Returned = await RUNNING.get().run_trio(work)
    return result


def each_handler(handler: object, change: Callable[[ClientHandler], ClientHandler]) -> object:
    """Change a handler, or the handlers that a factory makes; see `connect_all`.

    Args:
        handler: The handler or the factory. Anything else is returned, for `connect_all` to refuse.
        change: Makes the handler to use from another one.
    """
    if isinstance(handler, ClientHandler):
        return change(handler)
    if not callable(handler):
        return handler

    def make(name: str) -> object:
        made = handler(name)
        return change(made) if isinstance(made, ClientHandler) else made

    return make


class ForwardingHandler(ClientHandler):
    """Passes requests on to a handler of a program that does not run on trio.

    Args:
        handler: The handler of the program.
        present: Makes the client for the program from the client on trio; called when the
            connection begins. The function that it returns is called whenever `handler.client` is
            used.
        adapt: Converts a method of the handler to one that this loop can call.
        run_trio: Runs a coroutine function of trio from the program's loop.
    """

    def __init__(
        self,
        handler: ClientHandler,
        present: Callable[["Client"], Callable[[], object]],
        adapt: Callable[[Callable[..., object]], object] = lambda method: method,
        run_trio: RunTrio | None = None,
    ) -> None:
        self.inner = handler
        self.present = present
        self.run_trio = run_trio
        # Attributes of an instance count as overrides; methods of the base class do not.
        vars(self).update((name, adapt(getattr(handler, name))) for name in HANDLER_METHODS)
        settings = ("elicitation_modes", "sampling_tools")
        vars(self).update((name, getattr(handler, name)) for name in settings)


class BoundHandler:
    """A handler, bound to one client.

    Args:
        handler: The handler.

    Attributes:
        owner: The handler of the program.
        run_trio: Runs a coroutine function of trio from the program's loop.
    """

    run_trio: RunTrio

    def __init__(self, handler: ClientHandler) -> None:
        self.owner = handler.inner if isinstance(handler, ForwardingHandler) else handler
        self._handler = handler
        self._client: Callable[[], object]

    @property
    def client(self) -> "Client":
        """The client that the program sees; only while it is `connected`."""
        return cast("Client", self._client())

    @contextmanager
    def connected(self, client: "Client") -> Iterator[None]:
        """Set the client of the handler while the block runs."""
        handler = self._handler
        self._client = lambda: client
        if isinstance(handler, ForwardingHandler):
            self._client = handler.present(client)
            if handler.run_trio is not None:
                self.run_trio = handler.run_trio
        OPEN.add(self)
        try:
            yield
        finally:
            OPEN.discard(self)

    def overrides(self, name: str) -> bool:
        """Tell whether the handler overrides a method; see `overrides`."""
        return overrides(self._handler, name)

    async def call(self, name: str, *args: object, limiter: trio.CapacityLimiter) -> object:
        """Call a method of the handler: async ones in this task, others in a thread.

        Args:
            name: The method.
            args: Its arguments.
            limiter: Limits the threads.

        Raises:
            BaseException: Raised by the method.
        """
        method = getattr(self._handler, name)
        # Threads and tasks that the method starts see it, too.
        token = RUNNING.set(self)
        try:
            if inspect.iscoroutinefunction(method):
                return await run_user_code(method(*args))
            work = partial(_in_thread, method, args)
            # A thread cannot be stopped: an abandoned one continues, and keeps its token until it
            # ends.
            (result,) = await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
            # A decorator may hide that a method is async.
            return await run_user_code(result) if inspect.isawaitable(result) else result
        finally:
            RUNNING.reset(token)


def _in_thread(method: Callable[..., object], args: tuple[object, ...]) -> tuple[object]:
    try:
        return (method(*args),)  # in a tuple: trio lets no coroutine leave a thread
    except (KeyboardInterrupt, GeneratorExit) as error:
        # Python never raises these in a worker thread, so the handler did.
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error
