"""A client with almost no cost: requests encoded beforehand, raw pipes, answers checked later."""

import gc
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ._peers import LEGACY, ROOT, environment

#: Seconds, beside those asked for, until a server is killed that stopped answering.
PATIENCE = 120.0
CHUNK = 1 << 16
MOST_REQUESTS = 100_000
#: Ids have as many digits each, so that all requests have the same length.
FIRST_ID = 100_000_000

ARGUMENTS = {"text": "hello bench", "repeat": 2, "mode": "upper"}
ECHOED = b"HELLO BENCHHELLO BENCH"
CLIENT = {"name": "bench", "version": "1"}
_ID = re.compile(rb'"id": ?(\d+)')


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


@dataclass(frozen=True)
class Run:
    """What one run of requests took, per request.

    Attributes:
        wall_us: Microseconds on the wall, of client and server together.
        cpu_us: Microseconds of processor time of the server, all its threads.
        client_us: Microseconds of processor time of this client.
    """

    wall_us: float
    cpu_us: float
    client_us: float


class Process:
    """A server with a pipe to its stdin and one from its stdout."""

    def __init__(self, command: list[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env=environment(),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to = self._process.stdin.fileno()
        self._from = self._process.stdout.fileno()
        self._next_id = FIRST_ID
        self._watchdog = threading.Timer(0, self._process.kill)
        self._watch(PATIENCE)

    def close(self) -> None:
        """End the server: its stdin first, a signal if that is not enough."""
        self._watchdog.cancel()
        with self._process as process:
            process.stdin.close()  # type: ignore[union-attr]
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        self._errors.close()

    def _watch(self, seconds: float) -> None:
        """Kill the server if it has not been closed, or this not been renewed, until then."""
        self._watchdog.cancel()
        self._watchdog = threading.Timer(seconds, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def cpu(self) -> float:
        """Return the processor time of the server so far, in seconds, to the nanosecond."""
        # The clock of another process, as clock_getcpuclockid(3) makes it on Linux.
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def rss_mib(self) -> float:
        """Return the memory that the server occupies."""
        with open(f"/proc/{self._process.pid}/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def send(self, data: bytes | memoryview) -> None:
        """Write everything."""
        while data:
            data = data[os.write(self._to, data) :]

    def receive(self) -> bytes:
        """Read what is there; raises RuntimeError at the end."""
        chunk = os.read(self._from, CHUNK)
        if not chunk:
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(f"the server ended: {said[-1] if said else 'it said nothing'}")
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

    def pace(self, load: "Load", warm_up: float, seconds: float) -> Run:
        """Warm up, then run a load for a while; both in seconds."""
        self._watch(PATIENCE + 10 * (warm_up + seconds))
        count, spent, rate = 2 * load.window, 0.0, 0.0
        while spent < warm_up:
            run = load.run(count)
            spent += count * run.wall_us / 1e6
            rate = 1e6 / run.wall_us
            count = min(MOST_REQUESTS, max(2 * load.window, int(rate * warm_up / 4)))
        return load.run(min(MOST_REQUESTS, max(2 * load.window, int(rate * seconds))))

    def ids(self, count: int) -> range:
        """Return ids that were not used before."""
        self._next_id += count
        return range(self._next_id - count, self._next_id)


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
        gc.collect()
        gc.disable()
        try:
            cpu, own, began = self.process.cpu(), time.process_time(), time.perf_counter()
            chunks, length = self._exchange(requests, count)
            wall = time.perf_counter() - began
            cpu, own = self.process.cpu() - cpu, time.process_time() - own
        finally:
            gc.enable()
        self._check(b"".join(chunks), length, ids)
        return Run(*(total / count * 1e6 for total in (wall, cpu, own)))

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
        for line in lines:
            if self.expected not in line:
                raise RuntimeError(f"unexpected answer: {line[:200]!r}")
        answered = sorted(int(found[1]) for line in lines if (found := _ID.search(line)))
        if answered != list(ids):
            raise RuntimeError("some requests were answered twice, or not at all")
