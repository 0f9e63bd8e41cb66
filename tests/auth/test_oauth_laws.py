"""Laws of credentials: no scope is lost, and no token is sent to another origin."""

import json
from itertools import pairwise
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import trio
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noizu_mcp import AuthError
from noizu_mcp.auth import Bearer, MemoryStore, ProtectedServer
from noizu_mcp.auth.client import RequestAuth

from .oauth_kit import LOGIN, MCP, REQUEST, RESOURCE, SERVER, World, refusal

SCOPES = st.lists(st.sampled_from("abcdefg"), max_size=5)
HOSTS = st.sampled_from(["a.example", "b.example", "a.example.b.example", "[::1]", "127.0.0.1"])
PORTS = st.sampled_from(["", ":443", ":80", ":8443"])
PATHS = st.sampled_from(["", "/", "/mcp", "/mcp/", "/mcp/deep", "/mc", "/m%63p", "/../mcp"])
URLS = st.builds("".join, st.tuples(st.sampled_from(["https://", "http://"]), HOSTS, PORTS, PATHS))


@settings(max_examples=40)
@given(st.lists(SCOPES, min_size=1, max_size=3))
def test_a_step_up_loses_no_scope(challenges):
    """Each login requests all scopes of the server's challenges, and more than the one before."""
    world = World()

    async def main():
        credentials = world.oauth().bind(SERVER)
        for scopes in challenges:
            sent = await credentials.headers(REQUEST)
            challenge = f'Bearer error="insufficient_scope", scope="{" ".join(scopes)}"'
            try:
                await credentials.handle(refusal(challenge, 403, sent))
            except AuthError:
                asked = world.of("authorize")[-1]
                assert set(scopes) <= set(asked.get("scope", "").split())

    trio.run(main)

    asked = [set(each.get("scope", "").split()) for each in world.of("authorize")]
    assert asked[-1] == {scope for scopes in challenges for scope in scopes}
    assert all(one < other for one, other in pairwise(asked))


@given(URLS, URLS)
def test_a_token_stays_at_its_origin(server, url):
    """Headers are made for URLs at the origin of the server, and for no others."""
    try:
        auth = RequestAuth(Bearer("secret"), ProtectedServer(server))
    except ValueError:
        assert server.startswith("http://")
        assume(False)

    async def main():
        return await auth.headers("POST", url)

    if ProtectedServer(url).origin == ProtectedServer(server).origin:
        assert trio.run(main) == {"authorization": "Bearer secret"}
    else:
        with pytest.raises(AuthError, match="no credentials leave"):
            trio.run(main)


@settings(max_examples=60)
@given(URLS, URLS)
def test_a_resource_covers_only_its_origin(resource, url):
    """A token is requested for a server and what is below it, at its origin."""
    world = World()
    metadata = f"{LOGIN}/metadata"
    world.documents[metadata] = 200, {"resource": resource, "authorization_servers": [LOGIN]}
    server = ProtectedServer(url)

    async def main():
        credentials = world.oauth().bind(server)
        return await credentials.handle(refusal(f'Bearer resource_metadata="{metadata}"'))

    refused = ""
    try:
        assert trio.run(main)
    except ValueError:
        assert url.startswith("http://")
        assume(False)
    except AuthError as error:
        refused = str(error)
    if refused:
        assert "that of another server" in refused
        assert resource != url
        assert world.of("authorize") == []
    else:
        assert ProtectedServer(resource).origin == server.origin
        assert urlsplit(url).path.startswith(urlsplit(resource).path.rstrip("/"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
CHANGES = st.dictionaries(st.integers(0, 30), JSON | st.sampled_from(["", MCP, LOGIN, 0, 2**70]))
DOCUMENTS = {
    f"{RESOURCE}/mcp": {
        "resource": MCP,
        "authorization_servers": [LOGIN],
        "scopes_supported": ["a"],
    },
    f"{LOGIN}/.well-known/oauth-authorization-server": World().login.metadata,
    f"{LOGIN}/register": {
        "client_id": "c",
        "client_secret": "s",
        "client_secret_expires_at": 0,
        "token_endpoint_auth_method": "client_secret_post",
    },
    f"{LOGIN}/token": {
        "access_token": "t",
        "token_type": "bearer",
        "expires_in": 3600,
        "refresh_token": "r",
        "scope": "a",
    },
}


def changed(document, changes):
    """Replace some members; 30 stands for the whole document."""
    if 30 in changes:
        return changes[30]
    keys = list(document)
    return {**document, **{keys[at]: each for at, each in changes.items() if at < len(keys)}}


@settings(max_examples=80)
@given(
    st.sampled_from(list(DOCUMENTS)),
    CHANGES,
    st.dictionaries(st.sampled_from(["code", "state", "iss", "error"]), st.text(max_size=5)),
    st.sampled_from([200, 200, 200, 201, 302, 400, 404, 500]),
)
def test_a_login_ends_in_a_token_or_in_one_error(wrong, changes, answer, status):
    """This holds for any answers of servers and browsers."""
    world = World()
    world.documents = {url: (200, document) for url, document in DOCUMENTS.items()}
    body = json.dumps(changed(DOCUMENTS[wrong], changes)).encode()
    world.documents[wrong] = status, body

    async def open_browser(url):
        state = parse_qs(urlsplit(url).query)["state"][0]
        return (
            f"http://127.0.0.1/?{urlencode({'code': 'c', 'state': state, 'iss': LOGIN, **answer})}"
        )

    async def main():
        uri = "https://app.example.com/back"
        auth = RequestAuth(world.oauth(open_browser=open_browser, redirect_uri=uri), SERVER)
        answered = refusal()
        sent = await auth.headers("POST", MCP)
        try:
            await auth.handle("POST", MCP, answered, sent=sent, operation="", attempt=1)
            return (await auth.headers("POST", MCP)).get("authorization", "")
        except AuthError as error:
            return str(error)

    # A line for a header, or for a terminal.
    assert trio.run(main).isprintable()


@given(JSON | st.fixed_dictionaries({"client": JSON, "tokens": JSON}))
def test_what_a_store_holds_is_a_login_or_none(document):
    """Another program may have written it."""

    async def main():
        store = MemoryStore()
        await store.save(f"login {MCP}", document)
        return await World().oauth(store=store).bind(SERVER).headers(REQUEST)

    assert isinstance(trio.run(main), dict)
