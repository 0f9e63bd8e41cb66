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
from typing import Any


@types.coroutine
def run_eager(
    work: Coroutine[Any, Any, None], on_block: Callable[[], None]
) -> Generator[Any, Any, None]:
    """Run a coroutine in the calling task, and report its first wait.

    Args:
        work: The handler; it gets a copy of the context variables, as a task of its own would.
        on_block: Called once, before the first wait; must not wait itself.
    """
    step = contextvars.copy_context().run
    resume: Callable[[Any], Any]
    try:
        trap = step(work.send, None)
    except StopIteration:
        return
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
        except StopIteration:
            return
