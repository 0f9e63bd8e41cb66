"""One message to the server: its POST, the answer as JSON or event stream, and resumption.

Theory of operation. A POST has these states:

- *sending*: until the body is written (`written` is set) and the head of the answer arrives;
- *reading*: the body is one JSON message, or an event stream with messages of all kinds, including
  the answer;
- *broken*: an event stream ended before the answer. If its events had ids, and the revision allows
  it, a GET with `Last-Event-ID` continues where it broke (2025-11-25 `basic/transports`,
  "Resumability and Redelivery"); then it is *reading* again;
- *done*: every request in the message was answered, or has failed.

Each request has exactly one outcome: its answer, or an `Unanswered` with the error, put into the
inbox when the POST fails or ends without an answer. Only `give_up` ends it without an outcome,
since no task waits then. An event stream that stays open after the answer is closed after `LINGER`
seconds; a stream that breaks is resumed at most `MAX_ATTEMPTS` times in a row. So every POST ends
if its server answers; the timeout of the waiting request decides how long that may take.

Sources: 2025-11-25 `basic/transports`, "Sending Messages to the Server"; 2026-07-28
`basic/transports/streamable-http`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import trio

from ...._errors import AuthError, ConnectionClosed, ProtocolError, TransportError
from ....engine import Unanswered, logger, throttled_log
from ....jsonrpc import (
    METHOD_NOT_FOUND,
    Batch,
    Decoded,
    ErrorResponse,
    Id,
    Malformed,
    Received,
    Request,
    Response,
    read_message,
)
from ._backend import CHALLENGES, NetworkFailure, StreamedResponse
from ._client_state import EVENTS, JSON, SESSION, ClientState, over, read_refusal
from ._event_reader import EventParser

#: Seconds for an event stream to end after the answer; then the client closes it.
LINGER: Final = 1.0
#: Consecutive attempts to resume an event stream.
MAX_ATTEMPTS: Final = 5


class Post:
    """The POST of one message.

    Args:
        state: The state of the client.
        data: The bytes of the message.
        message: The decoded message; None for an answer to the server.
        headers: Headers that its revision requires.
        resumable: True if the event stream of the answer can be resumed (up to 2025-11-25).

    Attributes:
        ids: The ids of the requests in the message.
        resumable: See Args.
        written: Set once all bytes were written, or never will be.
    """

    def __init__(
        self,
        state: ClientState,
        data: bytes,
        message: Decoded | None,
        headers: Mapping[str, str],
        *,
        resumable: bool,
    ) -> None:
        self.ids = request_ids(message)
        self.resumable = resumable
        self.written = trio.Event()
        self._state = state
        self._data = data
        self._headers = headers
        self._message = message
        self._method = message.method if isinstance(message, Request) else "a message"
        # A malformed message without an id is answered with an error without an id.
        self._is_unreadable = isinstance(message, Malformed) and not self.ids and message.answer
        # Requests that are still in here when the POST ends get an error, so none hangs.
        self._unanswered = set(self.ids)
        self._head: Mapping[str, str] = {}
        self._parser: EventParser | None = None  # of the event stream, if one comes
        self._scope = trio.CancelScope()
        self._given_up = False
        self._is_refused = False  # and not sent again yet
        self._heard = False  # a message since the stream was last opened

    def give_up(self, seconds: float = 0.0) -> None:
        """Stop waiting for the answer; the stream may end by itself within some seconds.

        Up to 2025-11-25 a notification tells the server, and the connection can be reused if the
        stream then ends. On 2026-07-28 closing the stream is the cancellation.
        """
        self._given_up = True
        self._scope.deadline = trio.current_time() + seconds

    async def run(self) -> None:
        """Send the message and deliver the answer. Errors are raised by the waiting request."""
        try:
            with self._scope:
                await self._exchange()
        except NetworkFailure as error:
            self._fail(self._explain(error))
        except Exception as error:  # noqa: BLE001 - raised where the answer is awaited
            self._fail(error)
        else:
            if self._unanswered:
                self._fail(ConnectionClosed(f"the answer to {self._method} broke off"))
        finally:
            self.written.set()

    def _explain(self, error: NetworkFailure) -> Exception:
        """Distinguish an unreachable server from an exchange that broke."""
        shown = self._state.shown
        if not error.connected or not self._state.reached:
            return TransportError(f"cannot reach {shown}: {error}")
        text = f"the connection to {shown} broke before {self._method} was answered: {error}"
        return ConnectionClosed(text)

    def _fail(self, error: Exception) -> None:
        if self._given_up:
            return
        for id_ in self._unanswered:
            self._state.inbox.put(Unanswered(id_, error), 0)
        if not self.ids:
            logger.warning("%s was not delivered: %s", self._method, error)

    @property
    def is_unsent(self) -> bool:
        """True while the server cannot have processed the message, nor needs its cancellation."""
        return not self.written.is_set() or self._is_refused

    def _note_written(self) -> None:
        self._is_refused = False
        self.written.set()

    def _note_refusal(self) -> str:
        self._is_refused = True
        return self._name_operation()

    def _name_operation(self) -> str:
        """Return the subject of the message, for credentials: `tools/call echo`."""
        params = getattr(self._message, "params", None) or {}
        subject = params.get("name") or params.get("uri")
        return f"{self._method} {subject}" if isinstance(subject, str) else self._method

    async def _exchange(self) -> None:
        headers = {"Content-Type": JSON, "Accept": f"{JSON}, {EVENTS}", **self._headers}
        send, body = self._state.backend.send, None
        sent, refused = self._note_written, self._note_refusal
        try:
            async with send("POST", headers, self._data, sent, refused) as answer:
                # From now on a failure may mean that the server has processed the request.
                self._state.reached = True
                self._head = answer.headers
                if not 200 <= answer.status < 300:
                    await self._take_refusal(answer)
                elif not self.ids:
                    pass  # the server has accepted the message; the body has no meaning
                elif answer.media_type == JSON:
                    body = await answer.read(self._state.limits.message_size)
                    if body is None:
                        raise ProtocolError(
                            f"the answer to {self._method} {over(self._state.limits)}"
                        )
                else:
                    await self._read_events(answer)
        except NetworkFailure:
            if self._parser is None or not self._parser.last_id:
                raise
        if body is not None:
            # Outside of the block: the connection is free for the next request.
            received = read_message(body, self._state.limits)
            if isinstance(received.message, Malformed):
                raise ProtocolError(f"the answer to {self._method} is not a JSON-RPC message")
            self._deliver(received)
        elif self._parser is not None and self.resumable:
            await self._resume_until_answered(self._parser)

    async def _read_events(self, answer: StreamedResponse) -> None:
        if answer.media_type != EVENTS:
            raise ProtocolError(
                f"{self._state.shown} answered {self._method} with {answer.title} and "
                f"{answer.media_type or 'no content type'}; expected {JSON} or {EVENTS}"
            )
        self._parser = EventParser(self._state.limits.message_size)
        await self._state.read_event_stream(answer, self._parser, self._deliver_event)

    async def _resume_until_answered(self, parser: EventParser) -> None:
        failures = idle = 0
        while self._unanswered and parser.last_id:
            await trio.sleep(parser.resume_delay(failures, idle))
            self._heard = False
            try:
                await self._resume(parser)
                # A stream without a message is no failure, since servers end streams that wait for
                # a result. It is no success either: the server could end each one at once.
                failures, idle = (0, 0) if self._heard else (failures, idle + 1)
            except NetworkFailure:
                # Not every break is final: a proxy may have closed an idle connection.
                failures += 1
                if failures == MAX_ATTEMPTS:
                    raise

    async def _resume(self, parser: EventParser) -> None:
        """Continue the event stream, always with a GET."""
        headers = {**self._headers, "Accept": EVENTS, "Last-Event-ID": parser.last_id}
        if SESSION in self._head:  # an `initialize` belongs to the session that it begins
            headers.setdefault(SESSION, self._head[SESSION])
        async with self._state.backend.send(
            "GET", headers, on_refused=self._name_operation
        ) as answer:
            if answer.status == 200 and answer.media_type == EVENTS:
                await self._state.read_event_stream(answer, parser, self._deliver_event)
                return
            _, error = await read_refusal(answer)
            why = self._state.refusal(answer, error, in_session=False)
            if isinstance(why, AuthError):
                raise why
            # Not `SessionEnded`, even for 404: the request may have been processed, and must not be
            # sent again in a new session.
            raise ConnectionClosed(f"the answer to {self._method} is lost: {why}")

    async def _take_refusal(self, answer: StreamedResponse) -> None:
        body, error = await read_refusal(answer)
        in_session = SESSION in self._headers
        if (
            error is not None
            and answer.status not in CHALLENGES
            and self._is_answered_by(error, ends_session=in_session and answer.status == 404)
        ):
            self._deliver(Received(error, body, len(body)))
        if self._unanswered or not self.ids:
            raise self._state.refusal(answer, error, in_session=in_session)

    def _is_answered_by(self, error: ErrorResponse, *, ends_session: bool) -> bool:
        """Tell whether an error answers a request, or only explains the HTTP status.

        404 ends a session whatever its body says (2025-11-25 `basic/transports`, "Session
        Management"). But servers of both eras also answer 404 to an unknown method.
        """
        if ends_session and error.code != METHOD_NOT_FOUND:
            return False
        return error.id in self._unanswered or self._is_unreadable

    def _deliver_event(self, received: Received) -> None:
        """Deliver one message of an event stream; close the stream soon after the answer."""
        self._deliver(received)
        # Servers may keep it open.
        if self.ids and not self._unanswered:
            self._scope.deadline = trio.current_time() + LINGER

    def _deliver(self, received: Received) -> None:
        """Put one message into the inbox, and remove the requests that it answers."""
        self._heard = True
        message = received.message
        messages: Sequence[Decoded | None] = (
            message.messages if isinstance(message, Batch) else (message,)
        )
        if any(isinstance(m, Request) for m in messages) and self._state.is_stale(self._headers):
            text = "skipped a request of a session that has ended"
            throttled_log.warning(text, text)
            return
        for each in messages:
            if isinstance(each, Response | ErrorResponse) and each.id in self._unanswered:
                self._unanswered.discard(each.id)
                if self._method == "initialize" and isinstance(each, Response):
                    self._state.start_session(self._head)
        self._state.inbox.put(received, len(received.data))


def request_ids(message: Decoded | None) -> Sequence[Id]:
    """Return the ids of the requests in a message, including malformed ones with a readable id."""
    if isinstance(message, Request):
        return (message.id,)
    messages: Sequence[Decoded | None] = (
        message.messages if isinstance(message, Batch) else (message,)
    )
    ids = [each.id for each in messages if isinstance(each, Request)]
    broken = [each for each in messages if isinstance(each, Malformed) and each.answer]
    return ids + [each.error.id for each in broken if each.error.id is not None]
