"""The token endpoint of `AuthorizationServer`: clients, grants, tokens, DPoP proofs."""

import base64
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, TypeVar
from urllib.parse import unquote_plus

import attrs
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from .._value import JSON, JSONObject

#: Maximum grants, codes, clients and proofs in each table; the oldest is dropped.
KEPT: Final = 10_000
#: Seconds that the `iat` of a DPoP proof may differ from the clock.
PROOF_AGE: Final = 300.0

_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:"  # noqa: S105 - a prefix of names
#: The algorithms of assertions and proofs.
ALGORITHMS: Final = ("ES256", "ES384", "ES512", "RS256", "PS256", "EdDSA")

#: The supported grants: the methods of `IssuedTokens` by `grant_type`.
GRANTS: Final = {
    "authorization_code": "_use_code",
    "refresh_token": "_use_refresh",
    "client_credentials": "_use_credentials",
    "urn:ietf:params:oauth:grant-type:jwt-bearer": "_use_assertion",
    "urn:ietf:params:oauth:grant-type:token-exchange": "_exchange",
}

Form = Mapping[str, str]
_Kept = TypeVar("_Kept")


def load_jwt() -> ModuleType:
    """Load PyJWT, without which the names of the test kit can still be imported.

    Raises:
        ImportError: It is not installed.
    """
    try:
        import jwt
    except ImportError as error:
        text = "AuthorizationServer needs PyJWT: pip install 'noizu-mcp[auth]'"
        raise ImportError(text) from error
    return jwt


class GrantError(Exception):
    """A request that an endpoint refuses (RFC 6749 section 5.2).

    Args:
        error: The code of the error.
        description: The reason, in words.
        status: The HTTP status.
        headers: Headers of the answer.
    """

    def __init__(
        self,
        error: str,
        description: str,
        status: int = 400,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(description)
        self.document = {"error": error, "error_description": description}
        self.status = status
        self.headers = headers or {}


@attrs.frozen
class RegisteredClient:
    """A registered client.

    Attributes:
        client_id: Its name.
        secret: Its secret, or None.
        key: Its public key, for `private_key_jwt`.
        redirect_uris: Its redirect URIs; empty for any loopback address.
    """

    client_id: str
    secret: str | None = attrs.field(default=None, repr=False)
    key: Any = attrs.field(default=None, repr=False)
    redirect_uris: tuple[str, ...] = ()


@attrs.define(eq=False)
class UserGrant:
    """The permissions of a client, and the user who gave them.

    Attributes:
        client_id: The client.
        subject: The person, the workload, or the client itself.
        scopes: The scopes.
        resource: The URL of the MCP server; empty if the client named none.
        thumbprint: The key to which its tokens are bound (RFC 9449 section 6.1).
        uses: How often a refresh token was rotated.
        name: Identifies the grant in tokens.
    """

    client_id: str
    subject: str
    scopes: tuple[str, ...]
    resource: str
    thumbprint: str | None = None
    uses: int = 0
    name: str = attrs.field(factory=lambda: secrets.token_hex(8))


@attrs.frozen
class Code:
    """An authorization code that waits for its client."""

    grant: UserGrant
    redirect_uri: str
    challenge: str


class IssuedTokens:
    """The tokens of one authorization server.

    Args:
        issuer: Its URL.
        ttl: Lifetime of an access token in seconds.
        rotate: True to return a new refresh token with each refresh.
        nonces: True to require a nonce in each DPoP proof.

    Raises:
        ImportError: PyJWT is not installed.

    Attributes:
        key: The private key that signs them.
        trusted: Keys of other issuers whose assertions are accepted.
        grants: The grants that are not revoked, by name.
        codes: The codes that were not used.
    """

    def __init__(self, issuer: str, ttl: float, *, rotate: bool, nonces: bool) -> None:
        self._jwt = load_jwt()
        self.key: Final = generate_private_key(SECP256R1())
        self.trusted: dict[str, Any] = {}
        self.grants: dict[str, UserGrant] = {}
        self.codes: dict[str, Code] = {}
        self._issuer = issuer
        self._ttl = ttl
        self._rotate = rotate
        self._nonce = secrets.token_urlsafe(8) if nonces else None
        self._proofs: dict[str, None] = {}

    @property
    def jwk(self) -> JSONObject:
        """The public key, as a JWK (RFC 7517)."""
        algorithm = self._jwt.get_algorithm_by_name("ES256")
        members: JSONObject = algorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {**members, "alg": "ES256", "kid": "1", "use": "sig"}

    def keep(self, grant: UserGrant) -> UserGrant:
        """Store a grant; a full table drops the oldest."""
        keep(self.grants, grant.name, grant)
        return grant

    def make_code(self, code: Code) -> str:
        """Make an authorization code; a full table drops the oldest."""
        name = secrets.token_urlsafe(16)
        keep(self.codes, name, code)
        return name

    def sign(self, claims: Mapping[str, JSON], typ: str) -> str:
        """Sign a JWT with the issuer, the current time and the expiry."""
        now = int(time.time())
        times = {"iat": now, "exp": now + int(self._ttl), "jti": secrets.token_hex(8)}
        header = {"typ": typ, "kid": "1"}
        members = {"iss": self._issuer, **times, **claims}
        return str(self._jwt.encode(members, self.key, "ES256", header))

    def access_token(self, grant: UserGrant, claims: Mapping[str, JSON]) -> str:
        """Make an access token (RFC 9068)."""
        members: JSONObject = {
            "aud": grant.resource or self._issuer,
            "sub": grant.subject,
            "client_id": grant.client_id,
            "scope": " ".join(grant.scopes),
            "grant": grant.name,
        }
        if grant.thumbprint is not None:
            members["cnf"] = {"jkt": grant.thumbprint}
        return self.sign({**members, **claims}, "at+jwt")

    def introspect(self, token: str) -> JSONObject:
        """Describe a token (RFC 7662 section 2.2)."""
        try:
            claims = self._verify(token, self.key.public_key(), audience=None)
        except GrantError:
            return {"active": False}
        if claims.get("grant") not in self.grants:
            return {"active": False}
        return {"active": True, **claims}

    def revoke(self, token: str) -> None:
        """Revoke the grant behind an access or a refresh token (RFC 7009)."""
        name = token.partition(".")[0]
        if token.count(".") == 2:
            name = str(self.introspect(token).get("grant"))
        self.grants.pop(name, None)

    def answer(
        self, form: Form, headers: Mapping[str, str], client: RegisteredClient
    ) -> JSONObject:
        """Answer a request of a known client to the token endpoint.

        Args:
            form: The parameters.
            headers: The headers; names in lower case.
            client: The client.

        Raises:
            Refusal: No token is issued.
        """
        handler = GRANTS.get(form.get("grant_type", ""))
        if handler is None:
            raise GrantError("unsupported_grant_type", f"not {form.get('grant_type')!r}")
        given: JSONObject = getattr(self, handler)(form, client, self._check_proof(headers))
        return given

    # The grants

    def _use_code(self, form: Form, client: RegisteredClient, thumbprint: str | None) -> JSONObject:
        code = self.codes.pop(form.get("code", ""), None)  # RFC 6749 section 4.1.2: used once
        if code is None or code.grant.client_id != client.client_id:
            raise GrantError("invalid_grant", "the code is unknown, or used")
        if code.redirect_uri != form.get("redirect_uri"):
            raise GrantError(
                "invalid_grant", "redirect_uri is not that of the authorization request"
            )
        if s256(form.get("code_verifier", "")) != code.challenge:
            raise GrantError("invalid_grant", "code_verifier does not fit the code_challenge")
        if form.get("resource", "") != code.grant.resource:
            raise GrantError("invalid_target", "resource is not that of the authorization request")
        code.grant.thumbprint = thumbprint
        return self._give(self.keep(code.grant), refresh=True)

    def _use_refresh(
        self, form: Form, client: RegisteredClient, thumbprint: str | None
    ) -> JSONObject:
        name, _, number = form.get("refresh_token", "").partition(".")
        grant = self.grants.get(name)
        if grant is None or grant.client_id != client.client_id:
            raise GrantError("invalid_grant", "the refresh token is unknown, or revoked")
        if number != str(grant.uses):
            del self.grants[name]  # one of two clients is a thief
            raise GrantError("invalid_grant", "the refresh token was used before")
        if grant.thumbprint != thumbprint:
            raise GrantError("invalid_grant", "the refresh token is bound to another key")
        grant.uses += self._rotate
        narrowed = attrs.evolve(grant, scopes=_narrow(form, grant.scopes))
        return {**self._give(narrowed), "refresh_token": f"{name}.{grant.uses}"}

    def _use_credentials(
        self, form: Form, client: RegisteredClient, thumbprint: str | None
    ) -> JSONObject:
        if client.secret is None and client.key is None:
            raise GrantError("unauthorized_client", "client_credentials needs a secret or a key")
        name = client.client_id
        grant = UserGrant(name, name, _scopes(form), form.get("resource", ""), thumbprint)
        return self._give(self.keep(grant))

    def _use_assertion(
        self, form: Form, client: RegisteredClient, thumbprint: str | None
    ) -> JSONObject:
        """Accept an assertion of a trusted issuer: for a workload, or an ID-JAG (RFC 7523)."""
        claims = self._verify_assertion(form.get("assertion", ""))
        resource = claims.get("resource", form.get("resource", ""))
        if claims.get("client_id", client.client_id) != client.client_id:
            raise GrantError("invalid_grant", "the assertion is for another client")
        grant = UserGrant(client.client_id, claims["sub"], _scopes(form), resource, thumbprint)
        return self._give(self.keep(grant))

    def _exchange(
        self, form: Form, client: RegisteredClient, _thumbprint: str | None
    ) -> JSONObject:
        """Exchange an ID token for an ID-JAG (identity assertion authorization grant)."""
        kinds = form.get("subject_token_type"), form.get("requested_token_type")
        if kinds != (f"{_TOKEN_TYPE}id_token", f"{_TOKEN_TYPE}id-jag"):
            raise GrantError("invalid_request", "only an ID token is exchanged, for an ID-JAG")
        if not form.get("audience") or not form.get("resource"):
            raise GrantError("invalid_request", "audience and resource are required")
        token, key = form.get("subject_token", ""), self.key.public_key()
        claims = self._verify(token, key, audience=client.client_id)
        members = {
            "sub": claims["sub"],
            "aud": form["audience"],
            "resource": form["resource"],
            "client_id": client.client_id,
            "scope": form.get("scope", ""),
        }
        return {
            "access_token": self.sign(members, "oauth-id-jag+jwt"),
            "issued_token_type": f"{_TOKEN_TYPE}id-jag",
            "token_type": "N_A",
            "expires_in": int(self._ttl),
        }

    def _give(self, grant: UserGrant, *, refresh: bool = False) -> JSONObject:
        given = {
            "access_token": self.access_token(grant, {}),
            "token_type": "Bearer" if grant.thumbprint is None else "DPoP",
            "expires_in": int(self._ttl),
            "scope": " ".join(grant.scopes),
        }
        return {**given, "refresh_token": f"{grant.name}.0"} if refresh else given

    # Proofs and assertions

    def issuer_of(self, assertion: str) -> str | None:
        """Read the issuer of an assertion without verifying it; None if it is not a JWT."""
        try:
            claims = self._jwt.decode(assertion, options={"verify_signature": False})
        except self._jwt.PyJWTError:
            return None
        return str(claims.get("iss"))

    def _verify_assertion(self, assertion: str) -> JSONObject:
        issuer = self.issuer_of(assertion)
        if issuer is None:
            raise GrantError("invalid_grant", "the assertion is no JWT")
        if issuer not in self.trusted:
            raise GrantError("invalid_grant", f"the issuer {issuer!r} is not trusted")
        return self._verify(assertion, self.trusted[issuer], audience=self._issuer)

    def _verify(self, token: str, key: Any, *, audience: str | None) -> JSONObject:
        try:
            claims: JSONObject = self._jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=audience,
                options={"require": ["iss", "sub", "exp"], "verify_aud": audience is not None},
            )
        except (self._jwt.PyJWTError, ValueError) as error:
            raise GrantError(
                "invalid_grant", f"the token or assertion is refused: {error}"
            ) from None
        return claims

    def verify_client(self, assertion: str, client: RegisteredClient) -> bool:
        """Check the assertion of a client (RFC 7523 section 3)."""
        try:
            claims = self._verify(assertion, client.key, audience=self._issuer)
        except GrantError:
            return False
        return bool(claims["iss"] == claims["sub"] == client.client_id)

    def _check_proof(self, headers: Mapping[str, str]) -> str | None:
        """Check the DPoP proof of a request to the token endpoint (RFC 9449 section 4.3).

        Returns:
            The thumbprint of its key (RFC 7638); None if there is no proof.
        """
        proof = headers.get("dpop")
        if proof is None:
            return None
        try:
            header = self._jwt.get_unverified_header(proof)
            key = self._jwt.PyJWK(header["jwk"])
            claims = self._jwt.decode(proof, key.key, algorithms=list(ALGORITHMS))
        except (self._jwt.PyJWTError, ValueError, KeyError) as error:
            raise GrantError("invalid_dpop_proof", f"it is not a signed proof: {error}") from None
        if self._nonce is not None and claims.get("nonce") != self._nonce:
            nonce = {"dpop-nonce": self._nonce}
            raise GrantError("use_dpop_nonce", "the proof needs a nonce", headers=nonce)
        good = (
            header.get("typ") == "dpop+jwt"
            and claims.get("htm") == "POST"
            and claims.get("htu") == f"{self._issuer.rstrip('/')}/token"
            and abs(time.time() - claims.get("iat", 0)) < PROOF_AGE
            and claims.get("jti") not in (None, *self._proofs)
        )
        if not good:
            raise GrantError("invalid_dpop_proof", "a claim is missing or wrong, or it came before")
        keep(self._proofs, claims["jti"], None)
        return thumbprint(header["jwk"])


def authenticate(
    form: Form,
    headers: Mapping[str, str],
    find: Callable[[str], RegisteredClient | None],
    tokens: IssuedTokens,
) -> RegisteredClient:
    """Find the client of a request, and authenticate it with its registered method.

    Args:
        form: The parameters of the request.
        headers: Its headers; names in lower case.
        find: Finds a client by its id.
        tokens: Checks the assertions of clients.

    Raises:
        Refusal: The client is unknown, or its authentication fails.
    """
    name, secret = form.get("client_id"), form.get("client_secret")
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(rest, validate=True).decode()
        except ValueError:
            raise _unknown_client("its header is not Basic authentication") from None
        name, secret = map(unquote_plus, pair.split(":", 1)) if ":" in pair else (pair, "")
    assertion = form.get("client_assertion", "")
    if name is None and assertion:
        name = tokens.issuer_of(assertion)
    client = find(name or "")
    if client is None:
        raise _unknown_client("it is not registered")
    if client.key is not None:
        is_known = form.get("client_assertion_type") == _ASSERTION
        is_known = is_known and tokens.verify_client(assertion, client)
    else:
        is_known = client.secret is None or client.secret == secret
    if not is_known:
        raise _unknown_client("its secret or its assertion is wrong")
    return client


def _unknown_client(why: str) -> GrantError:
    headers = {"www-authenticate": 'Basic realm="oauth"'}
    return GrantError("invalid_client", f"the client is refused: {why}", 401, headers)


def s256(verifier: str) -> str:
    """Make the code challenge of a verifier (RFC 7636 section 4.2)."""
    return _base64(hashlib.sha256(verifier.encode()).digest())


def thumbprint(jwk: Mapping[str, JSON]) -> str:
    """Make the thumbprint of a public key (RFC 7638)."""
    members = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}
    text = ",".join(f'"{name}":"{jwk[name]}"' for name in members[jwk["kty"]])
    return _base64(hashlib.sha256(f"{{{text}}}".encode()).digest())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _scopes(form: Form) -> tuple[str, ...]:
    return tuple(form.get("scope", "").split())


def _narrow(form: Form, scopes: tuple[str, ...]) -> tuple[str, ...]:
    wanted = _scopes(form) or scopes
    if not set(wanted) <= set(scopes):
        raise GrantError("invalid_scope", "a refresh cannot widen the scopes")
    return wanted


def keep(table: dict[str, _Kept], name: str, value: _Kept) -> None:
    """Put a value into a table; a full table drops the oldest."""
    if len(table) >= KEPT:
        del table[next(iter(table))]
    table[name] = value
