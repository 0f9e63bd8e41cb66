"""Fetched keys: cached, rotated, and fetched a limited number of times."""

import contextlib
import json
import time

import pytest
import trio

from noizu_mcp.auth import (
    FetchRequest,
    FetchResponse,
    InvalidToken,
    JWTVerifier,
    VerifierUnavailable,
)

from .issuer import AUDIENCE, ISSUER, REQUEST, jwk, jwks, signed

TTL, COOLDOWN = 600.0, 30.0
OLD, NEW = jwk("rsa", kid="old"), jwk("rsa-2", kid="new")


@pytest.fixture
def key_set(peer, ticks):
    """A key set that the peer serves."""
    peer.say("/keys", jwks(OLD))
    return verifier(peer.url("/keys"))


def verifier(url="https://a.example", fetcher=None):
    """Make a verifier with the keys at a URL."""
    given = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_ttl": TTL, "jwks_cooldown": COOLDOWN}
    return JWTVerifier(jwks_uri=url, fetcher=fetcher, **given)


async def names(key_set, kid=None):
    """Return the name of the key with which a token is accepted; the token has that name."""
    for name, kind in (("old", "rsa"), ("new", "rsa-2")):
        if kid is None or (kid == "new") == (name == "new"):
            with contextlib.suppress(InvalidToken):
                await key_set.verify(signed(kind, headers={"kid": kid} if kid else None), REQUEST)
                return [name]
    return []


async def test_a_verifier_fetches_once(peer):
    """Keys are fetched once, from a real server, for all tokens."""
    peer.say("/keys", jwks(OLD, jwk("ed", kid="ed")))
    served = verifier(peer.url("/keys"))

    for token in (
        signed(headers={"kid": "old"}),
        signed("ed", "EdDSA"),
        signed(headers={"kid": "old"}),
    ):
        assert (await served.verify(token, REQUEST)).subject == "ada"
    assert len(peer.received) == 1
    assert "application/jwk-set+json" in peer.received[0].headers["accept"]


async def test_bad_tokens_fetch_nothing(peer):
    """Malformed and forbidden tokens are refused before keys are fetched."""
    served = verifier(peer.url("/keys"))

    for token in ("x.y.z", signed("k1", "ES256K"), signed(headers={"typ": "logout+jwt"})):
        with pytest.raises(InvalidToken):
            await served.verify(token, REQUEST)
    assert peer.received == []


async def test_keys_rotate(peer, key_set, ticks):
    """A token with a new key causes a fetch; the old key is gone then."""
    assert await names(key_set, "old") == ["old"]
    peer.say("/keys", jwks(NEW))
    ticks.now += COOLDOWN

    assert await names(key_set, "new") == ["new"]
    assert await names(key_set, "old") == []
    assert len(peer.received) == 2


async def test_keys_grow_old(peer, key_set, ticks):
    """After their TTL keys are fetched again, even if they are still valid."""
    assert await names(key_set, "old") == ["old"]
    peer.say("/keys", jwks(NEW))

    ticks.now += TTL - 1
    assert await names(key_set, "old") == ["old"]
    ticks.now += 1
    assert await names(key_set, "old") == []
    assert await names(key_set) == ["new"]
    assert len(peer.received) == 2


async def test_a_flood_of_unknown_keys(peer, key_set, ticks):
    """Unknown key names cause one fetch for each cool-down."""
    assert await names(key_set, "old") == ["old"]
    for turn in range(1, 4):
        ticks.now += COOLDOWN
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(names, key_set, f"made-up-{number}")
        assert len(peer.received) == 1 + turn
    assert await names(key_set, "old") == ["old"]


async def test_one_fetch_at_a_time(peer, key_set):
    """Requests that arrive during a fetch wait for its result."""
    peer.go = trio.Event()
    found = []

    async def ask():
        found.append(await names(key_set, "old"))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
        await peer.until_asked()
        await trio.testing.wait_all_tasks_blocked()
        assert found == []
        peer.go.set()
    assert found == [["old"]] * 20
    assert len(peer.received) == 1


async def test_known_keys_serve_while_newer_ones_are_fetched(peer, key_set, ticks):
    """With a slow issuer one request waits, not all."""
    await names(key_set)
    ticks.now += TTL
    peer.go, peer.started = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(names, key_set, "old")
        await peer.until_asked()

        with trio.fail_after(60):  # it waits for nothing
            assert await names(key_set, "old") == ["old"]
        peer.go.set()
    assert len(peer.received) == 2


async def test_a_fetch_outlives_the_request_that_wanted_it(peer, key_set):
    """If the client of the request disconnects, other requests still get the keys."""
    peer.go = trio.Event()
    found = []

    async def ask():
        found.append(await names(key_set, "old"))

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_then_go_on, peer, scope, nursery, ask)
            await names(key_set, "old")
            await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught
    assert found == [["old"]]
    assert len(peer.received) == 1


async def _cancel_then_go_on(peer, scope, nursery, ask):
    await peer.until_asked()
    nursery.start_soon(ask)
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    peer.go.set()


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (500, b""),
        (302, b""),
        (200, b"<html>"),
        (200, b"[" * 300 + b"]" * 300),
        (200, b"{}"),
        (200, b'{"keys": ["rsa"]}'),
        (200, b"x" * (1024 * 1024 + 1)),
    ],
)
async def test_old_keys_stay_while_there_are_no_better_ones(
    peer, key_set, ticks, reasons, status, document
):
    """Old keys stay valid during a failure, which is logged; a fetch follows each cool-down."""
    await names(key_set)
    peer.say("/keys", document, status=status)
    ticks.now += TTL

    for _ in range(3):
        assert await names(key_set, "old") == ["old"]
        # The issuer may have it by now.
        with pytest.raises(VerifierUnavailable):
            await names(key_set, "new")
    assert len(peer.received) == 2
    (reason,) = reasons()
    assert reason.startswith(f"keys of {peer.url('/keys')} cannot be fetched: ")
    ticks.now += COOLDOWN
    peer.say("/keys", jwks(NEW))
    assert await names(key_set, "old") == []
    assert await names(key_set, "new") == ["new"]


@pytest.mark.parametrize("document", [jwks(), jwks({"kty": "AKP", "kid": "old"})])
async def test_an_issuer_may_withdraw_all_keys(peer, key_set, ticks, reasons, document):
    """An empty set is accepted at once, and logged; the cool-down applies."""
    assert await names(key_set, "old") == ["old"]
    peer.say("/keys", document)
    ticks.now += TTL

    for _ in range(3):
        assert await names(key_set, "old") == []
    assert len(peer.received) == 2
    assert reasons() == [
        f"{peer.url('/keys')} has no key that could verify a signature: its tokens are refused"
    ]
    peer.say("/keys", jwks(NEW))
    ticks.now += COOLDOWN
    assert await names(key_set, "new") == ["new"]


async def test_a_failure_brings_no_withdrawn_key_back(peer, key_set, ticks):
    """After a withdrawal a failed fetch does not restore the old keys."""
    await names(key_set)
    peer.say("/keys", jwks())
    ticks.now += TTL
    assert await names(key_set, "old") == []

    peer.say("/keys", b"", status=500)
    ticks.now += COOLDOWN
    with pytest.raises(VerifierUnavailable):
        await names(key_set, "old")


@pytest.mark.parametrize("document", [jwks(OLD), jwks(jwk("rsa"))])
@pytest.mark.parametrize("kid", ["old", None])
async def test_a_new_key_may_have_no_name_of_its_own(peer, ticks, document, kid):
    """A signature that no known key fits causes one more fetch."""
    peer.say("/keys", document)
    served = verifier(peer.url("/keys"))
    headers = {"kid": kid} if kid else None
    old, new = signed(headers=headers), signed("rsa-2", headers=headers)
    await served.verify(old, REQUEST)

    named = {"kid": document["keys"][0]["kid"]} if "kid" in document["keys"][0] else {}
    peer.say("/keys", jwks(jwk("rsa-2", **named)))
    with pytest.raises(InvalidToken, match="no trusted key has signed it"):
        await served.verify(new, REQUEST)  # within the cool-down
    ticks.now += COOLDOWN
    assert (await served.verify(new, REQUEST)).subject == "ada"
    with pytest.raises(InvalidToken, match="no trusted key has signed it"):
        await served.verify(old, REQUEST)
    assert len(peer.received) == 2


async def test_a_flood_of_bad_signatures(peer, ticks):
    """They cause one fetch for each cool-down, and no key verifies a signature twice."""
    peer.say("/keys", jwks(OLD))
    served = verifier(peer.url("/keys"))
    good, forged = signed(), signed("rsa-2", headers={"kid": "old"})
    await served.verify(good, REQUEST)

    async def forge():
        with pytest.raises(InvalidToken, match="no trusted key has signed it"):
            await served.verify(forged, REQUEST)

    for turn in range(1, 4):
        ticks.now += COOLDOWN
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(forge)
        assert len(peer.received) == 1 + turn
    assert (await served.verify(good, REQUEST)).subject == "ada"


async def test_bad_signatures_while_the_issuer_is_silent(peer, ticks):
    """They are refused as usual: known keys are trusted for a while."""
    peer.say("/keys", jwks(OLD))
    served = verifier(peer.url("/keys"))
    await served.verify(signed(), REQUEST)
    peer.say("/keys", b"", status=500)
    ticks.now += COOLDOWN

    with pytest.raises(InvalidToken, match="no trusted key has signed it"):
        await served.verify(signed("rsa-2"), REQUEST)
    assert (await served.verify(signed(), REQUEST)).subject == "ada"
    assert len(peer.received) == 2


async def test_what_is_signed_and_wrong_fetches_nothing(peer, ticks):
    """A signed token with wrong claims causes no fetch, as another key would not help."""
    peer.say("/keys", jwks(OLD))
    served = verifier(peer.url("/keys"))
    await served.verify(signed(), REQUEST)
    ticks.now += COOLDOWN

    with pytest.raises(InvalidToken, match="it expired"):
        await served.verify(signed(exp=1), REQUEST)
    assert len(peer.received) == 1


async def test_very_old_keys_are_no_longer_trusted(peer, key_set, ticks):
    """An attacker who cuts off an issuer must not keep a withdrawn key alive."""
    await names(key_set)
    peer.say("/keys", b"", status=500)

    ticks.now += TTL + 24 * 3600
    assert await names(key_set, "old") == ["old"]
    ticks.now += COOLDOWN
    with pytest.raises(VerifierUnavailable, match="no keys from"):
        await names(key_set, "old")


async def test_without_any_keys(peer, key_set, ticks):
    """The verifier is unavailable; it tries again soon, but not for each request."""
    peer.say("/keys", b"", status=503)

    for _ in range(3):
        with pytest.raises(VerifierUnavailable, match="no keys from"):
            await names(key_set, "old")
    assert len(peer.received) == 1
    ticks.now += 1
    peer.say("/keys", jwks(OLD))
    assert await names(key_set, "old") == ["old"]


async def test_who_waited_for_a_failure_does_not_try_again(peer, key_set):
    """Otherwise twenty requests would wait for twenty failures in sequence."""
    peer.say("/keys", b"", status=503)
    peer.go = trio.Event()
    failures = []

    async def ask():
        with pytest.raises(VerifierUnavailable):
            await names(key_set, "old")
        failures.append(1)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
        await peer.until_asked()
        await trio.testing.wait_all_tasks_blocked()
        peer.go.set()
    assert len(failures) == 20
    assert len(peer.received) == 1


async def test_a_fetcher_that_never_returns(autojump_clock, ticks):
    """The fetch ends after our own timeout, whatever the fetcher does."""

    class Stuck:
        async def fetch(self, request: FetchRequest) -> FetchResponse:
            await trio.sleep_forever()

    stuck = verifier(fetcher=Stuck())

    with pytest.raises(VerifierUnavailable):
        await names(stuck)
    assert trio.current_time() < 10


class Slow:
    """Returns a document after some seconds."""

    def __init__(self):
        self.document = json.dumps(jwks(OLD)).encode()
        self.seconds = 0.0
        self.times = []

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        self.times.append(trio.current_time())
        await trio.sleep(self.seconds)
        return FetchResponse(200, self.document)


@pytest.fixture
def slow():
    return Slow()


@pytest.fixture
def slow_set(slow, monkeypatch):
    """A set whose keys arrive slowly, on the clock of the test run."""
    monkeypatch.setattr(time, "monotonic", trio.current_time)
    return verifier(fetcher=slow)


async def took(key_set, kid):
    start = trio.current_time()
    with contextlib.suppress(VerifierUnavailable):
        await names(key_set, kid)
    return trio.current_time() - start


async def test_known_keys_wait_a_moment_for_newer_ones(autojump_clock, slow, slow_set, reasons):
    """One request in each cool-down waits briefly; then the known key is used."""
    await names(slow_set)
    slow.seconds = 60
    await trio.sleep(TTL)

    for _ in range(3):
        assert await took(slow_set, "old") == 1
        assert await took(slow_set, "old") == 0
        assert reasons() == [
            "the known keys of https://a.example stay in use: no answer within 1 s"
        ]
        await trio.sleep(COOLDOWN)
    assert len(slow.times) == 4


async def test_who_needs_a_new_key_waits_for_a_slow_issuer(autojump_clock, slow, slow_set):
    """A fetch that other requests stopped waiting for does not delay the next one."""
    await names(slow_set)
    slow.seconds, slow.document = 3, json.dumps(jwks(NEW)).encode()
    await trio.sleep(TTL)

    assert await took(slow_set, "old") == 1
    assert await took(slow_set, "new") == 3
    assert await names(slow_set) == ["new"]


async def test_a_slow_issuer_is_heard_at_last(autojump_clock, slow, slow_set):
    """Overdue keys are fetched again, though no new key is requested, as one may be withdrawn."""
    await names(slow_set)
    slow.seconds, slow.document = 3, json.dumps(jwks(NEW)).encode()
    await trio.sleep(TTL + 3600 - 2 * COOLDOWN)
    assert await names(slow_set, "old") == ["old"]

    await trio.sleep(2 * COOLDOWN)
    assert await took(slow_set, "old") == 3
    assert await names(slow_set, "old") == []


async def test_a_fetcher_that_is_broken(ticks):
    """An unexpected exception is not raised for each request of a flood."""
    calls = []

    class Broken:
        async def fetch(self, request: FetchRequest) -> FetchResponse:
            calls.append(request)
            raise LookupError("bug")

    broken = verifier(fetcher=Broken())

    with pytest.raises(LookupError):
        await names(broken)
    with pytest.raises(VerifierUnavailable):
        await names(broken)
    assert len(calls) == 1
