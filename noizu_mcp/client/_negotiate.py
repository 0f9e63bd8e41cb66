"""Negotiation of the protocol revision (2026-07-28 `basic/versioning`).

Theory of operation. The client does not know the era of a server, so it starts with a request that
only a 2026-07-28 server supports:

- *probe*: `server/discover`. A result that lists 2026-07-28 ends the negotiation; if it lists only
  older revisions, it leads to a handshake with the newest of them. An error code of 2026-07-28
  lists the common revisions, if there are any. If -32022 lists 2026-07-28, the probe is repeated
  once. Anything else means an old server: another error, an HTTP 4xx, no answer for `probe_timeout`
  seconds, a result that lists nothing;
- *handshake*: `initialize`, its answer, `notifications/initialized`. The server may answer with
  another revision that the client supports. If it refuses and names a revision, that one is tried
  once.

A pinned revision skips the choice: only a probe, or a handshake with it, is tried, and anything
else is a `ProtocolError`. A server that used a handshake after a probe is remembered for `KNOWN`
seconds: the next negotiation with it in this process begins with the handshake, and continues with
the probe if that fails. Each transition leads forward and happens at most once, so a negotiation
takes at most two probes and three handshakes. A handshake can be repeated later, by the renewal of
a session.
"""

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Final

import trio

from .._errors import McpError, ProtocolError, RequestTimeout, TransportError
from .._value import JSON
from ..jsonrpc import MODERN_CODES, UNSUPPORTED_VERSION
from ..protocol import (
    CHANGES,
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    REVISIONS,
    STATELESS,
    Revision,
    adapt_implementation,
)
from ..types import META_SERVER_INFO, Implementation, ServerCapabilities
from ._client import Client
from ._handlers import adapt_abilities
from ._session import ClientSession

#: Statuses that say nothing about the request: the server is slow or overloaded.
_TEMPORARY: Final = (408, 425, 429)
#: Maximum characters of a server's revisions in an error message.
SHOWN: Final = 200
#: Seconds for which a server without `server/discover` is remembered. If it is upgraded in the
#: meantime, it still supports handshakes, or is probed again.
KNOWN: Final = 3600.0
#: Maximum servers that are remembered.
MAX_KNOWN: Final = 100


#: The servers that use the handshake protocol, with the time at which each is forgotten. Shared by
#: all threads, whose loops have clocks of their own, so the time is that of the process.
HANDSHAKE_SERVERS: Final[dict[Hashable, float]] = {}
_LOCK: Final = Lock()


def _remember(address: Hashable, until: float) -> None:
    with _LOCK:
        HANDSHAKE_SERVERS.pop(address, None)
        HANDSHAKE_SERVERS[address] = until
        if len(HANDSHAKE_SERVERS) > MAX_KNOWN:
            del HANDSHAKE_SERVERS[next(iter(HANDSHAKE_SERVERS))]


async def negotiate(
    client: Client,
    session: ClientSession,
    version: str | None,
    probe_timeout: float,
    address: Hashable = None,
) -> None:
    """Agree on a revision with the server, and store its name and capabilities.

    Args:
        client: Its `server_info`, `capabilities` and `instructions` are set.
        session: Its revision is set.
        version: The revision to use; None for the newest that both sides support.
        probe_timeout: Seconds to wait for the answer to the probe.
        address: Identifies the server on later connections; None to not remember it.

    Raises:
        ProtocolError: The client and the server have no revision in common.
        ConnectionClosed: The server ended the connection.
        TransportError: It cannot be reached, or its HTTP status does not help.
        RequestTimeout: It did not answer `initialize`.
    """
    if version is not None and version not in REVISIONS:
        known = ", ".join(REVISIONS)
        raise ValueError(f"no revision {version!r}; there are: {known}")
    if version is not None:
        revision = REVISIONS[version]
        if revision.stateless:
            await _discover_pinned(client, session)
        else:
            await _initialize(client, session, revision, pinned=True)
        return
    # Added again after a handshake: only a successful one counts.
    with _LOCK:
        until = HANDSHAKE_SERVERS.pop(address, -math.inf)
    if until > time.monotonic() and await _shake_hands_at_once(client, session):
        if not session.peer.revision.stateless:
            _remember(address, until)
        return
    found = await _probe(client, session, probe_timeout)
    if found is not None:
        await _shake_hands(client, session, found)
        if address is not None and not session.peer.revision.stateless:
            _remember(address, time.monotonic() + KNOWN)


async def _shake_hands_at_once(client: Client, session: ClientSession) -> bool:
    """Do a handshake without a probe; return False if the server refuses it."""
    try:
        await _shake_hands(client, session, LATEST_HANDSHAKE)
    except (McpError, TransportError) as error:
        if isinstance(error, TransportError) and not _is_refusal(error):
            raise
        return False
    return True


async def _shake_hands(client: Client, session: ClientSession, revision: Revision) -> None:
    """Do a handshake, and another one if the server refuses the revision and names another."""
    try:
        await _initialize(client, session, revision, pinned=False)
    except McpError as error:
        # A server may also list its revisions here (2025-11-25 `basic/lifecycle`, "Error
        # Handling"), for example if it started too slowly for the probe.
        other = _named(error, but=revision)
        if other is None:
            raise
        if other.stateless:
            await _discover(client, session, client.timeout)
        else:
            await _initialize(client, session, other, pinned=False)


async def _probe(client: Client, session: ClientSession, probe_timeout: float) -> Revision | None:
    """Find the revision for a handshake; None if the server supports 2026-07-28.

    Old servers answer an unknown method in various ways, or not at all. So only an error code that
    older revisions do not have is taken for an answer of a 2026-07-28 server.
    """
    # A late answer is ignored: the id of the probe is not reused. The time of a login does not
    # count, as in every request.
    with suppress(RequestTimeout):
        try:
            return await _discover_twice(client, session, min(probe_timeout, client.timeout))
        except McpError as error:
            if error.code not in MODERN_CODES:
                return LATEST_HANDSHAKE
            revision = _named(error, but=STATELESS)
            if revision is None:
                text = f"no protocol version in common with the server: {error.message}"
                raise ProtocolError(text) from None
            return revision
        except TransportError as error:
            if not _is_refusal(error):
                raise
    return LATEST_HANDSHAKE


def _is_refusal(error: TransportError) -> bool:
    """Tell whether a server does not know the request, or just cannot answer now.

    Old servers over HTTP answer unknown requests with any 4xx (2026-07-28 `basic/versioning`).
    """
    return error.status is not None and 400 <= error.status < 500 and error.status not in _TEMPORARY


def _named(error: McpError, *, but: Revision | None = None) -> Revision | None:
    """Return the newest common revision among those that an error of the server lists.

    Args:
        error: The error; -32022, and -32602 before 2026-07-28, have `data.supported`.
        but: A revision that has already failed.
    """
    supported = error.data.get("supported") if isinstance(error.data, Mapping) else None
    return _best(supported, but=but) if isinstance(supported, list) else None


def _best(versions: Sequence[object], *, but: Revision | None = None) -> Revision | None:
    return next((r for v, r in REVISIONS.items() if v in versions and r is not but), None)


async def _discover_pinned(client: Client, session: ClientSession) -> None:
    try:
        other = await _discover_twice(client, session, client.timeout)
    except (McpError, TransportError) as error:
        if isinstance(error, TransportError) and not _is_refusal(error):
            raise
        said = error.message if isinstance(error, McpError) else error
        raise ProtocolError(f"the server does not serve {STATELESS.name}: {said}") from error
    if other is not None:
        raise ProtocolError(
            f"the server does not serve {STATELESS.name}: its answer to server/discover does not "
            "list it"
        )


async def _discover_twice(
    client: Client, session: ClientSession, patience: float
) -> Revision | None:
    """Send `server/discover`, and again if the server refuses the revision but lists it.

    Processes of two releases behind one address answer like this (2026-07-28 `basic/versioning`:
    after -32022 a client retries once with a common revision).
    """
    try:
        return await _discover(client, session, patience)
    except McpError as error:
        if error.code != UNSUPPORTED_VERSION or _named(error) is not STATELESS:
            raise
    return await _discover(client, session, patience)


async def _discover(client: Client, session: ClientSession, patience: float) -> Revision | None:
    """Ask the server for its revisions, name and capabilities.

    Returns:
        None if it supports 2026-07-28: the negotiation is complete. Otherwise the revision for a
        handshake. A result without a list of revisions comes from an old server: some answer every
        unknown method with `{}`.

    Raises:
        ProtocolError: It lists no revision that the client supports, or its result is malformed.
    """
    peer = session.peer
    request = peer.request("server/discover", {}, revision=STATELESS)
    result = await session.send_request(request, patience=patience, revision=STATELESS)
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or not any(isinstance(each, str) for each in versions):
        return LATEST_HANDSHAKE
    best = _best(versions)
    if best is None:
        shown = ", ".join(map(str, versions))[:SHOWN]
        raise ProtocolError(f"no protocol version in common with the server, which speaks {shown}")
    if not best.stateless:
        return best
    # The server stores nothing: from here on each request has its own context.
    peer.revision = STATELESS
    meta = result.get("_meta")
    info = meta.get(META_SERVER_INFO) if isinstance(meta, Mapping) else None
    _fill_in(client, result, info)
    return None


async def _initialize(
    client: Client, session: ClientSession, revision: Revision, *, pinned: bool
) -> None:
    peer = session.peer
    session.renewal.begin = partial(_renew, client, session, revision, pinned=pinned)

    def report_all() -> None:
        # The server could not report changes while no stream was open.
        has = client.capabilities.has
        changing = (kind for kind in CHANGES if has(f"{kind}.listChanged"))
        session.report_changes(changing, session.watched)

    session.observe_gaps(report_all)
    # Adapted, since older servers may reject members that their revision does not have.
    params = {
        "protocolVersion": revision.name,
        "capabilities": adapt_abilities(peer.capabilities, revision),
        "clientInfo": adapt_implementation(peer.info, revision),
    }
    request = peer.request("initialize", params, revision=revision)
    result = await session.send_request(request, patience=client.timeout, cancellable=False)
    version = result.get("protocolVersion")
    if version not in HANDSHAKE_VERSIONS or (pinned and version != revision.name):
        raise ProtocolError(f"the server wants protocol version {version!r}")
    _fill_in(client, result, result.get("serverInfo"))
    # The revision changes only now: `initialize` itself has no `_meta` of a revision.
    peer.revision = REVISIONS[version]
    # Requests of an earlier session are dropped: ids restart.
    session.drop_questions()
    await client.notify("notifications/initialized")
    # A server may send a request at once, on the GET stream that opens when it has accepted the
    # notification (see `HttpStream`): the first call waits for that.
    with trio.move_on_after(client.timeout):
        await session.loop.outbox.drain()


def _fill_in(client: Client, result: Mapping[str, JSON], info: object) -> None:
    named = client.server_info if info is None else Implementation.from_wire(info, "serverInfo")
    capabilities = ServerCapabilities.from_wire(result.get("capabilities", {}))
    # After all parsing, which may raise: a client never has the name of one server and the
    # capabilities of another.
    client.server_info, client.capabilities = named, capabilities
    client.instructions = result.get("instructions")


async def _renew(
    client: Client, session: ClientSession, revision: Revision, *, pinned: bool
) -> None:
    """Begin a new session like the previous one, and notify the handler of possible changes."""
    before = client.capabilities
    await _initialize(client, session, revision, pinned=pinned)
    await session.restore(client.timeout)
    # Lists may have changed between the sessions without a notification.
    has = client.capabilities.has
    session.report_changes(kind for kind in CHANGES if before.has(kind) or has(kind))
