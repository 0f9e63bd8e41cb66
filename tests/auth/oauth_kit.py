"""A simulation for client strategies: an MCP server, authorization servers, and a user."""

import json
from urllib.parse import parse_qsl, urlsplit

from noizu_mcp.auth import (
    ClientRequest,
    FetchError,
    FetchResponse,
    OAuth,
    ProtectedServer,
    Refusal,
)
from noizu_mcp.auth.client import read_challenges
from noizu_mcp.testing import AuthorizationServer

MCP = "https://api.example.com/mcp"
LOGIN = "https://login.example.com"
RESOURCE = "https://api.example.com/.well-known/oauth-protected-resource"
REQUEST = ClientRequest("POST", MCP)
SERVER = ProtectedServer(MCP)


class World:
    """A `Fetcher` that knows one MCP server and some authorization servers.

    Attributes:
        login: The first authorization server.
        logins: All of them.
        resource: The resource metadata of the MCP server, or None without metadata.
        documents: URL → (status, document), which override everything else.
        asked: The requested URLs, in order.
        sent: The parameters of the requests to authorization servers, in order.
        down: True if every request fails.
    """

    def __init__(self, **options):
        self.login = AuthorizationServer(LOGIN, **options)
        self.logins = [self.login]
        self.resource = {"resource": MCP, "authorization_servers": [LOGIN]}
        self.documents = {}
        self.asked = []
        self.requests = []
        self.down = False

    async def fetch(self, request):
        self.asked.append(request.url)
        self.requests.append(request)
        if self.down:
            raise FetchError("no answer within 5 s")
        if found := self.documents.get(request.url):
            status, document = found
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            return FetchResponse(status, body)
        if request.url == f"{RESOURCE}/mcp" and self.resource is not None:
            return FetchResponse(200, json.dumps(self.resource).encode())
        for login in self.logins:
            if request.url.startswith(login.issuer):
                return await login.fetch(request)
            parts = urlsplit(login.issuer)
            if request.url.startswith(f"{parts.scheme}://{parts.netloc}/.well-known/"):
                return await login.fetch(request)
        return FetchResponse(404)

    def open_browser(self, url):
        """Log in at the authorization server of the URL."""
        self.opened = dict(parse_qsl(urlsplit(url).query))
        login = next(each for each in self.logins if url.startswith(each.issuer))
        return login.open_browser(url)

    def oauth(self, *args, **options):
        """Make a strategy for this simulation."""
        return OAuth(*args, **{"fetcher": self, "open_browser": self.open_browser, **options})

    def of(self, endpoint, login=None):
        """List the parameters of the requests to an endpoint."""
        requests = (login or self.login).requests
        return [each.params for each in requests if each.endpoint == endpoint]


def refusal(challenge="Bearer", status=401, sent=None, **more):
    """Make the refusal of a request with the headers `sent`."""
    headers = {"www-authenticate": challenge}
    sent = {name.lower(): value for name, value in (sent or {}).items()}
    return Refusal(
        request=REQUEST,
        status=status,
        headers=headers,
        challenges=read_challenges(headers),
        sent=sent,
        **more,
    )


async def logged_in(world, **options):
    """Log in, and return the credentials with the headers that they make."""
    credentials = world.oauth(**options).bind(SERVER)
    assert await credentials.headers(REQUEST) == {}
    assert await credentials.handle(refusal())
    return credentials, await credentials.headers(REQUEST)
