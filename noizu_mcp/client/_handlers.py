"""`ClientHandler`: the answers of a client to its server, checked when the class is made."""

import inspect
import re
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partialmethod
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._class_body import statement_frame
from .._errors import McpError
from .._nearest import nearest
from .._util import got, snake_case
from .._value import JSONObject
from ..components import Declaration, Kind, is_method, read_flag
from ..jsonrpc import METHOD_NOT_FOUND
from ..protocol import Revision
from ..types import Accept, Cancel, Decline, Root, SamplingResult

if TYPE_CHECKING:
    from ._bound_handler import BoundHandler
    from ._client import Client

#: Results that `handle_elicitation`, `handle_sampling` and `list_roots` may return.
Elicited = Accept[Any] | Decline | Cancel | Mapping[str, Any]
Sampled = SamplingResult | Mapping[str, Any]
Roots = Sequence[Root | str | Mapping[str, Any]] | Mapping[str, Any]

#: The methods that a handler may override, and their parameters.
HANDLER_METHODS: Final = {
    "handle_elicitation": ("params",),
    "handle_sampling": ("params",),
    "list_roots": (),
    "handle_notification": ("method", "params"),
}
#: The words that stand for a method, in the specification and in other packages.
_WORDS: Final = {
    "elicitation": "handle_elicitation",
    "elicit": "handle_elicitation",
    "sampling": "handle_sampling",
    "sample": "handle_sampling",
    "create_message": "handle_sampling",
    "notification": "handle_notification",
    "notify": "handle_notification",
    "roots": "list_roots",
    "root": "list_roots",
    "list_roots": "list_roots",
}
#: Of these a slip of the hand is recognized, too: shorter words are too near to other words.
_LONG_WORDS: Final = ("elicitation", "sampling", "notification")
_SUFFIX: Final = re.compile(r"_(callback|handler|hook|requests?)$")
#: The handlers of the open connections.
OPEN: Final[set["BoundHandler"]] = set()
#: The handler whose method runs, bound to the client whose server asks.
RUNNING: Final[ContextVar["BoundHandler"]] = ContextVar("noizu_mcp.handler")


class ClientHandler:
    """Answers questions of a server and takes its notifications; meant to be subclassed.

    Overriding a method advertises its capability.

    Its methods answer live requests (up to 2025-11-25) and the input requests of 2026-07-28.
    Each question runs in a task of its own, so a slow person delays nothing else; when the server
    no longer wants an answer, the task is cancelled. A method may be `async def`, or `def`: then it
    runs in a thread, which cannot be cancelled, and its result is dropped when nobody wants it.
    `handle_sampling = None` advertises nothing, whatever a base class does.

    The class is checked when it is made: a method with a wrong name or wrong parameters is a
    `DefinitionError`.

    Attributes:
        elicitation_modes: The modes that `handle_elicitation` supports: `form`, `url`, or both.
        sampling_tools: True if `handle_sampling` can offer tools to its model.

    Raises:
        DefinitionError: Something in the class is wrong; it lists all problems.
    """

    elicitation_modes: ClassVar[Sequence[str]] = ("form", "url")
    sampling_tools: ClassVar[bool] = False

    @property
    def client(self) -> "Client":
        """The client that this handler answers for, from the beginning of its connection.

        One handler may answer for several connections. In its methods this is the client whose
        server asks. Elsewhere it is the client of the only open connection. Under
        `aio.connect` it is the client for asyncio; under `SyncClient`, the `SyncClient` in plain
        methods, and a client on trio in coroutine functions.

        Raises:
            RuntimeError: There is no open connection; or there are several, and no method of the
                handler runs.
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

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__()
        # No metaclass: a handler may well be an `ABC`, or a widget with a metaclass of its own.
        declaration = Declaration(cls, _KIND, keywords, statement_frame())
        for name in keywords.keys() & declaration.own.keys():
            setattr(cls, name, declaration.own[name])
        for name, parameters in HANDLER_METHODS.items():
            _check_method(declaration, name, parameters)
        for name, meant in _misspelt(cls):
            text = f"is never called; did you mean {meant!r}? (begin a name of your own with _)"
            declaration.problem(name, text, name)
        declaration.finish()

    def handle_elicitation(self, params: Mapping[str, Any]) -> Awaitable[Elicited] | Elicited:
        """Ask the user; show the name of the server, and let the user decline.

        Args:
            params: `message`, and `requestedSchema` for a form or `url` for a URL.

        Returns:
            `Accept` with a mapping or an instance with the fields of the form, `Decline`, or
            `Cancel`; or a mapping in the form of the wire, `{"action": "accept", "content": {…}}`.
        """
        raise _unknown("elicitation/create")

    def handle_sampling(self, params: Mapping[str, Any]) -> Awaitable[Sampled] | Sampled:
        """Ask the model, with the consent of the user.

        Args:
            params: `messages`, `maxTokens` and further members of the request.

        Returns:
            A `SamplingResult`; or a mapping in the form of the wire, with `role`, `content` and
            `model`.

        Raises:
            McpError: To refuse; -1 means that the user rejected it.
        """
        raise _unknown("sampling/createMessage")

    def list_roots(self) -> Awaitable[Roots] | Roots:
        """List where the server may work.

        Returns:
            Roots, `file://` URIs, and mappings in the form of the wire, `{"uri": "file:///…"}`; or
            all of them in one mapping, `{"roots": […]}`.
        """
        raise _unknown("roots/list")

    def handle_notification(self, method: str, params: Mapping[str, Any]) -> Any:
        """Take a notification: log messages, list changes, updated resources.

        Notifications come one at a time, in order. Progress goes to the call that asked for it.
        After a session was renewed, one notification for each list and each watched resource is
        made up by the client, since changes in between were told to nobody.

        Args:
            method: `notifications/message`, `notifications/tools/list_changed`, …
            params: As sent; empty when there are none.
        """
        return _Done()


class _Done:
    """An awaitable for overrides that await the method of the base, and for those that do not."""

    def __await__(self) -> Iterator[Any]:
        return iter(())


def _unknown(method: str) -> McpError:
    return McpError(METHOD_NOT_FOUND, f"Method not found: {method}")


def overrides(handler: ClientHandler, name: str) -> bool:
    """Tell whether a handler overrides a method; None in its place does not.

    Args:
        handler: The handler; attributes of the instance count.
        name: The method.
    """
    method = getattr(handler, name)
    return method is not None and getattr(method, "__func__", method) is not _base(name)


def abilities(handler: ClientHandler, *, roots: bool) -> JSONObject:
    """List the capabilities of a handler, in the wire form of 2026-07-28.

    Args:
        handler: The handler.
        roots: The client has roots, whatever the handler does.
    """
    found: JSONObject = {}
    if roots or overrides(handler, "list_roots"):
        found["roots"] = {}
    if overrides(handler, "handle_sampling"):
        found["sampling"] = {"tools": {}} if handler.sampling_tools else {}
    if overrides(handler, "handle_elicitation"):
        found["elicitation"] = {mode: {} for mode in handler.elicitation_modes}
    return found


def adapt_abilities(capabilities: Mapping[str, Any], revision: Revision) -> JSONObject:
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


# The check of a class


def _base(name: str) -> Any:
    return vars(ClientHandler)[name]


def _check_method(declaration: Declaration, name: str, parameters: Sequence[str]) -> None:
    """Check that a method accepts the arguments that the client passes."""
    cls = declaration.cls
    method = inspect.getattr_static(cls, name)
    if method is None or method is _base(name):
        return
    wanted = f"`async def {name}({', '.join(('self', *parameters))})`, or `def` for a thread"
    bound = getattr(cls, name)
    text = None
    if not callable(bound) or isinstance(bound, type):
        text = f"must be {wanted}, or None to offer nothing"
    elif inspect.isasyncgenfunction(bound) or inspect.isgeneratorfunction(bound):
        text = f"must be {wanted}, and must not yield"
    else:
        # Anything but a function, such as a static method, is called without the handler.
        given = (
            (cls, *parameters) if isinstance(method, (FunctionType, partialmethod)) else parameters
        )
        try:
            inspect.signature(bound).bind(*given)
        except TypeError:
            text = f"must be {wanted}"
    if text is not None:
        declaration.problem(name, text, name, declaration.owner_of(name))


def _misspelt(cls: type) -> Iterator[tuple[str, str]]:
    """Find methods that are never called since their names are misspelt.

    A handler may have methods of its own, also one that helps a method of the client. So only the
    name of a method that the class does not override is looked for.
    """
    for name, value in vars(cls).items():
        own = not name.startswith("_") and not hasattr(ClientHandler, name) and is_method(value)
        meant = _meant(name, value) if own else None
        if meant is not None and inspect.getattr_static(cls, meant) is _base(meant):
            yield name, meant


def _meant(name: str, value: Any) -> str | None:
    """Find the method that was probably meant: `on_elicit` is `handle_elicitation`."""
    name = snake_case(name)
    if name in HANDLER_METHODS:  # handleSampling
        return name
    whole, changes = _SUFFIX.subn("", name)
    first, _, rest = whole.partition("_")
    first = first if first in ("on", "list", "get") else nearest(first, ("handle", "list")) or first
    if rest and first in ("handle", "on"):
        return _method_of(rest)
    if rest and first in ("list", "get"):
        return "list_roots" if _WORDS.get(rest) == "list_roots" else None
    if changes:  # sampling_callback
        return _method_of(whole)
    # A bare word may be a method of the author's own; only with the right parameters it is a slip.
    meant = _WORDS.get(whole)
    if meant is None or not isinstance(value, FunctionType):
        return None
    fits = len(inspect.signature(value).parameters) == 1 + len(HANDLER_METHODS[meant])
    return meant if fits else None


def _method_of(word: str) -> str | None:
    found = word if word in _WORDS else nearest(word, _LONG_WORDS)
    return None if found is None else _WORDS[found]


def _read_modes(value: Any) -> Any:
    listed = value if isinstance(value, list | tuple) else ()
    if not listed or any(mode not in ("form", "url") for mode in listed):
        raise ValueError(f"must be a list of 'form', 'url' or both, {got(value)}")
    return value


_KIND: Final = Kind(
    "handlers", options={"elicitation_modes": _read_modes, "sampling_tools": read_flag}
)
