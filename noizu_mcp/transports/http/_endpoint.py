"""The one path of the protocol: POST, GET and DELETE, for clients of both eras.

Sources: 2025-11-25 `basic/transports`; 2026-07-28 `basic/transports/streamable-http`.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import trio

from ...engine import LoopGate, run_leading
from ...jsonrpc import (
    HEADER_MISMATCH,
    HTTP_STATUS,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
    Batch,
    Decoded,
    ErrorResponse,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    encode,
)
from ...protocol import (
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    STATELESS,
    Dispatch,
    Fanout,
    Mirrored,
    Origin,
    Send as Refusal,
    is_stateless,
    unsupported,
)
from ...server import Connection, Server
from ._asgi import JSON, Head, Header, Receive, Refused, Send, read_body, respond
from ._options import HttpOptions
from ._reply import Reply
from ._session import HttpDesk, Session, Sessions
from ._sse import EventWriter, Pace
from ._tasks import TaskSet

SESSION: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"
_PARAM: Final = "mcp-param-"
_ALLOW: Final[Header] = (b"allow", b"GET, POST, DELETE")
#: What an error of a handler is answered with on 2026-07-28; every other one with 200.
_MODERN: Final = {
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
_HANDSHAKE: Final[Mapping[int, int]] = {}


class Endpoint:
    """Serves the path for as long as the application runs.

    Args:
        server: The server.
        state: What its lifespan yielded.
        options: How it is served.
        nursery: Where sessions and answers run what they need.

    Attributes:
        sessions: The sessions with a handshake.
        stopping: True once no new work is taken.
    """

    def __init__(
        self, server: Server, state: Any, options: HttpOptions, nursery: trio.Nursery
    ) -> None:
        limits = options.limits
        self.sessions = Sessions(limits)
        self.stopping = False
        self._server = server
        self._state = state
        self._limits = limits
        self._messages = server.options.limits
        self._nursery = nursery
        self._gate = LoopGate()
        self._pace = Pace(keepalive=limits.keepalive, stall=limits.stall, room=int(limits.room))
        self._single: set[HttpDesk] = set()  # the requests of 2026-07-28
        self._connections: set[Connection] = set()

    async def handle(
        self, head: Head, receive: Receive, send: Send, principal: Any, cors: tuple[Header, ...]
    ) -> None:
        """Answer one HTTP request.

        Raises:
            Refused: It is none of the protocol.
        """
        if self.stopping:
            retry = (b"retry-after", b"1")
            text = "The server is shutting down"
            raise Refused(503, text, code=INTERNAL_ERROR, headers=[retry])
        if head.method == "POST":
            await self._post(head, receive, send, principal, cors)
        elif head.method == "GET":
            await self._get(head, receive, send, principal, cors)
        elif head.method == "DELETE":
            self.sessions.end(self._session(head, principal))
            await respond(send, 200, cors)
        else:
            raise _not_allowed()

    async def _post(
        self, head: Head, receive: Receive, send: Send, principal: Any, cors: tuple[Header, ...]
    ) -> None:
        kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            text = "Content-Type must be application/json"
            raise Refused(415, text, code=INVALID_REQUEST)
        body = await read_body(receive, self._messages.message_size, self._limits.body_time)
        message = decode(body, self._messages)
        origin = Origin(mirrored_of(head), principal)
        reply = partial(Reply, receive, send, pace=self._pace)
        if _is_stateless(message, origin.headers):
            await self._stateless(message, origin, reply, send, cors)
        else:
            await self._handshake(head, message, origin, reply, send, cors)
