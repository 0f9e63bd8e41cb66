"""The end of subscriptions that no request ends: a cancelled listen request, a lost connection."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import trio

from ..components import Context
from ..engine import crashes_logged, logger
from ._authored import authored

if TYPE_CHECKING:
    from ._server import Server

#: Seconds that `unsubscribe` gets, whoever cancels meanwhile; to stop a watcher takes far less.
FAREWELL: Final = 2.0


async def say_farewell(server: "Server", uris: Iterable[str], context: Context) -> None:
    """Call `unsubscribe` once for each resource, all at the same time, so that each is begun."""

    async def leave(uri: str) -> None:
        text, log = "unsubscribe of %r failed for %s", server.crash_log
        with crashes_logged(text, server, uri, log=log):
            await authored(server.unsubscribe(uri, context))

    with trio.CancelScope(shield=True, deadline=trio.current_time() + FAREWELL) as scope:
        async with trio.open_nursery() as nursery:
            for uri in uris:
                nursery.start_soon(leave, uri)
    if scope.cancelled_caught:
        logger.warning(
            "unsubscribe of %r took longer than %s s and was cancelled", server, FAREWELL
        )
