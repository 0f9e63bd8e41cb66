"""POST requests of 2026-07-28: each carries its own context, and needs no session.

Source: 2026-07-28 `basic/transports/streamable-http`.
"""

from functools import partial
from typing import Final

import trio

from ....jsonrpc import (
    HEADER_MISMATCH,
    HTTP_STATUS,
    INSUFFICIENT_SCOPE,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
    Decoded,
    Notification,
    Request,
)
from ....protocol import STATELESS, Mirrored, Origin, Send, read_stateless
from ....server import StatelessRequests
from ....types import Principal
from ._asgi import HttpRequest, Refused
from ._connection import VERSION, Host
from ._reply import Reply, send_refusal
from ._stream_lifetime import time_left

_PARAM: Final = "mcp-param-"
#: The HTTP status of an error of a handler, by its code; every other one travels with 200.
_STATUSES: Final = {
    METHOD_NOT_FOUND: 404,
    INSUFFICIENT_SCOPE: 403,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}


class StatelessPosts:
    """The POST requests of 2026-07-28 that are being answered.

    Args:
        host: The shared part of the application.

    Attributes:
        requests: The requests that have no answer yet.
    """

    def __init__(self, host: Host) -> None:
        self.requests = StatelessRequests(host.running)
        self._host = host
        self._replies: dict[Reply, None] = {}

    def __len__(self) -> int:
        return len(self._replies)

    async def post(self, http: HttpRequest, message: Decoded) -> None:
        """Answer one POST.

        Raises:
            Refused: It is no request and no notification (400).
        """
        if isinstance(message, Request):
            await self._serve(http, message)
        elif isinstance(message, Notification):
            self._host.observe(http, message, None)
            # The revision defines none ("Sending Messages"); unknown ones are ignored.
            await http.respond(202, headers=())
        else:
            text = f"{STATELESS.name} takes one request or notification in a POST"
            raise Refused(400, text, code=INVALID_REQUEST)

    async def _serve(self, http: HttpRequest, request: Request) -> None:
        host, headers = self._host, http.headers
        # Headers that repeat the body: intermediaries route by them, so a difference is refused
        # with 400 and -32020 (2026-07-28 `basic/transports/streamable-http`, "Server Validation").
        mirrored = Mirrored(
            headers.get(VERSION),
            headers.get("mcp-method"),
            headers.get("mcp-name"),
            {name[len(_PARAM) :]: headers[name] for name in headers if name.startswith(_PARAM)},
        )
        event = read_stateless(request, Origin(mirrored, http.principal))
        if isinstance(event, Send):
            host.observe(http, request, event)
            # Found before the first byte, so the status can still say it.
            await send_refusal(http, event, HTTP_STATUS, 400)
            return
        reply = Reply(http, host.tasks, host.pace, statuses=_STATUSES)
        # Kept until all is written, which may be long after the request has its answer.
        self._replies[reply] = None
        life: trio.CancelScope | None = None
        # Other requests end by themselves; this one would outlive its token.
        if request.method == "subscriptions/listen" and http.principal is not None:
            life = host.tasks.spawn(partial(self._end_with_token, reply, http.principal))
        try:
            await self.requests.serve_one(event, reply, http.size)
        finally:
            del self._replies[reply]
            reply.close()
            if life is not None:
                life.cancel()

    async def _end_with_token(self, reply: Reply, principal: Principal) -> None:
        """End a listen request in order when its token expires, or as soon as it is open."""
        # A loop: a request that has not begun to listen by then is found by the next round.
        while True:
            await trio.sleep(time_left(principal, self._host.options.limits.stream_life))
            self.requests.end_subscriptions(reply)

    def hang_up(self) -> None:
        """Disconnect clients that have not read everything."""
        for reply in self._replies:
            reply.close()
