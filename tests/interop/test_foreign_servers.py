"""Our client with servers of the official packages, in every revision.

All scenarios run once on one connection for each server and revision; each test checks one.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from noizu_mcp import Client, McpError, Progress, ProtocolError, Stdio, connect

from .talking import PATIENCE, Ears, converse, look_up, texts

LATEST = "2026-07-28"
HANDSHAKES = ("2025-03-26", "2025-06-18", "2025-11-25")
NAMES = {
    *("echo", "weigh", "refuse", "steps", "shout"),
    *("endless", "was_cancelled", "add_extra"),
}
WORDS = "é😀\u2028\n" * 50_000
#: The servers, with each requested version (None: negotiated) and the expected one.
DUAL = {None: LATEST, LATEST: LATEST, **{version: version for version in HANDSHAKES}}
SERVERS: dict[str, dict[str | None, str]] = {
    "python": DUAL,
    "typescript-2": DUAL,
    "typescript-1": {None: "2025-11-25", **{version: version for version in HANDSHAKES}},
}
SCRIPTS = {
    "typescript-2": ("foreign_v2.mjs", "@modelcontextprotocol/server"),
    "typescript-1": ("foreign_v1.mjs", "@modelcontextprotocol/sdk"),
}


@attrs.define
class Conversation:
    """One connection to a foreign server; each method is a scenario and returns its result."""

    client: Client
    ears: Ears

    async def handshake(self) -> Any:
        return self.client.protocol_version, self.client.server_info, self.client.instructions

    async def lists(self) -> Any:
        return {tool.name: tool for tool in await self.client.list_tools()}

    async def text(self) -> Any:
        return await self.client.call_tool("echo", {"message": WORDS})

    async def structured(self) -> Any:
        return await self.client.call_tool("weigh", {"city": "Oslo"})

    async def refusal(self) -> Any:
        return await self.client.call_tool("refuse")

    async def bad_arguments(self) -> Any:
        return await self.client.call_tool("echo", {"message": 1})

    async def unknown_method(self) -> Any:
        return await self.client.request("no/such")

    async def alive(self) -> Any:
        return await self.client.ping()

    async def progress(self) -> Any:
        seen: list[Progress] = []
        result = await self.client.call_tool("steps", {"count": 3}, progress=seen.append)
        return result, seen

    async def logging(self) -> Any:
        # In a session the Python server has no such method, and sends everything.
        capable = self.client.capabilities.logging is not None
        if capable or self.client.protocol_version == LATEST:
            await self.client.set_log_level("warning")
        await self.client.call_tool("shout")
        return await self.ears.next("notifications/message")

    async def cancel(self) -> Any:
        with trio.CancelScope() as running:
            await self.client.call_tool("endless", progress=lambda _: running.cancel())
        return running.cancelled_caught, await self.client.call_tool("was_cancelled")

    async def change(self) -> Any:
        if self.client.protocol_version == LATEST:
            async with self.client.listen(tools=True) as agreed:
                return agreed, await self._add()
        return None, await self._add()

    async def _add(self) -> Any:
        await self.client.call_tool("add_extra")
        await self.ears.next("notifications/tools/list_changed")
        names = {tool.name for tool in await self.client.list_tools()}
        return names, await self.client.call_tool("extra")


SCENARIOS = (
    *("handshake", "lists", "text", "structured", "refusal", "bad_arguments", "unknown_method"),
    *("alive", "progress", "logging", "cancel", "change"),
)


@pytest.fixture(scope="module")
def target(foreign: Callable[..., Stdio]) -> Callable[[str], Stdio]:
    """Make the command of a foreign server."""
    return lambda name: foreign(name, "foreign_server.py", SCRIPTS)


@contextmanager
def over_http(command: Stdio) -> Iterator[str]:
    """Serve on a local port; yields the URL."""
    words = [command.program(), *command.args, "http"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=command.environment()) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        process.kill()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((name, asked, got, transport), id=f"{name}-{asked or 'auto'}-{transport}")
        for transport in ("stdio", "http")
        for name in SERVERS
        for asked, got in SERVERS[name].items()
    ],
)
def conversation(
    request: pytest.FixtureRequest,
    target: Callable[[str], Stdio],
    node_package: Callable[[str], Path],
) -> tuple[dict[str, Any], str]:
    """Return the report of our client on one server, and the expected revision."""
    name, asked, got, transport = request.param
    if (name, transport) == ("typescript-2", "http"):
        node_package("@modelcontextprotocol/node")
    command = target(name)
    with over_http(command) if transport == "http" else nullcontext(command) as where:
        return trio.run(converse, where, asked, Ears(), Conversation, SCENARIOS), got


@pytest.fixture
def version(conversation: tuple[dict[str, Any], str]) -> str:
    return conversation[1]


@pytest.fixture
def seen(conversation: tuple[dict[str, Any], str]) -> Callable[[str], Any]:
    return look_up(conversation[0])


def test_handshake(seen, version):
    """The client has the revision, the server info and the instructions on entry."""
    agreed, info, instructions = seen("handshake")
    assert agreed == version
    assert info.name == "foreign"
    assert instructions == "Call anything."


def test_lists(seen, version):
    """The list has every tool, with its schemas."""
    tools = seen("lists")
    assert set(tools) == NAMES
    assert tools["echo"].input_schema["required"] == ["message"]
    assert tools["echo"].description == "Answer with the text that came."
    if version == LATEST:
        assert tools["weigh"].output_schema["properties"]["celsius"]["type"] == "number"


def test_text(seen):
    """A long text with newlines, scripts and separators is returned unchanged."""
    assert texts(seen("text")) == [WORDS]


def test_structured(seen, version):
    """Structured content is returned unchanged."""
    found = seen("structured")
    (text,) = texts(found)
    assert "21.5" in text
    if version == LATEST:
        assert found.structured == {"city": "Oslo", "celsius": 21.5}


def test_refusal(seen):
    """A tool's own error is an error result."""
    found = seen("refusal")
    assert found.is_error
    assert "the shop is closed" in found.content[0].text


def test_bad_arguments(seen):
    """Wrong arguments have an error result that names them."""
    found = seen("bad_arguments")
    assert found.is_error
    assert "message" in found.content[0].text


def test_unknown_method(seen):
    """A protocol error is raised with its code."""
    with pytest.raises(McpError) as caught:
        seen("unknown_method")
    assert caught.value.code == -32601


def test_alive(seen):
    """The server answers a ping."""
    assert seen("alive") is None


def test_progress(seen):
    """Every progress notice reaches its call, also right before the result."""
    result, reports = seen("progress")
    assert texts(result) == ["finished"]
    assert reports == [Progress(number, 3, f"step {number}") for number in (1, 2, 3)]


def test_logging(seen):
    """Log messages reach the handler."""
    found = seen("logging")
    assert {"level": "warning", "logger": "disk", "data": "almost full"}.items() <= found.items()


def test_cancel(seen):
    """A call that is cancelled here is cancelled at the server, and the connection goes on."""
    cancelled, after = seen("cancel")
    assert cancelled
    assert texts(after) == ["yes"]


def test_change(seen, version):
    """A new tool sends a notice: to a session, and on request to 2026-07-28."""
    agreed, (names, extra) = seen("change")
    assert agreed == ({"toolsListChanged": True} if version == LATEST else None)
    assert names == {*NAMES, "extra"}
    assert texts(extra) == ["extra"]


async def test_no_common_version(target):
    """A pinned 2026-07-28 with a server of older revisions is an error, not a fallback."""
    with trio.fail_after(PATIENCE), pytest.raises((McpError, ProtocolError)):
        async with connect(target("typescript-1"), version=LATEST):
            pass
