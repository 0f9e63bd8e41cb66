"""The contract of token verifiers, and the request that a verifier may look at."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from .._errors import InvalidToken, VerifierUnavailable
from .._log import get_logger
from ..types import Principal

#: The log for the reasons of refusals, which clients do not see.
logger: Final = get_logger("noizu_mcp.auth")

#: The header of bearer tokens (RFC 6750 section 2.1). MCP forbids tokens in URLs and bodies.
AUTHORIZATION: Final = "authorization"

#: Maximum characters of a token. Tokens of large companies have three thousand.
MAX_TOKEN: Final = 16 * 1024

_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750 section 2.1
_KEY: Final = re.compile(r"[\x21-\x7e]+")

_Secret = str | bytes
_Headers = Mapping[str, str] | Iterable[tuple[_Secret, _Secret]]


def _text(value: _Secret) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _as_headers(headers: _Headers) -> tuple[tuple[str, str], ...]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((_text(name).lower(), _text(value)) for name, value in pairs)


@attrs.frozen
class AuthRequest:
    """The part of an HTTP request that a verifier may use.

    Attributes:
        method: `POST`, `GET` or `DELETE`.
        path: The path of the URL, without the query.
        headers: Name and value of each header, in order; names in lower case. The constructor
            takes ASGI's pairs of bytes, pairs of strings, or a mapping.
        client: The address of the peer, if known; behind a proxy, the address of the proxy.
        header: The header with the token, in lower case.
    """

    method: str
    path: str
    # Not in the repr: it contains the token.
    headers: tuple[tuple[str, str], ...] = attrs.field(
        default=(), converter=_as_headers, repr=False
    )
    client: str | None = None
    header: str = attrs.field(default=AUTHORIZATION, kw_only=True)

    def values(self, name: str) -> list[str]:
        """List the values of a header, in order.

        Args:
            name: The name of the header, in lower case.

        Returns:
            One value for each line of the header; an empty list without such a header.
        """
        return [value for each, value in self.headers if each == name]


def is_well_formed(header: str, token: str) -> bool:
    """Tell whether a header can contain a token: after `Bearer`, or as its whole value.

    Args:
        header: The header, in lower case.
        token: The token.
    """
    form = _TOKEN if header == AUTHORIZATION else _KEY
    return len(token) <= MAX_TOKEN and form.fullmatch(token) is not None


def check_well_formed(header: str, token: str, name: str) -> None:
    """Check a token that clients will send. The message does not show it.

    Args:
        header: The header with the token, in lower case.
        token: The token.
        name: The kind of token, for the message.

    Raises:
        ValueError: Clients cannot send it: every request with it would be malformed.
    """
    if is_well_formed(header, token):
        return
    if header == AUTHORIZATION:
        allowed = "letters, digits and - . _ ~ + /, with = at its end only (RFC 6750 section 2.1)"
    else:
        allowed = "visible ASCII characters only, no spaces"
    raise ValueError(f"{name} that is sent in {header} has {allowed}, {MAX_TOKEN} at most")


class TokenVerifier(ABC):
    """Finds the caller for a token; subclass it for custom tokens.

    One verifier serves all requests, many at a time. Every request is verified, also within a
    session: a session id must not be used for authentication (2026-07-28, basic/authorization).

    Attributes:
        headers: The headers with its tokens, in lower case: `authorization` after `Bearer`, any
            other header as its whole value.
    """

    headers: tuple[str, ...] = (AUTHORIZATION,)

    @abstractmethod
    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token.

        Args:
            token: The token, not empty.
            request: The request that carried it.

        Returns:
            The caller. Any other value, including None, means that the verifier is broken (500) and
            accepts no token.

        Raises:
            InvalidToken: The token is not valid, or not for this server.
            InsufficientScope: The token is valid, and does not allow this request.
            VerifierUnavailable: The token cannot be verified at the moment.
        """


async def ask(verifier: TokenVerifier, token: str, request: AuthRequest) -> Principal:
    """Verify a token with a verifier; see `TokenVerifier.verify`.

    Raises:
        TypeError: The verifier did not return a `Principal`. None must never be accepted: for
            handlers it means a server without authentication.
    """
    given: object = await verifier.verify(token, request)
    if not isinstance(given, Principal):
        raise TypeError(
            f"{type(verifier).__name__}.verify gave {type(given).__name__}: return a Principal for"
            " a good token, and raise InvalidToken for any other"
        )
    return given


class AnyVerifier(TokenVerifier):
    """Asks several verifiers in turn, until one accepts the token.

    Args:
        verifiers: One or more verifiers. Each sees only tokens of the headers that it reads.

    Raises:
        ValueError: No verifier is given.
    """

    def __init__(self, *verifiers: TokenVerifier) -> None:
        if not verifiers:
            raise ValueError("AnyVerifier needs at least one verifier")
        self._verifiers = verifiers
        names = (name for verifier in verifiers for name in verifier.headers)
        self.headers = tuple(dict.fromkeys(names))

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        """Verify a token; see `TokenVerifier.verify`.

        `VerifierUnavailable` of one verifier is raised only if no other verifier accepts the token.
        """
        reasons: list[str] = []
        unavailable: VerifierUnavailable | None = None
        for verifier in self._verifiers:
            if request.header in verifier.headers:
                try:
                    return await ask(verifier, token, request)
                except InvalidToken as error:
                    reasons.append(f"{type(verifier).__name__}: {error.reason}")
                except VerifierUnavailable as error:
                    unavailable = error
        raise unavailable or InvalidToken("; ".join(reasons) or "no verifier reads this header")
