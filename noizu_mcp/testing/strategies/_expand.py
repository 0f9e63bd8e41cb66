"""Goals resolved into cases: references followed, keywords of one place put together."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final

from ..._value import JSON, JSONObject
from ...schema import Document, compile_schema
from ._case import ANY, Either, Goal, Goals, ScopePath, ValueCase, combine, join, merge
from ._combined import KeywordSet, left_over
from ._keywords import Subschema

# Cases that are kept while the branches beside one of a `oneOf` are excluded: for each case, and
# in all unless there are more before.
_WAYS: Final = 3
_ALL_WAYS: Final = 12
# References that look for the outermost schema with their anchor.
_DYNAMIC: Final = frozenset({"$dynamicRef", "$recursiveRef"})


@lru_cache(maxsize=1_000)
def _matcher(pattern: str) -> Callable[[str], bool]:
    return compile_schema({"type": "string", "pattern": pattern}).is_valid


def matches(pattern: str, text: str) -> bool:
    """Tell if a pattern of ECMA-262 is found in a text, by the schema engine."""
    return _matcher(pattern)(text)


def goals_of(case: ValueCase, name: str) -> Goals:
    """Return the goals of the member with a name."""
    rules = [rule.goals for rule in case.members if rule.where.covers(name, matches)]
    return join((), tuple(goal for goals in rules for goal in goals))


class Expander:
    """Resolves goals into cases; each once.

    Args:
        document: The schema.
        formats: The formats that are known; the others are not looked at.
        asserted: True if a text can break a format.

    Attributes:
        dialect: The keywords of the schema.
    """

    def __init__(
        self, document: Document, formats: frozenset[str], *, asserted: bool = False
    ) -> None:
        self.formats = formats
        self.asserted = asserted
        self._document = document
        self._known: dict[Goals, list[ValueCase]] = {}
        self._open: set[Goal] = set()
        self.dialect = KeywordSet(document.dialect)
        self._dynamic = any(not _DYNAMIC.isdisjoint(node) for node in document.reachable())

    def cases(self, goals: Goals) -> list[ValueCase]:
        """Return the cases in which a value reaches all goals."""
        found = self._known.get(goals)
        if found is None:
            found = [ANY]
            for goal in goals:
                found = combine(found, self._alternatives(goal))
            self._known[goals] = found
        return found

    def _alternatives(self, goal: Goal | Either) -> list[ValueCase]:
        if isinstance(goal, Either):
            return [case for option in goal.options for case in self.cases(option)]
        if not isinstance(goal.node, dict):
            return [ANY] if goal.node is (goal.mood == "is") else []
        if goal in self._open:
            # A subschema that applies itself to the same value asks nothing new.
            return [ANY]
        scope = goal.scope
        if self._dynamic:
            base = self._document.base_of(goal.node)
            scope = scope if base in scope else (*scope, base)
        self._open.add(goal)
        try:
            place = Subschema(self, goal.node, scope, goal.mood)
            if goal.mood == "is":
                return self._fitting(place, self.dialect.keywords(goal.node))
            found = list(self._breaking(place))
            return found if goal.mood == "near" else [case.unseen() for case in found]
        finally:
            self._open.discard(goal)

    def _fitting(self, place: Subschema, keywords: Mapping[str, JSON]) -> list[ValueCase]:
        """Return the cases that fit some keywords of a subschema."""
        found = [ANY]
        rules, unevaluated = self.dialect.rules, self.dialect.unevaluated
        for keyword in keywords:
            if keyword in rules:
                found = combine(found, rules[keyword](place, keywords[keyword]))
        # These come last: they look at what the others have judged.
        for keyword in keywords:
            if keyword in unevaluated:
                rule, goal = unevaluated[keyword], place.goal(keywords[keyword], "is")
                found = [made for case in found for made in combine([case], [rule(case, goal)])]
        return found

    def _breaking(self, place: Subschema) -> Iterator[ValueCase]:
        """Yield the cases that break a keyword of a subschema.

        For "near" the other keywords are fitted, unless that contradicts the broken one.
        """
        node = self.dialect.keywords(place.node)
        rules, unevaluated = self.dialect.rules, self.dialect.unevaluated
        fitting = place.fitting()
        for keyword in node:
            rest = {name: value for name, value in node.items() if name != keyword}
            if keyword in rules:
                broken = rules[keyword](place, node[keyword])
                if place.near:
                    broken = [_marked(case, place.node, keyword) for case in broken]
                    broken = combine(broken, self._fitting(fitting, rest)) or broken
                yield from broken
            elif keyword in unevaluated:
                goal = place.goal(node[keyword])
                for case in self._fitting(fitting, rest):
                    for made in combine([case], left_over(keyword, case, goal)):
                        yield _marked(made, place.node, keyword) if place.near else made

    def excluding(self, cases: list[ValueCase], goal: Goal) -> list[ValueCase]:
        """Return the cases that reach another goal, too, which is the opposite of a subschema.

        The branches beside one of a `oneOf` can be broken in many ways each. A few are kept: those
        that ask for the least, and contradict nothing one level deeper.
        """
        options = sorted(self.cases((goal,)), key=_demands)
        found: list[list[ValueCase]] = []
        for case in cases:
            made: list[ValueCase] = []
            for option in options:
                merged = merge(case, option)
                if merged is not None and vars(merged) == vars(case):
                    made = [case]
                    break
                if merged is not None and self._is_possible(merged):
                    made.append(merged)
                if len(made) == _WAYS:
                    break
            found.append(made)
        most = max(_ALL_WAYS, len(cases))
        # The first way of each case, then the second, and so on.
        ways = (made[at] for at in range(_WAYS) for made in found if at < len(made))
        return list(islice(ways, most))

    def _is_possible(self, case: ValueCase) -> bool:
        """Tell if an object of a case does not contradict itself in its members."""
        if case.kinds != {"object"}:
            return True
        rest = [rule.goals for rule in case.members if rule.where.others]
        open_names = tuple(goal for goals in rest for goal in goals)
        return all(self.cases(goals_of(case, name)) for name in case.required) and all(
            self.cases(join(open_names, rule.goals)) for rule in case.somewhere if rule.where.others
        )

    def target(self, keyword: str, node: JSONObject, scope: ScopePath) -> JSON:
        """Return the subschema to which a reference leads; None if it is not at hand.

        Args:
            keyword: `$ref`, `$dynamicRef` or `$recursiveRef`.
            node: The subschema that has it.
            scope: The dynamic scope.
        """
        try:
            return self._document.target(keyword, node, scope)
        except LookupError:
            return None


def _marked(case: ValueCase, node: JSONObject, keyword: str) -> ValueCase:
    """Return a case with the keyword that it breaks, unless a subschema has named another one."""
    return case if case.breaks else case.but(breaks=((id(node), keyword),))


def _demands(case: ValueCase) -> int:
    """Return how much a case asks for: members that must be there are worse than absent ones."""
    return len(case.somewhere) * 100 + len(case.required) * 10 + len(case.members) + len(case.items)
