"""Authorisation as type checkers must see it: verifiers of one's own, and who is calling."""

from collections.abc import Mapping
from typing import Any, assert_type

from noizu_mcp import Context, Server, Tool, connect, mcp, tool
from noizu_mcp.auth import (
    AnyVerifier,
    APIKeyVerifier,
    AuthRequest,
    BearerAuth,
    Challenge,
    CompoundJWTVerifier,
    Fetcher,
    FetchRequest,
    FetchResponse,
    HTTPFetcher,
    InvalidToken,
    JWTVerifier,
    Principal,
    RequireScopes,
    TokenVerifier,
)
from noizu_mcp.transports.http import HttpOptions

URL = "https://mcp.example.com/mcp"


class Tickets(TokenVerifier):
    async def verify(self, token: str, request: AuthRequest) -> Principal:
        if request.values("x-tenant") != ["a"]:
            raise InvalidToken("no tenant")
        return Principal(subject=token, scopes=["read"], claims={"tenant": "a"})


class Fixed:
    async def fetch(self, request: FetchRequest) -> FetchResponse:
        return FetchResponse(200, b"{}")


fetchers: list[Fetcher] = [Fixed(), HTTPFetcher(timeout=1.0)]


async def in_use(key: str) -> bool:
    return key == "k1"


verifiers = AnyVerifier(
    Tickets(),
    APIKeyVerifier({"a-key-of-some-length": Principal(subject="ci")}, header="X-API-Key"),
    JWTVerifier(issuer=URL, audience=[URL], jwks_uri=URL, fetcher=fetchers[0]),
    CompoundJWTVerifier(lambda: b"x" * 32, check_api_key=in_use, issuer=URL, audience=URL),
    CompoundJWTVerifier("x" * 32, check_api_key=lambda key: True, issuer=URL, audience=URL),
)
auth = BearerAuth(
    verifiers,
    resource=URL,
    authorization_servers=[URL],
    required_scopes=RequireScopes("read", hierarchy={"admin": ["read"]}),
)


async def handle(headers: list[tuple[bytes, bytes]]) -> tuple[int, list[tuple[bytes, bytes]]]:
    request = AuthRequest("POST", "/mcp", headers, "192.0.2.1")
    try:
        who = await auth.authenticate(request)
    except Challenge as challenge:
        assert_type(challenge.body, bytes)
        return challenge.status, challenge.headers
    assert_type(who, Principal)
    assert_type(who.claims, Mapping[str, Any])
    assert_type(who.scopes, frozenset[str])
    assert_type(auth.metadata_documents("/mcp"), dict[str, bytes])
    return 200, []


options = HttpOptions(auth=auth)


class Scoped(Tool, requires=RequireScopes("read")):
    async def call(self, args: dict[str, Any], ctx: Context) -> str:
        assert_type(ctx.auth, Principal | None)
        RequireScopes("write").check(ctx.auth)
        return "done"


registrations = (
    tool(Scoped, requires=None),
    tool(Scoped, name="other", requires=("read", "write")),
    tool(Scoped, name="third", requires="read"),
)
mark = mcp(requires=["read"])


class ScopedServer(Server, name="scoped", version="1", requires="read"):
    tools = [Scoped]


async def use() -> None:
    async with connect(ScopedServer, principal=Principal(subject="ada")) as client:
        await client.call_tool("scoped")
