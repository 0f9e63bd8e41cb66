"""Authorization as type checkers must see it: own verifiers, and callers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, assert_type

from noizu_mcp import Context, Server, Tool, connect, mcp, tool
from noizu_mcp.auth import (
    AnyVerifier,
    APIKeyVerifier,
    AuthChallenge,
    AuthRequest,
    AuthStrategy,
    Bearer,
    BearerAuth,
    Challenge,
    ClientCredentials,
    ClientRequest,
    CompoundJWTVerifier,
    CredentialStore,
    EnterpriseManaged,
    Fetcher,
    FetchRequest,
    FetchResponse,
    FileStore,
    HTTPFetcher,
    InvalidToken,
    JWTVerifier,
    KeyringStore,
    MemoryStore,
    OAuth,
    Principal,
    PrivateKeyJWT,
    ProtectedServer,
    Refusal,
    RequireScopes,
    TokenVerifier,
    WorkloadIdentity,
)
from noizu_mcp.testing import AuthorizationServer, serve_authorization, serve_protected
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


class OwnStore:
    async def load(self, key: str) -> dict[str, Any] | None:
        return None

    async def save(self, key: str, value: dict[str, Any]) -> None: ...

    async def delete(self, key: str) -> None: ...

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        yield


class OwnStrategy:
    def bind(self, server: ProtectedServer) -> "OwnStrategy":
        return self

    async def headers(self, request: ClientRequest) -> dict[str, str]:
        return {"x-key": request.method}

    async def handle(self, refusal: Refusal) -> bool:
        with refusal.pause():
            assert_type(refusal.challenge(), AuthChallenge | None)
        return False


async def open_browser(url: str) -> str:
    return url


async def fetch_token() -> str:
    return "token"


async def test_kit() -> None:
    async with serve_authorization(subject="ada") as login:
        assert_type(login, AuthorizationServer)
        assert_type(login.open_browser("https://x"), str)
        async with serve_protected(ScopedServer, login.auth_for) as url:
            assert_type(url, str)


stores: list[CredentialStore] = [OwnStore(), MemoryStore(), FileStore("x"), KeyringStore()]
strategies: list[AuthStrategy] = [
    OAuth(),
    OAuth("a b", store=OwnStore(), open_browser=open_browser),
    OAuth(["a"], open_browser=lambda url: ("code", "state"), timeout=5),
    OAuth(client_id="me", client_secret="s", issuer="https://x", redirect_port=80),
    Bearer("token"),
    ClientCredentials("me", "s", scopes="a b", issuer="https://x", dpop=True),
    PrivateKeyJWT("me", b"pem", algorithm="ES256", key_id="1", store=OwnStore()),
    WorkloadIdentity(Path("token"), client_id="me", issuer="https://x", scopes=["a"]),
    WorkloadIdentity(lambda: "token", client_id="me", client_secret="s", issuer="https://x"),
    EnterpriseManaged("me", idp="https://idp", id_token=fetch_token, allow_private=True),
    OwnStrategy(),
]


async def log_in() -> None:
    async with connect("https://x", auth=strategies[0]):
        pass
    assert_type(await OAuth().forget("https://x"), bool)
