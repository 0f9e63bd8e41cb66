"""POST requests of 2026-07-28: each is a connection of its own, and carries its own context.

Source: 2026-07-28 `basic/transports/streamable-http`.
"""

from collections.abc import Iterator, Mapping
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
    ErrorResponse,
    Notification,
    Request,
    encode,
)
from ....protocol import STATELESS, Mirrored, Origin, Send
from ....types import Principal
from ._asgi import HttpRequest, Refused
from ._connection import VERSION, Host, HttpConnection
from ._reply import Reply
from ._stream_lifetime import time_left

_PARAM: Final = "mcp-param-"
#: What an error of a handler is answered with; every other one with 200.
_STATUSES: Final = {
    METHOD_NOT_FOUND: 404,
    INSUFFICIENT_SCOPE: 403,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}


class SingleRequests:
    """The requests that are being answered.

    Args:
        host: What they share.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._replies: dict[HttpConnection, Reply] = {}

    def __len__(self) -> int:
        return len(self._replies)

    def __iter__(self) -> Iterator[HttpConnection]:
        return iter(list(self._replies))

    async def post(self, http: HttpRequest, message: Decoded) -> None:
        """Answer one POST.

        Raises:
            Refused: It is no request and no notification (400).
        """
        if isinstance(message, Request):
            await self._serve(http, message)
        elif isinstance(message, Notification):
            self._host.hear(http, message, None)
            # None is defined ("Sending Messages"); unknown ones mean nothing.
            await http.respond(202, headers=())
        else:
            text = f"{STATELESS.name} takes one request or notification in a POST"
            raise Refused(400, text, code=INVALID_REQUEST)

    async def _serve(self, http: HttpRequest, request: Request) -> None:
        connection = HttpConnection(self._host)
        reply = Reply(http, self._host.tasks, self._host.pace, statuses=_STATUSES)
        connection.begin(reply)
        origin = Origin(_mirrored(http), http.principal)
        event = connection.peer.stateless.receive_request(request, origin)
        connection.heard(request, event, http.size)
        if isinstance(event, Send):
            await refuse(http, event, HTTP_STATUS, 400)
            return
        self._replies[connection] = reply
        if request.method == "subscriptions/listen" and http.principal is not None:
            connection.tasks.spawn(partial(self._end_with_token, connection, http.principal))
        try:
            # The end of the HTTP request is its cancellation (`basic/patterns/cancellation`).
            await connection.desk.lead(event, reply, tied=True)
        finally:
            del self._replies[connection]
            reply.close()
            connection.stop()

    async def _end_with_token(self, connection: HttpConnection, principal: Principal) -> None:
        """End a listen request in order when its token does, or as soon as it is open after."""
        while True:
            await trio.sleep(time_left(principal, self._host.options.limits.stream_life))
            connection.closing()

    def hang_up(self) -> None:
        """Wait no longer for clients that have not read everything."""
        for reply in self._replies.values():
            reply.close()


def _mirrored(http: HttpRequest) -> Mirrored:
    headers = http.headers
    params = {
        name[len(_PARAM) :]: value for name, value in headers.items() if name.startswith(_PARAM)
    }
    return Mirrored(
        headers.get(VERSION), headers.get("mcp-method"), headers.get("mcp-name"), params
    )


async def refuse(
    http: HttpRequest, refusal: Send, statuses: Mapping[int, int], default: int
) -> None:
    """Answer with the error that a peer has found.

    Args:
        http: The request.
        refusal: The error.
        statuses: The HTTP status by its code.
        default: The status of codes that are not there.
    """
    error = refusal.message
    code = error.code if isinstance(error, ErrorResponse) else 0
    await http.respond(statuses.get(code, default), encode(error))
