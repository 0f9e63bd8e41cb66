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
6. Time and `max_concurrency`: waiting for a slot counts towards the timeout.
7. `run`: the handler runs, and runs again while it returns `InputRequired`; `convert` turns its
   value into an answer, and `limit_size` limits the size of the answer.

`finish` runs all stages from the second on, for code that waits for the result: a handler
(`NestedCall`) or an override (`DefaultCall`). A request (`RequestedCall`) runs the same stages in
steps, since most calls end without a task: `begin` completes an inline call, and returns the rest
of any other call. The ways differ in `check_policies`, in who waits, and in where the answer goes.
A task is made by `on_request` of the call of its request: the stages up to the fifth are done. A
mounted tool is a tool whose handler makes a context of the mounted server.

An override replaces the handler in stage 7. A call that it passes on unchanged is not checked
again, once; every other call that it makes is a separate call, from stage 1.
"""

import abc
import copy
import logging
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..._errors import Denied
from ..._value import JSONObject
from ...components import ToolSpec, prepare, to_result
from ...engine import (
    ClientShare,
    QueueFull,
    TooManyAbandoned,
    call_user_code,
    is_crash,
    run_user_code,
)
from ...types import InputRequired, ToolResult
from ..registry._availability import is_available
from ._concurrency_limit import one_of
from ._invoke import ASKED, TIMED_OUT, failure, invoke_handler, settle
from ._result_size import bounded
from ._time_limit import OutOfTime, in_time
from ._unknown import unknown

if TYPE_CHECKING:
    from .._contracts import HandledRequest, ServedServer
    from .._server_context import ServerContext

#: The answer to a call of a tool. A text is short for a result of one text block.
Answer = ToolResult | str
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
            else:
                handler = partial(self._call_handler, spec)
                # A handler without ctx cannot read the answers of the next round.
                answered = request if spec.takes_context else None
                # Checked before a context manager is made: most tools have no limit.
                if spec.max_concurrency is None:
                    value = await settle(handler, answered)
                else:
                    slots = self.server.registry.slots(spec, self.server.options.limits.call_queue)
                    async with one_of(slots.of(request.envelope.origin.client)):
                        value = await settle(handler, answered)
            return self.limit_size(self.convert(value))
        except QueueFull:
            text = f"{self.name} is busy: too many calls wait for it; try again later"
            return ToolResult.error(text)
        except TooManyAbandoned as error:
            return ToolResult.error(str(error))
        except BaseException as error:
            if not is_crash(error):
                raise
            return failure(self.server, self._source, error)

    def _call_handler(self, spec: ToolSpec) -> Awaitable[Any]:
        invoke = partial(spec.invoke, self.args, self._given(spec))
        return invoke_handler(self, spec.mode, spec.source, invoke)

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

    def convert(self, value: Any) -> Answer:
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


def as_result(answer: Answer) -> ToolResult:
    """Convert an answer into a result."""
    return ToolResult(answer) if isinstance(answer, str) else answer
