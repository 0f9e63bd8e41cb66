"""Strategies for machines: secrets, keys, workloads, and users whom a company has logged in."""

import sys
from functools import partial
from urllib.parse import urlsplit

import attrs
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import dsa

from noizu_mcp import AuthError, Server, Tool, connect
from noizu_mcp.auth import (
    Bearer,
    ClientCredentials,
    EnterpriseManaged,
    FetchResponse,
    MemoryStore,
    PrivateKeyJWT,
    ProtectedServer,
    WorkloadIdentity,
)
from noizu_mcp.auth.client import RequestAuth
from noizu_mcp.testing import AuthorizationServer, serve_authorization, serve_protected

from .issuer import private, private_pem, public
from .oauth_kit import LOGIN, MCP, REQUEST, SERVER, World, refusal

RESOURCE = "/.well-known/oauth-protected-resource"
SCOPED = 'Bearer scope="read"'


@pytest.fixture
def world():
    made = World()
    made.login.add_client("robot", secret="s3cret")
    made.login.add_client("signer", key=public("p256"))
    made.login.add_client("job")
    return made


def robot(world, **options):
    good = {"client_id": "robot", "client_secret": "s3cret", "issuer": LOGIN, "fetcher": world}
    return ClientCredentials(**{**good, **options})


async def token_of(strategy, challenge=SCOPED):
    """Let a strategy handle a refusal; return the token of its next request."""
    credentials = strategy.bind(SERVER)
    assert await credentials.headers(REQUEST) == {}
    assert await credentials.handle(refusal(challenge))
    header = (await credentials.headers(REQUEST))["Authorization"]
    return jwt.decode(header.removeprefix("Bearer "), options={"verify_signature": False})


async def test_a_secret(world):
    """A machine gets a token for the server and the requested scopes."""
    claims = await token_of(robot(world))
    (form,) = world.of("token")

    assert (claims["sub"], claims["aud"], claims["scope"]) == ("robot", MCP, "read")
    assert form == {
        "grant_type": "client_credentials",
        "client_id": "robot",
        "scope": "read",
        "resource": MCP,
    }


async def test_a_secret_in_the_form(world):
    """The secret is sent in the form if the authorization server does not support Basic."""
    world.login.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    await token_of(robot(world))

    assert world.of("token")[0]["client_secret"] == "s3cret"


@pytest.mark.parametrize("scopes", [["write", "list"], "write list"])
async def test_scopes_of_the_program(world, scopes):
    """The scopes of the strategy are requested in addition to the scopes of the server."""
    assert (await token_of(robot(world, scopes=scopes)))["scope"] == "write list read"


async def test_a_store_is_shared(world):
    """A second client with the store has the token at once; another machine does not."""
    store = MemoryStore()
    first = robot(world, store=store).bind(SERVER)
    await first.handle(refusal())
    second = robot(world, store=store).bind(SERVER)
    world.login.add_client("other", secret="x")
    other = robot(world, client_id="other", client_secret="x", store=store).bind(SERVER)

    assert await second.headers(REQUEST) == await first.headers(REQUEST) != {}
    assert await other.headers(REQUEST) == {}


async def test_a_token_that_ended(world, monkeypatch):
    """A machine requests another token, without a refresh token."""
    credentials = robot(world).bind(SERVER)
    await credentials.handle(refusal())
    first = await credentials.headers(REQUEST)
    assert await credentials.handle(refusal(sent=first))
    second = await credentials.headers(REQUEST)

    assert first != second
    assert [form["grant_type"] for form in world.of("token")] == ["client_credentials"] * 2


async def test_the_issuer_is_fixed(world):
    """Another authorization server than the configured issuer gets no request."""
    strategy = robot(world, issuer="https://elsewhere.example.com")

    with pytest.raises(AuthError, match=r"credentials belong to https://elsewhere\.example\.com"):
        await token_of(strategy)
    assert {urlsplit(each).path for each in world.asked} == {f"{RESOURCE}/mcp"}


async def test_the_issuer_of_a_server_of_2025_03_26(world):
    """A server without metadata is its own authorization server: no other secret is sent to it."""
    world.resource = None
    world.logins.append(AuthorizationServer(SERVER.origin))

    with pytest.raises(AuthError, match=f"{SERVER.origin}, but the credentials belong to {LOGIN}"):
        await token_of(robot(world))
    assert {urlsplit(each).path for each in world.asked} == {RESOURCE, f"{RESOURCE}/mcp"}


async def test_the_issuer_is_found_among_several(world):
    """The issuer may be any of the server's authorization servers."""
    world.resource["authorization_servers"] = ["https://evil.example.com", LOGIN]

    assert (await token_of(robot(world)))["sub"] == "robot"


async def test_tokens_of_another_issuer_are_not_used(world):
    """Tokens in a store from before a change of the configuration are not used."""
    store = MemoryStore()
    await robot(world, store=store).bind(SERVER).handle(refusal())

    moved = robot(world, issuer="https://new.example.com", store=store).bind(SERVER)

    assert await moved.headers(REQUEST) == {}


async def test_the_first_issuer_stays(world):
    """Without a configured issuer the issuer of the first token is the only one."""
    credentials = PrivateKeyJWT("signer", private("p256"), fetcher=world).bind(SERVER)
    await credentials.handle(refusal())
    sent = await credentials.headers(REQUEST)
    world.logins.append(AuthorizationServer("https://evil.example.com"))
    world.resource["authorization_servers"] = ["https://evil.example.com"]

    with pytest.raises(AuthError, match=f"belongs to {LOGIN}"):
        await credentials.handle(refusal(sent=sent))
    assert world.of("token", world.logins[1]) == []


async def test_a_refusal_is_final(world):
    """A wrong secret is one exception, with the error text of the authorization server."""
    strategy = robot(world, client_secret="wrong")

    with pytest.raises(AuthError, match="refused: invalid_client: the client is refused"):
        await token_of(strategy)
    assert len(world.of("token")) == 1


@pytest.mark.parametrize("form", ["pem", "text", "object"])
async def test_a_key(world, form):
    """A machine signs an assertion for the issuer; each is used once."""
    key = {"pem": private_pem("p256"), "text": private_pem("p256").decode()}.get(form)
    key = private("p256") if key is None else key
    await token_of(PrivateKeyJWT("signer", key, key_id="k1", fetcher=world))
    (sent,) = world.of("token")
    claims = jwt.decode(sent["client_assertion"], public("p256"), ["ES256"], audience=LOGIN)

    assert (claims["iss"], claims["sub"]) == ("signer", "signer")
    assert claims["exp"] - claims["iat"] == 60
    assert jwt.get_unverified_header(sent["client_assertion"])["kid"] == "k1"
    assert sent["client_id"] == "signer"


async def test_a_key_without_support(world):
    """An authorization server that lists other methods gets no request."""
    world.login.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]

    with pytest.raises(AuthError, match="takes no private_key_jwt, but client_secret_basic"):
        await token_of(PrivateKeyJWT("signer", private("p256"), fetcher=world))


@pytest.mark.parametrize(
    ("kind", "algorithm", "expected"),
    [
        ("p256", None, "ES256"),
        ("p384", None, "ES384"),
        ("rsa", None, "RS256"),
        ("rsa", "PS256", "PS256"),
        ("ed", None, "EdDSA"),
    ],
)
async def test_algorithm_of_a_key(world, kind, algorithm, expected):
    """A key has a default algorithm; another matching one may be set."""
    world.login.add_client("own", key=public(kind))
    await token_of(PrivateKeyJWT("own", private(kind), algorithm=algorithm, fetcher=world))
    (form,) = world.of("token")

    assert jwt.get_unverified_header(form["client_assertion"])["alg"] == expected


@pytest.mark.parametrize(
    ("key", "algorithm", "text"),
    [
        ("not a key", None, "a private key in PEM, without a password"),
        (private("p256"), "RS256", "the key is for ES256, not 'RS256'"),
        (private("k1"), None, "RSA, P-256, P-384, P-521 or Ed25519"),
        (public("p256"), None, "must be a private key"),
        (dsa.generate_private_key(1024), None, "must be a private key"),
    ],
)
def test_wrong_key(key, algorithm, text):
    """A key that cannot sign is refused when the strategy is made, and not shown."""
    with pytest.raises(ValueError, match=text):
        PrivateKeyJWT("signer", key, algorithm=algorithm)


def test_without_pyjwt(monkeypatch):
    """The error names the required extra."""
    monkeypatch.setitem(sys.modules, "noizu_mcp.auth.client._signing", None)
    monkeypatch.delattr("noizu_mcp.auth.client._signing", raising=False)

    with pytest.raises(ImportError, match=r"pip install 'noizu-mcp\[auth\]'"):
        PrivateKeyJWT("signer", private("p256"))


async def platform_token():
    return PLATFORM.issue_id_token(LOGIN, sub="job-7")


PLATFORM = AuthorizationServer("https://platform.example.com")


def workload(world, token):
    return WorkloadIdentity(token, client_id="job", issuer=LOGIN, fetcher=world)


@pytest.mark.parametrize("source", ["token", "function", "async", "file"])
async def test_a_workload(world, tmp_path, source):
    """The token of a platform is exchanged, from each of its sources."""
    world.login.trust(PLATFORM)
    token = await platform_token()
    path = tmp_path / "token"
    path.write_text(f"{token}\n", encoding="utf-8")
    sources = {"token": token, "function": lambda: token, "async": platform_token, "file": path}
    strategy = workload(world, sources[source])
    claims = await token_of(strategy)

    assert claims["sub"] == "job-7"
    assert (world.of("token")[0]["scope"], world.of("token")[0]["resource"]) == ("read", MCP)


async def test_a_workload_that_is_refused(world):
    """A refusal is final: no other grant is tried."""
    strategy = workload(world, platform_token)

    with pytest.raises(AuthError, match=r"'https://platform\.example\.com' is not trusted"):
        await token_of(strategy)
    assert len(world.of("token")) == 1


async def test_no_token_of_a_workload(world, tmp_path):
    """A missing or empty file is one exception with its name."""
    path = tmp_path / "token"
    strategy = workload(world, path)
    with pytest.raises(AuthError, match=f"the token in {path} cannot be read"):
        await token_of(strategy)
    path.write_text("", encoding="utf-8")
    with pytest.raises(AuthError, match=f"there is no token in {path}"):
        await token_of(strategy)
    with pytest.raises(AuthError, match="there is no token where the strategy looks"):
        await token_of(workload(world, lambda: None))


@pytest.fixture
def company(world):
    """The identity provider of a company, which the authorization server trusts."""
    made = AuthorizationServer("https://idp.example.com")
    made.add_client("robot", secret="of the provider")
    world.logins.append(made)
    world.login.trust(made)
    return made


def managed(world, company, **options):
    good = {
        "idp": company.issuer,
        "id_token": company.issue_id_token("robot"),
        "idp_client_secret": "of the provider",
        "issuer": LOGIN,
        "fetcher": world,
    }
    return EnterpriseManaged("robot", "s3cret", **{**good, **options})


async def test_a_managed_person(world, company):
    """The provider turns the ID token into an assertion, which is exchanged for a token."""
    claims = await token_of(managed(world, company))
    (first,) = world.of("token", company)
    (second,) = world.of("token")

    assert (claims["sub"], claims["client_id"], claims["aud"]) == ("ada", "robot", MCP)
    assert (first["audience"], first["resource"], first["scope"]) == (LOGIN, MCP, "read")
    assert "subject_token" not in second


async def test_people_with_one_store(world, company):
    """Tokens of one user are never used for another."""
    store = MemoryStore()
    ada, bob = (
        managed(
            world,
            company,
            store=store,
            person=person,
            id_token=company.issue_id_token("robot", sub=person),
        )
        for person in ("ada", "bob")
    )

    assert (await token_of(ada))["sub"] == "ada"
    assert (await token_of(bob))["sub"] == "bob"
    with pytest.raises(ValueError, match="store= needs person="):
        managed(world, company, store=store)


async def test_a_provider_that_refuses(world, company):
    """The provider's text is in the error, and the other server gets no request."""
    strategy = managed(world, company, id_token=company.issue_id_token("robot", exp=0))

    with pytest.raises(AuthError, match=r"idp\.example\.com/token refused.*expired"):
        await token_of(strategy)
    assert world.of("token") == []


async def test_a_provider_without_id_jag(world, company):
    """Another token than an ID-JAG is not sent on."""
    answer = {"access_token": "x", "issued_token_type": "urn:other", "token_type": "N_A"}
    world.documents[f"{company.issuer}/token"] = (200, answer)

    with pytest.raises(AuthError, match="gave no ID-JAG, but 'urn:other'"):
        await token_of(managed(world, company))


async def test_resource_of_an_old_server(world, company):
    """A server without resource metadata is identified by its URL."""
    world.resource = None
    world.logins.append(AuthorizationServer("https://api.example.com"))
    world.logins[-1].trust(company)
    world.logins[-1].add_client("robot", secret="s3cret")
    await token_of(managed(world, company, issuer=SERVER.origin))

    assert world.of("token", company)[0]["resource"] == MCP


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (partial(ClientCredentials, "", "x"), "client_id must be a string"),
        (partial(ClientCredentials, "a", ""), "client_secret must be a string"),
        (partial(ClientCredentials, "a", "x", issuer="http://example.com"), "must be https"),
        (partial(ClientCredentials, "a", "x", issuer=LOGIN, scopes=["a b"]), "scope"),
        (partial(ClientCredentials, "a", "x"), "client_secret needs issuer="),
        (partial(ClientCredentials, "a", "x", issuer=None), "client_secret needs issuer="),
        (partial(WorkloadIdentity, "t", client_id="a"), "token needs issuer="),
        (partial(WorkloadIdentity, "", client_id="a", issuer=LOGIN), "token must be a string"),
        (partial(EnterpriseManaged, "a", "x", idp=LOGIN, id_token="t"), "needs issuer="),
        (partial(WorkloadIdentity, "t", client_id="a", client_secret=""), "client_secret must"),
        (partial(EnterpriseManaged, "a", idp="idp", id_token="t"), "idp 'idp' must be absolute"),
    ],
)
def test_wrong_option(make, text):
    """A malformed option is refused when the strategy is made."""
    with pytest.raises(ValueError, match=text):
        make()


def test_unknown_option():
    """An unknown option raises `TypeError`."""
    with pytest.raises(TypeError, match="ClientCredentials has no option 'scope'"):
        ClientCredentials("a", "x", scope="read")


def test_the_url_must_be_safe(world):
    """No token is sent to a server without TLS."""
    with pytest.raises(ValueError, match="must be https"):
        robot(world).bind(ProtectedServer("http://api.example.com/mcp"))


def test_secrets_are_not_shown(world):
    """The `repr` of a strategy contains neither secrets nor keys."""
    assert repr(robot(world)) == "ClientCredentials('robot', …)"


# DPoP


async def test_bound_tokens(world):
    """A token is bound to a key, and each request has its own proof."""
    credentials = robot(world, dpop=True).bind(SERVER)
    await credentials.handle(refusal('DPoP error="invalid_token"'))
    first, second = [await credentials.headers(REQUEST) for _ in range(2)]
    scheme, token = first["Authorization"].split()
    header = jwt.get_unverified_header(first["DPoP"])
    key = jwt.PyJWK(header["jwk"], "ES256").key
    proofs = [jwt.decode(each["DPoP"], key, ["ES256"]) for each in (first, second)]

    assert scheme == "DPoP"
    assert jwt.decode(token, options={"verify_signature": False})["cnf"]
    assert header["typ"] == "dpop+jwt"
    assert set(header["jwk"]) == {"kty", "crv", "x", "y"}
    assert (proofs[0]["htm"], proofs[0]["htu"]) == ("POST", MCP)
    assert len(proofs[0]["ath"]) == 43
    assert proofs[0]["jti"] != proofs[1]["jti"]


@pytest.mark.parametrize("make", ["secret", "key"])
async def test_nonce_of_the_authorization_server(make):
    """The request for a token is repeated with the nonce, and with another assertion."""
    world = World(dpop_nonces=True)
    world.login.add_client("robot", secret="s3cret")
    world.login.add_client("signer", key=public("p256"))
    strategy = robot(world, dpop=True)
    if make == "key":
        strategy = PrivateKeyJWT("signer", private("p256"), dpop=True, fetcher=world)
    credentials = strategy.bind(SERVER)
    assert await credentials.handle(refusal())
    assertions = {form.get("client_assertion") for form in world.of("token")}

    assert len(world.of("token")) == 2
    assert make == "secret" or len(assertions) == 2
    assert (await credentials.headers(REQUEST))["Authorization"].startswith("DPoP ")


def nonce_of(headers):
    return jwt.decode(headers["DPoP"], options={"verify_signature": False}).get("nonce")


async def test_nonce_of_the_server(world):
    """A refusal that only demands a nonce requests no token, also for concurrent requests."""
    credentials = robot(world, dpop=True).bind(SERVER)
    await credentials.handle(refusal())
    sent = await credentials.headers(REQUEST)
    wanted = refusal('DPoP error="use_dpop_nonce"', sent=sent)
    wanted.headers["dpop-nonce"] = "n1"
    assert await credentials.handle(wanted)
    assert await credentials.handle(wanted)
    second = await credentials.headers(REQUEST)

    assert nonce_of(second) == "n1"
    assert len(world.of("token")) == 1
    # The nonce was sent: something else must be wrong.
    assert await credentials.handle(attrs.evolve(wanted, sent=lower(second)))
    assert len(world.of("token")) == 2


def lower(headers):
    return {name.lower(): value for name, value in headers.items()}


async def test_a_nonce_is_wanted_without_a_token(world):
    """A refusal of a request without a token begins a grant, whatever it says."""
    credentials = robot(world, dpop=True).bind(SERVER)
    wanted = refusal('DPoP error="use_dpop_nonce"')
    wanted.headers["dpop-nonce"] = "n1"

    assert await credentials.handle(wanted)
    assert nonce_of(await credentials.headers(REQUEST)) == "n1"


@pytest.mark.parametrize("dpop", [True, False])
async def test_nonce_of_any_answer(world, dpop):
    """A nonce of any response is in the next proof; other strategies ignore responses."""
    auth = RequestAuth(robot(world, dpop=dpop), SERVER)
    answer = FetchResponse(200, headers={"dpop-nonce": "n2"})
    assert await auth.handle("POST", MCP, FetchResponse(401), sent={}, operation="", attempt=1)
    auth.note(MCP, answer)
    given = await auth.headers("POST", MCP)
    RequestAuth(Bearer("t"), SERVER).note(MCP, answer)

    assert ("dpop" in given) is dpop
    assert not dpop or nonce_of({"DPoP": given["dpop"]}) == "n2"


async def test_a_new_nonce_beside_another_refusal(world):
    """A refusal of the token with a new nonce leads to another token."""
    credentials = robot(world, dpop=True).bind(SERVER)
    await credentials.handle(refusal())
    sent = await credentials.headers(REQUEST)
    wanted = refusal('DPoP error="invalid_token"', sent=sent)
    wanted.headers["dpop-nonce"] = "n1"

    assert await credentials.handle(wanted)
    assert len(world.of("token")) == 2


async def test_the_key_is_stored(world):
    """Another client with the store has the token and the key; one without DPoP has neither."""
    store = MemoryStore()
    first = robot(world, dpop=True, store=store).bind(SERVER)
    await first.handle(refusal())
    second = robot(world, dpop=True, store=store).bind(SERVER)
    given = [await each.headers(REQUEST) for each in (first, second)]
    keys = [jwt.get_unverified_header(each["DPoP"])["jwk"] for each in given]
    plain = robot(world, store=store).bind(SERVER)

    assert given[0]["Authorization"] == given[1]["Authorization"]
    assert keys[0] == keys[1]
    assert await plain.headers(REQUEST) == {}


async def test_no_token_without_a_key(world):
    """A bearer token from the authorization server is refused."""
    answer = {"access_token": "x", "token_type": "Bearer"}
    world.documents[f"{LOGIN}/token"] = (200, answer)

    with pytest.raises(AuthError, match="it does not do DPoP, which dpop=True demands"):
        await token_of(robot(world, dpop=True))


async def test_dpop_of_a_person(world):
    """`OAuth` binds its tokens, too, and renews them with the key."""
    credentials = world.oauth(dpop=True).bind(SERVER)
    await credentials.handle(refusal())
    first = await credentials.headers(REQUEST)
    await credentials.handle(refusal(sent=first))
    second = await credentials.headers(REQUEST)
    keys = [jwt.get_unverified_header(each["DPoP"])["jwk"] for each in (first, second)]

    assert [form["grant_type"] for form in world.of("token")] == [
        "authorization_code", "refresh_token",
    ]  # fmt: skip
    assert keys[0] == keys[1]
    assert second["Authorization"].startswith("DPoP ")


# Over real sockets


class Whoami(Tool):
    """Say who is calling."""

    def call(self, ctx):
        return ctx.auth.subject


class Write(Tool, requires="write"):
    """Say which scopes the caller has."""

    def call(self, ctx):
        return " ".join(sorted(ctx.auth.scopes))


class Docs(Server, name="docs", version="1"):
    tools = [Whoami, Write]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_connect(version):
    """A machine connects to a server over real sockets, on both eras."""
    async with (
        serve_authorization() as login,
        serve_protected(Docs, partial(login.auth_for, required_scopes=["read"])) as url,
    ):
        login.add_client("robot", secret="s3cret")
        strategy = ClientCredentials("robot", "s3cret", issuer=login.issuer)
        for _ in range(2):
            async with connect(url, auth=strategy, version=version) as client:
                result = await client.call_tool("whoami")
                assert result.content[0].text == "robot"
        tokens = [each for each in login.requests if each.endpoint == "token"]

    assert len(tokens) == 1
    assert tokens[0].params["scope"] == "read"


async def test_step_up():
    """A tool that needs another scope causes a token with both."""
    async with (
        serve_authorization(scopes=["read", "write"]) as login,
        serve_protected(Docs, partial(login.auth_for, required_scopes=["read"])) as url,
    ):
        login.add_client("robot", secret="s3cret")
        strategy = ClientCredentials("robot", "s3cret", issuer=login.issuer)
        async with connect(url, auth=strategy) as client:
            assert (await client.call_tool("whoami")).content[0].text == "robot"
            assert (await client.call_tool("write")).content[0].text == "read write"
        tokens = [each.params["scope"] for each in login.requests if each.endpoint == "token"]

    assert tokens == ["read", "read write"]
