"""Other clients with the everything server over HTTP: FastMCP's, `mcp-remote`, the Inspector."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from noizu_mcp import Stdio, connect

from .talking import Person, texts

HERE = Path(__file__).parent
SERVER = HERE / "everything_server.py"
FASTMCP = "NOIZU_MCP_FASTMCP"
PATIENCE = 120


@pytest.fixture(scope="module")
def url(serve_url: Callable[[str, str], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    journal = tmp_path_factory.mktemp("journal") / "journal"
    return serve_url(f"{SERVER}:Interop", str(journal))


# FastMCP


def _fastmcp() -> str:
    """Return a Python with FastMCP, or skip."""
    python = os.environ.get(FASTMCP)
    if python is None and importlib.util.find_spec("fastmcp") is not None:
        python = sys.executable
    if python is None:
        pytest.skip(f"fastmcp is not installed; {FASTMCP} may name a Python that has it")
    return python


@pytest.fixture(scope="module", params=["legacy", "auto", "2026-07-28"])
def fastmcp(request: pytest.FixtureRequest, url: str) -> Mapping[str, Any]:
    """Return the report of FastMCP's client."""
    program = [_fastmcp(), str(HERE / "driver_fastmcp.py"), url, request.param]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def said(found: Mapping[str, Any], tool: str) -> str:
    (block,) = found[tool]
    text: str = block["text"]
    return text


def test_fastmcp_lists_and_calls(fastmcp):
    """Tools, resources, templates and prompts work."""
    assert "test_simple_text" in fastmcp["tools"]
    assert said(fastmcp, "test_simple_text") == "This is a simple text response for testing."
    assert "north" in said(fastmcp, "test_x_mcp_header")
    (resource,) = fastmcp["resource"]
    assert resource["text"] == "This is the content of the static text resource."
    assert "arg1" in fastmcp["prompt"][0]["content"]["text"]
    assert fastmcp["templates"] != []


def test_fastmcp_hears(fastmcp):
    """Progress arrives, and log messages on request."""
    assert [each[0] for each in fastmcp["progress"]] == [0, 50, 100]


def test_fastmcp_is_asked(fastmcp):
    """A form, a model and roots are asked for, live or in rounds."""
    assert fastmcp["asked"] == ["Who?"]
    assert "ann" in said(fastmcp, "test_elicitation")
    assert "a model's answer" in said(fastmcp, "test_sampling")
    assert "file:///work" in said(fastmcp, "roots")


# mcp-remote


@pytest.fixture
def remote(node_package: Callable[[str], Path], url: str, tmp_path: Path) -> Stdio:
    """Return the command that has stdio here and HTTP to the server."""
    script = node_package("mcp-remote") / "dist" / "proxy.js"
    words = (str(script), url, "--transport", "http-only", "--allow-http")
    env = {"MCP_REMOTE_CONFIG_DIR": str(tmp_path)}
    return Stdio("node", *words, env=env, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
async def test_mcp_remote(remote, version):
    """The proxy passes on calls, progress, and questions."""
    person = Person()
    seen = []
    with trio.fail_after(PATIENCE):
        async with connect(remote, version=version, handler=person) as client:
            assert client.protocol_version == version
            tools = {tool.name for tool in await client.list_tools()}
            assert "test_simple_text" in tools
            result = await client.call_tool("test_tool_with_progress", progress=seen.append)
            assert texts(result) == ["Progress reported"]
            answer = await client.call_tool("test_elicitation", {"message": "Who?"})
            assert not answer.is_error
            assert person.asked[0]["message"] == "Who?"
    assert [each.progress for each in seen] == [0, 50, 100]


# The Inspector


INSPECTIONS = {
    "tools/list": ([], lambda found: found["tools"][0]["name"], "test_simple_text"),
    "tools/call": (
        ["--tool-name", "test_simple_text"],
        lambda found: found["content"][0]["text"],
        "This is a simple text response for testing.",
    ),
    "resources/list": ([], lambda found: "test://static-text" in str(found), True),
    "resources/read": (
        ["--uri", "test://static-text"],
        lambda found: found["contents"][0]["text"],
        "This is the content of the static text resource.",
    ),
    "resources/templates/list": ([], lambda found: "test://template" in str(found), True),
    "prompts/list": ([], lambda found: "test_simple_prompt" in str(found), True),
    "prompts/get": (
        ["--prompt-name", "test_simple_prompt"],
        lambda found: found["messages"][0]["role"],
        "user",
    ),
    "logging/setLevel": (["--log-level", "debug"], lambda found: found, {}),
}


@pytest.mark.parametrize("method", INSPECTIONS)
def test_the_inspector(node_package, url, method):
    """Each method of its command line works."""
    package = node_package("@modelcontextprotocol/inspector")
    words, look, expected = INSPECTIONS[method]
    script = package.parents[1] / ".bin" / "mcp-inspector"
    command = ["node", str(script), "--cli", url, "--transport", "http", "--method", method, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert look(json.loads(done.stdout)) == expected
