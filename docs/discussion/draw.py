"""Draws the layers of the package, and the way of one request through them, from the code.

`python docs/discussion/draw.py` writes the pictures into the pages of this folder.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import trio

import noizu_mcp
from noizu_mcp import Server, Tool

PAGES = Path(__file__).parent
PACKAGE = Path(noizu_mcp.__file__).parent
ROOT = "(root)"


class Greet(Tool):
    """Greets."""

    input = {}

    async def call(self, args: object) -> str:
        return "hello"


class Greeter(Server, name="greeter", version="1"):
    tools = [Greet]


def layer_of(path: Path) -> str:
    """Name the layer of a file: its first folder, or the root of the package."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ROOT


def imported_layers(path: Path) -> Iterator[str]:
    """Find the layers that a file imports when it is loaded or run; for types alone is left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and ast.unparse(test.test).endswith("TYPE_CHECKING")
        for statement in test.body
        for node in ast.walk(statement)
    }
    folder = path.relative_to(PACKAGE).parent.parts
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or id(node) in typing:
            continue
        target = (*folder[: len(folder) - node.level + 1], *(node.module or "").split("."))
        if (PACKAGE / target[0]).is_dir() and target[0]:
            yield target[0]


def draw_layers() -> str:
    """Draw which layer imports which; an arrow that follows from others is left out."""
    edges: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        layer = layer_of(path)
        if layer != ROOT:
            edges.setdefault(layer, set()).update({*imported_layers(path)} - {layer})

    def below(layer: str) -> set[str]:
        return edges[layer].union(*map(below, edges[layer]))

    lines = ["flowchart TD"]
    for layer in sorted(edges, key=lambda each: (-len(below(each)), each)):
        implied = set().union(*map(below, edges[layer]))
        arrows = sorted(edges[layer] - implied)
        lines += [f"    {layer} --> {other}" for other in arrows] or [f"    {layer}"]
    return "\n".join(lines)


def draw_request() -> str:
    """Draw the calls between layers while the server answers one `tools/call` of 2026-07-28.

    A call counts for the layer whose code makes it. A call that repeats the arrow before it is left
    out: the picture shows how the layers follow each other, and not every function.
    """
    calls = [(caller, called, name) for caller, called, name in trio.run(trace_request)]
    order = dict.fromkeys(layer for call in calls for layer in call[:2])
    lines = ["sequenceDiagram", *(f"    participant {layer}" for layer in order)]
    last = None
    for caller, called, name in calls:
        if (caller, called) != last:
            lines.append(f"    {caller}->>{called}: {name}")
        last = (caller, called)
    return "\n".join(lines)


async def trace_request() -> list[tuple[str, str, str]]:
    """Post one call to the ASGI application.

    Returns:
        The calls from one layer into another: the layer of the caller, the layer that is called,
        and the name of the function.
    """
    app = Greeter().asgi(allowed_hosts=["example.com"])
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "greet", "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {
        "host": "example.com",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "greet",
    }
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def post() -> None:
        messages = [{"type": "http.request", "body": body.encode()}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            await trio.sleep_forever()
            raise AssertionError

        async def send(_: Any) -> None:
            """Wait for nothing: code that goes on after a wait would count as a call."""

        await app(scope, receive, send)

    calls: list[tuple[str, str, str]] = []
    task = trio.lowlevel.current_task()

    def note(frame: FrameType, event: str, _: Any) -> None:
        called = layer_of_frame(frame)
        if event != "call" or called is None or "<" in frame.f_code.co_qualname:
            return
        if trio.lowlevel.current_task() is not task:
            return  # what the first request has left to do
        below, caller = frame.f_back, None
        while below is not None and caller is None:
            caller, below = layer_of_frame(below), below.f_back
        if caller is not None and caller != called:
            calls.append((caller, called, frame.f_code.co_qualname))

    async with app.lifespan():
        await post()  # what happens once in a process is no part of the picture
        sys.setprofile(note)
        try:
            await post()
        finally:
            sys.setprofile(None)
    return calls


def layer_of_frame(frame: FrameType) -> str | None:
    """Name the layer of running code; None outside of the layers."""
    path = Path(frame.f_code.co_filename)
    layer = layer_of(path) if path.is_relative_to(PACKAGE) else ROOT
    return None if layer == ROOT else layer


PICTURES = {"architecture.md": draw_layers, "flow.md": draw_request}


def draw(page: str) -> str:
    """Give a page with its picture as it is now."""
    text = (PAGES / page).read_text(encoding="utf-8")
    picture = PICTURES[page]()
    return re.sub(
        r"```mermaid\n.*?```",
        lambda _: f"```mermaid\n{picture}\n```",
        text,
        count=1,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    for page in PICTURES:
        (PAGES / page).write_text(draw(page), encoding="utf-8")
