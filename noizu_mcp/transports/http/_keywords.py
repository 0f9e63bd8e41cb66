"""The keywords of `asgi`, `run_http` and `serve_http`, for type checkers and editors.

`HttpOptions` and `HostOptions` have the defaults, the checks and the descriptions. They are loaded
late, so that a server on stdio does not load the HTTP side; these names are needed earlier, when
`Server` is defined.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    import ssl

    from ...auth import BearerAuth
    from ...backends import Backend
    from ...telemetry import Metrics
    from .server._http_options import HttpLimits


class HttpKeywords(TypedDict, total=False):
    """The attributes of `HttpOptions`."""

    path: str
    allowed_hosts: Sequence[str] | None
    allowed_origins: Sequence[str]
    auth: "BearerAuth | None"
    health: bool
    metrics: "bool | Metrics"
    limits: "HttpLimits"
    seal_sessions: bool
    backend: "str | Backend | None"


class HostKeywords(HttpKeywords, total=False):
    """The attributes of `HttpOptions` and of `HostOptions`."""

    uds: str | None
    uds_mode: int
    certfile: str | None
    keyfile: str | None
    keyfile_password: str | None
    ca_certs: str | None
    verify_mode: "ssl.VerifyMode | None"
    ciphers: str | None
    forwarded_allow_ips: Sequence[str]
    health_port: int | None
    health_host: str | None
    max_connections: int
    max_requests: int
    max_streams: int
    max_header_size: int
    header_timeout: float
    keep_alive_timeout: float
    body_timeout: float
    write_timeout: float
    handshake_timeout: float
    linger_timeout: float
    lead: float
    drain_timeout: float
    lifespan_timeout: float
    backlog: int
