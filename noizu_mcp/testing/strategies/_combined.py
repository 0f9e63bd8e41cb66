"""The keywords that apply other schemas to the same value, and all keywords by dialect."""

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Final

import attrs

from ..._value import JSON, JSONObject
from ._case import ANY, Either, Goal, Goals, Items, MemberGoals, Mood, ValueCase, combine
from ._keywords import VALUE_RULES, KeywordRule, Subschema, bound
from ._parts import OLD_PART_RULES, PART_RULES, contains_once, one_item, one_member

_OPPOSITE: Final[Mapping[Mood, Mood]] = {"is": "not", "not": "is", "near": "is"}
# Pairs of branches of a `oneOf` that are tried together.
_MOST_PAIRS: Final = 40


def _all_of(place: Subschema, value: list[JSON]) -> list[ValueCase]:
    if place.fits:
        return place.cases(*map(place.goal, value))
    return [case for index in range(len(value)) for case in _one_broken(place, value, index, "is")]


def _one_broken(place: Subschema, value: list[JSON], index: int, others: Mood) -> list[ValueCase]:
    """Return the cases that break one of several subschemas; for "near" the others have a mood."""
    broken = place.goal(value[index])
    rest = [each for at, each in enumerate(value) if at != index]
    if others == "not":
        return _excluding(place, place.cases(broken), rest)
    fitting = [place.goal(each, "is") for each in rest if place.near]
    return place.cases(broken, *fitting)


def _excluding(place: Subschema, cases: list[ValueCase], others: Iterable[JSON]) -> list[ValueCase]:
    """Return the cases in which a value breaks other subschemas, too."""
    for each in others:
        cases = place.expander.excluding(cases, place.goal(each, "not"))
    return cases


def _any_of(place: Subschema, value: list[JSON]) -> list[ValueCase]:
    if place.fits:
        return [case for each in value for case in place.cases(place.goal(each))]
    # "near": one of the branches is broken narrowly.
    indexes = range(len(value) if place.near else 1)
    return [case for index in indexes for case in _one_broken(place, value, index, "not")]


def _one_of(place: Subschema, value: list[JSON]) -> list[ValueCase]:
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


def _not(place: Subschema, value: JSON) -> list[ValueCase]:
    return place.cases(place.goal(value, _OPPOSITE[place.mood]))


def _if(place: Subschema, value: JSON) -> list[ValueCase]:
    found = []
    for keyword, mood in (("then", "is"), ("else", "not")):
        condition = place.goal(value, "is" if mood == "is" else "not")
        if keyword in place.node:
            found += place.cases(condition, place.goal(place.node[keyword]))
        elif place.fits:
            found += place.cases(condition)
    return found


def _reference(keyword: str) -> KeywordRule:
    def rule(place: Subschema, _value: str) -> list[ValueCase]:
        target = place.target(keyword)
        return [ANY] if target is None else place.cases(place.goal(target))

    return rule


def _rest_of_members(case: ValueCase, goal: Goal) -> ValueCase:
    if case.all_seen:
        return ANY
    where = attrs.evolve(case.seen, others=True)
    return ValueCase(members=(MemberGoals(where, (goal,)),), all_seen=True)


def _rest_of_items(case: ValueCase, goal: Goal) -> ValueCase:
    if case.seen_items == inf:
        return ANY
    # An item that a `contains` has judged is not left over.
    options = ((goal,), *((each,) for each in case.seen_contains))
    goals: Goals = (Either(options),) if case.seen_contains else (goal,)
    return ValueCase(items=(Items(int(case.seen_items), inf, goals),), seen_items=inf)


def left_over(keyword: str, case: ValueCase, goal: Goal) -> list[ValueCase]:
    """Return the cases in which a member or an item that nothing has judged breaks a goal.

    Args:
        keyword: `unevaluatedProperties` or `unevaluatedItems`.
        case: The case that fits the keywords beside it.
        goal: The goal of the left over ones, broken.
    """
    if keyword == "unevaluatedProperties":
        where = attrs.evolve(case.seen, others=True)
        return [] if case.all_seen else [one_member(where, goal)]
    if case.seen_items == inf:
        return []
    first = int(case.seen_items)
    unjudged = [Goal(each.node, "not", each.scope) for each in _single(case.seen_contains)]
    broken = one_item(goal, first, first)
    other = ValueCase(items=(Items(first, first + 1, tuple(unjudged)),))
    return combine([broken], [other])


def _single(goals: Goals) -> list[Goal]:
    return [goal for goal in goals if isinstance(goal, Goal)]


Rest = Callable[[ValueCase, Goal], ValueCase]
_UNEVALUATED: Final[Mapping[str, Rest]] = {
    "unevaluatedProperties": _rest_of_members,
    "unevaluatedItems": _rest_of_items,
}
_RULES: Final[Mapping[str, KeywordRule]] = {
    **VALUE_RULES,
    **PART_RULES,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _reference("$ref"),
    "$dynamicRef": _reference("$dynamicRef"),
}
# Each dialect before 2020-12, newest first: a part of its URI, the rules in which it differs from
# the newer ones, and the keywords that it does not know.
_OLDER: Final[tuple[tuple[str, Mapping[str, KeywordRule], frozenset[str]], ...]] = (
    (
        "2019-09",
        {**OLD_PART_RULES, "$recursiveRef": _reference("$recursiveRef")},
        frozenset({"prefixItems", "$dynamicRef"}),
    ),
    (
        "draft-07",
        {"contains": contains_once},
        frozenset({"dependentRequired", "dependentSchemas", "$recursiveRef"}),
    ),
    ("draft-06", {}, frozenset({"if"})),
    (
        "draft-04",
        {
            "minimum": bound("low", "high", mark="exclusiveMinimum"),
            "maximum": bound("high", "low", mark="exclusiveMaximum"),
        },
        frozenset({"const", "contains", "propertyNames", "exclusiveMinimum", "exclusiveMaximum"}),
    ),
)


class KeywordSet:
    """The keywords of a dialect.

    Args:
        uri: The URI of the dialect; an unknown one is treated as 2020-12.

    Attributes:
        rules: The rule of each keyword.
        unevaluated: For each keyword that looks at what the others have judged: returns the case
            in which the rest reaches a goal.
        whole_floats: True if 1.0 is an integer, as it is since draft 6.
    """

    def __init__(self, uri: str) -> None:
        names = [name for name, _changed, _unknown in _OLDER]
        age = next((at + 1 for at, name in enumerate(names) if name in uri), 0)
        self.rules = dict(_RULES)
        for _name, changed, unknown in _OLDER[:age]:
            self.rules.update(changed)
            self.rules = {name: rule for name, rule in self.rules.items() if name not in unknown}
        self._is_old = age > 1
        self.whole_floats = age < len(_OLDER)
        self.unevaluated: Mapping[str, Rest] = {} if self._is_old else _UNEVALUATED

    def keywords(self, node: JSONObject) -> JSONObject:
        """Return the keywords of a subschema that count: up to draft 7 a `$ref` stands alone."""
        return {"$ref": node["$ref"]} if self._is_old and "$ref" in node else node
