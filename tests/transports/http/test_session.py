"""Sessions: owners, lifetimes, and the standing stream."""

import pytest
import trio

from noizu_mcp import Server

from ...kit.messages import call, message
from .shop import Echo, Shop
from .wire import serving, settled

#: Seconds without a request after which a session makes room for others.
EVICTABLE = 60


class Person:
    """An authenticated user."""

    def __init__(self, key):
        self.key = key


@pytest.fixture
async def wire():
    async with serving(Shop(), limits={"session_idle": 100, "sessions": 2}) as wire:
        yield wire


async def test_a_session_remembers(autojump_clock, wire):
    """The values of a handler are kept for its own session only."""
    first, second = await wire.session(), await wire.session()
    await first.post(call("keep", {"value": "a"}))
    done = await first.post(call("keep"))
    assert done.json["result"]["content"][0]["text"] == "a"
    done = await second.post(call("keep"))
    assert done.json["result"]["content"][0]["text"] == "nothing"


async def test_a_session_is_ended(autojump_clock, wire):
    """After DELETE its id is unknown to every method."""
    session = await wire.session()
    done = await session.delete()
    assert (done.status, done.body) == (200, b"")
    assert (await session.post(call("echo"))).status == 404
    assert (await session.delete()).status == 404
    again = session.get()
    await again.ended.wait()
    assert again.status == 404


async def test_ending_a_session_ends_what_runs(autojump_clock, wire):
    """Requests are refused, streams end normally, handlers are cancelled."""
    session = await wire.session("2025-03-26", capabilities={"elicitation": {}})
    quiet = session.open(call("wait", {"seconds": 20}, id_=1))
    array = session.open([call("wait", {"seconds": 20}, id_=2)])
    await settled()
    asking = await wire.session(capabilities={"elicitation": {}})
    asked = asking.open(call("ask"))
    await asked.event(1)
    standing = asking.get()
    await standing.event(0)
    for each in (session, asking):
        assert (await each.delete()).status == 200
    for exchange in (quiet, array, asked, standing):
        await exchange.ended.wait()
        assert exchange.complete
    assert trio.current_time() < 10
    assert (quiet.error, array.json[0]["error"]["code"]) == (-32603, -32603)
    assert asked.messages[-1]["error"]["message"] == "The session has ended"
    assert standing.messages == []
    await settled()
    assert len(wire.tasks) == 2


async def test_a_session_that_is_idle_ends(autojump_clock, wire):
    """Running requests and open streams keep it alive."""
    idle, used, read = await wire.session(), await wire.session(), None
    running = used.open(call("wait", {"seconds": 25}))
    for _ in range(6):
        await trio.sleep(20)
        await running.ended.wait()
        assert (await used.post(message("ping", {}, 5))).status == 200
    assert (await idle.post(call("echo"))).status == 404
    read = used.get()
    await trio.sleep(400)
    assert (await used.post(message("ping", {}, 5))).status == 200
    read.leave()
    await read.ended.wait()
    await trio.sleep(50)
    assert len(wire.endpoint.sessions) == 1
    await trio.sleep(80)
    assert len(wire.endpoint.sessions) == 0


async def test_a_long_request_keeps_its_session(autojump_clock):
    """A session is in use while a request of it runs."""
    async with serving(Shop(), limits={"session_idle": 10}) as wire:
        session = await wire.session()
        done = await session.post(call("wait", {"seconds": 29}))
        assert done.messages[-1]["id"] == 1
        assert (await session.post(call("echo"))).status == 200


async def test_a_client_that_never_comes_back(autojump_clock):
    """The work for the client ends with its session; no question waits for ever."""
    async with serving(Shop(), limits={"session_idle": 100}) as wire:
        session = await wire.session(capabilities={"elicitation": {}})
        running = session.open(call("ask"))
        await running.event(1)
        await trio.sleep(300)
        assert len(wire.endpoint.sessions) == 1
        running.leave()
        await trio.sleep(99)
        assert len(wire.endpoint.sessions) == 1
        await trio.sleep(30)
        assert len(wire.endpoint.sessions) == 0
        await settled()
        assert running.ended.is_set()
        assert len(wire.tasks) == 2


async def test_the_longest_idle_makes_room(autojump_clock, wire):
    """A session that was idle for a minute is ended for a new one, which else gets 503."""
    first, second = await wire.session(), await wire.session()
    body = message("initialize", {"protocolVersion": "2025-11-25"}, 1)
    await trio.sleep(EVICTABLE - 1)
    done = await wire.send("POST", body)
    assert (done.status, done.error, done.headers["retry-after"]) == (503, -32603, "60")
    assert "mcp-session-id" not in done.headers
    assert (await second.post(call("echo"))).status == 200
    await trio.sleep(1)
    third = await wire.session()
    assert (await first.post(call("echo"))).status == 404
    assert (await third.post(call("echo"))).status == 200
    assert (await second.post(call("echo"))).status == 200


async def test_a_bad_handshake_ends_no_session(autojump_clock, wire):
    """It is refused before another session is ended."""
    first, _second = await wire.session(), await wire.session()
    await trio.sleep(EVICTABLE)
    assert (await wire.send("POST", message("initialize", {}, 1))).error == -32602
    assert (await first.post(call("echo"))).status == 200


async def test_who_is_used_makes_no_room(autojump_clock, wire):
    """A session with open requests is kept, however long ago its last request began."""
    first, second = await wire.session(), await wire.session()
    standing = first.get()
    await standing.event(0)
    assert (await second.post(call("echo"))).status == 200  # after it, and idle before it
    await trio.sleep(EVICTABLE)
    third = await wire.session()
    assert (await second.post(call("echo"))).status == 404
    assert (await first.post(call("echo"))).status == 200
    other = third.get()
    await trio.sleep(EVICTABLE)
    done = await wire.send("POST", message("initialize", {"protocolVersion": "2025-11-25"}, 1))
    assert done.status == 503
    assert not standing.ended.is_set()
    assert not other.ended.is_set()


async def test_a_session_belongs_to_who_began_it(autojump_clock, wire):
    """Other principals cannot tell that the session exists."""
    endpoint = wire.endpoint
    handle = endpoint.handle
    principal = None

    async def verified(http):
        http.principal = principal
        await handle(http)

    endpoint.handle = verified
    principal = Person("ann")
    session = await wire.session()
    assert (await session.post(call("echo"))).status == 200
    for other in (Person("bob"), None):
        principal = other
        assert (await session.post(call("echo"))).status == 404
        assert (await session.delete()).status == 404
        stream = session.get()
        await stream.ended.wait()
        assert stream.status == 404
    principal = Person("ann")
    assert (await session.delete()).status == 200


# The standing stream


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("text/event-stream", 200),
        ("Text/Event-Stream;q=0.9, x/y", 200),
        ("*/*", 200),
        (None, 200),
        ("application/json", 406),
    ],
)
async def test_a_get_accepts_events(autojump_clock, wire, accept, status):
    """Accept must include text/event-stream."""
    session = await wire.session()
    stream = session.get(accept=accept)
    await stream.until(lambda stream: stream.sent)
    assert stream.status == status


@pytest.mark.parametrize(("version", "primed"), [("2025-06-18", 0), ("2025-11-25", 1)])
async def test_changes_come_on_the_standing_stream(autojump_clock, wire, version, primed):
    """They arrive once, on one stream; on 2025-11-25 it begins with an id and a `retry`."""
    session = await wire.session(version)
    running = session.open(call("wait", {"seconds": 3, "report": True}))
    stream = session.get()
    await stream.until(lambda stream: stream.sent)
    wire.app.server.notify_changed("tools")
    changed = await stream.event(primed)
    assert changed["data"] == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert ("retry" in stream.events[0]) == bool(primed)
    await running.ended.wait()
    assert [each["id"] for each in running.messages] == [1]


async def test_subscriptions_come_on_the_standing_stream(autojump_clock, wire):
    """They end with the session, and the server is notified."""
    session = await wire.session()
    done = await session.post(message("resources/subscribe", {"uri": "board://all"}, 1))
    assert done.json["result"] == {}
    stream = session.get()
    await stream.event(0)
    wire.app.server.notify_resource_updated("board://all")
    assert (await stream.event(1))["data"]["params"] == {"uri": "board://all"}
    await session.delete()
    await settled()
    assert wire.app.server.left == ["board://all"]


async def test_a_second_reader_takes_the_stream_over(autojump_clock, wire):
    """The first reader may be dead without notice; no event is sent twice."""
    session = await wire.session()
    first = session.get()
    await first.event(0)
    second = session.get()
    await first.ended.wait()
    assert first.complete
    wire.app.server.notify_changed("tools")
    assert (await second.event(1))["data"]["method"] == "notifications/tools/list_changed"
    assert first.messages == []


async def test_readers_that_come_at_once_are_all_answered(autojump_clock, wire):
    """Each replaces the one before it, even if that has not begun to be answered."""
    session = await wire.session()
    readers = [session.get() for _ in range(4)]
    await settled()
    assert [reader.status for reader in readers] == [200] * 4
    assert sorted(reader.complete for reader in readers) == [False, True, True, True]


async def test_a_reader_whose_place_is_taken_may_be_dead(autojump_clock):
    """It keeps its unread events for as long as any reader may stall."""
    async with serving(Shop(), limits={"stall": 5}) as wire:
        session = await wire.session()
        first = session.get()
        await first.event(0)
        first.stall()
        wire.app.server.notify_changed("tools")
        await settled()
        session.get()
        with trio.fail_after(11):
            await settled()
            await trio.sleep(10)
        first.read_on()
        await first.ended.wait()
        assert not first.complete


async def test_unread_events_are_kept(autojump_clock, wire):
    """Events are kept for the first reader; missed ones for a reader with the last id."""
    session = await wire.session()
    server = wire.app.server
    server.notify_changed("tools")
    first = session.get()
    kept = await first.event(0)
    assert kept["data"]["method"] == "notifications/tools/list_changed"
    assert "retry" in await first.event(1)
    first.leave()
    await first.ended.wait()
    server.notify_changed("prompts")
    server.notify_changed("resources")
    second = session.get(kept["id"])
    await second.event(1)
    assert [each["method"] for each in second.messages] == [
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
    ]
    second.leave()
    await second.ended.wait()
    third = session.get()
    await third.event(0)
    await trio.sleep(1)
    server.notify_changed("tools")
    await third.event(1)
    third.leave()
    await third.ended.wait()
    assert len(third.messages) == 1
    fourth = session.get()
    await fourth.event(0)
    assert fourth.messages == []


@pytest.mark.parametrize(
    "last", ["", "x", "{}", "{}-", "{}--1", "{}-x", "0-1", "{}-²", "{}-" + "9" * 19]
)
async def test_a_foreign_event_id(autojump_clock, wire, last):
    """It is refused, and not used for the standing stream."""
    session = await wire.session()
    stream = session.get(last.format(session.served.get_stream.name))
    await stream.ended.wait()
    assert (stream.status, stream.error) == (400, -32600)


async def test_ids_of_other_sessions_mean_nothing(autojump_clock, wire):
    """Only streams of the same session are replayed."""
    first, second = await wire.session(), await wire.session()
    done = await first.post(call("wait", {"seconds": 2}))
    assert done.events
    stream = second.get(done.events[0]["id"])
    await stream.ended.wait()
    assert stream.status == 400


async def test_what_is_kept_is_bounded(autojump_clock):
    """The oldest events are dropped first; a result that does not fit cannot be resumed."""
    async with serving(Shop(), limits={"history": 4000}) as wire:
        session = await wire.session("2025-06-18")
        done = await session.post(call("flood", {"count": 50}))
        assert len(done.messages) == 51
        again = session.get(done.events[0]["id"])
        await again.ended.wait()
        assert again.messages == done.messages[-len(again.messages) :]
        assert 5 < len(again.messages) < 20
        big = await session.post(call("echo", {"text": "x" * 6000}, id_=2))
        assert not big.is_stream
        kept = await session.post(call("wait", {"seconds": 2}, id_=3))
        first = session.get(kept.events[0]["id"])
        await first.ended.wait()
        assert first.status == 200
        for number in range(4, 4 + 40):
            await session.post(call("wait", {"seconds": 2}, id_=number))
        assert session.served.event_log.size <= 4000
        gone = session.get(kept.events[0]["id"])
        await gone.ended.wait()
        assert gone.status == 400


async def test_init_that_fails_ends_the_session(autojump_clock, caplog):
    """The waiting requests are refused; the id is unknown afterwards."""

    class Picky(Server, name="picky", version="1"):
        tools = [Echo]

        async def init(self, ctx):
            await trio.sleep(0.5)
            raise ValueError("no")

    async with serving(Picky()) as wire:
        session = await wire.session()
        done = await session.post(call("echo"))
        assert (done.status, done.error) == (200, -32603)
        assert (await session.post(call("echo"))).status == 404
    assert "the session ends" in caplog.text


async def test_ending_twice_is_fine(autojump_clock, wire):
    """The second end does nothing."""
    session = (await wire.session()).served
    wire.endpoint.sessions.end(session)
    wire.endpoint.sessions.end(session)
    wire.endpoint.sessions.touch(session)
    assert len(wire.endpoint.sessions) == 0
