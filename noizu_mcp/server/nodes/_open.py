"""A node from its begin to its end, and the backend that a server is given."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from ...backends import Backend, BackendUnavailable
from ...engine import crashes_logged
from ..registry._server_options import KEYS_VARIABLE, read_secrets
from ._node import Node

if TYPE_CHECKING:
    from .._server import Server

#: Seconds in which a node leaves its backend.
LEAVE_TIME: Final = 1.0
_NO_KEYS: Final = (
    "the nodes of a server share its keys: set state_keys of the server class, or the environment"
    f" variable {KEYS_VARIABLE}"
)


@asynccontextmanager
async def open_node(server: "Server", backend: Backend) -> AsyncIterator[Node]:
    """Serve as one node of a server while the block runs.

    Args:
        server: The server.
        backend: What its nodes share.

    Raises:
        BackendUnavailable: There are no keys, or the backend cannot be used; one line says why.
    """
    secrets = read_secrets(server.options.state_keys)
    # One process has one random key.
    if not secrets and not backend.in_process:
        raise BackendUnavailable(_NO_KEYS)
    async with backend.open(server.options.name) as opened:
        try:
            async with trio.open_nursery() as nursery:

                def spawn(work: Callable[[], Awaitable[object]]) -> None:
                    nursery.start_soon(_run, work)

                node = Node(server.options.name, opened, secrets, spawn)
                opened.observe = node.use.observe
                server.telemetry.backends.add(node.use)
                await node.begin()
                yield node
                with trio.move_on_after(LEAVE_TIME, shield=True):
                    await node.flush()
                nursery.cancel_scope.cancel()
        finally:
            server.telemetry.backends.discard(node.use)
            # After its tasks: a renewal would enter it again.
            with trio.move_on_after(LEAVE_TIME, shield=True):
                await node.end()


async def _run(work: Callable[[], Awaitable[object]]) -> None:
    # A backend of an author may raise anything. It must not end the server.
    with crashes_logged("a task of the backend failed"):
        await work()
