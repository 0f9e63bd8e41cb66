"""The server's side of stdio: from two descriptors to the orderly end of a connection."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

import trio

from ...engine import single_failure
from ...server import GRACE, PipeSession, Server, open_session
from ...types import Principal
from ._claimed_stdio import claimed_stdio, release
from ._line_stream import LineStream

#: Seconds between looks at the parent process, where the kernel cannot tell of its end.
PARENT_POLL: Final = 2.0
#: Signals that end a server in order.
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


async def serve_stdio(
    server: Server,
    *,
    grace: float = GRACE,
    handle_signals: bool = False,
    principal: Principal | None = None,
    task_status: trio.TaskStatus[PipeSession] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve one client on stdin and stdout until it ends the connection.

    It ends when stdin ends, when the parent process does, or on a signal. Requests that run then
    get `grace` seconds. Meanwhile descriptor 0 reads nothing and descriptor 1 writes to stderr.

    Args:
        server: The server.
        grace: Seconds.
        handle_signals: End in order on SIGINT and SIGTERM. The next one ends the process at once,
            also when this function has returned by then. Only from the main thread.
        principal: The client at the other end, `ctx.auth`; the parent process knows it. None:
            nobody is verified, and components that require scopes refuse calls.
        task_status: Started with the connection, whose `stop` ends it in order.
    """
    with claimed_stdio() as (read_fd, write_fd):
        await serve_descriptors(
            server,
            read_fd,
            write_fd,
            grace=grace,
            handle_signals=handle_signals,
            principal=principal,
            task_status=task_status,
        )


async def serve_descriptors(
    server: Server,
    read_fd: int,
    write_fd: int,
    *,
    grace: float = GRACE,
    handle_signals: bool = False,
    principal: Principal | None = None,
    task_status: trio.TaskStatus[PipeSession] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve one client on two descriptors as `serve_stdio` does on stdin and stdout.

    Args:
        server: The server.
        read_fd: The descriptor to read messages from; closed at the end.
        write_fd: The descriptor to write messages to; closed at the end.
        grace: Seconds that running requests get at the end.
        handle_signals: See `serve_stdio`.
        principal: See `serve_stdio`.
        task_status: Started with the connection.
    """
    stream = LineStream(read_fd, write_fd, server.options.limits)
    session: PipeSession | None = None
    everything = trio.CancelScope()

    def end() -> None:
        # Before the connection nothing can end in order; after the end of stdin nobody reads the
        # answers any more.
        if session is None or stream.ended:
            everything.cancel()
        else:
            session.stop()

    signals = ending_on_signals(end) if handle_signals else contextlib.nullcontext()
    try:
        with single_failure(), signals, everything:
            async with (
                open_session(server, stream, transport="stdio", principal=principal) as session,
                trio.open_nursery() as watchers,
            ):
                # Cancelled below: it would otherwise keep the block open after the session.
                watchers.start_soon(_stop_with_parent, session)
                task_status.started(session)
                await session.run(grace)
                watchers.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await stream.aclose()
        # Only after they are closed: until then a fork must still close its copies.
        release(read_fd, write_fd)


async def _stop_with_parent(session: PipeSession) -> None:
    await parent_exit()
    session.stop()


def _nothing() -> None:
    """Do nothing at once when a signal comes."""


@contextlib.contextmanager
def ending_on_signals(
    end: Callable[[], object], at_once: Callable[[], object] = _nothing
) -> Iterator[None]:
    """Call a function in the loop on the first SIGINT or SIGTERM.

    From then on both have their default action: the next one ends the process at once, even if
    its loop is blocked. A signal that the process was started to ignore stays ignored.

    Args:
        end: The function.
        at_once: Another one, called in the signal handler: it does not wait for the loop.
    """
    token = trio.lowlevel.current_trio_token()
    before = {each: signal.getsignal(each) for each in SIGNALS}
    ours = [each for each, handler in before.items() if handler is not signal.SIG_IGN]

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        for each in ours:
            # In the handler itself, and not in the loop, which may be blocked.
            signal.signal(each, signal.SIG_DFL)
        at_once()
        token.run_sync_soon(end)

    for each in ours:
        signal.signal(each, on_signal)
    try:
        yield
    finally:
        for each in ours:
            if signal.getsignal(each) is on_signal:
                signal.signal(each, before[each])


async def parent_exit(parent: int | None = None) -> None:
    """Wait until the parent process has ended; for ever without a parent of its own.

    A client that is killed leaves its servers behind: usually their stdin ends with it, but not
    if a sibling inherited the other end of the pipe.

    Args:
        parent: Its number, where that is known: it may have ended by now.
    """
    parent = os.getppid() if parent is None else parent
    # Process 1 adopts orphans, and is the parent of a container's first process: it never ends.
    if parent <= 1:
        await trio.sleep_forever()
    try:
        fd = os.pidfd_open(parent)
    except (AttributeError, OSError):
        while os.getppid() == parent:  # noqa: ASYNC110 - nothing tells of it
            await trio.sleep(PARENT_POLL)
        return
    try:
        if os.getppid() == parent:  # else it ended, and its number was given away, in between
            await trio.lowlevel.wait_readable(fd)
    finally:
        os.close(fd)
