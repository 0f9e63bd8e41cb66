"""JSON values compared and measured as JSON Schema says (2020-12 core section 4.2.2)."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from math import isfinite
from types import NoneType
from typing import Any


def type_of(value: Any) -> str:
    """Return the JSON type of a value; a float without fraction is a number here.

    What JSON cannot express (NaN, an infinity, a class of its own) is "not JSON".
    """
    if isinstance(value, float):
        return "number" if isfinite(value) else "not JSON"
    found = _TYPES.get(value.__class__)
    if found is None:
        found = next((name for kind, name in _TYPES.items() if isinstance(value, kind)), "not JSON")
    return found


# A tuple is what a program hands over for a list; both engines take it. A bool is an int too.
_TYPES: Mapping[type, str] = {
    NoneType: "null",
    bool: "boolean",
    str: "string",
    int: "integer",
    dict: "object",
    list: "array",
    tuple: "array",
}


def has_type(value: Any, wanted: str) -> bool:
    """Tell if a value has a JSON Schema type: 1.0 is an integer, True is none."""
    found = type_of(value)
    if found == wanted or (found == "integer" and wanted == "number"):
        return True
    return found == "number" and wanted == "integer" and bool(value.is_integer())


def identity(value: Any) -> Hashable:
    """Return a key that two values share exactly if they are equal as JSON.

    1 and 1.0 are equal, 1 and true are not, and the order of members does not count.
    """
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, (list, tuple)):
        return ("array", tuple(map(identity, value)))
    if isinstance(value, dict):
        return ("object", frozenset((name, identity(item)) for name, item in value.items()))
    if isinstance(value, (str, int, float, type(None))):
        return value
    return ("other", id(value))


def equal_pairs(items: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """Yield the places of each item that equals an earlier one, the earlier first."""
    seen: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(identity(item), index)
        if first != index:
            yield first, index


def is_multiple(value: Any, divisor: float) -> bool:
    """Tell if a number is a multiple of another, in decimal: 0.3 is a multiple of 0.1.

    NaN and the infinities are no numbers, so no rule for numbers can reject them.
    """
    if isinstance(value, int) and isinstance(divisor, int):
        return value % divisor == 0
    # An integer may be larger than any float.
    if isinstance(value, float) and not isfinite(value):
        return True
    (left, left_power), (right, right_power) = _decimal(value), _decimal(divisor)
    low = min(left_power, right_power)
    return bool((left * 10 ** (left_power - low)) % (right * 10 ** (right_power - low)) == 0)


def _decimal(number: float) -> tuple[int, int]:
    """Return the digits and the power of ten of a number, without a loss.

    The shortest decimal that reads back as the float is what its author wrote.
    """
    if isinstance(number, int):
        return number, 0
    digits, _, power = repr(number).partition("e")
    whole, _, fraction = digits.partition(".")
    return int(whole + fraction), int(power or 0) - len(fraction)
