"""`aio.connect`: the client for asyncio programs."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Unpack

import attrs

from .. import client
from .._errors import McpError
from .._value import JSONObject
from ..client import CallOptions, Client, ClientHandler, ForwardingHandler, LiveList, Target
from ..engine import SessionEnded
from ..engine.aio import TrioSide, enter_trio, run_asyncio, trio_side
from ..types import ToolResult
from ._crossing import AsyncioAdapter, check_on_asyncio, show, with_options_of


@with_options_of(client.connect)
@asynccontextmanager
async def connect(target: Target, **options: object) -> AsyncIterator[Client]:
    """Connect an asyncio program to a server while the block runs.

    It is `noizu_mcp.connect` for asyncio programs and notebooks, with the same options, the same
    client and the same errors. trio runs beside the asyncio loop, in the same thread. The client
    can be used and closed from any task of the program. Coroutine functions of the handler run on
    the asyncio loop, and so does an async `open_browser` of `OAuth`. If the connection fails, the
    task that entered the block is cancelled, and the block raises the reason.

    Args:
        target: A server, a command, a URL or a stream; see `noizu_mcp.connect`.
        **options: The options of `noizu_mcp.connect`.

    Yields:
        The client; its methods are coroutine functions of asyncio.

    Raises:
        RuntimeError: No asyncio loop runs here, or it runs inside a trio task.
        BaseException: See `noizu_mcp.connect`.
    """
    check_on_asyncio("connect", "SyncClient")
    open_client: Callable[..., AbstractAsyncContextManager[Client]] = client.connect
    options = adapt_auth(options)
    async with trio_side() as side:
        shown: list[Client] = []

        def present(inner: Client) -> Callable[[], Client]:
            shown.append(show(inner, side))
            return lambda: shown[0]

        handler = options.get("handler")
        if isinstance(handler, ClientHandler | None):
            handler = handler or ClientHandler()
            options["handler"] = ForwardingHandler(handler, present, on_asyncio, side.run_trio)
        async with enter_trio(side, open_client(target, **options)):
            yield shown[0]


def adapt_auth(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options of `connect` with an `auth` whose async `open_browser` runs on asyncio."""
    auth: Any = options.get("auth")
    browser = getattr(auth, "open_browser", None)
    if not inspect.iscoroutinefunction(browser):
        return dict(options)
    return {**options, "auth": attrs.evolve(auth, open_browser=on_asyncio(browser))}


def on_asyncio(method: Callable[..., object]) -> Callable[..., object]:
    """Make a coroutine function of asyncio callable from trio tasks; return others unchanged."""
    if not inspect.iscoroutinefunction(method):
        return method

    async def run(*args: object) -> object:
        return await run_asyncio(partial(method, *args))

    return run


class AsyncioClient(AsyncioAdapter[Client], Client):
    """A client whose methods are called by tasks of asyncio."""

    @with_options_of(Client.call_tool)
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult:
        """Call a tool; see `Client`."""
        # A call of one exchange sends and waits in the task of asyncio. To wake trio for a task of
        # its own would cost as much as the call: it sleeps in another thread.
        self._side.check()
        cross = partial(self._inner.call_tool, name, arguments, **options)
        session = self._session
        if session.pending.is_closed or session.renewal.is_lost or self._calls.is_strict:
            return await self._side.run_trio(cross)
        params: JSONObject = {"name": name, "arguments": dict(arguments or {})}
        timeout = options.get("timeout")
        try:
            first = await session.exchange(
                "tools/call",
                params,
                patience=self.timeout if timeout is None else timeout,
                progress=options.get("progress"),
                arrived=asyncio.Event(),
            )
        except (SessionEnded, McpError) as error:
            # Both are refusals before the tool ran, so the call can be sent again.
            if isinstance(error, McpError) and not self._calls.are_headers_wrong(error):
                raise
            return await self._side.run_trio(cross)
        finish = partial(self._calls.finish, params, dict(first), **options)
        if first.get("resultType") != "input_required":
            return await finish()
        return await self._side.run_trio(finish)


class _AsyncioLiveList(AsyncioAdapter[LiveList[Any]], LiveList[Any]):
    """A live list whose methods are called by tasks of asyncio."""

    def __init__(self, inner: LiveList[Any], side: TrioSide) -> None:
        # Copied, not shared: both lists note that their own block runs.
        vars(self).update(vars(inner))
        self._inner = inner
        self._side = side

    def _follow(self) -> Any:
        return enter_trio(self._side, self._inner)
