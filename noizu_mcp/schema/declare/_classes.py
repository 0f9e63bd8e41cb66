"""Classes with fields → object nodes: `Schema`, attrs, dataclasses, TypedDicts, plain classes.

A plain class, which is nothing but annotations, is made a frozen attrs class in place, as is a
subclass of `Schema`. Its problems are kept on it until the class that uses it reads it.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from enum import Enum
from functools import partial
from inspect import get_annotations, signature
from types import FunctionType, MemberDescriptorType, NoneType
from typing import Any, ClassVar, get_origin, is_typeddict

import attrs

from ..._class_body import BodyMeta
from ._docstring import docstring_parameters, docstring_summary
from ._field import Marker
from ._handles import RECORD, is_handle
from ._nodes import MISSING, Object, ObjectField, Scalar
from ._resolve import KEPT, NameScope, Types, class_scope, field_scopes, may_be_none, type_arguments
from ._state import ParseState

#: On a class that `define` made: its problems, as pairs of a field name and a text.
PROBLEMS = "__mcp_problems__"
# Keys of the metadata of its attributes: the marker; True if None stands for absence; the default
# that its factory copies.
_MARKER = "noizu_mcp.marker"
_IMPLICIT = "noizu_mcp.implicit"
_DEFAULT = "noizu_mcp.default"

_CLASS_VARIABLE = re.compile(r"""['"]?(\w+\.)*ClassVar\b""")
#: The keywords that a class statement takes, by whether the class is frozen.
_TAKES = {True: "a Schema class takes none", False: "a Handle class takes ttl and max_size"}
# Values without annotation that are members of any class.
_MEMBERS = (FunctionType, property, classmethod, staticmethod)
# Types of defaults that are copied.
_CONTAINERS = (list, dict, set)
# Types of defaults that are surely no mistake.
_PLAIN_DEFAULTS = (str, int, float, bool, NoneType, Enum, tuple)


def define(
    cls: type,
    keywords: Mapping[str, object] | None = None,
    found: Iterable[tuple[str, str]] = (),
    *,
    frozen: bool = True,
) -> None:
    """Make a class an attrs class, in place, from its annotations.

    Never raises. Its problems are kept on the class.

    Args:
        cls: The class; the default values leave its namespace.
        keywords: The keywords of the class statement; each is a problem.
        found: Other problems of the statement: names of fields, each with a text.
        frozen: True if its instances cannot change.
    """
    problems = [
        *found,
        *(("", f"unknown class keyword {name!r}; {_TAKES[frozen]}") for name in keywords or ()),
    ]
    setattr(cls, KEPT, {})
    these = _attributes(cls, problems)
    for name, value in vars(cls).items():
        if name[0] != "_" and not isinstance(value, _MEMBERS):
            from ._mistakes import unannotated

            problems.extend(unannotated(cls))
            break
    try:
        attrs.define(cls, these=these, frozen=frozen, slots=False, kw_only=True)
    except Exception as error:
        problems.append(("", f"cannot be made an attrs class: {error}"))
    setattr(cls, PROBLEMS, tuple(problems))


def _attributes(cls: type, problems: list[tuple[str, str]]) -> dict[str, object]:
    """Return the attrs attributes of a class body, and take their values out of it."""
    these: dict[str, object] = {}
    taken: dict[str, str] = {}
    annotations: dict[str, object] = get_annotations(cls)
    for name, annotation in annotations.items():
        if isinstance(annotation, str):
            if _CLASS_VARIABLE.match(annotation):
                continue
        elif annotation is ClassVar or get_origin(annotation) is ClassVar:
            continue
        alias = name.lstrip("_")
        if not alias:
            text = f"the name {name!r} is nothing but underscores; give the field a name"
            problems.append((name, text))
        elif alias in taken:
            text = f"duplicate name {alias!r}, which {taken[alias]!r} has too; rename one"
            problems.append((name, text))
        else:
            taken[alias] = name
            value = cls.__dict__.get(name, MISSING)
            if isinstance(value, MemberDescriptorType):
                problems.append(
                    (name, "stands in __slots__, which a Schema has none of; leave it out")
                )
                value = MISSING
            these[name] = _attribute(cls, name, annotation, value, problems)
            if value is not MISSING:
                delattr(cls, name)
    return these


def _attribute(
    cls: type, name: str, annotation: object, value: object, problems: list[tuple[str, str]]
) -> object:
    marker = value if isinstance(value, Marker) else None
    options = marker.options if marker is not None else {}
    default = options.get("default", MISSING) if marker is not None else value
    metadata: dict[str, object] = {_MARKER: marker, _IMPLICIT: False}
    if default is not MISSING and not isinstance(default, _PLAIN_DEFAULTS):
        if type(default) in _CONTAINERS:  # every instance has its own
            metadata[_DEFAULT] = default
            return attrs.field(factory=partial(deepcopy, default), metadata=metadata)
        from ._mistakes import foreign_field

        foreign = foreign_field(default)
        if foreign is not None:
            problems.append((name, foreign))
            default = MISSING
    if default is not MISSING:
        return attrs.field(default=default, metadata=metadata)
    if callable(options.get("factory")):
        return attrs.field(factory=options["factory"], metadata=metadata)
    optional = options.get("required")
    # Only a union can be None as well; most annotations are plain classes.
    union = not isinstance(annotation, type) or annotation is NoneType
    if optional is False or (optional is None and union and may_be_none(annotation, cls)):
        metadata[_IMPLICIT] = True
        return attrs.field(default=None, metadata=metadata)
    return attrs.field(metadata=metadata)


def is_class_form(cls: type) -> bool:
    """Tell if a class declares fields that can be read."""
    if PROBLEMS in cls.__dict__ or attrs.has(cls):
        return True
    return hasattr(cls, "__dataclass_fields__") or is_typed_dict(cls) or is_plain(cls)


def has_fields(annotation: object) -> bool:
    """Tell if an annotation is a class whose instances have the fields that it declares."""
    if not isinstance(annotation, type) or is_typed_dict(annotation):
        return False
    return is_class_form(annotation) or is_pydantic(annotation)


def is_pydantic(cls: type) -> bool:
    """Tell if pydantic describes and validates a class: a model, a dataclass, or a type of its."""
    # Another library may offer the method without pydantic being there.
    offers = hasattr(cls, "__pydantic_validator__") or hasattr(cls, "__get_pydantic_core_schema__")
    return offers and "pydantic" in sys.modules


def is_typed_dict(cls: object) -> bool:
    """Tell if a class is a TypedDict, of typing or of typing_extensions."""
    return is_typeddict(cls) or (isinstance(cls, type) and hasattr(cls, "__required_keys__"))


def is_plain(cls: type, *, empty: bool = False) -> bool:
    """Tell if a class is nothing but annotations, so that it can be made an attrs class.

    Args:
        cls: Any class.
        empty: True if a class without annotations counts too.
    """
    # `Schema` itself has no fields, and the metaclass of its subclasses.
    if type(cls) not in (type, BodyMeta) or cls.__mro__[1:] != (object,):
        return False
    if cls.__module__ == "builtins":
        return False
    own = vars(cls)
    # `Handle` itself, whose subclasses have the fields.
    if RECORD in own:
        return False
    declared = bool(get_annotations(cls)) or any(isinstance(v, Marker) for v in own.values())
    return "__init__" not in own and "__new__" not in own and (declared or empty)


# A generic class that contains itself with a growing argument never ends, and no schema may nest
# deeper than 64 containers, of which an object in an object takes two.
MAX_NESTING = 40

_HOOKS = ("__attrs_pre_init__", "__attrs_post_init__", "__post_init__")
# A class, which the stubs of attrs declare as a function.
_FACTORY: Any = attrs.Factory


def read_class(
    state: ParseState, cls: type, args: tuple[tuple[object, NameScope], ...] = ()
) -> Object:
    """Read a class with fields; it has one node in each declaration.

    Args:
        state: Takes the faults.
        cls: A class for which `is_class_form` holds, or a plain class without fields.
        args: Its type arguments, each with the scope of its names.
    """
    arguments = tuple(arg for arg, _ in args)
    for known, known_arguments, node in state.classes:
        if known is cls and known_arguments == arguments:
            node.recursive = node.recursive or id(node) in state.open
            return node
    if is_plain(cls, empty=True) and not attrs.has(cls):
        define(cls)
    if not state.output and (lacking := getattr(cls, "__abstractmethods__", ())):
        with state.at(None, cls):
            text = f"{cls.__name__} has no {', '.join(sorted(lacking))}, which is abstract"
            state.fault(f"{text}; write it, or declare a subclass that has it")
    risky = _is_risky(cls)
    node = Object(cls.__name__, _make(cls, risky=risky), cls, [], risky)
    state.classes.append((cls, arguments, node))
    state.risky = state.risky or risky
    if len(state.path) > MAX_NESTING:
        state.fault(
            f"more than {MAX_NESTING} classes inside each other; {cls.__name__} may have no end"
        )
        return node
    for name, text in getattr(cls, PROBLEMS, ()):
        with state.at(name or None, cls):
            state.fault(text)
    state.open.add(id(node))
    node.fields.extend(_id_field(state, cls))
    node.fields.extend(_fields(state, cls, type_arguments(cls, args)))
    state.open.discard(id(node))
    seen: set[str] = set()
    for field in node.fields:
        if field.name in seen:
            with state.at(field.name, field.owner or cls):
                state.fault(f"duplicate name {field.name!r}; rename one, or give it an alias")
        seen.add(field.name)
    _describe(cls, node)
    return node


def _id_field(state: ParseState, cls: type) -> Iterator[ObjectField]:
    """Yield the id of a handle, which only a result shows."""
    if is_handle(cls):
        state.sided = True
        if state.output:
            yield ObjectField("id", Scalar("string"), keyword=None, required=True)


def _make(cls: type, *, risky: bool) -> str:
    if is_typed_dict(cls):
        return "dict"
    # A Schema class without hooks is no more than its attributes: no constructor is needed.
    return "direct" if hasattr(cls, PROBLEMS) and not risky else "call"


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


def _describe(cls: type, node: Object) -> None:
    """Read the descriptions of an object and of its fields in docstrings, bases included."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        docstring = base.__dict__.get("__doc__")
        # dataclasses write the signature where no docstring is.
        if docstring and not docstring.startswith(f"{base.__name__}("):
            texts.update(docstring_parameters(docstring))
            if base is cls:
                node.description = docstring_summary(docstring)
    if texts:
        for field in node.fields:
            if field.description is None:
                field.description = texts.get(field.name) or texts.get(field.attribute)


def _fields(state: ParseState, cls: type, types: Mapping[type, Types]) -> Iterator[ObjectField]:
    if is_typed_dict(cls):  # its bases are not in its MRO
        merged = {variable: known for each in types.values() for variable, known in each.items()}
        return _typed_dict_fields(state, cls, class_scope(cls, merged))
    owners, scopes = field_scopes(cls, types)
    if attrs.has(cls):
        return _attrs_fields(state, cls, owners, scopes)
    if hasattr(cls, "__dataclass_fields__"):
        return _dataclass_fields(state, cls, owners, scopes)
    # A class that attrs refused has no fields; that is among its problems.
    return iter(())


def _attrs_fields(
    state: ParseState, cls: type, owners: Mapping[str, type], scopes: Mapping[type, NameScope]
) -> Iterator[ObjectField]:
    for attribute in attrs.fields(cls):
        if not attribute.init and not state.output:
            continue
        owner = owners.get(attribute.name, cls)
        about: dict[str, Any] = {"attribute": attribute.name, "owner": owner}
        name = attribute.name
        if attribute.init:
            name = about["keyword"] = attribute.alias or attribute.name
            default = attribute.metadata.get(_DEFAULT, attribute.default)
            if isinstance(default, _FACTORY):
                about.update(factory=default.factory, takes_self=default.takes_self)
            elif default is not attrs.NOTHING and not attribute.metadata.get(_IMPLICIT):
                about["default"] = default
        else:
            about.update(keyword=None, required=True)
        with state.at(name, owner):
            annotation = attribute.type
            if annotation is None and attribute.name not in owners:
                state.fault("has no annotation; write its type")
                annotation = Any
            marker = attribute.metadata.get(_MARKER)
            field = state.annotated_field(name, annotation, scopes[owner], marker, **about)
            if attribute.validator is not None:
                # Loaded with the first validator.
                from ._constraints import apply_validator

                for problem in apply_validator(field.node, attribute.validator):
                    state.fault(problem)
        yield field


def _dataclass_fields(
    state: ParseState, cls: Any, owners: Mapping[str, type], scopes: Mapping[type, NameScope]
) -> Iterator[ObjectField]:
    dataclasses = sys.modules["dataclasses"]  # loaded, since there is one; never by us
    fields = dataclasses.fields(cls)
    # Other declarations are ClassVars and InitVars, of which the latter are parameters.
    others = cls.__dataclass_fields__.keys() - {declared.name for declared in fields}
    for name in signature(cls).parameters:
        if name in others:
            with state.at(name, owners[name]):
                state.fault("an InitVar is not a field; make it a field, or set it in a factory")
    for declared in fields:
        if not (declared.init or state.output):
            continue
        owner = owners.get(declared.name, cls)
        about: dict[str, Any] = {"owner": owner, "keyword": declared.name}
        if not declared.init:
            about.update(keyword=None, required=True)
        elif declared.default_factory is not dataclasses.MISSING:
            about["factory"] = declared.default_factory
        elif declared.default is not dataclasses.MISSING:
            about["default"] = declared.default
        with state.at(declared.name, owner):
            yield state.annotated_field(declared.name, declared.type, scopes[owner], **about)


def _typed_dict_fields(state: ParseState, cls: Any, scope: NameScope) -> Iterator[ObjectField]:
    for name, annotation in get_annotations(cls).items():
        required = name in cls.__required_keys__
        with state.at(name, cls):
            yield state.annotated_field(name, annotation, scope, owner=cls, required=required)
