"""The rules of `lint`: the severity of each, and how to fix it."""

from typing import Final

import attrs

from ..._util import final
from ..._value import JSONObject, Value
from .._rules import Rule, Severity

#: Maximum estimated tokens of one tool: about a page of text in every request.
LARGE_TOOL: Final = 1_000
#: Maximum estimated tokens of all tools together.
LARGE_LIST: Final = 10_000
#: Maximum tools of one server.
MANY_TOOLS: Final = 50


_ANTHROPIC: Final = "Anthropic, Define tools"
_OPENAI: Final = "OpenAI, Function calling, Best practices"

#: Every rule by its name, in the order of a report.
RULES: Final = {
    "duplicate-name": Rule("error", "give each tool a name of its own", "MCP, server/tools"),
    "tool-schema": Rule(
        "error",
        "make the schema valid JSON Schema, with an object at its root",
        "MCP, server/tools, Data Types",
    ),
    "array-items": Rule(
        "error",
        "add `items` to the list: hosts refuse the tool without it, and some APIs the whole "
        "request",
        "OpenAI API, invalid_function_parameters; VS Code, validation of tools",
    ),
    "parameter-name": Rule(
        "error",
        "rename the parameter: 1 to 64 of A-Z, a-z, 0-9 and _, with a letter or _ first, are taken "
        "everywhere",
        f"{_ANTHROPIC}; Vertex AI, FunctionDeclaration",
    ),
    "tool-count": Rule(
        "error",
        "list fewer tools, or hide some behind `noizu_mcp.tools.Catalog`",
        "OpenAI API, Chat Completions, `tools`",
    ),
    "tool-name": Rule(
        "warning",
        "rename the tool: 1 to 64 of A-Z, a-z, 0-9, _ and -, with a letter or _ first, are taken "
        "everywhere; hosts change other names, or leave the tool out",
        f"{_ANTHROPIC}; OpenAI API, `function.name`; Gemini API, FunctionDeclaration",
    ),
    "description-missing": Rule(
        "warning",
        "say what the tool does, and when to call it: a model chooses by nothing else",
        _ANTHROPIC,
    ),
    "description-duplicate": Rule(
        "warning", "say how they differ: the model cannot tell them apart", _ANTHROPIC
    ),
    "similar-names": Rule(
        "warning",
        "rename one of them, by what it does: a model mixes up names that differ so little",
        _OPENAI,
    ),
    "parameter-description": Rule(
        "warning",
        "describe the parameter: its meaning, its format and an example",
        f"{_ANTHROPIC}; {_OPENAI}",
    ),
    "parameter-type": Rule(
        "warning",
        "declare the type: models guess one, and strict modes take no other schema",
        f"{_OPENAI}; Gemini API, Schema",
    ),
    "root-alternatives": Rule(
        "warning",
        "make one object with optional properties, or one tool for each alternative",
        "Anthropic, OpenAI and Gemini APIs: the root of a schema is an object",
    ),
    "undescribed-schema": Rule(
        "warning",
        "make the schema smaller: `tools_for` gives the model an object without properties",
        "limits of `noizu_mcp.models.tools_for`",
    ),
    "total-size": Rule(
        "warning",
        "shorten descriptions and schemas, or hide tools behind `noizu_mcp.tools.Catalog`: every "
        "request carries the whole list",
        "Anthropic, Tool search: 10,000 tokens of definitions are when to search instead",
    ),
    "many-tools": Rule(
        "note",
        "offer fewer tools, or hide some behind `noizu_mcp.tools.Catalog`: models choose worse "
        "among more than 30 to 50",
        "Anthropic, Tool search",
    ),
    "tool-size": Rule(
        "note", "shorten its description and its schema: every request carries them", _ANTHROPIC
    ),
    "description-repeats-name": Rule(
        "note", "say more than the name does, or leave it out", _ANTHROPIC
    ),
    "vague-name": Rule("note", "name the tool by what it does, and to what", _OPENAI),
    "keyword": Rule(
        "note",
        "nothing, if the description says it too; the server checks it all the same",
        "OpenAI and Anthropic, Structured outputs; Gemini API, Schema",
    ),
    "strict": Rule(
        "note",
        "nothing, if no client asks for strict mode; or else list the members of objects and of "
        "lists, each with a type, in a schema that keeps to the limit",
        "OpenAI and Anthropic, Structured outputs",
    ),
    "strict-together": Rule(
        "note",
        "nothing, if no client asks for strict mode; or else make optional parameters required, "
        "and unions plain types",
        "OpenAI and Anthropic, Structured outputs",
    ),
}  # fmt: skip


@final
@attrs.frozen(eq=False, repr=False)
class Finding(Value):
    """A place that breaks a rule.

    Attributes:
        rule: The name of the rule, a key of `RULES`.
        tool: The name of the tool; empty if it concerns the whole list.
        path: The place in its input schema, a JSON pointer; empty for the tool itself.
        text: A description.
        severity: Its severity; usually that of the rule.
    """

    rule: str
    tool: str
    path: str
    text: str
    severity: Severity

    @property
    def fix(self) -> str:
        """The advice: the change that fixes it."""
        return RULES[self.rule].remedy

    @property
    def place(self) -> str:
        """The tool and the path, for people."""
        return f"{self.tool} {self.path}".strip() or "all tools"

    def to_json(self) -> JSONObject:
        """Return the finding for programs."""
        return {
            "severity": self.severity,
            "rule": self.rule,
            "tool": self.tool,
            "path": self.path,
            "seen": self.text,
            "do": self.fix,
            "source": RULES[self.rule].source,
        }

    def __str__(self) -> str:
        return f"{self.severity}: {self.place}: {self.text} ({self.rule}); {self.fix}"


def find(rule: str, tool: str, path: str, text: str, severity: Severity | None = None) -> Finding:
    """Make a finding.

    Args:
        rule: The name of the rule.
        tool: The name of the tool, or "".
        path: The place in its input schema.
        text: A description.
        severity: The severity; by default that of the rule.
    """
    return Finding(rule, tool, path, text, severity or RULES[rule].severity)
