"""The yardstick: a bare trio loop that answers by hand, with a task for each request.

It has no framework, no timeouts, no limits and no cancellation: about the least that a concurrent
server on trio can cost. Arguments are checked and answers are serialised on every call.
"""

import json
import os
from typing import Any

import bench_tool
import trio

CHUNK = 1 << 16
MODES = {"plain", "upper", "lower"}
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": bench_tool.TEXT},
        "repeat": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
        "mode": {"type": "string", "enum": sorted(MODES), "default": "plain"},
    },
    "required": ["text"],
}
TOOLS = [{"name": "echo", "description": bench_tool.DESCRIPTION, "inputSchema": SCHEMA}]


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    info = {"name": bench_tool.NAME, "version": "1"}
    versions = {"protocolVersion": params.get("protocolVersion"), "supportedVersions": []}
    if "_meta" in params:
        versions = {"supportedVersions": ["2026-07-28"]}
    return {**versions, "capabilities": {"tools": {}}, "serverInfo": info}


def call(params: dict[str, Any]) -> dict[str, Any]:
    arguments = params["arguments"]
    text, repeat = arguments["text"], arguments.get("repeat", 1)
    mode = arguments.get("mode", "plain")
    if type(text) is not str or type(repeat) is not int or not 1 <= repeat <= 10:
        raise ValueError("bad arguments")
    if mode not in MODES:
        raise ValueError("bad mode")
    text = bench_tool.apply(text, repeat, mode)
    return {"content": [{"type": "text", "text": text}], "isError": False}


METHODS = {
    "initialize": initialize,
    "server/discover": initialize,
    "tools/call": call,
    "tools/list": lambda _: {"tools": TOOLS},
}


async def answer(line: bytes, answers: trio.MemorySendChannel[bytes]) -> None:
    request = json.loads(line)
    if "id" in request:
        result = METHODS[request["method"]](request["params"])
        response = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        await answers.send(json.dumps(response, separators=(",", ":")).encode() + b"\n")


async def write(answers: trio.MemoryReceiveChannel[bytes], stream: trio.abc.SendStream) -> None:
    async for first in answers:
        ready = [first]
        while answers.statistics().current_buffer_used:
            ready.append(answers.receive_nowait())
        await stream.send_all(b"".join(ready))


async def main() -> None:
    reader, writer = (trio.lowlevel.FdStream(os.dup(number)) for number in (0, 1))
    send, receive = trio.open_memory_channel[bytes](1000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, receive, writer)
        rest = b""
        while chunk := await reader.receive_some(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                nursery.start_soon(answer, line, send)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    TOOLS[:] = [{**TOOLS[0], "name": name} for name in bench_tool.names(bench_tool.asked())]
    trio.run(main)
