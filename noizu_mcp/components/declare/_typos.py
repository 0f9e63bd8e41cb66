"""Misspelled names in a class body."""

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Final

from ..._nearest import nearest
from ._options import Table, read_any

#: Shorter words differ by a letter too easily: `game` is not a typo of `name`, but `nmae` is.
_LONG: Final = 7


def find_typos(
    cls: type,
    options: Table,
    members: Mapping[str, Callable[[object], bool]],
    known: Container[str],
) -> Iterator[tuple[str, str]]:
    """Find attributes whose names are misspelled options or members of the kind.

    A component may have other attributes, so a name alone proves nothing. Only an attribute
    that would be right under the other name counts: `tool = [Search]` in a server, which has
    `tools`. Without this check it would be ignored silently.

    Args:
        cls: The class. A name that a base has too is no typo.
        options: The options of its kind, each with its reader.
        members: The members of its kind, each with a test of its value.
        known: The names that are right.

    Yields:
        The attribute, and the name that was probably meant.
    """
    own = vars(cls)
    for name, value in own.items():
        if name.startswith("_") or name in known:
            continue
        # An override of something of the author's own.
        if any(name in vars(base) for base in cls.__mro__[1:]):
            continue
        near = [
            meant
            for meant in (*members, *options)
            if meant not in own
            and _is_slip(name, meant)
            # Before the value is tried: the options of other kinds of server need not load.
            and nearest(name, [meant])
            and _fits(options, members, meant, value)
        ]
        found = nearest(name, near)
        if found is not None:
            yield name, found


def _is_slip(word: str, meant: str) -> bool:
    """Tell whether a word may be misspelt; `nearest` judges the rest."""
    left, right = (text.lower().replace("_", "") for text in (word, meant))
    if len(left) == len(right):
        return len(left) >= _LONG or sorted(left) == sorted(right)
    return abs(len(left) - len(right)) == 1


def _fits(
    options: Table, members: Mapping[str, Callable[[object], bool]], name: str, value: object
) -> bool:
    """Tell whether a value would be right for a member or an option."""
    if name in members:
        return members[name](value)
    test = options[name]
    # The schemas in data form are checked where they are used; of the wrong names only a mapping
    # is surely one.
    if test is read_any:
        return isinstance(value, Mapping)
    try:
        test(value)
    except ValueError:
        return False
    return True
