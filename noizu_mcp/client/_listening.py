"""A listen request that stays open (2026-07-28 `basic/patterns/subscriptions`).

Theory of operation. A listen request is *new* until the server acknowledges it, then *open* until
it ends: by a result, by a notification, by an error, or with its stream. If a new one ends, the
task fails. If an open one ends, it is sent again: at once if it lasted `LIVED` seconds, else after
growing pauses (`growing_pause`), so that a server that ends each request is not asked constantly.
Changes in between were lost, so after the next acknowledgement a notification of each kind is
generated, for the handler, the cache and the live lists.

The task ends with its nursery, which also ends the subscription at the server; or when the server
no longer supports the method.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import trio

from .._errors import PEER_FAILURES, ConnectionClosed, McpError
from .._util import growing_pause
from .._value import JSONObject
from ..engine import logger
from ..jsonrpc import METHOD_NOT_FOUND
from ..protocol import CHANGES
from ._session import ClientSession

#: Seconds after which a listen request counts as a success; an earlier end is a failed attempt.
LIVED: Final = 10.0
_NOTHING: Final[Mapping[str, object]] = {}


async def listen(
    session: ClientSession,
    kinds: Sequence[str],
    uris: Sequence[str] = (),
    *,
    task_status: trio.TaskStatus[Mapping[str, object]],
) -> None:
    """Keep a listen request open; see the theory of operation.

    Args:
        session: The connection, of 2026-07-28.
        kinds: The lists to watch for changes; names in `CHANGES`.
        uris: URIs of resources to watch for updates.
        task_status: Started with the kinds of notification that the server agreed to send.

    Raises:
        McpError: The server refused the first request.
        ProtocolError: The server ended the first request without an acknowledgement.
        ConnectionClosed: The connection ended, or the stream of the first request broke.
        TransportError: The server cannot be reached.
    """
    wanted: JSONObject = {CHANGES[kind][1]: True for kind in kinds}
    if uris:
        wanted["resourceSubscriptions"] = list(uris)
    status = _Acknowledged(task_status, partial(session.report_changes, kinds, uris))
    failures = 0
    while True:
        began, why = trio.current_time(), "it ended"
        request = session.peer.request("subscriptions/listen", {"notifications": wanted})
        try:
            await session.listen(request, task_status=status)
        except PEER_FAILURES as error:
            if not status.came:
                raise
            if isinstance(error, McpError) and error.code == METHOD_NOT_FOUND:
                logger.warning("the server no longer reports changes: %s", error)
                return
            why = str(error)
        failures = 0 if trio.current_time() - began > LIVED else failures + 1
        if failures == 1:
            logger.warning("subscriptions/listen is sent again: %s", why)
        with trio.move_on_after(growing_pause(failures)):
            await session.wait_ended()
            raise ConnectionClosed(f"the connection ended, and subscriptions/listen with it: {why}")


class _Acknowledged:
    """The task status of a listen request that may be sent again.

    Args:
        first: Started at the first acknowledgement.
        again: Called at each later one.
    """

    def __init__(
        self, first: trio.TaskStatus[Mapping[str, object]], again: Callable[[], None]
    ) -> None:
        self.came = False
        self._first = first
        self._again = again

    def started(self, value: Mapping[str, object] = _NOTHING) -> None:
        """Handle an acknowledgement."""
        if self.came:
            self._again()
        else:
            self.came = True
            self._first.started(value)
