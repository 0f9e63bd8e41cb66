"""Checks of a server that requires a token: can a client find out how to get one?"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from ..._value import JSONObject
from ...auth import parse_challenges
from ..raw import Exchange, WebLink
from ._http_checks import is_local
from ._report import Report

#: Maximum number of authorization servers that are checked.
MAX_SERVERS: Final = 3


async def check_authorization(
    link: WebLink, report: Report, refused: Exchange, patience: float
) -> None:
    """Follow the steps of a client from the refusal to the authorization server.

    Nothing is registered, and no token is requested.

    Args:
        link: The connection.
        report: Gets the findings.
        refused: The exchange that ended with 401.
        patience: Seconds to wait for each document.
    """
    report.check("token", False, refused.sent, f"HTTP {refused.status}")
    header = refused.headers.get("www-authenticate", "")
    try:
        bearer = [each for each in parse_challenges(header) if each.is_scheme("bearer")]
    except ValueError:
        bearer = []
    seen = f"HTTP {refused.status}, WWW-Authenticate: {header or 'none'}"
    report.check("challenge", bearer, refused.sent, seen)
    named = bearer[0].params.get("resource_metadata") if bearer else None
    places = [named] if named else list(_well_known(link.url, "oauth-protected-resource"))
    document = await _first(link, report, "resource-metadata", places, patience)
    if document is None:
        return
    resource = document.get("resource")
    seen = f"resource: {resource!r} for {link.url}"
    report.check("resource", _covers(resource, link.url), "GET of its metadata", seen)
    servers = document.get("authorization_servers")
    listed = servers if isinstance(servers, list) else []
    issuers = [each for each in listed if isinstance(each, str)]
    seen = f"authorization_servers: {servers!r}"
    report.check("authorization-server", issuers, "GET of the metadata of the resource", seen)
    for issuer in issuers[:MAX_SERVERS]:
        await _check_issuer(link, report, issuer, patience)


def _covers(resource: object, url: str) -> bool:
    """Tell whether a resource is the URL, or a prefix of its path that clients accept."""
    if not isinstance(resource, str):
        return False
    base, whole = resource.rstrip("/"), url.rstrip("/")
    return whole == base or whole.startswith(f"{base}/")


def _well_known(url: str, name: str, *, appended: bool = False) -> Iterator[str]:
    """Yield the URLs of a well-known document, the one for the path first (RFC 8615, RFC 8414)."""
    parts = urlsplit(url)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    yield f"{origin}/.well-known/{name}{path}"
    if path:
        yield f"{origin}{path}/.well-known/{name}" if appended else f"{origin}/.well-known/{name}"


async def _first(
    link: WebLink, report: Report, rule: str, places: list[str], patience: float
) -> JSONObject | None:
    """Fetch the first document that exists."""
    seen = []
    for url in places:
        # A server must not send this program into the private network of its user.
        if is_local(url) and not is_local(link.url):
            seen.append(f"{url} is in a private network")
            continue
        if urlsplit(url).scheme not in ("http", "https"):
            seen.append(f"{url} is no web address")
            continue
        found, document = await link.fetch(url, patience)
        if document is not None:
            report.check(rule, True, url, "")
            return document
        status = f"HTTP {found.status}" if found.status else found.failure
        seen.append(f"{status} from {url}")
    report.check(rule, False, f"GET {places[0]}", "; ".join(seen))
    return None


async def _check_issuer(link: WebLink, report: Report, issuer: str, patience: float) -> None:
    report.check("tls", issuer.startswith("https:") or is_local(issuer), issuer, "plain http")
    places = [
        *list(_well_known(issuer, "oauth-authorization-server"))[:1],
        *_well_known(issuer, "openid-configuration", appended=True),
    ]
    document = await _first(link, report, "authorization-server", places, patience)
    if document is None:
        return
    sent = f"GET of the metadata of {issuer}"
    right = document.get("issuer") == issuer
    report.check("authorization-server", right, sent, f"issuer: {document.get('issuer')!r}")
    for name in ("authorization_endpoint", "token_endpoint"):
        right = isinstance(document.get(name), str)
        report.check("authorization-server", right, sent, f"{name}: {document.get(name)!r}")
    methods = document.get("code_challenge_methods_supported")
    right = isinstance(methods, list) and "S256" in methods
    report.check("pkce", right, sent, f"code_challenge_methods_supported: {methods!r}")
    known = document.get("client_id_metadata_document_supported") is True
    registers = known or isinstance(document.get("registration_endpoint"), str)
    report.check("registration", registers, sent, "no registration_endpoint")
