"""Forms: flat schemas, what older revisions support, and what forms cannot contain."""

import datetime as dt
import decimal
import enum
import gc
import json
import uuid
import weakref
from dataclasses import dataclass
from pathlib import Path
from types import new_class
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import DefinitionError
from noizu_mcp.schema import (
    Schema,
    compile_schema,
    describe,
    dump_value,
    field,
    flat_shape,
    older_form,
    read_raw,
    read_shape,
    to_problems,
)
from noizu_mcp.schema import fields as f

OFFICIAL = Path(__file__).parents[3] / "shared" / "schema"
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
LAW = settings(max_examples=100, deadline=None)


class Color(enum.Enum):
    RED = "#f00"
    GREEN = "#0f0"


def flat(declared):
    """Return the flat shape of a valid declaration."""
    shape, faults = flat_shape(declared)
    assert faults == []
    return shape


def faults_of(declared):
    """Return the parts of a declaration that forms cannot contain, as `path: text`."""
    shape, faults = flat_shape(declared)
    assert shape is None
    return [f"{'.'.join(map(str, fault.path))}: {fault.text}" for fault in faults]


def raw(**properties):
    """Return a JSON Schema with these properties."""
    return {"type": "object", "properties": properties}


def of_field(declared):
    """Return the form's version of one property of a JSON Schema."""
    return flat(raw(x=declared)).schema["properties"]["x"]


class Everything(Schema):
    """All that a form can ask.

    Attributes:
        name: who you are
    """

    name: str = field(title="Full name", min_length=1, max_length=40)
    email: str = field(format="email")
    site: str | None = field(format="uri")
    born: dt.date = dt.date(2000, 1, 2)
    meeting: dt.datetime | None = None
    age: int = field(min=0, max=150, default=30)
    score: float = 95.5
    sure: bool = False
    color: Color = Color.RED
    size: Literal["s", "m"] = field(titles={"s": "Small"})
    tags: list[Literal["a", "b"]] = field(factory=list, max=2)
    colors: set[Color] = field(
        factory=set, min=0, titles={Color.RED: "Red", "#0f0": "Green"}, title="Colours"
    )


def test_a_class_becomes_a_flat_schema():
    """Each kind of field has the keywords of the specification, and no others."""
    assert flat(Everything).schema == {
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "title": "Full name",
                "description": "who you are",
                "minLength": 1,
                "maxLength": 40,
            },
            "email": {"type": "string", "format": "email"},
            "site": {"type": "string", "format": "uri"},
            "born": {"type": "string", "format": "date", "default": "2000-01-02"},
            "meeting": {"type": "string", "format": "date-time"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
            "score": {"type": "number", "default": 95.5},
            "sure": {"type": "boolean", "default": False},
            "color": {"type": "string", "enum": ["#f00", "#0f0"], "default": "#f00"},
            "size": {
                "type": "string",
                "oneOf": [{"const": "s", "title": "Small"}, {"const": "m", "title": "m"}],
            },
            "tags": {
                "type": "array",
                "items": {"type": "string", "enum": ["a", "b"]},
                "maxItems": 2,
                "default": [],
            },
            "colors": {
                "type": "array",
                "title": "Colours",
                "items": {
                    "anyOf": [
                        {"const": "#f00", "title": "Red"},
                        {"const": "#0f0", "title": "Green"},
                    ]
                },
                "minItems": 0,
                "default": [],
            },
        },
        "required": ["name", "email", "size"],
    }


def test_the_words_have_one_order():
    """The type of a field comes before its description, and its bounds come last."""
    properties = flat(Everything).schema["properties"]

    assert list(properties["name"]) == ["type", "title", "description", "minLength", "maxLength"]
    assert list(properties["colors"]) == ["type", "title", "items", "minItems", "default"]


def test_a_tool_schema_has_no_titles():
    """Titles of fields and choices are for users: a model gets plain enums."""
    properties = read_shape(Everything)[0].schema["properties"]

    assert properties["name"] == {
        "type": "string",
        "description": "who you are",
        "minLength": 1,
        "maxLength": 40,
    }
    assert properties["size"] == {"type": "string", "enum": ["s", "m"]}
    assert properties["colors"]["items"] == {"type": "string", "enum": ["#f00", "#0f0"]}
    assert "title" not in json.dumps(read_shape(Everything)[0].schema)


def test_an_answer_becomes_an_instance():
    """Choices become members, dates become dates; a blank field has its default, or None."""
    shape = flat(Everything)
    answer = {
        "name": "Ada",
        "email": "a@b.c",
        "born": "1815-12-10",
        "meeting": "2026-07-28T10:00:00Z",
        "color": "#0f0",
        "size": "m",
        "colors": ["#f00"],
        "unasked": 1,
    }

    built = shape.build(answer)

    assert shape.compiled.violations(answer) == []
    assert built == Everything(
        name="Ada",
        email="a@b.c",
        born=dt.date(1815, 12, 10),
        meeting=dt.datetime(2026, 7, 28, 10, tzinfo=dt.UTC),
        color=Color.GREEN,
        size="m",
        colors={Color.RED},
    )
    assert (built.site, built.age, built.tags) == (None, 30, [])
    assert type(built) is Everything


def test_answers_are_judged():
    """An invalid answer is refused with the field and the reason; unknown fields are ignored."""
    shape = flat(Everything)
    answer = {"name": "", "email": "a@b.c", "born": "1815-13-10", "size": "l", "x": None}

    texts = describe(shape.compiled.violations(answer))

    assert not shape.compiled.is_valid(answer)
    assert [text.partition(":")[0] for text in texts] == ["/name", "/size", "/born"]
    answer.update(name="Ada", size="s")
    assert describe(shape.compiled.violations(answer)) == [
        '/born: expected a date, got string "1815-13-10"'
    ]
    assert not shape.compiled.is_valid("Ada")
    assert shape.compiled.schema is shape.schema


def test_null_for_blank():
    """Null for a blank field is accepted where null is declared."""
    shape = flat({"note": str | None, "count": int})

    assert shape.compiled.is_valid({"note": None})
    assert shape.build({"note": None}).note is None
    assert not shape.compiled.is_valid({"count": None})


def test_forms_of_classes():
    """Attrs classes, dataclasses, TypedDicts and plain classes can be forms."""

    @attrs.frozen
    class A:
        name: str = attrs.field(validator=attrs.validators.max_len(3))
        mode: str = attrs.field(default="x", validator=attrs.validators.in_(["x", "y"]))

    @dataclass
    class B:
        name: Annotated[str, field(title="Name")]
        note: str | None

    class C:
        name: str

    assert flat(A).schema["properties"] == {
        "name": {"type": "string", "maxLength": 3},
        "mode": {"type": "string", "enum": ["x", "y"], "default": "x"},
    }
    assert flat(A).build({"name": "n", "more": 1}) == A("n")
    assert not flat(A).compiled.is_valid({"name": "name"})
    assert flat(B).schema["properties"]["name"] == {"type": "string", "title": "Name"}
    assert flat(B).build({"name": "n"}) == B("n", None)
    assert flat(C).build({"name": "n"}).name == "n"


def test_a_required_key_that_may_be_null():
    """A required field that accepts null may be blank; its key is in the result."""

    class Profile(TypedDict):
        name: Required[str]
        note: str | None
        nick: NotRequired[str]

    shape = flat(Profile)

    assert shape.schema["required"] == ["name"]
    assert shape.compiled.is_valid({"name": "n"})
    assert shape.build({"name": "n"}) == {"name": "n", "note": None}
    assert shape.build({"name": "n", "note": "x"}) == {"name": "n", "note": "x"}


def test_fields_as_data():
    """A mapping of fields can be a form, titles included; the answer is a record."""
    shape = flat(
        {
            "user": f.string(required=True, title="User"),
            "mode": f.enum("x", "y", titles={"x": "Ex"}, default="y", header="Mode"),
            "several": f.array(f.enum("x", "y", titles={"y": "Why"}), min=1),
            "named": f.array(f.enum(Color), titles={Color.RED: "Red"}),
            "count": int,
        }
    )

    assert shape.schema == {
        "type": "object",
        "properties": {
            "user": {"type": "string", "title": "User"},
            "mode": {
                "type": "string",
                "oneOf": [{"const": "x", "title": "Ex"}, {"const": "y", "title": "y"}],
                "default": "y",
            },
            "several": {
                "type": "array",
                "items": {"anyOf": [{"const": "x", "title": "x"}, {"const": "y", "title": "Why"}]},
                "minItems": 1,
            },
            "named": {
                "type": "array",
                "items": {
                    "anyOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "#0f0"}]
                },
            },
            "count": {"type": "integer"},
        },
        "required": ["user"],
    }
    args = shape.build({"user": "u", "several": ["y"]})
    assert (args.user, args.mode, args.several, args.count) == ("u", "y", ["y"], None)


def test_titles_inside_a_type():
    """Titles can be inside of a list, a nullable type, and a named type."""

    class Model(Schema):
        several: list[Annotated[Literal["a"], field(titles={"a": "A"})]]
        maybe: Annotated[Literal["a"] | None, field(titles={"a": "A"})]
        union: Annotated[Color | None, field(titles={Color.RED: "Red"})]

    properties = flat(Model).schema["properties"]

    assert properties["several"]["items"] == {"anyOf": [{"const": "a", "title": "A"}]}
    assert properties["maybe"] == {"type": "string", "oneOf": [{"const": "a", "title": "A"}]}
    assert properties["union"]["oneOf"][0] == {"const": "#f00", "title": "Red"}
    assert "required" in flat(Model).schema
    assert flat(Model).schema["required"] == ["several"]


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        (
            {"x": f.enum("plain", "loud", titles={"plan": "Plain"})},
            "x: titles names 'plan', which is not a choice; did you mean 'plain'?",
        ),
        (
            {"x": f.enum(1, 2, titles={3: "C"})},
            "x: titles names 3, which is not a choice; known: 1, 2",
        ),
        (
            {"x": f.enum(1, titles={True: "C"})},
            "x: titles names True, which is not a choice; known: 1",
        ),
        (
            {"x": f.enum("a", None, titles={None: "Nothing"})},
            "x: titles names None, which is not a choice; known: 'a'",
        ),
        (
            {"x": f.string(titles={"a": "A"})},
            (
                "x: titles names the choices of an enum, and there are none here;"
                " write Literal[...], an Enum or a list of them, or leave titles out"
            ),
        ),
        (
            {"x": f.enum("a", titles={"a": 1})},
            "x: titles must be a mapping of choices to text, got {'a': 1}",
        ),
        (
            {"x": f.enum("a", titles=["A"])},
            "x: titles must be a mapping of choices to text, got ['A']",
        ),
        ({"x": f.string(title=1)}, "x: title must be text, got 1"),
        (
            {"x": f.array(f.enum("a", title="A"))},
            "x: title belongs to a field, not to the items of an array",
        ),
    ],
)
def test_faults_of_titles(declared, fault):
    """Titles for values that are not choices are reported once each, wherever the field is used."""
    assert faults_of(declared) == [fault]
    assert [fault.text for fault in read_shape(declared)[1]] == [fault.partition(": ")[2]]


def test_faults_of_titles_are_found_by_the_class_statement():
    """A class with invalid titles is refused by its statement."""
    with pytest.raises(DefinitionError, match="which is not a choice; did you mean 'small'"):

        class Wrong(Schema):
            size: Literal["small", "large"] = field(titles={"smal": "S"})

    with pytest.raises(DefinitionError, match="title belongs to a field"):

        class WrongToo(Schema):
            sizes: list[Annotated[str, field(title="S")]]


class Nested(Schema):
    street: str


class Loop(Schema):
    name: str
    inner: "list[Loop]"
    next: "Loop | None"


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Nested, "is an object, and a form is flat; ask for its fields one by one"),
        (dict[str, str], "is an object, and a form is flat"),
        (int | str, "takes several types, and a field of a form has one"),
        (Any, "takes anything; say what to ask for"),
        (None, "takes nothing but null; leave it out"),
        (list[str], "is a list of free values, and a form lists choices only"),
        (list, "is a list of free values"),
        (list[Nested], "is a list of free values"),
        (list[Literal[1]], "choice 1 is not text; write the choices as text"),
        (tuple[Literal["a"], Literal["b"]], "is a list of free values"),
        (Literal[1, 2], "choice 1 is not text"),
        (Literal["a", True], "choice true is not text"),
        (dt.time, 'format "time" is unknown to forms (email, uri, date, date-time)'),
        (uuid.UUID, 'format "uuid" is unknown to forms'),
        (
            bytes,
            '"contentEncoding" is not allowed for a text field in a form; bytes cannot be typed',
        ),
        (decimal.Decimal, '"pattern" is not allowed for a text field in a form; use a format'),
        (Annotated[str, field(pattern="^a")], '"pattern" is not allowed for a text field'),
        (
            Annotated[int, field(exclusive_min=0)],
            '"exclusiveMinimum" is not allowed for a number field in a form; write min (minimum)',
        ),
        (Annotated[float, field(exclusive_max=0)], "write max (maximum)"),
        (Annotated[int, field(multiple_of=2)], "check the answer in the handler"),
    ],
)
def test_what_a_form_cannot_ask(annotation, text):
    """A field that is not flat is refused by name, with the correction."""

    @attrs.frozen
    class Model:
        good: str
        bad: annotation

    shape, (fault,) = flat_shape(Model)

    assert shape is None
    assert fault.path == ("bad",)
    assert fault.owner is Model
    assert text in fault.text


def test_classes_that_contain_themselves():
    """A reference is refused like any nesting."""
    assert faults_of(Loop) == [
        (
            "inner: is a list of free values, and a form lists choices only;"
            " write list[Literal[...]] (items with enum), or ask for text and split it"
        ),
        'next: refers to "#/$defs/Loop", and a form is flat; write it out in this place',
    ]


def test_inherited_fields_have_their_own_class():
    """The place of a fault is the class that defines the field."""

    class Base(Schema):
        place: Nested

    class Derived(Base):
        name: str

    _, faults = flat_shape(Derived)

    assert [fault.owner for fault in faults] == [Base]
    (problem,) = to_problems(faults, "Derived")
    assert problem.where == "Derived.place"
    assert Path(problem.file).name == "test_flat.py"


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (True, "takes anything"),
        ({"type": ["string", "integer", "null"]}, "takes several types"),
        ({"type": ["null"]}, "takes nothing but null"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "takes several types"),
        ({"anyOf": [{"type": "string"}]}, "takes several types"),
        ({"anyOf": [True, {"type": "null"}]}, "takes several types"),
        ({"oneOf": [{"type": "string"}]}, "takes several types"),
        ({"type": "string", "const": "a"}, "write enum with this one value"),
        (
            {"type": "string", "minimum": 1},
            '"minimum" is not allowed for a text field in a form; le',
        ),
        ({"type": "string", "placeholder": "…"}, '"placeholder" is not allowed for a text field'),
        ({"type": "integer", "enum": ["a"]}, "has no choices that fit its type"),
        ({"enum": [None]}, "has no choices that fit its type"),
        ({"enum": ["a"], "oneOf": [{"const": "a", "title": "A"}]}, "enum and oneOf together"),
        ({"oneOf": [{"const": "a"}]}, "each choice in oneOf needs a title"),
        ({"oneOf": [{"const": 1, "title": "A"}]}, "choice 1 is not text"),
        ({"enum": ["a"], "enumNames": ["A", "B"]}, "enumNames must hold one text for each value"),
        ({"enum": ["a"], "enumNames": [1]}, "enumNames must hold one text for each value"),
        ({"enum": ["a"], "enumNames": "A"}, "enumNames must hold one text for each value"),
        ({"type": "array", "items": True}, "is a list of free values"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}]}}, "is a list of free values"),
        (
            {"type": "array", "items": {"enum": ["a"], "minLength": 1}},
            '"minLength" is not allowed for the items of a list in a form; leave it out',
        ),
        ({"type": "array", "items": {"enum": ["a", None]}}, "choice null is not text"),
        (
            {"type": "array", "items": {"enum": ["a"], "anyOf": [{"const": "a", "title": "A"}]}},
            "enum and anyOf together; keep anyOf, which has the titles",
        ),
        ({"type": "array", "items": {"anyOf": [{"const": "a"}]}}, "each choice in anyOf needs a"),
        (
            {"type": "array", "items": {"enum": ["a"]}, "contains": {}},
            '"contains" is not allowed for a list field',
        ),
    ],
)
def test_schemas_that_a_form_cannot_ask(declared, text):
    """The same rules apply to JSON Schemas."""
    (fault,) = faults_of(raw(x=declared))

    assert fault.startswith(f"x: {text}") or text in fault


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ({"type": "object"}, "has no fields to ask for; declare a class with fields"),
        (dict, "has no fields to ask for"),
        ({**raw(), "additionalProperties": {"type": "string"}}, "asks for names that are not"),
        ({**raw(), "unevaluatedProperties": {"type": "string"}}, "asks for names that are not"),
        ({**raw(), "minProperties": 1}, '"minProperties" is not allowed in a form; leave it out'),
        ({**raw(), "patternProperties": {}}, '"patternProperties" is not allowed in a form'),
        (int, 'the root of an input must be of type "object"'),
        (None, "expected a class, a mapping of fields, a JSON Schema; got None"),
        ("{", "invalid JSON text"),
        (read_raw({"type": "string"}, input=False)[0], "the root of an input must be"),
    ],
)
def test_roots_that_a_form_cannot_have(declared, fault):
    """A fault of the whole form is reported without a field."""
    (found,) = faults_of(declared)

    assert found.startswith(f": {fault}")


def test_a_required_name_without_a_field():
    """A required name must be one of the properties."""
    assert faults_of({**raw(a={"type": "string"}), "required": ["a", "b"]}) == [
        "b: is required, but not among the properties; declare it"
    ]


@pytest.mark.parametrize(
    ("declared", "made"),
    [
        ({"type": "string", "title": "T", "examples": ["x"], "x-own": 1}, {"title": "T"}),
        ({"type": ["string"]}, {}),
        ({"type": ["null", "string"], "default": None}, {}),
        ({"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]}, {"maxLength": 2}),
        (
            {"anyOf": [{"type": "string", "title": "in"}, {"type": "null"}], "title": "out"},
            {"title": "out"},
        ),
        ({"enum": ["a", None]}, {"enum": ["a"]}),
        (
            {"oneOf": [{"const": "a", "title": "A", "description": "…"}], "default": "a"},
            {"oneOf": [{"const": "a", "title": "A"}], "default": "a"},
        ),
        (
            {"type": "string", "enum": ["a"], "enumNames": ["A"]},
            {"enum": ["a"], "enumNames": ["A"]},
        ),
    ],
)
def test_schemas_are_tidied(declared, made):
    """Null becomes absence, harmless keywords are removed, and keywords of the spec stay."""
    assert of_field(declared) == {"type": "string", **made}


def test_lists_in_schemas():
    """Lists of choices keep their bounds; the client handles equal choices."""
    items = {"enum": ["a"], "description": "…"}
    titled = {"type": "string", "anyOf": [{"const": "a", "title": "A"}]}

    assert of_field({"type": "array", "items": items, "uniqueItems": True, "minItems": 1}) == {
        "type": "array",
        "items": {"type": "string", "enum": ["a"]},
        "minItems": 1,
    }
    assert of_field({"type": "array", "items": titled})["items"] == {
        "anyOf": [{"const": "a", "title": "A"}]
    }


def test_a_json_schema_is_answered_with_a_dict():
    """The answer is a dict without unknown fields; nullable fields are present."""
    shape = flat(
        {
            **raw(a={"type": ["string", "null"]}, b={"type": "integer", "default": 3}),
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Model",
            "required": ["a"],
            "additionalProperties": False,
        }
    )

    assert shape.schema == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer", "default": 3}},
    }
    assert shape.compiled.is_valid({"b": 1, "c": 2})
    assert shape.build({"b": 1, "c": 2}) == {"a": None, "b": 1}
    assert flat(json.dumps(raw(a={"type": "string"}))).build({"a": "x"}) == {"a": "x"}


def test_a_ready_shape():
    """A shape is equivalent to its declaration, titles included."""
    ready, _ = read_shape({"mode": f.enum("x", titles={"x": "Ex"}), "note": str | None})

    shape = flat(ready)

    assert shape.schema["properties"] == {
        "mode": {"type": "string", "oneOf": [{"const": "x", "title": "Ex"}]},
        "note": {"type": "string"},
    }
    assert shape.build({"mode": "x"}).mode == "x"


def test_empty_forms():
    """A form without fields asks for consent."""

    class Consent(Schema):
        pass

    assert flat(Consent).schema == {"type": "object", "properties": {}}
    assert flat(Consent).build({"x": 1}) == Consent()
    assert flat({}).schema == {"type": "object", "properties": {}}


def test_the_shape_of_a_class_is_kept():
    """The flat shape is cached by class; a subclass has its own."""

    class Base(Schema):
        a: str

    class Derived(Base):
        b: str

    first = flat(Base)

    assert flat(Base) is first
    assert flat(first) is first
    assert list(flat(Derived).schema["properties"]) == ["a", "b"]


def test_a_kept_shape_dies_with_its_class():
    """Classes made in a loop can be collected."""

    def use():
        @attrs.frozen
        class Model:
            a: str

        return weakref.ref(flat(Model))

    shape = use()
    gc.collect()

    assert shape() is None


def test_a_class_with_a_name_that_comes_later():
    """A refusal is not cached: the name may exist by the next time."""

    @attrs.frozen
    class Model:
        a: "Later"  # noqa: F821 - it comes later

    assert flat_shape(Model)[0] is None
    globals()["Later"] = str
    try:
        assert flat(Model).build({"a": "x"}) == Model("x")
    finally:
        del globals()["Later"]


def test_older_revisions():
    """2025-06-18 has defaults for booleans only, and titles beside the choices."""

    class Model(Schema):
        name: str = "x"
        sure: bool = True
        size: Literal["s", "m"] = field(default="s", titles={"s": "Small"})

    schema = flat(Model).schema

    assert older_form(schema) == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "sure": {"type": "boolean", "default": True},
            "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "m"]},
        },
    }
    assert older_form(flat(Everything).schema) is None


def test_the_forms_of_the_conformance_suite():
    """The five kinds of choices have the form that the suite expects (SEP-1330)."""

    class Model(Schema):
        untitledSingle: Literal["option1", "option2"]
        titledSingle: Literal["value1", "value2"] = field(titles={"value1": "First"})
        untitledMulti: list[Literal["option1", "option2"]]
        titledMulti: list[Literal["value1", "value2"]] = field(titles={"value1": "First"})

    properties = flat(Model).schema["properties"]

    assert {"type", "enum"} == set(properties["untitledSingle"])
    assert {"type", "oneOf"} == set(properties["titledSingle"])
    assert {"type", "enum"} == set(properties["untitledMulti"]["items"])
    assert {"anyOf"} == set(properties["titledMulti"]["items"])


# --- laws


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6)


def _with(draw, options, values):
    options = {**options, **draw(st.sampled_from([{}, {"title": "T"}, {"description": "d"}]))}
    return {**options, "default": draw(values)} if draw(st.booleans()) else options


@st.composite
def _texts(draw):
    low = draw(st.integers(0, 2))
    values = st.text(st.characters(exclude_categories=("Cs",)), min_size=low, max_size=6)
    bounds = {"min_length": low, "max_length": 6, "format": draw(st.sampled_from(["email", None]))}
    return str, _with(draw, bounds, values), values


@st.composite
def _numbers(draw):
    kind = draw(st.sampled_from([int, float]))
    low = draw(st.integers(-5, 5))
    values = st.integers(low, low + 9).map(kind)
    return kind, _with(draw, {"min": low, "max": low + 9}, values), values


@st.composite
def _booleans(draw):
    return bool, _with(draw, {}, st.booleans()), st.booleans()


@st.composite
def _dates(draw):
    kind, values = draw(
        st.sampled_from(
            [(dt.date, st.dates()), (dt.datetime, st.datetimes(timezones=st.just(dt.UTC)))]
        )
    )
    return kind, _with(draw, {}, values), values


@st.composite
def _choices(draw):
    names = draw(st.lists(TEXT, min_size=1, max_size=3, unique=True))
    kind = draw(st.sampled_from([Literal[tuple(names)], Color]))
    values = st.sampled_from(Color if kind is Color else names)
    titles = st.dictionaries(values, TEXT, max_size=2)
    options = {"titles": draw(titles)} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        return kind, _with(draw, options, values), values
    several = st.lists(values, unique=True, max_size=3)
    options = {**options, "max": 3}
    return list[kind], {**options, **draw(st.sampled_from([{}, {"factory": list}]))}, several


@st.composite
def models(draw, kinds=(_texts, _numbers, _booleans, _dates, _choices)):
    """Draw a flat class, and values for its fields; optional fields may be missing."""
    drawn = {
        name: (draw(draw(st.sampled_from(kinds))()), draw(st.booleans()), draw(st.booleans()))
        for name in draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
    }
    annotations, markers, values = {}, {}, {}
    for name, ((kind, options, strategy), optional, given_) in drawn.items():
        annotations[name] = kind | None if optional else kind
        markers[name] = field(**options)
        if given_ or not (optional or options.keys() & {"default", "factory"}):
            values[name] = draw(strategy)

    def body(namespace):
        namespace.update(__module__=__name__, __annotations__=annotations, **markers)

    return new_class("Model", (Schema,), {}, body), values


@pytest.mark.slow
@LAW
@given(models())
def test_answers_round_trip(drawn):
    """A dumped instance is a valid answer, and builds an equal instance."""
    model, values = drawn
    shape = flat(model)
    instance = model(**values)
    wire = {name: dump_value(value) for name, value in values.items()}

    assert shape.compiled.violations(wire) == []
    assert compile_schema(shape.schema).is_valid(wire)
    assert shape.build({**wire, "unasked": {}}) == instance
    assert shape.build({k: v for k, v in dump_value(instance).items() if v is not None}) == instance


WRONG = st.sampled_from(["zzzzzzz", 99, -99, 1.5, True, [], ["#f00", "#f00"], {}])


@pytest.mark.slow
@LAW
@given(models((_texts, _numbers, _booleans, _choices)), st.data())
def test_the_flat_schema_says_what_is_accepted(drawn, data):
    """A client that validates the answer against the schema decides as the server does."""
    model, values = drawn
    shape = flat(model)
    wire = {name: dump_value(value) for name, value in values.items()}
    wire[data.draw(st.sampled_from(sorted(shape.schema["properties"])))] = data.draw(WRONG)

    assert compile_schema(shape.schema).is_valid(wire) == shape.compiled.is_valid(wire)


@pytest.fixture(scope="module")
def official():
    """Return validators of form parameters by revision, which accept only the spec's keywords."""
    if not OFFICIAL.is_dir():
        pytest.skip("the official schemas are not beside the checkout")
    validators = pytest.importorskip("jsonschema")
    return {revision: _validator(validators, revision) for revision in REVISIONS}


def _validator(validators, revision):
    document = json.loads((OFFICIAL / revision / "schema.json").read_text())
    key = "$defs" if "$defs" in document else "definitions"
    definitions = document[key]
    params = definitions.get("ElicitRequestFormParams")
    if params is None:
        params = definitions["ElicitRequest"]["properties"]["params"]
    for branch in definitions["PrimitiveSchemaDefinition"]["anyOf"]:
        definitions[branch["$ref"].rpartition("/")[2]]["additionalProperties"] = False
    params["properties"]["requestedSchema"]["additionalProperties"] = False
    schema = {"$schema": document["$schema"], **params, key: definitions}
    return validators.validators.validator_for(schema)(schema)


@pytest.mark.slow
@LAW
@given(models())
def test_forms_are_what_the_spec_allows(official, drawn):
    """Each revision gets a form that its own schema allows, or none."""
    model, _ = drawn
    schema = flat(model).schema
    several = any(each["type"] == "array" for each in schema["properties"].values())

    for revision in REVISIONS:
        asked = older_form(schema) if revision == "2025-06-18" else schema
        assert (asked is None) == (several and revision == "2025-06-18")
        if asked is not None:
            official[revision].validate({"message": "?", "requestedSchema": asked})
