"""A class body with annotations → a frozen attrs class; what `Schema` does to its subclasses."""

import re
from collections.abc import Mapping
from inspect import get_annotations
from typing import Any, ClassVar, get_origin

import attrs

from ._field import MISSING, Marker
from ._resolve import KEPT, class_scope, may_be_none

# Keys of attrs metadata, and of the class itself, that the reader of the class looks at.
MARKER = "noizu_mcp.marker"
IMPLICIT = "noizu_mcp.implicit"
PROBLEMS = "__mcp_problems__"

_CLASS_VARIABLE = re.compile(r"""['"]?(\w+\.)*ClassVar\b""")
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
    problems.extend(
        (
            name,
            f"{value.maker}(...) without an annotation; write {name}: <type> = {value.maker}(...)",
        )
        for name, value in list(vars(cls).items())
        if isinstance(value, Marker)
    )
    try:
        attrs.define(cls, these=these, frozen=True, slots=False, kw_only=True)
    except Exception as error:
        problems.append(("", f"cannot be made an attrs class: {error}"))
    setattr(cls, PROBLEMS, tuple(problems))


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
