"""A tool that tells a model all that a server has, hidden items included."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from ._context import Context
from ._tool import Tool

_KINDS: Final = ("tools", "prompts", "resources", "resource_templates")
# What a query is searched in; titles and categories are not.
_SEARCHED: Final = ("name", "description", "uri", "uriTemplate")


class Catalog(
    Tool,
    description=(
        "Discover all registered MCP items including hidden tools, prompts, resources, and"
        " resource templates. Returns full definitions (with input schemas) plus a `hidden` flag"
        " per entry; hidden items are callable by name even though they are omitted from"
        " tools/list."
    ),
    inline=True,
):
    """Lists everything that is registered on the server, for models that look for more.

    Register it as `tool(Catalog, hidden=True)` to keep it out of `tools/list` too. It reads what is
    registered: overrides of `list_tools` and the visibility of a session do not change its answer.
    """

    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {
            "type": {
                "type": "string",
                "enum": [*_KINDS, "all"],
                "default": "all",
                "description": "The kind of items to list",
            },
            "query": {
                "type": "string",
                "description": "Text to look for in names, descriptions and URIs",
            },
            "category": {
                "type": "string",
                "description": "Only tools of this category",
            },
            "include_hidden": {
                "type": "boolean",
                "default": True,
                "description": "Whether to list hidden items too",
            },
        },
    }

    def call(self, args: dict[str, Any], ctx: Context) -> Any:
        """List the items that match every filter, by kind.

        Args:
            args: `type`, `query`, `category` and `include_hidden`, all optional.
            ctx: Its server's registry is what is listed.

        Returns:
            For each kind that was asked for the full definitions, each with `hidden` and, if it has
            one, `category`.
        """
        wanted = args.get("type", "all")
        kinds = _KINDS if wanted == "all" else (wanted,)
        return {kind: _entries(ctx.server.registry.entries(kind), args) for kind in kinds}


def _entries(
    found: Iterable[tuple[Mapping[str, Any], bool]], args: Mapping[str, Any]
) -> list[dict[str, Any]]:
    entries = [_entry(definition, hidden=hidden) for definition, hidden in found]
    return [entry for entry in entries if _matches(entry, args)]


def _entry(definition: Mapping[str, Any], *, hidden: bool) -> dict[str, Any]:
    entry = {**definition, "hidden": hidden}
    category = definition.get("_meta", {}).get("category")
    if category is not None:
        entry["category"] = category
    return entry


def _matches(entry: Mapping[str, Any], args: Mapping[str, Any]) -> bool:
    if entry["hidden"] and not args.get("include_hidden", True):
        return False
    # A model fills in "" for what it does not want to say: no filter.
    category = args.get("category", "").lower()
    if category and str(entry.get("category", "")).lower() != category:
        return False
    query = args.get("query", "").lower()
    return any(query in entry[key].lower() for key in _SEARCHED if key in entry)
