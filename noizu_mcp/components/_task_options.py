"""What the options `task` and `starts_task` want of a handler."""

from collections.abc import Iterator, Mapping
from typing import Any

from ._handler import Handler


def task_problems(handler: Handler, options: Mapping[str, Any]) -> Iterator[str]:
    """Say what keeps a tool from running as a task in the way that its options say.

    Args:
        handler: What answers its calls.
        options: Its options, those of its kit too.

    Yields:
        The text of each problem.
    """
    starts = options.get("starts_task", False)
    if options.get("task") is None:
        if starts:
            yield "starts_task is for a tool that runs as a task; write task='optional', too"
    elif handler.mode == "inline":
        yield "an inline handler must not wait, and a task takes its time; leave out one of the two"
    elif starts and (handler.mode != "async" or not handler.takes_context):
        yield "starts_task wants an async handler that takes ctx, and awaits ctx.start_task()"
