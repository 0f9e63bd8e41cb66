"""Smaller JSON values: searches for the smallest value that still shows a fault.

Theory of operation. A value has a size: the length of its JSON in ASCII, then its numbers, then its
letters, of which `a` is the least.
`simpler` proposes values of a smaller size, the boldest first: nothing, one half, one part less,
simpler parts. The first proposal that still shows the fault replaces the value, and the search
begins again from it. Sizes only decrease, so the search ends.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from ..._value import JSON

#: Maximum characters of a text that are tried one by one.
MAX_SINGLE: Final = 24
#: Numbers that are tried before those between zero and a large number.
ROUND: Final = (10, 100, 1000, 10**6, 2**31, 2**53, 2**63)
#: Steps back towards the number.
MAX_HALVES: Final = 64


def size_of(value: JSON) -> tuple[int, int, int, str]:
    """Return the size of a value; sizes are compared as tuples."""
    text = json.dumps(value)
    # Numbers before letters: 60 is larger than 59, although its digits are not.
    return len(text), _magnitude(value), sum(ord(letter) for letter in text if letter != "a"), text


def _magnitude(value: JSON) -> int:
    if isinstance(value, dict):
        return sum(map(_magnitude, value.values()))
    if isinstance(value, list):
        return sum(map(_magnitude, value))
    return abs(int(value)) if isinstance(value, int | float) else 0


async def shrink(
    value: JSON, holds: Callable[[JSON], Awaitable[bool]], *, attempts: int = 200
) -> JSON:
    """Find a small value that still shows a fault.

    Args:
        value: A value that shows the fault.
        holds: Tells whether another value shows the fault.
        attempts: Maximum calls of `holds`.

    Returns:
        The smallest value that was found, possibly `value` itself.
    """
    tried: set[str] = {json.dumps(value)}
    while True:
        size = size_of(value)
        for candidate in simpler(value):
            text = json.dumps(candidate)
            if text in tried or size_of(candidate) >= size:
                continue
            if len(tried) > attempts:
                return value
            tried.add(text)
            if await holds(candidate):
                value = candidate
                break
        else:
            return value


def simpler(value: JSON) -> Iterator[JSON]:
    """Propose simpler values, the boldest first."""
    if isinstance(value, dict):
        yield from _simpler_object(value)
    elif isinstance(value, list):
        yield from _simpler_list(value)
    elif isinstance(value, str):
        yield from _simpler_text(value)
    elif isinstance(value, bool):
        yield False
    elif isinstance(value, int | float):
        yield from _simpler_number(value)


def _simpler_object(value: dict[str, JSON]) -> Iterator[JSON]:
    names = list(value)
    for some in _fewer(names):
        yield {name: value[name] for name in some}
    for name in names:
        for part in simpler(value[name]):
            yield {**value, name: part}


def _simpler_list(value: list[JSON]) -> Iterator[JSON]:
    yield from _fewer(value)
    for index, item in enumerate(value):
        for part in simpler(item):
            yield [*value[:index], part, *value[index + 1 :]]


def _fewer(items: list[JSON]) -> Iterator[list[JSON]]:
    """Yield nothing, one half, the other half, and all but each one."""
    if not items:
        return
    yield []
    half = len(items) // 2
    if half:
        yield items[:half]
        yield items[half:]
    for index in range(min(len(items), MAX_SINGLE)):
        yield items[:index] + items[index + 1 :]


def _simpler_text(text: str) -> Iterator[JSON]:
    if not text:
        return
    yield ""
    # If only the length matters, few other texts are left to try.
    yield "a" * len(text)
    distinct = list(dict.fromkeys(text))
    yield from distinct[:MAX_SINGLE]
    half = len(text) // 2
    yield text[:half]
    yield text[half:]
    for index in range(min(len(text), MAX_SINGLE)):
        yield text[:index] + text[index + 1 :]
    for index in range(min(len(text), MAX_SINGLE)):
        # An unusual letter that does not matter becomes a plain one.
        yield f"{text[:index]}a{text[index + 1 :]}"


def _simpler_number(value: float) -> Iterator[JSON]:
    yield 0
    yield 1
    if isinstance(value, float):
        yield round(value, 1)
    whole = int(value)
    sign = -1 if whole < 0 else 1
    yield abs(whole)
    yield whole
    yield from (sign * each for each in ROUND if each < abs(whole))
    gap = abs(whole)
    # Towards zero, and then back towards the value in halving steps, which finds bounds.
    for _ in range(MAX_HALVES):
        gap //= 2
        if not gap:
            break
        yield sign * (abs(whole) - gap)
