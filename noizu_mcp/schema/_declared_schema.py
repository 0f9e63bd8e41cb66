"""A declared input or output, in whatever form → one `Shape`, ready for the call path.

Data flows one way: a declaration is read into nodes (`declare/`); the nodes give the published
schema (`publish/`), which is checked and compiled (`_check`, `engines/`), and the code that builds
and dumps values (`convert/`). A raw JSON Schema has no nodes: it is checked and compiled.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import Parameter, unwrap
from json import JSONDecodeError, loads
from types import FunctionType, MappingProxyType
from typing import Any

from .._json_schema import CLOSING
from .._schema_engine import EngineName, named_engine
from .._util import called
from .._value import Frozen, JSONObject
from ._check import read_schema
from .convert import _dump
from .convert._build import ValueBuilder
from .declare._annotations import infer
from .declare._classes import PROBLEMS, has_fields, is_plain, read_class
from .declare._field import Marker, fill_defaults, is_field_info
from .declare._field_options import Titles, form_titles
from .declare._handles import is_handle
from .declare._nodes import FormTooLarge, Node, Object, ObjectField
from .declare._resolve import NO_TYPES, NameScope, Types, class_scope
from .declare._state import ParseState
from .engines._compile import CompiledSchema, compile_schema
from .jsonschema._keywords import RULES
from .jsonschema._violation import Fault, Violation, show
from .publish._emit import Emitter, FieldPlace

#: On a `Schema` class that stands alone: its shape, made when the class statement ran.
SHAPE = "__mcp_shape__"


class Shape(Frozen):
    """A declared input or output, ready for the call path.

    Attributes:
        schema: The published JSON Schema: plain JSON, in a stable order.
        build: Turns a JSON value that the schema accepts into the typed value; None if it stays as
            it is.
        compiled: The validator of the schema; it also refuses the values that a class refuses.
        accepts: Tells if the schema alone accepts a value. `build` then decides about the rest.
        refusals: The exceptions by which `build` refuses a value that the schema accepts; none for
            a form that builds each of them.
        coerces: True if text for other types may be read as what it says; see `coerce_text`.
        titles: The titles that a form shows for a field and its choices, by field.
        completions: The source of completions, unchecked, by field.
        handles: The classes of handles that an output shows.
        widen: Lets a validator of the schema refuse the values that a class refuses, too; None for
            a form without such classes.
    """

    schema: JSONObject
    build: Callable[[object], object] | None
    compiled: CompiledSchema
    accepts: Callable[[object], bool]
    refusals: tuple[type[Exception], ...] = ()
    coerces: bool = True
    titles: Mapping[str, Titles] = MappingProxyType({})
    completions: Mapping[str, object] = MappingProxyType({})
    handles: tuple[type, ...] = ()
    widen: Callable[[CompiledSchema], CompiledSchema] | None = None

    def on_engine(self, engine: EngineName) -> "ShapeRead":
        """Return the same declaration with values judged by an engine.

        Args:
            engine: The engine.

        Returns:
            The shape, or None if the engine does not serve the schema; and the faults.
        """
        if engine == self.compiled.engine:
            return self, []
        alone, faults = read_schema(self.schema, engine=engine)
        if alone is None:
            return None, faults
        compiled = alone if self.widen is None else self.widen(alone)
        fields = {**vars(self), "compiled": compiled, "accepts": alone.is_valid}
        return Shape(**fields), []

    def read(self, value: object) -> tuple[Any, list[Violation]]:
        """Check a JSON value and build the typed one.

        Args:
            value: The value.

        Returns:
            The typed value and no violations; or None and all of them.
        """
        fits, built = self.try_build(value)
        return built, [] if fits else self.compiled.violations(value)

    def try_build(self, value: object) -> tuple[bool, object]:
        """Tell if a JSON value fits, and return the typed one if it does.

        Args:
            value: The value.
        """
        try:
            if self.accepts(value):
                return True, value if self.build is None else self.build(value)
        except self.refusals:
            pass
        return False, None


#: A shape, or None; and the faults. One of the two is empty.
ShapeRead = tuple[Shape | None, list[Fault]]

_NOT_AN_OBJECT = (
    'the root of an input must be of type "object"; '
    "declare a class with fields, a mapping of fields, or a schema with that type"
)
_NOT_STRICT = (
    "strict=True cannot change a raw schema; write additionalProperties: false in it, and leave"
    " strict out"
)
# Types of values that do not declare an object.
_NO_FORMS = (type(None), bool, int, float, bytes, list, tuple, set, frozenset, FunctionType)


def read_shape(
    declared: object,
    *,
    strict: bool = False,
    descriptions: Mapping[str, str] | None = None,
    input: bool = True,
    types: Types = NO_TYPES,
) -> ShapeRead:
    """Read a declared input or output.

    Args:
        declared: A class with fields, any concrete annotation, a mapping (fields as data, or a JSON
            Schema), JSON text, or a ready `Shape`.
        strict: True to publish `additionalProperties: false` for typed and data forms.
        descriptions: Descriptions for fields of the root that are declared without one.
        input: True if the root must be an object.
        types: The types of type variables, for a class inside of a generic one.

    Returns:
        The shape, or None; and the faults. One of the two is empty.
    """
    if isinstance(declared, Shape):
        wrong = input and not _is_object(declared.schema)
        return (None, [Fault((), _NOT_AN_OBJECT)]) if wrong else (declared, [])
    if isinstance(declared, str):
        return read_raw(declared, input=input, strict=strict)
    if input and is_handle(declared):
        text = f"{declared.__name__} is a handle, and no input: write it as the type of a parameter"
        return None, [Fault((), f"{text} with a name of its own")]
    made = not isinstance(declared, type) and has_fields(type(declared))
    if declared is None or isinstance(declared, _NO_FORMS) or made:
        text = f"expected a class, a mapping of fields, a JSON Schema; got {called(declared)}"
        return None, [Fault((), text)]
    state = ParseState(
        infer, output=not input, strict=strict, descriptions=descriptions, types=types
    )
    if isinstance(declared, Mapping):
        return _read_mapping(state, declared)
    return read_annotation(state, declared)


def _read_mapping(state: ParseState, declared: Mapping[object, object]) -> ShapeRead:
    # Loaded with the first mapping: many programs declare by classes alone.
    from .declare._data_form import is_field, read_data

    others = [name for name, value in declared.items() if not is_field(value)]
    if declared and len(others) == len(declared):
        return read_raw(declared, input=not state.output, strict=state.strict)
    if others:
        text = f"a mixture of fields and something else ({', '.join(map(str, others))})"
        return None, [Fault((), f"{text}; write fields only, or a schema")]
    return _finish(state, read_data(state, declared, "Arguments"), "Arguments")


def read_annotation(state: ParseState, declared: object) -> ShapeRead:
    """Read a class with fields, or any other annotation; a class statement reads its own class.

    Args:
        state: A new state.
        declared: The annotation.

    Returns:
        The result of `read_shape`.
    """
    made = declared.__dict__.get(SHAPE) if isinstance(declared, type) else None
    # A shape was made before Python knew the abstract methods of the class.
    whole = not getattr(declared, "__abstractmethods__", ())
    plain = whole and not state.strict and not state.descriptions
    if made is not None and plain and made.compiled.engine == named_engine():
        return made, []
    name = getattr(declared, "__qualname__", None) or str(declared)
    return _finish(state, _node_of(state, declared), name)


def _is_object(schema: Mapping[str, object]) -> bool:
    return schema.get("type") == "object"


def _node_of(state: ParseState, declared: object) -> Node:
    if not isinstance(declared, type):
        return state.node(declared, NameScope({}))
    if PROBLEMS in declared.__dict__ or is_plain(declared, empty=True):
        return read_class(state, declared)
    return state.node(declared, class_scope(declared, {}))


def read_parameters(
    fn: Callable[..., object],
    parameters: Sequence[Parameter],
    *,
    strict: bool = False,
    descriptions: Mapping[str, str] | None = None,
) -> ShapeRead:
    """Read parameters of a function as an input; the built value is the dict of arguments to pass.

    A direct call of the function then uses the defaults in its markers; see `fill_defaults`.

    Args:
        fn: The function, for the names in its annotations.
        parameters: The parameters that are arguments of the tool.
        strict: True to publish `additionalProperties: false`.
        descriptions: Descriptions by name, from the docstring.

    Returns:
        The shape, or None; and the faults, with paths that start with the parameter's name.
    """
    plain = unwrap(getattr(fn, "__func__", fn))
    scope = NameScope(getattr(plain, "__globals__", {}), None, "<locals>" in plain.__qualname__)
    state = ParseState(infer, strict=strict, descriptions=descriptions)
    node = Object(plain.__name__, "arguments", dict, [])
    for parameter in parameters:
        name, annotation, default = parameter.name, parameter.annotation, parameter.default
        # `a: int = field(...)` gives options; `default` may be one of them.
        marker = default if isinstance(default, Marker) or is_field_info(default) else None
        with state.at(name, None):
            about = {} if default is Parameter.empty or marker is not None else {"default": default}
            if annotation is Parameter.empty:
                state.fault("has no annotation; write its type")
                annotation = Any
            node.fields.append(state.annotated_field(name, annotation, scope, marker, **about))
    read = _finish(state, node, plain.__qualname__)
    if read[0] is not None:
        fill_defaults(plain)
    return read


def read_fields(declared: object) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Read the fields of a form that may be wrong, so that advice can be given on all of it.

    Args:
        declared: A class with fields, or a mapping of fields.

    Returns:
        The schema of each field, and the source of its completions, unchecked, by field; nothing
        for a declaration without fields.
    """
    state = ParseState(infer)
    if isinstance(declared, Mapping):
        from .declare._data_form import read_data

        node: Node = read_data(state, declared, "Arguments")
    else:
        node = _node_of(state, declared)
    if not isinstance(node, Object):
        return {}, {}
    try:
        schema = Emitter(state).root(node)
    except FormTooLarge:
        return {}, {}
    return schema["properties"], _completions(node.fields)


def _completions(fields: Iterable[ObjectField]) -> dict[str, object]:
    return {field.name: field.complete for field in fields if field.complete is not None}


def _finish(state: ParseState, node: Node, name: str) -> ShapeRead:
    """Turn a form that was read into a shape: emit its schema, check and compile it."""
    for field in node.fields if isinstance(node, Object) else ():
        field.description = field.description or state.descriptions.get(field.name)
    emitter = Emitter(state)
    try:
        schema = emitter.root(node)
    except FormTooLarge:
        state.fault(FormTooLarge.text)
        return None, state.faults
    if not state.output and not _is_object(schema) and not state.faults:
        state.fault(_NOT_AN_OBJECT)
    compiled, found = read_schema(schema)
    if not state.output and state.headers:
        from .publish._headers import header_faults

        found = [*found, *header_faults(schema)]
    if state.faults or found or compiled is None:
        from .publish._field_faults import all_faults

        return None, all_faults(state, node, schema, emitter.places, found)
    return _shape(state, node, name, emitter, schema, compiled)


def _shape(
    state: ParseState,
    node: Node,
    name: str,
    emitter: Emitter,
    schema: JSONObject,
    compiled: CompiledSchema,
) -> ShapeRead:
    """Compile the builder of a form, and put its shape together."""
    builder = ValueBuilder(name, _tester(state, name, emitter))
    # Types of pydantic may be written in another form than they are read: an output is not built.
    build = None if state.output and state.sided else builder.compile(node)
    # Factories inside a default run here, so this is done only for a form that needs it.
    if builder.defaults and (state.risky or emitter.recursive):
        names = {id(place.field): place.names for place in emitter.places.values()}
        problems = builder.default_problems()
        faults = [Fault(names[id(field)], text, field.owner) for field, text in problems]
        if faults:
            return None, faults
    accepts = compiled.is_valid
    refusals: tuple[type[Exception], ...] = ()
    widen: Callable[[CompiledSchema], CompiledSchema] | None = None
    if build is not None and state.risky:
        from .convert._class_validation import checked
        from .convert._refusals import REFUSALS

        widen, refusals = partial(checked, root=node, builder=builder, build=build), REFUSALS
        compiled = widen(compiled)
    for _, _, each in state.classes:
        _dump.register(each)
    fields = node.fields if isinstance(node, Object) else ()
    titles = form_titles(node) if state.titled else {}
    shape = Shape(
        schema=schema,
        build=build,
        compiled=compiled,
        accepts=accepts,
        refusals=refusals,
        widen=widen,
        titles=titles,
        completions=_completions(fields),
        handles=tuple(cls for cls, _, _ in state.classes if is_handle(cls)),
    )
    return shape, []


def _tester(
    state: ParseState, name: str, emitter: Emitter
) -> Callable[[Node], Callable[[object], bool]]:
    """Return the function that compiles a test for a branch of a union."""

    def compile_test(branch: Node) -> Callable[[object], bool]:
        part = emitter.with_definitions(emitter.schema(branch, (), FieldPlace((), None)))
        alone = compile_schema(part)
        if state.risky:
            from .convert._class_validation import checked, is_risky

            inner = ValueBuilder(name, compile_test)
            build = inner.compile(branch) if is_risky(branch) else None
            if build is not None:
                return checked(alone, branch, inner, build).is_valid
        return alone.is_valid

    return compile_test


def read_raw(declared: object, *, input: bool = True, strict: bool = False) -> ShapeRead:
    """Read a JSON Schema: a mapping, or JSON text.

    Args:
        declared: The schema. Values arrive validated and otherwise untouched.
        input: True if the root must be an object.
        strict: True if unknown names are to be refused; the schema itself must say so.

    Returns:
        The shape, or None; and the faults, with line and column if the text is malformed.
    """
    if isinstance(declared, str):
        schema, faults = _decode_schema(declared)
    elif isinstance(declared, Mapping):
        schema, faults = _copy_schema(declared)
    else:
        class_form = isinstance(declared, type)
        found = f"{called(declared)}; write it as input or output" if class_form else show(declared)
        return None, [Fault((), f"expected a JSON Schema or JSON text, got {found}")]
    members = declared if isinstance(declared, Mapping) else schema or {}
    if members and not any(map(_is_keyword, members.items())):
        name = repr(next(iter(members)))
        text = f"is no JSON Schema, which has no keyword {name}; write fields as data, {{{name}:"
        text += ' f.string(), …}, or {"type": "object", "properties": {…}}'
        return None, [Fault((), text)]
    if schema is None:
        return None, faults
    compiled, faults = read_schema(schema)
    if input:
        # Loaded with the first raw schema, whose headers can only be found by looking.
        from .publish._headers import header_faults

        faults = [*faults, *([] if _is_object(schema) else [Fault((), _NOT_AN_OBJECT)])]
        faults += header_faults(schema)
    if strict and False not in map(schema.get, CLOSING):
        faults = [*faults, Fault((), _NOT_STRICT)]
    if faults or compiled is None:
        return None, faults
    shape = Shape(
        schema=schema,
        build=None,
        compiled=compiled,
        accepts=compiled.is_valid,
        coerces=False,
    )
    return shape, []


def _is_keyword(item: tuple[Any, Any]) -> bool:
    """Tell if a member of a schema may be a keyword, and no field: `"path": {"type": "string"}`."""
    name, value = item
    known = name in RULES
    # A field may have the name of a keyword: `"title": {"type": "string"}`.
    return RULES[name].holds(value) if known and isinstance(value, Mapping) else known


def _copy_schema(schema: Mapping[object, object]) -> tuple[JSONObject | None, list[Fault]]:
    """Return a mapping as plain JSON in new containers, or its faults."""
    try:
        return _dump.dump_value(dict(schema)), []
    except (TypeError, ValueError, RecursionError) as error:
        return None, [Fault((), f"a JSON Schema holds nothing but JSON: {error}")]


def _decode_schema(text: str) -> tuple[JSONObject | None, list[Fault]]:
    """Return the object in a JSON text, or the faults of the text.

    NaN is a fault, and so is a name that stands twice in one object: JSON (RFC 8259, section 4)
    leaves its meaning open.
    """
    faults: list[Fault] = []

    def fault_at(word: str, message: str) -> None:
        # The parser does not say where it is: the last place of the word is near enough.
        before = text[: text.rfind(word)]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        faults.append(Fault((), message, None, line, column))

    def pairs(found: list[tuple[str, object]]) -> JSONObject:
        made: JSONObject = {}
        for name, value in found:
            if name in made:
                fault_at(name, f"duplicate name {name!r} in one object; keep one")
            made[name] = value
        return made

    def constant(name: str) -> None:
        fault_at(name, f"{name} is not JSON")

    try:
        schema = loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except JSONDecodeError as error:
        fault = Fault((), f"invalid JSON text: {error.msg}", None, error.lineno, error.colno)
        return None, [fault]
    except (RecursionError, ValueError) as error:
        return None, [Fault((), f"invalid JSON text: {error}")]
    if not isinstance(schema, dict) and not faults:
        faults.append(Fault((), f"JSON schema text must hold an object, got {show(schema)}"))
    return (None, faults) if faults else (schema, [])
