"""Limits and settings of the host by name, and the type of the applications that it serves."""

import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import attrs

from ..._errors import McpException
from ..._log import get_logger
from ..._util import is_number

#: An ASGI application.
Application = Callable[[Any, Any, Any], Awaitable[None]]

logger: Final = get_logger("noizu_mcp.http")

KIB: Final = 1024
#: Every peer, in `forwarded_allow_ips`.
ANY: Final = "*"
#: Bytes that must pass within `body_timeout` or `write_timeout`: the minimum pace of a client. 64
#: KiB in 30 s is 2 KiB/s; a modem of 1996 was faster.
PACE: Final = 64 * KIB


class ListenError(OSError, McpException):
    """A host cannot listen, or cannot set up TLS. The text is one line that says why."""


def _seconds(default: float) -> Any:
    def check(_: object, field: "attrs.Attribute[float]", value: object) -> None:
        # An option whose default is 0 may be 0.
        if not is_number(value) or value < 0 or (value == 0 and default):
            least = "above 0" if default else "from 0 on"
            raise ValueError(f"HostOptions.{field.name} must be seconds {least}, not {value!r}")

    return attrs.field(default=default, validator=check)


def _count(default: int) -> Any:
    def check(_: object, field: "attrs.Attribute[int]", value: object) -> None:
        if type(value) is not int or value < 1:
            raise ValueError(
                f"HostOptions.{field.name} must be an integer of at least 1, not {value!r}"
            )

    return attrs.field(default=default, validator=check)


def _are_peers(_: object, field: "attrs.Attribute[Sequence[str]]", value: object) -> None:
    if not isinstance(value, list | tuple) or not all(map(_is_peer, value)):
        wanted = "a list of addresses, networks like 10.0.0.0/8, or *"
        raise ValueError(f"HostOptions.{field.name} must be {wanted}, not {value!r}")


def _is_peer(text: object) -> bool:
    try:
        return isinstance(text, str) and (text == ANY or bool(ipaddress.ip_network(text)))
    except ValueError:
        return False


def _is_port(_: object, field: "attrs.Attribute[int | None]", value: object) -> None:
    if value is not None and (type(value) is not int or not 0 <= value <= 65535):
        raise ValueError(f"HostOptions.{field.name} must be from 0 to 65535, not {value!r}")


@attrs.frozen(kw_only=True)
class HostOptions:
    """Limits of a host for its clients, and its address. A violation affects one connection.

    Attributes:
        uds: Path of a Unix socket to listen on, instead of host and port.
        uds_mode: Permissions of that socket. Every user who may write to it is a client.
        certfile: Path of a certificate chain (PEM); it enables TLS, and disables plain HTTP.
        keyfile: Path of its private key; None if the key is in `certfile`.
        keyfile_password: The password of that key.
        ca_certs: Path of the authorities for client certificates.
        verify_mode: Whether a client certificate is requested or required.
        ciphers: TLS 1.2 ciphers as an OpenSSL string; None for forward secrecy with AEAD only.
        forwarded_allow_ips: Addresses and networks of proxies whose `Forwarded` or
            `X-Forwarded-For`, and `X-Forwarded-Proto`, are trusted; `*` for every peer, including
            peers on a Unix socket. The client is the last address in the header outside these
            networks.
        health_port: A separate port for `/healthz` and `/readyz`, which answers while
            `max_connections` are in use and until the end; always plain HTTP. 0 for a free port.
        health_host: The address of that port; None for the address of the host.
        max_connections: Concurrent connections, fewer if the process may not open so many files.
            When all are in use, a new connection replaces one of the address with the most, if that
            has at least two connections more than the client's address: an idle one, else one whose
            client has owed the rest of a request for a second, else the oldest one. If no address
            has two more, it replaces an idle one, or one whose client owes. Otherwise the client
            gets 503, but `/healthz` and `/readyz` are answered. An address is an IPv4 address, a
            /64 of IPv6, or a Unix socket; each connection of a proxy in `forwarded_allow_ips`
            counts as an address. A client that disconnects frees its place, within a second if the
            application does not wait for it, even if its request still runs.
        max_requests: Requests on one connection, after which it is closed.
        max_streams: Concurrent requests on one HTTP/2 connection, with hypercorn only.
        max_header_size: Maximum bytes of a request line and headers together; else the answer is
            431. Includes room for a large bearer token.
        header_timeout: Seconds for a request line and headers, from their first byte, and from the
            connection to the first request; else the answer is 408.
        keep_alive_timeout: Seconds that a connection may be idle between requests. Longer than the
            time of clients, so that they do not send to a connection that is being closed.
        body_timeout: Seconds in which `PACE` more bytes of a body, or its end, must come while the
            application waits for them. Otherwise it sees a disconnect, and if it does not answer,
            the client gets 408. Each byte earns its share of that time.
        write_timeout: Seconds in which a client must read `PACE` more bytes of an answer. Otherwise
            the connection is closed, and the application sees a disconnect.
        handshake_timeout: Seconds for a TLS handshake.
        linger_timeout: Seconds after the last answer in which further bytes of the client are read
            and dropped: closing at once would reset the connection and lose that answer.
        lead: Seconds at the end in which everything is still accepted and served, while the
            application already reports that it is not ready, so that a load balancer stops sending
            requests.
        drain_timeout: Seconds at the end in which running answers may be completed.
        lifespan_timeout: Maximum seconds for exiting the lifespan at the end.
        backlog: Connections that the system queues until they are accepted.

    Raises:
        ValueError: A limit is not a number, or too low; a key is given without its certificate;
            `uds` is empty; a proxy is not an address.
    """

    uds: str | None = None
    uds_mode: int = 0o600
    certfile: str | None = None
    keyfile: str | None = None
    keyfile_password: str | None = attrs.field(default=None, repr=False)
    ca_certs: str | None = None
    verify_mode: ssl.VerifyMode | None = None
    ciphers: str | None = None
    forwarded_allow_ips: Sequence[str] = attrs.field(default=(), validator=_are_peers)
    health_port: int | None = attrs.field(default=None, validator=_is_port)
    health_host: str | None = None
    max_connections: int = _count(1000)
    max_requests: int = _count(1_000_000)
    max_streams: int = _count(100)
    max_header_size: int = _count(32 * KIB)
    header_timeout: float = _seconds(10.0)
    keep_alive_timeout: float = _seconds(75.0)
    body_timeout: float = _seconds(30.0)
    write_timeout: float = _seconds(30.0)
    handshake_timeout: float = _seconds(10.0)
    linger_timeout: float = _seconds(2.0)
    lead: float = _seconds(0.0)
    drain_timeout: float = _seconds(1.0)
    lifespan_timeout: float = _seconds(2.0)
    backlog: int = _count(1024)

    def __attrs_post_init__(self) -> None:
        if self.uds == "":
            raise ValueError("HostOptions.uds must be the path of a Unix socket, not ''")
        for name in ("keyfile", "keyfile_password", "ca_certs", "verify_mode"):
            if getattr(self, name) is not None and self.certfile is None:
                # Continuing would mean plain text instead of TLS.
                raise ValueError(
                    f"HostOptions.{name} needs certfile, the certificate to serve with"
                )

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "http" if self.certfile is None else "https"
