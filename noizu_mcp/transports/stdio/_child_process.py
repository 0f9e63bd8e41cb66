"""The client's side of stdio: a server as a child process, from its start to its end."""

import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Final

import trio

from ..._errors import ConnectionClosed, TransportError
from ..._limits import DEFAULTS, Limits
from ...engine import SHOWN, ThrottledLog, single_failure
from ...jsonrpc import Oversized
from ._command import Stdio
from ._line_stream import LineStream
from ._orphan_watch import OrphanWatch, watch_orphans

#: Bytes of the stderr of a server that are kept: the last lines usually explain its end.
STDERR_KEPT: Final = 64 * 1024
_SHOWN: Final = 200
_NODE_END: Final = re.compile(r"Node\.js v[\d.]+")
_NODE_ERROR: Final = re.compile(r"\w*Error\b.*: ")


class ServerStream(LineStream):
    """The messages of a server. Other lines on its stdout are skipped.

    Servers that print to stdout break the protocol (`basic/transports/stdio`), but are common.
    """

    def __init__(self, read_fd: int, write_fd: int, limits: Limits) -> None:
        super().__init__(read_fd, write_fd, limits)
        self._log = ThrottledLog(shown=SHOWN)

    def _is_message(self, line: bytes | Oversized) -> bool:
        if isinstance(line, Oversized):
            return True
        # A line that looks like JSON-RPC is passed on even if it is malformed: it may be the answer
        # to a request, which must then fail instead of waiting.
        start = line[:1]
        if start != b"{":  # rare: white space, a byte order mark, an array, or not a message
            start = line.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if start in (b"{", b"[") and (b'"jsonrpc"' in line or b'"id"' in line):
            return True
        text = "skipped a line that is no message: %r"
        self._log.warning(text, text, line[:_SHOWN])
        return False


@asynccontextmanager
async def open_process(
    target: Stdio, limits: Limits = DEFAULTS
) -> AsyncIterator[tuple[LineStream, trio.Process]]:
    """Start a server; on exit close its stdin, wait, send SIGTERM, wait, send SIGKILL.

    The server leads its own session. So Ctrl-C in the terminal reaches only this program, which
    ends the server gracefully, and the signals reach the children of the server as well. If this
    program is killed, another process ends the server (`watch_orphans`).

    Args:
        target: The command.
        limits: The limits of one message of the server.

    Yields:
        The stream of its messages, and the process.

    Raises:
        TransportError: The server could not be started.
        ConnectionClosed: Raised by the block after the end of the server; the text says how the
            server ended.
    """
    process, stream = await _start(target, limits)
    said = _LastWords(process.stderr)
    watch = OrphanWatch(None)
    try:
        watch = await watch_orphans(process.pid, target.exit_timeout)
        with single_failure():
            yield stream, process
    except ConnectionClosed as error:
        if not stream.ended:
            raise  # of another connection
        raise ConnectionClosed(f"{error}: {await _end_of(target, process, said)}") from error
    finally:
        with trio.CancelScope(shield=True):
            # In this order: the end of its stdin asks the server to exit (`basic/lifecycle`,
            # "Shutdown"), and its stderr is read until it has exited.
            await stream.aclose()
            await _end(process, target.exit_timeout)
            await said.aclose()
            await watch.aclose()


async def _start(target: Stdio, limits: Limits) -> tuple[trio.Process, LineStream]:
    try:
        with ExitStack() as ours, ExitStack() as theirs:
            # The child's ends are always closed here; otherwise the end of the child would not end
            # its stdout. The parent's ends are kept only if the start succeeds.
            child_in, our_out = os.pipe()
            theirs.callback(os.close, child_in)
            ours.callback(os.close, our_out)
            our_in, child_out = os.pipe()
            theirs.callback(os.close, child_out)
            ours.callback(os.close, our_in)
            process = await trio.lowlevel.open_process(
                [target.program(), *target.args],
                stdin=child_in,
                stdout=child_out,
                stderr=target.stderr,
                env=target.environment(),
                cwd=target.cwd,
                start_new_session=True,
            )
            ours.pop_all()
    except (OSError, ValueError) as error:
        raise TransportError(f"cannot start {target.command}: {error}") from error
    stream = ServerStream(our_in, our_out, limits)
    stream.address = (target.command, target.args, target.cwd)
    return process, stream


class _LastWords:
    """The end of the stderr of a server, if it is a pipe to this program."""

    def __init__(self, stream: trio.abc.ReceiveStream | None) -> None:
        self.complete = trio.Event()
        self._stream = stream
        self._text = bytearray()
        if stream is None:
            self.complete.set()
        else:
            # A nursery here would have to be exited before nurseries that its user opened earlier.
            trio.lowlevel.spawn_system_task(self._keep, stream)

    async def _keep(self, stream: trio.abc.ReceiveStream) -> None:
        """Read all of it, so that the server never blocks, and keep the end."""
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await stream.receive_some():
                self._text += data
                del self._text[:-STDERR_KEPT]
        self.complete.set()

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()

    def last_line(self) -> str:
        """Return the last line as the end of an error message, or an empty text."""
        said = last_line(self._text)
        return f"; it said: {said[:_SHOWN]}" if said else ""


def last_line(stderr: bytes | bytearray) -> str:
    """Return the line of a stderr that tells why the program ended, or an empty text.

    It is usually the last one. Node.js ends with its version, below the error and the stack.
    """
    lines = stderr.decode(errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    if said and _NODE_END.fullmatch(said[-1]):
        said = [line for line in said if _NODE_ERROR.match(line)] or said
    return said[-1] if said else ""


async def _end_of(target: Stdio, process: trio.Process, said: _LastWords) -> str:
    # The stream may end shortly before the process, and its stderr shortly after.
    with trio.CancelScope(shield=True), trio.move_on_after(target.exit_timeout):
        await process.wait()
        await said.complete.wait()
    status = process.returncode
    if status is None:
        how = "closed its stdout"
    elif status < 0:
        how = f"was ended by {_signal_name(-status)}"
    else:
        how = f"exited with status {status}"
    return f"{target.command} {how}{said.last_line()}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal without a name
        return f"signal {number}"


async def _end(process: trio.Process, seconds: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with trio.move_on_after(seconds):
            await process.wait()
            return
        with contextlib.suppress(OSError):  # it has just ended
            # The whole group, which the server leads: a launcher such as `npx` does not forward
            # signals.
            os.killpg(process.pid, number)
    await process.wait()
