"""`Fleet` and `FaultyMemory`: nodes that are killed and frozen, and a backend that fails."""

import pytest
import trio

from noizu_mcp import (
    ClientHandler,
    ConnectionClosed,
    Context,
    Resource,
    Server,
    Toolkit,
    TransportError,
    mcp,
)
from noizu_mcp.backends import BackendUnavailable, Conflict, Gap
from noizu_mcp.testing import FaultyMemory, Fleet

REVISIONS = ("2025-11-25", "2026-07-28")


class Kit(Toolkit):
    """Tools of one node."""

    def __init__(self):
        self.count = 0

    @mcp
    async def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        self.count += 1
        return a + b

    @mcp
    async def hang(self) -> str:
        """Never answer."""
        await trio.sleep_forever()
        raise AssertionError

    @mcp
    async def keep(self, ctx: Context, *, value: str) -> str:
        """Keep a value in the session."""
        await ctx.put_session("value", value)
        return "kept"

    @mcp
    async def kept(self, ctx: Context) -> str:
        """Return the value."""
        return str(ctx.session.get("value"))


class Tea(Resource, uri="shop://tea", subscribable=True):
    """Tea."""

    async def read(self):
        return "tea"


class Shop(Server, name="shop", version="1.0.0"):
    tools = [Kit]
    resources = [Tea]


class Broken(Shop, name="broken", version="1.0.0"):
    def __init__(self):
        raise ZeroDivisionError


async def add(client):
    return int((await client.call_tool("add", {"a": 1, "b": 2})).text)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_nodes_serve_one_client(revision, autojump_clock):
    """A client of any revision gets its answers from whatever nodes the seed draws."""
    async with Fleet(Shop, nodes=3, seed=7) as fleet, fleet.connect(version=revision) as client:
        assert fleet.running == [0, 1, 2]
        assert {await add(client) for _ in range(10)} == {3}


async def test_the_clock_may_be_real():
    """A fleet needs no virtual clock."""
    async with Fleet(Shop) as fleet, fleet.connect() as client:
        assert await add(client) == 3


async def test_a_session_goes_from_node_to_node(autojump_clock):
    """What one node has stored, each node has."""
    async with Fleet(Shop, nodes=3) as fleet, fleet.connect(version="2025-11-25") as client:
        await client.call_tool("keep", {"value": "tea"})
        assert {(await client.call_tool("kept")).text for _ in range(10)} == {"tea"}


async def test_a_client_may_be_bound_to_a_node(autojump_clock):
    """With `node` the proxy sends all requests there; they fail while it does not run."""
    async with Fleet(Shop) as fleet, fleet.connect(node=1) as client:
        assert await add(client) == 3
        await fleet.stop(1)
        assert fleet.running == [0]
        with pytest.raises(TransportError, match="node 1 does not run"):
            await add(client)
        await fleet.start(1)
        assert await add(client) == 3


async def test_without_a_node_no_client_connects(autojump_clock):
    """A fleet may be empty."""
    async with Fleet(Shop, nodes=1) as fleet, fleet.connect(version="2026-07-28") as client:
        fleet.kill(0)
        with pytest.raises(TransportError, match="does not run"):
            await add(client)


async def test_a_killed_node_breaks_its_connections(autojump_clock, caplog):
    """A call in flight fails at once, and the other node finds the death when its lease is over."""
    async with Fleet(Shop, lease=4.0) as fleet, fleet.connect(node=0) as client:
        # A node judges others after one lease of its own.
        await trio.sleep(5)
        async with trio.open_nursery() as nursery:

            async def hang():
                with pytest.raises(ConnectionClosed):
                    await client.call_tool("hang")

            nursery.start_soon(hang)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
            fleet.kill(0)
        assert trio.current_time() == began
        assert "is gone" not in caplog.text
        await trio.sleep(6)
        assert caplog.text.count("is gone") == 1


async def test_a_stopped_node_ends_in_order(autojump_clock, caplog):
    """No other node takes it for dead."""
    async with Fleet(Shop, nodes=3, lease=4.0) as fleet, fleet.connect() as client:
        await trio.sleep(5)
        await fleet.stop(2)
        await trio.sleep(20)
        assert await add(client) == 3
    assert "is gone" not in caplog.text


async def test_a_node_that_starts_is_not_taken_for_dead(autojump_clock, caplog):
    """Other nodes may look while it enters."""
    async with Fleet(Shop, nodes=1, lease=1.0) as fleet:
        await trio.sleep(5)
        for node in range(1, 20):
            await fleet.start(node)
            await trio.sleep(0.25)
    assert "is gone" not in caplog.text


async def test_a_frozen_node_answers_when_it_goes_on(autojump_clock):
    """Requests to it wait; it may be frozen again meanwhile."""
    async with Fleet(Shop) as fleet, fleet.connect(node=0) as client:
        fleet.freeze(0, 5.0)
        await trio.sleep(4.0)
        fleet.freeze(0, 5.0)
        assert await add(client) == 3
        assert trio.current_time() == 9.0


async def test_a_frozen_node_may_be_killed(autojump_clock):
    """Its clients learn it at once."""
    async with Fleet(Shop) as fleet, fleet.connect(node=0) as client:
        fleet.freeze(0, 5.0)
        async with trio.open_nursery() as nursery:

            async def call():
                with pytest.raises(ConnectionClosed):
                    await add(client)

            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            fleet.kill(0)
        assert trio.current_time() == 0.0


async def test_the_error_of_a_node_that_does_not_start_is_raised(autojump_clock):
    """As it is, and the fleet has ended."""
    with pytest.raises(ZeroDivisionError):
        async with Fleet(Broken):
            raise AssertionError


async def test_the_error_of_a_test_is_raised(autojump_clock):
    """As it is, while handlers run."""
    with pytest.raises(KeyError, match="tea"):
        async with Fleet(Shop) as fleet, fleet.connect(), trio.open_nursery():
            raise KeyError("tea")


async def test_mistakes_are_explained(autojump_clock):
    """Each says what to do."""
    with pytest.raises(TypeError, match="give the class"):
        Fleet(Shop())
    with pytest.raises(TypeError, match="leave backend= out"):
        Fleet(Shop, backend=FaultyMemory())
    async with Fleet(Shop) as fleet:
        with pytest.raises(ValueError, match="node 0 runs already"):
            await fleet.start(0)
        for act in (fleet.app, fleet.kill, lambda node: fleet.freeze(node, 1.0)):
            with pytest.raises(ValueError, match=r"no node 5 runs; there are: \[0, 1\]"):
                act(5)
        with pytest.raises(ValueError, match="no node 5 runs"):
            await fleet.stop(5)
        assert fleet.app(0).server is not fleet.app(1).server


class News(ClientHandler):
    """Records the resources that have changed."""

    def __init__(self):
        self.told = []

    async def handle_notification(self, method, params):
        self.told.append(params["uri"])


async def test_what_is_watched_holds_at_the_node_with_the_stream(autojump_clock):
    """Whatever nodes get the requests, it hears of the next change, and of none after the end."""
    news = News()
    async with (
        Fleet(Shop, nodes=3) as fleet,
        fleet.connect(version="2025-11-25", handler=news) as client,
    ):
        for number in range(10):
            await client.subscribe("shop://tea")
            fleet.app(number % 3).server.notify_resource_updated("shop://tea")
            await trio.sleep(2)
            assert len(news.told) == number + 1
            await client.unsubscribe("shop://tea")
            fleet.app(number % 3).server.notify_resource_updated("shop://tea")
            await trio.sleep(2)
            assert len(news.told) == number + 1


async def test_a_session_survives_the_loss_of_the_last_writes(autojump_clock):
    """The copy that knows most is written again, and the stream follows it."""
    for seed in range(4):
        news = News()
        async with (
            Fleet(Shop, nodes=3, seed=seed) as fleet,
            fleet.connect(version="2025-11-25", handler=news) as client,
        ):
            await trio.sleep(2)
            await client.subscribe("shop://tea")
            await client.call_tool("keep", {"value": "tea"})
            fleet.backend.lose_tail(2)
            await trio.sleep(3)
            assert (await client.call_tool("kept")).text == "tea"
            news.told.clear()
            fleet.app(0).server.notify_resource_updated("shop://tea")
            await trio.sleep(2)
            assert news.told == ["shop://tea"]


# The backend


async def test_a_backend_that_is_down_fails_at_once(autojump_clock):
    """Running operations fail as well; the memory itself can still be asked."""
    backend = FaultyMemory()
    async with backend.open("shop") as one, trio.open_nursery() as nursery:
        end = await one.end_of("log")

        async def read():
            with pytest.raises(BackendUnavailable, match="went down"):
                await one.read({"log": end}, wait=100.0)

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        backend.down()
        with pytest.raises(BackendUnavailable, match="is down"):
            await one.get("a")
        assert one.is_up is False
        assert await backend.get("a") is None
        backend.up()
        assert await one.get("a") is None
        assert one.is_up is True
        assert trio.current_time() == 0.0


async def test_a_backend_that_is_down_cannot_be_opened(autojump_clock):
    """As without a server there."""
    backend = FaultyMemory()
    backend.down()
    with pytest.raises(BackendUnavailable):
        async with backend.open("shop"):
            raise AssertionError


async def test_a_slow_backend_takes_its_time(autojump_clock):
    """Above the timeout an operation fails, and may have been executed."""
    backend = FaultyMemory(timeout=1.0)
    async with backend.open("shop") as one:
        backend.slow(0.8)
        await one.put("a", b"1", ttl=100.0)
        assert trio.current_time() == pytest.approx(0.8)
        for seconds, is_executed in ((1.5, True), (5.0, False)):
            backend.slow(seconds)
            with pytest.raises(BackendUnavailable, match="within 1 s"):
                await one.put("b" if is_executed else "c", b"1", ttl=100.0)
        assert await backend.get("b") is not None
        assert await backend.get("c") is None
        backend.up()
        assert await one.get("b") is not None


async def test_answers_may_be_lost(autojump_clock):
    """The operation was executed."""
    backend = FaultyMemory()
    async with backend.open("shop") as one:
        backend.lose_answers(1.0)
        with pytest.raises(BackendUnavailable, match="lost"):
            await one.delete("a")
        with pytest.raises(BackendUnavailable, match="lost"):
            await one.put("a", b"1", ttl=100.0)
        backend.lose_answers(0.0)
        assert (await one.get("a")).value == b"1"
        assert await one.take("a", limit=1, period=10.0) == 0.0


async def test_entries_may_come_twice(autojump_clock):
    """As if their answer had been lost, and the node had tried again."""
    backend = FaultyMemory()
    async with backend.open("shop") as one:
        end = await one.end_of("log")
        backend.double_entries(1.0)
        await one.append("log", b"1", keep=10, ttl=10.0)
        backend.double_entries(0.0)
        assert [each.entry for each in await one.read({"log": end}, wait=0.0)] == [b"1", b"1"]


async def test_the_last_writes_may_be_lost(autojump_clock):
    """Records, deletions and entries are as before, and the epoch has changed."""
    backend = FaultyMemory()
    async with backend.open("shop") as one:
        end, epoch = await one.end_of("log"), one.epoch
        await one.put("a", b"1", ttl=100.0, groups={"all": 10})
        await one.put("b", b"1", ttl=100.0)
        await one.append("log", b"1", keep=10, ttl=100.0)
        version = await one.put("a", b"2", ttl=100.0, version=None)
        await one.put("c", b"1", ttl=100.0, groups={"all": 10})
        await one.delete("b")
        assert await one.delete("nothing") is False
        await one.append("log", b"2", keep=10, ttl=100.0)
        backend.lose_tail(4)
        record = await one.get("a")
        assert (record.value, record.version < version) == (b"1", True)
        assert await one.members("all") == ["a"]
        assert (await one.get("b")).value == b"1"
        assert one.epoch != epoch
        gap, entry = await one.read({"log": end}, wait=0.0)
        assert isinstance(gap, Gap)
        assert entry.entry == b"1"
        backend.lose_tail(100)
        assert await one.members("all") == []
        with pytest.raises(Conflict):
            await one.put("a", b"1", ttl=1.0, version=version)


async def test_a_lost_stream_stays_lost(autojump_clock):
    """Entries of a stream that has expired cannot be undone."""
    backend = FaultyMemory()
    async with backend.open("shop") as one:
        await one.append("log", b"1", keep=10, ttl=1.0)
        backend.clear()
        await one.append("log", b"1", keep=10, ttl=1.0)
        await trio.sleep(2.0)
        await one.end_of("log")
        backend.lose_tail(1)
        assert await one.read({"log": await one.end_of("log")}, wait=0.0) == []


async def test_nodes_open_one_name(autojump_clock):
    """As `Memory`."""
    backend = FaultyMemory()
    async with backend.open("shop"):
        with pytest.raises(ValueError, match="belongs to the server 'shop'"):
            async with backend.open("docs"):
                raise AssertionError
        assert backend.now() > 0
