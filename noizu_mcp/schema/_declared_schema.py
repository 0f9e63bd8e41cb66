"""A declared input or output, whatever its form → one `Shape`, ready for the call path."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, unwrap
from typing import Any

import attrs

from ._check import read_schema
from .convert import _dump
from .convert._build import Builder
from .convert._class_validation import checked, is_risky
from .convert._raw import copy_schema, decode_schema
from .declare._choice_titles import Titles, form_titles
from .declare._classes import annotated_field, is_plain, read_class
from .declare._data import is_field, read_data
from .declare._infer import infer
from .declare._nodes import Array, Field, Format, Map, Node, Object, Scalar, walk
from .declare._parse_state import Reading
from .declare._resolve import Scope, class_scope
from .engines._compile import CompiledSchema, compile_schema
from .jsonschema._fault import Fault
from .jsonschema._violation import show
from .publish._defaults import own_value_faults
from .publish._emit import Emitter, Path, Place, TooLarge
from .publish._headers import header_faults

# On a `Schema` class that stands by itself: its shape, made when the class statement ran.
SHAPE = "__mcp_shape__"


@attrs.frozen(eq=False, repr=False)
class Shape:
    """A declared input or output, ready for the call path.

    Attributes:
        schema: The published JSON Schema: JSON types only, in a stable order.
        build: JSON value that the schema accepts → typed value; None if it stays as it is.
        dump: Typed value, or JSON already → JSON types. Raises TypeError for what has no JSON form.
        type: The class of the built value; None for raw forms and unions.
        compiled: The validator: of the schema, and of what a typed class refuses besides.
        is_object: True if the root of the schema is of type object.
        titles: Of the fields that have any: what a form shows for them and for their choices.
        completions: What fields are completed from, unchecked; of those that say it.
    """

    schema: dict[str, Any]
    build: Callable[[Any], Any] | None
    dump: Callable[[Any], Any] | None
    type: Any
    compiled: CompiledSchema
    is_object: bool
    titles: Mapping[str, Titles] = attrs.field(factory=dict)
    completions: Mapping[str, Any] = attrs.field(factory=dict)


Read = tuple[Shape | None, list[Fault]]


def read_shape(
    declared: Any,
    *,
    strict: bool = False,
    descriptions: Mapping[str, str] | None = None,
    input: bool = True,
) -> Read:
    """Read a declared input or output.

    Args:
        declared: A class with fields, any concrete annotation, a mapping (fields as data, or a JSON
            Schema), JSON text, or a ready `Shape`.
        strict: True to publish `additionalProperties: false` for typed and data forms.
        descriptions: Descriptions for fields of the root that have none of their own.
        input: True if the root must be an object.

    Returns:
        The shape, or None; and what is wrong. One of the two is empty.
    """
    if isinstance(declared, Shape):
        faults = [] if declared.is_object or not input else [Fault((), _NOT_AN_OBJECT)]
        return (None if faults else declared), faults
    if isinstance(declared, str):
        return read_raw(declared, input=input, strict=strict)
    if isinstance(declared, Mapping):
        return _read_mapping(declared, strict, descriptions, input)
    if declared is None:
        return None, [Fault((), "expected a class, a mapping of fields, a JSON Schema; got None")]
    return read_annotation(declared, strict, descriptions, input)[:2]


_NOT_AN_OBJECT = (
    'the root of an input must be of type "object"; '
    "declare a class with fields, a mapping of fields, or a schema with that type"
)


# What refuses names that are not declared, if it is false.
_CLOSING = ("additionalProperties", "unevaluatedProperties")
_NOT_STRICT = (
    "strict=True cannot change a raw schema; write additionalProperties: false in it, and leave"
    " strict out"
)


def read_raw(declared: Any, *, input: bool = True, strict: bool = False) -> Read:
    """Read a JSON Schema: a mapping, or JSON text.

    Args:
        declared: The schema; values arrive validated and otherwise untouched.
        input: True if the root must be an object.
        strict: True if unknown names are to be refused; the schema itself must say so.

    Returns:
        The shape, or None; and what is wrong, with line and column if the text is malformed.
    """
    if isinstance(declared, str):
        schema, faults = decode_schema(declared)
    elif isinstance(declared, Mapping):
        schema, faults = copy_schema(declared)
    else:
        return None, [Fault((), f"expected a JSON Schema or JSON text, got {show(declared)}")]
    if schema is None:
        return None, faults
    compiled, faults = read_schema(schema)
    if input and schema.get("type") != "object":
        faults = [*faults, Fault((), _NOT_AN_OBJECT)]
    if input:
        faults = [*faults, *header_faults(schema)]
    if strict and False not in map(schema.get, _CLOSING):
        faults = [*faults, Fault((), _NOT_STRICT)]
    if faults or compiled is None:
        return None, faults
    is_object = schema.get("type") == "object"
    return Shape(schema, None, _dump.dump_value, None, compiled, is_object), []


def read_parameters(
    fn: Callable[..., Any],
    parameters: Sequence[Parameter],
    *,
    strict: bool = False,
    descriptions: Mapping[str, str] | None = None,
) -> Read:
    """Read keyword-only parameters as an input; what is built is the dict of arguments to pass.

    Args:
        fn: The function, for the names in its annotations.
        parameters: Those that are arguments of the tool.
        strict: True to publish `additionalProperties: false`.
        descriptions: Descriptions by name, from the docstring.

    Returns:
        The shape, or None; and what is wrong, with paths that start with the parameter's name.
    """
    plain = unwrap(getattr(fn, "__func__", fn))
    local = "<locals>" in plain.__qualname__
    scope = Scope(getattr(plain, "__globals__", {}), None, local)
    reading = Reading(infer)
    node = Object(plain.__name__, "arguments", dict)
    for parameter in parameters:
        with reading.at(parameter.name, None):
            annotation = parameter.annotation
            about = {} if parameter.default is Parameter.empty else {"default": parameter.default}
            if annotation is Parameter.empty:
                reading.fault("has no annotation; write its type")
                annotation = Any
            node.fields.append(
                annotated_field(reading, parameter.name, annotation, scope, None, about)
            )
    return _finish(reading, node, plain.__qualname__, strict, descriptions, input=True)


def read_fields(declared: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Read what the fields of a form say, however wrong the form is: for advice on all of it.

    Args:
        declared: A class with fields, or a mapping of fields.

    Returns:
        The schema of each field, and what each is completed from, unchecked; nothing for what has
        no fields.
    """
    reading = Reading(infer)
    if isinstance(declared, Mapping):
        node: Node = read_data(reading, declared, "Arguments")
    else:
        node = _node_of(reading, declared)
    if not isinstance(node, Object):
        return {}, {}
    try:
        schema = Emitter(reading, strict=False).root(node)
    except TooLarge:
        return {}, {}
    return schema["properties"], _completions(node.fields)


def _node_of(reading: Reading, declared: Any) -> Node:
    if isinstance(declared, type) and is_plain(declared, empty=True):
        return read_class(reading, declared)
    return reading.node(
        declared, class_scope(declared) if isinstance(declared, type) else Scope({})
    )


def _completions(fields: Iterable[Field]) -> dict[str, Any]:
    return {field.name: field.complete for field in fields if field.complete is not None}


def _read_mapping(
    declared: Mapping[Any, Any],
    strict: bool,
    descriptions: Mapping[str, str] | None,
    input: bool,
) -> Read:
    fields = [name for name, value in declared.items() if is_field(value)]
    if not fields and declared:
        return read_raw(declared, input=input, strict=strict)
    if len(fields) < len(declared):
        others = ", ".join(str(name) for name in declared if name not in fields)
        text = f"a mixture of fields and something else ({others}); write fields only, or a schema"
        return None, [Fault((), text)]
    reading = Reading(infer, output=not input)
    node = read_data(reading, declared, "Arguments")
    return _finish(reading, node, "Arguments", strict, descriptions, input)


def read_annotation(
    declared: Any,
    strict: bool = False,
    descriptions: Mapping[str, str] | None = None,
    input: bool = True,
) -> tuple[Shape | None, list[Fault], bool]:
    """Read a class with fields, or any other annotation.

    Args:
        declared: The annotation.
        strict: As for `read_shape`.
        descriptions: As for `read_shape`.
        input: As for `read_shape`.

    Returns:
        As for `read_shape`, and whether a name in it does not exist (yet).
    """
    made = declared.__dict__.get(SHAPE) if isinstance(declared, type) else None
    if made is not None and not strict and not descriptions:
        return made, [], False
    reading = Reading(infer, output=not input)
    node = _node_of(reading, declared)
    name = getattr(declared, "__qualname__", None) or str(declared)
    shape, faults = _finish(reading, node, name, strict, descriptions, input)
    return shape, faults, reading.unresolved


def _finish(
    reading: Reading,
    node: Node,
    name: str,
    strict: bool,
    descriptions: Mapping[str, str] | None,
    input: bool,
) -> Read:
    """Turn a form that has been read into a shape: emit, check, compile, build."""
    if isinstance(node, Object):
        for field in node.fields:
            field.description = field.description or (descriptions or {}).get(field.name)
    emitter = Emitter(reading, strict=strict)
    try:
        schema = emitter.root(node)
    except TooLarge:
        reading.fault("is too large once its classes are written out; make it flatter")
        return None, reading.faults
    if input and schema.get("type") != "object" and not reading.faults:
        reading.fault(_NOT_AN_OBJECT)
    compiled, found = read_schema(schema)
    found = [*found, *(header_faults(schema) if input else ())]
    if reading.faults or found or compiled is None:
        return None, _all_faults(reading, node, emitter, schema, found)
    shape, found = _shape(node, name, emitter, compiled, schema)
    return (None if found else shape), found


def _all_faults(
    reading: Reading, node: Node, emitter: Emitter, schema: Mapping[str, Any], found: list[Fault]
) -> list[Fault]:
    """Return what was wrong with the declaration, then what is wrong with what it says."""
    known = {fault.path for fault in reading.faults}
    places = emitter.places
    placed = [_at_field(f, places) for f in found if not _is_own_value(f.path, places)]
    placed += own_value_faults(schema, places)
    # What was wrong with a field already has its consequences in the schema.
    faults = [*reading.faults, *(fault for fault in placed if fault.path not in known)]
    names = [field.name for field in node.fields] if isinstance(node, Object) else []
    order: dict[Any, int] = {name: place for place, name in enumerate(names)}
    # In the order of the fields, the whole first; a field that could not be made comes last.
    return sorted(faults, key=lambda f: order.get(f.path[0], len(names)) if f.path else -1)


def _is_own_value(path: Path, places: Mapping[Path, Place]) -> bool:
    """Tell if a fault is about the default or an example of a field."""
    return (path[:-1] in places and path[-1] == "default") or (
        path[:-2] in places and path[-2] == "examples"
    )


def _at_field(fault: Fault, places: Mapping[Path, Place]) -> Fault:
    """Return a fault of the emitted schema as one of the field that it comes from."""
    for length in range(len(fault.path), 0, -1):
        place = places.get(fault.path[:length])
        if place is not None:
            return Fault(place.names, fault.text, place.owner)
    return fault


def _shape(
    node: Node, name: str, emitter: Emitter, compiled: CompiledSchema, schema: dict[str, Any]
) -> tuple[Shape, list[Fault]]:
    def compile_test(branch: Node) -> Callable[[Any], bool]:
        part = emitter.with_definitions(emitter.schema(branch, (), Place((), None)))
        alone = compile_schema(part)
        if not is_risky(branch):
            return alone.is_valid
        inner = Builder(name, compile_test)
        build = inner.compile(branch)
        return alone.is_valid if build is None else checked(alone, branch, inner, build).is_valid

    builder = Builder(name, compile_test)
    build = builder.compile(node)
    risky = build is not None and is_risky(node)
    faults: list[Fault] = []
    # What the schema accepts can be built elsewhere; and factories run only if they must.
    if risky or emitter.recursive:
        places = {id(place.field): place for place in reversed(emitter.places.values())}
        for field, text in builder.default_problems():
            place = places[id(field)]
            faults.append(Fault(place.names, text, place.owner))
    if build is not None and risky:
        compiled = checked(compiled, node, builder, build)
    for found in walk(node):
        if isinstance(found, Object):
            _dump.register(found)
    is_object = schema.get("type") == "object"
    fields = node.fields if isinstance(node, Object) else ()
    shape = Shape(
        schema,
        build,
        _dump.dump_value,
        _type_of(node),
        compiled,
        is_object,
        form_titles(node),
        _completions(fields),
    )
    return shape, faults


def _type_of(node: Node) -> Any:
    if isinstance(node, Object):
        return dict if node.make == "dict" else node.cls
    if isinstance(node, Scalar):
        named = {"string": str, "boolean": bool, "number": float, "integer": int}
        return None if isinstance(node.cast, Format) else named.get(node.kind)
    if isinstance(node, Array):
        return node.collection
    return dict if isinstance(node, Map) else None
