"""No client can use up what all clients share."""

import threading

import pytest
import trio

from noizu_mcp import Limits, Server, Tool

from ...kit.messages import call, message
from .shop import Shop
from .wire import serving, settled

INIT = message("initialize", {"protocolVersion": "2025-11-25"}, 1)


@pytest.fixture
async def crowded(autojump_clock):
    """Serve with room for few sessions."""
    async with serving(Shop(), limits={"sessions": 6}) as wire:
        yield wire


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("unix:", "unix:", True),
    ],
)
async def test_whom_an_address_belongs_to(autojump_clock, one, other, same):
    """With IPv6 a client is a network."""
    async with serving(Shop(), limits={"streams": 1}) as wire:
        slow = wire.at(one).modern(call("wait", {"seconds": 5}))
        await settled()
        status = (await wire.at(other).send_modern(call("echo"))).status
        await slow.ended.wait()
    assert status == (503 if same else 200)


async def test_each_client_has_its_own_bound_on_requests(autojump_clock):
    """A client's bound covers requests of both eras, and leaves room for others."""
    async with serving(Shop(), limits={"streams": 2}) as wire:
        session = await wire.session()
        slow = session.open(call("wait", {"seconds": 5})), wire.modern(call("wait", {"seconds": 5}))
        await settled()
        found = [
            await session.post(call("echo", id_=3)),
            await wire.send_modern(call("echo")),
            await wire.at("192.0.2.2").send_modern(call("echo")),
        ]
        cancelled = await session.post(message("notifications/cancelled", {"requestId": 1}))
        await slow[1].ended.wait()
        assert (await wire.send_modern(call("echo"))).status == 200
        assert len(wire.endpoint.app.quotas) <= 2
    assert [each.status for each in found] == [503, 503, 200]
    assert cancelled.status == 202


@pytest.mark.parametrize("era", ["modern", "session"])
async def test_blocked_calls_of_one_client_leave_threads_to_others(era):
    """If a client has more blocked calls than threads, another client's call starts at once."""
    release = threading.Event()

    class Block(Tool, timeout=None):
        """Blocks its thread."""

        def call(self):
            release.wait()
            return "released"

    class Quick(Tool):
        """Answers at once, in a thread."""

        def call(self):
            return "quick"

    class Blocking(Server, name="blocking", version="1", limits=Limits(threads=4)):
        tools = [Block, Quick]

    async with serving(Blocking()) as wire:
        one = wire if era == "modern" else await wire.session()
        send = one.modern if era == "modern" else one.open
        blocked = [send(call("block", id_=number)) for number in range(5)]
        await settled()
        other = wire.at("192.0.2.2")
        if era == "modern":
            answer = await other.send_modern(call("quick"))
        else:
            answer = await (await other.session()).post(call("quick"))
        assert answer.status == 200
        assert wire.app.server.threads.borrowed_tokens == 3
        release.set()
        for each in blocked:
            await each.ended.wait()
            assert each.status == 200


@pytest.mark.parametrize("era", ["modern", "session"])
async def test_one_client_leaves_places_of_a_tool_and_of_its_queue_to_others(era):
    """Calls of others are served, and the client with too many gets an error that says so."""
    release = trio.Event()

    class Narrow(Tool, max_concurrency=4, max_queue=4):
        """Takes four calls at a time."""

        async def call(self):
            await release.wait()
            return "done"

    class Office(Server, name="office", version="1"):
        tools = [Narrow]

    async with serving(Office()) as wire:
        clients = [wire.at("192.0.2.1"), wire.at("192.0.2.2")]
        if era == "session":
            clients = [await each.session() for each in clients]
        one, other = [each.modern if era == "modern" else each.open for each in clients]
        waiting = [one(call("narrow", id_=number)) for number in range(6)]
        await settled()
        refused = one(call("narrow", id_=6))
        await refused.ended.wait()
        assert b"narrow is busy: too many calls wait for it" in refused.body
        waiting += [other(call("narrow", id_=number)) for number in range(2)]
        await settled()
        spec = wire.app.server.registry.find_tool("narrow")
        places = wire.app.server.registry.slots(spec, 1000)
        assert (places.borrowed_tokens, places.waiting) == (4, 4)
        release.set()
        for each in waiting:
            await each.ended.wait()
            assert each.status == 200


async def test_addresses_of_one_network_are_one_client(autojump_clock):
    """With IPv6 a client has a whole network of addresses."""
    async with serving(Shop(), limits={"streams": 1}) as wire:
        wire.at("2001:db8::1").modern(call("wait", {"seconds": 5}))
        await settled()
        same = await wire.at("2001:db8::2").send_modern(call("echo"))
        other = await wire.at("2001:db8:1::1").send_modern(call("echo"))
    assert (same.status, other.status) == (503, 200)


async def test_all_clients_have_one_bound_on_requests(autojump_clock):
    """A request of a disconnected client counts while its handler runs."""
    async with serving(Shop(), limits={"requests": 1}) as wire:
        session = await wire.session()
        left = session.open(call("wait", {"seconds": 5}))
        await settled()
        left.leave()
        await trio.sleep(1)
        other = wire.at("192.0.2.2")
        refused = await other.send_modern(call("echo"))
        await left.ended.wait()
        served = await other.send_modern(call("echo"))
    assert (refused.status, served.status) == (503, 200)


async def test_requests_are_bounded_by_their_bytes(autojump_clock):
    """One client has a quarter, held until the answer; nothing remains afterwards."""
    async with serving(Shop(), limits={"memory": 400_000}) as wire:
        large = {"type": "http.request", "body": b" " * 90_000, "more_body": True}
        for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"):
            # The rest of it never arrives.
            wire.at(address).open("POST", call("echo"), parts=[large])
        await settled()
        accounts = wire.endpoint.app.quotas
        assert accounts.held == 360_000
        found = [
            await wire.at(address).send("POST", b" " * size)
            for address, size in (
                # A short text counts with 64 bytes more for each byte.
                ("192.0.2.1", 200),
                ("192.0.2.5", 700),
                ("192.0.2.5", 500),
                ("192.0.2.5", 100_001),
            )
        ]
        await trio.sleep(40)
        assert accounts.held == 0
    assert [each.status for each in found] == [503, 503, 400, 413]


async def test_events_are_bounded_over_all_sessions(autojump_clock):
    """Above its limit a client loses its oldest events, in the session that grows."""
    async with serving(Shop(), limits={"memory": 600_000}) as wire:
        other = await wire.at("192.0.2.2").session()
        kept = await other.post(call("wait", {"seconds": 2}))
        sessions = [await wire.session() for _ in range(6)]
        account = sessions[0].served.quota
        before = account.held
        for session in sessions:
            await session.post(call("flood", {"count": 30}))
        assert 20_000 < account.held - before <= account.quotas.part - before
        again = other.get(kept.events[0]["id"])
        await again.ended.wait()
        assert again.status == 200


async def test_a_client_with_many_sessions_gives_up_its_own(autojump_clock, crowded):
    """Its own idle sessions are ended at once; used sessions and other clients stay."""
    victim = await crowded.at("192.0.2.2").session()
    await trio.sleep(100)
    greedy = [await crowded.session() for _ in range(5)]
    assert (await crowded.send("POST", INIT)).status == 503
    standing = greedy[0].get()
    await standing.event(0)
    newcomer = await crowded.at("192.0.2.3").session()
    found = [(await each.post(call("echo"))).status for each in (victim, *greedy, newcomer)]
    assert found == [200, 200, 404, 200, 200, 200, 200]


async def test_a_client_with_many_old_sessions_replaces_them(autojump_clock, crowded):
    """Its session that has been idle for a minute is replaced."""
    other = await crowded.at("192.0.2.2").session()
    mine = [await crowded.session() for _ in range(5)]
    await trio.sleep(60)
    mine.append(await crowded.session())
    found = [(await each.post(call("echo"))).status for each in (other, *mine)]
    assert found == [200, 404, 200, 200, 200, 200, 200]


async def test_among_equals_the_longest_idle_makes_room(autojump_clock, crowded):
    """Among clients with equal numbers the longest idle session is ended after a minute."""
    equals = [await crowded.at(f"192.0.2.{number}").session() for number in range(6)]
    newcomer = crowded.at("192.0.2.9")
    assert (await newcomer.send("POST", INIT)).status == 503
    await trio.sleep(60)
    equals.append(await newcomer.session())
    found = [(await each.post(call("echo"))).status for each in equals]
    assert found == [404, 200, 200, 200, 200, 200, 200]


async def test_the_client_with_the_most_sessions_is_found_again(autojump_clock, crowded):
    """A client that has ended its sessions is no longer the one with the most."""
    first = [await crowded.session() for _ in range(4)]
    second = [await crowded.at("192.0.2.2").session() for _ in range(2)]
    for session in first[1:]:
        await session.delete()
    others = [await crowded.at(f"192.0.2.{number}").session() for number in range(3, 7)]
    found = [(await each.post(call("echo"))).status for each in (first[0], *second, *others)]
    assert found == [200, 404, 200, 200, 200, 200, 200]


async def test_only_some_sessions_are_looked_at(autojump_clock):
    """A refused client costs a search among 100 sessions for idle ones."""
    count = 101
    async with serving(Shop(), limits={"sessions": count}) as wire:
        sessions = [await wire.session() for _ in range(count)]
        for session in sessions[:-1]:
            await session.get().event(0)
        await sessions[-1].post(call("echo"))
        await trio.sleep(60)
        refused = await wire.send("POST", INIT)
        served = await wire.send("POST", INIT)
    assert (refused.status, served.status) == (503, 200)
