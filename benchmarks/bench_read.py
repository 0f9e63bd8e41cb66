"""`resources/read` and `prompts/get` over stdio: one after the other, and 100 in flight."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from ._harness import Benchmark, Case, Column, Sample, Settings, Table
from ._peers import LEGACY, MODERN, OFFERING, Peer, offering
from ._pipe import started

#: Requests in flight → what figures about them are called.
WINDOWS = {1: "one", 100: "many"}
COLUMNS = (
    Column("one_us", "µs", ranged=True),
    Column("one_cpu_us", "CPU µs"),
    Column("many_us", "100 in flight: µs", ranged=True),
    Column("many_cpu_us", "CPU µs"),
    Column("client_us", "client CPU µs", compared=False),
)
#: Method → the short name of its tables, its params, what stands in every answer.
METHODS: dict[str, tuple[str, dict[str, Any], bytes]] = {
    "resources/read": ("read", {"uri": "bench://note"}, b"as notes go"),
    "prompts/get": (
        "prompt",
        {"name": "write", "arguments": {"topic": "benches"}},
        b"Write about benches, plain.",
    ),
}
TABLES = {
    (method, era): Table(f"{name} {era}", f"{method} over stdio, {era}", COLUMNS)
    for method, (name, _, _) in METHODS.items()
    for era in (LEGACY, MODERN)
}


def cases(settings: Settings) -> Iterator[Case]:
    for (method, era), table in TABLES.items():
        for name in OFFERING:
            if name in settings.peers:
                run = partial(time_requests, settings.peers[name], era, method, settings)
                yield Case(table, name, run)


def time_requests(peer: Peer, era: str, method: str, settings: Settings) -> Sample:
    figures: Sample = {}
    _, params, expected = METHODS[method]
    with started(offering(peer)) as server:
        server.open(era)
        for window, name in WINDOWS.items():
            run = server.measure(
                era,
                method,
                params,
                window=window,
                expected=expected,
                warm_up=settings.warm_up,
                seconds=settings.seconds,
            )
            figures[f"{name}_us"] = run.wall_us
            figures[f"{name}_cpu_us"] = run.cpu_us
            figures["client_us"] = run.client_us
    return figures


BENCHMARK = Benchmark("read", cases)
