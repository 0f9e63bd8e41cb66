"""Which era a server speaks: probe, choose, shake hands (2026-07-28 `basic/versioning`)."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio

from .._errors import McpError, ProtocolError, RequestTimeout, TransportError
from ..jsonrpc import MODERN_CODES, Notification
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

#: Not about the request: the server is slow, or has too many.
_LATER: Final = (408, 425, 429)


async def negotiate(
    client: Client, session: ClientSession, version: str | None, probe_timeout: float
) -> None:
    """Agree on a revision with the server and fill in what it says of itself.

    Args:
        client: Gets `server_info`, `capabilities` and `instructions`.
        session: Gets the revision.
        version: The one revision to use; None: the best that both know.
        probe_timeout: Seconds to wait for the answer to the probe; old servers stay silent.

    Raises:
        ProtocolError: There is no revision that both know.
        ConnectionClosed: The server ended the connection.
        TransportError: It cannot be reached, or answered with an HTTP status that says nothing.
        RequestTimeout: It did not answer `initialize`.
    """
    if version is not None and version not in REVISIONS:
        known = ", ".join(REVISIONS)
        raise ValueError(f"no revision {version!r}; there are: {known}")
    if version is None:
        revision = await _probe(client, session, probe_timeout)
        if revision is None:
            return
    else:
        revision = REVISIONS[version]
    if revision.stateless:
        await _discover_pinned(client, session)
    else:
        pinned = version is not None
        session.renewal.begin = partial(_renew, client, session, revision, pinned=pinned)
        await _initialize(client, session, revision, pinned=pinned)


async def _probe(client: Client, session: ClientSession, probe_timeout: float) -> Revision | None:
    """Ask `server/discover` first; None when that was all there was to do.

    Any error that only a 2026-07-28 server knows means that era; any other error, and silence,
    means a handshake: old servers answer an unknown method in many ways, or not at all.
    """
    with trio.move_on_after(probe_timeout), suppress(RequestTimeout):
        try:
            await _discover(client, session)
        except McpError as error:
            return _mutual(error) if error.code in MODERN_CODES else LATEST_HANDSHAKE
        except TransportError as error:
            if not _is_refusal(error):
                raise
            return LATEST_HANDSHAKE
        return None
    return LATEST_HANDSHAKE


def _is_refusal(error: TransportError) -> bool:
    """Tell a server that does not know the request from one that cannot answer now.

    Old servers over HTTP answer it with any 4xx (2026-07-28 `basic/versioning`).
    """
    return error.status is not None and 400 <= error.status < 500 and error.status not in _LATER


def _mutual(error: McpError) -> Revision:
    supported = error.data.get("supported") if isinstance(error.data, Mapping) else None
    for version in REVISIONS:
        if isinstance(supported, list) and version in supported and version != STATELESS.name:
            return REVISIONS[version]
    raise ProtocolError(f"no protocol version in common with the server: {error.message}")


async def _discover_pinned(client: Client, session: ClientSession) -> None:
    try:
        await _discover(client, session)
    except (McpError, TransportError) as error:
        if isinstance(error, TransportError) and not _is_refusal(error):
            raise
        said = error.message if isinstance(error, McpError) else error
        raise ProtocolError(f"the server does not serve {STATELESS.name}: {said}") from error


async def _discover(client: Client, session: ClientSession) -> None:
    peer = session.peer
    request = peer.request("server/discover", {}, revision=STATELESS)
    result = await session.send_request(request, patience=client.timeout)
    peer.revision = STATELESS
    meta = result.get("_meta")
    info = meta.get(META_SERVER_INFO) if isinstance(meta, Mapping) else None
    _fill_in(client, result, info)


async def _initialize(
    client: Client, session: ClientSession, revision: Revision, *, pinned: bool
) -> None:
    peer = session.peer
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
    peer.revision = REVISIONS[version]
    session.drop_questions()
    await client.notify("notifications/initialized")


def _fill_in(client: Client, result: Mapping[str, Any], info: Any) -> None:
    named = client.server_info if info is None else Implementation.from_wire(info, "serverInfo")
    capabilities = ServerCapabilities.from_wire(result.get("capabilities", {}))
    # All of it or nothing: whoever looks in between sees one server.
    client.server_info, client.capabilities = named, capabilities
    client.instructions = result.get("instructions")


async def _renew(
    client: Client, session: ClientSession, revision: Revision, *, pinned: bool
) -> None:
    """Begin a new session like the one before, and tell the handler what may have changed."""
    before = client.capabilities
    await _initialize(client, session, revision, pinned=pinned)
    await session.restore(client.timeout)
    for kind, (method, _) in CHANGES.items():
        if before.has(kind) or client.capabilities.has(kind):
            session.receive_notice(Notification(method, None))
