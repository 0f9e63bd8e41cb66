"""Discovery: from the refusal of an MCP server to its authorization server and its endpoints.

Theory of operation. Each step leads to the next, or ends with one `AuthError`:

1. *resource metadata* (RFC 9728): at the URL that the challenge names, else at the well-known URL
   for the path of the server, else at that of its root. Its `resource` must be the server;
2. *the authorization server*: the first one in it, or the one that the client is known at. A
   client may be bound to one: then no other gets a request;
3. *its metadata*: RFC 8414, then OpenID Connect Discovery, at the URLs that `metadata_urls` lists.
   Its `issuer` must be the very string that step 2 gave: a server could send the client to the
   endpoints of another one otherwise;
4. a server of 2025-03-26 has no resource metadata. It is its own authorization server then, with
   metadata at the root of its origin, or without any: `/authorize`, `/token`, `/register`.

All URLs are https, except on loopback addresses.

Sources: 2026-07-28 and 2025-11-25 `basic/authorization`; 2025-03-26 `basic/authorization`,
"Server Metadata Discovery" and "Fallbacks for Servers without Metadata Discovery".
"""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import attrs

from ..._errors import AuthError
from ..._value import JSONObject
from ...jsonrpc import parse_json
from .._configuration import check_url
from .._fetch import Fetcher, FetchError, FetchRequest
from ._strategy import ProtectedServer, Refusal, origin_of

_RESOURCE: Final = "/.well-known/oauth-protected-resource"
_OAUTH: Final = "/.well-known/oauth-authorization-server"
_OPENID: Final = "/.well-known/openid-configuration"
_JSON: Final = (("accept", "application/json"),)
#: Items of a list in metadata that are read.
MAX_ITEMS: Final = 1000


@attrs.frozen(kw_only=True)
class IssuerMetadata:
    """The metadata of an authorization server (RFC 8414 section 2).

    Attributes:
        issuer: Its name, the very string that led to it.
        authorization_endpoint: Where a person logs in; empty if there is no such endpoint.
        token_endpoint: Where tokens come from.
        registration_endpoint: Where clients register; empty if they cannot.
        revocation_endpoint: Where tokens are revoked; empty if they cannot be.
        scopes_supported: The scopes that it lists.
        auth_methods: Ways to authenticate at the token endpoint; None if it does not say.
        challenge_methods: The methods of PKCE; None if it does not say.
        sends_iss: It promises `iss` in each answer (RFC 9207).
        takes_metadata_urls: A client may be named by the URL of its metadata.
        assumed: It was found without resource metadata, as on 2025-03-26.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    scopes_supported: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] | None = None
    challenge_methods: tuple[str, ...] | None = None
    sends_iss: bool = False
    takes_metadata_urls: bool = False
    assumed: bool = False


@attrs.frozen(kw_only=True)
class Discovered:
    """The authorization server of an MCP server.

    Attributes:
        resource: The value of `resource` in requests for tokens (RFC 8707), byte for byte that of
            the resource metadata; None on 2025-03-26.
        scopes_supported: The scopes that the resource metadata lists.
        issuer: The metadata of the authorization server.
    """

    resource: str | None
    scopes_supported: tuple[str, ...]
    issuer: IssuerMetadata


async def discover(
    server: ProtectedServer,
    refusal: Refusal,
    fetcher: Fetcher,
    *,
    preferred: str | None = None,
    only: str | None = None,
) -> Discovered:
    """Find the authorization server of an MCP server; see the theory of operation.

    Args:
        server: The MCP server.
        refusal: Its answer 401 or 403.
        fetcher: Makes the requests.
        preferred: The issuer that the client is known at; it wins over the order of the metadata.
        only: The issuer that the client is bound to.

    Raises:
        AuthError: It is missing, or differs from `only`, or its metadata is not available or
            contradicts itself.
    """
    document = await _resource_metadata(server, refusal, fetcher)
    if document is None:
        _choose(server, [server.origin], preferred, only)
        return Discovered(resource=None, scopes_supported=(), issuer=await _assume(server, fetcher))
    resource = document.get("resource")
    if not isinstance(resource, str) or not covers(resource, server.url):
        raise AuthError(
            f"the resource metadata of {server.shown} is that of another server, {resource!r:.200}:"
            " no token is requested for it"
        )
    issuers = _texts(document, "authorization_servers") or ()
    if not issuers:
        raise AuthError(f"the resource metadata of {server.shown} names no authorization server")
    issuer = _choose(server, issuers, preferred, only)
    return Discovered(
        resource=resource,
        scopes_supported=_texts(document, "scopes_supported") or (),
        issuer=await issuer_metadata(issuer, fetcher),
    )


def _choose(
    server: ProtectedServer, issuers: Sequence[str], preferred: str | None, only: str | None
) -> str:
    """Choose one of the issuers that a server names.

    Raises:
        AuthError: The client is bound to another one.
    """
    if only is None:
        return next((each for each in issuers if each == preferred), issuers[0])
    if only not in issuers:
        raise AuthError(
            f"{server.shown} wants tokens of {issuers[0]}, but the credentials belong to {only};"
            " they are not used elsewhere"
        )
    return only


def resource_urls(server: ProtectedServer, refusal: Refusal) -> list[str]:
    """List the URLs of the resource metadata, in order (RFC 9728 sections 3.1 and 5.1).

    Args:
        server: The MCP server.
        refusal: Its answer.
    """
    named = [each.params.get("resource_metadata") for each in refusal.challenges]
    path = urlsplit(server.url).path.rstrip("/")
    known = [f"{server.origin}{_RESOURCE}{path}", f"{server.origin}{_RESOURCE}"]
    return list(dict.fromkeys([*filter(None, named), *known]))


def metadata_urls(issuer: str) -> list[str]:
    """List the URLs of the metadata of an issuer, in order (2026-07-28 `basic/authorization`).

    Args:
        issuer: The name of the issuer, a URL.
    """
    path = urlsplit(issuer).path.rstrip("/")
    origin = origin_of(issuer)
    urls = [f"{origin}{_OAUTH}{path}", f"{origin}{_OPENID}{path}"]
    return [*urls, f"{origin}{path}{_OPENID}"] if path else urls


def covers(resource: str, url: str) -> bool:
    """Tell whether a resource identifier stands for a server.

    It is the URL of the server, or one above it at the same origin: one resource may have several
    endpoints (RFC 9728 section 3.3; 2025-11-25 `basic/authorization`, "Canonical Server URI").

    Args:
        resource: The `resource` of the metadata.
        url: The URL of the server.
    """
    try:
        check_url(resource, "resource")
    except ValueError:
        return False
    named, asked = urlsplit(resource), urlsplit(url)
    # A query belongs to the identifier, if there is one.
    if origin_of(resource) != origin_of(url) or named.query not in ("", asked.query):
        return False
    return f"{asked.path.rstrip('/')}/".startswith(f"{named.path.rstrip('/')}/")


async def _resource_metadata(
    server: ProtectedServer, refusal: Refusal, fetcher: Fetcher
) -> JSONObject | None:
    """Fetch the resource metadata; None if the server has none."""
    for url in resource_urls(server, refusal):
        _check(url, "the URL of the resource metadata")
        status, document = await _fetch(url, fetcher)
        if document is not None:
            return document
        # A server that cannot answer now must not be taken for a server of 2025-03-26.
        if status >= 500 or status == 429:
            raise AuthError(f"the resource metadata at {url} cannot be had: {status}")
    return None


async def issuer_metadata(issuer: str, fetcher: Fetcher) -> IssuerMetadata:
    """Fetch the metadata of an authorization server; see step 3 of the theory of operation.

    Args:
        issuer: Its name.
        fetcher: Makes the requests.

    Raises:
        AuthError: It has none, or it is that of another one.
    """
    _check(issuer, "the authorization server")
    answers = []
    for url in metadata_urls(issuer):
        status, document = await _fetch(url, fetcher)
        if document is not None:
            # Compared as strings: normalization would make room for a look-alike (RFC 8414
            # section 3.3).
            if document.get("issuer") != issuer:
                raise AuthError(
                    f"the metadata at {url} is that of the issuer {document.get('issuer')!r:.200}, "
                    f"not of {issuer!r}: its endpoints are not used"
                )
            return _parse(document, issuer, url)
        answers.append(f"{url} ({status})")
    raise AuthError(f"the authorization server {issuer} has no metadata: {', '.join(answers)}")


async def _assume(server: ProtectedServer, fetcher: Fetcher) -> IssuerMetadata:
    """Take an MCP server for its own authorization server, as on 2025-03-26."""
    origin = server.origin
    url = f"{origin}{_OAUTH}"
    _, document = await _fetch(url, fetcher)
    if document is not None:
        # Such servers often name themselves wrongly. Credentials are kept for the origin that was
        # asked, whatever name the document claims.
        return attrs.evolve(_parse(document, origin, url), assumed=True)
    return IssuerMetadata(
        issuer=origin,
        authorization_endpoint=f"{origin}/authorize",
        token_endpoint=f"{origin}/token",
        registration_endpoint=f"{origin}/register",
        assumed=True,
    )


def _parse(document: JSONObject, issuer: str, url: str) -> IssuerMetadata:

    def endpoint(name: str) -> str:
        value = document.get(name)
        # Missing ones are empty: a machine needs no authorization endpoint.
        return "" if value is None else _check(value, f"{name} at {url}")

    if not endpoint("token_endpoint"):
        raise AuthError(f"the metadata at {url} names no token_endpoint")
    return IssuerMetadata(
        issuer=issuer,
        authorization_endpoint=endpoint("authorization_endpoint"),
        token_endpoint=endpoint("token_endpoint"),
        registration_endpoint=endpoint("registration_endpoint"),
        revocation_endpoint=endpoint("revocation_endpoint"),
        scopes_supported=_texts(document, "scopes_supported") or (),
        auth_methods=_texts(document, "token_endpoint_auth_methods_supported"),
        challenge_methods=_texts(document, "code_challenge_methods_supported"),
        sends_iss=document.get("authorization_response_iss_parameter_supported") is True,
        takes_metadata_urls=document.get("client_id_metadata_document_supported") is True,
    )


async def _fetch(url: str, fetcher: Fetcher) -> tuple[int, JSONObject | None]:
    """Fetch metadata; return the status, and the document if the status is 200."""
    try:
        answer = await fetcher.fetch(FetchRequest(url=url, headers=_JSON))
    except FetchError as error:
        raise AuthError(f"{url} cannot be reached: {error}") from error
    if answer.status != 200:
        return answer.status, None
    document = read_object(answer.body)
    if document is None:
        raise AuthError(f"the metadata at {url} is not a JSON object")
    return answer.status, document


def read_object(body: bytes) -> JSONObject | None:
    """Read a JSON object; None if it is something else."""
    try:
        document = parse_json(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _texts(document: Mapping[str, object], name: str) -> tuple[str, ...] | None:
    """Read a list of strings; None if it is missing or something else."""
    found = document.get(name)
    if not isinstance(found, list):
        return None
    return tuple(each for each in found[:MAX_ITEMS] if isinstance(each, str) and each)


def _check(url: object, name: str) -> str:
    """Check a URL that a server names."""
    try:
        check_url(url, name)
    except ValueError as error:
        raise AuthError(f"{error}; it is not used") from None
    return str(url)
