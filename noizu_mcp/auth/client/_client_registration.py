"""Registration: the identity of this program at an authorization server.

In order of preference (2026-07-28 `basic/authorization`, "Client Registration Approaches"): a
preregistered client, a client id metadata document, dynamic registration (RFC 7591).
"""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from ..._errors import AuthError
from ..._value import JSONObject
from ...jsonrpc import render
from ...types import as_scopes
from .._configuration import check_url, read_text
from .._fetch import FetchError, FetchRequest
from ._credentials import GrantRequest
from ._discovery import IssuerMetadata, read_object
from ._stores import CredentialStore
from ._tokens import ClientRegistration, choose_auth_method, explain, read_lifetime

_HEADERS: Final = (("content-type", "application/json"), ("accept", "application/json"))


@attrs.frozen(kw_only=True)
class ClientIdentity:
    """The identity of a program, from which each issuer gets its registration.

    Attributes:
        client_id: Its id at the issuer, if it was preregistered.
        client_secret: Its secret, if it has one.
        issuer: The only authorization server that it uses; None for any.
        client_metadata_url: The URL of its metadata document, if it has one.
        client_name: The display name.

    Raises:
        ValueError: One of them is malformed, or there is a secret without a `client_id` or without
            an `issuer`.
    """

    client_id: str | None = None
    client_secret: str | None = attrs.field(default=None, repr=False)
    issuer: str | None = None
    client_metadata_url: str | None = None
    client_name: str = "noizu-mcp"

    def __attrs_post_init__(self) -> None:
        if self.issuer is not None:
            check_url(self.issuer, "issuer")
        if self.client_secret is not None:
            read_text(self.client_secret, "client_secret")
            if self.client_id is None:
                raise ValueError("client_secret belongs to a client_id, which is missing")
            check_home(self.issuer, "client_secret")

    def known(
        self, issuer: IssuerMetadata, known_at: str | None = None
    ) -> ClientRegistration | None:
        """Return the registration that needs no request, or None.

        Args:
            issuer: The authorization server.
            known_at: The issuer where `client_id` was used before.

        Raises:
            AuthError: `client_id` belongs to another issuer.
        """
        if self.client_id is not None:
            if known_at is not None and known_at != issuer.issuer:
                raise AuthError(
                    f"the server wants tokens of {issuer.issuer}, but client_id {self.client_id!r}"
                    f" belongs to {known_at}; it is not used elsewhere. Register at the new one"
                )
            secret = self.client_secret or ""
            method = choose_auth_method(issuer, secret)
            return ClientRegistration(
                client_id=self.client_id, client_secret=secret, auth_method=method
            )
        if self.client_metadata_url is not None and issuer.takes_metadata_urls:
            return ClientRegistration(client_id=self.client_metadata_url)
        return None


def read_scopes(scopes: Iterable[str] | None) -> tuple[str, ...] | None:
    """Read the option `scopes`: a list, or one text with spaces between the names.

    Raises:
        ValueError: A name is not valid.
    """
    if scopes is None:
        return None
    return as_scopes(scopes.split() if isinstance(scopes, str) else scopes)


def check_home(issuer: str | None, name: str) -> None:
    """Check that a credential that anyone could use is bound to an authorization server.

    Args:
        issuer: The option `issuer`.
        name: The option with the credential, for the message.

    Raises:
        ValueError: It is not bound.
    """
    if issuer is None:
        raise ValueError(
            f"{name} needs issuer=, the URL of the authorization server that it belongs to: a"
            " server that lies about its authorization server would get it otherwise"
        )


def registration_key(issuer: str) -> str:
    """Return the key of the registration at an issuer in a store."""
    return f"client {issuer}"


async def stored_registration(
    issuer: IssuerMetadata, store: CredentialStore
) -> ClientRegistration | None:
    """Load an earlier registration; None if there is no valid one."""
    found = await store.load(registration_key(issuer.issuer))
    try:
        known = ClientRegistration(**(found or {}))
    except TypeError:
        return None
    return None if known.is_over() else known


async def register(
    identity: ClientIdentity,
    grant: GrantRequest,
    redirect_uri: str,
    scopes: tuple[str, ...],
    *,
    native: bool,
) -> ClientRegistration:
    """Register a client at the authorization server of a request, and store the registration.

    Args:
        identity: The identity of the program.
        grant: The request for tokens.
        redirect_uri: Its redirect URI.
        scopes: The scopes that it may request; none: those that the issuer gives by default.
        native: True if it runs on the person's machine.

    Raises:
        AuthError: The issuer does not support dynamic registration, or refuses.
    """
    issuer = grant.found.issuer
    url = issuer.registration_endpoint
    if not url:
        raise AuthError(
            f"{issuer.issuer} registers no clients by itself: register this program there, and give"
            " client_id= (and issuer= and client_secret=)"
        )
    document = _client_metadata(identity, issuer, redirect_uri, native=native)
    if scopes:
        # Some issuers allow a client only the scopes that it requests here.
        document["scope"] = " ".join(scopes)
    request = FetchRequest(url=url, method="POST", headers=_HEADERS, body=render(document))
    try:
        answer = await grant.fetcher.fetch(request)
    except FetchError as error:
        raise AuthError(f"the registration at {url} cannot be reached: {error}") from error
    found = read_object(answer.body) or {}
    client_id = found.get("client_id")
    if answer.status not in (200, 201) or not isinstance(client_id, str) or not client_id:
        said = explain(found) or f"status {answer.status}"
        raise AuthError(
            f"{issuer.issuer} refused to register this program: {said}; register it there by hand,"
            " and give client_id="
        )
    known = attrs.evolve(_read_registration(found, client_id, issuer, redirect_uri), scopes=scopes)
    await grant.store.save(registration_key(issuer.issuer), attrs.asdict(known))
    return known


def _client_metadata(
    identity: ClientIdentity, issuer: IssuerMetadata, redirect_uri: str, *, native: bool
) -> JSONObject:
    document: JSONObject = {
        "client_name": identity.client_name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        # OpenID Connect Registration section 2: `web` would forbid loopback addresses.
        "application_type": "native" if native else "web",
    }
    # A program on a person's machine cannot keep a secret, so no secret is preferred.
    possible = ("none", "client_secret_basic", "client_secret_post")
    if method := next((each for each in possible if each in (issuer.auth_methods or ())), None):
        document["token_endpoint_auth_method"] = method
    return document


def _read_registration(
    found: Mapping[str, object], client_id: str, issuer: IssuerMetadata, redirect_uri: str
) -> ClientRegistration:
    secret, until = found.get("client_secret"), found.get("client_secret_expires_at")
    secret = secret if isinstance(secret, str) else ""
    method = choose_auth_method(issuer, secret, found.get("token_endpoint_auth_method"))
    return ClientRegistration(
        client_id=client_id,
        client_secret=secret,
        auth_method=method,
        redirect_uri=redirect_uri,
        # 0 means no expiry (RFC 7591 section 3.2.1).
        expires_at=read_lifetime(until) or None,
    )
