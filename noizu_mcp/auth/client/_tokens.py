"""Tokens, registrations of clients, and requests to a token endpoint (RFC 6749, RFC 7591).

`Login` is the record in a store for one MCP server: its tokens, their issuer, and the client to
which they were issued. These belong together and are never sent to another issuer.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import attrs
import trio

from ..._errors import AuthError
from ..._printable import printable
from ..._util import is_number
from ..._value import JSONObject
from .._fetch import Fetcher, FetchError, FetchRequest, FetchResponse, basic_authorization
from ._discovery import IssuerMetadata, read_object

if TYPE_CHECKING:
    from ._signing import Prover

#: Seconds before its expiry at which a token is renewed, since a request takes some time.
EXPIRY_MARGIN: Final = 30.0
#: Seconds for one request for a token, whatever the fetcher does.
TOKEN_TIMEOUT: Final = 30.0
#: Maximum lifetime of a token in seconds; longer ones are ignored.
MAX_SECONDS: Final = 1e11
#: Characters of a text of an authorization server that an error shows.
SHOWN: Final = 300
#: Codes after which a refresh token or registration is no longer valid (RFC 6749 section 5.2).
LOST: Final = ("invalid_grant", "invalid_client", "unauthorized_client")
#: The code of an error with a nonce for a DPoP proof (RFC 9449 section 8).
NONCE_WANTED: Final = "use_dpop_nonce"
_FORM: Final = ("content-type", "application/x-www-form-urlencoded")
_ACCEPT: Final = ("accept", "application/json")

#: Parameters of a request; those that are None or empty are left out.
TokenParams = Mapping[str, str | None]


class TokenRefused(AuthError):
    """The token endpoint answered with an error.

    Attributes:
        code: The code of the error, such as `invalid_grant`.
        answer: The answer.
    """

    def __init__(self, text: str, code: str, answer: FetchResponse) -> None:
        super().__init__(text)
        self.code = code
        self.answer = answer


def _scopes(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(value.split()) if isinstance(value, str) else tuple(value)


# The records below are read from stores, which other programs may have written.
_TEXT: Final = attrs.validators.instance_of(str)
_TEXTS: Final = attrs.validators.deep_iterable(_TEXT)
_TIME: Final = attrs.validators.optional(attrs.validators.instance_of((int, float)))


def _text(default: Any = attrs.NOTHING, *, secret: bool = False) -> Any:
    return attrs.field(default=default, validator=_TEXT, repr=not secret)


@attrs.frozen(kw_only=True)
class Tokens:
    """The answer of a token endpoint.

    Attributes:
        access_token: The token for the MCP server.
        token_type: `Bearer` or `DPoP`.
        refresh_token: The token for the next renewal; may be empty.
        scopes: The scopes that were granted.
        expires_at: The expiry of the access token, in seconds since the epoch; None if unknown.
        renew_at: The time from which it is renewed.
    """

    access_token: str = _text(secret=True)
    token_type: str = _text("Bearer")
    refresh_token: str = _text("", secret=True)
    scopes: tuple[str, ...] = attrs.field(default=(), converter=_scopes, validator=_TEXTS)
    expires_at: float | None = attrs.field(default=None, validator=_TIME)
    renew_at: float | None = attrs.field(default=None, validator=_TIME)

    def is_stale(self) -> bool:
        """Tell whether the token must be renewed before the next request."""
        return self.renew_at is not None and time.time() >= self.renew_at

    def is_over(self) -> bool:
        """Tell whether the token has expired."""
        return self.expires_at is not None and time.time() >= self.expires_at


@attrs.frozen(kw_only=True)
class ClientRegistration:
    """The registration of a client at one authorization server.

    Attributes:
        client_id: The client id.
        client_secret: The secret, or empty.
        auth_method: The authentication method: `none`, `client_secret_basic`,
            `client_secret_post`, or the method of a strategy for machines.
        redirect_uri: The registered redirect URI; empty if it is fixed elsewhere.
        scopes: The registered scopes; empty without a list.
        expires_at: The expiry of the secret, in seconds since the epoch; None for no expiry.
    """

    client_id: str = _text()
    client_secret: str = _text("", secret=True)
    auth_method: str = _text("none")
    redirect_uri: str = _text("")
    scopes: tuple[str, ...] = attrs.field(default=(), converter=_scopes, validator=_TEXTS)
    expires_at: float | None = attrs.field(default=None, validator=_TIME)

    def is_over(self) -> bool:
        """Tell whether the secret has expired."""
        return self.expires_at is not None and time.time() >= self.expires_at


@attrs.frozen(kw_only=True)
class Login:
    """The tokens for one MCP server, with everything that renewing them requires.

    Attributes:
        issuer: The authorization server.
        token_endpoint: Its token endpoint.
        revocation_endpoint: Its revocation endpoint, or empty.
        resource: The `resource` of the requests; None on 2025-03-26.
        requested: The requested scopes.
        client: The client to which the tokens were issued.
        tokens: The tokens.
        proof_key: The private key to which the tokens are bound (DPoP), in PEM; may be empty.
    """

    issuer: str = _text()
    token_endpoint: str = _text()
    revocation_endpoint: str = _text("")
    resource: str | None = attrs.field(validator=attrs.validators.optional(_TEXT))
    requested: tuple[str, ...] = attrs.field(converter=_scopes, validator=_TEXTS)
    client: ClientRegistration
    tokens: Tokens
    proof_key: str = _text("", secret=True)

    def to_json(self) -> JSONObject:
        """Convert the record to a JSON object."""
        return attrs.asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, object] | None) -> "Login | None":
        """Read a record; None if it is missing or not valid."""
        try:
            fields: JSONObject = dict(document or {})
            client = ClientRegistration(**fields.pop("client"))
            return cls(client=client, tokens=Tokens(**fields.pop("tokens")), **fields)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


class TokenClient:
    """Sends requests for tokens.

    Args:
        fetcher: Sends the requests.
        prover: Binds the tokens to its key (RFC 9449); None for bearer tokens.

    Attributes:
        prover: See above.
    """

    def __init__(self, fetcher: Fetcher, prover: "Prover | None" = None) -> None:
        self.prover = prover
        self._fetcher = fetcher

    async def request(
        self,
        url: str,
        params: TokenParams | Callable[[], Awaitable[TokenParams]],
        *,
        client: ClientRegistration,
        requested: tuple[str, ...] = (),
    ) -> Tokens:
        """Request tokens.

        The request is not cancelled, within `TOKEN_TIMEOUT`: the answer may hold the only refresh
        token that is still valid.

        Args:
            url: The token endpoint.
            params: The parameters, without values that are None or empty; or an async function that
                makes them for each request, since an assertion can be used only once.
            client: Authenticates the request.
            requested: The granted scopes if the answer has none.

        Raises:
            TokenRefused: The endpoint answered with an error.
            AuthError: It did not answer, or its token has another type than requested.
        """
        answer = await self._ask(url, params, client)
        has_nonce = self.prover is not None and self.prover.take_nonce(url, answer.headers)
        if has_nonce and (read_object(answer.body) or {}).get("error") == NONCE_WANTED:
            answer = await self._ask(url, params, client)
        tokens = read_tokens(answer, url, requested)
        if self.prover is not None and tokens.token_type != "DPoP":
            raise AuthError(
                f"the token endpoint {url} gave a token that is bound to no key: it does not do"
                " DPoP, which dpop=True demands"
            )
        return tokens

    async def exchange(
        self, url: str, params: TokenParams, *, client: ClientRegistration
    ) -> JSONObject:
        """Exchange a token for a token of another kind, not for an MCP server (RFC 8693).

        Args:
            url: The token endpoint.
            params: The parameters, without values that are None or empty.
            client: Authenticates the request.

        Raises:
            TokenRefused: The endpoint answered with an error.
            AuthError: It did not answer.
        """
        return _read_answer(await self._post(url, params, client, ()), url)

    async def _ask(
        self,
        url: str,
        params: TokenParams | Callable[[], Awaitable[TokenParams]],
        client: ClientRegistration,
    ) -> FetchResponse:
        made = await params() if callable(params) else params
        proof = () if self.prover is None else (("dpop", self.prover.prove("POST", url)),)
        return await self._post(url, made, client, proof)

    async def revoke(self, login: Login) -> None:
        """Revoke the tokens of a login, if its issuer supports this (RFC 7009).

        Args:
            login: The login.

        Raises:
            AuthError: The endpoint did not answer, or answered with an error.
        """
        url, tokens = login.revocation_endpoint, login.tokens
        if not url:
            return
        # Revoking the refresh token ends the grant.
        kind = "refresh_token" if tokens.refresh_token else "access_token"
        params = {"token": tokens.refresh_token or tokens.access_token, "token_type_hint": kind}
        answer = await self._post(url, params, login.client, ())
        if answer.status != 200:
            raise AuthError(f"{url} answered {answer.status}")

    async def _post(
        self,
        url: str,
        params: TokenParams,
        client: ClientRegistration,
        headers: Iterable[tuple[str, str]],
    ) -> FetchResponse:
        own, more = authenticate(client)
        form = {name: value for name, value in {**params, **more}.items() if value}
        request = FetchRequest(
            url=url,
            method="POST",
            headers=(_FORM, _ACCEPT, *own, *headers),
            body=urlencode(form).encode(),
        )
        answer: FetchResponse | None = None
        try:
            with trio.move_on_after(TOKEN_TIMEOUT, shield=True):
                answer = await self._fetcher.fetch(request)
        except FetchError as error:
            raise AuthError(f"the endpoint {url} cannot be reached: {error}") from error
        if answer is None:
            raise AuthError(f"the endpoint {url} did not answer within {TOKEN_TIMEOUT:g} s")
        return answer


def authenticate(client: ClientRegistration) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Make the headers and parameters that authenticate a client (RFC 6749 section 2.3.1).

    Args:
        client: The client.
    """
    # The id is always in the form: some servers look for it only there.
    named = {"client_id": client.client_id}
    if client.auth_method == "client_secret_basic":
        return [basic_authorization(client.client_id, client.client_secret)], named
    if client.auth_method == "client_secret_post":
        return [], {**named, "client_secret": client.client_secret}
    return [], named


def choose_auth_method(issuer: IssuerMetadata, secret: str, registered: object = None) -> str:
    """Choose the authentication method of a client at a token endpoint.

    Args:
        issuer: The authorization server.
        secret: The secret of the client, or empty.
        registered: The method in the registration of the client, if it has one.

    Raises:
        AuthError: The authorization server supports no possible method.
    """
    if not secret:
        return "none"
    possible = ("client_secret_basic", "client_secret_post")
    # RFC 8414 section 2: without a list it is basic.
    taken = issuer.auth_methods or possible[:1]
    if registered in possible:
        return str(registered)
    for method in (*possible, "none"):
        if method in taken:
            return method
    raise AuthError(
        f"{issuer.issuer} takes no client secret, but {', '.join(taken)[:SHOWN]}; another strategy"
        " is needed"
    )


def read_tokens(answer: FetchResponse, url: str, requested: tuple[str, ...]) -> Tokens:
    """Read the answer of a token endpoint (RFC 6749 sections 5.1 and 5.2).

    Args:
        answer: The answer.
        url: The endpoint, for errors.
        requested: The granted scopes if the answer has none.

    Raises:
        TokenRefused: The answer is an error.
        AuthError: The answer has no token of a known type.
    """
    document = _read_answer(answer, url)
    token, kind = document.get("access_token"), str(document.get("token_type", "")).lower()
    # Printable and without spaces: it is sent in a header.
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token:
        raise AuthError(f"the token endpoint {url} gave no access token")
    if not token or kind not in ("bearer", "dpop"):
        raise AuthError(f"the token endpoint {url} gave a token of the type {kind[:SHOWN]!r}")
    refresh, scope = document.get("refresh_token"), document.get("scope")
    expires_at = renew_at = None
    if (seconds := read_lifetime(document.get("expires_in"))) is not None:
        expires_at = time.time() + seconds
        # A token with a lifetime of seconds must not be renewed for each request.
        renew_at = expires_at - min(EXPIRY_MARGIN, seconds / 4)
    return Tokens(
        access_token=token,
        token_type="DPoP" if kind == "dpop" else "Bearer",
        refresh_token=refresh if isinstance(refresh, str) else "",
        scopes=scope if isinstance(scope, str) else requested,
        expires_at=expires_at,
        renew_at=renew_at,
    )


def _read_answer(answer: FetchResponse, url: str) -> JSONObject:
    """Read an answer of a token endpoint, with a token of any kind.

    Raises:
        TokenRefused: The answer is an error.
    """
    document = read_object(answer.body) or {}
    if answer.status != 200:
        code = str(document.get("error", ""))
        said = explain(document) or f"status {answer.status}"
        raise TokenRefused(f"the token endpoint {url} refused: {said}", code, answer)
    return document


def read_lifetime(value: object) -> float | None:
    """Read a number of seconds, which some servers send as a string; None if it is not a number."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        value = int(value)
    return float(value) if is_number(value) and 0 <= value < MAX_SECONDS else None


def explain(document: Mapping[str, object]) -> str:
    """Quote the error of an authorization server: `access_denied: the person said no`."""
    parts = [document.get("error"), document.get("error_description")]
    said = ": ".join(each[:SHOWN] for each in parts if isinstance(each, str) and each)
    # On one line, for terminals and logs.
    return printable(said)


def union(*several: Iterable[str]) -> tuple[str, ...]:
    """Join lists of scopes in order, without duplicates."""
    return tuple(dict.fromkeys(scope for scopes in several for scope in scopes))
