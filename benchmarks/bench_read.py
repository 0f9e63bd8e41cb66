"""`resources/read` and `prompts/get` over stdio: one after the other, and 100 in flight."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from ._harness import Benchmark, Case, Sample, Settings, by_era
from ._peers import OFFERING, Peer, offering
from ._pipe import Load, Process
from ._windows import columns, measure

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
    method: by_era(name, f"{method} over stdio", columns("µs"))
    for method, (name, _, _) in METHODS.items()
}


def cases(settings: Settings) -> Iterator[Case]:
    for method, tables in TABLES.items():
        for era, table in tables.items():
            for peer in settings.among(OFFERING):
                yield Case(table, peer.name, partial(time_requests, peer, era, method, settings))


def time_requests(peer: Peer, era: str, method: str, settings: Settings) -> Sample:
    _, params, expected = METHODS[method]

    def load(server: Process, window: int) -> Load:
        return Load(server, era, method, params, window, expected)

    return measure(offering(peer), era, load, settings)


BENCHMARK = Benchmark("read", cases)
