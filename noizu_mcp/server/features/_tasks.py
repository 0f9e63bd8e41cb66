"""`tasks/get`, `tasks/update`, `tasks/cancel` (the extension `io.modelcontextprotocol/tasks`)."""

from collections.abc import Mapping

from ..._errors import McpError
from ...jsonrpc import INVALID_PARAMS
from .._request_context import RequestContext
from ..tasks._running_task import RunningTask
from ._task_call import owner_of, require_tasks


def get_task(ctx: RequestContext) -> None:
    """Answer `tasks/get`: the task as it is, with what it asks or what came of it."""
    task = _find(ctx)
    if task is not None:
        ctx.complete(task.to_wire())
        ctx.running.tasks.note_told(task)


def update_task(ctx: RequestContext) -> None:
    """Answer `tasks/update`: take answers to what the task asks, some or all."""
    task = _find(ctx)
    if task is None:
        return
    answers = (ctx.request.params or {}).get("inputResponses")
    if not isinstance(answers, Mapping):
        raise McpError(INVALID_PARAMS, "tasks/update requires an inputResponses object")
    task.answer(answers)
    ctx.complete({})


def cancel_task(ctx: RequestContext) -> None:
    """Answer `tasks/cancel`; the task stops soon, unless it has ended."""
    task = _find(ctx)
    if task is not None:
        task.cancel()
        ctx.complete({})


def _find(ctx: RequestContext) -> RunningTask | None:
    """Find the task of a request; None where there are no tasks at all, and that is said.

    Raises:
        McpError: The client does not say that it knows tasks (-32021), or has none such (-32602).
        InsufficientScope: The caller does not hold what the call needed.
    """
    if not ctx.running.server.registry.has_tasks and not len(ctx.running.tasks):
        ctx.refuse_method()
        return None
    require_tasks(ctx.envelope)
    id_ = (ctx.request.params or {}).get("taskId")
    task = ctx.running.tasks.find(id_, owner_of(ctx.envelope))
    task.admit(ctx.envelope.origin.principal)
    return task
