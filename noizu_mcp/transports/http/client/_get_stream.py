"""The GET stream of a session, on which the server sends messages of its own accord.

Theory of operation. The stream opens once the handshake is complete, and is read until:

- it ends or breaks: the client resumes it after a delay that doubles with each failure, from the
  last event on. If its events have no ids, `state.tell_gap` reports that some may be lost. A stream
  that had an event, or lasted `_LIVED` seconds, counts as a success and resets the delay; so a
  server that closes at once, or a dead network, is tried at most once a minute;
- 405 or 404 at the first attempt: the server has no such stream (allowed by the specification);
- 404 later, in a session: the session has ended. `state.session_ended` starts the renewal;
- any other refusal: the stream is not opened again, and this is logged. Calls still work.

The stream ends with its session: `leave` cancels it. Once another session begins its messages are
dropped, since ids restart there.

Source: 2025-11-25 `basic/transports`, "Listening for Messages from the Server".
"""

from typing import Final

import trio

from ...._errors import AuthError
from ....engine import logger
from ....jsonrpc import Received
from ._backend import NetworkFailure, StreamedResponse
from ._client_state import EVENTS, SESSION, ClientState, read_refusal
from ._event_reader import EventParser

#: Statuses of a server that cannot answer at the moment.
_TEMPORARY: Final = (408, 429, 500, 502, 503, 504)
#: Seconds after which a stream counts as a success even without an event.
_LIVED: Final = 10.0


class GetStream:
    """Keeps the GET stream of one session open.

    Args:
        state: The state of the client, in the session of the stream.

    Attributes:
        answered: Set once the server has answered for the first time, or never will.
    """

    def __init__(self, state: ClientState) -> None:
        self.answered = trio.Event()
        self._state = state
        self._headers = state.session_headers()
        self._parser = EventParser(state.limits.message_size)
        self._opened = False  # at least once
        self._heard = False  # an event since the stream was last opened
        self._scope = trio.CancelScope()

    def leave(self) -> None:
        """Cancel the stream: its session has ended."""
        self._scope.cancel()

    async def run(self) -> None:
        """Read the stream until the server ends it for good; see the theory of operation."""
        try:
            with self._scope:
                await self._keep_open()
        finally:
            self.answered.set()

    async def _keep_open(self) -> None:
        failures = 0
        while True:
            began, self._heard = trio.current_time(), False
            try:
                if not await self._read_once():
                    return
            except NetworkFailure as error:
                self.answered.set()
                logger.debug("the GET stream of %s broke: %s", self._state.shown, error)
            except AuthError as error:
                logger.warning("the GET stream of %s failed: %s", self._state.shown, error)
                return
            except Exception:  # a headers function failed; requests raise the same error
                logger.exception("the GET stream of %s failed", self._state.shown)
                return
            succeeded = self._heard or trio.current_time() - began > _LIVED
            failures = 0 if succeeded else failures + 1
            await trio.sleep(self._parser.resume_delay(failures))

    async def _read_once(self) -> bool:
        """Open the stream and read it to its end; False if it should not be resumed."""
        # The session of the start, even if another has begun: `is_stale` compares with it.
        headers = {**self._headers, "Accept": EVENTS}
        if self._parser.last_id:
            headers["Last-Event-ID"] = self._parser.last_id
        async with self._state.backend.send("GET", headers) as answer:
            self.answered.set()
            if answer.status == 200 and answer.media_type == EVENTS:
                if self._opened and not self._parser.last_id:
                    # The server cannot know which messages this client has missed.
                    self._state.tell_gap()
                self._opened = True
                await self._state.read_event_stream(answer, self._parser, self._deliver)
                return True
            return await self._may_return(answer)

    async def _may_return(self, answer: StreamedResponse) -> bool:
        if answer.status in _TEMPORARY:
            return True
        if answer.status == 400 and self._parser.last_id:
            # The server does not know the event now: messages sent since then are lost.
            self._parser.last_id = ""
            return True
        if answer.status == 404 and self._opened and SESSION in self._headers:
            if not self._state.is_stale(self._headers):
                self._state.session_ended.set()
        elif answer.status != 405 and (answer.status != 404 or self._opened):
            _, error = await read_refusal(answer)
            why = self._state.refusal(answer, error, in_session=False)
            logger.warning("the server refused the GET stream: %s", why)
        return False

    def _deliver(self, received: Received) -> None:
        if not self._state.is_stale(self._headers):
            self._heard = True
            self._state.inbox.put(received, len(received.data))
