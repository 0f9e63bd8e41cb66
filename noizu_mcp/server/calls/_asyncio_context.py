"""Handlers on asyncio: their calls, and the asyncio side of their contexts."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from ...engine.aio import AsyncioCall, enter_asyncio, run_asyncio

if TYPE_CHECKING:
    from .._server_context import ServerContext


class HandlerCall(AsyncioCall):
    """A call of a handler on asyncio; an `AsyncioSide`.

    Args:
        ctx: The context for trio.
    """

    def __init__(self, ctx: "ServerContext") -> None:
        super().__init__()
        self.ctx = ctx

    def from_trio(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make a coroutine function of asyncio callable from trio; others are unchanged."""
        if not inspect.iscoroutinefunction(function):
            return function

        # The name of a step is the name of its function.
        @functools.wraps(function)
        async def crossed(*args: object) -> Any:
            return await run_asyncio(partial(function, *args))

        return crossed


def on_asyncio(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Wrap a handler on asyncio in a coroutine function of trio.

    Args:
        function: The handler. Its last argument is the context, or None.
    """

    @functools.wraps(function)
    async def run(*values: Any) -> Any:
        *others, ctx = values
        if ctx is None:  # the handler takes no context
            return await AsyncioCall().run(partial(function, *values))
        # An asyncio task of the same request: a method of a server calls another one.
        if ctx.side is not None:
            return await function(*values)
        call = HandlerCall(ctx)
        return await call.run(partial(function, *others, ctx.on_asyncio(call)))

    return run


def manager_on_asyncio(
    function: Callable[[], AbstractAsyncContextManager[Any]],
) -> Callable[[], AbstractAsyncContextManager[Any]]:
    """Wrap a function that returns an asyncio context manager; the result is for trio."""

    @functools.wraps(function)
    def make() -> AbstractAsyncContextManager[Any]:
        return enter_asyncio(function())

    return make
