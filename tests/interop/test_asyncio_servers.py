"""The official clients, and FastMCP's, with servers whose handlers run on asyncio."""

import asyncio
import importlib.util
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .reports import call, look_up, texts

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "docs" / "examples"
SERVER = f"{HERE / 'asyncio_server.py'}:Ordering"
SESSION, LATEST = "2025-11-25", "2026-07-28"
KINDS = {SESSION: "handshake", LATEST: "auto"}
VERSIONS = {
    "python": (SESSION, LATEST),
    "typescript-2": (LATEST,),
    "typescript-1": (SESSION,),
}
ASKS = [{"name": "order", "kind": "ask", "mood": "accept", "what": call("order", what="tea")}]
ORDERS = [
    {"name": "list", "kind": "list"},
    {**call("order", item="tea"), "kind": "logging", "level": "info"},
    call("orders"),
]


@pytest.fixture
def application() -> Iterator[str]:
    """Serve the FastAPI application of the examples with uvicorn; yields its MCP URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Requests wait in the queue of the socket until uvicorn accepts them.
        options = ["--fd", str(listener.fileno()), "--log-level", "error", "--lifespan", "on"]
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "fastapi_app:app", *options],
            cwd=EXAMPLES,
            pass_fds=[listener.fileno()],
        )
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        process.terminate()
        process.wait(60)


EACH = pytest.mark.parametrize(
    ("client", "version"),
    [(client, version) for client, versions in VERSIONS.items() for version in versions],
)


@EACH
def test_an_application_on_asyncio(client, version, application, drive, tmp_path):
    """Its tools use the queue and the database of the application, and send log messages."""
    connection = {
        "label": "app",
        "kind": KINDS[version],
        "version": version,
        "level": "info",
        "url": application,
        "journal": str(tmp_path / "unused"),
        "scenarios": ORDERS,
    }
    seen = look_up(drive(client, [connection])["app"])

    assert [tool["name"] for tool in seen("list")["tools"]] == ["order", "orders"]
    assert texts(seen("order")["result"]) == ["order 1"]
    assert [each["data"] for each in seen("order")["seen"]] == ["0 orders are before yours"]
    assert texts(seen("orders")) == ['["tea"]']


@EACH
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_mail_and_two_questions(client, version, transport, where, drive, tmp_path):
    """A handler on asyncio continues after each answer; it sends one mail."""
    connection = {
        "label": "ordering",
        "kind": KINDS[version],
        "version": version,
        **where(transport, SERVER, str(tmp_path / "unused")),
        "scenarios": ASKS,
    }
    seen = look_up(drive(client, [connection])["ordering"])("order")

    assert [each["params"]["message"] for each in seen["asked"]] == ["Who pays?", "Who gets it?"]
    assert texts(seen["result"]) == ["2 answers, 1 mails"]


@pytest.mark.skipif(importlib.util.find_spec("fastmcp") is None, reason="fastmcp is not installed")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.filterwarnings("ignore")
def test_fastmcp_drives_an_application_on_asyncio(mode, application):
    """FastMCP's client gets the tools, their results and their log messages."""
    from fastmcp import Client

    logs: list[Any] = []

    async def log(message: Any) -> None:
        logs.append(message.data)

    async def main() -> list[Any]:
        async with Client(application, mode=mode, log_handler=log) as client:
            names = [tool.name for tool in await client.list_tools()]
            ordered = await client.call_tool("order", {"item": "tea"})
            listed = await client.call_tool("orders")
            return [names, ordered.content[0].text, listed.content[0].text]

    assert asyncio.run(main()) == [["order", "orders"], "order 1", '["tea"]']
    assert mode == "auto" or logs == ["0 orders are before yours"]
