"""Messages to the nodes that run tasks: cancellations, and answers to questions.

Theory of operation. A node that serves `tasks/cancel` or `tasks/update` for a task of another node
sends a message to the inbox of that node. It names the attempt: a message for an earlier run of the
task has no effect. Answers that are too large for a message are put into a record, which the
receiver deletes.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ..._errors import McpError
from ..._log import throttled_log
from ..._value import JSONObject
from ...backends import BackendUnavailable
from ...jsonrpc import render
from ..nodes._node import Node
from ._running_task import RunningTask
from ._task_records import TaskRecord, TaskRecords, key_of, unreachable

#: Bytes of answers in a message; more of them go through a record.
IN_MESSAGE: Final = 48 * 1024
#: Seconds for which such a record is kept.
ANSWERS_TTL: Final = 60.0
#: Kinds of messages.
_CANCEL: Final = "task-cancel"
_ANSWERS: Final = "task-answers"


class TaskMessages:
    """The messages of one node about tasks, in both directions.

    Args:
        node: The node.
        records: Repeats operations in the background.
        find: Returns a task of this node by the key of its record and the number of its run; None
            if it does not run here.
    """

    def __init__(
        self, node: Node, records: TaskRecords, find: Callable[[str, int], RunningTask | None]
    ) -> None:
        self._node = node
        self._until_done = records.until_done
        self._find = find
        node.receivers[_CANCEL] = self._receive_cancel
        node.receivers[_ANSWERS] = self._receive_answers

    def cancel(self, task: TaskRecord) -> None:
        """Cancel a task of another node.

        Raises:
            McpError: It is between two attempts (-32603).
        """
        if not task.is_over:
            self._tell_owner(task, _CANCEL)

    async def answer(self, task: TaskRecord, answers: Mapping[str, Any]) -> None:
        """Answer questions of a task of another node.

        Raises:
            McpError: The answers cannot be stored now, or the task is between two attempts
                (-32603).
        """
        if task.is_over:
            return
        body: JSONObject | None = dict(answers)
        place = None
        if len(render(body)) > IN_MESSAGE:
            place = f"m:{os.urandom(16).hex()}"
            try:
                await self._node.records.put(place, body, ttl=ANSWERS_TTL)
            except BackendUnavailable:
                raise unreachable() from None
            body = None
        self._tell_owner(task, _ANSWERS, body, place)

    def _tell_owner(self, task: TaskRecord, kind: str, *body: Any) -> None:
        if task.node == self._node.id:
            raise unreachable()
        self._node.tell(kind, key_of(task.id), task.attempt, *body, to=task.node)

    def _receive_cancel(self, _sender: str, key: str, attempt: int) -> None:
        task = self._find(key, attempt)
        if task is not None:
            task.cancel()

    def _receive_answers(
        self, _sender: str, key: str, attempt: int, answers: JSONObject | None, place: str | None
    ) -> None:
        if answers is None:
            self._node.spawn(partial(self._fetch_answers, key, attempt, str(place)))
        else:
            self._answer(key, attempt, answers)

    def _answer(self, key: str, attempt: int, answers: JSONObject) -> None:
        task = self._find(key, attempt)
        if task is not None:
            try:
                task.answer(answers)
            except McpError as error:
                text = "answers to a task were dropped: %s"
                throttled_log.warning(text, text, error)

    async def _fetch_answers(self, key: str, attempt: int, place: str) -> None:
        stored = await self._until_done(partial(self._node.records.get, place))
        if stored is not None:
            self._answer(key, attempt, stored.value)
            await self._until_done(partial(self._node.records.delete, place))
