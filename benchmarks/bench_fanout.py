"""A change of the list of tools, told to 200 clients over HTTP, each with a stream of events."""

import select
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Target, by_era, ratio_of
from ._http import CHUNK, ENDED, HttpServer, listening
from ._peers import ERAS, LEGACY
from ._process import clocked
from ._requests import is_complete, template
from ._setups import Setup, among

CLIENTS = 200
#: The fewest bursts that are measured, and those before, which warm up.
LEAST, WARM_UP = 5, 2
#: Seconds in which everybody must be told.
PATIENCE = 20.0
NOTICE = b"notifications/tools/list_changed"
COLUMNS = (
    Column("first_ms", "ms to the first"),
    Column("median_ms", "to the median"),
    Column("last_ms", "to the last", ranged=True),
    Column("cpu_ms", "CPU ms/burst"),
    Column("client_ms", "client CPU ms", compared=False),
)
TABLES = by_era("fanout", f"One change told to {CLIENTS} clients over HTTP", COLUMNS)


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for setup in among(settings):
            if era in setup.listens:
                yield Case(table, setup.row, partial(time_bursts, setup, era, settings.seconds))


def time_bursts(setup: Setup, era: str, seconds: float) -> Sample:
    """Open the streams once, then measure bursts for a while; the figures are their medians."""
    with listening(setup.command(1, "notices")) as server, ExitStack() as stack:
        streams = [stack.enter_context(_stream(setup, server, era)) for _ in range(CLIENTS)]
        burst = Burst(server, era, streams, stack)
        server.settle()
        for _ in range(WARM_UP):
            burst.run()
        samples: list[Sample] = []
        end = time.perf_counter() + seconds
        while len(samples) < LEAST or time.perf_counter() < end:
            samples.append(burst.run())
    return {key: statistics.median(each[key] for each in samples) for key in samples[0]}


def _stream(setup: Setup, server: HttpServer, era: str) -> socket.socket:
    """Open the stream of one more client: a session's with GET, or a listen request."""
    if era == LEGACY:
        session, _ = server.open(era)
        if setup.joins:
            server.call(era, "join", session)
        return server.standing(session or "")
    params = {"notifications": {"toolsListChanged": True}}
    request = template(server.port, era, "subscriptions/listen", params, None)
    return server.stream(request.fill(server.ids(1)[0]), until=b"acknowledged")


class Burst:
    """Calls the tool that changes the list, and waits until everybody was told.

    Args:
        server: The server.
        era: The revision.
        streams: Of those who are told.
        stack: Closes what this opens.
    """

    def __init__(
        self, server: HttpServer, era: str, streams: Sequence[socket.socket], stack: ExitStack
    ) -> None:
        session, _ = server.open(era)
        params = {"name": "bump", "arguments": {}}
        self._server = server
        self._request = template(server.port, era, "tools/call", params, session)
        self._caller = stack.enter_context(server.connect())
        self._streams = {each.fileno(): each for each in streams}
        self._epoll = stack.enter_context(select.epoll())
        for each in streams:
            each.setblocking(False)
            self._epoll.register(each, select.EPOLLIN)

    def run(self) -> Sample:
        """Do it once.

        Returns:
            Its figures; the processor time is also that of what the server does afterwards.

        Raises:
            RuntimeError: Somebody was not told.
        """
        cpu, request = self._server.cpu(), self._request.fill(self._server.ids(1)[0])
        run, told = clocked(self._server.cpu, 1, partial(self._change, request))
        # That takes longer than the time in which a server may merge changes.
        self._server.settle()
        return {
            "first_ms": told[0] * 1e3,
            "median_ms": statistics.median(told) * 1e3,
            "last_ms": told[-1] * 1e3,
            "cpu_ms": (self._server.cpu() - cpu) * 1e3,
            "client_ms": run.client_us / 1e3,
        }

    def _change(self, request: bytes) -> list[float]:
        """Make one change; returns the seconds after which each client had been told of it."""
        began = time.perf_counter()
        told: list[float] = []
        waiting = dict.fromkeys(self._streams, b"")
        self._caller.sendall(request)
        while waiting and time.perf_counter() - began < PATIENCE:
            for number, _ in self._epoll.poll(1):
                data = self._streams[number].recv(CHUNK)
                if not data:
                    raise RuntimeError(f"{ENDED}: {self._server.last_words()}")
                if number in waiting:
                    waiting[number] += data
                    if NOTICE in waiting[number]:
                        del waiting[number]
                        told.append(time.perf_counter() - began)
        if waiting:
            raise RuntimeError(f"{len(told)} of {len(self._streams)} clients were told")
        self._finish()
        return told

    def _finish(self) -> None:
        answer = b""
        while not is_complete(answer):
            chunk = self._caller.recv(CHUNK)
            answer += chunk
            if not chunk:
                raise RuntimeError(f"{ENDED}: {self._server.last_words()}")
        if b"bumped" not in answer:
            raise RuntimeError(f"unexpected answer: {answer[:200]!r}")


BENCHMARK = Benchmark(
    "fanout",
    cases,
    tuple(
        Target(
            f"a change told to the last of {CLIENTS} clients, {era}: ≥ 4.5 × mcp",
            4.5,
            ratio_of(f"fanout {era}", "noizu", "last_ms"),
            least=True,
        )
        for era in ERAS
    ),
)
