"""A class body with annotations → a frozen attrs class; what `Schema` does to its subclasses."""

import re
from collections.abc import Iterator, Mapping
from inspect import get_annotations
from types import NoneType
from typing import Any, ClassVar, get_origin

import attrs

from ._field import MISSING, Marker
from ._resolve import KEPT, class_scope, may_be_none

# Keys of attrs metadata, and of the class itself, that the reader of the class looks at.
MARKER = "noizu_mcp.marker"
IMPLICIT = "noizu_mcp.implicit"
PROBLEMS = "__mcp_problems__"

_CLASS_VARIABLE = re.compile(r"""['"]?(\w+\.)*ClassVar\b""")
_SCALARS = (str, int, float, bool)
# The types that the makers of the data form stand for.
_KINDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
# By the class of what they return: none of these is imported here.
_FOREIGN = {
    ("pydantic.fields", "FieldInfo"): "pydantic's Field(...)",
    ("attr._make", "_CountingAttr"): "attrs.field(...)",
    ("dataclasses", "Field"): "dataclasses.field(...)",
}
_MUTABLE: Mapping[type, str] = {list: "list", dict: "dict", set: "set"}


def freeze(cls: type, keywords: dict[str, Any] | None = None) -> None:
    """Make a class a frozen attrs class, in place, from its annotations.

    Never raises: what is wrong is kept on the class, as pairs of a field name and a text.

    Args:
        cls: The class; the default values leave its namespace.
        keywords: Keywords of the class statement, of which none is known.
    """
    problems: list[tuple[str, str]] = [
        ("", f"unknown class keyword {name!r}; a Schema class takes none")
        for name in keywords or ()
    ]
    setattr(cls, KEPT, {})
    these = _attributes(cls, problems)
    problems.extend(_unannotated(cls))
    try:
        attrs.define(cls, these=these, frozen=True, slots=False, kw_only=True)
    except Exception as error:
        problems.append(("", f"cannot be made an attrs class: {error}"))
    setattr(cls, PROBLEMS, tuple(problems))


def _unannotated(cls: type) -> Iterator[tuple[str, str]]:
    """Yield a problem for each value in a class body that was probably meant as a field.

    Functions, descriptors, classes and objects of other kinds are what they are in any class;
    upper case (PEP 8) and a leading underscore mark a constant.
    """
    annotated = get_annotations(cls)
    for name, value in vars(cls).items():
        if name in annotated or name.startswith("_"):
            continue
        if isinstance(value, Marker):
            kind = _KINDS.get(value.kind or "", "<type>")
            hint = f"write {name}: {kind} = {value.maker}(...)"
            if value.kind is None:
                yield name, f"{value.maker}(...) without an annotation; {hint}"
            else:
                yield (
                    name,
                    f"{value.maker}(...) is for mappings; in a class write {name}: {kind} = field(...)",
                )
        elif (maker := foreign_field(value)) is not None:
            yield name, f"{maker} is not read here; write {name}: <type> = field(...)"
        elif not name.isupper() and (written := _as_field(cls, name, value)) is not None:
            yield (
                name,
                f"has no annotation, so that it is not a field; write {written},"
                " or annotate it with ClassVar if it is a constant",
            )


def _as_field(cls: type, name: str, value: Any) -> str | None:
    """Return how a value without annotation is written as a field; None if it cannot be one."""
    kind = type(value)
    inherited = next(
        (b for base in cls.__mro__[1:] if (b := get_annotations(base).get(name))), None
    )
    if value in (*_SCALARS, *_MUTABLE) if kind is type else get_origin(value) is not None:
        shown = value.__name__ if kind is type else str(value).replace("typing.", "")
        return None if name[0].isupper() else f"{name}: {shown}"
    if kind in _MUTABLE:
        return f"{name}: {_MUTABLE[kind]}[<type>] = field(factory={_MUTABLE[kind]})"
    if kind not in (*_SCALARS, tuple, NoneType):
        return None
    shown = "<type> | None" if value is None else kind.__name__
    if inherited is not None:
        shown = inherited if isinstance(inherited, str) else getattr(inherited, "__name__", shown)
    return f"{name}: {shown} = {value!r}"


def foreign_field(value: Any) -> str | None:
    """Return the name of another library's field function if it made this value."""
    cls = type(value)
    return _FOREIGN.get((cls.__module__, cls.__qualname__))


def _attributes(cls: type, problems: list[tuple[str, str]]) -> dict[str, Any]:
    these: dict[str, Any] = {}
    taken: dict[str, str] = {}
    for name, annotation in get_annotations(cls).items():
        if _is_class_variable(annotation):
            continue
        alias = name.lstrip("_")
        if not alias or alias in taken:
            problems.append((name, _unusable(name, taken.get(alias))))
            continue
        taken[alias] = name
        value = cls.__dict__.get(name, MISSING)
        these[name] = _attribute(cls, name, annotation, value, problems)
        if value is not MISSING:
            delattr(cls, name)
    return these


def _unusable(name: str, other: str | None) -> str:
    if other is None:
        return f"the name {name!r} is nothing but underscores; give the field a name"
    return f"duplicate name {name.lstrip('_')!r}, which {other!r} has too; rename one"


def _attribute(
    cls: type, name: str, annotation: Any, value: Any, problems: list[tuple[str, str]]
) -> Any:
    marker = value if isinstance(value, Marker) else None
    options = marker.options if marker is not None else {}
    default = options.get("default", MISSING) if marker is not None else value
    metadata = {MARKER: marker, IMPLICIT: False}
    maker = foreign_field(default)
    if maker is not None:
        problems.append((name, f"{maker} is not read here; write field(...)"))
        default = MISSING
    if type(default) in _MUTABLE:
        problems.append(
            (name, f"mutable default; write field(factory={_MUTABLE[type(default)]}) or a lambda")
        )
    if default is not MISSING:
        return attrs.field(default=default, metadata=metadata)
    if callable(options.get("factory")):
        return attrs.field(factory=options["factory"], metadata=metadata)
    optional = options.get("required")
    if optional is False or (optional is None and may_be_none(annotation, class_scope(cls))):
        metadata[IMPLICIT] = True
        return attrs.field(default=None, metadata=metadata)
    return attrs.field(metadata=metadata)


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return _CLASS_VARIABLE.match(annotation) is not None
    return annotation is ClassVar or get_origin(annotation) is ClassVar
