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

from collections.abc import Mapping, Sequence
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
    is_open, failures = False, 0

    def acknowledged(agreed: Mapping[str, object]) -> None:
        nonlocal is_open
        if is_open:
            session.report_changes(kinds, uris)
        else:
            is_open = True
            task_status.started(agreed)

    while True:
        began, why = trio.current_time(), "it ended"
        request = session.peer.request("subscriptions/listen", {"notifications": wanted})
        try:
            await session.listen(request, acknowledged)
        except PEER_FAILURES as error:
            if not is_open:
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
