"""Questions up to 2025-11-25, and in tasks: the handler waits while the client answers.

A question is a request to the client, or is stored in the task until it is answered. There are no
rounds. The clocks of the handler stop while the client is asked.
"""

import os
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from ..._errors import McpError, ProtocolError
from ..._util import UNSET, Unset
from ..._value import JSONMapping, JSONObject
from ...components import TIMEOUTS
from ...types import InputRequest, InputRequired
from ..calls._invoke import ClientRefusal
from ..calls._time_limit import Clock, Pause
from ._record import MAX_ROUNDS, Reader, Record, too_many_rounds

if TYPE_CHECKING:
    from ...engine import Dispatcher, InboundRequest


class Line(Protocol):
    """The connection over which a `LiveAsker` asks: a request channel or a task."""

    async def ask(self, request: InputRequest, timeout: float | Unset | None) -> Any:
        """Ask, and wait for the answer, which is not validated.

        Args:
            request: The question.
            timeout: Seconds; None for no limit, UNSET for the default of this line.
        """


class EarlierRun(Protocol):
    """The asker of an earlier run of the handler.

    Attributes:
        responses: The answers to an `InputRequired` of the handler.
        state: The state of this `InputRequired`.
        record: The answers and steps so far.
    """

    responses: JSONMapping
    state: str | None
    record: Record


class RequestLine:
    """Asks with live requests to the client (up to 2025-11-25).

    Args:
        ctx: The request whose handler asks.
        session: The session of the request.
    """

    def __init__(self, ctx: "InboundRequest", session: "Dispatcher") -> None:
        self._ctx = ctx
        self._session = session

    async def ask(self, request: InputRequest, timeout: float | Unset | None) -> JSONMapping:
        """Send the request, and wait for its answer; see `Dispatcher.send_request`.

        Raises:
            ClientRefusal: The client answered with an error.
        """
        if isinstance(timeout, Unset):
            timeout = TIMEOUTS.get(request.method)
        session, observer = self._session, self._ctx.observer
        message = session.ledger.open(request.method, _live_params(request))
        try:
            # On the channel of its request: over HTTP the client reads it in that response.
            with nullcontext() if observer is None else observer.surround_question(message):
                return await session.send_request(
                    message, channel=self._ctx.channel, patience=timeout
                )
        except McpError as error:
            # A class of its own: `failure` must distinguish the client's refusal from an McpError
            # that the handler raised.
            raise ClientRefusal(request.method, error) from None


class LiveAsker:
    """Asks a client that answers while the handler waits.

    Args:
        line: The connection to the client.
        clock: The deadline of the request or task.
        before: The asker of the request that began a task; its answers and steps are kept.

    Attributes:
        responses: The answers to an earlier `InputRequired` of the handler; empty in a first run.
        state: The state of an earlier `InputRequired` of the handler.
    """

    parked: Final = False  # the handler waits in its request, or in its task

    def __init__(self, line: Line, clock: Clock, before: EarlierRun | None = None) -> None:
        self.responses: JSONMapping = {} if before is None else before.responses
        self.state: str | None = None if before is None else before.state
        self._line = line
        self._record = Record() if before is None else before.record
        # The handler of a task runs again from the start, and numbers its questions from 1.
        self._record.rewind()
        self._rounds = 0
        self._pause = Pause(clock)

    async def ask(self, request: InputRequest, read: Reader, timeout: float | Unset | None) -> Any:
        """Send the request, and repeat it while the answer is invalid.

        Raises:
            McpError: The client refused, or its answers were invalid too often.
            RequestTimeout: The client did not answer in time; the request was cancelled.
        """
        key = self._record.key(request.method, request.params)
        if key in self._record.answers:
            # Asked before the handler ran again. A checkpoint anyway: an await that sometimes does
            # not yield surprises its caller.
            await trio.lowlevel.checkpoint()
            return read(self._record.answers[key])
        while True:
            self._record.check_patience(key, request)
            self._count_round()
            answer = await self._send(request, timeout)
            try:
                value = read(answer)
            except ProtocolError:
                self._record.refuse(key)
                continue
            # The raw answer, not the value: a replay reads it again, with its own reader.
            self._record.answers[key] = answer
            return value

    def _count_round(self) -> None:
        """Count a round. Questions that wait at the same time are one round."""
        if not self._pause.waiting:
            self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            raise too_many_rounds()

    async def _send(self, request: InputRequest, timeout: float | Unset | None) -> JSONMapping:
        answer: JSONMapping = await self._pause.around(partial(self._line.ask, request, timeout))
        return answer

    async def step(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Run the side effect, or return its result from an earlier run of the handler."""
        return await self._record.step(name, run)

    async def retry(self, required: InputRequired) -> bool:
        """Ask all questions at the same time. The handler then runs again with the answers."""
        answers: JSONObject = {}

        async def one(key: str, request: InputRequest) -> None:
            answers[key] = await self._send(request, UNSET)

        self._record.rewind()
        self._count_round()
        # If one question fails, the others are cancelled: the handler needs all answers to run
        # again.
        async with trio.open_nursery() as nursery:
            for key, request in required.requests.items():
                nursery.start_soon(one, key, request)
        self.responses, self.state = answers, required.state
        return True

    async def stay_open(self) -> None:
        """Do nothing: the request is in flight."""


def _live_params(request: InputRequest) -> JSONObject:
    """Add the `elicitationId` of URL mode (2025-11-25 `client/elicitation`, "URL Mode")."""
    params = dict(request.params)
    if params.get("mode") == "url":
        params.setdefault("elicitationId", os.urandom(16).hex())
    return params
