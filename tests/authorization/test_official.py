"""The official Python client with a protected server: a fixed token, and OAuth with step-up."""

import base64
import hashlib
import json
import time
from functools import partial
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from jwt.algorithms import ECAlgorithm
from mcp import Client, MCPError
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from noizu_mcp.auth import BearerAuth, JWTVerifier, StaticVerifier
from noizu_mcp.transports.http import HttpLimits, serve_asgi, serve_http

LIMITS = HttpLimits(grace=0.1)
CALLBACK = "http://127.0.0.1:9/callback"


class Issuer:
    """A small authorization server; every user is Ada, and gets the requested scopes."""

    def __init__(self):
        self.url = ""
        self.granted = []
        self._key = generate_private_key(SECP256R1())
        self._codes = {}

    def approve(self, url):
        """Approve as Ada would in her browser; return the code and the state."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self._codes)}"
        self._codes[code] = asked
        return code, asked["state"]

    def metadata(self, _):
        return 200, {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def keys(self, _):
        key = ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return 200, {"keys": [{**key, "kid": "1", "alg": "ES256", "use": "sig"}]}

    def register(self, body):
        return 201, {**json.loads(body), "client_id": "the-client"}

    def token(self, body):
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        asked = self._codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        self.granted.append(asked["scope"])
        claims = {
            "iss": self.url,
            "aud": form["resource"],
            "sub": "ada",
            "client_id": form["client_id"],
            "exp": time.time() + 600,
            "scope": asked["scope"],
        }
        token = jwt.encode(claims, self._key, "ES256", {"kid": "1"})
        return 200, {"access_token": token, "token_type": "Bearer", "scope": asked["scope"]}

    async def __call__(self, scope, receive, send):
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        answers = {
            "/.well-known/oauth-authorization-server": self.metadata,
            "/keys": self.keys,
            "/register": self.register,
            "/token": self.token,
        }
        found = answers.get(scope["path"], lambda _: (404, {}))
        status, document = found(body + message["body"])
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(document).encode()})


class Memory:
    """Stores the tokens and the registration of the client."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


def official(url, mode, **options):
    """Make the official client, with its own HTTP client."""
    http_client = httpx2.AsyncClient(timeout=10, **options)
    return http_client, Client(streamable_http_client(url, http_client=http_client), mode=mode)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_fixed_token(docs, tokens, mode):
    """It is sent in the header, and allows what its scopes allow."""
    async with trio.open_nursery() as nursery:
        auth = BearerAuth(
            StaticVerifier(tokens), resource="http://127.0.0.1/mcp", authorization_servers=()
        )
        serve = partial(serve_http, docs, port=0, auth=auth, limits=LIMITS)
        host = await nursery.start(serve)
        url, headers = f"{host.urls[0]}/mcp", {"Authorization": "Bearer ada-reads"}
        http_client, client = official(url, mode, headers=headers)
        async with http_client, client:
            result = await client.call_tool("whoami", {})
            with pytest.raises(MCPError) as caught:
                await client.call_tool("write", {})
        host.stop()

    assert result.content[0].text == "ada"
    assert caught.value.error.code == -31403
    assert caught.value.error.message == "Insufficient scope: tools/call needs docs:read docs:write"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_oauth_with_step_up(docs, mode, tmp_path):
    """From the URL alone the client finds document and issuer, gets a token, and one with more."""
    issuer = Issuer()
    visits = []

    async def open_browser(url):
        visits.append(url)

    async def come_back():
        code, state = issuer.approve(visits[-1])
        return AuthorizationCodeResult(code=code, state=state, iss=issuer.url)

    async with trio.open_nursery() as nursery:
        login = await nursery.start(partial(serve_asgi, issuer, port=0))
        issuer.url = login.urls[0]
        # The URL of the server must be known before it listens, so the port is chosen first.
        url, path = "http://localhost/mcp", str(tmp_path / "mcp")
        verifier = JWTVerifier(issuer=issuer.url, audience=url, jwks_uri=f"{issuer.url}/keys")
        auth = BearerAuth(
            verifier,
            resource=url,
            authorization_servers=[issuer.url],
            required_scopes=["docs:read"],
        )
        serve = partial(serve_http, docs, auth=auth, limits=LIMITS, uds=path)
        host = await nursery.start(serve)
        metadata = OAuthClientMetadata(client_name="test", redirect_uris=[CALLBACK])
        provider = OAuthClientProvider(url, metadata, Memory(), open_browser, come_back)
        mounts = {"http://localhost": httpx2.AsyncHTTPTransport(uds=path)}
        http_client, client = official(url, mode, auth=provider, mounts=mounts)
        async with http_client, client:
            who = await client.call_tool("whoami", {})
            written = await client.call_tool("write", {})
        host.stop()
        login.stop()

    assert (who.content[0].text, written.content[0].text) == ("ada", "written")
    assert [sorted(scope.split()) for scope in issuer.granted] == [
        ["docs:read"],
        ["docs:read", "docs:write"],
    ]
