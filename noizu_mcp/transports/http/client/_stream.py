"""The client's end of Streamable HTTP: many requests that look like one stream of messages.

Sources: 2025-11-25 `basic/transports`; 2026-07-28 `basic/transports/streamable-http`.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, cast

import trio

from ...._limits import DEFAULTS, Limits
from ....engine import MessageStream, Unanswered, logger
from ....jsonrpc import Decoded, Id, Notification, Request, decode
from ....protocol import STATELESS, is_stateless, mirroring_headers
from ..._http_target import Http
from ._backend import Backend, NetworkFailure
from ._client_state import VERSION, Shared
from ._get_stream import Standing
from ._post import LINGER, Post, ids_of
from ._received import Inbox

#: Seconds that a server gets to take a notification or an answer; what is behind it waits.
TAKE_TIMEOUT: Final = 10.0
#: Seconds to wait for the head of the standing stream; some servers send it with the first event.
STAND_TIMEOUT: Final = 1.0
#: Seconds to say at the end that the session is over.
END_TIMEOUT: Final = 1.0
#: Our own messages are read whatever their size, to know what they are.
_OWN: Final = Limits(message_size=2**40, message_values=2**40, message_depth=10_000, batch=2**31)
_CANCELLED: Final = "notifications/cancelled"
_INITIALIZED: Final = "notifications/initialized"


class _Outgoing(NamedTuple):
    data: bytes
    message: Decoded


class HttpStream(MessageStream):
    """Carries the messages of one client; works while `run` does.

    Requests travel side by side. Any other message waits until what was sent before it is written,
    and what comes behind it waits until the server has taken it: so a cancellation never overtakes
    its request, and no request the end of the handshake.

    Args:
        target: The server.
        limits: What one message of it may be.

    Attributes:
        mirrored: As every stream has it; here it is never None.

    Raises:
        TransportError: The HTTP library is not installed.
    """

    mirrored: dict[str, Mapping[str, tuple[str, ...]]]

    def __init__(self, target: Http, limits: Limits = DEFAULTS) -> None:
        self.mirrored = {}
        self._inbox = Inbox()
        self._backend = Backend(target)
        self._shared = Shared(target.shown, self._backend, self._inbox, limits)
        self._queue: deque[_Outgoing] = deque()
        self._posts: dict[Id, Post] = {}
        self._unwritten: set[Post] = set()
        self._handshake: Post | None = None
        self._standing: Standing | None = None
        self._nursery: trio.Nursery | None = None
        self._closing = trio.Event()
        self._closed = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the connection until `aclose`; then end the session.

        Args:
            task_status: Started once messages can be sent.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await self._closing.wait()
                self._nursery.cancel_scope.cancel()
        finally:
            self._closing.set()
            self._inbox.close()
            with trio.CancelScope(shield=True):
                await self._end()
            self._closed.set()

    async def receive(self) -> Sequence[bytes | Unanswered]:
        """Wait for messages; see `MessageStream`."""
        return await self._inbox.take()

    def send_nowait(self, messages: Sequence[bytes]) -> bool:
        """Send requests; what is none is left to `send`, and what comes behind it."""
        self._enter(messages)
        while self._queue and self._starts(self._queue[0]):
            self._queue.popleft()
        return not self._queue

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages, in order; see `MessageStream`."""
        await trio.lowlevel.checkpoint()
        self._enter(messages)
        while self._queue:
            outgoing = self._queue.popleft()
            if not self._starts(outgoing):
                await self._deliver(outgoing)

    async def wait_session_end(self) -> None:
        """Wait for the standing stream to find the session gone; see `MessageStream`."""
        await self._shared.ended.wait()
        self._shared.ended = trio.Event()

    async def aclose(self) -> None:
        """End the session, within `END_TIMEOUT`; see `MessageStream`."""
        self._closing.set()
        if self._nursery is not None:
            await self._closed.wait()
        else:
            await self._backend.aclose()

    def _enter(self, messages: Sequence[bytes]) -> None:
        if self._closing.is_set() or self._nursery is None:
            raise trio.ClosedResourceError
        self._queue.extend(_Outgoing(data, decode(data, _OWN)) for data in messages)

    def _starts(self, outgoing: _Outgoing) -> bool:
        """Start what need not be waited for; False if it must."""
        message = outgoing.message
        if ids_of(message):
            self._start(outgoing)
            return True
        return self._gives_up(message)

    def _start(self, outgoing: _Outgoing) -> None:
        post = self._post(outgoing)
        if _is_handshake(outgoing.message):
            if self._handshake is not None:
                self._handshake.give_up()  # answered now, it would begin a session that nobody uses
            self._handshake = post
        self._unwritten.add(post)
        for id_ in post.ids:
            self._posts[id_] = post
        # Messages are taken only while there is one.
        cast(trio.Nursery, self._nursery).start_soon(self._run, post, post.ids)

    async def _run(self, post: Post, ids: frozenset[Id]) -> None:
        try:
            await post.run()
        finally:
            self._unwritten.discard(post)
            for id_ in ids:
                if self._posts.get(id_) is post:
                    del self._posts[id_]

    def _gives_up(self, message: Decoded) -> bool:
        """End a request of 2026-07-28: the end of the HTTP request is all that the server hears."""
        post = self._named(message)
        if post is None or post.resumable:
            # Without a session it was answered meanwhile, and nobody else is to be told.
            return _is_cancellation(message) and self._shared.version is None
        post.give_up()
        return True

    def _named(self, message: Decoded) -> Post | None:
        """Find the request that a cancellation names; None for anything else."""
        if not isinstance(message, Notification) or not _is_cancellation(message):
            return None
        id_ = (message.params or {}).get("requestId")
        return self._posts.get(id_) if isinstance(id_, str | int) else None

    async def _deliver(self, outgoing: _Outgoing) -> None:
        for post in list(self._unwritten):
            await post.written.wait()
            self._unwritten.discard(post)
        message = outgoing.message
        cancelled = self._named(message)
        if cancelled is not None:
            cancelled.give_up(TAKE_TIMEOUT + LINGER)
        with trio.move_on_after(TAKE_TIMEOUT) as patience:
            await self._post(outgoing).run()
        if patience.cancelled_caught:
            logger.warning("%s did not take a message in time", self._shared.shown)
        if cancelled is not None:
            cancelled.give_up(LINGER)
        elif isinstance(message, Notification) and message.method == _INITIALIZED:
            await self._stand()

    async def _stand(self) -> None:
        """Listen in the session that has begun, and no longer in the one before.

        What comes behind waits for the head of the answer: a server that asks at once, in a call,
        would otherwise find nobody who listens.
        """
        if self._standing is not None:
            self._standing.leave()
        self._standing = Standing(self._shared)
        cast(trio.Nursery, self._nursery).start_soon(self._standing.run)
        with trio.move_on_after(STAND_TIMEOUT):
            await self._standing.answered.wait()

    def _post(self, outgoing: _Outgoing) -> Post:
        message = outgoing.message
        stateless = isinstance(message, Request) and is_stateless(message.params)
        if isinstance(message, Request) and stateless:
            headers = mirroring_headers(message, self.mirrored)
        elif _is_handshake(message):
            headers = {}  # it begins a session, whatever there was
        elif isinstance(message, Notification) and self._shared.version is None:
            headers = {VERSION: STATELESS.name, "Mcp-Method": message.method}
        else:
            headers = self._shared.headers()
        return Post(self._shared, outgoing.data, message, headers, resumable=not stateless)

    async def _end(self) -> None:
        """Say that the session is over (2025-11-25 `basic/transports`, "Session Management")."""
        if self._shared.session is not None:
            try:
                with trio.move_on_after(END_TIMEOUT), suppress(NetworkFailure):
                    async with self._backend.send("DELETE", self._shared.headers()):
                        pass  # 405 is fine, and anything else too: we leave
            except Exception:  # noqa: BLE001 - what headers are made of; the end must come
                logger.exception("the session at %s was not ended", self._shared.shown)
        with trio.move_on_after(END_TIMEOUT):
            await self._backend.aclose()


def _is_handshake(message: Decoded) -> bool:
    return isinstance(message, Request) and message.method == "initialize"


def _is_cancellation(message: Decoded) -> bool:
    return isinstance(message, Notification) and message.method == _CANCELLED
