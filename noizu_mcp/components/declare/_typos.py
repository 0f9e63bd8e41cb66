"""Typos: attributes that were probably meant to be something else, and would do nothing.

A component may have attributes of its own, so a name alone proves nothing. Only an attribute that
would be right under the other name is refused: `tool = [Search]` in a server, which has `tools`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ...schema.jsonschema._nearest import nearest
from ._kind import Kind
from ._options import Reader, read_any

#: Shorter words differ by a letter too easily: `game` is not a typo of `name`, but `nmae` is.
_LONG: Final = 7


def find_typos(cls: type, kind: Kind) -> Iterator[tuple[str, str]]:
    """Find attributes that are options or members of the kind, but for a typo in the name.

    Args:
        cls: The class; names that its bases have too are meant.
        kind: Its kind.

    Yields:
        The attribute, and the name that was probably meant.
    """
    own = vars(cls)
    known = kind.options.keys() | kind.members.keys() | kind.methods.keys()
    for name, value in own.items():
        if name.startswith("_") or name in known:
            continue
        if any(name in vars(base) for base in cls.__mro__[1:]):
            continue
        near = [
            meant
            for meant, fits in (*kind.members.items(), *kind.options.items())
            if meant not in own and _is_slip(name, meant) and _fits(kind, meant, fits, value)
        ]
        found = nearest(name, near)
        if found is not None:
            yield name, found


def _is_slip(word: str, meant: str) -> bool:
    """Tell a slip of the pen from another word; `nearest` judges the rest."""
    left, right = (text.lower().replace("_", "") for text in (word, meant))
    if len(left) == len(right):
        return len(left) >= _LONG or sorted(left) == sorted(right)
    return abs(len(left) - len(right)) == 1


def _fits(kind: Kind, name: str, test: Reader, value: Any) -> bool:
    """Tell whether a value would be right for a member or an option."""
    if name in kind.members:
        return bool(test(value))
    if test is read_any:
        return isinstance(value, Mapping)
    try:
        test(value)
    except ValueError:
        return False
    return True


def takes(*counts: int) -> Callable[[Any], bool]:
    """Make the test for a method with so many parameters, `self` included."""
    return lambda value: (
        inspect.isfunction(value) and len(inspect.signature(value).parameters) in counts
    )
