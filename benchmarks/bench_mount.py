"""A call of a tool in memory, directly and through a mount, each against the same package."""

from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Table, Target, ratio_of
from ._peers import ERAS, Peer
from ._script import sample

COLUMNS = (Column("wall_us", "µs/call", ranged=True), Column("cpu_us", "CPU µs/call"))
PEERS = ("noizu", "fastmcp")
#: A table for each package and revision: the base is its own server without a mount.
TABLES = {
    (peer, era): Table(
        f"mount {peer} {era}", f"A call through a mount, {peer}, {era}", COLUMNS, base="direct"
    )
    for peer in PEERS
    for era in ERAS
}


def cases(settings: Settings) -> Iterator[Case]:
    for (name, era), table in TABLES.items():
        for peer in settings.among((name,)):
            for way in ("direct", "mounted"):
                yield Case(table, way, partial(time_calls, peer, way, era, settings.seconds))


def time_calls(peer: Peer, way: str, era: str, seconds: float) -> Sample:
    peer.version()
    return sample(peer.python or "", "loop_mount.py", peer.name, way, era, seconds)


BENCHMARK = Benchmark(
    "mount",
    cases,
    tuple(
        Target(
            f"call through a mount, {era}: ≥ 0.9 × without",
            0.9,
            ratio_of(f"mount noizu {era}", "mounted", "cpu_us"),
            least=True,
        )
        for era in ERAS
    ),
)
