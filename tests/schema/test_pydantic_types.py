"""Types of pydantic: its schemas, its validators, and errors in our own words."""

import dataclasses
import datetime as dt
import enum
import json
import typing as t
import uuid
import warnings
from decimal import Decimal

import attrs
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from noizu_mcp.schema import (
    Schema,
    dump_value,
    field,
    flat_shape,
    older_form,
    read_parameters,
    read_shape,
    to_problems,
)


class Item(BaseModel):
    """One line of an order.

    Args:
        note: what to tell the packer
    """

    sku: str = Field(alias="SKU", min_length=2)
    qty: int = Field(ge=1, description="How many")
    note: str | None = None


class Cat(BaseModel):
    kind: t.Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: t.Literal["dog"]
    tricks: list[str] = []


class Tree(BaseModel):
    value: int
    kids: "list[Tree]" = []


class Even(BaseModel):
    n: int

    @pydantic.field_validator("n")
    @classmethod
    def _even(cls, n):
        if n % 2:
            raise ValueError("must be even")
        return n


class Span(BaseModel):
    first: int
    last: int

    @pydantic.model_validator(mode="after")
    def _ordered(self):
        if self.first > self.last:
            raise AssertionError("first is after last")
        return self


ITEM = {
    "type": "object",
    "description": "One line of an order.",
    "properties": {
        "SKU": {"type": "string", "minLength": 2},
        "qty": {"type": "integer", "description": "How many", "minimum": 1},
        "note": {
            "type": ["string", "null"],
            "description": "what to tell the packer",
            "default": None,
        },
    },
    "required": ["SKU", "qty"],
}  # fmt: skip


def shape_of(declared, **options):
    shape, faults = read_shape(declared, **options)
    assert [fault.text for fault in faults] == []
    return shape


def output_of(declared):
    return shape_of(declared, input=False)


def read(declared, value):
    built, violations = shape_of(declared).read(value)
    assert violations == []
    return built


def lines_of(declared, value):
    shape = shape_of(declared)
    violations = shape.read(value)[1]
    assert violations == shape.compiled.violations(value)
    assert not shape.compiled.is_valid(value)
    return [f"{each.pointer}: {each.message}" for each in violations]


def problems_of(declared, **options):
    shape, faults = read_shape(declared, **options)
    assert shape is None
    return list(map(str, to_problems(faults, "Tool.Input")))


# The published schema


def test_a_model_is_published_without_noise():
    """Titles are removed, names are aliases, and docstrings are the missing descriptions."""
    schema = shape_of(Item).schema

    assert schema == {key: value for key, value in ITEM.items() if key != "description"}
    assert list(schema) == ["type", "properties", "required"]


def test_nested_models_are_written_out():
    """In models, Schemas, attrs classes, dataclasses, TypedDicts, mappings and parameters."""

    class Nested(BaseModel):
        item: Item

    class Ours(Schema):
        item: Item

    @attrs.define
    class Attrs:
        item: Item

    @dataclasses.dataclass
    class Data:
        item: Item

    class Typed(t.TypedDict):
        item: Item

    def function(item: Item): ...

    shapes = [shape_of(each) for each in (Nested, Ours, Attrs, Data, Typed, {"item": Item})]
    import inspect

    parameters = list(inspect.signature(function).parameters.values())
    shapes.append(read_parameters(function, parameters)[0])
    sent = {"item": {"SKU": "ab", "qty": 1}}
    for shape in shapes:
        assert shape.schema["properties"]["item"] == ITEM
        assert "$defs" not in shape.schema
        built, violations = shape.read(sent)
        assert violations == []
        item = built["item"] if isinstance(built, dict) else built.item
        assert item == Item(SKU="ab", qty=1)


def test_models_in_containers_and_unions():
    """Items, values, options and branches are instances."""
    sent = {"SKU": "ab", "qty": 1}
    item = Item(**sent)

    class Input(Schema):
        many: list[Item] = []
        named: dict[str, Item] = {}
        pair: tuple[Item, int] | None = None
        maybe: Item | None = None
        mixed: Item | int | list[Item] = 0
        ours: "Item | Point | None" = None

    class Point(Schema):
        x: int

    built = read(Input, {"many": [sent], "named": {"a": sent}, "pair": [sent, 1], "maybe": sent})
    assert (built.many, built.named, built.pair, built.maybe) == (
        [item],
        {"a": item},
        (item, 1),
        item,
    )
    assert read(Input, {}).maybe is None
    assert read(Input, {"maybe": None}).maybe is None
    assert read(Input, {"mixed": sent}).mixed == item
    assert read(Input, {"mixed": [sent]}).mixed == [item]
    assert read(Input, {"mixed": 3}).mixed == 3
    assert read(Input, {"ours": sent}).ours == item
    assert read(Input, {"ours": {"x": 1}}).ours == Point(x=1)
    schema = shape_of(Input).schema["properties"]
    assert schema["maybe"]["type"] == ["object", "null"]


def test_unions_are_told_apart_by_pydantic():
    """It uses a discriminator, or the best match; the mapping of `discriminator` is removed."""
    plain = list[t.Annotated[Cat, "a cat"] | Dog]
    marked = list[t.Annotated[Cat | Dog, Field(discriminator="kind")]]
    for declared, keyword in ((plain, "anyOf"), (marked, "oneOf")):

        class Input(Schema):
            pets: declared
            maybe: Cat | Dog | None = None

        built = read(Input, {"pets": [{"kind": "dog"}, {"kind": "cat"}], "maybe": {"kind": "cat"}})
        assert [*built.pets, built.maybe] == [Dog(kind="dog"), Cat(kind="cat"), Cat(kind="cat")]
        items = shape_of(Input).schema["properties"]["pets"]["items"]
        assert list(items) == [keyword]
        assert items[keyword][0]["properties"]["kind"] == {"type": "string", "enum": ["cat"]}
    wrong = {"pets": [{"kind": "cow"}]}
    assert lines_of(Input, wrong) == ['/pets/0/kind: must be one of ["cat", "dog"], got "cow"']


def test_recursive_models_are_definitions():
    """The root has its own schema; equal definitions are shared, others are numbered."""
    schema = shape_of(Tree).schema
    kids = {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []}
    tree = {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "kids": kids},
        "required": ["value"],
    }

    assert schema == {**tree, "$defs": {"Tree": tree}}

    outer = Tree

    def local():
        class Tree(Schema):
            word: str
            more: "list[Tree]" = []
            tree: outer | None = None

        return Tree

    class Chain(BaseModel):
        next: "Chain | None" = None

    class Pair(Schema):
        chain: Chain | None = None
        left: Tree
        right: Tree | None = None
        other: local()

    made = shape_of(Pair).schema
    assert made["properties"]["left"] == {"$ref": "#/$defs/Tree2"}
    assert made["properties"]["right"]["anyOf"][0] == {"$ref": "#/$defs/Tree2"}
    assert made["$defs"]["Tree2"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/Tree2"}
    assert set(made["$defs"]) == {"Chain", "Tree", "Tree2"}
    built = read(Pair, {"left": {"value": 1, "kids": [{"value": 2}]}, "other": {"word": "a"}})
    assert built.left.kids == [Tree(value=2)]


def test_strict_forbids_unknown_names_everywhere():
    """It includes nested models."""

    class Order(BaseModel):
        items: list[Item]

    schema = shape_of(Order, strict=True).schema

    assert schema["additionalProperties"] is False
    assert schema["properties"]["items"]["items"]["additionalProperties"] is False


def test_descriptions_of_the_method_count_for_the_root():
    """Descriptions of the class take precedence."""
    shape = shape_of(Item, descriptions={"SKU": "Number", "note": "not used", "absent": "-"})

    assert shape.schema["properties"]["SKU"]["description"] == "Number"
    assert shape.schema["properties"]["note"]["description"] == "what to tell the packer"


def test_all_of_one_is_written_out():
    """An `allOf` with one schema, as older versions of pydantic write it, is merged."""

    class Old(BaseModel):
        a: int = Field(json_schema_extra={"allOf": [{"minimum": 1}], "description": "A"})
        b: int = Field(json_schema_extra={"allOf": [{"type": "integer"}]})

    schema = shape_of(Old).schema["properties"]

    assert schema["a"] == {"type": "integer", "description": "A", "minimum": 1}
    assert schema["b"] == {"type": "integer", "allOf": [{"type": "integer"}]}


def test_other_types_of_pydantic():
    """Root models, generic models, dataclasses, secrets, constrained and annotated types work."""
    T = t.TypeVar("T")

    class Page(BaseModel, t.Generic[T]):
        rows: list[T]

    class Names(pydantic.RootModel[list[str]]):
        pass

    @pydantic.dataclasses.dataclass
    class Data:
        a: int

    class Input(Schema):
        page: Page[int]
        names: Names
        data: Data
        secret: SecretStr
        url: pydantic.HttpUrl
        positive: pydantic.PositiveInt
        upper: t.Annotated[str, pydantic.StringConstraints(to_upper=True, max_length=3)]
        odd: t.Annotated[int, pydantic.AfterValidator(lambda n: n + 1)]

    sent = {"page": {"rows": [1]}, "names": ["a"], "data": {"a": 1}, "secret": "x"}
    sent |= {"url": "http://x.example", "positive": 1, "upper": "abc", "odd": 1}
    built = read(Input, sent)

    assert (built.page, built.names, built.data) == (Page[int](rows=[1]), Names(["a"]), Data(a=1))
    assert (built.secret, str(built.url)) == (SecretStr("x"), "http://x.example/")
    assert (built.positive, built.upper, built.odd) == (1, "ABC", 2)
    assert lines_of(Input, {**sent, "positive": 0}) == ["/positive: 0 must be greater than 0"]
    assert lines_of(Input, {**sent, "upper": "abcd"})[0].startswith("/upper: has 4 characters")
    assert lines_of(Input, {**sent, "url": "x"}) == [
        '/url: expected a valid URL, relative URL without a base, got string "x"'
    ]


# Validation


def test_validators_refuse_in_our_words():
    """One line has the path, the reason and the sent value, without library and URL."""

    class Input(Schema):
        even: Even | None = None
        spans: list[Span] = []

    assert lines_of(Even, {"n": 3}) == ["/n: must be even, got integer 3"]
    assert lines_of(Span, {"first": 2, "last": 1}) == [
        ': first is after last, got object {"first": 2, "last": 1}'
    ]
    sent = {"even": {"n": 3}, "spans": [{"first": 1, "last": 2}, {"first": 2, "last": 1}]}
    assert lines_of(Input, sent) == [
        "/even/n: must be even, got integer 3",
        '/spans/1: first is after last, got object {"first": 2, "last": 1}',
    ]


def test_the_schema_is_judged_first():
    """Schema violations are reported alone; validators run if there are none."""

    class Both(Even):
        m: int

    assert lines_of(Both, {"n": 3}) == ["/m: required, but missing"]
    assert lines_of(Both, {"n": 3, "m": "1"}) == ['/m: expected integer, got string "1"']

    class Outer(Schema):
        both: Both
        day: dt.date

    assert lines_of(Outer, {"both": {"n": 3}, "day": "x"}) == [
        "/both/m: required, but missing",
        '/day: expected a date, got string "x"',
    ]


def test_what_pydantic_asks_beyond_its_schema():
    """Formats and names that only its validator requires are checked; paths omit branch names."""

    class Form(BaseModel):
        day: dt.date
        pet: t.Annotated[Cat | Even, Field(union_mode="left_to_right")] | None = None
        either: dict[str, t.Any] = {}

        @pydantic.model_validator(mode="before")
        @classmethod
        def _needs(cls, value):
            if "need" in value.get("either", ()):
                cls.model_validate({**value, "either": {}, "day": None})
            return value

    text = "/day: expected a valid date or datetime, input is too short"
    assert lines_of(Form, {"day": "x"}) == [f'{text}, got string "x"']
    assert lines_of(Form, {"day": "2026-01-01", "pet": {"n": 1}})[-1] == (
        "/pet/n: must be even, got integer 1"
    )

    class Loose(BaseModel):
        model_config = ConfigDict(json_schema_extra=lambda schema: schema.pop("required"))
        a: int

    assert lines_of(Loose, {}) == ["/a: required, but missing"]


def test_other_errors_of_validators_are_refusals_too():
    """A TypeError, which pydantic passes on, and an error without a text are violations."""

    class Odd(BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def _check(cls, n):
            raise TypeError("cannot count") if n else ValueError

    assert lines_of(Odd, {"n": 1}) == [": cannot count"]
    assert lines_of(Odd, {"n": 0}) == ["/n: refused: ValueError, got integer 0"]


def test_the_place_of_a_fault_in_a_list():
    """Its index is part of the path."""

    class Many(BaseModel):
        model_config = ConfigDict(json_schema_extra=lambda made: made["properties"].update(x=True))
        evens: list[Even]

    assert lines_of(Many, {"evens": [{"n": 2}, {"n": 3}]}) == [
        "/evens/1/n: must be even, got integer 3"
    ]


def test_a_value_is_built_once():
    """A validator runs once for a valid call."""
    seen = []

    class Seen(BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def _see(cls, n):
            seen.append(n)
            return n

    read(Seen, {"n": 1})

    assert seen == [1]


@pytest.mark.parametrize(
    ("config", "wanted"),
    [({"strict": True}, b"YQ=="), ({"val_json_bytes": "base64"}, b"a"), ({}, b"YQ==")],
)
def test_strict_models_are_validated_as_json(config, wanted):
    """In a strict model a date is a string, as in JSON."""

    class Strict(BaseModel):
        model_config = ConfigDict(**config)
        day: dt.date
        data: bytes

    built = read(Strict, {"day": "2026-01-02", "data": "YQ=="})

    assert (built.day, built.data) == (dt.date(2026, 1, 2), wanted)


def test_a_strict_field_is_validated_as_json():
    """The same holds if only one field is strict."""

    class Part(BaseModel):
        id: uuid.UUID = Field(strict=True)

    text = "12345678-1234-5678-1234-567812345678"
    assert read(Part, {"id": text}).id == uuid.UUID(text)


# Field(...) beside our own types


def test_field_of_pydantic_in_parameters():
    """Constraints, description, examples and defaults are read; in Annotated and after the =."""
    import inspect

    def function(
        a: t.Annotated[int, Field(ge=1, lt=9, description="A", examples=[2])],
        b: str = Field("x", min_length=1, max_length=3, pattern="^[a-z]"),
        c: list[int] = Field(default_factory=list, max_length=2),
        d: t.Annotated[Cat | Dog | None, Field(discriminator="kind")] = None,
        e: t.Annotated[int, Field(json_schema_extra={"examples": [1]}), "E"] = 1,
        f: t.Annotated[int, Field(strict=True)] = 1,
        g: Item | None = Field(None, description="G"),
        *,
        h: float = Field(..., multiple_of=0.5),
    ): ...

    parameters = list(inspect.signature(function).parameters.values())
    shape, faults = read_parameters(function, parameters)
    assert faults == []
    schema = shape.schema["properties"]

    assert schema["a"] == {
        "type": "integer", "description": "A", "minimum": 1, "exclusiveMaximum": 9, "examples": [2]
    }  # fmt: skip
    assert schema["b"] == {
        "type": "string", "pattern": "^[a-z]", "minLength": 1, "maxLength": 3, "default": "x"
    }  # fmt: skip
    assert schema["c"] == {
        "type": "array",
        "items": {"type": "integer"},
        "maxItems": 2,
        "default": [],
    }
    assert schema["e"] == {"type": "integer", "description": "E", "default": 1, "examples": [1]}
    assert schema["g"]["description"] == "G"
    assert schema["h"] == {"type": "number", "multipleOf": 0.5}
    assert shape.schema["required"] == ["a", "h"]
    built = shape.build({"a": 1, "h": 1, "d": {"kind": "dog"}})
    assert built["d"] == Dog(kind="dog")
    assert (built["b"], built["c"], built["g"]) == ("x", [], None)


def test_field_of_pydantic_in_classes():
    """In Annotated it is read in every class, also in inner types."""

    class Input(Schema):
        a: t.Annotated[int, Field(ge=1)] = 3
        b: list[t.Annotated[str, Field(max_length=2)]] = []
        c: t.Annotated[Item, field(description="ours"), Field(description="theirs")]

    schema = shape_of(Input).schema["properties"]

    assert schema["a"] == {"type": "integer", "minimum": 1, "default": 3}
    assert schema["b"]["items"] == {"type": "string", "maxLength": 2}
    assert schema["c"]["description"] == "theirs"


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (t.Annotated[int, Field(default=1)], "a: a default inside Annotated; write it after the ="),
        (t.Annotated[int, Field(alias="b")], "a: an alias is not read here; name it as it is sent"),
        (
            t.Annotated[int, Field(max_length=1)],
            "a: max_length does not belong to integer; write max",
        ),
    ],
)
def test_fields_of_pydantic_that_cannot_be_read(annotation, text):
    """They are refused with the correction."""

    class Outer:
        class Input(Schema):
            a: annotation

    (problem,) = problems_of(Outer.Input)
    assert text in problem


def test_constraints_of_ours_on_types_of_pydantic():
    """They become keywords of its schema, if its type has them."""

    class Outer:
        class Good(Schema):
            upper: t.Annotated[str, pydantic.AfterValidator(str.upper), field(min_length=2)]

        class Bad(Schema):
            item: t.Annotated[Cat | Dog, field(min_length=2)]

    assert shape_of(Outer.Good).schema["properties"]["upper"]["minLength"] == 2
    assert "item: min_length does not belong to union" in problems_of(Outer.Bad)[0]


# Defaults


def test_defaults_of_fields_with_a_type_of_pydantic():
    """A default is an instance, or JSON that is validated as if it had been sent."""

    class Input(Schema):
        made: Item = Item(SKU="ab", qty=1)
        written: Item = {"SKU": "cd", "qty": 2}
        secret: SecretStr = "word"

    built = read(Input, {})

    assert (built.made, built.written) == (Item(SKU="ab", qty=1), Item(SKU="cd", qty=2))
    assert built.secret == SecretStr("word")
    assert shape_of(Input).schema["properties"]["made"]["default"] == {
        "SKU": "ab", "qty": 1, "note": None
    }  # fmt: skip


def test_a_default_that_breaks_its_schema_is_refused():
    """The error has the field, in a model and in inner models."""

    class Inner(BaseModel):
        n: int = Field(None, ge=1)

    class Outer(BaseModel):
        inner: Inner = Inner(n=1)
        m: int = Field(0, ge=1)

    texts = problems_of(Outer)

    assert any("Tool.Input.inner.n: default null does not fit the type" in text for text in texts)
    assert any("Tool.Input.m: default 0 is below min 1" in text for text in texts)


# Outputs


class Money(BaseModel):
    amount: Decimal
    currency: str = Field("EUR", serialization_alias="cur")
    secret: SecretStr = SecretStr("x")

    @pydantic.computed_field
    @property
    def text(self) -> str:
        return f"{self.amount} {self.currency}"


def test_an_output_is_what_is_written():
    """The schema is that of serialization: computed fields, its aliases; instances fit it."""
    shape = output_of(Money)
    dumped = dump_value(Money(amount="1.50"))

    assert dumped == {"amount": "1.50", "cur": "EUR", "secret": "**********", "text": "1.50 EUR"}
    assert set(shape.schema["required"]) == {"amount", "text"}
    assert shape.compiled.is_valid(dumped)
    assert not shape.compiled.is_valid({"amount": 1})


def test_a_class_with_a_model_is_published_for_its_side():
    """A Schema with a model has another schema as output than as input."""

    class Price(Schema):
        money: Money
        day: dt.date = dt.date(2026, 1, 1)

    shape = output_of(Price)
    value = dump_value(Price(money=Money(amount=1)))

    assert "text" in shape.schema["properties"]["money"]["properties"]
    assert "text" not in shape_of(Price).schema["properties"]["money"]["properties"]
    assert shape.compiled.is_valid(value)
    assert read(Price, {"money": {"amount": 1}}).money == Money(amount=1)


def test_instances_are_dumped_wherever_they_stand():
    """Models, dataclasses and types of pydantic are dumped without pydantic's warnings."""

    @pydantic.dataclasses.dataclass
    class Data:
        day: dt.date

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        odd = Item.model_construct(sku=3, qty="x", note=None)
        assert dump_value({"a": [odd]}) == {"a": [{"SKU": 3, "qty": "x", "note": None}]}
    assert dump_value((Data(dt.date(2026, 1, 1)),)) == [{"day": "2026-01-01"}]
    assert json.dumps(dump_value(Tree(value=1, kids=[Tree(value=2)])))


# Elicitation


def test_a_model_is_a_form():
    """Titles of the author are shown; a blank optional field has its default."""

    class Size(enum.Enum):
        SMALL = "s"

    class Form(BaseModel):
        name: str = Field(title="Full name", min_length=1)
        email: str = Field(json_schema_extra={"format": "email"})
        age: int | None = Field(None, ge=0)
        size: Size = Size.SMALL
        only: t.Literal["a"] = "a"
        agree: bool = Field(alias="Agree", title="Do you agree?")

    shape, faults = flat_shape(Form)
    assert faults == []
    properties = shape.schema["properties"]

    assert properties["name"] == {"type": "string", "title": "Full name", "minLength": 1}
    assert properties["email"] == {"type": "string", "format": "email"}
    assert properties["age"] == {"type": "integer", "minimum": 0}
    assert properties["size"] == {"type": "string", "enum": ["s"], "default": "s"}
    assert properties["only"]["enum"] == ["a"]
    assert properties["Agree"]["title"] == "Do you agree?"
    built, violations = shape.read({"name": "Ada", "email": "a@b.example", "Agree": True})
    assert violations == []
    assert built == Form(name="Ada", email="a@b.example", Agree=True)
    assert shape.read({"name": ""})[1]
    assert flat_shape(Form)[0] is shape
    assert older_form(shape.schema)["properties"]["name"]["title"] == "Full name"


def test_a_nested_model_is_no_form():
    """The fault has the field."""

    class Form(BaseModel):
        item: Item

    _, faults = flat_shape(Form)

    assert [(fault.path, fault.owner) for fault in faults] == [(("item",), Form)]


# Refusals


class Frame:
    """A class without a form."""


class Holder(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    name: str
    frame: Frame


class Box(BaseModel):
    holders: list[Holder]
    again: Holder | None = None
    when: dt.datetime


def test_fields_without_a_schema_are_named():
    """The error has the line, the field and the type, also deep inside."""
    (problem,) = problems_of(Box)

    assert "test_pydantic_types.py:" in problem
    assert "Tool.Input.holders.frame: Frame has no JSON Schema; use str, int," in problem
    assert "http" not in problem


def test_models_that_cannot_be_described_are_refused():
    """Undefined names, parts that only the whole cannot have, and too many places are refused."""

    class Late(BaseModel):
        later: "Later"  # noqa: F821

    class Part(BaseModel):
        n: int = Field(json_schema_extra=lambda schema: schema[0])

    class Wide(BaseModel):
        pass

    for _ in range(15):
        Wide = pydantic.create_model("Wide", a=(Wide, ...), b=(Wide, ...))  # noqa: N806

    (late,) = problems_of(Late)
    assert "pydantic cannot describe it: " in late
    assert "not fully defined" in late
    assert "http" not in late
    assert "pydantic cannot describe it: 0" in problems_of(Part)[0]
    assert "is too large once its classes are written out" in problems_of(Wide)[0]


def test_an_input_is_an_object():
    """A root model of a list is refused as an input."""
    (problem,) = problems_of(pydantic.RootModel[list[int]])

    assert 'the root of an input must be of type "object"' in problem


def test_a_class_that_only_looks_like_one(monkeypatch):
    """Without pydantic a class with such methods is an ordinary class."""
    import sys

    class Odd:
        def __get_pydantic_core_schema__(self): ...

    monkeypatch.delitem(sys.modules, "pydantic")

    assert "Odd has no JSON Schema" in problems_of({"a": Odd})[0]
