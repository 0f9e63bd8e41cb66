"""Checks of a `ClientHandler` class: wrong parameters and misspelt names of methods."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partialmethod
from types import FrameType, FunctionType
from typing import Final

from .._nearest import nearest
from .._util import got, snake_case
from ..components import ComponentKind, Declaration, is_method, read_flag

#: The words for a method, in the specification and in other packages.
_WORDS: Final = {
    "elicitation": "handle_elicitation",
    "elicit": "handle_elicitation",
    "sampling": "handle_sampling",
    "sample": "handle_sampling",
    "create_message": "handle_sampling",
    "notification": "handle_notification",
    "notify": "handle_notification",
    "roots": "list_roots",
    "root": "list_roots",
    "list_roots": "list_roots",
}
#: Misspelt forms of these words are recognized, too. Shorter words are too similar to others.
_LONG_WORDS: Final = ("elicitation", "sampling", "notification")
_SUFFIX: Final = re.compile(r"_(callback|handler|hook|requests?)$")


def check_handler(
    cls: type,
    base: type,
    wanted: Mapping[str, Sequence[str]],
    keywords: Mapping[str, object],
    frame: FrameType,
) -> None:
    """Read the options of the class of a handler, and check the class.

    Args:
        cls: The class; its options from the class statement are set.
        base: `ClientHandler`.
        wanted: The methods that a handler may override, and their parameters.
        keywords: The keywords of the class statement.
        frame: The frame of the class statement.

    Raises:
        DefinitionError: The class has problems.
    """
    declaration = Declaration(cls, _KIND, keywords, frame)
    for name in keywords.keys() & declaration.own.keys():
        setattr(cls, name, declaration.own[name])
    methods = vars(base)
    for name, parameters in wanted.items():
        method = inspect.getattr_static(cls, name)
        if method is not None and method is not methods[name]:
            _check_method(declaration, method, name, parameters)
    for name, meant in _misspelt(cls, methods, wanted):
        text = f"is never called; did you mean {meant!r}? (begin a name of your own with _)"
        declaration.problem(name, text, name)
    declaration.finish()


def _check_method(
    declaration: Declaration, method: object, name: str, parameters: Sequence[str]
) -> None:
    """Check that a method accepts the arguments that the client passes."""
    cls = declaration.cls
    wanted = f"`async def {name}({', '.join(('self', *parameters))})`, or `def` for a thread"
    bound = getattr(cls, name)
    text = None
    if not callable(bound) or isinstance(bound, type):
        text = f"must be {wanted}, or None to offer nothing"
    elif inspect.isasyncgenfunction(bound) or inspect.isgeneratorfunction(bound):
        text = f"must be {wanted}, and must not yield"
    else:
        # Anything but a function, such as a static method, is called without the handler.
        given = (
            (cls, *parameters) if isinstance(method, (FunctionType, partialmethod)) else parameters
        )
        try:
            inspect.signature(bound).bind(*given)
        except TypeError:
            text = f"must be {wanted}"
    if text is not None:
        declaration.problem(name, text, name, declaration.owner_of(name))


def _misspelt(
    cls: type, methods: Mapping[str, object], wanted: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Yield methods that are never called because their names are misspelt.

    A handler may have methods of its own, which may help a method that the client calls. So only
    methods that the class does not override are suggested.
    """
    for name, value in vars(cls).items():
        own = not name.startswith("_") and name not in methods and is_method(value)
        meant = _meant(name, value, wanted) if own else None
        if meant is not None and inspect.getattr_static(cls, meant) is methods[meant]:
            yield name, meant


def _meant(name: str, value: object, wanted: Mapping[str, Sequence[str]]) -> str | None:
    """Return the method that was probably meant: `on_elicit` is `handle_elicitation`."""
    name = snake_case(name)
    if name in wanted:  # handleSampling
        return name
    whole, changes = _SUFFIX.subn("", name)
    first, _, rest = whole.partition("_")
    first = first if first in ("on", "list", "get") else nearest(first, ("handle", "list")) or first
    if rest and first in ("handle", "on"):
        return _method_of(rest)
    if rest and first in ("list", "get"):
        return "list_roots" if _WORDS.get(rest) == "list_roots" else None
    if changes:  # sampling_callback
        return _method_of(whole)
    # A bare word may be another method. It is an error only with the same parameters.
    meant = _WORDS.get(whole)
    if meant is None or not isinstance(value, FunctionType):
        return None
    fits = len(inspect.signature(value).parameters) == 1 + len(wanted[meant])
    return meant if fits else None


def _method_of(word: str) -> str | None:
    found = word if word in _WORDS else nearest(word, _LONG_WORDS)
    return None if found is None else _WORDS[found]


def _read_modes(value: object) -> Sequence[str]:
    listed = value if isinstance(value, list | tuple) else ()
    if not listed or any(mode not in ("form", "url") for mode in listed):
        raise ValueError(f"must be a list of 'form', 'url' or both, {got(value)}")
    return listed


_KIND: Final = ComponentKind(
    "handlers", options={"elicitation_modes": _read_modes, "sampling_tools": read_flag}
)
