"""One node: its lease, its messages to others, and what it does when the backend fails."""

import logging
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio

from noizu_mcp.backends import BackendUnavailable, Memory
from noizu_mcp.server import open_node

from ..kit.servers import Small
from .kit import Faulty, known

#: More than the lease of a node, and the time in which its death is seen.
DEATH = 20


@asynccontextmanager
async def opened(count=2, backend=None):
    """Open nodes of one server; each collects the messages that it receives."""
    backend = backend or Faulty()
    async with AsyncExitStack() as stack:
        nodes = []
        for _ in range(count):
            node = await stack.enter_async_context(open_node(Small(), backend))
            node.heard = []
            node.receivers["say"] = lambda sender, *body, node=node: node.heard.append(body)
            nodes.append(node)
        yield nodes


async def test_nodes_know_who_is_alive(autojump_clock):
    """A node that leaves in order is not dead."""
    async with opened(1) as (one,):
        deaths = []
        one.on_death.append(deaths.append)
        async with opened(2, one.backend) as (two, three):
            await known()
            assert one.alive == {one.id, two.id, three.id}
        await trio.sleep(DEATH)

        assert one.alive == {one.id}
        assert deaths == []


async def test_a_message_that_must_arrive_is_sent_at_once(autojump_clock):
    """It is sent before the call returns; later, if the backend cannot answer."""
    async with opened(2) as (one, two):
        end = await two.backend.end_of(f"in:{two.id}")
        await one.send("say", 1, to=two.id)
        assert await two.backend.end_of(f"in:{two.id}") != end
        two.backend.down = True
        await one.send("say", 2, to=two.id)
        two.backend.down = False
        await known()
        assert two.heard == [(1,), (2,)]


async def test_a_dead_node_is_found_by_one_other(autojump_clock):
    """One of them acts on it, within the lease and three seconds."""
    found = []
    backend = Faulty()
    async with opened(2, backend) as nodes, trio.open_nursery() as nursery:
        for node in nodes:

            async def bury(gone, node=node):
                found.append((node.id, gone, trio.current_time()))

            node.on_death.append(bury)

        async def dies(task_status):
            async with opened(1, backend) as (node,):
                # As after kill -9: it neither renews nor leaves.
                task_status.started(node)
                await trio.sleep_forever()

        node = await nursery.start(dies)
        await known()
        since = trio.current_time()
        node.backend = Silent(backend)
        await trio.sleep(DEATH)
        nursery.cancel_scope.cancel()

    assert [gone for _, gone, _ in found] == [node.id]
    assert found[0][2] - since <= backend.lease + 3


class Silent:
    """A backend that a node can no longer reach."""

    def __init__(self, cut):
        self.lease, self.epoch = cut.lease, cut.epoch

    def __getattr__(self, name):
        async def never(*args, **options):
            raise BackendUnavailable("the network is cut")

        return never


async def test_changes_of_a_node_that_dies_in_an_outage_are_not_lost(autojump_clock):
    """They waited at the node; the others say that anything may have changed."""
    backend = Faulty()
    async with opened(2, backend) as nodes, trio.open_nursery() as nursery:
        for node in nodes:
            node.on_gap.append(lambda node=node: node.heard.append("gap"))
            node.receivers["changed"] = lambda sender, change, node=node: node.heard.append(change)
        async with opened(1, backend) as (dying,):
            await trio.sleep(DEATH)
            backend.down = True
            dying.tell("changed", "tools")
            await known()
            dying.backend = Silent(backend)
            backend.down = False
            await trio.sleep(2 * DEATH)
        nursery.cancel_scope.cancel()

        assert sorted(str(node.heard) for node in nodes) == ["['gap']", "[None]"]


async def test_changes_of_a_node_that_cannot_send_them_at_its_end_are_not_lost(autojump_clock):
    """It leaves a note."""
    backend = Hesitant()
    async with opened(1, backend) as (one,):
        one.on_gap.append(lambda: one.heard.append("gap"))
        async with opened(1, backend) as (leaving,):
            await trio.sleep(DEATH)
            backend.appending = 10
            leaving.tell("changed", "tools")
        backend.appending = 0
        await trio.sleep(DEATH)

        assert one.heard == ["gap"]


class Hesitant(Faulty):
    """A backend whose streams take a while, once a test says so."""

    appending = 0.0

    async def append(self, stream, entry, **options):
        await trio.sleep(self.appending)
        return await super().append(stream, entry, **options)


async def test_a_node_that_was_taken_for_dead_learns_it(autojump_clock, caplog):
    """It was cut off for longer than its lease, and enters again."""
    backend = Faulty()
    async with opened(2, backend) as (one, two):
        await known()
        told = []
        one.on_declared_dead.append(lambda: told.append(True))
        one.backend = Silent(backend)
        await trio.sleep(DEATH)
        assert two.alive == {two.id}
        one.backend = backend
        await known()

        assert told == [True]
        assert two.alive == {one.id, two.id}
    assert "another node took this one for dead" in caplog.text


async def test_an_outage_of_the_backend_kills_no_node(autojump_clock):
    """All leases have expired when it comes back."""
    backend = Faulty()
    async with opened(3, backend) as nodes:
        deaths = []
        for node in nodes:
            node.on_death.append(deaths.append)
        await known()
        backend.down = True
        await trio.sleep(60)
        assert [node.unrenewed > 50 for node in nodes] == [True] * 3
        backend.down = False
        await trio.sleep(DEATH)

        assert deaths == []
        assert all(len(node.alive) == 3 for node in nodes)


async def test_messages_arrive_in_order_at_one_node_or_all(autojump_clock):
    """The sender does not get its own."""
    async with opened(3) as (one, two, three):
        for number in range(500):
            one.tell("say", "all", number)
            one.tell("say", "two", number, to=two.id)
        one.tell("unknown", 1)
        await known()

        assert one.heard == []
        assert three.heard == [("all", number) for number in range(500)]
        assert [body for body in two.heard if body[0] == "all"] == three.heard
        assert [n for kind, n in two.heard if kind == "two"] == list(range(500))


async def test_messages_wait_in_an_outage(autojump_clock):
    """They are sent once the backend answers again."""
    backend = Faulty()
    async with opened(2, backend) as (one, two):
        await known()
        backend.down = True
        for number in (1, 2):
            one.tell("say", number)
            one.tell("say", number, to=two.id)
        await trio.sleep(60)
        assert two.heard == []
        backend.down = False
        await known()

        assert sorted(two.heard) == [(1,), (1,), (2,), (2,)]


async def test_changes_that_do_not_fit_become_one(autojump_clock, caplog):
    """Other messages are dropped with a line in the log."""
    backend = Faulty()
    async with opened(2, backend) as (one, two):
        two.receivers["changed"] = lambda sender, change: two.heard.append(change)
        await known()
        backend.down = True
        one.tell("say", "first")
        for number in range(12_000):
            one.tell("changed", [f"x://{number}"])
        backend.down = False
        await trio.sleep(60)
        assert two.heard[:2] == [("first",), None]
        assert len(two.heard) < 3000
        backend.down = True
        for number in range(12_000):
            one.tell("say", number)
        backend.down = False
        await trio.sleep(60)

    assert "a message to another node was dropped" in caplog.text


async def test_a_node_that_missed_messages_is_told_of_the_gap(autojump_clock):
    """The stream keeps a number of entries."""
    backend = Faulty()
    async with opened(2, backend) as (one, two):
        gaps = []
        two.on_gap.append(lambda: gaps.append(True))
        await known()
        two.backend = Silent(backend)
        await known()
        for _ in range(10_050):
            await backend.append("log", b"x", keep=10_000, ttl=60)
        two.backend = backend
        await known()

        assert gaps == [True]
        one.tell("say", "later")
        await known()
        assert two.heard == [("later",)]


@pytest.mark.parametrize("data", [b"", b"x" * 100, bytes(64)])
async def test_garbage_in_the_backend_is_ignored(autojump_clock, data, caplog):
    """Entries and records that cannot be opened do not exist."""
    backend = Faulty()
    async with opened(2, backend) as (one, two):
        for stream in ("log", f"in:{two.id}"):
            await backend.append(stream, data, keep=10, ttl=60)
        await backend.put("s:1", data, ttl=60)
        one.tell("say", "later")
        await known()

        assert two.heard == [("later",)]
        assert await one.records.get("s:1") is None
    assert "was ignored" in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_record_of_one_key_is_none_of_another(autojump_clock):
    """The backend cannot move a value."""
    backend = Faulty()
    async with opened(1, backend) as (one,):
        version = await one.records.put("a", {"n": 1}, ttl=60)
        stored = await backend.get("a")
        await backend.put("b", stored.value, ttl=60)

        assert (await one.records.get("a")).value == {"n": 1}
        assert (await one.records.get("a", known=version)) == (None, version)
        assert await one.records.get("b") is None
        assert b'"n"' not in stored.value
        assert await one.records.delete("a") is True
        assert await one.records.members("empty") == []


async def test_changes_of_a_record_by_several_nodes_are_all_kept(autojump_clock):
    """Each is applied to the value that is there."""
    async with opened(2) as nodes:
        await nodes[0].records.put("a", [], ttl=60)

        async def add(node, number):
            await node.records.change("a", lambda value: [*value, number], ttl=60)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(add, nodes[number % 2], number)

        assert sorted((await nodes[0].records.get("a")).value) == list(range(20))
        assert (await nodes[0].records.change("a", lambda value: None, ttl=60)).version
        assert await nodes[0].records.change("gone", lambda value: value, ttl=60) is None
        with pytest.raises(BackendUnavailable, match="too many nodes at once"):
            await nodes[0].records.change("a", lambda value: value, ttl=60, attempts=0)


async def test_after_a_loss_each_node_writes_again_what_it_holds(autojump_clock, caplog):
    """A hook that fails stops no other."""
    backend = Faulty()
    async with opened(2, backend) as (one, two):
        written = []

        async def fail():
            raise KeyError

        async def write():
            written.append(one.note_loss())

        one.on_emptied += [fail, write]
        await known()
        backend.clear()
        await known()

        assert written == [True]
        assert one.alive == {one.id, two.id}
        await known()
        assert one.note_loss() is False


async def test_a_shared_backend_needs_keys(monkeypatch):
    """Other processes could not open what a random key has sealed."""
    monkeypatch.delenv("NOIZU_MCP_STATE_KEYS", raising=False)

    class Other(Faulty, Memory):
        pass

    class Shared:
        lease = 10.0
        in_process = False

    with pytest.raises(BackendUnavailable, match="NOIZU_MCP_STATE_KEYS"):
        async with open_node(Small(), Shared()):
            pass


async def test_a_node_whose_backend_fails_ends_in_time(autojump_clock, caplog):
    """Leaving is bounded."""
    caplog.set_level(logging.INFO, "noizu_mcp")
    backend = Faulty()
    async with opened(1, backend) as (one,):
        backend.down = True
    assert one.is_up is False


class Raises(Faulty):
    """A backend of an author that raises what it must not."""

    broken = False

    async def members(self, group):
        if self.broken:
            raise ZeroDivisionError
        return await super().members(group)


async def test_a_backend_that_raises_anything_does_not_end_the_server(autojump_clock, caplog):
    """It is logged."""
    backend = Raises()
    async with opened(2, backend) as (one, two):
        backend.broken = True
        await known()
        backend.broken = False
        await known()
        assert one.alive == {one.id, two.id}
    assert "the backend failed" in caplog.text
