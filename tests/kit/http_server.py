"""Pieces of HTTP servers that send the exact bytes of a test."""

from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs
import trio

HEAD = b"HTTP/1.1 %b\r\ncontent-type: %b\r\n"


@attrs.frozen
class HttpRequest:
    """A request; the names of its headers are in lower case."""

    method: str
    headers: dict[str, str]
    body: bytes


async def read_request(stream):
    """Read one request; return None if the client disconnected before."""
    head, body, size = b"", b"", 0
    async for data in stream:
        body += data
        if not head and b"\r\n\r\n" in body:
            head, _, body = body.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            pairs = (line.partition(":") for line in lines)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            size = int(headers.get("content-length", 0))
        if head and len(body) >= size:
            return HttpRequest(first.split()[0], headers, body)
    return None


def whole(body=b"", status=b"200 OK", kind=b"application/json", more=b""):
    """Write a response with a length; `more` is lines of its head."""
    return HEAD % (status, kind) + b"content-length: %d\r\n%b\r\n" % (len(body), more) + body


def event_stream(*events):
    """Write an event stream that ends with the connection."""
    head = HEAD % (b"200 OK", b"text/event-stream")
    return head + b"connection: close\r\n\r\n" + b"".join(events)


def event(data):
    """Write an event of a stream."""
    return b"data: " + (data if isinstance(data, bytes) else data.encode()) + b"\n\n"


async def serve_requests(answer, stream):
    """Answer the requests of a connection while `answer` returns true; the client may leave."""
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async with stream:
            while request := await read_request(stream):
                if not await answer(stream, request):
                    return


async def gone(stream):
    """Wait until the client has closed the connection."""
    with suppress(trio.BrokenResourceError):
        while await stream.receive_some():
            pass


@asynccontextmanager
async def listening(answer):
    """Serve on a local socket until the end of the block; yields the URL.

    Args:
        answer: Called with the connection and each request; returns whether the connection goes on.
    """
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, partial(serve_requests, answer), 0, host="127.0.0.1")
        (listener,) = await nursery.start(serve)
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}/mcp"
        nursery.cancel_scope.cancel()
