"""Attributes that were probably meant to be something else, and would do nothing as they are.

A component may have attributes of its own, so a name alone proves nothing. Only an attribute that
would be right under the other name is refused: `tool = [Search]` in a server, which has `tools`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..schema.jsonschema._nearest import nearest
from ._options import Table, read_any

#: Tells whether a value could be what a member is.
Fits = Callable[[Any], bool]

#: Shorter words differ by a letter too easily: `game` is no slip of `name`, but `nmae` is.
_LONG: Final = 7


def near_misses(cls: type, table: Table, members: Mapping[str, Fits]) -> Iterator[tuple[str, str]]:
    """Find attributes whose names and values are those of options or members, but for a slip.

    Args:
        cls: The class; what its bases have too is meant.
        table: The options that there are.
        members: What else an author may write in the body.

    Yields:
        The attribute, and what was probably meant.
    """
    own = vars(cls)
    known = {**members, **{name: _fits(reader) for name, reader in table.items()}}
    for name, value in own.items():
        if name.startswith("_") or name in known or _is_inherited(cls, name):
            continue
        meant = (m for m in known if m not in own and _is_slip(name, m) and known[m](value))
        found = nearest(name, meant)
        if found is not None:
            yield name, found


def _is_inherited(cls: type, name: str) -> bool:
    return any(name in vars(base) for base in cls.__mro__[1:])


def _is_slip(word: str, meant: str) -> bool:
    """Tell a slip of the pen from another word; `nearest` judges the rest."""
    left, right = (text.lower().replace("_", "") for text in (word, meant))
    if len(left) == len(right):
        return len(left) >= _LONG or sorted(left) == sorted(right)
    return abs(len(left) - len(right)) == 1


def _fits(read: Callable[[Any], Any]) -> Fits:
    if read is read_any:
        return lambda value: isinstance(value, Mapping)

    def fits(value: Any) -> bool:
        try:
            read(value)
        except ValueError:
            return False
        return True

    return fits


def is_class(value: Any) -> bool:
    """Tell a class, as `Input` is one."""
    return isinstance(value, type)


def takes(*counts: int) -> Fits:
    """Make the test for a method with so many parameters, `self` included."""

    def fits(value: Any) -> bool:
        return inspect.isfunction(value) and len(inspect.signature(value).parameters) in counts

    return fits
