"""The one path of the protocol: POST, GET and DELETE, for clients of both eras.

Sources: 2025-11-25 `basic/transports`; 2026-07-28 `basic/transports/streamable-http`.
"""

import math
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Final

import trio

from ....engine import TaskScope
from ....jsonrpc import (
    HEADER_MISMATCH,
    HTTP_STATUS,
    INSUFFICIENT_SCOPE,
    INVALID_REQUEST,
    LARGE,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
    Batch,
    Decoded,
    Malformed,
    Notification,
    Request,
    decode,
    encode,
    memory_bound,
)
from ....protocol import (
    STATELESS,
    Dispatch,
    Origin,
    Send,
    is_stateless,
    read_stateless,
    unsupported,
)
from ....server import StatelessRequests
from ._asgi import JSON, Header, HttpRequest, Refused, unavailable
from ._event_writer import time_left
from ._http_session import SESSION, Sessions, is_handshake
from ._quotas import Hold
from ._reply import Reply, send_refusal
from ._running_app import RunningApp

#: Seconds to write the rest once nothing runs any more; a client that reads needs far less.
DRAIN_TIMEOUT: Final = 2.0
#: A 405 must list the methods of the path in `Allow` (RFC 9110 section 15.5.6).
_METHODS: Final = b"GET, POST, DELETE"
_IDENTITY: Final[Header] = (b"accept-encoding", b"identity")
#: The HTTP status of an error of a handler on 2026-07-28, by its code; every other one travels with
#: 200.
_STATUSES: Final = {
    METHOD_NOT_FOUND: 404,
    INSUFFICIENT_SCOPE: 403,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}


class Endpoint:
    """Serves the path for as long as the application runs.

    Args:
        app: The shared part of the application.

    Attributes:
        app: See Args.
        sessions: The sessions with a handshake.
        open: Number of HTTP requests without a complete answer; of streams that were handed over,
            `RunningApp.streams` knows.
        stopping: True once no new work is taken.
    """

    def __init__(self, app: RunningApp) -> None:
        self.app = app
        self.sessions = Sessions(app)
        self.open = 0
        self.stopping = False
        self._messages = app.running.server.options.limits
        self._stateless = StatelessRequests(app.running)
        self._decoding = trio.Lock()
        self._quiet = trio.Event()  # set once no HTTP request is open, at the end

    async def handle(self, http: HttpRequest) -> None:
        """Answer one HTTP request.

        Raises:
            Refused: The request breaks a rule of the transport, or a limit.
            Disconnected: The client went away.
        """
        # Counted before any check: `settle` waits until the last answer is written, refusals as
        # well.
        self.open += 1
        try:
            self._check_running()
            if http.method == "POST":
                await self._post(http)
            elif http.method not in ("GET", "DELETE"):
                raise _not_allowed(f"{http.method} is not allowed", _METHODS)
            # 2026-07-28 has no GET and no DELETE, so the id of a live session counts for nothing
            # here.
            elif http.version == STATELESS.name:
                text = f"{STATELESS.name} has no sessions: {http.method} means nothing"
                raise _not_allowed(text, b"POST")
            elif http.method == "GET":
                await self._get(http)
            else:
                # From now on the id is answered with 404 (2025-11-25 `basic/transports`).
                self.sessions.delete(self.sessions.find(http))
                await http.respond(200, headers=())
        finally:
            self.open -= 1
            if self.stopping and not self.open:
                self._quiet.set()

    def _check_running(self) -> None:
        if self.stopping:
            raise unavailable("The server is shutting down", 1)

    async def _get(self, http: HttpRequest) -> None:
        # Without `Accept` any type is fine (RFC 9110 section 12.5.1).
        accepted = http.header(b"accept")
        if accepted is not None and not _accepts_events(accepted.lower()):
            raise Refused(406, "GET must accept text/event-stream", code=INVALID_REQUEST)
        await self.sessions.find(http).read(http, http.header(b"last-event-id"))

    async def _post(self, http: HttpRequest) -> None:
        # Pages can send text and forms to other origins without asking first; JSON needs a
        # preflight.
        if http.headers.get(b"content-type") != JSON[1] and not _is_json(http):
            raise Refused(415, "Content-Type must be application/json", code=INVALID_REQUEST)
        coding = http.headers.get(b"content-encoding")
        if coding is not None and coding.strip(b" \t").lower() not in (b"", b"identity"):
            # RFC 9110 section 15.5.16 asks to say which codings are taken.
            text = "Content-Encoding must be identity: the body is not decoded here"
            raise Refused(415, text, code=INVALID_REQUEST, headers=[_IDENTITY])
        # One scope for the body, and then for the handler, which leaves it (see `TaskScope`). For a
        # body that is there already none is needed.
        http.entered = entered = TaskScope()
        if not http.has_body:
            entered.on_wait = partial(self._start_clock, entered.enter())
        with entered:
            await entered.run(self._read(http))
            return
        # The scope has caught its own cancellation: the deadline of the body has passed.
        text = f"The body took over {self.app.limits.body_time:g} seconds"
        raise Refused(408, text, code=INVALID_REQUEST)

    def _start_clock(self, scope: trio.CancelScope) -> bool:
        """Limit the time of a body that must be waited for."""
        # Not earlier: a deadline costs as much as parsing the body.
        if scope.deadline == math.inf:
            scope.deadline = trio.current_time() + self.app.limits.body_time
        return True  # the handler has a use for its first wait, too

    async def _read(self, http: HttpRequest) -> None:
        """Read the body of a POST in time, and answer it."""
        hold = http.hold = Hold(self.app.accounts.of(http))
        scope = http.entered.scope
        try:
            body = await http.read(self._messages.message_size)
            http.entered.on_wait = None
            if scope is not None and scope.deadline != math.inf:
                scope.deadline = math.inf
                self._check_running()  # it came slowly
            if len(body) > LARGE:
                # One in each round of the loop: others are served before and after.
                async with self._decoding:
                    await trio.lowlevel.checkpoint()
            # Counted before the values exist. They stay until the answer is written.
            if not hold.reserve(size := memory_bound(body, self.app.accounts.part)):
                raise http.too_large(size)
            message = decode(body, self._messages)
            # A request that runs for long would keep the body as long.
            del body
            hold.release(http.size)
            if isinstance(message, Request):
                http.id = message.id
                hold.begin()
            elif isinstance(message, Batch):
                hold.begin()
            await self._answer(http, message)
        finally:
            if not http.handed_over:
                hold.close()

    def _answer(self, http: HttpRequest, message: Decoded) -> Awaitable[None]:
        """Choose what answers the message of a POST: the return value, to be awaited."""
        version = http.version
        if isinstance(message, Malformed):
            return self._refuse_malformed(http, message)
        # The header alone decides: such a request without `_meta` must get 400 and -32602, and not
        # the rules of earlier revisions (2026-07-28 `basic/index`).
        if version == STATELESS.name or _names_stateless(message):
            return self._answer_stateless(http, message)
        if isinstance(message, Request) and not is_handshake(version):
            # 2025-11-25 `basic/transports` demands 400. The body is the error of 2026-07-28, whose
            # list of versions tells a client of any revision how to go on.
            refusal = unsupported(message, version or "")
            self.app.observe(http, message, refusal)
            return send_refusal(http, refusal, HTTP_STATUS, 400)
        if isinstance(message, Request) and message.method == "initialize":
            session = self.sessions.make(http)
            event = session.receive_from(http, message)
            if isinstance(event, Dispatch):
                # Only an `initialize` that is valid takes a place in the table, so refused ones
                # cannot push the sessions of others out. The id travels in the head of its answer.
                self.sessions.add(session)
                http.extra = (*http.extra, (SESSION, session.id.encode()))
            return session.act_on(http, event)
        session = self.sessions.find(http)
        return session.act_on(http, session.receive_from(http, message))

    async def _refuse_malformed(self, http: HttpRequest, message: Malformed) -> None:
        self.app.observe(http, message, Send(message.error))
        if not message.answer and SESSION in http.headers:
            # A response to a question of ours that cannot be read: the question has its answer,
            # although a broken one, and nobody must wait any longer.
            session = self.sessions.find(http)
            event = session.decide(message)
            if event is not None:
                session.take(event, session.standing)
        await http.respond(400, encode(message.error))

    # 2026-07-28: each request carries its own context, and needs no session

    async def _answer_stateless(self, http: HttpRequest, message: Decoded) -> None:
        if isinstance(message, Notification):
            self.app.observe(http, message, None)
            # The revision defines none ("Sending Messages"); unknown ones are ignored.
            await http.respond(202, headers=())
            return
        if not isinstance(message, Request):
            text = f"{STATELESS.name} takes one request or notification in a POST"
            raise Refused(400, text, code=INVALID_REQUEST)
        # Headers that repeat the body: intermediaries route by them, so a difference is refused
        # with 400 and -32020 (2026-07-28 `basic/transports/streamable-http`, "Server Validation").
        name = http.hold.account.name
        event = read_stateless(message, Origin(http.headers, http.principal, name))
        if isinstance(event, Send):
            self.app.observe(http, message, event)
            # Found before the first byte, so the status can still say it.
            await send_refusal(http, event, HTTP_STATUS, 400)
            return
        reply = Reply(http, self.app, _STATUSES)
        # Other requests end by themselves; this one would outlive its token.
        if message.method == "subscriptions/listen" and http.principal is not None:
            life = time_left(http.principal, self.app.limits.stream_life)
            reply.expires = trio.current_time() + life
            reply.on_expiry = partial(self._stateless.end_subscriptions, reply)
        try:
            await self._stateless.serve_one(event, reply, http.size)
        finally:
            if not http.handed_over:
                reply.close()

    # The end

    async def settle(self, grace: float) -> None:
        """End the streams that would never end, and wait for running requests.

        Args:
            grace: Seconds that running requests and tasks get; then they are refused, or cancelled,
                and it takes at most `DRAIN_TIMEOUT` more to write the rest.
        """
        # New requests get 503 from here on, so everything that is counted below only shrinks.
        self.stopping = True
        sessions = list(self.sessions)
        # Streams without an end come first: waiting for them would use up the grace of all others.
        self._stateless.end_subscriptions()
        for session in sessions:
            session.end_subscriptions()
            session.standing.end()
        async with trio.open_nursery() as nursery:
            # Side by side: the grace is one period for all, not one for each session.
            nursery.start_soon(self.app.running.tasks.settle, grace)
            nursery.start_soon(self._stateless.settle, grace)
            for session in sessions:
                if session.requests:
                    nursery.start_soon(session.settle, grace)
        with trio.move_on_after(DRAIN_TIMEOUT):
            # Every request has its answer by now; bytes may still wait for slow clients.
            if self.open:
                await self._quiet.wait()
            await self.app.streams.wait_for_end()
        # Clients that have not read everything by now would keep the process from ending.
        self.app.streams.close()
        for session in self.sessions:
            self.sessions.end(session)


def _is_json(http: HttpRequest) -> bool:
    """Tell whether the content type, without its parameters, is that of JSON."""
    kind = http.header(b"content-type") or ""
    return kind.partition(";")[0].strip().lower() == "application/json"


def _accepts_events(accepted: str) -> bool:
    return "text/event-stream" in accepted or "*/*" in accepted


def _names_stateless(message: Decoded) -> bool:
    """Tell whether the body of a POST names the stateless era."""
    # Not `isinstance`: all of these come here. Most params of the other era have no `_meta` at all.
    params: Mapping[str, Any] | None = getattr(message, "params", None)
    return params is not None and "_meta" in params and is_stateless(params)


def _not_allowed(text: str, methods: bytes) -> Refused:
    return Refused(405, text, code=INVALID_REQUEST, headers=[(b"allow", methods)])
