"""The yardstick over HTTP: an ASGI application that answers by hand, without a framework.

It reads the body, looks a dict up, checks the arguments and serialises the answer, on every call.
It has no limits, no timeouts and no cancellation; of a session it keeps the id.
"""

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import bench_port
import bench_tool
import serve_trio
import trio

METHODS = dict(serve_trio.METHODS)
NOTICE = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
ACKNOWLEDGED = {
    "jsonrpc": "2.0",
    "method": "notifications/subscriptions/acknowledged",
    "params": {"notifications": {"toolsListChanged": True}},
}
JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream")

Send = Callable[[dict[str, Any]], Awaitable[None]]

sessions: set[str] = set()
streams: set[trio.MemorySendChannel[bytes]] = set()


def event(message: dict[str, Any]) -> bytes:
    return b"data: %b\r\n\r\n" % json.dumps(message, separators=(",", ":")).encode()


def call(params: dict[str, Any]) -> dict[str, Any]:
    if params["name"] != "bump":
        return serve_trio.call(params)
    for stream in streams:
        stream.send_nowait(event(NOTICE))
    return {"content": [{"type": "text", "text": "bumped"}], "isError": False}


METHODS["tools/call"] = call


async def app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Send) -> None:
    if scope["type"] == "lifespan":
        for _ in range(2):
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
        return
    if scope["method"] == "GET":
        await stream(send, b": here\r\n\r\n")
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await answer(scope, json.loads(body), send)


async def answer(scope: Any, message: dict[str, Any], send: Send) -> None:
    method = message["method"]
    fields = dict(scope["headers"])
    version = fields.get(b"mcp-protocol-version")
    more = []
    if method == "initialize":
        session = secrets.token_urlsafe()
        sessions.add(session)
        more = [(b"mcp-session-id", session.encode())]
    elif version != b"2026-07-28" and fields[b"mcp-session-id"].decode() not in sessions:
        await respond(send, 404, b"", [])
        return
    if "id" not in message:
        await respond(send, 202, b"", [])
    elif method == "subscriptions/listen":
        await stream(send, event(ACKNOWLEDGED))
    else:
        result = METHODS[method](message["params"])
        response = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        body = json.dumps(response, separators=(",", ":")).encode()
        await respond(send, 200, body, [JSON, *more])


async def respond(send: Send, status: int, body: bytes, fields: list[Any]) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*fields, length]})
    await send({"type": "http.response.body", "body": body})


async def stream(send: Send, first: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
    await send({"type": "http.response.body", "body": first, "more_body": True})
    into, events = trio.open_memory_channel[bytes](100)
    streams.add(into)
    try:
        async for each in events:
            await send({"type": "http.response.body", "body": each, "more_body": True})
    finally:
        streams.discard(into)


def offer(tools: int) -> None:
    """Offer as many tools."""
    names = bench_tool.names(tools)
    serve_trio.TOOLS[:] = [{**serve_trio.TOOLS[0], "name": name} for name in names]


if __name__ == "__main__":
    import stock_hypercorn

    offer(bench_port.tools())
    stock_hypercorn.run(app, bench_port.port())
