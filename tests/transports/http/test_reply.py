"""The answer to a POST: an object or a stream, and what happens if its reader leaves or stalls."""

import pytest
import trio
import trio.testing

from noizu_mcp import Server, Tool
from noizu_mcp.transports.http import HttpLimits

from ...kit.messages import CAPABILITIES, call, message
from .shop import Shop
from .wire import serving, settled

SILENCE = HttpLimits().silence

TOKEN = {"progressToken": "t"}
ASKING = {"elicitation": {}}


@pytest.fixture
async def wire(autojump_clock):
    async with serving(Shop(), limits={"keepalive": 5, "stall": 10}) as wire:
        yield wire


async def test_the_first_message_decides_the_form(autojump_clock, wire):
    """A lone result is JSON; a notice before it begins a stream that ends with the result."""
    done = await wire.send_modern(call("wait"))
    assert not done.is_stream
    done = await wire.send_modern(call("wait", {"report": True}, _meta=TOKEN))
    assert (done.status, done.is_stream, done.complete) == (200, True, True)
    assert done.headers["x-accel-buffering"] == "no"
    progress, answer = done.messages
    assert progress["method"] == "notifications/progress"
    assert (answer["id"], answer["result"]["resultType"]) == (1, "complete")
    assert all("id" not in event and "retry" not in event for event in done.events)


async def test_silence_begins_a_stream(autojump_clock, wire):
    """Silence begins a stream so that no proxy times out; comments follow while it is quiet."""
    running = wire.modern(call("wait", {"seconds": 12}))
    begun = trio.current_time()
    await running.until(lambda running: running.sent)
    assert trio.current_time() - begun == SILENCE
    await running.ended.wait()
    assert running.body.startswith(b":\n\n:\n\nevent: message\n")
    assert running.complete


async def test_a_stream_that_began_early_has_comments_from_then_on(autojump_clock):
    """Comments follow even if the silence that begins a stream is long."""
    async with serving(Shop(), limits={"keepalive": 5, "silence": 100}) as wire:
        running = wire.modern(call("wait", {"report": True, "seconds": 12}, _meta=TOKEN))
        await running.ended.wait()
    assert running.body.count(b":\n\n") == 2
    assert running.complete


@pytest.mark.parametrize(("version", "primed"), [("2025-06-18", False), ("2025-11-25", True)])
async def test_streams_of_sessions_can_be_read_again(autojump_clock, wire, version, primed):
    """Each event has an id; from 2025-11-25 on the first one has only an id and a `retry`."""
    session = await wire.session(version)
    done = await session.post(call("wait", {"report": True}, _meta=TOKEN))
    events = done.events
    if primed:
        first = events.pop(0)
        assert first == {"id": first["id"], "retry": "1000", "data": None}
    assert [event["data"].get("method", "answer") for event in events] == [
        "notifications/progress",
        "answer",
    ]
    assert len({event["id"] for event in done.events}) == len(done.events)


async def test_questions_travel_on_the_stream_of_their_request(autojump_clock, wire):
    """Their answers come in separate requests."""
    session = await wire.session(capabilities=ASKING)
    standing = session.get()
    running = session.open(call("ask"))
    asked = (await running.event(1))["data"]
    assert asked["method"] == "elicitation/create"
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
    assert (await session.post(answer)).status == 202
    await running.ended.wait()
    assert running.messages[-1]["result"]["content"][0]["text"] == "Decline"
    assert standing.messages == []


async def test_an_answer_that_makes_no_sense_is_one(autojump_clock, wire):
    """A malformed answer is refused, and also ends the question."""
    session = await wire.session(capabilities=ASKING)
    running = session.open(call("ask"))
    asked = (await running.event(1))["data"]
    bad = {"jsonrpc": "2.0", "id": asked["id"], "result": 5}
    done = await session.post(bad)
    assert (done.status, done.error) == (400, -32600)
    await running.ended.wait()
    result = running.messages[-1]["result"]
    assert result["isError"] is True
    assert "(-32600)" in result["content"][0]["text"]
    assert (await session.post(bad)).status == 400  # no question is open
    assert (await wire.send("POST", bad)).status == 400


async def test_a_cancelled_call_calls_its_question_off(autojump_clock, wire):
    """The notice is the last message of the stream; no result follows."""
    session = await wire.session(capabilities=ASKING)
    running = session.open(call("ask"))
    asked = (await running.event(1))["data"]
    await session.post(message("notifications/cancelled", {"requestId": 1}))
    await running.ended.wait()
    last = running.messages[-1]
    assert (last["method"], last["params"]["requestId"]) == (
        "notifications/cancelled",
        asked["id"],
    )
    assert running.complete
    assert session.served.peer.ledger.outbound == 0


# Arrays (2025-03-26)


async def test_an_array_is_answered_with_an_array(autojump_clock, wire):
    """An array is JSON if nothing precedes it; each invalid message has its own error."""
    session = await wire.session("2025-03-26")
    done = await session.post(
        [call("echo", id_=1), message("notifications/x"), 5, call("wait", id_="b")]
    )
    assert not done.is_stream
    by_id = {answer.get("id"): answer for answer in done.json}
    assert by_id.keys() == {1, "b", None}
    assert by_id[None]["error"]["code"] == -32600
    done = await session.post([call("echo", id_=1), call("echo", id_=2)])
    assert {answer["id"] for answer in done.json} == {1, 2}
    done = await session.post([5])
    assert [answer["error"]["code"] for answer in done.json] == [-32600]


async def test_an_array_becomes_a_stream(autojump_clock, wire):
    """A message before its results begins a stream; the results come together."""
    session = await wire.session("2025-03-26")
    done = await session.post(
        [call("wait", {"report": True, "seconds": 1}, id_=1, _meta=TOKEN), call("echo", id_=2)]
    )
    progress, answers = done.messages
    assert progress["method"] == "notifications/progress"
    assert {answer["id"] for answer in answers} == {1, 2}


async def test_an_array_of_notifications_is_accepted(autojump_clock, wire):
    """It is answered with 202 and no body."""
    session = await wire.session("2025-03-26")
    done = await session.post([message("notifications/x"), message("notifications/y")])
    assert (done.status, done.body) == (202, b"")


async def test_an_array_that_is_cancelled(autojump_clock, wire):
    """Uncancelled requests of it are answered; if all are cancelled, there is no answer."""
    session = await wire.session("2025-03-26")

    def cancel(id_):
        return message("notifications/cancelled", {"requestId": id_})

    running = session.open([call("wait", {"seconds": 0.5}, id_=n) for n in (1, 2)])
    await settled()
    await session.post([cancel(1)])
    await running.ended.wait()
    assert [answer["id"] for answer in running.json] == [2]
    running = session.open([call("wait", {"seconds": 0.5}, id_=n) for n in (1, 2)])
    await settled()
    await session.post([cancel(1), cancel(2)])
    await running.ended.wait()
    assert (running.is_stream, running.body) == (True, b"")
    done = await session.post([call("wait", {"seconds": 0.5}, id_=1), cancel(1)])
    assert (done.is_stream, done.body) == (True, b"")


async def test_an_array_has_no_handshake_and_no_other_era(autojump_clock, wire):
    """Each such message in an array is refused on its own."""
    session = await wire.session("2025-03-26")
    modern = call("echo", id_=2, _meta={CAPABILITIES: {}})
    done = await session.post([message("initialize", {}, 1), modern])
    assert [answer["error"]["code"] for answer in done.json] == [-32600, -32600]


# Readers that leave


@pytest.mark.parametrize("seconds", [0.1, 3])
async def test_leaving_cancels_a_stateless_request(autojump_clock, wire, seconds):
    """It does so before and after a stream begins (`basic/patterns/cancellation`)."""
    running = wire.modern(call("wait", {"seconds": 20}))
    await trio.sleep(seconds)
    assert bool(running.sent) == (seconds > SILENCE)
    running.leave()
    await running.ended.wait()
    assert trio.current_time() < 10
    assert not running.complete
    assert (wire.endpoint.open, len(wire.endpoint.app.streams)) == (0, 0)


async def test_leaving_does_not_cancel_a_request_of_a_session(autojump_clock, wire):
    """Its result is kept for the client (2025-11-25 `basic/transports`)."""
    session = await wire.session()
    running = session.open(call("wait", {"seconds": 5, "report": True}, _meta=TOKEN))
    progress = await running.event(1)
    running.leave()
    await running.ended.wait()
    assert not running.complete
    again = session.get(progress["id"])
    await again.ended.wait()
    assert [each["id"] for each in again.messages] == [1]
    assert again.complete
    first = session.get(running.events[0]["id"])
    await first.ended.wait()
    assert [event["id"] for event in first.events] == [progress["id"], again.events[0]["id"]]


async def test_coming_back_while_the_request_runs(autojump_clock, wire):
    """The missed events come at once, later ones as they happen."""
    session = await wire.session()
    running = session.open(call("wait", {"seconds": 5, "report": True}, _meta=TOKEN))
    primed = await running.event(0)
    await running.event(1)
    again = session.get(primed["id"])
    progress = (await again.event(0))["data"]
    assert progress["method"] == "notifications/progress"
    await again.ended.wait()
    assert again.messages[-1]["id"] == 1
    await running.ended.wait()
    assert running.complete  # another reader has replaced it
    assert len(running.messages) == 1


async def test_events_without_a_reader(autojump_clock):
    """A client that left before an event has no id to resume with: nothing is kept."""
    reported = []

    class Late(Tool):
        async def call(self, args, ctx):
            await trio.sleep(0.5)
            await ctx.release_stream()
            await ctx.info("x")
            reported.append(await ctx.info("y"))
            return "done"

    class Host(Server, name="host", version="1"):
        tools = [Late]

    async with serving(Host()) as wire:
        session = await wire.session()
        running = session.open(call("late"))
        await trio.sleep(0.1)
        running.leave()
        await running.ended.wait()
        assert (reported, running.sent) == ([None], [])
        assert not session.served.is_used
        assert session.served.event_log.streams.keys() == {session.served.get_stream.name}


async def test_a_client_that_has_gone_while_it_is_answered(autojump_clock, wire):
    """Hosts raise then (ASGI 2.4); this ends only the response."""
    session = await wire.session()
    for exchange in (
        wire.make("POST", call("echo"), session.headers),
        wire.make("POST", call("wait", {"report": True}, _meta=TOKEN), session.headers),
        wire.make("GET", None, session.headers),
    ):
        exchange.broken = True
        await exchange.run()
        assert exchange.failure is None
        assert exchange.sent == []
    assert not session.served.is_used


# Readers that do not read


async def test_a_reader_that_stalls_loses_its_stream(autojump_clock, wire):
    """The stateless request is cancelled; other requests go on."""
    stalled = wire.modern(call("wait", {"seconds": 29, "report": True}, _meta=TOKEN))
    other = wire.modern(call("wait", {"seconds": 29}))
    await stalled.until(lambda stalled: stalled.sent)
    stalled.stall()
    begun = trio.current_time()
    await stalled.ended.wait()
    assert 10 <= trio.current_time() - begun <= 21
    assert not stalled.complete
    await other.ended.wait()
    assert other.complete


async def test_a_session_survives_a_reader_that_stalls(autojump_clock, wire):
    """Its request goes on, and the result is kept for another reader."""
    session = await wire.session()
    stalled = session.open(call("wait", {"seconds": 29, "report": True}, _meta=TOKEN))
    primed = await stalled.event(0)
    stalled.stall()
    echo = await session.post(call("echo", id_=2))
    assert echo.status == 200
    await stalled.ended.wait()
    assert not stalled.complete
    again = session.get(primed["id"])
    await again.ended.wait()
    assert again.messages[-1]["id"] == 1


async def test_a_host_that_cannot_be_cancelled(autojump_clock, wire):
    """A stalled reader is abandoned although sending to it goes on."""
    exchange = wire.make("POST", call("wait", {"seconds": 29}), (await wire.session()).headers)
    send = exchange.send

    async def shielded(part):
        with trio.CancelScope(shield=True):
            await send(part)

    exchange.send = shielded
    exchange.stall()
    wire.nursery.start_soon(exchange.run)
    await exchange.ended.wait()
    assert trio.current_time() < 35
    exchange.read_on()


async def test_notices_are_dropped_when_there_is_no_room(autojump_clock):
    """The result is never dropped."""
    async with serving(Shop(), limits={"room": 1000, "stall": 100}) as wire:
        session = await wire.session("2025-06-18")
        for running in (
            session.open(call("flood", id_=1)),
            wire.modern(call("flood", _meta={"io.modelcontextprotocol/logLevel": "info"})),
        ):
            running.stall()
            await trio.sleep(5)
            running.read_on()
            await running.ended.wait()
            notices = [each for each in running.messages if "method" in each]
            assert 3 < len(notices) < 10
            assert running.messages[-1]["id"] == 1


async def test_a_patient_handler_waits_for_room(autojump_clock):
    """Awaiting a notice waits until the reader has read; nothing is dropped."""
    async with serving(Shop(), limits={"room": 1000, "stall": 100}) as wire:
        session = await wire.session("2025-06-18")
        running = session.open(call("flood", {"patient": True}))
        running.stall()
        await trio.sleep(20)
        assert session.served.requests
        running.read_on()
        await running.ended.wait()
        assert len(running.messages) == 101


async def test_a_patient_handler_is_released_when_its_reader_is_lost(autojump_clock):
    """It goes on as if everything had been read."""
    async with serving(Shop(), limits={"room": 1000, "stall": 10}) as wire:
        session = await wire.session("2025-06-18")
        running = session.open(call("flood", {"patient": True}))
        running.stall()
        await running.ended.wait()
        assert trio.current_time() < 30
        assert not session.served.is_used


# Clients that are disconnected for a while


async def test_a_client_is_sent_away_and_comes_back(autojump_clock, wire):
    """On 2025-11-25 the response ends early; the rest is fetched with the last event id."""
    session = await wire.session()
    running = session.open(call("poll"))
    await running.until(lambda running: running.complete)
    assert trio.current_time() < 1
    primed, last = running.events
    assert (primed["retry"], last["retry"], last["data"]) == ("1000", "500", None)
    again = session.get(last["id"])
    await again.ended.wait()
    assert again.complete
    assert again.events[-2]["retry"] == "1000"
    third = session.get(again.events[-1]["id"])
    await third.ended.wait()
    answers = [*again.messages, *third.messages]
    assert [each["result"]["content"][0]["text"] for each in answers] == ["polled"]


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2026-07-28"])
async def test_others_are_not_sent_away(autojump_clock, wire, version):
    """Other revisions have no such mechanism."""
    if version == "2026-07-28":
        done = await wire.send_modern(call("poll"))
    else:
        done = await (await wire.session(version)).post(call("poll"))
    assert done.complete
    assert done.messages[-1]["id"] == 1


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan"), "1", True])
async def test_how_long_a_client_is_sent_away(autojump_clock, caplog, seconds):
    """An invalid time is the author's mistake."""

    class Wrong(Tool):
        async def call(self, args, ctx):
            await ctx.release_stream(seconds)

    class Host(Server, name="host", version="1"):
        tools = [Wrong]

    async with serving(Host()) as wire:
        done = await wire.send_modern(call("wrong"))
        assert done.json["result"]["isError"] is True
    assert "retry_after must" in caplog.text


async def test_a_stream_is_not_released_after_the_result(autojump_clock):
    """After the result nothing is sent, nor in a request without a stream."""
    kept = []

    class Late(Tool, timeout=1.0):
        async def call(self, args, ctx):
            kept.append(ctx)
            return "done"

    class Host(Server, name="host", version="1"):
        tools = [Late]

        async def init(self, ctx):
            kept.append(ctx)
            await ctx.release_stream()

    async with serving(Host()) as wire:
        session = await wire.session()
        done = await session.post(call("late"))
        await kept[1].release_stream()
        await kept[1].info("late")
        assert not done.is_stream


# Hosts that cancel


@pytest.mark.parametrize("seconds", [0.5, 3])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_host_cancels_the_task(autojump_clock, wire, era, seconds):
    """The handler ends, and nothing of the request remains."""
    session, ends = await wire.session(), []
    telemetry = wire.app.server.telemetry
    telemetry.add(lambda event: event.kind == "cancelled" and ends.append(event.method))
    body = call("wait", {"seconds": 20})
    running = session.open(body) if era == "legacy" else wire.modern(body)
    await trio.sleep(seconds)
    running.cancel.cancel()
    await running.ended.wait()
    await settled()
    assert session.served.peer.ledger.inbound == 0
    assert not session.served.is_used
    assert (wire.endpoint.open, len(wire.endpoint.app.streams)) == (0, 0)
    assert len(wire.tasks) == 2  # the tasks that end idle sessions and streams
    assert ends == ["tools/call"]
    assert (await session.post(call("echo"))).status == 200


async def test_a_host_cancels_an_array(autojump_clock, wire):
    """Its requests go on; their results are not kept."""
    session = await wire.session("2025-03-26")
    running = session.open([call("wait", {"seconds": 3}, id_=n) for n in (1, 2)])
    await trio.sleep(2)
    running.cancel.cancel()
    await running.ended.wait()
    await trio.sleep(2)
    assert not session.served.requests
    assert not session.served.is_used
