"""A client with almost no cost: requests encoded beforehand, raw pipes, answers checked later."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ._peers import LEGACY
from ._process import Child, Run, check_answers, clocked

CHUNK = 1 << 16

ARGUMENTS = {"text": "hello bench", "repeat": 2, "mode": "upper"}
ECHOED = b"HELLO BENCHHELLO BENCH"
CLIENT = {"name": "bench", "version": "1"}


def encode(
    era: str,
    method: str,
    params: dict[str, Any],
    identifier: int | None,
    capabilities: dict[str, Any] | None = None,
) -> bytes:
    """Encode a message as one line.

    Args:
        era: The revision: 2026-07-28 wants its `_meta` in every request.
        method: The method.
        params: Its params.
        identifier: Its id; None for a notification.
        capabilities: What this client can do, for 2026-07-28.
    """
    if era != LEGACY:
        prefix = "io.modelcontextprotocol/"
        declared = capabilities or {}
        meta = {"protocolVersion": era, "clientInfo": CLIENT, "clientCapabilities": declared}
        params = {**params, "_meta": {prefix + key: value for key, value in meta.items()}}
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if identifier is not None:
        message["id"] = identifier
    message |= {"method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Process(Child):
    """A server with a pipe to its stdin and one from its stdout."""

    def __init__(self, command: list[str]) -> None:
        super().__init__(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._to = self.process.stdin.fileno()
        self._from = self.process.stdout.fileno()

    def end(self) -> None:
        """Close its stdin, which ends it."""
        self.process.stdin.close()  # type: ignore[union-attr]

    def send(self, data: bytes | memoryview) -> None:
        """Write everything."""
        while data:
            data = data[os.write(self._to, data) :]

    def receive(self) -> bytes:
        """Read what is there; raises RuntimeError at the end."""
        chunk = os.read(self._from, CHUNK)
        if not chunk:
            raise RuntimeError(f"the server ended: {self.last_words()}")
        return chunk

    def open(self, era: str, capabilities: dict[str, Any] | None = None) -> float:
        """Shake hands in an era.

        Args:
            era: The revision.
            capabilities: What this client can do, for 2025-11-25.

        Returns:
            Seconds from the start of the process to its first answer.

        Raises:
            RuntimeError: It does not speak that revision.
        """
        params: dict[str, Any] = {}
        if era == LEGACY:
            declared = capabilities or {}
            params = {"protocolVersion": era, "capabilities": declared, "clientInfo": CLIENT}
        method = "initialize" if era == LEGACY else "server/discover"
        answer = self.ask(encode(era, method, params, 0))
        took = time.perf_counter() - self.started
        if era.encode() not in answer or b'"result"' not in answer:
            raise RuntimeError(f"does not speak {era} over stdio")
        if era == LEGACY:
            self.send(encode(era, "notifications/initialized", {}, None))
        return took

    def ask(self, line: bytes) -> bytes:
        """Send one request and return its answer."""
        self.send(line)
        answer = b""
        while not answer.endswith(b"\n"):
            answer += self.receive()
        return answer


@contextmanager
def started(command: list[str]) -> Iterator[Process]:
    """Start a server for as long as the block runs."""
    process = Process(command)
    try:
        yield process
    finally:
        process.close()


@dataclass
class Load:
    """Requests of one kind.

    Attributes:
        window: How many are in flight at any time.
        expected: What stands in every answer.
        whole: Whether every answer is looked at. Otherwise, where answers are too large to be
            kept, the last one is, and all must have its length.
        capabilities: What this client can do, for 2026-07-28.
    """

    process: Process
    era: str
    method: str
    params: dict[str, Any]
    window: int
    expected: bytes
    whole: bool = True
    capabilities: dict[str, Any] | None = None

    def run(self, count: int) -> Run:
        """Send as many requests and wait for their answers."""
        ids = self.process.ids(count)
        requests = b"".join(
            encode(self.era, self.method, self.params, i, self.capabilities) for i in ids
        )
        exchange = partial(self._exchange, requests, count)
        run, (chunks, length) = clocked(self.process.cpu, count, exchange)
        self._check(b"".join(chunks), length, ids)
        return run

    def _exchange(self, requests: bytes, count: int) -> tuple[list[bytes], int]:
        """Answer by answer, send one more; returns what came (or its end), and its length."""
        send, receive, whole = self.process.send, self.process.receive, self.whole
        size, view = len(requests) // count, memoryview(requests)
        sent = min(self.window, count)
        send(view[: sent * size])
        answered = length = 0
        chunks: list[bytes] = []
        while answered < count:
            chunk = receive()
            length += len(chunk)
            chunks.append(chunk)
            done = chunk.count(b"\n")
            if done:
                answered += done
                more = min(sent + done, count)
                send(view[sent * size : more * size])
                sent = more
                if not whole:
                    del chunks[:-16]
        return chunks, length

    def _check(self, received: bytes, length: int, ids: range) -> None:
        lines = received.splitlines()
        if not self.whole:
            if self.expected not in lines[-1] or length != (len(lines[-1]) + 1) * len(ids):
                raise RuntimeError(f"unexpected answer: {lines[-1][:200]!r}")
            return
        check_answers(lines, self.expected, ids)
