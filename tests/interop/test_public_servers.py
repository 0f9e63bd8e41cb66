"""Our clients for trio, asyncio and plain code drive servers that anybody may install."""

import asyncio
import importlib.util
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio

from noizu_mcp import Stdio, SyncClient, aio, connect

from .public_servers import PNG, SERVERS, Step

#: Seconds for the first answer of a server: a busy machine may take longer to start one.
PATIENCE = 120


def on_trio(target: Stdio | str, version: str, steps: Sequence[Step]) -> list[Any]:
    async def main() -> list[Any]:
        with trio.fail_after(PATIENCE):
            async with connect(target, version=version, probe_timeout=PATIENCE) as client:
                return [await attempt(getattr(client, name)(**given)) for name, given in steps]

    return trio.run(main)


def on_asyncio(target: Stdio | str, version: str, steps: Sequence[Step]) -> list[Any]:
    async def main() -> list[Any]:
        async with aio.connect(target, version=version, probe_timeout=PATIENCE) as client:
            return [await attempt(getattr(client, name)(**given)) for name, given in steps]

    return asyncio.run(main())


async def attempt(work: Any) -> Any:
    try:
        return await work
    except Exception as error:
        return error


def without_a_loop(target: Stdio | str, version: str, steps: Sequence[Step]) -> list[Any]:
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
    """Serve a page; gives its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a repository, a note and a picture."""
    (tmp_path / "note.txt").write_text("one\n", encoding="utf-8")
    (tmp_path / "dot.png").write_bytes(PNG)
    for words in ("init -q", "config user.name Ann", "config user.email ann@example.com"):
        subprocess.run(["git", "-C", str(tmp_path), *words.split()], check=True)
    return tmp_path


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("name", "version"),
    [(name, version) for name, server in SERVERS.items() for version in server.versions],
)
def test_a_server_from_a_registry(
    name: str,
    version: str,
    client: str,
    folder: Path,
    page: str,
    node_package: Callable[[str], Path],
) -> None:
    """Each client sees the same: lists, all kinds of content, refusals, timeouts."""
    server = SERVERS[name]
    package = None
    if server.package.startswith("@"):
        package = node_package(server.package)
    elif importlib.util.find_spec(server.package) is None:
        pytest.skip(f"{server.package} is not installed")
    command = server.command(folder, package)
    server.check(CLIENTS[client](command, version, server.steps(folder, page)), folder)
