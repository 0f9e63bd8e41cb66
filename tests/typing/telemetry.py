"""Listeners as users write them, under strict type checkers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import assert_type

from noizu_mcp import Server, connect
from noizu_mcp.telemetry import ClientMetrics, Event, Listener, Metrics, Tracing, watching


def report(event: Event) -> None:
    seconds: float | None = event.duration
    target: str | None = event.target
    assert_type((event.kind == "stop", seconds, target), tuple[bool, float | None, str | None])


class Named(Listener):
    def __call__(self, event: Event) -> None:
        assert_type(event.key, int)

    @contextmanager
    def around(self, event: Event) -> Iterator[None]:
        yield


class App(Server, name="app", version="1", watchdog=None):
    telemetry = [report, Named(), Tracing(baggage=True)]


class Sends(Listener):
    def trace_context(self, event: Event) -> Mapping[str, str]:
        return {"traceparent": "00-…"}


async def call() -> None:
    async with connect(App, telemetry=[report, Named(), Sends(), ClientMetrics()]) as client:
        await client.ping()
    async with connect(App, telemetry=[1]):  # type: ignore[list-item]
        pass


async def watch() -> None:
    with watching(0.5):
        pass


def count() -> bytes:
    metrics: Metrics = Metrics(App())
    return metrics.render()
