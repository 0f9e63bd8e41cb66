"""A server as a child process. Every byte of its stdout is examined."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import trio

from ..._errors import TransportError
from ...transports import Stdio, last_line
from ._exchange import Notes
from ._stream import StreamLink

#: Seconds for a server to exit when its stdin ends, and again after SIGTERM.
EXIT_TIMEOUT: Final = 3.0
#: Maximum bytes of one line.
MAX_LINE: Final = 16 * 1024 * 1024
#: Bytes of stderr that are kept.
_STDERR_KEPT: Final = 4096


class PipeLink(StreamLink):
    """A connection over stdin and stdout; see `Link`.

    Args:
        process: The server.
        notes: Gets the faults on stdout.
    """

    def __init__(self, process: trio.Process, notes: Notes) -> None:
        super().__init__(notes)
        self._process = process
        # `open_pipe` makes all three.
        self._stdin: Any = process.stdin
        self._stdout: Any = process.stdout
        self._stderr: Any = process.stderr
        self._said = bytearray()
        self._writing = trio.Lock()
        self._silent = trio.Event()

    async def _last_words(self) -> str:
        # Its stderr may arrive after the end of its stdout.
        with trio.move_on_after(EXIT_TIMEOUT):
            await self._silent.wait()
        self._silent.set()  # a child of the server may keep it open: wait only once
        said = last_line(self._said)
        return f"the process ended{f'; it said: {said}' if said else ''}"

    async def write(self, message: bytes) -> bool:
        """Write a line; see `StreamLink`."""
        try:
            async with self._writing:
                await self._stdin.send_all(message + b"\n")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.ended = True
            return False
        return True

    async def read(self) -> None:
        """Read stdout to its end."""
        rest = b""
        while data := await _receive(self._stdout):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                await self.take(line)
            if len(rest) > MAX_LINE:
                self.notes.check("message", False, self.where, f"a line of over {MAX_LINE} bytes")
                break
        await self.end_reading()

    async def drain(self) -> None:
        """Read stderr, so that the server never blocks; its end is kept for messages."""
        while data := await _receive(self._stderr):
            self._said += data
            del self._said[:-_STDERR_KEPT]
        self._silent.set()

    async def end(self, patience: float | None = None) -> float | None:
        """Close stdin and wait for the exit.

        Args:
            patience: Seconds to wait, and again after SIGTERM; `EXIT_TIMEOUT` by default.

        Returns:
            The seconds that this took; None if the server had to be killed.
        """
        patience = EXIT_TIMEOUT if patience is None else patience
        await self._stdin.aclose()
        began = trio.current_time()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with trio.move_on_after(patience):
                await self._process.wait()
                return trio.current_time() - began if number == signal.SIGTERM else None
            # The whole group: a launcher such as `npx` does not forward signals.
            with suppress(OSError):
                os.killpg(self._process.pid, number)
        await self._process.wait()
        return None

    async def aclose(self, patience: float | None = None) -> None:
        """End the server and close the pipes, which a child of the server may keep open.

        Args:
            patience: See `end`.
        """
        with trio.CancelScope(shield=True):
            await self.end(patience)
            await self._stdout.aclose()
            await self._stderr.aclose()


async def start_pipe(target: Stdio, notes: Notes) -> PipeLink:
    """Start a server. The caller runs `read` and `drain`, and ends it with `aclose`.

    Args:
        target: The command.
        notes: Gets the faults on stdout.

    Raises:
        TransportError: The server cannot be started.
    """
    try:
        process = await trio.lowlevel.open_process(
            [target.program(), *target.args],
            stdin=-1,
            stdout=-1,
            stderr=-1,
            env=target.environment(),
            cwd=target.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise TransportError(f"cannot start {target.command}: {error}") from error
    return PipeLink(process, notes)


async def _receive(stream: Any) -> bytes:
    try:
        return bytes(await stream.receive_some())
    except trio.ClosedResourceError:  # by `aclose`
        return b""


@asynccontextmanager
async def open_pipe(target: Stdio, notes: Notes) -> AsyncIterator[PipeLink]:
    """Start a server, and end it after the block.

    Args:
        target: The command.
        notes: Gets the faults on stdout.

    Raises:
        TransportError: The server cannot be started.
    """
    link = await start_pipe(target, notes)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link.read)
        nursery.start_soon(link.drain)
        try:
            yield link
        finally:
            await link.aclose()
