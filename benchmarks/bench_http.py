"""Over HTTP: the start, calls, and lists of 100 tools, with 1 and 16 connections."""

from collections.abc import Callable, Iterator
from functools import cache, partial

from ._harness import (
    Benchmark,
    Case,
    Column,
    Results,
    Sample,
    Settings,
    Table,
    Target,
    by_era,
    median_of,
    ratio_of,
)
from ._http import listening
from ._http_load import MANY, columns, measure
from ._peers import ERAS, LEGACY, MODERN, PEERS
from ._pipe import ARGUMENTS, ECHOED
from ._setups import Setup, among

TOOLS = 100
PARAMS = {"name": "echo", "arguments": ARGUMENTS}
START = Table(
    "http start",
    "Start over HTTP, up to the first answer",
    (
        Column("ms", "ms", ranged=True),
        Column("cpu_ms", "CPU ms"),
        Column("rss_mib", "RSS MiB"),
    ),
)
CALLS = by_era("http", "A call over HTTP", columns("µs/call"))
LISTS = by_era("http list", f"tools/list of {TOOLS} over HTTP", columns("µs/list"))


def cases(settings: Settings) -> Iterator[Case]:
    for setup in among(settings):
        yield Case(START, setup.row, partial(time_start, setup))
    for tables, time in ((CALLS, time_calls), (LISTS, time_lists)):
        for era, table in tables.items():
            for setup in among(settings):
                if era in PEERS[setup.peer].eras:
                    yield Case(table, setup.row, partial(time, setup, era, settings))


def time_start(setup: Setup) -> Sample:
    prepare(setup)
    with listening(setup.command(3)) as server:
        _, took = server.open(LEGACY)
        return {"ms": took * 1e3, "cpu_ms": server.cpu() * 1e3, "rss_mib": server.rss_mib()}


@cache
def prepare(setup: Setup) -> None:
    """Start once before the clock runs, so that bytecode is written and files are in memory."""
    with listening(setup.command(3)) as server:
        server.open(LEGACY)


def time_calls(setup: Setup, era: str, settings: Settings) -> Sample:
    with listening(setup.command(3)) as server:
        return measure(server, era, "tools/call", PARAMS, ECHOED, settings)


def time_lists(setup: Setup, era: str, settings: Settings) -> Sample:
    last = b'"t%03d"' % (TOOLS - 1)
    with listening(setup.command(TOOLS)) as server:
        return measure(server, era, "tools/list", {}, last, settings, whole=False)


#: The fastest set-up of the official SDK.
FASTEST = "mcp, JSON + uvloop + httptools"


def above_fastest(table: str) -> Callable[[Results], float | None]:
    """Return what takes the ratio to the fastest set-up of the official SDK."""

    def measured(results: Results) -> float | None:
        ours = results.ratio(table, "noizu", "many_us")
        theirs = results.ratio(table, FASTEST, "many_us")
        return ours / theirs if ours and theirs else None

    return measured


def targets() -> Iterator[Target]:
    """Yield what is promised about calls and lists."""
    for era, table, title, least, least_of_fastest in (
        (LEGACY, "http", "HTTP call", 10.0, 3.3),
        (MODERN, "http", "HTTP call", 5.0, 2.0),
        *((era, "http list", f"tools/list of {TOOLS} over HTTP", 40.0, None) for era in ERAS),
    ):
        text = f"{title}, {MANY} connections, {era}: ≥"
        taken = ratio_of(f"{table} {era}", "noizu", "many_us")
        yield Target(f"{text} {least:g} × mcp", least, taken, least=True)
        if least_of_fastest is not None:
            text = f"{text} {least_of_fastest:g} × its fastest set-up"
            yield Target(text, least_of_fastest, above_fastest(f"{table} {era}"), least=True)
    for era in ERAS:
        cpu = median_of(f"http {era}", "raw ASGI on the same host", "many_cpu_us")
        yield Target(f"raw ASGI on the same host, {MANY} connections, {era}: CPU ≤ 60 µs", 60, cpu)


BENCHMARK = Benchmark("http", cases, tuple(targets()))
