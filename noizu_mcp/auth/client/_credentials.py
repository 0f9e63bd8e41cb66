"""`TokenCredentials`: the lifecycle of the tokens for one MCP server, for every kind of grant.

Theory of operation. The tokens of one server are in one of these states:

- *none*: requests are sent without a token; the refusal of the server begins a grant;
- *valid*: each request has the token;
- *stale*, shortly before its expiry: the next request first renews it with its refresh token, if
  there is one. If the refresh token is refused, the state is *none*, and a new grant begins;
- *refused*: the server answered 401, or 403 with `insufficient_scope`. Discovery begins again,
  since the server may use another authorization server now; tokens, refresh tokens and
  registrations of the previous one are never sent to the new one. Then, in this order: a token that
  another process has stored in the meantime, the refresh token, a grant.

A grant requests the scopes of the challenge together with those requested before: a step-up must
not lose scopes of other operations. If a server still requires scopes with which the refused token
was requested, or refuses a new token, that is an `AuthError`, and no grant follows.

Changing the tokens requires the lock of the store. So they are renewed once, no matter how many
tasks (see `RequestAuth`), clients and processes share them: the others use the new ones.

Sources: 2026-07-28 and 2025-11-25 `basic/authorization`; RFC 6749 section 6; OAuth 2.1
section 4.3.1 (rotation).
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from types import ModuleType
from typing import Final
from urllib.parse import urlsplit

import attrs
import trio

from ..._errors import AuthError
from .._configuration import needs_pyjwt
from .._fetch import Fetcher, FetchRequest, FetchResponse, HTTPFetcher, addresses_of, is_public
from ._discovery import Discovered, discover
from ._stores import CredentialStore
from ._strategy import ClientRequest, ProtectedServer, Refusal, origin_of
from ._tokens import (
    LOST,
    NONCE_WANTED,
    TOKEN_TIMEOUT,
    ClientRegistration,
    Login,
    TokenClient,
    TokenParams,
    TokenRefused,
    Tokens,
    union,
)

#: Maximum scopes that an error lists.
_SHOWN: Final = 20


@attrs.frozen(kw_only=True)
class GrantRequest:
    """A request for the tokens of one server.

    Attributes:
        server: The MCP server.
        found: The authorization server and the resource.
        scopes: The scopes to request; empty for the authorization server's default.
        previous: The tokens so far, possibly of another issuer.
        store: Keeps registrations.
        fetcher: Makes requests for metadata and registrations.
        tokens: Makes requests for tokens.
        pause: Stops the timeouts of the client while a person is asked; see `Refusal`.
    """

    server: ProtectedServer
    found: Discovered
    scopes: tuple[str, ...]
    previous: Login | None
    store: CredentialStore
    fetcher: Fetcher
    tokens: TokenClient
    pause: Callable[[], AbstractContextManager[object]] = nullcontext

    async def redeem(
        self,
        params: TokenParams | Callable[[], Awaitable[TokenParams]],
        client: ClientRegistration,
        scopes: tuple[str, ...],
    ) -> Login:
        """Request the tokens at the token endpoint.

        Args:
            params: The parameters of the grant; see `TokenClient.request`.
            client: The client.
            scopes: The scopes that are requested.

        Raises:
            TokenRefused: The endpoint answered with an error.
            AuthError: It did not answer, or not with a token.
        """
        issuer = self.found.issuer
        return Login(
            issuer=issuer.issuer,
            token_endpoint=issuer.token_endpoint,
            revocation_endpoint=issuer.revocation_endpoint,
            resource=self.found.resource,
            requested=scopes,
            client=client,
            tokens=await self.tokens.request(
                issuer.token_endpoint, params, client=client, requested=scopes
            ),
        )


#: Gets tokens from an authorization server; an `AuthError` says why not, and what to do.
Grant = Callable[[GrantRequest], Awaitable[Login]]


class TokenCredentials:
    """The tokens of one client for one MCP server; see `Credentials`.

    Args:
        server: The MCP server.
        grant: Gets new tokens.
        scopes: The scopes to request in addition to scopes of challenges; None for the scopes in
            the metadata of the server.
        store: Keeps the tokens.
        key: Their key in the store.
        client_id: The client to which they must belong; None for any.
        issuer: The only authorization server that is used; None for any.
        fetcher: Makes the requests for metadata and tokens.
        dpop: True to bind the tokens to a key (RFC 9449).

    Raises:
        ImportError: `dpop` needs PyJWT, which is not installed.
    """

    def __init__(
        self,
        server: ProtectedServer,
        grant: Grant,
        *,
        scopes: tuple[str, ...] | None,
        store: CredentialStore,
        key: str,
        client_id: str | None,
        issuer: str | None,
        fetcher: Fetcher,
        dpop: bool = False,
    ) -> None:
        self._server = server
        self._grant = grant
        self._scopes = scopes
        self._store = store
        self._key = key
        self._client_id = client_id
        self._issuer = issuer
        self._fetcher = fetcher
        self._tokens = TokenClient(fetcher, load_signing().Prover() if dpop else None)
        self._login: Login | None = None
        self._loaded = False
        # The latest tokens of a grant, and of a refresh after a refusal: if the next request is
        # refused, repeating it would not help.
        self._granted = self._refreshed = ""

    async def headers(self, request: ClientRequest) -> Mapping[str, str]:
        """Return the header with the token, renewed before its expiry; see `Credentials`."""
        if not self._loaded:
            self._login, self._loaded = await self._load(), True
        login = self._login
        if login is not None and login.tokens.is_stale():
            login = self._login = await self._renew(login)
        if login is None:
            return {}
        given = {"Authorization": authorization_of(login.tokens)}
        if (prover := self._tokens.prover) is not None:
            given["DPoP"] = prover.prove(request.method, request.url, login.tokens.access_token)
        return given

    async def handle(self, refusal: Refusal) -> bool:
        """Get better tokens after a refusal; see `Credentials`."""
        if self._wants_nonce(refusal):
            return True
        if refusal.status == 403 and not _is_step_up(refusal):
            return False
        sent = refusal.sent.get("authorization", "")
        # Another task has renewed it since the request was sent.
        if self._login is not None and authorization_of(self._login.tokens) != sent:
            return True
        async with AsyncExitStack() as stack:
            # Another process may ask a person.
            with refusal.pause():
                await stack.enter_async_context(self._store.lock(self._key))
            stored = await self._load()
            if stored is None or authorization_of(stored.tokens) == sent or stored.tokens.is_over():
                stored = await self._replace(refusal, stored)
            self._login = stored
        return True

    async def _load(self) -> Login | None:
        login = Login.from_json(await self._store.load(self._key))
        # The configuration may have changed since the tokens were stored.
        if login is None or self._client_id not in (None, login.client.client_id):
            return None
        if self._issuer not in (None, login.issuer):
            return None
        prover = self._tokens.prover
        if bool(login.proof_key) != (prover is not None):
            return None
        if prover is not None and login.proof_key != prover.pem:
            self._tokens.prover = load_signing().Prover(login.proof_key)
        return login

    def note_answer(self, url: str, headers: Mapping[str, str]) -> None:
        """Store a nonce of any answer (RFC 9449 section 8.2); see `Credentials`."""
        if self._tokens.prover is not None:
            self._tokens.prover.take_nonce(url, headers)

    def _wants_nonce(self, refusal: Refusal) -> bool:
        """Tell whether a refusal requires another nonce in the proof, and there is one.

        Several requests may be refused at the same time; each is sent again.
        """
        prover, challenge = self._tokens.prover, refusal.challenge("DPoP")
        if prover is None or challenge is None or challenge.params.get("error") != NONCE_WANTED:
            return False
        url = refusal.request.url
        prover.take_nonce(url, refusal.headers)
        return prover.has_other_nonce(url, refusal.sent.get("dpop", ""))

    async def _save(self, login: Login) -> Login:
        if self._tokens.prover is not None:
            login = attrs.evolve(login, proof_key=self._tokens.prover.pem)
        # Not cancelled: the server may have used up the old refresh token.
        with trio.CancelScope(shield=True):
            await self._store.save(self._key, login.to_json())
        return login

    async def _renew(self, login: Login) -> Login | None:
        """Renew a stale token; None if there is no valid token left."""
        async with self._store.lock(self._key):
            stored = await self._load()
            # Deleted: the person has logged out.
            if stored is None or not stored.tokens.is_stale():
                return stored
            try:
                if (renewed := await self._refresh(stored)) is not None:
                    return renewed
            except AuthError:
                # It is valid for some more seconds.
                if login.tokens.is_over():
                    raise
        return None if stored.tokens.is_over() else stored

    async def _refresh(self, login: Login) -> Login | None:
        """Use the refresh token; None if it is missing or no longer valid."""
        if not login.tokens.refresh_token:
            return None
        params = {
            "grant_type": "refresh_token",
            "refresh_token": login.tokens.refresh_token,
            "resource": login.resource,
        }
        try:
            tokens = await self._tokens.request(
                login.token_endpoint,
                params,
                client=login.client,
                requested=login.tokens.scopes,
            )
        except TokenRefused as error:
            if error.code not in LOST:
                raise
            return None
        # Without rotation the refresh token stays (RFC 6749 section 6).
        tokens = attrs.evolve(
            tokens, refresh_token=tokens.refresh_token or login.tokens.refresh_token
        )
        return await self._save(attrs.evolve(login, tokens=tokens))

    async def _replace(self, refusal: Refusal, login: Login | None) -> Login:
        """Get other tokens after the server has refused them."""
        found = await discover(
            self._server,
            refusal,
            self._fetcher,
            preferred=None if login is None else login.issuer,
            only=self._issuer,
        )
        known = login if login is not None and login.issuer == found.issuer.issuer else None
        if known is not None and not self._wants_more(refusal, known):
            made = known.tokens.access_token if refusal.attempt > 1 else None
            if made not in (self._granted, self._refreshed):
                if (renewed := await self._refresh(known)) is not None:
                    self._refreshed = renewed.tokens.access_token
                    return renewed
            elif made == self._granted:
                params = _params_of(refusal)
                said = params.get("error_description") or params.get("error", "no reason given")
                raise AuthError(
                    f"{self._server.shown} refuses the token that {known.issuer} has just issued"
                    f" for it: {said[:200]}"
                )
        requested = () if known is None else known.requested
        request = GrantRequest(
            server=self._server,
            found=found,
            scopes=self._choose_scopes(found, challenged_scopes(refusal), requested),
            previous=login,
            store=self._store,
            fetcher=self._fetcher,
            tokens=self._tokens,
            pause=refusal.pause,
        )
        granted = await self._grant(request)
        self._granted = granted.tokens.access_token
        return await self._save(granted)

    def _wants_more(self, refusal: Refusal, login: Login) -> bool:
        """Tell whether a server requires scopes with which the refused token was not requested.

        Raises:
            AuthError: It requires scopes with which the token was requested.
        """
        challenged = challenged_scopes(refusal)
        if not set(challenged) <= set(login.requested):
            return True
        if refusal.sent and _is_step_up(refusal):
            wanted = " ".join(challenged[:_SHOWN]) or "it does not say which"
            raise AuthError(
                f"{self._server.shown} wants more scopes for {refusal.operation or 'this'}"
                f" ({wanted}), although the token was requested with"
                f" {' '.join(login.requested[:_SHOWN]) or 'none'}; {login.issuer} does not grant"
                " them"
            )
        return False

    def _choose_scopes(
        self, found: Discovered, challenged: tuple[str, ...], requested: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Choose the scopes to request (2026-07-28 `basic/authorization`, "Scope Selection")."""
        chosen = union(requested, self._scopes or (), challenged)
        if not challenged and self._scopes is None:
            chosen = union(requested, found.scopes_supported)
        return chosen


def load_signing() -> ModuleType:
    """Load the module that signs with PyJWT.

    Raises:
        ImportError: PyJWT is not installed.
    """
    with needs_pyjwt("signing"):
        from . import _signing
    return _signing


def authorization_of(tokens: Tokens) -> str:
    """Return the `Authorization` header for a token."""
    return f"{tokens.token_type} {tokens.access_token}"


def challenged_scopes(refusal: Refusal) -> tuple[str, ...]:
    """Return the scopes of a challenge (RFC 6750 section 3).

    Args:
        refusal: The answer of the server.
    """
    return tuple(_params_of(refusal).get("scope", "").split())


def _is_step_up(refusal: Refusal) -> bool:
    return _params_of(refusal).get("error") == "insufficient_scope"


def _params_of(refusal: Refusal) -> Mapping[str, str]:
    challenge = refusal.challenge() or refusal.challenge("DPoP")
    return {} if challenge is None else challenge.params


class ClientFetcher:
    """A `Fetcher` for URLs that an MCP server, or its authorization server, sends.

    It reaches addresses of the internet only, unless the MCP server is at another one itself: a
    server on the internet must not make its clients send requests into their own network.

    Args:
        server: The MCP server.
        allow_private: True to reach every address.
    """

    def __init__(self, server: ProtectedServer, *, allow_private: bool) -> None:
        self._server = server
        self._public_only: bool | None = False if allow_private else None
        self._fetchers: dict[bool, Fetcher] = {}

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Make one request; see `Fetcher`."""
        own = origin_of(request.url) == self._server.origin
        if self._public_only is None:
            parts = urlsplit(self._server.url)
            addresses = await addresses_of(parts.hostname or "", parts.port or 443)
            self._public_only = all(map(is_public, addresses))
        if own not in self._fetchers:
            # The certificates that the program trusts for the server are for the server only.
            self._fetchers[own] = HTTPFetcher(
                timeout=TOKEN_TIMEOUT,
                ssl_context=self._server.tls if own else None,
                public_only=self._public_only,
            )
        return await self._fetchers[own].fetch(request)
