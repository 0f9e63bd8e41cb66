"""The stored form of a handle: its fields as JSON, without its id."""

from collections.abc import Callable
from inspect import get_annotations
from typing import Any, NamedTuple

from .._class_body import BODY, replacements
from .._value import JSONObject
from ._declared_schema import Shape, read_annotation
from .convert._dump import dump_fields
from .declare._annotations import infer
from .declare._classes import define
from .declare._state import ParseState
from .jsonschema._violation import Fault

#: The members of every handle, which no field may hide.
_MEMBERS = ("id", "expires_at", "delete")
#: On a class of handles: its form.
_FORM = "__mcp_form__"


class HandleForm(NamedTuple):
    """The fields of a class of handles.

    Attributes:
        shape: Their JSON Schema, and the builder of an instance.
        dump: Returns the fields of an instance as JSON.
    """

    shape: Shape
    dump: Callable[[Any], JSONObject]


def define_handle(cls: type, keywords: dict[str, object]) -> None:
    """Make a class of handles an attrs class, whose instances can change, in place.

    Args:
        cls: The class, in `__init_subclass__`.
        keywords: The keywords of the class statement that it does not take.
    """
    found = [
        (each.where.partition(".")[2], each.text)
        for each in replacements(vars(cls)[BODY], cls.__name__, get_annotations(cls))
    ]
    hidden = [name for name in _MEMBERS if name in get_annotations(cls) or name in vars(cls)]
    found += [(name, "is a member of every handle; give it another name") for name in hidden]
    define(cls, keywords, found, frozen=False)


def read_handle(cls: type) -> tuple[HandleForm | None, list[Fault], bool]:
    """Read the fields of a class of handles.

    Returns:
        The form, or None; the faults; and True if a fault is a name that may be defined later.
    """
    known = vars(cls).get(_FORM)
    if known is not None:
        return known, [], False
    state = ParseState(infer)
    if getattr(cls, "__parameters__", ()):
        state.fault("a handle has one form, and this class is generic; write the types of fields")
    shape, faults = read_annotation(state, cls)
    if shape is None or state.faults:
        return (
            None,
            [*faults, *(each for each in state.faults if each not in faults)],
            (state.unresolved),
        )
    form = HandleForm(shape, dump_fields(state.classes[0][2]))
    setattr(cls, _FORM, form)
    return form, [], False
