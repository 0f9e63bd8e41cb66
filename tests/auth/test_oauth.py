"""`OAuth`: a user logs in, and the client keeps, renews and widens the tokens."""

import logging
import webbrowser
from urllib.parse import parse_qsl, urlsplit

import pytest
import trio

from noizu_mcp import AuthError
from noizu_mcp.auth import FileStore, MemoryStore, OAuth, ProtectedServer
from noizu_mcp.auth.client import RequestAuth
from noizu_mcp.testing import AuthorizationServer

from .oauth_kit import LOGIN, MCP, REQUEST, RESOURCE, SERVER, World, logged_in, refusal

STEP_UP = 'Bearer error="insufficient_scope", scope="files:write"'


async def failure(world, **options):
    """Log in, and return the text of the error."""
    with pytest.raises(AuthError) as caught:
        await logged_in(world, **options)
    return str(caught.value)


# A login


async def test_a_login():
    """The user approves, and later requests carry the token."""
    world = World()

    credentials, headers = await logged_in(world)

    assert headers["Authorization"].startswith("Bearer ey")
    assert await credentials.headers(REQUEST) == headers
    (registered,) = world.of("register")
    assert registered["client_name"] == "noizu-mcp"
    assert registered["application_type"] == "native"
    assert registered["token_endpoint_auth_method"] == "none"
    assert registered["grant_types"] == ["authorization_code", "refresh_token"]
    (asked,) = world.of("authorize")
    (redeemed,) = world.of("token")
    assert [asked["redirect_uri"]] == registered["redirect_uris"] == [redeemed["redirect_uri"]]
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    # Exactly as in the metadata, in both requests.
    assert (asked["resource"], redeemed["resource"]) == (MCP, MCP)
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["state"]) >= 43
    assert len(redeemed["code_verifier"]) >= 43
    assert "scope" not in asked
    assert "prompt" not in asked


async def test_the_resource_is_that_of_the_metadata():
    """It may be shorter than the URL of the server, or end in a slash."""
    world = World()
    world.resource["resource"] = "https://api.example.com/"

    await logged_in(world)

    assert world.of("authorize")[0]["resource"] == "https://api.example.com/"
    assert world.of("token")[0]["resource"] == "https://api.example.com/"


async def test_a_server_of_2025_03_26():
    """Without resource metadata requests have no resource, and PKCE need not be announced."""
    world = World()
    world.resource = None
    login = AuthorizationServer(SERVER.origin)
    world.logins = [login]
    del login.metadata["code_challenge_methods_supported"]

    _, headers = await logged_in(world)

    assert headers["Authorization"].startswith("Bearer ey")
    assert "resource" not in world.of("authorize", login)[0]
    assert "resource" not in world.of("token", login)[0]


async def test_a_registered_client():
    """Its secret is sent as the authorization server demands; nothing is registered."""
    world = World()
    world.login.add_client("me", secret="s3cret")

    await logged_in(world, client_id="me", client_secret="s3cret", issuer=LOGIN)

    assert world.of("register") == []
    assert world.of("authorize")[0]["client_id"] == "me"
    (request,) = [each for each in world.login.requests if each.endpoint == "token"]
    assert request.headers["authorization"].startswith("Basic ")
    assert "s3cret" not in repr(world.oauth(client_id="me", client_secret="s3cret", issuer=LOGIN))


async def test_a_metadata_document():
    """Its URL is the client id, if that is supported; otherwise the client registers."""
    url = "https://app.example.com/client.json"
    world = World()
    await logged_in(world, client_metadata_url=url)
    assert world.of("register") == []
    assert world.of("token")[0]["client_id"] == url

    world = World()
    world.login.metadata["client_id_metadata_document_supported"] = False
    await logged_in(world, client_metadata_url=url)
    assert len(world.of("register")) == 1


@pytest.mark.parametrize(
    ("listed", "challenge", "scopes", "requested"),
    [
        ([], "Bearer", None, None),
        (["a", "b"], "Bearer", None, "a b"),
        (["a", "b"], 'Bearer scope="c"', None, "c"),
        (["a", "b"], "Bearer", ["x"], "x"),
        (["a", "b"], 'Bearer scope="c"', "x y", "x y c"),
    ],
)
async def test_the_scopes_of_a_login(listed, challenge, scopes, requested):
    """They come from the challenge, else the program, else the metadata, else there are none."""
    world = World()
    world.resource["scopes_supported"] = listed

    await world.oauth(scopes).bind(SERVER).handle(refusal(challenge))

    assert world.of("authorize")[0].get("scope") == requested


async def test_a_login_for_long():
    """`offline_access` is requested with consent, if the authorization server has it."""
    world = World(scopes=["a", "offline_access"])
    world.resource["scopes_supported"] = ["a"]
    await logged_in(world)
    assert world.of("authorize")[0]["scope"] == "a offline_access"
    assert world.of("authorize")[0]["prompt"] == "consent"

    world = World(scopes=["a", "offline_access"])
    await logged_in(world, scopes=["a"])
    assert world.of("authorize")[0]["scope"] == "a"


async def test_an_endpoint_with_a_query():
    """Its query is kept."""
    world = World()
    world.login.metadata["authorization_endpoint"] = f"{LOGIN}/authorize?tenant=1"

    def open_browser(url):
        assert url.startswith(f"{LOGIN}/authorize?tenant=1&response_type=code&")
        raise AuthError("enough")

    assert await failure(world, open_browser=open_browser) == "enough"


# Refusals


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "x"}, "another state than the login that was begun"),
        ({"state": None}, "another state than the login that was begun"),
        ({"iss": None}, f"does not name its issuer, as {LOGIN} promises"),
        ({"iss": "https://evil.example.com"}, f"comes from .*evil.*, not from {LOGIN}"),
        ({"iss": f"{LOGIN}/"}, f"comes from '{LOGIN}/', not from {LOGIN}"),
        ({"iss": "https://evil.example.com", "error": "x", "code": None}, "comes from"),
        ({"code": None}, "has no code"),
        ({"code": ""}, "has no code"),
    ],
)
async def test_answers_that_are_not_used(change, said):
    """The code is never exchanged."""
    world = World()
    world.login.redirect = change

    with pytest.raises(AuthError, match=said):
        await logged_in(world)

    assert len(world.of("authorize")) == 1
    assert world.of("token") == []


async def test_an_issuer_that_promises_no_name():
    """A missing `iss` is accepted then, but a wrong one is refused."""
    world = World()
    world.login.metadata["authorization_response_iss_parameter_supported"] = False
    world.login.redirect = {"iss": None}
    await logged_in(world)

    world.login.redirect = {"iss": "https://evil.example.com"}
    assert "comes from 'https://evil.example.com'" in await failure(world)


async def test_a_person_who_says_no():
    """The error has the text of the authorization server."""
    world = World(approve=lambda params: False)

    said = await failure(world)

    assert said == f"{LOGIN} did not log in: access_denied: the person said no"


@pytest.mark.parametrize("methods", [None, [], ["plain"]])
async def test_no_pkce(methods):
    """Without PKCE the user is not asked."""
    world = World()
    world.login.metadata["code_challenge_methods_supported"] = methods

    assert "does not promise PKCE with S256" in await failure(world)
    assert world.of("register") == []


async def test_no_logins():
    """An authorization server without the code grant is refused."""
    world = World()
    del world.login.metadata["authorization_endpoint"]

    assert "has no authorization_endpoint" in await failure(world)


async def test_no_registration():
    """The error says what to configure."""
    world = World(registration=False)

    said = await failure(world)

    assert said.startswith(f"{LOGIN} registers no clients by itself: register this program there")


async def test_a_refused_registration():
    """The error has the text of the authorization server."""
    world = World()
    world.login.fail("register", status=400, error="invalid_redirect_uri")
    assert "refused to register this program: invalid_redirect_uri: a" in await failure(world)

    world.documents[f"{LOGIN}/register"] = 201, {"client_id": 5}
    assert "refused to register this program: status 201" in await failure(world)


@pytest.mark.parametrize("broken", ["metadata", "register", "token"])
async def test_an_authorization_server_that_fails(broken):
    """Each failure is one exception, and the next request begins again."""
    world = World()
    world.login.fail(broken, times=2)

    assert LOGIN in await failure(world)

    world.login = AuthorizationServer(LOGIN)
    world.logins = [world.login]
    await logged_in(world)


async def test_the_network_fails_at_the_registration():
    """It is one exception."""
    world = World()

    async def fetch(request):
        world.down = request.url.endswith("/register")
        return await World.fetch(world, request)

    world.fetch = fetch

    assert "registration at https://login.example.com/register cannot be" in await failure(world)


# The user


async def test_a_login_that_times_out(autojump_clock):
    """The login ends, and the next one registers again, as the issuer may have lost the client."""
    world = World()
    store = MemoryStore()

    async def open_browser(url):
        await trio.sleep_forever()

    options = {"store": store, "open_browser": open_browser, "timeout": 20}
    assert await failure(world, **options) == (
        "no one logged in at login.example.com within 20 s; try again"
    )

    async def come_back(url):
        return world.open_browser(url)

    await logged_in(world, store=store, open_browser=come_back)
    assert len(world.of("register")) == 2


@pytest.mark.parametrize("opened", [True, False])
async def test_the_answer_comes_by_the_redirect(caplog, opened):
    """The redirect works as from a real browser. Without a browser the URL is logged."""
    world = World()

    def open_browser(url):
        location = world.open_browser(url)
        uri, _, query = location.partition("?")
        trio.from_thread.run_sync(send.send_nowait, (urlsplit(uri).port, query))
        return opened

    send, receive = trio.open_memory_channel(1)

    async def browse():
        port, query = await receive.receive()
        while not opened and "no browser" not in caplog.text:
            await trio.lowlevel.checkpoint()
        pages = []
        for each in ("code=foreign&state=x", "error=foreign", query):
            head = f"GET /callback?{each} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(head.encode())
                pages.append(b"".join([part async for part in stream]))
        assert [b"Not this login" in page for page in pages] == [True, True, False]
        assert b"You can close this window" in pages[-1]

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(browse)
            _, headers = await logged_in(world, open_browser=open_browser)

    assert headers
    said = "no browser could be opened; to log in, open https://login" in caplog.text
    assert said is not opened


async def test_a_browser_of_the_program():
    """`open_browser` may be async, and return the URL, or the code and the state."""
    world = World()

    async def open_browser(url):
        return world.open_browser(url)

    assert (await logged_in(world, open_browser=open_browser))[1]
    assert (await logged_in(world, open_browser=lambda url: open_browser(url)))[1]  # noqa: PLW0108

    def parts(url):
        answer = dict(parse_qsl(urlsplit(world.open_browser(url)).query))
        return answer["code"], answer["state"]

    world.login.metadata["authorization_response_iss_parameter_supported"] = False
    assert (await logged_in(world, open_browser=parts))[1]


async def test_a_browser_that_fails():
    """The exception of `open_browser` is raised unchanged."""

    def open_browser(url):
        raise RuntimeError("no display")

    with pytest.raises(RuntimeError, match="no display"):
        await logged_in(World(), open_browser=open_browser)


async def test_a_redirect_to_elsewhere():
    """Without a listener `open_browser` must return the answer; the client is of type `web`."""
    world = World()
    uri = "https://app.example.com/back"

    _, headers = await logged_in(world, redirect_uri=uri)

    assert headers
    (registered,) = world.of("register")
    assert registered["redirect_uris"] == [uri]
    assert registered["application_type"] == "web"
    said = await failure(World(), redirect_uri=uri, open_browser=lambda url: None)
    assert said == f"open_browser must return the answer that went to {uri}"


# Registrations


async def test_an_issuer_that_does_not_say_how_clients_authenticate():
    """The registration leaves the method to the issuer."""
    world = World()
    del world.login.metadata["token_endpoint_auth_methods_supported"]

    await logged_in(world)

    assert "token_endpoint_auth_method" not in world.of("register")[0]


async def test_a_registration_is_used_again():
    """A registration is reused with its port."""
    world, store = World(), MemoryStore()
    await logged_in(world, store=store)
    await store.delete(f"login {MCP}")
    await logged_in(world, store=store)

    first, second = world.of("authorize")
    assert len(world.of("register")) == 1
    assert first["redirect_uri"] == second["redirect_uri"]


async def test_a_registration_with_a_secret(clock):
    """It is used until the secret expires, and for its port."""
    world, store = World(), MemoryStore()
    answer = {"client_id": "c", "client_secret": "s", "client_secret_expires_at": 1_000_500}
    world.documents[f"{LOGIN}/register"] = 201, answer
    world.login.add_client("c", secret="s")

    def registrations():
        return world.asked.count(f"{LOGIN}/register")

    await logged_in(world, store=store)
    await store.delete(f"login {MCP}")
    clock.now += 499
    await logged_in(world, store=store)
    assert registrations() == 1
    await store.delete(f"login {MCP}")
    clock.now += 1
    await logged_in(world, store=store)
    assert registrations() == 2
    await store.delete(f"login {MCP}")
    (other,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = other.socket.getsockname()[1]
    await other.aclose()
    await logged_in(world, store=store, redirect_port=port)
    assert registrations() == 3


async def test_a_client_that_the_issuer_has_lost():
    """Its registration is dropped, and the next login registers again."""
    world, store = World(), MemoryStore()
    await logged_in(world, store=store)
    await store.delete(f"login {MCP}")
    world.login.fail("token", status=401, error="invalid_client")

    assert "invalid_client" in await failure(world, store=store)
    await logged_in(world, store=store)
    assert len(world.of("register")) == 2


# The life of a token


async def test_a_token_is_renewed_before_its_end(clock):
    """It is renewed by its refresh token, which rotates, without another login."""
    world = World(token_ttl=3600)
    credentials, first = await logged_in(world)

    clock.now += 3600 - 31
    assert await credentials.headers(REQUEST) == first
    clock.now += 1
    second = await credentials.headers(REQUEST)
    assert second != first
    clock.now += 3570
    assert await credentials.headers(REQUEST) not in (first, second)

    _, one, two = world.of("token")
    assert one["grant_type"] == two["grant_type"] == "refresh_token"
    assert one["refresh_token"] != two["refresh_token"]
    assert one["resource"] == MCP
    assert len(world.of("authorize")) == 1


async def test_a_refresh_token_that_stays(clock):
    """Without rotation the refresh token is kept."""
    world = World(token_ttl=3600, rotate=False)
    credentials, _ = await logged_in(world)
    for _ in range(2):
        clock.now += 3570
        await credentials.headers(REQUEST)

    assert len({each["refresh_token"] for each in world.of("token")[1:]}) == 1


async def test_a_refresh_token_that_was_revoked(clock):
    """The next request is sent without a token, and its refusal leads to a login."""
    world = World(token_ttl=3600)
    credentials, first = await logged_in(world)
    world.login.revoke_tokens()

    clock.now += 3590
    assert await credentials.headers(REQUEST) == first
    clock.now += 10
    assert await credentials.headers(REQUEST) == {}
    assert await credentials.handle(refusal())
    assert await credentials.headers(REQUEST) != first
    assert len(world.of("authorize")) == 2


async def test_a_token_endpoint_that_fails(clock):
    """The old token is used until it expires; then the failure is one exception."""
    world = World(token_ttl=3600)
    credentials, first = await logged_in(world)
    world.login.fail("token", status=503, error="temporarily_unavailable", times=2)

    clock.now += 3590
    assert await credentials.headers(REQUEST) == first
    clock.now += 10
    with pytest.raises(AuthError, match="refused: temporarily_unavailable"):
        await credentials.headers(REQUEST)
    assert await credentials.headers(REQUEST) != first


async def test_a_token_without_a_refresh_token(clock):
    """It is used until it expires."""
    world = World()
    world.documents[f"{LOGIN}/token"] = (
        200,
        {"access_token": "t", "token_type": "Bearer", "expires_in": 100},
    )
    credentials, first = await logged_in(world)

    clock.now += 99
    assert await credentials.headers(REQUEST) == first == {"Authorization": "Bearer t"}
    clock.now += 1
    assert await credentials.headers(REQUEST) == {}


async def test_clients_share_a_store(clock, tmp_path):
    """Clients with a shared store need one login, and one refresh."""
    world = World(token_ttl=3600)
    store = FileStore(tmp_path / "credentials.json")
    _, first = await logged_in(world, store=store)
    several = [world.oauth(store=store).bind(SERVER) for _ in range(4)]
    for each in several:
        assert await each.headers(REQUEST) == first

    clock.now += 3590
    found = []

    async def renew(credentials):
        found.append(await credentials.headers(REQUEST))

    async with trio.open_nursery() as nursery:
        for each in several:
            nursery.start_soon(renew, each)

    assert len({each["Authorization"] for each in found}) == 1
    assert found[0] != first
    assert len(world.of("token")) == 2


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_call_that_is_cancelled_while_it_renews(clock, moment):
    """The new refresh token is stored, since the old one is used up; no login follows."""
    store = MemoryStore()

    class Slow(World):
        async def fetch(self, request):
            if moment == "before":
                scope.cancel()
                await trio.lowlevel.checkpoint()
            answer = await super().fetch(request)
            scope.cancel()
            return answer

    scope = trio.CancelScope()  # replaced by that of a call
    world = Slow(token_ttl=3600)
    credentials, first = await logged_in(world, store=store)
    clock.now += 3590
    scope = trio.CancelScope()
    with scope:
        await credentials.headers(REQUEST)
        await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught

    second = await world.oauth(store=store).bind(SERVER).headers(REQUEST)

    assert second != first
    assert len(world.of("token")) == 2
    assert len(world.of("authorize")) == 1


async def test_a_token_that_another_client_got():
    """If an older token is refused, the token in the store is used."""
    world, store = World(), MemoryStore()
    other = world.oauth(store=store).bind(SERVER)
    assert await other.headers(REQUEST) == {}
    _, first = await logged_in(world, store=store)

    assert await other.handle(refusal())

    assert await other.headers(REQUEST) == first
    assert len(world.of("authorize")) == 1


async def test_a_token_that_another_task_got():
    """If an older token is refused, the request is sent again."""
    world = World()
    credentials, first = await logged_in(world)

    assert await credentials.handle(refusal())
    assert await credentials.headers(REQUEST) == first


async def test_a_token_that_is_refused_early():
    """It is renewed; a refused new one leads to a login; a third refusal is an error."""
    world = World()
    credentials, first = await logged_in(world)
    challenge = 'Bearer error="invalid_token", error_description="the key has changed"'

    assert await credentials.handle(refusal(challenge, sent=first))
    second = await credentials.headers(REQUEST)
    assert len(world.of("authorize")) == 1
    assert await credentials.handle(refusal(challenge, sent=second, attempt=2))
    third = await credentials.headers(REQUEST)
    assert len({str(first), str(second), str(third)}) == 3
    assert len(world.of("authorize")) == 2
    with pytest.raises(AuthError) as caught:
        await credentials.handle(refusal(challenge, sent=third, attempt=3))
    assert str(caught.value) == (
        f"{MCP} refuses the token that {LOGIN} has just issued for it: the key has changed"
    )
    with pytest.raises(AuthError, match="issued for it: no reason given"):
        await credentials.handle(refusal("Basic", sent=third, attempt=3))


# More scopes


async def test_more_scopes():
    """A step-up requests the old scopes, too."""
    world = World()
    credentials, first = await logged_in(world, scopes=["files:read"])

    assert await credentials.handle(refusal(STEP_UP, 403, first, operation="tools/call save"))

    assert await credentials.headers(REQUEST) != first
    assert [each["scope"] for each in world.of("authorize")] == [
        "files:read",
        "files:read files:write",
    ]


async def test_scopes_that_are_not_granted():
    """Scopes that were already requested cause no other login."""
    world = World()
    credentials, _ = await logged_in(world)
    await credentials.handle(refusal(STEP_UP, 403, await credentials.headers(REQUEST)))
    sent = await credentials.headers(REQUEST)

    for challenge, wanted in ((STEP_UP, "files:write"), ('Bearer error="insufficient_scope"', "")):
        with pytest.raises(AuthError) as caught:
            await credentials.handle(refusal(challenge, 403, sent, operation="tools/call save"))
        assert str(caught.value) == (
            f"{MCP} wants more scopes for tools/call save ({wanted or 'it does not say which'}),"
            f" although the token was requested with files:write; {LOGIN} does not grant them"
        )
    assert len(world.of("authorize")) == 2


async def test_a_server_that_always_wants_more():
    """One request causes at most three logins."""
    world = World()
    auth = RequestAuth(world.oauth(), SERVER)
    count = 0
    while True:
        count += 1
        sent = await auth.headers("POST", MCP)
        answer = refusal(f'Bearer error="insufficient_scope", scope="s{count}"', 403)
        if not await auth.handle("POST", MCP, answer, sent=sent, operation="x", attempt=count):
            break

    assert len(world.of("authorize")) == 3
    assert world.of("authorize")[-1]["scope"] == "s1 s2 s3"


async def test_other_refusals():
    """A 403 for another reason does not concern tokens."""
    credentials = World().oauth().bind(SERVER)

    assert not await credentials.handle(refusal("Bearer", 403))
    assert not await credentials.handle(refusal("", 403))


# Another authorization server


async def test_a_server_that_moves_to_another_issuer():
    """The client registers there, and sends nothing of the first one."""
    world, store = World(), MemoryStore()
    credentials, first = await logged_in(world, store=store)
    old = await store.load(f"login {MCP}")
    other = AuthorizationServer("https://other.example.com")
    world.logins.append(other)
    world.resource["authorization_servers"] = [other.issuer]

    assert await credentials.handle(refusal(sent=first))

    assert await credentials.headers(REQUEST) != first
    assert len(world.of("register", other)) == 1
    seen = str([each.params for each in other.requests])
    assert old["client"]["client_id"] not in seen
    assert old["tokens"]["refresh_token"] not in seen
    assert [each["grant_type"] for each in world.of("token", other)] == ["authorization_code"]


@pytest.mark.parametrize(
    ("options", "said", "asked"),
    [
        ({"client_id": "me"}, f"client_id 'me' belongs to {LOGIN}; it is not used", ["metadata"]),
        ({"issuer": LOGIN}, f"the credentials belong to {LOGIN}; they are not used", []),
        (
            {"client_id": "me", "client_secret": "s", "issuer": LOGIN},
            f"the credentials belong to {LOGIN}; they are not used",
            [],
        ),
    ],
)
async def test_a_registered_client_stays_at_its_issuer(options, said, asked):
    """Its id and secret are sent to no other issuer; `issuer` applies to every client."""
    world = World()
    world.login.add_client("me", secret=options.get("client_secret"))
    credentials, first = await logged_in(world, **options)
    other = AuthorizationServer("https://other.example.com")
    world.logins.append(other)
    world.resource["authorization_servers"] = [other.issuer]

    with pytest.raises(AuthError, match=said):
        await credentials.handle(refusal(sent=first))
    assert [each.endpoint for each in other.requests] == asked


async def test_a_client_with_another_name():
    """Tokens of another client are not used."""
    world, store = World(), MemoryStore()
    await logged_in(world, store=store)
    world.login.add_client("me")

    credentials = world.oauth(store=store, client_id="me").bind(SERVER)

    assert await credentials.headers(REQUEST) == {}


# The end


async def test_logging_out(clock):
    """The tokens are revoked and deleted, also for other clients of the store."""
    world, store = World(token_ttl=100), MemoryStore()
    credentials, _ = await logged_in(world, store=store)

    assert await world.oauth(store=store).forget(MCP)

    assert len(world.of("revoke")) == 1
    assert await store.load(f"login {MCP}") is None
    assert not await world.oauth(store=store).forget(MCP)
    clock.now += 90
    assert await credentials.headers(REQUEST) == {}


async def test_logging_out_without_a_revocation(caplog):
    """Without a revocation endpoint they are only deleted."""
    world, store = World(), MemoryStore()
    await logged_in(world, store=store)
    world.login.fail("revoke", status=503)

    with caplog.at_level(logging.WARNING, "noizu_mcp"):
        assert await world.oauth(store=store).forget(f"{MCP}")

    assert f"the tokens for {MCP} were not revoked: {LOGIN}/revoke answered 503" in caplog.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scopes": ["a b"]}, "is not the name of a scope"),
        ({"scopes": [5]}, "is not the name of a scope"),
        ({"timeout": 0}, "timeout must be"),
        ({"client_name": ""}, "client_name must be"),
        ({"redirect_port": -1}, "redirect_port must be"),
        ({"redirect_port": 65536}, "redirect_port must be a port"),
        ({"client_secret": "s"}, "client_secret belongs to a client_id"),
        ({"client_id": "me", "client_secret": "s"}, "client_secret needs issuer="),
        ({"client_id": "me", "client_secret": ""}, "client_secret must be a string"),
        ({"issuer": "http://login.example.com"}, "issuer .* must be https"),
        ({"redirect_uri": "http://app.example.com/"}, "redirect_uri .* must be https"),
        ({"client_metadata_url": "https://x.example.com"}, "must be https, with a path"),
        ({"client_metadata_url": "http://127.0.0.1/x"}, "must be https, with a path"),
    ],
)
def test_wrong_options(options, said):
    """Wrong options raise when the object is made."""
    with pytest.raises(ValueError, match=said):
        OAuth(**options)


def test_a_server_without_https():
    """No token is sent there."""
    with pytest.raises(ValueError, match=r"the URL of the server .* must be https"):
        OAuth().bind(ProtectedServer("http://api.example.com/mcp"))


def test_the_documented_default_of_the_browser():
    """The default opens the system's browser."""
    assert OAuth().open_browser is webbrowser.open
    assert RESOURCE.startswith(SERVER.origin)
