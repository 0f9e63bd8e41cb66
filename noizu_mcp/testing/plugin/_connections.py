"""The connections of tests: their arguments, and their clients for trio and asyncio."""

import importlib.util
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, NamedTuple

import trio

from ...client import Client, Target, connect, read_target
from ...server import Server
from ...transports import Tap
from .._cassette import record
from .._network import Network
from .._served import serve_over, transport_of
from .._transcript import EntryDirection
from ._variants import Variant


class ConnectArguments(NamedTuple):
    """The arguments of `connect` for a test.

    Attributes:
        target: The target, for one connection.
        options: The options.
    """

    target: Target
    options: Mapping[str, Any]


@contextmanager
def prepare(
    server: Target,
    variant: Variant,
    options: Mapping[str, Any],
    *,
    taps: list[Tap],
    network: Network | None = None,
    cassette: str | os.PathLike[str] | None = None,
) -> Iterator[ConnectArguments]:
    """Prepare the connection of a test.

    Args:
        server: The value of the fixture `mcp_server`.
        variant: The revision and the transport.
        options: The options of `connect` that the test wants.
        taps: Called with each message, in addition to the tap in the options.
        network: The network between the client and the server; None for no faults.
        cassette: The file to record the connection to; None to record nothing.

    Yields:
        The connection.
    """
    target: Target = serve_over(server, variant.transport)
    if network is not None:
        target = network.between(target)
    with ExitStack() as stack:
        every = [*taps, *([options["tap"]] if options.get("tap") else [])]
        if cassette is not None:
            every.append(stack.enter_context(record(cassette)))

        def tap(direction: EntryDirection, data: bytes) -> None:
            for each in every:
                each(direction, data)

        yield ConnectArguments(target, {"version": variant.version, **options, "tap": tap})


@asynccontextmanager
async def open_client(connection: ConnectArguments) -> AsyncIterator[Client]:
    """Connect on the current event loop, trio or asyncio.

    Args:
        connection: The connection.

    Yields:
        The client, for this loop.
    """
    if trio.lowlevel.in_trio_task():
        async with connect(connection.target, **connection.options) as client:
            yield client
        return
    from ... import aio

    async with aio.connect(connection.target, **connection.options) as client:
        yield client


def reason_to_skip(server: Target, variant: Variant, *, has_network: bool = False) -> str | None:
    """Return why a server cannot be tested on a variant; None if it can.

    Args:
        server: The value of the fixture `mcp_server`.
        variant: The revision and the transport.
        has_network: True if a simulated network is used.
    """
    has_http = all(map(importlib.util.find_spec, ("httptools", "httpx2")))
    if variant.transport == "http" and not has_http:
        return "the transport http needs the extra http: pip install 'noizu-mcp[http]'"
    if variant.transport == "stdio" and has_network:
        return "a simulated network is in memory, or over HTTP"
    if isinstance(server, AbstractAsyncContextManager) and not isinstance(server, Server):
        return None  # its target is known once it is entered
    only = transport_of(read_target(server))
    if only not in (None, variant.transport):
        return f"{server!r} is reached over {only} only"
    return None
