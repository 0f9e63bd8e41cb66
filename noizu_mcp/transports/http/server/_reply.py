"""The answer to one POST: one JSON object, or a stream of events once a message precedes it.

Theory of operation. A reply begins undecided. If its first message is the answer, the reply is one
JSON object, and an error chooses the HTTP status. If a notice or a question comes first, or the
handler is silent for `HttpLimits.silence` seconds, the reply becomes a stream with status 200,
whose last event is the answer. Nothing is sent before that decision: errors with a status of their
own could not have it any more (2026-07-28 `basic/transports/streamable-http`).

`answer` and `abandon` complete a reply; they never wait. `finish`, in the task of the request,
waits for that and for the bytes. `_watch` watches the client, and begins a stream: in the task of
the request if that has nothing else to do, else in a task beside it, from the moment at which the
handler waits (`attend`). `finish` cannot wait for ever: the writer closes itself if the client goes
or does not read, and says so. `close` ends the task, so it does not outlive the request.

A request without work of its own, `subscriptions/listen`, needs no task at all: where the host can
do it, its stream is handed over, `finish` returns, and `_leave` is the end of the request.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import trio

from ....jsonrpc import ErrorResponse, encode
from ....protocol import Send
from ._asgi import JSON, Header, HttpRequest
from ._event_store import EventStream
from ._event_writer import EVENT_STREAM, EventWriter, event
from ._running_app import RunningApp

#: Bytes of an event beside its message, at most.
_FRAME: Final = 64


class Reply:
    """The answer to one POST; the `ReplyChannel` of its request.

    Nothing is sent before there is something to send: the first message decides the form, and an
    error that is the first one decides the status.

    Args:
        http: The request.
        app: The application.
        statuses: The HTTP status of errors by their code; 200 for other codes.
        open_stream: Opens a stream that is kept for a client that comes back, read by the writer;
            None: the answer is sent once.
        polls: The client may be told to come back for the rest.

    Attributes:
        gone: True once the client has gone, or no longer reads.
        on_gone: Called when the client has gone before the answer was complete.
        expires: Time, on trio's clock, at which a stream must end.
        on_expiry: Called then; see `EventWriter`.
        entered: The scope around the task that answers; see `TaskScope`.
        handed_over: True once the answer goes on without the task of the request.
        challenge: Headers that are added to an answer with status 403 only.
    """

    is_broken = False  # see `ReplyChannel`
    # Defaults of the class: most requests are answered at once, and need no store for them.
    gone = False
    on_gone: Callable[[], None] | None = None
    expires = math.inf
    on_expiry: Callable[[], object] | None = None
    handed_over = False
    challenge: Sequence[Header] = ()
    _answer: bytes | None = None
    _status = 200
    _over = False
    _changed: trio.Event | None = None  # while the request waits for another task
    _watching: trio.CancelScope | None = None
    _silence: trio.CancelScope | None = None  # while it is waited for
    _writer: EventWriter | None = None  # once it is a stream
    _reserved = 0  # bytes of answers that `answer` has not sent yet
    _stream: EventStream | None = None  # once it is one that is kept

    def __init__(
        self,
        http: HttpRequest,
        app: RunningApp,
        statuses: Mapping[int, int],
        open_stream: Callable[[EventWriter], EventStream] | None = None,
        *,
        polls: bool = False,
    ) -> None:
        self.entered = http.entered
        self._http = http
        self._hold = http.hold
        self._app = app
        self._statuses = statuses
        self._open_stream = open_stream
        self._polls = polls

    # Channel

    def reserve(self, size: int, /) -> bool:
        """Make room for the answer; see `ReplyChannel`."""
        # Counted by the request, so until the answer is written.
        size += _FRAME
        if not self._hold.reserve(size):
            return False
        self._reserved += size
        return True

    def answer(self, message: bytes, code: int | None = None, /) -> None:
        """Send the answer; see `ReplyChannel`."""
        if code is not None:
            self._status = self._statuses.get(code, 200)
        if self._writer is None:
            self._answer = message
        else:
            # From here on the queue counts it.
            self._hold.release(self._reserved)
            self._put(self._writer, message)
        self.abandon()

    def abandon(self) -> None:
        """End; see `ReplyChannel`."""
        self._over = True
        if self._stream is not None:
            self._stream.end()
        elif self._writer is not None:
            self._writer.end()
        self._note_change()

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
        """Watch the client from now on: the answer takes time; called once at most."""
        # An answer that is there at once needs neither this task nor a look at the client.
        self._watching = self._app.tasks.spawn(self._watch)

    async def finish(self, *, may_hand_over: bool = True) -> None:
        """Wait until there is an answer, and send it, or wait until it is sent or handed over.

        Args:
            may_hand_over: False while a handler works on the request in another task.
        """
        if self._watching is None and not (self._over and self._writer is None):
            await self._watch(may_hand_over=may_hand_over)
            if self._http.handed_over:
                self.handed_over = True
                del self._http  # a stream may last for hours: nobody reads the head any more
                return
        # A client that has gone is not waited for, but the answer is: its request goes on.
        while not (self._over and (self._writer is None or self._writer.closed)):
            self._changed = trio.Event()
            await self._changed.wait()
        if self._writer is None and not self.gone:
            if self._watching is not None:
                self._watching.cancel()
            if self._answer is None:  # cancelled: there is nothing to say
                await self._http.respond(200, headers=EVENT_STREAM)
            else:
                # An array of answers is 200, whatever one of them says.
                headers = (JSON, *self.challenge) if self._status == 403 else (JSON,)
                await self._http.respond(self._status, self._answer, headers)

    def close(self) -> None:
        """Stop the tasks of the reply."""
        self.on_gone = None
        if self._watching is not None:
            self._watching.cancel()
        if self._writer is not None:
            self._writer.close()

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
            account = self._hold.account
            writer = self._writer = EventWriter(
                self._app.streams, account, self.expires, self.on_expiry
            )
            if self.gone:
                writer.close()
            else:
                writer.on_close = self._leave
                if self._open_stream is not None:
                    # Kept from its first event on: a client of a session can come back for any of
                    # them.
                    self._stream = self._open_stream(writer)
                self._note_change()
        return writer

    def _note_change(self) -> None:
        if self._changed is not None:
            self._changed.set()
        if self._silence is not None:
            # `_watch` goes on: it writes the stream, or has nothing more to do.
            self._silence.cancel()

    async def _watch(self, *, may_hand_over: bool = False) -> None:
        """Wait until there is a stream, or it is time for one; write it, until its client goes."""
        if self._writer is None:
            with trio.move_on_after(self._app.limits.silence) as self._silence:
                await self._http.gone()
            if not self._silence.cancelled_caught:
                self._leave()
                return
            if self._over and self._writer is None:
                return  # the answer is about to be sent as it is
        await self._begin_stream().serve(self._http, may_hand_over=may_hand_over)

    def _leave(self) -> None:
        """Note that nothing is written any more."""
        writer = self._writer
        self.gone = writer is None or not writer.complete
        if writer is not None and self._stream is not None:
            # The handler may go on. Its messages are kept, and the client may return for them.
            self._stream.detach(writer)
        # On 2026-07-28 this cancels the request; up to 2025-11-25 a client that leaves does not
        # cancel (`basic/transports` of both).
        if self.on_gone is not None and not self._over:
            self.on_gone()
        if self.handed_over:
            self._hold.close()
        self._note_change()


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
