"""Which return annotations declare an output schema."""

from inspect import Parameter
from types import NoneType, UnionType
from typing import Annotated, Any, Never, NoReturn, TypeVar, Union, get_args, get_origin

from ._frozen_class import PROBLEMS

# Nothing is known of the value, or it is text: an output schema would say nothing to a client.
_SILENT = (str, None, NoneType, Any, object, dict, list, NoReturn, Never, Parameter.empty)


def output_annotation(annotation: Any) -> bool:
    """Tell if a return annotation declares the output schema of a tool.

    A concrete type does: `int`, `list[int]`, `dict[str, int]`, a class with fields. `str`, `None`,
    `Any`, bare `dict` and `list`, and the package's own result classes do not, nor does a union
    with one of these besides None.

    Args:
        annotation: The annotation, with text already replaced by what it names.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        return output_annotation(annotation.__origin__)
    if origin in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        return all(map(output_annotation, parts))
    if hasattr(annotation, "__supertype__"):
        return output_annotation(annotation.__supertype__)
    if any(annotation is silent for silent in _SILENT) or isinstance(annotation, TypeVar):
        return False
    if origin is list:
        return not any(map(_is_ours, get_args(annotation)))
    return not _is_ours(annotation)


def _is_ours(annotation: Any) -> bool:
    """Tell if a class is one of this package's own and no form: Content, ToolResult."""
    if get_origin(annotation) in (Union, UnionType):
        return any(map(_is_ours, get_args(annotation)))
    module = getattr(annotation, "__module__", None) or ""
    own = isinstance(annotation, type) and module.partition(".")[0] == __name__.partition(".")[0]
    return own and not hasattr(annotation, PROBLEMS)
