"""`tools/list` of 100 tools over stdio."""

from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Sample, Settings, Target, by_era, ratio_of
from ._peers import ERAS, Peer
from ._pipe import Load, Process
from ._windows import columns, measure

TOOLS = 100
#: Lists in flight. With one, the client's own work on an answer of 35 kB is part of the time; with
#: so many it happens beside the server's.
MANY = 16
TABLES = by_era("list", f"tools/list of {TOOLS} over stdio", columns("µs/list", MANY))


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for peer in settings.peers.values():
            if era in peer.eras:
                yield Case(table, peer.name, partial(time_lists, peer, era, settings))


def time_lists(peer: Peer, era: str, settings: Settings) -> Sample:
    def load(server: Process, window: int) -> Load:
        last = b'"t%03d"' % (TOOLS - 1)
        return Load(server, era, "tools/list", {}, window, last, whole=False)

    return measure(peer.command(TOOLS), era, load, settings, many=MANY)


BENCHMARK = Benchmark(
    "list",
    cases,
    tuple(
        Target(
            f"tools/list of {TOOLS}, {title}, {era}: ≥ 40 × mcp",
            40,
            ratio_of(f"list {era}", "noizu", key),
            least=True,
        )
        for era in ERAS
        for key, title in (("one_us", "one after the other"), ("many_us", f"{MANY} in flight"))
    ),
)
