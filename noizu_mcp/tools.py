"""Tools that come with the package, ready to be registered."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ._value import JSONObject
from .components import Context, Tool
from .schema import fields

__all__ = ["Catalog"]

_KINDS: Final = ("tools", "prompts", "resources", "resource_templates")
# The members that a query is searched in; titles and categories are left out.
_SEARCHED: Final = ("name", "description", "uri", "uriTemplate")


class Catalog(
    Tool,
    description=(
        "Discover all registered MCP items including hidden tools, prompts, resources, and"
        " resource templates. Returns full definitions (with input schemas) plus a `hidden` flag"
        " per entry; hidden items are callable by name even though they are omitted from"
        " tools/list."
    ),
):
    """Lists everything that is registered on the server, for models that look for more.

    Register it as `tool(Catalog, hidden=True)` to keep it out of `tools/list` too. It reads what is
    registered and `available` to the caller; an override of `list_tools` does not change its
    answer.
    """

    input: ClassVar = {
        "type": fields.enum(*_KINDS, "all", default="all", description="The kind of items to list"),
        "query": fields.string(description="Text to look for in names, descriptions and URIs"),
        "category": fields.string(description="Only tools of this category"),
        "include_hidden": fields.boolean(
            default=True, description="Whether to list hidden items too"
        ),
    }

    async def call(self, args: Any, ctx: Context) -> object:
        """List the items that match every filter, by kind.

        Args:
            args: `type`, `query`, `category` and `include_hidden`, all optional.
            ctx: The request; the registry of its server is listed.

        Returns:
            For each kind that was asked for the full definitions, each with `hidden` and, if it has
            one, `category`.
        """
        kinds = _KINDS if args.type == "all" else (args.type,)
        for feature in ("tools", "prompts", "resources"):
            await ctx.server.registry.prepare(ctx, feature)
        found = {kind: ctx.server.registry.entries(kind, ctx) for kind in kinds}
        return {
            kind: [entry for entry in map(_entry, entries) if _matches(entry, args)]
            for kind, entries in found.items()
        }


def _entry(item: tuple[Mapping[str, Any], bool]) -> JSONObject:
    definition, hidden = item
    entry = {**definition, "hidden": hidden}
    category = definition.get("_meta", {}).get("category")
    return entry if category is None else {**entry, "category": category}


def _matches(entry: Mapping[str, Any], args: Any) -> bool:
    if entry["hidden"] and not args.include_hidden:
        return False
    # Models fill in "" for a filter that they do not want.
    if args.category and str(entry.get("category", "")).lower() != args.category.lower():
        return False
    query = (args.query or "").lower()
    return any(query in entry[key].lower() for key in _SEARCHED if key in entry)
