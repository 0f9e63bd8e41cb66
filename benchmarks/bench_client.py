"""A call by a client to one server in another process, over stdio and over HTTP."""

from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, Target, by_era, ratio_of
from ._http import listening
from ._peers import ERAS, PEERS, SERVERS, environment
from ._requests import HOST, PATH
from ._script import sample
from ._setups import SETUPS

#: Row → whose client it is. The server is that of `noizu` for all of them.
ROWS = {
    "noizu": "noizu",
    "noizu, aio": "noizu",
    "noizu, SyncClient": "noizu",
    "mcp": "mcp",
    "fastmcp": "fastmcp",
}
COLUMNS = (
    Column("one_cpu_us", "CPU µs/call", ranged=True),
    Column("one_us", "µs/call"),
    Column("many_cpu_us", "16 in flight: CPU µs/call", ranged=True),
    Column("many_us", "µs/call"),
)
STDIO = by_era("client stdio", "A call by a client over stdio", COLUMNS)
HTTP = by_era("client http", "A call by a client over HTTP", COLUMNS)
TOOLS = 3


def cases(settings: Settings) -> Iterator[Case]:
    for tables, measure in ((STDIO, over_stdio), (HTTP, over_http)):
        for era, table in tables.items():
            for row, peer in ROWS.items():
                if peer in settings.peers:
                    yield Case(table, row, partial(measure, row, era, settings.seconds))


def over_stdio(row: str, era: str, seconds: float) -> Sample:
    server = PEERS["noizu"]
    server.version()
    # Clients give a server only a part of their environment, and not this.
    path = f"PYTHONPATH={environment()['PYTHONPATH']}"
    program = [server.python or "", str(SERVERS / "serve_noizu.py"), str(TOOLS)]
    return time_calls(row, era, seconds, "env", path, *program)


def over_http(row: str, era: str, seconds: float) -> Sample:
    with listening(SETUPS[0].command(TOOLS)) as server:
        return time_calls(row, era, seconds, f"http://{HOST}:{server.port}{PATH}")


def time_calls(row: str, era: str, seconds: float, *target: str) -> Sample:
    peer = PEERS[ROWS[row]]
    peer.version()
    return sample(peer.python or "", "loop_client.py", row, era, seconds, *target)


#: What a call must cost at most, as a share of mcp's.
SHARES = {"stdio": 0.3, "http": 0.5}
BENCHMARK = Benchmark(
    "client",
    cases,
    tuple(
        Target(
            f"client over {where}, {era}: CPU ≥ {1 / share:.3g} × mcp",
            1 / share,
            ratio_of(f"client {where} {era}", "noizu", "one_cpu_us"),
            least=True,
        )
        for where, share in SHARES.items()
        for era in ERAS
    ),
)
