"""A 2020-12 schema said in the draft-07 words that fastjsonschema gets right.

References become `#/definitions/rN`, since names are lost in its function names; what stands beside
a reference goes into `allOf`, since it would be ignored; deep subschemas get functions of their
own, since Python nests at most 20 blocks.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ..jsonschema._refs import Refs
from ._regex import translate

# Loops and trials that one function nests at most, at up to three per level of the schema.
_INLINE_DEPTH = 4

_COPIED = frozenset(
    {
        "type",
        "enum",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "uniqueItems",
    }
)
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
)

Schema = dict[str, Any]


def rewrite(schema: Schema | bool) -> Schema:
    """Return a new schema with the same meaning for the code generator.

    Raises:
        PatternRefusedError: A pattern is not served.
    """
    writer = _Writer(schema)
    root = writer.inline(schema, 0)
    document = root if isinstance(root, dict) else {"allOf": [root]}
    definitions: Schema = {}
    while writer.waiting:
        name, target = writer.waiting.pop()
        definitions[name] = writer.inline(target, 0)
    return {**document, "definitions": definitions} if definitions else document


class _Writer:
    def __init__(self, root: Schema | bool) -> None:
        self._refs = Refs(root)
        self._names: dict[int, str] = {}
        self.waiting: list[tuple[str, Any]] = []

    def inline(self, node: Any, depth: int) -> Any:
        """Return a subschema in place, or a reference to it where it is too deep."""
        if isinstance(node, bool):
            return node
        if depth > _INLINE_DEPTH:
            return self._hoist(node)
        out: Schema = {}
        # What the generator would ignore or mix up beside the rest.
        aside: list[Any] = []
        for keyword, value in node.items():
            if keyword in _COPIED:
                out[keyword] = value
            elif keyword in _COUNTS:
                out[keyword] = int(value)
            elif keyword in _WRITERS:
                _WRITERS[keyword](self, node, out, aside, depth + 1)
        if aside:
            out["allOf"] = [*aside, *out.get("allOf", ())]
        return out

    def _hoist(self, target: Any) -> Schema:
        if id(target) not in self._names:
            self._names[id(target)] = f"r{len(self._names)}"
            self.waiting.append((self._names[id(target)], target))
        return {"$ref": f"#/definitions/{self._names[id(target)]}"}

    def target(self, ref: str) -> Any:
        """Return what stands for a reference."""
        target = self._refs.find(ref)[1]
        return target if isinstance(target, bool) else self._hoist(target)


Write = Callable[[_Writer, Mapping[str, Any], Schema, list[Any], int], None]


def _ref(
    writer: _Writer, node: Mapping[str, Any], _out: Schema, aside: list[Any], _depth: int
) -> None:
    aside.append(writer.target(node["$ref"]))


def _const(
    _writer: _Writer, node: Mapping[str, Any], _out: Schema, aside: list[Any], _depth: int
) -> None:
    aside.append({"enum": [node["const"]]})


def _pattern(
    _writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], _depth: int
) -> None:
    out["pattern"] = translate(node["pattern"])


def _required(
    _writer: _Writer, node: Mapping[str, Any], out: Schema, aside: list[Any], _depth: int
) -> None:
    # The generator takes a required property that is not allowed for a mistake; it is only false.
    if "additionalProperties" in node:
        aside.append({"required": node["required"]})
    else:
        out["required"] = node["required"]


def _one(keyword: str) -> Write:
    def write(
        writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], depth: int
    ) -> None:
        out[keyword] = writer.inline(node[keyword], depth)

    return write


def _many(keyword: str) -> Write:
    def write(
        writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], depth: int
    ) -> None:
        out[keyword] = [writer.inline(item, depth) for item in node[keyword]]

    return write


def _properties(
    writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], depth: int
) -> None:
    if node["properties"]:
        out["properties"] = {
            name: writer.inline(item, depth) for name, item in node["properties"].items()
        }


def _patterns(
    writer: _Writer, node: Mapping[str, Any], out: Schema, aside: list[Any], depth: int
) -> None:
    if not node["patternProperties"]:
        return
    named: Schema = {}
    for pattern, item in node["patternProperties"].items():
        source = translate(pattern)
        if source in named:
            # Two ways to write one pattern: both hold.
            aside.append({"patternProperties": {source: writer.inline(item, depth)}})
        else:
            named[source] = writer.inline(item, depth)
    out["patternProperties"] = named


def _additional(
    writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], depth: int
) -> None:
    own = writer.inline(node["additionalProperties"], depth)
    if own not in (True, {}):
        out["additionalProperties"] = own


def _names(
    writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], depth: int
) -> None:
    out["propertyNames"] = writer.inline(node["propertyNames"], depth)


def _items(
    writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], depth: int
) -> None:
    own = writer.inline(node["items"], depth)
    if own not in (True, {}):
        out["additionalItems" if "prefixItems" in node else "items"] = own


def _prefix(
    writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], depth: int
) -> None:
    out["items"] = [writer.inline(item, depth) for item in node["prefixItems"]]


def _contains(
    writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], depth: int
) -> None:
    least = int(node.get("minContains", 1))
    if least or "maxContains" in node:
        out["contains"] = writer.inline(node["contains"], depth)
        out["minContains"] = least
        if "maxContains" in node:
            out["maxContains"] = int(node["maxContains"])


def _if(
    writer: _Writer, node: Mapping[str, Any], out: Schema, _aside: list[Any], depth: int
) -> None:
    # Without a consequence the condition asks nothing.
    for keyword in ("if", "then", "else"):
        if keyword in node and not {"then", "else"}.isdisjoint(node):
            out[keyword] = writer.inline(node[keyword], depth)


def _depends(
    writer: _Writer, node: Mapping[str, Any], _out: Schema, aside: list[Any], depth: int
) -> None:
    aside.append({"dependencies": dict(node["dependentRequired"])})


def _dependent(
    writer: _Writer, node: Mapping[str, Any], _out: Schema, aside: list[Any], depth: int
) -> None:
    own = node["dependentSchemas"].items()
    aside.append({"dependencies": {name: writer.inline(item, depth) for name, item in own}})


_WRITERS: Mapping[str, Write] = {
    "$ref": _ref,
    "const": _const,
    "pattern": _pattern,
    "required": _required,
    "allOf": _many("allOf"),
    "anyOf": _many("anyOf"),
    "oneOf": _many("oneOf"),
    "not": _one("not"),
    "if": _if,
    "properties": _properties,
    "patternProperties": _patterns,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "items": _items,
    "prefixItems": _prefix,
    "contains": _contains,
    "dependentRequired": _depends,
    "dependentSchemas": _dependent,
}
