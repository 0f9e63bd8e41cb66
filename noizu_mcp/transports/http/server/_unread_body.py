"""The rest of a body that nobody has read when the answer is complete: it is read, and dropped.

Hosts differ in how they take an answer that ends before the body of its request. Our own host reads
what it must. hypercorn 0.18 fails on HTTP/2 at the next part of the body, and in trio that failure
ends the program; on HTTP/1.1 it keeps the connection for ever. So on other hosts the last part of
an answer waits for the end of the body. The answer itself does not wait: only its end does.
"""

from math import inf
from typing import Any, Final

import trio

from ._asgi import Message, Receive, Scope, Send

#: An extension of ASGI by our hosts, in the scope: the seconds from the beginning of a request in
#: which the end of its answer waits for the rest of its body.
UNREAD_BODY: Final = "noizu_mcp.unread_body"


def patience(scope: Scope, default: float) -> float:
    """Return the seconds, from now on, that the end of an answer waits for the rest of the body.

    Args:
        scope: The scope of the request.
        default: The seconds on a host that does not say it. It holds for HTTP/1, where a host can
            end the connection. A stream of HTTP/2 is kept until the client ends it.
    """
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if UNREAD_BODY in extensions:
        seconds: float = extensions[UNREAD_BODY]["seconds"]
        return seconds
    return default if scope.get("http_version", "1.1").startswith("1") else inf


class BodyReader:
    """Both directions of a request whose answer ends after its body.

    Args:
        receive: The `receive` of the host.
        send: The `send` of the host.
        seconds: How long from now on the end of the answer waits for that of the body.
    """

    def __init__(self, receive: Receive, send: Send, seconds: float) -> None:
        self._receive = receive
        self._send = send
        self._deadline = trio.current_time() + seconds
        self._complete = False
        # A task that waits for the end of the client may take a part meanwhile.
        self._lock = trio.Lock()

    async def receive(self) -> Message:
        """Receive a message, as an ASGI application does."""
        async with self._lock:
            return await self._take()

    async def send(self, message: Message) -> None:
        """Send a message, as an ASGI application does; its end waits for that of the body."""
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if is_last and not self._complete:
            # The client gets all of the answer now, so that it may stop sending.
            await self._send({**message, "more_body": True})
            await self.drop_rest()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def drop_rest(self) -> None:
        """Read and drop the rest of the body, as long as the time allows."""
        with trio.move_on_at(self._deadline):
            while not self._complete:
                async with self._lock:
                    if not self._complete:
                        await self._take()
        self._complete = True  # or nobody waits for it again

    async def _take(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._complete = True
        return message
