"""What a verifier may know about the request that a token came with."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

#: Where a bearer token stands (RFC 6750 section 2.1); the one place that MCP allows.
AUTHORIZATION: Final = "authorization"

#: Characters of a token. Those of large companies have three thousand.
MAX_TOKEN: Final = 16 * 1024

_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750 section 2.1
_KEY: Final = re.compile(r"[\x21-\x7e]+")

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


def is_well_formed(header: str, token: str) -> bool:
    """Tell whether a token can stand in a header: after `Bearer`, or as its whole value.

    Args:
        header: The header, in lower case.
        token: The token.
    """
    form = _TOKEN if header == AUTHORIZATION else _KEY
    return len(token) <= MAX_TOKEN and form.fullmatch(token) is not None


def check_well_formed(header: str, token: str, what: str) -> None:
    """Check a token that clients are to send; the message does not show it.

    Args:
        header: The header that they send it in, in lower case.
        token: The token.
        what: What it is, for the message.

    Raises:
        ValueError: No client could send it: each request with it would be malformed.
    """
    if is_well_formed(header, token):
        return
    if header == AUTHORIZATION:
        allowed = "letters, digits and - . _ ~ + /, with = at its end only (RFC 6750 section 2.1)"
    else:
        allowed = "visible ASCII characters only, no spaces"
    raise ValueError(f"{what} that is sent in {header} has {allowed}, {MAX_TOKEN} at most")
