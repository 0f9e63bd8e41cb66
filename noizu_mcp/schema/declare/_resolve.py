"""Names in annotations: the objects that text in an annotation stands for, where they exist yet.

An annotation is text under `from __future__ import annotations`, or where it names a class that is
defined later. Its names are looked up as Python would: in the class itself, in the function or the
class body around it, in the module.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from inspect import get_annotations
from types import FrameType, MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, ForwardRef, NamedTuple, TypeVar, Union, get_args, get_origin

#: The type of each type variable, with the scope of its names.
Types = Mapping[object, "tuple[Any, NameScope]"]
#: No type variables.
NO_TYPES: Types = MappingProxyType({})
#: On a `Schema` class: names that were found in a function's frame, which is gone on later reads.
KEPT = "__mcp_names__"


#: Annotations that stand for another object.
TEXT = (str, ForwardRef)


class Unresolved(Exception):
    """An annotation names something that does not exist (yet)."""


class NameScope(NamedTuple):
    """The names that an annotation may use.

    Attributes:
        names: The globals of the declaring module. Empty if the module is unknown, as for types
            in a mapping; then the frames of all running code outside this package are searched.
        owner: The class that is declared, if any: it may name itself.
        local: True if the declaration stands in a function, whose names come before the module's.
        variables: The type of each type variable of a generic class, with the scope of that type.
    """

    names: dict[str, object]
    owner: type | None = None
    local: bool = False
    variables: Mapping[object, Any] = MappingProxyType({})

    def resolve(self, annotation: object) -> object:
        """Return an annotation with text replaced by the object that it names.

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

    def find(self, name: str) -> object:
        """Return the object that a name stands for.

        Raises:
            KeyError: If nothing has that name.
        """
        if self.owner is not None and name == self.owner.__name__:
            return self.owner
        kept = self.owner.__dict__.get(KEPT, {}) if self.owner is not None else {}
        if name in kept:
            return kept[name]
        if not self.local and name in self.names:
            return self.names[name]
        for found in _frames(self.names):
            if name in found:
                kept[name] = found[name]
                return found[name]
        raise KeyError(name)


def substitute(annotation: Any, scope: NameScope) -> tuple[object, NameScope]:
    """Replace the type variables of an annotation; return it with the scope of its names.

    Raises:
        Unresolved: If text in it names something unknown.
    """
    annotation = scope.resolve(annotation)
    if isinstance(annotation, TypeVar):
        known: tuple[object, NameScope] = scope.variables.get(annotation, (annotation, scope))
        return known
    variables = getattr(annotation, "__parameters__", ())
    if isinstance(annotation, type) or not variables:
        return annotation, scope
    parts = [scope.variables.get(variable, (variable, scope))[0] for variable in variables]
    return annotation[tuple(parts)], scope


def type_arguments(
    cls: type, args: Iterable[tuple[object, NameScope]] | None = None
) -> dict[type, Types]:
    """Find the types that stand for the type variables of a class and of its generic bases.

    Args:
        cls: The class.
        args: Its own type arguments, each with the scope of its names; by default any types.

    Returns:
        The variables of each generic class, each with its type and the scope of that. A variable
        may stand for one type in a class, and for another one in its base.
    """
    if args is None:
        args = [(Any, NameScope({}))] * len(_parameters(cls))
    found: dict[type, Types] = {cls: dict(zip(_parameters(cls), args, strict=False))}
    # A class stands before its bases there, so that its own variables are known by then.
    for each in cls.__mro__:
        for alias in each.__dict__.get("__orig_bases__", ()):
            origin = get_origin(alias)
            if isinstance(origin, type) and origin not in found:
                scope = class_scope(each, found.get(each, {}))
                pairs = zip(_parameters(origin), get_args(alias), strict=False)
                known = {v: _substitute_known(arg, scope) for v, arg in pairs}
                # A type with an unbound variable in it is not known. Variables of other kinds
                # stand for several types, or for parameters.
                plain = all(isinstance(v, TypeVar) for v in known)
                known = {v: pair for v, pair in known.items() if not _has_variables(pair[0])}
                found[origin] = known if plain else {}
    return found


def _substitute_known(annotation: object, scope: NameScope) -> tuple[object, NameScope]:
    """Replace type variables; text that names something unknown stays, and is a fault later."""
    try:
        return substitute(annotation, scope)
    except Unresolved:
        return annotation, scope


def _has_variables(annotation: object) -> bool:
    plain = isinstance(annotation, type) and get_origin(annotation) is None
    return isinstance(annotation, TypeVar) or (not plain and bool(_parameters(annotation)))


def _parameters(cls: object) -> tuple[object, ...]:
    return getattr(cls, "__parameters__", ())


def with_types(annotation: object, types: Types) -> object:
    """Replace the type variables of an annotation that is not text."""
    return substitute(annotation, NameScope({}, variables=types))[0]


class _Names(dict[str, Any]):
    """The local names of an `eval`, looked up only when asked for."""

    def __init__(self, scope: NameScope) -> None:
        super().__init__()
        self._scope = scope

    def __missing__(self, name: str) -> object:
        return self._scope.find(name)


def _frames(names: dict[str, object]) -> Iterator[Mapping[str, object]]:
    """Yield the names of the running code, from the inside out.

    Args:
        names: The globals of a module, whose functions and class bodies are meant; empty for the
            local and global names of all modules outside this package.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if names:
            # The frame of the evaluation itself has the module's globals too.
            if frame.f_globals is names and not isinstance(frame.f_locals, _Names):
                yield frame.f_locals
        # Without names it has no module.
        elif module and module.partition(".")[0] != __name__.partition(".")[0]:
            yield frame.f_locals
            yield frame.f_globals
        frame = frame.f_back


def class_scope(cls: type, variables: Mapping[object, object]) -> NameScope:
    """Return the scope of the annotations in the body of a class."""
    module = sys.modules.get(cls.__module__)
    names = module.__dict__ if module is not None else {}
    return NameScope(names, cls, "<locals>" in cls.__qualname__, variables)


def field_scopes(
    cls: type, types: Mapping[type, Types]
) -> tuple[dict[str, type], dict[type, NameScope]]:
    """Find the class that annotates each field, and the scope of the annotations of each class.

    Args:
        cls: A class with fields.
        types: The result of `type_arguments`.
    """
    owners = declarers(cls)
    return owners, {
        each: class_scope(each, types.get(each, {})) for each in {cls, *owners.values()}
    }


def declarers(cls: type) -> dict[str, type]:
    """Return the class in whose body each field is annotated, by its name there."""
    return {name: base for base in reversed(cls.__mro__) for name in get_annotations(base)}


def may_be_none(annotation: Any, owner: type) -> bool:
    """Tell if None is one of the types of an annotation; text with unknown names is guessed.

    Args:
        annotation: The annotation.
        owner: The class whose body contains it.
    """
    try:
        annotation = class_scope(owner, {}).resolve(annotation)
    except Unresolved:
        return "None" in str(annotation) or "Optional[" in str(annotation)
    if get_origin(annotation) is Annotated:
        return may_be_none(annotation.__origin__, owner)
    if get_origin(annotation) in (Union, UnionType):
        return any(may_be_none(part, owner) for part in get_args(annotation))
    return annotation in (None, NoneType)
