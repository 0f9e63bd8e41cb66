"""Request metadata: the context of a request beside its method and params.

Handlers never see an era: 2026-07-28 fills an `Envelope` from `_meta`, the handshake revisions fill
it from the session.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeGuard

from ..jsonrpc import Id
from ..types import META_PROGRESS_TOKEN, Principal
from ._versions import Revision


class Mirrored(NamedTuple):
    """The headers that mirror one request, without white space around their values; None: not sent.

    Attributes:
        version: `MCP-Protocol-Version`.
        method: `Mcp-Method`.
        name: `Mcp-Name`.
        params: `Mcp-Param-*`, by the rest of the name in lower case.
    """

    version: str | None = None
    method: str | None = None
    name: str | None = None
    params: Mapping[str, str] = {}


class Origin(NamedTuple):
    """The context of a request that its transport knows, beside its text.

    Attributes:
        headers: The HTTP headers that mirror it; None on a pipe, which has no headers.
        principal: The verified caller; None if callers are not verified.
    """

    headers: Mirrored | None = None
    principal: Principal | None = None


#: The origin of messages on a pipe.
NOWHERE: Final = Origin()


class Envelope(NamedTuple):
    """The metadata of one request of either era.

    Attributes:
        revision: The revision it is served under.
        client_info: `Implementation` as sent, or None.
        client_capabilities: The abilities of the client, as sent.
        log_level: The least severe level it wants; None: it wants no log messages.
        progress_token: The token of its progress notices, or None.
        meta: `_meta` of the request as sent.
        origin: Its headers and its verified caller.
    """

    revision: Revision
    client_info: Mapping[str, Any] | None
    client_capabilities: Mapping[str, Any]
    log_level: str | None
    progress_token: Id | None
    meta: Mapping[str, Any]
    origin: Origin = NOWHERE


def is_id(value: Any) -> TypeGuard[Id]:
    """Tell whether a value can be a request id or a progress token: a string or an integer."""
    # Not isinstance: True is an int, and equal to 1.
    return type(value) is str or type(value) is int


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object as it is, and an empty one instead of anything else."""
    # Tolerant on purpose: `_meta` is free text of the peer, and must not fail a request that does
    # not depend on it.
    return value if type(value) is dict else {}


def meta_of(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Find the `_meta` of a message; anything but an object counts as absent."""
    return mapping(params.get("_meta")) if params else {}


def token_of(meta: Mapping[str, Any]) -> Id | None:
    """Find the progress token; anything but a string or an integer counts as absent."""
    token = meta.get(META_PROGRESS_TOKEN)
    return token if is_id(token) else None
