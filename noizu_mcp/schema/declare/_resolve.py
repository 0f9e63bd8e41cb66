"""Annotations that are text → the objects they name, as far as they are known now."""

import sys
from collections.abc import Iterator, Mapping
from types import FrameType, NoneType, UnionType
from typing import Annotated, Any, ForwardRef, TypeVar, Union, get_args, get_origin

import attrs

# Names found in a function's frame, kept on a `Schema` class: the frame is gone on later reads.
KEPT = "__mcp_names__"


# Special forms that say something about a field, not about its type. By name: some are newer than
# the oldest Python served, and typing_extensions has its own.
_WRAPPERS = frozenset({"Final", "Required", "NotRequired", "ReadOnly"})


class Unresolved(Exception):
    """An annotation names something that does not exist (yet)."""


@attrs.frozen(eq=False, repr=False)
class Scope:
    """Where the names of an annotation are looked up.

    Attributes:
        names: The globals of the declaring module; empty if no module is known, as for types in
            a mapping: then whoever is asking is looked at.
        owner: The class that is declared, if it is one: its own name may stand for it.
        local: True if the declaration stands in a function, whose names come before the module's.
        variables: What the type variables of a generic class stand for.
    """

    names: dict[str, Any]
    owner: type | None = None
    local: bool = False
    variables: Mapping[Any, Any] = attrs.field(factory=dict)

    def resolve(self, annotation: Any) -> Any:
        """Return an annotation with text replaced by what it names.

        Raises:
            Unresolved: If it names something unknown, or cannot be evaluated.
        """
        if isinstance(annotation, ForwardRef):
            annotation = annotation.__forward_arg__
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, self.names or {}, _Names(self))
        except NameError as error:
            raise Unresolved(
                f"cannot find {error.name!r}, which the annotation {annotation!r} names;"
                " define or import it before the class is used"
            ) from None
        except Exception as error:
            raise Unresolved(f"cannot evaluate the annotation {annotation!r}: {error}") from None

    def find(self, name: str) -> Any:
        """Return what a name stands for.

        Raises:
            KeyError: If nothing has that name.
        """
        if self.owner is not None and name == self.owner.__name__:
            return self.owner
        kept = _kept(self.owner)
        if name in kept:
            return kept[name]
        if not self.local and name in self.names:
            return self.names[name]
        for found in _frames(self.names) if self.names else _all_frames():
            if name in found:
                kept[name] = found[name]
                return found[name]
        raise KeyError(name)


def _kept(owner: type | None) -> dict[str, Any]:
    return owner.__dict__.get(KEPT, {}) if owner is not None else {}


def substitute(annotation: Any, scope: Scope) -> tuple[Any, Scope]:
    """Return an annotation with what its type variables stand for, and where to look up the rest.

    Raises:
        Unresolved: If text in it names something unknown.
    """
    annotation = scope.resolve(annotation)
    if isinstance(annotation, TypeVar):
        known: tuple[Any, Scope] = scope.variables.get(annotation, (annotation, scope))
        return known
    variables = getattr(annotation, "__parameters__", ())
    if isinstance(annotation, type) or not variables:
        return annotation, scope
    parts = [scope.variables.get(variable, (variable, scope))[0] for variable in variables]
    return annotation[tuple(parts)], scope


class _Names(dict[str, Any]):
    """The local names of an `eval`, looked up only when asked for."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope

    def __missing__(self, name: str) -> Any:
        return self._scope.find(name)


def _all_frames() -> Iterator[Mapping[str, Any]]:
    """Yield the local and global names of all that is running outside this package."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        # The evaluation that asks has no module, and this package no names for its users.
        if module and module.partition(".")[0] != __name__.partition(".")[0]:
            yield frame.f_locals
            yield frame.f_globals
        frame = frame.f_back


def _frames(names: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the local names of the running functions and class bodies of one module."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        # The evaluation that asks is a frame of the module too.
        if frame.f_globals is names and not isinstance(frame.f_locals, _Names):
            yield frame.f_locals
        frame = frame.f_back


def class_scope(cls: type, variables: Mapping[Any, Any] | None = None) -> Scope:
    """Return where the annotations in the body of a class are looked up."""
    module = sys.modules.get(cls.__module__)
    names = module.__dict__ if module is not None else {}
    return Scope(names, cls, "<locals>" in cls.__qualname__, variables or {})


def may_be_none(annotation: Any, scope: Scope) -> bool:
    """Tell if an annotation names None as one of its types; a guess where it is unknown text."""
    try:
        annotation = scope.resolve(annotation)
    except Unresolved:
        return "None" in str(annotation) or "Optional[" in str(annotation)
    if get_origin(annotation) is Annotated:
        return may_be_none(annotation.__origin__, scope)
    if get_origin(annotation) in (Union, UnionType):
        return any(may_be_none(part, scope) for part in get_args(annotation))
    return annotation in (None, NoneType)


def unwrap(annotation: Any, scope: Scope) -> tuple[Any, list[Any], bool | None]:
    """Take off what an annotation says about the field and not about its type.

    Returns:
        The annotation of the type, the entries of `Annotated`, and what `Required[...]` or
        `NotRequired[...]` says.

    Raises:
        Unresolved: If text in it names something unknown.
    """
    entries: list[Any] = []
    required = None
    while True:
        annotation = scope.resolve(annotation)
        origin = get_origin(annotation)
        if origin is Annotated:
            entries = [*annotation.__metadata__, *entries]
            annotation = annotation.__origin__
        elif getattr(origin, "_name", None) in _WRAPPERS:
            required = {"Required": True, "NotRequired": False}.get(origin._name, required)
            (annotation,) = get_args(annotation)
        else:
            return annotation, entries, required
