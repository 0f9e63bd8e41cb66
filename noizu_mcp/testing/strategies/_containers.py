"""Strategies for arrays and objects."""

from collections.abc import Callable, Container
from copy import deepcopy
from math import inf
from typing import Final

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ..._value import JSON, JSONObject
from ._case import Contains, Goal, Goals, Somewhere, ValueCase, identity, join
from ._expand import goals_of, matches
from ._plan import MemberSlot, Planner

ValueStrategy = SearchStrategy[JSON]
#: Returns the strategy for the values that reach goals at a depth.
Make = Callable[[Goals, int], ValueStrategy]

#: The depth from which on values are the least ones.
DEEPEST: Final = 5
# Items and members beyond the least number, by depth.
_MORE: Final = (6, 4, 2, 1, 1, 0)
# The longest array, and the largest object, that is made up to its greatest size.
_FULL: Final = 40
# A longer array is a short one repeated.
_REPEATED: Final = 60
# Members whose names are drawn.
_DRAWN_NAMES: Final = 12
# Names that programs trip over.
_HARD_NAMES: Final = (
    *("a", "b", "", " ", "0", "id", "null", "None", "self", "length", "toString", "constructor"),
    *("__proto__", "__class__", "$ref", "a.b", "a/b", "~", "\u00e9", "e\u0301", "\U0001f600"),
)


def arrays(planner: Planner, make: Make, case: ValueCase, depth: int) -> ValueStrategy:
    """Return the strategy for the arrays of a case.

    Args:
        planner: Knows the goals of items.
        make: Returns the strategies of items.
        case: The case.
        depth: The number of arrays and objects around it.
    """
    goals, most = planner.item_goals(case)
    low = case.min_items
    usual = low if depth == DEEPEST else max(low, len(goals) - 1) + _MORE[depth]
    high = int(min(most, usual))
    if len(goals) > 1 or case.contains or case.repeated:
        return _mixed_array(planner, lambda goals: make(goals, depth + 1), case, high)
    if high == 0:
        return st.builds(list)
    if case.unique:
        high = int(min(high, planner.variety(goals[0])))
    item = make(goals[0], depth + 1)
    if low > _REPEATED and not case.unique:
        return st.lists(item, min_size=1, max_size=4).map(lambda part: _cycle(part, low))
    unique = identity if case.unique else None
    found = st.lists(item, min_size=low, max_size=high, unique_by=unique)
    if high < most <= _FULL and depth < 2:
        size = int(most)
        found = found | st.lists(item, min_size=size, max_size=size, unique_by=unique)
    return found


def _cycle(part: list[JSON], size: int) -> list[JSON]:
    return [deepcopy(part[at % len(part)]) for at in range(size)]


@st.composite
def _mixed_array(
    draw: DrawFn,
    planner: Planner,
    make: Callable[[Goals], ValueStrategy],
    case: ValueCase,
    high: int,
) -> list[JSON]:
    """Draw an array of up to `high` items that have different goals."""
    first, _most = planner.item_goals(case)
    size = draw(st.integers(case.min_items, high))
    goals = [first[min(at, len(first) - 1)] for at in range(size)]
    for rule in case.contains:
        _place(draw, planner, rule, goals)
    twins: tuple[int, int] | None = None
    if case.repeated:
        pair = draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=2, unique=True))
        twins = min(pair), max(pair)
        goals[twins[0]] = join(goals[twins[0]], goals[twins[1]])
    made: list[JSON] = []
    taken = set()
    for at, each in enumerate(goals):
        assume(planner.height(each) < inf)
        if twins is not None and at == twins[1]:
            made.append(deepcopy(made[twins[0]]))
            continue
        if at > _REPEATED and not case.unique and each == goals[at - 1]:
            made.append(deepcopy(made[-1]))
            continue
        item = make(each)
        if case.unique:
            item = item.filter(lambda value: identity(value) not in taken)
        made.append(draw(item))
        taken.add(identity(made[-1]))
    return made


def _place(draw: DrawFn, planner: Planner, rule: Contains, goals: list[Goals]) -> None:
    """Add the goal of `contains` to as many items as it asks for, and its opposite to others."""
    joined = [join(each, (rule.goal,)) for each in goals]
    free = [at for at, each in enumerate(joined) if planner.height(each) < inf]
    assume(len(free) >= rule.least)
    chosen = set()
    if rule.least:
        size = rule.least
        chosen = set(
            draw(st.lists(st.sampled_from(free), min_size=size, max_size=size, unique=True))
        )
    opposite = Goal(rule.goal.node, "not", rule.goal.scope)
    for at in range(len(goals)):
        if at in chosen:
            goals[at] = joined[at]
        elif len(goals) > rule.most:
            goals[at] = join(goals[at], (opposite,))


def objects(planner: Planner, make: Make, case: ValueCase, depth: int) -> ValueStrategy:
    """Return the strategy for the objects of a case; see `arrays` for the arguments."""
    return _object(_CaseMembers(planner, make, case, depth))


# General names first: a name that matters shrinks to a short one.
_NAMES: Final = st.text(max_size=6) | st.sampled_from(_HARD_NAMES)


class _CaseMembers:
    """The members that the objects of a case may have.

    Attributes:
        make: Returns the strategies of members.
        case: The case.
        depth: The number of arrays and objects around it.
        slots: The names that members may have, with their goals.
    """

    def __init__(self, planner: Planner, make: Make, case: ValueCase, depth: int) -> None:
        self.make = make
        self.case = case
        self.depth = depth
        self.slots = [slot for slot in planner.slots(case) if planner.height(slot.goals) < inf]
        self._planner = planner
        self._listed = {slot: planner.names_of(case, slot) for slot in self.slots}

    def required(self) -> dict[str, Goals]:
        """Return the goals of the members that are there in any case."""
        return {name: goals_of(self.case, name) for name in self.case.required}

    def add(
        self,
        draw: DrawFn,
        slot: MemberSlot,
        chosen: dict[str, Goals],
        rule: Somewhere | None = None,
    ) -> None:
        """Add a member with a name of a slot to those chosen, by the goals of a rule if given."""
        case, more = (self.case, ()) if rule is None else (self.case.beside(rule), rule.goals)
        name = slot.name
        if name is None:
            name = self._numbered(slot, chosen) if rule is None else None
        if name is None:
            names = self._names(case, slot, rule)
            name = draw(names.filter(lambda each: each not in chosen))
        goals = join(goals_of(case, name), more)
        assume(self._planner.height(goals) < inf)
        chosen[name] = goals

    def _numbered(self, slot: MemberSlot, chosen: dict[str, Goals]) -> str | None:
        """Return a name for one more of many members, which are too many to draw all names."""
        name = f"n{len(chosen)}"
        fits = slot.where.covers(name, matches) and self._planner.is_name(self.case, name)
        return name if len(chosen) >= _DRAWN_NAMES and name not in chosen and fits else None

    def room(self, slot: MemberSlot, wanted: float, chosen: Container[str] = ()) -> float:
        """Return how many of the members that are wanted a slot has names for."""
        names = self._listed[slot]
        return wanted if names is None else min(wanted, sum(each not in chosen for each in names))

    def options(self, rule: Somewhere) -> list[MemberSlot]:
        """Return the slots in which a member may follow a rule."""
        return [slot for slot, _goals in self._planner.options(self.case, rule)]

    def _names(
        self, case: ValueCase, slot: MemberSlot, rule: Somewhere | None
    ) -> SearchStrategy[str]:
        """Return the strategy for the names of a slot that may stand in the object."""
        planner = self._planner
        goals = planner.name_goals(case, slot, () if rule is None else rule.names)
        listed = self._listed[slot] if rule is None else None
        names: SearchStrategy[str] = _NAMES
        if listed is not None:
            names = st.sampled_from(listed)
        elif len(goals) > 1:
            names = self.make(goals, DEEPEST) if planner.height(goals) < inf else st.nothing()
        return names.filter(
            lambda name: slot.where.covers(name, matches) and planner.is_name(case, name)
        )


@st.composite
def _object(draw: DrawFn, members: _CaseMembers) -> JSONObject:
    """Draw an object: the members that it must have, some that it may have, and others."""
    case, chosen = members.case, members.required()
    for rule in case.somewhere:
        options = members.options(rule)
        members.add(draw, draw(st.sampled_from(options)), chosen, rule)
    optional = [slot for slot in members.slots if slot.name is not None and slot.name not in chosen]
    least = members.depth == DEEPEST
    for slot in optional:
        if len(chosen) < case.max_members and not least and draw(st.booleans()):
            members.add(draw, slot, chosen)
    many = [slot for slot in members.slots if slot.name is None]
    missing = case.min_members - len(chosen)
    room = case.max_members - len(chosen)
    room = min(room, sum(members.room(slot, room) for slot in many))
    if many and room > 0:
        least_new = max(missing, 0)
        most_new = int(min(room, least_new + _MORE[members.depth] // 2))
        counts = st.integers(least_new, most_new)
        if most_new < room <= _FULL and members.depth < 2:
            counts = counts | st.just(int(room))
        for _ in range(draw(counts)):
            # Two patterns may have names in common.
            if free := [slot for slot in many if members.room(slot, 1, chosen)]:
                members.add(draw, draw(st.sampled_from(free)), chosen)
    for slot in optional:
        if len(chosen) < case.min_members and slot.name not in chosen:
            members.add(draw, slot, chosen)
    return {name: draw(members.make(goals, members.depth + 1)) for name, goals in chosen.items()}
