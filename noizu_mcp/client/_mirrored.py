"""Which arguments of a tool travel in HTTP headers as well: its schema says so.

Source: 2026-07-28 `server/tools`, "x-mcp-header".
"""

from collections.abc import Mapping, MutableMapping
from typing import Any

from ..engine import logger
from ..schema import header_faults, header_paths

Mirrored = MutableMapping[str, Mapping[str, tuple[str, ...]]]


def note_headers(page: Mapping[str, Any], mirrored: Mirrored) -> dict[str, Any]:
    """Note the headers of the tools on one page of `tools/list`.

    Args:
        page: The result.
        mirrored: Where they are noted, by tool.

    Returns:
        The result without the tools that a client must leave out: nobody could call them.
    """
    tools = page.get("tools")
    if not isinstance(tools, list):
        return dict(page)
    return {**page, "tools": [tool for tool in tools if _may_stay(tool, mirrored)]}


def _may_stay(tool: Any, mirrored: Mirrored) -> bool:
    schema = tool.get("inputSchema") if isinstance(tool, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(tool.get("name"), str):
        return True  # whoever reads the definitions says what is wrong with it
    fault = next(header_faults(schema), None)
    if fault is None:
        mirrored[tool["name"]] = header_paths(schema)
    else:
        logger.warning("left out the tool %r: %s", tool["name"], fault.text)
    return fault is None
