"""Every limit and setting of the host by name."""

import math
import ssl
from typing import Any, Final

import attrs

KIB: Final = 1024
#: Bytes that must pass within `body_timeout` or `write_timeout`: the pace below which a client is
#: too slow to be served. 64 KiB in 30 s is 2 KiB/s; a modem of 1996 was faster.
PACE: Final = 64 * KIB


def _seconds(default: float) -> Any:
    def check(_: object, field: "attrs.Attribute[float]", value: Any) -> None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        # One that is 0 by default may be.
        if not number or not 0 <= value < math.inf or (value == 0 and default):
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


@attrs.frozen(kw_only=True)
class HostOptions:
    """Limits of a host for its clients, and its address. A breach costs one connection.

    Attributes:
        uds: Path of a Unix socket to listen on, instead of host and port.
        uds_mode: Permissions of that socket. Whoever may write to it is a client.
        certfile: Path of a certificate chain (PEM); with it, only TLS is spoken.
        keyfile: Path of its private key; None: it is in `certfile`.
        keyfile_password: What the key is encrypted with.
        ca_certs: Path of the authorities that client certificates are checked against.
        verify_mode: Whether a client certificate is asked for, or required.
        ciphers: TLS 1.2 ciphers in the words of OpenSSL; None: those of hypercorn.
        max_connections: Connections at a time. One more takes the place of the one that has been
            idle for longest, else of the one whose client has owed the rest of a request for
            longest, if that is a second; where there is none it is answered with 503 and closed.
            A client that leaves loses its place at once, whatever still runs for it.
        max_requests: Requests on one connection, after which it is closed.
        max_streams: Requests at a time on one HTTP/2 connection.
        max_header_size: Bytes of a request line and headers together; past it the answer is 431.
            Room for a large bearer token.
        header_timeout: Seconds for a request line and headers, from their first byte, and from the
            connection to the first request; past it the answer is 408.
        keep_alive_timeout: Seconds that a connection may be idle between requests. Longer than
            clients keep theirs, so that they do not send into a connection that is being closed.
        body_timeout: Seconds in which `PACE` more bytes of a body, or its end, must come while the
            application waits for them; else it sees a disconnect, and if it says nothing to it
            the answer is 408 (HTTP/2: the stream is reset).
        write_timeout: Seconds in which a client must take `PACE` more bytes of an answer; else it
            loses the connection (HTTP/2: that stream), and the application sees a disconnect.
        handshake_timeout: Seconds for a TLS handshake.
        linger_timeout: Seconds in which what a client still sends after the last answer is read
            and dropped: closing at once would reset the connection and lose that answer.
        lead: Seconds at the end in which everything is still accepted and served, while the
            application says already that it is not ready: so that a load balancer sends no more.
        drain_timeout: Seconds at the end in which answers that are under way may be completed.
        lifespan_timeout: Seconds that leaving the lifespan may take at the end.
        backlog: Connections that the system keeps until they are accepted.

    Raises:
        ValueError: A limit is no number, or too low; a key is given without its certificate; `uds`
            is empty.
    """

    uds: str | None = None
    uds_mode: int = 0o600
    certfile: str | None = None
    keyfile: str | None = None
    keyfile_password: str | None = attrs.field(default=None, repr=False)
    ca_certs: str | None = None
    verify_mode: ssl.VerifyMode | None = None
    ciphers: str | None = None
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
    drain_timeout: float = _seconds(2.0)
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
