"""The parameters of handlers: what their names and annotations say, and their form in messages."""

import typing
from collections.abc import Mapping
from enum import Enum
from inspect import Parameter
from typing import Any, Final

from .._context import Context

#: Names of parameters that take the context where no annotation says another thing.
CONTEXT_NAMES: Final = ("ctx", "context")
#: Names of the object in methods, or of its class; without the underscores around.
_SELF: Final = ("", "self", "cls", "klass", "class", "this", "me", "kit", "tool", "s", "mcs")
#: Annotations of one value: never the whole input, never the context.
_VALUES: Final = (str, int, float, bytes, list, tuple, set, frozenset, Enum)
#: Annotations that say nothing about the arguments: the handler takes the plain dict.
_PLAIN: Final = (Parameter.empty, Any, object, dict, Mapping)


def takes_object(p: Parameter, owner: type | None) -> bool:
    """Tell whether the first parameter of a method can be meant for the object, or its class."""
    if p.default is not p.empty or is_context(p):
        return False
    if p.annotation is p.empty or p.name in _SELF:
        return p.name.strip("_") in _SELF
    made = typing.get_origin(p.annotation) or p.annotation
    if not isinstance(made, type) or not isinstance(owner, type):
        return True
    # `type[Self]` of a classmethod; a base, a mixin or a protocol; or this class, made again.
    return made is type or issubclass(owner, made) or made.__name__ == owner.__name__


def annotated(p: Parameter) -> str:
    """Write a parameter with a type, for a message: that of its default, or any."""
    if p.default is p.empty or p.default is None:
        return f"{p.name}: str" + (" | None = None" if p.default is None else "")
    cls = type(p.default)
    is_plain = cls in (str, int, float, bool)
    return f"{p.name}: {cls.__name__} = {p.default!r}" if is_plain else f"{p.name}: <type> = …"


def written(p: Parameter) -> str:
    """Write a parameter of a method without `self`, for a message."""
    if p.name in ("args", "uri", *CONTEXT_NAMES):
        return p.name
    if p.annotation is p.empty:
        return annotated(p)
    plain = isinstance(p.annotation, type) and typing.get_origin(p.annotation) is None
    return f"{p.name}: {p.annotation.__name__ if plain else p.annotation}"


def is_value(annotation: Any) -> bool:
    """Tell whether an annotation is that of one value, and not of an object."""
    made = typing.get_origin(annotation) or annotation
    return isinstance(made, type) and issubclass(made, _VALUES)


def declares_input(p: Parameter) -> bool:
    """Tell whether the annotation of a parameter that takes the whole input declares the input."""
    # `dict[str, Any]` and the like: the handler wants the arguments as they came.
    return p.annotation not in _PLAIN and typing.get_origin(p.annotation) not in _PLAIN


def is_context(p: Parameter) -> bool:
    """Tell a parameter that takes the context: by its annotation; without one, by its name."""
    # The name decides only where the annotation says nothing: `ctx: str` is an argument.
    if isinstance(p.annotation, str) or p.annotation in (Parameter.empty, Any, object):
        return p.name in CONTEXT_NAMES
    return mentions(p.annotation, (Context,))


def mentions(annotation: Any, classes: tuple[type, ...]) -> bool:
    """Tell whether a class stands in an annotation: alone, in a union, in a list.

    Args:
        annotation: Any annotation.
        classes: The classes; subclasses count.

    Returns:
        True if one of them is there.
    """
    if isinstance(annotation, type):
        return issubclass(annotation, classes)
    origin = typing.get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, classes):
        return True
    return any(mentions(argument, classes) for argument in typing.get_args(annotation))
