"""The client of Streamable HTTP, with servers that conform and servers that do not."""

import gzip
import json
import ssl
import sys
import tracemalloc
import zlib
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

import pytest
import trio
import trio.testing

from noizu_mcp import (
    AuthError,
    ClientHandler,
    ConnectionClosed,
    Decline,
    Http,
    Limits,
    McpError,
    ProtocolError,
    RequestTimeout,
    TransportError,
    connect,
)
from noizu_mcp.engine import Outgoing, Unanswered, single_failure
from noizu_mcp.jsonrpc import _decode, decode, read_message
from noizu_mcp.protocol import LATEST_HANDSHAKE, STATELESS
from noizu_mcp.transports import HttpStream
from noizu_mcp.transports._inbox import CAPACITY, Inbox
from noizu_mcp.transports.http.client import _event_reader

from .scripted import EVENTS, Heard, Holding, Script, call_closed, modern, serving

TOOL = {"name": "t", "inputSchema": {"type": "object"}}
DONE = {"content": [{"type": "text", "text": "done"}]}


class Ears(ClientHandler):
    """Records notifications, and refuses questions."""

    def __init__(self):
        self.send, self.heard = trio.open_memory_channel(100)

    async def handle_notification(self, method, params):
        self.send.send_nowait(method)

    async def handle_elicitation(self, params):
        return Decline()


async def done(heard):
    await heard.result(DONE)


# URLs


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://x/mcp", "must begin with http"),
        ("http:///mcp", "must begin with http"),
        ("http://x:nine/mcp", "not a URL"),
        ("http://me:secret@x/mcp", "must not contain credentials"),
        ("http://x/mcp#part", "must not have a #fragment"),
    ],
)
def test_what_is_no_url_of_a_server(url, said):
    """It is refused at once, and the error does not contain the secret."""
    with pytest.raises(ValueError, match=said) as caught:
        Http(url)
    assert "secret" not in str(caught.value)


def test_what_is_no_text():
    """A URL and headers must be strings."""
    with pytest.raises(TypeError, match="url must be a string"):
        Http(5)
    with pytest.raises(TypeError, match="'x' does not"):
        Http("http://x", headers={"x": 5})


def test_secrets_are_not_shown():
    """Representations show neither headers nor the query."""
    target = Http("http://x/mcp?key=secret", headers={"authorization": "secret"})
    assert repr(target) == "Http('http://x/mcp')"


async def test_what_is_no_target():
    """A URL needs a scheme with which a server can be reached."""
    with pytest.raises(ValueError, match="must begin with http"):
        async with connect("ftp://server"):
            raise AssertionError


async def test_the_library_is_an_extra(monkeypatch):
    """Without the library the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(TransportError, match=r"pip install 'noizu-mcp\[http\]'"):
        async with connect("http://127.0.0.1:9/mcp"):
            raise AssertionError


# A session with a handshake


async def test_a_session():
    """Each request carries the headers of its phase, from the probe to the end."""
    async with serving(Script(tools_call=done)) as script:
        async with connect(Http(script.url, headers={"X-Key": "k"})) as client:
            assert client.protocol_version == "2025-11-25"
            assert (await client.call_tool("t")).content[0].text == "done"
    methods = [script.name_of(each) for each in script.heard]
    assert sorted(methods) == sorted(
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "GET",
            "tools/call",
            "DELETE",
        ]
    )
    assert methods[:3] == ["server/discover", "initialize", "notifications/initialized"]
    assert methods[-1] == "DELETE"
    for heard in script.heard:
        assert heard.headers["x-key"] == "k"
        assert heard.headers["accept-encoding"] == "identity"
        if heard.method == "POST":
            assert heard.headers["content-type"] == "application/json"
            assert heard.headers["accept"] == "application/json, text/event-stream"
    assert "mcp-protocol-version" not in script.of("initialize")[0].headers
    for heard in script.heard[2:]:
        assert heard.headers["mcp-session-id"] == "s-1"
        assert heard.headers["mcp-protocol-version"] == "2025-11-25"
        assert "mcp-method" not in heard.headers


@pytest.mark.parametrize("status", [400, 404, 405, 406, 410, 415])
async def test_an_old_server_refuses_the_probe(status):
    """A 4xx that a server of 2026-07-28 would not send leads to a handshake."""

    async def refuse(heard):
        await heard.say(status, b"<html>", kind="text/html")

    async with serving(Script(server_discover=refuse)) as script:
        async with connect(script.url) as client:
            await client.ping()
            assert client.protocol_version == "2025-11-25"


@pytest.mark.parametrize("own", [True, False])
async def test_an_old_server_answers_the_probe_with_an_error(own):
    """The client does the handshake, whether or not the error has the id of the request."""

    async def refuse(heard):
        await heard.refuse(400, -32000, "Bad Request: no session", own=own)

    async with serving(Script(server_discover=refuse)) as script:
        async with connect(script.url) as client:
            assert client.protocol_version == "2025-11-25"


async def test_a_modern_server_names_what_it_serves():
    """-32022 lists the versions of a modern server, also without the id."""

    async def refuse(heard):
        data = {"supported": ["2025-06-18"], "requested": "2026-07-28"}
        await heard.refuse(400, -32022, "Unsupported protocol version", own=False, data=data)

    async with serving(Script(server_discover=refuse)) as script:
        async with connect(script.url) as client:
            assert client.protocol_version == "2025-06-18"


@pytest.mark.parametrize("result", [{}, {"supportedVersions": []}, {"resultType": "complete"}])
async def test_an_old_server_answers_the_probe_with_a_result(result):
    """A result without a list of revisions is not an answer of 2026-07-28."""

    async def answer(heard):
        await heard.result(result)

    async with serving(Script(server_discover=answer)) as script:
        async with connect(script.url) as client:
            assert client.protocol_version == "2025-11-25"


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("version", [None, "2026-07-28"])
async def test_a_server_that_refuses_what_it_serves(version, own):
    """One address may have processes of several versions: the next attempt finds another one."""

    async def refuse_once(heard):
        if len(script.of("server/discover")) > 1:
            await modern(heard)
        else:
            data = {"supported": ["2025-11-25", "2026-07-28"], "requested": "2026-07-28"}
            await heard.refuse(400, -32022, "Unsupported protocol version", own=own, data=data)

    async with serving(Script(server_discover=refuse_once)) as script:
        async with connect(script.url, version=version) as client:
            assert client.protocol_version == "2026-07-28"
    assert len(script.of("server/discover")) == 2


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, AuthError, "answered 401"),
        (403, AuthError, "answered 403 Said: Origin is not served"),
        (408, TransportError, "answered 408"),
        (429, TransportError, "answered 429"),
        (500, TransportError, "answered 500"),
        (503, TransportError, "answered 503 Said: Origin is not served"),
        (302, TransportError, "it has moved to https://else"),
        (307, TransportError, "it has moved to https://else"),
        (204, ProtocolError, "answered server/discover with 204 Said and no content type"),
    ],
)
async def test_what_says_nothing_of_the_era(status, error, said):
    """Authentication, overload, failures and redirects end the attempt with one exception."""

    async def refuse(heard):
        body = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Origin is not served"}}
        whole = body if status in (403, 503) else b""
        await heard.say(status, whole, location="https://else")

    async with serving(Script(server_discover=refuse)) as script:
        with pytest.raises(error, match=said):
            async with connect(script.url):
                raise AssertionError
    assert len(script.heard) == 1


async def test_a_web_page_is_no_server():
    """A response of 200 with HTML is an error."""

    async def page(heard):
        await heard.say(200, b"<html>", kind="text/html; charset=utf-8")

    async with serving(Script(server_discover=page)) as script:
        with pytest.raises(ProtocolError, match="with 200 Said and text/html"):
            async with connect(script.url):
                raise AssertionError


async def test_a_refused_connection():
    """A refused connection is one exception, which has the URL."""
    with pytest.raises(TransportError, match=r"cannot reach http://127\.0\.0\.1:9/mcp: "):
        async with connect("http://127.0.0.1:9/mcp?key=secret"):
            raise AssertionError


async def test_a_server_that_hangs_up_at_once():
    """A server that closes the connection before any answer counts as not reached."""

    async def hang_up(heard):
        pass

    async with serving(Script(server_discover=hang_up)) as script:
        with pytest.raises(TransportError, match="cannot reach"):
            async with connect(script.url):
                raise AssertionError


async def test_a_version_that_the_server_does_not_serve():
    """A pinned 2026-07-28 that is refused by a status is reported so; a failure is not."""
    async with serving(Script()) as script:
        with pytest.raises(ProtocolError, match=r"does not serve 2026-07-28: .* answered 400"):
            async with connect(script.url, version="2026-07-28"):
                raise AssertionError

        async def fail(heard):
            await heard.say(502)

        script.answers["server_discover"] = fail
        with pytest.raises(TransportError, match="answered 502"):
            async with connect(script.url, version="2026-07-28"):
                raise AssertionError


async def test_a_session_that_is_gone():
    """A 404 with a session id, in the new session, too, is an error; the tap gets no message."""

    async def gone(heard):
        await heard.refuse(404, -32600, "Session not found", own=False)

    seen = []

    def tap(direction, data):
        seen.append((direction, json.loads(data)["method" if direction == "sent" else "id"]))

    async with serving(Script(tools_call=gone)) as script:
        async with connect(script.url, version="2025-06-18", tap=tap) as client:
            with pytest.raises(ConnectionClosed, match="has ended the session"):
                await client.call_tool("t")
    assert seen[-1] == ("sent", "tools/call")


async def test_an_error_with_a_status_is_an_error():
    """The caller gets the code and the text, whatever the status is."""

    async def refuse(heard):
        await heard.refuse(404, -32601, "Method not found")

    async with serving(Script(tools_call=refuse)) as script:
        async with connect(script.url, version="2025-06-18") as client:
            with pytest.raises(McpError) as caught:
                await client.call_tool("t")
    assert caught.value.code == -32601


async def test_a_scope_that_is_missing():
    """A 403 is an authentication error, even if its body answers the request."""

    async def refuse(heard):
        await heard.refuse(403, -31403, "Insufficient scope")

    async with serving(Script(tools_call=refuse)) as script:
        async with connect(script.url, version="2025-06-18") as client:
            with pytest.raises(AuthError, match="answered 403 Said: Insufficient scope"):
                await client.call_tool("t")
            await client.ping()


async def test_a_server_without_sessions():
    """Without a session id nothing is repeated, and there is no DELETE."""

    async def initialize(heard):
        result = {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": TOOL}
        await heard.result({**result, "serverInfo": {"name": "x", "version": "1"}})

    async with serving(Script(initialize=initialize)) as script:
        async with connect(script.url, version="2025-03-26") as client:
            await client.ping()
    assert script.of("DELETE") == []
    assert all("mcp-session-id" not in heard.headers for heard in script.heard)


async def test_a_message_that_is_not_taken(caplog):
    """A refused notification is logged, and delays nothing."""

    async def refuse(heard):
        await heard.say(500)

    async with serving(Script(notifications_x=refuse)) as script:
        async with connect(script.url, version="2025-06-18") as client:
            await client.notify("notifications/x")
            await client.ping()
    assert "a message was not delivered: " in caplog.text
    assert "answered 500" in caplog.text


async def test_a_notification_comes_before_what_follows():
    """A notification waits for earlier messages, and later messages wait until it is accepted."""
    released = trio.Event()

    async def slow(heard):
        await released.wait()
        await heard.say(202)

    async with serving(Script(notifications_x=slow)) as script:
        async with (
            connect(script.url, version="2025-06-18") as client,
            trio.open_nursery() as nursery,
        ):
            await client.notify("notifications/x")
            nursery.start_soon(client.ping)
            await trio.testing.wait_all_tasks_blocked()
            assert script.of("ping") == []
            released.set()
        assert len(script.of("ping")) == 1


async def test_a_notification_that_is_not_answered(autojump_clock, caplog):
    """An unanswered notification delays later messages only for a limited time."""

    async def never():
        await trio.sleep_forever()

    stream = HttpStream(Http("http://x/mcp", headers=never))
    async with trio.open_nursery() as nursery:
        await nursery.start(stream.run)
        notice = b'{"jsonrpc":"2.0","method":"notifications/x"}'
        began = trio.current_time()
        await stream.send([notice, notice])
        assert trio.current_time() - began == 2 * 10
        await stream.aclose()
    assert "did not take a message in time" in caplog.text
    with pytest.raises(trio.ClosedResourceError):
        stream.send_nowait([notice])
    assert await stream.receive() == []


async def test_a_stream_that_never_ran():
    """It can be closed, and closed again."""
    stream = HttpStream(Http("https://x/mcp", tls=ssl.create_default_context()))
    with pytest.raises(trio.ClosedResourceError):
        stream.send_nowait([b"{}"])
    await stream.aclose()
    await stream.aclose()


# Responses that are streams


async def test_an_answer_as_a_stream():
    """Notifications before the result arrive; comments, empty data and other events are ignored."""

    async def call(heard):
        await heard.head(kind=EVENTS)
        await heard.stream.send_all(b": hello\n\nevent: ping\ndata: {}\n\ndata: \n\ndata: what\n\n")
        await heard.event({"jsonrpc": "2.0", "method": "notifications/x"})
        await heard.event(heard.answer(DONE))
        await heard.gone()  # the client does not wait for ever for the end of the stream

    ears = Ears()
    async with serving(Script(tools_call=call)) as script:
        async with connect(script.url, version="2025-06-18", handler=ears) as client:
            assert (await client.call_tool("t")).content[0].text == "done"
            assert await ears.heard.receive() == "notifications/x"


async def test_a_question_on_a_stream():
    """The answer is a separate POST, which is sent before other messages."""
    question = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    answered = trio.Event()

    async def call(heard):
        await heard.head(kind=EVENTS)
        ask = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question}
        await heard.event(ask)
        await answered.wait()
        await heard.event(heard.answer(DONE))

    async def answer(heard):
        assert heard.message == {"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}}
        await heard.say(202)
        answered.set()

    async with serving(Script(tools_call=call, answer=answer)) as script:
        async with connect(script.url, version="2025-06-18", handler=Ears()) as client:
            assert (await client.call_tool("t")).content[0].text == "done"


async def test_a_stream_that_breaks_without_an_id():
    """Without an event id the stream cannot be resumed."""

    async def call(heard):
        await heard.head(kind=EVENTS)
        await heard.event({"jsonrpc": "2.0", "method": "notifications/x"})

    async with serving(Script(tools_call=call)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            with pytest.raises(ConnectionClosed, match="the answer to tools/call broke off"):
                await client.call_tool("t")


async def test_a_connection_that_breaks():
    """A connection may break within the body and before the head."""

    async def call(heard):
        await heard.head(kind="application/json", content_length=100)
        await heard.stream.send_all(b"{")

    async with serving(Script(tools_call=call)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            with pytest.raises(ConnectionClosed, match="broke before tools/call was answered"):
                await client.call_tool("t")


async def test_an_answer_is_read_on_after_a_break():
    """A stream is resumed by GET with the last id after the server's `retry`; more than once."""
    broken = trio.Event()

    async def call(heard):
        await heard.head(kind=EVENTS, transfer_encoding="chunked")
        await heard.stream.send_all(b"1f\r\nid: a-1\nretry: 10\ndata: \n\nid: 9\n\r\n")  # no end

    async def again(heard):
        last = heard.headers.get("last-event-id")
        if last is None:
            await heard.say(405)
        elif last == "a-1" and not broken.is_set():
            broken.set()  # closes the connection
        elif last == "a-1":
            await heard.head(kind=EVENTS)
            await heard.event({"jsonrpc": "2.0", "method": "notifications/x"}, id="a-2")
        else:
            await heard.head(kind=EVENTS)
            await heard.event(script.of("tools/call")[0].answer(DONE), id="a-3")

    ears = Ears()
    async with serving(Script(tools_call=call, GET=again)) as script:
        async with connect(script.url, version="2025-11-25", handler=ears) as client:
            assert (await client.call_tool("t")).content[0].text == "done"
            assert await ears.heard.receive() == "notifications/x"
    seen = [heard.headers.get("last-event-id") for heard in script.of("GET")]
    assert [each for each in seen if each] == ["a-1", "a-1", "a-2"]
    assert all(heard.headers["mcp-session-id"] == "s-1" for heard in script.of("GET"))


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (404, ConnectionClosed, "the answer to tools/call is lost: .* answered 404"),
        (400, ConnectionClosed, "the answer to tools/call is lost: Last-Event-ID is not known"),
        (405, ConnectionClosed, "the answer to tools/call is lost: .* answered 405"),
        (401, AuthError, "answered 401"),
    ],
)
async def test_a_stream_that_cannot_be_read_on(status, error, said):
    """The error says that the call may have run, whatever the server answers to the GET."""

    async def call(heard):
        await heard.head(kind=EVENTS)
        await heard.event("", id="a-1", retry="1")

    async def refuse(heard):
        known = {"code": -32600, "message": "Last-Event-ID is not known"}
        body = {"jsonrpc": "2.0", "error": known} if status == 400 else b""
        await heard.say(status if "last-event-id" in heard.headers else 405, body)

    async with serving(Script(tools_call=call, GET=refuse)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            with pytest.raises(error, match=said):
                await client.call_tool("t")


async def test_coming_back_has_an_end(monkeypatch):
    """Resumption ends after a maximum number of attempts."""
    monkeypatch.setattr(_event_reader, "RETRY", 0.001)

    async def call(heard):
        await heard.head(kind=EVENTS)
        await heard.event("", id="a-1", retry="1")

    async def hang_up(heard):
        pass

    async with serving(Script(tools_call=call, GET=hang_up)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            with pytest.raises(ConnectionClosed, match="broke before tools/call was answered"):
                await client.call_tool("t")
    seen = [heard for heard in script.of("GET") if "last-event-id" in heard.headers]
    assert len(seen) == 5


@pytest.mark.parametrize("event", ["data:\n", ":\n", "data: no json\n"])
async def test_streams_that_end_at_once(event, autojump_clock):
    """With `retry: 0` and streams without messages the pauses grow."""
    times = []

    async def empty(heard):
        if heard.method == "GET":
            if "last-event-id" not in heard.headers:
                await heard.say(405)
                return
            times.append(trio.current_time())
        await heard.head(kind=EVENTS)
        if len(times) < 8:
            text = f"retry: 0\nid: {len(times)}\n{event}\n"
            await heard.stream.send_all(text.encode())
        else:
            await heard.event(script.of("tools/call")[0].answer(DONE))

    async with serving(Script(tools_call=empty, GET=empty)) as script:
        async with connect(script.url, version="2025-11-25", timeout=1e6) as client:
            assert (await client.call_tool("t")).content[0].text == "done"
    pauses = [after - before for before, after in pairwise(times)]
    for least, pause in zip([0.2, 0.4, 0.8, 1, 1, 1, 1], pauses, strict=True):
        assert pause >= least - 1e-6


async def test_answers_have_a_largest_size():
    """A response that is too large fails one call, as an object and as an event."""

    async def call(heard):
        if heard.message["params"]["name"] == "object":
            await heard.result({"content": [], "x": "y" * 3000})
        elif heard.message["params"]["name"] == "parts":
            await heard.head(kind=EVENTS, transfer_encoding="chunked")
            await heard.stream.send_all(b"%x\r\ndata: %b\r\n3\r\nabc\r\n" % (3006, b"y" * 3000))
        else:
            await heard.head(kind=EVENTS)
            await heard.event(heard.answer({"content": [], "x": "y" * 3000}))

    async with serving(Script(tools_call=call)) as script:
        stream = HttpStream(Http(script.url), Limits(message_size=2000))
        async with trio.open_nursery() as nursery:
            await nursery.start(stream.run)
            async with connect(stream, version="2025-11-25") as client:
                for name in ("object", "event", "parts"):
                    with pytest.raises(ProtocolError, match="over the size limit"):
                        await client.call_tool(name)
                await client.ping()


@pytest.mark.parametrize("more", [b"", b"x"])
async def test_a_packed_answer_in_pieces(more):
    """It is decompressed piece by piece; data after its end is an error."""

    async def call(heard):
        body = gzip.compress(json.dumps(heard.answer(DONE)).encode())
        await heard.head(
            kind="application/json", content_encoding="gzip", transfer_encoding="chunked"
        )
        for piece in (body[:5], body[5:], more):
            await heard.stream.send_all(b"%x\r\n%b\r\n" % (len(piece), piece))
            await trio.testing.wait_all_tasks_blocked(0.01)
        if more:
            await heard.stream.send_all(b"0\r\n\r\n")

    async with serving(Script(tools_call=call)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            if more:
                with pytest.raises(ConnectionClosed, match="more than the packed answer came"):
                    await client.call_tool("t")
            else:
                assert (await client.call_tool("t")).content[0].text == "done"


def bomb(size=32_000_000):
    """A body that expands to many bytes."""
    return gzip.compress(b" " * size, compresslevel=1)


@pytest.mark.parametrize(
    ("status", "kind", "coding", "pack", "why"),
    [
        (200, "application/json", "gzip", bomb, "over the size limit"),
        (
            200,
            "application/json",
            "deflate",
            lambda: zlib.compress(b" " * 32_000_000, 1),
            "over the size",
        ),
        (200, EVENTS, "gzip", bomb, "over the size limit"),
        (200, "application/json", "gzip, gzip", lambda: gzip.compress(bomb()), "not asked for"),
        (200, EVENTS, "gzip, gzip", lambda: gzip.compress(bomb()), "not asked for"),
        (200, "application/json", "br", bomb, "not asked for"),
        (500, "text/plain", "gzip", bomb, None),
        (404, "application/json", "gzip, gzip", lambda: gzip.compress(bomb()), None),
    ],
)
async def test_a_packed_answer_takes_no_more_memory(status, kind, coding, pack, why):
    """It is decompressed up to the limits; a body that is compressed twice is not."""
    body, failures = pack(), (ConnectionClosed, McpError, ProtocolError, TransportError)

    async def call(heard):
        await heard.head(status, kind=kind, content_encoding=coding, content_length=len(body))
        with suppress(trio.BrokenResourceError):
            await heard.stream.send_all(body)

    async with serving(Script(tools_call=call)) as script:
        stream = HttpStream(Http(script.url), Limits(message_size=1_000_000))
        async with trio.open_nursery() as nursery:
            await nursery.start(stream.run)
            async with connect(stream, version="2025-11-25") as client:
                tracemalloc.start()
                try:
                    with pytest.raises(failures, match=why):
                        await client.call_tool("t")
                    assert tracemalloc.get_traced_memory()[1] < 8_000_000
                finally:
                    tracemalloc.stop()


async def test_an_answer_that_is_no_message():
    """JSON that is not JSON-RPC is an error."""

    async def call(heard):
        await heard.say(200, {"hello": 1})

    async with serving(Script(tools_call=call)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            with pytest.raises(ProtocolError, match="is not a JSON-RPC message"):
                await client.call_tool("t")


async def test_an_answer_to_something_else():
    """A response with another id does not answer the request, which fails."""

    async def call(heard):
        await heard.say(200, {"jsonrpc": "2.0", "id": "other", "result": {}})

    async with serving(Script(tools_call=call)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            with pytest.raises(ConnectionClosed, match="the answer to tools/call broke off"):
                await client.call_tool("t")


async def test_cancelling_in_a_session(autojump_clock):
    """A notification is sent; the stream has a short time to end, and is not resumed."""

    async def call(heard):
        await heard.head(kind=EVENTS)
        await heard.event("", id="a-1", retry="1")

    async with serving(Script(tools_call=call)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            script.answers["tools_call"] = hold = Holding()
            with pytest.raises(RequestTimeout):
                await client.call_tool("t", timeout=1)
            await hold.left.wait()
    (cancelled,) = script.of("notifications/cancelled")
    (heard,) = script.of("tools/call")
    assert cancelled.message["params"]["requestId"] == heard.message["id"]


# The standing stream


async def test_the_standing_stream():
    """It is opened after the handshake, and resumed when it ends, with its last event id."""
    notice = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    async def stand(heard):
        await heard.head(kind=EVENTS)
        number = len(script.of("GET"))
        await heard.event("{}", id=f"s-{number}", retry="1")
        await heard.event(notice, id=f"s-{number}")
        if number == 3:
            await heard.gone()

    ears = Ears()
    async with serving(Script(GET=stand)) as script:
        async with connect(script.url, version="2025-11-25", handler=ears) as client:
            for _ in range(3):
                assert await ears.heard.receive() == "notifications/tools/list_changed"
            await client.ping()
    seen = [heard.headers.get("last-event-id") for heard in script.of("GET")]
    assert seen == [None, "s-1", "s-2"]
    assert script.of("GET")[0].headers["accept"] == EVENTS


async def test_a_standing_stream_with_troubles(monkeypatch):
    """It recovers from closed connections, overload, and a server that forgot the event id."""
    monkeypatch.setattr(_event_reader, "RETRY", 0.001)
    turns = []

    async def stand(heard):
        turns.append(heard.headers.get("last-event-id"))
        if len(turns) == 1:
            return
        if len(turns) == 2:
            await heard.say(503)
        elif len(turns) == 3:
            await heard.head(kind=EVENTS)
            await heard.event("", id="s-1", retry="1")
        elif len(turns) == 4:
            await heard.say(400)
        else:
            await heard.head(kind=EVENTS)
            await heard.event({"jsonrpc": "2.0", "method": "notifications/x"})
            await heard.gone()

    ears = Ears()
    async with serving(Script(GET=stand)) as script:
        async with connect(script.url, version="2025-11-25", handler=ears):
            assert await ears.heard.receive() == "notifications/x"
    assert turns == [None, None, None, "s-1", None]


@pytest.mark.parametrize("status", [404, 405])
async def test_a_server_without_a_standing_stream(status, caplog):
    """The stream is optional, so nothing is logged, and the client does not ask again."""

    async def refuse(heard):
        await heard.say(status)

    async with serving(Script(GET=refuse)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            await client.ping()
    assert len(script.of("GET")) == 1
    assert caplog.text == ""


@pytest.mark.parametrize("status", [400, 406, 501])
async def test_a_standing_stream_that_is_refused(status, caplog):
    """A status other than 404 or 405 is logged; calls go on."""

    async def refuse(heard):
        await heard.say(status)

    async with serving(Script(GET=refuse)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            with trio.fail_after(60):
                while "refused the GET stream" not in caplog.text:
                    await client.ping()
    assert len(script.of("GET")) == 1


class Opening:
    """Delays the head of the standing stream until the test allows it."""

    def __init__(self):
        self.asked = trio.Event()
        self.open = trio.Event()

    async def __call__(self, heard):
        self.asked.set()
        await self.open.wait()
        await heard.head(kind=EVENTS)
        await heard.gone()


async def test_connect_waits_for_the_standing_stream():
    """A message or question that the server sends at once is received."""
    stand, connected = Opening(), trio.Event()

    async def use():
        async with connect(script.url, version="2025-11-25"):
            connected.set()

    async with serving(Script(GET=stand)) as script, trio.open_nursery() as nursery:
        nursery.start_soon(use)
        await stand.asked.wait()
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not connected.is_set()
        stand.open.set()
        with trio.fail_after(60):
            await connected.wait()


async def test_a_standing_stream_that_never_begins(autojump_clock):
    """Some servers send the head with the first event: `connect` waits only briefly for it."""
    stand = Opening()
    async with serving(Script(GET=stand, tools_call=done)) as script:
        with trio.fail_after(10):
            async with connect(script.url, version="2025-11-25") as client:
                assert (await client.call_tool("t")).content[0].text == "done"
                assert stand.asked.is_set()


async def test_a_standing_stream_that_breaks_at_once():
    """`connect` does not wait for a stream that has failed."""

    async def hang_up(heard):
        await heard.stream.aclose()

    async with serving(Script(GET=hang_up, tools_call=done)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            assert (await client.call_tool("t")).content[0].text == "done"


@pytest.mark.parametrize("version", [None, "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_server_that_asks_on_the_standing_stream_at_once(version):
    """A call whose server asks only on that stream is answered without delay."""
    standing, answered = [], trio.Event()

    async def stand(heard):
        await heard.head(kind=EVENTS)
        standing.append(heard)
        await heard.gone()

    async def answer(heard):
        assert heard.message["result"] == {"action": "decline"}
        answered.set()
        await heard.say(202)

    async def ask(heard):
        params = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
        question = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}
        await standing[0].event(question)
        await answered.wait()
        await heard.result(DONE)

    script = Script(GET=stand, tools_call=ask, answer=answer)
    async with serving(script):
        with trio.fail_after(60):
            async with connect(script.url, version=version, handler=Ears()) as client:
                assert (await client.call_tool("t")).content[0].text == "done"


# Leaving while a call runs


class Lost(Exception):
    """The exception of a block."""


async def leave_by_timeout(client, _):
    # The clock jumps only when all tasks wait, so the call has begun by then.
    await client.call_tool("t", timeout=1)


async def leave_by_a_failure(client, began):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "t")
        await began.wait()
        raise Lost


async def leave_by_the_end_of_a_scope(client, began):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "t")
        await began.wait()
        nursery.cancel_scope.cancel()


LEAVING = [leave_by_timeout, leave_by_a_failure, leave_by_the_end_of_a_scope]


@asynccontextmanager
async def a_call_that_never_ends(*, session=True):
    """Serve a script whose tool begins a response; return the script and the response."""
    hold = Holding()

    async def initialize(heard):
        version = heard.message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {}, "serverInfo": script.info}
        await heard.result(result)

    script = Script(tools_call=hold, **({} if session else {"initialize": initialize}))
    script.info = {"name": "s", "version": "1"}
    async with serving(script):
        yield script, hold


def cancelled_of(script):
    """Return the cancellations of the one call, by their ids."""
    (heard,) = script.of("tools/call")
    (cancelled,) = script.of("notifications/cancelled")
    return cancelled.message["params"]["requestId"] == heard.message["id"]


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("session", [True, False])
@pytest.mark.parametrize("leave", LEAVING)
async def test_leaving_by_a_failure_calls_off_what_runs(autojump_clock, leave, session, version):
    """The cancellation is sent before the session ends."""
    async with a_call_that_never_ends(session=session) as (script, hold):
        with trio.fail_after(10), suppress(Lost, RequestTimeout), single_failure():
            async with connect(script.url, version=version) as client:
                await leave(client, hold.began)
        assert cancelled_of(script)
        names = [script.name_of(each) for each in script.heard]
        assert names[-1] == ("DELETE" if session else "notifications/cancelled")


@pytest.mark.parametrize("leave", LEAVING)
async def test_leaving_by_a_failure_on_2026_07_28(autojump_clock, leave):
    """Closing the HTTP request is the cancellation."""
    async with a_call_that_never_ends() as (script, hold):
        script.answers["server_discover"] = modern
        with trio.fail_after(10), suppress(Lost, RequestTimeout), single_failure():
            async with connect(script.url) as client:
                await leave(client, hold.began)
        with trio.fail_after(10):
            await hold.left.wait()
    assert script.of("notifications/cancelled") == []


@pytest.mark.parametrize("session", [True, False])
async def test_a_cancellation_from_outside_calls_off_what_runs(session):
    """A cancel scope around the block sends the cancellation, too."""
    async with a_call_that_never_ends(session=session) as (script, hold):
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:

                async def use():
                    async with connect(script.url, version="2025-11-25") as client:
                        await client.call_tool("t")

                nursery.start_soon(use)
                await hold.began.wait()
                nursery.cancel_scope.cancel()
        assert cancelled_of(script)


@pytest.mark.parametrize("failure", [None, Lost()])
async def test_the_end_calls_off_the_calls_of_other_tasks(failure):
    """Waiting callers get `ConnectionClosed`, and the server gets cancellations."""
    failed = []
    async with a_call_that_never_ends(session=False) as (script, hold):
        async with trio.open_nursery() as nursery:
            with trio.fail_after(60), suppress(Lost):
                async with connect(script.url, version="2025-11-25") as client:
                    nursery.start_soon(call_closed, client, failed)
                    await hold.began.wait()
                    if failure is not None:
                        raise failure
        assert cancelled_of(script)
    assert failed == ["the connection ended before tools/call was answered"]


@pytest.mark.parametrize("leave", LEAVING)
async def test_leaving_a_server_that_takes_nothing(autojump_clock, leave):
    """The end waits only briefly for the server."""
    async with a_call_that_never_ends() as (script, hold):
        script.answers["notifications_cancelled"] = script.answers["DELETE"] = Heard.gone
        with trio.fail_after(10), suppress(Lost, RequestTimeout), single_failure():
            async with connect(script.url, version="2025-11-25") as client:
                await leave(client, hold.began)
        assert [script.name_of(each) for each in script.heard][-1] == "DELETE"


# 2026-07-28


async def test_an_error_that_never_ends():
    """The body after the first part is not read."""

    async def refuse(heard):
        await heard.head(500, "text/plain")
        with trio.move_on_after(60):
            while True:
                await heard.stream.send_all(b"x" * 1_000_000)

    async with serving(Script(server_discover=refuse)) as script:
        with pytest.raises(TransportError, match="answered 500"):
            async with connect(script.url):
                raise AssertionError


async def test_requests_of_2026_07_28():
    """Headers mirror each request; there are no sessions and no standing streams."""

    async def read(heard):
        await heard.result({"resultType": "complete", "contents": []})

    async with serving(
        Script(server_discover=modern, tools_call=done, resources_read=read)
    ) as script:
        async with connect(script.url) as client:
            await client.call_tool("naïve")
            await client.read_resource("file:///x")
            await client.notify("notifications/x")
    discover, call, resource, notice = script.heard
    for heard in script.heard:
        assert heard.headers["mcp-protocol-version"] == "2026-07-28"
        assert heard.headers["mcp-method"] == heard.message["method"]
        assert "mcp-session-id" not in heard.headers
    assert "mcp-name" not in discover.headers
    assert call.headers["mcp-name"] == "=?base64?bmHDr3Zl?="
    assert resource.headers["mcp-name"] == "file:///x"
    assert "mcp-name" not in notice.headers


HEADED = {
    "name": "t",
    "inputSchema": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "deep": {
                "type": "object",
                "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}},
            },
        },
    },
}
INVALID = {
    "name": "bad",
    "inputSchema": {"type": "object", "properties": {"x": {"x-mcp-header": "not a token"}}},
}


async def tools(heard):
    result = {"resultType": "complete", "tools": [HEADED, INVALID, TOOL | {"name": "plain"}]}
    await heard.result({**result, "ttlMs": 0, "cacheScope": "public"})


async def test_arguments_in_headers(caplog):
    """The listed definition names the headers; tools with an invalid definition are left out."""
    async with serving(Script(server_discover=modern, tools_call=done, tools_list=tools)) as script:
        async with connect(script.url) as client:
            assert [tool.name for tool in await client.list_tools()] == ["t", "plain"]
            await client.call_tool("t", {"region": " eu", "n": 7, "deep": {"flag": False}})
            await client.call_tool("t", {"region": "", "n": None})
    assert "left out the tool 'bad': header 'not a token' is not an HTTP token" in caplog.text
    first, second = (
        {k: v for k, v in heard.headers.items() if k.startswith("mcp-param-")}
        for heard in script.of("tools/call")
    )
    assert first == {
        "mcp-param-region": "=?base64?IGV1?=",
        "mcp-param-n": "7",
        "mcp-param-flag": "false",
    }
    assert second == {"mcp-param-region": ""}


async def test_headers_of_many_tools():
    """The definitions of 10,000 tools are known; the tool that was listed first is dropped."""
    names = ["a", "b", *(f"t{number}" for number in range(9998)), "a", "c"]

    async def listing(heard):
        listed = [{**HEADED, "name": name} for name in names]
        result = {"resultType": "complete", "tools": listed, "ttlMs": 0, "cacheScope": "public"}
        await heard.result(result)

    answers = {"server_discover": modern, "tools_call": done, "tools_list": listing}
    async with serving(Script(**answers)) as script:
        async with connect(script.url) as client:
            await client.list_tools()
            for name in "abc":
                await client.call_tool(name, {"region": name})
    sent = [heard.headers.get("mcp-param-region") for heard in script.of("tools/call")]
    assert sent == ["a", None, "c"]


@pytest.mark.parametrize("times", [1, 2])
async def test_headers_that_were_wrong(times):
    """The list is requested again, and the call is sent once more, not twice."""

    async def call(heard):
        if len(script.of("tools/call")) <= times:
            await heard.refuse(400, -32020, "Mcp-Param-N header is missing")
        else:
            await done(heard)

    async with serving(Script(server_discover=modern, tools_call=call, tools_list=tools)) as script:
        async with connect(script.url) as client:
            if times == 1:
                assert (await client.call_tool("t", {"n": 7})).content[0].text == "done"
            else:
                with pytest.raises(McpError, match="Mcp-Param-N"):
                    await client.call_tool("t", {"n": 7})
    first, second = script.of("tools/call")
    assert "mcp-param-n" not in first.headers
    assert second.headers["mcp-param-n"] == "7"
    assert first.message["id"] != second.message["id"]


@pytest.mark.parametrize(
    "page", [{"tools": 5}, {"tools": [5]}, {"tools": [{"name": 5, "inputSchema": {}}]}]
)
async def test_malformed_definitions(page):
    """The error says what is wrong with the definitions."""

    async def listed(heard):
        await heard.result({"resultType": "complete", **page})

    async with serving(Script(server_discover=modern, tools_list=listed)) as script:
        async with connect(script.url) as client:
            with pytest.raises(Exception, match=r"tools|name|inputSchema|object"):
                await client.list_tools()


async def test_cancelling_on_2026_07_28(autojump_clock):
    """The server only sees the end of the HTTP request."""
    hold = Holding()
    async with serving(Script(server_discover=modern, tools_call=hold)) as script:
        async with connect(script.url) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("t", timeout=1)
            await hold.left.wait()
            await client.notify("notifications/cancelled", {"requestId": 99})
    assert script.of("notifications/cancelled") == []


async def test_nothing_is_read_on_on_2026_07_28():
    """Event ids are ignored there; a broken response is lost."""

    async def call(heard):
        await heard.head(kind=EVENTS)
        await heard.event("", id="a-1", retry="1")

    async with serving(Script(server_discover=modern, tools_call=call)) as script:
        async with connect(script.url) as client:
            with pytest.raises(ConnectionClosed, match="the answer to tools/call broke off"):
                await client.call_tool("t")
    assert script.of("GET") == []


async def test_closing_with_open_requests():
    """Open calls and streams end at once, and the client within a bound."""
    hold = Holding()
    async with serving(Script(server_discover=modern, tools_call=hold)) as script:
        failed = []
        async with trio.open_nursery() as nursery:
            async with connect(script.url) as client:
                nursery.start_soon(call_closed, client, failed)
                await hold.began.wait()
            await hold.left.wait()
        assert failed == ["the connection ended before tools/call was answered"]


async def test_the_end_is_bounded(autojump_clock):
    """The end does not wait for the response to DELETE."""
    deleted = Holding()
    async with serving(Script(DELETE=deleted)) as script:
        with trio.fail_after(10):
            async with connect(script.url, version="2025-11-25") as client:
                await client.ping()
            await deleted.left.wait()


async def test_a_cancelled_client_ends_its_session():
    """The session is ended, too, if the block is cancelled from outside."""
    async with serving(Script()) as script:
        with trio.CancelScope() as scope:
            async with connect(script.url, version="2025-11-25"):
                scope.cancel()
                await trio.sleep_forever()
        assert scope.cancelled_caught
        assert len(script.of("DELETE")) == 1


# Headers, redirects, and the end


async def test_headers_may_change():
    """A function returns the headers of each request; an exception of it fails the request."""
    count = 0

    async def headers():
        nonlocal count
        count += 1
        if count == 3:
            raise AuthError("the token has run out")
        return {"Authorization": f"Bearer {count}", "Content-Type": "x/y"}

    async with serving(Script(server_discover=modern, tools_call=done)) as script:
        async with connect(Http(script.url, headers=headers)) as client:
            await client.call_tool("t")
            with pytest.raises(AuthError, match="run out"):
                await client.call_tool("t")
            await client.call_tool("t")
    tokens = [heard.headers["authorization"] for heard in script.heard]
    assert tokens == ["Bearer 1", "Bearer 2", "Bearer 4"]
    assert {heard.headers["content-type"] for heard in script.heard} == {"application/json"}


@pytest.mark.parametrize("error", [AuthError, RuntimeError])
async def test_headers_that_fail_in_the_background(caplog, error):
    """Failures of the standing stream and of the DELETE are logged."""
    count = 0

    async def headers():
        nonlocal count
        count += 1
        if count > 2:
            raise error("no more")
        return {}

    async with serving(Script()) as script:
        async with connect(Http(script.url, headers=headers), version="2025-11-25"):
            with trio.fail_after(60):
                while "the GET stream of" not in caplog.text:
                    await trio.lowlevel.checkpoint()
    assert "was not ended" in caplog.text
    # A bug in the function is logged with a traceback, refused credentials with a reason.
    assert ("Traceback" in caplog.text) is (error is RuntimeError)


async def test_a_server_that_moves_on_its_origin():
    """A redirect within the origin is followed, with method and body; a loop is refused."""

    async def move(heard):
        if heard.message["id"] > 2:
            await heard.say(308, location="/mcp")
        else:
            script.answers["server_discover"] = modern
            await heard.say(307, location="/mcp/")

    async with serving(Script(server_discover=move, tools_call=done)) as script:
        async with connect(script.url) as client:
            await client.call_tool("t")
            script.answers["tools_call"] = move
            with pytest.raises(ConnectionClosed, match="redirects in circles"):
                await client.call_tool("t")


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:1/mcp", "//me@127.0.0.1/x", "http://x:port/", ""]
)
async def test_a_server_that_moves_elsewhere(location):
    """A redirect to another origin is not followed, since headers may be secret."""

    async def move(heard):
        await heard.say(307, location=location)

    async with serving(Script(server_discover=move)) as script:
        with pytest.raises((TransportError, ConnectionClosed)):
            async with connect(script.url):
                raise AssertionError


async def test_a_full_inbox_makes_readers_wait():
    """No more than the capacity is read ahead."""
    inbox = Inbox()
    waited = []
    big = read_message(b"x" * (CAPACITY + 1))
    inbox.put(big, len(big.data))

    async def read_on():
        await inbox.room()
        waited.append(True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_on)
        await trio.testing.wait_all_tasks_blocked()
        assert not waited
        assert await inbox.take_all() == [big]
    unanswered = Unanswered(1, ValueError())
    inbox.put(unanswered, 0)
    inbox.close()
    inbox.put(big, len(big.data))
    assert await inbox.take_all() == [unanswered]
    assert await inbox.take_all() == []


def outgoing(data, revision=LATEST_HANDSHAKE):
    """Make an outgoing message of bytes, as the client does."""
    return Outgoing(data, decode(data), revision)


async def test_broken_messages_of_our_own():
    """A test client may send anything; errors have the id of the message, or no id."""

    async def refuse(heard):
        await heard.say(400, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}})

    async with serving(Script(answer=refuse)) as script:
        stream = HttpStream(Http(script.url))
        async with trio.open_nursery() as nursery:
            await nursery.start(stream.run)
            await stream.send([outgoing(b'{"jsonrpc":"2.0"}')])
            (arrived,) = await stream.receive()
            assert json.loads(arrived.data)["error"]["message"] == "no"
            await stream.send([outgoing(b'{"jsonrpc":"1.0","id":"mine","method":"x"}')])
            (arrived,) = await stream.receive()
            assert arrived.id == "mine"
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            cancelled["params"] = {"requestId": []}
            notices = [{"jsonrpc": "2.0", "method": "notifications/x"}]
            await stream.send(
                [outgoing(json.dumps(each).encode()) for each in (cancelled, notices)]
            )
            meta = {"io.modelcontextprotocol/protocolVersion": 5}
            odd = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": meta}}
            await stream.send([outgoing(json.dumps(odd).encode(), STATELESS)])
            assert json.loads((await stream.receive())[0].data)["result"] == {}
            assert "mcp-protocol-version" not in script.heard[-1].headers
            await stream.aclose()
    assert len(script.heard) == 4


@pytest.mark.parametrize("name", ["ConnectTimeout", "ProxyError"])
async def test_what_the_library_calls_otherwise(name, monkeypatch):
    """Every connection failure is reported as not reached, however it occurs."""
    httpcore2 = pytest.importorskip("httpcore2")

    async def send(*args, **options):
        raise getattr(httpcore2, name)("refused")

    monkeypatch.setattr(httpcore2.AsyncConnectionPool, "handle_async_request", send)
    said = "no connection within 3 s" if name == "ConnectTimeout" else "refused"
    with pytest.raises(TransportError, match=f"cannot reach http://x/mcp: {said}"):
        async with connect(Http("http://x/mcp", connect_timeout=3)):
            raise AssertionError


async def call_as_events(heard):
    await heard.head(kind=EVENTS)
    await heard.event(heard.answer(DONE))


@pytest.mark.parametrize("call", [done, call_as_events])
async def test_each_answer_is_decoded_once(call, monkeypatch):
    """A response is parsed once, as JSON or as an event, and our own requests never."""
    parsed = []
    parse = _decode.parse_json

    def parse_json(data, *limits):
        value = parse(data, *limits)
        parsed.append(value["id"])
        return value

    monkeypatch.setattr(_decode, "parse_json", parse_json)
    async with serving(Script(tools_call=call)) as script:
        async with connect(script.url, version="2025-11-25") as client:
            await client.call_tool("t")
    (first,), (second,) = script.of("initialize"), script.of("tools/call")
    assert parsed == [first.message["id"], second.message["id"]]


async def test_two_requests_with_one_id():
    """Each gets its response; only a test client sends such requests."""

    async def slow(heard):
        await answered.wait()
        await heard.result({})

    async def quick(heard):
        script.answers["ping"] = slow
        await began.wait()
        await heard.result({})

    began, answered = trio.Event(), trio.Event()
    async with serving(Script(ping=quick)) as script:
        stream = HttpStream(Http(script.url))
        async with trio.open_nursery() as nursery:
            await nursery.start(stream.run)
            ping = outgoing(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
            assert stream.send_nowait([ping, ping])
            with trio.fail_after(60):
                while len(script.heard) < 2:
                    await trio.lowlevel.checkpoint()
            for event in (began, answered):
                event.set()
                assert len(await stream.receive()) == 1
            await stream.aclose()
