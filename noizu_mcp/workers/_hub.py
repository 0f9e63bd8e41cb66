"""The backend of workers: a backend in their supervisor, which each reaches over a socket pair.

Theory of operation. A message is a frame: a line of JSON, and the bytes of values behind it. The
first one is `open` with the name of the server. Requests have numbers, and the supervisor executes
them in their order, so a worker that floods it waits for itself alone. Only a `read` that waits has
a task of its own: others do not wait for it. There is one such task for each worker, as a node has
one reader: the next `read` takes the place of one whose caller was cancelled.
"""

import itertools
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import attrs
import trio

from .._groups import single_failure
from .._limits import MIB
from .._log import logger
from ..backends import (
    Backend,
    BackendUnavailable,
    Conflict,
    Full,
    Gap,
    LogEntry,
    Record,
)
from ._frames import FrameStream

#: Maximum bytes of a message: four times the largest value, or twice the entries that a `read` of
#: five streams returns.
_MOST: Final = 64 * MIB
#: Bytes of answers that are sent without waiting for more of them.
_TOGETHER: Final = 64 * 1024
#: Maximum number of operations of one worker that wait for their answers.
_MAX_WAITING: Final = 1000
#: Seconds for an answer. The supervisor does nothing else that takes long.
_TIMEOUT: Final = 1.0
#: Operations by name, each with the name of its argument that has bytes.
_OPERATIONS: Final[dict[str, str | None]] = {
    "get": None,
    "put": "value",
    "delete": None,
    "members": None,
    "take": None,
    "append": "entry",
    "end_of": None,
    "read": None,
}


#: The outcome of an operation: its kind, its result, and the bytes in it.
_Outcome = tuple[str, Any, bytes]


@attrs.define(eq=False)
class _Waiting:
    came: trio.Event = attrs.field(factory=trio.Event)
    outcome: str = ""
    result: Any = None
    blob: bytes = b""


class Hub(Backend):
    """A backend in another process, which serves it with `serve_hub`. It is opened once.

    Args:
        end: One end of a socket pair; closed at the end.
        timeout: Seconds after which an operation fails.
    """

    def __init__(self, end: socket.socket, *, timeout: float = _TIMEOUT) -> None:
        end.setblocking(False)
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(end))
        self._frames = FrameStream(self._stream, _MOST)
        self._timeout = timeout
        self._numbers = itertools.count()
        self._waiting: dict[int, _Waiting] = {}
        self._out, self._unsent = trio.open_memory_channel[bytes](_MAX_WAITING)
        self._reading = trio.Lock()
        self._offset = 0.0
        self._is_up = True

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Backend]:
        """Open it for a node. See `Backend.open`."""
        with single_failure():
            async with self._stream, trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._listen)
                self.lease, now = (await self._ask("open", server=name)).result
                # The clocks of two processes of one machine run alike.
                self._offset = now - trio.current_time()
                try:
                    yield self
                finally:
                    self._end()
                    nursery.cancel_scope.cancel()

    @property
    def is_up(self) -> bool:
        return self._is_up

    def now(self) -> float:
        return trio.current_time() + self._offset

    async def get(self, key: str, *, ttl: float | None = None, known: int = 0) -> Record | None:
        answer = await self._ask("get", key=key, ttl=ttl, known=known)
        return None if answer.result is None else Record(answer.blob, *answer.result)

    async def put(
        self,
        key: str,
        value: bytes,
        *,
        ttl: float,
        version: int | None = None,
        groups: Mapping[str, int] = {},
    ) -> int:
        arguments = {"key": key, "ttl": ttl, "version": version, "groups": dict(groups)}
        return int((await self._ask("put", value, **arguments)).result)

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        return bool((await self._ask("delete", key=key, version=version)).result)

    async def members(self, group: str) -> list[str]:
        found: list[str] = (await self._ask("members", group=group)).result
        return found

    async def take(self, key: str, *, limit: int, period: float) -> float:
        return float((await self._ask("take", key=key, limit=limit, period=period)).result)

    async def append(self, stream: str, entry: bytes, *, keep: int, ttl: float) -> str:
        return str((await self._ask("append", entry, stream=stream, keep=keep, ttl=ttl)).result)

    async def read(self, positions: Mapping[str, str], *, wait: float) -> list[LogEntry | Gap]:
        async with self._reading:
            answer = await self._ask("read", wait=wait, positions=dict(positions))
        items: list[LogEntry | Gap] = []
        start = 0
        for stream, position, size in answer.result:
            if size is None:
                items.append(Gap(stream, position))
            else:
                items.append(LogEntry(stream, position, answer.blob[start : start + size]))
                start += size
        return items

    async def end_of(self, stream: str) -> str:
        return str((await self._ask("end_of", stream=stream)).result)

    async def _ask(self, name: str, blob: bytes = b"", **arguments: Any) -> _Waiting:
        """Let the supervisor execute an operation.

        Raises:
            BackendUnavailable: It does not answer, or says so.
            Conflict: As it says.
            Full: As it says.
            ValueError: The bytes are too many.
        """
        if len(blob) > _MOST // 2:  # it is not even sent
            raise ValueError(f"{len(blob):,} bytes are more than any record or entry may have")
        with self.observed(name):
            number, answer = next(self._numbers), _Waiting()
            self._waiting[number] = answer
            try:
                with suppress(trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
                    self._out.send_nowait(_pack([number, name, arguments], blob))
                    with trio.move_on_after(self._timeout + arguments.get("wait", 0.0)):
                        await answer.came.wait()
            finally:
                del self._waiting[number]
            self._is_up = bool(answer.outcome)
            if answer.outcome == "done":
                return answer
            if answer.outcome == "conflict":
                raise Conflict(answer.result)
            if answer.outcome == "full":
                raise Full(answer.result)
            if answer.outcome == "refused":
                raise ValueError(answer.result)
            raise BackendUnavailable(
                answer.result or "the process that holds what the workers share does not answer"
            )

    async def _write(self) -> None:
        with suppress(trio.BrokenResourceError):
            async for frame in self._unsent:
                frames = [frame]
                with suppress(trio.WouldBlock, trio.EndOfChannel):
                    while True:
                        frames.append(self._unsent.receive_nowait())
                await self._frames.send(*frames)

    async def _listen(self) -> None:
        while (frame := await self._frames.receive()) is not None:
            (number, outcome, epoch, result), blob = _unpack(frame)
            self.epoch = epoch
            # There is no entry where the caller was cancelled.
            if (answer := self._waiting.get(number)) is not None:
                answer.outcome, answer.result, answer.blob = outcome, result, blob
                answer.came.set()
        self._end()

    def _end(self) -> None:
        """Let every operation fail, from now on: the supervisor has ended."""
        self._out.close()
        for each in self._waiting.values():
            each.came.set()


async def serve_hub(backend_of: Callable[[str], Backend], end: socket.socket) -> None:
    """Serve a backend to the `Hub` at the other end, until its process has ended.

    Args:
        backend_of: Returns the backend of a server by its name.
        end: One end of a socket pair; closed at the end.
    """
    end.setblocking(False)
    async with trio.SocketStream(trio.socket.from_stdlib_socket(end)) as stream:
        frames = FrameStream(stream, _MOST)
        with suppress(trio.BrokenResourceError), single_failure():
            opening = await frames.receive()
            if opening is not None:
                (number, _, arguments), _ = _unpack(opening)
                name = arguments["server"]
                async with backend_of(name).open(name) as opened, trio.open_nursery() as nursery:
                    served = _Served(opened, frames, nursery)
                    await served.send(served.pack(number, "done", [opened.lease, opened.now()]))
                    await served.run()
                    nursery.cancel_scope.cancel()


class _Served:
    """One worker as its hub sees it."""

    def __init__(self, backend: Backend, frames: FrameStream, nursery: trio.Nursery) -> None:
        self._backend = backend
        self._frames = frames
        self._nursery = nursery
        self._sending = trio.Lock()
        self._reading = trio.CancelScope()

    async def run(self) -> None:
        # Answers that come together are sent together, up to a size.
        answers, size = list[bytes](), 0
        while (frame := await self._frames.receive()) is not None:
            (number, name, arguments), blob = _unpack(frame)
            if arguments.get("wait"):
                self._reading.cancel()
                self._reading = trio.CancelScope()
                self._nursery.start_soon(self._read, number, arguments, self._reading)
            else:
                answers.append(self.pack(number, *await self._execute(name, arguments, blob)))
                size += len(answers[-1])
            if size > _TOGETHER or not self._frames.has_more:
                await self.send(*answers)
                answers, size = [], 0

    async def _read(self, number: int, arguments: dict[str, Any], scope: trio.CancelScope) -> None:
        found: _Outcome | None = None
        with scope:
            found = await self._execute("read", arguments, b"")
        if found is not None:  # outside of the scope: an answer is sent as a whole
            await self.send(self.pack(number, *found))

    async def _execute(  # noqa: PLR0911 - one for each outcome
        self, name: str, arguments: dict[str, Any], blob: bytes
    ) -> _Outcome:
        try:
            if (of_bytes := _OPERATIONS[name]) is not None:
                arguments[of_bytes] = blob
            result = await getattr(self._backend, name)(**arguments)
        except Conflict as error:
            return "conflict", error.version, b""
        except Full as error:
            return "full", error.group, b""
        except ValueError as error:
            return "refused", str(error), b""
        except BackendUnavailable as error:
            return "unavailable", str(error), b""
        except Exception:
            # One operation of one worker must not end the service. After an upgrade of this package
            # and a SIGHUP the workers are newer than their supervisor.
            logger.exception("an operation of a worker failed: %s", name)
            return "unavailable", "the log of the supervisor has the reason", b""
        if isinstance(result, Record):
            return "done", [result.version, result.expires_at], result.value
        if name != "read":
            return "done", result, b""
        entries = [each.entry if isinstance(each, LogEntry) else None for each in result]
        heads = [
            [each.stream, each.position, None if entry is None else len(entry)]
            for each, entry in zip(result, entries, strict=True)
        ]
        return "done", heads, b"".join(each or b"" for each in entries)

    def pack(self, number: int, outcome: str, result: object, blob: bytes = b"") -> bytes:
        if len(blob) > _MOST // 2:
            outcome, result, blob = "unavailable", "the answer is too large", b""
        return _pack([number, outcome, self._backend.epoch, result], blob)

    async def send(self, *answers: bytes) -> None:
        async with self._sending:
            await self._frames.send(*answers)


def _pack(head: list[object], blob: bytes) -> bytes:
    return b"%b\n%b" % (json.dumps(head).encode(), blob)


def _unpack(frame: bytes) -> tuple[Any, bytes]:
    head, _, blob = frame.partition(b"\n")
    return json.loads(head), blob
