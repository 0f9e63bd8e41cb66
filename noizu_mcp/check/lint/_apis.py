"""Limits of the APIs of models, from the table that `tools_for` uses, and its reports."""

from collections.abc import Iterator, Sequence

from ..._pointer import pointer
from ...models import PROVIDERS, ProviderName, SchemaLoss, tools_for
from ...schema import Document
from ...types import ToolDefinition
from .._rules import Severity
from ._rules import Finding, find


def check_names(tool: ToolDefinition, apis: Sequence[ProviderName]) -> Iterator[Finding]:
    """Check the names of a tool and of its parameters.

    Args:
        tool: The tool.
        apis: The names of the APIs.
    """
    name = tool.name
    refusing = [
        api
        for api in apis
        if PROVIDERS[api].illegal.search(name) or not 0 < len(name) <= PROVIDERS[api].length
    ]
    if refusing:
        yield find("tool-name", name, "", f"{', '.join(refusing)} cannot take the name")
    for path, node in Document(tool.input_schema).nodes:
        for key in node.get("properties", ()):
            refusing = [api for api in apis if _refuses(api, key)]
            if refusing:
                # Anthropic refuses the request; Gemini only documents the rule.
                severity: Severity = "error" if "anthropic" in refusing else "warning"
                text = f"{', '.join(refusing)} cannot take the name {key!r}"
                place = pointer((*path, "properties", key))
                yield find("parameter-name", name, place, text, severity)


def _refuses(api: ProviderName, key: str) -> bool:
    illegal = PROVIDERS[api].illegal_key
    return illegal is not None and bool(illegal.search(key) or not 0 < len(key) <= 64)


def check_count(number: int, apis: Sequence[ProviderName]) -> Iterator[Finding]:
    """Check the number of tools.

    Args:
        number: Tools of the server.
        apis: The names of the APIs.
    """
    for api in apis:
        most = PROVIDERS[api].tools
        if most is not None and number > most:
            text = f"{number} tools; {api} takes at most {most} in one request"
            yield find("tool-count", "", "", text)


def check_schemas(
    tools: Sequence[ToolDefinition], apis: Sequence[ProviderName]
) -> Iterator[Finding]:
    """Find parts of input schemas that the APIs do not support.

    Args:
        tools: Tools with valid schemas and different names.
        apis: The names of the APIs.

    Yields:
        One finding for each tool, reason and set of APIs, with the keywords and the first place.
    """
    modes: dict[SchemaLoss, list[str]] = {}
    for api in apis:
        able = list(tools)
        for tool in tools:
            for loss in tools_for(api, [tool]).report:
                modes.setdefault(loss, []).append(api)
            if PROVIDERS[api].strict is None:
                continue
            for loss in tools_for(api, [tool], strict=True).report:
                found = modes.setdefault(loss, [])
                # A loss in every mode of the API is reported once.
                found += [] if api in found else [f"{api} strict"]
                if loss.effect == "not strict":
                    able.remove(tool)
        if PROVIDERS[api].strict is not None:
            yield from _check_together(able, api)
    groups: dict[tuple[str, str, str, str], list[SchemaLoss]] = {}
    for loss, found in modes.items():
        key = (_rule_of(loss), loss.tool, ", ".join(found), loss.text)
        groups.setdefault(key, []).append(loss)
    for (rule, name, found_in, text), losses in groups.items():
        keywords = ", ".join(dict.fromkeys(loss.keyword for loss in losses if loss.keyword))
        places = dict.fromkeys(loss.path for loss in losses)
        others = len(places) - 1
        more = f" (and at {others} other place{'' if others == 1 else 's'})" if others else ""
        seen = f"{found_in}: {keywords}{': ' if keywords else ''}{text}{more}"
        yield find(rule, name, losses[0].path, seen)


def _rule_of(loss: SchemaLoss) -> str:
    if loss.effect == "not strict":
        return "strict"
    if loss.keyword == "inputSchema":
        return "undescribed-schema"
    alternatives = ("anyOf", "oneOf", "enum", "const", "not", "if", "then", "else")
    if not loss.path and loss.keyword in alternatives:
        return "root-alternatives"
    return "keyword"


def _check_together(tools: Sequence[ToolDefinition], api: ProviderName) -> Iterator[Finding]:
    """Find tools that can be strict alone, but not in one request with the others."""
    report = tools_for(api, tools, strict=True).report
    refused = [loss for loss in report if loss.effect == "not strict"]
    if refused:
        text = (
            f"{len(refused)} of {len(tools)} tools cannot be strict in one request with the others"
        )
        yield find("strict-together", "", "", f"{api}: {text}: {refused[0].text}")
