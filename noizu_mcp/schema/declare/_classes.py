"""Classes → object nodes: `Schema`, attrs classes, dataclasses, TypedDicts, plain classes."""

import sys
from collections.abc import Iterator, Mapping
from inspect import get_annotations, signature
from typing import Any, Generic, get_args, get_origin, is_typeddict

import attrs

from ._constraints import apply_validator
from ._docstring import docstring_parameters, docstring_summary
from ._field import Marker
from ._frozen_class import IMPLICIT, MARKER, PROBLEMS, freeze
from ._nodes import Field, Object
from ._parse_state import Reading, make_field
from ._resolve import Scope, Unresolved, class_scope, substitute, unwrap

# A generic class that contains itself with a growing argument never ends, and no schema may nest
# deeper than 64 containers, of which an object in an object takes two.
MAX_NESTING = 40

# A class, which the stubs of attrs declare as a function.
_FACTORY: Any = attrs.Factory
_HOOKS = ("__attrs_pre_init__", "__attrs_post_init__", "__post_init__")


def is_class_form(cls: type) -> bool:
    """Tell if a class declares fields that can be read."""
    if PROBLEMS in cls.__dict__:
        return True
    return attrs.has(cls) or _is_dataclass(cls) or is_typed_dict(cls) or is_plain(cls)


def _is_dataclass(cls: type) -> bool:
    return hasattr(cls, "__dataclass_fields__")


def is_typed_dict(cls: Any) -> bool:
    """Tell if a class is a TypedDict, of typing or of typing_extensions."""
    return is_typeddict(cls) or (isinstance(cls, type) and hasattr(cls, "__required_keys__"))


def is_plain(cls: type, *, empty: bool = False) -> bool:
    """Tell if a class is nothing but annotations, so that it can be made an attrs class.

    Args:
        cls: Any class.
        empty: True if a class without annotations counts too.
    """
    if type(cls) is not type or cls.__module__ == "builtins" or cls.__mro__[1:] != (object,):
        return False
    own = vars(cls)
    declared = bool(get_annotations(cls)) or any(isinstance(v, Marker) for v in own.values())
    return "__init__" not in own and "__new__" not in own and (declared or empty)


def read_class(reading: Reading, cls: type, args: tuple[tuple[Any, Scope], ...] = ()) -> Object:
    """Read a class with fields into a node; the same class gives the same node.

    Args:
        reading: Where faults go.
        cls: A class for which `is_class_form` holds, or a plain class without fields.
        args: What its type parameters stand for, each with where its names are looked up.
    """
    arguments = tuple(arg for arg, _ in args)
    for known, known_arguments, node in reading.classes:
        if known is cls and known_arguments == arguments:
            return node
    if is_plain(cls, empty=True) and not attrs.has(cls):
        freeze(cls)
    node = Object(cls.__name__, _make(cls), cls, risky=_is_risky(cls))
    reading.classes.append((cls, arguments, node))
    if len(reading.path) > MAX_NESTING:
        reading.fault(
            f"more than {MAX_NESTING} classes inside each other; {cls.__name__} may have no end"
        )
        return node
    node.description = docstring_summary(_own_docstring(cls))
    for name, text in getattr(cls, PROBLEMS, ()):
        with reading.at(name or None, cls):
            reading.fault(text)
    variables = dict(_variables(cls, args))
    node.fields.extend(_fields(reading, cls, variables))
    _check_names(reading, cls, node.fields)
    _describe(cls, node.fields)
    return node


def _make(cls: type) -> str:
    if is_typed_dict(cls):
        return "dict"
    # A Schema class without hooks is no more than its attributes: no constructor is needed.
    return "direct" if hasattr(cls, PROBLEMS) and not _is_risky(cls) else "call"


def _is_risky(cls: Any) -> bool:
    """Tell if the constructor may refuse values that the schema accepts."""
    if is_typed_dict(cls):
        return False
    written = any("__new__" in vars(base) for base in cls.__mro__[:-1])
    if written or any(hasattr(cls, hook) for hook in _HOOKS):
        return True
    code = getattr(cls.__init__, "__code__", None)
    # attrs and dataclasses compile the constructor from text without a file.
    if code is not None and not code.co_filename.startswith("<"):
        return True
    return attrs.has(cls) and any(a.validator or a.converter for a in attrs.fields(cls))


def _own_docstring(cls: type) -> str | None:
    text = cls.__dict__.get("__doc__")
    # dataclasses write the signature where no docstring is.
    return None if text is None or text.startswith(f"{cls.__name__}(") else text


def _variables(
    cls: type, args: tuple[tuple[Any, Scope], ...]
) -> Iterator[tuple[Any, tuple[Any, Scope]]]:
    """Yield what each type variable of a class and of its generic bases stands for."""
    own = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
    yield from own.items()
    for base in cls.__mro__:
        for alias in base.__dict__.get("__orig_bases__", ()):
            origin = get_origin(alias)
            if origin is not None and origin is not Generic:
                scope = class_scope(base, own)
                pairs = [substitute(arg, scope) for arg in get_args(alias)]
                yield from zip(getattr(origin, "__parameters__", ()), pairs, strict=False)


def _fields(reading: Reading, cls: type, variables: Mapping[Any, Any]) -> Iterator[Field]:
    if is_typed_dict(cls):
        return _typed_dict_fields(reading, cls, variables)
    if attrs.has(cls):
        return _attrs_fields(reading, cls, variables)
    # A class that attrs refused has none; that is among its problems.
    return _dataclass_fields(reading, cls, variables) if _is_dataclass(cls) else iter(())


def _attrs_fields(reading: Reading, cls: type, variables: Mapping[Any, Any]) -> Iterator[Field]:
    for attribute in attrs.fields(cls):
        if not attribute.init and not reading.output:
            continue
        owner = declarer(cls, attribute.name)
        name = (attribute.alias or attribute.name) if attribute.init else attribute.name
        about = {"attribute": attribute.name, "owner": owner, **_attrs_default(attribute, name)}
        marker = attribute.metadata.get(MARKER)
        scope = class_scope(owner, variables)
        with reading.at(name, owner):
            field = annotated_field(reading, name, attribute.type, scope, marker, about)
            for problem in apply_validator(field.node, attribute.validator):
                reading.fault(problem)
        yield field


def _attrs_default(attribute: Any, name: str) -> dict[str, Any]:
    """Return what an attrs attribute says about its absence, as attributes of `Field`."""
    if not attribute.init:
        return {"keyword": None, "required": True}
    about: dict[str, Any] = {"keyword": name}
    default = attribute.default
    if isinstance(default, _FACTORY):
        about.update(factory=default.factory, takes_self=default.takes_self)
    elif default is not attrs.NOTHING and not attribute.metadata.get(IMPLICIT):
        about["default"] = default
    return about


def _dataclass_fields(reading: Reading, cls: Any, variables: Mapping[Any, Any]) -> Iterator[Field]:
    dataclasses = sys.modules["dataclasses"]  # loaded, since there is one; never by us
    fields = dataclasses.fields(cls)
    # What else is declared is a ClassVar, or an InitVar: that one is a parameter.
    others = cls.__dataclass_fields__.keys() - {declared.name for declared in fields}
    for name in signature(cls).parameters:
        if name in others:
            with reading.at(name, declarer(cls, name)):
                reading.fault("an InitVar is no field; make it a field, or set it in a factory")
    for declared in fields:
        if not (declared.init or reading.output):
            continue
        owner = declarer(cls, declared.name)
        with reading.at(declared.name, owner):
            about: dict[str, Any] = {"owner": owner, "keyword": declared.name}
            if not declared.init:
                about.update(keyword=None, required=True)
            elif declared.default_factory is not dataclasses.MISSING:
                about["factory"] = declared.default_factory
            elif declared.default is not dataclasses.MISSING:
                about["default"] = declared.default
            scope = class_scope(owner, variables)
            yield annotated_field(reading, declared.name, declared.type, scope, None, about)


def _typed_dict_fields(reading: Reading, cls: Any, variables: Mapping[Any, Any]) -> Iterator[Field]:
    scope = class_scope(cls, variables)
    for name, annotation in get_annotations(cls).items():
        with reading.at(name, cls):
            about = {"owner": cls, "required": name in cls.__required_keys__}
            yield annotated_field(reading, name, annotation, scope, None, about)


def annotated_field(
    reading: Reading,
    name: str,
    annotation: Any,
    scope: Scope,
    marker: Marker | None,
    about: dict[str, Any],
) -> Field:
    """Read a field that has an annotation and perhaps a marker.

    Args:
        reading: Stands at the field.
        name: On the wire.
        annotation: The whole annotation, or None if there is none.
        scope: Where its names are looked up.
        marker: `field(...)` or `argument(...)`, if one was written.
        about: Attributes of `Field`.
    """
    if annotation is None and (reading.owner is None or name not in _annotated(reading.owner)):
        reading.fault("has no annotation; write its type")
        annotation = Any
    try:
        inner, entries, required = unwrap(annotation, scope)
    except Unresolved as error:
        reading.unknown(error)
        inner, entries, required = Any, [], None
    node = reading.node(inner, scope)
    options = reading.metadata(node, entries)
    if required is not None:
        about["required"] = required
    if marker is not None:
        if marker.kind is not None:
            reading.fault(f"{marker.maker}(...) is for mappings; in a class write field(...)")
        reading.check_marker(marker)
        options.update(marker.options)
        if "factory" in options and not callable(options["factory"]):
            about["factory"] = None
    if isinstance(about.get("default"), Marker):
        reading.fault("a marker is no default here; write Annotated[<type>, field(...)]")
        del about["default"]
    return make_field(reading, name, node, options, **about)


def _annotated(cls: type) -> set[str]:
    return {name for base in cls.__mro__ for name in get_annotations(base)}


def declarer(cls: type, name: str) -> type:
    """Return the class in whose body a field is annotated."""
    for base in cls.__mro__:
        if name in get_annotations(base):
            return base
    return cls


def _check_names(reading: Reading, cls: type, fields: list[Field]) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            with reading.at(field.name, field.owner or cls):
                reading.fault(f"duplicate name {field.name!r}; rename one, or give it an alias")
        seen.add(field.name)


def _describe(cls: type, fields: list[Field]) -> None:
    """Take the descriptions that the fields lack from the docstrings of the class and its bases."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        texts.update(docstring_parameters(_own_docstring(base)))
    for field in fields:
        if field.description is None:
            field.description = texts.get(field.name) or texts.get(field.attribute)
