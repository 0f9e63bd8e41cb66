"""Comparison of two versions of a schema: whether the new one keeps the promise of the old one.

Theory of operation. The input of a tool must accept all arguments that it accepted before; its
output must not allow results that it did not allow before. Both compare two schemas: does the
*taker* accept every value that the *giver* allows? For an input the giver is the old schema, for an
output the new one.

jsonschema-rs can prove it, and `_proof` for recursive schemas. Otherwise a counterexample is
searched, a value that the giver allows and the taker refuses: first among small values, then with
Hypothesis, if it is installed. Both schemas are validated by the engine that validates calls, so a
counterexample is always right. A change with neither a proof nor a counterexample counts as
breaking.

A schema that names properties, and does not mention others, allows any others. A new optional
property would break every such schema, since it restricts one of these others. So the giver is
closed first, except for one property that neither schema mentions: it represents all others, and
shows whether they are refused now.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import chain, count, islice
from typing import Any, Final, Literal, NamedTuple

from ..._errors import SchemaError, SchemaUnsupported
from ..._json_schema import CLOSING
from ..._pointer import pointer
from ..._util import UNSET, Unset, part_of
from ..._value import JSON, JSONObject
from ...schema import Document, compile_schema, describe, subschemas
from ...testing import Unsatisfiable, from_schema
from ._examples import instances
from ._proof import ANNOTATIONS, DEFINITIONS, is_taken, judging, text_of

SchemaUse = Literal["input", "output"]

#: The place of a property as a JSON pointer.
_PROPERTY: Final = re.compile(r"/properties/[^/]*\Z")
#: Maximum number of values that are tried as examples.
_MAX_TRIED: Final = 2_000
#: Number of examples from which the shortest is shown.
_MAX_COMPARED: Final = 50
#: Maximum number of values that Hypothesis draws.
_MAX_DRAWN: Final = 500

#: Keywords whose subschemas apply to the same value.
_IN_PLACE: Final = frozenset(
    {
        *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
        "dependentSchemas",
    }
)
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})
#: The ones of which a single subschema may decide.
_EITHER: Final = frozenset({"anyOf", "oneOf"})
#: Keywords whose subschemas apply to other values, one at a time.
_PARTS: Final = frozenset(
    {"properties", "patternProperties", "additionalProperties", "items", "prefixItems"}
)


class Difference(NamedTuple):
    """The difference between two versions of a schema.

    Attributes:
        text: A description of the change; empty if both versions accept the same values.
        is_breaking: True if the new version breaks the promise of the old one.
        example: A value that shows it, or `UNSET`.
        reasons: One line for each rule that the example breaks.
        added: The places of new properties, as JSON pointers.
        removed: The places of removed properties.
        annotations: The annotations that differ: place, old and new value; None if missing.
    """

    text: str = ""
    is_breaking: bool = False
    example: JSON | Unset = UNSET
    reasons: Sequence[str] = ()
    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    annotations: Sequence[tuple[str, JSON, JSON]] = ()


_NARROWED: Final = {
    "input": "it refuses arguments that it took",
    "output": "it may give results that it could not give",
}
_UNPROVED: Final = {
    "input": "there is no proof that it takes all arguments that it took, and no example",
    "output": "there is no proof that its results fit the old schema, and no example",
}
_WIDENED: Final = {
    "input": "it takes all arguments that it took, and others",
    "output": "it promises more about its results",
}


def compare_schemas(direction: SchemaUse, old: JSONObject, new: JSONObject) -> Difference:
    """Compare two versions of a schema.

    Args:
        direction: `input` for a schema of arguments, `output` for a schema of results.
        old: The older version.
        new: The newer one.
    """
    before, after = _nodes(old), _nodes(new)
    found = Difference(
        added=_outermost(place for place in after if place not in before),
        removed=_outermost(place for place in before if place not in after),
        annotations=list(_annotations(before, after)),
    )
    if text_of(_bare(old)) == text_of(_bare(new)):
        return found
    for schema, which in ((old, "old"), (new, "new")):
        try:
            compile_schema(schema)
        except SchemaError as error:
            text = f"the {which} schema cannot be used: {error}"
            return found._replace(text=text, is_breaking=which == "new")
    is_input = direction == "input"
    taker, giver = (new, old) if is_input else (old, new)
    other = _new_name(old, new)
    closed = close(giver, other, is_input=is_input)
    if _is_proved(taker, closed):
        is_same = _is_proved(closed, close(taker, other, is_input=is_input))
        return found._replace(text="" if is_same else _WIDENED[direction])
    example, reasons = _refute(taker, closed)
    text = (_UNPROVED if example is UNSET else _NARROWED)[direction]
    return found._replace(text=text, is_breaking=True, example=example, reasons=reasons)


def _bare(schema: JSON) -> JSON:
    """Leave out the annotations of a schema."""
    unread = {*ANNOTATIONS, "$comment"}
    return _copy(schema, lambda node: {k: v for k, v in node.items() if k not in unread})


def _outermost(places: Iterable[str]) -> list[str]:
    """Keep the places that are not inside another one of them."""
    found: list[str] = []
    for place in places:  # parents first
        if _PROPERTY.search(place) and not place.startswith(tuple(f"{each}/" for each in found)):
            found.append(place)
    return found


def _annotations(
    before: Mapping[str, JSONObject], after: Mapping[str, JSONObject]
) -> Iterator[tuple[str, JSON, JSON]]:
    """Compare the annotations at places that both schemas have."""
    for place, node in after.items():
        for key in sorted(ANNOTATIONS) if place in before else ():
            values = before[place].get(key), node.get(key)
            if text_of(values[0]) != text_of(values[1]):
                yield f"{place}/{key}", *values


def _nodes(schema: JSONObject) -> dict[str, JSONObject]:
    """Return the schema objects in a schema by their JSON pointers (RFC 6901)."""
    return {pointer(path): node for path, node in Document(schema).nodes}


def _copy(schema: JSON, change: Callable[[JSONObject], JSONObject]) -> JSON:
    """Copy a schema, and change every schema object in it, inner ones first."""
    if not isinstance(schema, dict):
        return schema
    new = {key: copy(value) for key, value in schema.items()}
    for path, child in subschemas(schema):
        holder = new if len(path) == 1 else new[path[0]]
        holder[path[-1]] = _copy(child, change)
    return change(new)


def _new_name(*schemas: JSONObject) -> str:
    """Choose the name of a property that no schema mentions."""
    texts = "".join(map(text_of, schemas))
    names = chain(["other"], map("other{}".format, count(2)))
    return next(name for name in names if name not in texts)


def close(schema: JSONObject, other: str = "", *, is_input: bool = False) -> JSONObject:
    """Exclude the properties that a schema does not mention.

    Args:
        schema: The schema; it is not changed.
        other: The name of a property that stays allowed, with any value; empty for none.
        is_input: True for a schema of arguments, which names all of them if any.

    Returns:
        A schema that refuses other properties in every object for which the schema names some.
        Explicit rules for other properties are kept.
    """
    plain = _copy(schema, _unwrapped)
    if _is_old(schema):
        plain = _copy(plain, _without_neighbours)
    if is_input and not plain.keys() & {*_IN_PLACE, "properties"}:
        plain = {**plain, "properties": {}}
    closed: JSONObject = _close(plain, _Closing(plain, other))
    return closed


def _is_old(schema: JSONObject) -> bool:
    """Tell whether a schema is of draft 7 or older, which have no `unevaluatedProperties`."""
    return "/draft-0" in Document(schema).dialect


def _without_neighbours(node: JSONObject) -> JSONObject:
    """Remove keywords beside a reference, which are ignored up to draft 7 (core section 8.3)."""
    if "$ref" not in node:
        return node
    return {key: value for key, value in node.items() if key == "$ref" or key not in judging(node)}


def _unwrapped(node: JSONObject) -> JSONObject:
    """Replace `{"allOf": [schema]}`, which some libraries put around a reference, by the schema."""
    parts = part_of(node, "allOf", list)
    if judging(node) == {"allOf"} and len(parts) == 1 and isinstance(parts[0], dict):
        return {**parts[0], **{key: value for key, value in node.items() if key != "allOf"}}
    return node


class _Closing:
    """Facts about a schema that is being closed.

    Attributes:
        is_old: True up to draft 7.
        other: The name of a property that every object keeps; empty for none.
        shared: The definitions that apply together with other schemas, by `id`.
    """

    def __init__(self, schema: JSONObject, other: str) -> None:
        self.is_old = _is_old(schema)
        self.other = other
        self._document = Document(schema)
        self.shared = set(self._find_shared(schema))

    def _find_shared(self, schema: JSONObject) -> Iterator[int]:
        waiting: list[tuple[JSON, bool]] = [(schema, True)]
        while waiting:
            node, alone = waiting.pop()
            if isinstance(node, dict):
                for keyword in _REFERENCES & node.keys():
                    # A reference to a standard metaschema leads to no definition.
                    if not alone or judging(node) != {keyword}:
                        with suppress(LookupError):
                            yield id(self._document.target(keyword, node, ()))
                waiting += [
                    (child, path[0] in DEFINITIONS or (alone and _judges_alone(path[0], node)))
                    for path, child in subschemas(node)
                ]

    def named(self, node: JSONObject) -> dict[str, JSONObject]:
        """Return the properties that a schema and its in-place subschemas name, with any value.

        Returns:
            `properties` and `patternProperties` for the schema.

        Raises:
            LookupError: A reference leads to a standard metaschema.
        """
        found: dict[str, JSONObject] = {"properties": {}, "patternProperties": {}}
        waiting: list[JSON] = [node]
        seen = set()
        while waiting:
            part = waiting.pop()
            if not isinstance(part, dict) or id(part) in seen:
                continue
            seen.add(id(part))
            for keyword, names in found.items():
                names.update((name, {}) for name in part_of(part, keyword, dict))
            if "$ref" in part:
                waiting.append(self._document.find(part["$ref"], part))
            in_place = {*_IN_PLACE, "dependencies"}
            waiting += [child for path, child in subschemas(part) if path[0] in in_place]
        return found


def _judges_alone(keyword: str | int, node: JSONObject) -> bool:
    """Tell whether a subschema is the only one for its values, if the node is for its own."""
    return keyword in _PARTS or (keyword in _EITHER and judging(node) == {keyword})


def _close(node: JSON, closing: _Closing) -> JSON:
    """Close the objects of a schema that is the only one for its values; other parts stay open.

    Args:
        node: The schema.
        closing: Facts about the whole schema.
    """
    if not isinstance(node, dict):
        return node
    keywords = judging(node)
    new = {key: copy(value) for key, value in node.items()}
    for path, child in subschemas(node):
        keyword = path[0]
        if keyword in DEFINITIONS:
            is_alone = id(child) not in closing.shared
        else:
            is_alone = _judges_alone(keyword, node)
        if is_alone:
            holder = new if len(path) == 1 else new[path[0]]
            holder[path[-1]] = _close(child, closing)
    is_open = CLOSING.isdisjoint(keywords) and not keywords <= {"$ref", *_EITHER}
    if is_open and keywords & {"properties", "patternProperties", "allOf", "$ref"}:
        _exclude_others(new, node, closing)
        if closing.other and CLOSING & new.keys():
            new["properties"] = {**new.get("properties", {}), closing.other: {}}
    return new


def _exclude_others(new: JSONObject, node: JSONObject, closing: _Closing) -> None:
    """Exclude other properties in the copy of a schema, with the keywords of its dialect."""
    parts = [child for path, child in subschemas(node) if path[0] in _IN_PLACE]
    if not ("$ref" in node or any(map(_names_properties, parts))):
        new["additionalProperties"] = False
    elif not closing.is_old:
        new["unevaluatedProperties"] = False
    else:
        with suppress(LookupError):
            for keyword, names in closing.named(node).items():
                if names:
                    new[keyword] = {**names, **new.get(keyword, {})}
            new["additionalProperties"] = False


def _names_properties(part: JSON) -> bool:
    """Tell whether a schema, or a subschema for the same value, may name properties."""
    if not isinstance(part, dict):
        return False
    if part.keys() & {"properties", "patternProperties", "$ref", "$dynamicRef"}:
        return True
    inner = (child for path, child in subschemas(part) if path[0] in _IN_PLACE)
    return any(map(_names_properties, inner))


def _canonical(*schemas: JSONObject) -> list[Any]:
    """Convert schemas to the canonical form of jsonschema-rs, for proofs.

    Raises:
        ValueError: A schema has no such form.
        ImportError: jsonschema-rs is not installed.
    """
    import jsonschema_rs

    return [
        jsonschema_rs.canonicalize(schema, validate_formats=False, offline=True)
        for schema in schemas
    ]


def _is_proved(taker: JSONObject, giver: JSONObject) -> bool:
    """Tell whether one schema is proved to accept every value that another one allows."""
    with suppress(ValueError, ImportError):
        one, other = _canonical(taker, giver)
        if str(one.covers(other)) == "yes":
            return True
    # The engine cannot handle recursive schemas.
    return is_taken(taker, giver)


def _refute(taker: JSONObject, giver: JSONObject) -> tuple[JSON | Unset, list[str]]:
    """Find a value that one schema allows and another refuses, and the rules that it breaks."""
    sources = [giver]
    with suppress(ValueError, ImportError):
        ours, theirs = _canonical(giver, taker)
        # The schema of exactly these values, so that the search is short.
        sources.insert(0, ours.subtract(theirs).to_json_schema())
    try:
        gives, judge = compile_schema(giver).is_valid, compile_schema(taker)
    except SchemaUnsupported:  # the Python engine cannot validate a closed schema
        return UNSET, []

    def is_example(value: JSON) -> bool:
        return gives(value) and not judge.is_valid(value)

    small = (value for source in sources for value in islice(instances(source), _MAX_TRIED))
    # For nested values the deepest may come first.
    few = islice(filter(is_example, small), _MAX_COMPARED)
    found = min(few, key=lambda value: len(text_of(value)), default=UNSET)
    if found is UNSET:
        found = search(sources[0], is_example)
    return found, [] if found is UNSET else describe(judge.violations(found))


def search(schema: JSONObject, is_example: Callable[[JSON], bool]) -> JSON | Unset:
    """Search a value with Hypothesis (an extra); deterministic.

    Args:
        schema: A schema of the value.
        is_example: Tells whether a value is suitable.

    Returns:
        A small value; `UNSET` if some hundred values contain none, or without Hypothesis.
    """
    try:
        import hypothesis
        from hypothesis.errors import Flaky, NoSuchExample
        from hypothesis.errors import Unsatisfiable as NothingDrawn
    except ImportError:
        return UNSET
    options = hypothesis.settings(
        max_examples=_MAX_DRAWN,
        derandomize=True,
        database=None,
        deadline=None,
        # Explaining an example takes longer than finding it.
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    try:
        strategy = from_schema(schema)
        return hypothesis.find(strategy, is_example, settings=options)
    # A strategy that finds nothing too often ends a draw that it accepted before. The schema of a
    # difference may have an infinite number.
    except (NoSuchExample, NothingDrawn, Unsatisfiable, Flaky, SchemaError):
        return UNSET
