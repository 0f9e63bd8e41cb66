"""What JSON cannot express, found in a value."""

from collections.abc import Iterator
from typing import Any

from ._values import type_of
from ._violation import Path, Violation, show

# A search for the reason, not for all of them: what lies further is not worth the time, which grows
# with the square of the depth.
_MAX_STEPS = 10_000


def find_not_json(value: Any) -> Violation | None:
    """Return the first place of a value that JSON cannot express, or None; never recurses."""
    waiting: list[tuple[Path, Any]] = [((), value)]
    for _ in range(_MAX_STEPS):
        if not waiting:
            break
        path, node = waiting.pop()
        text = _fault(node)
        if text:
            return Violation(path, "", text)
        waiting.extend(((*path, step), item) for step, item in _members(node))
    return None


def _members(node: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, (list, tuple)):
        yield from enumerate(node)


def _fault(node: Any) -> str | None:
    if isinstance(node, str):
        return None if is_encodable(node) else f"{show(node)} has half of a surrogate pair"
    if isinstance(node, dict):
        bad = [name for name in node if not isinstance(name, str) or not is_encodable(name)]
        return f"{show(bad[0])} cannot be the name of a property" if bad else None
    return f"{show(node)} is nothing that JSON can express" if type_of(node) == "not JSON" else None


def is_encodable(text: str) -> bool:
    """Tell if a text can be sent: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
