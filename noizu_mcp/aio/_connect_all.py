"""`aio.connect_all`: several servers for asyncio programs."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from .. import client
from ..client import Client, ClientHandler, Clients, ForwardingHandler
from ..engine.aio import TrioSide, enter_trio, trio_side
from ..types import ToolResult
from ._connect import AsyncioClient, adapt_auth, on_asyncio
from ._crossing import check_on_asyncio, crosses, with_options_of


@with_options_of(client.connect_all)
@asynccontextmanager
async def connect_all(config: Any, **options: Any) -> AsyncIterator[Clients]:
    """Connect an asyncio program to several servers for as long as the block runs.

    It is `noizu_mcp.connect_all` for asyncio programs and notebooks; see there, and `connect`.

    Args:
        config: The servers; see `noizu_mcp.connect_all`.
        **options: The options of `noizu_mcp.connect_all`.

    Yields:
        The clients; their methods are coroutine functions of asyncio.

    Raises:
        RuntimeError: No asyncio loop runs here, or it runs inside of a trio task.
        BaseException: See `noizu_mcp.connect_all`.
    """
    check_on_asyncio("connect_all", "SyncClients")
    own = {name: dict(each) for name, each in (options.get("per_server") or {}).items()}
    for each in own.values():
        adapt_auth(each)
    async with trio_side() as side:

        def present(inner: Client) -> Callable[[], Client]:
            shown = AsyncioClient(inner, side)
            return lambda: shown

        def forward(made: Any) -> Any:
            # Anything else is refused by `connect_all`.
            is_one = isinstance(made, ClientHandler)
            return ForwardingHandler(made, present, on_asyncio, side.run_trio) if is_one else made

        handler: Any = options.get("handler")
        if callable(handler) and not isinstance(handler, ClientHandler):
            options["handler"] = lambda name: forward(handler(name))
        else:
            options["handler"] = forward(handler)
        async with enter_trio(
            side, client.connect_all(config, **{**options, "per_server": own})
        ) as inner:
            yield _AsyncioClients(inner, side)


@crosses(Clients)
class _AsyncioClients(Clients):
    """Several clients whose methods are called by tasks of asyncio.

    Args:
        inner: The clients on the trio side.
        side: Runs their methods.
    """

    # Beside the attributes of the clients, which it shares.
    __slots__ = ("_inner", "_side")

    def __init__(self, inner: Clients, side: TrioSide) -> None:
        self.__dict__ = vars(inner)
        self._inner = inner
        self._side = side

    @with_options_of(Clients.call_tool)
    async def call_tool(
        self, name: str, arguments: Mapping[str, object] | None = None, **options: Any
    ) -> ToolResult:
        """Call a tool by its name in `list_tools`; see `Clients`."""
        known = self._known(name)
        if known is None:
            call = partial(self._inner.call_tool, name, arguments, **options)
            return await self._side.run_trio(call)
        connection, client, tool = known
        with connection.named_in_failures():
            return await AsyncioClient(client, self._side).call_tool(tool, arguments, **options)

    def __getitem__(self, name: str) -> Client:
        return AsyncioClient(self._inner[name], self._side)
