"""A connection to a server for one piece of work, in plain code."""

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from .._util import Returned
from ..client import Client, Target, connect


def use_server(
    target: Target, work: Callable[[Client], Awaitable[Returned]], **options: Any
) -> Returned:
    """Connect to a server, run some work, and close the connection.

    Args:
        target: A server, a command, a URL or a file, as for `connect`.
        work: Called with the client.
        options: Options of `connect`.

    Raises:
        RuntimeError: It is called in a trio task, which it would block.
        BaseException: See `connect`.
    """
    if trio.lowlevel.in_trio_task():
        raise RuntimeError("this would stop the trio loop: call it in a plain function")

    async def main() -> Returned:
        async with connect(target, **options) as client:
            return await work(client)

    return trio.run(main)
