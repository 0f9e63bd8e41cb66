"""Laws of credentials: no scope gets lost, and no token leaves its origin."""

from itertools import pairwise
from urllib.parse import urlsplit

import pytest
import trio
from hypothesis import assume, given
from hypothesis import strategies as st

from noizu_mcp import AuthError
from noizu_mcp.auth import Bearer, ProtectedServer
from noizu_mcp.auth.client import RequestAuth
from noizu_mcp.auth.client._discovery import covers
from noizu_mcp.auth.client._strategy import origin_of
from noizu_mcp.auth.client._tokens import union

from .oauth_kit import REQUEST, SERVER, World, refusal

SCOPES = st.lists(st.sampled_from("abcdefg"), max_size=5)
HOSTS = st.sampled_from(["a.example", "b.example", "a.example.b.example", "[::1]", "127.0.0.1"])
PORTS = st.sampled_from(["", ":443", ":80", ":8443"])
PATHS = st.sampled_from(["", "/", "/mcp", "/mcp/", "/mcp/deep", "/mc", "/m%63p", "/../mcp"])
URLS = st.builds("".join, st.tuples(st.sampled_from(["https://", "http://"]), HOSTS, PORTS, PATHS))


@given(st.lists(SCOPES))
def test_a_union_loses_no_scope(several):
    """And has each one once, in the order of their first place."""
    joined = union(*several)

    assert set(joined) == {scope for scopes in several for scope in scopes}
    assert len(set(joined)) == len(joined)
    flat = [scope for scopes in several for scope in scopes]
    assert sorted(joined, key=flat.index) == list(joined)


@given(st.lists(SCOPES, min_size=1, max_size=3))
def test_a_step_up_loses_no_scope(challenges):
    """Whatever a server asks for, each login asks for all of it, and more than the one before."""
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
    """Headers are given for URLs of the origin of the server, and for no other."""
    try:
        auth = RequestAuth(Bearer("secret"), ProtectedServer(server))
    except ValueError:
        assert server.startswith("http://")
        assume(False)

    async def main():
        return await auth.headers("POST", url)

    if origin_of(url) == origin_of(server):
        assert trio.run(main) == {"authorization": "Bearer secret"}
    else:
        with pytest.raises(AuthError, match="no credentials leave"):
            trio.run(main)


@given(URLS, URLS)
def test_a_resource_covers_only_its_origin(resource, url):
    """And itself, and what lies below it."""
    if covers(resource, url):
        assert origin_of(resource) == origin_of(url)
        assert urlsplit(url).path.startswith(urlsplit(resource).path.rstrip("/"))
    if resource.startswith("https://"):
        assert covers(resource, resource)
        assert covers(resource, f"{resource.rstrip('/')}/below")
