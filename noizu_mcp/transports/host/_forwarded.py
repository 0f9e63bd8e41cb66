"""The client behind a trusted proxy, from `Forwarded` and `X-Forwarded-*`.

Each proxy appends the address of its own client. So the last entry was written by the connected
proxy, and is true if this proxy is trusted. The entry before it is true if the address in the last
entry is a trusted proxy, too, and so on: the client is the last address that is not a trusted
proxy. Everything before it may have been written by the client.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ._options import ANY, Application

Address = tuple[str, int]
#: The text of an address, and the scheme of its request, if known.
_Entry = tuple[str, str | None]

#: Maximum number of entries that are read, from the end. More proxies in a row are a mistake.
MOST_PROXIES: Final = 20
_SCHEMES: Final = ("http", "https")
_NAMES: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-proto"})
#: A name, or an unquoted value: `1*tchar` of RFC 9110 section 5.6.2.
_TCHARS: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
#: `name=value` and the separator after it (RFC 7239 section 4).
_PAIR: Final = re.compile(
    rf'[ \t]*({_TCHARS})=(?:({_TCHARS})|"((?:[^"\\]|\\.)*)")[ \t]*(?:([;,])|\Z)', re.ASCII
)
#: An address with or without a port. IPv6 may lack its brackets in `X-Forwarded-For` only.
_NODE: Final = re.compile(
    r"\[([0-9a-f:.]+)\](?::([0-9]{1,5}))?|([0-9.]+)(?::([0-9]{1,5}))?|([0-9a-f:.]+)",
    re.IGNORECASE | re.ASCII,
)


class TrustedProxies:
    """The proxies that a host trusts.

    Args:
        allowed: See `HostOptions.forwarded_allow_ips`.
    """

    def __init__(self, allowed: Sequence[str]) -> None:
        self._every = ANY in allowed
        self._networks = [ipaddress.ip_network(each) for each in allowed if each != ANY]

    def trust(self, peer: Address | None) -> bool:
        """Tell whether a peer is trusted; None is a peer on a Unix socket."""
        return self._every or (peer is not None and self._lists(peer[0]))

    def wrap(self, app: Application) -> Application:
        """Wrap an application: its scopes have the clients of trusted proxies."""
        if not self._every and not self._networks:
            return app

        async def behind_proxies(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and self.trust(scope.get("client")):
                client, scheme = self.read(scope["headers"])
                scope = {
                    **scope,
                    "client": client or scope.get("client"),
                    "scheme": scheme or scope["scheme"],
                }
            await app(scope, receive, send)

        return behind_proxies

    def read(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[Address | None, str | None]:
        """Read the headers of a trusted peer.

        A proxy passes on headers of the client that it does not know. So if both kinds exist and
        differ, neither is used.

        Returns:
            The address of the client, with port 0 if the port is unknown, and the scheme of its
            request; None for each that is unknown, malformed or contradictory.
        """
        values: dict[bytes, list[str]] = {}
        for name, value in headers:
            if name in _NAMES:
                values.setdefault(name, []).append(value.decode("latin-1"))
        clients: list[Address | None] = []
        schemes: list[str | None] = []
        if b"forwarded" in values:
            client, scheme = self._find_client(_read_forwarded(",".join(values[b"forwarded"])))
            clients.append(client)
            schemes += [] if scheme is None else [scheme]
        if b"x-forwarded-for" in values:
            texts = ",".join(values[b"x-forwarded-for"]).split(",")
            client, _ = self._find_client([(text.strip(" \t"), None) for text in texts])
            clients.append(client)
        if b"x-forwarded-proto" in values:
            schemes.append(",".join(values[b"x-forwarded-proto"]).strip(" \t").lower())
        known = clients[0] if len({each and each[0] for each in clients}) == 1 else None
        scheme = schemes[0] if len(set(schemes)) == 1 else None
        return known, scheme if scheme in _SCHEMES else None

    def _lists(self, address: str) -> bool:
        found = ipaddress.ip_address(address)
        return any(found in network for network in self._networks)

    def _find_client(self, entries: list[_Entry]) -> tuple[Address | None, str | None]:
        client: Address | None = None
        scheme: str | None = None
        for entry in reversed(entries[-MOST_PROXIES:]):
            client, scheme = _read_node(entry[0]), entry[1]
            if client is None or not self._lists(client[0]):
                break
        return client, scheme


def _read_forwarded(value: str) -> list[_Entry]:
    """Parse the elements of `Forwarded`; an empty list if it is malformed."""
    elements: list[dict[str, str]] = [{}]
    at = 0
    while at < len(value):
        pair = _PAIR.match(value, at)
        if pair is None or pair[1].lower() in elements[-1]:
            return []
        quoted = re.sub(r"\\(.)", r"\1", pair[3] or "")
        elements[-1][pair[1].lower()] = pair[2] or quoted
        if pair[4] == ",":
            elements.append({})
        at = pair.end()
    return [(each.get("for", ""), each.get("proto", "").lower() or None) for each in elements]


def _read_node(text: str) -> Address | None:
    """Parse an address with or without a port; None if the text is not an address."""
    node = _NODE.fullmatch(text)
    if node is None:
        return None
    port = int(node[2] or node[4] or 0)
    try:
        address = ipaddress.ip_address(node[1] or node[3] or node[5])
    except ValueError:
        return None
    return (str(address), port) if port <= 65535 else None
