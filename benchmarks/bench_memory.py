"""A call between a client and a server in one process."""

from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Target, by_era, ratio_of
from ._peers import ERAS, Peer
from ._script import sample

COLUMNS = (Column("wall_us", "µs/call", ranged=True), Column("cpu_us", "CPU µs/call"))
TABLES = by_era("memory", "A call in memory", COLUMNS)
#: Those with a client of their own, and the yardstick, which is the same in both eras.
PEERS = ("noizu", "mcp", "fastmcp", "trio")


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for peer in settings.among(PEERS):
            yield Case(table, peer.name, partial(time_calls, peer, era, settings.seconds))


def time_calls(peer: Peer, era: str, seconds: float) -> Sample:
    peer.version()
    return sample(peer.python or "", "loop_memory.py", peer.name, era, seconds)


BENCHMARK = Benchmark(
    "memory",
    cases,
    tuple(
        Target(
            f"in-memory call, {era}: ≥ 6 × mcp",
            6,
            ratio_of(f"memory {era}", "noizu", "wall_us"),
            least=True,
        )
        for era in ERAS
    ),
)
