"""The peers that are measured, and the command that starts each."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVERS = Path(__file__).resolve().parent / "servers"
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
ERAS = (LEGACY, MODERN)


class Unavailable(RuntimeError):
    """A peer cannot be measured here; the text says what is missing."""


@dataclass(frozen=True)
class Peer:
    """A framework, or a yardstick.

    Attributes:
        name: Its row in the tables.
        eras: The protocol revisions that it is measured with.
        version: Returns its version; raises Unavailable.
        command: Takes arguments of the server and returns the command that starts it.
        python: The interpreter that has it; None if it is not in Python.
    """

    name: str
    eras: tuple[str, ...]
    version: Callable[[], str]
    command: Callable[[int], list[str]]
    python: str | None = None


def environment() -> dict[str, str]:
    """Return the environment of what is measured: this checkout first, no notices of updates."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    kept = {**os.environ, "PYTHONPATH": path, "FASTMCP_CHECK_FOR_UPDATES": "off"}
    # A package that is installed has its bytecode: without it, import is mostly compilation.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept


def python_for(name: str) -> str:
    """Return the interpreter for a peer: `NOIZU_MCP_BENCH_PYTHON_<PEER>`, or the one running."""
    return os.environ.get(f"NOIZU_MCP_BENCH_PYTHON_{name.upper()}", sys.executable)


@cache
def package_version(python: str, package: str) -> str:
    """Return the version of a Python package; raises Unavailable if it is not installed."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=False, env=environment()
    )
    if done.returncode != 0:
        raise Unavailable(f"{package} is not installed: pip install -e '.[bench]'")
    return done.stdout.strip()


@cache
def node_version() -> str:
    """Return the version of Node; raises Unavailable."""
    node = shutil.which("node")
    if node is None:
        raise Unavailable("node is not installed")
    return subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout


def node_modules() -> Path:
    """Return the folder of the Node packages."""
    configured = os.environ.get("NOIZU_MCP_NODE_MODULES")
    return Path(configured) if configured else ROOT / "benchmarks" / "ts" / "node_modules"


def node_package_version(package: str) -> str:
    """Return the version of a Node package; raises Unavailable."""
    node_version()
    manifest = node_modules() / package / "package.json"
    if not manifest.is_file():
        raise Unavailable(f"{package} is not installed: npm install --prefix benchmarks/ts")
    return str(json.loads(manifest.read_text(encoding="utf-8"))["version"])


@cache
def _copied() -> tempfile.TemporaryDirectory[str]:
    """Copy the Node servers next to a link to the packages: Node looks there and nowhere else."""
    folder = tempfile.TemporaryDirectory(prefix="noizu-mcp-bench-")
    for script in SERVERS.glob("*.mjs"):
        shutil.copy(script, folder.name)
    (Path(folder.name) / "node_modules").symlink_to(node_modules().resolve())
    return folder


def script_folder() -> Path:
    """Return the folder from which Node servers run."""
    return Path(_copied().name)


def _python_peer(name: str, package: str, eras: tuple[str, ...] = ERAS) -> Peer:
    python = python_for(name)

    def version() -> str:
        return package_version(python, package)

    def command(tools: int) -> list[str]:
        version()
        return [python, str(SERVERS / f"serve_{name}.py"), str(tools)]

    return Peer(name, eras, version, command, python)


def _node_peer(name: str, package: str, eras: tuple[str, ...]) -> Peer:
    def version() -> str:
        return node_package_version(package)

    def command(tools: int) -> list[str]:
        version()
        return ["node", str(script_folder() / f"serve_{name}.mjs"), str(tools)]

    return Peer(name, eras, version, command)


def offering(peer: Peer, watched: int = 1) -> list[str]:
    """Return the command of a server with resources, prompts and questions.

    Args:
        peer: One of `OFFERING`.
        watched: How many resources a call of its tool `touch` changes.

    Raises:
        Unavailable: It is not installed.
    """
    peer.version()
    return [peer.python or "", str(SERVERS / f"offer_{peer.name}.py"), str(watched)]


#: Those that have such a server.
OFFERING = ("noizu", "mcp")

#: In the order of the tables. `trio` is no framework: a loop that answers by hand, a task for each
#: request, which is about the least that a server on trio can cost.
PEERS = {
    peer.name: peer
    for peer in (
        _python_peer("noizu", "noizu-mcp"),
        _python_peer("mcp", "mcp"),
        _python_peer("fastmcp", "fastmcp"),
        _node_peer("ts1", "@modelcontextprotocol/sdk", (LEGACY,)),
        _node_peer("ts2", "@modelcontextprotocol/server", ERAS),
        _python_peer("trio", "trio"),
    )
}
