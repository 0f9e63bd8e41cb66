"""`aio.run`: asyncio code in a trio task."""

from collections.abc import Awaitable, Callable
from functools import partial

from .._util import Arguments, Returned
from ..engine import check_on_trio
from ..engine.aio import run_asyncio


async def run(function: Callable[[*Arguments], Awaitable[Returned]], *args: *Arguments) -> Returned:
    """Run a coroutine function of asyncio from a trio task, and wait for it.

    All of these calls of one trio program share one asyncio loop, which runs in the same thread: a
    pool that one call has opened can be used by the next. A cancellation or a timeout of trio
    cancels the function, and is raised when it has ended.

    Args:
        function: The coroutine function. It sees the context variables of the caller; those that it
            sets are set for the caller.
        *args: Its arguments.

    Returns:
        The return value of the function.

    Raises:
        RuntimeError: No trio task runs here.
        BaseException: Raised by the function.
    """
    check_on_trio("aio.run", "under asyncio await the function itself")
    return await run_asyncio(partial(function, *args))
