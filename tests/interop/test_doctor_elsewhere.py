"""`noizu-mcp doctor` with servers of other projects has true findings."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noizu_mcp import Stdio
from noizu_mcp.cli import main

# No server of these packages has pages, so cursors are not checked.
CURSOR = ("cursor", "note")
OLD = ("revision", "note")
SCRIPTS = {
    "typescript-2": ("foreign_v2.mjs", "@modelcontextprotocol/server"),
    "typescript-1": ("foreign_v1.mjs", "@modelcontextprotocol/sdk"),
}
#: Version 2 in TypeScript answers `server/discover` in any version.
FINDINGS = {
    "python": {CURSOR},
    "typescript-2": {CURSOR, ("version", "error")},
    "typescript-1": {CURSOR, OLD},
}


def examine(capsys: pytest.CaptureFixture[str], *words: str) -> set[tuple[str, str]]:
    main(["doctor", "--json", "--timeout", "60", *words])
    report = json.loads(capsys.readouterr().out)
    assert len(report["checked"]) > 15
    return {(each["rule"], each["severity"]) for each in report["findings"]}


@pytest.mark.parametrize("name", FINDINGS)
def test_servers_of_the_official_packages(
    name: str, foreign: Callable[..., Stdio], capsys: pytest.CaptureFixture[str]
) -> None:
    """They have the known findings of their packages, and no others."""
    stdio = foreign(name, "foreign_server.py", SCRIPTS)
    env = [f"{key}={value}" for key, value in stdio.env.items()]
    command = ["env", *env, stdio.command, *stdio.args]

    assert examine(capsys, "--", *command) == FINDINGS[name], shlex.join(command)


def test_the_reference_server(
    node_package: Callable[[str], Path], capsys: pytest.CaptureFixture[Any]
) -> None:
    """It has no finding in its revision; a tool of it is called and checked."""
    script = node_package("@modelcontextprotocol/server-everything") / "dist" / "index.js"
    words = ("--call", "get-structured-content", "location=Chicago")
    found = examine(capsys, *words, "--", "node", str(script), "stdio")

    assert found == {CURSOR, OLD}
