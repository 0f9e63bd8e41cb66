"""The client's end of a connection: its link, and the notices that come on it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio

from .._limits import Limits
from ..engine import Exchange, Job, Link, MessageStream, logger
from ..jsonrpc import METHOD_NOT_FOUND, Id, Notification
from ..protocol import ACKNOWLEDGED, ClientPeer
from ..types import META_SUBSCRIPTION_ID
from ._handlers import ClientHandler

#: Notifications that wait for a slow handler; past it the oldest are dropped, and said so.
MAX_NOTICES: Final = 1000


class ClientSession:
    """The `engine.Handler` of a client.

    Args:
        stream: Carries the messages.
        info: `Implementation` of the client, as sent.
        capabilities: What the client can do, as sent.
        handler: What it does when the server speaks first.
        limits: The limits of the connection.
    """

    def __init__(
        self,
        stream: MessageStream,
        info: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        handler: ClientHandler,
        limits: Limits,
    ) -> None:
        self.peer = ClientPeer(info, capabilities, limits.in_flight)
        self.link = Link(stream, self.peer, self, limits)
        self._handler = handler
        self._unacknowledged: dict[Id, trio.MemorySendChannel[Mapping[str, Any]]] = {}
        self._send_notice, self._notices = trio.open_memory_channel[Notification](MAX_NOTICES)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the connection until it is stopped or the server ends it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._deliver)
            await self.link.run(grace=0, task_status=task_status)
            nursery.cancel_scope.cancel()

    async def _deliver(self) -> None:
        async for notice in self._notices:
            try:
                await self._handler.handle_notification(notice.method, notice.params or {})
            except Exception:  # noqa: BLE001 - the author's; later notifications must still come
                logger.exception("handle_notification failed for %s", notice.method)

    # engine.Handler

    def handle(self, exchange: Exchange) -> Job | None:
        """Begin a request of the server."""
        exchange.fail(METHOD_NOT_FOUND, f"Method not found: {exchange.request.method}")
        return None

    def expect_acknowledgement(self, id_: Id) -> Callable[[], Awaitable[Mapping[str, Any]]]:
        """Return what waits for the acknowledgement of a listen request."""
        send, receive = trio.open_memory_channel[Mapping[str, Any]](1)
        self._unacknowledged[id_] = send
        return receive.receive

    def _acknowledge(self, params: Mapping[str, Any]) -> None:
        id_ = params.get("_meta", {}).get(META_SUBSCRIPTION_ID)
        channel = self._unacknowledged.pop(id_, None)
        if channel is not None:
            channel.send_nowait(params.get("notifications", {}))

    def notice(self, notification: Notification) -> None:
        """Queue a notification for the handler."""
        if notification.method == ACKNOWLEDGED:
            self._acknowledge(notification.params or {})
            return
        try:
            self._send_notice.send_nowait(notification)
        except trio.WouldBlock:
            logger.warning("dropped %s: the handler is too slow", notification.method)

    def ready(self) -> None:
        """Only servers are told that a handshake is complete."""

    def cancelled(self, exchange: Exchange) -> None:
        """A request of the server was cancelled; its task ends by itself."""

    def expired(self, exchange: Exchange) -> None:
        """Requests of the server have no deadline of ours."""

    def closing(self) -> None:
        """Nothing is kept open for the server."""
