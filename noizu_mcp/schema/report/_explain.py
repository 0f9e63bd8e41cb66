"""Every violation of a value at once, in our own words, for every engine.

An engine only tells whether a value fits. For a value that does not, the explainer walks schema and
value together; here is the check of each keyword. It follows all of 2020-12 and the older drafts.
The rest is asked of the engine: the metaschemas, and formats where a dialect asserts them.
"""

from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any

from ..._pointer import Path
from ..._value import JSONObject
from ..jsonschema._document import REFERENCES
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
from ._walk import BaseExplainer, KeywordCheck, Part, ViolationList, Walk

# Programs hand over tuples for lists; both engines take them.
_ARRAY = (list, tuple)


def _reference(out: ViolationList, keyword: str, part: Part) -> None:
    walk, node = out.walk, part.node
    target = walk.target(keyword, node)
    if target is not None:
        out.merge(walk.attempt(target, part.value, part.path))
        return
    # The engine judges the reference alone, so it needs the absolute address.
    address = walk.explainer.document.address_of(node[keyword], node)
    if not walk.explainer.accepts("$ref", address, part.value):
        out.add_broken(keyword, part)


def _by_engine(out: ViolationList, keyword: str, part: Part) -> None:
    """Judge a value by a keyword that only the engine knows."""
    if not out.walk.explainer.accepts(keyword, part.node[keyword], part.value):
        out.add_broken(keyword, part)


def _enum(out: ViolationList, keyword: str, part: Part) -> None:
    if identity(part.value) not in out.walk.explainer.choices(part.node):
        out.add_broken(keyword, part)


def _pattern(out: ViolationList, keyword: str, part: Part) -> None:
    pattern, text = part.node[keyword], part.value
    if isinstance(text, str) and not out.walk.explainer.matches(pattern, text):
        out.add_broken(keyword, part)


def _items(out: ViolationList, _keyword: str, part: Part) -> None:
    if isinstance(part.value, _ARRAY):
        first, rest = _item_schemas(part.node)
        for index, item in enumerate(part.value):
            own = first[index] if index < len(first) else rest
            out.walk.judge(own, item, (*part.path, index), out)


def _item_schemas(node: JSONObject) -> tuple[list[object], object]:
    """Return the schemas of the first items, and of the rest."""
    first, rest = node.get("prefixItems", []), node.get("items", True)
    # A list is the form before 2020-12.
    return (rest, node.get("additionalItems", True)) if isinstance(rest, list) else (first, rest)


def _contains(out: ViolationList, _keyword: str, part: Part) -> None:
    node, value, path = part
    if not isinstance(value, _ARRAY):
        return
    least, most = node.get("minContains", 1), node.get("maxContains", len(value))
    places = enumerate(value)
    count = sum(not out.walk.attempt(node["contains"], item, (*path, i)) for i, item in places)
    if count < least:
        keyword = "minContains" if "minContains" in node else "contains"
        out.add(broken(path, keyword, least, count))
    elif count > most:
        out.add(broken(path, "maxContains", most, count))


def _unique(out: ViolationList, keyword: str, part: Part) -> None:
    value = part.value
    if part.node[keyword] and isinstance(value, _ARRAY):
        # A key for an item costs a fraction of a step.
        out.walk.step(len(value) // 10)
        for first, second in equal_pairs(value):
            out.add(equal_items(part.path, first, second, value[second]))


def _properties(out: ViolationList, _keyword: str, part: Part) -> None:
    node, value, path = part
    if not isinstance(value, dict):
        return
    for name, own in node.get("properties", {}).items():
        if name in value:
            out.walk.judge(own, value[name], (*path, name), out)
    for pattern, own in node.get("patternProperties", {}).items():
        for name, item in out.walk.each(value.items()):
            if out.walk.explainer.matches(pattern, name):
                out.walk.judge(own, item, (*path, name), out)


def _additional(out: ViolationList, keyword: str, part: Part) -> None:
    node, value, path = part
    if isinstance(value, dict):
        own, declared = node[keyword], node.get("properties", {})
        for name in out.walk.each(value):
            if _is_declared(out.walk, node, name):
                continue
            if own is False:
                out.add(unknown(path, keyword, name, list(declared)))
            else:
                out.walk.judge(own, value[name], (*path, name), out)


def _is_declared(walk: Walk, node: JSONObject, name: object) -> bool:
    patterns = node.get("patternProperties", {})
    return name in node.get("properties", {}) or any(
        walk.explainer.matches(pattern, name) for pattern in patterns
    )


def _required(out: ViolationList, keyword: str, part: Part) -> None:
    if isinstance(part.value, dict):
        known = part.node.get("properties", ())
        for name in part.node[keyword]:
            if name not in part.value:
                out.add(missing(part.path, name, part.value, known))


def _names(out: ViolationList, keyword: str, part: Part) -> None:
    for name in part.value if isinstance(part.value, dict) else ():
        faults = out.walk.attempt(part.node[keyword], name, part.path)
        if faults:
            out.add(bad_name(part.path, name, faults[0]))


def _dependent(out: ViolationList, keyword: str, part: Part) -> None:
    node, value, path = part
    for because, own in node[keyword].items() if isinstance(value, dict) else ():
        if because not in value:
            continue
        if not isinstance(own, list):
            out.walk.judge(own, value, path, out)
            continue
        for name in own:
            if name not in value:
                out.add(depends(path, name, because))


def _all_of(out: ViolationList, keyword: str, part: Part) -> None:
    for own in part.node[keyword]:
        out.walk.judge(own, part.value, part.path, out)


def _any_of(out: ViolationList, keyword: str, part: Part) -> None:
    branches: list[list[Violation]] = []
    for own in part.node[keyword]:
        branches.append(out.walk.attempt(own, part.value, part.path))
        if not branches[-1]:
            return
    out.merge(nothing_fits(part.path, keyword, branches, part.value))


def _one_of(out: ViolationList, keyword: str, part: Part) -> None:
    branches = [out.walk.attempt(own, part.value, part.path) for own in part.node[keyword]]
    fitting = branches.count([])
    if fitting > 1:
        out.add(several_fit(part.path, fitting, part.value))
    elif not fitting:
        out.merge(nothing_fits(part.path, keyword, branches, part.value))


def _not(out: ViolationList, keyword: str, part: Part) -> None:
    if not out.walk.attempt(part.node[keyword], part.value, part.path):
        out.add(broken(part.path, keyword, None, part.value))


def _if(out: ViolationList, keyword: str, part: Part) -> None:
    node, value, path = part
    branch = "else" if out.walk.attempt(node[keyword], value, path) else "then"
    if branch in node:
        out.walk.judge(node[branch], value, path, out)


def _unevaluated(out: ViolationList, keyword: str, part: Part) -> None:
    node, value, path = part
    if not isinstance(value, dict if keyword == "unevaluatedProperties" else _ARRAY):
        return
    known: dict[str, None] = {}
    seen = _evaluated(out.walk, node, value, path, known, inner=False)
    for step in value if isinstance(value, dict) else range(len(value)):
        if step in seen:
            continue
        if node[keyword] is False and isinstance(value, dict):
            out.add(unknown(path, keyword, step, list(known)))
        else:
            out.walk.judge(node[keyword], value[step], (*path, step), out)


def _evaluated(
    walk: Walk, node: object, value: Any, path: Path, known: dict[str, None], *, inner: bool = True
) -> set[object]:
    """Return the names or indexes of a value that a subschema has judged (2020-12 core 11).

    Args:
        walk: The explanation.
        node: The subschema; None if only the engine knows it.
        value: An object or an array.
        path: The place of the value.
        known: Gets the names that are declared.
        inner: False for the subschema whose own `unevaluated…` asks.
    """
    if node is None:
        # Only the engine knows this schema, and it does not tell what it judged: no name or index
        # is certain to be left over.
        return set(value if isinstance(value, dict) else range(len(value)))
    if not isinstance(node, dict):
        return set()
    walk.step()
    seen: set[Any] = set()
    if isinstance(value, dict):
        known.update(dict.fromkeys(node.get("properties", ())))
        every = "additionalProperties" in node or (inner and "unevaluatedProperties" in node)
        seen.update(name for name in walk.each(value) if every or _is_declared(walk, node, name))
    else:
        first, _rest = _item_schemas(node)
        every = (
            isinstance(node.get("items"), (dict, bool))
            or "additionalItems" in node
            or (inner and "unevaluatedItems" in node)
        )
        seen.update(range(len(value) if every else min(len(first), len(value))))
        if "contains" in node and walk.explainer.contains_evaluates:
            own = node["contains"]
            seen.update(
                i for i, item in enumerate(value) if not walk.attempt(own, item, (*path, i))
            )
    for part in _parts_in_force(walk, node, value, path):
        seen |= _evaluated(walk, part, value, path, known)
    return seen


def _parts_in_force(walk: Walk, node: JSONObject, value: Any, path: Path) -> Iterator[object]:
    """Yield the subschemas that judge the value itself, without the alternatives that it breaks.

    If it breaks all of them, the fault is theirs, and all are yielded.
    """
    for keyword in REFERENCES:
        if keyword in node:
            yield walk.target(keyword, node)
    yield from node.get("allOf", ())
    for keyword in ("anyOf", "oneOf"):
        options = node.get(keyword, ())
        fitting = [option for option in options if not walk.attempt(option, value, path)]
        yield from fitting or options
    if "if" in node:
        fits = not walk.attempt(node["if"], value, path)
        if fits:
            yield node["if"]
        yield node.get("then" if fits else "else", True)
    for keyword in ("dependentSchemas", "dependencies"):
        for because, own in node.get(keyword, {}).items():
            if because in value:
                yield own


def _limit(
    concerns: Callable[[Any], bool],
    measure: Callable[[Any], object],
    holds: Callable[[object, object], bool],
) -> KeywordCheck:
    """Return the check of a keyword that compares a value, or a measure of it, with a limit.

    Args:
        concerns: The test of the values that the keyword judges; it accepts all others.
        measure: The measure of such a value.
        holds: The comparison of measure and limit.
    """

    def check(out: ViolationList, keyword: str, part: Part) -> None:
        if concerns(part.value) and not holds(measure(part.value), part.node[keyword]):
            out.add_broken(keyword, part)

    return check


def _number(holds: Callable[[Any, Any], bool]) -> KeywordCheck:
    return _limit(lambda value: has_type(value, "number"), lambda value: value, holds)


def _exclusive(bound: str, holds: Callable[[Any, Any], bool]) -> KeywordCheck:
    """Return the check of `exclusiveMinimum` or `exclusiveMaximum`.

    Args:
        bound: The keyword that in draft 4 has the limit. The exclusive one is true or false there:
            it tells if the limit itself is out.
        holds: The comparison of number and limit.
    """
    check = _number(holds)

    def check_exclusive(out: ViolationList, keyword: str, part: Part) -> None:
        node, value = part.node, part.value
        if not isinstance(node[keyword], bool):
            check(out, keyword, part)
        elif node[keyword] and has_type(value, "number") and value == node.get(bound):
            out.add(broken(part.path, keyword, node[bound], value))

    return check_exclusive


def _size(kind: type | tuple[type, ...], holds: Callable[[Any, Any], bool]) -> KeywordCheck:
    return _limit(lambda value: isinstance(value, kind), len, holds)


# In the order in which violations are reported: the value itself, its parts, alternatives.
_IN_ORDER: tuple[tuple[str, KeywordCheck], ...] = (
    ("$ref", _reference),
    ("$dynamicRef", _reference),
    ("$recursiveRef", _reference),
    ("enum", _enum),
    ("const", _limit(lambda _value: True, identity, lambda own, const: own == identity(const))),
    ("minimum", _number(ge)),
    ("maximum", _number(le)),
    ("exclusiveMinimum", _exclusive("minimum", gt)),
    ("exclusiveMaximum", _exclusive("maximum", lt)),
    ("multipleOf", _number(is_multiple)),
    ("minLength", _size(str, ge)),
    ("maxLength", _size(str, le)),
    ("pattern", _pattern),
    ("format", _by_engine),
    ("minItems", _size(_ARRAY, ge)),
    ("maxItems", _size(_ARRAY, le)),
    ("minProperties", _size(dict, ge)),
    ("maxProperties", _size(dict, le)),
    ("uniqueItems", _unique),
    ("contains", _contains),
    ("prefixItems items", _items),
    ("properties patternProperties", _properties),
    ("required", _required),
    ("additionalProperties", _additional),
    ("propertyNames", _names),
    ("dependentRequired", _dependent),
    ("dependentSchemas", _dependent),
    ("dependencies", _dependent),
    ("allOf", _all_of),
    ("anyOf", _any_of),
    ("oneOf", _one_of),
    ("not", _not),
    ("if", _if),
    ("unevaluatedItems", _unevaluated),
    ("unevaluatedProperties", _unevaluated),
)

# A keyword and its place in that order; neighbours that are judged together share one place.
_CHECKS: Mapping[str, tuple[int, str, KeywordCheck]] = {
    keyword: (place, keywords, check)
    for place, (keywords, check) in enumerate(_IN_ORDER)
    for keyword in keywords.split()
}


class Explainer(BaseExplainer):
    """Finds every violation of a value; made once for a schema."""

    table = _CHECKS
