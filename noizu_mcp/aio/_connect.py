"""`aio.connect`: the client for asyncio programs."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

import attrs

from .. import client
from ..client import HANDLER_METHODS, Client, ClientHandler
from ..engine.aio import TrioSide, enter_trio, run_asyncio, trio_side

Params = ParamSpec("Params")
Result = TypeVar("Result")


def _with_options_of(
    original: Callable[Params, Result],
) -> Callable[[Callable[..., Result]], Callable[Params, Result]]:
    """Give a function the signature of another one."""

    def give(function: Callable[..., Result]) -> Callable[Params, Result]:
        vars(function)["__signature__"] = inspect.signature(original)
        return function

    return give


@_with_options_of(client.connect)
@asynccontextmanager
async def connect(target: Any, **options: Any) -> AsyncIterator[Client]:
    """Connect an asyncio program to a server for as long as the block runs.

    It is `noizu_mcp.connect` for asyncio programs and notebooks, with the same options, the same
    client and the same errors. trio runs beside the asyncio loop, in the same thread. The client
    can be used and closed from any task of the program. Coroutine functions of the handler run on
    the asyncio loop, and so does an async `open_browser` of `OAuth`. If the connection cannot go
    on, the task that entered the block is cancelled, and the block raises the reason.

    Args:
        target: A server, a command, a URL or a stream; see `noizu_mcp.connect`.
        **options: The options of `noizu_mcp.connect`.

    Yields:
        The client; its methods are coroutine functions of asyncio.

    Raises:
        RuntimeError: The asyncio loop runs inside of a trio task.
        BaseException: See `noizu_mcp.connect`.
    """
    if isinstance(options.get("handler"), ClientHandler):
        options["handler"] = _HandlerOnAsyncio(options["handler"])
    browser = getattr(options.get("auth"), "open_browser", None)
    if inspect.iscoroutinefunction(browser):
        options["auth"] = attrs.evolve(options["auth"], open_browser=_on_asyncio(browser))
    opened = client.connect(target, **options)
    async with trio_side() as side, enter_trio(side, opened) as inner:
        yield _AsyncioClient(inner, side)


class _HandlerOnAsyncio(ClientHandler):
    """A handler for a client on trio, whose coroutine functions run on asyncio.

    Args:
        handler: The handler of the program.
    """

    def __init__(self, handler: ClientHandler) -> None:
        # Attributes of an instance count as overrides; methods of the base class do not.
        for name in HANDLER_METHODS:
            method = getattr(handler, name)
            is_async = inspect.iscoroutinefunction(method)
            setattr(self, name, _on_asyncio(method) if is_async else method)
        settings = ("elicitation_modes", "sampling_tools")
        vars(self).update((name, getattr(handler, name)) for name in settings)


def _on_asyncio(method: Callable[..., Any]) -> Callable[..., Any]:
    async def run(*args: Any) -> Any:
        return await run_asyncio(partial(method, *args))

    return run


class _AsyncioClient(Client):
    """A client whose methods are called by tasks of asyncio.

    Args:
        inner: The client on the trio side.
        side: Runs its methods.
    """

    def __init__(self, inner: Client, side: TrioSide) -> None:
        vars(self).update(vars(inner))
        self._inner = inner
        self._side = side

    @_with_options_of(Client.listen)
    def listen(self, **wanted: Any) -> Any:
        """Receive notifications of changes while the block runs; see `Client`."""
        return enter_trio(self._side, self._inner.listen(**wanted))


def _on_trio(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def crossed(self: _AsyncioClient, *args: Any, **options: Any) -> Any:
        return await self._side.run_trio(partial(method, self._inner, *args, **options))

    return crossed


for _name, _method in vars(Client).items():
    if inspect.iscoroutinefunction(_method) and not _name.startswith("_"):
        setattr(_AsyncioClient, _name, _on_trio(_method))
