"""Authorization: the token of each request, and the documents that tell where to get one.

Loaded with the first application that has `auth`.
"""

from typing import Final

from ....auth import AuthRequest, BearerAuth, Challenge
from ....jsonrpc import INVALID_REQUEST
from ....types import RequireScopes
from ._asgi import JSON, HttpHeader, HttpRefusal, HttpRequest

#: Seconds for which a metadata document may be cached; issuers rarely change.
DOCUMENT_AGE: Final = 3600

_ALLOW: Final[HttpHeader] = (b"allow", b"GET, HEAD")


class Authorization:
    """Authenticates requests with the `BearerAuth` of the application.

    Args:
        auth: Authenticates requests.
        path: The path of the endpoint.
        requires: The scopes that the server requires for every request. The server checks them;
            here they are added to the challenge, so that clients request them at once.

    Raises:
        TypeError: `auth` is not a `BearerAuth`.
        ValueError: `requires` names a scope that clients must not be told to request.
    """

    def __init__(self, auth: BearerAuth, path: str, requires: RequireScopes | None) -> None:
        if not isinstance(auth, BearerAuth):
            raise TypeError(f"auth must be a noizu_mcp.auth.BearerAuth, not {auth!r}")
        self._auth = auth
        self._scopes = () if requires is None else requires.scopes
        documents = auth.metadata_documents(path, self._scopes)
        # The path of a request has no trailing slash.
        self._documents = {each.rstrip("/"): body for each, body in documents.items()}

    @property
    def headers(self) -> tuple[str, ...]:
        """Names of the headers with tokens, in lower case."""
        return self._auth.headers

    def document(self, http: HttpRequest) -> bytes | None:
        """Return the metadata document that a request asks for, or None.

        Clients look at the root of the host (RFC 9728 section 3.1), wherever this application is
        mounted. The route to it may be a mount, which removes a part of the path.
        """
        return self._documents.get(http.path) or self._documents.get(http.whole_path)

    async def serve_document(self, http: HttpRequest, body: bytes) -> None:
        """Answer with the metadata document; needs no token (RFC 9728 section 3).

        Args:
            http: The request.
            body: The document.

        Raises:
            HttpRefusal: The method is not GET or HEAD (405).
        """
        if http.method not in ("GET", "HEAD"):
            text = f"{http.method} is not allowed"
            raise HttpRefusal(405, text, code=INVALID_REQUEST, headers=[_ALLOW])
        age = (b"cache-control", b"max-age=%d" % DOCUMENT_AGE)
        await http.respond(200, body, [JSON, age])

    async def admit(self, http: HttpRequest) -> bool:
        """Authenticate a request, and answer it if it is refused.

        Args:
            http: The request; its `principal` is set.

        Returns:
            True if it is authenticated.
        """
        request = AuthRequest(http.method, http.path, http.scope["headers"], http.client)
        try:
            # For each request: a session is no authentication (security best practices).
            http.principal = await self._auth.authenticate(request, self._scopes)
        except Challenge as challenge:
            await http.respond(challenge.status, challenge.body, challenge.headers)
            return False
        return True
