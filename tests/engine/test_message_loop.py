"""The message loop on a stream, and which failures end it."""

import json
import logging

import pytest
import trio
import trio.testing

from noizu_mcp import ConnectionClosed, Limits, RequestTimeout
from noizu_mcp.engine import MessageStream
from noizu_mcp.jsonrpc import read_message
from noizu_mcp.transports import memory_pair

from .served import Served

PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'


def crash_on_1(request):
    """Answer each request at once, except number 1, which fails before it waits."""

    async def crash():
        raise RuntimeError

    if request.id == 1:
        return crash
    request.send_result({})
    return None


async def read(stream):
    with trio.fail_after(60):
        (received,) = await stream.receive()
    return json.loads(received.data)


async def test_a_crash_before_the_first_wait_costs_one_request(wired, caplog):
    """An exception outside of every guard is answered, and later messages are read."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    _, ours = await wired(crash_on_1)
    await ours.send([PING % 1, PING % 2])
    seen = {}
    with trio.fail_after(60):
        while len(seen) < 2:
            for received in await ours.receive():
                message = json.loads(received.data)
                seen[message["id"]] = message
    assert seen[1]["error"] == {"code": -32603, "message": "Request handler failed"}
    assert seen[2]["result"] == {}
    await ours.aclose()


async def test_a_crash_after_a_wait_costs_one_request(wired, caplog):
    """The same holds after the handler has waited, and if it gives no answer."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")

    async def crash():
        await trio.lowlevel.checkpoint()
        raise SystemExit

    async def silent():
        await trio.lowlevel.checkpoint()

    _, ours = await wired(lambda request: crash if request.id == 1 else silent)
    for id_ in (1, 2):
        await ours.send([PING % id_])
        assert (await read(ours))["error"]["message"] == "Request handler failed"
    await ours.aclose()


async def test_a_crash_in_an_array_costs_one_request(wired, caplog):
    """Handlers of an array run in separate tasks; the array is answered nevertheless."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    _, ours = await wired(initialized_by(crash_on_1))
    await ours.send([INITIALIZE])
    await read(ours)
    await ours.send([b"[" + PING % 1 + b"," + PING % 2 + b"]"])
    answers = {each["id"]: each for each in await read(ours)}
    assert answers[1]["error"]["message"] == "Request handler failed"
    assert answers[2]["result"] == {}
    await ours.aclose()


def initialized_by(other):
    """Answer `initialize` in 2025-03-26, and pass everything else to another function."""

    def handle(request):
        if request.request.method != "initialize":
            return other(request)
        request.send_result({})
        return None

    return handle


INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-03-26"},
    }
).encode()


async def test_ctrl_c_in_an_array_ends_the_loop():
    """`KeyboardInterrupt` does not count as a crash of one request."""

    async def interrupted():
        raise KeyboardInterrupt

    ours, theirs = memory_pair()
    served = Served(theirs, initialized_by(lambda _: interrupted))
    await ours.send([INITIALIZE, b"[" + PING % 1 + b"]"])
    with pytest.RaisesGroup(KeyboardInterrupt, flatten_subgroups=True):
        await served.loop.run()


async def test_stopping_before_an_array_began(wired):
    """Requests whose tasks have not started yet are answered like running ones."""
    ours, theirs = memory_pair()

    def handle(request):
        served.loop.stop()
        return trio.sleep_forever

    served = Served(theirs, initialized_by(handle), Limits())
    await ours.send([INITIALIZE, b"[" + PING % 1 + b"," + PING % 2 + b"]"])
    await served.loop.run(grace=0)
    (_, array) = await ours.receive()
    assert [each["error"]["message"] for each in json.loads(array.data)] == [
        "The server is shutting down",
        "The server is shutting down",
    ]


async def test_a_deadline_is_answered(wired, autojump_clock):
    """A request beyond its deadline is cancelled and answered."""

    def handle(request):
        request.deadline = trio.current_time() + 5
        return trio.sleep_forever

    _, ours = await wired(handle)
    await ours.send([PING % 1])
    assert (await read(ours))["error"]["message"] == "Request timed out"
    assert trio.current_time() == pytest.approx(5)
    await ours.aclose()


class Broken(MessageStream):
    """Returns some messages, then fails in a way that no transport should."""

    def __init__(self, messages):
        self.messages = messages
        self.failures = 0

    async def receive(self):
        if not self.messages:
            self.failures += 1
            raise RuntimeError("no transport")
        messages, self.messages = self.messages, []
        return [read_message(message) for message in messages]

    def send_nowait(self, messages):
        return True

    async def send(self, messages):
        raise AssertionError

    async def aclose(self):
        pass


@pytest.mark.parametrize("messages", [[], [PING % 1]])
async def test_a_broken_transport_ends_the_loop(messages):
    """An error of the stream itself is raised, and reading is not repeated."""
    stream = Broken(messages)
    served = Served(stream)
    with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True):
        await served.loop.run()
    assert stream.failures == 1


async def test_other_tasks_get_their_turn(wired, nursery):
    """A peer that sends a thousand messages at once does not block other tasks."""
    handled, turns = [], []

    def handle(request):
        handled.append(request.id)
        request.send_result({})

    _, ours = await wired(handle)

    async def count():
        while True:
            turns.append(len(handled))
            await trio.lowlevel.checkpoint()

    await ours.send([PING % number for number in range(1000)])
    nursery.start_soon(count)
    answers = 0
    with trio.fail_after(60):
        while answers < 1000:
            answers += len(await ours.receive())
    nursery.cancel_scope.cancel()
    assert len([number for number in turns if 0 < number < 1000]) >= 5


async def test_answers_to_what_came_together_are_written_together(wired, monkeypatch):
    """Responses to messages of one read are one write."""
    served, ours = await wired()
    writes = []
    send = served.stream.send_nowait

    def send_nowait(messages):
        writes.append(len(messages))
        return send(messages)

    monkeypatch.setattr(served.stream, "send_nowait", send_nowait)
    await ours.send([PING % number for number in range(20)])
    assert len(await ours.receive()) == 20
    assert writes == [20]


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
async def test_a_stream_that_breaks_has_ended(error, monkeypatch):
    """The loop returns, as after EOF."""
    _, theirs = memory_pair()

    async def receive():
        raise error

    monkeypatch.setattr(theirs, "receive", receive)
    with trio.fail_after(60):
        await Served(theirs).loop.run()


async def test_a_peer_that_does_not_read_is_not_read(nursery, autojump_clock):
    """With a full outbox requests are not read, and stopping works."""
    ours, theirs = memory_pair()
    handled = []

    def handle(request):
        handled.append(request.id)
        request.send_result({"x": "y" * 2_000_000})

    served = Served(theirs, handle, Limits(outbox=1000))
    await nursery.start(served.loop.run)
    for number in range(5):
        await ours.send([PING % number])
        await trio.testing.wait_all_tasks_blocked()
    assert len(handled) < 5
    served.loop.stop()
    while await ours.receive():
        pass


async def test_our_requests_are_answered_or_given_up(wired, autojump_clock):
    """A timeout notifies the peer, unless the request must not be cancelled; nothing stays open."""
    served, ours = await wired()
    ledger = served.peer.ledger
    for cancellable in (True, False):
        request = ledger.open("ping", None)
        with pytest.raises(RequestTimeout):
            await served.send_request(request, patience=1, cancellable=cancellable)
        sent = [json.loads(each.data)["method"] for each in await ours.receive()]
        assert sent == ["ping", *["notifications/cancelled"] * cancellable]
    with pytest.raises(TypeError):
        await served.send_request(ledger.open("ping", {"x": object()}))
    await ours.aclose()
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(ConnectionClosed):
        await served.send_request(ledger.open("ping", None))
    assert (ledger.outbound, len(served.pending)) == (0, 0)


async def test_our_requests_are_answered(wired):
    """The response wakes the task that sent the request; notices reach the handler."""
    served, ours = await wired()
    result = {}

    async with trio.open_nursery() as nursery:

        async def ask():
            result.update(await served.send_request(served.peer.ledger.open("ping", None)))

        nursery.start_soon(ask)
        id_ = (await read(ours))["id"]
        await ours.send([b'{"jsonrpc":"2.0","id":%d,"result":{"x":1}}' % id_])
    assert result == {"x": 1}
    served.notify("notifications/x")
    assert await read(ours) == {"jsonrpc": "2.0", "method": "notifications/x"}
    await ours.aclose()


async def test_a_peer_that_never_reads_again_is_given_up(autojump_clock):
    """The wait for a full outbox is bounded: the connection ends."""
    ours, theirs = memory_pair()
    big = {"text": "x" * 2_000_000}

    def answer(request):
        request.send_result(big)

    served = Served(theirs, answer, Limits(outbox=1000))
    await ours.send([PING % 1])
    start = trio.current_time()
    await served.loop.run()
    assert 60 <= trio.current_time() - start <= 70
