"""Cases: one way in which a value can fit, or break, a schema, as plain limits.

Theory of operation. A `Goal` is a subschema that a value must match or break. The keywords of a
goal that apply in place (`allOf`, `$ref`, `anyOf`, `oneOf`, `not`, `if` …) are resolved into a list
of cases: a value reaches the goal if it is within the limits of one case. A case has no in-place
keywords left: only limits for each type of JSON, and goals for items and members. Merging two cases
gives a case with the limits of both, or no case if they contradict each other.

Cases ignore unknown keywords, and a long list of them is cut. So they are a plan, and the schema
engine decides about each value.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from math import ceil, floor, gcd, inf, lcm
from operator import and_, or_
from typing import Any, Final, Literal, TypeVar

import attrs

from ..._json_schema import JSON_TYPES
from ..._value import JSON, Frozen

Mood = Literal["is", "not", "near"]
ScopePath = tuple[str, ...]

#: The types of JSON; a number without a fraction is an integer (2020-12 core section 4.2.3).
KINDS: Final = ("null", "boolean", "integer", "fraction", "string", "array", "object")
_EVERY: Final = frozenset(KINDS)
NUMBERS: Final = frozenset({"integer", "fraction"})

_Goal = TypeVar("_Goal", bound=Hashable)


@attrs.frozen
class Goal:
    """A subschema that a value must fit or break.

    Attributes:
        node: The subschema.
        mood: "is": the value fits; "not": it does not; "near": it does not, and it breaks as few
            keywords as possible.
        scope: The base URIs on the way to it, outermost first: the dynamic scope (2020-12 core
            section 7.1).
    """

    node: JSON = attrs.field(eq=id)
    mood: Mood = "is"
    scope: ScopePath = ()


@attrs.frozen
class Either:
    """Several lists of goals, of which a value must reach one.

    Attributes:
        options: The lists.
    """

    options: tuple["Goals", ...]


#: Goals that a value must reach all together.
Goals = tuple[Goal | Either, ...]


@attrs.frozen
class MemberNames:
    """A set of names of members.

    Attributes:
        names: Single names.
        patterns: Regular expressions of ECMA-262 for others.
        others: True for all names but these.
    """

    names: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    others: bool = False

    def covers(self, name: str, matches: Callable[[str, str], bool]) -> bool:
        """Tell if a name is in the set.

        Args:
            name: The name.
            matches: Tells if a pattern is found in a text.
        """
        listed = name in self.names or any(matches(each, name) for each in self.patterns)
        return listed is not self.others


@attrs.frozen
class Items:
    """Goals of the items from index `first` on, up to `last` exclusive."""

    first: int
    last: float
    goals: Goals


@attrs.frozen
class Contains:
    """A goal that at least `least` and at most `most` items reach."""

    goal: Goal
    least: int
    most: float = inf


@attrs.frozen
class MemberGoals:
    """Goals of all members with a name of a set."""

    where: MemberNames
    goals: Goals


@attrs.frozen
class Somewhere:
    """Goals for one member with a name in a set, in place of the goals for all such members.

    Attributes:
        where: The names.
        goals: The goals of the member.
        names: The goals of its name; they stand instead of those with the same subschemas.
    """

    where: MemberNames
    goals: Goals = ()
    names: Goals = ()


class ValueCase(Frozen):
    """Limits for a value. Limits for other types are ignored.

    A case stores only the limits that are set; others have the defaults of the class: no limit.

    Attributes:
        kinds: The types that it may have.
        values: The values that it may be; None if any.
        excluded: The identities of the values that it must not be.
        low: The least number, and True if the number itself is too small.
        high: The greatest number, and True if the number itself is too large.
        multiples: A number is a multiple of each.
        not_multiples: A number is a multiple of none.
        min_length: Characters of a text.
        max_length: Characters of a text.
        patterns: Regular expressions that are found in a text.
        not_patterns: Regular expressions that are not.
        formats: The formats of a text.
        min_items: Items of an array.
        max_items: Items of an array.
        items: Goals of items.
        contains: Goals of some items.
        unique: True if no two items are equal.
        repeated: True if two items are equal.
        min_members: Members of an object.
        max_members: Members of an object.
        required: Members that are there.
        absent: Members that are not there.
        members: Goals of members.
        names: Goals of all names.
        somewhere: Goals of one member each.
        seen: The names that the subschemas have judged (2020-12 core section 11).
        all_seen: True if these are all.
        seen_items: The number of first items that they have judged.
        seen_contains: Goals of the other items that they have judged.
        breaks: The keywords that a value breaks narrowly, each with the `id` of its subschema.
    """

    kinds: frozenset[str] = _EVERY
    values: tuple[JSON, ...] | None = None
    excluded: frozenset[Hashable] = frozenset()
    low: tuple[float, bool] | None = None
    high: tuple[float, bool] | None = None
    multiples: tuple[Fraction, ...] = ()
    not_multiples: tuple[Fraction, ...] = ()
    min_length: int = 0
    max_length: float = inf
    patterns: tuple[str, ...] = ()
    not_patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    min_items: int = 0
    max_items: float = inf
    items: tuple[Items, ...] = ()
    contains: tuple[Contains, ...] = ()
    unique: bool = False
    repeated: bool = False
    min_members: int = 0
    max_members: float = inf
    required: tuple[str, ...] = ()
    absent: frozenset[str] = frozenset()
    members: tuple[MemberGoals, ...] = ()
    names: Goals = ()
    somewhere: tuple[Somewhere, ...] = ()
    seen: MemberNames = MemberNames()
    all_seen: bool = False
    seen_items: float = 0
    seen_contains: Goals = ()
    breaks: tuple[tuple[int, str], ...] = ()

    @property
    def near(self) -> tuple[Goal, ...]:
        """The goals of items, members and names that are to be broken narrowly."""
        rules: tuple[Items | MemberGoals | Somewhere, ...]
        rules = (*self.items, *self.members, *self.somewhere)
        goals = [*self.names, *(goal for rule in rules for goal in rule.goals)]
        goals += [goal for rule in self.somewhere for goal in rule.names]
        near = (goal for goal in goals if isinstance(goal, Goal) and goal.mood == "near")
        return tuple(dict.fromkeys(near))

    def beside(self, rule: Somewhere) -> "ValueCase":
        """Return the case without the goals that a rule replaces for its one member."""
        replaced = {id(goal.node) for goal in rule.names if isinstance(goal, Goal)}
        names = tuple(
            goal
            for goal in self.names
            if not isinstance(goal, Goal) or id(goal.node) not in replaced
        )
        members = tuple(each for each in self.members if each.where != rule.where)
        return self.but(members=members, names=names)

    def unseen(self) -> "ValueCase":
        """Return the case without what its subschemas have judged."""
        kept = {name: limit for name, limit in vars(self).items() if not name.startswith(_SEEN)}
        return ValueCase(**kept)

    def but(self, **changes: Any) -> "ValueCase":
        """Return the case with some limits replaced."""
        return ValueCase(**{**vars(self), **changes})


_SEEN: Final = ("seen", "all_seen")
#: The case of every value.
ANY: Final = ValueCase()


def join(left: tuple[_Goal, ...], right: tuple[_Goal, ...]) -> tuple[_Goal, ...]:
    """Return the items of both, each once, in their order."""
    return tuple(dict.fromkeys((*left, *right)))


def _common_values(left: tuple[JSON, ...], right: tuple[JSON, ...]) -> tuple[JSON, ...]:
    known = set(map(identity, right))
    return tuple(each for each in left if identity(each) in known)


def _join_names(left: MemberNames, right: MemberNames) -> MemberNames:
    return MemberNames(left.names | right.names, join(left.patterns, right.patterns))


def _lower_high(left: tuple[float, bool], right: tuple[float, bool]) -> tuple[float, bool]:
    return min(left, right, key=lambda high: (high[0], not high[1]))


_MERGED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "kinds": and_,
    "values": _common_values,
    "excluded": or_,
    "low": max,
    "high": _lower_high,
    **dict.fromkeys(("min_length", "min_items", "min_members", "seen_items"), max),
    **dict.fromkeys(("max_length", "max_items", "max_members"), min),
    **dict.fromkeys(("multiples", "not_multiples", "patterns", "not_patterns", "formats"), join),
    **dict.fromkeys(("items", "contains", "required", "members", "names", "somewhere"), join),
    **dict.fromkeys(("seen_contains", "breaks"), join),
    **dict.fromkeys(("unique", "repeated", "all_seen", "absent"), or_),
    "seen": _join_names,
}


def merge(left: ValueCase, right: ValueCase) -> ValueCase | None:
    """Return the case with the limits of both; None if no value is within them."""
    if left is ANY or right is ANY:
        return left if right is ANY else right
    limits = dict(vars(left))
    for name, limit in vars(right).items():
        limits[name] = _MERGED[name](limits[name], limit) if name in limits else limit
    return _possible(ValueCase(**limits))


def _possible(case: ValueCase) -> ValueCase | None:
    """Return a case without the types for which it has no value; None if no type is left."""
    kinds = case.kinds - {kind for kind in case.kinds if kind in _BROKEN and _BROKEN[kind](case)}
    values = case.values
    if values is not None:
        values = tuple(
            each
            for each in values
            if kind_of(each) in kinds and identity(each) not in case.excluded
        )
    if not kinds or values == ():
        return None
    if values is None:
        return case if kinds == case.kinds else case.but(kinds=kinds)
    return case.but(kinds=kinds, values=values)


def integer_range(case: ValueCase) -> tuple[float, float, int]:
    """Return the least and the greatest factor of the integers of a case, and their divisor.

    A limit that is not there is infinite; the least is above the greatest if there is no integer.
    """
    # A multiple of p/q in lowest terms is an integer if it is a multiple of p.
    step = lcm(*(each.numerator for each in case.multiples))
    return *_factors(case, Fraction(step)), step


def common_multiple(numbers: tuple[Fraction, ...]) -> Fraction:
    """Return the least common multiple of fractions."""
    return Fraction(
        lcm(*(each.numerator for each in numbers)), gcd(*(each.denominator for each in numbers))
    )


def _factors(case: ValueCase, step: Fraction) -> tuple[float, float]:
    """Return the least and the greatest factor of a step within the limits of a case."""
    low, high = -inf, inf
    if case.low is not None:
        exact = fraction(case.low[0]) / step
        low = floor(exact) + 1 if case.low[1] else ceil(exact)
    if case.high is not None:
        exact = fraction(case.high[0]) / step
        high = ceil(exact) - 1 if case.high[1] else floor(exact)
    return low, high


def _no_integer(case: ValueCase) -> bool:
    low, high, _step = integer_range(case)
    return low > high


def _no_fraction(case: ValueCase) -> bool:
    if case.multiples:
        low, high = _factors(case, common_multiple(case.multiples))
        return low > high or any(each.denominator == 1 for each in case.multiples)
    if case.low is None or case.high is None:
        return False
    (low, above), (high, below) = case.low, case.high
    return low > high or (low == high and (above or below))


def _no_array(case: ValueCase) -> bool:
    return case.min_items > case.max_items or (
        case.repeated and (case.unique or case.max_items < 2)
    )


def _no_object(case: ValueCase) -> bool:
    return max(
        case.min_members, len(case.required)
    ) > case.max_members or not case.absent.isdisjoint(case.required)


_BROKEN: Final[Mapping[str, Callable[[ValueCase], bool]]] = {
    "integer": _no_integer,
    "fraction": _no_fraction,
    "string": lambda case: case.min_length > case.max_length,
    "array": _no_array,
    "object": _no_object,
}


def combine(left: list[ValueCase], right: Iterable[ValueCase], most: int = 64) -> list[ValueCase]:
    """Return the merged pairs of two lists of cases.

    Of many pairs `most` are taken, or as many as the longer list has: along the diagonals, so that
    each case of either list has a part.
    """
    others = list(right)
    if len(others) == 1 and others[0] is ANY:
        return left
    if len(left) == 1 and left[0] is ANY:
        return others
    most = max(most, len(left), len(others))
    found: list[ValueCase] = []
    for shift in range(len(others)):
        for index, case in enumerate(left):
            merged = merge(case, others[(index + shift) % len(others)])
            if merged is not None:
                found.append(merged)
                if len(found) == most:
                    return found
    return found


def kind_of(value: JSON) -> str:
    """Return the kind of a JSON value; 1.0 is an integer."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "fraction"
    return JSON_TYPES[type(value)]


def identity(value: JSON) -> Hashable:
    """Return a key that two JSON values share exactly if they are equal: 1 and 1.0, not true."""
    if isinstance(value, bool) or value is None:
        return ("literal", value)
    if isinstance(value, list):
        return ("array", tuple(map(identity, value)))
    if isinstance(value, dict):
        return ("object", frozenset((name, identity(item)) for name, item in value.items()))
    # A text or a number: 1 equals 1.0 in Python, too.
    scalar: Hashable = value
    return scalar


def fraction(number: float) -> Fraction:
    """Return a number of a schema in decimal, as its author wrote it: 0.1 is a tenth."""
    return Fraction(repr(number))
