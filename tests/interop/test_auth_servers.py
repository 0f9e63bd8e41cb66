"""OAuth end to end with other authorization servers: oidc-provider, `mcp` and FastMCP."""

import html
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from noizu_mcp import AuthError, Client, Server, Tool, connect
from noizu_mcp.auth import (
    AuthRequest,
    AuthStrategy,
    BearerAuth,
    ClientCredentials,
    ClientRequest,
    EnterpriseManaged,
    InvalidToken,
    JWTVerifier,
    MemoryStore,
    OAuth,
    Principal,
    PrivateKeyJWT,
    ProtectedServer,
    Refusal,
    TokenVerifier,
)
from noizu_mcp.auth.client import read_challenges
from noizu_mcp.testing import AuthorizationServer, serve_protected

HERE = Path(__file__).parent
PATIENCE = 60
KEY = generate_private_key(SECP256R1())


@contextmanager
def running(command: list[str], **env: str) -> Iterator[str]:
    """Run a program that prints its URL; end it afterwards."""
    environment = {**os.environ, **env}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = process.stdout.readline().strip()
            assert url, process.stderr.read()
            yield url
        finally:
            process.kill()


class Browser:
    """A browser with cookies and a user who logs in and accepts everything.

    Attributes:
        logins: The number of times that it was opened.
    """

    def __init__(self) -> None:
        self.logins = 0

    async def open(self, url: str) -> str:
        """Follow the pages of the login, up to the redirect to the client."""
        self.logins += 1
        site = urlsplit(url).netloc
        async with httpx2.AsyncClient(timeout=PATIENCE) as http:
            answer = await http.get(url)
            while True:
                if answer.is_redirect:
                    place = str(answer.url.join(answer.headers["location"]))
                    if urlsplit(place).netloc != site:
                        return place
                    answer = await http.get(place)
                    continue
                assert answer.status_code == 200, answer.text
                action = re.search(r'<form[^>]* action="([^"]+)"', answer.text)
                assert action is not None, answer.text
                fields = dict(re.findall(r'name="(\w+)"(?: value="([^"]*)")?', answer.text))
                fields = {name: html.unescape(value) or "ada" for name, value in fields.items()}
                answer = await http.post(html.unescape(action[1]), data=fields)


# Servers of `mcp` and FastMCP, which issue their tokens themselves


def serving(package: str, **env: str) -> AbstractContextManager[str]:
    """Serve with another package; yields the URL of the endpoint."""
    for needed in ("mcp", "fastmcp", "uvicorn"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"the package {needed} is not installed")
    return running([sys.executable, str(HERE / "auth_server.py"), package], **env)


@pytest.fixture(scope="module", params=["mcp", "fastmcp"])
def foreign_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of a server of another package."""
    with serving(request.param) as url:
        yield url


async def greet(client: Client) -> str:
    return str((await client.call_tool("greet")).content[0].text)


@pytest.mark.parametrize("version", ["2025-11-25", None])
async def test_a_person_logs_in(foreign_url: str, version: str | None) -> None:
    """Discovery, registration, login and tokens work with the servers of other packages."""
    browser, store = Browser(), MemoryStore()
    for _ in range(2):
        auth = OAuth(open_browser=browser.open, store=store)
        async with connect(foreign_url, auth=auth, version=version) as client:
            assert await greet(client) == "hello"
    assert browser.logins == 1


async def test_a_managed_person() -> None:
    """An ID-JAG of an identity provider is accepted by the authorization server of `mcp`."""
    company = AuthorizationServer("https://idp.example.com")
    company.add_client("assistant")
    key = company.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with serving("mcp", IDP_KEY=key.decode()) as url:
        auth = EnterpriseManaged(
            "assistant",
            "a secret",
            issuer=f"{url.removesuffix('/mcp')}/",
            idp=company.issuer,
            id_token=lambda: company.issue_id_token("assistant"),
            fetcher=company,
        )
        async with connect(url, auth=auth) as client:
            assert await greet(client) == "hello"


# oidc-provider for Node.js, and our own server that trusts it


class Greet(Tool):
    """Say who is calling."""

    def call(self, ctx: Any) -> str:
        return str(ctx.auth.client_id)


class Write(Tool, requires="write"):
    """Needs more scopes than listing tools."""

    def call(self, ctx: Any) -> str:
        return " ".join(sorted(ctx.auth.scopes))


class Docs(Server, name="docs", version="1.0.0"):
    tools = [Greet, Write]


@pytest.fixture(scope="module")
def issuer(node_command: Callable[[str, str], Any]) -> Iterator[str]:
    """Run an authorization server of oidc-provider."""
    command, env = node_command("oidc_provider.mjs", "oidc-provider")
    jwk = jwt.get_algorithm_by_name("ES256").to_jwk(KEY.public_key(), as_dict=True)
    with running(command, **env, SIGNER_JWK=json.dumps(jwk)) as url:
        yield url


class Forgetful(TokenVerifier):
    """Accepts each token a few times, as if it expired soon."""

    def __init__(self, verifier: TokenVerifier) -> None:
        self.seen: Counter[str] = Counter()
        self._verifier = verifier

    async def verify(self, token: str, request: AuthRequest) -> Principal:
        self.seen[token] += 1
        if self.seen[token] > 3:
            raise InvalidToken("it was used too often")
        return await self._verifier.verify(token, request)


def auth_for(issuer: str, url: str) -> BearerAuth:
    verifier = JWTVerifier(
        issuer=issuer, audience=url, jwks_uri=f"{issuer}/jwks", required_claims=()
    )
    return BearerAuth(
        Forgetful(verifier), resource=url, authorization_servers=[issuer], required_scopes=["read"]
    )


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_login_and_step_up(issuer: str, version: str) -> None:
    """A user logs in, and once more when a tool needs another scope; no scope is lost."""
    browser = Browser()
    async with (
        serve_protected(Docs, partial(auth_for, issuer)) as url,
        connect(url, auth=OAuth(open_browser=browser.open), version=version) as client,
    ):
        assert await greet(client)
        assert browser.logins == 1
        result = await client.call_tool("write")
        assert {"read", "write"} <= set(str(result.content[0].text).split())
        assert browser.logins == 2


async def test_refresh_with_rotation(issuer: str) -> None:
    """Tokens are renewed without the user; each refresh token is used once."""
    browser = Browser()
    async with (
        serve_protected(Docs, partial(auth_for, issuer)) as url,
        connect(url, auth=OAuth(open_browser=browser.open)) as client,
    ):
        for _ in range(12):
            assert await greet(client)
    assert browser.logins == 1


async def test_logging_out(issuer: str, caplog: pytest.LogCaptureFixture) -> None:
    """The tokens are revoked at their issuer, and the next client needs a login."""
    browser = Browser()
    auth = OAuth(open_browser=browser.open)
    async with serve_protected(Docs, partial(auth_for, issuer)) as url:
        for _ in range(2):
            async with connect(url, auth=auth) as client:
                assert await greet(client)
            assert await auth.forget(url)
    assert browser.logins == 2
    assert "not revoked" not in caplog.text


def machines(**options: Any) -> dict[str, AuthStrategy]:
    return {
        "secret": ClientCredentials("robot", "a-secret-of-the-robot", **options),
        "key": PrivateKeyJWT("signer", KEY, **options),
    }


@pytest.mark.parametrize("kind", ["secret", "key"])
async def test_machines(issuer: str, kind: str) -> None:
    """A secret and a signed assertion are accepted."""
    async with (
        serve_protected(Docs, partial(auth_for, issuer)) as url,
        connect(url, auth=machines(issuer=issuer)[kind]) as client,
    ):
        assert await greet(client) in ("robot", "signer")


async def test_wrong_secret(issuer: str) -> None:
    """A refusal is one exception with the text of the authorization server."""
    async with serve_protected(Docs, partial(auth_for, issuer)) as url:
        with pytest.raises(AuthError, match="invalid_client"):
            async with connect(url, auth=ClientCredentials("robot", "wrong", issuer=issuer)):
                pass


async def test_proofs_with_nonces(issuer: str) -> None:
    """The token is bound to the key of the client; the server demands a nonce in each proof."""
    async with serve_protected(Docs, partial(auth_for, issuer)) as url:
        async with httpx2.AsyncClient() as http:
            refused = await http.post(url)
        for strategy in machines(issuer=issuer, dpop=True).values():
            credentials = strategy.bind(ProtectedServer(url))
            request = ClientRequest("POST", url)
            challenges = read_challenges(refused.headers)
            assert await credentials.handle(
                Refusal(request=request, status=401, challenges=challenges, headers={})
            )
            header = (await credentials.headers(request))["Authorization"]
            scheme, token = header.split()
            assert scheme == "DPoP"
            assert "jkt" in jwt.decode(token, options={"verify_signature": False})["cnf"]
