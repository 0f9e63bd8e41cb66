"""Names, descriptions and parameters of tools, as a model reads them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeVar

from ..._json_schema import COMBINING
from ..._pointer import pointer
from ..._util import part_of, snake_case
from ..._value import JSON, JSONObject
from ...schema import Document
from ...types import ToolDefinition
from .._offers import schema_fault
from .._rules import Severity
from ._rules import Finding, find

#: References and alternatives that are followed to find a type or a description.
_MAX_DEPTH: Final = 16
#: Names that say nothing by themselves.
_VAGUE: Final = frozenset(
    {
        *("action", "api", "call", "do", "execute", "function", "get", "handle", "helper"),
        *("invoke", "main", "perform", "process", "query", "request", "run", "set", "test"),
        *("tool", "util", "utils", "work"),
    }
)
#: Words that add nothing to a name.
_EMPTY_WORDS: Final = frozenset(
    {
        *("a", "an", "the", "this", "that", "of", "to", "for", "and", "or", "is", "it", "its"),
        *("tool", "function", "parameter", "argument", "value", "field", "used", "use"),
    }
)
_Named = TypeVar("_Named", str, ToolDefinition)
_WORD: Final = re.compile(r"[^\W_]+")


def check_tools(tools: Sequence[ToolDefinition]) -> Iterator[Finding]:
    """Compare the names and the descriptions of tools.

    Args:
        tools: All tools of a server.

    Yields:
        Findings about several tools.
    """
    for same in _groups(tools, lambda tool: tool.name):
        yield find("duplicate-name", same[0].name, "", f"{len(same)} tools have this name")
    unique = list({tool.name: tool for tool in tools}.values())
    for group in _groups(unique, lambda tool: _folded(tool.name)):
        names = ", ".join(tool.name for tool in group)
        text = f"{names} differ in case, separators or plural only"
        yield find("similar-names", group[-1].name, "", text)
    for group in _groups(unique, lambda tool: _plain(tool.description)):
        names = ", ".join(tool.name for tool in group)
        yield find("description-duplicate", group[-1].name, "", f"{names} have one description")


def check_tool(tool: ToolDefinition) -> Iterator[Finding]:
    """Check one tool.

    Args:
        tool: The tool.

    Yields:
        Its findings. If its schema is not valid, nothing about its parameters.
    """
    name, description = tool.name, tool.description
    if not _plain(description):
        yield find("description-missing", name, "", "it has no description")
    elif _repeats(description or "", f"{name} {tool.title or ''}"):
        text = f"the description is {description!r}"
        yield find("description-repeats-name", name, "", text)
    if name.lower() in _VAGUE:
        yield find("vague-name", name, "", "the name says nothing about what it does")
    fault = find_fault(tool)
    if fault is not None:
        yield find("tool-schema", name, "", fault)
        return
    document = Document(tool.input_schema)
    parameters = _Parameters(document)
    for path, node in document.nodes:
        # One name, or a list of names.
        if "array" in node.get("type", ()) and "items" not in node:
            yield find("array-items", name, pointer(path), "a list without `items`")
        yield from _check_parameters(name, path, node, parameters)


def find_fault(tool: ToolDefinition) -> str | None:
    """Describe the fault of the input schema of a tool; None if it is valid."""
    return schema_fault(tool.input_schema, needs_object=True)


def _check_parameters(
    tool: str, path: tuple[str | int, ...], node: JSONObject, parameters: "_Parameters"
) -> Iterator[Finding]:
    """Check the properties of one object of a schema."""
    # Objects inside of arguments matter less: a model sees them in context.
    severity: Severity | None = "note" if path else None
    properties = part_of(node, "properties", dict)
    texts: dict[str, str | None] = {}
    for name, schema in properties.items():
        place = pointer((*path, "properties", name))
        texts[name] = description = parameters.description_of(schema)
        if not _plain(description):
            text = f"{name} has no description"
            # Descriptions of its members are enough.
            known: Severity | None = "note" if parameters.describes_members(schema) else severity
            yield find("parameter-description", tool, place, text, known)
        elif _repeats(description or "", name):
            text = f"the description is {description!r}"
            yield find("description-repeats-name", tool, place, text)
        if not parameters.is_typed(schema):
            yield find("parameter-type", tool, place, f"{name} has no type", severity)
    for group in _groups(properties, _folded):
        text = f"{', '.join(group)} differ in case, separators or plural only"
        place = pointer((*path, "properties", group[-1]))
        yield find("similar-names", tool, place, text, severity)
    for group in _groups(properties, lambda name: _plain(texts[name])):
        place = pointer((*path, "properties", group[-1]))
        text = f"{', '.join(group)} have one description"
        yield find("description-duplicate", tool, place, text, severity)


def _groups(items: Iterable[_Named], key: Callable[[_Named], str]) -> Iterator[list[_Named]]:
    """Group items with equal keys; items with an empty key are left out."""
    groups: dict[str, list[_Named]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    groups.pop("", None)
    return (group for group in groups.values() if len(group) > 1)


def _plain(text: str | None) -> str:
    """Fold case and white space."""
    return " ".join((text or "").casefold().split())


def _words(text: str) -> list[str]:
    return _WORD.findall(snake_case(text))


def _folded(name: str) -> str:
    """Fold case, separators and plurals: `listUsers` and `list_user` are the same."""
    return "".join(
        word[:-1] if len(word) > 3 and word[-1] == "s" else word for word in _words(name)
    )


def _repeats(text: str, name: str) -> bool:
    """Tell whether a description has no words except words of the name."""
    return set(_words(text)) <= {*_words(name), *_EMPTY_WORDS}


class _Parameters:
    """Reads the parameters of one schema, through references and alternatives.

    Each schema object is read once: a peer could send a schema that branches endlessly.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._typed: dict[int, bool] = {}
        self._texts: dict[int, str | None] = {}
        self._members: dict[int, bool] = {}

    def description_of(self, schema: JSON, depth: int = _MAX_DEPTH) -> str | None:
        """Return the description of a schema, or else of a part of it."""
        if not isinstance(schema, dict) or not depth:
            return None
        own = schema.get("description")
        if isinstance(own, str) and own.strip():
            return own
        if id(schema) not in self._texts:
            self._texts[id(schema)] = None
            found = (self.description_of(each, depth - 1) for each in self._parts(schema))
            self._texts[id(schema)] = next(filter(None, found), None)
        return self._texts[id(schema)]

    def describes_members(self, schema: JSON, depth: int = _MAX_DEPTH) -> bool:
        """Tell whether an object describes all its members, or a list its items."""
        if not isinstance(schema, dict) or not depth:
            return False
        if id(schema) not in self._members:
            self._members[id(schema)] = False
            named, items = part_of(schema, "properties", dict), schema.get("items")
            self._members[id(schema)] = (
                (bool(named) and all(map(self.description_of, named.values())))
                or self.description_of(items) is not None
                or any(
                    self.describes_members(each, depth - 1)
                    for each in (items, *self._parts(schema))
                )
            )
        return self._members[id(schema)]

    def _parts(self, schema: JSONObject) -> list[JSON]:
        """Return the schemas that apply to the same value together with a schema."""
        joined = (part_of(schema, keyword, list) for keyword in COMBINING)
        return [self._target(schema), *chain.from_iterable(joined)]

    def is_typed(self, schema: JSON, depth: int = _MAX_DEPTH) -> bool:
        """Tell whether a schema names the types of its values; False allows none."""
        if not isinstance(schema, dict) or not depth:
            return schema is False
        if id(schema) not in self._typed:
            self._typed[id(schema)] = False
            self._typed[id(schema)] = self._names_type(schema, depth)
        return self._typed[id(schema)]

    def _names_type(self, schema: JSONObject, depth: int) -> bool:
        if not schema.keys().isdisjoint(("type", "enum", "const")):
            return True
        if self.is_typed(self._target(schema), depth - 1):
            return True
        for keyword in COMBINING:
            typed = [self.is_typed(each, depth - 1) for each in part_of(schema, keyword, list)]
            if typed and (any(typed) if keyword == "allOf" else all(typed)):
                return True
        return False

    def _target(self, schema: JSONObject) -> JSON:
        """Follow a reference; None if it is missing or not followed."""
        ref = schema.get("$ref")
        try:
            return self._document.find(ref, schema) if isinstance(ref, str) else None
        except LookupError:  # a metaschema of the standard
            return None
