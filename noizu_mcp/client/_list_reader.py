"""The lists of a server, page by page or complete."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

import trio

from .._errors import McpError, ProtocolError
from .._limits import RAISE_LIMIT, Limits
from .._util import json_text
from .._value import JSONObject
from ..engine import throttled_log
from ..jsonrpc import INVALID_PARAMS
from ..schema import header_faults, header_paths
from ..types import (
    Page,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    SkillDefinition,
    ToolDefinition,
    Wire,
)
from ._cache import CacheKey, ResponseCache

#: Bytes of memory for each value of a list, in addition to its JSON.
_VALUE: Final = 64
#: Maximum tools of one server whose headers are stored.
MAX_MIRRORED: Final = 10_000
#: Characters of a name that the log shows.
SHOWN: Final = 200

Definition = TypeVar("Definition", bound=Wire)
#: Sends a request with a method and params, and returns its result.
SendRequest = Callable[[str, JSONObject], Awaitable[JSONObject]]


class ListKind(NamedTuple, Generic[Definition]):
    """One of the lists of a server.

    Attributes:
        method: Its method.
        member: The member of the result with the entries.
        definition: The class of an entry.
        change: Its name in `CHANGES`; for skills, which have no notification, that of their files.
        key: The attribute that identifies an entry.
    """

    method: str
    member: str
    definition: type[Definition]
    change: str
    key: str = "name"


TOOLS: Final = ListKind("tools/list", "tools", ToolDefinition, "tools")
PROMPTS: Final = ListKind("prompts/list", "prompts", PromptDefinition, "prompts")
RESOURCES: Final = ListKind("resources/list", "resources", ResourceDefinition, "resources", "uri")
SKILL_LIST: Final = ListKind("skills/list", "skills", SkillDefinition, "resources", "uri")
TEMPLATES: Final = ListKind(
    "resources/templates/list", "resourceTemplates", ResourceTemplateDefinition, "resources"
)


class ListBudget:
    """The remaining room for one list: a server can send pages endlessly.

    Args:
        method: The method of the list, for errors.
        limits: The limits of the connection.
    """

    def __init__(self, method: str, limits: Limits) -> None:
        self._method = method
        self._limits = limits
        self._size = self._entries = 0
        self._until = trio.current_time() + limits.list_seconds

    def take(self, result: JSONObject, entries: int, *, is_last: bool) -> None:
        """Count a page.

        Args:
            result: The page as received.
            entries: The number of its entries.
            is_last: True for the last page.

        Raises:
            ProtocolError: The list exceeds a limit.
        """
        text = json_text(result)
        # One of these precedes each value; some in texts are counted, too.
        self._size += len(text) + _VALUE * sum(map(text.count, ",[{"))
        self._entries += max(entries, 1)  # pages without entries could also be endless
        if self._size > self._limits.list_size:
            raise self._over("list_size", "has more than {} bytes")
        if self._entries > self._limits.list_entries:
            raise self._over("list_entries", "has more than {} entries")
        if not is_last and trio.current_time() > self._until:
            raise self._over("list_seconds", "gave pages for {} s, and no last one")

    def _over(self, limit: str, text: str) -> ProtocolError:
        told = text.format(getattr(self._limits, limit))
        return ProtocolError(f"{self._method} {told}; {RAISE_LIMIT.format(limit)}")


class ListReader:
    """Reads the lists of one server.

    Args:
        send: Sends a request.
        limits: The limits of the connection.
        cache: Caches the pages as long as the server allows.
        learn: Called with each page of tools from the server, and `first=True` for the first page.
    """

    def __init__(
        self,
        send: SendRequest,
        limits: Limits,
        cache: ResponseCache,
        learn: Callable[..., None],
    ) -> None:
        self._send = send
        self._limits = limits
        self._cache = cache
        self._learn = learn

    async def page(self, kind: ListKind[Definition], cursor: str) -> Page[Definition]:
        """Read one page.

        Args:
            kind: The list.
            cursor: The `next_cursor` of the previous page; empty for the first page.

        Raises:
            ProtocolError: The answer is not a page of the list, or its cursor is an empty text.
        """
        page = await self._page(kind, cursor or None)
        if page.next_cursor == "":
            # 2026-07-28 `server/utilities/pagination` allows it, but here it means the first page.
            raise ProtocolError(
                f"{kind.method} uses the empty text as a cursor; read the list without page="
            )
        return page

    async def all(self, kind: ListKind[Definition], *, anew: bool = False) -> list[Definition]:
        """Read all pages.

        Args:
            kind: The list.
            anew: True to drop the cached pages first.

        Raises:
            ProtocolError: A cursor was repeated, the list exceeds a limit, or an answer is not a
                page.
        """
        if anew:
            self._cache.drop(kind.method)
        found: list[Definition] = []
        cursors: set[str] = set()
        cursor: str | None = None
        may_restart = True
        budget = ListBudget(kind.method, self._limits)
        while True:
            try:
                page = await self._page(kind, cursor, budget)
            except McpError as error:
                # A cursor may expire with the list for which it was made; then the pages before it
                # are outdated, too (2026-07-28 `server/utilities/caching`).
                if not may_restart or cursor is None or error.code != INVALID_PARAMS:
                    raise
                found, cursors, cursor, may_restart = [], set(), None, False
                continue
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found
            # A server that repeats a cursor would keep this loop running forever.
            if cursor in cursors:
                raise ProtocolError(f"{kind.method} gave the same cursor twice")
            cursors.add(cursor)

    async def _page(
        self, kind: ListKind[Definition], cursor: str | None, budget: ListBudget | None = None
    ) -> Page[Definition]:
        params = {} if cursor is None else {"cursor": cursor}
        send = partial(self._send, kind.method, params)
        read = partial(self._read, kind, cursor, budget)
        try:
            return await self._cache.answer(CacheKey(kind.method, cursor), send, read)
        except McpError as error:
            if cursor is not None and error.code == INVALID_PARAMS:
                self._cache.drop(kind.method)
            raise

    def _read(
        self,
        kind: ListKind[Definition],
        cursor: str | None,
        budget: ListBudget | None,
        result: JSONObject,
    ) -> Page[Definition]:
        listed, following = result.get(kind.member), result.get("nextCursor")
        if not isinstance(listed, list) or not isinstance(following, str | None):
            raise ProtocolError(f"{kind.method} gave no list of {kind.member}")
        # The only page of a list is limited like a message.
        if budget is not None and (cursor, following) != (None, None):
            budget.take(result, len(listed), is_last=following is None)
        page = Page(tuple(map(kind.definition.from_wire, listed)), following)
        if kind.definition is ToolDefinition:
            self._learn(page, first=cursor is None)
        return page


def note_headers(
    page: Mapping[str, object], mirrored: MutableMapping[str, Mapping[str, tuple[str, ...]]]
) -> JSONObject:
    """Store the arguments that the tools of a page of `tools/list` mirror in HTTP headers.

    Args:
        page: The result.
        mirrored: The argument path of each header is added, by tool.

    Returns:
        The result without tools whose `x-mcp-header` is not valid: a client must ignore them
        (2026-07-28 `server/tools`, "x-mcp-header").
    """
    tools = page.get("tools")
    if not isinstance(tools, list):
        return dict(page)
    kept = []
    for tool in tools:
        schema = tool.get("inputSchema") if isinstance(tool, Mapping) else None
        if isinstance(schema, Mapping) and isinstance(tool.get("name"), str):
            fault = next(header_faults(schema), None)
            if fault is not None:
                text = "left out the tool %r: %s"
                throttled_log.warning(text, text, tool["name"][:SHOWN], fault.text)
                continue
            # The name that was added first is removed: a server can send new names in each list.
            mirrored.pop(tool["name"], None)
            if len(mirrored) >= MAX_MIRRORED:
                del mirrored[next(iter(mirrored))]
            mirrored[tool["name"]] = header_paths(schema)
        kept.append(tool)  # `ToolDefinition.from_wire` reports other errors
    return {**page, "tools": kept}
