"""Sessions while the backend cannot be reached, has lost its data, or holds garbage."""

import trio

from noizu_mcp import Resource, Server, Toolkit, mcp
from noizu_mcp.backends import Memory
from noizu_mcp.server import digest_of

from ..kit.messages import call, initialize, message
from .fleet import KEYS, LEASE, error_of, fleet, settled, text_of

#: What a client that answers questions declares.
ASKED = {"roots": {}}


class Board(Resource, uri="shop:///board", subscribable=True):
    """A resource that changes."""

    async def read(self, ctx):
        return "board"


class Kit(Toolkit):
    @mcp
    async def put(self, ctx, *, key: str, value: str) -> str:
        """Store a value."""
        await ctx.put_session(key, value)
        return "stored"

    @mcp
    async def get(self, ctx) -> str:
        """Return the values, and the level."""
        return f"{sorted(ctx.session.items())} {ctx.log_level}"

    @mcp
    async def late(self, ctx) -> str:
        """Store a value after a while."""
        await trio.sleep(1)
        await ctx.put_session("late", 1)
        return "stored"

    @mcp
    async def wait(self, ctx) -> str:
        """Wait."""
        await trio.sleep_forever()

    @mcp
    async def count(self, ctx, *, to: int) -> str:
        """Log numbers, slowly."""
        for number in range(to):
            await ctx.info(number)
            await trio.sleep(1)
        return "counted"

    @mcp
    async def look(self, ctx) -> str:
        """Ask for the roots of the client."""
        return str(len(await ctx.list_roots()))


class Shop(Server, name="shop", version="1", state_keys=KEYS, tool_timeout=None):
    tools = [Kit]
    resources = [Board]

    def __init__(self):
        super().__init__()
        self.hooks = []

    async def subscribe(self, uri, ctx):
        self.hooks.append("subscribe")

    async def unsubscribe(self, uri, ctx):
        self.hooks.append("unsubscribe")


def server(nodes, number):
    """Return the server of a node."""
    return nodes.wires[number].app.server


def watch(method="subscribe"):
    return message(f"resources/{method}", {"uri": "shop:///board"}, 3)


def kinds(stream):
    """List the notifications of a stream."""
    return [each["method"].split("/", 1)[1] for each in stream.messages]


def put(key="a", value="1"):
    return call("put", {"key": key, "value": value})


async def in_time(request):
    """Await a request, which must end within four seconds."""
    start = trio.current_time()
    answer = await request
    assert trio.current_time() - start <= 4
    return answer


def is_refused(answer):
    """Tell whether an answer asks to try again later."""
    message = answer.json["error"]["message"]
    return answer.status == 503 and "try again" in message and "retry-after" in answer.headers


async def test_an_outage(autojump_clock, caplog):
    """Copies go on, writes fail with a reason, and the rest is asked to come again."""
    for fault in ("cut", "stop"):
        async with fleet(Shop) as nodes:
            first, second = await nodes.session()
            await first.post(put())
            await settled()
            for line in nodes.lines:
                getattr(line, fault)()
            assert text_of(await in_time(first.post(call("get")))) == "[('a', '1')] debug"
            assert is_refused(await in_time(second.post(call("get"))))
            assert is_refused(await in_time(nodes.wires[0].send("POST", initialize())))
            assert is_refused(await in_time(first.delete()))
            again = "could not be stored; try again in a moment"
            answer = await in_time(first.post(put("b")))
            assert error_of(answer) == (-32603, f"The value 'b' of the session {again}")
            level = message("logging/setLevel", {"level": "error"}, 5)
            answer = await in_time(first.post(level))
            assert error_of(answer) == (-32603, f"The log level {again}")
            answer = await in_time(first.post(watch()))
            assert error_of(answer) == (-32603, f"The subscription {again}")
            await settled()
            assert server(nodes, 0).hooks == ["subscribe", "unsubscribe"]
            for line in nodes.lines:
                line.mend()
            await trio.sleep(3)
            for session in (first, second):
                assert text_of(await session.post(call("get"))) == "[('a', '1')] debug"
    assert "Traceback" not in caplog.text


async def test_a_copy_is_served_only_while_it_was_confirmed_lately(autojump_clock):
    """After `session_idle` seconds it is unknown whether the session lives."""
    async with fleet(Shop, limits={"session_idle": 50.0}) as nodes:
        first, _ = await nodes.session()
        stream = first.get()
        await settled()
        nodes.lines[0].cut()
        await trio.sleep(40)
        assert (await first.post(call("get"))).status == 200
        await trio.sleep(20)
        assert is_refused(await first.post(call("get")))
        assert not stream.ended.is_set()
        nodes.lines[0].mend()


async def test_the_end_of_a_subscription_that_is_not_stored(autojump_clock):
    """The keeper keeps the resource."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        nodes.lines[0].cut()
        assert error_of(await first.post(watch("unsubscribe")))[0] == -32603
        nodes.lines[0].mend()
        await trio.sleep(3)
        await second.post(watch("unsubscribe"))
        await settled()
        assert server(nodes, 0).hooks == ["subscribe", "unsubscribe"]


async def test_streams_in_an_outage(autojump_clock):
    """The GET stream begins with everything, and changes of the outage are told after it."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        answer = first.open(call("count", {"to": 5}))
        last = (await answer.event(1))["id"]
        nodes.lines[0].cut()
        stream = first.get()
        await trio.sleep(2)
        assert "resources/updated" in kinds(stream)
        before = len(kinds(stream))
        server(nodes, 1).notify_resource_updated("shop:///board")
        unknown = first.get("a.b-1")
        await unknown.ended.wait()
        assert is_refused(unknown)
        await trio.sleep(2)
        nodes.lines[0].mend()
        await trio.sleep(3)
        assert kinds(stream)[before:] == ["resources/updated"]
        await answer.ended.wait()
        again = second.get(last)
        await again.ended.wait()
        assert again.messages[-1]["result"]["content"][0]["text"] == "counted"
        newest = second.get()
        await stream.ended.wait()
        assert stream.complete
        newest.leave()


async def test_a_reader_that_leaves_in_an_outage(autojump_clock):
    """The next one gets more than it missed."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        for leaves_before in (True, False):
            if leaves_before:
                stream = first.get()
                await settled()
            nodes.lines[0].cut()
            if not leaves_before:
                stream = first.get()
                await settled()
            stream.leave()
            await settled()
            nodes.lines[0].mend()
            await trio.sleep(3)
        server(nodes, 0).notify_changed("tools")
        await trio.sleep(1)
        stream = second.get()
        await settled()
        assert kinds(stream) == ["tools/list_changed"]


async def test_an_answer_is_followed_through_an_outage(autojump_clock):
    """The follower waits for the backend."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        answer = first.open(call("count", {"to": 5}))
        last = (await answer.event(1))["id"]
        answer.leave()
        again = second.get(last)
        await settled()
        nodes.lines[1].cut()
        await trio.sleep(3)
        nodes.lines[1].mend()
        await again.ended.wait()
        assert again.messages[-1]["result"]["content"][0]["text"] == "counted"
        assert len(again.messages) == 5


async def test_init_waits_for_the_backend(autojump_clock):
    """It runs once, and is recorded when that is possible."""

    class Once(Shop, name="shop", version="1", state_keys=KEYS):
        ran = 0

        async def init(self, ctx):
            type(self).ran += 1
            await trio.sleep(1)

    async with fleet(Once) as nodes:
        first, second = await nodes.session(ready=False)
        waiting = first.open(call("get"))
        await trio.sleep(0.5)
        other = second.open(call("get"))
        await trio.sleep(0.1)
        for line in nodes.lines:
            line.cut()
        await trio.sleep(3)
        for line in nodes.lines:
            line.mend()
        for each in (waiting, other):
            await each.ended.wait()
            assert text_of(each) == "[] debug"
        assert Once.ran == 1


async def test_an_emptied_backend(autojump_clock):
    """Sessions in use, with a stream, or used lately are put back, with the latest values."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        idle = (await nodes.session())[0]
        streaming = (await nodes.session())[1]
        running = (await nodes.session())[0]
        streaming.get()
        running.open(call("wait"))
        await trio.sleep(100)
        await second.post(put("b", "0"))
        await first.post(put())
        await settled()
        nodes.backend.clear()
        await trio.sleep(0.5)
        assert text_of(await first.post(call("get"))) == "[('a', '1'), ('b', '0')] debug"
        await trio.sleep(2)
        assert text_of(await second.post(call("get"))) == "[('a', '1'), ('b', '0')] debug"
        for each in (streaming, running):
            for number in (0, 1):
                assert (await nodes.at(number, each).post(call("get", id_=9))).status == 200
        assert is_refused(await nodes.at(1, idle).post(call("get")))
        await trio.sleep(4)
        for number in (0, 1):
            assert (await nodes.at(number, idle).post(call("get"))).status == 404


async def test_the_node_that_knew_most_counts(autojump_clock):
    """A node with an older copy does not undo what another one has stored."""
    async with fleet(Shop, 3) as nodes:
        sessions = await nodes.session()
        for number, session in enumerate(sessions):
            await session.post(put(f"k{number}"))
        nodes.backend.clear()
        assert (await sessions[0].post(call("get"))).status == 200
        await trio.sleep(2)
        text = text_of(await sessions[0].post(call("get")))
        assert text == "[('k0', '1'), ('k1', '1'), ('k2', '1')] debug"


async def test_a_node_that_knew_more_is_asked_first(autojump_clock):
    """Its next request, and its next value, find what it has stored before the loss."""
    async with fleet(Shop) as nodes:
        for later in (call("get"), put("c")):
            first, second = await nodes.session()
            await first.post(put())
            await second.post(put("b"))
            nodes.backend.clear()
            assert "('a', '1'), ('b', '1')" in text_of(await first.post(call("get")))
            await second.post(later)
            assert "('a', '1'), ('b', '1')" in text_of(await first.post(call("get")))
            await trio.sleep(5)


async def test_a_change_of_a_node_that_knew_more(autojump_clock):
    """A handler that has begun before the loss adds to what its node knew."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        await first.post(put())
        await second.post(put("b"))
        late = second.open(call("late"))
        await trio.sleep(0.9)
        nodes.backend.clear()
        await first.post(call("get"))
        await late.ended.wait()
        text = text_of(await first.post(call("get")))
        assert text == "[('a', '1'), ('b', '1'), ('late', 1)] debug"


async def test_a_node_that_hears_nothing_knew_more(autojump_clock):
    """Its own request finds the older copy in the record, and replaces it."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        await first.post(put())
        await second.post(put("b"))
        nodes.lines[1].failing = {"read"}
        await trio.sleep(6.2)  # between two renewals, which show the loss
        nodes.backend.clear()
        assert text_of(await first.post(call("get"))) == "[('a', '1')] debug"
        for session in (second, first):
            assert text_of(await session.post(call("get"))) == "[('a', '1'), ('b', '1')] debug"
        nodes.lines[1].failing = set()


async def test_a_loss_that_the_epoch_does_not_show(autojump_clock):
    """A write and a read right after the loss find the session."""

    class Late(Memory):
        epoch = "always the same"

    async with fleet(Shop, backend=Late(lease=LEASE)) as nodes:
        _, second = await nodes.session()
        unknown = nodes.at(1, (await nodes.session())[0])
        await second.post(put())
        nodes.backend.clear()
        assert text_of(await second.post(put("b", "2"))) == "stored"
        assert is_refused(await unknown.post(call("get")))
        nodes.backend.clear()
        assert text_of(await second.post(call("get"))) == "[('a', '1'), ('b', '2')] debug"


def record_of(nodes, session):
    """Return the records of a node, and the key of a session."""
    return nodes.wires[0].endpoint.app.running.node.records, f"s:{digest_of(session.id)}"


async def test_a_record_that_changes_under_a_handler(autojump_clock):
    """A value is stored after a loss of the data, and not in a session that has ended."""
    async with fleet(Shop) as nodes:
        (first, _), (second, _) = await nodes.session(), await nodes.session()
        third = (await nodes.session())[0]
        calls = [each.open(call("late")) for each in (first, second, third)]
        await trio.sleep(0.5)
        records, key = record_of(nodes, second)
        await records.put(key, ["another form"], ttl=100)
        await records.delete(record_of(nodes, third)[1])
        for each in calls:
            await each.ended.wait()
        assert text_of(calls[0]) == "stored"
        for each in calls[1:]:
            assert error_of(each)[1].endswith("could not be stored: the session has ended")
        late = first.open(call("late"))
        await trio.sleep(0.9)
        nodes.backend.clear()
        await late.ended.wait()
        assert text_of(late) == "stored"
        assert text_of(await first.post(call("get"))) == "[('late', 1)] debug"


async def test_a_record_of_another_form_is_no_session(autojump_clock):
    """A newer version may write records that this one does not know."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        records, key = record_of(nodes, first)
        await records.put(key, {"values": 1}, ttl=100)
        assert (await first.post(call("get"))).status == 404
        assert (await second.post(call("get"))).status == 404
        third, fourth = await nodes.session()
        answer = third.open(call("count", {"to": 1}))
        last = (await answer.event(1))["id"]
        await answer.ended.wait()
        head = f"h:{digest_of(third.id)}:{last.partition('-')[0]}"
        await records.put(head, ["another form"], ttl=100)
        gone = fourth.get(last)
        await gone.ended.wait()
        assert gone.status == 400


async def test_garbage_in_the_backend_is_nothing(autojump_clock, caplog):
    """A record that cannot be opened does not exist, and one of another form neither."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        answer = first.open(call("count", {"to": 3}))
        last = (await answer.event(1))["id"]
        await answer.ended.wait()
        for key in list(nodes.backend._records):
            if key[:2] in ("s:", "h:"):
                await nodes.backend.put(key, b"garbage", ttl=100)
        assert (await second.post(call("get"))).status == 404
        assert (await first.post(put())).status == 404
        third, fourth = await nodes.session()
        for stream in list(nodes.backend._streams):
            await nodes.backend.append(stream, b"garbage", keep=100, ttl=100)
        gone = fourth.get(last)
        await gone.ended.wait()
        assert gone.status == 400
        assert text_of(await third.post(call("get"))) == "[] debug"
    assert "Traceback" not in caplog.text


async def test_a_full_memory_refuses_copies(autojump_clock):
    """A node without room for a copy, or for its values, says so."""
    limits = {"memory": 160_000}
    backend = Memory(lease=LEASE)
    async with fleet(Shop, 1, backend) as large, fleet(Shop, 1, backend, limits=limits) as small:
        (one,) = await large.session()
        await one.post(put("a", "x" * 38_000))
        assert (await small.at(0, one).post(call("get"))).status == 503
        (two,) = await large.session()
        again = small.at(0, two)
        assert (await again.post(call("get"))).status == 200
        await two.post(put("a", "x" * 38_000))
        assert (await again.post(call("get"))).status == 503
        three = await large.session()
        await three[0].post(watch())
        assert (await small.wires[0].send("POST", initialize())).status in (200, 503)


async def test_a_large_message_in_an_outage_is_dropped(autojump_clock):
    """Its question goes on to wait; the node says nothing wrong."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session(capabilities=ASKED)
        asking = first.open(call("look"))
        question = (await asking.event(1))["data"]
        roots = [{"uri": f"file:///{'x' * 1000}"} for _ in range(100)]
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": roots}}
        assert (await second.post(call("get"))).status == 200
        nodes.lines[1].cut()
        assert (await second.post(answer)).status == 202
        nodes.lines[1].mend()
        await trio.sleep(3)
        assert not asking.ended.is_set()
        nodes.lines[0].cut()
        assert (await second.post(answer)).status == 202
        await trio.sleep(3)
        nodes.lines[0].mend()
        await trio.sleep(3)
        assert (await second.post(answer)).status == 202
        await asking.ended.wait()
        assert text_of(asking) == "100"
