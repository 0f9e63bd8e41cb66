"""`OAuth`: a person logs in with a browser, and the client keeps the tokens."""

import inspect
import webbrowser
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import attrs
import trio

from ..._errors import AuthError
from ..._groups import single_failure
from ..._log import logger
from .._configuration import check_url, is_loopback, read_count, read_seconds, read_text
from .._fetch import Fetcher
from ._client_registration import (
    ClientIdentity,
    read_scopes,
    register,
    registration_key,
    stored_registration,
)
from ._code_flow import CodeFlow, check_login
from ._credentials import ClientFetcher, GrantRequest, TokenCredentials
from ._redirect import RedirectListener, open_listener
from ._stores import CredentialStore, MemoryStore
from ._strategy import Credentials, ProtectedServer
from ._tokens import ClientRegistration, Login, TokenClient, TokenRefused, union

#: Seconds for a person to log in.
LOGIN_TIMEOUT: Final = 300.0
_OFFLINE: Final = "offline_access"

#: The answer of a login: the URL that the browser was sent to, or the code and the state.
RedirectAnswer = str | tuple[str, str]
#: Opens a URL for the person; it may return the answer.
OpenBrowser = Callable[[str], "RedirectAnswer | bool | Awaitable[RedirectAnswer | None] | None"]


@attrs.frozen(eq=False)
class OAuth:
    """An `AuthStrategy` for people: OAuth 2.1 with a browser, as MCP specifies it.

    A person logs in when the server requires a token for the first time, and when it requires more
    scopes. Tokens are renewed without the person if the authorization server allows this. One
    object can be used for any number of servers; each has separate tokens.

    Args:
        scopes: The scopes to request, in addition to scopes of challenges; None for the scopes that
            the server lists, and `offline_access` if the authorization server supports it.
        client_id: The client id of this program at the authorization server; None to let it
            register itself.
        client_secret: Its secret, if it has one; needs `issuer`.
        issuer: The only authorization server that is used, exactly as it names itself; None for
            the first one in the metadata of a server.
        client_metadata_url: The URL of the metadata document of this program, for authorization
            servers that support client id metadata documents.
        client_name: The name that the login page shows.
        store: Stores tokens and registrations: `MemoryStore()`, `FileStore(path)` or your own.
        redirect_port: The loopback port that receives the answer of the browser; 0 for any.
        redirect_uri: The redirect URI, if the authorization server requires a fixed one. On a
            loopback address the program listens; for any other `open_browser` returns the answer.
        open_browser: Called with the URL of the login, in a thread unless it is async. It may
            return the URL that the browser was sent to, or its `(code, state)`.
        timeout: Seconds for the person to log in.
        dpop: True to bind the tokens to a key (RFC 9449), so that stolen tokens are useless. An
            authorization server without DPoP is refused. Needs PyJWT.
        allow_private: True to let a server on the internet name authorization servers at private
            addresses.
        fetcher: Sends the requests for metadata and tokens; by default httpx2, without redirects,
            with limits of time and size.

    Raises:
        ValueError: An option is not valid.
    """

    scopes: tuple[str, ...] | None = attrs.field(default=None, converter=read_scopes)
    client_id: str | None = attrs.field(default=None, kw_only=True)
    client_secret: str | None = attrs.field(default=None, kw_only=True, repr=False)
    issuer: str | None = attrs.field(default=None, kw_only=True)
    client_metadata_url: str | None = attrs.field(default=None, kw_only=True)
    client_name: str = attrs.field(default="noizu-mcp", kw_only=True)
    store: CredentialStore = attrs.field(factory=MemoryStore, kw_only=True)
    redirect_port: int = attrs.field(default=0, kw_only=True)
    redirect_uri: str | None = attrs.field(default=None, kw_only=True)
    open_browser: OpenBrowser = attrs.field(default=webbrowser.open, kw_only=True, repr=False)
    timeout: float = attrs.field(default=LOGIN_TIMEOUT, kw_only=True)
    dpop: bool = attrs.field(default=False, kw_only=True)
    allow_private: bool = attrs.field(default=False, kw_only=True)
    fetcher: Fetcher | None = attrs.field(default=None, kw_only=True, repr=False)

    def __attrs_post_init__(self) -> None:
        read_seconds(self.timeout, "timeout")
        read_text(self.client_name, "client_name")
        if read_count(self.redirect_port, "redirect_port", zero=True) > 65535:
            raise ValueError(f"redirect_port must be a port, not {self.redirect_port!r}")
        if self.redirect_uri is not None:
            check_url(self.redirect_uri, "redirect_uri")
        if self.client_metadata_url is not None:
            parts = check_url(self.client_metadata_url, "client_metadata_url")
            # 2025-11-25 `basic/authorization`, "Client ID Metadata Documents".
            if parts.scheme != "https" or parts.path in ("", "/"):
                raise ValueError("client_metadata_url must be https, with a path")
        self._identify()

    def bind(self, server: ProtectedServer) -> Credentials:
        """Make the credentials of one client; see `AuthStrategy`.

        Args:
            server: The server.

        Raises:
            ValueError: The URL is neither https nor that of a loopback address.
        """
        check_url(server.url, "the URL of the server")
        return TokenCredentials(
            server,
            _CodeGrant(self, self._identify()).obtain,
            scopes=self.scopes,
            store=self.store,
            key=_login_key(server.url),
            client_id=self.client_id,
            issuer=self.issuer,
            fetcher=self._fetcher_for(server),
            dpop=self.dpop,
        )

    async def forget(self, url: str) -> bool:
        """Log out: revoke the tokens for a server, if its issuer can, and delete them.

        Args:
            url: The URL of the server.

        Returns:
            True if there were tokens.

        Raises:
            AuthError: The store cannot be used.
        """
        key = _login_key(url)
        async with self.store.lock(key):
            login = Login.from_json(await self.store.load(key))
            await self.store.delete(key)
        if login is None:
            return False
        try:
            await TokenClient(self._fetcher_for(ProtectedServer(url))).revoke(login)
        except AuthError as error:
            # They are deleted here all the same.
            logger.warning("the tokens for %s were not revoked: %s", url.partition("?")[0], error)
        return True

    def _identify(self) -> ClientIdentity:
        """Describe this program for authorization servers.

        Raises:
            ValueError: An option is malformed.
        """
        return ClientIdentity(
            client_id=self.client_id,
            client_secret=self.client_secret,
            issuer=self.issuer,
            client_metadata_url=self.client_metadata_url,
            client_name=self.client_name,
        )

    def _fetcher_for(self, server: ProtectedServer) -> Fetcher:
        return self.fetcher or ClientFetcher(server, allow_private=self.allow_private)


def _login_key(url: str) -> str:
    """Return the key of the tokens for a server in a store."""
    return f"login {url}"


class _CodeGrant:
    """Gets tokens by asking a person; see `Grant`.

    Args:
        options: The strategy.
        identity: The identity of the program.
    """

    def __init__(self, options: OAuth, identity: ClientIdentity) -> None:
        self._options = options
        self._identity = identity

    async def obtain(self, request: GrantRequest) -> Login:
        """Ask a person to log in."""
        issuer, scopes = request.found.issuer, request.scopes
        check_login(issuer)
        if self._options.scopes is None and _OFFLINE in issuer.scopes_supported:
            scopes = union(scopes, (_OFFLINE,))
        stored = await stored_registration(issuer, request.store)
        async with self._listen(stored) as listener:
            uri = self._options.redirect_uri or listener.uri
            client = await self._find_client(request, stored, uri, scopes)
            flow = CodeFlow(request.found, client, uri, scopes)
            try:
                with request.pause():
                    answer = await self._ask_person(flow, listener)
                return await request.redeem(flow.token_params(flow.code_of(answer)), client, scopes)
            except (TokenRefused, LoginTimeout):
                # The issuer may have forgotten the client: the next login registers again.
                await request.store.delete(registration_key(issuer.issuer))
                raise

    def _listen(
        self, stored: ClientRegistration | None
    ) -> AbstractAsyncContextManager[RedirectListener]:
        uri = self._options.redirect_uri
        if uri is not None and not is_loopback(urlsplit(uri).hostname or ""):
            return nullcontext(RedirectListener([], uri))
        # Many authorization servers compare the port, too, so that of the registration is best.
        earlier = urlsplit(stored.redirect_uri).port if stored is not None else None
        return open_listener(uri or "", self._options.redirect_port, earlier)

    async def _find_client(
        self,
        request: GrantRequest,
        stored: ClientRegistration | None,
        uri: str,
        scopes: tuple[str, ...],
    ) -> ClientRegistration:
        issuer, before = request.found.issuer, request.previous
        used = before is not None and before.client.client_id == self._identity.client_id
        known = self._identity.known(issuer, before.issuer if before and used else None)
        if known is not None:
            return known
        registered = () if stored is None else stored.scopes
        # A client that is registered for some scopes may not get others.
        if stored is not None and stored.redirect_uri == uri and set(scopes) <= set(registered):
            return stored
        native = is_loopback(urlsplit(uri).hostname or "")
        wanted = union(registered, scopes)
        return await register(self._identity, request, uri, wanted, native=native)

    async def _ask_person(self, flow: CodeFlow, listener: RedirectListener) -> Mapping[str, str]:
        """Open the browser, and return the parameters of its answer.

        Raises:
            LoginTimeout: There was none in time.
            AuthError: There can be none.
            Exception: Raised by `open_browser`.
        """
        with trio.move_on_after(self._options.timeout), single_failure():
            # Concurrently: some browsers return when they are closed.
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._browse, flow.url, listener)
                answer = await listener.wait(flow.is_answer)
                nursery.cancel_scope.cancel()
            return answer
        raise LoginTimeout(
            f"no one logged in at {urlsplit(flow.url).hostname} within"
            f" {self._options.timeout:g} s; try again"
        )

    async def _browse(self, url: str, listener: RedirectListener) -> None:
        function = self._options.open_browser
        if inspect.iscoroutinefunction(function):
            found = await function(url)
        else:
            # In a tuple, since trio refuses functions that return a coroutine.
            (found,) = await trio.to_thread.run_sync(
                lambda: (function(url),), abandon_on_cancel=True
            )
            found = await found if inspect.isawaitable(found) else found
        if isinstance(found, str):
            listener.take(dict(parse_qsl(urlsplit(found).query, keep_blank_values=True)))
        elif isinstance(found, tuple):
            listener.take({"code": found[0], "state": found[1]})
        elif not listener.is_open:
            raise AuthError(f"open_browser must return the answer that went to {listener.uri}")
        elif found is False:
            logger.warning("no browser could be opened; to log in, open %s", url)


class LoginTimeout(AuthError):
    """The login was not completed in time."""
