"""Our clients for trio, asyncio and blocking code with public servers."""

import asyncio
import importlib.util
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio

from noizu_mcp import Stdio, SyncClient, aio, connect

from .public_servers import PNG, SERVERS, Step

#: Seconds for the first answer of a server: starting one may take long on a busy machine.
PATIENCE = 120


def on_trio(target: Stdio | str, version: str | None, steps: Sequence[Step]) -> list[Any]:
    async def main() -> list[Any]:
        with trio.fail_after(PATIENCE):
            async with connect(target, version=version, probe_timeout=PATIENCE) as client:
                return [await attempt(getattr(client, name)(**given)) for name, given in steps]

    return trio.run(main)


def on_asyncio(target: Stdio | str, version: str | None, steps: Sequence[Step]) -> list[Any]:
    async def main() -> list[Any]:
        async with aio.connect(target, version=version, probe_timeout=PATIENCE) as client:
            return [await attempt(getattr(client, name)(**given)) for name, given in steps]

    return asyncio.run(main())


async def attempt(work: Any) -> Any:
    try:
        return await work
    except Exception as error:
        return error


def without_a_loop(target: Stdio | str, version: str | None, steps: Sequence[Step]) -> list[Any]:
    with SyncClient(target, version=version, probe_timeout=PATIENCE) as client:
        found = []
        for name, given in steps:
            try:
                found.append(getattr(client, name)(**given))
            except Exception as error:
                found.append(error)
        return found


CLIENTS = {"trio": on_trio, "asyncio": on_asyncio, "sync": without_a_loop}


class Page(BaseHTTPRequestHandler):
    """One page, which robots may read."""

    def do_GET(self) -> None:
        found = self.path in ("/", "/robots.txt")
        text = "<html><body><p>Plums are ripe in August, and sweet.</p></body></html>"
        body = b"" if self.path == "/robots.txt" else text.encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """Serve a page; yields its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with a repository, a note and a picture."""
    (tmp_path / "note.txt").write_text("one\n", encoding="utf-8")
    (tmp_path / "dot.png").write_bytes(PNG)
    for words in ("init -q", "config user.name Ann", "config user.email ann@example.com"):
        subprocess.run(["git", "-C", str(tmp_path), *words.split()], check=True)
    return tmp_path


def command_of(name: str, folder: Path, node_package: Callable[[str], Path]) -> Stdio:
    """Return the command of a server, or skip."""
    server = SERVERS[name]
    package = None
    if server.package.startswith("@"):
        package = node_package(server.package)
    elif importlib.util.find_spec(server.package) is None:
        pytest.skip(f"{server.package} is not installed")
    return server.command(folder, package)


@pytest.mark.parametrize(
    ("name", "version", "client"),
    [
        # Each in its newest revision; `test_foreign_servers.py` tests the differences.
        *((name, SERVERS[name].versions[-1], "trio") for name in SERVERS),
        *((name, None, client) for name in ("memory", "time") for client in ("asyncio", "sync")),
    ],
)
def test_a_server_from_a_registry(
    name: str,
    version: str | None,
    client: str,
    folder: Path,
    page: str,
    node_package: Callable[[str], Path],
) -> None:
    """Each client gets the same lists, content, refusals, progress and timeouts."""
    command, server = command_of(name, folder, node_package), SERVERS[name]
    server.check(CLIENTS[client](command, version, server.steps(folder, page)), folder)


@contextmanager
def over_http(name: str, node_package: Callable[[str], Path], folder: Path) -> Iterator[str]:
    """Serve over HTTP on a local port; yields the URL."""
    command = command_of(name, folder, node_package)
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    if name == "everything":
        words = [command.program(), command.args[0], "streamableHttp"]
    else:
        words = [command.program(), *command.args, f"{port}"]
    environment = {**command.environment(), "PORT": f"{port}"}
    with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            until_it_listens(process, port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(20 * PATIENCE):
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"the server ended: {process.wait(0.05)}")
    raise AssertionError("the server does not listen")


@pytest.mark.parametrize(
    ("name", "version"),
    [(name, SERVERS[name].versions[0]) for name in ("everything", "fastmcp")],
)
def test_a_server_over_http(
    name: str, version: str, folder: Path, node_package: Callable[[str], Path]
) -> None:
    """Each client gets the same over HTTP as over stdio."""
    server = SERVERS[name]
    with over_http(name, node_package, folder) as url:
        for drive in CLIENTS.values():
            (folder / "progress.txt").unlink(missing_ok=True)
            server.check(drive(url, version, server.steps(folder, "")), folder)
