"""Bearer tokens of requests: taken, verified, and asked for (RFC 6750, RFC 9728)."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from .._errors import InsufficientScope, InvalidToken, VerifierUnavailable
from .._log import SHOWN, Seldom
from ..types import Principal, RequireScopes
from ._challenge import AuthChallenge, format_challenge
from ._documents import ResourceMetadata, as_servers, check_scopes
from ._request import AUTHORIZATION, AuthRequest, is_well_formed
from ._verifier import TokenVerifier, ask, logger

#: Seconds after which a client may try again when a verifier is unavailable.
RETRY_AFTER: Final = 5

#: Reasons of refusals that the log tells apart within a minute, and characters of one that do so.
_REASONS: Final = 20
_REASON: Final = 100

# What clients hear: nothing that tells one bad token from another.
_INVALID: Final = "The access token is not valid for this server"
_MALFORMED: Final = "The request must have exactly one well-formed token"
_SCOPE: Final = "The access token does not allow this"
_BODIES: Final = {
    400: "Bad request: the Authorization header is malformed",
    401: "Unauthorized",
    403: "Insufficient scope",
    500: "Internal error",
    503: "Tokens cannot be verified at present",
}


class Challenge(Exception):
    """The answer to a request that may not go on; the HTTP application sends it as it is.

    Attributes:
        status: 401 without a good token, 403 without the scopes, 400 for a malformed one; 503 if
            nobody can say at present, and 500 if a verifier is broken.
        headers: Names in lower case and values; `content-length` is left to the application.
        body: A short text for people.
    """

    def __init__(self, status: int, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.status = status
        self.body = f"{_BODIES[status]}\n".encode()
        self.headers = [
            *headers,
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"cache-control", b"no-store"),
        ]
        super().__init__(f"HTTP {status}: {_BODIES[status]}")


class BearerAuth:
    """Lets requests with a good token in, and tells the others where to get one.

    It holds no connection: the HTTP application asks it about each request.

    Args:
        verifier: Tells good tokens from bad ones.
        resource: The URL of the MCP endpoint as clients write it; tokens are issued for it.
        authorization_servers: The issuers of tokens. None at all (`()`), for API keys that are
            handed out by other means: clients are then not told where to get a token.
        scopes_supported: The scopes that a client should ask for at first: a small set; those that
            are required unless given.
        required_scopes: What every request needs; a `RequireScopes` where one scope stands for
            others.
        resource_name: The name of this server for people.
        resource_documentation: The URL of a page for developers.
        extra: More members of the metadata document (RFC 9728 section 2).

    Raises:
        ValueError: A URL or a scope is not one, or is not safe.
    """

    def __init__(
        self,
        verifier: TokenVerifier,
        *,
        resource: str,
        authorization_servers: Sequence[str],
        scopes_supported: Iterable[str] = (),
        required_scopes: Iterable[str] | RequireScopes = (),
        resource_name: str | None = None,
        resource_documentation: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._verifier = verifier
        self._log = Seldom(log=logger, shown=SHOWN, most=_REASONS)
        self._required = _as_required(required_scopes)
        self._scopes = self._required.scopes if self._required else ()
        self._supported = tuple(scopes_supported)
        self._metadata = ResourceMetadata(
            resource=resource,
            authorization_servers=as_servers(authorization_servers),
            scopes_supported=self._supported or self._scopes,
            resource_name=resource_name,
            resource_documentation=resource_documentation,
            extra=dict(extra or {}),
        )
        self._url = self._metadata.url

    @property
    def resource(self) -> str:
        """The URL of the MCP endpoint as clients write it."""
        return self._metadata.resource

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that tokens stand in, in lower case."""
        return tuple(self._verifier.headers)

    async def authenticate(self, request: AuthRequest, scopes: Iterable[str] = ()) -> Principal:
        """Find out who sent a request.

        Args:
            request: Any request of the endpoint: POST, GET and DELETE alike.
            scopes: What the server behind it requires of all requests, and checks by itself:
                challenges name them, so that the first token is enough.

        Returns:
            Who sent it.

        Raises:
            Challenge: It may not go on; what to answer.
        """
        header, token = self._take(request, scopes)
        seen = request if header == request.header else attrs.evolve(request, header=header)
        try:
            principal = await ask(self._verifier, token, seen)
            if self._required is not None:
                self._required.check(principal)
        except (InsufficientScope, InvalidToken, VerifierUnavailable) as error:
            raise self._refusal(error, scopes) from None
        except Exception as error:
            verifier = type(self._verifier).__name__
            self._log.crash(verifier, "%s failed", verifier, error=error)
            raise Challenge(500) from error
        return principal

    def challenge(self, scopes: Iterable[str]) -> Challenge:
        """Make the answer to somebody who is known and lacks scopes (RFC 6750 section 3.1).

        Args:
            scopes: All that the operation needs; what every request needs is added.

        Returns:
            403 with `insufficient_scope` and all scopes, so that one new token is enough.
        """
        return self._challenge(403, "insufficient_scope", _SCOPE, self._with(scopes))

    def metadata_documents(
        self, endpoint_path: str, scopes: Iterable[str] = ()
    ) -> dict[str, bytes]:
        """Give the metadata documents to serve, as `application/json`, without authorisation.

        Args:
            endpoint_path: The path of the MCP endpoint within the application: `/mcp`.
            scopes: What the server behind it requires of all requests: they name these, too,
                unless `scopes_supported` was given.

        Returns:
            Bodies by their paths.

        Raises:
            ValueError: One is no scope that clients may be told to ask for.
        """
        wanted = self._supported or self._with(check_scopes(scopes, "requires"))
        return attrs.evolve(self._metadata, scopes_supported=wanted).documents(endpoint_path)

    def _with(self, scopes: Iterable[str]) -> tuple[str, ...]:
        """Add what every request needs to the scopes of one."""
        return tuple(dict.fromkeys((*self._scopes, *scopes)))

    def _take(self, request: AuthRequest, scopes: Iterable[str]) -> tuple[str, str]:
        """Take the one token out of a request, never out of its URL."""
        found = [each for name in self._verifier.headers for each in _tokens(request, name)]
        several = len(found) > 1 or len(request.values(AUTHORIZATION)) > 1
        if several or (found and not is_well_formed(*found[0])):
            raise self._challenge(400, "invalid_request", _MALFORMED)
        if not found:
            # RFC 6750 section 3.1: no error code for a client that did not know.
            raise self._challenge(401, None, None, self._with(scopes))
        return found[0]

    def _refusal(
        self,
        error: InsufficientScope | InvalidToken | VerifierUnavailable,
        scopes: Iterable[str],
    ) -> Challenge:
        if isinstance(error, InsufficientScope):
            return self.challenge((*scopes, *error.scopes))
        if isinstance(error, InvalidToken):
            # A verifier may quote the token in its reason: how many reasons there are is bounded.
            self._log.warning(error.reason[:_REASON], "a token was refused: %s", error.reason)
            return self._challenge(401, "invalid_token", _INVALID, self._with(scopes))
        text, reason = "tokens cannot be verified: %s", error.reason
        self._log.entry(logging.ERROR, (text, reason[:_REASON]), text, reason)
        return Challenge(503, [(b"retry-after", str(RETRY_AFTER).encode())])

    def _challenge(
        self, status: int, error: str | None, description: str | None, scopes: Sequence[str] = ()
    ) -> Challenge:
        params = {
            "error": error,
            "error_description": description,
            "scope": " ".join(scopes) or None,
            "resource_metadata": self._url,
        }
        given = {name: value for name, value in params.items() if value is not None}
        value = format_challenge(AuthChallenge("Bearer", given))
        return Challenge(status, [(b"www-authenticate", value.encode("latin-1"))])


def _as_required(scopes: Iterable[str] | RequireScopes) -> RequireScopes | None:
    if isinstance(scopes, RequireScopes):
        check_scopes(scopes.scopes, "required_scopes")
        return scopes
    names = check_scopes(scopes, "required_scopes")
    return RequireScopes(*names) if names else None


def _tokens(request: AuthRequest, name: str) -> list[tuple[str, str]]:
    values = request.values(name)
    if name == AUTHORIZATION:
        values = [token for value in values if (token := _bearer(value)) is not None]
    return [(name, value) for value in values]


def _bearer(value: str) -> str | None:
    """Give what stands after `Bearer`; another scheme is for somebody else."""
    scheme, _, rest = value.strip(" \t").partition(" ")
    return rest.strip(" \t") if scheme.lower() == "bearer" else None
