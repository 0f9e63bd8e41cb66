"""Calls of an ASGI application in its own process: `loop_asgi.py PEER ERA SECONDS`.

No sockets and no HTTP: requests are scopes and bodies that were made beforehand, and answers are
checked once they are whole.
"""

import json
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Any

LEGACY = "2025-11-25"
ARGUMENTS = {"text": "hello bench", "repeat": 2, "mode": "upper"}
ECHOED = b"HELLO BENCHHELLO BENCH"
LEAST = 20
CLIENT = {"name": "bench", "version": "1"}
HEADERS = {
    "host": "127.0.0.1:8000",
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}

Sleep = Callable[[], Awaitable[Any]]


class Caller:
    """A client of an application.

    Args:
        app: The application.
        sleep: Sleeps for ever.
        era: The revision.
    """

    def __init__(self, app: Any, sleep: Sleep, era: str) -> None:
        self._app = app
        self._sleep = sleep
        self._era = era
        self._ids = count(1)
        self._scope: dict[str, Any] = {}
        self._parts = (b"", b"")

    async def open(self) -> None:
        """Shake hands, and make ready what all calls share."""
        fields = {"mcp-protocol-version": self._era}
        params: dict[str, Any] = {"name": "echo", "arguments": ARGUMENTS}
        if self._era == LEGACY:
            hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
            request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
            head, _ = await self._exchange(self._scope_of({}), json.dumps(request).encode())
            fields["mcp-session-id"] = dict(head["headers"])[b"mcp-session-id"].decode()
            ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
            await self._exchange(self._scope_of(fields), ready)
        else:
            prefix = "io.modelcontextprotocol/"
            meta = {"protocolVersion": self._era, "clientInfo": CLIENT, "clientCapabilities": {}}
            params["_meta"] = {prefix + key: value for key, value in meta.items()}
            fields |= {"mcp-method": "tools/call", "mcp-name": "echo"}
        self._scope = self._scope_of(fields)
        request = {"jsonrpc": "2.0", "id": "@", "method": "tools/call", "params": params}
        before, after = json.dumps(request, separators=(",", ":")).encode().split(b'"@"')
        self._parts = (before, after)

    async def call(self) -> None:
        before, after = self._parts
        body = b"%b%d%b" % (before, next(self._ids), after)
        head, answer = await self._exchange(self._scope.copy(), body)
        if head["status"] != 200 or ECHOED not in answer:
            raise RuntimeError(f"unexpected answer: {head['status']} {answer[:200]!r}")

    async def _exchange(self, scope: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        requests = [{"type": "http.request", "body": body, "more_body": False}]
        answers: list[Any] = []

        async def receive() -> Any:
            if not requests:
                await self._sleep()
            return requests.pop()

        async def send(message: Any) -> None:
            answers.append(message)

        await self._app(scope, receive, send)
        head, *parts = answers
        return head, b"".join(part.get("body", b"") for part in parts)

    def _scope_of(self, fields: dict[str, str]) -> dict[str, Any]:
        named = {**HEADERS, **fields}.items()
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in named],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            "state": {},
        }


async def timed(caller: Caller, seconds: float) -> dict[str, float]:
    """Call for two thirds of the time to warm up, then count."""
    await caller.open()
    calls, end = 0, time.perf_counter() + seconds * 2 / 3
    while calls < LEAST or time.perf_counter() < end:
        await caller.call()
        calls += 1
    calls = max(LEAST, int(calls * 1.5))
    cpu, began = time.process_time(), time.perf_counter()
    for _ in range(calls):
        await caller.call()
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"wall_us": wall / calls * 1e6, "cpu_us": cpu / calls * 1e6}


def noizu(era: str, seconds: float) -> dict[str, float]:
    import serve_noizu
    import trio

    async def main() -> dict[str, float]:
        app = serve_noizu.build(3).asgi()
        async with app.lifespan():
            return await timed(Caller(app, trio.sleep_forever, era), seconds)

    return trio.run(main)


def yardstick(era: str, seconds: float) -> dict[str, float]:
    import http_trio
    import trio

    return trio.run(timed, Caller(http_trio.app, trio.sleep_forever, era), seconds)


def mcp(era: str, seconds: float, *, fast: bool = False) -> dict[str, float]:
    import serve_mcp

    app = serve_mcp.build(3).streamable_http_app(json_response=fast)
    return on_asyncio(app, app.router.lifespan_context, era, seconds)


def fastmcp(era: str, seconds: float) -> dict[str, float]:
    import serve_fastmcp

    app = serve_fastmcp.build(3).http_app()
    return on_asyncio(app, app.lifespan, era, seconds)


def on_asyncio(app: Any, lifespan: Any, era: str, seconds: float) -> dict[str, float]:
    import asyncio

    async def main() -> dict[str, float]:
        async with lifespan(app):
            return await timed(Caller(app, asyncio.Event().wait, era), seconds)

    return asyncio.run(main())


LOOPS = {
    "noizu": noizu,
    "mcp": mcp,
    "mcp, JSON": partial(mcp, fast=True),
    "fastmcp": fastmcp,
    "raw ASGI": yardstick,
}

if __name__ == "__main__":
    row, era, seconds = sys.argv[1:]
    print(json.dumps(LOOPS[row](era, float(seconds))))
