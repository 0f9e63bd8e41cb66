"""The hostile server over HTTP: its messages as event streams, and misbehaviours of HTTP."""

import gzip
import json
import threading
from contextlib import asynccontextmanager, contextmanager

import trio

from ..kit.http_server import HEAD, event, event_stream, listening, whole
from .hostile import CLOSE, EVIL, Hostile, encode

#: A small body that expands to a large one.
BOMB = gzip.compress(b" " * 20_000_000)
#: The requests that these misbehaviours affect: one of a call, and one of a list.
CONCERNED = ("tools/call", "prompts/list")
#: Misbehaviours of HTTP by name: a function of the server, the body of a good response, and the
#: number of the request, which returns the bytes to send.
WEB = {}


def misbehaves(function):
    WEB[function.__name__] = function
    return function


def _moves(status, place):
    def answer(server, body, number):
        return whole(b"", status, more=b"location: %b\r\n" % place)

    return answer


for _name, _place in {
    "moves_to_another_host": b"http://127.0.0.1:9/mcp",
    "moves_to_a_file": b"file:///etc/passwd",
    "moves_in_a_loop": b"/mcp",
    "moves_nowhere": b"http://[",
    "moves_with_a_password": b"http://a:b@127.0.0.1/mcp",
    "moves_to_control_characters": b"\x1b]0;owned\x07",
}.items():
    WEB[_name] = _moves(b"307 Moved", _place)
WEB["moves_another_way"] = _moves(b"301 \x1b[2J", b"http://127.0.0.1:9/mcp")
for _name, _status in {
    "wants_a_login_for_ever": b"401 Who",
    "forbids_for_ever": b"403 No",
    "has_no_session": b"404 Gone",
    "fails": b"500 \x1b[2JSorry",
    "is_busy": b"503 Later",
    "takes_it_and_says_nothing": b"202 Accepted",
    "switches_protocols": b"101 Switching",
    "has_a_status_of_its_own": b"299 Fine",
}.items():
    _more = b'www-authenticate: Bearer resource_metadata="file:///etc/passwd", scope="\x1b[2J"\r\n'
    WEB[_name] = lambda server, body, number, status=_status, more=_more: whole(
        b"", status, more=more
    )


@misbehaves
def ends_each_stream_at_once(server, body, number):
    return event_stream(b"retry: 0\nid: %d\ndata:\n\n" % number)


@misbehaves
def ends_each_stream_with_a_notice(server, body, number):
    notice = encode({"method": "notifications/x"})
    return event_stream(b"retry: 0\nid: %d\n" % number, event(notice))


@misbehaves
def sends_garbage_in_a_stream(server, body, number):
    noise = (b"\xff\xfe\n\n", event(b"{"), event(b"[]"), b"id: \x00\n\n", b"event: x\ndata: y\n\n")
    return event_stream(*noise, event(EVIL.encode()), event(body), *noise)


@misbehaves
def sends_an_event_without_an_end(server, body, number):
    return event_stream(b"data: " + b"x" * 600_000)


@misbehaves
def is_a_web_page(server, body, number):
    return whole(b"<html>\x1b[2J", kind=b"text/html\x1b[2J")


@misbehaves
def names_another_charset(server, body, number):
    return whole(body, kind=b"application/json; charset=punycode")


@misbehaves
def is_a_bomb(server, body, number):
    return whole(BOMB, more=b"content-encoding: gzip\r\n")


@misbehaves
def is_packed_wrongly(server, body, number):
    return whole(body, more=b"content-encoding: gzip, br, x\r\n")


@misbehaves
def is_packed_and_goes_on(server, body, number):
    return whole(gzip.compress(body) + body, more=b"content-encoding: gzip\r\n")


@misbehaves
def is_said_to_be_packed(server, body, number):
    return whole(body, more=b"content-encoding: gzip\r\n")


@misbehaves
def gives_another_session(server, body, number):
    return whole(body, more=b"mcp-session-id: %d-%b\r\n" % (number, b"x" * 5000))


@misbehaves
def sets_cookies(server, body, number):
    lines = (b"set-cookie: c%d-%d=x; Domain=.test; Path=/\r\n" % (number, n) for n in range(50))
    return whole(body, more=b"".join(lines))


@misbehaves
def sends_half_a_head(server, body, number):
    return b"HTTP/1.1 200 OK\r\ncontent-"


@misbehaves
def sends_a_huge_head(server, body, number):
    return b"HTTP/1.1 200 OK\r\n" + b"x-y: z\r\n" * 100_000


@misbehaves
def speaks_another_protocol(server, body, number):
    return b"220 \x1b[2J ready\r\n\r\n" * 100


@misbehaves
def sends_less_than_it_says(server, body, number):
    return whole(body).replace(b"content-length: ", b"content-length: 9")


@misbehaves
def sends_broken_chunks(server, body, number):
    head = HEAD % (b"200 OK", b"application/json")
    return head + b"transfer-encoding: chunked\r\n\r\n-5\r\n" + body


@misbehaves
def sends_no_unicode(server, body, number):
    return whole(body.replace(b"fine", b"\xff\xfe"))


@misbehaves
def sends_a_huge_body(server, body, number):
    return whole(body + b" " * 600_000)


@misbehaves
def hangs_up(server, body, number):
    return b""


class HostileHttp(Hostile):
    """The server over HTTP.

    Args:
        name: The name of a misbehaviour, of messages or of HTTP.

    Attributes:
        url: Its URL.
        requests: The number of HTTP requests that it received.
    """

    def __init__(self, name):
        super().__init__(name)
        self.url = ""
        self.requests = 0
        self._web = WEB.get(name)

    async def answer(self, connection, request):
        """Answer one request; return False if the connection has to be closed."""
        self.requests += 1
        if request.method == "POST":
            return await self._answer(connection, json.loads(request.body))
        is_back = request.method == "GET" and "last-event-id" in request.headers
        if is_back and self._web is not None:
            await connection.send_all(self._web(self, b"{}", self.requests))
        else:
            await connection.send_all(whole(b"", b"405 No"))
        return not is_back

    async def _answer(self, connection, message):
        answers = list(self.answers(message))
        if "id" not in message:
            await connection.send_all(whole(b"", b"202 Accepted"))
            return True
        if self._web is not None and message.get("method") in CONCERNED:
            await connection.send_all(self._web(self, encode(answers[0]), self.requests))
            return False
        # A good answer is one message; everything else is a stream.
        is_listening = message.get("method") == "subscriptions/listen"
        if len(answers) == 1 and isinstance(answers[0], dict) and not is_listening:
            await connection.send_all(whole(encode(answers[0])))
            return True
        parts = [event(encode(each)) for each in answers if each is not CLOSE]
        await connection.send_all(event_stream(*parts))
        if (is_listening or not answers) and CLOSE not in answers:
            await connection.receive_some()  # until the client leaves
        return False


@asynccontextmanager
async def hostile_http(name):
    """Serve on a local socket, in this loop."""
    server = HostileHttp(name)
    async with listening(server.answer) as server.url:
        yield server


@contextmanager
def hostile_thread(name):
    """Serve in a separate thread."""
    ready, ends = threading.Event(), []
    found = []

    async def run():
        async with hostile_http(name) as server:
            end = trio.Event()
            ends.append((trio.lowlevel.current_trio_token(), end))
            found.append(server)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=trio.run, args=(run,), daemon=True)
    thread.start()
    ready.wait(60)
    try:
        yield found[0]
    finally:
        token, end = ends[0]
        token.run_sync_soon(end.set)
        thread.join(60)
