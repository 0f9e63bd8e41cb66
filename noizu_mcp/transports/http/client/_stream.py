"""`HttpStream`: Streamable HTTP as a message stream.

Theory of operation. A message stream is ordered, HTTP requests are not. Each message is sent in its
own POST, and order is kept where it matters:

- *requests* start at once and run concurrently, each in a task;
- *other messages* (notifications, answers) are awaited: each waits until all earlier POSTs are
  written, and later messages wait until the server has accepted it. So a cancellation never
  overtakes its request, and no request overtakes the end of the handshake.

`send_nowait` starts requests until it reaches another message; `send`, which runs in the only
writing task, delivers those. Answers of all POSTs, and messages of the GET stream, are put into the
inbox, from which `receive` takes them.

On 2026-07-28 a cancellation is not sent: the server sees that the POST was closed. Up to 2025-11-25
it is sent, and the POST gets some time to end.

A handshake begins a session: its id is sent with every later request, the end of the handshake
opens the GET stream, and `aclose` ends the session with a DELETE. A second handshake on the same
stream begins another session and closes the GET stream of the first.

Why it cannot deadlock: awaited messages are bounded by `TAKE_TIMEOUT`, the head of the GET stream
by `STAND_TIMEOUT`, the end by `END_TIMEOUT`; bodies are written within the write timeout of the
backend. Why memory is bounded: requests in flight are limited elsewhere, the inbox is limited in
bytes, and the queue holds only messages after one awaited message (see `engine.Outbox`).

Sources: 2025-11-25 `basic/transports`; 2026-07-28 `basic/transports/streamable-http`.
"""

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

import trio

from ...._errors import AuthError
from ...._limits import DEFAULTS, Limits
from ....engine import MessageStream, Outgoing, Unanswered, logger
from ....jsonrpc import Id, Notification, Received, Request
from ....protocol import mirroring_headers
from ..._http_target import Http
from ..._inbox import Inbox
from ._backend import Backend, NetworkFailure
from ._client_state import VERSION, ClientState
from ._get_stream import GetStream
from ._post import LINGER, Post

if TYPE_CHECKING:
    from ....auth.client import RequestAuth

#: Seconds for the server to accept a notification or an answer. Later messages wait meanwhile.
TAKE_TIMEOUT: Final = 10.0
#: Seconds to wait for the head of the GET stream. Some servers send it with the first event.
STAND_TIMEOUT: Final = 1.0
#: Seconds for the DELETE that ends the session, and for closing connections.
END_TIMEOUT: Final = 1.0
_CANCELLED: Final = "notifications/cancelled"
_INITIALIZED: Final = "notifications/initialized"


class HttpStream(MessageStream):
    """Carries the messages of one client over HTTP, while `run` runs.

    Args:
        target: The server.
        limits: The limits of one message of the server.
        auth: The credentials of the client, if it has any.

    Attributes:
        mirrored: The arguments mirrored by `Mcp-Param-*` headers, by tool; never None here.

    Raises:
        TransportError: The HTTP library is not installed.
    """

    mirrored: dict[str, Mapping[str, tuple[str, ...]]]

    def __init__(
        self, target: Http, limits: Limits = DEFAULTS, auth: "RequestAuth | None" = None
    ) -> None:
        self.mirrored = {}
        self.address = target.shown
        self._inbox: Inbox[Received | Unanswered] = Inbox()
        self._state = ClientState(target.shown, Backend(target, auth), self._inbox, limits)
        self._queue: deque[bytes] = deque()
        self._posts: dict[Id, Post] = {}
        self._unwritten: set[Post] = set()
        self._handshake: Post | None = None
        self._get_stream: GetStream | None = None
        self._nursery: trio.Nursery | None = None
        self._closing = trio.Event()
        self._closed = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the connection until `aclose`; then end the session.

        Args:
            task_status: Started once messages can be sent.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await self._closing.wait()
                self._nursery.cancel_scope.cancel()
        finally:
            # First, so that a late message raises instead of waiting for a closed nursery.
            self._closing.set()
            self._inbox.close()
            with trio.CancelScope(shield=True):
                await self._end_session()
            self._closed.set()

    @property
    def credentials(self) -> Hashable:
        """A value that identifies the credentials of the last request; see `Backend`."""
        return self._state.backend.credentials

    async def receive(self) -> Sequence[Received | Unanswered]:
        """Wait for messages; see `MessageStream`."""
        return await self._inbox.take_all()

    def send_nowait(self, messages: Sequence[bytes]) -> bool:
        """Start requests; the first other message, and all after it, are left to `send`."""
        self._enqueue(messages)
        while self._queue and self._start(self._queue[0]):
            self._queue.popleft()
        return not self._queue

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages, in order; see `MessageStream`."""
        await trio.lowlevel.checkpoint()
        self._enqueue(messages)
        while self._queue:
            data = self._queue.popleft()
            if not self._start(data):
                await self._deliver_in_order(data)

    async def wait_session_end(self) -> None:
        """Wait until the GET stream finds that the session has ended; see `MessageStream`."""
        await self._state.session_ended.wait()
        self._state.session_ended = trio.Event()  # for the end of the next session

    def observe_gaps(self, tell: Callable[[], object]) -> None:
        """Call a function when the GET stream may have lost messages; see `MessageStream`."""
        self._state.tell_gap = tell

    async def aclose(self) -> None:
        """End the session within `END_TIMEOUT`; see `MessageStream`."""
        self._closing.set()
        if self._nursery is not None:
            await self._closed.wait()
        else:
            await self._state.backend.aclose()

    def _enqueue(self, messages: Sequence[bytes]) -> None:
        if self._closing.is_set() or self._nursery is None:
            raise trio.ClosedResourceError
        self._queue.extend(messages)

    def _start(self, data: bytes) -> bool:
        """Start a request in a task; False for a message that must be awaited."""
        if not isinstance(data, Outgoing):
            return False  # an answer
        message = data.message
        if isinstance(message, Notification):
            return message.method == _CANCELLED and self._cancel_stateless(message)
        post = self._create_post(data)
        if not post.ids:
            return False
        if isinstance(message, Request) and message.method == "initialize":
            if self._handshake is not None:
                # Its answer would begin a session that is never used.
                self._handshake.give_up()
            self._handshake = post
        # Stored before its task runs: a notification right after it must find it.
        self._unwritten.add(post)
        for id_ in post.ids:
            self._posts[id_] = post
        cast(trio.Nursery, self._nursery).start_soon(self._run, post)  # `_enqueue` has checked it
        return True

    async def _run(self, post: Post) -> None:
        try:
            await post.run()
        finally:
            self._unwritten.discard(post)
            for id_ in post.ids:
                # Another request may use the id by now; its answer must still find it.
                if self._posts.get(id_) is post:
                    del self._posts[id_]

    def _cancel_stateless(self, message: Notification) -> bool:
        """Close the POST that a cancellation names, if that is the cancellation itself.

        Returns:
            False if the cancellation must be sent (up to 2025-11-25).
        """
        post = self._cancelled_post(message)
        if post is None or post.resumable:
            # Without a session the request is answered already: nothing needs to be sent.
            return self._state.version is None
        post.give_up()
        return True

    def _cancelled_post(self, message: Notification) -> Post | None:
        """Find the POST that a cancellation names; None for any other notification."""
        if message.method != _CANCELLED:
            return None
        id_ = (message.params or {}).get("requestId")
        return self._posts.get(id_) if isinstance(id_, str | int) else None

    async def _deliver_in_order(self, data: bytes) -> None:
        """Send a message after all before it, and wait until the server has accepted it."""
        message = data.message if isinstance(data, Outgoing) else None
        cancelled = self._cancelled_post(message) if isinstance(message, Notification) else None
        if cancelled is not None and cancelled.is_unsent:
            # It may wait for a person to log in: the server has nothing to cancel.
            cancelled.give_up()
            return
        # Written is enough: waiting for answers would let a slow call block a cancellation.
        for post in list(self._unwritten):
            await post.written.wait()
            self._unwritten.discard(post)
        # Its answer may still come, and is ignored; the stream must end soon after this.
        if cancelled is not None:
            cancelled.give_up(TAKE_TIMEOUT + LINGER)
        with trio.move_on_after(TAKE_TIMEOUT) as patience:
            await self._create_post(data).run()
        if patience.cancelled_caught:
            logger.warning("%s did not take a message in time", self._state.shown)
        if cancelled is not None:
            cancelled.give_up(LINGER)
        elif isinstance(message, Notification) and message.method == _INITIALIZED:
            await self._open_get_stream()

    async def _open_get_stream(self) -> None:
        """Open the GET stream of the new session, and leave the stream of the previous one.

        Later messages wait for the head of its answer: if a call made the server send a request
        before the stream is open, the call would hang.
        """
        if self._get_stream is not None:
            self._get_stream.leave()
        self._get_stream = GetStream(self._state)
        cast(trio.Nursery, self._nursery).start_soon(self._get_stream.run)
        with trio.move_on_after(STAND_TIMEOUT):
            await self._get_stream.answered.wait()

    def _create_post(self, data: bytes) -> Post:
        """Make the POST of a message, with the headers of its revision."""
        state = self._state
        if not isinstance(data, Outgoing):
            # An answer, which only servers with a session request.
            return Post(state, data, None, state.session_headers(), resumable=False)
        message, revision = data.message, data.revision
        if isinstance(message, Request) and revision.stateless:
            headers = mirroring_headers(message, self.mirrored)
        elif isinstance(message, Request) and message.method == "initialize":
            headers = {}  # it begins a session, whatever there was before
        elif isinstance(message, Notification) and revision.stateless:
            headers = {VERSION: revision.name, "Mcp-Method": message.method}
        else:
            if isinstance(message, Notification) and message.method == _INITIALIZED:
                state.version = revision.name  # every later request names it
            headers = state.session_headers()
        return Post(state, data, message, headers, resumable=not revision.stateless)

    async def _end_session(self) -> None:
        """Tell the server that the session is over (2025-11-25 `basic/transports`)."""
        backend = self._state.backend
        if self._state.session is not None:
            try:
                with trio.move_on_after(END_TIMEOUT), suppress(NetworkFailure):
                    async with backend.send("DELETE", self._state.session_headers()):
                        pass  # any status is fine, including 405: servers need not support it
            except AuthError as error:
                logger.warning("the session at %s was not ended: %s", self._state.shown, error)
            except Exception:  # a headers function failed; the backend must still be closed
                logger.exception("the session at %s was not ended", self._state.shown)
        with trio.move_on_after(END_TIMEOUT):
            await backend.aclose()
