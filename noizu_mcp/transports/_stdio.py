"""The server's side of stdio: the protocol on private descriptors, stray output on stderr."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import Final

import trio

from ..engine import single_failure
from ..server import GRACE, Connection, Server, open_connection
from ._lines import LineStream

#: Seconds between looks at the parent process, where the kernel cannot tell of its end.
PARENT_POLL: Final = 2.0


@contextlib.contextmanager
def claimed_stdio() -> Iterator[tuple[int, int]]:
    """Take stdin and stdout away from the rest of the program.

    Inside, descriptor 0 reads nothing and descriptor 1 writes to stderr, for Python, C code and
    child processes alike, so that none of them can touch the protocol. Both are put back at the
    end.

    Yields:
        Private duplicates of what descriptors 0 and 1 were; child processes do not inherit them.
    """
    with contextlib.ExitStack() as stack:
        flush_stdout()
        protocol = os.dup(0), os.dup(1)
        stack.callback(_put_back, os.dup(0), os.dup(1))
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # started without a stderr
            os.dup2(nothing, 1)
        os.close(nothing)
        yield protocol


def _put_back(stdin: int, stdout: int) -> None:
    flush_stdout()  # what was printed meanwhile belongs to stderr
    for saved, fd in ((stdin, 0), (stdout, 1)):
        os.dup2(saved, fd)
        os.close(saved)


def flush_stdout() -> None:
    """Write out what Python still holds for descriptor 1."""
    if sys.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()


async def serve_stdio(
    server: Server,
    *,
    grace: float = GRACE,
    handle_signals: bool = False,
    task_status: trio.TaskStatus[Connection] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve one client on stdin and stdout until it ends the connection.

    It ends when stdin ends, when the parent process does, or on a signal. Requests that run then
    get `grace` seconds.

    Args:
        server: The server.
        grace: Seconds.
        handle_signals: End in order on SIGINT and SIGTERM, at once on the second one. Only from
            the main thread.
        task_status: Started with the connection, whose `stop` ends it in order.
    """
    with single_failure(), claimed_stdio() as (read_fd, write_fd):
        stream = LineStream(read_fd, write_fd, server.options.limits.message_size)
        async with (
            open_connection(server, stream, transport="stdio") as connection,
            trio.open_nursery() as watchers,
        ):
            watchers.start_soon(_stop_with_parent, connection)
            if handle_signals:
                await watchers.start(_stop_on_signal, connection, watchers.cancel_scope)
            task_status.started(connection)
            await connection.run(grace)
            watchers.cancel_scope.cancel()


async def _stop_with_parent(connection: Connection) -> None:
    await parent_exit()
    connection.stop()


async def _stop_on_signal(
    connection: Connection,
    everything: trio.CancelScope,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        stopping = False
        async for _ in signals:
            if stopping:
                everything.cancel()
            stopping = True
            connection.stop()


async def parent_exit() -> None:
    """Wait until the parent process has ended; for ever if there is none to speak of.

    A client that is killed leaves its servers behind: usually their stdin ends with it, but not
    if a sibling inherited the other end of the pipe.
    """
    parent = os.getppid()
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
