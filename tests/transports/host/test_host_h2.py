"""HTTP/2: several requests at a time, bounded, each on its own."""

import ssl

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
import pytest
import trio
import trio.testing

from noizu_mcp.transports._asgi_extension import WRITE_NOWAIT
from noizu_mcp.transports.host import _crumbs, _http2

START = {"type": "http.response.start", "status": 200, "headers": []}
CODES = h2.errors.ErrorCodes


def _chunk(body, *, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}


class Client:
    """A client of HTTP/2 that says when windows open."""

    def __init__(self, stream):
        self.stream = stream
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(validate_outbound_headers=False)
        )
        self.h2.initiate_connection()
        self.events = []

    async def flush(self):
        await self.stream.send_all(self.h2.data_to_send())

    def ask(self, path="/", method="POST", *, end=True, **more):
        """Start a request; gives its stream."""
        number = self.h2.get_next_available_stream_id()
        names = {"method": method, "scheme": "http", "authority": "test", "path": path, **more}
        headers = [(f":{name}", value) for name, value in names.items()]
        self.h2.send_headers(number, headers, end_stream=end)
        return number

    async def event(self, kind, number=None, *, acknowledge=True):
        """Wait for an event of a kind."""
        with trio.fail_after(60):
            while True:
                for each in self.events:
                    if isinstance(each, kind) and (number is None or each.stream_id == number):
                        self.events.remove(each)
                        return each
                await self.flush()
                data = await self.stream.receive_some()
                assert data, f"the end, after {self.events}"
                new = self.h2.receive_data(data)
                for each in new:
                    if isinstance(each, h2.events.DataReceived) and acknowledge:
                        self.h2.acknowledge_received_data(
                            each.flow_controlled_length, each.stream_id
                        )
                self.events += new

    async def answer(self, number):
        """Read an answer: its status and body."""
        head = await self.event(h2.events.ResponseReceived, number)
        await self.event(h2.events.StreamEnded, number)
        body = b"".join(
            each.data
            for each in self.events
            if isinstance(each, h2.events.DataReceived) and each.stream_id == number
        )
        return int(dict(head.headers)[b":status"]), body


@pytest.fixture
def connect2(connect):
    """Connect as a client of HTTP/2, with prior knowledge or over TLS."""

    async def open_one(host, certificate=None, **options):
        stream = (await connect(host, **options)).stream
        if certificate:
            context = ssl.create_default_context(cafile=certificate)
            context.set_alpn_protocols(["h2"])
            stream = trio.SSLStream(stream, context, server_hostname="127.0.0.1")
            await stream.do_handshake()
            assert stream.selected_alpn_protocol() == "h2"
        client = Client(stream)
        await client.flush()
        return client

    return open_one


@pytest.fixture
def each(serve, answer, read_body):
    """Serve an application for each path; gives the host."""

    async def start(apps, **options):
        async def app(scope, receive, send):
            await apps[scope["path"]](scope, receive, send)

        return await serve(app, **options)

    return start


@pytest.mark.parametrize("secure", [False, True])
async def test_requests_are_answered(serve, connect2, echo, certificate, secure):
    """One after the other and at a time, with bodies above the windows, over TLS or not."""
    options = {"certfile": certificate} if secure else {}
    host = await serve(echo, **options)
    client = await connect2(host, certificate if secure else None)
    first, second = client.ask(end=False), client.ask(end=False)
    client.h2.send_data(second, b"two", end_stream=True, pad_length=7)
    assert await client.answer(second) == (200, b"two")
    sent = 0
    while sent < 200_000:
        room = client.h2.local_flow_control_window(first)
        size = min(room, 10_000, 200_000 - sent)
        if size:
            client.h2.send_data(first, b"x" * size)
            sent += size
            await client.flush()
        else:
            await client.event(h2.events.WindowUpdated, first)
    client.h2.end_stream(first)
    assert await client.answer(first) == (200, b"x" * 200_000)


async def test_the_scope_says_http_2(serve, connect2, answer):
    """The authority is the host; methods and paths are as they were sent."""
    scopes, quick = [], []

    async def app(scope, receive, send):
        scopes.append(scope)
        quick.append(hasattr(send, WRITE_NOWAIT))
        await answer(send)

    client = await connect2(await serve(app))
    assert await client.answer(client.ask("/a?b", "GET")) == (200, b"")
    [scope] = scopes
    assert (scope["http_version"], scope["method"], scope["path"]) == ("2", "GET", "/a")
    assert (b"host", b"test") in scope["headers"]
    assert quick == [False]  # a window may have no room


@pytest.mark.parametrize(
    "wrong", [{"method": "CONNECT", "protocol": "websocket"}, {"path": "/\u00e9"}, {"path": ""}]
)
async def test_what_cannot_be_asked_is_refused(serve, connect2, echo, wrong, caplog):
    """No WebSocket, no path that is no path; the connection or at least the log is spared."""
    client = await connect2(await serve(echo))
    number = client.ask(**wrong)
    ended = (h2.events.StreamReset, h2.events.ConnectionTerminated)
    assert (await client.event(ended)).error_code == CODES.PROTOCOL_ERROR
    assert number == 1
    assert caplog.records == []


async def test_a_reset_is_a_disconnect(each, connect2, answer, read_body):
    """Whoever resets a stream ends that one only, also while its answer waits for room."""
    over = trio.Event()
    types = []

    async def long(scope, receive, send):
        await receive()
        await send(START)
        await send(_chunk(b"x" * 1_000_000))
        types.append((await receive())["type"])
        over.set()

    async def short(scope, receive, send):
        await answer(send, b"ok")

    client = await connect2(await each({"/long": long, "/short": short}))
    number = client.ask("/long")
    await client.event(h2.events.DataReceived, number, acknowledge=False)
    client.h2.reset_stream(number)
    await client.flush()
    with trio.fail_after(10):  # not only once the writing has taken too long
        await over.wait()
    assert types == ["http.disconnect"]
    client.h2.increment_flow_control_window(1_000_000)
    assert await client.answer(client.ask("/short")) == (200, b"ok")


async def test_a_failure_within_an_answer_resets_its_stream(each, connect2, answer, caplog):
    """The client does not take the half for the whole, nor wait for ever."""

    async def broken(scope, receive, send):
        await send(START)
        await send(_chunk(b"half"))
        raise RuntimeError

    async def unanswered(scope, receive, send):
        raise RuntimeError

    client = await connect2(await each({"/broken": broken, "/unanswered": unanswered}))
    reset = await client.event(h2.events.StreamReset, client.ask("/broken"))
    assert reset.error_code == CODES.INTERNAL_ERROR
    assert await client.answer(client.ask("/unanswered")) == (500, b"")
    assert len(caplog.records) == 2


async def test_a_window_that_stays_shut_ends_its_stream(each, connect2, answer, autojump_clock):
    """A client that takes nothing loses the stream after the time for a write."""
    seen = []

    async def long(scope, receive, send):
        await receive()
        start = trio.current_time()
        await send(START)
        await send(_chunk(b"x" * 1_000_000))
        seen.append(trio.current_time() - start)
        seen.append((await receive())["type"])
        await send(_chunk(b"y", more=False))

    async def last(scope, receive, send):
        await answer(send, b"x" * 100_000)

    client = await connect2(await each({"/": long, "/last": last}, write_timeout=30.0))
    reset = await client.event(h2.events.StreamReset, client.ask(), acknowledge=False)
    assert reset.error_code == CODES.CANCEL
    await trio.testing.wait_all_tasks_blocked()
    assert seen == [pytest.approx(30), "http.disconnect"]
    reset = await client.event(h2.events.StreamReset, client.ask("/last"), acknowledge=False)
    assert reset.error_code == CODES.CANCEL


async def test_a_body_that_does_not_come_ends_its_stream(
    each, connect2, read_body, answer, autojump_clock
):
    """A slow upload is a disconnect of its own stream."""

    async def app(scope, receive, send):
        assert await read_body(receive) is None

    client = await connect2(await each({"/": app}, body_timeout=30.0))
    start = trio.current_time()
    reset = await client.event(h2.events.StreamReset, client.ask(end=False))
    assert reset.error_code == CODES.CANCEL
    assert trio.current_time() - start == pytest.approx(30)


async def test_an_early_answer_leaves_the_windows_whole(each, connect2, answer):
    """What is uploaded for a request that is answered already, or never read, is not kept."""
    go_on = trio.Event()

    async def refuse(scope, receive, send):
        await answer(send, status=413)

    async def ignore(scope, receive, send):
        await go_on.wait()
        await answer(send)

    client = await connect2(await each({"/refuse": refuse, "/ignore": ignore}))
    ignored = client.ask("/ignore", end=False)
    client.h2.send_data(ignored, b"x" * 10_000)
    await client.flush()
    refused = client.ask("/refuse", end=False)
    assert (await client.event(h2.events.ResponseReceived, refused)) is not None
    for _ in range(10):
        while client.h2.local_flow_control_window(refused) < 10_000:
            await client.event(h2.events.WindowUpdated)
        client.h2.send_data(refused, b"x" * 6_000)
        await client.flush()
    go_on.set()
    assert await client.answer(ignored) == (200, b"")


async def test_opening_and_resetting_is_bounded(serve, connect2, monkeypatch):
    """A client that resets what it asks for cannot start more than so many applications."""
    monkeypatch.setattr(_http2, "LEFT_OVER", 5)
    running = []

    async def app(scope, receive, send):
        running.append(1)
        await trio.sleep_forever()

    client = await connect2(await serve(app, max_streams=5))
    for _ in range(20):
        client.h2.reset_stream(client.ask())
    end = await client.event(h2.events.ConnectionTerminated)
    assert end.error_code == CODES.ENHANCE_YOUR_CALM
    await trio.testing.wait_all_tasks_blocked()
    assert len(running) == 10


async def test_large_heads_end_the_connection(serve, connect2, echo, caplog):
    """The size of headers is bounded as in HTTP/1.1."""
    client = await connect2(await serve(echo, max_header_size=1000))
    client.ask("/" + "x" * 2000)
    assert (await client.event(h2.events.ConnectionTerminated)).error_code != 0
    assert caplog.records == []


async def test_priorities_are_ignored(serve, connect2, echo):
    """They are deprecated; a tree of thousands of them is never built."""
    client = await connect2(await serve(echo))
    for number in range(3, 5001, 2):
        client.h2.prioritize(number, weight=1)
    await client.flush()
    assert await client.answer(client.ask()) == (200, b"")


async def test_an_idle_connection_is_closed(serve, connect2, echo, autojump_clock):
    """It is told so first; pings do not count as use."""
    client = await connect2(await serve(echo, keep_alive_timeout=60.0, header_timeout=10.0))
    assert await client.answer(client.ask()) == (200, b"")
    start = trio.current_time()
    await trio.sleep(20)
    client.h2.ping(b"12345678")
    await client.event(h2.events.PingAckReceived)
    await client.event(h2.events.ConnectionTerminated)
    assert trio.current_time() - start == pytest.approx(60)


async def test_the_end_of_the_client_frees_what_waits(serve, connect2):
    """An application that waits for a window to open hears that it never will."""
    over = trio.Event()

    async def app(scope, receive, send):
        await receive()
        await send(START)
        await send(_chunk(b"x" * 1_000_000))
        await send(_chunk(b"y", more=False))
        over.set()

    host = await serve(app)
    client = await connect2(host)
    await client.event(h2.events.DataReceived, client.ask(), acknowledge=False)
    await client.stream.aclose()
    with trio.fail_after(10):
        await over.wait()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_left_keeps_no_place(
    serve, connect2, answer, leave, until, descriptors, how
):
    """Its applications go on without it."""
    go_on, ended = trio.Event(), []

    async def app(scope, receive, send):
        await go_on.wait()
        await answer(send)
        ended.append(1)

    host = await serve(app, max_connections=1)
    before = descriptors()
    client = await connect2(host)
    for _ in range(3):
        client.ask()
    await client.flush()
    await until(lambda: host.connections == 1)
    await trio.testing.wait_all_tasks_blocked(0.001)
    await leave(client.stream, how)
    await until(lambda: host.connections == 0)
    assert descriptors() == before
    assert ended == []
    go_on.set()
    other = await connect2(host)
    assert await other.answer(other.ask()) == (200, b"")
    await until(lambda: len(ended) == 4)


async def test_requests_that_are_not_whole_make_room(
    serve, connect, connect2, held, autojump_clock
):
    """As long as none of the connection is."""
    host = await serve(held, max_connections=1)
    client = await connect2(host)
    whole, upload = client.ask("/long"), client.ask(end=False)
    client.h2.send_data(upload, b"1")
    await client.flush()
    await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(2)
    assert (await (await connect(host)).rest()).startswith(b"HTTP/1.1 503")
    held.go_on.set()
    await trio.sleep(2)
    other = await connect2(host)
    assert await other.answer(other.ask()) == (200, b"")
    assert await client.answer(whole) == (200, b"")
    assert await client.stream.receive_some() == b""


async def test_a_full_window_is_no_debt(
    serve, connect, connect2, answer, read_body, autojump_clock
):
    """It is the application that takes its time; once it has taken something, the client owes."""
    take = trio.Event()

    async def app(scope, receive, send):
        await take.wait()
        await answer(send, b"%d" % len(await read_body(receive)))

    host = await serve(app, max_connections=1)
    client = await connect2(host)
    number = client.ask(end=False)
    window = client.h2.local_flow_control_window(number)
    while room := min(client.h2.local_flow_control_window(number), 10_000):
        client.h2.send_data(number, b"x" * room)
    await client.flush()
    await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(2)
    assert (await (await connect(host)).rest()).startswith(b"HTTP/1.1 503")
    take.set()
    await client.event(h2.events.WindowUpdated, number)
    client.h2.send_data(number, b"x", end_stream=True)
    assert await client.answer(number) == (200, b"%d" % (window + 1))
    owing = client.ask(end=False)
    while room := min(client.h2.local_flow_control_window(owing), 10_000):
        client.h2.send_data(owing, b"x" * room)
    await client.event(h2.events.WindowUpdated, owing)
    await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(2)
    other = await connect2(host)
    await other.answer(other.ask())


async def test_a_body_in_crumbs_is_reset(serve, connect2, echo, monkeypatch):
    """Many frames are well, and many small ones are not; the windows of the others stay whole."""
    monkeypatch.setattr(_crumbs, "PIECES", 100)
    client = await connect2(await serve(echo))
    for frames, size in ((99, 1), (200, 70), (99, 1)):  # and an empty one for the end
        number = client.ask(end=False)
        for _ in range(frames):
            client.h2.send_data(number, b"x" * size)
        client.h2.end_stream(number)
        assert (await client.answer(number))[0] == 200
    number = client.ask(end=False)
    for _ in range(500):
        client.h2.send_data(number, b"x" * 50)
    reset = await client.event(h2.events.StreamReset, number)
    assert reset.error_code == CODES.ENHANCE_YOUR_CALM
    assert await client.answer(client.ask()) == (200, b"")


async def test_a_body_in_crumbs_leaves_others_their_turns(
    serve, connect2, echo, crumbs_between_turns
):
    """What one read brings is not gone through in one go."""
    client = await connect2(await serve(echo))
    number = client.ask(end=False)
    for _ in range(5000):
        client.h2.send_data(number, b"x")
    client.h2.end_stream(number)
    async with crumbs_between_turns() as between:
        assert (await client.answer(number))[0] == 200
    assert 0 < max(between) <= 2 * _crumbs.TURN


async def test_shutdown_ends_streams_in_order(each, connect2, answer, autojump_clock):
    """New streams are refused, running ones finish, then the connection says goodbye."""
    stop = trio.Event()

    async def app(scope, receive, send):
        await stop.wait()
        await answer(send, b"done")

    async def stopping():
        await trio.sleep(3)
        stop.set()

    host = await each({"/": app}, stopping=stopping)
    client, idle = await connect2(host), await connect2(host)
    running = client.ask()
    await idle.event(h2.events.RemoteSettingsChanged)
    await client.flush()
    await trio.testing.wait_all_tasks_blocked()
    start = trio.current_time()
    host.stop()
    await idle.event(h2.events.ConnectionTerminated)
    assert trio.current_time() == start
    refused = client.ask()
    assert (await client.event(h2.events.StreamReset, refused)).error_code == CODES.REFUSED_STREAM
    assert await client.answer(running) == (200, b"done")
    await client.event(h2.events.ConnectionTerminated)
    await host.ended.wait()
    assert trio.current_time() - start == pytest.approx(3, abs=2.1)


async def test_a_client_that_reads_nothing_holds_up_nothing(serve, connect2, autojump_clock):
    """With open windows and a full socket it is closed after the drain time."""

    async def app(scope, receive, send):
        await send(START)
        while True:
            await send(_chunk(b"x" * 1_000_000))

    host = await serve(app, drain_timeout=2.0, write_timeout=1000.0)
    client = await connect2(host, receive_buffer=4096)
    client.h2.increment_flow_control_window(2**30)
    client.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 2**30})
    client.ask()
    client.ask()
    await client.flush()
    await trio.testing.wait_all_tasks_blocked(0.05)
    start = trio.current_time()
    host.stop()
    await host.ended.wait()
    assert trio.current_time() - start == pytest.approx(2)
