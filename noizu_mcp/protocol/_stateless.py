"""Requests of 2026-07-28: no handshake, every request carries its own context.

Source: 2026-07-28 `basic/index` (`_meta`), `basic/versioning`, `basic/transports/streamable-http`.
"""

from typing import Final

from .._value import JSONMapping
from ..jsonrpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Request,
)
from ..types import (
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_PROTOCOL_VERSION,
)
from ._events import NOWHERE, Dispatch, Envelope, HttpHeaders, Origin, SendAnswer
from ._ledger import refuse
from ._request_headers import read_header, standard_fault
from ._revisions import CLIENT_REQUESTS, STATELESS, SUPPORTED_VERSIONS

_VERSION: Final = b"mcp-protocol-version"
#: The keys that `_meta` of every request must hold, and their JSON types.
REQUIRED_KEYS: Final[dict[str, type]] = {META_PROTOCOL_VERSION: str, META_CLIENT_CAPABILITIES: dict}


def is_stateless(params: JSONMapping | None) -> bool:
    """Tell whether a request is of the stateless era: its `_meta` carries one of the two keys.

    One is enough: a request that has only the other is a faulty request of 2026-07-28, and must not
    be served under a handshake.
    """
    meta = params.get("_meta") if params else None
    return type(meta) is dict and (
        META_PROTOCOL_VERSION in meta or META_CLIENT_CAPABILITIES in meta
    )


def read_stateless(request: Request, origin: Origin = NOWHERE) -> Dispatch | SendAnswer:
    """Check headers, metadata, version and method, in the order of the specification.

    Args:
        request: The request.
        origin: Its headers and caller; the headers are checked where there are any.
    """
    # Written out, not `meta_of` and `token_of`: each request of the era comes here.
    params = request.params
    meta = params.get("_meta") if params else None
    if type(meta) is not dict:
        meta = {}
    token = meta.get(META_PROGRESS_TOKEN)
    headers = origin.headers
    sent = None if headers is None else read_header(headers, _VERSION)
    # The order matters where several things are wrong: the code tells a client which era to speak.
    # Version first, then the other headers, then the method.
    if (
        meta.get(META_PROTOCOL_VERSION) != STATELESS.name
        or type(meta.get(META_CLIENT_CAPABILITIES)) is not dict
        or (headers is not None and sent != STATELESS.name)
    ):
        return _refuse_version(request, meta, headers, sent)
    if headers is not None:
        # A proxy may have routed by the headers: a server must refuse those that differ.
        fault = standard_fault(request, headers)
        if fault is not None:
            return refuse(request, HEADER_MISMATCH, fault)
    method = CLIENT_REQUESTS.get(request.method)
    # Also for methods of the handshake era, like `ping`: the server knows them, this request may
    # not use them.
    if method is None or not method.stateless:
        return refuse(request, METHOD_NOT_FOUND, f"Method not found: {request.method}")
    level = meta.get(META_LOG_LEVEL)
    # 2026-07-28 `server/utilities/logging`; without a level no log message may be sent at all.
    if level is not None and level not in LOG_LEVELS:
        return refuse(request, INVALID_PARAMS, "Invalid log level")
    info = meta.get(META_CLIENT_INFO)
    envelope = Envelope(
        STATELESS,
        # Only recommended (`basic/index`): a request without it must be served.
        info if type(info) is dict else None,
        meta[META_CLIENT_CAPABILITIES],
        level,
        token if type(token) is str or type(token) is int else None,
        meta,
        origin,
    )
    return Dispatch(request, envelope)


def _refuse_version(
    request: Request, meta: JSONMapping, headers: HttpHeaders | None, sent: str | None
) -> SendAnswer:
    """Refuse a request whose version or capabilities are missing, different or not served.

    Args:
        request: The request.
        meta: Its metadata.
        headers: See `Origin`.
        sent: The version in its header.
    """
    # Before the keys of `_meta`: a missing header is -32020, a missing key -32602, and the header
    # is looked at first.
    if headers is not None and sent is None:
        return refuse(request, HEADER_MISMATCH, "MCP-Protocol-Version header is missing")
    # Before the comparison: with the header alone the request is of this era, and the fault is the
    # missing key, not a mismatch. Remembered keys of earlier requests do not count.
    missing = [key for key, kind in REQUIRED_KEYS.items() if type(meta.get(key)) is not kind]
    if missing:
        text = f"_meta requires {' and '.join(missing)}"
        # Helps a client of the handshake era that has met a server without one.
        data = {"missing": missing, "supported": list(SUPPORTED_VERSIONS)}
        return refuse(request, INVALID_PARAMS, text, data)
    version = meta[META_PROTOCOL_VERSION]
    if headers is not None and sent != version:
        text = f"MCP-Protocol-Version header differs from {META_PROTOCOL_VERSION} in _meta"
        return refuse(request, HEADER_MISMATCH, text)
    return unsupported(request, version)


def unsupported(request: Request, version: str) -> SendAnswer:
    """Refuse a request of a revision that is not served (2026-07-28 `basic/versioning`)."""
    data = {"supported": list(SUPPORTED_VERSIONS), "requested": version}
    return refuse(request, UNSUPPORTED_VERSION, "Unsupported protocol version", data)
