"""Requests over stdio, one after the other and many in flight: what four benchmarks share."""

from collections.abc import Callable

from ._harness import Column, Sample, Settings
from ._pipe import Load, Process, started

#: In flight at once, where nothing else is said.
MANY = 100


def columns(unit: str, many: int = MANY) -> tuple[Column, ...]:
    """Return the columns of such a table; `unit` is what one request is timed in."""
    return (
        Column("one_us", unit, ranged=True),
        Column("one_cpu_us", f"CPU {unit}"),
        Column("many_us", f"{many} in flight: {unit}", ranged=True),
        Column("many_cpu_us", f"CPU {unit}"),
        Column("client_us", "client CPU µs", compared=False),
    )


def measure(
    command: list[str],
    era: str,
    load: Callable[[Process, int], Load],
    settings: Settings,
    *,
    many: int = MANY,
    capabilities: dict[str, object] | None = None,
) -> Sample:
    """Start a server and measure it with both.

    Args:
        command: Starts the server.
        era: The revision.
        load: Makes the requests, for the server and how many are in flight at any time.
        settings: How long.
        many: How many are in flight at most.
        capabilities: What the client can do.

    Returns:
        A figure for each of the columns.
    """
    figures: Sample = {}
    with started(command) as server:
        server.open(era, capabilities)
        for name, window in (("one", 1), ("many", many)):
            run = server.pace(load(server, window), settings.warm_up, settings.seconds)
            figures[f"{name}_us"] = run.wall_us
            figures[f"{name}_cpu_us"] = run.cpu_us
            figures["client_us"] = run.client_us
    return figures
