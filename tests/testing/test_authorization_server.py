"""The authorization server for tests: its endpoints, grants and faults."""

import base64
import hashlib
import json
import sys
import time
from functools import partial
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import jwt
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from noizu_mcp import Server, Tool, connect
from noizu_mcp.auth import (
    AuthRequest,
    Bearer,
    FetchRequest,
    IntrospectionVerifier,
    InvalidToken,
    JWTVerifier,
)
from noizu_mcp.testing import AuthorizationServer, serve_authorization, serve_protected

ISSUER = "https://login.example.com/tenant"
MCP = "https://mcp.example.com/mcp"
BACK = "http://127.0.0.1:4000/callback"
VERIFIER = "a" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode()[:-1]
ANY = AuthRequest("POST", "/mcp")
BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
TYPE = "urn:ietf:params:oauth:token-type:"
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@pytest.fixture
def login():
    made = AuthorizationServer(ISSUER)
    made.add_client("app")
    made.add_client("robot", secret="s3cret")
    return made


async def ask(login, path, form=None, headers=(), *, body=None):
    """Send a form, or read a document; return the status and the JSON of the response."""
    request = FetchRequest(url=f"{login.issuer}/{path}", headers=tuple(headers))
    if form is not None or body is not None:
        sent = urlencode(form).encode() if body is None else body
        kind = "application/x-www-form-urlencoded" if body is None else "application/json"
        headers = (("Content-Type", kind), *headers)
        request = FetchRequest(url=request.url, method="POST", headers=headers, body=sent)
    answer = await login.fetch(request)
    return answer.status, json.loads(answer.body)


def authorize(login, **changed):
    """Let the user approve; return the parameters of the redirect."""
    good = {
        "response_type": "code",
        "client_id": "app",
        "redirect_uri": BACK,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": MCP,
        "scope": "read write",
        "state": "xyz",
    }
    query = urlencode({k: v for k, v in {**good, **changed}.items() if v is not None})
    back = login.open_browser(f"{login.issuer}/authorize?{query}")
    assert back.startswith(good["redirect_uri"])
    return {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}


def redeem(login, code, **changed):
    good = {
        "grant_type": "authorization_code",
        "client_id": "app",
        "code": code,
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
        "resource": MCP,
    }
    return ask(login, "token", {**good, **changed})


def refresh(login, token, **more):
    form = {"grant_type": "refresh_token", "client_id": "app", "refresh_token": token}
    return ask(login, "token", {**form, **more})


def credentials(login, **more):
    form = {"grant_type": "client_credentials", "client_id": "robot", "client_secret": "s3cret"}
    return ask(login, "token", {**form, "resource": MCP, **more})


def verifier(login):
    return JWTVerifier(issuer=login.issuer, audience=MCP, keys=login.public_key)


@pytest.mark.parametrize(
    "place",
    [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
    ],
)
async def test_metadata(login, place):
    """The metadata is at every URL that clients request."""
    answer = await login.fetch(FetchRequest(url=f"https://login.example.com{place}"))

    assert json.loads(answer.body) == login.metadata
    assert login.metadata["issuer"] == ISSUER


@pytest.mark.parametrize("path", ["nothing", "metadata", "token/"])
async def test_other_paths(login, path):
    """Other paths are not found."""
    assert (await ask(login, path))[0] == 404


@pytest.mark.parametrize(("path", "form"), [("token", None), ("jwks", {})])
async def test_other_methods(login, path, form):
    """A token cannot be requested by GET, nor keys by POST."""
    assert (await ask(login, path, form))[0] == 405


async def test_code(login):
    """A code is exchanged for a token that our verifier accepts."""
    found = authorize(login)
    status, given = await redeem(login, found["code"])
    principal = await verifier(login).verify(given["access_token"], ANY)

    assert (found["state"], found["iss"]) == ("xyz", ISSUER)
    assert status == 200
    assert given["scope"] == "read write"
    assert principal.subject == "ada"
    assert principal.client_id == "app"
    assert principal.scopes == {"read", "write"}


async def test_keys_are_published(login):
    """A verifier that fetches the keys accepts the tokens."""
    token = login.issue_token(MCP, scopes=["read"], subject="bob", department="x")
    fetching = JWTVerifier(
        issuer=ISSUER, audience=MCP, jwks_uri=login.metadata["jwks_uri"], fetcher=login
    )
    principal = await fetching.verify(token, ANY)

    assert (principal.subject, principal["department"]) == ("bob", "x")


async def test_claims_of_a_token_can_be_wrong(login):
    """A test can issue an expired token."""
    with pytest.raises(InvalidToken, match="expired"):
        await verifier(login).verify(login.issue_token(MCP, exp=0), ANY)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_verifier": "b" * 43}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:1/"}, "invalid_grant"),
        ({"resource": "https://other.example.com"}, "invalid_target"),
        ({"client_id": "robot", "client_secret": "s3cret"}, "invalid_grant"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
    ],
)
async def test_wrong_redemption(login, changed, error):
    """A code is bound to a client, a verifier, a redirect and a resource."""
    assert (await redeem(login, authorize(login)["code"], **changed))[1]["error"] == error


async def test_a_code_is_used_once(login):
    """The second use of a code is refused."""
    code = authorize(login)["code"]
    await redeem(login, code)

    assert (await redeem(login, code))[1]["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
    ],
)
def test_refused_authorization(login, changed, error):
    """A wrong parameter is reported in the redirect."""
    assert authorize(login, **changed)["error"] == error


def test_the_person_denies():
    """`approve` decides by the parameters; the redirect reports a denial."""
    login = AuthorizationServer(ISSUER, approve=lambda params: "write" not in params["scope"])

    client = "https://app.example.com/client.json"
    assert authorize(login, client_id=client)["error"] == "access_denied"
    assert "code" in authorize(login, client_id=client, scope="read")


def test_unknown_scope():
    """A server with a list of scopes refuses other scopes."""
    login = AuthorizationServer(ISSUER, scopes=["read"])
    login.add_client("app")

    assert login.metadata["scopes_supported"] == ["read"]
    assert authorize(login)["error"] == "invalid_scope"


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"client_id": "nobody"}, "the client is unknown"),
        ({"redirect_uri": "https://evil.example.com/"}, "is not that of the client"),
    ],
)
def test_no_redirect_to_strangers(login, changed, text):
    """A browser is never redirected to an unregistered URL."""
    with pytest.raises(ValueError, match=text):
        authorize(login, **changed)


def test_browser_elsewhere(login):
    """A URL of another authorization server is not opened."""
    with pytest.raises(ValueError, match=r"evil\.example\.com/authorize is not the auth"):
        login.open_browser("https://evil.example.com/authorize?client_id=app")


def test_registered_redirect(login):
    """Only registered redirect URIs are used; their query is kept."""
    uri = "https://app.example.com/back?a=b"
    login.add_client("web", redirect_uris=[uri])
    query = {"response_type": "code", "client_id": "web", "code_challenge": CHALLENGE}
    query |= {"code_challenge_method": "S256", "redirect_uri": uri}
    back = login.open_browser(f"{ISSUER}/authorize?{urlencode(query)}")

    assert back.startswith(f"{uri}&code=")
    with pytest.raises(ValueError, match="not that of the client"):
        authorize(login, client_id="web")


def test_wrong_redirect_parameters(login):
    """A test can change or omit a parameter of the redirect."""
    login.redirect = {"iss": "https://evil.example.com", "state": None}
    found = authorize(login)

    assert found["iss"] == "https://evil.example.com"
    assert "state" not in found


async def test_refresh_rotates(login):
    """Each use of a refresh token returns a new one; an old one revokes all."""
    first = (await redeem(login, authorize(login)["code"]))[1]["refresh_token"]
    second = (await refresh(login, first, scope="read"))[1]
    again = (await refresh(login, second["refresh_token"]))[1]
    wider = (await refresh(login, again["refresh_token"], scope="admin"))[1]

    assert second["scope"] == "read"
    assert again["scope"] == "read write"
    assert wider["error"] == "invalid_scope"
    assert (await refresh(login, first))[1]["error"] == "invalid_grant"
    assert (await refresh(login, again["refresh_token"]))[1]["error"] == "invalid_grant"


async def test_refresh_without_rotation():
    """Without rotation a refresh token is always accepted."""
    login = AuthorizationServer(ISSUER, rotate=False)
    login.add_client("app")
    token = (await redeem(login, authorize(login)["code"]))[1]["refresh_token"]

    for _ in range(2):
        assert (await refresh(login, token))[1]["refresh_token"] == token


async def test_credentials_in_the_form_and_as_basic(login):
    """A client can send its secret in either way."""
    basic = base64.b64encode(b"robot:s3cret").decode()
    form = {"grant_type": "client_credentials", "resource": MCP}
    posted = await credentials(login, scope="read")
    header = await ask(login, "token", form, [("Authorization", f"Basic {basic}")])

    assert posted[1]["scope"] == "read"
    assert header[0] == 200
    assert (await verifier(login).verify(header[1]["access_token"], ANY)).subject == "robot"


@pytest.mark.parametrize("header", ["Basic !", "Basic " + base64.b64encode(b"robot").decode()])
async def test_malformed_basic(login, header):
    """Credentials that are not a pair of id and secret are refused."""
    form = {"grant_type": "client_credentials"}
    status, answer = await ask(login, "token", form, [("Authorization", header)])

    assert (status, answer["error"]) == (401, "invalid_client")


async def test_wrong_secret(login):
    """A wrong secret is refused."""
    assert (await credentials(login, client_secret="other"))[1]["error"] == "invalid_client"


async def test_credentials_need_a_secret(login):
    """A public client cannot use client credentials."""
    answer = await credentials(login, client_id="app")

    assert answer[1]["error"] == "unauthorized_client"


def client_assertion(key, **changed):
    claims = {"iss": "signer", "sub": "signer", "aud": ISSUER, "exp": time.time() + 60}
    return jwt.encode({**claims, **changed}, key, "ES256")


async def test_private_key_jwt(login):
    """A client proves possession of its key."""
    key = generate_private_key(SECP256R1())
    login.add_client("signer", key=key.public_key())
    form = {"grant_type": "client_credentials", "client_assertion_type": ASSERTION}
    good = await ask(login, "token", {**form, "client_assertion": client_assertion(key)})
    wrong = client_assertion(key, aud="https://other.example.com")
    refused = await ask(login, "token", {**form, "client_assertion": wrong})
    unreadable = await ask(login, "token", {**form, "client_assertion": "x"})

    assert good[0] == 200
    assert refused[1]["error"] == unreadable[1]["error"] == "invalid_client"


async def test_assertion_of_a_workload(login):
    """A token of a trusted issuer is exchanged; one of another issuer is not."""
    platform = AuthorizationServer("https://platform.example.com")
    login.trust(platform)
    assertion = platform.issue_id_token(ISSUER, sub="job-7")
    form = {"grant_type": BEARER_GRANT, "client_id": "app", "resource": MCP, "scope": "read"}
    status, given = await ask(login, "token", {**form, "assertion": assertion})
    stranger = AuthorizationServer("https://stranger.example.com").issue_id_token(ISSUER)
    expired = platform.issue_id_token(ISSUER, exp=0)
    refused = [
        (await ask(login, "token", {**form, "assertion": each}))[1]["error_description"]
        for each in (stranger, "x", expired)
    ]

    assert status == 200
    assert (await verifier(login).verify(given["access_token"], ANY)).subject == "job-7"
    assert "'https://stranger.example.com' is not trusted" in refused[0]
    assert "is no JWT" in refused[1]
    assert "expired" in refused[2]


async def test_trust_of_a_key(login):
    """An issuer can be trusted by its name and key."""
    key = generate_private_key(SECP256R1())
    login.trust("https://idp.example.com", key.public_key())
    claims = {"iss": "https://idp.example.com", "sub": "a", "aud": ISSUER, "exp": time.time() + 9}
    form = {"grant_type": BEARER_GRANT, "client_id": "app"}
    form["assertion"] = jwt.encode(claims, key, "ES256")

    assert (await ask(login, "token", form))[0] == 200


async def test_identity_assertion(login):
    """The identity provider turns an ID token into an ID-JAG, which the other server exchanges."""
    provider = AuthorizationServer("https://idp.example.com")
    provider.add_client("robot", secret="s3cret")
    login.trust(provider)
    form = {
        "grant_type": EXCHANGE,
        "client_id": "robot",
        "client_secret": "s3cret",
        "subject_token": provider.issue_id_token("robot"),
        "subject_token_type": f"{TYPE}id_token",
        "requested_token_type": f"{TYPE}id-jag",
        "audience": ISSUER,
        "resource": MCP,
    }
    assertion = (await ask(provider, "token", form))[1]
    second = {**form, "grant_type": BEARER_GRANT, "assertion": assertion["access_token"]}
    given = (await ask(login, "token", second))[1]
    other = (await ask(login, "token", {**second, "client_id": "app"}))[1]
    kinds = (await ask(provider, "token", {**form, "requested_token_type": "x"}))[1]
    silent = (await ask(provider, "token", {**form, "audience": ""}))[1]

    assert jwt.get_unverified_header(assertion["access_token"])["typ"] == "oauth-id-jag+jwt"
    assert assertion["issued_token_type"] == f"{TYPE}id-jag"
    assert (await verifier(login).verify(given["access_token"], ANY)).subject == "ada"
    assert other["error_description"] == "the assertion is for another client"
    assert kinds["error"] == silent["error"] == "invalid_request"


def proof(key, **changed):
    header = {"typ": "dpop+jwt", "jwk": jwt.get_algorithm_by_name("ES256").to_jwk(
        key.public_key(), as_dict=True
    )}  # fmt: skip
    claims = {"htm": "POST", "htu": f"{ISSUER}/token", "iat": int(time.time()), "jti": "1"}
    return jwt.encode({**claims, **changed}, key, "ES256", headers=header)


async def test_dpop(login):
    """A token is bound to the key of the proof; a proof is used once."""
    key = generate_private_key(SECP256R1())
    form = {"grant_type": "client_credentials", "client_id": "robot", "client_secret": "s3cret"}
    first = await ask(login, "token", form, [("DPoP", proof(key))])
    replayed = await ask(login, "token", form, [("DPoP", proof(key))])
    elsewhere = await ask(login, "token", form, [("DPoP", proof(key, jti="2", htu=ISSUER))])
    unreadable = await ask(login, "token", form, [("DPoP", "x")])
    bound = jwt.decode(first[1]["access_token"], options={"verify_signature": False})

    assert first[1]["token_type"] == "DPoP"
    assert len(bound["cnf"]["jkt"]) == 43
    assert [each[1]["error"] for each in (replayed, elsewhere, unreadable)] == (
        ["invalid_dpop_proof"] * 3
    )


async def test_dpop_of_a_refresh(login):
    """Refreshing a bound grant needs a proof with its key."""
    key = generate_private_key(SECP256R1())
    code = authorize(login)["code"]
    form = {"grant_type": "authorization_code", "client_id": "app", "code": code}
    form |= {"redirect_uri": BACK, "code_verifier": VERIFIER, "resource": MCP}
    token = (await ask(login, "token", form, [("DPoP", proof(key))]))[1]["refresh_token"]
    answer = await refresh(login, token)

    assert answer[1]["error_description"] == "the refresh token is bound to another key"


async def test_dpop_nonce():
    """A server that demands nonces sends one in a header, and accepts it."""
    login = AuthorizationServer(ISSUER, dpop_nonces=True)
    login.add_client("robot", secret="s3cret")
    key = generate_private_key(SECP256R1())
    form = {"grant_type": "client_credentials", "client_id": "robot", "client_secret": "s3cret"}
    headers = {"Content-Type": "application/x-www-form-urlencoded", "DPoP": proof(key)}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(login)) as client:
        refused = await client.post(f"{ISSUER}/token", data=form, headers=headers)
        headers["DPoP"] = proof(key, nonce=refused.headers["DPoP-Nonce"])
        given = await client.post(f"{ISSUER}/token", data=form, headers=headers)

    assert refused.json()["error"] == "use_dpop_nonce"
    assert given.json()["token_type"] == "DPoP"


@pytest.mark.parametrize(("method", "has_secret"), [("none", False), ("client_secret_post", True)])
async def test_registration(login, method, has_secret):
    """A client that registers itself is known afterwards."""
    wanted = {"redirect_uris": [BACK], "token_endpoint_auth_method": method}
    status, given = await ask(login, "register", body=json.dumps(wanted).encode())

    assert status == 201
    assert ("client_secret" in given) is has_secret
    assert given["redirect_uris"] == [BACK]
    assert "code" in authorize(login, client_id=given["client_id"])


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"redirect_uris": "x"}', "invalid_redirect_uri"),
        (b"[]", "invalid_request"),
        (b"{", "invalid_request"),
    ],
)
async def test_wrong_registration(login, body, error):
    """A registration without redirect URIs, or that is not an object, is refused."""
    status, answer = await ask(login, "register", body=body)

    assert (status, answer["error"]) == (400, error)


async def test_no_registration():
    """Registration can be disabled."""
    login = AuthorizationServer(ISSUER, registration=False)

    assert "registration_endpoint" not in login.metadata
    assert (await ask(login, "register", body=b"{}"))[0] == 404


async def introspect(login, token):
    form = {"client_id": "robot", "client_secret": "s3cret", "token": token}
    return (await ask(login, "introspect", form))[1]


async def test_introspection(login):
    """An introspecting verifier accepts a token until it is revoked."""
    asking = IntrospectionVerifier(
        login.metadata["introspection_endpoint"],
        client_id="robot",
        client_secret="s3cret",
        issuer=ISSUER,
        audience=MCP,
        cache_ttl=0,
        fetcher=login,
    )
    token = login.issue_token(MCP)

    assert (await asking.verify(token, ANY)).subject == "ada"
    login.revoke_tokens()
    with pytest.raises(InvalidToken, match="not active"):
        await asking.verify(token, ANY)
    assert await introspect(login, "x") == {"active": False}


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
async def test_revocation(login, kind):
    """Revoking a token of either kind ends its grant."""
    given = (await redeem(login, authorize(login)["code"]))[1]
    form = {"client_id": "app", "token": given[kind]}

    assert (await introspect(login, given["access_token"]))["active"] is True
    assert (await ask(login, "revoke", form))[0] == 200
    assert (await introspect(login, given["access_token"]))["active"] is False
    assert (await refresh(login, given["refresh_token"]))[1]["error"] == "invalid_grant"


async def test_faults(login):
    """The next requests to an endpoint fail as the test defines."""
    login.fail("token", status=503, error="temporarily_unavailable", times=2)
    answers = [await credentials(login) for _ in range(3)]

    assert [status for status, _ in answers] == [503, 503, 200]
    assert answers[0][1]["error"] == "temporarily_unavailable"
    assert [each.endpoint for each in login.requests] == ["token"] * 3
    assert login.requests[0].params["client_id"] == "robot"


async def test_hanging(login, autojump_clock):
    """Requests to an endpoint that hangs wait until the test releases them."""
    login.hang("token")
    with trio.move_on_after(10) as patience:
        await credentials(login)
    assert patience.cancelled_caught
    login.resume("token")
    login.resume("token")
    assert (await credentials(login))[0] == 200


def test_unknown_endpoint(login):
    """A fault of an unknown endpoint is a mistake of the test."""
    with pytest.raises(ValueError, match="no endpoint 'tokens'; there are: metadata, authorize"):
        login.fail("tokens")


async def test_tables_are_bounded(login, monkeypatch):
    """A full table drops the oldest grant."""
    monkeypatch.setattr("noizu_mcp.testing._grants.KEPT", 2)
    tokens = [login.issue_token(MCP) for _ in range(3)]

    active = [(await introspect(login, token))["active"] for token in tokens]
    assert active == [False, True, True]


def test_without_pyjwt(monkeypatch):
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, "jwt", None)

    with pytest.raises(ImportError, match=r"pip install 'noizu-mcp\[auth\]'"):
        AuthorizationServer(ISSUER)


class Whoami(Tool):
    """Say who is calling."""

    def call(self, ctx):
        return ctx.auth.subject


class Docs(Server, name="docs", version="1"):
    tools = [Whoami]


@pytest.mark.parametrize("server", [Docs, Docs()])
async def test_served(server):
    """Both servers listen on free ports, and a token of one is valid for the other."""
    async with (
        serve_authorization(subject="eve") as login,
        serve_protected(server, partial(login.auth_for, required_scopes=["read"])) as url,
    ):
        token = login.issue_token(url, scopes=["read"])
        async with connect(url, auth=Bearer(token)) as client:
            result = await client.call_tool("whoami")
        # Requests to other addresses are passed on.
        place = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
        document = await login.fetch(FetchRequest(url=place))
        again = await login.fetch(FetchRequest(url=place))

    assert result.content[0].text == "eve"
    assert json.loads(document.body)["authorization_servers"] == [login.issuer]
    assert again.body == document.body
