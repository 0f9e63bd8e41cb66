"""Bearer tokens of requests: extraction, verification, challenges (RFC 6750, RFC 9728)."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from .._errors import InsufficientScope, InvalidToken, McpException, VerifierUnavailable
from .._log import SHOWN, ThrottledLog
from ..jsonrpc import render
from ..types import Principal, RequireScopes, as_scopes
from ._challenge import AuthChallenge, format_challenge
from ._configuration import check_url
from ._verifier import AUTHORIZATION, AuthRequest, TokenVerifier, ask, is_well_formed, logger

#: Seconds after which a client may try again when a verifier is unavailable.
RETRY_AFTER: Final = 5

#: Maximum number of distinct logged reasons per minute, and the characters that are compared.
_REASONS: Final = 20
_REASON: Final = 100

# The texts for clients do not distinguish invalid tokens, so an attacker learns nothing.
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


class Challenge(McpException):
    """The answer to a refused request. The HTTP application sends it unchanged.

    Attributes:
        status: 401 without a valid token, 403 without the scopes, 400 for a malformed token, 503 if
            tokens cannot be verified at the moment, 500 if a verifier is broken.
        headers: Names in lower case, and values; the application adds `content-length`.
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
    """Accepts requests with a valid token, and tells other clients where to get one.

    It has no connection: the HTTP application calls it for each request.

    Args:
        verifier: Finds the caller behind a token.
        resource: The URL of the MCP endpoint as clients use it; tokens are issued for it.
        authorization_servers: The issuers of tokens. An empty tuple if API keys are distributed in
            another way: clients are then not told where to get a token.
        scopes_supported: The scopes that a client should request at first, a small set; by default
            the required ones.
        required_scopes: The scopes that every request needs; a `RequireScopes` if one scope
            includes others.
        resource_name: The display name of this server.
        resource_documentation: The URL of a page for developers.
        extra: More members of the metadata document (RFC 9728 section 2).

    Raises:
        TypeError: `authorization_servers` is a single string.
        ValueError: A URL or a scope is malformed, or not allowed.
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
        extra: Mapping[str, object] | None = None,
    ) -> None:
        if isinstance(authorization_servers, str):
            raise TypeError("authorization_servers is a list of URLs, not one string")
        self._verifier = verifier
        self._log = ThrottledLog(log=logger, shown=SHOWN, most=_REASONS)
        self._required = _as_required(required_scopes)
        self._scopes = self._required.scopes if self._required else ()
        self._supported = tuple(scopes_supported)
        parts = check_url(resource, "resource", query=False)
        for issuer in authorization_servers:
            check_url(issuer, "an authorization server", query=False)
        _check_scopes(self._supported, "scopes_supported")
        if resource_documentation is not None:
            check_url(resource_documentation, "resource_documentation")
        self._resource = resource
        self._path = parts.path
        self._url = None  # without an authorization server the metadata is of no use
        if authorization_servers:
            self._url = f"{parts.scheme}://{parts.netloc}{_well_known(parts.path)}"
        # RFC 9728 section 2; members with the value None are left out.
        self._members = {
            "resource": resource,
            "authorization_servers": list(authorization_servers),
            "bearer_methods_supported": ["header"],
            "scopes_supported": None,
            "resource_name": resource_name,
            "resource_documentation": resource_documentation,
        }
        self._extra = dict(extra or {})
        if taken := self._members.keys() & self._extra.keys():
            raise ValueError(f"extra must not hold {', '.join(sorted(taken))}: there are options")
        self._document(())  # raises if a member has no JSON form

    @property
    def resource(self) -> str:
        """The URL of the MCP endpoint as clients use it."""
        return self._resource

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers with tokens, in lower case."""
        return tuple(self._verifier.headers)

    async def authenticate(self, request: AuthRequest, scopes: Iterable[str] = ()) -> Principal:
        """Find the caller behind a request.

        Args:
            request: Any request of the endpoint: POST, GET and DELETE alike.
            scopes: The scopes that the server requires for every request, and checks itself.
                Challenges include them, so that the first token is sufficient.

        Returns:
            The caller.

        Raises:
            Challenge: The request is refused; the exception has the answer.
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
        """Make the answer to an authenticated caller without the scopes (RFC 6750 section 3.1).

        Args:
            scopes: All scopes that the operation needs; scopes of every request are added.

        Returns:
            403 with `insufficient_scope` and all scopes, so that one new token is enough.
        """
        return self._challenge(403, "insufficient_scope", _SCOPE, self._with(scopes))

    def metadata_documents(
        self, endpoint_path: str, scopes: Iterable[str] = ()
    ) -> dict[str, bytes]:
        """Return the metadata documents, to be served as `application/json` without authorization.

        Args:
            endpoint_path: The path of the MCP endpoint within the application: `/mcp`.
            scopes: The scopes that the server requires for every request. The documents include
                them, unless `scopes_supported` was given.

        Returns:
            The bodies by path: below `/.well-known/oauth-protected-resource` for the endpoint and
            the resource, and that path alone; empty without an authorization server.

        Raises:
            ValueError: A scope is malformed, or clients must not be told to request it.
        """
        wanted = self._supported or self._with(_check_scopes(scopes, "requires"))
        if self._url is None:
            return {}
        # A proxy may remove a prefix, so the path of the endpoint may differ from the path of the
        # resource; clients that know neither use the root.
        paths = map(_well_known, (endpoint_path, self._path, ""))
        return dict.fromkeys(paths, self._document(wanted))

    def _document(self, scopes: Sequence[str]) -> bytes:
        members = {**self._members, "scopes_supported": list(scopes) or None}
        given = {name: value for name, value in members.items() if value is not None}
        try:
            return render({**given, **self._extra})
        except TypeError as error:
            raise ValueError(f"extra: {error}") from None

    def _with(self, scopes: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._scopes, *scopes)))

    def _take(self, request: AuthRequest, scopes: Iterable[str]) -> tuple[str, str]:
        """Return the token in the headers of a request. Tokens in URLs are ignored."""
        found = [each for name in self._verifier.headers for each in _tokens(request, name)]
        several = len(found) > 1 or len(request.values(AUTHORIZATION)) > 1
        if several or (found and not is_well_formed(*found[0])):
            raise self._challenge(400, "invalid_request", _MALFORMED)
        if not found:
            # RFC 6750 section 3.1: no error code for a client that sent no token.
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
            # A verifier may quote the token in its reason, so the number of reasons is limited.
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
        _check_scopes(scopes.scopes, "required_scopes")
        return scopes
    names = _check_scopes(scopes, "required_scopes")
    return RequireScopes(*names) if names else None


def _tokens(request: AuthRequest, name: str) -> list[tuple[str, str]]:
    found = []
    for value in request.values(name):
        if name != AUTHORIZATION:
            found.append((name, value))
            continue
        scheme, _, rest = value.strip(" \t").partition(" ")
        if scheme.lower() == "bearer":  # a middleware may use another scheme
            found.append((name, rest.strip(" \t")))
    return found


#: The place of the metadata document; the path of the resource follows (RFC 9728 section 3.1).
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


def _well_known(path: str) -> str:
    return WELL_KNOWN + ("" if path == "/" else path)


def _check_scopes(scopes: Iterable[str], name: str) -> tuple[str, ...]:
    """Check scopes that a challenge or the metadata names.

    Raises:
        ValueError: A scope is not a scope name, or is `offline_access`: refresh tokens concern only
            the client and its issuer (2026-07-28, basic/authorization).
    """
    found = as_scopes(scopes)
    if "offline_access" in found:
        raise ValueError(f"{name} must not hold offline_access: it is not a scope of this server")
    return found
