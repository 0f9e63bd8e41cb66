"""Running a command in trio, so that Ctrl-C ends it in order."""

import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from ..engine import single_failure

Result = TypeVar("Result")


def run_loop(function: Callable[[], Awaitable[Result]]) -> Result:
    """Run an async function to its end.

    Ctrl-C cancels it, whatever it is doing, instead of raising in the middle of it: so servers
    that it started are ended, and no half-done work fails on its own.

    Raises:
        KeyboardInterrupt: It was interrupted, and has ended.
    """
    interrupted = False

    async def watch(
        scope: trio.CancelScope,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        nonlocal interrupted
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                interrupted = True
                scope.cancel()

    results: list[Result] = []

    async def main() -> None:
        with single_failure():
            async with trio.open_nursery() as nursery:
                await nursery.start(watch, nursery.cancel_scope)
                results.append(await function())
                nursery.cancel_scope.cancel()

    trio.run(main)
    if interrupted:
        raise KeyboardInterrupt
    return results[0]
