"""The live list of the tools of several servers.

Theory of operation. The tools of each server are read by a separate task when they may have
changed: a server that does not answer, or refuses, does not delay others. The list itself is made
from the last results, and asks no server.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import trio

from .._errors import PEER_FAILURES
from ._kept_connection import KeptConnection
from ._list_reader import TOOLS
from ._views import ListRefresher


class ToolReaders:
    """Reads the tools of several servers while a live list is open.

    Args:
        connections: The connections to the servers.
        patience: Seconds that `ask` waits for a server.
    """

    def __init__(self, connections: Sequence[KeptConnection], patience: float) -> None:
        self._patience = patience
        self._tell: Callable[[], object] = lambda: None
        self._readers = [
            (each, ListRefresher(f"{TOOLS.method} of {each.name}", partial(self._read, each)))
            for each in connections
        ]

    @asynccontextmanager
    async def watch(self, tell: Callable[[], object]) -> AsyncIterator[None]:
        """Call a function whenever the tools of a server may have changed; see `LiveList`."""
        self._tell = tell
        for connection, reader in self._readers:
            connection.watchers += [reader.note, tell]
        try:
            async with trio.open_nursery() as nursery:
                for _, reader in self._readers:
                    nursery.start_soon(reader.run)
                yield
                nursery.cancel_scope.cancel()
        finally:
            for connection, reader in self._readers:
                connection.watchers.remove(reader.note)
                connection.watchers.remove(tell)

    async def ask(self) -> None:
        """Read the tools of all connected servers concurrently."""
        async with trio.open_nursery() as nursery:
            for _, reader in self._readers:
                nursery.start_soon(self._ask, reader)

    async def _ask(self, reader: ListRefresher) -> None:
        with trio.move_on_after(self._patience), suppress(*PEER_FAILURES):
            await reader.refresh()
            return
        # The task of the reader tries again without this timeout, and logs the failure.
        reader.note()

    async def _read(self, connection: KeptConnection) -> None:
        client = connection.client
        if client is None:
            return
        try:
            await connection.read_tools(client, anew=True)
        except PEER_FAILURES:
            # The end of the connection is another change.
            if connection.client is client:
                raise
        self._tell()
