"""What a verifier may know about the request that a token came with."""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

#: Where a bearer token stands (RFC 6750 section 2.1); the one place that MCP allows.
AUTHORIZATION: Final = "authorization"

_Text = str | bytes
_Headers = Mapping[str, str] | Iterable[tuple[_Text, _Text]]


def _text(value: _Text) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _as_headers(headers: _Headers) -> tuple[tuple[str, str], ...]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((_text(name).lower(), _text(value)) for name, value in pairs)


@attrs.frozen
class AuthRequest:
    """One HTTP request, as far as a verifier may look at it.

    Attributes:
        method: `POST`, `GET` or `DELETE`.
        path: The path of the URL, without the query.
        headers: Name and value of each header, in order; names in lower case. ASGI's pairs of
            bytes are taken as they are, and so is a mapping.
        client: The address of the peer, if known; behind a proxy it is the proxy's.
        header: The header that the token stood in; in lower case.
    """

    method: str
    path: str
    # Not shown: the token stands in there.
    headers: tuple[tuple[str, str], ...] = attrs.field(
        default=(), converter=_as_headers, repr=False
    )
    client: str | None = None
    header: str = attrs.field(default=AUTHORIZATION, kw_only=True)

    def values(self, name: str) -> list[str]:
        """List the values of a header, in order.

        Args:
            name: Its name in lower case.

        Returns:
            The values as sent, one for each header line; none if there is no such header.
        """
        return [value for each, value in self.headers if each == name]
