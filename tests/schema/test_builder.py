"""The generated builder and the way back: `build` and `dump`."""

import collections
import datetime as dt
import decimal
import enum
import gc
import linecache
import types
import uuid

import attrs
import pytest

from noizu_mcp.schema import Schema, dump_value, field, read_shape
from noizu_mcp.schema import fields as f


class Scope(enum.Enum):
    ALL = "all"


class Size(enum.IntEnum):
    BIG = 3


class Name(str):
    """A string with methods of its own."""

    __slots__ = ()

    def __str__(self):
        return "other"


@attrs.frozen
class Plain:
    a: int
    _b: str = "x"


def test_the_code_of_a_builder_can_be_read():
    """Its source is available to tracebacks while the builder exists."""
    shape, _ = read_shape({"limit": f.integer(default=3)})
    file = shape.build.__code__.co_filename

    assert file.startswith("<noizu_mcp build Arguments ")
    assert any("limit" in line for line in linecache.getlines(file))
    assert linecache.checkcache(file) is None
    assert linecache.getlines(file)
    del shape
    gc.collect()
    assert linecache.getlines(file) == []


def test_hostile_names_are_data_in_the_generated_code():
    """Any name is quoted in the source."""
    names = ['"', "\\", "{a}", "%s", "a\nb", "'''", "é", "", "$ref", "id", "v", "made", "MISSING"]
    shape, faults = read_shape({name: f.integer(default=1) for name in names})

    assert faults == []
    made = shape.build({'"': 2.0, "é": 3})
    assert {**dict.fromkeys(names, 1), '"': 2, "é": 3} == {name: made[name] for name in names}


def test_a_class_with_a_strange_name_is_built():
    """The source contains the name of a class only if that is an identifier."""
    cls = attrs.make_class("A", {"x": attrs.field(type=int)})
    cls.__name__ = "A<b>"
    cls.__annotations__ = {"x": int}

    shape, faults = read_shape(cls)

    assert faults == []
    assert cls(1) == shape.build({"x": 1.0})


def test_dump_by_the_class_of_the_value():
    """A result of any type becomes JSON, in new containers at every level."""
    when = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    value = {
        "enum": Scope.ALL,
        "size": Size.BIG,
        Scope.ALL: {"set": {2, 1}, "tuple": (1, Plain(1))},
        "name": Name("n"),
        Name("k"): [None, True, 1.5],
        "when": [when, when.date(), when.timetz()],
        "id": uuid.UUID(int=1),
        "price": decimal.Decimal("1E+2"),
        "bytes": [b"hi", bytearray(b"hi"), memoryview(b"hi")],
        "mapping": types.MappingProxyType({"a": (1,)}),
        "more": collections.OrderedDict(b=1),
    }

    dumped = dump_value(value)

    assert {
        "enum": "all",
        "size": 3,
        "all": {"set": [1, 2], "tuple": [1, {"a": 1, "b": "x"}]},
        "name": "n",
        "k": [None, True, 1.5],
        "when": ["2024-01-02T03:04:05+00:00", "2024-01-02", "03:04:05+00:00"],
        "id": str(uuid.UUID(int=1)),
        "price": "100",
        "bytes": ["aGk=", "aGk=", "aGk="],
        "mapping": {"a": [1]},
        "more": {"b": 1},
    } == dumped
    assert [int, str, str] == [type(dumped["size"]), type(dumped["name"]), type(list(dumped)[4])]


def test_dump_of_a_dataclass_that_is_no_form():
    """Dataclasses that no form has read are dumped by their fields."""
    import dataclasses

    @dataclasses.dataclass
    class Pair:
        a: int
        b: list[Scope]

    assert dump_value(Pair(1, [Scope.ALL])) == {"a": 1, "b": ["all"]}


@pytest.mark.parametrize("value", [object(), {1j: 2}, [1j], {(1,): 1}, {b"": 1}])
def test_dump_refuses_what_is_not_json(value):
    """A value without a JSON form raises a TypeError with its class."""
    with pytest.raises(TypeError, match=r"has no JSON form|keys of a JSON object are text"):
        dump_value(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", {1: "a"}),
        ("1.5", {1.5: "a"}),
        ("true", {True: "a"}),
        ("null", {None: "a"}),
        ("all", {Scope.ALL: "a"}),
    ],
)
def test_dump_writes_a_key_as_json_does(text, value):
    """A key that is a number, a boolean, null or a member of an enumeration becomes its text."""
    assert {text: "a"} == dump_value(value)


def test_dump_refuses_keys_that_would_be_one():
    """Two keys with the same text raise a TypeError, since an entry would be lost."""
    with pytest.raises(TypeError, match="two keys of one object would both be '1' in JSON"):
        dump_value({1: "a", "1": "b", "c": "d"})


def test_absent_fields_stay_absent():
    """None in a field that does not accept null means absence, and is left out again."""

    class Input(Schema):
        a: str = field(required=False)
        b: int | None = None
        c: object = field(required=False)

    shape, _ = read_shape(Input)
    record, _ = read_shape({"a": str, "b": f.object({"c": str})})

    assert dump_value(shape.build({})) == {"b": None, "c": None}
    assert dump_value(record.build({"b": {}})) == {"b": {}}
    assert dump_value(Input(a=[1], b=2, c={"x": 1})) == {"a": [1], "b": 2, "c": {"x": 1}}


def test_null_that_is_a_member_is_not_absence():
    """For an enum with the member None, null is that member; absence is None."""

    class Mark(enum.Enum):
        NONE = None
        ONE = 1

    class Input(Schema):
        mark: Mark = field(required=False)

    shape, _ = read_shape(Input)

    assert shape.build({"mark": None}).mark is Mark.NONE
    assert shape.build({"mark": 1}).mark is Mark.ONE
    assert shape.build({}).mark is None


def test_arguments_of_an_exact_class_cost_nothing_extra():
    """An int stays the same object; only what differs is converted."""
    shape, _ = read_shape({"n": int, "x": float, "tags": list[str]})
    value = {"n": 10**30, "x": 1.5, "tags": ["a"]}

    made = shape.build(value)

    assert made.n is value["n"]
    assert made.x is value["x"]
    assert made.tags is value["tags"]
