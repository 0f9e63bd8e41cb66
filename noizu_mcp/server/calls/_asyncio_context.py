"""Handlers on asyncio, and the context that they get."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeVar

from ...components import Context
from ...engine.aio import Call, TrioSide, enter_asyncio, run_asyncio

Result = TypeVar("Result")


class _Crossing:
    """A notice that has been sent; awaiting it waits on the trio side until there is room."""

    __slots__ = ("_delivery", "_side")

    def __init__(self, side: TrioSide, delivery: Awaitable[None]) -> None:
        self._side = side
        self._delivery = delivery

    def __await__(self) -> Generator[Any, Any, None]:
        return self._side.run_trio(self._wait).__await__()

    async def _wait(self) -> None:
        await self._delivery


class _AsyncioContext(Context):
    """A request as a handler on asyncio sees it: its methods run on the trio side.

    Args:
        ctx: The request.
        side: Runs trio code for the handler.
    """

    __slots__ = ("_ctx", "_side")

    def __init__(self, ctx: Context, side: TrioSide) -> None:
        self._ctx = ctx
        self._side = side

    def on_trio(self, function: Callable[..., Awaitable[Result]], *args: Any) -> Awaitable[Result]:
        """Call a function of the trio side with the request itself as its last argument."""
        return self._side.run_trio(partial(function, *args, self._ctx))

    @property
    def provided(self) -> Mapping[str, Any] | None:
        """The lists that the caller sees, where providers add to them."""
        return getattr(self._ctx, "provided", None)

    async def step(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a side effect once; see `Context`."""
        if inspect.iscoroutinefunction(function):
            coroutine_function = function

            # The name of a step is that of its function.
            @functools.wraps(function)
            async def function(*args: Any) -> Any:
                return await run_asyncio(partial(coroutine_function, *args))

        return await self._side.run_trio(partial(self._ctx.step, function, *args))


def _on_the_trio_side(name: str) -> Callable[..., Any]:
    async def method(self: _AsyncioContext, *args: Any, **options: Any) -> Any:
        return await self._side.run_trio(partial(getattr(self._ctx, name), *args, **options))

    return method


def _sent_at_once(name: str) -> Callable[..., Any]:
    def method(self: _AsyncioContext, *args: Any, **options: Any) -> _Crossing:
        return _Crossing(self._side, getattr(self._ctx, name)(*args, **options))

    return method


def _as_it_is(name: str) -> property:
    return property(lambda self: getattr(self._ctx, name))


def _complete(cls: Any) -> Any:
    """Fill in the other members of `Context`: each is that of the request."""
    members: dict[str, Any] = {}
    for name in cls.__abstractmethods__:
        declared = inspect.getattr_static(Context, name)
        if inspect.iscoroutinefunction(declared):
            members[name] = _on_the_trio_side(name)
        elif name in ("report_progress", "log", "release_stream"):
            members[name] = _sent_at_once(name)
        else:
            members[name] = _as_it_is(name)
    return type("AsyncioContext", (cls,), {"__slots__": (), **members})


AsyncioContext: Callable[[Context, TrioSide], Context] = _complete(_AsyncioContext)


def on_asyncio(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Make a coroutine function of trio that runs a handler on asyncio.

    Args:
        function: The handler; its last argument is the context.
    """

    @functools.wraps(function)
    async def run(*values: Any) -> Any:
        *others, ctx = values
        # Called by an asyncio task of the same request: one method of a server calls another.
        if isinstance(ctx, _AsyncioContext):
            return await function(*values)
        call = Call()
        return await call.run(partial(function, *others, AsyncioContext(ctx, call)))

    return run


def manager_on_asyncio(
    function: Callable[[], AbstractAsyncContextManager[Any]],
) -> Callable[[], AbstractAsyncContextManager[Any]]:
    """Make a function that returns a context manager of trio from one of asyncio."""

    @functools.wraps(function)
    def make() -> AbstractAsyncContextManager[Any]:
        return enter_asyncio(function())

    return make
