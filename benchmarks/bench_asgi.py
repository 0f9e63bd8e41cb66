"""A call of the ASGI application in its own process: what our code costs without a socket."""

import statistics
from collections.abc import Callable, Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Results, Sample, Settings, Target, by_era
from ._peers import ERAS, LEGACY, MODERN, PEERS
from ._script import sample

RAW = "raw ASGI"
#: Row → whose it is.
ROWS = {"noizu": "noizu", "mcp": "mcp", "mcp, JSON": "mcp", "fastmcp": "fastmcp", RAW: "trio"}
COLUMNS = (Column("cpu_us", "CPU µs/call", ranged=True), Column("wall_us", "µs/call"))
TABLES = by_era("asgi", "A call of the ASGI application, in process", COLUMNS)


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for row, peer in ROWS.items():
            if peer in settings.peers:
                yield Case(table, row, partial(time_calls, row, peer, era, settings.seconds))


def time_calls(row: str, name: str, era: str, seconds: float) -> Sample:
    peer = PEERS[name]
    peer.version()
    return sample(peer.python or "", "loop_asgi.py", row, era, seconds)


def above_raw(era: str) -> Callable[[Results], float | None]:
    """Return what takes the microseconds that our code adds to the raw application's."""

    def measure(results: Results) -> float | None:
        ours, raw = (results.figures(TABLES[era].name, row, "cpu_us") for row in ("noizu", RAW))
        more = [value - raw[number] for number, value in ours.items() if number in raw]
        return statistics.median(more) if more else None

    return measure


LIMITS = {LEGACY: 60, MODERN: 80}
BENCHMARK = Benchmark(
    "asgi",
    cases,
    tuple(
        Target(
            f"CPU of a call above a raw ASGI application, {era}: ≤ {LIMITS[era]} µs",
            LIMITS[era],
            above_raw(era),
        )
        for era in ERAS
    ),
)
