"""A server in a process of its own: its clock, its memory, its last words, and its end."""

import gc
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ._peers import ROOT, environment

#: Seconds, beside those asked for, until a server is killed that stopped answering.
PATIENCE = 120.0
#: Seconds without work after which a server counts as idle.
STILL = 0.1
#: Seconds for a server to come to rest after an answer, and between two looks whether it has.
TO_REST, LOOK = 2.0, 0.0005
MOST_REQUESTS = 100_000
#: Ids have as many digits each, so that all requests have the same length.
FIRST_ID = 100_000_000
_ID = re.compile(rb'"id": ?(\d+)')

Result = TypeVar("Result")


@dataclass(frozen=True)
class Run:
    """Cost of one run of requests, per request.

    Attributes:
        wall_us: Microseconds on the wall, of client and server together.
        cpu_us: Microseconds of processor time of the server, all its threads.
        client_us: Microseconds of processor time of this client.
    """

    wall_us: float
    cpu_us: float
    client_us: float


class Paced(Protocol):
    """Requests of one kind, of which `window` are in flight at any time."""

    @property
    def window(self) -> int: ...

    def run(self, count: int) -> Run:
        """Send as many requests and wait for their answers."""


class Child:
    """A server that is measured.

    Args:
        command: Starts it.
        popen: More for `subprocess.Popen`: what its stdin and stdout are.

    Attributes:
        process: The process.
        started: When it was started, on `time.perf_counter`.
    """

    def __init__(self, command: list[str], **popen: Any) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.started = time.perf_counter()
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            command, stderr=self._errors, cwd=ROOT, env=environment(), **popen
        )
        self._next_id = FIRST_ID
        self._watchdog = threading.Timer(0, self.process.kill)
        self.watch(PATIENCE)

    def end(self) -> None:
        """Tell it to end."""
        self.process.terminate()

    def close(self) -> None:
        """End the server: as it wants to be told, a signal if that is not enough."""
        self._watchdog.cancel()
        with self.process as process:
            self.end()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        self._errors.close()

    def watch(self, seconds: float) -> None:
        """Kill the server if it has not been closed, or this not been renewed, until then."""
        self._watchdog.cancel()
        self._watchdog = threading.Timer(seconds, self.process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def last_words(self) -> str:
        """Return the last line that it wrote to stderr."""
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        return said[-1] if said else "it said nothing"

    def cpu(self) -> float:
        """Return the processor time of the server so far, in seconds, to the nanosecond.

        The clock of a thread is brought up to date when it stops to run. After an answer it still
        runs, and its clock would not show the last milliseconds, so this waits until the
        server sleeps.
        """
        end, total = time.perf_counter() + TO_REST, 0.0
        while any(map(_runs, self._family())) and time.perf_counter() < end:
            time.sleep(LOOK)
        for pid in self._family():
            with suppress(OSError):  # it has ended meanwhile
                # The clock of another process, as clock_getcpuclockid(3) makes it on Linux.
                total += time.clock_gettime((~pid << 3) | 2)
        return total

    def rss_mib(self) -> float:
        """Return the memory that the server occupies."""
        return self._pages(lambda resident, _: resident)

    def own_mib(self) -> float:
        """Return the memory that it occupies without pages of files.

        The kernel may take those back at any time, so only the rest tells what was allocated.
        """
        return self._pages(lambda resident, of_files: resident - of_files)

    def _pages(self, count: Callable[[int, int], int]) -> float:
        pages = 0
        for pid in self._family():
            with suppress(OSError):
                found = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
                pages += count(int(found[1]), int(found[2]))
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def _family(self) -> Iterator[int]:
        """Iterate over the process and what it has started."""
        waiting = [self.process.pid]
        while waiting:
            pid = waiting.pop()
            yield pid
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                with suppress(OSError):
                    waiting += map(int, children.read_text(encoding="ascii").split())

    def settle(self, seconds: float = 5.0) -> None:
        """Wait until it has nothing left to do: at least `STILL`, at most so many seconds."""
        end, before = time.perf_counter() + seconds, -1.0
        while (now := self.cpu()) - before > 1e-3 and time.perf_counter() < end:
            before = now
            time.sleep(STILL)

    def pace(self, load: Paced, warm_up: float, seconds: float) -> Run:
        """Warm up, then run a load for a while; both in seconds."""
        self.watch(PATIENCE + 10 * (warm_up + seconds))
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


def _runs(pid: int) -> bool:
    """Tell if a thread of a process runs or waits for a processor."""
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):
            # The name before the state may contain anything.
            if path.read_bytes().rpartition(b") ")[2][:1] == b"R":
                return True
    return False


def clocked(cpu: Callable[[], float], count: int, work: Callable[[], Result]) -> tuple[Run, Result]:
    """Do something with all clocks running and the collector of this process off.

    Args:
        cpu: The clock of the server.
        count: How many requests it is.
        work: What to do.

    Returns:
        What one request took, and what came of it.
    """
    gc.collect()
    gc.disable()
    try:
        before, own, began = cpu(), time.process_time(), time.perf_counter()
        result = work()
        wall, own = time.perf_counter() - began, time.process_time() - own
        used = cpu() - before
    finally:
        gc.enable()
    return Run(*(total / count * 1e6 for total in (wall, used, own))), result


def check_answers(answers: Iterable[bytes], expected: bytes, ids: range) -> None:
    """Check that each id was answered once, and what stands in each; raises RuntimeError."""
    answered = []
    for answer in answers:
        found = _ID.search(answer)
        if found is None or expected not in answer:
            raise RuntimeError(f"unexpected answer: {answer[:200]!r}")
        answered.append(int(found[1]))
    if sorted(answered) != list(ids):
        raise RuntimeError("some requests were answered twice, or not at all")
