"""The answer to one POST: one JSON object, or a stream of events once something precedes it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import trio

from ._asgi import JSON, Header, HttpRequest
from ._history import EventStream
from ._sse import EVENT_STREAM, EventWriter, Pace, event
from ._tasks import TaskSet

#: Seconds without anything to say after which a stream is begun, so that nobody gives us up.
SILENCE: Final = 1.0


class Reply:
    """What a POST is answered with; the `Channel` of its request.

    Nothing is sent before there is something to send: the first message decides the form, and an
    error that is the first one decides the status.

    Args:
        http: The request.
        tasks: Runs the tasks of the answer.
        pace: How a stream treats its reader.
        statuses: The HTTP status of errors by their code; 200 for what is not there.
        open_stream: Opens a stream that is kept for a client that comes back, read by the writer;
            None: the answer is sent once.

    Attributes:
        gone: True once the client has gone, or does not read what it is sent.
        on_gone: Called then, if the answer was not complete.
        headers: Those of an answer that is one JSON object.
    """

    def __init__(
        self,
        http: HttpRequest,
        tasks: TaskSet,
        pace: Pace,
        *,
        statuses: Mapping[int, int],
        open_stream: Callable[[EventWriter], EventStream] | None = None,
    ) -> None:
        self.gone = False
        self.on_gone: Callable[[], None] | None = None
        self.headers: Sequence[Header] = (JSON,)
        self._http = http
        self._tasks = tasks
        self._pace = pace
        self._statuses = statuses
        self._open_stream = open_stream
        self._answer: bytes | None = None
        self._status = 200
        self._ended: trio.Event | None = None
        self._over = False
        self._watching: trio.CancelScope | None = None
        self._streaming: _Streaming | None = None

    # Channel

    def answer(self, message: bytes, code: int | None = None, /) -> None:
        """Send the answer; see `Channel`."""
        self._answer = message
        if code is not None:
            self._status = self._statuses.get(code, 200)
        if self._streaming is not None:
            self._streaming.put(message)
        self.abandon()

    def abandon(self) -> None:
        """End; see `Channel`."""
        self._over = True
        if self._streaming is not None:
            self._streaming.end()
        if self._ended is not None:
            self._ended.set()

    def deliver(self, message: bytes) -> None:
        """Send a message; see `Channel`."""
        self._stream().put(message)

    def offer(self, message: bytes) -> None:
        """Send a message if there is room; see `Channel`."""
        self._stream().put(message, droppable=True)

    @property
    def has_room(self) -> bool:
        """False while too much is waiting; see `Channel`."""
        return self._streaming is None or self._streaming.writer.has_room

    async def room(self) -> None:
        """Wait until there is room; see `Channel`."""
        if self._streaming is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._streaming.writer.room()

    # The HTTP side

    def attend(self) -> None:
        """Look after the client from now on: the answer takes time."""
        if self._watching is None:
            self._watching = trio.CancelScope()
            self._tasks.spawn(partial(self._watch, self._watching))

    def release(self, retry: float) -> None:
        """End the HTTP answer before the message; the client is to come back for it.

        Args:
            retry: Seconds that it is to wait.
        """
        streaming = self._stream()
        if streaming.stream is not None:
            streaming.stream.prime(retry)
            streaming.writer.end()

    async def finish(self) -> None:
        """Wait until there is an answer, and send it, or wait until it is sent."""
        if not self._over:
            self._ended = trio.Event()
            self.attend()
            await self._ended.wait()
        if self._watching is not None:
            self._watching.cancel()
        if self._streaming is not None:
            await self._streaming.written.wait()
        elif not self.gone:
            if self._answer is None:  # cancelled: there is nothing to say
                await self._http.respond(200, headers=EVENT_STREAM)
            else:
                await self._http.respond(self._status, self._answer, self.headers)

    def close(self) -> None:
        """Stop what is left of it."""
        if self._watching is not None:
            self._watching.cancel()
        if self._streaming is not None:
            self._streaming.writer.close()

    def _stream(self) -> "_Streaming":
        if self._streaming is None:
            writer = EventWriter(self._pace)
            stream = None if self._open_stream is None else self._open_stream(writer)
            self._streaming = _Streaming(writer, stream, trio.Event())
            if self.gone:
                writer.close()
                self._streaming.written.set()
            else:
                self.attend()
                self._tasks.spawn(partial(self._write, self._streaming))
        return self._streaming

    async def _write(self, streaming: "_Streaming") -> None:
        try:
            complete = await streaming.writer.run(self._http)
            if not complete:
                self._leave()
        finally:
            if streaming.stream is not None:
                streaming.stream.detach(streaming.writer)
            streaming.written.set()

    async def _watch(self, scope: trio.CancelScope) -> None:
        with scope:
            with trio.move_on_after(SILENCE) as silence:
                await self._http.gone()
            if silence.cancelled_caught:
                self._stream()
                await self._http.gone()
            self._leave()

    def _leave(self) -> None:
        if not self.gone:
            self.gone = True
            if self._streaming is not None:
                self._streaming.writer.close()
            if self.on_gone is not None and not self._over:
                self.on_gone()


class _Streaming(NamedTuple):
    """What an answer consists of once it is a stream."""

    writer: EventWriter
    stream: EventStream | None
    #: Set once the HTTP answer is complete, or given up.
    written: trio.Event

    def put(self, message: bytes, *, droppable: bool = False) -> None:
        if self.stream is None:
            self.writer.put(event(message), droppable=droppable)
        elif droppable:
            self.stream.offer(message)
        else:
            self.stream.deliver(message)

    def end(self) -> None:
        (self.stream or self.writer).end()
