"""A call in memory behind policies, of a mounted server, and of a remote one."""

import statistics
from collections.abc import Callable, Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Results, Sample, Settings, Target, by_era
from ._peers import ERAS, PEERS
from ._script import sample

#: Rows, each with the peer that it is about. The first of each peer is the tool alone.
ROWS = {
    "noizu": "noizu",
    "noizu, five policies": "noizu",
    "noizu, Mount": "noizu",
    "noizu, Remote": "noizu",
    "fastmcp": "fastmcp",
    "fastmcp, mount": "fastmcp",
    "fastmcp, proxy": "fastmcp",
}
COLUMNS = (Column("cpu_us", "CPU µs/call", ranged=True), Column("wall_us", "µs/call"))
TABLES = by_era("compose", "A call in memory, composed", COLUMNS, base="fastmcp, mount")


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for row, peer in ROWS.items():
            if peer in settings.peers:
                yield Case(table, row, partial(time_calls, row, peer, era, settings.seconds))


def time_calls(row: str, name: str, era: str, seconds: float) -> Sample:
    peer = PEERS[name]
    peer.version()
    return sample(peer.python or "", "loop_compose.py", row, era, seconds)


def above(era: str, row: str) -> Callable[[Results], float | None]:
    """Return what takes the microseconds that a row adds to the tool alone."""

    def measure(results: Results) -> float | None:
        composed, alone = (
            results.figures(TABLES[era].name, each, "cpu_us") for each in (row, "noizu")
        )
        more = [value - alone[number] for number, value in composed.items() if number in alone]
        return statistics.median(more) if more else None

    return measure


#: The most that a row may add to a call, in microseconds; that of a remote server is one call more.
LIMITS = {"noizu, five policies": 10, "noizu, Mount": 10}
BENCHMARK = Benchmark(
    "compose",
    cases,
    tuple(
        Target(f"CPU above a call, {row}, {era}: ≤ {most} µs", most, above(era, row))
        for era in ERAS
        for row, most in LIMITS.items()
    ),
)
