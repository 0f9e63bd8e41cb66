"""Slips of the pen in the names of a class body."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..._nearest import nearest
from ._options import Reader, read_any

if TYPE_CHECKING:
    from ._statement import Kind

#: Shorter words differ by a letter too easily: `game` is not a typo of `name`, but `nmae` is.
_LONG: Final = 7


def find_typos(cls: type, kind: "Kind") -> Iterator[tuple[str, str]]:
    """Find attributes that are options or members of the kind, but for a typo in the name.

    A component may have attributes of its own, so a name alone proves nothing. Only an attribute
    that would be right under the other name is one: `tool = [Search]` in a server, which has
    `tools`. It would do nothing, and nobody would be told.

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
        # An override of something of the author's own.
        if any(name in vars(base) for base in cls.__mro__[1:]):
            continue
        near = [
            meant
            for meant, fits in (*kind.members.items(), *kind.options.items())
            if meant not in own
            and _is_slip(name, meant)
            # Before the value is tried: the options of other kinds of server need not load.
            and nearest(name, [meant])
            and _fits(kind, meant, fits, value)
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


def _fits(kind: "Kind", name: str, test: Reader, value: Any) -> bool:
    """Tell whether a value would be right for a member or an option."""
    if name in kind.members:
        return bool(test(value))
    # The schemas in data form are checked where they are used; of the wrong names only a mapping
    # is surely one.
    if test is read_any:
        return isinstance(value, Mapping)
    try:
        test(value)
    except ValueError:
        return False
    return True
