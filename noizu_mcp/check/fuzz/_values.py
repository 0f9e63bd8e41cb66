"""Arguments for calls: valid ones, edge cases, and ones that break the schema.

All are drawn from a seed, and the same seed makes the same calls.
"""

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import hypothesis
from hypothesis.strategies import SearchStrategy, nothing

from ..._util import part_of
from ..._value import JSON, JSONObject
from ...testing import Unsatisfiable, from_schema, violating
from ._case import Listed

#: Texts that often cause faults; each is used where the schema allows it.
SPECIAL_TEXTS: Final = (
    "",
    " ",
    "0",
    "99999999999999999999",
    "a",
    "é",
    "e\u0301",
    "\U0001f600",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u202etxt",
    "\x00",
    "\n",
    "\ud800",
    "null",
    "../../../etc/passwd",
    "'; DROP TABLE a; --",
    "$(id)",
    "{0}%s%n${7*7}",
    "<script>",
    "a" * 10_000,
)


#: The keywords of limits, and the step beyond each limit.
_LIMITS: Final = (
    ("maximum", 1),
    ("minimum", -1),
    ("maxLength", 1),
    ("minLength", -1),
    ("maxItems", 1),
    ("minItems", -1),
)
#: Maximum letters or items of a value at a limit.
MAX_SIZE: Final = 10_000


_Drawn = TypeVar("_Drawn")


class Sent(NamedTuple):
    """A value to send.

    Attributes:
        value: The value.
        keyword: The keyword that it breaks; None for a valid value.
    """

    value: JSON
    keyword: str | None = None


def seed_for(seed: int, *parts: object) -> int:
    """Make the seed of one component, independent of other components."""
    return zlib.crc32(repr((seed, *parts)).encode("utf-8", "backslashreplace"))


def draw(strategy: SearchStrategy[_Drawn], count: int, seed: int) -> list[_Drawn]:
    """Draw examples of a strategy.

    Args:
        strategy: The strategy.
        count: The number of examples; fewer if there are no more.
        seed: The same seed draws the same examples.
    """
    found: list[_Drawn] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(value: _Drawn) -> None:
        found.append(value)

    if not strategy.is_empty:
        with suppress(Unsatisfiable):
            collect()
    return found


class Drawer:
    """Draws arguments for components: valid ones, special texts in them, and wrong ones.

    Args:
        seed: The seed of all of them.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        # The strategies of a schema are made once.
        self._strategies: dict[Listed, list[SearchStrategy[Any]]] = {}

    def draw(
        self,
        component: Listed,
        count: int,
        turn: int,
        fill: Callable[[JSON], JSON] = lambda value: value,
    ) -> list[Sent]:
        """Draw values for one component.

        Args:
            component: The component.
            count: The number of valid values; there are about as many wrong ones.
            turn: The number of earlier draws; the first one has the special texts.
            fill: Puts known values into a value; special texts are added separately.

        Returns:
            The values, without duplicates; empty for a schema that cannot be used.
        """
        if component.violations({}) is None:
            return []
        if component not in self._strategies:
            self._strategies[component] = _strategies_of(component)
        seed = seed_for(self._seed, component.kind, component.name, turn)
        valid, wrong = [draw(each, count, seed) for each in self._strategies[component]]
        found = [Sent(each) for each in valid]
        base = fill(max(valid, key=_count_texts, default=None))
        found += [Sent(base)] if component.violations(base) == [] else []
        for text in SPECIAL_TEXTS if turn == 0 else ():
            # One place at a time, so that a fault has one cause.
            changed = _with_text(base, text)
            found += [Sent(each) for each in changed if component.violations(each) == []]
        if turn == 0 and isinstance(base, dict) and component.kind == "tool":
            for each in _at_limits(component.schema, base):
                broken = component.violations(each)
                found.append(Sent(each, broken[0].keyword if broken else None))
        for each in wrong:
            # Arguments are an object in every revision, and arguments of a prompt are texts:
            # anything else is a malformed message.
            is_proper = component.kind == "tool" or each.keyword == "required"
            if isinstance(each.value, dict) and is_proper:
                found.append(Sent(each.value, each.keyword))
        return list({repr(each): each for each in found}.values())


def _strategies_of(component: Listed) -> list[SearchStrategy[Any]]:
    """Make the strategies of valid and of wrong values, if they exist."""
    found: list[SearchStrategy[Any]] = []
    for make in (partial(from_schema, formats=True), partial(violating, labelled=True)):
        try:
            found.append(make(component.schema))
        except Unsatisfiable:
            found.append(nothing())
    if component.kind not in ("tool", "prompt"):
        found[1] = nothing()
    return found


def has_half_pair(value: JSON) -> bool:
    """Tell whether a value has half a surrogate pair, which UTF-8 cannot express."""
    if isinstance(value, dict | list):
        return any(map(has_half_pair, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)


def _count_texts(value: JSON) -> int:
    if isinstance(value, dict | list):
        return sum(map(_count_texts, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str)


def _at_limits(schema: JSONObject, base: JSONObject) -> Iterator[JSONObject]:
    """Yield objects with one argument at or just beyond a limit."""
    for name, part in part_of(schema, "properties", dict).items():
        for keyword, beyond in _LIMITS:
            limit = part.get(keyword) if isinstance(part, dict) else None
            if not isinstance(limit, int) or isinstance(limit, bool):
                continue
            for size in (limit, limit + beyond):
                for value in _of_size(keyword, size, base.get(name)):
                    yield {**base, name: value}
        for value in part_of(part, "enum", list)[:1]:
            yield {**base, name: f"{value}{value}"}


def _of_size(keyword: str, size: int, known: JSON) -> Iterator[JSON]:
    """Make a value of a size: a number, a text, or a list of copies of a known first item."""
    if keyword in ("maximum", "minimum"):
        yield size
    elif 0 <= size <= MAX_SIZE:
        if keyword.endswith("Length"):
            yield "a" * size
        elif isinstance(known, list) and known:
            yield known[:1] * size


def _with_text(value: JSON, text: str) -> Iterator[JSON]:
    """Put a text in place of each text in a value, one at a time."""
    if isinstance(value, str):
        yield text
    elif isinstance(value, dict):
        for name, part in value.items():
            for changed in _with_text(part, text):
                yield {**value, name: changed}
    elif isinstance(value, list):
        for index, part in enumerate(value):
            for changed in _with_text(part, text):
                yield [*value[:index], changed, *value[index + 1 :]]
