"""The stream for what a server says unasked, in sessions with a handshake.

Source: 2025-11-25 `basic/transports`, "Listening for Messages from the Server".
"""

from typing import Final

import trio

from ....engine import logger, seldom
from ....jsonrpc import Malformed, decode
from ._backend import Answer, NetworkFailure
from ._client_state import EVENTS, SESSION, SHOWN, Shared, pause, read_error, read_events, refusal
from ._event_reader import EventParser

#: A server that cannot answer now, but may later.
_LATER: Final = (408, 429, 500, 502, 503, 504)
#: Seconds after which a stream without any event counts as one that went well.
_LIVED: Final = 10.0


class Standing:
    """Keeps the stream open for as long as the session lasts.

    Args:
        shared: What it shares with the messages.

    Attributes:
        answered: Set once the server has answered for the first time, or will not.
    """

    def __init__(self, shared: Shared) -> None:
        self.answered = trio.Event()
        self._shared = shared
        self._headers = shared.headers()
        self._opened = False
        self._scope = trio.CancelScope()
        self._parser = EventParser(shared.limits.message_size)
        self._heard = False

    def leave(self) -> None:
        """Read no more: the session is over."""
        self._scope.cancel()

    async def run(self) -> None:
        """Read the stream, and come back whenever it ends; until the server has none."""
        try:
            with self._scope:
                await self._keep()
        finally:
            self.answered.set()

    async def _keep(self) -> None:
        failures = 0
        while True:
            began, self._heard = trio.current_time(), False
            try:
                if not await self._read():
                    return
            except NetworkFailure as error:
                self.answered.set()
                logger.debug("the standing stream of %s broke: %s", self._shared.shown, error)
            except Exception:  # noqa: BLE001 - what headers are made of; requests meet it as well
                logger.exception("the standing stream of %s failed", self._shared.shown)
                return
            went_well = self._heard or trio.current_time() - began > _LIVED
            failures = 0 if went_well else failures + 1
            await trio.sleep(pause(self._parser, failures))

    async def _read(self) -> bool:
        """Read the stream once; False: there will be none."""
        headers = {**self._headers, "Accept": EVENTS}
        if self._parser.last_id:
            headers["Last-Event-ID"] = self._parser.last_id
        async with self._shared.backend.send("GET", headers) as answer:
            self.answered.set()
            if answer.status == 200 and answer.kind == EVENTS:
                self._opened = True
                await read_events(answer, self._parser, self._deliver)
                return True
            return await self._may_return(answer)

    async def _may_return(self, answer: Answer) -> bool:
        if answer.status in _LATER:
            return True
        if answer.status == 400 and self._parser.last_id:
            self._parser.last_id = ""  # no longer known: what was missed is lost
            return True
        if answer.status == 404 and self._opened and SESSION in self._headers:
            if not self._shared.is_over(self._headers):
                self._shared.ended.set()
        elif answer.status != 405 and (answer.status != 404 or self._opened):
            # Those mean that the server has no such stream, which is fine. Anything else does not.
            _, error = await read_error(answer)
            why = refusal(self._shared, answer, error, in_session=False)
            logger.warning("the server says nothing unasked: %s", why)
        return False

    async def _deliver(self, data: bytes) -> None:
        if self._shared.is_over(self._headers):
            return
        self._heard = True
        if isinstance(decode(data, self._shared.limits), Malformed):
            text = "skipped an event that is no message: %r"
            seldom.warning(text, text, data[:SHOWN])
        else:
            await self._shared.inbox.put(data)
