"""Patterns of names: `*` matches any text, every other character matches itself."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any


def read_patterns(patterns: Iterable[Any]) -> tuple[str, ...]:
    """Check patterns.

    Args:
        patterns: The patterns.

    Raises:
        ValueError: There are no patterns, or a pattern is empty or not a text.
    """
    # A single text would be read as one pattern per letter.
    found = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    if not found:
        raise ValueError("needs the name of a tool, or a pattern such as 'skill:*'")
    for pattern in found:
        if not isinstance(pattern, str) or not pattern:
            raise ValueError(f"{pattern!r} is no name of a tool, and no pattern such as 'skill:*'")
    return found


def first_match(patterns: Iterable[str], name: str) -> str | None:
    """Return the first pattern that matches a name; None without a match."""
    # A plain loop: a generator would take longer than the comparison.
    for pattern in patterns:
        if matches(pattern, name):
            return pattern
    return None


def matches(pattern: str, name: str) -> bool:
    """Tell whether a pattern matches a whole name.

    Args:
        pattern: The pattern; case-sensitive.
        name: The name.
    """
    first, middle, last = _split(pattern)
    if last is None:
        return name == pattern
    at, end = len(first), len(name) - len(last)
    if at > end or not (name.startswith(first) and name.endswith(last)):
        return False
    for part in middle:
        # The leftmost match leaves the most room for the parts that follow.
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


@lru_cache(maxsize=1024)
def _split(pattern: str) -> tuple[str, tuple[str, ...], str | None]:
    """Split a pattern at its stars: the first part, the parts between, and the last, if any."""
    # Not a regular expression: with several stars a long name would take quadratic time.
    first, *rest = pattern.split("*")
    return (first, tuple(rest[:-1]), rest[-1]) if rest else (first, (), None)
