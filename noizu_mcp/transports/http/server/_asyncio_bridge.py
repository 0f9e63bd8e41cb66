"""A trio loop in a thread of its own, for applications whose host runs on asyncio.

Servers are written for trio. uvicorn, and hypercorn by default, are not: there everything that a
request needs crosses between two threads. That costs some 100 µs a call, and nothing else.
"""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import trio

from ....engine import unwrap_single
from ._asgi import Message, Receive, Send

Result = TypeVar("Result")


class Bridge:
    """Runs coroutine functions of trio for callers on asyncio.

    Made in the trio loop, by `bridged`.

    Args:
        nursery: Where they run.
        loop: The loop of the callers.
    """

    def __init__(self, nursery: trio.Nursery, loop: asyncio.AbstractEventLoop) -> None:
        self.stopped = trio.Event()
        self._nursery = nursery
        self._loop = loop
        self._token = trio.lowlevel.current_trio_token()

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run something on the trio side; called and cancelled from the asyncio side.

        Args:
            work: The coroutine function; it sees the context variables of the caller.

        Raises:
            RuntimeError: The trio side has ended, or ends meanwhile.
            Exception: Raised by the work.
        """
        scope = trio.CancelScope()
        done: Future[None] = Future()
        # A task has the context that it is started in: by itself, that of trio's own loop.
        context = contextvars.copy_context()
        self._soon(partial(context.run, self._nursery.start_soon, _settle, work, scope, done))
        ended = asyncio.wrap_future(done)
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            self._soon(scope.cancel)
            # Another cancellation must not reach `done`, which belongs to the other side.
            await asyncio.wait([ended])
            raise

    def stop(self) -> None:
        """Let the trio side end in order; from the asyncio side."""
        self._soon(self.stopped.set)

    def _soon(self, function: Callable[[], object]) -> None:
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            raise RuntimeError("the server of this application has ended") from None

    def sides(self, receive: Receive, send: Send) -> tuple[Receive, Send]:
        """Make the two directions of an ASGI request callable from the trio side."""

        async def receive_here() -> Message:
            return await self._call(receive())

        async def send_here(message: Message) -> None:
            await self._call(send(message))

        return receive_here, send_here

    def _wake(self, event: trio.Event) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(event.set)

    async def _call(self, work: Awaitable[Result]) -> Result:
        """Await something of the asyncio side on the trio side."""
        task = asyncio.run_coroutine_threadsafe(_awaited(work), self._loop)
        # The callback runs in the thread of asyncio, where only `run_sync_soon` may be used.
        ended = trio.Event()
        task.add_done_callback(lambda _: self._wake(ended))
        try:
            await ended.wait()
        except trio.Cancelled:
            task.cancel()
            raise
        return task.result()


async def _awaited(work: Awaitable[Result]) -> Result:
    return await work


async def _settle(
    work: Callable[[], Awaitable[None]], scope: trio.CancelScope, done: "Future[None]"
) -> None:
    """Run a coroutine function, and hand its end to the other side."""
    try:
        with scope:
            await work()
    except Exception as error:  # noqa: BLE001 - it is raised on the other side
        done.set_exception(error)
    except BaseException:
        done.set_exception(RuntimeError("the server of this application was cancelled"))
        raise
    else:
        done.set_result(None)


@asynccontextmanager
async def bridged(
    lifespan: Callable[[], AbstractAsyncContextManager[Any]],
) -> AsyncIterator[Bridge]:
    """Run a trio loop in a thread, inside of a lifespan, for as long as the block runs.

    Args:
        lifespan: Surrounds the work in that loop.

    Raises:
        Exception: Raised by the lifespan.
    """
    loop = asyncio.get_running_loop()
    started: Future[Bridge] = Future()
    ended: Future[None] = Future()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            bridge = Bridge(nursery, loop)
            async with lifespan():
                # Not before the lifespan has begun: requests need its state.
                started.set_result(bridge)
                await bridge.stopped.wait()
            # Requests that are left have had their grace in the end of the lifespan.
            nursery.cancel_scope.cancel()

    # A daemon: a host that never ends the lifespan must not keep the interpreter alive.
    thread = threading.Thread(
        target=_run, args=(main, started, ended), name="noizu-mcp", daemon=True
    )
    thread.start()
    bridge = await asyncio.wrap_future(started)
    try:
        yield bridge
    finally:
        # Shielded: a cancelled host must still wait until the server has ended in order, and the
        # thread must not be left with a loop of its own.
        bridge.stop()
        await asyncio.shield(asyncio.wrap_future(ended))
        thread.join()


def _run(
    main: Callable[[], Awaitable[None]], started: "Future[Bridge]", ended: "Future[None]"
) -> None:
    try:
        trio.run(main)
    except BaseException as error:  # noqa: BLE001 - it is raised on the other side
        # Before the start, `bridged` raises it on entry; later, at the end of its block.
        error = unwrap_single(error)
        (ended if started.done() else started).set_exception(error)
    finally:
        if not ended.done():
            ended.set_result(None)
