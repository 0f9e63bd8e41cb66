"""Calls of tools, and checks of their results against the output schemas of the tools.

Theory of operation. A call is one request, unless the server sends input requests (2026-07-28
`basic/patterns/mrtr`), or requires other headers (2026-07-28 `streamable-http`, "Custom Headers
from Tool Parameters").

The output schema of a tool (server/tools, "Output Schema") is known once the tool is listed, and
compiled for the first result. Schemas and results come from the server, so a schema that exceeds
the limits of size, depth and cost, has an unknown dialect, or does not compile is skipped with one
log entry; so is a result whose check would take too long. Neither breaks a listing or a call.

A notification that the tools have changed makes the schemas unknown again; a tool with the same
schema in the next list keeps its compiled one. In the mode `strict` the tools are listed before a
call of an unknown tool; otherwise the result of such a call is not checked.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, Literal, TypedDict, Unpack, get_args

import attrs
import trio

from .._errors import PEER_FAILURES, McpError, ProtocolError, SchemaError, TaskStarted
from .._schema_engine import EngineName
from .._util import UNSET, Unset
from .._value import JSONObject
from ..engine import logger
from ..jsonrpc import HEADER_MISMATCH, Notification
from ..protocol import CHANGES
from ..schema import PeerSchema, choose_engine, describe
from ..types import TASKS, Page, Task, ToolDefinition, ToolResult
from ._answers import answer_rounds
from ._session import ClientSession, Progress

#: What to do with a result that violates the output schema of its tool.
Strictness = Literal["strict", "warn", "off"]

#: Maximum tools whose schemas are stored.
MAX_TOOLS: Final = 10_000
#: Characters of a name or reason that errors and the log show: the server controls them.
SHOWN: Final = 300

_METHOD: Final = "tools/call"
_MISSING: Final = "(root): required, but there is no structuredContent"


class CallOptions(TypedDict, total=False):
    """Options of `Client.request` that a call passes on."""

    timeout: float | None
    progress: Callable[[Progress], object] | None


class ToolCalls:
    """Calls the tools of one server, and checks their results.

    Args:
        session: The connection; 2025-03-26 has no output schemas.
        request: `Client.request`.
        list_tools: Lists the tools, and stores the headers that each of them requires; each page is
            passed to `learn`.
        strictness: What to do with wrong results; see `connect`.
        engine: The schema engine; see `connect`.

    Attributes:
        is_strict: True in the mode `strict`, in which a call may list the tools.

    Raises:
        ValueError: The mode or engine is unknown, or the native engine was requested and cannot be
            loaded.
    """

    def __init__(
        self,
        session: ClientSession,
        request: Callable[..., Awaitable[JSONObject]],
        list_tools: Callable[[], Awaitable[object]],
        strictness: Strictness,
        engine: EngineName | None,
    ) -> None:
        if strictness not in get_args(Strictness):
            raise ValueError(f'strictness is "strict", "warn" or "off", not {strictness!r}')
        self.is_strict = strictness == "strict"
        self._is_off = strictness == "off"
        self._engine = choose_engine(engine)
        self._session = session
        self._request = request
        self._list_tools = list_tools
        # A task without the extension is an unknown kind of result, and an error.
        knows_tasks = TASKS in (session.peer.capabilities.get("extensions") or {})
        self._kinds = ("complete", "task") if knows_tasks else ("complete",)
        # By tool; None for a tool without an output schema.
        self._outputs: dict[str, _OutputSchema | None] = {}
        self._previous: dict[str, _OutputSchema | None] = {}  # of the list before
        self._looking = trio.Lock()

    async def call(self, params: JSONObject, **options: Unpack[CallOptions]) -> ToolResult:
        """Call a tool; see `Client.call_tool`.

        Args:
            params: The params of the request.
            **options: Options of `Client.request`.
        """
        if self.is_strict:
            await self._look_up(params["name"])
        first = await self._send(params, **options)
        return await self.finish(params, first, **options)

    async def finish(
        self, params: JSONObject, first: JSONObject, **options: Unpack[CallOptions]
    ) -> ToolResult:
        """Answer the input requests in the first result of a call, and read the last result.

        It waits only for answers to input requests, and in the mode `strict` for a list of tools.

        Args:
            params: The params of the request.
            first: Its first result.
            **options: Options of `Client.request`.

        Raises:
            TaskStarted: The call continues as a task.
            ProtocolError: The result is malformed, or violates the output schema of the tool.
        """
        result = first
        if result.get("resultType", "complete") not in self._kinds:
            send = partial(self._send, **options)
            answerer = self._session.answerer
            result = await answer_rounds(send, params, answerer, self._kinds, first)
        if result.get("resultType") == "task":
            raise TaskStarted(Task.from_wire(result))
        found, output = ToolResult.from_wire(result), self._outputs.get(params["name"])
        # Only successful results must match.
        lines = [] if output is None or found.is_error else output.violations(found)
        if output is None or not lines:
            return found
        if self.is_strict:
            return await self._check_again(output, found, lines)
        output.log_once("%s %s", output.title, "; ".join(lines))
        return attrs.evolve(found, violations=tuple(lines))

    async def _check_again(
        self, output: "_OutputSchema", result: ToolResult, lines: list[str]
    ) -> ToolResult:
        """Return a result that fits the present schema, which may have changed without notice.

        Raises:
            ProtocolError: It does not fit.
        """
        # If the server refuses to list, the known schema is used.
        with suppress(*PEER_FAILURES):
            await self._list_tools()
            present = self._outputs.get(output.name)
            lines = [] if present is None else present.violations(result)
        if lines:
            raise ProtocolError("\n".join([output.title, *lines]))
        return result

    def are_headers_wrong(self, error: McpError) -> bool:
        """Tell whether a call was refused for its `Mcp-Param-*` headers, before the tool ran."""
        return error.code == HEADER_MISMATCH and self._session.mirrored is not None

    async def _send(self, params: JSONObject, **options: Unpack[CallOptions]) -> JSONObject:
        """Send a call; if its headers are wrong, list the tools and send it again."""
        try:
            return await self._request(_METHOD, params, **options)
        except McpError as error:
            if not self.are_headers_wrong(error):
                raise
        await self._list_tools()
        return await self._request(_METHOD, params, **options)

    def learn(self, page: Page[ToolDefinition], *, first: bool) -> None:
        """Store the output schemas of a page of tools.

        Args:
            page: The page.
            first: True for the first page: schemas of the previous list are dropped.
        """
        if self._is_off or self._session.peer.revision.structured == "none":
            return
        if first:
            self._forget()
        for tool in page:
            if len(self._outputs) < MAX_TOOLS:
                known, schema = self._previous.get(tool.name), tool.output_schema
                if schema is None:
                    known = None
                elif known is None or known.schema != schema:
                    known = _OutputSchema(tool.name, schema, self._engine)
                self._outputs[tool.name] = known

    def note(self, notice: Notification) -> None:
        """Drop the schemas if a notification says that the tools have changed."""
        if notice.method == CHANGES["tools"][0]:
            self._forget()

    def _forget(self) -> None:
        if self._outputs:
            self._previous, self._outputs = self._outputs, {}

    async def _look_up(self, name: str) -> None:
        """List the tools if the tool is unknown."""
        if name in self._outputs:
            return
        # One listing for all waiting calls.
        async with self._looking:
            if name not in self._outputs:
                await self._list_tools()
                # A tool that is not listed has no schema, and is not looked up again.
                self._outputs.setdefault(name, None)


class _OutputSchema:
    """The output schema of a tool, compiled with the first result.

    Attributes:
        name: The tool.
        schema: The schema.
    """

    def __init__(self, name: str, schema: JSONObject, engine: EngineName | None) -> None:
        self.name = name
        self.schema = schema
        self._engine = engine
        self._compiled: PeerSchema | Unset | None = UNSET  # None if it cannot be used
        self._logged: set[str] = set()

    @property
    def title(self) -> str:
        """The first line of an error about a result."""
        return f"the result of the tool {self.name[:SHOWN]!r} breaks its output schema:"

    def violations(self, result: ToolResult) -> list[str]:
        """Describe the violations of a result; none if it cannot be checked."""
        if not result.has_structured:
            return [_MISSING]
        if isinstance(self._compiled, Unset):
            self._compiled = self._compile()
        if self._compiled is None:
            return []
        found = self._compiled.violations(result.structured)
        if found is None:
            self.log_once("a result of the tool %.200r is too large to be checked", self.name)
            return []
        return describe(found)

    def _compile(self) -> PeerSchema | None:
        try:
            return PeerSchema(self.schema, self._engine)
        except SchemaError as error:
            shown = str(error)[:SHOWN]
            logger.warning("results of the tool %.200r are not checked: %s", self.name, shown)
            return None

    def log_once(self, text: str, *args: object) -> None:
        """Log a warning about the results of the tool, once for each text."""
        if text not in self._logged:
            self._logged.add(text)
            logger.warning(text, *args)
