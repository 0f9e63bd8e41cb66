"""The meaning of each keyword, and of its opposite, in cases.

The rule of a keyword is a function of its subschema and of a mood. For "is" it returns cases of
values that match the keyword; for "not" and "near", cases of values that break it. "near" passes
its mood on to the subschemas, so that a value breaks one keyword somewhere inside, and matches the
others.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from ..._util import is_number
from ..._value import JSON, JSONObject
from ._case import ANY, NUMBERS, Goal, Goals, Mood, ScopePath, ValueCase, fraction, identity

_KINDS: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset({name}) for name in ("null", "boolean", "integer", "string")},
    **{name: frozenset({name}) for name in ("array", "object")},
    "number": NUMBERS,
}
#: The types of which most keywords judge the values of one only.
TEXT, ARRAY, OBJECT = _KINDS["string"], _KINDS["array"], _KINDS["object"]


class Resolver(Protocol):
    """The part of the expander that rules use."""

    formats: frozenset[str]
    asserted: bool

    def cases(self, goals: Goals) -> list[ValueCase]:
        """Return the cases in which a value reaches all goals."""

    def excluding(self, cases: list[ValueCase], goal: Goal) -> list[ValueCase]:
        """Return the cases that reach another goal, too, which is the opposite of a subschema."""

    def target(self, keyword: str, node: JSONObject, scope: ScopePath) -> JSON:
        """Return the subschema to which a reference leads; None if it is not at hand."""


class Subschema:
    """A subschema on the way to a value: its keywords, and how they reach other subschemas.

    Args:
        expander: Resolves the goals.
        node: The subschema.
        scope: The base URIs up to and including its own.
        mood: The mood in which its keywords are read.
    """

    def __init__(self, expander: Resolver, node: JSONObject, scope: ScopePath, mood: Mood) -> None:
        self.expander = expander
        self.node = node
        self.scope = scope
        self.mood = mood
        self.fits = mood == "is"
        self.near = mood == "near"

    def goal(self, node: JSON, mood: Mood | None = None) -> Goal:
        """Return the goal of another subschema, by default in the mood of this one."""
        return Goal(node, mood or self.mood, self.scope)

    def fitting(self) -> "Subschema":
        """Return the same place in the mood of values that fit."""
        return Subschema(self.expander, self.node, self.scope, "is")

    def cases(self, *goals: Goal) -> list[ValueCase]:
        """Return the cases in which a value reaches all of these goals."""
        return self.expander.cases(goals)

    def target(self, keyword: str) -> JSON:
        """Return the subschema to which a reference leads; None if it is not at hand."""
        return self.expander.target(keyword, self.node, self.scope)


#: Returns the cases of a keyword at a place, by its value.
KeywordRule = Callable[[Subschema, JSON], list[ValueCase]]


def _type(place: Subschema, value: JSON) -> list[ValueCase]:
    names = [value] if isinstance(value, str) else value
    kinds = frozenset[str]().union(*(_KINDS[name] for name in names))
    if place.fits:
        return [ValueCase(kinds=kinds)]
    return [ValueCase(kinds=ANY.kinds - kinds)] if kinds != ANY.kinds else []


def _values(place: Subschema, values: list[JSON]) -> list[ValueCase]:
    if place.fits:
        return [ValueCase(values=tuple(values))]
    excluded = frozenset(map(identity, values))
    near = [each for value in values for each in _neighbours(value)]
    near = [each for each in near if identity(each) not in excluded]
    return [ValueCase(excluded=excluded), *([ValueCase(values=tuple(near))] if near else [])]


def _neighbours(value: JSON) -> Iterator[JSON]:
    """Yield values that are easily taken for a value."""
    if isinstance(value, str):
        yield from (f"{value} ", value.swapcase(), value[:-1], f"{value}{value[-1:]}")
    elif is_number(value):
        yield from (value + 1, value - 1)


def _const(place: Subschema, value: JSON) -> list[ValueCase]:
    return _values(place, [value])


def limit(name: str, value: Any, kinds: frozenset[str] = ANY.kinds) -> ValueCase:
    """Return the case with one limit, for some types."""
    limits: dict[str, Any] = {name: value, "kinds": kinds}
    return ValueCase(**limits)


def bound(name: str, opposite: str, *, exclusive: bool = False, mark: str = "") -> KeywordRule:
    """Return the rule of `minimum` and its kin: a limit, which the broken one turns around.

    Args:
        name: The limit of a case.
        opposite: The limit on the other side.
        exclusive: True if the number itself is out.
        mark: The keyword of draft 4 that says so instead.
    """

    def rule(place: Subschema, value: float) -> list[ValueCase]:
        without = place.node.get(mark) is True if mark else exclusive
        if place.fits:
            return [limit(name, (value, without))]
        return [limit(opposite, (value, not without), kinds=NUMBERS)]

    return rule


def _multiple(place: Subschema, value: float) -> list[ValueCase]:
    divisor = (fraction(value),)
    return [
        ValueCase(multiples=divisor)
        if place.fits
        else ValueCase(kinds=NUMBERS, not_multiples=divisor)
    ]


def at_least(part: str, kinds: frozenset[str]) -> KeywordRule:
    """Return the rule of `minLength`, `minItems` or `minProperties`."""

    def rule(place: Subschema, value: float) -> list[ValueCase]:
        count = int(value)
        if place.fits:
            return [limit(f"min_{part}", count)]
        return [limit(f"max_{part}", count - 1, kinds=kinds)] if count else []

    return rule


def at_most(part: str, kinds: frozenset[str]) -> KeywordRule:
    """Return the rule of `maxLength`, `maxItems` or `maxProperties`."""

    def rule(place: Subschema, value: float) -> list[ValueCase]:
        count = int(value)
        if place.fits:
            return [limit(f"max_{part}", count)]
        return [limit(f"min_{part}", count + 1, kinds=kinds)]

    return rule


def _pattern(place: Subschema, value: str) -> list[ValueCase]:
    return [
        ValueCase(patterns=(value,)) if place.fits else ValueCase(kinds=TEXT, not_patterns=(value,))
    ]


def _format(place: Subschema, value: str) -> list[ValueCase]:
    known = value in place.expander.formats
    if place.fits:
        return [ValueCase(formats=(value,)) if known else ANY]
    # An annotation, which no value breaks (2020-12 validation section 7.2.1), unless a class reads
    # the text: then almost any other text breaks it.
    return [ValueCase(kinds=TEXT)] if known and place.expander.asserted else []


#: The rules of the keywords that judge a value without parts.
VALUE_RULES: Final[Mapping[str, KeywordRule]] = {
    "type": _type,
    "enum": _values,
    "const": _const,
    "minimum": bound("low", "high"),
    "exclusiveMinimum": bound("low", "high", exclusive=True),
    "maximum": bound("high", "low"),
    "exclusiveMaximum": bound("high", "low", exclusive=True),
    "multipleOf": _multiple,
    "minLength": at_least("length", TEXT),
    "maxLength": at_most("length", TEXT),
    "pattern": _pattern,
    "format": _format,
}
