"""Fixtures that start the drivers of the official clients, and find their packages."""

import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from noizu_mcp import Stdio

from .reports import Mode

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCRIPTS = HERE / "ts"
INSTALL = f"npm install --no-package-lock --ignore-scripts --prefix {SCRIPTS.relative_to(ROOT)}"

#: Seconds for a driver with all its connections; a hang becomes a failure.
PATIENCE = 300

#: The drivers of the TypeScript clients, and the packages that they need.
DRIVERS = {
    "typescript-2": ("driver_v2.mjs", "@modelcontextprotocol/client"),
    "typescript-1": ("driver_v1.mjs", "@modelcontextprotocol/sdk"),
}


def node_modules(package: str) -> Path:
    """Return the folder of the Node packages, or skip."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    configured = os.environ.get("NOIZU_MCP_NODE_MODULES")
    folder = Path(configured) if configured else SCRIPTS / "node_modules"
    if not (folder / package / "package.json").is_file():
        pytest.skip(f"{package} is not in {folder.name}: {INSTALL}, or set NOIZU_MCP_NODE_MODULES")
    return folder


def need_mcp() -> None:
    """Skip without the official Python package."""
    if importlib.util.find_spec("mcp") is None:
        pytest.skip("the package mcp is not installed")


@pytest.fixture(scope="session")
def node_command() -> Callable[[str, str], tuple[list[str], dict[str, str]]]:
    """Make the command line and the environment of a script that needs a Node package."""

    def command(script: str, package: str) -> tuple[list[str], dict[str, str]]:
        folder = node_modules(package)
        return ["node", str(SCRIPTS / script)], {"NOIZU_MCP_NODE_MODULES": str(folder)}

    return command


@pytest.fixture(scope="session")
def node_package() -> Callable[[str], Path]:
    """Return the folder of an installed Node package, or skip."""
    return lambda package: node_modules(package) / package


@pytest.fixture(scope="session")
def foreign(
    node_command: Callable[[str, str], Any],
) -> Callable[[str, str, Mapping[str, tuple[str, str]]], Stdio]:
    """Make the command of a server that is written with an official package.

    Takes its name, the file of the one in Python, and for each of those in TypeScript the script
    and the package that it needs.
    """

    def command(name: str, python: str, scripts: Mapping[str, tuple[str, str]]) -> Stdio:
        if name in scripts:
            words, env = node_command(*scripts[name])
            return Stdio(*words, env=env)
        need_mcp()
        return Stdio(sys.executable, str(HERE / python))

    return command


@pytest.fixture(scope="session")
def serve_command() -> Callable[[str], list[str]]:
    """Make the command line that serves `path/to/file.py:Server`, as users write it."""

    def command(target: str) -> list[str]:
        return [sys.executable, "-m", "noizu_mcp", "run", target]

    return command


@pytest.fixture(scope="session")
def serve_url(
    serve_command: Callable[[str], list[str]],
) -> Iterator[Callable[[str, str], str]]:
    """Serve `path/to/file.py:Server` over HTTP, with a journal; returns its URL.

    At the end each server must exit with status 0.
    """
    running: list[subprocess.Popen[str]] = []

    def serve(target: str, journal: str) -> str:
        process = subprocess.Popen(
            [*serve_command(target), "--http", "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "INTEROP_JOURNAL": journal},
            cwd=ROOT,
        )
        running.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"serves at (http://\S+)", line)
        assert found is not None, line + process.communicate()[1]
        return found[1]

    yield serve
    for process in running:
        process.terminate()
    said = [process.communicate(timeout=PATIENCE)[1] for process in running]
    assert [process.returncode for process in running] == [0] * len(running), said


@pytest.fixture(scope="session")
def where(
    serve_command: Callable[[str], list[str]], serve_url: Callable[[str, str], str]
) -> Callable[[str, str, str], dict[str, Any]]:
    """Describe the place of a server to a driver: its transport, its target, and its journal."""

    def say(transport: str, target: str, journal: str) -> dict[str, Any]:
        if transport == "http":
            return {"url": serve_url(target, journal), "journal": journal}
        return {"command": serve_command(target), "journal": journal}

    return say


@pytest.fixture(scope="session")
def drive() -> Callable[[str, Sequence[dict[str, Any]]], dict[str, Any]]:
    """Run scenarios with one official client, on several connections; returns its report.

    A connection has a `label` under which it is reported; a `kind` of negotiation (`handshake`,
    `pin` or `auto`) and the `version` to ask for; the `command` or the `url` of the server, and the
    file that is its `journal`; and `scenarios`, each with a `name` and a `kind` that all drivers
    know. It may have a log `level`, and say with `answers` whether the client can be asked
    anything: it can.
    """

    def run(client: str, connections: Sequence[dict[str, Any]]) -> dict[str, Any]:
        environment = dict(os.environ)
        if client == "python":
            need_mcp()
            program = [sys.executable, str(HERE / "driver_python.py")]
        else:
            script, package = DRIVERS[client]
            environment["NOIZU_MCP_NODE_MODULES"] = str(node_modules(package))
            program = ["node", str(SCRIPTS / script)]
        done = subprocess.run(
            [*program, json.dumps(connections)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        sys.stderr.write(done.stderr)
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    return run


@pytest.fixture(scope="session")
def folder_of_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of this run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if hasattr(request.config, "workerinput") else base


@pytest.fixture(scope="module")
def run_once(
    request: pytest.FixtureRequest, drive: Callable[..., dict[str, Any]], folder_of_run: Path
) -> Callable[..., dict[str, Any]]:
    """Run a client over a transport once for a module, whichever workers have its tests.

    Takes the client, the transport, and what makes the connections for the folder of the journals
    of the servers. The report has them all beside its own keys.
    """

    def run(
        client: str, transport: str, connections: Callable[[Path], Sequence[dict[str, Any]]]
    ) -> dict[str, Any]:
        folder = folder_of_run / f"{request.module.__name__} {client} {transport}"
        folder.mkdir(exist_ok=True)
        report = folder / "report.json"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not report.exists():
                report.write_text(json.dumps(drive(client, connections(folder))), encoding="utf-8")
        found = json.loads(report.read_text(encoding="utf-8"))
        return {**found, "client": client, "transport": transport, "journals": folder}

    return run


@pytest.fixture(scope="module")
def run_modes(
    run_once: Callable[..., dict[str, Any]],
    where: Callable[[str, str, str], dict[str, Any]],
) -> Callable[..., dict[str, Any]]:
    """Run a client in all its modes over one transport, once for a module; returns its report.

    Takes the client with its transport, the modes of all clients, `path/to/file.py:Server`, and the
    scenarios of each connection.
    """

    def run(
        way: tuple[str, str],
        modes: Mapping[str, Sequence[Mode]],
        target: str,
        scenarios: Sequence[dict[str, Any]],
    ) -> dict[str, Any]:
        client, transport = way

        def connections(folder: Path) -> list[dict[str, Any]]:
            return [
                {
                    **mode,
                    **where(transport, target, str(folder / mode["label"])),
                    "scenarios": scenarios,
                }
                for mode in modes[client]
            ]

        return run_once(client, transport, connections)

    return run
