"""The memory that is held for clients is counted, bounded and released."""

import json

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from noizu_mcp import Limits, ResourceTemplate, Schema, Server, Tool
from noizu_mcp.transports.http import HttpLimits
from noizu_mcp.transports.http.server._event_store import EventLog
from noizu_mcp.transports.http.server._quotas import Quotas, Reservation, size_of

from ...kit.messages import call, message, modern_request
from .shop import Shop
from .wire import serving, settled

MEMORY = 40_000
PART = MEMORY // 4
SIZES = st.integers(0, 6000)
NUMBERS = st.integers(0, 20)


class Holders(RuleBasedStateMachine):
    """Clients whose objects reserve bytes, release them, and end, in any order."""

    def __init__(self):
        super().__init__()
        self.quotas = Quotas(HttpLimits(memory=MEMORY))
        self.clients = [self.quotas.named(str(number)) for number in range(6)]
        self.reservations = [Reservation(client) for client in self.clients for _ in range(2)]
        self.sessions = [Reservation(client) for client in self.clients]
        self.logs = [EventLog(5000, reservation) for reservation in self.sessions]
        self.streams = [log.open() for log in self.logs]
        self.tasks = {}

    @rule(number=NUMBERS, size=SIZES)
    def reserve(self, number, size):
        reservation = self.reservations[number % len(self.reservations)]
        before = reservation.size
        fits = reservation.reserve(size)
        assert reservation.size == before + size * fits

    @rule(number=NUMBERS, size=SIZES)
    def release(self, number, size):
        reservation = self.reservations[number % len(self.reservations)]
        reservation.release(min(size, reservation.size))

    @rule(number=NUMBERS)
    def close(self, number):
        reservation = self.reservations[number % len(self.reservations)]
        reservation.close()
        assert reservation.size == 0
        reservation.release(10)
        assert not reservation.reserve(1)

    @rule(number=NUMBERS, size=SIZES, ends=st.booleans())
    def deliver(self, number, size, ends):
        number %= len(self.logs)
        self.streams[number].deliver(b"x" * size)
        if ends:
            self.streams[number].end()
            self.streams[number] = self.logs[number].open()

    @rule(number=NUMBERS)
    def end_session(self, number):
        self.logs[number % len(self.logs)].end()
        self.sessions[number % len(self.logs)].close()

    @rule(owner=st.sampled_from([None, "1", "new"]), size=SIZES)
    def resize_task(self, owner, size):
        change = size - self.tasks.get(owner, 0)
        if change <= 0 or self.quotas.make_room(owner, change):
            self.quotas.count(owner, change)
            self.tasks[owner] = size

    @invariant()
    def counted(self):
        assert self.quotas.held <= MEMORY
        assert all(0 <= client.held <= PART for client in self.clients)
        held = [*self.reservations, *self.sessions]
        assert self.quotas.held == sum(each.size for each in held) + sum(self.tasks.values())
        kept = {log for log in self.logs if log.size}
        assert kept == set(self.quotas.logs)

    def teardown(self):
        for reservation in self.reservations:
            reservation.close()
        for number in range(len(self.logs)):
            self.end_session(number)
        for owner, size in self.tasks.items():
            self.quotas.count(owner, -size)
        assert self.quotas.held == 0
        assert all(client.held == 0 for client in self.clients)


Holders.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestHolders = Holders.TestCase


@given(st.recursive(st.integers() | st.text(), st.lists))
def test_the_size_of_a_value(value):
    """The content of containers counts; a value that contains itself is counted once."""
    loop = [value, {"a": value}, (value,), {1}]
    assert size_of(loop) > size_of(value)
    before = size_of(loop)
    loop[3].add(2)
    loop.append(loop)
    assert size_of(loop) >= before


class Big(Tool):
    """Make a text."""

    class Input(Schema):
        size: int
        steps: int = 0

    async def call(self, args: Input, ctx) -> str:
        for step in range(args.steps):
            await ctx.report_progress(step + 1, message="y" * args.size)
        if args.steps:
            await trio.sleep(2)
        return "x" * args.size


class Keep(Tool):
    """Store a value in the session."""

    class Input(Schema):
        size: int

    async def call(self, args: Input, ctx) -> str:
        await ctx.put_session("key", ["x" * args.size])
        return str(len(ctx.session))


class Anything(ResourceTemplate, uri_template="u:{+x}"):
    """Any text at any URI."""

    def read(self, uri, args, ctx):
        return "x"


class Memory(Server, name="memory", version="1"):
    """Tools that make the server use memory."""

    tools = [Big, Keep]
    resources = [Anything]

    async def subscribe(self, uri, context):
        """Watch anything."""


def big(size, id_=1, **arguments):
    return call("big", {"size": size, **arguments}, id_)


async def test_an_answer_counts_until_it_is_written(autojump_clock):
    """Without room an answer becomes an error; once another one was read, there is room."""
    async with serving(Memory(), limits={"memory": 400_000}) as wire:
        first = wire.make("POST", *modern_request(big(60_000)))
        first.stall()
        wire.nursery.start_soon(first.run)
        await settled()
        held = wire.endpoint.app.quotas.held
        assert 60_000 < held < 100_000
        refused = await wire.send_modern(big(60_000))
        other = await wire.at("192.0.2.2").send_modern(big(60_000))
        first.read_on()
        await first.ended.wait()
        served = await wire.send_modern(big(60_000))
    assert refused.status == 200
    assert refused.error == -32603
    assert "ask for less" in refused.json["error"]["message"]
    assert [each.status for each in (other, first, served)] == [200, 200, 200]
    assert all(len(each.body) > 60_000 for each in (other, first, served))


async def test_the_answers_of_an_array_have_room_each(autojump_clock):
    """Answers without room are errors, each with the id of its request (2025-03-26)."""
    async with serving(Memory(), limits={"memory": 4_000_000}) as wire:
        session = await wire.session("2025-03-26")
        done = await session.post([big(200_000, id_) for id_ in range(10)])
        answers = done.json
        assert {each["id"] for each in answers} == set(range(10))
        assert sum("result" in each for each in answers) == 4
        assert {each["error"]["code"] for each in answers if "error" in each} == {-32603}
        before = wire.endpoint.app.quotas.held
        await session.delete()
        assert wire.endpoint.app.quotas.held < before


class Turns(trio.abc.Instrument):
    """Counts the iterations of the loop."""

    count = 0

    def before_io_wait(self, timeout):
        self.count += 1


async def test_requests_of_an_array_begin_one_after_the_other(autojump_clock):
    """The loop serves others in between; a request that is cancelled meanwhile does not begin."""
    begun, turns = [], Turns()

    class Note(Tool):
        """Note the call."""

        async def call(self) -> str:
            begun.append(turns.count)
            return ""

    class Notes(Server, name="notes", version="1"):
        tools = [Note]

    async with serving(Notes()) as wire:
        session = await wire.session("2025-03-26")
        cancel = message("notifications/cancelled", {"requestId": 3})
        trio.lowlevel.add_instrument(turns)
        done = await session.post([*(call("note", id_=id_) for id_ in range(5)), cancel])
        trio.lowlevel.remove_instrument(turns)
    assert {each["id"] for each in done.json} == {0, 1, 2, 4}
    assert len(begun) == len(set(begun)) == 4


@pytest.mark.parametrize("steps", [1, 30])
async def test_a_stream_counts_its_queue(autojump_clock, steps):
    """If its client does not read, droppable messages are dropped, so that the answer fits."""
    async with serving(Memory(), limits={"memory": 200_000}) as wire:
        slow = wire.make("POST", *modern_request(_with_token(big(3000, steps=steps))))
        slow.stall()
        wire.nursery.start_soon(slow.run)
        await trio.sleep(5)
        quota = wire.endpoint.app.quotas
        assert 6000 < quota.held <= 50_000
        slow.read_on()
        await slow.ended.wait()
        last = slow.messages[-1]
    assert "result" in last or last["error"]["code"] == -32603


def _with_token(body):
    return {**body, "params": {**body["params"], "_meta": {"progressToken": 1}}}


async def test_a_message_without_room_ends_its_stream(autojump_clock):
    """A change that cannot be queued ends the stream; the client can reconnect."""
    server = Memory()
    async with serving(server, limits={"memory": 100_000}) as wire:
        session = await wire.session()
        uri = "u:" + "x" * 5000
        watched = await session.post(message("resources/subscribe", {"uri": uri}, 1))
        assert watched.json["result"] == {}
        standing = session.get()
        await standing.event(0)
        standing.stall()
        reservation = Reservation(session.served.quota)
        assert reservation.reserve(session.served.quota.quotas.part - session.served.quota.held)
        server.notify_resource_updated(uri)
        await trio.sleep(1)
        server.notify_resource_updated(uri)
        await standing.ended.wait()
        reservation.close()
    assert not standing.complete


async def test_sessions_count_what_they_keep(autojump_clock):
    """Client data, watched URIs and stored values count until they are released."""
    async with serving(Memory(), limits={"memory": 400_000}) as wire:
        held = wire.endpoint.app.quotas
        plain = await wire.session()
        alone = held.held
        large = await wire.session(capabilities={"experimental": {"x": {"y": "z" * 20_000}}})
        assert 20_000 < held.held - 2 * alone < 30_000
        await large.delete()
        assert held.held == alone
        uri = "u:" + "x" * 5000
        for _ in range(2):
            await plain.post(message("resources/subscribe", {"uri": uri}, 1))
            assert 5000 < held.held - alone < 6000
        await plain.post(message("resources/unsubscribe", {"uri": uri}, 1))
        assert held.held == alone
        for size in (30_000, 10_000):
            await plain.post(call("keep", {"size": size}))
            assert size < held.held - alone < size + 1000
        refused = await plain.post(call("keep", {"size": 99_000}))
        assert refused.json["error"]["code"] == -32603
        again = (await plain.post(call("keep", {"size": 1}))).json["result"]
        assert again["content"][0]["text"] == "1"


async def test_watched_uris_have_two_bounds(autojump_clock):
    """Their number and their memory are limited; a refused URI counts nothing."""

    class Few(Memory, name="few", version="1", limits=Limits(subscriptions=1)):
        """One subscription at most."""

    async with serving(Few(), limits={"memory": 100_000}) as wire:
        session = await wire.session()
        held, codes = wire.endpoint.app.quotas, []
        for uri in ("u:" + "x" * 8000, "u:a", "u:b"):
            before = held.held
            reservation = Reservation(session.served.quota)
            reservation.reserve(12_000 if uri != "u:b" else 0)
            done = await session.post(message("resources/subscribe", {"uri": uri}, 1))
            codes.append(done.json.get("error", {}).get("code"))
            reservation.close()
            assert (held.held == before) == (codes[-1] is not None)
    assert codes == [-32603, None, -32602]


async def test_a_session_whose_handshake_alone_has_room_is_refused(autojump_clock):
    """It is refused if the values of the request fit, but not together with the session."""
    init = message(
        "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}, 1
    )
    async with serving(Memory(), limits={"memory": 400_000}) as wire:
        quota = (await wire.session()).served.quota
        reservation = Reservation(quota)
        room = 64 * len(json.dumps(init)) + 3000
        assert reservation.reserve(quota.quotas.part - quota.held - room)
        found = await wire.send("POST", init)
        assert (found.status, len(wire.endpoint.sessions)) == (503, 1)
        reservation.close()
        assert (await wire.send("POST", init)).status == 200


async def test_sessions_without_room_are_refused(autojump_clock):
    """A client's own sessions that are idle for a minute make room.

    The idle sessions of the client that holds the most make room at once.
    """
    caps = {"experimental": {"x": {"y": "z" * 15_000}}}
    init = message(
        "initialize", {"protocolVersion": "2025-11-25", "capabilities": caps, "clientInfo": {}}, 1
    )
    async with serving(Memory(), limits={"memory": 410_000}) as wire:
        sessions = [await wire.session(capabilities=caps) for _ in range(4)]
        assert (await wire.send("POST", init)).status == 503
        await trio.sleep(60)
        sessions.append(await wire.session(capabilities=caps))
        found = [(await each.post(call("keep", {"size": 1}))).status for each in sessions]
        assert found == [404, 200, 200, 200, 200]
        # All others are of the same size: the fifth client is not locked out.
        counts = {"192.0.2.2": 4, "192.0.2.3": 4, "192.0.2.4": 4, "192.0.2.5": 2, "192.0.2.9": 2}
        for address, count in counts.items():
            one = wire.at(address)
            sessions += [await one.session(capabilities=caps) for _ in range(count)]
        live = {each.id for each in wire.endpoint.sessions}
        ended = [each.wire.address for each in sessions[1:] if each.id not in live]
        assert ended
        assert "192.0.2.9" not in ended


async def test_idle_sessions_of_others_make_room_after_a_minute(autojump_clock):
    """They make room if no client holds more than the client that asks."""
    async with serving(Memory(), limits={"memory": 120_000}) as wire:
        for number in range(2, 10):
            await wire.at(f"192.0.2.{number}").session()
        quotas = wire.endpoint.app.quotas
        reservations = [Reservation(quotas.named(f"192.0.3.{each}")) for each in range(4)]
        left = quotas.limits.memory - quotas.held
        assert all(reservation.reserve(left // 3) for reservation in reservations[1:])
        assert not reservations[0].reserve(1000)
        await trio.sleep(60)
        assert reservations[0].reserve(1000)
        assert len(wire.endpoint.sessions) == 7
        for reservation in reservations:
            reservation.close()


class Notebook(ResourceTemplate, uri_template="n:{size}"):
    """Text or bytes of any size."""

    async def read(self, uri, args, ctx):
        size = int(args["size"])
        return "x" * size if size % 2 else b"x" * size


class Library(Server, name="library", version="1"):
    """Large answers of all kinds."""

    tools = [Big]
    resources = [Notebook]


def _read(size, id_=1):
    return message("resources/read", {"uri": f"n:{size}"}, id_)


@pytest.mark.parametrize("ask", [big, _read])
@pytest.mark.parametrize("size", [300_000, 300_001])
async def test_large_results_are_encoded_in_turns(autojump_clock, ask, size):
    """One result is encoded in each iteration of the loop, so that others are served."""
    turns, ended = Turns(), []

    async def note(running):
        await running.until(lambda running: running.sent)
        ended.append(turns.count)

    async with serving(Library()) as wire, trio.open_nursery() as nursery:
        await wire.send_modern(ask(size))
        trio.lowlevel.add_instrument(turns)
        running = [wire.modern(ask(size)) for _ in range(4)]
        for each in running:
            nursery.start_soon(note, each)
        for each in running:
            await each.ended.wait()
        trio.lowlevel.remove_instrument(turns)
    assert len(set(ended)) == 4
    assert [each.status for each in running] == [200] * 4
    assert all(len(each.body) >= size for each in running)


@pytest.mark.parametrize("ask", [big, _read])
async def test_large_results_without_room_are_not_encoded(autojump_clock, ask):
    """They count while they wait for their turn."""
    async with serving(Library(), limits={"memory": 4_000_000}) as wire:
        session = await wire.session("2025-03-26")
        done = await session.post([ask(300_000, id_) for id_ in range(10)])
        answers = {each["id"]: each for each in done.json}
        errors = [each["error"] for each in answers.values() if "error" in each]
        assert sorted(answers) == list(range(10))
        assert 6 <= len(errors) < 10
        assert {each["code"] for each in errors} == {-32603}
        assert "ask for less" in errors[0]["message"]


async def test_a_large_body_lets_others_pass(autojump_clock):
    """Bodies over 256 KiB are decoded one at a time, and others are answered in between."""
    large = json.dumps({**call("echo", {"text": "x"}), "x": "y" * 300_000}).encode()
    async with serving(Shop(), health=True) as wire:
        session = await wire.session()
        posts = [wire.open("POST", large, session.headers) for _ in range(3)]
        health = wire.open("GET", path="/healthz")
        for each in (*posts, health):
            await each.ended.wait()
    assert [each.status for each in (*posts, health)] == [200, 200, 200, 200]


async def test_a_body_counts_while_it_comes(autojump_clock):
    """A body in parts is refused as soon as it exceeds the quota of the client."""
    async with serving(Shop(), limits={"memory": 4_000_000}) as wire:
        half = {"type": "http.request", "body": b" " * 600_000, "more_body": True}
        running = wire.make("POST", parts=[half, half, {"type": "http.disconnect"}])
        await running.run()
        assert (running.status, running.error) == (413, -32600)


async def test_values_count_before_they_exist(autojump_clock):
    """A body whose values would exceed every client's quota is refused before it is decoded."""
    body = json.dumps({**message("ping", id_=1), "params": {"x": [[]] * 2000}}).encode()
    async with serving(Memory(), limits={"memory": 1_000_000}) as wire:
        session = await wire.session()
        refused = await wire.send("POST", body, session.headers)
    assert len(body) < 10_000
    assert refused.status == 413
    assert "250000 bytes" in refused.json["error"]["message"]


def test_events_are_given_up_first():
    """A client's own events are dropped first, and then events of the client that holds most."""
    quotas = Quotas(HttpLimits(memory=MEMORY))
    clients = [quotas.named(str(number)) for number in range(5)]
    sessions = [Reservation(client) for client in clients]
    logs = [EventLog(PART, reservation) for reservation in sessions]
    streams = [log.open() for log in logs]
    for stream in streams:
        for _ in range(3):
            stream.deliver(b"x" * 1000)
    kept = logs[0].size
    assert kept > 3000
    # Its own, and only as many as needed; open streams lose their oldest events.
    reservation = Reservation(clients[0])
    assert reservation.reserve(PART - 2500)
    assert 2000 < logs[0].size < 2500
    # A second session of the client keeps an event by dropping one of the first session.
    other = EventLog(PART, Reservation(clients[0]))
    stream = other.open()
    stream.deliver(b"x" * 1000)
    assert (logs[0].size, other.size) == (kept // 3, kept // 3)
    # Once all is used, the events of the largest client are dropped, then any others.
    rest = [Reservation(client) for client in clients[1:]]
    assert all(each.reserve(PART - kept) for each in rest[:2])
    assert [log.size for log in logs[1:]] == [kept] * 4
    new = Reservation(quotas.named("new"))
    assert new.reserve(PART - kept)
    assert min(logs[1].size, logs[2].size) < kept
    assert logs[3].size == logs[4].size == kept
    assert new.reserve(kept)
    assert quotas.held <= MEMORY
    # A client that has used up its part has nothing to drop: an event is not kept.
    assert not new.reserve(1)
    late = EventLog(PART, Reservation(new.quota))
    late.open().deliver(b"x")
    assert late.size == 0


def test_a_session_that_has_ended_keeps_nothing():
    """A stream that a running request opens after the end counts nothing."""
    quotas = Quotas(HttpLimits())
    reservation = Reservation(quotas.named("ann"))
    log = EventLog(1000, reservation)
    log.end()
    reservation.close()
    stream = log.open()
    assert stream.reserve(10)
    stream.deliver(b"late")
    assert (log.size, quotas.held) == (0, 0)


async def test_a_uri_that_is_watched_twice_at_once_counts_once(autojump_clock):
    """The second subscription arrives while the hook of the first one waits."""

    class Slow(Memory, name="slow", version="1"):
        """Takes a while to watch."""

        async def subscribe(self, uri, context):
            """Take a while."""
            await trio.sleep(0.5)

    async with serving(Slow()) as wire:
        session = await wire.session()
        alone = wire.endpoint.app.quotas.held
        both = [session.open(message("resources/subscribe", {"uri": "u:a"}, id_)) for id_ in (1, 2)]
        for each in both:
            await each.ended.wait()
        assert 0 < wire.endpoint.app.quotas.held - alone < 400
        await session.post(message("resources/unsubscribe", {"uri": "u:a"}, 3))
        assert wire.endpoint.app.quotas.held == alone


def test_ended_streams_of_a_session_are_given_up_before_open_ones():
    """Of open streams no more than needed is dropped."""
    quotas = Quotas(HttpLimits(memory=MEMORY))
    log = EventLog(PART, Reservation(quotas.named("ann")))
    ended, *rest = [log.open() for _ in range(3)]
    for stream in (ended, *rest):
        stream.deliver(b"x" * 1000)
    ended.end()
    reservation = Reservation(quotas.named("ann"))
    assert reservation.reserve(PART - log.size + 1)
    assert (log.find(f"{ended.name}-0"), [each.size > 0 for each in rest]) == (
        None,
        [True, True],
    )
    assert reservation.reserve(ended.size)
    assert [each.size > 0 for each in rest] == [False, True]
