"""The meaning of each keyword, and of its opposite, in cases.

The rule of a keyword is a function of its subschema and of a mood. For "is" it returns the cases of
the values that fit the keyword. For "not" and "near" it returns those of the values that break it;
"near" hands its mood on to the subschemas, so that a value breaks one keyword somewhere inside, and
fits the others beside it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Any, Final, Protocol

import attrs

from ..._value import JSONObject
from ._case import (
    ANY,
    NUMBERS,
    Case,
    Contains,
    Either,
    Goal,
    Goals,
    Items,
    Members,
    Mood,
    Names,
    Scope,
    Somewhere,
    combine,
    fraction,
    identity,
)

_KINDS: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset({name}) for name in ("null", "boolean", "integer", "string")},
    **{name: frozenset({name}) for name in ("array", "object")},
    "number": NUMBERS,
}
_TEXT, _ARRAY, _OBJECT = _KINDS["string"], _KINDS["array"], _KINDS["object"]
_OPPOSITE: Final[Mapping[Mood, Mood]] = {"is": "not", "not": "is", "near": "is"}


class Resolver(Protocol):
    """The part of the expander that rules use."""

    formats: frozenset[str]
    asserted: bool

    def cases(self, goals: Goals) -> list[Case]:
        """Return the cases in which a value reaches all goals."""

    def excluding(self, cases: list[Case], goal: Goal) -> list[Case]:
        """Return the cases that reach another goal, too, which is the opposite of a subschema."""

    def target(self, ref: str, keyword: str, node: JSONObject, scope: Scope) -> Any:
        """Return the subschema to which a reference leads; None if it is not at hand."""


class Place:
    """A subschema on the way to a value: its keywords, and how they reach other subschemas.

    Args:
        expander: Resolves the goals.
        node: The subschema.
        scope: The base URIs up to and including its own.
        mood: The mood in which its keywords are read.
    """

    def __init__(self, expander: Resolver, node: JSONObject, scope: Scope, mood: Mood) -> None:
        self.expander = expander
        self.node = node
        self.scope = scope
        self.mood = mood
        self.fits = mood == "is"
        self.near = mood == "near"

    def goal(self, node: Any, mood: Mood | None = None) -> Goal:
        """Return the goal of another subschema, by default in the mood of this one."""
        return Goal(node, mood or self.mood, self.scope)

    def fitting(self) -> "Place":
        """Return the same place in the mood of values that fit."""
        return Place(self.expander, self.node, self.scope, "is")

    def cases(self, *goals: Goal) -> list[Case]:
        """Return the cases in which a value reaches all of these goals."""
        return self.expander.cases(goals)

    def target(self, keyword: str) -> Any:
        """Return the subschema to which a reference leads; None if it is not at hand."""
        return self.expander.target(self.node[keyword], keyword, self.node, self.scope)


def _type(place: Place, value: Any) -> list[Case]:
    names = [value] if isinstance(value, str) else value
    kinds = frozenset[str]().union(*(_KINDS[name] for name in names))
    if place.fits:
        return [Case(kinds=kinds)]
    return [Case(kinds=ANY.kinds - kinds)] if kinds != ANY.kinds else []


def _values(place: Place, values: list[Any]) -> list[Case]:
    if place.fits:
        return [Case(values=tuple(values))]
    excluded = frozenset(map(identity, values))
    near = [each for value in values for each in _neighbours(value)]
    near = [each for each in near if identity(each) not in excluded]
    return [Case(excluded=excluded), *([Case(values=tuple(near))] if near else [])]


def _neighbours(value: Any) -> Iterator[Any]:
    """Yield values that are easily taken for a value."""
    if isinstance(value, str):
        yield from (f"{value} ", value.swapcase(), value[:-1], f"{value}{value[-1:]}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from (value + 1, value - 1)


def _const(place: Place, value: Any) -> list[Case]:
    return _values(place, [value])


Rule = Callable[[Place, Any], list[Case]]


def _limit(name: str, value: Any, kinds: frozenset[str] = ANY.kinds) -> Case:
    """Return the case with one limit, for some types."""
    limits: dict[str, Any] = {name: value, "kinds": kinds}
    return Case(**limits)


def _bound(name: str, opposite: str, *, exclusive: bool) -> Rule:
    """Return the rule of `minimum` and its kin: a limit, which the broken one turns around."""

    def rule(place: Place, value: float) -> list[Case]:
        if isinstance(value, bool):
            # The form of draft 4: a mark of the other keyword.
            return [ANY] if place.fits else []
        if place.fits:
            return [_limit(name, (value, exclusive))]
        return [_limit(opposite, (value, not exclusive), kinds=NUMBERS)]

    return rule


def _multiple(place: Place, value: float) -> list[Case]:
    divisor = (fraction(value),)
    return [Case(multiples=divisor) if place.fits else Case(kinds=NUMBERS, not_multiples=divisor)]


def _at_least(part: str, kinds: frozenset[str]) -> Rule:
    """Return the rule of `minLength`, `minItems` or `minProperties`."""

    def rule(place: Place, value: float) -> list[Case]:
        count = int(value)
        if place.fits:
            return [_limit(f"min_{part}", count)]
        return [_limit(f"max_{part}", count - 1, kinds=kinds)] if count else []

    return rule


def _at_most(part: str, kinds: frozenset[str]) -> Rule:
    """Return the rule of `maxLength`, `maxItems` or `maxProperties`."""

    def rule(place: Place, value: float) -> list[Case]:
        count = int(value)
        if place.fits:
            return [_limit(f"max_{part}", count)]
        return [_limit(f"min_{part}", count + 1, kinds=kinds)]

    return rule


def _pattern(place: Place, value: str) -> list[Case]:
    return [Case(patterns=(value,)) if place.fits else Case(kinds=_TEXT, not_patterns=(value,))]


def _format(place: Place, value: str) -> list[Case]:
    known = value in place.expander.formats
    if place.fits:
        return [Case(formats=(value,)) if known else ANY]
    # An annotation, which no value breaks (2020-12 validation section 7.2.1), unless a class reads
    # the text: then almost any other text breaks it.
    return [Case(kinds=_TEXT)] if known and place.expander.asserted else []


def _prefix_items(place: Place, value: list[Any]) -> list[Case]:
    fitting = [Items(at, at + 1, (place.goal(node, "is"),)) for at, node in enumerate(value)]
    if place.fits:
        return [Case(items=tuple(fitting), seen_items=len(value))]
    found = []
    for at, node in enumerate(value):
        others = [rule for rule in fitting if rule.first != at] if place.near else []
        items = (*others, Items(at, at + 1, (place.goal(node),)))
        found.append(Case(kinds=_ARRAY, min_items=at + 1, items=items, seen_items=len(value)))
    return found


def _items(place: Place, value: Any) -> list[Case]:
    if isinstance(value, list):
        # The form before 2020-12.
        return _prefix_items(place, value)
    first = len(place.node.get("prefixItems", ()))
    if place.fits:
        return [Case(items=(Items(first, inf, (place.goal(value),)),), seen_items=inf)]
    return [_one_item(place.goal(value), at, first) for at in (first, first + 1)]


def _one_item(goal: Goal, at: int, first: int) -> Case:
    """Return the case in which one item breaks a goal.

    Args:
        goal: The goal, broken; if it is "near" the others fit.
        at: The index of the item.
        first: The index of the first one that has the goal.
    """
    items = [Items(at, at + 1, (goal,))]
    if goal.mood == "near":
        fits = (Goal(goal.node, "is", goal.scope),)
        items += [Items(at + 1, inf, fits), *([Items(first, at, fits)] if at > first else [])]
    return Case(kinds=_ARRAY, min_items=at + 1, items=tuple(items), seen_items=inf)


def _contains(place: Place, value: Any) -> list[Case]:
    goal = place.goal(value, "is")
    least = int(place.node.get("minContains", 1))
    most = place.node.get("maxContains", inf)
    if place.fits:
        rule = Contains(goal, least, most)
        return [Case(contains=(rule,), min_items=least, seen_contains=(goal,))]
    found = []
    if least:
        found.append(Case(kinds=_ARRAY, contains=(Contains(goal, 0, least - 1),)))
    if most < inf:
        more = int(most) + 1
        found.append(Case(kinds=_ARRAY, contains=(Contains(goal, more),), min_items=more))
    return found


def _unique(place: Place, value: bool) -> list[Case]:
    if not value:
        return [ANY] if place.fits else []
    return [Case(unique=True) if place.fits else Case(kinds=_ARRAY, repeated=True, min_items=2)]


def _properties(place: Place, value: JSONObject) -> list[Case]:
    seen = Names(frozenset(value))
    fitting = {
        name: Members(Names(frozenset({name})), (place.goal(node, "is"),))
        for name, node in value.items()
    }
    if place.fits:
        return [Case(members=tuple(fitting.values()), seen=seen)]
    found = []
    for name, node in value.items():
        broken = Members(Names(frozenset({name})), (place.goal(node),))
        members = tuple({**fitting, name: broken}.values()) if place.near else (broken,)
        found.append(Case(kinds=_OBJECT, required=(name,), members=members, seen=seen))
    return found


def _pattern_properties(place: Place, value: JSONObject) -> list[Case]:
    seen = Names(patterns=tuple(value))
    sets = {pattern: Names(patterns=(pattern,)) for pattern in value}
    rules = [Members(sets[each], (place.goal(value[each], "is"),)) for each in value]
    if place.fits:
        return [Case(members=tuple(rules), seen=seen)]
    others = tuple(rules) if place.near else ()
    return [
        Case(
            kinds=_OBJECT,
            somewhere=(Somewhere(sets[each], (place.goal(value[each]),)),),
            members=others,
            seen=seen,
        )
        for each in value
    ]


def _one_member(where: Names, goal: Goal) -> Case:
    """Return the case in which one member of some breaks a goal; if it is "near" the others fit."""
    fits = (Members(where, (Goal(goal.node, "is", goal.scope),)),) if goal.mood == "near" else ()
    return Case(kinds=_OBJECT, somewhere=(Somewhere(where, (goal,)),), members=fits, all_seen=True)


def _additional(place: Place, value: Any) -> list[Case]:
    declared = frozenset(place.node.get("properties", ()))
    where = Names(declared, tuple(place.node.get("patternProperties", ())), others=True)
    if place.fits:
        return [Case(members=(Members(where, (place.goal(value),)),), all_seen=True)]
    return [_one_member(where, place.goal(value))]


def _property_names(place: Place, value: Any) -> list[Case]:
    if place.fits:
        return [Case(names=(place.goal(value),))]
    broken = Somewhere(Names(others=True), names=(place.goal(value),))
    others = (place.goal(value, "is"),) if place.near else ()
    return [Case(kinds=_OBJECT, somewhere=(broken,), names=others)]


def _required(place: Place, value: list[str]) -> list[Case]:
    if place.fits:
        return [Case(required=tuple(value))]
    return [_without(name, value if place.near else ()) for name in value]


def _without(name: str, others: Iterable[str]) -> Case:
    """Return the case of objects without one member of several, and with the others."""
    there = tuple(other for other in others if other != name)
    return Case(kinds=_OBJECT, absent=frozenset({name}), required=there)


def _dependent(place: Place, value: JSONObject) -> list[Case]:
    """Apply `dependentRequired`, `dependentSchemas` and `dependencies` of older drafts."""
    if place.fits:
        found = [ANY]
        for because in value:
            without = Case(absent=frozenset({because}))
            found = combine(found, [without, *_depending(place, because, value[because])])
        return found
    found = []
    for because in value:
        broken = _depending(place, because, value[because])
        if place.near:
            rest = {name: wanted for name, wanted in value.items() if name != because}
            others = _dependent(place.fitting(), rest)
            broken = combine(broken, others) or broken
        found += broken
    return found


def _depending(place: Place, because: str, wanted: Any) -> list[Case]:
    """Return the cases of objects that have a member, and fit or break what depends on it."""
    there = [Case(kinds=_OBJECT, required=(because,))]
    if not isinstance(wanted, list):
        return combine(there, place.cases(place.goal(wanted)))
    if place.fits:
        return combine(there, [Case(required=tuple(wanted))])
    missing = [_without(name, wanted if place.near else ()) for name in wanted]
    return combine(there, missing) if missing else []


def _all_of(place: Place, value: list[Any]) -> list[Case]:
    if place.fits:
        return place.cases(*map(place.goal, value))
    return [case for index in range(len(value)) for case in _one_broken(place, value, index, "is")]


def _one_broken(place: Place, value: list[Any], index: int, others: Mood) -> list[Case]:
    """Return the cases that break one of several subschemas; for "near" the others have a mood."""
    if place.mood == "not" and others == "is":
        return place.cases(place.goal(value[index]))
    rest = [each for at, each in enumerate(value) if at != index]
    if others == "is":
        return place.cases(place.goal(value[index]), *(place.goal(each, "is") for each in rest))
    return _excluding(place, place.cases(place.goal(value[index])), rest)


def _excluding(place: Place, cases: list[Case], others: Iterable[Any]) -> list[Case]:
    """Return the cases in which a value breaks other subschemas, too."""
    for each in others:
        cases = place.expander.excluding(cases, place.goal(each, "not"))
    return cases


def _any_of(place: Place, value: list[Any]) -> list[Case]:
    if place.fits:
        return [case for each in value for case in place.cases(place.goal(each))]
    # "near": one of the branches is broken narrowly.
    indexes = range(len(value) if place.near else 1)
    return [case for index in indexes for case in _one_broken(place, value, index, "not")]


def _one_of(place: Place, value: list[Any]) -> list[Case]:
    if place.fits:
        found = []
        for index, each in enumerate(value):
            others = [one for at, one in enumerate(value) if at != index]
            found += _excluding(place, place.cases(place.goal(each)), others)
        return found
    pairs = [(value[at], other) for at in range(len(value)) for other in value[at + 1 :]]
    both = [
        case
        for left, right in pairs[:_MOST_PAIRS]
        for case in place.cases(place.goal(left, "is"), place.goal(right, "is"))
    ]
    return [*both, *_any_of(place, value)]


# Pairs of branches of a `oneOf` that are tried together.
_MOST_PAIRS: Final = 40


def _not(place: Place, value: Any) -> list[Case]:
    return place.cases(place.goal(value, _OPPOSITE[place.mood]))


def _if(place: Place, value: Any) -> list[Case]:
    found = []
    for keyword, mood in (("then", "is"), ("else", "not")):
        condition = place.goal(value, "is" if mood == "is" else "not")
        if keyword in place.node:
            found += place.cases(condition, place.goal(place.node[keyword]))
        elif place.fits:
            found += place.cases(condition)
    return found


def _reference(keyword: str) -> Rule:
    def rule(place: Place, _value: str) -> list[Case]:
        target = place.target(keyword)
        return [ANY] if target is None else place.cases(place.goal(target))

    return rule


def _rest_of_members(case: Case, goal: Goal) -> Case:
    if case.all_seen:
        return ANY
    where = attrs.evolve(case.seen, others=True)
    return Case(members=(Members(where, (goal,)),), all_seen=True)


def _rest_of_items(case: Case, goal: Goal) -> Case:
    if case.seen_items == inf:
        return ANY
    # An item that a `contains` has judged is not left over.
    options = ((goal,), *((each,) for each in case.seen_contains))
    goals: Goals = (Either(options),) if case.seen_contains else (goal,)
    return Case(items=(Items(int(case.seen_items), inf, goals),), seen_items=inf)


def left_over(keyword: str, case: Case, goal: Goal) -> list[Case]:
    """Return the cases in which a member or an item that nothing has judged breaks a goal.

    Args:
        keyword: `unevaluatedProperties` or `unevaluatedItems`.
        case: The case that fits the keywords beside it.
        goal: The goal of the left over ones, broken.
    """
    if keyword == "unevaluatedProperties":
        where = attrs.evolve(case.seen, others=True)
        return [] if case.all_seen else [_one_member(where, goal)]
    if case.seen_items == inf:
        return []
    first = int(case.seen_items)
    unjudged = [Goal(each.node, "not", each.scope) for each in _single(case.seen_contains)]
    broken = _one_item(goal, first, first)
    other = Case(items=(Items(first, first + 1, tuple(unjudged)),))
    return combine([broken], [other])


def _single(goals: Goals) -> list[Goal]:
    return [goal for goal in goals if isinstance(goal, Goal)]


UNEVALUATED: Final[Mapping[str, Callable[[Case, Goal], Case]]] = {
    "unevaluatedProperties": _rest_of_members,
    "unevaluatedItems": _rest_of_items,
}

RULES: Final[Mapping[str, Rule]] = {
    "type": _type,
    "enum": _values,
    "const": _const,
    "minimum": _bound("low", "high", exclusive=False),
    "exclusiveMinimum": _bound("low", "high", exclusive=True),
    "maximum": _bound("high", "low", exclusive=False),
    "exclusiveMaximum": _bound("high", "low", exclusive=True),
    "multipleOf": _multiple,
    "minLength": _at_least("length", _TEXT),
    "maxLength": _at_most("length", _TEXT),
    "pattern": _pattern,
    "format": _format,
    "minItems": _at_least("items", _ARRAY),
    "maxItems": _at_most("items", _ARRAY),
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "uniqueItems": _unique,
    "minProperties": _at_least("members", _OBJECT),
    "maxProperties": _at_most("members", _OBJECT),
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "required": _required,
    "dependentRequired": _dependent,
    "dependentSchemas": _dependent,
    "dependencies": _dependent,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _reference("$ref"),
    "$dynamicRef": _reference("$dynamicRef"),
}
