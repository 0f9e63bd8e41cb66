"""`lint`: runs every check, and collects the findings.

The estimate of tokens: a model reads the name, the description and the input schema of a tool as
JSON. Four bytes of UTF-8 count as one token. Tokenizers differ, and most need between 3.5 and 4.5
bytes of such text; the error is small compared to differences between tools.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from ..._errors import McpError
from ..._util import final, json_text
from ..._value import JSONObject, Value
from ...client import Client, Target
from ...jsonrpc import METHOD_NOT_FOUND
from ...models import PROVIDERS, ProviderName
from ...types import ToolDefinition
from .._rules import SEVERITIES, Severity
from .._use_server import use_server
from ._apis import check_count, check_names, check_schemas
from ._rules import (
    LARGE_LIST,
    LARGE_TOOL,
    MANY_TOOLS,
    RULES,
    Finding,
    find,
)
from ._tools import check_tool, check_tools, find_fault

#: Bytes of JSON that count as one token.
_BYTES_PER_TOKEN: Final = 4
#: The APIs whose limits are checked by default: one for each set of limits.
APIS: Final[tuple[ProviderName, ...]] = ("anthropic", "openai", "gemini")


@final
@attrs.frozen(eq=False, repr=False)
class LintReport(Value):
    """The findings about the tools of a server.

    Attributes:
        findings: The findings, the worst first.
        tokens: The estimated tokens of each tool, by its name, in the order of the list.
    """

    findings: tuple[Finding, ...]
    tokens: Mapping[str, int]

    @property
    def total_tokens(self) -> int:
        """The estimated tokens of all tools."""
        return sum(self.tokens.values())

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of a severity and worse.

        Args:
            severity: `error`, `warning` or `note`.

        Raises:
            ValueError: The severity is unknown.
        """
        if severity not in SEVERITIES:
            raise ValueError(f"unknown severity {severity!r}; there are: {', '.join(SEVERITIES)}")
        return tuple(each for each in self.findings if _rank(each.severity) <= _rank(severity))

    def to_json(self) -> JSONObject:
        """Return the report for programs."""
        return {
            "tokens": dict(self.tokens),
            "totalTokens": self.total_tokens,
            "findings": [each.to_json() for each in self.findings],
        }

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "no findings"


def lint(
    target: Target,
    *,
    apis: Sequence[ProviderName] = APIS,
    ignore: Iterable[str] = (),
    **options: Any,
) -> LintReport:
    """Check the tools of a server as models and their APIs see them. No tool is called.

    For plain code. In an async test, pass the tools that a client lists to `lint_tools`.

    Args:
        target: A server, a command, a URL or a file, as for `connect`.
        apis: The APIs whose limits are checked; names for `tools_for`.
        ignore: Names of rules that are not checked, keys of `RULES`.
        options: Options of `connect`, such as `auth=` and `principal=`.

    Raises:
        RuntimeError: It is called in a trio task.
        ValueError: An API or a rule is unknown.
        BaseException: See `connect`.
    """
    return lint_tools(use_server(target, fetch_tools, **options), apis=apis, ignore=ignore)


async def fetch_tools(client: Client) -> Sequence[ToolDefinition]:
    """List the tools of a server; empty if it does not support tools.

    Args:
        client: A client of the server.

    Raises:
        McpError: The server cannot list them.
    """
    try:
        return await client.list_tools()
    except McpError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return ()


def lint_tools(
    tools: Iterable[ToolDefinition],
    *,
    apis: Sequence[ProviderName] = APIS,
    ignore: Iterable[str] = (),
) -> LintReport:
    """Check tools, as listed by `client.list_tools()`.

    Args:
        tools: The tools.
        apis: See `lint`.
        ignore: See `lint`.

    Raises:
        ValueError: An API or a rule is unknown.
    """
    ignored = set(ignore)
    for kind, names, known in (("rule", ignored, RULES), ("API", apis, PROVIDERS)):
        if unknown := [name for name in names if name not in known]:
            raise ValueError(f"unknown {kind} {unknown[0]!r}; there are: {', '.join(known)}")
    listed = list(tools)
    rules = list(RULES)
    found = [each for each in _check(listed, apis) if each.rule not in ignored]
    # Places in a report are in the order of the list.
    found.sort(key=lambda each: (_rank(each.severity), rules.index(each.rule)))
    tokens = {tool.name: estimate_tokens(tool) for tool in listed}
    return LintReport(tuple(found), tokens)


def estimate_tokens(tool: ToolDefinition) -> int:
    """Estimate the tokens that a tool takes of the context of a model.

    Args:
        tool: The tool.

    Returns:
        A quarter of the bytes of its name, description and input schema, as compact JSON in UTF-8.
    """
    shown = {
        "name": tool.name,
        "description": tool.description or "",
        "inputSchema": tool.input_schema,
    }
    size = len(json_text(shown).encode("utf-8", "surrogatepass"))
    return -(-size // _BYTES_PER_TOKEN)


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)


def _check(tools: Sequence[ToolDefinition], apis: Sequence[ProviderName]) -> Iterator[Finding]:
    yield from check_tools(tools)
    yield from check_count(len(tools), apis)
    unique = list({tool.name: tool for tool in tools}.values())
    sound = [tool for tool in unique if find_fault(tool) is None]
    for tool in unique:
        yield from check_tool(tool)
    for tool in sound:
        yield from check_names(tool, apis)
    yield from check_schemas(sound, apis)
    yield from _check_sizes(unique)


def _check_sizes(tools: Sequence[ToolDefinition]) -> Iterator[Finding]:
    total = 0
    for tool in tools:
        size = estimate_tokens(tool)
        total += size
        if size > LARGE_TOOL:
            yield find("tool-size", tool.name, "", f"about {size:,} tokens")
    if total > LARGE_LIST:
        yield find("total-size", "", "", f"about {total:,} tokens")
    if len(tools) > MANY_TOOLS:
        yield find("many-tools", "", "", f"{len(tools)} tools")
