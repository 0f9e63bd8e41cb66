"""Streams of a session at many nodes: changes on the GET stream, and answers that are resumed."""

import trio

from noizu_mcp import Limits, Resource, Server, Toolkit, mcp

from ..kit.messages import call, message
from ..transports.http.wire import Session
from .fleet import KEYS, LEASE, fleet, settled

CHANGED = "notifications/resources/updated"


class Board(Resource, uri="shop:///board", subscribable=True):
    """A resource that changes."""

    async def read(self, ctx):
        return "board"


class Shelf(Resource, uri="shop:///shelf", subscribable=True):
    """Another one."""

    async def read(self, ctx):
        return "shelf"


class Kit(Toolkit):
    @mcp
    async def announce(self, ctx) -> str:
        """Say that the list of tools has changed, for this session."""
        ctx.notify.tools(here=True)
        return "said"

    @mcp
    async def count(self, ctx, *, to: int, wait: float = 0.5) -> str:
        """Log numbers, slowly."""
        for number in range(to):
            await ctx.info(number)
            await trio.sleep(wait)
        return "counted"

    @mcp
    async def large(self, ctx) -> str:
        """Log more than an entry of a log holds."""
        await ctx.info("x" * 100_000)
        await trio.sleep(1)
        return "logged"

    @mcp
    async def many(self, ctx) -> str:
        """Log more than a session stores."""
        for number in range(20):
            await ctx.info(f"{number} {'x' * 1000}")
        await trio.sleep(1)
        return "logged"


class Shop(Server, name="shop", version="1", state_keys=KEYS, tool_timeout=None):
    tools = [Kit]
    resources = [Board, Shelf]

    def __init__(self):
        super().__init__()
        self.hooks = []

    async def subscribe(self, uri, ctx):
        await super().subscribe(uri, ctx)
        self.hooks.append("subscribe")

    async def unsubscribe(self, uri, ctx):
        self.hooks.append("unsubscribe")


def server(nodes, number):
    """Return the server of a node."""
    return nodes.wires[number].app.server


def watch(method="subscribe"):
    return message(f"resources/{method}", {"uri": "shop:///board"}, 3)


def told(stream):
    """List the notifications of a stream by their last words."""
    return [each["method"].rpartition("/")[2] for each in stream.messages]


def kinds(stream):
    """List the notifications of a stream."""
    return [each["method"].split("/", 1)[1] for each in stream.messages]


# The GET stream


async def test_changes_of_each_node_are_told_where_the_reader_is(autojump_clock):
    """Lists and watched resources; each once."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        stream = second.get()
        await settled()
        server(nodes, 0).notify_resource_updated("shop:///board")
        server(nodes, 1).notify_changed("prompts")
        await settled()
        assert sorted(kinds(stream)) == ["prompts/list_changed", "resources/updated"]
        await second.post(watch("unsubscribe"))
        server(nodes, 0).notify_resource_updated("shop:///board")
        await settled()
        assert len(stream.messages) == 2


async def test_a_change_here_reaches_the_reader_at_any_node(autojump_clock):
    """Only this session gets it, also before it has a reader."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        other = (await nodes.session())[1].get()
        await first.post(call("announce"))
        stream = second.get()
        await settled()
        assert kinds(stream) == ["tools/list_changed"]
        await trio.sleep(1)
        await second.post(call("announce"))
        await trio.sleep(1)
        await first.post(call("announce"))
        await settled()
        assert kinds(stream) == ["tools/list_changed"] * 3
        assert kinds(other) == []


async def test_the_newest_get_stream_is_the_only_one(autojump_clock):
    """The former one ends in order, at whatever node it is."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        streams = []
        for session in (first, second, first, first):
            streams.append(session.get())
            await settled()
        assert [each.complete for each in streams] == [True, True, True, False]
        server(nodes, 1).notify_changed("tools")
        await settled()
        assert kinds(streams[-1]) == ["tools/list_changed"]


async def test_changes_between_two_get_streams_are_told_on_the_second(autojump_clock):
    """With the id of the last event or without one, at each node."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        last = None
        for session, other in ((first, 1), (second, 0), (second, 1), (first, 0)):
            server(nodes, other).notify_resource_updated("shop:///board")
            await trio.sleep(1)
            stream = session.get(last)
            await settled()
            assert kinds(stream) == ["resources/updated"]
            last = None if last else stream.events[-1]["id"]
            stream.leave()
            await trio.sleep(1)
        stream = second.get()
        await settled()
        assert kinds(stream) == []


async def test_a_lost_place_is_told_of_everything(autojump_clock):
    """An id with another position, and a malformed id, mean any change."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        for last in ("a.b-1@x%3A1-1", "a.b-1@", f"@{'x' * 600}"):
            stream = second.get(last)
            await settled()
            if len(last) > 512:
                assert stream.status == 400
                continue
            assert sorted(kinds(stream)) == [
                "prompts/list_changed",
                "resources/list_changed",
                "resources/updated",
                "tools/list_changed",
            ]
            await trio.sleep(2)


async def test_an_older_revision_has_the_same_stream(autojump_clock):
    """2025-06-18 has no event before the first message."""
    async with fleet(Shop) as nodes:
        _, second = await nodes.session("2025-06-18")
        stream = second.get()
        await settled()
        assert stream.events == []
        server(nodes, 0).notify_changed("tools")
        await settled()
        assert kinds(stream) == ["tools/list_changed"]


async def test_messages_of_init_wait_for_the_reader(autojump_clock):
    """A log message without a request reaches the first GET stream, at any node."""

    class Talks(Shop, name="shop", version="1", state_keys=KEYS):
        async def init(self, ctx):
            await ctx.info("hello")
            await ctx.info("x" * 100_000)
            await trio.sleep(2)
            await ctx.info("there")

    async with fleet(Talks) as nodes:
        first, second = await nodes.session()
        await second.post(message("ping", {}, 1))
        await settled()
        stream = first.get()
        await trio.sleep(3)
        assert [each["params"]["data"] for each in stream.messages] == ["hello", "there"]
        assert (await second.post(message("ping", {}, 1))).status == 200


# Hooks


async def test_hooks_run_once_for_all_nodes(autojump_clock):
    """`subscribe` runs where the request comes, and `unsubscribe` at the same node."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        for session in (first, second, first):
            assert (await session.post(watch())).status == 200
        assert server(nodes, 0).hooks == ["subscribe"]
        for session in (second, first):
            assert (await session.post(watch("unsubscribe"))).status == 200
        await settled()
        assert server(nodes, 0).hooks == ["subscribe", "unsubscribe"]
        assert server(nodes, 1).hooks == []


async def test_hooks_of_two_nodes_at_a_time_are_paired(autojump_clock):
    """One of two concurrent subscriptions counts; the other one is undone."""
    async with fleet(Shop) as nodes:
        sessions = await nodes.session()
        async with trio.open_nursery() as nursery:
            for session in sessions:
                nursery.start_soon(session.post, watch())
        await settled()
        hooks = sorted([server(nodes, 0).hooks, server(nodes, 1).hooks], key=len)
        assert hooks == [["subscribe"], ["subscribe", "unsubscribe"]]


async def test_the_end_of_a_session_ends_its_hooks(autojump_clock):
    """A DELETE at another node reaches the keeper."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        await second.delete()
        await settled()
        assert server(nodes, 0).hooks == ["subscribe", "unsubscribe"]


async def test_an_idle_keeper_keeps_while_the_session_lives(autojump_clock):
    """It lets go once no node has used the session."""
    async with fleet(Shop, limits={"session_idle": 100.0}) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        for _ in range(4):
            await trio.sleep(80)
            assert (await second.post(call("announce"))).status == 200
        assert server(nodes, 0).hooks == ["subscribe"]
        await trio.sleep(300)
        assert server(nodes, 0).hooks == ["subscribe", "unsubscribe"]


async def test_a_keeper_without_room_hands_over(autojump_clock):
    """The next node that serves the session keeps its resources."""
    async with fleet(Shop, 3, limits={"sessions": 9}) as nodes:
        first, second, _ = await nodes.session()
        await first.post(watch())
        nodes.wires[0].endpoint.sessions._sessions[first.id].evict()
        await settled()
        assert server(nodes, 0).hooks == ["subscribe", "unsubscribe"]
        await second.post(call("announce"))
        await settled()
        assert server(nodes, 1).hooks == ["subscribe"]


async def test_a_dead_keeper_is_replaced(autojump_clock):
    """The next node that serves the session subscribes again, and is the keeper."""
    async with fleet(Shop, 3) as nodes:
        first, second, third = await nodes.session()
        await first.post(watch())
        await trio.sleep(LEASE)
        nodes.lines[0].cut()
        await trio.sleep(LEASE + 2)
        for session in (second, third, third):
            assert (await session.post(call("announce"))).status == 200
            await settled()
        assert server(nodes, 1).hooks == ["subscribe"]
        await third.post(watch("unsubscribe"))
        await settled()
        assert server(nodes, 1).hooks == ["subscribe", "unsubscribe"]
        nodes.lines[0].mend()


async def test_too_many_subscriptions_are_refused(autojump_clock):
    """The limit is of the session, at all nodes."""

    class One(Shop, name="shop", version="1", state_keys=KEYS):
        limits = Limits(subscriptions=1)

    async with fleet(One) as nodes:
        first, second = await nodes.session()
        await first.post(watch())
        more = message("resources/subscribe", {"uri": "shop:///shelf"}, 3)
        answer = await second.post(more)
        assert answer.error == -32602


# Answers


def numbers(stream):
    """List what was logged, and the answer."""
    found = []
    for each in stream.messages:
        if "params" in each:
            found.append(each["params"]["data"])
        elif "result" in each:
            found.append(each["result"]["content"][0]["text"])
        else:
            found.append(each["error"]["code"])
    return found


async def leave_after(session, body, number):
    """Begin a call, and leave after an event; return the id of the event."""
    stream = session.open(body)
    last = (await stream.event(number))["id"]
    stream.leave()
    return last


async def test_an_answer_is_resumed_at_another_node(autojump_clock):
    """While the handler runs, and after; each event once, also after a second break."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        last = await leave_after(first, call("count", {"to": 6}), 2)
        again = second.get(last)
        event = await again.event(1)
        assert numbers(again) == [2, 3]
        again.leave()
        rest = second.get(event["id"])
        await rest.ended.wait()
        assert numbers(rest) == [4, 5, "counted"]
        assert rest.complete
        for session in (first, second):
            replayed = session.get(last)
            await replayed.ended.wait()
            assert numbers(replayed) == [2, 3, 4, 5, "counted"]


async def test_the_newest_reader_of_an_answer_is_the_only_one(autojump_clock):
    """A client that comes twice gets the rest once."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        last = await leave_after(first, call("count", {"to": 6}), 2)
        former = second.get(last)
        await settled()
        newest = second.get(last)
        await newest.ended.wait()
        assert former.complete
        assert numbers(newest)[-1] == "counted"


async def test_large_events_are_resumed(autojump_clock):
    """Events that do not fit into an entry of a log."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        last = await leave_after(first, call("large"), 0)
        again = second.get(last)
        await again.ended.wait()
        assert [len(each) for each in numbers(again)] == [100_000, 6]


async def test_an_answer_at_a_dead_node_ends_with_an_error(autojump_clock):
    """After the stored events, within the lease and four seconds."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        last = await leave_after(first, call("count", {"to": 3, "wait": 1}), 1)
        await trio.sleep(LEASE + 0.5)
        nodes.lines[0].cut()
        cut = trio.current_time()
        again = second.get(last)
        await again.ended.wait()
        assert trio.current_time() - cut <= LEASE + 4
        assert numbers(again) == [1, 2, -32603]
        error = again.messages[-1]
        assert error["id"] == 1
        assert "node" in error["error"]["message"]
        nodes.lines[0].mend()


async def test_a_batch_at_a_dead_node_ends_with_errors(autojump_clock):
    """Each of its requests has one."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session("2025-03-26")
        both = [call("count", {"to": 3}, 1), call("count", {"to": 3}, 2)]
        last = await leave_after(first, both, 1)
        nodes.lines[0].cut()
        again = second.get(last)
        await again.ended.wait()
        assert [each["id"] for each in again.messages[-1]] == [1, 2]
        nodes.lines[0].mend()


async def test_an_unknown_event_is_refused(autojump_clock):
    """Of another session, malformed, or never stored: 400."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        other = (await nodes.session())[1]
        last = await leave_after(first, call("count", {"to": 1}), 1)
        await settled()
        for session, wrong in (
            (other, last),
            (second, "nonsense"),
            (second, "a.b-1"),
            (second, "a.b-x"),
            (second, "é.b-1"),
            (second, f"{'a' * 600}.b-1"),
            (second, last.replace("-", "x-")),
        ):
            stream = session.get(wrong)
            await stream.ended.wait()
            assert (stream.status, stream.error) == (400, -32600)


async def test_a_plain_answer_costs_one_use_of_the_backend(autojump_clock):
    """Only the record is asked."""
    async with fleet(Shop) as nodes:
        first, _ = await nodes.session()
        await settled()
        del nodes.lines[0].calls[:]
        assert (await first.post(message("ping", {}, 1))).status == 200
        assert nodes.lines[0].calls == ["get"]


async def test_what_a_session_stores_is_bounded(autojump_clock):
    """Old events are dropped here as there, and ended streams are forgotten."""
    async with fleet(Shop, limits={"history": 4000}) as nodes:
        first, second = await nodes.session()
        last = await leave_after(first, call("many"), 0)
        await trio.sleep(2)
        again = second.get(last)
        await again.ended.wait()
        assert numbers(again)[-1] == "logged"
        assert len(numbers(again)) < 6
        for _ in range(3):
            await (first.open(call("many"))).ended.wait()
        await settled()
        gone = second.get(last)
        await gone.ended.wait()
        assert gone.status == 400


async def test_a_node_that_drains_hands_its_answers_over(autojump_clock):
    """The rest of an answer is in the backend before the node leaves."""
    async with fleet(Shop, 1) as staying:
        async with fleet(Shop, 1, staying.backend) as leaving:
            (session,) = await leaving.session()
            for number in range(40):
                session.open(call("count", {"to": 1, "wait": 1}, f"n{number}"))
            last = await leave_after(session, call("count", {"to": 3, "wait": 0.9}), 1)
        again = Session(staying.wires[0], session.id, "2025-11-25", ()).get(last)
        await again.ended.wait()
        assert numbers(again) == [1, 2, "counted"]
