"""Shapes: raw schemas, parameters, and annotations that declare an output."""

import enum
import inspect
import typing as t

import attrs
import pytest

from noizu_mcp.schema import (
    Schema,
    Violation,
    argument,
    dump_value,
    field,
    output_annotation,
    read_fields,
    read_parameters,
    read_raw,
    read_shape,
)
from noizu_mcp.schema import fields as f

RAW = {"type": "object", "properties": {"q": {"type": "string", "minLength": 2}}, "required": ["q"]}


class Mode(enum.Enum):
    FAST = "fast"


def parameters(fn):
    """Return the keyword-only parameters of a function."""
    found = inspect.signature(fn).parameters.values()
    return [one for one in found if one.kind is one.KEYWORD_ONLY]


def texts(faults):
    """Return faults as `path: text`."""
    return [f"{'.'.join(map(str, fault.path))}: {fault.text}" for fault in faults]


@pytest.mark.parametrize("read", [read_shape, read_raw])
def test_a_raw_schema(read):
    """It is published unchanged, and values are delivered unchanged."""
    shape, faults = read(RAW)

    assert faults == []
    assert shape.schema == RAW
    assert RAW is not shape.schema
    assert shape.build is None
    assert shape.compiled.is_valid({"q": "ab", "other": 1})
    assert not shape.compiled.is_valid({"q": "a"})
    assert dump_value({"q": (1,)}) == {"q": [1]}


def test_a_raw_schema_as_text():
    """JSON text is equivalent."""
    shape, faults = read_shape('{"type": "object", "properties": {"q": {"type": "string"}}}')

    assert faults == []
    assert shape.schema == {"type": "object", "properties": {"q": {"type": "string"}}}


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ('{"type":\n  "object",}', "invalid JSON text: ", 2, None),
        ("[1, 2]", "JSON schema text must hold an object, got [1, 2]", None, None),
        ('{"a": 1,\n "a": 2}', "duplicate name 'a' in one object; keep one", 2, 3),
        ('{"minimum":\n NaN}', "NaN is not JSON", 2, 2),
        ("[" * 100_000, "invalid JSON text: ", None, None),
        ('{"minimum": ' + "1" * 5000 + "}", "invalid JSON text: ", None, None),
    ],
)
def test_malformed_text(text, message, line, column):
    """The fault has the position in the text."""
    shape, faults = read_raw(text)

    assert shape is None
    assert faults[0].text.startswith(message)
    assert line == faults[0].line
    assert column in (None, faults[0].column)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ({"type": "array"}, 'the root of an input must be of type "object"'),
        ({"properties": {}}, 'the root of an input must be of type "object"'),
        ({"type": "object", "minLenght": 1}, "minLength"),
        ({"type": "object", "default": {1}, "x": object()}, "a JSON Schema holds nothing but JSON"),
        ({"type": "object", "$ref": "http://example.com/x"}, "http://example.com/x"),
        ({"type": "object", "x-mcp-header": "A"}, "header stands in a list, a union"),
        (
            {
                "type": "object",
                "properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}},
            },
            "header needs a field of type string, integer or boolean (not null)",
        ),
        (
            {"type": "object", "properties": {"a": {"x-mcp-header": 3}}},
            "header 3 is not an HTTP token",
        ),
        (3, "expected a JSON Schema or JSON text, got 3"),
        (None, "expected a JSON Schema or JSON text, got null"),
    ],
)
def test_a_raw_schema_that_is_wrong(declared, text):
    """All faults of a raw input are reported."""
    shape, faults = read_raw(declared)

    assert shape is None
    assert any(text in fault.text or text in str(fault.path) for fault in faults)


def test_a_raw_output_may_be_anything():
    """Only inputs must be objects, and have header rules."""
    shape, faults = read_raw({"type": "array", "x-mcp-header": "A"}, input=False)

    assert faults == []
    assert shape.schema["type"] == "array"


def test_a_ready_shape_is_taken_as_it_is():
    """It is used unchanged, but the root of an input is still checked."""
    shape, _ = read_shape(RAW)
    numbers, _ = read_shape(list[int], input=False)

    assert (shape, []) == read_shape(shape)
    assert (numbers, []) == read_shape(numbers, input=False)
    assert "must be of type" in read_shape(numbers)[1][0].text


@pytest.mark.parametrize("declared", [int, list[int], Mode, str | None])
def test_an_input_is_an_object(declared):
    """Other types are refused; the fault says what is accepted."""
    shape, faults = read_shape(declared)

    assert shape is None
    assert 'the root of an input must be of type "object"' in faults[0].text


@pytest.mark.parametrize("declared", [None, 3, 3.5, [int], print])
def test_what_declares_nothing(declared):
    """Any other value is a fault, never an exception."""
    shape, faults = read_shape(declared, input=False)

    assert shape is None
    assert faults


def test_keyword_only_parameters():
    """They are read like any input; the result is the dict of keyword arguments."""

    def add(
        self,
        *,
        a: int,
        b: "int" = 1,
        mode: Mode = Mode.FAST,
        tags: list[str] = [],  # noqa: B006 - what is tested
        note: str | None,
        size: t.Annotated[int, field(min=1, description="own")] = 2,
    ):
        """Add."""

    shape, faults = read_parameters(add, parameters(add), descriptions={"a": "first", "size": "x"})

    assert faults == []
    properties = shape.schema["properties"]
    assert properties["a"] == {"type": "integer", "description": "first"}
    assert properties["size"]["description"] == "own"
    assert shape.schema["required"] == ["a"]
    made = shape.build({"a": 1.0, "zzz": 1})
    assert made == {"a": 1, "b": 1, "mode": Mode.FAST, "tags": [], "note": None, "size": 2}
    assert made["tags"] is not shape.build({"a": 1})["tags"]


def test_parameters_of_static_and_wrapped_functions():
    """Names in annotations are resolved in the wrapped function."""

    class Local(Schema):
        n: int

    @staticmethod
    def fn(*, a: "Local"):
        """Do."""

    shape, faults = read_parameters(fn, parameters(fn.__func__), strict=True)

    assert faults == []
    assert Local(n=1) == shape.build({"a": {"n": 1.0}})["a"]
    assert shape.schema["additionalProperties"] is False


def test_parameters_that_are_wrong():
    """Each fault has the name of its parameter."""

    def fn(*, a, b: int = "x", c: "Nowhere", d: int = field(default=1, min=2)):  # noqa: F821
        """Do."""

    _, faults = read_parameters(fn, parameters(fn))

    assert texts(faults) == [
        "a: has no annotation; write its type",
        (
            'b: default "x" does not fit: expected integer, got string "x";'
            " change the default or the field"
        ),
        (
            "c: cannot find 'Nowhere', which the annotation 'Nowhere' names;"
            " define or import it before the class is used"
        ),
        "d: default 1 is below min 2; change the default or the field",
    ]


def test_types_of_a_mapping_are_found_where_it_stands():
    """Names in a mapping's strings are resolved where it is written, locally or globally."""

    class Local(Schema):
        n: int

    shape, faults = read_shape({"a": list["Local"], "b": list["Mode"]})

    assert faults == []
    assert [Local(n=1)] == shape.build({"a": [{"n": 1}]}).a


@attrs.frozen
class Weather:
    degrees: float


class Ours(Schema):
    n: int


Text = t.NewType("Text", str)
T = t.TypeVar("T")


@pytest.mark.parametrize(
    "annotation",
    [
        int,
        list[int],
        dict[str, int],
        Weather,
        Ours,
        Mode,
        t.Literal["a"],
        int | None,
        t.Annotated[int, 1],
    ],
)
def test_annotations_that_declare_an_output(annotation):
    """A concrete type declares an output."""
    assert output_annotation(annotation)


@pytest.mark.parametrize(
    "annotation",
    [
        str,
        None,
        type(None),
        t.Any,
        object,
        dict,
        list,
        str | None,
        int | str,
        Text,
        t.Annotated[str, 1],
        t.NoReturn,
        T,
        Violation,
        list[Violation],
        list[Violation | int],
        Violation | int,
        inspect.Parameter.empty,
    ],
)
def test_annotations_that_do_not(annotation):
    """Strings, None, Any and the package's own classes declare none."""
    assert not output_annotation(annotation)


def test_the_fields_of_a_form_that_is_wrong():
    """Fields are returned even if others are invalid, for advice on each."""

    class Outer:
        class Arguments(Schema):
            a: str = argument(complete=["x"])
            b: int = argument(bogus=1)

    data = {"a": f.string(description="A"), "b": f.integer(bogus=1)}

    assert read_fields(Outer.Arguments) == (
        {"a": {"type": "string"}, "b": {"type": "integer"}},
        {"a": ["x"]},
    )
    assert read_fields(data) == (
        {"a": {"type": "string", "description": "A"}, "b": {"type": "integer"}},
        {},
    )
    assert read_fields(int) == ({}, {})


def test_the_fields_of_a_form_without_an_end():
    """A form that expands beyond the limit has no schema."""

    @attrs.define
    class Inner:
        a: int

    form = Inner
    for _ in range(16):
        form = attrs.make_class("Node", {name: attrs.field(type=form) for name in "xyz"})

    assert read_fields(form) == ({}, {})


def test_a_header_on_a_parameter():
    """Its rules also apply to ordinary parameters."""

    def fn(*, region: t.Annotated[float, field(header="Region")]): ...

    _, faults = read_parameters(fn, parameters(fn))

    assert [fault.text for fault in faults] == [
        "header needs a field of type string, integer or boolean (not null), not number"
    ]


def test_a_raw_schema_is_a_mapping_or_text():
    """Other values are a fault."""
    shape, faults = read_raw(3)

    assert shape is None
    assert [fault.text for fault in faults] == ["expected a JSON Schema or JSON text, got 3"]


def test_a_strict_raw_schema_says_so_itself():
    """`strict` cannot be added to a schema that is published unchanged."""
    shape, faults = read_raw({"type": "object"}, strict=True)

    assert shape is None
    assert "write additionalProperties: false in it" in faults[0].text


def test_field_as_the_default_of_a_parameter():
    """Its options apply, and one of them may be the default."""

    def fn(
        *,
        a: int = field(min=1, description="A"),
        b: int = field(default=3, max=9),
        c: list[int] = field(factory=list),
        d: "int | None" = field(max=2),
    ):
        """Do."""

    shape, faults = read_parameters(fn, parameters(fn))

    assert faults == []
    assert shape.schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "A", "minimum": 1},
            "b": {"type": "integer", "maximum": 9, "default": 3},
            "c": {"type": "array", "items": {"type": "integer"}, "default": []},
            "d": {"type": ["integer", "null"], "maximum": 2},
        },
        "required": ["a"],
    }
    assert shape.build({"a": 1.0}) == {"a": 1, "b": 3, "c": [], "d": None}
