"""`aio.connect_all`: several servers for asyncio programs."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from .. import client
from ..client import Client, ClientHandler, Clients
from ..engine.aio import TrioSide, enter_trio, trio_side
from ..types import ToolDefinition, ToolResult
from ._connect import AsyncioClient, HandlerOnAsyncio, with_options_of


@with_options_of(client.connect_all)
@asynccontextmanager
async def connect_all(config: Any, **options: Any) -> AsyncIterator[Clients]:
    """Connect an asyncio program to several servers for as long as the block runs.

    It is `noizu_mcp.connect_all` for asyncio programs and notebooks; see there, and `aio.connect`.

    Args:
        config: The servers; see `noizu_mcp.connect_all`.
        **options: The options of `noizu_mcp.connect_all`.

    Yields:
        The clients; their methods are coroutine functions of asyncio.

    Raises:
        RuntimeError: The asyncio loop runs inside of a trio task.
        BaseException: See `noizu_mcp.connect_all`.
    """
    handler = options.get("handler")
    if isinstance(handler, ClientHandler):
        options["handler"] = HandlerOnAsyncio(handler)
    elif callable(handler):
        options["handler"] = partial(_make_handler, handler)
    opened = client.connect_all(config, **options)
    async with trio_side() as side, enter_trio(side, opened) as inner:
        yield _AsyncioClients(inner, side)


def _make_handler(factory: Callable[[str], Any], name: str) -> Any:
    made = factory(name)
    # Anything else is refused by `connect_all`.
    return HandlerOnAsyncio(made) if isinstance(made, ClientHandler) else made


class _AsyncioClients(Clients):
    """Clients whose methods are called by tasks of asyncio.

    Args:
        inner: The clients on the trio side.
        side: Runs their methods.
    """

    def __init__(self, inner: Clients, side: TrioSide) -> None:
        vars(self).update(vars(inner))
        self._inner = inner
        self._side = side

    def __getitem__(self, name: str) -> Client:
        return AsyncioClient(self._inner[name], self._side)

    async def list_tools(self) -> list[ToolDefinition]:
        return await self._side.run_trio(self._inner.list_tools)

    async def call_tool(self, *args: Any, **options: Any) -> ToolResult:
        return await self._side.run_trio(partial(self._inner.call_tool, *args, **options))
