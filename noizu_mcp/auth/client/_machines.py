"""Strategies for machines: tokens without a person and a browser.

Each strategy is a grant of `TokenCredentials`, which has discovery, the store, renewal and the
rules for refusals. A machine requests a new token where a person would use a refresh token.

The credentials of a machine belong to one authorization server, but the MCP server names the
authorization server to use, and may lie. Anyone who gets a secret or a token of a platform can use
it, so `issuer=` is required, and only this issuer gets them. A signature is made for one issuer and
is useless elsewhere; without `issuer=` such a strategy stays with the first issuer that gave it a
token.

Sources: RFC 6749 section 4.4 (client credentials), RFC 7523 (assertions), RFC 8693 (exchange); the
extensions `io.modelcontextprotocol/oauth-client-credentials` and
`io.modelcontextprotocol/enterprise-managed-authorization`.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final, TypedDict, Unpack, cast

import attrs
import trio

from ..._errors import AuthError
from .._configuration import check_url, read_text
from .._fetch import Fetcher, HTTPFetcher
from ._client_registration import ClientIdentity, check_home, read_scopes
from ._credentials import ClientFetcher, GrantRequest, TokenCredentials, load_signing
from ._discovery import IssuerMetadata, issuer_metadata
from ._stores import CredentialStore, MemoryStore
from ._strategy import Credentials, ProtectedServer
from ._tokens import SHOWN, ClientRegistration, Login, TokenClient, TokenParams

_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_CLIENT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_IDENTITY: Final = "urn:ietf:params:oauth:token-type:id_token"
_ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"

#: A token, the file that holds it, or a function, async or not, that returns it.
TokenSource = str | Path | Callable[[], str | Awaitable[str]]


class MachineOptions(TypedDict, total=False):
    """Options of all strategies for machines.

    Attributes:
        scopes: The scopes to request in addition to scopes of challenges, a list or one text with
            spaces between them; None for the scopes in the metadata of the server.
        issuer: The authorization server to which the credentials belong, exactly as it names
            itself; no other is used. It is required with a secret and with the token of a platform.
            None for the first one in the metadata of the MCP server.
        store: Stores the tokens; `MemoryStore()` by default.
        dpop: True to bind the tokens to a key (RFC 9449), so that stolen tokens are useless. An
            authorization server without DPoP is refused.
        allow_private: True to let a server on the internet name private addresses.
        fetcher: Sends the requests for metadata and tokens.
    """

    scopes: Iterable[str] | None
    issuer: str | None
    store: CredentialStore | None
    dpop: bool
    allow_private: bool
    fetcher: Fetcher | None


class Machine(ABC):
    """The base of the strategies for machines.

    Args:
        client_id: The client id at the authorization server.
        client_secret: Its secret, or None.
        options: See `MachineOptions`.

    Raises:
        TypeError: There is no such option.
        ValueError: An option is malformed.
    """

    #: The person to whom the tokens belong, for the store; empty if they belong to the machine.
    _person = ""

    def __init__(self, client_id: str, client_secret: str | None, options: MachineOptions) -> None:
        if unknown := options.keys() - MachineOptions.__annotations__.keys():
            raise TypeError(f"{type(self).__name__} has no option {min(unknown)!r}")
        read_text(client_id, "client_id")
        self._identity = ClientIdentity(
            client_id=client_id, client_secret=client_secret, issuer=options.get("issuer")
        )
        self._scopes = read_scopes(options.get("scopes"))
        self._store = options.get("store") or MemoryStore()
        self._dpop = bool(options.get("dpop"))
        self._allow_private = bool(options.get("allow_private"))
        self._fetcher = options.get("fetcher")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._identity.client_id!r}, …)"

    def bind(self, server: ProtectedServer) -> Credentials:
        """Make the credentials of one client; see `AuthStrategy`.

        Raises:
            ValueError: The URL is neither https nor that of a loopback address.
        """
        check_url(server.url, "the URL of the server")
        client_id = self._identity.client_id
        return TokenCredentials(
            server,
            self._obtain,
            scopes=self._scopes,
            store=self._store,
            key=" ".join((type(self).__name__, str(client_id), server.url, self._person)).strip(),
            client_id=client_id,
            issuer=self._identity.issuer,
            fetcher=self._fetcher or ClientFetcher(server, allow_private=self._allow_private),
            dpop=self._dpop,
        )

    async def _obtain(self, request: GrantRequest) -> Login:
        """Get tokens; see `Grant`."""
        issuer, previous = request.found.issuer, request.previous
        client = self._register(issuer, None if previous is None else previous.issuer)

        async def make_params() -> TokenParams:
            scope = " ".join(request.scopes)
            proof = await self._prove(request)
            return {"scope": scope, "resource": request.found.resource, **proof}

        login = await request.redeem(make_params, client, request.scopes)
        # A machine needs no refresh token (RFC 6749 section 4.4.3): it asks again.
        return attrs.evolve(login, tokens=attrs.evolve(login.tokens, refresh_token=""))

    def _register(self, issuer: IssuerMetadata, known_at: str | None) -> ClientRegistration:
        """Make the registration of this client at an issuer.

        Args:
            issuer: The issuer.
            known_at: The issuer of its earlier tokens, or None.

        Raises:
            AuthError: The credentials belong to another issuer.
        """
        # Not None: there is a client_id.
        return cast(ClientRegistration, self._identity.known(issuer, known_at))

    @abstractmethod
    async def _prove(self, request: GrantRequest) -> TokenParams:
        """Make the parameters of the grant."""


class ClientCredentials(Machine):
    """An `AuthStrategy` for a machine with a secret (RFC 6749 section 4.4).

    Args:
        client_id: The client id at the authorization server.
        client_secret: Its secret. It is sent as HTTP Basic, or in the form if the authorization
            server supports only this.
        options: See `MachineOptions`.

    Raises:
        TypeError: There is no such option.
        ValueError: An option is malformed, or `issuer` is missing.
    """

    def __init__(
        self, client_id: str, client_secret: str, **options: Unpack[MachineOptions]
    ) -> None:
        super().__init__(client_id, read_text(client_secret, "client_secret"), options)

    async def _prove(self, request: GrantRequest) -> TokenParams:
        return {"grant_type": "client_credentials"}


class PrivateKeyJWT(Machine):
    """An `AuthStrategy` for a machine with a private key (RFC 7523 section 2.2).

    Args:
        client_id: The client id at the authorization server, which has the public key.
        key: The private key: PEM without a password, or an object of `cryptography`.
        algorithm: The algorithm, such as `ES256` or `RS256`; None for the default of the key.
        key_id: The id of the key at the authorization server (`kid`), if required.
        options: See `MachineOptions`.

    Raises:
        TypeError: There is no such option.
        ValueError: The key, or an option, is malformed.
        ImportError: PyJWT is not installed; the extra `auth` brings it.
    """

    def __init__(
        self,
        client_id: str,
        key: object,
        *,
        algorithm: str | None = None,
        key_id: str | None = None,
        **options: Unpack[MachineOptions],
    ) -> None:
        super().__init__(client_id, None, options)
        self._signing = load_signing()
        self._key, self._algorithm = self._signing.read_private_key(key, algorithm)
        self._key_id = key_id

    def _register(self, issuer: IssuerMetadata, known_at: str | None) -> ClientRegistration:
        methods = issuer.auth_methods
        if methods is not None and "private_key_jwt" not in methods:
            raise AuthError(
                f"{issuer.issuer} takes no private_key_jwt, but {', '.join(methods)[:SHOWN]};"
                " another strategy is needed"
            )
        return attrs.evolve(super()._register(issuer, known_at), auth_method="private_key_jwt")

    async def _prove(self, request: GrantRequest) -> TokenParams:
        assertion = self._signing.make_assertion(
            self._identity.client_id,
            request.found.issuer.issuer,
            self._key,
            self._algorithm,
            self._key_id,
        )
        return {
            "grant_type": "client_credentials",
            "client_assertion_type": _CLIENT_ASSERTION,
            "client_assertion": assertion,
        }


class WorkloadIdentity(Machine):
    """An `AuthStrategy` for a workload with a token of its platform (RFC 7523 section 2.1).

    The token of the platform, such as Kubernetes or a CI service, is exchanged for a token of the
    authorization server, which trusts the platform. A refusal is final.

    Args:
        token: The token of the platform, whose audience is the authorization server; the file that
            contains it; or a function, async or not, that returns it. It is read for each grant.
        client_id: The client id at the authorization server.
        client_secret: Its secret, or None.
        options: See `MachineOptions`.

    Raises:
        TypeError: There is no such option.
        ValueError: An option is malformed, or `issuer` is missing.
    """

    def __init__(
        self,
        token: TokenSource,
        *,
        client_id: str,
        client_secret: str | None = None,
        **options: Unpack[MachineOptions],
    ) -> None:
        super().__init__(client_id, client_secret, options)
        check_home(self._identity.issuer, "token")
        self._token = check_source(token, "token")

    async def _prove(self, request: GrantRequest) -> TokenParams:
        return {"grant_type": _JWT_BEARER, "assertion": await read_source(self._token)}


class EnterpriseManaged(Machine):
    """An `AuthStrategy` for a person who is logged in at the identity provider of a company.

    The identity provider exchanges the ID token of the person for an assertion (ID-JAG), and the
    authorization server of the MCP server exchanges the assertion for a token. No person is asked:
    the company has decided which servers its employees may use.

    Args:
        client_id: The client id at the authorization server of the MCP server.
        client_secret: Its secret, which needs `issuer`, or None.
        idp: The URL of the issuer of the identity provider.
        id_token: The ID token of the person; the file that contains it; or a function, async or
            not, that returns it. It is read for each grant.
        idp_client_id: The client id at the identity provider; `client_id` by default.
        idp_client_secret: Its secret at the identity provider, or None.
        person: The name of the person in the store; any text that is unique for each person. It is
            required with `store=`: people who share a store must not share tokens.
        options: See `MachineOptions`.

    Raises:
        TypeError: There is no such option.
        ValueError: An option is malformed.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        idp: str,
        id_token: TokenSource,
        idp_client_id: str | None = None,
        idp_client_secret: str | None = None,
        person: str | None = None,
        **options: Unpack[MachineOptions],
    ) -> None:
        super().__init__(client_id, client_secret, options)
        check_url(idp, "idp")
        if person is not None:
            self._person = read_text(person, "person")
        elif options.get("store") is not None:
            raise ValueError(
                "store= needs person=, such as the `sub` of the ID token: people who share a store"
                " must not share tokens"
            )
        self._provider = ClientIdentity(
            client_id=idp_client_id or client_id, client_secret=idp_client_secret, issuer=idp
        )
        self._idp = idp
        self._id_token = check_source(id_token, "id_token")

    async def _prove(self, request: GrantRequest) -> TokenParams:
        # A URL of the configuration: it may well be in the network of the company.
        fetcher = self._fetcher or HTTPFetcher()
        provider = await issuer_metadata(self._idp, fetcher)
        params = {
            "grant_type": _EXCHANGE,
            "requested_token_type": _ID_JAG,
            "subject_token": await read_source(self._id_token),
            "subject_token_type": _IDENTITY,
            "audience": request.found.issuer.issuer,
            "resource": request.found.resource or request.server.url,
            "scope": " ".join(request.scopes),
        }
        client = cast(ClientRegistration, self._provider.known(provider))
        given = await TokenClient(fetcher).exchange(provider.token_endpoint, params, client=client)
        if given.get("issued_token_type") != _ID_JAG:
            raise AuthError(f"{self._idp} gave no ID-JAG, but {given.get('issued_token_type')!r}")
        return {"grant_type": _JWT_BEARER, "assertion": str(given.get("access_token", ""))}


def check_source(source: TokenSource, name: str) -> TokenSource:
    """Check the source of a token.

    Args:
        source: The source.
        name: The name of the option, for the message.

    Raises:
        ValueError: The value is not valid.
    """
    if isinstance(source, Path) or callable(source):
        return source
    return read_text(source, name)


async def read_source(source: TokenSource) -> str:
    """Read a token from its source.

    Args:
        source: The token, its file, or a function.

    Raises:
        AuthError: The file cannot be read, or there is no token.
    """
    found: object = source
    if isinstance(source, Path):
        try:
            found = await trio.to_thread.run_sync(partial(source.read_text, encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise AuthError(f"the token in {source} cannot be read: {error}") from error
    elif callable(source):
        found = source()
        if inspect.isawaitable(found):
            found = await found
    text = found.strip() if isinstance(found, str) else ""
    if not text:
        where = f"in {source}" if isinstance(source, Path) else "where the strategy looks for it"
        raise AuthError(f"there is no token {where}")
    return text
