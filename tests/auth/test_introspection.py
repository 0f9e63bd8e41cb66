"""Token introspection over real sockets."""

import base64
import gc
import json
import weakref
from urllib.parse import parse_qs

import pytest
import trio

from noizu_mcp.auth import (
    FetchRequest,
    FetchResponse,
    InsufficientScope,
    IntrospectionVerifier,
    InvalidToken,
    RequireScopes,
    VerifierUnavailable,
)

from .issuer import AUDIENCE, ISSUER, REQUEST

NOW = 1_000_000
ACTIVE = {"active": True, "sub": "ada", "aud": AUDIENCE, "scope": "read", "exp": NOW + 600}


@pytest.fixture
def make(peer, clock):
    """Make a verifier that uses the peer."""

    def make(**options):
        given = {"issuer": ISSUER, "audience": AUDIENCE, **options}
        return IntrospectionVerifier(
            peer.url("/introspect"), client_id="mcp:server", client_secret="a b&c", **given
        )

    peer.say("/introspect", ACTIVE)
    return make


async def refusal(verifier, token="t"):
    with pytest.raises(InvalidToken) as caught:
        await verifier.verify(token, REQUEST)
    return caught.value.reason


async def unavailable(verifier):
    with pytest.raises(VerifierUnavailable) as caught:
        await verifier.verify("t", REQUEST)
    return caught.value.reason


async def test_what_is_asked(peer, make):
    """The request is a form with the token and encoded client credentials (RFC 6749, 2.3.1)."""
    await make().verify("a+b/c=", REQUEST)

    (asked,) = peer.received
    assert asked.method == "POST"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.headers["accept"] == "application/json"
    assert parse_qs(asked.body.decode()) == {
        "token": ["a+b/c="],
        "token_type_hint": ["access_token"],
    }
    scheme, _, pair = asked.headers["authorization"].partition(" ")
    assert (scheme, base64.b64decode(pair)) == ("Basic", b"mcp%3Aserver:a%20b%26c")


async def test_who_it_is(make):
    """The principal comes from the response; its issuer is the configured one."""
    who = await make().verify("t", REQUEST)

    assert (who.subject, who.issuer, who.scopes) == ("ada", ISSUER, {"read"})
    assert who.expires_at == NOW + 600
    assert who["active"] is True
    with pytest.raises(InsufficientScope):
        RequireScopes("write").check(who)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"active": False}, "not active"),
        ({"active": "true"}, "not active"),
        ({"active": 1}, "not active"),
        ({"active": None}, "not active"),
        ({"sub": None}, "claims are missing: sub"),
        ({"aud": None}, "claims are missing: aud"),
        ({"aud": "https://other.example.com"}, "for another server"),
        ({"iss": "https://other.example.com"}, "from another issuer"),
        ({"iss": 5}, "from another issuer"),
        ({"exp": NOW - 31}, "it expired 31 s ago"),
        ({"exp": "never"}, "`exp` is not a number"),
        ({"nbf": NOW + 31}, "not valid yet"),
        ({"token_type": "refresh_token"}, "type 'refresh_token' is not a bearer token"),
        ({"token_type": "DPoP"}, "type 'DPoP' is not a bearer token"),
        ({"token_type": ""}, "type '' is not a bearer token"),
        ({"token_type": ["Bearer"]}, "is not a bearer token"),
        ({"typ": "Refresh"}, "`typ` says that it is not an access token: 'Refresh'"),
        ({"typ": "ID"}, "`typ` says that it is not an access token: 'ID'"),
        ({"typ": "Offline"}, "`typ` says that it is not an access token: 'Offline'"),
        ({"token_use": "id"}, "`token_use` says that it is not an access token: 'id'"),
        ({"token_use": 5}, "`token_use` says that it is not an access token: 5"),
    ],
)
async def test_answers_that_are_no(peer, make, changed, reason):
    """Each inactive or invalid response is refused, and not cached."""
    verifier = make()
    peer.say("/introspect", {**ACTIVE, **changed})

    assert reason in await refusal(verifier)
    assert reason in await refusal(verifier)
    assert len(peer.received) == 2


async def test_no_text_that_cannot_be_sent(peer, make):
    """A token that cannot be sent is refused without a request."""
    for token in ("\u20ac", "\ud800"):
        assert "ASCII" in await refusal(make(), token)
    assert peer.received == []


@pytest.mark.parametrize(
    "members",
    [
        {"token_type": "Bearer"},
        {"token_type": "bearer", "typ": "Bearer"},
        {"token_type": "access_token", "token_use": "access"},
        {"typ": "at+jwt"},
    ],
)
async def test_access_tokens_may_say_so(peer, make, members):
    """Access tokens may be marked in each way that issuers use."""
    peer.say("/introspect", {**ACTIVE, **members})

    assert (await make().verify("t", REQUEST)).subject == "ada"


async def test_members_that_may_be_absent(peer, make):
    """All members but `active` are optional (RFC 7662 section 2.2)."""
    peer.say("/introspect", {"active": True, "aud": [AUDIENCE], "client_id": "app", "iss": ISSUER})

    who = await make(required_claims=()).verify("t", REQUEST)
    assert (who.subject, who.client_id, who.expires_at) == (None, "app", None)


@pytest.mark.parametrize(
    ("status", "document", "reason"),
    [
        (401, b"", "it answered 401"),
        (500, b"", "it answered 500"),
        (302, b"", "it answered 302"),
        (200, b"<html>", "failed"),
        (200, b"[]", "gave something else than an object"),
    ],
)
async def test_failures_of_the_issuer(peer, make, status, document, reason):
    """A failing issuer does not mean that the token is invalid."""
    peer.say("/introspect", document, status=status)

    assert reason in await unavailable(make())


async def test_good_answers_are_remembered(peer, make, ticks):
    """They are cached by token for their TTL; then the issuer is asked again, and may refuse."""
    verifier = make(cache_ttl=30)
    for _ in range(3):
        await verifier.verify("t", REQUEST)
    await verifier.verify("other", REQUEST)
    assert len(peer.received) == 2

    peer.say("/introspect", {"active": False})
    ticks.now += 29
    await verifier.verify("t", REQUEST)
    ticks.now += 1
    assert "not active" in await refusal(verifier)
    assert len(peer.received) == 3


async def test_a_system_clock_that_jumps_back(peer, make, clock, ticks):
    """A revoked token is refused after the TTL, also if the clock was set back meanwhile."""
    verifier = make(cache_ttl=30)
    await verifier.verify("t", REQUEST)
    peer.say("/introspect", {"active": False})

    clock.now -= 86_400
    ticks.now += 30

    assert "not active" in await refusal(verifier)


async def test_no_answer_outlives_its_token(peer, make, clock):
    """A token that expires sooner is asked about sooner."""
    verifier = make(cache_ttl=3600)
    peer.say("/introspect", {**ACTIVE, "exp": NOW + 10})
    await verifier.verify("t", REQUEST)

    clock.now += 10
    await verifier.verify("t", REQUEST)
    assert len(peer.received) == 2


async def test_memory_is_bounded(peer, make):
    """The oldest entry is dropped first; the cache can also be disabled."""
    verifier = make(cache_size=2)
    for token in ("a", "b", "c"):
        await verifier.verify(token, REQUEST)
    for token in ("c", "b"):
        await verifier.verify(token, REQUEST)
    assert len(peer.received) == 3
    await verifier.verify("a", REQUEST)
    assert len(peer.received) == 4

    for without in (make(cache_size=0), make(cache_ttl=0)):
        peer.received.clear()
        for _ in range(2):
            await without.verify("a", REQUEST)
        assert len(peer.received) == 2


async def test_the_token_is_kept_nowhere(make):
    """The cache does not keep tokens in memory."""

    class Token(str):  # a plain string has no weak references
        __slots__ = ("__weakref__",)

    verifier, token = make(), Token("s3cret-token")
    watched = weakref.ref(token)
    await verifier.verify(token, REQUEST)
    del token
    gc.collect()

    assert watched() is None


async def test_questions_are_bounded(peer, make):
    """Invented tokens do not become a flood of requests to the issuer."""
    peer.go = trio.Event()
    verifier = make()
    async with trio.open_nursery() as nursery:
        for number in range(60):
            nursery.start_soon(verifier.verify, f"t{number}", REQUEST)
        with trio.fail_after(60):
            while len(peer.received) < 20:
                await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        assert len(peer.received) == 20
        peer.go.set()
    assert len(peer.received) == 60


async def test_who_waited_takes_the_answer_of_the_one_before(make):
    """Requests that wait for their turn take the response to another one with the same token."""
    asked = []

    class Slow:
        async def fetch(self, request: FetchRequest) -> FetchResponse:
            asked.append(request)
            await trio.testing.wait_all_tasks_blocked()
            return FetchResponse(200, json.dumps(ACTIVE).encode())

    verifier = make(fetcher=Slow())
    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(verifier.verify, "t", REQUEST)
    assert len(asked) == 20


async def test_waiting_is_bounded(make, autojump_clock):
    """An issuer that never responds costs a timeout, whatever the fetcher does."""

    class Stuck:
        async def fetch(self, request: FetchRequest) -> FetchResponse:
            await trio.sleep_forever()

    assert await unavailable(make(fetcher=Stuck())) == "the introspection endpoint is too slow"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"audience": None}, "needs audience="),
        ({"issuer": None}, "needs issuer="),
        ({"url": "http://issuer.example.com/introspect"}, "the introspection endpoint .* https"),
        ({"client_id": ""}, "client_id must be a string, and not empty"),
        ({"client_id": None}, "client_id must be a string, and not empty"),
        ({"client_secret": ""}, "client_secret must be a string, and not empty"),
        ({"required_claims": "sub"}, "required_claims must be a list of names of claims"),
        ({"leeway": float("nan")}, "leeway must be seconds from 0 to 300, not nan"),
        ({"cache_ttl": float("nan")}, "cache_ttl must be a number of seconds of 0 or more"),
        ({"cache_ttl": float("inf")}, "cache_ttl must be a number of seconds of 0 or more"),
        ({"cache_ttl": -1}, "cache_ttl must be a number of seconds of 0 or more, not -1"),
        ({"cache_size": -1}, "cache_size must be a whole number of 0 or more, not -1"),
        ({"cache_size": 1.5}, "cache_size must be a whole number of 0 or more, not 1.5"),
        ({"cache_size": True}, "cache_size must be a whole number of 0 or more, not True"),
    ],
)
def test_what_is_not_safe_cannot_be_made(options, message):
    """The client secret and every token are sent to the URL."""
    given = {"url": "https://a.example/i", "client_id": "a", "client_secret": "b"}
    given |= {"issuer": ISSUER, "audience": AUDIENCE, **options}
    with pytest.raises(ValueError, match=message):
        IntrospectionVerifier(given.pop("url"), **given)
