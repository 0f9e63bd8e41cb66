"""`tasks/get`, `tasks/update`, `tasks/cancel` (the extension `io.modelcontextprotocol/tasks`)."""

from collections.abc import Mapping

from ..._errors import McpError
from ...jsonrpc import INVALID_PARAMS
from .._request_context import RequestContext
from ..tasks._running_task import RunningTask
from ._task_call import owner_of, require_tasks


def get_task(ctx: RequestContext) -> None:
    """Answer `tasks/get`: the present state, with questions, result or error."""
    task = _find(ctx)
    if task is not None:
        ctx.complete(task.to_wire())
        # After the answer, and here only for an ended task: from now on it may make room for
        # others.
        ctx.running.tasks.note_told(task)


def update_task(ctx: RequestContext) -> None:
    """Answer `tasks/update`: take answers to some or all questions of the task."""
    task = _find(ctx)
    if task is None:
        return
    answers = (ctx.request.params or {}).get("inputResponses")
    if not isinstance(answers, Mapping):
        raise McpError(INVALID_PARAMS, "tasks/update requires an inputResponses object")
    task.answer(answers)
    ctx.complete({})


def cancel_task(ctx: RequestContext) -> None:
    """Answer `tasks/cancel` at once; the cancellation is cooperative (extension)."""
    task = _find(ctx)
    if task is not None:
        task.cancel()
        ctx.complete({})


def _find(ctx: RequestContext) -> RunningTask | None:
    """Find the task of a request; without any tasks, refuse the method and return None.

    Raises:
        McpError: The request does not declare tasks (-32021), or the task is unknown (-32602).
        InsufficientScope: The caller lacks scopes that the call needed.
    """
    # Both: a tool with tasks may be removed while one of its tasks is still kept.
    if not ctx.running.server.registry.has_tasks and not len(ctx.running.tasks):
        ctx.refuse_method()
        return None
    require_tasks(ctx.envelope)
    id_ = (ctx.request.params or {}).get("taskId")
    task = ctx.running.tasks.find(id_, owner_of(ctx.envelope))
    task.admit(ctx.envelope.origin.principal)
    return task
