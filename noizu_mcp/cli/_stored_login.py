"""The login of a person (`noizu-mcp login`), as the other commands use it."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from .._errors import AuthError

# By the module: what a login needs loads only where there is one.
from ..auth import client
from ..auth.client import ClientRequest, Credentials, ProtectedServer, Refusal
from ..transports import Http

#: The command that logs a person in.
LOGIN: Final = "noizu-mcp login"


class StoredLogin:
    """An `AuthStrategy` that uses the login of a person, and begins none.

    Args:
        given: True if the credentials are in the headers already.
    """

    def __init__(self, *, given: bool = False) -> None:
        self._given = given

    def bind(self, server: ProtectedServer) -> Credentials:
        """Make the credentials of one client; see `AuthStrategy`."""
        store = client.FileStore()
        inner = None
        if not self._given and store.path.exists():
            try:
                again = partial(_ask_to_log_in, server.shown)
                inner = client.OAuth(store=store, open_browser=again).bind(server)
            except ValueError:
                inner = None  # it takes no tokens without TLS
        return _StoredCredentials(inner)


def _ask_to_log_in(shown: str, _url: str) -> None:
    raise AuthError(f"the login has ended, or lacks a scope; repeat: {LOGIN} {shown}")


class _StoredCredentials:
    """The credentials of `StoredLogin`.

    Args:
        inner: The credentials of the login; None without a login.
    """

    def __init__(self, inner: Credentials | None) -> None:
        self._inner = inner

    async def headers(self, request: ClientRequest) -> Mapping[str, str]:
        """Return the header with the token, if there is one."""
        return {} if self._inner is None else await self._inner.headers(request)

    async def handle(self, refusal: Refusal) -> bool:
        """Renew a token that was refused; without one a person must log in first."""
        if self._inner is None or "authorization" not in refusal.sent:
            return False
        return await self._inner.handle(refusal)


async def stored_headers(target: Http) -> Mapping[str, str]:
    """Return the header of the login for a server; empty without one.

    Args:
        target: The server.

    Raises:
        AuthError: The store cannot be used.
    """
    credentials = StoredLogin().bind(ProtectedServer(target.url, target.tls))
    return await credentials.headers(ClientRequest("POST", target.url))
