"""Every violation of a value at once, in our own words, for every engine.

An engine only tells whether a value fits. For a value that does not, the explainer walks schema and
value together. It follows all of 2020-12 and the older drafts. The rest is asked of the engine: the
metaschemas, and formats where a dialect asserts them.

The time is bounded, since a peer chooses the value. A subschema that is referred to, or that is one
of several alternatives, is judged once for each place of the value, so alternatives that refer back
do not multiply. Each look at a subschema is a step, and the walk ends after `MAX_STEPS`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from math import inf
from typing import Any, TypeVar

import attrs

from ..jsonschema._document import REFERENCES, Document, Node
from ..jsonschema._keywords import DIALECTS, LATEST, Path
from ..jsonschema._keywords import walk as walk_schema
from ..jsonschema._values import equal_pairs, has_type, identity, is_multiple
from ..jsonschema._violation import MAX_VIOLATIONS, Violation
from ._messages import (
    bad_name,
    broken,
    depends,
    equal_items,
    missing,
    nothing_fits,
    several_fit,
    several_types,
    unknown,
)

# One step is one subschema looked at for one place of the value: about 3 microseconds.
MAX_STEPS = 50_000
# The words for a violation take longer to find.
_STEPS_FOR_WORDS = 10

Verdict = Callable[[Any], bool]

_Part = TypeVar("_Part")

# Programs hand over tuples for lists; both engines take them.
_ARRAY = (list, tuple)
_OBJECT = (dict,)
# The first draft that has a keyword; it means nothing in an older one.
_SINCE: Mapping[str, int] = {
    "const": 6,
    "contains": 6,
    "propertyNames": 6,
    "if": 7,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "$recursiveRef"), 201909),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), 201909),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), 202012),
}


class _FullError(Exception):
    """There is no room for another violation: the list is complete as it is."""


class _ExhaustedError(Exception):
    """The walk took more steps than an explanation is worth."""


class Explainer:
    """Finds every violation of a value; made once for a schema.

    Args:
        document: The schema, to which its references are known.
        compile_pattern: Returns a function that tells if a pattern is found in a text, as the
            engine does it. Takes the pattern and the `maxLength` beside it.
        compile_part: Returns an engine's verdict on a part of the schema that refers to nothing in
            it, or raises ValueError. Without it the parts that fit are walked too.
    """

    def __init__(
        self,
        document: Document,
        compile_pattern: Callable[[str, float], Callable[[str], bool]],
        compile_part: Callable[[Node], Verdict] | None = None,
    ) -> None:
        self.document = document
        self._compile_pattern = compile_pattern
        self._compile_part = compile_part
        self._matchers: dict[tuple[str, float], Callable[[str], bool]] = {}
        self._verdicts: dict[int, Verdict | None] = {id(document.root): None}
        self._plans: dict[int, tuple[list[str], list[Check]]] = {}
        self._choices: dict[int, frozenset[Hashable]] = {}
        # A dialect of its author's own may assert formats.
        self._draft = int(DIALECTS.get(document.dialect, DIALECTS[LATEST]))
        self._ignored = {name for name, first in _SINCE.items() if first > self._draft}
        if document.dialect in DIALECTS:
            self._ignored.add("format")
        used = {
            keyword for _path, node in document.nodes for keyword in REFERENCES if keyword in node
        }
        #: Whether a part of the value can be met again, and whether it matters on which way: other
        #: documents may have dynamic references too.
        self.refers = bool(used)
        self.is_dynamic = bool(document.documents) or bool(used.intersection(REFERENCES[1:]))
        self.contains_evaluates = self._draft >= 202012

    def explain(self, value: Any, schema: Any = None) -> list[Violation]:
        """Return the violations of a value against the schema or a subschema of it.

        Each of them is certain. Some are missing if there are more than `MAX_VIOLATIONS`, or if the
        value is large beyond reason.
        """
        current = _Walk(self)
        found = _Found(current.step)
        with suppress(_FullError, _ExhaustedError, RecursionError):
            current.judge(self.document.root if schema is None else schema, value, (), found)
        return found.violations

    def matches(self, pattern: str, text: Any, longest: float = inf) -> bool:
        """Tell if a pattern is found in a text; a name that is no text has no pattern."""
        if not isinstance(text, str):
            return False
        matcher = self._matchers.get((pattern, longest))
        if matcher is None:
            matcher = self._compile_pattern(pattern, longest)
            self._matchers[pattern, longest] = matcher
        return matcher(text)

    def choices(self, schema: Node) -> frozenset[Hashable]:
        """Return the identities of the values that `enum` of a subschema allows."""
        choices = self._choices.get(id(schema))
        if choices is None:
            choices = self._choices[id(schema)] = frozenset(map(identity, schema["enum"]))
        return choices

    def plan(self, schema: Node) -> tuple[list[str], list["Check"]]:
        """Return the types that a subschema allows, and the checks of its other keywords."""
        plan = self._plans.get(id(schema))
        if plan is None:
            # Up to draft 7 all that stands beside a reference is ignored.
            keywords = {"$ref"} if "$ref" in schema and self._draft <= 7 else schema.keys()
            # A set, for neighbours that are judged together; the places are all different.
            places = sorted(
                {_CHECKS[keyword] for keyword in keywords - self._ignored if keyword in _CHECKS}
            )
            types = schema["type"] if "type" in keywords else []
            plan = self._plans[id(schema)] = (
                types if isinstance(types, list) else [types],
                [check for _place, check in places],
            )
        return plan

    def fits(self, schema: Node, value: Any) -> bool:
        """Tell if the engine accepts a value for a subschema; False too if it cannot tell."""
        if id(schema) not in self._verdicts:
            self._verdicts[id(schema)] = self._verdict(schema)
        verdict = self._verdicts[id(schema)]
        return verdict is not None and verdict(value)

    def _verdict(self, schema: Node) -> Verdict | None:
        # A reference means something else, or nothing, outside of the whole schema.
        if any(keyword in node for _path, node in walk_schema(schema) for keyword in REFERENCES):
            return None
        # What only a reference leads to may be no valid schema in all that nobody judges by.
        with suppress(ValueError):
            return self._compile_part(schema) if self._compile_part else None
        return None

    def accepts(self, keyword: str, wanted: str, value: Any) -> bool:
        """Tell if the engine accepts a value for one keyword; True if it cannot tell."""
        verdict = self._compile_part({keyword: wanted}) if self._compile_part else None
        return verdict is None or verdict(value)


@attrs.define(eq=False)
class _Found:
    """The violations of one value, or of one alternative for it: each once, up to the limit.

    Attributes:
        spend: Counts the steps that each of them takes; may raise.
        violations: The violations so far.
    """

    spend: Callable[[int], None]
    violations: list[Violation] = attrs.field(factory=list)
    _known: set[tuple[Path, str, str]] = attrs.field(factory=set)

    def add(self, violation: Violation) -> None:
        """Add a violation that is not known yet; raises `_FullError` if there is no room."""
        self.merge((violation,), _STEPS_FOR_WORDS)

    def merge(self, violations: Iterable[Violation], steps: int = 1) -> None:
        """Add violations whose words were found before."""
        for violation in violations:
            self.spend(steps)
            key = (violation.path, violation.keyword, violation.message)
            if key not in self._known:
                if len(self.violations) >= MAX_VIOLATIONS:
                    raise _FullError
                self._known.add(key)
                self.violations.append(violation)


class _Walk:
    """One explanation: the steps so far, and the verdicts that may be asked for again."""

    def __init__(self, explainer: Explainer) -> None:
        self.explainer = explainer
        self._document = explainer.document
        self._steps = 0
        self._judged: dict[Hashable, list[Violation]] = {}
        # The base URIs on the way to the current node, outermost first: the dynamic scope (2020-12
        # core section 7.1).
        self._scope: tuple[str, ...] = ()

    def step(self, count: int = 1) -> None:
        """Count work; raises when it is too much."""
        self._steps += count
        if self._steps > MAX_STEPS:
            raise _ExhaustedError

    def each(self, parts: Iterable[_Part]) -> Iterator[_Part]:
        """Yield parts of the value, each of which counts as work."""
        for part in parts:
            self.step()
            yield part

    def judge(self, schema: Any, value: Any, path: Path, out: _Found) -> None:
        """Add the violations of a subschema to those found."""
        self.step()
        if not isinstance(schema, dict):
            if schema is False:
                out.add(broken(path, "false", False, value))
            return
        types, checks = self.explainer.plan(schema)
        for name in types:
            if has_type(value, name):
                break
        else:
            if types:
                out.add(several_types(path, types, value))
                return
        if isinstance(value, (list, dict)) and self.explainer.fits(schema, value):
            return
        outer = self._scope
        if self.explainer.is_dynamic:
            base = self._document.base_of(schema)
            self._scope = outer if outer[-1:] == (base,) else (*outer, base)
        for check in checks:
            check(self, schema, value, path, out)
        self._scope = outer

    def attempt(self, schema: Any, value: Any, path: Path) -> list[Violation]:
        """Return the violations of a subschema without reporting them."""
        if not self.explainer.refers:
            return self._fresh(schema, value, path)
        # A name has the path of its object, so the path alone does not tell a value.
        key = (id(schema), id(value), path, self._scope)
        known = self._judged.get(key)
        if known is None:
            # A reference that leads back here without descending asks nothing new.
            self._judged[key] = []
            known = self._judged[key] = self._fresh(schema, value, path)
        return known

    def _fresh(self, schema: Any, value: Any, path: Path) -> list[Violation]:
        found, outer = _Found(self.step), self._scope
        with suppress(_FullError):
            self.judge(schema, value, path, found)
        self._scope = outer
        return found.violations

    def target(self, keyword: str, schema: Node) -> Any:
        """Return the schema to which a keyword refers now; None if only the engine knows it."""
        ref = schema[keyword]
        try:
            target = self._document.find(ref, schema)
        except LookupError:
            return None
        if keyword == "$ref" or not isinstance(target, dict):
            return target
        dynamic, name = self._document.dynamic, ref.partition("#")[2]
        if dynamic.get((self._document.base_of(target), name)) is target:
            # The outermost resource with that anchor is meant.
            known = (dynamic[base, name] for base in self._scope if (base, name) in dynamic)
            return next(known, target)
        return target


Check = Callable[[_Walk, Node, Any, Path, _Found], None]


def _reference(keyword: str) -> Check:
    def check(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
        target = walk.target(keyword, schema)
        if target is None:
            _by_engine(keyword)(walk, schema, value, path, out)
        else:
            out.merge(walk.attempt(target, value, path))

    return check


def _by_engine(keyword: str) -> Check:
    """Return the check of a keyword that the engine knows more of, for a part of a value."""

    def check(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
        if not walk.explainer.accepts(keyword, schema[keyword], value):
            out.add(broken(path, keyword, schema[keyword], value))

    return check


def _enum(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    if identity(value) not in walk.explainer.choices(schema):
        out.add(broken(path, "enum", schema["enum"], value))


def _const(_walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    if identity(value) != identity(schema["const"]):
        out.add(broken(path, "const", schema["const"], value))


def _pattern(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    pattern, longest = schema["pattern"], schema.get("maxLength", inf)
    if isinstance(value, str) and not walk.explainer.matches(pattern, value, longest):
        out.add(broken(path, "pattern", pattern, value))


def _items(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
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


def _contains(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
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


def _unique(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    if schema["uniqueItems"] and isinstance(value, _ARRAY):
        # A key for an item costs a fraction of a step.
        walk.step(len(value) // 10)
        for first, second in equal_pairs(value):
            out.add(equal_items(path, first, second, value[second]))


def _properties(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    if not isinstance(value, dict):
        return
    for name, own in schema.get("properties", {}).items():
        if name in value:
            walk.judge(own, value[name], (*path, name), out)
    for pattern, own in schema.get("patternProperties", {}).items():
        for name, item in walk.each(value.items()):
            if walk.explainer.matches(pattern, name):
                walk.judge(own, item, (*path, name), out)


def _additional(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    if isinstance(value, dict):
        own, declared = schema["additionalProperties"], schema.get("properties", {})
        for name in walk.each(value):
            if _is_declared(walk, schema, name):
                continue
            if own is False:
                out.add(unknown(path, "additionalProperties", name, list(declared)))
            else:
                walk.judge(own, value[name], (*path, name), out)


def _is_declared(walk: _Walk, schema: Node, name: Any) -> bool:
    patterns = schema.get("patternProperties", {})
    return name in schema.get("properties", {}) or any(
        walk.explainer.matches(pattern, name) for pattern in patterns
    )


def _required(_walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    if isinstance(value, dict):
        known = schema.get("properties", ())
        for name in schema["required"]:
            if name not in value:
                out.add(missing(path, name, value, known))


def _names(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    if isinstance(value, dict):
        for name in value:
            faults = walk.attempt(schema["propertyNames"], name, path)
            if faults:
                out.add(bad_name(path, name, faults[0]))


def _dependent(keyword: str) -> Check:
    def check(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
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


def _all_of(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    for own in schema["allOf"]:
        walk.judge(own, value, path, out)


def _any_of(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    branches: list[list[Violation]] = []
    for own in schema["anyOf"]:
        branches.append(walk.attempt(own, value, path))
        if not branches[-1]:
            return
    out.merge(nothing_fits(path, "anyOf", branches, value))


def _one_of(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    branches = [walk.attempt(own, value, path) for own in schema["oneOf"]]
    fitting = branches.count([])
    if fitting > 1:
        out.add(several_fit(path, fitting, value))
    elif not fitting:
        out.merge(nothing_fits(path, "oneOf", branches, value))


def _not(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    if not walk.attempt(schema["not"], value, path):
        out.add(broken(path, "not", None, value))


def _if(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
    branch = "else" if walk.attempt(schema["if"], value, path) else "then"
    if branch in schema:
        walk.judge(schema[branch], value, path, out)


def _unevaluated(keyword: str, kind: tuple[type[Any], ...]) -> Check:
    def check(walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
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
    walk: _Walk, schema: Any, value: Any, path: Path, known: dict[str, None], *, inner: bool = True
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


def _parts_in_force(walk: _Walk, schema: Node, value: Any, path: Path) -> Iterator[Any]:
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
    def check(_walk: _Walk, schema: Node, value: Any, path: Path, out: _Found) -> None:
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
