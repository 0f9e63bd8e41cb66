"""Eager tasks: a handler runs in the task that read its request, for as long as it does not wait.

Starting a task for every request costs more than most handlers do (a task of trio takes about
20 µs, an echo 5 µs). So the task that reads runs the handler itself. If the handler never waits,
no task was needed. If it waits, `on_block` starts another reader, and the task is the handler's own
from then on: cancel scopes and nurseries that the handler opens stay in one task throughout, which
trio demands.
"""

import contextvars
import types
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

import trio

Result = TypeVar("Result")


class TaskScope:
    """A cancel scope that is entered at once, and left by whichever block is given it.

    A scope costs as much as an echo (9 µs). With this one a task can read something under a
    timeout, and then run a handler under another, for the price of one scope. It must be left in
    the task that made it, and after all scopes that were entered later.

    Attributes:
        scope: The scope.
        left: True once a block has left it.
    """

    __slots__ = ("left", "scope")

    def __init__(self) -> None:
        self.left = False
        self.scope = trio.CancelScope()
        self.scope.__enter__()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self.left = True
        return self.scope.__exit__(kind, error, traceback)


@types.coroutine
def run_eager(
    work: Coroutine[Any, Any, Result], on_block: Callable[[], None]
) -> Generator[Any, Any, Result]:
    """Run a coroutine in the calling task, and report its first wait.

    Args:
        work: The handler; it gets a copy of the context variables, as a task of its own would.
        on_block: Called once, before the first wait; must not wait itself.

    Returns:
        The return value of the coroutine.
    """
    step = contextvars.copy_context().run
    resume: Callable[[Any], Any]
    result: Result
    try:
        trap = step(work.send, None)
    except StopIteration as end:
        result = end.value
        return result
    on_block()
    while True:
        try:
            value = yield trap
        except BaseException as error:  # noqa: BLE001 - thrown into `work`, Cancelled too
            resume, value = work.throw, error
        else:
            resume = work.send
        try:
            trap = step(resume, value)
        except StopIteration as end:
            result = end.value
            return result
