"""Import, and the start of a server up to its first answer."""

from collections.abc import Iterator
from functools import cache, partial

from ._harness import Benchmark, Case, Column, Results, Sample, Settings, Table, Target, median_of
from ._peers import LEGACY, Peer, Unavailable
from ._pipe import started
from ._script import output

#: What a server file of each peer imports.
IMPORTS = {
    "noizu": "import noizu_mcp",
    "mcp": "import mcp.server",
    "fastmcp": "from fastmcp import FastMCP",
    "trio": "import trio",
}
CLOCK = "import time; t = time.perf_counter(); {}; print((time.perf_counter() - t) * 1e3)"

IMPORT = Table("import", "Import, in a fresh interpreter", (Column("ms", "ms", ranged=True),))
START = Table(
    "start",
    "Start over stdio, up to the first answer",
    (
        Column("ms", "ms", ranged=True),
        Column("cpu_ms", "CPU ms"),
        Column("rss_mib", "RSS MiB"),
    ),
)


def cases(settings: Settings) -> Iterator[Case]:
    for peer in settings.peers.values():
        if peer.python is not None:
            yield Case(IMPORT, peer.name, partial(time_import, peer))
    for peer in settings.peers.values():
        yield Case(START, peer.name, partial(time_start, peer))


def time_import(peer: Peer) -> Sample:
    peer.version()
    if peer.python is None:
        raise Unavailable("not a Python package")
    command = (peer.python, "-c", CLOCK.format(IMPORTS[peer.name]))
    prepare(command)
    return {"ms": float(output(command))}


@cache
def prepare(command: tuple[str, ...]) -> None:
    """Run once before the clock does, so that bytecode is written and files are in memory."""
    output(command)


def time_start(peer: Peer) -> Sample:
    prepare_server(peer)
    with started(peer.command(3)) as server:
        took = server.open(LEGACY)
        return {"ms": took * 1e3, "cpu_ms": server.cpu() * 1e3, "rss_mib": server.rss_mib()}


@cache
def prepare_server(peer: Peer) -> None:
    """Start a server once before the clock runs, for the same reasons."""
    with started(peer.command(3)) as server:
        server.open(LEGACY)


def import_over_trio(results: Results) -> float | None:
    ratio = results.ratio("import", "noizu", "ms", base="trio")
    return ratio and 1 / ratio


BENCHMARK = Benchmark(
    "import",
    cases,
    (
        Target("`import noizu_mcp` ≤ 1.4 × `import trio`", 1.4, import_over_trio),
        Target(
            "start to first answer over stdio ≤ 200 ms",
            200,
            median_of("start", "noizu", "ms"),
        ),
        Target(
            "RSS after start ≤ 35 MiB",
            35,
            median_of("start", "noizu", "rss_mib"),
        ),
    ),
)
