"""Checks of the results of tools against their output schemas (server/tools, "Output Schema").

Theory of operation. A schema is known once its tool is listed. It is compiled for the first result,
once for each text. Schemas and results come from the server, so a schema that exceeds the limits of
size, depth and cost, has an unknown dialect, or does not compile is skipped with one log entry; so
is a result whose check would take too long. Neither breaks a listing or a call.

A notification that the tools have changed makes the schemas unknown again. In the mode `strict` the
tools are listed before a call of an unknown tool; otherwise such a call is not checked.
"""

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Literal, get_args

import attrs
import trio

from .._errors import PEER_FAILURES, ProtocolError, SchemaError
from .._schema_engine import EngineName
from .._util import UNSET, Unset, json_text
from .._value import JSONObject
from ..engine import logger
from ..schema import PeerSchema, choose_engine, describe
from ..types import Page, ToolDefinition, ToolResult
from ._session import ClientSession

#: What to do with a result that violates the output schema of its tool.
Strictness = Literal["strict", "warn", "off"]

#: Maximum tools whose schemas are stored.
MAX_TOOLS: Final = 10_000
#: Maximum compiled schemas, and the bytes of their JSON.
MAX_COMPILED: Final = 1000
MAX_COMPILED_SIZE: Final = 4 * 1024 * 1024

#: Characters of the reason that the log shows: the server controls the schema.
SHOWN: Final = 300

_MISSING: Final = "(root): required, but there is no structuredContent"


class _Output:
    """The output schema of a tool, compiled with the first result.

    Attributes:
        schema: The schema.
        compiled: The compiled schema; None if it cannot be used; UNSET before its first use.
    """

    __slots__ = ("compiled", "schema")

    def __init__(self, schema: JSONObject) -> None:
        self.schema = schema
        self.compiled: PeerSchema | Unset | None = UNSET


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
        # None for a tool without an output schema.
        self._outputs: dict[str, _Output | None] = {}
        # By a digest of the schema, since tools may share one and lists are read again; with the
        # bytes of its JSON.
        self._compiled: dict[bytes, tuple[PeerSchema | None, int]] = {}
        self._size = 0
        self._looking = trio.Lock()
        # Hashes, since the server controls the names.
        self._warned: set[int] = set()

    def learn(self, page: Page[ToolDefinition], *, first: bool) -> None:
        """Store the output schemas of a page of tools.

        Args:
            page: The page.
            first: True for the first page: schemas of the previous list are dropped.
        """
        if self._strictness == "off" or self._session.peer.revision.structured == "none":
            return
        if first:
            self.forget()
        for tool in page:
            schema = tool.output_schema
            if len(self._outputs) < MAX_TOOLS:
                self._outputs[tool.name] = None if schema is None else _Output(schema)

    def forget(self) -> None:
        """Drop the schemas: the tools have changed."""
        self._outputs.clear()

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
        lines = [] if result.is_error else self._find_violations(name, result)
        if not lines:
            return result
        text = f"the result of the tool {name[:SHOWN]!r} breaks its output schema:"
        if self._strictness == "strict":
            # The schema may have changed without a notification. If the server refuses to list, the
            # known schema is used.
            with suppress(*PEER_FAILURES):
                await self._list_tools()
                lines = self._find_violations(name, result)
            if lines:
                raise ProtocolError("\n".join([text, *lines]))
            return result
        self._warn_once(name, "%s %s", text, "; ".join(lines))
        return attrs.evolve(result, violations=tuple(lines))

    def _find_violations(self, name: str, result: ToolResult) -> list[str]:
        output = self._outputs.get(name)
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
            self._warn_once(name, "a result of the tool %.200r is too large to be checked", name)
            return []
        return describe(found)

    def _warn_once(self, name: str, text: str, *args: object) -> None:
        about = hash((name, text))
        if about not in self._warned:
            if len(self._warned) >= MAX_TOOLS:
                self._warned.clear()
            self._warned.add(about)
            logger.warning(text, *args)

    def _compile(self, name: str, schema: JSONObject) -> PeerSchema | None:
        text = json_text(schema).encode("utf-8", "surrogatepass")
        key = hashlib.sha256(text).digest()
        if key in self._compiled:
            return self._compiled[key][0]
        compiled = None
        try:
            compiled = PeerSchema(schema, self._engine)
        except SchemaError as error:
            shown = str(error)[:SHOWN]
            logger.warning("results of the tool %.200r are not checked: %s", name, shown)
        size = 0 if compiled is None else len(text)
        self._compiled[key] = compiled, size
        self._size += size
        while len(self._compiled) > MAX_COMPILED or self._size > MAX_COMPILED_SIZE:
            self._size -= self._compiled.pop(next(iter(self._compiled)))[1]
        return compiled
