"""`AuthorizationServer`: an OAuth 2.1 authorization server for tests, in memory or on a socket.

Theory of operation. Every endpoint is a method that turns a request into an answer, without I/O.
There are three ways to call it: the ASGI application, `fetch` (the server is a `Fetcher`), and
`open_browser`, which replaces the person and the browser. All of them use `_answer`, which writes
the journal and applies the faults that a test requests. The endpoints share four tables: clients,
codes (used once), grants (what a person or a client was allowed), and ids of DPoP proofs. An access
token is a JWT that names its grant, so revoking a grant makes all its tokens inactive; a refresh
token names its grant and the number of the rotation.

Sources: RFC 6749 and OAuth 2.1 (grants), 7009 (revocation), 7591 (registration), 7636 (PKCE), 7662
(introspection), 8414 (metadata), 8707 (`resource`), 9207 (`iss`); 2026-07-28
`basic/authorization`.
"""

import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import attrs
import trio

from .._value import JSON, JSONObject
from ..auth import (
    BearerAuth,
    Fetcher,
    FetchRequest,
    FetchResponse,
    HTTPFetcher,
    JWTVerifier,
)
from ..jsonrpc import parse_json, render
from ._grants import (
    ALGORITHMS,
    GRANTS,
    Code,
    GrantError,
    IssuedTokens,
    RegisteredClient,
    UserGrant,
    authenticate,
    keep,
)

#: Maximum requests in the journal.
JOURNAL: Final = 1000
#: Maximum bytes of the body of a request that are read.
BODY_SIZE: Final = 64 * 1024
#: The endpoints; each except `metadata` is at its name below the issuer.
ENDPOINTS: Final = (
    "metadata", "authorize", "token", "register", "revoke", "introspect", "jwks"
)  # fmt: skip
_WELL_KNOWN: Final = (
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
)
#: Endpoints that are read with GET. The others take a form with POST (RFC 6749 section 3.2).
_READ: Final = ("metadata", "authorize", "jwks")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@attrs.frozen
class AuthorizationRequest:
    """A request that the authorization server has received.

    Attributes:
        endpoint: `metadata`, `authorize`, `token`, `register`, `revoke`, `introspect` or `jwks`.
        params: The parameters of the query or the form, or the members of the JSON body.
        headers: The headers; names in lower case.
    """

    endpoint: str
    params: Mapping[str, JSON]
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)


def _with_defaults(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {"content-type": "application/json", "cache-control": "no-store", **headers}


@attrs.frozen
class _HttpAnswer:
    status: int
    document: JSONObject
    headers: Mapping[str, str] = attrs.field(factory=dict, converter=_with_defaults)

    @property
    def body(self) -> bytes:
        return render(self.document)


class AuthorizationServer:
    """An OAuth 2.1 authorization server for tests, which approves every request at once.

    It is an ASGI application, a `Fetcher` for requests below its issuer (it passes others on), and
    its `open_browser` replaces the browser of `OAuth`. Needs the extra `auth`. Never use it outside
    of tests: it asks for no password.

    Args:
        issuer: Its URL: `https://login.example.com`.
        scopes: The scopes that it supports; empty for any scope.
        subject: The person who approves, `sub` of the tokens.
        approve: Called with the parameters of each authorization request; False denies it.
        token_ttl: Lifetime of an access token in seconds.
        rotate: True to return a new refresh token with each refresh. A refresh token that is used
            twice then revokes its grant (OAuth 2.1 section 4.3.1).
        registration: True to offer dynamic client registration.
        dpop_nonces: True to require a nonce in each DPoP proof (RFC 9449 section 8).

    Raises:
        ImportError: PyJWT is not installed; it is part of the extra `auth`.

    Attributes:
        issuer: Its URL.
        requests: The last 1000 requests.
        metadata: Its metadata document (RFC 8414); a test may change its members.
        redirect: Parameters of the redirect to the client that replace the correct ones, `{"iss":
            "https://evil.example.com"}`; None removes one.
    """

    def __init__(
        self,
        issuer: str,
        *,
        scopes: Iterable[str] = (),
        subject: str = "ada",
        approve: Callable[[Mapping[str, str]], bool] | None = None,
        token_ttl: float = 3600.0,
        rotate: bool = True,
        registration: bool = True,
        dpop_nonces: bool = False,
    ) -> None:
        self.issuer = issuer
        self._base = issuer.rstrip("/")
        self.requests: deque[AuthorizationRequest] = deque(maxlen=JOURNAL)
        self.redirect: dict[str, str | None] = {}
        self._path = urlsplit(self._base).path
        self._scopes = tuple(scopes)
        self._subject = subject
        self._approve = approve
        self._clients: dict[str, RegisteredClient] = {}
        self._faults: dict[str, list[_HttpAnswer]] = {}
        self._held: dict[str, trio.Event] = {}
        self._tokens = IssuedTokens(self.issuer, token_ttl, rotate=rotate, nonces=dpop_nonces)
        self._fetcher: Fetcher | None = None
        self.metadata = self._make_metadata(registration=registration)

    @property
    def public_key(self) -> Any:
        """The key that verifies its tokens: `JWTVerifier(keys=login.public_key, …)`."""
        return self._tokens.key.public_key()

    def add_client(
        self,
        client_id: str,
        *,
        secret: str | None = None,
        key: Any = None,
        redirect_uris: Iterable[str] = (),
    ) -> None:
        """Register a client.

        Args:
            client_id: Its id.
            secret: Its secret; None for a client without a secret.
            key: Its public key, for `private_key_jwt`: PEM, or an object of `cryptography`.
            redirect_uris: Its redirect URIs; empty for any loopback address.
        """
        keep(
            self._clients, client_id, RegisteredClient(client_id, secret, key, tuple(redirect_uris))
        )

    def trust(self, issuer: "str | AuthorizationServer", key: Any = None) -> None:
        """Accept assertions of another issuer (RFC 7523), such as an identity provider.

        Args:
            issuer: Its name, or another `AuthorizationServer`.
            key: Its public key: PEM, or an object of `cryptography`.
        """
        if isinstance(issuer, AuthorizationServer):
            self._tokens.trusted[issuer.issuer] = issuer.public_key
        else:
            self._tokens.trusted[issuer] = key

    def auth_for(self, resource: str, **options: Any) -> BearerAuth:
        """Make the authorization of an MCP server that requires tokens of this server.

        Args:
            resource: The URL of its endpoint, which is also the audience of its tokens.
            options: More options of `BearerAuth`, such as `required_scopes`.
        """
        verifier = JWTVerifier(issuer=self.issuer, audience=resource, keys=self.public_key)
        return BearerAuth(
            verifier, resource=resource, authorization_servers=[self.issuer], **options
        )

    def issue_token(
        self,
        resource: str,
        *,
        scopes: Iterable[str] = (),
        subject: str | None = None,
        client_id: str = "tests",
        **claims: JSON,
    ) -> str:
        """Issue an access token without a client, for tests of a server.

        Args:
            resource: The URL of the MCP server, `aud` of the token.
            scopes: The scopes of the token.
            subject: The person; by default the one who approves.
            client_id: The client.
            claims: Claims that are added, or replace others: `exp=0`.
        """
        grant = UserGrant(client_id, subject or self._subject, tuple(scopes), resource)
        return self._tokens.access_token(self._tokens.keep(grant), claims)

    def issue_id_token(self, client_id: str, **claims: JSON) -> str:
        """Issue an ID token of the person for a client (OpenID Connect Core section 2).

        Args:
            client_id: The client, `aud` of the token.
            claims: Claims that are added, or replace others.
        """
        return self._tokens.sign({"sub": self._subject, "aud": client_id, **claims}, "JWT")

    def revoke_tokens(self) -> None:
        """Revoke every grant: introspection reports its tokens as inactive, and refreshing fails.

        A verifier that checks signatures only, like `JWTVerifier`, does not notice.
        """
        self._tokens.grants.clear()

    def fail(
        self, endpoint: str, *, status: int = 500, error: str = "server_error", times: int = 1
    ) -> None:
        """Make the next requests to an endpoint fail.

        Args:
            endpoint: `metadata`, `authorize`, `token`, `register`, `revoke`, `introspect`, `jwks`.
            status: The HTTP status.
            error: The code of the error (RFC 6749 section 5.2).
            times: The number of requests.
        """
        fault = _HttpAnswer(status, {"error": error, "error_description": "a fault of the test"})
        self._faults.setdefault(_check_endpoint(endpoint), []).extend([fault] * times)

    def hang(self, endpoint: str) -> None:
        """Make requests to an endpoint wait until `resume`.

        Args:
            endpoint: As for `fail`.
        """
        self._held[_check_endpoint(endpoint)] = trio.Event()

    def resume(self, endpoint: str) -> None:
        """Answer the requests that wait because of `hang`, and later ones.

        Args:
            endpoint: As for `fail`.
        """
        held = self._held.pop(endpoint, None)
        if held is not None:
            held.set()

    def open_browser(self, url: str) -> str:
        """Approve an authorization request at once: `OAuth(open_browser=login.open_browser)`.

        Args:
            url: The URL that a browser would open.

        Returns:
            The URL that the browser would be sent to, with the code or the error.

        Raises:
            ValueError: The authorization server refuses the request without a redirect: the client
                or its redirect URI is unknown, or the URL is not its own.
        """
        path, _, query = url.partition("?")
        if path != self.metadata["authorization_endpoint"]:
            raise ValueError(f"{path} is not the authorization endpoint of {self.issuer}")
        params = dict(parse_qsl(query, keep_blank_values=True))
        answer = self._answer(AuthorizationRequest("authorize", params))
        if answer.status != 302:
            raise ValueError(f"the authorization request is refused: {answer.document}")
        return answer.headers["location"]

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Answer a request in memory; requests to other addresses go to the network.

        Args:
            request: The request of a verifier or of `OAuth`.
        """
        parts = urlsplit(request.url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if not f"{self._base}/".startswith(f"{origin}/"):
            if self._fetcher is None:
                self._fetcher = HTTPFetcher()
            return await self._fetcher.fetch(request)
        headers = {name.lower(): value for name, value in request.headers}
        answer = await self._receive(request.method, parts.path, parts.query, headers, request.body)
        return FetchResponse(answer.status, answer.body, answer.headers)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request over HTTP; see the ASGI specification."""
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        body, more = b"", True
        while more and len(body) <= BODY_SIZE:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        query = scope["query_string"].decode("latin-1")
        answer = await self._receive(scope["method"], scope["path"], query, headers, body)
        listed = [
            (name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": listed})
        await send({"type": "http.response.body", "body": answer.body})

    # From a request to its answer

    async def _receive(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> _HttpAnswer:
        await trio.lowlevel.checkpoint()
        endpoint = self._endpoint(path)
        if endpoint is None:
            return _HttpAnswer(404, {"error": "not_found"})
        wanted = "GET" if endpoint in _READ else "POST"
        if method != wanted:
            return _HttpAnswer(405, {"error": "invalid_request"}, {"allow": wanted})
        try:
            params = _read_params(query.encode() if method == "GET" else body, headers)
        except ValueError:
            return _HttpAnswer(400, {"error": "invalid_request"})
        held = self._held.get(endpoint)
        if held is not None:
            await held.wait()
        return self._answer(AuthorizationRequest(endpoint, params, headers))

    def _endpoint(self, path: str) -> str | None:
        """Find the endpoint at a path (RFC 8414 section 3.1, OpenID Connect Discovery)."""
        for place in _WELL_KNOWN:
            if path in (f"{place}{self._path}", f"{self._path}{place}"):
                return "metadata"
        name = path.removeprefix(f"{self._path}/")
        return name if name in ENDPOINTS[1:] and path == f"{self._path}/{name}" else None

    def _answer(self, request: AuthorizationRequest) -> _HttpAnswer:
        self.requests.append(request)
        if faults := self._faults.get(request.endpoint):
            return faults.pop(0)
        try:
            answer: _HttpAnswer = getattr(self, f"_answer_{request.endpoint}")(request)
        except GrantError as refusal:
            return _HttpAnswer(refusal.status, refusal.document, refusal.headers)
        return answer

    def _make_metadata(self, *, registration: bool) -> JSONObject:
        at = {name: f"{self._base}/{name}" for name in ENDPOINTS}
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": at["authorize"],
            "token_endpoint": at["token"],
            "revocation_endpoint": at["revoke"],
            "introspection_endpoint": at["introspect"],
            "jwks_uri": at["jwks"],
            "response_types_supported": ["code"],
            "grant_types_supported": list(GRANTS),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [
                "none", "client_secret_basic", "client_secret_post", "private_key_jwt",
            ],
            "token_endpoint_auth_signing_alg_values_supported": list(ALGORITHMS),
            "dpop_signing_alg_values_supported": list(ALGORITHMS),
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }  # fmt: skip
        if registration:
            document["registration_endpoint"] = at["register"]
        if self._scopes:
            document["scopes_supported"] = list(self._scopes)
        return document

    def _find_client(self, client_id: str) -> RegisteredClient | None:
        """Find a client. If its id is a URL, its document is not read."""
        if client_id.startswith("https://") and client_id not in self._clients:
            return RegisteredClient(client_id)
        return self._clients.get(client_id)

    def _check_scopes(self, scope: str) -> tuple[str, ...]:
        scopes = tuple(scope.split())
        if self._scopes and not set(scopes) <= set(self._scopes):
            raise GrantError("invalid_scope", f"not all of {scope!r} are scopes of this server")
        return scopes

    # The endpoints

    def _answer_metadata(self, _request: AuthorizationRequest) -> _HttpAnswer:
        return _HttpAnswer(200, self.metadata)

    def _answer_jwks(self, _request: AuthorizationRequest) -> _HttpAnswer:
        return _HttpAnswer(200, {"keys": [self._tokens.jwk]})

    def _answer_authorize(self, request: AuthorizationRequest) -> _HttpAnswer:
        params = request.params
        client, uri = self._find_client(params.get("client_id", "")), params.get("redirect_uri", "")
        if client is None:
            raise GrantError("invalid_client", "the client is unknown")
        # Never redirect to an unknown URL (OAuth 2.1 section 4.1.2.1).
        if uri not in client.redirect_uris and (
            client.redirect_uris or urlsplit(uri).hostname not in _LOOPBACK
        ):
            raise GrantError("invalid_request", f"redirect_uri {uri!r} is not that of the client")
        found: dict[str, str | None] = {}
        try:
            found["code"] = self._authorize(client, uri, params)
        except GrantError as refusal:
            found |= refusal.document
        found |= {"state": params.get("state"), "iss": self.issuer, **self.redirect}
        query = urlencode({name: value for name, value in found.items() if value is not None})
        location = f"{uri}{'&' if '?' in uri else '?'}{query}"
        return _HttpAnswer(302, {}, {"location": location})

    def _authorize(self, client: RegisteredClient, uri: str, params: Mapping[str, str]) -> str:
        challenge = params.get("code_challenge")
        if params.get("response_type") != "code":
            raise GrantError("unsupported_response_type", "response_type must be code")
        if not challenge or params.get("code_challenge_method") != "S256":
            raise GrantError("invalid_request", "a code_challenge of S256 is required")
        scopes = self._check_scopes(params.get("scope", ""))
        if self._approve is not None and not self._approve(params):
            raise GrantError("access_denied", "the person said no")
        resource = params.get("resource", "")
        grant = UserGrant(client.client_id, self._subject, scopes, resource)
        return self._tokens.make_code(Code(grant, uri, challenge))

    def _answer_token(self, request: AuthorizationRequest) -> _HttpAnswer:
        client = authenticate(request.params, request.headers, self._find_client, self._tokens)
        self._check_scopes(request.params.get("scope", ""))
        return _HttpAnswer(200, self._tokens.answer(request.params, request.headers, client))

    def _answer_register(self, request: AuthorizationRequest) -> _HttpAnswer:
        if "registration_endpoint" not in self.metadata:
            return _HttpAnswer(404, {"error": "not_found"})
        wanted, client_id = dict(request.params), f"client-{secrets.token_hex(8)}"
        uris = wanted.get("redirect_uris")
        if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
            raise GrantError("invalid_redirect_uri", "redirect_uris must be a list of URIs")
        has_secret = wanted.get("token_endpoint_auth_method", "client_secret_basic") != "none"
        secret = secrets.token_urlsafe(16) if has_secret else None
        self.add_client(client_id, secret=secret, redirect_uris=uris)
        given = {"client_id": client_id, "client_secret": secret, "client_secret_expires_at": 0}
        return _HttpAnswer(201, {**wanted, **(given if has_secret else {"client_id": client_id})})

    def _answer_revoke(self, request: AuthorizationRequest) -> _HttpAnswer:
        authenticate(request.params, request.headers, self._find_client, self._tokens)
        self._tokens.revoke(request.params.get("token", ""))
        return _HttpAnswer(200, {})

    def _answer_introspect(self, request: AuthorizationRequest) -> _HttpAnswer:
        authenticate(request.params, request.headers, self._find_client, self._tokens)
        return _HttpAnswer(200, self._tokens.introspect(request.params.get("token", "")))


def _check_endpoint(name: str) -> str:
    if name not in ENDPOINTS:
        raise ValueError(f"no endpoint {name!r}; there are: {', '.join(ENDPOINTS)}")
    return name


def _read_params(text: bytes, headers: Mapping[str, str]) -> JSONObject:
    if headers.get("content-type", "").startswith("application/json"):
        members = parse_json(text)
        if not isinstance(members, dict):
            raise ValueError("not an object")
        return members
    return dict(parse_qsl(text.decode(), keep_blank_values=True))
