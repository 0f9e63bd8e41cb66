"""The server's peer for 2026-07-28: no handshake, every request carries its own context."""

from collections.abc import Mapping
from typing import Any, Final

from ..jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, Request
from ..types import (
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
)
from ._events import Dispatch, Envelope, Send
from ._inflight import Ledger, refuse
from ._meta import meta_of, token_of
from ._methods import CLIENT_REQUESTS
from ._versions import STATELESS, SUPPORTED_VERSIONS

#: What `_meta` of every request must hold, and the JSON type of it.
REQUIRED_KEYS: Final[dict[str, type]] = {META_PROTOCOL_VERSION: str, META_CLIENT_CAPABILITIES: dict}


def is_stateless(params: Mapping[str, Any] | None) -> bool:
    """Tell whether a request is of the stateless era: its `_meta` carries one of the two keys."""
    meta = params.get("_meta") if params else None
    return type(meta) is dict and (
        META_PROTOCOL_VERSION in meta or META_CLIENT_CAPABILITIES in meta
    )


class StatelessPeer:
    """Checks requests of the stateless era; remembers nothing but which are in flight."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def receive_request(self, request: Request) -> Dispatch | Send:
        """Check the envelope, the version and the method, in the order of the specification.

        Source: 2026-07-28 `basic/index` (`_meta`), `basic/versioning`.
        """
        meta = meta_of(request.params)
        missing = [key for key, kind in REQUIRED_KEYS.items() if type(meta.get(key)) is not kind]
        if missing:
            text = f"_meta requires {' and '.join(missing)}"
            data = {"missing": missing, "supported": list(SUPPORTED_VERSIONS)}
            return refuse(request, INVALID_PARAMS, text, data)
        version = meta[META_PROTOCOL_VERSION]
        if version != STATELESS.name:
            data = {"supported": list(SUPPORTED_VERSIONS), "requested": version}
            return refuse(request, UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        method = CLIENT_REQUESTS.get(request.method)
        if method is None or not method.stateless:
            return refuse(request, METHOD_NOT_FOUND, f"Method not found: {request.method}")
        level = meta.get(META_LOG_LEVEL)
        if level is not None and level not in LOG_LEVELS:
            return refuse(request, INVALID_PARAMS, "Invalid log level")
        return self._ledger.accept(request) or Dispatch(request, _envelope(meta))


def _envelope(meta: Mapping[str, Any]) -> Envelope:
    info = meta.get(META_CLIENT_INFO)
    return Envelope(
        STATELESS,
        info if type(info) is dict else None,
        meta[META_CLIENT_CAPABILITIES],
        meta.get(META_LOG_LEVEL),
        token_of(meta),
        meta,
    )
