"""`connect`: a client of a server in memory, of a command, or of a URL."""

import inspect
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

import trio

from .. import transports
from .._errors import ConnectionClosed, TargetError
from .._limits import CLIENT_LIMITS, Limits
from .._nearest import hint_at
from .._schema_engine import EngineName
from .._value import JSONObject
from .._version import __version__
from ..engine import MessageStream, check_on_trio, single_failure
from ..events import Listen, Telemetry
from ..transports import Http, Stdio, Tap, TappedStream, memory_pair, open_process
from ..types import ClientCapabilities, Implementation, Principal, Root
from ._answers import ClientSide, read_roots
from ._calls import Strictness
from ._client import Client
from ._handlers import BoundHandler, ClientHandler, abilities, overrides
from ._negotiate import negotiate
from ._session import ClientSession
from ._targets import Opened, Target, read_target

if TYPE_CHECKING:
    from ..auth.client import AuthStrategy, RequestAuth
    from ..server import Server

#: The default timeout of a request in seconds.
TIMEOUT: Final = 60.0
#: Seconds to wait for the answer to the first `server/discover`: old servers may ignore it.
PROBE_TIMEOUT: Final = 5.0
#: Seconds at the end of the block for cancelling running requests at the server.
LEAVE_TIMEOUT: Final = 2.0

_ELSEWHERE: Final = (
    "under asyncio and in notebooks write `async with noizu_mcp.aio.connect(…)`, without any loop"
    " `with SyncClient(…)`"
)


@asynccontextmanager
async def connect(
    target: Target,
    *,
    handler: ClientHandler | None = None,
    auth: "AuthStrategy | None" = None,
    version: str | None = None,
    timeout: float = TIMEOUT,
    probe_timeout: float = PROBE_TIMEOUT,
    roots: Sequence[Root | str | Mapping[str, object]] | None = None,
    client_info: Implementation | None = None,
    capabilities: ClientCapabilities | None = None,
    tap: Tap | None = None,
    principal: Principal | None = None,
    limits: Limits = CLIENT_LIMITS,
    replay: bool = False,
    telemetry: Sequence[Listen] = (),
    strictness: Strictness = "warn",
    schema_engine: EngineName | None = None,
    cache: bool = True,
) -> AsyncIterator[Client]:
    """Connect to a server while the block runs.

    Args:
        target: A `Server` class or instance, or a text that names one as on the command line,
            `"app.py"`, `"app.py:Docs"` or `"package.app:Docs"`: served in memory, with messages as
            bytes. A `Stdio` command. A URL, or `Http` with headers or TLS settings. The entry of
            one server as in a host's configuration file, `{"command": …}` or `{"url": …}`, a
            mapping with one such entry under `mcpServers`, or the path of such a file:
            `"mcp.json"`, or `"mcp.json#name"` if it has several. Or a `MessageStream`. A text may
            be a `Path`, too. An async context manager for trio that yields one of these is entered
            before the connection, on its loop, and exited after it.
        handler: Answers requests of the server and handles its notifications.
        auth: Obtains the credentials for a URL: `OAuth(…)`, `Bearer(…)` and others.
        version: The protocol revision to use; None for the newest that both sides support.
        timeout: The default timeout of a request in seconds, also used in the negotiation.
        probe_timeout: Seconds to wait for the answer to the first `server/discover`.
        roots: The folders in which the server may work: roots, `file://` URIs, or mappings in wire
            form, `{"uri": "file:///…"}`; `set_roots` changes them.
        client_info: The name and version that the client sends.
        capabilities: Capabilities to advertise in addition to the capabilities of the handler.
        tap: Called with every message, as bytes, in both directions.
        principal: The value of `ctx.auth` for a server in memory; None for no authentication.
        limits: The limits of what the server may send: `Limits(message_size=64 * 2**20)` allows
            results of up to 64 MiB. By default `Limits()`, with up to 500,000 values in a
            message. A `MessageStream` has its own limits.
        replay: True to let a server in memory run each handler again for each answer of 2026-07-28,
            as another process would: it finds side effects without `ctx.step`.
        telemetry: Listeners, called with each `Event` of the connection; see
            `noizu_mcp.telemetry`.
        strictness: What to do with a result that violates the output schema of its tool: `warn`
            logs it, once for each tool, and lists `result.violations`; `strict` raises
            `ProtocolError`; `off` checks nothing.
        schema_engine: The engine of this check, `native` or `python`; None for the one named by
            `NOIZU_MCP_SCHEMA_ENGINE`, or else the native one if it can be loaded.
        cache: False to disable the cache of answers (2026-07-28), and of servers that answered a
            probe with a handshake.

    Yields:
        The client, after the negotiation of the revision.

    Raises:
        RuntimeError: The caller is not a trio task; `noizu_mcp.aio.connect` is for asyncio.
        TransportError: The server could not be reached, its code could not be imported, or the
            target names no server.
        ProtocolError: The client and the server have no revision in common.
        AuthError: The server refused the credentials, or none could be obtained.
        TypeError: `handler` is not an instance of `ClientHandler`; a root is malformed; both
            `roots` and the handler list roots; `principal` or `replay` is given for a remote
            server; `auth` is not a strategy, or the target has no URL; `limits` is not `Limits`; or
            a listener cannot be called with an event.
        ValueError: The URL is not valid, or not one to which `auth` sends credentials; a root has
            no `file://` URI; or `strictness` or `schema_engine` is unknown, or cannot be loaded.
    """
    check_on_trio("connect", _ELSEWHERE)
    side = _read_side(handler, client_info, capabilities, roots, limits)
    listeners = _read_listeners(telemetry)
    # If a server in memory crashes, its stream closes too: its own exception says more.
    with single_failure(ConnectionClosed):
        async with (
            _enter_target(target) as opened,
            AsyncExitStack() as stack,
            trio.open_nursery() as nursery,
        ):
            background = await _open_background(nursery)
            try:
                how = _Given(principal, limits, replay, _bind(auth, opened))
                stream = await _open(opened, stack, nursery, background, how)
                tapped = stream if tap is None else TappedStream(stream, tap)
                session = _make_session(tapped, side, listeners, stream)
                if how.auth is not None:
                    how.auth.pause = session.pause_timeouts
                client = Client(
                    session,
                    timeout,
                    strictness=strictness,
                    schema_engine=schema_engine,
                    cache=cache,
                )
                stack.enter_context(side.handler.connected(client))
                # In the background: a cancelled block must still be able to send cancellations.
                await background.start(session.run)
                try:
                    address = stream.address if cache else None
                    await negotiate(client, session, version, probe_timeout, address)
                    stack.enter_context(session.opened(client))
                    yield client
                finally:
                    # A deadline even though shielded: a server that does not read must not block
                    # the end.
                    with trio.move_on_after(LEAVE_TIMEOUT, shield=True):
                        await session.leave()
            finally:
                background.cancel_scope.cancel()


def check_options(who: str, options: Iterable[str], taken: Iterable[str]) -> None:
    """Check the names of options that are passed on to `connect`.

    Args:
        who: The function or class that takes them, for errors.
        options: The names.
        taken: Options of `connect` that it sets itself.

    Raises:
        TypeError: `connect` has no such option.
    """
    known = sorted(inspect.signature(connect).parameters.keys() - set(taken))
    for name in options:
        if name not in known:
            raise TypeError(f"{who} has no option {name}; {hint_at(name, known)}")


@asynccontextmanager
async def _enter_target(target: Target) -> AsyncIterator[Opened]:
    """Read a target; if it is a context manager, it stays entered while the block runs."""
    # A server may define these methods for its own purposes.
    if isinstance(target, AbstractAsyncContextManager) and not _is_server(target):
        async with target as inner:
            yield read_target(inner)
    else:
        yield read_target(target)


def _is_server(target: object) -> "TypeGuard[Server]":
    from ..server import Server  # a client of another process loads no server code

    return isinstance(target, Server)


def _read_side(
    handler: ClientHandler | None,
    info: Implementation | None,
    capabilities: ClientCapabilities | None,
    roots: Sequence[Root | str | Mapping[str, object]] | None,
    limits: Limits,
) -> ClientSide:
    """Read the client's side of a connection, before any server is reached; see `connect`."""
    inner = ClientHandler() if handler is None else handler
    if not isinstance(limits, Limits):
        raise TypeError(f"limits must be Limits(…), not {limits!r}")
    listed = _read_roots(inner, roots)
    given = (capabilities or ClientCapabilities()).to_wire()
    offered = {**abilities(inner, roots=roots is not None), **given}
    named = (info or Implementation("noizu-mcp", __version__)).to_wire()
    return ClientSide(named, offered, BoundHandler(inner), limits, listed)


def _read_roots(
    handler: ClientHandler, roots: Sequence[Root | str | Mapping[str, object]] | None
) -> list[JSONObject] | None:
    """Check the handler and the roots, and convert the roots to wire form."""
    if not isinstance(handler, ClientHandler):
        raise TypeError(f"handler must be an instance of a ClientHandler, not {handler!r}")
    if roots is None:
        return None
    listed = read_roots(roots, "roots")
    if overrides(handler, "list_roots"):
        # With both, `set_roots` would change one and not the other.
        raise TypeError("give roots= or a handler that overrides list_roots, not both")
    return listed


def _read_listeners(listeners: Sequence[Listen]) -> Telemetry | None:
    """Check the listeners; None if there are none."""
    if not isinstance(listeners, Iterable):
        raise TypeError(f"telemetry must be a list of listeners, not {listeners!r}")
    telemetry = Telemetry()
    for listener in listeners:
        telemetry.add(listener)
    return telemetry if listeners else None


def _make_session(
    stream: MessageStream, side: ClientSide, telemetry: Telemetry | None, carrier: MessageStream
) -> ClientSession:
    if telemetry is None:
        return ClientSession(stream, side)
    from ._emitter import RecordedSession

    return RecordedSession(stream, side, telemetry, carrier)


async def _open_background(nursery: trio.Nursery) -> trio.Nursery:
    """Open a nursery in a task of another nursery; see `_keep_background`."""
    opened: list[trio.Nursery] = []
    ready = trio.Event()
    nursery.start_soon(_keep_background, opened, ready)
    # Not `nursery.start`: if the caller is cancelled already, it waits for the end of the task,
    # which is shielded and never ends. The task sets the event at once.
    with trio.CancelScope(shield=True):
        await ready.wait()
    return opened[0]


async def _keep_background(opened: list[trio.Nursery], ready: trio.Event) -> None:
    """Run the session and its stream; only `connect` cancels them.

    A timeout around the block, or a failure in it, must not end them before the server is told that
    its answers are not needed.
    """
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            opened.append(nursery)
            ready.set()
            # `connect` cancels the nursery, whose scope is inside the shield.
            await trio.sleep_forever()


class _Given(NamedTuple):
    """The arguments of `connect` for opening a target."""

    principal: Principal | None
    limits: Limits
    replay: bool
    auth: "RequestAuth | None"


def _bind(auth: "AuthStrategy | None", target: Opened) -> "RequestAuth | None":
    """Make the credentials for a URL."""
    if auth is None:
        return None
    from ..auth.client import ProtectedServer, RequestAuth

    if not isinstance(target, Http):
        raise TypeError(f"auth= is for a URL: {target!r} takes no HTTP credentials")
    return RequestAuth(auth, ProtectedServer(target.url, target.tls))


async def _open(
    target: Opened,
    stack: AsyncExitStack,
    nursery: trio.Nursery,
    background: trio.Nursery,
    given: _Given,
) -> MessageStream:
    remote = isinstance(target, Stdio | Http | MessageStream)
    if given.principal is not None and remote:
        raise TypeError("principal= is for a server in memory; others find out who is calling")
    if given.replay and remote:
        raise TypeError("replay= is for a server in memory; others have Limits(parked=0)")
    if isinstance(target, Stdio):
        stream, _ = await stack.enter_async_context(open_process(target, given.limits))
        return stream
    if isinstance(target, MessageStream):
        return target
    if isinstance(target, Http):
        http = transports.HttpStream(target, given.limits, given.auth)
        await background.start(http.run)
        return http
    server = target() if isinstance(target, type) else target
    if not _is_server(server):
        raise TargetError(f"cannot connect to {target!r}: give a Server, a URL or Stdio(…)")
    ours, theirs = memory_pair(given.limits, theirs=server.options.limits)
    from ..server import serve

    run = partial(serve, transport="memory", principal=given.principal, parks=not given.replay)
    # In the caller's nursery, so that a server that crashes ends the block with its own error.
    nursery.start_soon(run, server, theirs)
    return ours
