"""`tools/call` (`server/tools`)."""

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from ..._errors import InsufficientScope, McpError
from ..._value import JSONObject
from ...engine import Job, is_crash
from ...jsonrpc import HEADER_MISMATCH, INVALID_PARAMS, render
from ...protocol import adapt_tool_result, param_fault
from .._server_request import ServerRequest
from ..calls._call import Answer, ToolCall
from ..calls._invoke import CRASHED, TIMED_OUT
from ..calls._result_size import LARGE, size_of
from ..policies._policy_set import is_guarded

if TYPE_CHECKING:
    pass


def call_tool(request: ServerRequest) -> Job | None:
    """Answer `tools/call`, in its request or as a task.

    Invalid arguments are answered with a result that the model can act on (2025-11-25
    `server/tools`, "Error Handling"); an unknown tool and a malformed request with an error.
    Headers, timeout and task of a tool apply to an override of `call_tool`, too.

    Raises:
        McpError: The tool is unknown, or the request is malformed (-32602).
        InsufficientScope: The caller lacks scopes of the tool.
    """
    return RequestedCall(request, *_read(request.request.params or {})).begin()


def _read(params: Mapping[str, Any]) -> tuple[str, JSONObject]:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise McpError(INVALID_PARAMS, "tools/call requires a tool name")
    if arguments is not None and not isinstance(arguments, dict):
        raise McpError(INVALID_PARAMS, "arguments of tools/call must be an object")
    return name, arguments or {}


class RequestedCall(ToolCall):
    """A call of a tool by a request, which is answered with its result.

    Args:
        request: The request.
        name: The name of the tool.
        arguments: The arguments as sent.
    """

    __slots__ = ("_request",)

    def __init__(self, request: ServerRequest, name: str, arguments: JSONObject) -> None:
        super().__init__(request, request.running.server, name, arguments, request.known_context)
        self._request = request

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
        if not self.server.policies.chains and not is_guarded(self.spec):
            return self._begin_admitted()
        # Before the policies: they are checked once for each run of a handler, and a parked handler
        # continues its run.
        if self._request.take_up_rounds():
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
            self._request.take_up_rounds()
            self._reply(self.run_inline(spec))
            return None
        opening = None
        if spec is not None and spec.task is not None:
            # Loaded on first use: most tools have no tasks.
            from ._tasks import Opening

            opening = Opening(self, self._request, spec)
            if opening.enter():
                return None
        if self._request.take_up_rounds():
            return None
        self._request.limit_time(spec)
        return self._answer if opening is None else opening.leaving(self._answer)

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
        size = _size_of(answer)
        if size <= LARGE or await self._request.take_turn(size):
            self._reply(answer)

    def _reply(self, result: Answer) -> None:
        request = self._request
        if isinstance(result, str):
            # Most answers are one text, the same in all revisions. Built from bytes: the objects
            # and dicts of a result would take five times as long.
            text = b'"content":[{"type":"text","text":'
            request.complete_rendered(text, render(result), b"}]")
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


def _size_of(answer: Answer) -> int:
    """Estimate the bytes of an answer, without structured content; see `size_of`."""
    if isinstance(answer, str):
        return len(answer)
    return sum(size_of(value) for block in answer.content for value in block.fields.values())
