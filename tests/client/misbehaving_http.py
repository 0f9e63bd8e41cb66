"""A server over HTTP that misbehaves as the name of the called tool says; raw bytes on sockets."""

import gzip
import json
from contextlib import asynccontextmanager, suppress

import trio

from ..kit.http_server import HEAD, event, event_stream, gone, listening, whole

CAPABILITIES = {"tools": {}}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": CAPABILITIES,
    "serverInfo": {"name": "bad", "version": "1"},
}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": CAPABILITIES,
    "ttlMs": 0,
    "cacheScope": "private",
}
JSON_HEAD = HEAD % (b"200 OK", b"application/json")
GARBAGE = (
    "{",
    "[]",
    "5",
    '{"jsonrpc":"2.0","id":null,"result":{}}',
    '{"jsonrpc":"2.0","id":999999,"result":{}}',
    '{"jsonrpc":"2.0","id":true,"result":{}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
)


def answer(call, text=None):
    """Encode the answer to a call: its token, or another text."""
    token = call["params"]["arguments"]["token"] if text is None else text
    result = {"resultType": "complete", "content": [{"type": "text", "text": token}]}
    return result_of(call, result)


def result_of(request, result):
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()


class Bad:
    """The server.

    Attributes:
        url: Its URL.
        held: Calls that are answered later.
    """

    def __init__(self):
        self.url = ""
        self.held = []

    async def answer(self, stream, request):
        """Answer one request; return False if the connection has to be closed."""
        if request.method != "POST":
            await stream.send_all(whole(b"", b"405 Not here"))
            return True
        message = json.loads(request.body)
        method = message.get("method")
        if method == "initialize":
            more = b"mcp-session-id: s\r\n"
            await stream.send_all(whole(result_of(message, INITIALIZED), more=more))
        elif method == "server/discover":
            await stream.send_all(whole(result_of(message, DISCOVERED)))
        elif method == "tools/call":
            return await getattr(self, message["params"]["name"])(stream, message)
        else:
            await stream.send_all(whole(b"", b"202 Accepted"))
        return True

    # What each tool does; returns True if the connection stays open.

    async def echo(self, stream, call):
        await stream.send_all(whole(answer(call)))
        return True

    async def leave(self, stream, call):
        return False

    async def hang(self, stream, call):
        await gone(stream)

    async def half_head(self, stream, call):
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-")

    async def half_head_and_hang(self, stream, call):
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-")
        await gone(stream)

    async def half_body(self, stream, call):
        await stream.send_all(whole(answer(call))[:-5])

    async def half_body_and_hang(self, stream, call):
        await stream.send_all(whole(answer(call))[:-5])
        await gone(stream)

    async def no_http(self, stream, call):
        await stream.send_all(b"Welcome\r\n\r\n" * 100)

    async def huge_head(self, stream, call):
        await stream.send_all(b"HTTP/1.1 200 OK\r\n" + b"x-y: z\r\n" * 100_000)

    async def empty(self, stream, call):
        await stream.send_all(whole(b""))
        return True

    async def accepted(self, stream, call):
        await stream.send_all(whole(b"", b"202 Accepted"))
        return True

    async def too_short(self, stream, call):
        body = answer(call)
        head = b"content-length: %d\r\n\r\n" % (len(body) - 5)
        await stream.send_all(JSON_HEAD + head + body)

    async def bad_chunks(self, stream, call):
        head = b"transfer-encoding: chunked\r\n\r\n"
        await stream.send_all(JSON_HEAD + head + b"zz\r\n" + answer(call))

    async def packed(self, stream, call):
        body = gzip.compress(answer(call))
        await stream.send_all(whole(body, more=b"content-encoding: gzip\r\n"))
        return True

    async def no_unicode(self, stream, call):
        await stream.send_all(whole(answer(call).replace(b"mine", b"\xff\xfe")))
        return True

    async def wrong_id(self, stream, call):
        await stream.send_all(whole(answer({**call, "id": str(call["id"])})))
        return True

    async def no_result(self, stream, call):
        await stream.send_all(whole(result_of(call, 5)))
        return True

    async def huge(self, stream, call):
        await stream.send_all(whole(answer(call, "x" * 1_000_000)))

    async def page(self, stream, call):
        await stream.send_all(whole(b"<html>", kind=b"text/html"))
        return True

    async def fail(self, stream, call):
        await stream.send_all(whole(b"{", b"500 Sorry"))
        return True

    async def busy(self, stream, call):
        await stream.send_all(whole(b"", b"503 Later"))
        return True

    async def move(self, stream, call):
        await stream.send_all(whole(b"", b"307 Elsewhere", more=b"location: /mcp\r\n"))
        return True

    async def drip(self, stream, call):
        for byte in whole(answer(call)):
            await stream.send_all(bytes((byte,)))
        return True

    async def last_words(self, stream, call):
        # In one step with EOF, which the client must see before it sends the next request.
        stream.socket._sock.send(whole(answer(call)))

    async def twice(self, stream, call):
        await stream.send_all(event_stream(event(answer(call)), event(answer(call, "the second"))))

    async def garbage(self, stream, call):
        noise = (
            b": comment\n",
            b"event: other\n\n",
            b"id\n",
            *map(event, GARBAGE),
            b"\xff\xfe\n\n",
        )
        await stream.send_all(event_stream(*noise, event(answer(call)), *noise))

    async def flood(self, stream, call):
        notice = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"n": 1}}
        notices = event(json.dumps(notice)) * 2_000
        await stream.send_all(event_stream(notices, event(answer(call)), notices))

    async def silent_stream(self, stream, call):
        await stream.send_all(event_stream())
        await gone(stream)

    async def broken_stream(self, stream, call):
        await stream.send_all(event_stream(event("{}")[:-1]))

    async def huge_event(self, stream, call):
        await stream.send_all(event_stream(event("x" * 1_000_000)))

    async def endless_stream(self, stream, call):
        await stream.send_all(event_stream(event(answer(call))))
        await gone(stream)

    async def out_of_order(self, stream, call):
        self.held.append((stream, call))
        if len(self.held) == 3:
            three, self.held = self.held, []
            for held, late in reversed(three):
                with suppress(trio.BrokenResourceError):
                    await held.send_all(whole(answer(late)))
        return True


@asynccontextmanager
async def misbehaving():
    """Serve on a local socket until the end of the block."""
    server = Bad()
    async with listening(server.answer) as server.url:
        yield server
