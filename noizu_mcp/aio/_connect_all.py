"""`aio.connect_all`: several servers for asyncio programs."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Unpack, cast

from .. import client
from ..client import (
    CallOptions,
    Client,
    ClientHandler,
    Clients,
    ForwardingHandler,
    each_handler,
)
from ..engine.aio import enter_trio, trio_side
from ..types import ToolResult
from ._connect import adapt_auth, on_asyncio
from ._crossing import AsyncioAdapter, check_on_asyncio, show, with_options_of


@with_options_of(client.connect_all)
@asynccontextmanager
async def connect_all(
    config: str | os.PathLike[str] | Mapping[str, object], **options: object
) -> AsyncIterator[Clients]:
    """Connect an asyncio program to several servers while the block runs.

    It is `noizu_mcp.connect_all` for asyncio programs and notebooks; see there, and `connect`.

    Args:
        config: The servers; see `noizu_mcp.connect_all`.
        **options: The options of `noizu_mcp.connect_all`.

    Yields:
        The clients; their methods are coroutine functions of asyncio.

    Raises:
        RuntimeError: No asyncio loop runs here, or it runs inside a trio task.
        BaseException: See `noizu_mcp.connect_all`.
    """
    check_on_asyncio("connect_all", "SyncClients")
    open_all: Callable[..., AbstractAsyncContextManager[Clients]] = client.connect_all
    own = cast(Mapping[str, Mapping[str, object]], options.get("per_server") or {})
    options["per_server"] = {name: adapt_auth(each) for name, each in own.items()}
    async with trio_side() as side:

        def present(inner: Client) -> Callable[[], Client]:
            shown = show(inner, side)
            return lambda: shown

        def forward(handler: ClientHandler) -> ClientHandler:
            return ForwardingHandler(handler, present, on_asyncio, side.run_trio)

        options["handler"] = each_handler(options.get("handler"), forward)
        async with enter_trio(side, open_all(config, **options)) as inner:
            yield show(inner, side)


class _AsyncioClients(AsyncioAdapter[Clients], Clients):
    """Several clients whose methods are called by tasks of asyncio."""

    @with_options_of(Clients.call_tool)
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult:
        """Call a tool by its name in `list_tools`; see `Clients`."""
        known = self._known(name)
        if known is None:
            call = partial(self._inner.call_tool, name, arguments, **options)
            return await self._side.run_trio(call)
        connection, client, tool = known
        with connection.named_in_failures():
            return await show(client, self._side).call_tool(tool, arguments, **options)

    def __getitem__(self, name: str) -> Client:
        return show(self._inner[name], self._side)
