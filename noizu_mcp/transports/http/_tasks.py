"""Tasks that end together, in a nursery that goes on without them."""

from collections.abc import Awaitable, Callable

import trio

from ...engine import crashes_logged

Work = Callable[[], Awaitable[object]]
Spawn = Callable[[Work], None]


class TaskSet:
    """The tasks of one session or one request.

    A nursery of its own would cost each idle session a task.

    Args:
        nursery: Where the tasks run.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._scopes: set[trio.CancelScope] = set()
        self._closed = False

    def spawn(self, work: Work) -> None:
        """Run something until it ends or `close` is called; what it raises is logged."""
        if not self._closed:
            scope = trio.CancelScope()
            self._scopes.add(scope)
            self._nursery.start_soon(self._run, work, scope)

    def close(self) -> None:
        """Cancel what runs, and run nothing more."""
        self._closed = True
        for scope in self._scopes:
            scope.cancel()

    async def _run(self, work: Work, scope: trio.CancelScope) -> None:
        with crashes_logged("a task of an HTTP session failed"):
            try:
                with scope:
                    await work()
            finally:
                self._scopes.discard(scope)
