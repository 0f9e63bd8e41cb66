"""Newline-framed messages over a pair of file descriptors (`basic/transports/stdio`)."""

import os
import select
import stat
from collections.abc import Callable, Sequence
from typing import Final

import trio

from ..._limits import DEFAULTS, Limits
from ...engine import MessageStream
from ...jsonrpc import LineBuffer, Oversized, Received, read_message

#: Bytes requested in one read: the capacity of a pipe on Linux.
CHUNK: Final = 65536


class LineStream(MessageStream):
    """Messages, one per line, over two descriptors that this object owns and closes.

    Pipes, sockets and terminals are read when they are readable. Files and `/dev/null` are read at
    once, since the kernel cannot wait for them.

    Args:
        read_fd: The descriptor to read from.
        write_fd: The descriptor to write to; a socket may be both.
        limits: The limits of one message; a longer line is skipped.

    Attributes:
        ended: True once `receive` has reached the end.
    """

    #: Tells whether a line is meant as a message; None if every line is.
    _is_message: Callable[[bytes | Oversized], bool] | None = None

    def __init__(self, read_fd: int, write_fd: int, limits: Limits = DEFAULTS) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._lines = LineBuffer(limits.message_size)
        self._limits = limits
        # The part of a message that is not written yet. The outbox waits while there is a rest, so
        # it never grows beyond one call.
        self._rest: bytes | memoryview = b""
        self.ended = False
        self._is_ending = False
        self._closed = False
        self._read_waits = _can_wait(read_fd)
        self._write_waits = _can_wait(write_fd)
        self._is_one_file = os.path.sameopenfile(read_fd, write_fd)
        # Read before either is changed: both may share one open file, as on a terminal.
        self._blocking = {fd: os.get_blocking(fd) for fd in (read_fd, write_fd)}
        for fd in self._blocking:
            os.set_blocking(fd, False)

    async def receive(self) -> Sequence[Received]:
        """Wait for messages; see `MessageStream`."""
        while True:
            await self._wait_readable()
            try:
                data = os.read(self._read_fd, CHUNK)
            except BlockingIOError:
                if not self._is_ending:
                    continue  # another program that shares the pipe was faster
                data = b""
            except OSError as error:
                self.ended = True
                raise trio.BrokenResourceError from error
            if not data:
                self.ended = True
                return ()  # a line without its end is not a message
            messages: list[Received] = []
            for line in self._lines.feed(data):
                if self._is_message is not None and not self._is_message(line):
                    continue
                messages.append(read_message(line, self._limits))
            if messages:
                return messages

    async def _wait_readable(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError
        if self._is_ending or not self._read_waits:
            await trio.lowlevel.checkpoint()
            return
        try:
            # Readable first, then one read: no thread, so a cancellation loses no bytes.
            await trio.lowlevel.wait_readable(self._read_fd)
        except trio.ClosedResourceError:
            if self._closed:
                raise
            # Woken up by `end_reading`.

    def end_reading(self) -> None:
        """Let `receive` return what has arrived, and then the end, without waiting for more."""
        self._is_ending = True
        trio.lowlevel.notify_closing(self._read_fd)

    def send_nowait(self, messages: Sequence[bytes]) -> bool:
        """Write as many bytes as the descriptor accepts now; see `MessageStream`."""
        if self._closed:
            raise trio.BrokenResourceError
        data = self._rest
        if messages:
            data = b"".join([data, *[message + b"\n" for message in messages]])
        written = self._write(data)
        done = written == len(data)
        # A view: copying the rest after each write would take quadratic time.
        self._rest = b"" if done else memoryview(data)[written:]
        # The peer gets whole lines only if each call first writes the rest of the previous one.
        return done

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._write_fd, data) if data else 0
        except BlockingIOError:
            return 0
        except OSError as error:
            raise trio.BrokenResourceError from error

    async def send(self, messages: Sequence[bytes]) -> None:
        """Write messages, waiting if necessary; see `MessageStream`."""
        await trio.lowlevel.checkpoint()
        done = self.send_nowait(messages)
        while not done:
            if self._write_waits:
                # No timeout: a client may stop reading for any time.
                await trio.lowlevel.wait_writable(self._write_fd)
            else:
                await trio.lowlevel.checkpoint()
            done = self.send_nowait(())

    async def wait_unread(self) -> bool:
        """Wait until the reader of the written messages is gone.

        Returns:
            False if the system cannot tell: it can for pipes, and for sockets that are not read.
        """
        if self._closed or not self._write_waits or self._is_one_file:
            return False
        try:
            # This end is never readable, except for the error that its reader is gone.
            await trio.lowlevel.wait_readable(self._write_fd)
        except trio.ClosedResourceError:
            return False
        # A named pipe opened for both has no such error, and is readable. So is a socket to which
        # the peer writes, and a terminal.
        poll = select.poll()
        poll.register(self._write_fd, 0)
        return bool(poll.poll(0))

    async def aclose(self) -> None:
        """Close both descriptors, and restore the blocking mode that other programs see."""
        if not self._closed:
            self._closed = True
            for fd, blocking in self._blocking.items():
                # Wakes a task that waits for the descriptor, which would otherwise wait forever.
                trio.lowlevel.notify_closing(fd)
                os.set_blocking(fd, blocking)
                os.close(fd)
        await trio.lowlevel.checkpoint()


def _can_wait(fd: int) -> bool:
    """Tell whether the loop can wait for a descriptor: not for files, nor for most devices."""
    # `epoll` fails with EPERM for a file.
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
