"""On the host of the package: what bytes of a client mean to the application."""

from functools import partial

import pytest
import trio
import trio.testing

from noizu_mcp import Schema, Server, Tool, serve_http
from noizu_mcp.transports.host import serve_asgi
from noizu_mcp.transports.http import HttpLimits

from ...kit.http_client import RawClient
from ...kit.messages import INITIALIZED, call, http_request, initialize, message, modern_request


class Long(Tool):
    """Waits until the test lets it go on."""

    async def call(self, args, ctx):
        place = ctx.server
        place.running += 1
        try:
            await place.go_on.wait()
            place.ended.append("done")
        except trio.Cancelled:
            place.ended.append("cancelled")
            raise
        finally:
            place.running -= 1
        return "done"


class Small(Server, name="small", version="1"):
    tools = [Long]

    def __init__(self):
        super().__init__()
        self.running = 0
        self.go_on = trio.Event()
        self.ended = []


def _modern(method, **params):
    return http_request(*modern_request(message(method, params, 1)))


@pytest.fixture
async def served(nursery):
    """Return a function that starts the server with options of the host."""
    hosts = []

    async def start(**options):
        server = Small()
        hosts.append(await nursery.start(partial(serve_http, server, port=0, **options)))
        return server, hosts[-1]

    yield start
    for each in hosts:
        each.stop()


async def _ask(host, data, *, half=False):
    """Send bytes; return everything that arrives until the server closes the connection."""
    async with await trio.open_tcp_stream("127.0.0.1", host.port) as stream:
        await stream.send_all(data)
        if half:
            await stream.send_eof()
        with trio.fail_after(60):
            return b"".join([bytes(part) async for part in stream])


async def test_a_length_over_the_limit_is_refused_before_the_body(served):
    """413 is the first response to a client that waits for `100 Continue`."""
    _, host = await served()
    head = http_request(message("ping"), {"Expect": "100-continue"}).partition(b"\r\n\r\n")[0]
    start, _, rest = head.partition(b"Content-Length: ")
    head = start + b"Content-Length: 99999999999\r\n" + rest.partition(b"\r\n")[2] + b"\r\n\r\n"
    assert (await _ask(host, head, half=True)).startswith(b"HTTP/1.1 413 ")


async def _session(host, version="2025-11-25"):
    """Do the handshake; return the id of the session."""
    answer = await _ask(host, http_request(initialize(version), {"Connection": "close"}))
    session = answer.partition(b"mcp-session-id: ")[2].partition(b"\r\n")[0].decode()
    headers = {"Mcp-Session-Id": session}
    await _ask(host, http_request(INITIALIZED, headers), half=True)
    return headers


async def _until(condition):
    with trio.fail_after(60):
        while not condition():
            await trio.testing.wait_all_tasks_blocked(0.001)


async def test_an_immediate_answer_reaches_a_half_closed_connection(served):
    """A client that sends and then half-closes, as `nc -N` does, is answered."""
    _, host = await served()
    assert b'"tools"' in await _ask(host, _modern("tools/list"), half=True)
    assert b'"serverInfo"' in await _ask(host, http_request(initialize()), half=True)


async def test_half_close_cancels_calls_on_2026_07_28(served):
    """On 2026-07-28 a half-close cancels a call that waits; before, the call goes on."""
    server, host = await served()
    assert await _ask(host, _modern("tools/call", name="long", arguments={}), half=True) == b""
    await _until(lambda: server.ended == ["cancelled"])
    data = http_request(call("long"), await _session(host))
    assert await _ask(host, data, half=True) == b""
    assert server.running == 1
    await _until(lambda: host.connections == 0)
    server.go_on.set()
    await _until(lambda: server.ended == ["cancelled", "done"])


class Hasty(Tool, timeout=10):
    """Waits until the test lets it go on, for ten seconds at most."""

    class Input(Schema):
        shield: bool = False

    async def call(self, args, ctx):
        ctx.server.running.set()
        with trio.CancelScope(shield=args.shield):
            await ctx.server.go_on.wait()
        return "done"


class Brief(Server, name="brief", version="1"):
    tools = [Hasty]

    def __init__(self):
        super().__init__()
        self.running = trio.Event()
        self.go_on = trio.Event()


@pytest.mark.parametrize("shield", [False, True])
@pytest.mark.parametrize("seconds", [1, 20])
async def test_the_time_of_a_call_is_not_that_of_the_next(nursery, mock_clock, seconds, shield):
    """A connection is served on after the deadline of an earlier call, met or not."""
    server, limits = Brief(), HttpLimits(silence=1000)  # so answers are no streams
    host = await nursery.start(partial(serve_http, server, port=0, limits=limits))
    client = RawClient(await trio.open_tcp_stream("127.0.0.1", host.port))
    data = _modern("tools/call", name="hasty", arguments={"shield": shield})
    ends_itself = seconds < 10 or shield
    with trio.fail_after(60):
        await client.send(data)
        await server.running.wait()
        mock_clock.jump(seconds)
        if ends_itself:
            await trio.testing.wait_all_tasks_blocked()
            server.go_on.set()
        assert (b"done" if ends_itself else b"timed out") in (await client.answer())[1]
        mock_clock.jump(20)
        server.go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        await client.send(data)
        assert b"done" in (await client.answer())[1]
    await client.stream.aclose()
    host.stop()


async def test_middleware_may_limit_the_time_of_requests(nursery, caplog):
    """Middleware may surround each request of a connection with a scope of its own."""
    app = Brief().asgi()

    async def limited(scope, receive, send):
        with trio.fail_after(60):
            await app(scope, receive, send)

    host = await nursery.start(partial(serve_asgi, limited, port=0, lifespan=app.lifespan()))
    client = RawClient(await trio.open_tcp_stream("127.0.0.1", host.port))
    app.server.go_on.set()
    for _ in range(2):
        await client.send(_modern("tools/call", name="hasty", arguments={}))
        assert b"done" in (await client.answer())[1]
    await client.stream.aclose()
    host.stop()
    assert "failed" not in caplog.text


async def test_calls_whose_clients_left_use_no_connections(served):
    """Such calls go on as sessions demand, without a connection."""
    server, host = await served(max_connections=5)
    session = await _session(host)
    for number in range(20):
        async with await trio.open_tcp_stream("127.0.0.1", host.port) as stream:
            await stream.send_all(http_request(call("long", id_=number), session))
            await _until(lambda number=number: server.running == number + 1)
        await _until(lambda: host.connections == 0)
    assert (await _ask(host, _modern("tools/list"), half=True)).startswith(b"HTTP/1.1 200")
    server.go_on.set()
    await _until(lambda: server.ended == ["done"] * 20)


async def test_a_body_that_does_not_come_is_answered(served, autojump_clock):
    """It is answered with 408, whichever timeout ends first."""
    for seconds in (5.0, 30.0, 100.0):
        _, host = await served(body_timeout=seconds)
        data = _modern("tools/list")[:-1]
        start = trio.current_time()
        assert (await _ask(host, data)).startswith(b"HTTP/1.1 408")
        assert trio.current_time() - start == pytest.approx(min(seconds, 30))


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://localhost/mcp", "localhost", 200),
        ("http://LOCALHOST/mcp", "localhost", 200),
        ("http://evil/mcp", "localhost", 400),
        ("http://localhost/mcp", "evil", 400),
        ("http://localhost@evil/mcp", "localhost", 400),
        ("http://evil/mcp", "evil", 421),
        ("http://localhost@evil/mcp", "localhost@evil", 400),
        ("http://evil\\localhost/mcp", "evil\\localhost", 400),
    ],
)
async def test_a_host_in_the_target_is_no_way_around_the_allowed_ones(served, target, host, status):
    """A host in the target is checked like the Host header."""
    _, serving = await served()
    data = http_request(initialize(), {"Connection": "close"}, target=target, host=host)
    answer = await _ask(serving, data)
    assert answer.startswith(b"HTTP/1.1 %d" % status)


async def test_the_calls_of_an_array_are_waited_for(served):
    """Calls that take longer than the silence limit are answered as events."""
    server, host = await served(limits=HttpLimits(silence=0.01))
    session = await _session(host, "2025-03-26")
    calls = [call("long", id_=1), call("long", id_=2)]
    async with await trio.open_tcp_stream("127.0.0.1", host.port) as stream:
        await stream.send_all(http_request(calls, session))
        client = RawClient(stream)
        await client.read_until(b"text/event-stream")
        server.go_on.set()
        answers = await client.read_until(b"0\r\n\r\n")
    assert answers.count(b'"text":"done"') == 2


@pytest.fixture
async def streaming(nursery):
    """Serve an application that counts its finished calls; return both, and the host."""
    server = Small()
    app, hosts, calls = server.asgi(), [], []

    async def counting(scope, receive, send):
        await app(scope, receive, send)
        calls.append(scope["method"])

    async def run(task_status):
        await serve_asgi(
            counting, port=0, lifespan=app.lifespan(), stopping=app.settle, task_status=task_status
        )

    hosts.append(await nursery.start(run))
    yield server, calls, hosts[0]
    hosts[0].stop()


LISTEN = {"notifications": {"toolsListChanged": True}}


async def _open_streams(host):
    """Open a stream of each era; return their clients once the responses have begun."""
    opened = []
    for data, begun in [
        (http_request(None, await _session(host), method="GET"), b"data: \n\n"),
        (_modern("subscriptions/listen", **LISTEN), b"acknowledged"),
    ]:
        opened.append(RawClient(await trio.open_tcp_stream("127.0.0.1", host.port)))
        await opened[-1].send(data)
        await opened[-1].read_until(begun)
    return opened


async def test_an_open_stream_keeps_no_call_of_the_application(streaming):
    """The application has returned; changes are still sent, and disconnects are noticed."""
    server, calls, host = streaming
    streams = await _open_streams(host)
    await _until(lambda: calls[2:] == ["GET", "POST"])
    server.tools.remove("long")
    for each in streams:
        await each.read_until(b"notifications/tools/list_changed")
    assert len(server.telemetry.streams) == 2
    await streams.pop().stream.aclose()
    await _until(lambda: len(server.telemetry.streams) == 1)
    await streams.pop().stream.aclose()
    await _until(lambda: not server.telemetry.streams)
    assert host.connections == 0


async def test_open_streams_end_in_order(streaming):
    """A session's stream ends with its last event, a listen request with its result."""
    _, _, host = streaming
    streams = await _open_streams(host)
    host.stop()
    ended = [await each.read_until(b"0\r\n\r\n") for each in streams]
    assert [b'"resultType":"complete"' in each for each in ended] == [False, True]
    for each in streams:
        await each.stream.aclose()
