"""The answer to one POST: one JSON object, or a stream of events once something precedes it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import trio

from ....jsonrpc import ErrorResponse, encode
from ....protocol import Send
from ._asgi import JSON, Header, HttpRequest
from ._event_store import EventStream
from ._event_writer import EVENT_STREAM, EventWriter, Pace, event
from ._task_group import TaskGroup


class Reply:
    """The answer to one POST; the `ReplyChannel` of its request.

    Nothing is sent before there is something to send: the first message decides the form, and an
    error that is the first one decides the status.

    Args:
        http: The request.
        tasks: Runs the tasks of the answer.
        pace: How a stream treats its reader.
        statuses: The HTTP status of errors by their code; 200 for what is not there.
        open_stream: Opens a stream that is kept for a client that comes back, read by the writer;
            None: the answer is sent once.
        polls: The client may be told to come back for the rest.

    Attributes:
        gone: True once the client has gone, or does not read what it is sent.
        on_gone: Called then, if the answer was not complete.
        entered: The scope around the task that answers; see `TaskScope`.
        challenge: Headers that an answer with 403 has, and no other one.
    """

    __slots__ = (
        "_answer",
        "_ended",
        "_http",
        "_open_stream",
        "_over",
        "_pace",
        "_polls",
        "_silence",
        "_status",
        "_statuses",
        "_stream",
        "_tasks",
        "_watching",
        "_writer",
        "challenge",
        "entered",
        "gone",
        "on_gone",
    )

    def __init__(
        self,
        http: HttpRequest,
        tasks: TaskGroup,
        pace: Pace,
        *,
        statuses: Mapping[int, int],
        open_stream: Callable[[EventWriter], EventStream] | None = None,
        polls: bool = False,
    ) -> None:
        self.gone = False
        self.on_gone: Callable[[], None] | None = None
        self.challenge: Sequence[Header] = ()
        self.entered = http.entered
        self._http = http
        self._tasks = tasks
        self._pace = pace
        self._statuses = statuses
        self._open_stream = open_stream
        self._polls = polls
        self._answer: bytes | None = None
        self._status = 200
        self._over = False
        self._ended: trio.Event | None = None  # while the request waits for its end
        self._watching: trio.CancelScope | None = None
        self._silence: trio.CancelScope | None = None  # while it is waited for
        self._writer: EventWriter | None = None  # once it is a stream
        self._stream: EventStream | None = None  # once it is one that is kept

    # Channel

    def answer(self, message: bytes, code: int | None = None, /) -> None:
        """Send the answer; see `ReplyChannel`."""
        if code is not None:
            self._status = self._statuses.get(code, 200)
        if self._writer is None:
            self._answer = message
        else:
            self._put(self._writer, message)
        self.abandon()

    def abandon(self) -> None:
        """End; see `ReplyChannel`."""
        self._over = True
        if self._stream is not None:
            self._stream.end()
        elif self._writer is not None:
            self._writer.end()
        if self._ended is not None:
            self._ended.set()

    def release(self, seconds: float, /) -> None:
        """End the HTTP answer before the message; the client is to come back for it."""
        if self._polls:
            self._begin_stream()
            if self._stream is not None:
                self._stream.release(seconds)

    def deliver(self, message: bytes) -> None:
        """Send a message; see `ReplyChannel`."""
        if not self._over:
            self._put(self._begin_stream(), message)

    def offer(self, message: bytes) -> None:
        """Send a message if there is room; see `ReplyChannel`."""
        if not self._over:
            self._put(self._begin_stream(), message, droppable=True)

    @property
    def has_room(self) -> bool:
        """False while too much is waiting; see `ReplyChannel`."""
        reader = self._stream or self._writer
        return reader is None or reader.has_room

    async def room(self) -> None:
        """Wait until there is room; see `ReplyChannel`."""
        reader = self._stream or self._writer
        if reader is None:
            await trio.lowlevel.checkpoint()
        else:
            await reader.room()

    # The HTTP side

    def attend(self) -> None:
        """Look after the client from now on: the answer takes time."""
        if self._watching is None:
            self._watching = self._tasks.spawn(self._watch)

    async def finish(self) -> None:
        """Wait until there is an answer, and send it, or wait until it is sent."""
        if not self._over:
            self._ended = trio.Event()
            self.attend()
            await self._ended.wait()
        if self._writer is not None:
            await self._writer.done.wait()
        elif not self.gone:
            self._stop_watching()
            if self._answer is None:  # cancelled: there is nothing to say
                await self._http.respond(200, headers=EVENT_STREAM)
            else:
                # An array of answers is 200, whatever one of them says.
                headers = (JSON, *self.challenge) if self._status == 403 else (JSON,)
                await self._http.respond(self._status, self._answer, headers)

    def close(self) -> None:
        """Stop what is left of it."""
        self.on_gone = None
        self._stop_watching()
        if self._writer is not None:
            self._writer.close()

    def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    def _put(self, writer: EventWriter, message: bytes, *, droppable: bool = False) -> None:
        if self._stream is None:
            writer.put(event(message), droppable=droppable)
        elif droppable:
            self._stream.offer(message)
        else:
            self._stream.deliver(message)

    def _begin_stream(self) -> EventWriter:
        writer = self._writer
        if writer is None:
            writer = self._writer = EventWriter(self._pace)
            if self._silence is not None:
                self._silence.cancel()
            if self.gone:
                writer.close()
            else:
                if self._open_stream is not None:
                    self._stream = self._open_stream(writer)
                self.attend()
                self._tasks.spawn(partial(self._write, writer))
        return writer

    async def _write(self, writer: EventWriter) -> None:
        try:
            await writer.run(self._http)
        finally:
            if self._stream is not None:
                self._stream.detach(writer)

    async def _watch(self) -> None:
        if self._writer is not None or await self._is_silent():
            if self._over and self._writer is None:
                return  # the answer is about to be sent as it is
            await self._begin_stream().lost(self._http)
        self._leave()

    async def _is_silent(self) -> bool:
        """Wait until there is a stream, or it is time for one; False: the client has gone."""
        with trio.move_on_after(self._pace.silence) as self._silence:
            await self._http.gone()
        return self._silence.cancelled_caught

    def _leave(self) -> None:
        self.gone = True
        if self._writer is not None:
            self._writer.close()
        if self.on_gone is not None and not self._over:
            self.on_gone()


async def send_refusal(
    http: HttpRequest, refusal: Send, statuses: Mapping[int, int], default: int
) -> None:
    """Answer with the error that a peer has found.

    Args:
        http: The request.
        refusal: The error.
        statuses: The HTTP status by the code of the error.
        default: The status of other codes.
    """
    error = refusal.message
    code = error.code if isinstance(error, ErrorResponse) else 0
    await http.respond(statuses.get(code, default), encode(error))
