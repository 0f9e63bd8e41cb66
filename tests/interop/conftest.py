"""Starts the drivers of the official clients, and finds the packages that they need."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCRIPTS = HERE / "ts"
INSTALL = f"npm install --no-package-lock --ignore-scripts --prefix {SCRIPTS.relative_to(ROOT)}"

#: Seconds for a driver with all its connections: it fails, it does not hang.
PATIENCE = 90

#: Which client needs which file or package.
DRIVERS = {
    "python": "mcp",
    "typescript-2": "@modelcontextprotocol/client",
    "typescript-1": "@modelcontextprotocol/sdk",
}
PROGRAMS = {
    "typescript-2": SCRIPTS / "driver_v2.mjs",
    "typescript-1": SCRIPTS / "driver_v1.mjs",
}


def node_modules(package: str) -> Path:
    """Find the folder of the Node packages, or skip."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    configured = os.environ.get("NOIZU_MCP_NODE_MODULES")
    folder = Path(configured) if configured else SCRIPTS / "node_modules"
    if not (folder / package / "package.json").is_file():
        pytest.skip(f"{package} is not in {folder.name}: {INSTALL}, or set NOIZU_MCP_NODE_MODULES")
    return folder


@pytest.fixture(scope="session")
def node_command() -> Callable[[str, str], tuple[list[str], dict[str, str]]]:
    """Make the command line and the environment of a script that needs a Node package."""

    def command(script: str, package: str) -> tuple[list[str], dict[str, str]]:
        folder = node_modules(package)
        return ["node", str(SCRIPTS / script)], {"NOIZU_MCP_NODE_MODULES": str(folder)}

    return command


@pytest.fixture(scope="session")
def serve_command() -> Callable[[Path, str], list[str]]:
    """Make the command line that serves a class in a file, as users write it."""

    def command(path: Path, server: str) -> list[str]:
        return [sys.executable, "-m", "noizu_mcp", "run", f"{path}:{server}"]

    return command


@pytest.fixture(scope="session")
def drive() -> Callable[..., dict[str, Any]]:
    """Run scenarios with one official client, in each of several modes; returns its report."""

    def run(
        client: str,
        modes: Sequence[dict[str, str]],
        scenarios: Sequence[dict[str, Any]],
        command: Sequence[str],
        journals: Path,
    ) -> dict[str, Any]:
        environment = dict(os.environ)
        if client == "python":
            if importlib.util.find_spec("mcp") is None:
                pytest.skip("the package mcp is not installed")
            program = [sys.executable, str(HERE / "driver_python.py")]
        else:
            environment["NOIZU_MCP_NODE_MODULES"] = str(node_modules(DRIVERS[client]))
            program = ["node", str(PROGRAMS[client])]
        task = {
            "modes": list(modes),
            "scenarios": list(scenarios),
            "command": list(command),
            "journals": str(journals),
        }
        done = subprocess.run(
            [*program, json.dumps(task)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        sys.stderr.write(done.stderr)
        return json.loads(done.stdout)

    return run
