"""A gateway to public servers has the same answers as they."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from noizu_mcp import Accept, ClientHandler, McpError, SamplingResult, Stdio, connect
from noizu_mcp.types import Reference

from .conftest import node_modules
from .public_servers import PATH

ROOT = Path(__file__).resolve().parents[2]
ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
#: Calls by server: the tool and its arguments, without results that contain the time.
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "every": [
        ("echo", {"message": "hi"}),
        ("echo", {}),
        ("get-sum", {"a": 2, "b": 3}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-tiny-image", {}),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}),
        ("get-resource-links", {"count": 2}),
        ("trigger-elicitation-request", {}),
        ("trigger-sampling-request", {"prompt": "hello", "maxTokens": 5}),
    ],
    "fs": [
        ("list_directory", {"path": "."}),
        ("read_text_file", {"path": "a.txt"}),
        ("read_text_file", {"path": "/etc/passwd"}),
        ("write_file", {"path": "b.txt", "content": "new"}),
        ("list_allowed_directories", {}),
    ],
    "clock": [
        (
            "convert_time",
            {"source_timezone": "Asia/Tokyo", "time": "12:30", "target_timezone": "Asia/Kolkata"},
        ),
        ("get_current_time", {"timezone": "Nowhere/Never"}),
    ],
}


class Person(ClientHandler):
    """Answers every question."""

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Accept[Any]:
        return Accept({"name": "Ada", "check": True})

    async def handle_sampling(self, params: Mapping[str, Any]) -> SamplingResult:
        content = {"type": "text", "text": "sampled"}
        return SamplingResult.from_wire({"role": "assistant", "content": content, "model": "m"})

    async def list_roots(self) -> list[str]:
        return []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with a file in it."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("content")
    return tmp_path / "files"


@pytest.fixture
def commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands of the servers."""
    scope = node_modules("@modelcontextprotocol/server-everything") / "@modelcontextprotocol"
    pytest.importorskip("mcp_server_time")
    return {
        "every": ["node", str(scope / "server-everything" / "dist" / "index.js"), "stdio"],
        "fs": ["node", str(scope / "server-filesystem" / "dist" / "index.js"), str(folder)],
        "clock": [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"],
    }


def entry(command: list[str], folder: Path, pid: Path | None = None) -> dict[str, Any]:
    """Make the entry of a server, which writes its process id into a file."""
    words = ["-c", 'cd "$1"; shift; exec "$@"', "sh", str(folder), *command]
    if pid is not None:
        words[1] = f'echo $$ > "{pid}"; {words[1]}'
    return {"command": "sh", "args": words, "env": {"PYTHONPATH": PATH}}


@asynccontextmanager
async def gateway(config: Path, version: str, transport: str = "stdio"):
    """Run the gateway like a host."""
    words = ["-m", "noizu_mcp", "run", "--config", str(config)]
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), PATH])}
    if transport == "stdio":
        command = Stdio(sys.executable, *words, env=environment)
        async with connect(command, handler=Person(), version=version) as client:
            yield client
        return
    process = await trio.lowlevel.open_process(
        [sys.executable, *words, "--http", "--port", "0"],
        stderr=-1,
        env={**os.environ, **environment},
    )
    try:
        assert process.stderr is not None
        first = b""
        while b"\n" not in first or b"http://" not in first:
            first += await process.stderr.receive_some()
        url = first.split(b"http://")[1].split()[0].decode()
        async with connect(f"http://{url}", handler=Person(), version=version) as client:
            yield client
    finally:
        process.terminate()
        await process.wait()


def plain(value: Any, name: str) -> Any:
    """Return a value without the prefix of a server."""
    if isinstance(value, dict):
        return {key: plain(each, name) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, name) for each in value]
    if isinstance(value, str):
        return value.removeprefix(f"{name}_").removeprefix(f"{name}+")
    return value


async def outcome(work: Any) -> Any:
    """Return a result in wire form, without caching hints; or the error."""
    try:
        found = (await work).to_wire()
        return {k: v for k, v in found.items() if k not in ("ttlMs", "cacheScope")}
    except McpError as error:
        return [error.code, error.message]


async def listed(client: Any, name: str, start: str, separator: str) -> list[Any]:
    """Return the definitions of one server."""
    found = [each.to_wire() for each in await getattr(client, f"list_{name}")()]
    key = {"resources": "uri", "resource_templates": "uriTemplate"}.get(name, "name")
    mine = [each for each in found if each[key].startswith(start + separator)] if start else found
    # This gateway does not pass on tasks.
    mine = [{k: v for k, v in each.items() if k != "execution"} for each in mine]
    return sorted(plain(mine, start), key=json.dumps)


@ERAS
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_the_answers_equal_the_servers_answers(
    commands: dict[str, list[str]], folder: Path, tmp_path: Path, version: str, transport: str
) -> None:
    """Lists, calls, resources, prompts and completions are the same, one by one."""
    config = tmp_path / "mcp.json"
    entries = {name: entry(command, folder) for name, command in commands.items()}
    config.write_text(json.dumps({"mcpServers": entries}))
    async with gateway(config, version, transport) as client:
        for name, target in entries.items():
            async with connect(target, handler=Person()) as direct:
                if name == "every":  # its tools that ask appear a moment later
                    while len(await direct.list_tools()) < 15:  # noqa: ASYNC110 - it has no event
                        await trio.sleep(0.05)
                has = direct.capabilities.has
                kinds = {"tools": "_", "prompts": "_", "resources": "+", "resource_templates": "+"}
                for kind, separator in kinds.items():
                    if has(kind.replace("resource_templates", "resources")):
                        expected = await listed(direct, kind, "", "")
                        assert await listed(client, kind, name, separator) == expected
                for tool, arguments in CALLS[name]:
                    expected = await outcome(direct.call_tool(tool, arguments))
                    found = await outcome(client.call_tool(f"{name}_{tool}", arguments))
                    assert plain(found, name) == plain(expected, name), tool
                if name == "every":
                    await compare_the_rest(client, direct)


async def compare_the_rest(client: Any, direct: Any) -> None:
    """Compare resources, prompts and completions of the reference server."""
    for uri in ("demo://resource/static/document/features.md", "demo://resource/dynamic/text/x"):
        expected = await outcome(direct.read_resource(uri))
        assert plain(await outcome(client.read_resource(f"every+{uri}")), "every") == expected
    for prompt, arguments in (("simple-prompt", {}), ("args-prompt", {"city": "Oslo"})):
        expected = await outcome(direct.get_prompt(prompt, arguments))
        assert await outcome(client.get_prompt(f"every_{prompt}", arguments)) == expected
    team = ("department", "S"), ("name", "A", {"department": "Sales"})
    for given in team:
        expected = await direct.complete(Reference.prompt("completable-prompt"), *given)
        reference = Reference.prompt("every_completable-prompt")
        found = await client.complete(reference, *given)
        assert (found.values, found.total) == (expected.values, expected.total)


@ERAS
async def test_the_kill_of_a_server_in_the_middle_of_a_call(
    commands: dict[str, list[str]], folder: Path, tmp_path: Path, version: str
) -> None:
    """The call ends with one error, the others go on, and the killed server returns."""
    config, pid = tmp_path / "mcp.json", tmp_path / "pid"
    entries = {
        name: entry(command, folder, pid if name == "every" else None)
        for name, command in commands.items()
    }
    config.write_text(json.dumps({"mcpServers": entries}))
    async with gateway(config, version) as client:
        await client.list_tools()
        began = trio.Event()

        async def call() -> None:
            result = await client.call_tool(
                "every_trigger-long-running-operation",
                {"duration": 60, "steps": 600},
                progress=lambda _: began.set(),
            )
            assert result.is_error
            assert result.text.startswith("every: ")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await began.wait()
            os.kill(int(pid.read_text()), signal.SIGKILL)
        listing = await client.call_tool("fs_list_directory", {"path": "."})
        assert listing.text == "[FILE] a.txt"
        with trio.fail_after(60):
            while True:
                try:
                    result = await client.call_tool("every_echo", {"message": "back"})
                except McpError:  # not listed yet
                    await trio.sleep(0.2)
                    continue
                if not result.is_error:
                    break
        assert result.text == "Echo: back"
