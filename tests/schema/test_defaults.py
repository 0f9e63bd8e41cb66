"""Defaults that are written as JSON are delivered like values from a client."""

import datetime as dt
import enum
import inspect
import itertools
import typing as t

import attrs
import pytest

from noizu_mcp import DefinitionError, Server, Tool, connect
from noizu_mcp.schema import Schema, dump_value, field, read_parameters, read_shape
from noizu_mcp.schema import fields as f

_numbers = itertools.count()


class Scope(enum.Enum):
    ALL = "all"
    GUIDES = "guides"


class Point(Schema):
    x: int = 0
    y: float = 0.0


class Stamped(Schema):
    number: int = field(factory=lambda: next(_numbers))
    tags: list[str] = field(factory=list)


class Dated(Schema):
    day: dt.date


class Link(Schema):
    name: str = "end"
    next: "Link | None" = None


@attrs.frozen
class Checked:
    size: int = attrs.field(default=1, validator=attrs.validators.lt(10))

    def __attrs_post_init__(self) -> None:
        if self.size == 7:
            raise ValueError("7 is taken")


class Options(t.TypedDict, total=False):
    at: Point
    more: bool


def read(declared, **options):
    """Return the shape of a valid form."""
    shape, faults = read_shape(declared, **options)
    assert faults == []
    return shape


def holder(annotation, default):
    """Return an attrs class with one field, `a`."""
    return attrs.make_class("Holder", {"a": attrs.field(type=annotation, default=default)})


POINT = {"x": f.integer(default=0), "y": f.number(default=0.5)}

# The field, and its default as JSON.
IN_DATA = {
    "empty": (f.object, POINT, {}),
    "full": (f.object, POINT, {"x": 3, "y": 2}),
    "unknown name": (f.object, POINT, {"x": 3, "z": 4}),
    "nested": (f.object, {"at": f.object(POINT, default={"x": 1})}, {}),
    "nested, given": (f.object, {"at": f.object(POINT)}, {"at": {}}),
    "rows": (f.array, f.object(POINT), [{}, {"x": 2}]),
    "rows of rows": (f.array, f.array(f.object(POINT)), [[{}], []]),
    "a list in an object": (f.object, {"rows": f.array(f.object(POINT))}, {"rows": [{}]}),
    "free values in an object": (f.object, {"any": f.array(t.Any)}, {"any": [{"a": []}]}),
    "class in a list": (f.array, Point, [{}]),
    "enum in an object": (f.object, {"s": f.enum(Scope)}, {"s": "all"}),
    "no fields": (f.object, {}, {"a": {"b": [1]}}),
    "rows without fields": (f.array, f.object({}), [{"a": 1}]),
}


@pytest.mark.parametrize(("make", "inner", "default"), IN_DATA.values(), ids=IN_DATA)
def test_a_default_in_data_arrives_as_if_sent(make, inner, default):
    """A default object becomes an instance with its own defaults, like a value from a client."""
    shape = read({"a": make(inner, default=default)})

    made = shape.build({}).a

    assert shape.build({"a": default}).a == made
    assert type(shape.build({"a": default}).a) is type(made)
    assert default == shape.schema["properties"]["a"]["default"]


def test_attributes_of_a_default_in_data():
    """The default is an instance with attributes, and with the defaults of inner objects."""
    shape = read(
        {
            "whole": f.object({"deep": f.integer(default=3)}, default={}),
            "rows": f.array(f.object({"id": f.integer(required=True)}), default=[{"id": 1}]),
        }
    )

    made = shape.build({})

    assert made.whole.deep == 3
    assert [row.id for row in made.rows] == [1]


IN_TYPES = {
    "object": (Point, {}, Point()),
    "integer for a float": (Point, {"y": 2}, Point(y=2.0)),
    "or null": (Point | None, {"x": 1}, Point(x=1)),
    "null": (Point | None, None, None),
    "list": (list[Point], [{}, Point(x=5)], [Point(), Point(x=5)]),
    "tuple": (tuple[Point, int], [{}, 3], (Point(), 3)),
    "tuple of any length": (tuple[Point, ...], [{}], (Point(),)),
    "set": (set[Scope], ["all"], {Scope.ALL}),
    "mapping": (dict[str, Point], {"here": {}}, {"here": Point()}),
    "names of a mapping": (dict[Scope, int], {"all": 1}, {Scope.ALL: 1}),
    "union": (Point | list[Point], [{}], [Point()]),
    "union of objects": (Dated | Point, {"x": 4}, Point(x=4)),
    "union of a value": (Scope | str, "all", Scope.ALL),
    "union with free objects": (Point | dict[str, t.Any], {}, Point()),
    "enum": (Scope, "all", Scope.ALL),
    "date": (dt.date, "2026-01-02", dt.date(2026, 1, 2)),
    "float": (float, 1, 1.0),
    "integer": (int, 1.0, 1),
    "typed dict": (Options, {"at": {}}, {"at": Point()}),
    "constructor": (Checked, {"size": 3}, Checked(3)),
    "recursive": (Link, {"next": {"name": "a"}}, Link(next=Link(name="a"))),
}


@pytest.mark.parametrize(("annotation", "default", "expected"), IN_TYPES.values(), ids=IN_TYPES)
def test_a_default_of_a_typed_field_arrives_as_if_sent(annotation, default, expected):
    """The same holds where an annotation defines the type of the value."""
    shape = read(holder(annotation, default))

    made = shape.build({}).a

    assert expected == made
    assert type(expected) is type(made)


@pytest.mark.parametrize(("annotation", "default", "expected"), IN_TYPES.values(), ids=IN_TYPES)
def test_a_factory_may_return_json_too(annotation, default, expected):
    """Its value is read with each call."""
    shape = read(holder(annotation, attrs.Factory(lambda: default)))

    assert expected == shape.build({}).a


def test_a_factory_that_returns_instances():
    """They are delivered unchanged."""
    point = Point(x=9)
    shape = read(holder(Point, attrs.Factory(lambda: point)))

    assert point is shape.build({}).a


def test_a_factory_that_returns_something_else():
    """A value of another type is the author's mistake, and delivered unchanged."""
    shape = read(holder(list[Point], attrs.Factory(lambda: {"x": 1})))

    assert shape.build({}).a == {"x": 1}


def test_a_factory_for_an_empty_object():
    """`factory=dict` for a class with fields is an object without values."""
    assert Point() == read(holder(Point, attrs.Factory(dict))).build({}).a


def test_a_default_of_a_parameter():
    """A function's default is read like any other."""

    def move(to: Point = {"x": 2}, *, by: "list[Point]" = [{}]): ...  # noqa: B006

    parameters = list(inspect.signature(move).parameters.values())
    shape, faults = read_parameters(move, parameters)

    assert faults == []
    assert {"to": Point(x=2), "by": [Point()]} == shape.build({})


def test_every_call_gets_values_of_its_own():
    """Values inside of a default are not shared, and inner factories run again."""
    shape = read(
        {
            "one": f.object(
                {"free": f.array(t.Any), "at": Stamped}, default={"free": [[]], "at": {}}
            ),
            "many": f.array(f.object({}), default=[{"a": []}]),
        }
    )

    made, again = shape.build({}), shape.build({})

    assert made.one.free[0] is not again.one.free[0]
    assert made.one.at.number != again.one.at.number
    assert made.one.at.tags is not again.one.at.tags
    assert made.many[0]["a"] is not again.many[0]["a"]


def test_a_default_is_read_when_the_class_is_made():
    """Changing the default later changes no call."""
    declared = {"x": 1}
    shape = read({"a": f.object({"x": f.integer()}, default=declared)})

    declared["x"] = 2

    assert shape.build({}).a.x == 1


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_tool_gets_the_instance(version):
    """The handler gets an instance, on both eras."""

    class Move(Tool):
        """Move."""

        input = {
            "to": f.object({"x": f.integer(default=4)}, default={}),
            "by": f.array(f.object({"x": f.integer()}), default=[{"x": 1}]),
            "free": f.object({}),
        }

        def call(self, args):
            return f"{args.to.x} {[row.x for row in args.by]} {args.free}"

    class World(Server, name="world", version="1.0.0"):
        tools = [Move]

    async with connect(World, version=version) as client:
        absent = await client.call_tool("move", {})
        given = await client.call_tool("move", {"to": {"x": 5}, "by": [], "free": {"a": 1}})

    assert [each.content[0].text for each in (absent, given)] == ["4 [1] None", "5 [] {'a': 1}"]


IMPOSSIBLE = {
    "no date": (Dated, {"day": "2026-13-01"}, "default"),
    "a date alone": (dt.date, "2026-13-01", "default"),
    "refused by its class": (Checked, {"size": 7}, "7 is taken"),
    "in a list": (list[Dated], [{"day": "soon"}], "default"),
}


@pytest.mark.parametrize(("annotation", "default", "text"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_default_that_cannot_be_built_is_refused(annotation, default, text):
    """If its type refuses a default that the schema accepts, the class statement fails."""
    shape, faults = read_shape(holder(annotation, default))

    assert shape is None
    assert [fault.path for fault in faults] == [("a",)]
    assert text in faults[0].text


def test_a_default_without_an_end_is_refused():
    """An object whose default contains itself is refused."""

    @attrs.frozen
    class Endless:
        inner: "Endless" = attrs.field(default={})

    _, faults = read_shape(Endless)

    assert any("never ends" in fault.text for fault in faults)


def test_a_class_that_stands_alone_is_refused_too():
    """The class statement raises."""
    with pytest.raises(DefinitionError, match="default"):

        class Input(Schema):
            day: dt.date = field(default="2026-13-01")


def test_an_object_without_fields_keeps_everything():
    """`f.object({})` accepts any names, and is delivered as a dict."""
    shape = read(
        {
            "free": f.object({}, required=True, description="Anything"),
            "rows": f.array(f.object({})),
            "deep": f.object({"inner": f.object({})}),
        }
    )
    sent = {"a": {"b": [1]}, "c": None}

    made = shape.build({"free": sent, "rows": [sent, {}], "deep": {"inner": sent}})

    assert (sent, [sent, {}], sent) == (made.free, made.rows, made.deep.inner)
    properties = shape.schema["properties"]
    assert properties["free"] == {"type": "object", "description": "Anything"}
    assert properties["rows"] == {"type": "array", "items": {"type": "object"}}
    assert sent == dump_value(made)["free"]


def test_an_object_without_fields_stays_open_in_a_strict_form():
    """`strict` refuses undeclared names, which would be all names here."""
    shape = read({"free": f.object({})}, strict=True)

    assert shape.compiled.is_valid({"free": {"a": 1}})
    assert not shape.compiled.is_valid({"other": 1})


def test_an_object_without_fields_can_be_bounded():
    """It has the options of an object with any names."""
    shape = read({"free": f.object({}, min=1)})

    assert shape.schema["properties"]["free"] == {"type": "object", "minProperties": 1}


def test_an_input_without_fields_takes_nothing():
    """With `input = {}` a tool has no arguments: everything is dropped (R5)."""
    shape = read({})

    assert shape.schema == {"type": "object", "properties": {}}
    assert len(shape.build({"a": 1})) == 0
