"""The path of the protocol: POST, GET and DELETE, for clients of both eras.

Sources: 2025-11-25 `basic/transports`; 2026-07-28 `basic/transports/streamable-http`.
"""

import math
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ...._value import JSONMapping
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
    SendAnswer,
    is_stateless,
    read_stateless,
    unsupported,
)
from ....server import StatelessRequests
from ._asgi import JSON, HttpHeader, HttpRefusal, HttpRequest, unavailable
from ._event_writer import time_left
from ._http_post import HttpPost, send_refusal
from ._http_session import SESSION, Sessions, is_handshake
from ._quotas import Reservation
from ._running_app import RunningApp

if TYPE_CHECKING:
    from ._shared_sessions import SharedSessions

#: Seconds to write the rest after all requests have ended. A client that reads needs far less.
DRAIN_TIMEOUT: Final = 2.0
#: A 405 must list the methods of the path in `Allow` (RFC 9110 section 15.5.6).
_METHODS: Final = b"GET, POST, DELETE"
_IDENTITY: Final[HttpHeader] = (b"accept-encoding", b"identity")
#: The HTTP status for errors of handlers on 2026-07-28, by code; 200 for all other codes.
_STATUSES: Final = {
    METHOD_NOT_FOUND: 404,
    INSUFFICIENT_SCOPE: 403,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}


class Endpoint:
    """Serves the path while the application runs.

    Args:
        app: The shared part of the application.
        shared: The sessions where other nodes serve them as well; None without other nodes.

    Attributes:
        app: See Args.
        sessions: The sessions with a handshake.
        shared: See Args.
        open: Number of HTTP requests without a complete answer. Handed-over streams are counted in
            `RunningApp.streams`.
        stopping: True once no new work is accepted.
    """

    def __init__(self, app: RunningApp, shared: "SharedSessions | None" = None) -> None:
        self.app = app
        self.shared = shared
        self.sessions = Sessions(app) if shared is None else shared
        self.open = 0
        self.stopping = False
        self._messages = app.running.server.options.limits
        self._stateless = StatelessRequests(app.running)
        self._decoding = trio.Lock()
        self._quiet = trio.Event()  # set once no HTTP request is open, at the end

    async def handle(self, http: HttpRequest) -> None:
        """Answer one HTTP request.

        Raises:
            HttpRefusal: The request violates a rule of the transport, or a limit.
            Disconnected: The client disconnected.
        """
        # Counted before any check: `settle` waits until the last answer is written, including
        # refusals.
        self.open += 1
        try:
            self._check_running()
            if isinstance(http, HttpPost):
                await self._post(http)
            elif http.method not in ("GET", "DELETE"):
                raise _not_allowed(f"{http.method} is not allowed", _METHODS)
            # 2026-07-28 has no GET and no DELETE, so a session id does not matter here.
            elif http.version == STATELESS.name:
                text = f"{STATELESS.name} has no sessions: {http.method} means nothing"
                raise _not_allowed(text, b"POST")
            elif http.method == "GET":
                await self._get(http)
            else:
                # From now on requests with this id get 404 (2025-11-25 `basic/transports`).
                if self.shared is None:
                    self.sessions.delete(self.sessions.find(http))
                else:
                    await self.shared.delete_session(http)
                await http.respond(200, headers=())
        finally:
            self.open -= 1
            if self.stopping and not self.open:
                self._quiet.set()

    def _check_running(self) -> None:
        if self.stopping:
            raise unavailable("The server is shutting down", 1)

    async def _get(self, http: HttpRequest) -> None:
        # Without `Accept` any type is acceptable (RFC 9110 section 12.5.1).
        accepted = http.header(b"accept")
        if accepted is not None and not _accepts_events(accepted.lower()):
            raise HttpRefusal(406, "GET must accept text/event-stream", code=INVALID_REQUEST)
        if http.unread:
            await http.drop_body()  # no stream may end before the body
        if self.shared is not None:
            await self.shared.read(http)
            return
        await self.sessions.find(http).read(http, http.header(b"last-event-id"))

    async def _post(self, post: HttpPost) -> None:
        # Web pages can send text and forms to other origins without a preflight; JSON needs a
        # preflight.
        if post.headers.get(b"content-type") != JSON[1] and not _is_json(post):
            raise HttpRefusal(415, "Content-Type must be application/json", code=INVALID_REQUEST)
        coding = post.headers.get(b"content-encoding")
        if coding is not None and coding.strip(b" \t").lower() not in (b"", b"identity"):
            # RFC 9110 section 15.5.16 asks to name the supported codings.
            text = "Content-Encoding must be identity: the body is not decoded here"
            raise HttpRefusal(415, text, code=INVALID_REQUEST, headers=[_IDENTITY])
        # One scope for the body, and then for the handler, which leaves it (see `TaskScope`). A
        # body that has arrived needs no scope. The host may watch this task already.
        hosted = post.host_task
        is_hosted = hosted is not None and hosted.is_current()
        post.entered = entered = hosted if hosted is not None and is_hosted else TaskScope()
        post.app = self.app
        if not post.has_body:
            entered.enter()
            entered.on_wait = post.start_clock
        with entered:
            await (self._read(post) if is_hosted else entered.run(self._read(post)))
            return
        # The scope has caught its own cancellation: the deadline of the body has passed.
        text = f"The body took over {self.app.limits.body_time:g} seconds"
        raise HttpRefusal(408, text, code=INVALID_REQUEST)

    async def _read(self, post: HttpPost) -> None:
        """Read the body of a POST within its time limit, and answer it."""
        reservation = post.reservation = Reservation(self.app.quotas.of(post))
        try:
            body = await post.read(self._messages.message_size)
            post.entered.on_wait = None
            if post.body_since is not None:  # it arrived slowly
                post.entered.enter().deadline = math.inf
                self._check_running()
            if len(body) > LARGE:
                # One in each round of the loop: others are served before and after.
                async with self._decoding:
                    await trio.lowlevel.checkpoint()
            # Counted before the values exist. They stay until the answer is written.
            if not reservation.reserve(size := memory_bound(body, self.app.quotas.part)):
                raise post.too_large(size)
            message = decode(body, self._messages)
            # A long-running request would keep the body.
            del body
            if post.body_reserved:
                reservation.release(post.body_reserved)
            if isinstance(message, Request):
                post.id = message.id
                reservation.begin()
            elif isinstance(message, Batch):
                reservation.begin()
            await self._answer(post, message)
        finally:
            if not post.handed_over:
                post.close()

    def _answer(self, post: HttpPost, message: Decoded) -> Awaitable[None]:
        """Choose the handler for the message of a POST. Returns an awaitable."""
        version = post.version
        if isinstance(message, Malformed):
            return self._refuse_malformed(post, message)
        # The header alone decides: such a request without `_meta` must get 400 and -32602, and not
        # the rules of earlier revisions (2026-07-28 `basic/index`).
        if version == STATELESS.name or _names_stateless(message):
            return self._answer_stateless(post, message)
        if isinstance(message, Request) and not is_handshake(version):
            # 2025-11-25 `basic/transports` requires 400. The body is the error of 2026-07-28, whose
            # list of versions tells a client of any revision how to continue.
            refusal = unsupported(message, version or "")
            self.app.observe(post, message, refusal)
            return send_refusal(post, refusal, HTTP_STATUS, 400)
        if self.shared is not None:
            return self.shared.answer(post, message)
        if isinstance(message, Request) and message.method == "initialize":
            session = self.sessions.make(post)
            event = session.receive_from(post, message)
            if isinstance(event, Dispatch):
                # Only a valid `initialize` gets a place in the table, so refused ones cannot evict
                # sessions of others. The id is in the head of its answer.
                self.sessions.add(session)
                post.extra = (*post.extra, (SESSION, session.id.encode()))
            return session.act_on(post, event)
        session = self.sessions.find(post)
        return session.act_on(post, session.receive_from(post, message))

    async def _refuse_malformed(self, post: HttpPost, message: Malformed) -> None:
        self.app.observe(post, message, SendAnswer(message.error))
        if not message.answer and SESSION in post.headers:
            # A malformed response to a request of the server: the request is answered, and its task
            # must stop waiting.
            if self.shared is not None:
                await self.shared.take_malformed(post, message)
            else:
                session = self.sessions.find(post)
                session.take_message(message)
        await post.respond(400, encode(message.error))

    # 2026-07-28: each request has its own context, and needs no session

    async def _answer_stateless(self, post: HttpPost, message: Decoded) -> None:
        if isinstance(message, Notification):
            self.app.observe(post, message, None)
            # The revision defines none ("Sending Messages"); unknown ones are ignored.
            await post.respond(202, headers=())
            return
        if not isinstance(message, Request):
            text = f"{STATELESS.name} takes one request or notification in a POST"
            raise HttpRefusal(400, text, code=INVALID_REQUEST)
        # Headers that repeat the body: intermediaries route by them, so a mismatch is refused with
        # 400 and -32020 (2026-07-28 `basic/transports/streamable-http`, "Server Validation").
        name = post.reservation.quota.name
        event = read_stateless(message, Origin(post.headers, post.principal, name))
        if isinstance(event, SendAnswer):
            self.app.observe(post, message, event)
            # Found before the first byte is sent, so the status can express it.
            await send_refusal(post, event, HTTP_STATUS, 400)
            return
        post.statuses = _STATUSES
        # Other requests end by themselves; this one would outlive its token.
        if message.method == "subscriptions/listen" and post.principal is not None:
            life = time_left(post.principal, self.app.limits.stream_life)
            post.expires = trio.current_time() + life
            post.on_expiry = partial(self._stateless.end_subscriptions, post)
        await self._stateless.serve_one(event, post, post.size)

    # Shutdown

    async def settle(self, grace: float) -> None:
        """End the endless streams, and wait for running requests.

        Args:
            grace: Seconds for running requests and tasks. Then they are refused or cancelled, and
                writing the rest takes at most `DRAIN_TIMEOUT` more.
        """
        # New requests get 503 from here on, so the counts below only decrease.
        self.stopping = True
        sessions = list(self.sessions)
        # Endless streams come first: waiting for them would use up the grace of all others.
        self._stateless.end_subscriptions()
        for session in sessions:
            session.end_subscriptions()
            session.get_stream.end()
        async with trio.open_nursery() as nursery:
            # Concurrently: the grace is one period for all, not one for each session.
            nursery.start_soon(self.app.running.tasks.settle, grace)
            nursery.start_soon(self._stateless.settle, grace)
            for session in sessions:
                if session.requests:
                    nursery.start_soon(session.settle, grace)
        with trio.move_on_after(DRAIN_TIMEOUT):
            # Every request is answered by now; bytes may still wait for slow clients.
            if self.open:
                await self._quiet.wait()
            await self.app.streams.wait_for_end()
            if self.shared is not None:
                await self.shared.flush()
        # Clients that have not read everything by now would keep the process from ending.
        self.app.streams.close()
        for session in self.sessions:
            self.sessions.end(session)


def _is_json(http: HttpRequest) -> bool:
    """Tell whether the content type, without parameters, is JSON."""
    kind = http.header(b"content-type") or ""
    return kind.partition(";")[0].strip().lower() == "application/json"


def _accepts_events(accepted: str) -> bool:
    return "text/event-stream" in accepted or "*/*" in accepted


def _names_stateless(message: Decoded) -> bool:
    """Tell whether the body of a POST uses the stateless era."""
    # Not `isinstance`: all messages come here, and params of the other era usually have no `_meta`.
    params: JSONMapping | None = getattr(message, "params", None)
    return params is not None and "_meta" in params and is_stateless(params)


def _not_allowed(text: str, methods: bytes) -> HttpRefusal:
    return HttpRefusal(405, text, code=INVALID_REQUEST, headers=[(b"allow", methods)])
