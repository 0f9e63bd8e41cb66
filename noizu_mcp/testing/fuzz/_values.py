"""Arguments for calls: valid ones, ones at the edge, and ones that break the schema.

All are drawn from a seed, so that the same seed makes the same calls.
"""

import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import hypothesis
from hypothesis.strategies import SearchStrategy

from ..._value import JSON
from ..strategies._schemas import from_schema, violating
from ..strategies._violation import Unsatisfiable
from ._case import Component

#: Texts that programs stumble over; each goes where the schema allows it.
SPECIAL_TEXTS: Final = (
    "",
    " ",
    "0",
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


class Value(NamedTuple):
    """A value to send.

    Attributes:
        value: The value.
        keyword: The keyword that it breaks; None for a valid value.
    """

    value: JSON
    keyword: str | None = None


def seed_for(seed: int, *parts: object) -> int:
    """Make the seed of one component; that of another does not depend on it."""
    return zlib.crc32(repr((seed, *parts)).encode("utf-8", "backslashreplace"))


def draw(strategy: SearchStrategy[Any], count: int, seed: int) -> list[Any]:
    """Draw examples of a strategy.

    Args:
        strategy: The strategy.
        count: The number of examples; fewer if there are no more.
        seed: The same seed draws the same examples.
    """
    found: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    try:
        collect()
    except Unsatisfiable:
        return found
    return found


def values_for(component: Component, count: int, seed: int) -> list[Value]:
    """Draw arguments for a component: valid ones, special texts in them, and wrong ones.

    Args:
        component: The component.
        count: The number of valid ones; there are about as many wrong ones.
        seed: The seed.

    Returns:
        The values, each once; none of a schema that cannot be used.
    """
    if component.violations({}) is None:
        return []
    own = seed_for(seed, component.kind, component.name)
    try:
        valid = draw(from_schema(component.schema), count, own)
    except Unsatisfiable:
        valid = []
    found = [Value(each) for each in valid]
    base = max(valid, key=_count_texts, default=None)
    for text in SPECIAL_TEXTS:
        # One place at a time, so that a fault has one cause.
        changed = _with_text(base, text)
        found += [Value(each) for each in changed if component.violations(each) == []]
    if component.kind in ("tool", "prompt"):
        found += _wrong_values(component, count, own)
    return list({repr(each): each for each in found}.values())


def _count_texts(value: JSON) -> int:
    if isinstance(value, dict | list):
        return sum(map(_count_texts, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str)


def _wrong_values(component: Component, count: int, seed: int) -> Iterator[Value]:
    try:
        drawn = draw(violating(component.schema, labelled=True), count, seed)
    except Unsatisfiable:
        return
    for each in drawn:
        # Arguments are an object in every revision: another value is a malformed message. Those of
        # a prompt are texts for the same reason.
        is_proper = component.kind == "tool" or each.keyword == "required"
        if isinstance(each.value, dict) and is_proper:
            yield Value(each.value, each.keyword)


def _with_text(value: JSON, text: str) -> Iterator[JSON]:
    """Put a text in the place of each text in a value."""
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
