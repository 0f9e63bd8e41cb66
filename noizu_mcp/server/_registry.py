"""What a server offers: frozen maps from name to spec, in registration order."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from .._errors import DefinitionError, Problem
from ..components import ToolSpec, expand
from ..jsonrpc import Rendered, render
from ..protocol import Revision, adapt_tool
from ..types import ToolDefinition
from ._pages import PAGE_SIZE, Page, find_start, write_cursor


@attrs.frozen
class _Listed:
    """The tools that `tools/list` shows, and the pages of it that were rendered."""

    specs: tuple[ToolSpec, ...]
    names: tuple[str, ...]
    pages: dict[tuple[int, str], Rendered]


def _listed(tools: Mapping[str, ToolSpec]) -> _Listed:
    specs = tuple(spec for spec in tools.values() if not spec.hidden)
    return _Listed(specs, tuple(spec.name for spec in specs), {})


class Registry:
    """The registrations of one server.

    Reading is free of locks: a change replaces the map. The unchanging parts of the lists are
    rendered once a change and revision, not once a request.

    Args:
        tools: The tools, in order.
        page_size: Entries of one page.
    """

    def __init__(self, tools: Iterable[ToolSpec] = (), page_size: int = PAGE_SIZE) -> None:
        self._page_size = page_size
        self._tools: Mapping[str, ToolSpec] = {spec.name: spec for spec in tools}
        self._listed = _listed(self._tools)
        self._lock = threading.Lock()

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools by name, in order."""
        return self._tools

    def find(self, name: str) -> ToolSpec | None:
        """Find a tool by its wire name, hidden or not."""
        return self._tools.get(name)

    def list(self) -> Sequence[Mapping[str, Any]]:
        """List the definitions of the tools that are not hidden, as they go over the wire."""
        return [spec.definition for spec in self._listed.specs]

    def expand(self) -> Sequence[ToolSpec]:
        """List the specs of all tools, with the overrides of their registrations applied."""
        return tuple(self._tools.values())

    def entries(self, kind: str) -> Iterator[tuple[dict[str, Any], bool]]:
        """Iterate over everything of a kind with its `hidden` flag.

        Args:
            kind: `tools`, `resources`, `resource_templates` or `prompts`.
        """
        if kind == "tools":
            for spec in self._tools.values():
                yield dict(spec.definition), spec.hidden

    def list_tools(
        self, cursor: str | None = None, *, include_hidden: bool = False
    ) -> Page[ToolSpec]:
        """Cut one page out of the list of tools.

        Args:
            cursor: Where it begins; None for the first page.
            include_hidden: Take hidden tools too.

        Raises:
            McpError: The cursor is invalid (-32602).
        """
        specs = tuple(self._tools.values()) if include_hidden else self._listed.specs
        names = tuple(spec.name for spec in specs)
        return self._cut(specs, names, find_start(names, cursor))

    def _cut(self, specs: Sequence[ToolSpec], names: Sequence[str], start: int) -> Page[ToolSpec]:
        end = start + self._page_size
        more = write_cursor(end, names[end - 1]) if end < len(names) else None
        return Page(specs[start:end], more)

    def rendered_tools(self, cursor: object, revision: Revision) -> Rendered:
        """Render one page of `tools/list`, without the envelope of its era; kept for next time.

        Raises:
            McpError: The cursor is invalid (-32602).
        """
        listed = self._listed
        start = find_start(listed.names, cursor)
        page = listed.pages.get((start, revision.name))
        if page is None:
            cut = self._cut(listed.specs, listed.names, start)
            page = listed.pages[start, revision.name] = render(tools_page(cut, revision))
        return page

    def change(self, edit: Callable[[dict[str, ToolSpec]], dict[str, ToolSpec]]) -> None:
        """Replace the tools by what `edit` makes of them; atomic for readers and other writers."""
        with self._lock:
            self._tools = edit(dict(self._tools))
            self._listed = _listed(self._tools)


def tools_page(page: Page[Any], revision: Revision) -> dict[str, Any]:
    """Write a page of tools as the result of `tools/list`.

    Args:
        page: Tool specs, `ToolDefinition`s, or mappings in the shape of 2026-07-28.
        revision: The revision of the client.

    Raises:
        TypeError: Something on the page is no tool.
    """
    tools = [adapt_tool(_definition(item), revision) for item in page.items]
    result: dict[str, Any] = {"tools": tools}
    if page.next_cursor is not None:
        result["nextCursor"] = page.next_cursor
    return result


def _definition(item: Any) -> Mapping[str, Any]:
    if isinstance(item, ToolSpec):
        return item.definition
    if isinstance(item, ToolDefinition):
        return item.to_wire()
    if isinstance(item, Mapping):
        # What is no tool definition must not reach a client: reading it is the check.
        return ToolDefinition.from_wire(item, "tool").to_wire()
    raise TypeError(f"list_tools must give tool specs, definitions or mappings, not {item!r}")


def read_tools_page(answer: Any) -> Page[Any]:
    """Read what an override of `list_tools` returned: a `Page`, or a list without further pages.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(answer, Page):
        return answer
    if isinstance(answer, list | tuple):
        return Page(answer)
    raise TypeError(f"list_tools must return a Page or a list, not {answer!r}")


class ToolSet:
    """The tools of a running server; every method may be called from any task or thread.

    Each call tells the clients that the list changed, handshake sessions and
    `subscriptions/listen` streams alike; a burst of calls is merged into few notices.
    """

    def __init__(self, registry: Registry, changed: Callable[[], None]) -> None:
        self._registry = registry
        self._changed = changed

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._registry.expand())

    def __contains__(self, name: object) -> bool:
        return name in self._registry.tools

    def __len__(self) -> int:
        return len(self._registry.tools)

    def add(self, *tools: Any) -> None:
        """Add tools, at the end of the list.

        Args:
            tools: Classes, instances or `tool(…)` registrations. Names made at run time may be
                any printable string.

        Raises:
            DefinitionError: One is no tool, or its name is taken; nothing is added then.
        """
        specs = expand(tools)

        def edit(current: dict[str, ToolSpec]) -> dict[str, ToolSpec]:
            taken = [spec.name for spec in specs if spec.name in current]
            if taken:
                text = "is registered already; remove it first, or use replace"
                raise DefinitionError([Problem(f"tool {name!r}", text) for name in taken])
            return current | {spec.name: spec for spec in specs}

        self._registry.change(edit)
        self._changed()

    def remove(self, name: str) -> None:
        """Remove a tool; calls that run go on.

        Raises:
            KeyError: There is no such tool.
        """

        def edit(current: dict[str, ToolSpec]) -> dict[str, ToolSpec]:
            del current[name]
            return current

        self._registry.change(edit)
        self._changed()

    def replace(self, *tools: Any) -> None:
        """Put tools in the places of those with the same names; new names go to the end.

        Raises:
            DefinitionError: One is no tool; nothing is replaced then.
        """
        specs = expand(tools)
        self._registry.change(lambda current: current | {spec.name: spec for spec in specs})
        self._changed()
