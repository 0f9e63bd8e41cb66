"""attrs classes, dataclasses, TypedDicts, plain and generic classes as forms."""

import dataclasses
import datetime as dt
import enum
import re
import typing as t

import attrs
import pytest
from attrs import validators as v

from noizu_mcp.schema import Schema, argument, dump_value, field, read_shape


class Scope(enum.Enum):
    ALL = "all"
    GUIDES = "guides"


def read(declared, **options):
    """Read a valid form."""
    shape, faults = read_shape(declared, **options)
    assert faults == []
    return shape


def faults_of(declared, **options):
    """Read an invalid form; return `path: text`."""
    shape, faults = read_shape(declared, **options)
    assert shape is None
    return [f"{'.'.join(map(str, fault.path))}: {fault.text}" for fault in faults]


@attrs.frozen
class Address:
    """An address.

    More about it.

    Attributes:
        street: with the number
    """

    street: str
    zip: str = "00000"


@attrs.define
class Person:
    name: str
    _age: int = attrs.field(alias="years", default=3)
    address: Address | None = None
    tags: list[str] = attrs.field(factory=list)
    initials: str = attrs.field(init=False, default="x")
    home: Address = attrs.field(factory=lambda: Address("here"))


def test_an_attrs_class():
    """Aliases are the names on the wire; attributes with init=False are not part of an input."""
    shape = read(Person)

    assert list(shape.schema["properties"]) == ["name", "years", "address", "tags", "home"]
    assert shape.schema["required"] == ["name"]
    assert shape.schema["properties"]["tags"]["default"] == []
    assert "default" not in shape.schema["properties"]["home"]
    assert shape.schema["properties"]["address"] == {
        "type": ["object", "null"],
        "description": "An address.",
        "properties": {
            "street": {"type": "string", "description": "with the number"},
            "zip": {"type": "string", "default": "00000"},
        },
        "required": ["street"],
        "default": None,
    }
    made = shape.build({"name": "Bo", "years": 4.0, "address": {"street": "s", "x": 1}, "x": 1})
    assert Person("Bo", 4, Address("s")) == made
    read(Person, input=False)
    assert dump_value(made) == {
        "name": "Bo",
        "years": 4,
        "address": {"street": "s", "zip": "00000"},
        "tags": [],
        "initials": "x",
        "home": {"street": "here", "zip": "00000"},
    }


def test_an_output_shows_what_no_constructor_takes():
    """Attributes with init=False are part of a result, always present, and not built."""
    shape = read(Person, input=False)

    assert shape.schema["required"] == ["name", "initials"]
    made = shape.build({"name": "Bo", "initials": "ignored"})
    assert made.initials == "x"


def test_a_default_that_needs_the_instance():
    """A factory with takes_self runs in the constructor."""

    @attrs.define
    class Pair:
        a: int
        b: int = attrs.field(default=attrs.Factory(lambda self: self.a + 1, takes_self=True))
        c: str = attrs.field(default=attrs.Factory(lambda self: "c", takes_self=True))

    shape = read(Pair)

    assert Pair(1, 2) == shape.build({"a": 1})
    assert Pair(1, 5, "d") == shape.build({"a": 1, "b": 5.0, "c": "d"})


@dataclasses.dataclass
class Point:
    x: int
    y: int | None
    kind: t.ClassVar[str] = "point"
    scope: Scope = Scope.ALL
    tags: list[str] = dataclasses.field(default_factory=list)
    size: int = dataclasses.field(init=False, default=0)
    z: t.Annotated[int, field(min=1, description="up")] = dataclasses.field(default=1, kw_only=True)


def test_a_dataclass():
    """Its fields are read; a generated docstring is not used as description."""
    shape = read({"at": Point})

    at = shape.schema["properties"]["at"]
    assert "description" not in at
    assert at["properties"] == {
        "x": {"type": "integer"},
        "y": {"type": ["integer", "null"]},
        "scope": {"type": "string", "enum": ["all", "guides"], "default": "all"},
        "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        "z": {"type": "integer", "description": "up", "minimum": 1, "default": 1},
    }
    assert Point(1, None, Scope.GUIDES) == shape.build({"at": {"x": 1.0, "scope": "guides"}}).at
    assert "size" in read(Point, input=False).schema["required"]
    made = {"x": 1, "y": None, "scope": "all", "tags": [], "size": 0, "z": 1}
    assert made == dump_value(Point(1, None))


def test_a_dataclass_with_an_init_variable_is_refused():
    """An InitVar is not stored in the instance."""

    @dataclasses.dataclass
    class Odd:
        x: dataclasses.InitVar[int]

    assert faults_of(Odd) == [
        "x: an InitVar is not a field; make it a field, or set it in a factory"
    ]


class Base(t.TypedDict):
    a: int


class Movie(Base, total=False):
    """A film."""

    title: t.Required[str]
    year: int
    note: t.NotRequired[t.Annotated[str | None, field(max_length=3)]]


def test_a_typed_dict():
    """Keys that are not required stay absent; undeclared keys are dropped."""
    shape = read(Movie)

    assert shape.schema["required"] == ["a", "title"]
    assert shape.schema["properties"]["note"] == {"type": ["string", "null"], "maxLength": 3}
    assert shape.build({"a": 1.0, "title": "t", "x": 2}) == {"a": 1, "title": "t"}
    full = {"a": 1, "title": "t", "year": 2, "note": None}
    assert full == shape.build({**full, "year": 2.0})
    assert full == dump_value(full)


def test_a_plain_class():
    """A nested class without a base becomes a frozen attrs class."""

    class Input:
        query: str
        limit: int = field(default=10, max=50)
        kind: t.ClassVar[str] = "x"
        other: "t.ClassVar[int]" = 3

    class Nothing:
        """No fields."""

    shape = read(Input)

    assert list(shape.schema["properties"]) == ["query", "limit"]
    assert Input(query="q") == shape.build({"query": "q"})
    assert read(Input).schema == shape.schema
    assert read(Nothing).schema["properties"] == {}
    assert Nothing() == read(Nothing).build({"a": 1})


def test_a_class_that_is_no_form_is_refused():
    """A class with its own constructor is not converted."""

    class Index:
        x: int

        def __init__(self):
            pass

    (line,) = faults_of({"a": Index})
    assert "Index has no JSON Schema" in line


class Tree(Schema):
    """A tree."""

    value: int
    children: list["Tree"] = field(factory=list)
    parent: "Tree | None" = None


def test_a_recursive_class():
    """It refers to itself through $defs, and the root still has its type."""
    shape = read(Tree)

    assert shape.schema["type"] == "object"
    assert list(shape.schema["$defs"]) == ["Tree"]
    assert shape.schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert shape.schema["$defs"]["Tree"]["description"] == "A tree."
    assert shape.schema["properties"]["parent"] == {
        "anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}],
        "default": None,
    }
    made = shape.build({"value": 1, "children": [{"value": 2.0, "children": [{"value": 3}]}]})
    assert Tree(value=1, children=[Tree(value=2, children=[Tree(value=3)])]) == made
    assert not shape.compiled.is_valid({"value": 1, "children": [{"children": []}]})


@attrs.frozen
class Left:
    right: "Right | None" = None


@attrs.frozen
class Right:
    left: Left
    number: int


def test_classes_that_contain_each_other():
    """Mutual recursion is resolved from any class; definitions are shared."""
    shape = read({"a": Left, "b": list[Right]})

    made = shape.build({"a": {"right": {"left": {}, "number": 1.0}}})

    assert Left(Right(Left(), 1)) == made.a
    assert list(shape.schema["$defs"]) == ["Left"]
    assert shape.compiled.is_valid({"a": {"right": {"left": {}, "number": 1}}})


def test_names_of_definitions_are_unique():
    """Two recursive classes with one name get two definitions."""

    def make(inner):
        @attrs.frozen
        class Node:
            value: inner
            next: "Node | None" = None

        return Node

    first, second = make(int), make(str)
    first.__annotations__["next"] = second.__annotations__["next"] = "Node | None"
    shape = read({"a": first, "b": second})

    assert list(shape.schema["$defs"]) == ["Node", "Node2"]
    assert shape.schema["$defs"]["Node"]["properties"]["value"] == {"type": "integer"}


def test_union_of_classes():
    """Branches of the same JSON type are selected by schema: the first that fits is built."""

    @attrs.frozen
    class Circle:
        kind: t.Literal["circle"]
        radius: float

    @attrs.frozen
    class Line:
        kind: t.Literal["line"]
        ends: tuple[int, int]
        tree: Tree | None = None

    shape = read({"shapes": list[Circle | Line]})

    made = shape.build(
        {
            "shapes": [
                {"kind": "line", "ends": [1.0, 2], "tree": {"value": 1}},
                {"kind": "circle", "radius": 1},
            ]
        }
    )
    assert [Line("line", (1, 2), Tree(value=1)), Circle("circle", 1.0)] == made.shapes


Item = t.TypeVar("Item")


@attrs.frozen
class Page(t.Generic[Item]):
    items: list[Item]
    next: "Page[Item] | None" = None


@attrs.frozen
class Numbers(Page[int]):
    total: int = 0


@attrs.frozen
class Growing(t.Generic[Item]):
    more: "Growing[list[Item]]"


def test_generic_classes():
    """A type parameter is replaced by its argument, in the class and in its bases."""
    shape = read({"a": Page[Address], "b": Page[int], "c": Numbers})

    made = shape.build(
        {
            "a": {"items": [{"street": "s"}]},
            "b": {"items": [1.0], "next": {"items": [2.0]}},
            "c": {"items": [2.0]},
        }
    )
    assert Page([Address("s")]) == made.a
    assert Page([1], Page([2])) == made.b
    assert Numbers([2]) == made.c
    assert any("the type variable ~Item stands for nothing" in f for f in faults_of(Page))
    assert any("more than 40 classes inside each other" in f for f in faults_of(Growing[int]))


@pytest.mark.slow
def test_a_form_that_grows_without_bound_is_refused():
    """Classes are expanded where they are used, up to a limit."""

    def make(inner):
        @attrs.frozen
        class Level:
            a: inner
            b: inner
            c: inner

        return Level

    cls = int
    for _ in range(10):
        cls = make(cls)

    assert faults_of(cls) == [": is too large once its classes are written out; make it flatter"]


def test_constraints_of_attrs_validators():
    """They become keywords, if JSON Schema has them."""

    @attrs.frozen
    class Checked:
        a: int = attrs.field(validator=[v.ge(1), v.le(9)])
        b: float = attrs.field(validator=v.and_(v.gt(0), v.lt(1)))
        c: str = attrs.field(validator=[v.min_len(1), v.max_len(3), v.matches_re("[a-z]+")])
        d: list[str] = attrs.field(
            validator=v.deep_iterable(v.matches_re("x", func=re.match), v.min_len(1))
        )
        e: dict[str, int] = attrs.field(
            validator=v.deep_mapping(v.max_len(3), v.ge(0), v.max_len(2))
        )
        f: str | None = attrs.field(validator=v.optional(v.in_(["a", "b", None])))
        g: Scope = attrs.field(validator=v.in_([Scope.ALL]))
        h: str | None = attrs.field(validator=v.optional([v.min_len(1), v.max_len(2)]))
        i: int = attrs.field(validator=v.in_({3, 1, 2}))
        j: str = attrs.field(validator=v.matches_re("x", flags=re.IGNORECASE))
        k: list[int] | None = attrs.field(validator=v.optional(v.deep_iterable(v.ge(0))))
        m: int = attrs.field(validator=v.instance_of(int))
        n: str = attrs.field(validator=v.matches_re("x", func=re.search))
        o: str = attrs.field(validator=v.in_("abc"))
        p: list[int] = attrs.field(validator=v.in_([[1], [2]]))
        q: dict[str, int] | None = attrs.field(
            validator=v.optional(v.deep_mapping(v.max_len(9), v.ge(0), v.min_len(1)))
        )
        r: tuple[int, str] = attrs.field(validator=v.deep_iterable(v.instance_of(object)))
        s: int | None = attrs.field(validator=v.deep_iterable(v.ge(0)))
        u: int = attrs.field(validator=v.deep_mapping(v.ge(0), v.ge(0)))

    properties = read(Checked).schema["properties"]

    assert properties["a"] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert properties["b"] == {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    assert properties["c"] == {
        "type": "string",
        "pattern": "^(?:[a-z]+)$",
        "minLength": 1,
        "maxLength": 3,
    }
    assert properties["d"] == {
        "type": "array",
        "items": {"type": "string", "pattern": "^(?:x)"},
        "minItems": 1,
    }
    assert properties["e"] == {
        "type": "object",
        "propertyNames": {"maxLength": 3},
        "additionalProperties": {"type": "integer", "minimum": 0},
        "maxProperties": 2,
    }
    assert properties["f"] == {"type": ["string", "null"], "enum": ["a", "b", None]}
    assert properties["g"] == {"type": "string", "enum": ["all"]}
    assert properties["h"] == {"type": ["string", "null"], "minLength": 1, "maxLength": 2}
    assert properties["i"]["enum"] == [1, 2, 3]
    assert properties["j"] == {"type": "string"}
    assert properties["k"] == {
        "type": ["array", "null"],
        "items": {"type": "integer", "minimum": 0},
    }
    assert properties["m"] == {"type": "integer"}
    assert properties["n"] == {"type": "string", "pattern": "x"}
    assert properties["o"]["enum"] == ["a", "b", "c"]
    assert "enum" not in properties["p"]
    assert properties["q"]["minProperties"] == 1


def test_a_validator_on_a_type_that_has_no_such_bound():
    """A bound that the type cannot have is a fault of the field."""

    @attrs.frozen
    class Odd:
        a: bool = attrs.field(validator=v.ge(1))

    assert faults_of(Odd) == ["a: min does not belong to boolean; leave it out"]


def test_a_constructor_that_refuses():
    """A refusal of a validator or a hook is a violation at its own path, with its text."""

    @attrs.frozen
    class Even:
        n: int = attrs.field()

        @n.validator
        def _check(self, attribute, value):
            if value % 2:
                raise ValueError("n must be even")

    @dataclasses.dataclass
    class Range:
        low: int
        high: int

        def __post_init__(self):
            if self.low == 13:
                raise RuntimeError("a defect")
            if self.low > self.high:
                raise ValueError

    class Outer(Schema):
        even: Even
        ranges: list[Range] = field(factory=list)

        def __attrs_post_init__(self):
            if self.even.n == 100:
                raise TypeError("not a hundred")

    compiled = read(Outer).compiled

    assert compiled.is_valid({"even": {"n": 2}})
    assert compiled.violations({"even": {"n": 2}}) == []
    found = compiled.violations({"even": {"n": 3}, "ranges": [{"low": 2, "high": 1}]})
    assert [(one.pointer, one.message) for one in found] == [
        ("/even", "n must be even"),
        ("/ranges/0", "refused: ValueError"),
    ]
    (whole,) = compiled.violations({"even": {"n": 100}})
    assert (whole.pointer, whole.keyword, whole.message) == ("", "validator", "not a hundred")
    # A fault of the class is not a fault of the arguments: it raises when they are built.
    assert compiled.is_valid({"even": {"n": 2}, "ranges": [{"low": 13, "high": 1}]})


def test_union_with_a_constructor_that_refuses():
    """If the constructor of a branch refuses, the next branch that fits is used."""

    @attrs.frozen
    class Even:
        n: int = attrs.field(validator=lambda _s, _a, n: _refuse_odd(n))

    @attrs.frozen
    class Any:
        n: int

    shape = read({"a": Even | Any})

    assert Even(2) == shape.build({"a": {"n": 2}}).a
    assert Any(3) == shape.build({"a": {"n": 3}}).a


def _refuse_odd(number):
    if number % 2:
        raise ValueError("odd")


def test_constructors_written_by_hand_are_called():
    """A class with its own constructor is built by it."""

    class Shout(Schema):
        text: str

        def __init__(self, text):
            self.__attrs_init__(text=text.upper())

    @attrs.frozen(slots=False)
    class Counted:
        n: int

        def __new__(cls, n):
            return super().__new__(cls)

    shape = read({"a": Shout, "b": Counted})
    made = shape.build({"a": {"text": "hi"}, "b": {"n": 1}})

    assert (made.a.text, made.b.n) == ("HI", 1)


def test_attributes_without_annotation_are_refused():
    """An attribute without a type is a fault."""
    cls = attrs.make_class("Loose", {"x": attrs.field()})

    assert faults_of(cls) == ["x: has no annotation; write its type"]


def test_an_attribute_annotated_with_none():
    """None is a type: only null fits."""

    @attrs.frozen
    class Void:
        x: None

    assert read(Void).schema["properties"] == {"x": {"type": "null"}}


def test_two_attributes_with_one_name():
    """Names on the wire are unique."""

    @attrs.frozen
    class Twice:
        a: int
        b: int = attrs.field(alias="c")
        c: int = attrs.field(init=False, default=3)

    assert faults_of(Twice, input=False) == [
        "c: duplicate name 'c'; rename one, or give it an alias"
    ]


def test_a_marker_is_no_default_of_other_classes():
    """`field()` is for Schema classes; elsewhere it belongs in Annotated."""

    @dataclasses.dataclass
    class Wrong:
        x: int = field(default=1)

    assert any(
        "field(...) is not read here; write Annotated[<type>, field(...)]" in line
        for line in faults_of(Wrong)
    )


def test_prompt_arguments():
    """`argument()` has the options of prompt arguments, and keeps `complete` for the prompt."""

    class Arguments(Schema):
        code: str = argument(title="Code", description="The code")
        style: str | None = argument(default=None, complete=["strict", "friendly"])

    class Holder:
        class Wrong(Schema):
            code: str = argument(header="X")
            mode: t.Literal["a"] = argument(titles={"a": "A"})
            text: str = argument(title=5)

    assert read(Arguments).titles == {"code": ("Code", {})}
    assert read(Arguments).schema["required"] == ["code"]
    marker = attrs.fields(Arguments).style.metadata["noizu_mcp.marker"]
    assert marker.options["complete"] == ["strict", "friendly"]
    assert [line.partition(";")[0] for line in faults_of(Holder.Wrong)] == [
        "code: unknown option 'header' of argument",
        "mode: unknown option 'titles' of argument",
        "text: title must be text, got 5",
    ]


def test_a_default_is_delivered_as_declared():
    """Mutable defaults are copied, and defaults are never converted."""

    @attrs.frozen
    class Holder:
        when: dt.date = dt.date(2024, 1, 2)
        home: Address = Address("here")
        pair: tuple[int, list[int]] = (1, [2])
        names: frozenset[str] = frozenset({"b", "a"})
        only: tuple[int, int] = (1, 2)

    shape = read(Holder)
    made = shape.build({})

    assert Holder() == made
    assert {name: part["default"] for name, part in shape.schema["properties"].items()} == {
        "when": "2024-01-02",
        "home": {"street": "here", "zip": "00000"},
        "pair": [1, [2]],
        "names": ["a", "b"],
        "only": [1, 2],
    }
    assert made.pair[1] is not shape.build({}).pair[1]
    assert made.only is Holder().only


def test_a_class_describes_itself_wherever_it_stands():
    """Its docstring describes the object, unless the field has its own description."""

    @attrs.frozen
    class Inner:
        """A place.

        Attributes:
            x: From the docstring.
            y: From the docstring.
        """

        x: int
        y: t.Annotated[int, "Its own"]

    @attrs.frozen
    class Outer:
        many: list[t.Annotated[Inner, field(description="Elsewhere")]]

    items = read(Outer).schema["properties"]["many"]["items"]

    assert items["description"] == "A place."
    assert items["properties"]["x"]["description"] == "From the docstring."
    assert items["properties"]["y"]["description"] == "Its own"
