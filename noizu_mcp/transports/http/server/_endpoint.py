"""The one path of the protocol: POST, GET and DELETE, for clients of both eras.

Sources: 2025-11-25 `basic/transports`; 2026-07-28 `basic/transports/streamable-http`.
"""

import math
from typing import Final

import trio

from ....engine import TaskScope, run_eager
from ....jsonrpc import (
    HTTP_STATUS,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    Batch,
    Decoded,
    Malformed,
    Notification,
    Request,
    decode,
    encode,
)
from ....protocol import (
    HANDSHAKE_VERSIONS,
    STATELESS,
    SUPPORTED_VERSIONS,
    Dispatch,
    Send,
    is_stateless,
    unsupported,
)
from ._asgi import Header, HttpRequest, Refused, unavailable
from ._connection import VERSION, Host
from ._http_session import HttpSession, Sessions
from ._quotas import Account
from ._reply import send_refusal
from ._stateless import StatelessPosts

#: In lower case, as ASGI hands header names over.
SESSION: Final = "mcp-session-id"
#: Seconds to write the rest once nothing runs any more; a client that reads needs far less.
DRAIN_TIMEOUT: Final = 2.0
#: A 405 must list the methods of the path in `Allow` (RFC 9110 section 15.5.6).
_METHODS: Final = b"GET, POST, DELETE"
_IDENTITY: Final[Header] = (b"accept-encoding", b"identity")


class Endpoint:
    """Serves the path for as long as the application runs.

    Args:
        host: The shared part of the application.

    Attributes:
        sessions: The sessions with a handshake.
        stopping: True once no new work is taken.
    """

    def __init__(self, host: Host) -> None:
        self.sessions = Sessions(host)
        self.stopping = False
        self._host = host
        self._limits = host.options.limits
        self._messages = host.running.server.options.limits
        self._stateless = StatelessPosts(host)
        self._open = 0
        self._quiet = trio.Event()  # set once no HTTP request is open, at the end

    async def handle(self, http: HttpRequest) -> None:
        """Answer one HTTP request.

        Raises:
            Refused: The request breaks a rule of the transport, or a limit.
            Disconnected: The client went away.
        """
        # Counted before any check: `settle` waits until the last answer is written, refusals as
        # well.
        self._open += 1
        try:
            self._check_running()
            await self._handle(http)
        finally:
            self._open -= 1
            if self.stopping and not self._open:
                self._quiet.set()

    def _check_running(self) -> None:
        if self.stopping:
            raise unavailable("The server is shutting down", 1)

    async def _handle(self, http: HttpRequest) -> None:
        if http.method == "POST":
            await self._post(http)
        elif http.method not in ("GET", "DELETE"):
            raise _not_allowed(f"{http.method} is not allowed", _METHODS)
        # 2026-07-28 has no GET and no DELETE, so the id of a live session counts for nothing here.
        elif http.headers.get(VERSION) == STATELESS.name:
            text = f"{STATELESS.name} has no sessions: {http.method} means nothing"
            raise _not_allowed(text, b"POST")
        elif http.method == "GET":
            await self._get(http)
        else:
            # From now on the id is answered with 404 (2025-11-25 `basic/transports`).
            self.sessions.delete(self._session(http))
            await http.respond(200, headers=())

    async def _post(self, http: HttpRequest) -> None:
        kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
        # Pages can send text and forms to other origins without asking first; JSON needs a
        # preflight.
        if kind != "application/json":
            raise Refused(415, "Content-Type must be application/json", code=INVALID_REQUEST)
        if http.headers.get("content-encoding", "").lower() not in ("", "identity"):
            # RFC 9110 section 15.5.16 asks to say which codings are taken.
            text = "Content-Encoding must be identity: the body is not decoded here"
            raise Refused(415, text, code=INVALID_REQUEST, headers=[_IDENTITY])
        # The account counts the body part by part, and `http.size` with it: `release` gives back
        # exactly the bytes that were counted, also if the limit refused a part in the middle.
        account = self._host.accounts.of(http)
        try:
            await self._take_post(http, await self._read(http, account), account)
        except BaseException as error:
            entered = http.entered
            if entered is None or entered.left:
                raise
            # True: the scope has caught its own cancellation, so the deadline of the body has
            # passed. A scope that the handler has left is not ours to exit a second time.
            if entered.__exit__(type(error), error, error.__traceback__):
                seconds = self._limits.body_time
                text = f"The body took over {seconds:g} seconds"
                raise Refused(408, text, code=INVALID_REQUEST) from None
            raise
        finally:
            account.release(http.size)
            if http.entered is not None and not http.entered.left:
                http.entered.__exit__(None, None, None)

    async def _read(self, http: HttpRequest, account: Account) -> Decoded:
        def start_clock() -> None:
            scope.deadline = trio.current_time() + self._limits.body_time

        # Without a name for the body: a request that runs for long would keep it as long. A body
        # that is there already needs no deadline, which would cost as much as parsing it.
        reading = http.read(self._messages.message_size, account.hold)
        # One scope for the body, and then for the handler, which leaves it (see `TaskScope`).
        http.entered = entered = TaskScope()
        scope = entered.scope
        message = decode(await run_eager(reading, start_clock), self._messages)
        if scope.deadline != math.inf:
            scope.deadline = math.inf
            self._check_running()  # it came slowly
        return message

    async def _take_post(self, http: HttpRequest, message: Decoded, account: Account) -> None:
        if not isinstance(message, Request | Batch):
            await self._post_message(http, message)
            return
        try:
            account.begin()
            try:
                await self._post_message(http, message)
            finally:
                account.end()
        except Refused as refused:
            if isinstance(message, Request):
                refused.id = message.id
            raise

    async def _post_message(self, http: HttpRequest, message: Decoded) -> None:
        if isinstance(message, Malformed):
            await self._refuse_malformed(http, message)
        elif _is_stateless(http, message):
            await self._stateless.post(http, message)
        else:
            await self._post_handshake(http, message)

    async def _refuse_malformed(self, http: HttpRequest, message: Malformed) -> None:
        self._host.observe(http, message, Send(message.error))
        if not message.answer and SESSION in http.headers:
            # The question has its answer, although a broken one: nobody must wait any longer.
            # A response that cannot be read, to a question of ours.
            session = self._session(http)
            event = session.decide(message)
            if event is not None:
                session.take(event, session.standing)
        await http.respond(400, encode(message.error))

    # Up to 2025-11-25: sessions

    async def _post_handshake(self, http: HttpRequest, message: Decoded) -> None:
        version = http.headers.get(VERSION)
        if isinstance(message, Request) and not _is_handshake(version):
            # 2025-11-25 `basic/transports` demands 400. The body is the error of 2026-07-28, whose
            # list of versions tells a client of any revision how to go on.
            refusal = unsupported(message, version or "")
            self._host.observe(http, message, refusal)
            await send_refusal(http, refusal, HTTP_STATUS, 400)
        elif isinstance(message, Request) and message.method == "initialize":
            await self._initialize(http, message)
        else:
            await self._session(http).post(http, message)

    async def _initialize(self, http: HttpRequest, request: Request) -> None:
        session = self.sessions.make(http)
        event = session.receive_from(http, request)
        if isinstance(event, Dispatch):
            # Only an `initialize` that is valid takes a place in the table, so refused ones cannot
            # push the sessions of others out. The id travels in the head of its answer.
            self.sessions.add(session)
            http.extra = (*http.extra, (SESSION.encode(), session.id.encode()))
        await session.act_on(http, event)

    async def _get(self, http: HttpRequest) -> None:
        # Without `Accept` any type is fine (RFC 9110 section 12.5.1).
        accepted = http.headers.get("accept", "*/*").lower()
        if "text/event-stream" not in accepted and "*/*" not in accepted:
            raise Refused(406, "GET must accept text/event-stream", code=INVALID_REQUEST)
        await self._session(http).read(http, http.headers.get("last-event-id"))

    def _session(self, http: HttpRequest) -> HttpSession:
        version = http.headers.get(VERSION)
        if not _is_handshake(version):
            raise _unsupported(str(version))
        # Another one than was agreed on is let pass: the official suite 0.1.16 sends such.
        return self.sessions.find(http.headers.get(SESSION), http)

    # The end

    async def settle(self, grace: float) -> None:
        """End the streams that would never end, and wait for running requests.

        Args:
            grace: Seconds that running requests and tasks get; then they are refused, or cancelled,
                and it takes at most `DRAIN_TIMEOUT` more to write the rest.
        """
        # New requests get 503 from here on, so everything that is counted below only shrinks.
        self.stopping = True
        sessions, requests = list(self.sessions), self._stateless.requests
        # Streams without an end come first: waiting for them would use up the grace of all others.
        requests.end_subscriptions()
        for session in sessions:
            session.end_subscriptions()
            session.standing.end()
        async with trio.open_nursery() as nursery:
            # Side by side: the grace is one period for all, not one for each session.
            nursery.start_soon(self._host.running.tasks.settle, grace)
            nursery.start_soon(requests.settle, grace)
            for session in sessions:
                if session.requests:
                    nursery.start_soon(session.settle, grace)
        if self._open:
            with trio.move_on_after(DRAIN_TIMEOUT):
                # Every request has its answer by now; bytes may still wait for slow clients.
                await self._quiet.wait()
        # Clients that have not read everything by now would keep the process from ending.
        self._stateless.hang_up()
        for session in self.sessions:
            session.hang_up()
            self.sessions.end(session)


def _is_stateless(http: HttpRequest, message: Decoded) -> bool:
    """Tell the era of a POST; the headers may say it as well as the body."""
    # The header alone decides: such a request without `_meta` must get 400 and -32602, and not
    # the rules of earlier revisions (2026-07-28 `basic/index`).
    if http.headers.get(VERSION) == STATELESS.name:
        return True
    if not isinstance(message, Request | Notification) or not message.params:
        return False
    # Most params of the other era have no `_meta` at all.
    return "_meta" in message.params and is_stateless(message.params)


def _is_handshake(version: str | None) -> bool:
    """Tell whether the header allows a session; without one, the negotiated version counts."""
    return version is None or version in HANDSHAKE_VERSIONS


def _not_allowed(text: str, methods: bytes) -> Refused:
    return Refused(405, text, code=INVALID_REQUEST, headers=[(b"allow", methods)])


def _unsupported(version: str) -> Refused:
    text = f"MCP-Protocol-Version {version[:50]!r} is not supported"
    data = {"supported": list(SUPPORTED_VERSIONS), "requested": version[:50]}
    return Refused(400, text, code=UNSUPPORTED_VERSION, data=data)
