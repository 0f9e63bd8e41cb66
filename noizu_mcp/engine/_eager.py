"""Eager tasks: handlers that run in the task that reads.

A handler runs in the task that read its request, as long as it does not wait. A trio task takes
about 20 µs, an echo 5 µs, and a handler that never waits needs no other task. If it waits,
`on_block` starts another reader, and the task belongs to the handler from then on: its cancel
scopes and nurseries stay in one task, as trio requires.
"""

import contextvars
import math
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any

import trio

from .._util import Returned


class TaskScope:
    """A cancel scope that a task enters on demand, and that is exited by an inner block.

    A scope takes 9 µs, as much as an echo. With this one a task can read under a timeout, and then
    run a handler under another, with one scope; a task that needs no timeout has no cost. It is
    exited in the task that made it, after all scopes that were entered later. Exiting it again does
    nothing, so a block can surround both.

    It cannot be entered while the work waits: trio requires scopes to be nested, and a handler may
    have entered other scopes by then.

    A task that does one work after the other may keep the scope entered between them, unless it was
    cancelled. Nothing may enter a scope around the blocks meanwhile.

    Args:
        on_each_wait: Called before each wait of the work of `run`, as long as it returns something
            true.
        keeps: The initial value of the attribute.

    Attributes:
        scope: The scope; None while it is not entered.
        on_wait: Called once, before the next wait of the work of `run`.
        keeps: True while the end of a block leaves the scope entered.
    """

    __slots__ = ("_is_clean", "_on_each_wait", "_task", "keeps", "on_wait", "scope")

    def __init__(
        self, on_each_wait: Callable[[], object] | None = None, *, keeps: bool = False
    ) -> None:
        self.on_wait: Callable[[], object] | None = None
        self.scope: trio.CancelScope | None = None
        self.keeps = keeps
        self._is_clean = True  # nothing can have changed the scope since a block has left it
        self._on_each_wait = on_each_wait
        self._task: trio.lowlevel.Task | None = None  # while `run` is running

    def enter(self) -> trio.CancelScope:
        """Enter the scope, unless it is entered."""
        if self.scope is None:
            self.scope = trio.CancelScope()
            self.scope.__enter__()
        self._is_clean = False
        return self.scope

    def is_current(self) -> bool:
        """Tell whether `run` is running in the calling task, so that `on_wait` is called."""
        return self._task is trio.lowlevel.current_task()

    def run(self, work: Coroutine[Any, Any, Returned]) -> Awaitable[Returned]:
        """Run work in the calling task; see `on_wait`."""
        self._task = trio.lowlevel.current_task()
        return run_eager(work, self._wait)

    def _wait(self) -> object:
        on_wait, self.on_wait = self.on_wait, None
        if on_wait is not None:
            on_wait()
        return self._on_each_wait is None or self._on_each_wait()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        scope = self.scope
        if scope is None:
            return False
        if self.keeps and error is None:
            if self._is_clean:
                return False
            self._is_clean = True
            if scope.deadline != math.inf:
                scope.deadline = math.inf
            if not scope.cancel_called:
                return False
        self.scope = None
        return scope.__exit__(kind, error, traceback)


def run_eager(
    work: Coroutine[Any, Any, Returned], on_block: Callable[[], object]
) -> Awaitable[Returned]:
    """Run a handler in the calling task, and report its first wait; see `report_waits`.

    It gets a copy of the context variables, like a new task.
    """
    # A copy: later handlers in this task must not see variables of this one.
    return report_waits(work, on_block, contextvars.copy_context().run)


def _step(resume: Callable[[Any], Any], value: object) -> Any:
    return resume(value)


@types.coroutine
def report_waits(
    work: Coroutine[Any, Any, Returned],
    on_block: Callable[[], object],
    step: Callable[..., Any] = _step,
) -> Generator[Any, Any, Returned]:
    """Run a coroutine in the calling task, and report its first wait.

    Args:
        work: The coroutine.
        on_block: Called before the first wait, and before each later one as long as it returns
            something true; must not wait itself.
        step: Calls a function with a value; by default in the context of the task.

    Returns:
        The return value of the coroutine.
    """
    resume: Callable[[Any], Any] = work.send
    value: Any = None
    again: object = True
    while True:
        try:
            trap = step(resume, value)
        except StopIteration as end:
            result: Returned = end.value
            return result
        # Before the trap reaches trio: once the task sleeps, no task would read.
        again = again and on_block()
        try:
            # trio sees the waits of the handler as waits of this task, so scopes and cancellation
            # work as if the task had awaited the handler directly.
            value = yield trap
        # Also `Cancelled`: `work` must get it, and its exception is raised by `step` above.
        except BaseException as error:  # noqa: BLE001 - thrown into `work`, not swallowed
            resume, value = work.throw, error
        else:
            resume = work.send
