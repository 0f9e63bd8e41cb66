"""Listeners as users write them, under strict type checkers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_type

from noizu_mcp import Server
from noizu_mcp.telemetry import Event, Listener, Metrics, Tracing, watching


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


async def watch() -> None:
    with watching(0.5):
        pass


def count() -> bytes:
    metrics: Metrics = Metrics(App())
    return metrics.render()
