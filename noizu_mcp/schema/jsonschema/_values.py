"""JSON values, compared and measured by the rules of JSON Schema (2020-12 core section 4.2.2)."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from math import inf, isfinite
from typing import Any

from ..._json_schema import JSON_TYPES
from ..._pointer import Path
from ..._value import JSONObject
from ._violation import show

#: Tells if a value fits a schema.
Verdict = Callable[[object], bool]
#: Compiles a part of a schema; raises ValueError where an engine cannot.
CompilePart = Callable[[JSONObject], Verdict]

# The native engine recurses on the C stack where a schema refers to itself: it overflows a 128 KiB
# stack at 174 levels, and an overflow there kills the process.
MAX_VALUE_DEPTH = 128
# A search for one reason: later places are not worth the time, which grows with the depth.
_MAX_SEARCHED = 10_000


def type_of(value: object) -> str:
    """Return the JSON type of a value; a float without fraction is a number here.

    A value that JSON cannot express (NaN, an infinity, another class) is "not JSON".
    """
    if isinstance(value, float):
        return "number" if isfinite(value) else "not JSON"
    found = _TYPES.get(value.__class__)
    if found is None:
        found = next((name for kind, name in _TYPES.items() if isinstance(value, kind)), "not JSON")
    return found


def kind_and_value(value: object) -> str:
    """Return the type and the text of a value, for messages: `string "3"`."""
    kind = type_of(value)
    if kind == "null":
        return "null"
    if kind == "not JSON":
        return f"{show(value)}, which JSON cannot express"
    return f"{kind} {show(value)}"


# Programs hand over tuples for lists, and both engines take them. A bool is an int too.
_TYPES: Mapping[type, str] = {**JSON_TYPES, tuple: "array"}


def has_type(value: Any, wanted: str) -> bool:
    """Tell if a value has a JSON Schema type: 1.0 is an integer, True is not."""
    found = type_of(value)
    if found == wanted or (found == "integer" and wanted == "number"):
        return True
    return found == "number" and wanted == "integer" and bool(value.is_integer())


def identity(value: object) -> Hashable:
    """Return a key that two values share exactly if they are equal as JSON.

    1 and 1.0 are equal, 1 and true are not, and the order of members does not count. Numbers are
    keyed by their text: numbers chosen to have one hash would make every look into a set of them
    a look at them all, while the hashes of texts differ in every process.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, float):
        value = int(value) if value.is_integer() else value.hex()
    if isinstance(value, int):
        value = hex(value)
    if isinstance(value, str):
        return ("number", value)
    if isinstance(value, (list, tuple)):
        return ("array", tuple(map(identity, value)))
    if isinstance(value, dict):
        return ("object", frozenset((name, identity(item)) for name, item in value.items()))
    return ("other", None if value is None else id(value))


def equal_pairs(items: Iterable[object]) -> Iterator[tuple[int, int]]:
    """Yield the places of each item that equals an earlier one, the earlier first."""
    seen: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(identity(item), index)
        if first != index:
            yield first, index


def is_multiple(value: Any, divisor: float) -> bool:
    """Tell if a number is a multiple of another, in decimal: 0.3 is a multiple of 0.1.

    NaN and the infinities are not JSON numbers, so rules for numbers do not reject them.
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

    The author wrote the shortest decimal that reads back as the float.
    """
    if isinstance(number, int):
        return number, 0
    digits, _, power = repr(number).partition("e")
    whole, _, fraction = digits.partition(".")
    return int(whole + fraction), int(power or 0) - len(fraction)


def is_deeper(value: Any, limit: int) -> bool:
    """Tell if lists and objects nest deeper than `limit`; never recurses.

    A scalar and an empty list have depth 0.
    """
    level = [value]
    for _ in range(limit + 1):
        # Scalars and empty containers are dropped, so a level is never larger than its containers.
        level = [node for node in level if node and isinstance(node, (dict, list, tuple))]
        if not level:
            return False
        level = [
            item for node in level for item in (node.values() if isinstance(node, dict) else node)
        ]
    return True


def find_not_json(
    value: object, most: float = _MAX_SEARCHED, depth: float = inf
) -> tuple[Path, str] | None:
    """Return the first place of a value that JSON cannot express, with the reason, or None.

    Args:
        value: Any value; it may contain itself if one of the limits is finite.
        most: The number of places at which the search gives up.
        depth: The deepest place that is allowed.
    """
    waiting: list[tuple[Path, object]] = [((), value)]
    count = 0
    while waiting and count < most:
        count += 1
        path, node = waiting.pop()
        if len(path) > depth:
            return (), f"nested deeper than {depth} levels"
        if isinstance(node, dict):
            bad = [name for name in node if not isinstance(name, str) or not is_encodable(name)]
            if bad:
                return path, f"{show(bad[0])} cannot be the name of a property"
            waiting.extend(((*path, name), item) for name, item in node.items())
        elif isinstance(node, (list, tuple)):
            waiting.extend(((*path, index), item) for index, item in enumerate(node))
        elif isinstance(node, str):
            if not is_encodable(node):
                return path, f"{show(node)} has half of a surrogate pair"
        elif type_of(node) == "not JSON":
            return path, f"JSON cannot express {show(node)}"
    return None


def is_encodable(text: str) -> bool:
    """Tell if a text can be sent: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
