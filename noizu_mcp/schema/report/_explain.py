"""Every violation of a value at once, in our own words, for every engine.

An engine only tells whether a value fits. For a value that does not, the explainer walks schema and
value together; here is the check of each keyword. It follows all of 2020-12 and the older drafts.
The rest is asked of the engine: the metaschemas, and formats where a dialect asserts them.
"""

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

from ..jsonschema._document import REFERENCES, Node
from ..jsonschema._keywords import Path
from ..jsonschema._values import equal_pairs, has_type, identity, is_multiple
from ..jsonschema._violation import Violation
from ._messages import (
    bad_name,
    broken,
    depends,
    equal_items,
    missing,
    nothing_fits,
    several_fit,
    unknown,
)
from ._walk import BaseExplainer, Check, Found, Walk

# Programs hand over tuples for lists; both engines take them.
_ARRAY = (list, tuple)
_OBJECT = (dict,)


def _reference(keyword: str) -> Check:
    def check(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
        target = walk.target(keyword, schema)
        if target is None:
            _by_engine(keyword)(walk, schema, value, path, out)
        else:
            out.merge(walk.attempt(target, value, path))

    return check


def _by_engine(keyword: str) -> Check:
    """Return the check of a keyword that the engine knows more of, for a part of a value."""

    def check(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
        if not walk.explainer.accepts(keyword, schema[keyword], value):
            out.add(broken(path, keyword, schema[keyword], value))

    return check


def _enum(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if identity(value) not in walk.explainer.choices(schema):
        out.add(broken(path, "enum", schema["enum"], value))


def _const(_walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if identity(value) != identity(schema["const"]):
        out.add(broken(path, "const", schema["const"], value))


def _pattern(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    pattern, longest = schema["pattern"], schema.get("maxLength", inf)
    if isinstance(value, str) and not walk.explainer.matches(pattern, value, longest):
        out.add(broken(path, "pattern", pattern, value))


def _items(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if isinstance(value, _ARRAY):
        first, rest = _item_schemas(schema)
        for index, item in enumerate(value):
            own = first[index] if index < len(first) else rest
            walk.judge(own, item, (*path, index), out)


def _item_schemas(schema: Node) -> tuple[list[Any], Any]:
    """Return the schemas of the first items, and of the rest."""
    first, rest = schema.get("prefixItems", []), schema.get("items", True)
    # A list is the form before 2020-12.
    return (rest, schema.get("additionalItems", True)) if isinstance(rest, list) else (first, rest)


def _contains(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if not isinstance(value, _ARRAY):
        return
    least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
    places = enumerate(value)
    count = sum(not walk.attempt(schema["contains"], item, (*path, i)) for i, item in places)
    if count < least:
        keyword = "minContains" if "minContains" in schema else "contains"
        out.add(broken(path, keyword, least, count))
    elif count > most:
        out.add(broken(path, "maxContains", most, count))


def _unique(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if schema["uniqueItems"] and isinstance(value, _ARRAY):
        # A key for an item costs a fraction of a step.
        walk.step(len(value) // 10)
        for first, second in equal_pairs(value):
            out.add(equal_items(path, first, second, value[second]))


def _properties(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if not isinstance(value, dict):
        return
    for name, own in schema.get("properties", {}).items():
        if name in value:
            walk.judge(own, value[name], (*path, name), out)
    for pattern, own in schema.get("patternProperties", {}).items():
        for name, item in walk.each(value.items()):
            if walk.explainer.matches(pattern, name):
                walk.judge(own, item, (*path, name), out)


def _additional(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if isinstance(value, dict):
        own, declared = schema["additionalProperties"], schema.get("properties", {})
        for name in walk.each(value):
            if _is_declared(walk, schema, name):
                continue
            if own is False:
                out.add(unknown(path, "additionalProperties", name, list(declared)))
            else:
                walk.judge(own, value[name], (*path, name), out)


def _is_declared(walk: Walk, schema: Node, name: Any) -> bool:
    patterns = schema.get("patternProperties", {})
    return name in schema.get("properties", {}) or any(
        walk.explainer.matches(pattern, name) for pattern in patterns
    )


def _required(_walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if isinstance(value, dict):
        known = schema.get("properties", ())
        for name in schema["required"]:
            if name not in value:
                out.add(missing(path, name, value, known))


def _names(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if isinstance(value, dict):
        for name in value:
            faults = walk.attempt(schema["propertyNames"], name, path)
            if faults:
                out.add(bad_name(path, name, faults[0]))


def _dependent(keyword: str) -> Check:
    def check(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
        for because, own in schema[keyword].items() if isinstance(value, dict) else ():
            if because not in value:
                continue
            if not isinstance(own, list):
                walk.judge(own, value, path, out)
                continue
            for name in own:
                if name not in value:
                    out.add(depends(path, name, because))

    return check


def _all_of(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    for own in schema["allOf"]:
        walk.judge(own, value, path, out)


def _any_of(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    branches: list[list[Violation]] = []
    for own in schema["anyOf"]:
        branches.append(walk.attempt(own, value, path))
        if not branches[-1]:
            return
    out.merge(nothing_fits(path, "anyOf", branches, value))


def _one_of(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    branches = [walk.attempt(own, value, path) for own in schema["oneOf"]]
    fitting = branches.count([])
    if fitting > 1:
        out.add(several_fit(path, fitting, value))
    elif not fitting:
        out.merge(nothing_fits(path, "oneOf", branches, value))


def _not(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    if not walk.attempt(schema["not"], value, path):
        out.add(broken(path, "not", None, value))


def _if(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
    branch = "else" if walk.attempt(schema["if"], value, path) else "then"
    if branch in schema:
        walk.judge(schema[branch], value, path, out)


def _unevaluated(keyword: str, kind: tuple[type[Any], ...]) -> Check:
    def check(walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
        if not isinstance(value, kind):
            return
        known: dict[str, None] = {}
        seen = _evaluated(walk, schema, value, path, known, inner=False)
        for step in value if isinstance(value, dict) else range(len(value)):
            if step in seen:
                continue
            if schema[keyword] is False and isinstance(value, dict):
                out.add(unknown(path, keyword, step, list(known)))
            else:
                walk.judge(schema[keyword], value[step], (*path, step), out)

    return check


def _evaluated(
    walk: Walk, schema: Any, value: Any, path: Path, known: dict[str, None], *, inner: bool = True
) -> set[Any]:
    """Return the names or indexes of a value that a subschema has judged (2020-12 core 11).

    Args:
        walk: The explanation.
        schema: The subschema.
        value: An object or an array.
        path: The place of the value.
        known: Gets the names that are declared.
        inner: False for the subschema whose own `unevaluated…` asks.
    """
    if not isinstance(schema, dict):
        return set()
    walk.step()
    seen: set[Any] = set()
    if isinstance(value, dict):
        known.update(dict.fromkeys(schema.get("properties", ())))
        every = "additionalProperties" in schema or (inner and "unevaluatedProperties" in schema)
        seen.update(name for name in walk.each(value) if every or _is_declared(walk, schema, name))
    else:
        first, _rest = _item_schemas(schema)
        every = (
            isinstance(schema.get("items"), (dict, bool))
            or "additionalItems" in schema
            or (inner and "unevaluatedItems" in schema)
        )
        seen.update(range(len(value) if every else min(len(first), len(value))))
        if "contains" in schema and walk.explainer.contains_evaluates:
            own = schema["contains"]
            seen.update(
                i for i, item in enumerate(value) if not walk.attempt(own, item, (*path, i))
            )
    for part in _parts_in_force(walk, schema, value, path):
        seen |= _evaluated(walk, part, value, path, known)
    return seen


def _parts_in_force(walk: Walk, schema: Node, value: Any, path: Path) -> Iterator[Any]:
    """Yield the subschemas that judge the value itself, without the alternatives that it breaks.

    If it breaks all of them, the fault is theirs, and all are yielded.
    """
    for keyword in REFERENCES:
        if keyword in schema:
            yield walk.target(keyword, schema)
    yield from schema.get("allOf", ())
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword, ())
        fitting = [option for option in options if not walk.attempt(option, value, path)]
        yield from fitting or options
    if "if" in schema:
        fits = not walk.attempt(schema["if"], value, path)
        if fits:
            yield schema["if"]
        yield schema.get("then" if fits else "else")
    for keyword in ("dependentSchemas", "dependencies"):
        for because, own in schema.get(keyword, {}).items():
            if because in value:
                yield own


def _number(keyword: str, holds: Callable[[Any, Any], bool]) -> Check:
    return _single(keyword, lambda value: has_type(value, "number"), holds)


def _sized(keyword: str, kind: tuple[type[Any], ...], holds: Callable[[Any, Any], bool]) -> Check:
    return _single(
        keyword,
        lambda value: isinstance(value, kind),
        lambda value, limit: holds(len(value), limit),
    )


def _single(
    keyword: str, concerns: Callable[[Any], bool], holds: Callable[[Any, Any], bool]
) -> Check:
    def check(_walk: Walk, schema: Node, value: Any, path: Path, out: Found) -> None:
        if concerns(value) and not holds(value, schema[keyword]):
            out.add(broken(path, keyword, schema[keyword], value))

    return check


def _exclusive(keyword: str, holds: Callable[[Any, Any], bool]) -> Check:
    # In draft 4 it is true or false, and only says how to read `minimum`.
    return _number(keyword, lambda value, limit: isinstance(limit, bool) or holds(value, limit))


# In the order in which violations are told: the value itself, its parts, then alternatives.
_IN_ORDER: tuple[tuple[str, Check], ...] = (
    ("$ref", _reference("$ref")),
    ("$dynamicRef", _reference("$dynamicRef")),
    ("$recursiveRef", _reference("$recursiveRef")),
    ("enum", _enum),
    ("const", _const),
    ("minimum", _number("minimum", lambda value, limit: value >= limit)),
    ("maximum", _number("maximum", lambda value, limit: value <= limit)),
    ("exclusiveMinimum", _exclusive("exclusiveMinimum", lambda value, limit: value > limit)),
    ("exclusiveMaximum", _exclusive("exclusiveMaximum", lambda value, limit: value < limit)),
    ("multipleOf", _number("multipleOf", is_multiple)),
    ("minLength", _sized("minLength", (str,), lambda size, limit: size >= limit)),
    ("maxLength", _sized("maxLength", (str,), lambda size, limit: size <= limit)),
    ("pattern", _pattern),
    ("format", _by_engine("format")),
    ("minItems", _sized("minItems", _ARRAY, lambda size, limit: size >= limit)),
    ("maxItems", _sized("maxItems", _ARRAY, lambda size, limit: size <= limit)),
    ("minProperties", _sized("minProperties", _OBJECT, lambda size, limit: size >= limit)),
    ("maxProperties", _sized("maxProperties", _OBJECT, lambda size, limit: size <= limit)),
    ("uniqueItems", _unique),
    ("contains", _contains),
    ("prefixItems items", _items),
    ("properties patternProperties", _properties),
    ("required", _required),
    ("additionalProperties", _additional),
    ("propertyNames", _names),
    ("dependentRequired", _dependent("dependentRequired")),
    ("dependentSchemas", _dependent("dependentSchemas")),
    ("dependencies", _dependent("dependencies")),
    ("allOf", _all_of),
    ("anyOf", _any_of),
    ("oneOf", _one_of),
    ("not", _not),
    ("if", _if),
    ("unevaluatedItems", _unevaluated("unevaluatedItems", _ARRAY)),
    ("unevaluatedProperties", _unevaluated("unevaluatedProperties", _OBJECT)),
)

# A keyword and its place in that order; neighbours that are judged together share one place.
_CHECKS: Mapping[str, tuple[int, Check]] = {
    keyword: (place, check)
    for place, (keywords, check) in enumerate(_IN_ORDER)
    for keyword in keywords.split()
}


class Explainer(BaseExplainer):
    """Finds every violation of a value; made once for a schema."""

    table = _CHECKS
