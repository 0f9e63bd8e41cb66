"""Handles in declarations: a parameter takes the id of one, a result shows one.

The class `Handle` stands in a layer above; its subclasses are known by an attribute.
"""

from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeGuard, Union, get_args, get_origin

#: On a class of handles: what its statement declares.
HANDLE: Final = "__mcp_handle__"
#: On `Handle` itself: the record of its instances.
RECORD: Final = "__mcp_record__"


def is_handle(annotation: object) -> TypeGuard[type]:
    """Tell if an annotation is a class of handles."""
    return isinstance(annotation, type) and hasattr(annotation, HANDLE)


def take_handle(annotation: Any) -> tuple[Any, type | None]:
    """Read the annotation of a parameter that may take a handle.

    Args:
        annotation: The annotation: a class of handles, alone, with None, or in `Annotated`.

    Returns:
        The annotation with text, the id, in the place of the class; and the class. The annotation
        itself and None if it is anything else.
    """
    if is_handle(annotation):
        return str, annotation
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, found = take_handle(annotation.__origin__)
        return Annotated[(inner, *annotation.__metadata__)], found
    if origin in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        if len(parts) == 1 and is_handle(parts[0]):
            return str | None, parts[0]
    return annotation, None
