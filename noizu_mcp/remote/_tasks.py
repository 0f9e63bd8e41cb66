"""Calls that go on as tasks at the server of a `Remote` (`io.modelcontextprotocol/tasks`).

Theory of operation. On 2026-07-28 the server decides for each call whether it begins a task, and
only for a client that declares the extension. A call therefore declares it if its caller does. When
the server begins a task, this server begins one of its own, whose work is to follow the first one:
so this server has the owners, scopes, limits and notices, and ids need no mapping. The record of a
handler holds the id from the request to the task.

Without room for a task of its own the call does not declare the extension.
A caller that cannot declare the extension, since its revision has none, must not lose a tool that
runs as a task only: its request follows the task, and stays open.

`FollowedTask.wait` asks for the state at the pace that the server wants. Each question that is new
gets a task of its own, in which the caller is asked; it ends with its answer, or when the server
stops listing it. The keys of the server are never used twice (extension, `tasks/update`),
so a key is asked once. While the server is not connected the follower waits, since the task may go
on; a task that the server has forgotten is an error. However `wait` is left, the task is
cancelled unless it has ended.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

import trio

from .._errors import PEER_FAILURES, McpError, ProtocolError
from .._value import JSONObject
from ..engine import single_failure
from ..jsonrpc import INTERNAL_ERROR, MISSING_CLIENT_CAPABILITY
from ..server import ServerContext
from ..types import TASKS, InputRequest, Task
from ._answers import read_question
from ._shared_connection import Unavailable
from ._upstream import Upstream

#: Seconds between two `tasks/get`, where the server names none; and the bounds for what it names.
PACE: Final = 1.0
LEAST_PACE: Final = 0.05
MOST_PACE: Final = 30.0
#: Seconds after which a request is sent again while the server is not connected.
RETRY: Final = 1.0
#: Seconds that the cancellation of a task may take.
CANCEL_TIMEOUT: Final = 2.0

#: Sends the call, with the ids of the extensions that it declares.
SendCall = Callable[[tuple[str, ...]], Awaitable[JSONObject]]


async def call_with_tasks(send: SendCall, upstream: Upstream, ctx: ServerContext) -> JSONObject:
    """Call a tool that may go on as a task, and return its result.

    Args:
        send: Sends the call.
        upstream: The server.
        ctx: The call of the caller.

    Raises:
        McpError: The server answered with an error, in the call or in the task.
        ProtocolError: Its task is malformed.
        TypeError: A question of its task is malformed.
        Unavailable: It cannot be reached.
    """
    takes_task = ctx.takes_task()
    begun = await (_begin(send, ctx) if takes_task else _send_anyhow(send, ctx))
    if begun.get("resultType") != "task":
        return begun
    if takes_task:
        # The handler leaves the request here, and comes here again in the task of the caller.
        await ctx.start_task()
    return await FollowedTask(upstream, Task.from_wire(begun).task_id, ctx).wait()


async def _begin(send: SendCall, ctx: ServerContext) -> JSONObject:
    """Call the tool; the task of the caller finds the task that this began in the record."""
    other: JSONObject | None = None

    async def begin_task() -> JSONObject:
        nonlocal other
        result = await send((TASKS,))
        if result.get("resultType") != "task":
            other = result
            # Not recorded: when the handler runs again, with the answers to the questions in it,
            # the tool must be called again.
            raise _NoTask
        return result

    try:
        begun: JSONObject = await ctx.step(begin_task)
    except _NoTask:
        return other or {}
    return begun


class _NoTask(Exception):
    """A call did not begin a task."""


async def _send_anyhow(send: SendCall, ctx: ServerContext) -> JSONObject:
    """Call the tool for a caller that takes no task; follow a task if the tool needs one."""
    try:
        return await send(())
    except McpError as error:
        if not _wants_tasks(error):
            raise
        # A client of 2026-07-28 could declare the extension, and must get this error. A handler
        # that calls the tool of this server could not.
        if ctx.envelope.revision.stateless and not ctx.chain:
            if TASKS in (ctx.client_capabilities.extensions or {}):
                text = "Too many tasks; try again once one of them has ended"
                raise McpError(INTERNAL_ERROR, text) from None
            raise
    return await send((TASKS,))


def _wants_tasks(error: McpError) -> bool:
    """Tell whether an error says that the request must declare tasks."""
    data = error.data if isinstance(error.data, Mapping) else {}
    needed = data.get("requiredCapabilities")
    extensions = needed.get("extensions") if isinstance(needed, Mapping) else None
    return error.code == MISSING_CLIENT_CAPABILITY and TASKS in (extensions or ())


class FollowedTask:
    """A task of the server, for as long as a caller waits for it.

    Args:
        upstream: The server.
        id_: The id of the task.
        ctx: The call of the caller.
    """

    def __init__(self, upstream: Upstream, id_: str, ctx: ServerContext) -> None:
        self._upstream = upstream
        self._id = id_
        self._ctx = ctx
        self._questions: dict[str, trio.CancelScope] = {}  # by key, answered questions too
        self._message: str | None = None
        self._messages = 0

    async def wait(self) -> JSONObject:
        """Wait until the task has ended, and return the result of the call.

        Raises:
            McpError: The task has failed, was cancelled, or is unknown to the server.
            ProtocolError: The task is malformed.
            TypeError: A question in it is malformed.
            Unavailable: The server can never be reached again.
        """
        task: Task | None = None
        try:
            with single_failure():
                async with trio.open_nursery() as nursery:
                    while True:
                        task = Task.from_wire(await self._request("tasks/get"))
                        if task.ended:
                            break
                        self._show(task)
                        self._note_questions(task, nursery)
                        await trio.sleep(_pace_of(task))
                    nursery.cancel_scope.cancel()
        finally:
            if task is None or not task.ended:
                await self._cancel()
        return self._result_of(task)

    def _result_of(self, task: Task) -> JSONObject:
        if task.status == "completed" and task.result is not None:
            return task.result
        name = self._upstream.connection.name
        if task.status == "failed" and task.error is not None:
            code, text = task.error.get("code"), task.error.get("message")
            if isinstance(code, int) and isinstance(text, str):
                raise McpError(code, text, task.error.get("data"))
        if task.status == "cancelled":
            raise McpError(INTERNAL_ERROR, f"{name} has cancelled the task")
        raise ProtocolError(f"a task with the status {task.status!r} has neither result nor error")

    async def _request(self, method: str, **params: object) -> JSONObject:
        """Send a request for the task, again while the server is not connected."""
        while True:
            try:
                return await self._upstream.request(
                    method, {"taskId": self._id, **params}, self._ctx, (TASKS,)
                )
            except Unavailable:
                if self._upstream.connection.status == "failed":
                    raise
                await trio.sleep(RETRY)

    def _show(self, task: Task) -> None:
        """Show a new status message to the caller."""
        if task.status_message is not None and task.status_message != self._message:
            self._message = task.status_message
            self._messages += 1
            self._ctx.report_progress(self._messages, None, task.status_message)

    def _note_questions(self, task: Task, nursery: trio.Nursery) -> None:
        """Ask new questions, and cancel questions that the server has withdrawn."""
        listed = task.input_requests or {}
        for key in self._questions.keys() - listed.keys():
            self._questions[key].cancel()
        for key in listed.keys() - self._questions.keys():
            question = read_question(listed[key])
            self._questions[key] = scope = trio.CancelScope()
            nursery.start_soon(self._ask, key, question, scope)

    async def _ask(self, key: str, question: InputRequest, scope: trio.CancelScope) -> None:
        with scope:
            answer = await self._ctx.relay(question)
            await self._request("tasks/update", inputResponses={key: answer})

    async def _cancel(self) -> None:
        """Ask the server once to stop: the caller has left."""
        with trio.move_on_after(CANCEL_TIMEOUT, shield=True), suppress(Unavailable, *PEER_FAILURES):
            params = {"taskId": self._id}
            await self._upstream.request("tasks/cancel", params, self._ctx, (TASKS,))


def _pace_of(task: Task) -> float:
    """Return the seconds until the next `tasks/get`."""
    if task.poll_interval_ms is None:
        return PACE
    return min(max(task.poll_interval_ms / 1000, LEAST_PACE), MOST_PACE)
