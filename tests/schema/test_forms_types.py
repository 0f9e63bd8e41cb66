"""Annotations → JSON Schema, and the values that they produce."""

import datetime as dt
import decimal
import enum
import typing as t
import uuid
from collections import abc

import annotated_types as at
import attrs
import pytest

from noizu_mcp.schema import Schema, argument, dump_value, field, read_shape
from noizu_mcp.schema import fields as f


class Color(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Broken(enum.Enum):
    PAIR = (1, 2)


class Empty(enum.Enum):
    pass


UserId = t.NewType("UserId", int)
T = t.TypeVar("T")
Bound = t.TypeVar("Bound", bound=int)


class Alias:
    """The parts of a `type` statement's result (PEP 695) that are used."""

    __type_params__ = ()

    def __init__(self, value):
        self.__value__ = value

    def __repr__(self):
        return "Json"


RECURSIVE = Alias(None)
RECURSIVE.__value__ = list[RECURSIVE]


def read(annotation):
    """Read an annotation as an output, which may have any type."""
    shape, faults = read_shape(annotation, input=False)
    assert faults == []
    return shape


CASES = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (type(None), {"type": "null"}),
    (t.Any, {}),
    (object, {}),
    (UserId, {"type": "integer"}),
    (Alias(int), {"type": "integer"}),
    (Bound, {"type": "integer"}),
    (t.Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (t.Literal["a", 1, None], {"enum": ["a", 1, None]}),
    (t.Literal[Color.RED], {"type": "string", "enum": ["red"]}),
    (t.Literal[True], {"type": "boolean", "enum": [True]}),
    (Color, {"type": "string", "enum": ["red", "blue"]}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (list, {"type": "array"}),
    (list[t.Any], {"type": "array"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (abc.Sequence[int], {"type": "array", "items": {"type": "integer"}}),
    (t.Iterable[str], {"type": "array", "items": {"type": "string"}}),
    (tuple, {"type": "array"}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    (set, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
    (
        frozenset[tuple[str, ...]],
        {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}},
            "uniqueItems": True,
        },
    ),
    (dict, {"type": "object"}),
    (dict[str, t.Any], {"type": "object"}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (
        t.Mapping[t.Literal["a"], int],
        {
            "type": "object",
            "propertyNames": {"enum": ["a"]},
            "additionalProperties": {"type": "integer"},
        },
    ),
    (
        dict[t.Annotated[str, at.MinLen(1)], t.Any],
        {"type": "object", "propertyNames": {"minLength": 1}},
    ),
    (str | None, {"type": ["string", "null"]}),
    (t.Optional[list[int]], {"type": ["array", "null"], "items": {"type": "integer"}}),
    (Color | None, {"type": ["string", "null"], "enum": ["red", "blue", None]}),
    (t.Literal["a", None] | None, {"type": ["string", "null"], "enum": ["a", None]}),
    (t.Any | None, {}),
    (None | t.Literal[None], {"type": "null", "enum": [None]}),
    (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (
        int | str | None,
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
    ),
    (int | float, {"type": "number"}),
    (
        int | float | str,
        {"anyOf": [{"type": "number"}, {"type": "string"}]},
    ),
    (dt.datetime, {"type": "string", "format": "date-time"}),
    (dt.date, {"type": "string", "format": "date"}),
    (dt.time, {"type": "string", "format": "time"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (decimal.Decimal, {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (t.List["Color"], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}),
    (list["Color"], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}),
    (t.Annotated[int, at.Ge(1), at.Le(3)], {"type": "integer", "minimum": 1, "maximum": 3}),
    (
        t.Annotated[int, at.Interval(gt=1, lt=3)],
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 3},
    ),
    (t.Annotated[float, at.MultipleOf(0.5)], {"type": "number", "multipleOf": 0.5}),
    (t.Annotated[str, at.Len(0, 3)], {"type": "string", "maxLength": 3}),
    (
        t.Annotated[list[str], at.Len(1, 3)],
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    ),
    (
        t.Annotated[dict[str, int], at.MinLen(1)],
        {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
    ),
    (t.Annotated[str | None, at.MinLen(1)], {"type": ["string", "null"], "minLength": 1}),
    (t.Annotated[int, at.Ge], {"type": "integer"}),
    (t.Annotated[int, at.Timezone(None)], {"type": "integer"}),
    (
        t.Annotated[str, "what to find", field(min_length=2, examples=["x y"])],
        {"type": "string", "description": "what to find", "minLength": 2, "examples": ["x y"]},
    ),
    (
        t.Annotated[int | str, field(min=1, min_length=2)],
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "minLength": 2}]},
    ),
]


@pytest.mark.parametrize(("annotation", "schema"), CASES, ids=lambda case: str(case)[:40])
def test_schema_of_an_annotation(annotation, schema):
    """Each annotation has one schema, with its keywords in a fixed order."""
    assert schema == read(annotation).schema


VALUES = [
    (int, 1.0, 1),
    (int, 10**400, 10**400),
    (float, 1, 1.0),
    (float, 10**400, 10**400),
    (int | float, 1, 1),
    (int | float, 1.0, 1.0),
    (Color, "red", Color.RED),
    (Level, 2.0, Level.HIGH),
    (t.Literal[1, "a"], 1.0, 1),
    (t.Literal[Color.BLUE], "blue", Color.BLUE),
    (Color | None, None, None),
    (Color | None, "red", Color.RED),
    (int | None, 2.0, 2),
    (list[int], [1.0, 2], [1, 2]),
    (tuple[int, ...], [1.0], (1,)),
    (tuple, [1, "a"], (1, "a")),
    (tuple[int, str], [1.0, "a"], (1, "a")),
    (set[int], [1.0, 2], {1, 2}),
    (set[tuple[int, int] | int], [1, [2.0, 3]], {1, (2, 3)}),
    (frozenset[str], ["a"], frozenset("a")),
    (dict[str, int], {"a": 1.0}, {"a": 1}),
    (dict[Color, str], {"red": "x"}, {Color.RED: "x"}),
    (Color | int, "red", Color.RED),
    (Color | str, "red", Color.RED),
    (Color | str, "green", "green"),
    (int | str | None, None, None),
    (int | str | None, 1.0, 1),
    (int | bool, True, True),
    (int | bool, 1.0, 1),
    (list[int] | dict[str, int], {"a": 1.0}, {"a": 1}),
    (list[Color] | list[int], [1.0], [1]),
    (t.Any | Color, "red", "red"),
    (dt.datetime, "2024-02-03T04:05:06Z", dt.datetime(2024, 2, 3, 4, 5, 6, tzinfo=dt.UTC)),
    (dt.date, "2024-02-29", dt.date(2024, 2, 29)),
    (dt.time, "04:05", dt.time(4, 5)),
    (
        uuid.UUID,
        "12345678-1234-5678-1234-567812345678",
        uuid.UUID(int=0x12345678123456781234567812345678),
    ),
    (decimal.Decimal, "-1.50", decimal.Decimal("-1.50")),
    (bytes, "aGk=", b"hi"),
    (dt.date | uuid.UUID, "2024-02-29", dt.date(2024, 2, 29)),
    (dt.date | str, "soon", "soon"),
    (dt.date | int, "2024-02-29", dt.date(2024, 2, 29)),
]


@pytest.mark.parametrize(("annotation", "value", "built"), VALUES, ids=str)
def test_value_of_an_annotation(annotation, value, built):
    """An accepted value is built as annotated, and dumped unchanged."""
    shape = read(annotation)
    assert shape.compiled.is_valid(value)

    made = shape.build(value) if shape.build is not None else value

    assert (type(built), built) == (type(made), made)
    assert shape.compiled.is_valid(dump_value(made))


def test_what_needs_no_work_is_not_built():
    """Strings, booleans and lists of them are the same objects as before."""
    plain = [str, list[str], dict[str, t.Any], str | None, bool | str, t.Literal["a"], t.Any]
    assert [None] * len(plain) == [read(annotation).build for annotation in plain]


REFUSED = [
    (complex, "complex has no JSON Schema; use str, int, float, bool, an Enum, Literal, list,"),
    (t.Callable[[], int], "has no JSON Schema"),
    (print, "print has no JSON Schema"),
    (dict[int, str], "the names of a JSON object are text: write dict[str, ...]"),
    (dict[t.Literal[1], str], "the names of a JSON object are text: write dict[str, ...]"),
    (
        set[list[int]],
        "items of a set must be text, numbers, enum members or tuples of them; write list[...]",
    ),
    (T, "the type variable ~T stands for nothing here; give its class a type"),
    (RECURSIVE, "the type Json contains itself; write a recursive class instead"),
    (Broken, "Broken value <Broken.PAIR: (1, 2)> is not text, a number, a boolean or None"),
    (Empty, "Empty has no members; an enum needs values"),
    (t.Literal[b"x"], "Literal value b'x' is not text, a number, a boolean or None"),
    (
        "Nowhere",
        "cannot find 'Nowhere', which the annotation 'Nowhere' names; define or import it before the class is used",
    ),
    ("list[", "cannot evaluate the annotation 'list['"),
    (
        t.Annotated[str, at.Predicate(str.islower)],
        "cannot be written in JSON Schema; check it in the handler",
    ),
    (t.Annotated[str, at.Ge(1)], "min does not belong to string; write min_length"),
    (t.Annotated[dt.date, at.Ge(1)], "min does not belong to date; leave it out"),
    (t.Annotated[t.Any, at.Ge(1)], "min does not belong to Any; leave it out"),
    (t.Annotated[tuple[int, int], at.MinLen(1)], "min does not belong to tuple; leave it out"),
    (t.Annotated[type(None), at.Ge(1)], "min does not belong to null; leave it out"),
    (t.Annotated[None | t.Literal[None], at.Ge(1)], "min does not belong to enum; leave it out"),
    (t.Annotated[int, f.integer(min=1)], "f.integer(...) inside Annotated; write field(...)"),
    (
        t.Annotated[int, field(default=1)],
        "a default inside Annotated; write it after the =, as Python does",
    ),
    (t.Annotated[int, field(bogus=1)], "unknown option 'bogus' of field"),
    (
        list[t.Annotated[int, field(required=True)]],
        "required belongs to a field, not to a type inside another type",
    ),
    (
        list[t.Annotated[str, argument(complete=["a"])]],
        "complete belongs to a field, not to a type inside another type",
    ),
    (field(min=1), "write the type here, and the field after the ="),
]


@pytest.mark.parametrize(("annotation", "text"), REFUSED, ids=lambda case: str(case)[:40])
def test_what_has_no_schema_is_refused(annotation, text):
    """It is a fault that says what to write."""
    declared = {"a": list[annotation]} if isinstance(annotation, str) else annotation
    shape, faults = read_shape(declared, input=False)

    assert shape is None
    assert any(text in fault.text for fault in faults)


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (dt.date, "2024-02-30", 'expected a date, got string "2024-02-30"'),
        (dt.time, "25:00", 'expected a time, got string "25:00"'),
        (dt.datetime, "x", 'expected a date-time, got string "x"'),
        (uuid.UUID, "urn:uuid:12345678-1234-5678-1234-567812345678", "expected a UUID, got string"),
        (uuid.UUID, "x" * 36, "expected a UUID, got string"),
        (bytes, "a", 'expected base64 text, got string "a"'),
        (bytes, "é", 'expected base64 text, got string "é"'),
    ],
)
def test_text_that_does_not_parse_is_a_violation(annotation, value, text):
    """A declared Python type is enforced, though JSON Schema only annotates `format`."""
    compiled = read(annotation).compiled

    assert not compiled.is_valid(value)
    (violation,) = compiled.violations(value)
    assert violation.keyword == "format"
    assert text in violation.message


def test_violations_inside_containers_have_paths():
    """The path leads to the string in any container; violations of the schema come first."""
    places = [
        (list[dt.date], ["2024-01-01", "no"], (1,)),
        (tuple[int, dt.date], [1, "no"], (1,)),
        (dict[str, dt.date], {"k": "no"}, ("k",)),
        (dt.date | None, "no", ()),
        (dt.date | int, "no", ()),
        (list[dt.date | None | int], [None, 3, "no"], (2,)),
        (tuple[dict[str, str] | list[str], dt.date], [["a"], "no"], (1,)),
    ]
    for annotation, value, path in places:
        (violation,) = read(annotation).compiled.violations(value)
        assert (path, "format") == (violation.path, violation.keyword)
    shape = read(list[dt.date])
    assert [v.keyword for v in shape.compiled.violations([3, "no"])] == ["type", "format"]
    assert shape.compiled.violations(["2024-01-01"]) == []


class _Flight(Schema):
    day: dt.date
    key: uuid.UUID | None = None
    fare: decimal.Decimal = decimal.Decimal(0)
    legs: list[dt.time] = field(factory=list)
    span: tuple[dt.date, dt.date] | None = None
    by_name: dict[str, dt.date] = field(factory=dict)
    stops: list["_Flight"] = field(factory=list)
    note: str | None = None


def test_formats_are_told_with_everything_else():
    """Formats are reported with other violations, so that a model can correct all at once."""
    value = {
        "day": "x",
        "key": "y",
        "fare": "z",
        "legs": ["25:00", 3],
        "span": ["x"],
        "by_name": {"a": "x", "b": None},
        "stops": [{"day": "2024-01-01"}, {"day": "x"}, {}, 3],
        "note": 3,
    }
    found = [(v.pointer, v.keyword) for v in read(_Flight).compiled.violations(value)]

    assert found == [
        ("/fare", "pattern"),
        ("/legs/1", "type"),
        ("/span", "minItems"),
        ("/by_name/b", "type"),
        ("/stops/2/day", "required"),
        ("/stops/3", "type"),
        ("/note", "type"),
        ("/day", "format"),
        ("/key", "format"),
        ("/legs/0", "format"),
        ("/span/0", "format"),
        ("/by_name/a", "format"),
        ("/stops/1/day", "format"),
    ]


@pytest.mark.parametrize("value", [3, [], {"by_name": [], "legs": {}, "span": 3, "stops": "x"}])
def test_formats_are_looked_for_where_they_may_be(value):
    """A value of another structure has no formats to report."""
    found = read(_Flight).compiled.violations(value)

    assert found
    assert all(violation.keyword != "format" for violation in found)


def test_a_hundred_texts_that_do_not_parse():
    """No more than a hundred are reported, whether or not the schema rejects the value, too."""
    compiled = read(list[dt.date]).compiled
    for value in (["no"] * 200, [*range(50), *["no"] * 200]):
        assert len(compiled.violations(value)) == 100


def test_a_search_for_texts_that_do_not_parse_ends():
    """Only the first parts of a large value are searched; the value is refused anyway."""
    compiled = read(list[dt.date]).compiled
    (found,) = compiled.violations(["2024-01-01"] * 50_000 + ["no"])
    assert found.message == "cannot be used"
    assert [found.path for found in compiled.violations(["no", *["2024-01-01"] * 50_000])] == [(0,)]


def test_a_constructor_that_says_much():
    """Its text is cut: it may quote a peer."""

    @attrs.define
    class Quoting:
        text: str

        def __attrs_post_init__(self):
            raise ValueError(f"no good: {self.text}")

    (found,) = read(Quoting).compiled.violations({"text": "x" * 10_000})
    assert found.message == "no good: " + "x" * 490 + "…"


def test_what_is_too_deep_is_not_walked():
    """A value that exceeds the depth limit is not searched."""
    value: t.Any = {"day": "x"}
    for _ in range(5000):
        value = {"day": "x", "stops": [value]}
    (violation,) = read(_Flight).compiled.violations(value)

    assert "nested deeper" in violation.message


@attrs.frozen
class _Even:
    day: dt.date
    number: int = attrs.field(default=0)

    @number.validator
    def _check(self, _attribute, value):
        if value % 2:
            raise ValueError("must be even")


def test_checks_of_a_class_wait_for_the_rest():
    """A constructor only runs for values that fit the schema."""
    compiled = read(_Even).compiled
    assert [v.keyword for v in compiled.violations({"day": "x", "number": "y"})] == [
        "type",
        "format",
    ]
    assert [v.message for v in compiled.violations({"day": "2024-01-01", "number": 1})] == [
        "must be even"
    ]


def test_union_whose_branches_all_refuse():
    """A value that no branch can build is a violation of the whole value."""
    compiled = read(list[dt.date] | list[dt.time]).compiled

    assert not compiled.is_valid(["no"])
    (violation,) = compiled.violations(["no"])
    assert (
        violation.path,
        violation.keyword,
        violation.message,
    ) == ((), "validator", "cannot be used")
