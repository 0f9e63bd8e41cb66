"""Calls over stdio: one after the other, and 100 in flight."""

from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Sample, Settings, Target, by_era, ratio_of
from ._peers import ERAS, Peer
from ._pipe import ARGUMENTS, ECHOED, Load, Process
from ._windows import MANY, columns, measure

PARAMS = {"name": "echo", "arguments": ARGUMENTS}
TABLES = by_era("stdio", "A call over stdio", columns("µs/call"))


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for peer in settings.peers.values():
            if era in peer.eras:
                yield Case(table, peer.name, partial(time_calls, peer, era, settings))


def time_calls(peer: Peer, era: str, settings: Settings) -> Sample:
    def load(server: Process, window: int) -> Load:
        return Load(server, era, "tools/call", PARAMS, window, ECHOED)

    return measure(peer.command(3), era, load, settings)


BENCHMARK = Benchmark(
    "stdio",
    cases,
    tuple(
        Target(
            f"{title}, {era}: ≥ {limit} × mcp",
            limit,
            ratio_of(f"stdio {era}", "noizu", key),
            least=True,
        )
        for era in ERAS
        for key, title, limit in (
            ("one_us", "stdio, one after the other", 7),
            ("many_us", f"stdio, {MANY} in flight", 12),
        )
    ),
)
