"""The server's side of stdio: from two descriptors to the graceful end of a connection."""

import contextlib
from typing import TYPE_CHECKING, Final

import trio

from ...engine import check_on_trio, single_failure
from ...server import PipeSession, Server, open_session
from .._process_end import ending_on_signals, parent_exit
from ._claimed_stdio import claimed_stdio, release
from ._line_stream import LineStream

if TYPE_CHECKING:
    from ...types import Principal

#: Seconds for running requests to end. Clients wait two seconds after they have closed stdin, and
#: then send SIGTERM; the server should have exited by then.
GRACE: Final = 1.0
#: Seconds for the threads of cancelled sync handlers to end before the process does. More would
#: delay the exit for each thread that cannot end.
THREAD_GRACE: Final = 0.3


async def serve_stdio(
    server: Server,
    *,
    grace: float = GRACE,
    handle_signals: bool = False,
    principal: "Principal | None" = None,
    task_status: trio.TaskStatus[PipeSession] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve one client on stdin and stdout until it ends the connection.

    It ends when stdin ends, when the parent process ends, or on a signal. Running requests then get
    `grace` seconds. It also ends when the reader of stdout is gone: then requests are cancelled at
    once. Meanwhile descriptor 0 reads nothing and descriptor 1 writes to stderr.

    Args:
        server: The server.
        grace: Seconds for running requests at the end.
        handle_signals: Stop gracefully on SIGINT and SIGTERM. The next one ends the process at
            once, even if this function has returned by then. Only in the main thread.
        principal: The client at the other end, `ctx.auth`, as known to the parent process. None for
            no authentication; components that require scopes then refuse calls.
        task_status: Started with the connection, whose `stop` ends it gracefully.

    Raises:
        RuntimeError: The caller is not a trio task.
    """
    check_on_trio("serve_stdio", "without a loop write `Name().run()`")
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
    principal: "Principal | None" = None,
    task_status: trio.TaskStatus[PipeSession] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve one client on two descriptors, like `serve_stdio` on stdin and stdout.

    Args:
        server: The server.
        read_fd: The descriptor to read messages from; closed at the end.
        write_fd: The descriptor to write messages to; closed at the end.
        grace: Seconds for running requests at the end.
        handle_signals: See `serve_stdio`.
        principal: See `serve_stdio`.
        task_status: Started with the connection.
    """
    from ...telemetry import watching

    stream = LineStream(read_fd, write_fd, server.options.limits)
    session: PipeSession | None = None
    everything = trio.CancelScope()

    def end() -> None:
        # Before the connection nothing can end gracefully. A client that has closed stdin, and then
        # sends a signal, reads no answers.
        if session is None or stream.ended:
            everything.cancel()
        else:
            session.stop()

    signals = ending_on_signals(end) if handle_signals else contextlib.nullcontext()
    try:
        with single_failure(), signals, everything, watching(server.options.watchdog):
            async with (
                open_session(server, stream, transport="stdio", principal=principal) as session,
                trio.open_nursery() as watchers,
            ):
                # Cancelled below: otherwise they would keep the block open after the session.
                watchers.start_soon(_stop_with_parent, session)
                watchers.start_soon(_end_with_reader, session, stream)
                task_status.started(session)
                try:
                    await session.run(grace)
                finally:
                    # The end of the process would end them without their `finally` blocks.
                    await server.abandoned.settle(THREAD_GRACE)
                watchers.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await stream.aclose()
        # Only after they are closed: until then a forked child must still close its copies.
        release(read_fd, write_fd)


async def _stop_with_parent(session: PipeSession) -> None:
    await parent_exit()
    session.stop()


async def _end_with_reader(session: PipeSession, stream: LineStream) -> None:
    if await stream.wait_unread():
        session.hang_up()
        # Not until the end of stdin: a client that dies may leave it open in a child process.
        stream.end_reading()
