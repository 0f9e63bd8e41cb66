"""1,000 watched resources of one client, and a call that changes all of them, over stdio."""

import json
import statistics
import time
from collections.abc import Iterator
from functools import partial

from ._harness import Benchmark, Case, Column, Sample, Settings, by_era
from ._peers import LEGACY, OFFERING, Peer, offering
from ._pipe import Process, encode, started

WATCHED = 1000
#: Subscriptions asked for at once: within what every server takes.
BATCH = 100
UPDATED = "notifications/resources/updated"
#: The fewest bursts that are measured, and those before, which warm up.
LEAST, WARM_UP = 5, 3
#: Seconds between bursts: longer than a server may merge changes of the same resource.
PAUSE = 0.15
COLUMNS = (
    Column("watch_ms", "ms to subscribe"),
    Column("burst_ms", "ms/burst", ranged=True),
    Column("cpu_ms", "CPU ms/burst"),
    Column("notice_us", "µs/notice", compared=False),
)
TABLES = by_era("notify", f"{WATCHED:,} subscriptions over stdio", COLUMNS)
URIS = [f"bench://items/{number}" for number in range(WATCHED)]


def cases(settings: Settings) -> Iterator[Case]:
    for era, table in TABLES.items():
        for peer in settings.among(OFFERING):
            yield Case(table, peer.name, partial(time_bursts, peer, era, settings.seconds))


def time_bursts(peer: Peer, era: str, seconds: float) -> Sample:
    """Subscribe once, then measure bursts for a while; the figures are medians over them."""
    with started(offering(peer, WATCHED)) as server:
        server.open(era)
        began = time.perf_counter()
        _watch(server, era)
        watching = time.perf_counter() - began
        for _ in range(WARM_UP):
            _burst(server, era)
        bursts: list[tuple[float, float]] = []
        end = time.perf_counter() + seconds
        while len(bursts) < LEAST or time.perf_counter() < end:
            bursts.append(_burst(server, era))
    wall, cpu = (statistics.median(figures) for figures in zip(*bursts, strict=True))
    return {
        "watch_ms": watching * 1e3,
        "burst_ms": wall * 1e3,
        "cpu_ms": cpu * 1e3,
        "notice_us": wall / WATCHED * 1e6,
    }


def _watch(server: Process, era: str) -> None:
    """Subscribe: URI by URI on 2025-11-25, all with one request on 2026-07-28."""
    if era == LEGACY:
        for at in range(0, WATCHED, BATCH):
            uris = URIS[at : at + BATCH]
            pairs = zip(server.ids(BATCH), uris, strict=True)
            server.send(
                b"".join(encode(era, "resources/subscribe", {"uri": uri}, i) for i, uri in pairs)
            )
            if any(b'"result"' not in line for line in _lines(server, BATCH)):
                raise RuntimeError("a subscription was refused")
        return
    params = {"notifications": {"resourceSubscriptions": URIS}}
    server.send(encode(era, "subscriptions/listen", params, server.ids(1)[0]))
    (line,) = _lines(server, 1)
    agreed = json.loads(line).get("params", {}).get("notifications", {})
    if len(agreed.get("resourceSubscriptions", ())) != WATCHED:
        raise RuntimeError(f"the subscription was refused: {line[:200]!r}")


def _burst(server: Process, era: str) -> tuple[float, float]:
    """Call the tool that changes everything.

    Returns:
        Seconds until every notice and the result of the call were there, and processor time of
        the server, also of what it still does in the pause that follows.
    """
    call = encode(era, "tools/call", {"name": "touch", "arguments": {}}, server.ids(1)[0])
    cpu, began = server.cpu(), time.perf_counter()
    server.send(call)
    lines = _lines(server, WATCHED + 1)
    wall = time.perf_counter() - began
    time.sleep(PAUSE)
    cpu = server.cpu() - cpu
    _check(lines)
    return wall, cpu


def _lines(server: Process, count: int) -> list[bytes]:
    """Read as many lines."""
    chunks: list[bytes] = []
    while count > 0:
        chunks.append(server.receive())
        count -= chunks[-1].count(b"\n")
    return b"".join(chunks).splitlines()


def _check(lines: list[bytes]) -> None:
    messages = [json.loads(line) for line in lines]
    told = [each["params"]["uri"] for each in messages if each.get("method") == UPDATED]
    if sorted(told) != sorted(URIS):
        raise RuntimeError(f"{len(set(told))} of {WATCHED} resources were told of")
    if not any("result" in each for each in messages):
        raise RuntimeError("the call was not answered")


BENCHMARK = Benchmark("notify", cases)
