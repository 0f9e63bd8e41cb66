"""Parts of a response that are written at once, without a task: an ASGI extension of the host."""

import gc
import ssl

import pytest
import trio
import trio.testing

from noizu_mcp import Context, Server

from ...kit.messages import call, http_request, modern_request

START = {"type": "http.response.start", "status": 200, "headers": []}
LARGE = 8 * 1024 * 1024


def _chunk(body, *, more=True):
    return {"type": "http.response.body", "body": body, "more_body": more}


def _chunks(data):
    """Return the chunks of a complete body."""
    found = []
    while data:
        size, _, data = data.partition(b"\r\n")
        found.append(data[: int(size, 16)])
        assert data[int(size, 16) :][:2] == b"\r\n"
        data = data[int(size, 16) + 2 :]
    assert found.pop() == b""
    return found


async def test_a_part_is_written_at_once(serve, connect):
    """Parts are written in order with the parts of `send`, between the head and the end."""
    found = []

    async def app(scope, receive, send):
        write = send.write_nowait
        found.append(write(b"too soon"))
        await send(START)
        found.append(write(b"still"))
        await send(_chunk(b"one"))
        found.append(write(b"two"))
        await send(_chunk(b"three"))
        found.append(write(b"four"))
        await send(_chunk(b"", more=False))
        found.append(write(b"too late"))

    client = await connect(await serve(app))
    for _ in range(2):
        await client.request()
        assert (await client.head())[0] == 200
        body = await client.read_until(b"\r\n0\r\n\r\n")
        assert _chunks(body) == [b"one", b"two", b"three", b"four"]
    assert found == [None, None, 0, 0, None] * 2


async def test_only_the_answer_of_the_request_is_written_to(serve, connect):
    """`write_nowait` of an earlier request does not write to a later response."""
    writers, found = [], []

    async def app(scope, receive, send):
        writers.append(send.write_nowait)
        await send(START)
        await send(_chunk(b"one"))
        found.append(writers[0](b"two"))
        await send(_chunk(b"", more=False))

    client = await connect(await serve(app))
    for whole in ([b"one", b"two"], [b"one"]):
        await client.request()
        await client.head()
        assert _chunks(await client.read_until(b"\r\n0\r\n\r\n")) == whole
    assert found == [0, None]


async def count(ctx: Context) -> str:
    for number in range(1, 4):
        await ctx.report_progress(number)
        await trio.lowlevel.checkpoint()
    return "done"


class Counting(Server, name="counting", version="1"):
    """Reports progress before its answer."""

    tools = [count]


async def test_middleware_is_not_passed_by(serve, connect):
    """A middleware that changes responses has its own `send`, which gets every part."""
    app = Counting().asgi()

    async def shouting(scope, receive, send):
        async def shout(message):
            if "body" in message:
                message = {**message, "body": message["body"].upper()}
            await send(message)

        await app(scope, receive, shout)

    body, headers = modern_request(call("count", _meta={"progressToken": 1}))
    async with app.lifespan():
        client = await connect(await serve(shouting))
        await client.send(http_request(body, headers))
        assert (await client.head())[1]["content-type"] == "text/event-stream"
        sent = await client.read_until(b"\r\n0\r\n\r\n")
    assert sent.count(b"NOTIFICATIONS/PROGRESS") == 3
    assert b"progress" not in sent


async def test_what_is_left_goes_before_the_next_part(serve, connect):
    """Buffered bytes are written before the next part, even if that is empty."""
    found = []
    wrote = trio.Event()

    async def app(scope, receive, send):
        write = send.write_nowait
        await send(START)
        await send(_chunk(b"1"))
        found.append(write(b"x" * LARGE))
        found.append(write(b"no"))
        wrote.set()
        await send(_chunk(b""))
        found.append(write(b"3"))
        await send(_chunk(b"4", more=False))

    client = await connect(await serve(app), receive_buffer=4096)
    await client.request()
    await wrote.wait()
    left, *others = found
    assert 0 < left < LARGE
    assert others == [None]
    await client.head()
    body = await client.read_until(b"\r\n0\r\n\r\n")
    assert _chunks(body) == [b"1", b"x" * LARGE, b"3", b"4"]
    assert found[2] == 0


async def test_nothing_is_written_into_a_part(serve, connect):
    """A part is refused while the client has not read the one before it."""
    found = []
    went = trio.Event()

    async def app(scope, receive, send):
        async def write():
            await trio.testing.wait_all_tasks_blocked(0.01)
            found.append(send.write_nowait(b"no"))
            went.set()

        await send(START)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await send(_chunk(b"x" * LARGE))
        await send(_chunk(b"", more=False))

    client = await connect(await serve(app), receive_buffer=4096)
    await client.request()
    await went.wait()
    assert found == [None]
    await client.head()
    assert _chunks(await client.read_until(b"\r\n0\r\n\r\n")) == [b"x" * LARGE]


async def test_a_client_that_has_left(serve, connect, leave):
    """After a disconnect nothing is written."""
    began, over, found = trio.Event(), trio.Event(), []

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"1"))
        began.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        found.append(send.write_nowait(b"2"))
        over.set()

    client = await connect(await serve(app))
    await client.request()
    await began.wait()
    await leave(client.stream, "reset")
    await over.wait()
    assert found == [None]


async def test_answers_without_a_body_have_none(serve, connect):
    """A response to HEAD has no body, even if the application streams one."""
    found = []

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"1"))
        found.append(send.write_nowait(b"no"))
        await send(_chunk(b"2", more=False))

    client = await connect(await serve(app))
    for _ in range(2):
        await client.request(method="HEAD")
        assert (await client.head())[0] == 200
    await trio.testing.wait_all_tasks_blocked()
    assert found == [None, None]
    assert client.buffer == b""


async def test_over_tls_parts_go_in_the_usual_way(serve, connect, certificate):
    """Over TLS the extension refuses parts, since TLS may have to wait for its client."""
    found = []

    async def app(scope, receive, send):
        await send(START)
        await send(_chunk(b"1"))
        found.append(send.write_nowait(b"no"))
        await send(_chunk(b"2", more=False))

    client = await connect(await serve(app, certfile=certificate))
    context = ssl.create_default_context(cafile=certificate)
    client.stream = trio.SSLStream(client.stream, context, server_hostname="127.0.0.1")
    await client.request()
    await client.head()
    assert _chunks(await client.read_until(b"\r\n0\r\n\r\n")) == [b"1", b"2"]
    assert found == [None]
    await trio.aclose_forcefully(client.stream)


async def test_requests_leave_nothing_to_the_garbage_collector(serve, connect, answer):
    """The `send` of the application does not refer to its request, so no cycle is left."""

    async def app(scope, receive, send):
        assert send.write_nowait(b"no") is None
        await answer(send)

    client = await connect(await serve(app))
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            await client.request()
            assert await client.answer() == (200, b"")
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert [each for each in gc.garbage if type(each).__module__.startswith("noizu_mcp")] == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


class Stream:
    """An application that hands each response over and returns; the test continues it."""

    def __init__(self):
        self.send = self.let_go = None
        self.returned = 0
        self.gone = 0

    async def __call__(self, scope, receive, send):
        self.send = send
        await send(START)
        await send(_chunk(b"one"))
        self.let_go = send.hand_over(self.note_gone)
        self.returned += 1

    def note_gone(self):
        self.gone += 1

    async def end(self):
        await self.send(_chunk(b"last", more=False))
        self.let_go()


@pytest.fixture
def stream():
    return Stream()


async def test_an_answer_goes_on_without_the_application(serve, connect, until, stream):
    """A response continues after its application returned; then the next request is answered."""
    client = await connect(await serve(stream))
    for _ in range(2):
        await client.request()
    for number in (1, 2):
        await client.head()
        await client.read_until(b"one\r\n")
        await until(lambda number=number: stream.returned == number)
        assert stream.send.write_nowait(b"two") == 0
        await client.read_until(b"two\r\n")
        await stream.send(_chunk(b"three"))
        await client.read_until(b"three\r\n")
        await stream.end()
        assert _chunks(await client.read_until(b"\r\n0\r\n\r\n")) == [b"last"]
    assert stream.gone == 0


async def test_an_application_that_has_returned_hears_of_the_end_of_its_client(
    serve, connect, until, leave, stream
):
    """It is notified once, whatever the client sent before; nothing is written afterwards."""
    host = await serve(stream)
    for number, how in enumerate(["close", "reset"], 1):
        client = await connect(host)
        await client.request()
        await client.read_until(b"one\r\n")
        await until(lambda number=number: stream.returned == number)
        await client.send(b"GET / HTTP/1.1\r\n")
        await leave(client.stream, how)
        await until(lambda: host.connections == 0)
        assert stream.send.write_nowait(b"two") is None
        stream.let_go()
    assert stream.gone == 2


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_an_answer_that_was_handed_over_may_break_off(serve, connect, until, stream, version):
    """An aborted response is visibly incomplete; later requests are not answered."""
    client = await connect(await serve(stream))
    await client.send(b"GET / HTTP/%b\r\nHost: x\r\n\r\n" % version.encode() * 2)
    await client.read_until(b"one")
    await until(lambda: stream.returned)
    stream.let_go()
    assert not (await client.rest()).endswith(b"0\r\n\r\n")
    assert (stream.gone, stream.returned) == (0, 1)


async def test_an_answer_that_was_handed_over_ends_with_the_host(serve, connect, until, stream):
    """The application is notified as of a disconnect."""
    host = await serve(stream, drain_timeout=0.01)
    client = await connect(host)
    await client.request()
    await client.read_until(b"one\r\n")
    await until(lambda: stream.returned)
    host.stop()
    await host.ended.wait()
    assert await client.rest() == b""
    assert stream.gone == 1


async def test_tasks_that_receive_go_on_beside_an_answer_that_was_handed_over(
    serve, connect, until, leave, nursery
):
    """One receiving task reads for all of them; they end with the response."""
    received, stream = [], Stream()

    async def app(scope, receive, send):
        async def read():
            received.append((await receive())["type"])

        await receive()
        for _ in range(2):
            nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        await stream(scope, receive, send)

    client = await connect(await serve(app))
    for number in (1, 2):
        await client.request()
        await client.read_until(b"one\r\n")
        await until(lambda number=number: stream.returned == number)
        await stream.end()
        await client.read_until(b"\r\n0\r\n\r\n")
    await until(lambda: len(received) == 4)
    assert received == ["http.disconnect"] * 4
    assert stream.gone == 0
