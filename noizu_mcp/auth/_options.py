"""Options of verifiers, checked where they are written.

A wrong number would be a hole that nobody sees: NaN is above and below nothing, so a token that is
checked with it never ends.
"""

import math
from collections.abc import Iterable
from typing import Any, Final

#: Seconds that a `leeway` may be: so long a token outlives its end.
MAX_LEEWAY: Final = 300.0


def read_leeway(value: Any) -> float:
    """Read the option `leeway`.

    Raises:
        ValueError: It is no number of seconds, or too many.
    """
    if not _is_number(value) or not 0 <= value <= MAX_LEEWAY:
        raise ValueError(f"leeway must be seconds from 0 to {MAX_LEEWAY:g}, not {value!r}")
    return float(value)


def read_seconds(value: Any, name: str, *, zero: bool = False) -> float:
    """Read an option that is a length of time.

    Args:
        value: The value.
        name: Its name, for the message.
        zero: Whether it may be none at all.

    Raises:
        ValueError: It is no such number of seconds.
    """
    if not _is_number(value) or not 0 <= value < math.inf or not (value or zero):
        bound = "of 0 or more" if zero else "above 0"
        raise ValueError(f"{name} must be a number of seconds {bound}, not {value!r}")
    return float(value)


def read_count(value: Any, name: str, *, zero: bool = False) -> int:
    """Read an option that is a number of things; see `read_seconds`.

    Raises:
        ValueError: It is no such whole number.
    """
    if type(value) is not int or value < (0 if zero else 1):
        bound = "of 0 or more" if zero else "above 0"
        raise ValueError(f"{name} must be a whole number {bound}, not {value!r}")
    return value


def read_claims(value: Iterable[str], name: str) -> tuple[str, ...]:
    """Read an option that lists claims.

    Raises:
        ValueError: It is one text, which is a list of letters to Python, or one is no name.
    """
    names: tuple[Any, ...] = () if isinstance(value, str) else tuple(value)
    if isinstance(value, str) or not all(isinstance(each, str) and each for each in names):
        raise ValueError(
            f"{name} must be a list of names of claims, such as ['sub'], not {value!r}"
        )
    return names


def read_text(value: Any, name: str) -> str:
    """Read an option that is a text; it is not shown.

    Raises:
        ValueError: It is none, or empty.
    """
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a text, and not empty")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
