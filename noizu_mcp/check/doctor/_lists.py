"""The lists of a server: pages, definitions, names, schemas, and the capabilities declared."""

import re
from collections.abc import Mapping
from typing import Final

from ..._errors import ProtocolError
from ..._util import is_uri
from ..._value import JSON, JSONObject
from ...client import ListBudget
from ...jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND
from ...schema import compile_schema, describe, header_faults
from ...types import (
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolResult,
)
from .._offers import LIMITS, LISTS, MAX_PAGES, OfferedList, read_template, schema_fault
from ..raw import Exchange
from ._checked_conversation import CheckedConversation, check_busy, check_fields

#: Seconds within which another request must be answered while a tool runs.
BUSY_TIMEOUT: Final = 2.0
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_NOWHERE: Final = "noizu-mcp-doctor://nowhere"


async def check_lists(talk: CheckedConversation, capabilities: JSON) -> list[JSONObject]:
    """Check every list of a server.

    Args:
        talk: The conversation.
        capabilities: The capabilities that the server declares.

    Returns:
        The tools.
    """
    declared = capabilities if isinstance(capabilities, dict) else None
    counts, tools = [], list[JSONObject]()
    for each in LISTS:
        # Capabilities that cannot be read are reported separately.
        is_declared = None if declared is None else each.capability in declared
        items = await _check_list(talk, each, is_declared=is_declared)
        if items:
            noun = each.kind if len(items) == 1 else f"{each.kind}s"
            counts.append(f"{len(items)} {noun}")
        if each.key == "tools":
            tools = items
    talk.report.facts.setdefault("lists", ", ".join(counts) or "nothing")
    if "resources" in (declared or ()):
        found = await talk.expect("resources/read", {"uri": _NOWHERE})
        codes = (INVALID_PARAMS,) if talk.stateless else (RESOURCE_NOT_FOUND, INVALID_PARAMS)
        right = found.code in codes or not found.replied
        sent = f"{found.sent} of {_NOWHERE}"
        talk.report.check("unknown-resource", right, sent, found.seen)
    return tools


async def _check_list(
    talk: CheckedConversation, which: OfferedList, *, is_declared: bool | None
) -> list[JSONObject]:
    report = talk.report
    found = await talk.expect(which.method)
    if found.result is None:
        missing = found.code == METHOD_NOT_FOUND
        # Resources may be listed without templates: they have no capability of their own.
        excused = missing and which.kind == "template"
        if found.replied and is_declared:
            report.check("capabilities", excused, found.sent, found.seen)
        return []
    if is_declared is False and not _items_of(found.result, which):
        return []  # allowed, since the feature is not declared
    items = await _read_pages(talk, which, found)
    if items and is_declared is False:
        seen = f"{len(items)} {which.key}, which no capability declares"
        report.check("capabilities", False, found.sent, seen, "warning")
    _check_items(talk, which, items)
    again = await talk.expect(which.method)
    names = [
        [item.get(which.name) for item in _items_of(each.result, which) if _is_object(item)]
        for each in (found, again)
    ]
    right = names[0] == names[1] or not again.replied
    report.check("order", right, found.sent, f"{names[0]}, then {names[1]}")
    if which.key == "tools":
        wrong = await talk.expect(which.method, {"cursor": "noizu-mcp-doctor"})
        right = wrong.code == INVALID_PARAMS or not wrong.replied
        sent = f'{wrong.sent} with the cursor "noizu-mcp-doctor"'
        seen = wrong.seen if wrong.result is None else "a page of the list"
        report.check("cursor", right, sent, seen)
    return [item for item in items if _is_object(item)]


def _is_object(value: JSON) -> bool:
    return isinstance(value, dict)


def _items_of(result: Mapping[str, JSON] | None, which: OfferedList) -> list[JSON]:
    items = (result or {}).get(which.key)
    return items if isinstance(items, list) else []


async def _read_pages(talk: CheckedConversation, which: OfferedList, found: Exchange) -> list[JSON]:
    """Read all pages after the given first one."""
    report, items = talk.report, list[JSON]()
    params: JSONObject = {}
    cursors: set[str] = set()
    budget = ListBudget(which.method, LIMITS)
    for _ in range(MAX_PAGES):
        result = found.result or {}
        if not report.check(
            "pages", found.result is not None, f"{found.sent} {params}", found.seen
        ):
            break
        is_list = isinstance(result.get(which.key), list)
        report.check("list", is_list, found.sent, f"{which.key} is no list: {result}")
        check_fields(talk, found)
        page = _items_of(result, which)
        items += page
        cursor = result.get("nextCursor")
        if cursor is None:
            # It should be missing; null is harmless, since every client treats it as missing.
            seen = '"nextCursor": null; it must be left out'
            report.check("pages", "nextCursor" not in result, found.sent, seen, "note")
            break
        right = isinstance(cursor, str) and cursor not in cursors
        if not report.check("pages", right, found.sent, f"nextCursor: {cursor!r}"):
            break
        try:
            budget.take(result, len(page), is_last=False)
        except ProtocolError as error:
            report.check("pages", False, found.sent, str(error))
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
        found = await talk.ask(which.method, params)
    return items


def _check_items(talk: CheckedConversation, which: OfferedList, items: list[JSON]) -> None:
    report, sent = talk.report, f"{which.method} ({talk.version})"
    names: set[str] = set()
    for item in items:
        try:
            read = which.definition.from_wire(item)
        except ProtocolError as error:
            report.check("list", False, sent, str(error))
            continue
        report.check("list", True, sent, "")
        name = item[which.name]
        report.check("duplicates", name not in names, sent, f"{name} is listed twice")
        names.add(name)
        if isinstance(read, ToolDefinition):
            _check_tool(talk, read, sent)
        elif isinstance(read, ResourceDefinition):
            report.check("uri", is_uri(read.uri), sent, read.uri)
        elif isinstance(read, ResourceTemplateDefinition):
            report.check("uri", read_template(read.uri_template), sent, read.uri_template)


def _check_tool(talk: CheckedConversation, tool: ToolDefinition, sent: str) -> None:
    report, name = talk.report, tool.name
    report.check("tool-name", _TOOL_NAME.fullmatch(name), sent, name)
    seen = f"the tool {name} has no description"
    report.check("description", (tool.description or "").strip(), sent, seen)
    for part, schema in (("inputSchema", tool.input_schema), ("outputSchema", tool.output_schema)):
        if schema is None:
            continue
        # The root of an output schema may have any type since 2026-07-28.
        fault = schema_fault(schema, needs_object=part == "inputSchema" or not talk.stateless)
        report.check("tool-schema", fault is None, sent, f"{part} of {name}: {fault}")
    if talk.stateless:
        faults = [str(each) for each in header_faults(tool.input_schema)]
        seen = f"inputSchema of {name}: {faults}"
        report.check("tool-schema", not faults, sent, seen)


async def check_call(
    talk: CheckedConversation, tools: list[JSONObject], name: str, arguments: JSONObject
) -> None:
    """Call a tool and check its result.

    Args:
        talk: The conversation.
        tools: The tools that the server lists.
        name: The name of the tool.
        arguments: Its arguments.
    """
    report, params = talk.report, {"name": name, "arguments": arguments}
    found = await check_busy(talk, params, min(BUSY_TIMEOUT, talk.patience))
    sent = f"{found.sent} of {name}"
    if not report.check("call", found.result is not None, sent, found.seen):
        return
    result = found.result or {}
    if result.get("resultType", "complete") != "complete":
        return  # it asks for input, or runs as a task
    try:
        read = ToolResult.from_wire(result)
    except ProtocolError as error:
        report.check("call", False, sent, str(error))
        return
    schema = next((tool.get("outputSchema") for tool in tools if tool.get("name") == name), None)
    if schema is None or read.is_error or schema_fault(schema, needs_object=False):
        return
    if "structuredContent" not in result:
        report.check("output", False, sent, "it has no structuredContent")
        return
    violations = compile_schema(schema, trusted=False).violations(result["structuredContent"])
    report.check("output", not violations, sent, "; ".join(describe(violations)))
