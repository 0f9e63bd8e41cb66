"""The clients of tests: for trio, for asyncio, and the reasons why a test cannot have one."""

import importlib.util
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio

from ...client import Client, connect, read_target
from ...server import Server
from .._served import transport_of
from ._variants import Variant


@asynccontextmanager
async def open_client(target: Any, options: Mapping[str, Any]) -> AsyncIterator[Client]:
    """Connect on the loop that runs: a client for trio, or for asyncio.

    Args:
        target: The target.
        options: The options of `connect`.

    Yields:
        The client.
    """
    if trio.lowlevel.in_trio_task():
        async with connect(target, **options) as client:
            yield client
        return
    from ... import aio

    async with aio.connect(target, **options) as client:
        yield client


def reason_to_skip(target: Any, variant: Variant) -> str | None:
    """Tell why a target cannot be tested in this way; None if it can.

    Args:
        target: The value of the fixture `mcp_server`.
        variant: The revision and the transport.
    """
    if isinstance(target, AbstractAsyncContextManager) and not isinstance(target, Server):
        return None  # nobody knows before it is entered
    only = transport_of(read_target(target))
    if only is not None and only != variant.transport:
        return f"{target!r} is reached over {only} only"
    if variant.transport == "http" and only is None and not _has_http():
        return "the transport http needs the extra http: pip install 'noizu-mcp[http]'"
    return None


def _has_http() -> bool:
    return all(importlib.util.find_spec(name) for name in ("httptools", "httpx2"))
