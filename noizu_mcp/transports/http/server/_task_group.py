"""Tasks that end together, in a nursery that goes on without them."""

from collections.abc import Awaitable, Callable

import trio

from ....engine import crashes_logged

Work = Callable[[], Awaitable[object]]


class TaskGroup:
    """The tasks of one session or one request.

    A nursery of its own would cost each idle session a task.

    Args:
        nursery: Where the tasks run.
    """

    __slots__ = ("_closed", "_nursery", "_scopes")

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._scopes: dict[trio.CancelScope, None] = {}  # an empty set is three times as large
        self._closed = False

    def __len__(self) -> int:
        return len(self._scopes)

    def sibling(self) -> "TaskGroup":
        """Make another group in this nursery."""
        return TaskGroup(self._nursery)

    def spawn(self, work: Work) -> trio.CancelScope:
        """Run a coroutine function until it ends or `close` is called; a failure is logged.

        Returns:
            The scope that cancels this task alone. Once the group is closed, nothing is run.
        """
        scope = trio.CancelScope()
        if not self._closed:
            self._scopes[scope] = None
            self._nursery.start_soon(self._run, work, scope)
        return scope

    def close(self) -> None:
        """Cancel the tasks, and start no others."""
        # Without waiting: each task removes itself, and its nursery waits for the last one.
        self._closed = True
        for scope in self._scopes:
            scope.cancel()

    async def _run(self, work: Work, scope: trio.CancelScope) -> None:
        try:
            # The nursery is that of the application: a failure must not end what others do in it.
            with crashes_logged("a task of an HTTP connection failed"), scope:
                await work()
        finally:
            del self._scopes[scope]
