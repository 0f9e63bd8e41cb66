"""Each keyword judged by our own words: what `Explainer` calls for every keyword of a schema."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from ..jsonschema._keywords import Path
from ..jsonschema._messages import (
    bad_name,
    broken,
    depends,
    equal_items,
    missing,
    several_fit,
    unknown,
)
from ..jsonschema._values import equal_pairs, has_type, identity, is_multiple
from ._branches import nothing_fits
from ._collector import Found

_Part = TypeVar("_Part")

# A tuple is what a program hands over for a list; both engines take it.
_ARRAY = (list, tuple)


class Walk(Protocol):
    """What a keyword may ask of the walk that called it."""

    def choices(self, schema: Mapping[str, Any]) -> Collection[Hashable]:
        """Return the identities of what `enum` of a schema allows."""

    def each(self, parts: Iterable[_Part]) -> Iterator[_Part]:
        """Yield parts of the value, each of which counts as work."""

    def judge(self, schema: Any, value: Any, path: Path, out: Found) -> None:
        """Add the violations of a subschema to those found."""

    def attempt(self, schema: Any, value: Any, path: Path) -> Found:
        """Return the violations of a subschema without reporting them."""

    def follow(self, ref: str, value: Any, path: Path, out: Found) -> None:
        """Add the violations of the schema that is referred to."""

    def matches(self, pattern: str, text: str) -> bool:
        """Tell if a pattern is found in a text."""


def _ref(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    walk.follow(schema["$ref"], value, path, out)


def _enum(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if identity(value) not in walk.choices(schema):
        out.append(broken(path, "enum", schema["enum"], value))


def _const(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if identity(value) != identity(schema["const"]):
        out.append(broken(path, "const", schema["const"], value))


def _pattern(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if isinstance(value, str) and not walk.matches(schema["pattern"], value):
        out.append(broken(path, "pattern", schema["pattern"], value))


def _items(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if not isinstance(value, _ARRAY):
        return
    first: list[Any] = schema.get("prefixItems", [])
    for index, (own, item) in enumerate(zip(first, value, strict=False)):
        walk.judge(own, item, (*path, index), out)
    if "items" in schema:
        for index in range(len(first), len(value)):
            walk.judge(schema["items"], value[index], (*path, index), out)


def _contains(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if not isinstance(value, _ARRAY):
        return
    least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
    places = enumerate(value)
    count = sum(not walk.attempt(schema["contains"], item, (*path, i)) for i, item in places)
    if count < least:
        keyword = "minContains" if "minContains" in schema else "contains"
        out.append(broken(path, keyword, least, count))
    elif count > most:
        out.append(broken(path, "maxContains", most, count))


def _unique(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if not schema["uniqueItems"] or not isinstance(value, _ARRAY):
        return
    out.extend(equal_items(path, *pair, value[pair[1]]) for pair in equal_pairs(walk.each(value)))


def _properties(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if not isinstance(value, dict):
        return
    for name, own in schema.get("properties", {}).items():
        if name in value:
            walk.judge(own, value[name], (*path, name), out)
    for pattern, own in schema.get("patternProperties", {}).items():
        for name, item in walk.each(value.items()):
            if walk.matches(pattern, name):
                walk.judge(own, item, (*path, name), out)


def _additional(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if not isinstance(value, dict):
        return
    declared: Mapping[str, Any] = schema.get("properties", {})
    patterns: Mapping[str, Any] = schema.get("patternProperties", {})
    own = schema["additionalProperties"]
    for name, item in walk.each(value.items()):
        if name in declared or any(walk.matches(pattern, name) for pattern in patterns):
            continue
        if own is False:
            out.append(unknown(path, "additionalProperties", name, list(declared)))
        else:
            walk.judge(own, item, (*path, name), out)


def _required(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if isinstance(value, dict):
        known = schema.get("properties", ())
        absent = [name for name in schema["required"] if name not in value]
        out.extend(missing(path, name, value, known) for name in absent)


def _names(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if isinstance(value, dict):
        for name in value:
            faults = walk.attempt(schema["propertyNames"], name, path)
            if faults:
                out.append(bad_name(path, name, faults[0]))


def _depends(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if isinstance(value, dict):
        for because, wanted in schema["dependentRequired"].items():
            if because in value:
                out.extend(depends(path, n, because) for n in wanted if n not in value)


def _dependent(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if isinstance(value, dict):
        for because, own in schema["dependentSchemas"].items():
            if because in value:
                walk.judge(own, value, path, out)


def _all_of(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    for own in schema["allOf"]:
        walk.judge(own, value, path, out)


def _any_of(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    branches: list[Found] = []
    for own in schema["anyOf"]:
        branches.append(walk.attempt(own, value, path))
        if not branches[-1]:
            return
    out.extend(nothing_fits(path, "anyOf", branches, value))


def _one_of(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    branches = [walk.attempt(own, value, path) for own in schema["oneOf"]]
    fitting = sum(not branch for branch in branches)
    if fitting > 1:
        out.append(several_fit(path, fitting, value))
    elif not fitting:
        out.extend(nothing_fits(path, "oneOf", branches, value))


def _not(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    if not walk.attempt(schema["not"], value, path):
        out.append(broken(path, "not", None, value))


def _if(walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
    branch = "else" if walk.attempt(schema["if"], value, path) else "then"
    if branch in schema:
        walk.judge(schema[branch], value, path, out)


Check = Callable[[Walk, Mapping[str, Any], Any, Path, Found], None]


def _number(keyword: str, holds: Callable[[Any, Any], bool]) -> Check:
    return _single(keyword, lambda value: has_type(value, "number"), holds)


def _sized(keyword: str, kind: type | tuple[type, ...], holds: Callable[[Any, Any], bool]) -> Check:
    return _single(
        keyword,
        lambda value: isinstance(value, kind),
        lambda value, limit: holds(len(value), limit),
    )


def _single(
    keyword: str, concerns: Callable[[Any], bool], holds: Callable[[Any, Any], bool]
) -> Check:
    def check(_walk: Walk, schema: Mapping[str, Any], value: Any, path: Path, out: Found) -> None:
        if concerns(value) and not holds(value, schema[keyword]):
            out.append(broken(path, keyword, schema[keyword], value))

    return check


# In the order in which violations are told: the value itself, its parts, then alternatives.
_IN_ORDER: tuple[tuple[str, Check], ...] = (
    ("$ref", _ref),
    ("enum", _enum),
    ("const", _const),
    ("minimum", _number("minimum", lambda value, limit: value >= limit)),
    ("maximum", _number("maximum", lambda value, limit: value <= limit)),
    ("exclusiveMinimum", _number("exclusiveMinimum", lambda value, limit: value > limit)),
    ("exclusiveMaximum", _number("exclusiveMaximum", lambda value, limit: value < limit)),
    ("multipleOf", _number("multipleOf", is_multiple)),
    ("minLength", _sized("minLength", str, lambda size, limit: size >= limit)),
    ("maxLength", _sized("maxLength", str, lambda size, limit: size <= limit)),
    ("pattern", _pattern),
    ("minItems", _sized("minItems", _ARRAY, lambda size, limit: size >= limit)),
    ("maxItems", _sized("maxItems", _ARRAY, lambda size, limit: size <= limit)),
    ("minProperties", _sized("minProperties", dict, lambda size, limit: size >= limit)),
    ("maxProperties", _sized("maxProperties", dict, lambda size, limit: size <= limit)),
    ("uniqueItems", _unique),
    ("contains", _contains),
    ("prefixItems items", _items),
    ("properties patternProperties", _properties),
    ("required", _required),
    ("additionalProperties", _additional),
    ("propertyNames", _names),
    ("dependentRequired", _depends),
    ("dependentSchemas", _dependent),
    ("allOf", _all_of),
    ("anyOf", _any_of),
    ("oneOf", _one_of),
    ("not", _not),
    ("if", _if),
)

# A keyword and its place in that order; neighbours that are judged together share one place.
CHECKS: Mapping[str, tuple[int, Check]] = {
    keyword: (place, check)
    for place, (keywords, check) in enumerate(_IN_ORDER)
    for keyword in keywords.split()
}
