"""The answer to one POST: one JSON object, or a stream of events once a message precedes it.

Theory of operation. A reply begins undecided. If its first message is the answer, the reply is one
JSON object, and an error chooses the HTTP status. If a notice or a question comes first, or the
handler is silent for `Pace.silence` seconds, the reply becomes a stream with status 200, whose
last event is the answer. Nothing is sent before that decision: errors with a status of their own
could not have it any more (2026-07-28 `basic/transports/streamable-http`).

`answer` and `abandon` complete a reply; they never wait. `finish`, in the task of the request,
waits for that and for the bytes. Two tasks run beside it when they are needed: `_watch` notices
that the client has gone or does not read, and `_write` writes the stream. `finish` cannot wait for
ever: `_watch` closes the writer of a client that has gone, which sets `EventWriter.done`. `close`
ends both tasks, so neither outlives the request.
"""

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
        statuses: The HTTP status of errors by their code; 200 for other codes.
        open_stream: Opens a stream that is kept for a client that comes back, read by the writer;
            None: the answer is sent once.
        polls: The client may be told to come back for the rest.

    Attributes:
        gone: True once the client has gone, or no longer reads.
        on_gone: Called when the client has gone before the answer was complete.
        entered: The scope around the task that answers; see `TaskScope`.
        challenge: Headers that are added to an answer with status 403 only.
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
        # 2025-11-25 only: before, a server should not close a stream ahead of the answer.
        if self._polls:
            self._begin_stream()
            if self._stream is not None:
                self._stream.release(seconds)

    def deliver(self, message: bytes) -> None:
        """Send a message; see `ReplyChannel`."""
        if not self._over:
            # Nothing follows the answer: its event is the last one of the stream.
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
        """Watch the client from now on: the answer takes time."""
        # An answer that is there at once needs neither this task nor a look at the client.
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
        """Stop the tasks of the reply."""
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
                # `_watch` still waits for the silence to end. It goes on as the watcher of the
                # stream.
                self._silence.cancel()
            if self.gone:
                writer.close()
            else:
                if self._open_stream is not None:
                    # Kept from its first event on: a client of a session can come back for any of
                    # them.
                    self._stream = self._open_stream(writer)
                self.attend()
                self._tasks.spawn(partial(self._write, writer))
        return writer

    async def _write(self, writer: EventWriter) -> None:
        try:
            await writer.run(self._http)
        finally:
            if self._stream is not None:
                # The handler may go on. Its messages are kept, and the client may return for them.
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
        # On 2026-07-28 this cancels the request; up to 2025-11-25 a client that leaves does not
        # cancel (`basic/transports` of both).
        if self.on_gone is not None and not self._over:
            self.on_gone()


async def send_refusal(
    http: HttpRequest, refusal: Send, statuses: Mapping[int, int], default: int
) -> None:
    """Answer with an error that `protocol` has found in the request.

    Args:
        http: The request.
        refusal: The error.
        statuses: The HTTP status by the code of the error.
        default: The status of other codes.
    """
    error = refusal.message
    code = error.code if isinstance(error, ErrorResponse) else 0
    await http.respond(statuses.get(code, default), encode(error))
