"""Strategies for the values that reach goals: one for each way to reach them.

Strategies of items and members are made when they are first drawn from. The deeper they are, the
fewer items and members they add. From `DEEPEST` on they use the lowest choice, whose parts are
lower, so that values of a recursive schema are finite.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from itertools import accumulate, repeat

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from ..._value import JSON
from ._case import Goals, ValueCase, identity
from ._containers import DEEPEST, ValueStrategy, arrays, objects
from ._expand import matches
from ._numbers import floats, integers
from ._plan import PlannedChoice, Planner
from ._texts import Formats, texts


class StrategyBuilder:
    """Makes strategies; each once.

    Args:
        planner: Knows the choices.
        formats: The strategies of the formats.
        whole_floats: True if 1.0 is an integer.
    """

    def __init__(self, planner: Planner, formats: Formats, *, whole_floats: bool) -> None:
        self._planner = planner
        self._made: dict[tuple[Goals, int], ValueStrategy] = {}
        self._scalars: dict[str, Callable[[ValueCase], ValueStrategy]] = {
            "null": lambda _case: st.none(),
            "boolean": _booleans,
            "integer": partial(integers, whole_floats=whole_floats),
            "fraction": floats,
            "string": lambda case: texts(case, matches, formats),
            "values": self._listed,
        }

    def values(self, goals: Goals, depth: int = 0) -> ValueStrategy:
        """Return the strategy for the values that reach all goals.

        Args:
            goals: The goals; there must be such a value.
            depth: The number of arrays and objects around it.
        """
        depth = min(depth, DEEPEST)
        found = self._made.get((goals, depth))
        if found is None:
            found = st.deferred(lambda: self._choose(goals, depth))
            self._made[goals, depth] = found
        return found

    def _choose(self, goals: Goals, depth: int) -> ValueStrategy:
        ways = self._planner.ways(goals)
        if depth == DEEPEST:
            least = min(choice.height for _, choices in ways for choice in choices)
            low = [(1, [each for each in choices if each.height == least]) for _, choices in ways]
            ways = [way for way in low if way[1]]
        return pick(
            [self._of_choices(choices, depth) for _, choices in ways],
            [weight for weight, _ in ways],
        )

    def _of_choices(self, choices: list[PlannedChoice], depth: int) -> ValueStrategy:
        """Return the strategy that draws each case equally often, and each type of it."""
        cases: dict[int, list[ValueStrategy]] = {}
        for each in choices:
            made = self._of_kind(each.case, each.kind, depth)
            cases.setdefault(id(each.case), []).append(made)
        return pick([pick(kinds) for kinds in cases.values()])

    def _of_kind(self, case: ValueCase, kind: str, depth: int) -> ValueStrategy:
        if kind in self._scalars:
            return self._scalars[kind](case)
        make = arrays if kind == "array" else objects
        found = make(self._planner, self.values, case, depth)
        if case.excluded:
            return found.filter(lambda value: identity(value) not in case.excluded)
        return found

    def _listed(self, case: ValueCase) -> ValueStrategy:
        # A copy: a test may change it.
        return st.sampled_from(self._planner.candidates(case)).map(deepcopy)


def pick(options: list[ValueStrategy], weights: Iterable[int] = repeat(1)) -> ValueStrategy:
    """Return the strategy that draws each of several equally often, or by weights.

    `one_of` would flatten options that consist of several strategies, such as integers, and draw
    mostly from these.
    """
    ends = list(accumulate(weight for _, weight in zip(options, weights, strict=False)))
    return options[0] if len(options) == 1 else _picked(options, ends)


@st.composite
def _picked(draw: DrawFn, options: list[ValueStrategy], ends: list[int]) -> JSON:
    return draw(options[bisect_right(ends, draw(st.integers(0, ends[-1] - 1)))])


def _booleans(case: ValueCase) -> ValueStrategy:
    return st.sampled_from([each for each in (False, True) if identity(each) not in case.excluded])
