"""Calls over stdio: one after the other, and 100 in flight."""

from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Table, Target, ratio_of
from ._peers import LEGACY, MODERN, Peer
from ._pipe import ARGUMENTS, ECHOED, started

#: Requests in flight → what figures about them are called.
WINDOWS = {1: "one", 100: "many"}
COLUMNS = (
    Column("one_us", "µs/call", ranged=True),
    Column("one_cpu_us", "CPU µs/call"),
    Column("many_us", "100 in flight: µs/call", ranged=True),
    Column("many_cpu_us", "CPU µs/call"),
    Column("client_us", "client CPU µs", compared=False),
)
TABLES = {
    era: Table(f"stdio {era}", f"A call over stdio, {era}", COLUMNS) for era in (LEGACY, MODERN)
}


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for peer in settings.peers.values():
            if era in peer.eras:
                yield Case(table, peer.name, partial(time_calls, peer, era, settings))


def time_calls(peer: Peer, era: str, settings: Settings) -> Sample:
    figures: Sample = {}
    params = {"name": "echo", "arguments": ARGUMENTS}
    with started(peer.command(3)) as server:
        server.open(era)
        for window, name in WINDOWS.items():
            run = server.measure(
                era,
                "tools/call",
                params,
                window=window,
                expected=ECHOED,
                warm_up=settings.warm_up,
                seconds=settings.seconds,
            )
            figures[f"{name}_us"] = run.wall_us
            figures[f"{name}_cpu_us"] = run.cpu_us
            figures["client_us"] = run.client_us
    return figures


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
        for era in (LEGACY, MODERN)
        for key, title, limit in (
            ("one_us", "stdio, one after the other", 7),
            ("many_us", "stdio, 100 in flight", 12),
        )
    ),
)
