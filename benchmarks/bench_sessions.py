"""500 idle sessions over HTTP: what each occupies, without and with a GET stream."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Table, Target, median_of
from ._http import HttpServer, listening
from ._peers import LEGACY
from ._setups import Setup, among

SESSIONS = 500
#: Sessions before those that count: what is loaded or allocated once is there by then.
WARM_UP = 50
KIB = 1024
TABLE = Table(
    "sessions",
    f"{SESSIONS} idle sessions, {LEGACY}",
    (
        Column("session_kib", "KiB/session", ranged=True),
        Column("stream_kib", "KiB more with a GET stream", ranged=True),
        Column("open_ms", "ms/handshake"),
        Column("open_cpu_ms", "CPU ms/handshake"),
    ),
)


def cases(settings: Settings) -> Iterator[Case]:
    for setup in among(settings):
        yield Case(TABLE, setup.row, partial(weigh_sessions, setup))


def weigh_sessions(setup: Setup) -> Sample:
    with listening(setup.command(3)) as server, ExitStack() as streams:
        for session in _open(server, WARM_UP):
            server.standing(session).close()
        empty = _kib(server)
        cpu, began = server.cpu(), time.perf_counter()
        sessions = _open(server, SESSIONS)
        wall, cpu = time.perf_counter() - began, server.cpu() - cpu
        held = _kib(server)
        for session in sessions:
            streams.enter_context(server.standing(session))
        streaming = _kib(server)
    return {
        "session_kib": (held - empty) / SESSIONS,
        "stream_kib": (streaming - held) / SESSIONS,
        "open_ms": wall / SESSIONS * 1e3,
        "open_cpu_ms": cpu / SESSIONS * 1e3,
    }


def _open(server: HttpServer, count: int) -> list[str]:
    """Begin as many sessions, each on a connection that is closed again."""
    sessions = [session for session, _ in (server.open(LEGACY) for _ in range(count)) if session]
    if len(set(sessions)) != count:
        raise RuntimeError(f"{len(set(sessions))} of {count} handshakes began a session")
    return sessions


def _kib(server: HttpServer) -> float:
    """Return the KiB that it has allocated once it has nothing left to do."""
    server.settle()
    return server.own_mib() * KIB


BENCHMARK = Benchmark(
    "sessions",
    cases,
    (
        Target("idle session ≤ 4 KiB", 4, median_of("sessions", "noizu", "session_kib")),
        Target("open GET stream ≤ 10 KiB more", 10, median_of("sessions", "noizu", "stream_kib")),
    ),
)
