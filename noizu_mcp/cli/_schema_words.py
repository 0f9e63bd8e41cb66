"""JSON Schemas in words, for people: `whole number from 1 to 50 (10 unless given)`.

A schema comes from a server: parts of an unexpected form are left out, references are followed
to a bounded depth, and long lists of values are cut.
"""

import json
from collections.abc import Iterator
from typing import Final

from .._pointer import unescape
from .._util import is_number, part_of
from .._value import JSON, JSONObject

#: Levels of nested fields, and of references, that are written out.
MAX_DEPTH: Final = 5
#: Values of an `enum` that are named.
MAX_VALUES: Final = 12

_TYPES: Final = {
    "string": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "null": "null",
    "object": "object",
}
#: Types that have a plural.
_COUNTED: Final = ("text", "whole number", "number", "object")
#: Bounds by their keywords: both of them equal, both of them, the lower one, the upper one.
_RANGES: Final = (
    ("minimum", "maximum", "of {}", "from {} to {}", "from {} on", "up to {}"),
    ("exclusiveMinimum", "exclusiveMaximum", "", "above {} and below {}", "above {}", "below {}"),
    (
        *("minLength", "maxLength", "of exactly {} letters", "of {} to {} letters"),
        *("of at least {} letters", "of at most {} letters"),
    ),
    (
        *("minItems", "maxItems", "of exactly {} items", "of {} to {} items"),
        *("of at least {} items", "of at most {} items"),
    ),
)
_OTHERS: Final = {
    "multipleOf": "a multiple of {}",
    "format": "in the format {}",
    "pattern": "matching {}",
}


#: The name of a field, its type, and its description.
SchemaRow = tuple[str, str, str]


def fields_in_words(
    schema: JSON, root: JSON, needed: str = "needed", depth: int = 0
) -> Iterator[SchemaRow]:
    """Describe the properties of an object schema, with nested properties below their parents.

    Args:
        schema: The schema of the object.
        root: The document that references lead into.
        needed: A note for required fields.
        depth: The nesting so far.

    Yields:
        The name, indented by its nesting, the type with its constraints, and the description.
    """
    schema = _resolved(schema, root)
    required = part_of(schema, "required", list)
    for name, field in part_of(schema, "properties", dict).items():
        about = in_words(field, root)
        note = needed if name in required else "optional"
        if isinstance(field, dict) and "default" in field:
            note = f"{shown(field['default'])} unless given"
        text = _text(_resolved(field, root), "description")
        yield f"{'  ' * depth}{name}", f"{about} ({note})", text
        if depth < MAX_DEPTH:
            for inner in _objects(field, root):
                yield from fields_in_words(inner, root, needed, depth + 1)


def _objects(schema: JSON, root: JSON) -> Iterator[JSON]:
    """Find the objects with fields that a schema allows: itself, its items, its branches."""
    schema = _resolved(schema, root)
    if part_of(schema, "properties", dict):
        yield schema
    elif isinstance(schema, dict):
        for part in (schema.get("items"), *_branches(schema)):
            found = _resolved(part, root)
            if part_of(found, "properties", dict):
                yield found


def _branches(schema: JSONObject) -> list[JSON]:
    return part_of(schema, "anyOf", list) + part_of(schema, "oneOf", list)


def in_words(schema: JSON, root: JSON, depth: int = 0) -> str:
    """Describe the values that a schema allows, without the fields of objects.

    Args:
        schema: The schema.
        root: The document that references lead into.
        depth: The nesting so far.
    """
    schema = _resolved(schema, root)
    if schema is False:
        return "nothing"
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return "any value"
    if "const" in schema:
        return shown(schema["const"])
    if values := part_of(schema, "enum", list):
        return _either([shown(value) for value in values])
    if branches := _branches(schema):
        return _either(list(dict.fromkeys(in_words(each, root, depth + 1) for each in branches)))
    named = schema.get("type")
    types = [named] if isinstance(named, str) else part_of(schema, "type", list)
    words = [_of_type(str(each), schema, root, depth) for each in types]
    return " ".join([_either(words) or "any value", *_bounds(schema)])


def _of_type(name: str, schema: JSONObject, root: JSON, depth: int) -> str:
    if name != "array":
        return _TYPES.get(name, name)
    kind = "list of different items" if schema.get("uniqueItems") is True else "list"
    if "items" not in schema:
        return kind
    each = in_words(schema["items"], root, depth + 1)
    return f"{kind} of {each}s" if each in _COUNTED else f"{kind}, each {each}"


def _bounds(schema: JSONObject) -> Iterator[str]:
    for low, high, equal, both, from_, to in _RANGES:
        least, most = schema.get(low), schema.get(high)
        if least is not None and most is not None:
            text = (equal if equal and least == most else both).format(least, most)
        elif least is not None or most is not None:
            text = to.format(most) if least is None else from_.format(least)
        else:
            continue
        # Texts of one letter are common, and "at least 1 letters" is not how people write.
        yield text.replace(" 1 letters", " 1 letter").replace(" 1 items", " 1 item")
    for key, text in _OTHERS.items():
        if key in schema:
            yield text.format(schema[key])


def _either(words: list[str]) -> str:
    if len(words) > MAX_VALUES:
        words = [*words[:MAX_VALUES], f"{len(words) - MAX_VALUES} others"]
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def shown(value: JSON) -> str:
    """Write a value as JSON."""
    return json.dumps(value, ensure_ascii=False)


def _text(schema: JSON, key: str) -> str:
    found = schema.get(key) if isinstance(schema, dict) else None
    return found if isinstance(found, str) else ""


def _resolved(schema: JSON, root: JSON) -> JSON:
    """Follow references within the document; anything else is no reference."""
    for _ in range(MAX_DEPTH):
        ref = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(ref, str) or not ref.startswith("#"):
            return schema
        schema = {**_at(ref, root), **{k: v for k, v in schema.items() if k != "$ref"}}
    return {}


def _at(ref: str, root: JSON) -> JSONObject:
    found: JSON = root
    for part in ref.removeprefix("#").split("/")[1:]:
        key = unescape(part)
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def sample(schema: JSON, root: JSON, name: str, depth: int = 0) -> JSON:
    """Make a value for an example: a value from the schema, or else a word in capitals.

    Args:
        schema: The schema.
        root: The document that references lead into.
        name: The name of the argument, which stands for a text.
        depth: The nesting so far.
    """
    schema = _resolved(schema, root)
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return name.upper()
    named = [*part_of(schema, "examples", list), *part_of(schema, "enum", list)]
    named += [schema[key] for key in ("default", "const") if key in schema]
    branches = _branches(schema)
    if named or branches:
        return named[0] if named else sample(branches[0], root, name, depth + 1)
    kind = schema.get("type")
    if kind == "object":
        return {each: sample(field, root, each, depth + 1) for each, field in needed_fields(schema)}
    if kind == "array":
        return [sample(schema.get("items"), root, name, depth + 1)]
    simple: dict[str, JSON] = {"boolean": True, "integer": _number(schema)}
    simple["number"] = simple["integer"]
    return simple.get(str(kind), name.upper())


def needed_fields(schema: JSON) -> Iterator[tuple[str, JSON]]:
    """Find the required fields of an object schema, with their schemas."""
    required = part_of(schema, "required", list)
    for name, field in part_of(schema, "properties", dict).items():
        if name in required:
            yield name, field


def _number(schema: JSONObject) -> JSON:
    for key, step in (("minimum", 0), ("exclusiveMinimum", 1), ("maximum", 0)):
        bound = schema.get(key)
        if is_number(bound):
            return bound + step
    return 1
