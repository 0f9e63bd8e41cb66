"""One message to a server, each by a POST of its own, and all that comes back for it.

Sources: 2025-11-25 `basic/transports`, "Sending Messages to the Server" and "Resumability";
2026-07-28 `basic/transports/streamable-http`.
"""

from collections.abc import Mapping
from typing import Any, Final

import trio

from ...._errors import AuthError, ConnectionClosed, ProtocolError, TransportError
from ....engine import Unanswered, logger, seldom
from ....jsonrpc import (
    METHOD_NOT_FOUND,
    Batch,
    Decoded,
    ErrorResponse,
    Id,
    Malformed,
    Request,
    Response,
    decode,
)
from ._backend import Answer, NetworkFailure
from ._client_state import (
    CHALLENGES,
    EVENTS,
    JSON,
    SESSION,
    SHOWN,
    Shared,
    pause,
    read_error,
    read_events,
    refusal,
)
from ._event_reader import EventParser

#: Seconds for a stream to end after its answer; then we end it.
LINGER: Final = 1.0
#: Attempts in a row to come back to a stream that broke.
MAX_ATTEMPTS: Final = 5


class Post:
    """One message on its way.

    Args:
        shared: What it shares with the others.
        data: The message.
        message: The same, read.
        headers: What its era wants in the head.
        resumable: The answer can be read on after a break (up to 2025-11-25).

    Attributes:
        written: Set once the server has all of it, or will not get it.
        resumable: As given.
    """

    def __init__(
        self,
        shared: Shared,
        data: bytes,
        message: Decoded,
        headers: Mapping[str, str],
        *,
        resumable: bool,
    ) -> None:
        self.written = trio.Event()
        self._shared = shared
        self._data = data
        self._headers = headers
        self.resumable = resumable
        self._waiting = set(ids_of(message))
        self._asks = bool(self._waiting)
        # Nobody knows whose it is; the error that it comes to has no id either.
        self._is_unreadable = isinstance(message, Malformed) and not self._asks and message.answer
        self._method = message.method if isinstance(message, Request) else "a message"
        self._head: Mapping[str, str] = {}
        self._parser = EventParser(shared.limits.message_size)
        self._scope = trio.CancelScope()
        self._given_up = False

    @property
    def ids(self) -> frozenset[Id]:
        """The requests in it that have no answer yet."""
        return frozenset(self._waiting)

    def give_up(self, seconds: float = 0.0) -> None:
        """Expect no answer any more; before 2026-07-28 the stream gets time to end by itself."""
        self._given_up = True
        self._scope.deadline = trio.current_time() + seconds

    async def run(self) -> None:
        """Send it, and take what comes; what fails is said to whoever waits for an answer."""
        try:
            with self._scope:
                await self._converse()
        except NetworkFailure as error:
            self._fail(self._broken(error))
        except Exception as error:  # noqa: BLE001 - raised where the answer is awaited
            self._fail(error)
        else:
            if self._waiting:
                self._fail(ConnectionClosed(f"the answer to {self._method} broke off"))
        finally:
            self.written.set()

    def _broken(self, error: NetworkFailure) -> Exception:
        shown = self._shared.shown
        if not error.connected or not self._shared.reached:
            return TransportError(f"cannot reach {shown}: {error}")
        text = f"the connection to {shown} broke before {self._method} was answered: {error}"
        return ConnectionClosed(text)

    def _fail(self, error: Exception) -> None:
        if self._given_up:
            return
        for id_ in self._waiting:
            self._shared.inbox.put_nowait(Unanswered(id_, error))
        if not self._asks:
            logger.warning("%s was not delivered: %s", self._method, error)

    async def _converse(self) -> None:
        headers = {"Content-Type": JSON, "Accept": f"{JSON}, {EVENTS}", **self._headers}
        written = self.written.set
        try:
            async with self._shared.backend.send("POST", headers, self._data, written) as answer:
                self._shared.reached = True
                self._head = answer.headers
                await self._take(answer)
        except NetworkFailure:
            if not self._parser.last_id:
                raise
        failures = 0
        while self._waiting and self.resumable and self._parser.last_id:
            await trio.sleep(pause(self._parser, failures))
            try:
                await self._resume()
                failures = 0
            except NetworkFailure:
                failures += 1
                if failures == MAX_ATTEMPTS:
                    raise

    async def _resume(self) -> None:
        """Come back to the stream of the answer; always by a GET, however it began."""
        headers = {**self._headers, "Accept": EVENTS, "Last-Event-ID": self._parser.last_id}
        if SESSION in self._head:  # an `initialize` belongs to the session that it begins
            headers.setdefault(SESSION, self._head[SESSION])
        async with self._shared.backend.send("GET", headers) as answer:
            if answer.status != 200 or answer.kind != EVENTS:
                raise await self._lost(answer)
            await read_events(answer, self._parser, self._deliver)

    async def _lost(self, answer: Answer) -> Exception:
        """Say that the answer is lost: the request may have been carried out."""
        _, error = await read_error(answer)
        why = refusal(self._shared, answer, error, in_session=False)
        if isinstance(why, AuthError):
            return why
        return ConnectionClosed(f"the answer to {self._method} is lost: {why}")

    async def _take(self, answer: Answer) -> None:
        if not 200 <= answer.status < 300:
            await self._refused(answer)
        elif not self._asks:
            return  # taken; what else it may say has no meaning
        elif answer.kind == EVENTS:
            await read_events(answer, self._parser, self._deliver)
        elif answer.kind == JSON:
            await self._take_json(answer)
        else:
            shown = answer.kind or "nothing"
            text = f"{self._shared.shown} answered {self._method} with {answer.title} and {shown}"
            raise ProtocolError(f"{text}, which is no answer of this protocol")

    async def _take_json(self, answer: Answer) -> None:
        body = await answer.read(self._shared.limits.message_size)
        if body is None:
            raise ProtocolError(f"the answer to {self._method} is over the size limit")
        if isinstance(decode(body, self._shared.limits), Malformed):
            raise ProtocolError(f"the answer to {self._method} is no message of JSON-RPC")
        await self._deliver(body)

    async def _refused(self, answer: Answer) -> None:
        body, error = await read_error(answer)
        in_session = SESSION in self._headers
        ends_session = in_session and answer.status == 404
        if answer.status not in CHALLENGES and self._is_answer(error, ends_session=ends_session):
            await self._deliver(body)
        if self._waiting or not self._asks:
            raise refusal(self._shared, answer, error, in_session=in_session)

    def _is_answer(self, error: ErrorResponse | None, *, ends_session: bool) -> bool:
        """Tell an answer from a text that goes with the status.

        404 ends a session whatever its body says (2025-11-25 `basic/transports`, "Session
        Management"). But servers of both eras say so of a method that they do not have.
        """
        if error is None or (ends_session and error.code != METHOD_NOT_FOUND):
            return False
        return error.id in self._waiting or self._is_unreadable

    async def _deliver(self, data: bytes) -> None:
        message = decode(data, self._shared.limits)
        if isinstance(message, Malformed):
            text = "skipped an event that is no message: %r"
            seldom.warning(text, text, data[:SHOWN])
            return
        messages = message.messages if isinstance(message, Batch) else (message,)
        if self._shared.is_over(self._headers) and any(isinstance(m, Request) for m in messages):
            text = "skipped a question of a session that is over"
            seldom.warning(text, text)
            return
        for each in messages:
            if isinstance(each, Response | ErrorResponse) and each.id in self._waiting:
                self._waiting.discard(each.id)
                if self._method == "initialize" and isinstance(each, Response):
                    self._shared.begin(self._head, each.result)
        if self._asks and not self._waiting:
            self._scope.deadline = trio.current_time() + LINGER
        await self._shared.inbox.put(data)


def ids_of(message: Decoded) -> list[Id]:
    """List the ids of the requests in a message, broken ones too."""
    messages: Any = message.messages if isinstance(message, Batch) else (message,)
    ids = [each.id for each in messages if isinstance(each, Request)]
    broken = [each for each in messages if isinstance(each, Malformed) and each.answer]
    return ids + [each.error.id for each in broken if each.error.id is not None]
