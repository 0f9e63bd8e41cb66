"""One POST, from its body to its answer: one JSON object, or a stream of events.

Theory of operation. A POST begins undecided. If its first message is the answer, the answer is one
JSON object, and an error sets the HTTP status. If a notification or a request comes first, or the
handler is silent for `HttpLimits.silence` seconds, the answer becomes a stream with status 200,
whose last event is the answer to the request. Nothing is sent before that decision, since the
status of an error cannot be changed afterwards (2026-07-28 `basic/transports/streamable-http`).

`answer` and `abandon` complete the POST; they never wait. `finish`, in the task of the request,
sends the answer. Most requests are answered before anything waits, and need nothing else. Otherwise
`StreamReply` watches for the disconnect, and writes the stream: in the task of the request if that
has nothing else to do, or else in another task, as soon as the handler waits (`watch_disconnect`).
`finish` cannot wait forever: the writer closes itself if the client disconnects or does not read,
and reports it. `close` ends that task, so it does not outlive the request.

`subscriptions/listen` has no handler, and its stream needs no task at all: if the host supports it,
the stream is handed over and `finish` returns. The request then ends with the writer.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import trio

from ....engine import TaskScope
from ....jsonrpc import INVALID_REQUEST, LARGE, ErrorResponse, encode
from ....protocol import SendAnswer
from ._asgi import (
    JSON,
    Disconnected,
    HttpHeader,
    HttpRefusal,
    HttpRequest,
    body_too_long,
    out_of_memory,
)
from ._event_store import EventStream
from ._event_writer import EVENT_STREAM, EventWriter
from ._quotas import Reservation
from ._running_app import RunningApp

#: Maximum bytes of an event in addition to its message.
_FRAME: Final = 64


class HttpPost(HttpRequest):
    """A POST and its answer; the `ReplyChannel` of its request.

    Attributes:
        app: The application; set before the body is read.
        entered: The scope of the task that answers; set before the body is read.
        reservation: Counts the POST, its bytes and the bytes of its answer, until the answer is
            written; set before the body is read.
        statuses: The HTTP status of errors by their code; 200 for other codes.
        challenge: Headers that are added to an answer with status 403 only.
        open_stream: Opens a stored stream, which a client can resume, read by the writer; None if
            the answer is sent once only.
        body_reserved: Bytes of the body that `reservation` counts.
        polls: True if the client may be told to come back for the rest.
        expires: Time, on trio's clock, at which a stream must end.
        on_expiry: Called then; see `EventWriter`.
        disconnected: True once the client has disconnected, or has stopped reading.
        on_gone: Called if the client disconnects before the answer is complete.
        handed_over: True once the answer continues without the task of the request.
    """

    is_broken = False  # see `ReplyChannel`
    # Class attributes as defaults: most requests are answered at once, and do not set them.
    statuses: Mapping[int, int] = MappingProxyType({})
    challenge: Sequence[HttpHeader] = ()
    open_stream: Callable[[EventWriter], EventStream] | None = None
    polls = False
    expires = math.inf
    on_expiry: Callable[[], object] | None = None
    disconnected = False
    on_gone: Callable[[], None] | None = None
    handed_over = False
    app: RunningApp
    entered: TaskScope
    reservation: Reservation
    complete = False
    body_reserved = 0
    _answer: bytes | None = None
    _status = 200
    _reserved = 0  # bytes of answers that `answer` has not sent yet
    _stream: "StreamReply | None" = None

    # The body

    async def read(self, limit: int) -> bytes:
        """Read the whole body; `reservation` counts it if anything may wait before it is decoded.

        Args:
            limit: Maximum bytes.

        Raises:
            HttpRefusal: It is longer (413), or there is no memory for it; see `too_large`.
            Disconnected: The client disconnected.
        """
        # Before the first part is read: a client that expects `100 Continue` must not send it.
        length = self.headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > limit:
            raise body_too_long(limit)
        body = bytearray()
        while True:
            message = await self.receive()
            more = message.get("more_body", False)
            if not more:
                self.unread = False
            if message["type"] == "http.disconnect":
                raise Disconnected
            part: bytes = message.get("body", b"")
            self.size += len(part)
            # Most bodies arrive in one part, which needs no copy.
            is_whole = not body and not more
            if not (is_whole and self.size <= LARGE):
                # Counted before the part is kept: otherwise the limit is already exceeded.
                if not self.reservation.reserve(len(part)):
                    raise self.too_large(len(part))
                self.body_reserved += len(part)
            if self.size > limit:
                raise body_too_long(limit)
            if is_whole:
                return part
            body += part
            if not more:
                return bytes(body)

    def too_large(self, size: int) -> HttpRefusal:
        """Make the refusal of a request for lack of memory.

        Args:
            size: The additional bytes. If no client may use as many the status is 413, else 503.
        """
        most = self.reservation.quota.quotas.part
        if self.reservation.size + size > most:
            text = f"The request takes more memory than a client may use, {most} bytes"
            return HttpRefusal(413, text, code=INVALID_REQUEST)
        return out_of_memory()

    def start_clock(self) -> None:
        """Limit the time of a body that is not complete; called before the first wait."""
        # Not earlier: a deadline takes as long as parsing the body.
        self.body_since = trio.current_time()
        self.entered.enter().deadline = self.body_since + self.app.limits.body_time

    # Channel

    def reserve(self, size: int, /) -> bool:
        """Reserve memory for the answer; see `ReplyChannel`."""
        # Counted by the request, until the answer is written.
        size += _FRAME
        if not self.reservation.reserve(size):
            return False
        self._reserved += size
        return True

    def answer(self, message: bytes, code: int | None = None, /) -> None:
        """Send the answer; see `ReplyChannel`."""
        if code is not None:
            self._status = self.statuses.get(code, 200)
        if self._stream is None or not self._stream.has_begun:
            self._answer = message
        else:
            # From here on the queue counts it.
            self.reservation.release(self._reserved)
            self._stream.deliver(message)
        self.abandon()

    def abandon(self) -> None:
        """End; see `ReplyChannel`."""
        self.complete = True
        if self._stream is not None:
            self._stream.end()

    def release(self, seconds: float, /) -> None:
        """End the HTTP answer before the message, so that the client comes back for it."""
        # 2025-11-25 only: in earlier revisions a server should not close a stream before the
        # answer.
        if self.polls:
            self._slow_reply().release(seconds)

    def deliver(self, message: bytes) -> None:
        """Send a message; see `ReplyChannel`."""
        if not self.complete:  # the answer is the last event of the stream
            self._slow_reply().deliver(message)

    def offer(self, message: bytes) -> None:
        """Send a message if there is room; see `ReplyChannel`."""
        self._slow_reply().offer(message)

    @property
    def has_room(self) -> bool:
        """False while too many bytes are waiting; see `ReplyChannel`."""
        reader = None if self._stream is None else self._stream.reader
        return reader is None or reader.has_room

    async def room(self) -> None:
        """Wait until there is room; see `ReplyChannel`."""
        reader = None if self._stream is None else self._stream.reader
        if reader is None:
            await trio.lowlevel.checkpoint()
        else:
            await reader.room()

    # The answer

    def watch_disconnect(self) -> None:
        """Watch for the disconnect from now on: the answer takes time. Called at most once."""
        # An answer that is there at once needs neither the task nor the watch.
        self._slow_reply().watch()

    async def finish(self, *, may_hand_over: bool = True) -> None:
        """Wait until the answer is sent or handed over.

        Args:
            may_hand_over: False while a handler works on the request in another task.
        """
        if not (self.complete and self._stream is None):
            stream = self._slow_reply()
            await stream.finish(may_hand_over=may_hand_over)
            if self.handed_over:
                # The stream may last for hours, and needs neither the head nor the host.
                del self.scope, self.headers, self.receive, self.send
                return
            if stream.has_begun or self.disconnected:
                return
        if self._answer is None:  # cancelled: there is no answer
            await self.respond(200, headers=EVENT_STREAM)
        else:
            # An array of answers has status 200, even if it contains errors.
            headers = (JSON, *self.challenge) if self._status == 403 else (JSON,)
            await self.respond(self._status, self._answer, headers)

    def close(self) -> None:
        """Stop the tasks of the answer, and release what is counted."""
        self.on_gone = None
        if self._stream is not None:
            self._stream.close()
        self.reservation.close()

    def _slow_reply(self) -> "StreamReply":
        if self._stream is None:
            self._stream = StreamReply(self)
        return self._stream


class StreamReply:
    """The answer to a POST that takes time: a stream after its first message, or after silence.

    Args:
        post: The POST.
    """

    __slots__ = ("_changed", "_kept", "_post", "_silence", "_watching", "_writer")

    def __init__(self, post: HttpPost) -> None:
        self._post = post
        self._writer: EventWriter | None = None  # set once it is a stream
        self._kept: EventStream | None = None  # set once it is a stored stream
        # of the task that watches for the disconnect
        self._watching: trio.CancelScope | None = None
        self._silence: trio.CancelScope | None = None  # while it waits for the end of the silence
        self._changed: trio.Event | None = None  # while the request waits for another task

    @property
    def has_begun(self) -> bool:
        """True once it is a stream."""
        return self._writer is not None

    @property
    def reader(self) -> EventWriter | EventStream | None:
        """Receives the messages; None before it is a stream."""
        return self._kept or self._writer

    def deliver(self, message: bytes) -> None:
        """Send a message that must not be lost."""
        writer = self._begin()
        (self._kept or writer).deliver(message)

    def offer(self, message: bytes) -> None:
        """Send a message if there is room."""
        writer = self._begin()
        (self._kept or writer).offer(message)

    def release(self, seconds: float) -> None:
        """End the stream before the answer, so that the client comes back for it."""
        self._begin()
        if self._kept is not None:
            self._kept.release(seconds)

    def end(self) -> None:
        """Accept no more messages."""
        if self.reader is not None:
            self.reader.end()
        self._note_change()

    def watch(self) -> None:
        """Watch for the disconnect and write the stream, in another task."""
        self._watching = self._post.app.tasks.spawn(self._watch)

    async def finish(self, *, may_hand_over: bool) -> None:
        """Wait until the stream is written or handed over, or a plain answer can be sent.

        Args:
            may_hand_over: False while a handler works on the request in another task.
        """
        post = self._post
        if self._watching is None and not (post.complete and self._writer is None):
            await self._watch(may_hand_over=may_hand_over)
            if post.handed_over:
                return
        # A disconnected client is not awaited, but the answer is: its request continues.
        while not (post.complete and (self._writer is None or self._writer.closed)):
            self._changed = trio.Event()
            await self._changed.wait()
        if self._writer is None and self._watching is not None:
            self._watching.cancel()

    def close(self) -> None:
        """Stop the watching task, and write nothing more."""
        if self._watching is not None:
            self._watching.cancel()
        if self._writer is not None:
            self._writer.close()

    def _begin(self) -> EventWriter:
        writer, post = self._writer, self._post
        if writer is None:
            quota = post.reservation.quota
            writer = self._writer = EventWriter(
                post.app.streams, quota, post.expires, post.on_expiry
            )
            if post.disconnected:
                writer.close()
            else:
                writer.on_close = self._leave
                if post.open_stream is not None:
                    # Stored from its first event on: a client of a session can return for any of
                    # them.
                    self._kept = post.open_stream(writer)
                self._note_change()
        return writer

    def _note_change(self) -> None:
        if self._changed is not None:
            self._changed.set()
        if self._silence is not None:
            # `_watch` continues: it writes the stream, or has nothing to do.
            self._silence.cancel()

    async def _watch(self, *, may_hand_over: bool = False) -> None:
        """Wait until the stream begins, or silence is too long; then write it."""
        post = self._post
        if self._writer is None:
            with trio.move_on_after(post.app.limits.silence) as self._silence:
                await post.wait_disconnect()
            if not self._silence.cancelled_caught:
                self._leave()
                return
            if post.complete and self._writer is None:
                return  # a plain answer is about to be sent
        post.handed_over = await self._begin().serve(post, may_hand_over=may_hand_over)

    def _leave(self) -> None:
        """Record that nothing is written from now on."""
        writer, post = self._writer, self._post
        post.disconnected = writer is None or not writer.complete
        if writer is not None and self._kept is not None:
            # The handler may continue. Its messages are stored, and the client may return for them.
            self._kept.detach(writer)
        # On 2026-07-28 this cancels the request; up to 2025-11-25 a disconnect does not cancel
        # (`basic/transports` of both).
        if post.on_gone is not None and not post.complete:
            post.on_gone()
        if post.handed_over:
            post.reservation.close()
        self._note_change()


async def send_refusal(
    http: HttpRequest, refusal: SendAnswer, statuses: Mapping[int, int], default: int
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
