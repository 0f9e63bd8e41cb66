"""The meaning of the keywords for items and members; see `_keywords`."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

from ..._value import JSON, JSONObject
from ._case import (
    ANY,
    Contains,
    Goal,
    Items,
    MemberGoals,
    MemberNames,
    Somewhere,
    ValueCase,
    combine,
)
from ._keywords import ARRAY, OBJECT, KeywordRule, Subschema, at_least, at_most


def _prefix_items(place: Subschema, value: list[JSON]) -> list[ValueCase]:
    fitting = [Items(at, at + 1, (place.goal(node, "is"),)) for at, node in enumerate(value)]
    if place.fits:
        return [ValueCase(items=tuple(fitting), seen_items=len(value))]
    found = []
    for at, node in enumerate(value):
        others = [rule for rule in fitting if rule.first != at] if place.near else []
        items = (*others, Items(at, at + 1, (place.goal(node),)))
        found.append(ValueCase(kinds=ARRAY, min_items=at + 1, items=items, seen_items=len(value)))
    return found


def _items(place: Subschema, value: JSON) -> list[ValueCase]:
    return _further_items(place, value, len(place.node.get("prefixItems", ())))


def _items_before_2020(place: Subschema, value: JSON) -> list[ValueCase]:
    if isinstance(value, list):
        return _prefix_items(place, value)
    return _further_items(place, value, 0)


def _additional_items(place: Subschema, value: JSON) -> list[ValueCase]:
    first = place.node.get("items")
    if not isinstance(first, list):
        # The keyword says nothing then (2019-09 core section 9.3.1.2).
        return [ANY] if place.fits else []
    return _further_items(place, value, len(first))


def _further_items(place: Subschema, value: JSON, first: int) -> list[ValueCase]:
    """Return the cases in which the items from an index on fit a subschema, or one breaks it."""
    if place.fits:
        return [ValueCase(items=(Items(first, inf, (place.goal(value),)),), seen_items=inf)]
    return [one_item(place.goal(value), at, first) for at in (first, first + 1)]


def one_item(goal: Goal, at: int, first: int) -> ValueCase:
    """Return the case in which one item breaks a goal.

    Args:
        goal: The goal, broken; if it is "near" the others fit.
        at: The index of the item.
        first: The index of the first item with the goal.
    """
    items = [Items(at, at + 1, (goal,))]
    if goal.mood == "near":
        fits = (Goal(goal.node, "is", goal.scope),)
        items += [Items(at + 1, inf, fits), *([Items(first, at, fits)] if at > first else [])]
    return ValueCase(kinds=ARRAY, min_items=at + 1, items=tuple(items), seen_items=inf)


def _contains(place: Subschema, value: JSON) -> list[ValueCase]:
    goal = place.goal(value, "is")
    return _counted(
        place, goal, int(place.node.get("minContains", 1)), place.node.get("maxContains", inf)
    )


def contains_once(place: Subschema, value: JSON) -> list[ValueCase]:
    """Apply `contains` before 2019-09, which brought the counts."""
    return _counted(place, place.goal(value, "is"), 1, inf)


def _counted(place: Subschema, goal: Goal, least: int, most: float) -> list[ValueCase]:
    if place.fits:
        rule = Contains(goal, least, most)
        return [ValueCase(contains=(rule,), min_items=least, seen_contains=(goal,))]
    found = []
    if least:
        found.append(ValueCase(kinds=ARRAY, contains=(Contains(goal, 0, least - 1),)))
    if most < inf:
        more = int(most) + 1
        found.append(ValueCase(kinds=ARRAY, contains=(Contains(goal, more),), min_items=more))
    return found


def _unique(place: Subschema, value: bool) -> list[ValueCase]:
    if not value:
        return [ANY] if place.fits else []
    return [
        ValueCase(unique=True) if place.fits else ValueCase(kinds=ARRAY, repeated=True, min_items=2)
    ]


def _properties(place: Subschema, value: JSONObject) -> list[ValueCase]:
    seen = MemberNames(frozenset(value))
    fitting = {
        name: MemberGoals(MemberNames(frozenset({name})), (place.goal(node, "is"),))
        for name, node in value.items()
    }
    if place.fits:
        return [ValueCase(members=tuple(fitting.values()), seen=seen)]
    found = []
    for name, node in value.items():
        broken = MemberGoals(MemberNames(frozenset({name})), (place.goal(node),))
        members = tuple({**fitting, name: broken}.values()) if place.near else (broken,)
        found.append(ValueCase(kinds=OBJECT, required=(name,), members=members, seen=seen))
    return found


def _pattern_properties(place: Subschema, value: JSONObject) -> list[ValueCase]:
    seen = MemberNames(patterns=tuple(value))
    sets = {pattern: MemberNames(patterns=(pattern,)) for pattern in value}
    rules = [MemberGoals(sets[each], (place.goal(value[each], "is"),)) for each in value]
    if place.fits:
        return [ValueCase(members=tuple(rules), seen=seen)]
    others = tuple(rules) if place.near else ()
    return [
        ValueCase(
            kinds=OBJECT,
            somewhere=(Somewhere(sets[each], (place.goal(value[each]),)),),
            members=others,
            seen=seen,
        )
        for each in value
    ]


def one_member(where: MemberNames, goal: Goal) -> ValueCase:
    """Return the case in which one member of some breaks a goal; if it is "near" the others fit."""
    fits = (
        (MemberGoals(where, (Goal(goal.node, "is", goal.scope),)),) if goal.mood == "near" else ()
    )
    return ValueCase(
        kinds=OBJECT, somewhere=(Somewhere(where, (goal,)),), members=fits, all_seen=True
    )


def _additional(place: Subschema, value: JSON) -> list[ValueCase]:
    declared = frozenset(place.node.get("properties", ()))
    where = MemberNames(declared, tuple(place.node.get("patternProperties", ())), others=True)
    if place.fits:
        return [ValueCase(members=(MemberGoals(where, (place.goal(value),)),), all_seen=True)]
    return [one_member(where, place.goal(value))]


def _property_names(place: Subschema, value: JSON) -> list[ValueCase]:
    if place.fits:
        return [ValueCase(names=(place.goal(value),))]
    broken = Somewhere(MemberNames(others=True), names=(place.goal(value),))
    others = (place.goal(value, "is"),) if place.near else ()
    return [ValueCase(kinds=OBJECT, somewhere=(broken,), names=others)]


def _required(place: Subschema, value: list[str]) -> list[ValueCase]:
    if place.fits:
        return [ValueCase(required=tuple(value))]
    return [_without(name, value if place.near else ()) for name in value]


def _without(name: str, others: Iterable[str]) -> ValueCase:
    """Return the case of objects without one member of several, and with the others."""
    there = tuple(other for other in others if other != name)
    return ValueCase(kinds=OBJECT, absent=frozenset({name}), required=there)


def _dependent(place: Subschema, value: JSONObject) -> list[ValueCase]:
    """Apply `dependentRequired`, `dependentSchemas` and `dependencies` of older drafts."""
    if place.fits:
        found = [ANY]
        for because in value:
            without = ValueCase(absent=frozenset({because}))
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


def _depending(place: Subschema, because: str, wanted: JSON) -> list[ValueCase]:
    """Return the cases of objects that have a member, and fit or break what depends on it."""
    there = [ValueCase(kinds=OBJECT, required=(because,))]
    if not isinstance(wanted, list):
        return combine(there, place.cases(place.goal(wanted)))
    if place.fits:
        return combine(there, [ValueCase(required=tuple(wanted))])
    missing = [_without(name, wanted if place.near else ()) for name in wanted]
    return combine(there, missing) if missing else []


#: The rules of the keywords for items and members.
PART_RULES: Final[Mapping[str, KeywordRule]] = {
    "minItems": at_least("items", ARRAY),
    "maxItems": at_most("items", ARRAY),
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "uniqueItems": _unique,
    "minProperties": at_least("members", OBJECT),
    "maxProperties": at_most("members", OBJECT),
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "required": _required,
    "dependentRequired": _dependent,
    "dependentSchemas": _dependent,
    "dependencies": _dependent,
}
#: Those that differ before 2020-12.
OLD_PART_RULES: Final[Mapping[str, KeywordRule]] = {
    "items": _items_before_2020,
    "additionalItems": _additional_items,
}
