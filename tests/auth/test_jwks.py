"""Keys that are fetched: kept, rotated, and never fetched as often as anybody likes."""

import pytest
import trio

from noizu_mcp.auth import (
    FetchRequest,
    FetchResponse,
    HTTPFetcher,
    InvalidToken,
    JWTVerifier,
    VerifierUnavailable,
)
from noizu_mcp.auth._jwks import JWKS_RETRY, JWKS_STALE, KeySet
from noizu_mcp.auth._jwt import load_jose

from .issuer import AUDIENCE, ISSUER, REQUEST, jwk, jwks, signed

TTL, COOLDOWN = 600.0, 30.0
OLD, NEW = jwk("rsa", kid="old"), jwk("rsa-2", kid="new")


@pytest.fixture
def key_set(peer, clock):
    """A set whose keys the peer serves."""
    peer.say("/keys", jwks(OLD))
    return KeySet(
        peer.url("/keys"),
        HTTPFetcher(),
        load_jose().read_key_set,
        ttl=TTL,
        cooldown=COOLDOWN,
        clock=clock,
    )


async def names(key_set, kid=None):
    return [key.kid for key in await key_set.find("RS256", kid)]


async def test_a_verifier_fetches_once(peer):
    """From a real server, for all tokens."""
    peer.say("/keys", jwks(OLD, jwk("ed", kid="ed")))
    verifier = JWTVerifier(issuer=ISSUER, audience=AUDIENCE, jwks_uri=peer.url("/keys"))

    for token in (
        signed(headers={"kid": "old"}),
        signed("ed", "EdDSA"),
        signed(headers={"kid": "old"}),
    ):
        assert (await verifier.verify(token, REQUEST)).subject == "ada"
    assert len(peer.received) == 1
    assert "application/jwk-set+json" in peer.received[0].headers["accept"]


async def test_bad_tokens_fetch_nothing(peer):
    """What is malformed or not allowed is refused before anybody is asked."""
    verifier = JWTVerifier(issuer=ISSUER, audience=AUDIENCE, jwks_uri=peer.url("/keys"))

    for token in ("x.y.z", signed("k1", "ES256K"), signed(headers={"typ": "logout+jwt"})):
        with pytest.raises(InvalidToken):
            await verifier.verify(token, REQUEST)
    assert peer.received == []


async def test_keys_rotate(peer, key_set, clock):
    """A token of a new key makes the keys be fetched; the old one is gone then."""
    assert await names(key_set, "old") == ["old"]
    peer.say("/keys", jwks(NEW))
    clock.now += COOLDOWN

    assert await names(key_set, "new") == ["new"]
    assert await names(key_set, "old") == []
    assert len(peer.received) == 2


async def test_keys_grow_old(peer, key_set, clock):
    """After their time they are fetched again, also if they are still known."""
    assert await names(key_set, "old") == ["old"]
    peer.say("/keys", jwks(NEW))

    clock.now += TTL - 1
    assert await names(key_set, "old") == ["old"]
    clock.now += 1
    assert await names(key_set, "old") == []
    assert await names(key_set) == ["new"]
    assert len(peer.received) == 2


async def test_a_flood_of_unknown_keys(peer, key_set, clock):
    """Names that somebody makes up cost one fetch for each cool-down, whoever asks how often."""
    assert await names(key_set, "old") == ["old"]
    for turn in range(1, 4):
        clock.now += COOLDOWN
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(names, key_set, f"made-up-{number}")
        assert len(peer.received) == 1 + turn
    assert await names(key_set, "old") == ["old"]


async def test_one_fetch_at_a_time(peer, key_set):
    """Who comes while keys are fetched waits for them."""
    peer.go = trio.Event()
    found = []

    async def ask():
        found.append(await names(key_set, "old"))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
        await peer.started.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert found == []
        peer.go.set()
    assert found == [["old"]] * 20
    assert len(peer.received) == 1


async def test_known_keys_serve_while_newer_ones_are_fetched(peer, key_set, clock):
    """A slow issuer costs one request its time, not all."""
    await names(key_set)
    clock.now += TTL
    peer.go, peer.started = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(names, key_set, "old")
        await peer.started.wait()

        with trio.fail_after(2):  # it waits for nothing
            assert await names(key_set, "old") == ["old"]
        peer.go.set()
    assert len(peer.received) == 2


async def test_a_fetch_outlives_the_request_that_wanted_it(peer, key_set):
    """A client that hangs up takes nothing from those who wait."""
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
    await peer.started.wait()
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
        (200, b'{"keys": []}'),
        (200, b"x" * (1024 * 1024 + 1)),
    ],
)
async def test_old_keys_stay_while_there_are_no_better_ones(
    peer, key_set, clock, reasons, status, document
):
    """A failing issuer locks nobody out, is asked once a cool-down, and is in the log."""
    await names(key_set)
    peer.say("/keys", document, status=status)
    clock.now += TTL

    for _ in range(3):
        assert await names(key_set, "old") == ["old"]
        # It may have this one by now.
        with pytest.raises(VerifierUnavailable):
            await names(key_set, "new")
    assert len(peer.received) == 2
    (reason,) = reasons()
    assert reason.startswith(f"keys of {peer.url('/keys')} cannot be fetched: ")
    clock.now += COOLDOWN
    peer.say("/keys", jwks(NEW))
    assert await names(key_set, "old") == []
    assert await names(key_set, "new") == ["new"]


async def test_very_old_keys_are_no_longer_trusted(peer, key_set, clock):
    """Who can keep an issuer silent must not keep a withdrawn key alive for ever."""
    await names(key_set)
    peer.say("/keys", b"", status=500)

    clock.now += TTL + JWKS_STALE
    assert await names(key_set, "old") == ["old"]
    clock.now += COOLDOWN
    with pytest.raises(VerifierUnavailable, match="no keys from"):
        await names(key_set, "old")


async def test_without_any_keys(peer, key_set, clock):
    """Nobody can say: it is tried again soon, but not for each request."""
    peer.say("/keys", b"", status=503)

    for _ in range(3):
        with pytest.raises(VerifierUnavailable, match="no keys from"):
            await names(key_set, "old")
    assert len(peer.received) == 1
    clock.now += JWKS_RETRY
    peer.say("/keys", jwks(OLD))
    assert await names(key_set, "old") == ["old"]


async def test_who_waited_for_a_failure_does_not_try_again(peer, key_set):
    """Else twenty requests would wait for twenty failures in a row."""
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
        await peer.started.wait()
        await trio.testing.wait_all_tasks_blocked()
        peer.go.set()
    assert len(failures) == 20
    assert len(peer.received) == 1


async def test_a_fetcher_that_never_returns(autojump_clock, clock):
    """It is given up after a time of ours, whatever it promises."""

    class Stuck:
        async def fetch(self, request: FetchRequest) -> FetchResponse:
            await trio.sleep_forever()

    stuck = KeySet("https://a.example", Stuck(), load_jose().read_key_set, clock=clock)

    with pytest.raises(VerifierUnavailable):
        await names(stuck)
    assert trio.current_time() < 10
