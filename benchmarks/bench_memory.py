"""A call between a client and a server in one process."""

from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Table, Target, ratio_of
from ._peers import LEGACY, MODERN, Peer
from ._script import sample

TABLES = {
    era: Table(
        f"memory {era}",
        f"A call in memory, {era}",
        (Column("wall_us", "µs/call", ranged=True), Column("cpu_us", "CPU µs/call")),
    )
    for era in (LEGACY, MODERN)
}
#: Those with a client of their own, and the yardstick, which is the same in both eras.
PEERS = ("noizu", "mcp", "fastmcp", "trio")


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for name in PEERS:
            if name in settings.peers:
                run = partial(time_calls, settings.peers[name], era, settings.seconds)
                yield Case(table, name, run)


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
        for era in (LEGACY, MODERN)
    ),
)
