"""The plan of a schema: which of its cases have values, and how deep the least of them is.

The height of goals is the depth of nesting of the least value that reaches them, infinite if no
value does. A recursive schema has finite values only through the cases that end the recursion; a
strategy that is deep enough takes the lowest case, whose parts are lower, so it always ends.
"""

from collections.abc import Callable, Collection, Hashable
from functools import lru_cache
from itertools import repeat
from math import inf
from typing import Final, NamedTuple

from ..._value import JSON, JSONObject
from ._case import (
    ANY,
    KINDS,
    Goal,
    Goals,
    MemberNames,
    Somewhere,
    ValueCase,
    identity,
    integer_range,
    join,
    kind_of,
)
from ._expand import Expander, goals_of, matches
from ._numbers import float_range, in_limits
from ._texts import can_be_text, list_texts

# Names are texts.
_TEXT: Final = {"type": "string"}
#: The goal of every name.
NAME: Final = Goal(_TEXT)
# A cycle of goals is met before; a longer way down is no plan for a test.
_DEEPEST: Final = 60


@lru_cache(maxsize=1_000)
def _pattern_goal(pattern: str) -> Goal:
    return Goal({"type": "string", "pattern": pattern})


class PlannedChoice(NamedTuple):
    """One way to reach goals: values of one type in one case.

    Attributes:
        case: The case.
        kind: The type; "values" if the case lists its values.
        height: The depth of the least value.
    """

    case: ValueCase
    kind: str
    height: float


class MemberSlot(NamedTuple):
    """Names of members that have the same goals.

    Attributes:
        name: A single name; None for others.
        where: The names.
        goals: The goals of the members.
    """

    name: str | None
    where: MemberNames
    goals: Goals


class Planner:
    """Finds the choices for goals, and judges values by cases.

    Args:
        expander: Resolves goals.
    """

    def __init__(self, expander: Expander) -> None:
        self._expander = expander
        self._heights: dict[Goals, float] = {}
        self._open: set[Goals] = set()
        self._cuts = 0
        self._weights: dict[Goal, int] = {}
        self._weighed: set[Goal] = set()
        self._bounded: dict[Goal, bool] = {}

    def height(self, goals: Goals) -> float:
        """Return the depth of the least value that reaches all goals; infinite if none does."""
        known = self._heights.get(goals)
        if known is not None:
            return known
        if goals in self._open or len(self._open) > _DEEPEST:
            self._cuts += 1
            return inf
        before = self._cuts
        self._open.add(goals)
        try:
            found = min((choice.height for choice in self.choices(goals)), default=inf)
        finally:
            self._open.discard(goals)
        # Infinite only because a cycle was cut is not for good: elsewhere it may be finite.
        if found < inf or before == self._cuts or not self._open:
            self._heights[goals] = found
        return found

    def choices(self, goals: Goals) -> list[PlannedChoice]:
        """Return the ways to reach all goals, those without a value left out."""
        found = []
        for case in self._expander.cases(goals):
            if case.values is not None:
                height = 0 if self.candidates(case) else inf
                options = [PlannedChoice(case, "values", height)]
            else:
                options = [
                    PlannedChoice(case, kind, self._kind_height(case, kind))
                    for kind in KINDS
                    if kind in case.kinds
                ]
            found += [option for option in options if option.height < inf]
        return found

    def ways(self, goals: Goals) -> list[tuple[int, list[PlannedChoice]]]:
        """Return the choices for goals in groups, each with its weight.

        A near miss breaks one keyword. The cases of one keyword are a group of weight 1; if the
        keyword is broken in an item or a member, the group weighs as much as all keywords that can
        be broken there. So each keyword of a schema is as likely as any other, however deep it is.
        """
        groups: dict[Hashable, list[PlannedChoice]] = {}
        for choice in self.choices(goals):
            case = choice.case
            groups.setdefault((case.breaks, case.near) if case.breaks else id(case), []).append(
                choice
            )
        return [(self._weight(each[0].case), each) for each in groups.values()]

    def _weight(self, case: ValueCase) -> int:
        """Return the number of keywords that a case can break; a schema counts once in itself."""
        if not case.near or len(self._weighed) > _DEEPEST:
            return 1
        found = 0
        for goal in case.near:
            if goal not in self._weights and goal not in self._weighed:
                self._weighed.add(goal)
                self._weights[goal] = sum(weight for weight, _ in self.ways((goal,)))
                self._weighed.discard(goal)
            found += self._weights.get(goal, 1)
        return found

    def has_last_place(self, case: ValueCase) -> bool:
        """Tell whether a case breaks a keyword further inside, in a schema that is not recursive.

        Its near misses end by themselves, however deep they are.
        """
        return bool(case.near) and all(map(self._is_bounded, case.near))

    def _is_bounded(self, goal: Goal) -> bool:
        if goal not in self._bounded:
            # A goal that is reached again meanwhile is within itself.
            self._bounded[goal] = False
            cases = (choice.case for _, choices in self.ways((goal,)) for choice in choices)
            self._bounded[goal] = all(map(self._is_bounded, (n for c in cases for n in c.near)))
        return self._bounded[goal]

    def candidates(self, case: ValueCase) -> list[JSON]:
        """Return the values that a case lists and that are within its limits."""
        return [value for value in case.values or () if self._is_in_limits(case, value)]

    def variety(self, goals: Goals) -> float:
        """Return a number of different values that reach all goals: there are no more."""
        kinds = ((case, kind) for case in self._expander.cases(goals) for kind in _kinds_of(case))
        return sum(self._kind_variety(case, kind) for case, kind in kinds)

    def _listed_texts(self, case: ValueCase) -> list[str] | None:
        """Return all texts of a case; None if they are many, or not known."""
        lists = [("",)] if case.max_length == 0 else map(list_texts, case.patterns)
        listed = next((each for each in lists if each is not None), None)
        if listed is None:
            return None
        return [text for text in listed if self._is_in_limits(case, text)]

    def _kind_variety(self, case: ValueCase, kind: str) -> float:
        if kind == "values":
            return len(self.candidates(case))
        if kind == "integer":
            low, high, _step = integer_range(case)
            return max(0, high - low + 1)
        if kind == "string":
            listed = self._listed_texts(case)
            return inf if listed is None else len(listed)
        return {"null": 1, "boolean": 2}.get(kind, inf)

    def _kind_height(self, case: ValueCase, kind: str) -> float:
        if kind == "array":
            return self._array_height(case)
        if kind == "object":
            return self._object_height(case)
        if kind == "fraction":
            low, high = float_range(case)
            return 0 if low <= high else inf
        if kind == "string":
            return 0 if can_be_text(case) else inf
        if kind in ("null", "boolean"):
            values = (None,) if kind == "null" else (False, True)
            return 0 if any(identity(value) not in case.excluded for value in values) else inf
        return 0

    def _array_height(self, case: ValueCase) -> float:
        goals, most = self.item_goals(case)
        if case.min_items > most:
            return inf
        if case.unique and len(goals) == 1 and case.min_items > self.variety(goals[0]):
            return inf
        # Behind the last of them all items have the same goals.
        heights = [self.height(goals[at]) for at in range(min(case.min_items, len(goals)))]
        for rule in case.contains:
            if rule.least:
                # It may be one of the items that are there already, or another one.
                places = range(int(min(len(goals), most)))
                tries = [self.height(join(goals[at], (rule.goal,))) for at in places]
                heights.append(min(tries, default=inf))
        return 1 + max(heights) if heights else 0

    def item_goals(self, case: ValueCase) -> tuple[list[Goals], float]:
        """Return the goals of the first items, the last for all further ones, and how many fit."""
        ends = [rule.first for rule in case.items]
        ends += [int(rule.last) for rule in case.items if rule.last < inf]
        goals = [_goals_at(case, at) for at in range(max(ends, default=0) + 1)]
        for at, each in enumerate(goals):
            if self.height(each) == inf:
                return goals, min(case.max_items, at)
        return goals, case.max_items

    def _object_height(self, case: ValueCase) -> float:
        slots = self.slots(case)
        heights: list[float] = [0] if not case.required else []
        for name in case.required:
            if not self.is_name(case, name):
                return inf
            heights.append(1 + self.height(goals_of(case, name)))
        for rule in case.somewhere:
            tries = [self.height(goals) for _, goals in self.options(case, rule)]
            heights.append(1 + min(tries, default=inf))
        missing = case.min_members - len(case.required)
        if missing > 0:
            free = [slot for slot in slots if slot.name not in case.required]
            least = sorted(
                height
                for slot in free
                # A slot serves for as many members as it has names.
                for height in repeat(self.height(slot.goals), self.room(case, slot, missing))
            )
            heights.append(1 + least[missing - 1] if len(least) >= missing else inf)
        return max(heights)

    def room(self, case: ValueCase, slot: MemberSlot, wanted: float) -> int:
        """Return how many of the members that are wanted a slot has names for."""
        names = self.names_of(case, slot)
        return int(wanted if names is None else min(wanted, len(names)))

    def names_of(self, case: ValueCase, slot: MemberSlot) -> list[str] | None:
        """Return the names of a slot that have no slots of their own; None for many."""
        if slot.name is not None:
            return [slot.name]
        found: list[str] = []
        for each in self._expander.cases(self.name_goals(case, slot)):
            listed = self._listed_texts(each) if each.values is None else self.candidates(each)
            if listed is None:
                return None
            found += listed
        own = {each.name for each in self.slots(case)}
        return [
            name
            for name in dict.fromkeys(found)
            if name not in own and slot.where.covers(name, matches) and self.is_name(case, name)
        ]

    def name_goals(self, case: ValueCase, slot: MemberSlot, more: Goals = ()) -> Goals:
        """Return the goals of the names of a slot, and more of them."""
        goals = join(case.names, more)
        if not slot.where.others:
            goals = join(goals, tuple(map(_pattern_goal, slot.where.patterns)))
        return join(goals, (NAME,))

    def slots(self, case: ValueCase) -> list[MemberSlot]:
        """Return the names that members may have, by their goals."""
        sets = [rule.where for rule in case.members]
        sets += [rule.where for rule in case.somewhere]
        listed = self._listed_names(case)
        declared = (name for each in sets for name in sorted(each.names))
        names = dict.fromkeys((*case.required, *declared, *(listed or ())))
        patterns = dict.fromkeys(pattern for each in sets for pattern in each.patterns)
        found = [
            MemberSlot(name, MemberNames(frozenset({name})), goals_of(case, name))
            for name in names
            if self.is_name(case, name)
        ]
        if listed is not None:
            return found
        for pattern in patterns:
            where = MemberNames(patterns=(pattern,))
            found.append(MemberSlot(None, where, self._pattern_goals(case, pattern)))
        rest = MemberNames(frozenset(names), tuple(patterns), others=True)
        goals = [rule.goals for rule in case.members if rule.where.others]
        return [
            *found,
            MemberSlot(None, rest, join((), tuple(each for one in goals for each in one))),
        ]

    def _listed_names(self, case: ValueCase) -> list[str] | None:
        """Return all names that members may have; None if they are not listed."""
        cases = self._expander.cases(join(case.names, (NAME,))) if case.names else [ANY]
        if any(each.values is None for each in cases):
            return None
        return [name for each in cases for name in self.candidates(each)]

    def options(self, case: ValueCase, rule: Somewhere) -> list[tuple[MemberSlot, Goals]]:
        """Return the slots in which a member may follow a rule, with its goals there."""
        found = []
        for slot in self.slots(case.beside(rule)):
            goals = join(slot.goals, rule.goals)
            named = slot.name is None or self.fits(rule.names, slot.name)
            if named and covers(rule.where, slot) and self.height(goals) < inf:
                found.append((slot, goals))
        return found

    def is_name(self, case: ValueCase, name: str) -> bool:
        """Tell if a member of an object may have a name."""
        return name not in case.absent and self.fits(case.names, name)

    def _pattern_goals(self, case: ValueCase, pattern: str) -> Goals:
        rules = [
            rule.goals
            for rule in case.members
            if (pattern in rule.where.patterns) is not rule.where.others
        ]
        return join((), tuple(goal for goals in rules for goal in goals))

    def fits(self, goals: Goals, value: JSON) -> bool:
        """Tell if a value reaches all goals, as far as cases tell."""
        return all(
            any(self._accepts(case, value) for case in self._expander.cases((goal,)))
            for goal in goals
        )

    def _accepts(self, case: ValueCase, value: JSON) -> bool:
        """Tell if a value is within the limits of a case, and among its values."""
        if case.values is not None and identity(value) not in map(identity, case.values):
            return False
        return self._is_in_limits(case, value)

    def _is_in_limits(self, case: ValueCase, value: JSON) -> bool:
        kind = kind_of(value)
        if kind not in case.kinds or identity(value) in case.excluded:
            return False
        check = _CHECKS.get(kind)
        return check is None or check(self, case, value)

    def accepts_text(self, case: ValueCase, value: str) -> bool:
        """Tell if a text is within the limits of a case; formats are not looked at."""
        return (
            case.min_length <= len(value) <= case.max_length
            and all(matches(pattern, value) for pattern in case.patterns)
            and not any(matches(pattern, value) for pattern in case.not_patterns)
        )

    def accepts_array(self, case: ValueCase, value: list[JSON]) -> bool:
        """Tell if an array is within the limits of a case."""
        different = len(set(map(identity, value)))
        if not case.min_items <= len(value) <= case.max_items:
            return False
        if (case.unique and different < len(value)) or (case.repeated and different == len(value)):
            return False
        if not all(self.fits(_goals_at(case, at), item) for at, item in enumerate(value)):
            return False
        counts = [sum(self.fits((rule.goal,), item) for item in value) for rule in case.contains]
        return all(
            rule.least <= count <= rule.most
            for rule, count in zip(case.contains, counts, strict=True)
        )

    def accepts_object(self, case: ValueCase, value: JSONObject) -> bool:
        """Tell if an object is within the limits of a case."""
        return (
            case.min_members <= len(value) <= case.max_members
            and all(name in value for name in case.required)
            and all(self.is_name(case, name) for name in value)
            and all(self.fits(goals_of(case, name), item) for name, item in value.items())
            and all(
                any(self._is_somewhere(rule, *each) for each in value.items())
                for rule in case.somewhere
            )
        )

    def _is_somewhere(self, rule: Somewhere, name: str, item: JSON) -> bool:
        covered = rule.where.covers(name, matches)
        return covered and self.fits(rule.names, name) and self.fits(rule.goals, item)


_CHECKS: Final[dict[str, Callable[[Planner, ValueCase, JSON], bool]]] = {
    "integer": lambda _, case, value: in_limits(value, case),
    "fraction": lambda _, case, value: in_limits(value, case),
    "string": Planner.accepts_text,
    "array": Planner.accepts_array,
    "object": Planner.accepts_object,
}


def _kinds_of(case: ValueCase) -> Collection[str]:
    return case.kinds if case.values is None else ("values",)


def covers(where: MemberNames, slot: MemberSlot) -> bool:
    """Tell if a set has all names of a slot."""
    if slot.name is None and slot.where.others:
        return where.others
    if slot.name is None:
        return (slot.where.patterns[0] in where.patterns) is not where.others
    return where.covers(slot.name, matches)


def _goals_at(case: ValueCase, at: int) -> Goals:
    goals = [rule.goals for rule in case.items if rule.first <= at < rule.last]
    return join((), tuple(goal for each in goals for goal in each))
