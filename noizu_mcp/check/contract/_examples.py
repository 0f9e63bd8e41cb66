"""Small values that a schema may allow, the simplest first.

They are guesses, which an engine validates. Keywords that are not read here, such as `not`, make
them less likely to be valid.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from ..._errors import SchemaUnsupported
from ..._json_schema import BOUNDS, COMBINING
from ..._util import part_of
from ..._value import JSON, JSONObject
from ...schema import Document, compile_schema

#: Levels of references, alternatives and nesting.
_MAX_DEPTH: Final = 8
#: Maximum number of schemas that are read; a schema may branch at each level.
_MAX_STEPS: Final = 20_000
#: Maximum number of values for one part of a value.
_MAX_PARTS: Final = 60
#: Characters of a text, and items of a list, that are made to reach a bound.
_MAX_SIZE: Final = 10_000
_LARGEST: Final = 10**300
_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
#: Texts in common formats, for patterns that ask for one.
_TEXTS: Final = (
    *("a", "A", "0", "a0", "a-b", "a_b", "a b", "a.b", "é", "01", "1.0", "2026-01-31"),
    *("12:30", "2026-01-31T12:30:00Z", "a@b.example", "https://a.example/b", "/a/b", "#000000"),
    *("00000000-0000-4000-8000-000000000000", "en", "en-US", "EUR", "127.0.0.1", ""),
)
#: A pattern that matches one text only, perhaps with groups.
_LITERAL: Final = re.compile(r"\^?((?:[\w /:@#%&=,;~-]|\\[.$^*+?(){}|\[\]/\\-])*)\$?")
#: Keywords that apply to numbers and texts only.
_SCALAR: Final = frozenset(
    {
        *(*BOUNDS, "multipleOf"),
        *("minLength", "maxLength", "pattern"),
    }
)


def instances(schema: JSON) -> Iterator[JSON]:
    """Make values that a schema may allow.

    Args:
        schema: The schema, a valid one.

    Yields:
        New values; finitely many, but there may be very many.
    """
    return _Maker(Document(schema)).values(schema, _MAX_DEPTH)


class _Maker:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._left = _MAX_STEPS

    def values(self, schema: JSON, depth: int) -> Iterator[JSON]:
        self._left -= 1
        if schema is False or not depth or self._left < 0:
            return
        if not isinstance(schema, dict):
            schema = {}
        if "const" in schema:
            yield schema["const"]
            return
        if "enum" in schema:
            yield from schema["enum"]
            return
        if joined := self._joined(schema):
            for part in joined:
                yield from islice(self.values(part, depth - 1), _MAX_PARTS)
            return
        yield from part_of(schema, "examples", list)
        declared = schema.get("type", _TYPES)
        for kind in (declared,) if isinstance(declared, str) else declared:
            yield from islice(self._of_type(kind, schema, depth), _MAX_PARTS * depth)

    def _joined(self, schema: JSONObject) -> list[JSONObject]:
        """Merge each of the schemas for the same value into a schema, one at a time."""
        if isinstance(ref := schema.get("$ref"), str):
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            try:
                return [_merge(self._document.find(ref, schema), rest)]
            except LookupError:  # a metaschema of the standard
                return [rest]
        for keyword in COMBINING:
            if parts := schema.get(keyword):
                rest = {key: value for key, value in schema.items() if key != keyword}
                if keyword != "allOf":
                    return [_merge(part, rest) for part in parts]
                for part in parts:
                    rest = _merge(part, rest)
                return [rest]
        return []

    def _of_type(self, kind: str, schema: JSONObject, depth: int) -> Iterator[JSON]:
        if kind == "null":
            yield None
        elif kind == "boolean":
            yield from (False, True)
        elif kind in ("integer", "number"):
            yield from _allowed(schema, _numbers(kind, schema))
        elif kind == "string":
            yield from _allowed(schema, _texts(schema))
        elif kind == "array":
            yield from self._lists(schema, depth)
        else:
            yield from self._objects(schema, depth)

    def _lists(self, schema: JSONObject, depth: int) -> Iterator[JSON]:
        prefix = part_of(schema, "prefixItems", list)
        least = min(int(schema.get("minItems", 0)), _MAX_SIZE)
        most = min(int(schema.get("maxItems", least + 2)), _MAX_SIZE)
        rest = schema.get("items", schema.get("contains", True))
        each = [
            list(islice(self.values(part, depth - 1), _MAX_PARTS))
            for part in (*prefix, *([rest] * (2 if len(prefix) <= most else 0)))
        ]
        for size in dict.fromkeys((least, len(prefix), least + 1, most)):
            places = [each[min(at, len(each) - 1)] if each else [] for at in range(size)]
            if all(places):
                # Different items if there are any, and equal ones.
                yield [found[at % len(found)] for at, found in enumerate(places)]
                yield [found[0] for found in places]
                for value in places[-1] if places else ():
                    yield [*(found[0] for found in places[:-1]), value]

    def _objects(self, schema: JSONObject, depth: int) -> Iterator[JSON]:
        other = schema.get("additionalProperties", True)
        members = {**dict(_unnamed(schema)), **part_of(schema, "properties", dict)}
        values = {
            name: list(islice(self.values(members.get(name, other), depth - 1), _MAX_PARTS))
            for name in dict.fromkeys((*part_of(schema, "required", list), *members))
        }
        needed = part_of(schema, "required", list)
        if not all(values[name] for name in needed):
            return
        least = {name: values[name][0] for name in needed}
        yield least
        # One member at a time: a value with one fault is the most informative.
        for name, found in values.items():
            yield from ({**least, name: value} for value in found)
        yield {**least, **{name: found[0] for name, found in values.items() if found}}


def _allowed(schema: JSONObject, values: Iterable[JSON]) -> Iterable[JSON]:
    """Leave out numbers and texts that their own schema refuses.

    An object is made from the first values of its members, which must all be valid.
    """
    judging = {key: schema[key] for key in _SCALAR & schema.keys()}
    if not judging:
        return values
    try:
        return filter(compile_schema(judging).is_valid, values)
    except SchemaUnsupported:  # a pattern that the Python engine does not support
        return values


def _merge(part: JSON, rest: JSONObject) -> JSONObject:
    """Merge two schemas for one value; for keywords in both, the one of `part` is used."""
    if not isinstance(part, dict):
        return rest
    found = {**rest, **part}
    for key in ("properties", "$defs"):
        if key in part and key in rest:
            found[key] = {**rest[key], **part[key]}
    if "required" in part and "required" in rest:
        found["required"] = list(dict.fromkeys((*rest["required"], *part["required"])))
    return found


def _unnamed(schema: JSONObject) -> Iterator[tuple[str, JSON]]:
    """Yield members that a schema allows without naming them, with their schemas."""
    other = schema.get("additionalProperties", True)
    names = schema.get("propertyNames")
    if isinstance(names, dict):
        for name in (*part_of(names, "enum", list), names.get("const")):
            if isinstance(name, str):
                yield name, other
    for pattern, own in part_of(schema, "patternProperties", dict).items():
        yield from ((text, own) for text in _literals(pattern))
    yield "other", other


def _numbers(kind: str, schema: JSONObject) -> Iterator[JSON]:
    step = schema.get("multipleOf", 1)
    limits = [schema[key] for key in BOUNDS if key in schema]
    # Larger integers and fractions cannot be added.
    bounds = [each for each in limits if abs(each) < _LARGEST]
    near: list[JSON] = [0, 1, -1, step, -step, *limits]
    for bound in bounds:
        near += (bound + step, bound - step, bound + 1, bound - 1)
        near += (bound // step * step, bound // step * step + step)
    whole = [int(each) for each in near if each == int(each)]
    yield from dict.fromkeys(whole)
    if kind == "number":
        yield from dict.fromkeys(each for each in (*near, 0.5) if each != int(each))
        yield from (bound + half for bound in bounds for half in (0.5, -0.5))


def _texts(schema: JSONObject) -> Iterator[JSON]:
    least = min(int(schema.get("minLength", 0)), _MAX_SIZE)
    most = min(int(schema.get("maxLength", least + 1)), _MAX_SIZE)
    if "pattern" in schema:
        yield from _literals(schema["pattern"])
    for size in dict.fromkeys((least, least + 1, most)):
        yield "a" * size
    for text in _TEXTS:
        yield text
        yield from _filled(text, least)


def _filled(text: str, least: int) -> Iterable[str]:
    """Lengthen a text that is too short."""
    if text and len(text) < least:
        yield (text * least)[:least]


def _literals(pattern: str) -> Iterator[str]:
    """Yield the text that a pattern matches, if it matches one text only."""
    found = _LITERAL.match(pattern)
    if found is not None and found[1]:
        text = re.sub(r"\\(.)", r"\1", found[1])
        yield text
        yield f"{text}a"
