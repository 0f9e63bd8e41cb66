"""Calls of tools: the requests of one call, from the first to the result.

A call is one request, unless the server sends input requests (2026-07-28 `basic/patterns/mrtr`), or
requires other headers (2026-07-28 `streamable-http`, "Custom Headers from Tool Parameters").
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypedDict, Unpack

from .._errors import McpError, TaskStarted
from .._value import JSONObject
from ..jsonrpc import HEADER_MISMATCH
from ..types import TASKS, Task, ToolResult
from ._answers import answer_rounds
from ._checks import OutputChecks
from ._session import ClientSession, Progress

_METHOD = "tools/call"


class CallOptions(TypedDict, total=False):
    """Options of `Client.request` that a call passes on."""

    timeout: float | None
    progress: Callable[[Progress], object] | None


class ToolCalls:
    """Calls the tools of one server.

    Args:
        session: The connection.
        request: `Client.request`.
        list_tools: Lists the tools, and stores the headers that each of them requires.
        checks: Checks the results.
    """

    def __init__(
        self,
        session: ClientSession,
        request: Callable[..., Awaitable[JSONObject]],
        list_tools: Callable[[], Awaitable[object]],
        checks: OutputChecks,
    ) -> None:
        self._session = session
        self._request = request
        self._list_tools = list_tools
        self._checks = checks
        self._is_strict = checks.may_list
        # A task without the extension is an unknown kind of result, and an error.
        knows_tasks = TASKS in (session.peer.capabilities.get("extensions") or {})
        self._kinds = ("complete", "task") if knows_tasks else ("complete",)

    async def call(self, params: JSONObject, **options: Unpack[CallOptions]) -> ToolResult:
        """Call a tool; see `Client.call_tool`.

        Args:
            params: The params of the request.
            **options: Options of `Client.request`.
        """
        if self._is_strict:
            await self._checks.look_up(params["name"])
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
        found, checks, name = ToolResult.from_wire(result), self._checks, params["name"]
        return await checks.check(name, found) if checks.concern(name) else found

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
