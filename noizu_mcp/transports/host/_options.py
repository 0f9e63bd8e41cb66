"""Every limit and setting of the host by name, and the application that a host serves."""

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
#: Bytes that must pass within `body_timeout` or `write_timeout`: the pace below which a client is
#: too slow to be served. 64 KiB in 30 s is 2 KiB/s; a modem of 1996 was faster.
PACE: Final = 64 * KIB


class ListenError(OSError, McpException):
    """A host cannot listen, or cannot set up TLS; the text is one line that says why."""


def _seconds(default: float) -> Any:
    def check(_: object, field: "attrs.Attribute[float]", value: Any) -> None:
        # An option that is 0 by default may be 0.
        if not is_number(value) or value < 0 or (value == 0 and default):
            least = "above 0" if default else "from 0 on"
            raise ValueError(f"HostOptions.{field.name} must be seconds {least}, not {value!r}")

    return attrs.field(default=default, validator=check)


def _count(default: int) -> Any:
    def check(_: object, field: "attrs.Attribute[int]", value: Any) -> None:
        if type(value) is not int or value < 1:
            raise ValueError(
                f"HostOptions.{field.name} must be an integer of at least 1, not {value!r}"
            )

    return attrs.field(default=default, validator=check)


def _are_peers(_: object, field: "attrs.Attribute[Sequence[str]]", value: Any) -> None:
    if not isinstance(value, list | tuple) or not all(map(_is_peer, value)):
        wanted = "a list of addresses, networks like 10.0.0.0/8, or *"
        raise ValueError(f"HostOptions.{field.name} must be {wanted}, not {value!r}")


def _is_peer(text: Any) -> bool:
    try:
        return isinstance(text, str) and (text == ANY or bool(ipaddress.ip_network(text)))
    except ValueError:
        return False


def _is_port(_: object, field: "attrs.Attribute[int | None]", value: Any) -> None:
    if value is not None and (type(value) is not int or not 0 <= value <= 65535):
        raise ValueError(f"HostOptions.{field.name} must be from 0 to 65535, not {value!r}")


@attrs.frozen(kw_only=True)
class HostOptions:
    """Limits of a host for its clients, and its address. A breach costs one connection.

    Attributes:
        uds: Path of a Unix socket to listen on, instead of host and port.
        uds_mode: Permissions of that socket. Everybody who may write to it is a client.
        certfile: Path of a certificate chain (PEM); with it, only TLS is spoken.
        keyfile: Path of its private key; None: it is in `certfile`.
        keyfile_password: The password of that key.
        ca_certs: Path of the authorities that client certificates are checked against.
        verify_mode: Whether a client certificate is asked for, or required.
        ciphers: TLS 1.2 ciphers in the words of OpenSSL; None: forward secrecy with AEAD only.
        forwarded_allow_ips: Addresses and networks of proxies whose `Forwarded` or
            `X-Forwarded-For`, and `X-Forwarded-Proto`, are believed; `*`: every peer, also one on a
            Unix socket. The client is the last address in the header that is none of these
            networks.
        health_port: A port of its own for `/healthz` and `/readyz`, which answers while
            `max_connections` are busy and until the end; always plain HTTP. 0 for a free one.
        health_host: The address of that port; None: that of the host.
        max_connections: Connections at a time, fewer if the process may not open so many files.
            One more takes a place of the address that has the most, if it has at least two
            connections more than that of the client: an idle one, else one whose client has owed
            the rest of a request for a second, else its oldest one. Where no address has two more,
            it takes an idle one, or one whose client owes. Else the client gets 503, but
            `/healthz` and `/readyz` are answered. An
            address is an IPv4 address, a /64 of IPv6, or a Unix socket; each connection of a proxy
            in `forwarded_allow_ips` counts as an address. A client that leaves loses its place,
            within a second if the application does not wait for it, even if its request still runs.
        max_requests: Requests on one connection, after which it is closed.
        max_streams: Requests at a time on one HTTP/2 connection, which hypercorn alone has.
        max_header_size: Bytes of a request line and headers together; past it the answer is 431.
            Room for a large bearer token.
        header_timeout: Seconds for a request line and headers, from their first byte, and from the
            connection to the first request; past it the answer is 408.
        keep_alive_timeout: Seconds that a connection may be idle between requests. Longer than
            clients keep theirs, so that they do not send into a connection that is being closed.
        body_timeout: Seconds in which `PACE` more bytes of a body, or its end, must come while the
            application waits for them; else it sees a disconnect, and if it does not answer the
            client gets 408. Each byte is worth its share of that time.
        write_timeout: Seconds in which a client must take `PACE` more bytes of an answer; else it
            loses the connection, and the application sees a disconnect.
        handshake_timeout: Seconds for a TLS handshake.
        linger_timeout: Seconds after the last answer in which further bytes of the client are
            read and dropped: closing at once would reset the connection and lose that answer.
        lead: Seconds at the end in which everything is still accepted and served, while the
            application already says that it is not ready, so that a load balancer sends no more.
        drain_timeout: Seconds at the end in which answers that are under way may be completed.
        lifespan_timeout: Seconds that leaving the lifespan may take at the end.
        backlog: Connections that the system keeps until they are accepted.

    Raises:
        ValueError: A limit is no number, or too low; a key is given without its certificate; `uds`
            is empty; a proxy is no address.
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
                # Going on would mean plain text where TLS is meant.
                raise ValueError(
                    f"HostOptions.{name} needs certfile, the certificate to serve with"
                )

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "http" if self.certfile is None else "https"
