"""Over HTTP: the start, calls, and lists of 100 tools, with 1 and 16 connections."""

from collections.abc import Iterator
from functools import cache, partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Table, Target, by_era, ratio_of
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


BENCHMARK = Benchmark(
    "http",
    cases,
    tuple(
        Target(
            f"{title}, {MANY} connections, {era}: ≥ {limit} × mcp",
            limit,
            ratio_of(f"{table} {era}", "noizu", "many_us"),
            least=True,
        )
        for era, table, title, limit in (
            (LEGACY, "http", "HTTP call", 2.4),
            (MODERN, "http", "HTTP call", 1.2),
            *((era, "http list", f"tools/list of {TOOLS} over HTTP", 9) for era in ERAS),
        )
    ),
)
