"""`tools/list` of 100 tools over stdio."""

from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Table, Target, ratio_of
from ._peers import LEGACY, MODERN, Peer
from ._pipe import started

TOOLS = 100
#: Requests in flight → what figures about them are called. With one, the client's own work on an
#: answer of 35 kB is part of the time; with 16 it happens beside the server's.
WINDOWS = {1: "one", 16: "many"}
COLUMNS = (
    Column("one_us", "µs/list", ranged=True),
    Column("one_cpu_us", "CPU µs/list"),
    Column("many_us", "16 in flight: µs/list", ranged=True),
    Column("many_cpu_us", "CPU µs/list"),
    Column("client_us", "client CPU µs", compared=False),
)
TABLES = {
    era: Table(f"list {era}", f"tools/list of {TOOLS} over stdio, {era}", COLUMNS)
    for era in (LEGACY, MODERN)
}


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for peer in settings.peers.values():
            if era in peer.eras:
                yield Case(table, peer.name, partial(time_lists, peer, era, settings))


def time_lists(peer: Peer, era: str, settings: Settings) -> Sample:
    figures: Sample = {}
    with started(peer.command(TOOLS)) as server:
        server.open(era)
        for window, name in WINDOWS.items():
            run = server.measure(
                era,
                "tools/list",
                {},
                window=window,
                expected=b'"t%03d"' % (TOOLS - 1),
                whole=False,
                warm_up=settings.warm_up,
                seconds=settings.seconds,
            )
            figures[f"{name}_us"] = run.wall_us
            figures[f"{name}_cpu_us"] = run.cpu_us
            figures["client_us"] = run.client_us
    return figures


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
        for era in (LEGACY, MODERN)
        for key, title in (("one_us", "one after the other"), ("many_us", "16 in flight"))
    ),
)
