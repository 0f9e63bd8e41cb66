"""Checks of the results of tools against their output schemas (server/tools, "Output Schema").

Theory of operation. A schema is known once its tool is listed, and compiled for the first result.
Schemas and results come from the server, so a schema that exceeds the limits of size, depth and
cost, has an unknown dialect, or does not compile is skipped with one log entry; so is a result
whose check would take too long. Neither breaks a listing or a call.

A notification that the tools have changed makes the schemas unknown again; a tool with the same
schema in the next list keeps its compiled one. In the mode `strict` the tools are listed before a
call of an unknown tool; otherwise such a call is not checked.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Literal, get_args

import attrs
import trio

from .._errors import PEER_FAILURES, ProtocolError, SchemaError
from .._schema_engine import EngineName
from .._util import UNSET, Unset
from .._value import JSONObject
from ..engine import logger
from ..jsonrpc import Notification
from ..protocol import CHANGES
from ..schema import PeerSchema, choose_engine, describe
from ..types import Page, ToolDefinition, ToolResult
from ._session import ClientSession

#: What to do with a result that violates the output schema of its tool.
Strictness = Literal["strict", "warn", "off"]

#: Maximum tools whose schemas are stored.
MAX_TOOLS: Final = 10_000

#: Characters of the reason that the log shows: the server controls the schema.
SHOWN: Final = 300

_MISSING: Final = "(root): required, but there is no structuredContent"


class _Output:
    """The output schema of a tool, compiled with the first result.

    Attributes:
        schema: The schema.
        compiled: The compiled schema; None if it cannot be used; UNSET before its first use.
        logged: The kinds of log entries about the results of the tool; each is logged once.
    """

    __slots__ = ("compiled", "logged", "schema")

    def __init__(self, schema: JSONObject) -> None:
        self.schema = schema
        self.compiled: PeerSchema | Unset | None = UNSET
        self.logged: set[str] = set()

    def log_once(self, text: str, *args: object) -> None:
        if text not in self.logged:
            self.logged.add(text)
            logger.warning(text, *args)


class OutputChecks:
    """Checks results against the output schemas of their tools.

    Args:
        strictness: The mode; see `connect`.
        session: The connection; 2025-03-26 has no output schemas.
        list_tools: Lists the tools; their schemas are passed to `learn`.
        engine: The schema engine; see `connect`.

    Raises:
        ValueError: The mode or engine is unknown, or the native engine was requested and cannot be
            loaded.
    """

    def __init__(
        self,
        strictness: Strictness,
        session: ClientSession,
        list_tools: Callable[[], Awaitable[object]],
        engine: EngineName | None,
    ) -> None:
        if strictness not in get_args(Strictness):
            raise ValueError(f'strictness is "strict", "warn" or "off", not {strictness!r}')
        self._strictness = strictness
        self._engine = choose_engine(engine)
        self._session = session
        self._list_tools = list_tools
        # By tool; None for a tool without an output schema.
        self._outputs: dict[str, _Output | None] = {}
        self._previous: dict[str, _Output | None] = {}  # of the list before
        self._looking = trio.Lock()

    def learn(self, page: Page[ToolDefinition], *, first: bool) -> None:
        """Store the output schemas of a page of tools.

        Args:
            page: The page.
            first: True for the first page: schemas of the previous list are dropped.
        """
        if self._strictness == "off" or self._session.peer.revision.structured == "none":
            return
        if first:
            self._forget()
        for tool in page:
            if len(self._outputs) < MAX_TOOLS:
                known, schema = self._previous.get(tool.name), tool.output_schema
                if known is None or known.schema != schema:
                    known = None if schema is None else _Output(schema)
                self._outputs[tool.name] = known

    def note(self, notice: Notification) -> None:
        """Drop the schemas if a notification says that the tools have changed."""
        if notice.method == CHANGES["tools"][0]:
            self._forget()

    def _forget(self) -> None:
        if self._outputs:
            self._previous, self._outputs = self._outputs, {}

    @property
    def may_list(self) -> bool:
        """True if a call may list the tools: in the mode `strict`."""
        return self._strictness == "strict"

    async def look_up(self, name: str) -> None:
        """List the tools if the tool is unknown; in the mode `strict`, before each call."""
        if name in self._outputs:
            return
        # One listing for all waiting calls.
        async with self._looking:
            if name not in self._outputs:
                await self._list_tools()
                # A tool that is not listed has no schema, and is not looked up again.
                self._outputs.setdefault(name, None)

    def concern(self, name: str) -> bool:
        """Tell whether a tool has an output schema."""
        return self._outputs.get(name) is not None

    async def check(self, name: str, result: ToolResult) -> ToolResult:
        """Check the result of a tool that has an output schema.

        Returns:
            The result, with its violations.

        Raises:
            ProtocolError: It violates the schema, in the mode `strict`.
        """
        # Only successful results must match (server/tools, "Output Schema").
        output = self._outputs.get(name)
        lines = [] if result.is_error else self._find_violations(name, output, result)
        if output is None or not lines:
            return result
        text = f"the result of the tool {name[:SHOWN]!r} breaks its output schema:"
        if self._strictness == "strict":
            # The schema may have changed without a notification. If the server refuses to list, the
            # known schema is used.
            with suppress(*PEER_FAILURES):
                await self._list_tools()
                lines = self._find_violations(name, self._outputs.get(name), result)
            if lines:
                raise ProtocolError("\n".join([text, *lines]))
            return result
        output.log_once("%s %s", text, "; ".join(lines))
        return attrs.evolve(result, violations=tuple(lines))

    def _find_violations(self, name: str, output: _Output | None, result: ToolResult) -> list[str]:
        if output is None:
            return []
        if not result.has_structured:
            return [_MISSING]
        if isinstance(output.compiled, Unset):
            output.compiled = self._compile(name, output.schema)
        if output.compiled is None:
            return []
        found = output.compiled.violations(result.structured)
        if found is None:
            output.log_once("a result of the tool %.200r is too large to be checked", name)
            return []
        return describe(found)

    def _compile(self, name: str, schema: JSONObject) -> PeerSchema | None:
        try:
            return PeerSchema(schema, self._engine)
        except SchemaError as error:
            shown = str(error)[:SHOWN]
            logger.warning("results of the tool %.200r are not checked: %s", name, shown)
            return None
