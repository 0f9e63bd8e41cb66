"""A backend that fails when a test says so, and servers that are nodes of each other."""

from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import trio

from noizu_mcp.backends import BackendUnavailable, Memory

from ..transports.http.wire import serving

#: Seconds after which every node knows the others, and what it missed.
SOON = 5


class Faulty(Memory):
    """A backend in memory that can be taken down."""

    down = False

    @contextmanager
    def observed(self, operation):
        with super().observed(operation):
            if self.down:
                raise BackendUnavailable("it was taken down")
            yield


@asynccontextmanager
async def nodes(make, count=2, backend=None, **options):
    """Serve servers as nodes of each other; yields one wire for each.

    Args:
        make: Makes the server of a node.
        count: The number of nodes.
        backend: What they share.
        options: As for `serving`.
    """
    backend = backend or Faulty()
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(serving(make(), backend=backend, **options))
            for _ in range(count)
        ]


async def known():
    """Wait until all nodes know each other."""
    await trio.sleep(SOON)
