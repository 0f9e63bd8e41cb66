"""A server on a port: its start, handshakes and streams."""

import http.client
import itertools
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

from ._peers import LEGACY
from ._pipe import CLIENT, encode
from ._process import Child
from ._requests import HOST, PATH, SESSION, head, headers

#: Seconds until a server must listen, and for one answer.
PATIENCE = 60.0
#: Seconds between two looks at whether it listens.
PAUSE = 0.002
CHUNK = 1 << 16
ENDED = "the server closed a connection"


class HttpServer(Child):
    """A server that listens at a port of this machine.

    Args:
        command: Takes the port and returns what starts it.

    Attributes:
        port: The port.
    """

    def __init__(self, command: Callable[[int], list[str]]) -> None:
        self.port = free_port()
        nothing = subprocess.DEVNULL
        super().__init__(command(self.port), stdin=nothing, stdout=nothing)

    def wait(self) -> None:
        """Wait until it listens; raises RuntimeError if it never does."""
        end = self.started + PATIENCE
        while self.process.poll() is None and time.perf_counter() < end:
            try:
                self.connect().close()
            except ConnectionRefusedError:
                time.sleep(PAUSE)
            else:
                return
        raise RuntimeError(f"the server does not listen: {self.last_words()}")

    def connect(self) -> socket.socket:
        """Open a connection."""
        connection = socket.create_connection((HOST, self.port), PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def open(self, era: str) -> tuple[str | None, float]:
        """Shake hands in an era, on a connection that is closed again.

        Returns:
            The id of the session, if there is one, and the seconds from the start of the process
            to its first answer.

        Raises:
            RuntimeError: It does not speak that revision.
        """
        method = "initialize" if era == LEGACY else "server/discover"
        params: dict[str, Any] = {}
        if era == LEGACY:
            params = {"protocolVersion": era, "capabilities": {}, "clientInfo": CLIENT}
        with closing(http.client.HTTPConnection(HOST, self.port, PATIENCE)) as connection:
            answer, session = post(connection, era, method, params, None)
            took = time.perf_counter() - self.started
            if era.encode() not in answer or b'"result"' not in answer:
                raise RuntimeError(f"does not speak {era} over HTTP: {answer[:200]!r}")
            if era == LEGACY:
                post(connection, era, "notifications/initialized", {}, session, None)
        return session, took

    def call(self, era: str, name: str, session: str | None) -> None:
        """Call a tool that takes no arguments, on a connection of its own."""
        params = {"name": name, "arguments": {}}
        with closing(http.client.HTTPConnection(HOST, self.port, PATIENCE)) as connection:
            answer, _ = post(connection, era, "tools/call", params, session)
        if b'"result"' not in answer or b'"isError":true' in answer:
            raise RuntimeError(f"{name}: {answer[:200]!r}")

    def stream(self, request: bytes, until: bytes = b"\r\n\r\n") -> socket.socket:
        """Open a stream of events.

        Args:
            request: Asks for it.
            until: What comes before it counts as open.

        Raises:
            RuntimeError: It was refused.
        """
        connection = self.connect()
        connection.sendall(request)
        answer = b""
        while until not in answer:
            chunk = connection.recv(CHUNK)
            answer += chunk
            if not chunk or (b"\r\n" in answer and b" 200 " not in answer[:16]):
                connection.close()
                raise RuntimeError(f"a stream was refused: {answer[:200]!r}")
        return connection

    def standing(self, session: str) -> socket.socket:
        """Open the GET stream of a session."""
        fields = {"Accept": "text/event-stream", SESSION: session, "MCP-Protocol-Version": LEGACY}
        return self.stream(head("GET", self.port, fields))


def post(
    connection: http.client.HTTPConnection,
    era: str,
    method: str,
    params: dict[str, Any],
    session: str | None,
    identifier: int | None = 0,
) -> tuple[bytes, str | None]:
    """Send one message; returns the body of the answer and the id of the session it names.

    Raises:
        RuntimeError: It was refused.
    """
    body = encode(era, method, params, identifier)
    connection.request("POST", PATH, body, headers(era, method, params, session))
    response = connection.getresponse()
    answer = response.read()
    if response.status not in {200, 202}:
        raise RuntimeError(f"{method}: {response.status} {answer[:200]!r}")
    return answer, response.headers.get(SESSION)


# Below the ports that the kernel hands out for port 0: until the server listens, no other process
# gets the port. Two processes that look at the same time begin at different ports.
_FIRST: Final = 20_000
_COUNT: Final = 12_000
_STEPS: Final = itertools.count(os.getpid() * 7)


def free_port() -> int:
    """Return a port that nothing listens at."""
    for step in itertools.islice(_STEPS, _COUNT):
        port = _FIRST + step % _COUNT
        with socket.socket() as found, suppress(OSError):
            found.bind((HOST, port))
            return port
    raise RuntimeError("no port is free")


@contextmanager
def listening(command: Callable[[int], list[str]]) -> Iterator[HttpServer]:
    """Start a server and keep it for as long as the block runs."""
    server = HttpServer(command)
    try:
        server.wait()
        yield server
    finally:
        server.close()
