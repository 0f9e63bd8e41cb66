"""`ToolCall`: one call of a tool, from its name to its answer.

Theory of operation. A tool is called in seven ways: by a request, inline or not; through an
override of `Server.call_tool`; as a task; by a handler (`ctx.call_tool`); through the server that
mounts its server; and by an override that calls the default. All ways use these stages in this
order, and each stage may end the call:

1. `find`: look up the tool by its name, among the tools that are available to the caller.
2. `check_known`: an unknown name is an error, unless an override handles it.
3. `check_scopes`: the caller has the scopes of the tool. Before any stage that reveals the tool.
4. `check_policies`: capability, depth and cycles of nested calls, then the policies of the server
   and of a mounted server. They see the arguments as sent, and run before code of the tool.
5. `read_arguments`: the arguments match the schema. An override gets them unvalidated. Invalid
   arguments do not wait for a slot.
6. Time, handles and `max_concurrency`: waiting for a handle or for a slot counts towards the
   timeout. Handles come first: a call that waits for one occupies no slot.
7. `run`: the handler runs, and runs again while it returns `InputRequired`; `convert` turns its
   value into an answer, its handles are stored, and `limit_size` limits the size of the answer.

`finish` runs all stages from the second on, for code that waits for the result: a handler
(`NestedCall`) or an override (`DefaultCall`). A request (`RequestedCall`, made by `call_tool`) runs
the same stages in steps, since most calls end without a task: `begin` completes an inline call, and
returns the rest of any other call. The ways differ in `check_policies`, in who waits, and in where
the answer goes. A task is made by `on_request` of the call of its request: the stages up to the
fifth are done. A mounted tool is a tool whose handler makes a context of the mounted server.

An override replaces the handler in stage 7. A call that it passes on unchanged is not checked
again, once; every other call that it makes is a separate call, from stage 1.
"""

import abc
import copy
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..._errors import Denied, InsufficientScope, McpError, UnsavedHandle
from ..._value import JSONMapping, JSONObject
from ...components import ToolSpec, prepare, to_result
from ...engine import Job, call_user_code, is_crash, run_user_code
from ...jsonrpc import HEADER_MISMATCH, INVALID_PARAMS, render_text
from ...protocol import adapt_tool_result, param_fault
from ...types import InputRequired, ToolResult
from ..policies._policy_set import is_guarded
from ..registry._availability import is_available
from ..threads._abandoned import TooManyAbandoned
from ..threads._fair_limiter import ClientShare, QueueFull
from ._answers import LARGE, Answer, as_result, bounded, size_of_answer
from ._concurrency_limit import in_slot
from ._invoke import ASKED, CRASHED, TIMED_OUT, failure, invoke_handler, settle
from ._time_limit import OutOfTime, in_time
from ._unknown import unknown

if TYPE_CHECKING:
    from .._contracts import AnswerableRequest, CallTaskStart, HandledRequest, ServedServer
    from .._server_context import ServerContext

#: Makes the start of the task of a call, from the call, its request and its tool.
PrepareTask = Callable[..., "CallTaskStart"]
_CALL: Final = "call_tool"


class ToolCall(abc.ABC):
    """One call of a tool; see the theory of operation above.

    Args:
        request: The request or task that the call belongs to.
        server: The server.
        name: The name of the tool.
        arguments: The arguments as sent.
        context: The context of the call; None for the request's context, which is made on first
            use.

    Attributes:
        spec: The tool; None if unknown.
        overridden: True if an override of `Server.call_tool` handles the call.
        args: The converted arguments, after `read_arguments`.
    """

    __slots__ = (
        "args",
        "arguments",
        "made_context",
        "name",
        "overridden",
        "request",
        "server",
        "spec",
    )

    def __init__(
        self,
        request: "HandledRequest",
        server: "ServedServer",
        name: str,
        arguments: JSONObject,
        context: "ServerContext | None",
    ) -> None:
        self.request = request
        self.server = server
        self.name = name
        self.arguments = arguments
        self.made_context = context
        self.spec: ToolSpec | None = None
        self.overridden = _CALL in server.registry.overridden
        self.args: Any = None

    @property
    def context(self) -> "ServerContext":
        """The context of the call."""
        if self.made_context is None:
            self.made_context = self.request.context
        return self.made_context

    def on_request(self, request: "HandledRequest") -> "ToolCall":
        """Make the same call for another request: the task that continues it."""
        call = copy.copy(self)
        call.request, call.made_context = request, request.context
        request.context.continue_from(self.context)
        return call

    # The stages

    def find(self) -> None:
        """Find the tool, if it is available to the caller."""
        spec = self.server.registry.tools.look_up(self.name, self.made_context)
        if spec is not None and spec.available is not None and not is_available(spec, self.context):
            spec = None
        self.spec = spec

    def check_known(self) -> None:
        """Check that the tool is known, or that an override may know it.

        Raises:
            McpError: The tool is unknown (-32602).
        """
        if self.spec is None and not self.overridden:
            raise unknown(self.server.registry.tools, self.name, self.context)

    def check_scopes(self) -> None:
        """Check that the caller has the scopes of the tool.

        Raises:
            InsufficientScope: A scope is missing.
        """
        if self.spec is not None and self.spec.requires is not None:
            self.request.check_scopes(self.spec.requires)

    @abc.abstractmethod
    def check_policies(self) -> Awaitable[None] | None:
        """Check the policies. Each way of calling overrides this.

        Returns:
            The rest of the work, which may raise the same; None if all policies were asked.

        Raises:
            Denied: A policy denies the call.
        """

    def read_arguments(self) -> ToolResult | None:
        """Convert the arguments to the values that the handler takes.

        Returns:
            The answer for the model if they do not match the schema, or if a validator crashed
            (2025-11-25 `server/tools`, "Error Handling"); else None.

        Raises:
            McpError: A validator raised it.
            InsufficientScope: A validator raised it.
        """
        if self.spec is None or self.overridden:
            return None
        try:
            self.args, refusal = prepare(self.spec, self.arguments, self)
        except BaseException as error:
            if not is_crash(error):
                raise
            return failure(self.server, self.spec.source, error)
        return refusal

    def note_coercion(self) -> None:
        """Record for listeners that some text arguments were converted to other types."""
        self.context.note_coercion()

    async def finish(self) -> ToolResult:
        """Run all stages after `find`, and return the result; `TIMED_OUT` itself after a timeout.

        Raises:
            McpError: The tool is unknown, or its handler raised it.
            InsufficientScope: The caller lacks a scope.
        """
        self.check_known()
        self.check_scopes()
        try:
            asking = self.check_policies()
            if asking is not None:
                await asking
        except Denied as denied:
            return self.refuse(denied)
        refusal = self.read_arguments()
        if refusal is not None:
            return refusal
        if self.spec is None:
            return as_result(await self.run())
        try:
            return as_result(await in_time(self.server, self.spec, self.run))
        except OutOfTime:
            return TIMED_OUT

    def refuse(self, denied: Denied) -> ToolResult:
        """Return the answer to a call that policies deny."""
        return ToolResult.error(str(denied))

    def run_inline(self, spec: ToolSpec) -> Answer:
        """Run a short sync handler in the calling task.

        Raises:
            McpError: The handler raised it.
            InsufficientScope: The handler raised it.
        """
        try:
            # Also converted inside: it reads objects of the author, which may raise.
            return self.limit_size(call_user_code(partial(self._call_inline, spec)))
        except BaseException as error:
            if not is_crash(error):
                raise
            return failure(self.server, spec.source, error)

    def _call_inline(self, spec: ToolSpec) -> Answer:
        value = spec.invoke(self.args, self._given(spec))
        if isinstance(value, InputRequired):
            # On a pipe an inline handler runs in the message loop: if it waited, no request would
            # be read.
            raise TypeError("an inline handler cannot ask: it must not wait")
        return self.convert(value)

    async def run(self) -> Answer:
        """Run the handler or the override: async code in this task, sync code in a thread.

        Returns:
            The answer; `CRASHED` if the code raised an unexpected exception.

        Raises:
            McpError: The handler raised it.
            InsufficientScope: The handler raised it.
        """
        # A local variable: the watchdog looks for the request in the frames of its task.
        spec, request = self.spec, self.request
        try:
            if spec is None or self.overridden:
                value = await settle(self._call_override, request)
            elif spec.handles:
                return await request.running.handles.run(self, spec)
            else:
                value = await self.invoke(spec, partial(spec.invoke, self.args, self._given(spec)))
            try:
                return self.limit_size(self.convert(value))
            except UnsavedHandle:
                return await request.running.handles.answer(self, value)
        except QueueFull:
            text = f"{self.name} is busy: too many calls wait for it; try again later"
            return ToolResult.error(text)
        except TooManyAbandoned as error:
            return ToolResult.error(str(error))
        except BaseException as error:
            if not is_crash(error):
                raise
            return failure(self.server, self._source, error)

    def invoke(self, spec: ToolSpec, invoke: Callable[[], Any]) -> Awaitable[Any]:
        """Call the handler with `invoke`, in a slot if the tool has `max_concurrency`."""
        handler = partial(invoke_handler, self, spec.mode, spec.source, invoke)
        # A handler without ctx cannot read the answers of the next round.
        answered = self.request if spec.takes_context else None
        if spec.max_concurrency is None:
            return settle(handler, answered)
        slots = self.server.registry.slots(spec, self.server.options.limits.call_queue)
        share = slots.of(self.request.envelope.origin.client)
        return in_slot(share, partial(settle, handler, answered))

    def _call_override(self) -> Awaitable[Any]:
        return run_user_code(self.server.call_tool(self.name, self.arguments, self.context))

    def _given(self, spec: ToolSpec) -> "ServerContext | None":
        # Most handlers take no context. The handler of a mounted tool makes one from it.
        return self.context if spec.takes_context or spec.guard is not None else None

    @property
    def threads(self) -> ClientShare:
        """The threads of sync handlers."""
        return self.request.threads

    @property
    def _source(self) -> str:
        if self.spec is None or self.overridden:
            return f"{_CALL} of {self.server!r}"
        return self.spec.source

    def convert(self, value: object) -> Answer:
        """Convert the value of a handler. A value that cannot be sent is logged."""
        spec = self.spec
        # Most answers. Not for subclasses such as enumerations, which are converted differently.
        if value.__class__ is str and (spec is None or spec.output is None):
            text: str = value
            return text
        if isinstance(value, InputRequired):
            return ASKED  # it is not sent
        result, breach = to_result(spec, value)
        if breach is not None:
            source = _CALL if spec is None else spec.source
            text = "%s broke its contract: %s"
            # Logged by source: each tool has its own rate limit, so a noisy tool hides no other.
            self.server.crash_log.entry(logging.ERROR, (text, source), text, source, breach)
        return result

    def limit_size(self, answer: Answer) -> Answer:
        """Replace an answer that exceeds the size limit of the tool."""
        most = None if self.spec is None else self.spec.max_result_bytes
        if most is None:
            most = self.server.options.max_result_bytes
        return answer if most is None else bounded(self.spec, most, answer)


def call_tool(prepare_task: "PrepareTask", request: "AnswerableRequest") -> Job | None:
    """Answer `tools/call`, in its request or as a task.

    Invalid arguments are answered with a result that the model can act on (2025-11-25
    `server/tools`, "Error Handling"); an unknown tool and a malformed request with an error.
    Headers, timeout and task of a tool apply to an override of `call_tool`, too.

    Args:
        prepare_task: Makes the start of the task of a call, for tools that may run as tasks.
        request: The request.

    Raises:
        McpError: The tool is unknown, or the request is malformed (-32602).
        InsufficientScope: The caller lacks scopes of the tool.
    """
    params: JSONMapping = request.request.params or {}
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise McpError(INVALID_PARAMS, "tools/call requires a tool name")
    if arguments is not None and not isinstance(arguments, dict):
        raise McpError(INVALID_PARAMS, "arguments of tools/call must be an object")
    return RequestedCall(request, name, arguments or {}, prepare_task).begin()


class RequestedCall(ToolCall):
    """A call of a tool by a request, which is answered with its result.

    Args:
        request: The request.
        name: The name of the tool.
        arguments: The arguments as sent.
        prepare_task: See `call_tool`.
    """

    __slots__ = ("_prepare_task", "_request")

    def __init__(
        self,
        request: "AnswerableRequest",
        name: str,
        arguments: JSONObject,
        prepare_task: "PrepareTask",
    ) -> None:
        super().__init__(request, request.running.server, name, arguments, request.known_context)
        self._request = request
        self._prepare_task = prepare_task

    def begin(self) -> Job | None:
        """Run the stages up to the handler; return the rest of the work.

        Raises:
            McpError: The tool is unknown, or the request is malformed (-32602).
            InsufficientScope: The caller lacks scopes of the tool.
        """
        self.find()
        self.check_known()
        self.check_scopes()
        self._check_headers()
        guard = None if self.spec is None else self.spec.guard
        # Most tools do not come from a mounted server.
        if not self.server.policies.chains and (guard is None or not is_guarded(self.spec)):
            return self._begin_admitted()
        # Before the policies: they are checked once for each run of a handler, and a parked handler
        # continues its run.
        if self._request.resume_rounds():
            return None
        self._request.serve_with(self.spec)
        return self._begin_checked

    async def _begin_checked(self) -> None:
        """Check the policies, and then begin the call."""
        try:
            asking = self.check_policies()
            if asking is not None:
                await asking
            # Sets the deadline of the tool: the policies have a separate timeout.
            work = self._begin_admitted()
            if work is not None:
                await work()
        except BaseException as error:
            if not is_crash(error):
                raise
            self._request.send_failure(error)

    def check_policies(self) -> Awaitable[None] | None:
        """Check the policies. The capability of a request allows everything."""
        admit = self._request.running.admit
        return admit("tool", self.name, self.arguments, self.spec, self.context)

    def _begin_admitted(self) -> Job | None:
        """Read the arguments, and begin the call."""
        spec = self.spec
        refusal = self.read_arguments()
        if refusal is not None:
            self._reply(refusal)
            return None
        # No deadline and no task: a short handler ends before either could matter, and this is the
        # fastest path.
        if spec is not None and spec.mode == "inline" and not self.overridden:
            self._request.resume_rounds()
            self._reply(self.run_inline(spec))
            return None
        task_start = None
        if spec is not None and spec.task is not None:
            task_start = self._prepare_task(self, self._request, spec)
            if task_start.enter():
                return None
        if self._request.resume_rounds():
            return None
        if task_start is not None and task_start.waits:
            self._request.serve_with(spec)
            return partial(self._begin_stored, task_start)
        self._request.limit_time(spec)
        return self._answer if task_start is None else task_start.leaving(self._answer)

    async def _begin_stored(self, task_start: "CallTaskStart") -> None:
        """Begin the call as a task that all nodes can find, or else in the request."""
        try:
            if not await task_start.enter_stored():
                self._request.limit_time(self.spec)
                await task_start.leaving(self._answer)()
        except BaseException as error:
            if not is_crash(error):
                raise
            self._request.send_failure(error)

    def _check_headers(self) -> None:
        """Check that the `Mcp-Param-*` headers match the arguments (2026-07-28 `server/tools`).

        Before the arguments are read: a proxy may have routed by the headers, so a mismatch makes
        the request invalid, whatever its arguments.
        """
        if self.spec is None or not self.spec.mirrored:
            return
        headers = self._request.envelope.origin.headers
        # On stdio there are no headers to compare.
        if headers is not None:
            fault = param_fault(self.spec.mirrored, self.arguments, headers)
            if fault is not None:
                raise McpError(HEADER_MISMATCH, fault)

    async def _answer(self) -> None:
        """Run the handler, and answer with its result."""
        try:
            answer = await self.run()
        except (McpError, InsufficientScope) as error:
            self._request.send_failure(error)
            return
        request = self._request
        size = len(answer) if isinstance(answer, str) else size_of_answer(answer)
        if size <= LARGE or await request.running.turns.take(size, request.reserve):
            self._reply(answer)

    def _reply(self, result: Answer) -> None:
        request = self._request
        if isinstance(result, str):
            # Most answers are one text, the same in all revisions. Written from its parts: the
            # objects and dicts of a result would take five times as long.
            request.complete_rendered(
                b'"content":[{"type":"text","text":', render_text(result), b"}]"
            )
            return
        if result is CRASHED or result is TIMED_OUT:
            request.mark_ending("crashed" if result is CRASHED else "timed_out")
        wire = result.to_wire()
        revision = request.envelope.revision
        # 2026-07-28 allows any JSON value in `structuredContent`; earlier clients accept objects
        # only.
        if revision.structured != "any":
            schema = None if self.spec is None else self.spec.definition.get("outputSchema")
            wire = adapt_tool_result(wire, schema, revision)
        request.complete(wire)
