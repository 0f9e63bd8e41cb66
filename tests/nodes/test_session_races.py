"""What happens between the steps of a session at several nodes."""

import trio

from noizu_mcp import Resource, Server, Toolkit, mcp
from noizu_mcp.auth import BearerAuth, StaticVerifier
from noizu_mcp.backends import Memory
from noizu_mcp.server import digest_of
from noizu_mcp.testing import FaultyMemory
from noizu_mcp.types import Principal

from ..kit.messages import call, initialize, message
from .fleet import KEYS, LEASE, error_of, fleet, settled, text_of


class Kit(Toolkit):
    @mcp
    async def get(self, ctx) -> str:
        """Return the values."""
        return f"{sorted(ctx.session.items())}"

    @mcp
    async def put(self, ctx, *, size: int) -> str:
        """Store a value."""
        await ctx.put_session("value", "x" * size)
        return "stored"

    @mcp
    async def large(self, ctx) -> str:
        """Log more than an entry of a log holds."""
        await ctx.info("x" * 100_000)
        await trio.sleep(1)
        return "logged"

    @mcp
    async def count(self, ctx, *, to: int) -> str:
        """Log numbers, slowly."""
        for number in range(to):
            await ctx.info(number)
            await trio.sleep(1)
        return "counted"


class Shop(Server, name="shop", version="1", state_keys=KEYS, tool_timeout=None):
    tools = [Kit]


class Board(Resource, uri="shop:///board", subscribable=True):
    """A resource that changes."""

    async def read(self, ctx):
        return "board"


class Shelf(Resource, uri="shop:///shelf", subscribable=True):
    """Another one."""

    async def read(self, ctx):
        return "shelf"


class Watched(Shop, name="shop", version="1", state_keys=KEYS):
    resources = [Board, Shelf]

    def __init__(self):
        super().__init__()
        self.hooks = []

    async def subscribe(self, uri, ctx):
        self.hooks.append("subscribe")

    async def unsubscribe(self, uri, ctx):
        self.hooks.append("unsubscribe")


def watch(method="subscribe"):
    return message(f"resources/{method}", {"uri": "shop:///board"}, 3)


class Slow(Memory):
    """A backend whose reads, or writes of sessions, take a while, once a test says so."""

    seconds = 0.0

    writing = 0.0

    async def get(self, key, **options):
        found = await super().get(key, **options)
        await trio.sleep(self.seconds)
        return found

    async def put(self, key, value, **options):
        if key.startswith("s:"):
            await trio.sleep(self.writing)
        return await super().put(key, value, **options)


async def test_requests_at_a_time_make_one_copy(autojump_clock):
    """Also where each of them has read the record before the first copy is there."""
    backend = Slow(lease=LEASE)
    async with fleet(Shop, backend=backend) as nodes:
        _, second = await nodes.session()
        backend.seconds = 1
        opened = [second.open(call("get", id_=number)) for number in range(5)]
        for each in opened:
            await each.ended.wait()
            assert text_of(each) == "[]"
        assert len(nodes.wires[1].endpoint.sessions) == 1
        backend.seconds = 0


async def test_a_copy_that_is_dropped_under_a_request_is_made_again(autojump_clock):
    """The request goes on with the new copy."""
    backend = Slow(lease=LEASE)
    async with fleet(Shop, 1, backend, limits={"sessions": 2}) as nodes:
        (session,) = await nodes.session()
        backend.seconds = 1
        request = session.open(call("get"))
        await trio.sleep(0.5)
        (copy,) = nodes.wires[0].endpoint.sessions
        copy.evict()
        copy.evict()  # a second end does nothing
        await request.ended.wait()
        assert text_of(request) == "[]"
        backend.seconds = 0


async def test_a_session_that_ends_under_a_get_is_unknown(autojump_clock):
    """Nothing follows an answer for it, and nothing reads its changes."""
    backend = Slow(lease=LEASE)
    async with fleet(Shop, backend=backend) as nodes:
        first, second = await nodes.session()
        answer = first.open(call("count", {"to": 1}))
        last = (await answer.event(1))["id"]
        await answer.ended.wait()
        await second.post(call("get"))
        for event_id in (last, None):
            backend.seconds = 0.4
            stream = second.get(event_id)
            await trio.sleep(0.6)
            backend.seconds = 0
            await first.delete()
            await stream.ended.wait()
            assert stream.status == 404
            first, second = await nodes.session()
            await second.post(call("get"))


async def test_a_session_of_another_principal_is_unknown(autojump_clock):
    """At the node that has a copy, at the others, and in an outage."""
    tokens = {name: Principal(subject=name) for name in ("ann", "eve")}
    auth = BearerAuth(
        StaticVerifier(tokens), resource="http://localhost/mcp", authorization_servers=[]
    )
    async with fleet(Shop, auth=auth) as nodes:
        ann = {"authorization": "Bearer ann"}
        first, second = await nodes.session(headers=ann)
        eve = {"authorization": "Bearer eve"}
        for session in (first, second, second):
            assert (await session.post(call("get"), eve)).status == 404
            assert (await session.post(call("get"), ann)).status == 200
        nodes.lines[1].cut()
        assert (await second.post(call("get"), eve)).status == 404
        assert (await second.post(call("get"), ann)).status == 200
        nodes.lines[1].mend()


async def test_a_handshake_that_is_refused_begins_nothing(autojump_clock):
    """Neither at its node nor in the backend."""
    async with fleet(Shop) as nodes:
        refused = await nodes.wires[0].send("POST", message("initialize", {}, 1))
        assert refused.error == -32602
        assert len(nodes.wires[0].endpoint.sessions) == 0
        assert "put" not in nodes.lines[0].calls[-1:]


async def test_a_node_without_a_place_begins_no_session(autojump_clock):
    """The record goes, too, where a copy whose session is gone is in use."""
    async with fleet(Shop, limits={"sessions": 1}) as nodes:
        first, _ = await nodes.session()
        first.open(call("count", {"to": 9}))
        await settled()
        records = nodes.wires[0].endpoint.app.running.node.records
        await records.delete(f"s:{digest_of(first.id)}")
        assert (await nodes.wires[0].send("POST", initialize())).status == 503
        await settled()
        assert await records.members("sessions") == []


async def test_places_that_other_nodes_use_are_not_given_away(autojump_clock):
    """A client without a session gets one of a client with many, but none with a stream."""
    async with fleet(Shop, limits={"sessions": 3}) as nodes:
        streams = []
        for _ in range(3):
            _, second = await nodes.session()
            streams.append(second.get())
            await settled()
        other = nodes.wires[0].at("192.0.2.9")
        assert (await other.send("POST", initialize())).status == 503
        for stream in streams:
            stream.leave()
        await settled()
        assert (await other.send("POST", initialize())).status == 200


async def test_the_place_of_a_lost_session_is_free(autojump_clock):
    """A record that cannot be opened is deleted where its place is needed."""
    async with fleet(Shop, limits={"sessions": 1}) as nodes:
        first, _ = await nodes.session()
        await nodes.backend.put(f"s:{digest_of(first.id)}", b"garbage", ttl=1000)
        await trio.sleep(100)
        assert (await nodes.wires[0].send("POST", initialize())).status == 200


async def test_a_session_that_cannot_be_deleted_ends_here(autojump_clock):
    """Its `init` has failed, and the backend cannot be reached."""

    class Fails(Shop, name="shop", version="1", state_keys=KEYS):
        async def init(self, ctx):
            await trio.sleep(1)
            raise ValueError("no")

    async with fleet(Fails) as nodes:
        first, _ = await nodes.session()
        open_ = first.open(call("get"))
        await settled()
        nodes.lines[0].failing = {"delete"}
        await open_.ended.wait()
        assert error_of(open_)[0] == -32603
        assert len(nodes.wires[0].endpoint.sessions) == 0


async def test_a_node_writes_again_until_it_can(autojump_clock):
    """After a loss of the data; and not over the bound of sessions."""
    backend = Memory(lease=LEASE)
    limits = {"sessions": 1}
    async with fleet(Shop, 1, backend) as big, fleet(Shop, 1, backend, limits=limits) as small:
        (one,), (two,) = await big.session(), await big.session()
        await small.at(0, two).post(call("get"))
        big.lines[0].failing = {"put"}
        backend.clear()
        await trio.sleep(2)
        big.lines[0].failing = set()
        await trio.sleep(2)
        for session in (one, two):
            assert text_of(await session.post(call("get"))) == "[]"
        (three,) = await big.session()
        again = small.at(0, two)
        await again.post(call("get"))
        big.wires[0].endpoint.sessions.end(two.served)
        backend.clear()
        assert text_of(await one.post(call("get"))) == "[]"
        assert text_of(await three.post(call("get"))) == "[]"
        assert text_of(await again.post(call("get"))) == "[]"


async def test_a_sweep_without_memory(autojump_clock):
    """A node that has no room for new values keeps what it has."""
    backend = Memory(lease=LEASE)
    limits = {"memory": 160_000}
    async with fleet(Shop, 1, backend) as large, fleet(Shop, 1, backend, limits=limits) as small:
        (session,) = await large.session()
        stream = small.at(0, session).get()
        running = small.at(0, session).open(call("count", {"to": 100}))
        await settled()
        await session.post(call("put", {"size": 38_000}))
        await trio.sleep(60)
        assert not stream.ended.is_set()
        assert not running.ended.is_set()


async def test_two_nodes_replace_a_dead_keeper_once(autojump_clock):
    """One of them keeps the resource, and the other one calls nothing."""
    backend = Slow(lease=LEASE)
    async with fleet(Watched, 3, backend) as nodes:
        first, second, third = await nodes.session()
        await first.post(watch())
        await second.post(call("get"))
        await third.post(call("get"))
        await trio.sleep(LEASE)
        nodes.lines[0].cut()
        await trio.sleep(LEASE + 2)
        backend.seconds = 0.1
        async with trio.open_nursery() as nursery:
            for session in (second, third):
                nursery.start_soon(session.post, call("get"))
        await trio.sleep(3)
        backend.seconds = 0
        hooks = [wire.app.server.hooks for wire in nodes.wires]
        assert sorted(hooks) == [[], ["subscribe"], ["subscribe"]]
        nodes.lines[0].mend()


async def test_a_session_that_ends_under_its_new_keeper(autojump_clock):
    """Nothing is kept for it."""
    backend = Slow(lease=LEASE)
    async with fleet(Watched, 2, backend) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        await second.post(call("get"))
        await trio.sleep(LEASE)
        nodes.lines[0].cut()
        await trio.sleep(LEASE + 2)
        backend.seconds = 0.4
        await second.post(call("get"))
        await backend.delete(f"s:{digest_of(first.id)}")
        await trio.sleep(3)
        backend.seconds = 0
        assert nodes.wires[1].app.server.hooks == []
        nodes.lines[0].mend()


async def test_a_keeper_that_cannot_hand_over(autojump_clock):
    """Its own hook ends, whatever the backend says."""
    async with fleet(Watched) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        await first.post(message("resources/subscribe", {"uri": "shop:///shelf"}, 3))
        nodes.lines[0].failing = {"get"}
        first.served.evict()
        await settled()
        nodes.lines[0].failing = set()
        assert nodes.wires[0].app.server.hooks[2:] == ["unsubscribe"] * 2
        nodes.lines[1].failing = {"put"}
        assert error_of(await second.post(watch("unsubscribe")))[0] == -32603
        nodes.lines[1].failing = set()
        assert (await second.post(watch("unsubscribe"))).status == 200
        assert nodes.wires[1].app.server.hooks == []


async def test_unsubscribe_at_the_keeper_and_elsewhere_at_a_time(autojump_clock):
    """The hook runs once."""
    backend = Slow(lease=LEASE)
    async with fleet(Watched, backend=backend) as nodes:
        sessions = await nodes.session()
        await sessions[0].post(watch())
        await sessions[1].post(call("get"))
        backend.seconds = 0.1
        async with trio.open_nursery() as nursery:
            for session in sessions:
                nursery.start_soon(session.post, watch("unsubscribe"))
        backend.seconds = 0
        await settled()
        hooks = [wire.app.server.hooks for wire in nodes.wires]
        assert hooks == [["subscribe", "unsubscribe"], []]


async def test_only_what_a_dead_node_kept_is_kept_anew(autojump_clock):
    """Not what a third node keeps; and not while the backend cannot be asked."""
    async with fleet(Watched, 3) as nodes:
        first, second, third = await nodes.session()
        await first.post(watch())
        await third.post(message("resources/subscribe", {"uri": "shop:///shelf"}, 3))
        await second.post(call("get"))
        await trio.sleep(LEASE)
        nodes.lines[0].cut()
        await trio.sleep(LEASE + 2)
        server = nodes.wires[1].app.server
        nodes.lines[1].failing = {"get"}
        await second.post(call("get"))
        await settled()
        assert server.hooks == []
        nodes.lines[1].failing = set()
        await second.post(call("get"))
        await settled()
        assert server.hooks == ["subscribe"]
        nodes.lines[0].mend()


async def test_a_reader_that_missed_its_end(autojump_clock):
    """A node that hears nothing of the new reader finds it in the record."""
    async with fleet(Watched, limits={"session_idle": 100.0}) as nodes:
        first, second = await nodes.session()
        stream = first.get()
        await settled()
        nodes.lines[0].failing = {"read"}
        await trio.sleep(6)
        second.get()
        await trio.sleep(60)
        assert stream.complete
        nodes.lines[0].failing = set()


async def test_a_session_that_ends_while_init_runs_elsewhere(autojump_clock):
    """A request that waits for it is answered."""

    class Slowly(Shop, name="shop", version="1", state_keys=KEYS):
        async def init(self, ctx):
            await trio.sleep(5)

    async with fleet(Slowly) as nodes:
        first, second = await nodes.session()
        waiting = [first.open(call("get")), second.open(call("get"))]
        await trio.sleep(1)
        await nodes.backend.delete(f"s:{digest_of(first.id)}")
        for each in waiting:
            await each.ended.wait()
            assert error_of(each)[0] == -32603


async def test_any_change_of_the_log_is_told(autojump_clock):
    """A node that had too many changes says that anything may have changed."""
    async with fleet(Watched) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        server = nodes.wires[0].app.server
        for kind in ("tools", "prompts", "resources"):
            server.notify_changed(kind)
        nodes.wires[0].endpoint.app.running.node.tell("changed", None)
        await trio.sleep(1)
        stream = second.get()
        await settled()
        assert len({each["method"] for each in stream.messages}) == 4


async def test_a_log_that_is_long_is_not_read(autojump_clock):
    """A client that was away for long, or says so, hears that anything may have changed."""
    async with fleet(Watched) as nodes:
        first, second = await nodes.session()
        for number in range(1100):
            await nodes.backend.append("log", b"garbage %d" % number, keep=10_000, ttl=100)
        stream = second.get()
        await settled()
        assert len(stream.messages) == 3
        assert (await first.post(call("get"))).status == 200


async def test_readers_that_replace_each_other_at_once(autojump_clock):
    """The last one gets the changes, and the others end."""
    backend = Slow(lease=LEASE)
    async with fleet(Watched, backend=backend) as nodes:
        _, second = await nodes.session()
        nodes.wires[0].app.server.notify_changed("tools")
        await trio.sleep(1)
        streams = []
        for _ in range(3):
            streams.append(second.get())
            await settled()
        backend.seconds = 0.1
        streams += [second.get() for _ in range(3)]
        await trio.sleep(3)
        backend.seconds = 0
        assert sum(not each.ended.is_set() for each in streams) == 1


async def test_answers_of_a_session_that_ends(autojump_clock):
    """Those that are followed end, and many are forgotten."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        running = [first.open(call("count", {"to": 9}, number)) for number in range(34)]
        last, *_ = [(await each.event(1))["id"] for each in running]
        running[0].leave()
        followed = second.get(last)
        await settled()
        nodes.lines[0].failing = {"append"}
        await second.delete()
        await followed.ended.wait()
        for each in running:
            await each.ended.wait()
        await settled()
        nodes.lines[0].failing = set()
        await trio.sleep(3)


async def test_a_large_event_that_is_lost(autojump_clock):
    """The rest of the answer comes without it; an entry that is garbage is no event."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        answer = first.open(call("large"))
        last = (await answer.event(0))["id"]
        name = last.partition("-")[0]
        digest = digest_of(first.id)
        await settled()
        await nodes.backend.append(f"e:{digest}:{name}", b"garbage", keep=100, ttl=100)
        await answer.ended.wait()
        await settled()
        number = int(last.partition("-")[2]) + 1
        await nodes.backend.delete(f"h:{digest}:{name}:{number}")
        again = second.get(last)
        await again.ended.wait()
        assert [each["result"]["content"][0]["text"] for each in again.messages] == ["logged"]


async def test_a_session_whose_record_takes_too_long_does_not_begin(autojump_clock):
    """It is refused within seconds, with a text that says to try again."""
    backend = Slow(lease=LEASE)
    async with fleet(Shop, backend=backend) as nodes:
        backend.writing = 10
        since = trio.current_time()
        answer = await nodes.wires[0].send("POST", initialize())
        backend.writing = 0

        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        assert trio.current_time() - since < 4


async def test_a_value_that_is_lost_with_the_last_writes_is_written_again(autojump_clock):
    """By the next request at the node that knows it, before the node has looked for losses."""
    backend = FaultyMemory(lease=LEASE)
    async with fleet(Shop, backend=backend) as nodes:
        first, second = await nodes.session()
        await second.post(call("get"))
        await first.post(call("put", {"size": 3}))
        backend.lose_tail(1)
        answers = [await session.post(call("get")) for session in (first, second)]

    assert [text_of(answer) for answer in answers] == ["[('value', 'xxx')]"] * 2
