"""`tasks/get`, `tasks/update`, `tasks/cancel` (the extension `io.modelcontextprotocol/tasks`)."""

from collections.abc import Mapping

from ..._errors import McpError
from ...engine import Exchange
from ...jsonrpc import INVALID_PARAMS
from .._connection import Connection
from .._task import RunningTask
from .._task_calls import owner_of, require_tasks


def get_task(connection: Connection, exchange: Exchange) -> None:
    """Answer `tasks/get`: the task as it is, with what it asks or what came of it."""
    task = _find(connection, exchange)
    if task is not None:
        connection.reply(exchange, task.to_wire())
        connection.task_store.note_told(task)


def update_task(connection: Connection, exchange: Exchange) -> None:
    """Answer `tasks/update`: take answers to what the task asks, some or all."""
    task = _find(connection, exchange)
    if task is None:
        return
    answers = (exchange.request.params or {}).get("inputResponses")
    if not isinstance(answers, Mapping):
        raise McpError(INVALID_PARAMS, "tasks/update requires an inputResponses object")
    task.answer(answers)
    connection.reply(exchange, {})


def cancel_task(connection: Connection, exchange: Exchange) -> None:
    """Answer `tasks/cancel`; the task stops soon, unless it has ended."""
    task = _find(connection, exchange)
    if task is not None:
        task.cancel()
        connection.reply(exchange, {})


def _find(connection: Connection, exchange: Exchange) -> RunningTask | None:
    """Find the task of a request; None where there are no tasks at all, and that is said.

    Raises:
        McpError: The client does not say that it knows tasks (-32021), or has none such (-32602).
        InsufficientScope: The caller does not hold what the call needed.
    """
    if not connection.server.registry.has_tasks and not len(connection.task_store):
        connection.refuse(exchange)
        return None
    require_tasks(exchange.envelope)
    id_ = (exchange.request.params or {}).get("taskId")
    task = connection.task_store.find(id_, owner_of(exchange.envelope))
    task.admit(exchange.envelope.origin.principal)
    return task
