"""The data form: fields as a mapping."""

import enum
import math

import pytest

from noizu_mcp.schema import Schema, dump_value, field, read_shape
from noizu_mcp.schema import fields as f


class Scope(enum.Enum):
    ALL = "all"
    GUIDES = "guides"


def schema_of(declared, **options):
    """Return the schema of a valid form."""
    shape, faults = read_shape(declared, **options)
    assert faults == []
    return shape.schema


def faults_of(declared, **options):
    """Return the faults of an invalid form, as `path: text`."""
    shape, faults = read_shape(declared, **options)
    assert shape is None
    return [f"{'.'.join(map(str, fault.path))}: {fault.text}" for fault in faults]


def test_every_kind_of_field():
    """Each kind has its type, and its options have their keywords, in a stable order."""
    declared = {
        "message": f.string(required=True, description="Message to echo", min_length=1, format="x"),
        "name": f.string(pattern="^[a-z]+$", max_length=9, examples=["bob"]),
        "repeat": f.integer(min=1, max=10, default=1),
        "ratio": f.number(exclusive_min=0, exclusive_max=1, header=None),
        "step": f.number(multiple_of=0.5),
        "loud": f.boolean(default=False),
        "mode": f.enum("plain", "loud", default="plain"),
        "address": f.object({"street": f.string(required=True)}),
        "tags": f.array(f.string(min_length=1, description="One tag"), min=1, max=3, unique=True),
        "rows": f.array(f.object({"id": f.integer(required=True)})),
        "note": str,
        "scores": list[int],
    }

    schema = schema_of(declared)

    assert schema == {
        "type": "object",
        "properties": {
            "message": {
                "type": "string",
                "description": "Message to echo",
                "format": "x",
                "minLength": 1,
            },
            "name": {
                "type": "string",
                "pattern": "^[a-z]+$",
                "maxLength": 9,
                "examples": ["bob"],
            },
            "repeat": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
            "ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "step": {"type": "number", "multipleOf": 0.5},
            "loud": {"type": "boolean", "default": False},
            "mode": {"type": "string", "enum": ["plain", "loud"], "default": "plain"},
            "address": {
                "type": "object",
                "properties": {"street": {"type": "string"}},
                "required": ["street"],
            },
            "tags": {
                "type": "array",
                "items": {"type": "string", "description": "One tag", "minLength": 1},
                "minItems": 1,
                "maxItems": 3,
                "uniqueItems": True,
            },
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"id": {"type": "integer"}},
                    "required": ["id"],
                },
            },
            "note": {"type": "string"},
            "scores": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["message"],
    }
    assert list(schema["properties"]["message"]) == ["type", "description", "format", "minLength"]
    assert list(schema) == ["type", "properties", "required"]


def test_no_fields_is_an_object_that_drops_everything():
    """An empty mapping declares no properties; everything is dropped (R5)."""
    shape, faults = read_shape({})

    assert faults == []
    assert shape.schema == {"type": "object", "properties": {}}
    assert list(shape.build({"a": 1})) == []


def test_arguments_are_an_attrs_instance_with_the_declared_names():
    """Identifiers are attributes, and all names can be used as items."""
    import attrs

    declared = {"path": f.string(), "class": int, "x-y": f.boolean(), "get": str, "__deep__": str}
    shape, _ = read_shape(declared)

    made = shape.build({"path": "p", "class": 3, "x-y": True, "get": "g", "other": 1})

    assert attrs.has(type(made))
    assert (made.path, getattr(made, "class"), made["x-y"], made["get"]) == ("p", 3, True, "g")
    assert list(made) == ["path", "class", "x-y", "get", "__deep__"]
    assert len(made) == 5
    assert "x-y" in made
    assert "other" not in made
    assert made["__deep__"] is None
    with pytest.raises(KeyError):
        made["other"]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.path = "q"
    assert repr(made) == "Arguments(path='p', class=3, x-y=True, get='g', __deep__=None)"


def test_arguments_compare_by_what_they_hold():
    """Equal values make equal arguments; get() distinguishes undeclared from absent names."""
    shape, _ = read_shape({"a": int, "b": int})

    first, second = shape.build({"a": 1}), shape.build({"a": 1.0, "zzz": 2})

    assert first == second
    assert first != shape.build({"a": 2})
    assert first != {"a": 1, "b": None}
    assert (first.get("a"), first.get("b", 7), first.get("c", 7)) == (1, None, 7)
    assert hash(first) == hash(shape.build({"a": 1}))


def test_defaults_apply_to_absent_fields_only():
    """False, 0 and "" can be defaults; a mutable default is copied (R26 to R30)."""
    declared = {
        "flag": f.boolean(default=False),
        "text": f.string(default=""),
        "count": f.integer(default=0),
        "tags": f.array(f.string(), default=[]),
        "inner": f.object({"deep": f.integer(default=3), "list": f.array(int, default=[1])}),
        "whole": f.object({"deep": f.integer(default=3)}, default={}),
    }
    shape, faults = read_shape(declared)

    made, again = shape.build({}), shape.build({})

    assert faults == []
    assert tuple(made[name] for name in made)[:5] == (False, "", 0, [], None)
    assert made.whole.deep == 3
    assert made.tags is not again.tags
    inner = shape.build({"inner": {}}).inner
    assert (inner.deep, inner.list) == (3, [1])


def test_enum_values_arrive_as_declared():
    """Strings, numbers, booleans and members are delivered as declared."""
    declared = {
        "a": f.enum(1, True, "x", None),
        "b": f.enum(Scope),
        "c": f.enum(Scope.ALL),
        "d": f.enum(1, 2.5),
        "e": f.enum(None),
        "f": f.enum("x", None),
    }
    shape, faults = read_shape(declared)
    assert faults == []

    properties = shape.schema["properties"]
    made = shape.build({"a": True, "b": "guides", "c": "all", "d": 1.0})

    assert properties["a"] == {"enum": [1, True, "x", None]}
    assert properties["b"] == {"type": "string", "enum": ["all", "guides"]}
    assert properties["d"] == {"type": "number", "enum": [1, 2.5]}
    assert properties["e"] == {"type": "null", "enum": [None]}
    assert properties["f"] == {"type": ["string", "null"], "enum": ["x", None]}
    assert made.a is True
    assert (made.b, made.c) == (Scope.GUIDES, Scope.ALL)
    assert (1, int) == (made.d, type(made.d))
    assert type(shape.build({"a": 1.0}).a) is int


def test_strict_forbids_undeclared_names_at_every_level():
    """`strict=True` publishes additionalProperties: false; no other option does."""
    declared = {"a": f.object({"b": f.array(f.object({"c": str}))})}

    strict = schema_of(declared, strict=True)

    inner = strict["properties"]["a"]
    rows = inner["properties"]["b"]["items"]
    assert [part["additionalProperties"] for part in (strict, inner, rows)] == [False] * 3
    assert "additionalProperties" not in str(schema_of(declared))


def test_descriptions_fill_what_has_none():
    """Descriptions from elsewhere are used for fields without their own."""
    declared = {"a": f.string(description="own"), "b": str}

    schema = schema_of(declared, descriptions={"a": "other", "b": "from outside", "c": "nothing"})

    assert [part["description"] for part in schema["properties"].values()] == [
        "own",
        "from outside",
    ]


WRONG = [
    ({"a": f.string(min=1)}, "a: min does not belong to string; write min_length"),
    ({"a": f.string(max=1)}, "a: max does not belong to string; write max_length"),
    ({"a": f.array(str, min_length=1)}, "a: min_length does not belong to array; write min"),
    ({"a": f.integer(max_length=1)}, "a: max_length does not belong to integer; write max"),
    ({"a": f.boolean(min=1)}, "a: min does not belong to boolean; leave it out"),
    (
        {"a": f.integer(pattern="x")},
        "a: pattern does not belong to integer, which takes min, max, exclusive_min, exclusive_max,"
        " multiple_of",
    ),
    (
        {"a": f.object({"b": str}, min=1)},
        "a: min does not belong to object with fields; leave it out",
    ),
    (
        {"a": f.string(requird=True)},
        "a: unknown option 'requird' of f.string; did you mean 'required'?",
    ),
    ({"a": f.string("x")}, "a: f.string(...) takes keyword arguments only, got 'x'"),
    (
        {"a": f.string(required=True, default="x")},
        "a: required=True with a default: drop one, an absent field gets its default",
    ),
    ({"a": f.string(required=1)}, "a: required must be True or False, got 1"),
    ({"a": f.string(description=3)}, "a: description must be text, got 3"),
    ({"a": f.string(examples="x")}, "a: examples must be a list, got 'x'"),
    ({"a": f.string(header=3)}, "a: header must be text, got 3"),
    ({"a": f.integer(min="1")}, "a: min must be a number, got '1'"),
    ({"a": f.number(max=math.inf)}, "a: max must be a number, got inf"),
    ({"a": f.number(multiple_of=0)}, "a: multiple_of must be a number above 0, got 0"),
    ({"a": f.string(min_length=-1)}, "a: min_length must be a whole number, 0 or more, got -1"),
    ({"a": f.string(pattern=3)}, "a: pattern must be text, got 3"),
    ({"a": f.array(str, unique=1)}, "a: unique must be True or False, got 1"),
    ({"a": f.integer(min=3, max=2)}, "a: min 3 is above max 2: nothing fits"),
    (
        {"a": f.string(min_length=3, max_length=2)},
        "a: min_length 3 is above max_length 2: nothing fits",
    ),
    ({"a": f.enum()}, 'a: f.enum needs values; write f.enum("plain", "loud")'),
    (
        {"a": f.enum(["x", "y"])},
        "a: f.enum takes its values one by one; write f.enum(*values)",
    ),
    (
        {"a": f.enum(("x",), "y")},
        "a: f.enum value ('x',) is not text, a number, a boolean or None",
    ),
    (
        {"a": f.object()},
        "a: f.object needs its fields, a mapping of names to fields or types, or {} for an object"
        " with any names",
    ),
    (
        {"a": f.object([1])},
        "a: f.object needs its fields, a mapping of names to fields or types, or {} for an object"
        " with any names, got [1]",
    ),
    (
        {"a": f.object({"b": 3})},
        "a.b: expected a field or a type, got 3; write f.string(), str, ...",
    ),
    (
        {"a": f.array()},
        "a: f.array needs the field or type of its items; write f.array(f.string())",
    ),
    (
        {"a": f.array(f.string(required=True))},
        "a: required belongs to a field, not to the items of an array",
    ),
    (
        {"a": f.array(f.string(bogus=1, min=2))},
        "a: min does not belong to string; write min_length",
    ),
    (
        {"a": f.array("string")},
        "a: expected a field or a type, got 'string'; write f.string(), str, ...",
    ),
    ({"a": f.string}, "a: f.string is not called; write f.string()"),
    (
        {"type": "object", "properties": {"c": f.string()}},
        "a JSON Schema holds nothing but JSON: f.string(...) is a field, and belongs in a mapping of fields only",
    ),
    ({3: f.string()}, "3: the name of a field is text, got 3"),
    (
        {"a": field(min=1)},
        "a: field(...) belongs in a class; write f.string(...), f.integer(...)",
    ),
    (
        {"a": f.integer(default=60, max=50)},
        "a: default 60 is above max 50; change the default or the field",
    ),
    (
        {"a": f.integer(default="x")},
        'a: default "x" does not fit: expected integer, got string "x"; change the default or the field',
    ),
    (
        {"a": f.enum("x", default="y")},
        'a: default "y" is not one of ["x"]; change the default or the field',
    ),
    (
        {"a": f.string(default=None)},
        "a: default null does not fit the type; annotate it with | None, or leave it out",
    ),
    (
        {"a": f.string(examples=["ok", 3])},
        "a: example 3 does not fit: expected string, got integer 3; change the example or the field",
    ),
    ({"a": f.string(default=object())}, "is not JSON: object has no JSON form; return JSON values"),
    ({"a": f.string(pattern="(")}, 'a: "(" cannot be used: not a regular expression of ECMA-262'),
    (
        {"a": f.string(), "b": 3},
        ": a mixture of fields and something else (b); write fields only, or a schema",
    ),
    ({"a": f.string(header="")}, "a: header '' is not an HTTP token; use letters, digits and -"),
    (
        {"a": f.number(header="X")},
        "a: header needs a field of type string, integer or boolean (not null), not number",
    ),
    (
        {"a": f.array(f.object({"b": f.string(header="X")}))},
        "a.b: header stands in a list, a union or a recursive class; only plain fields have one",
    ),
    (
        {"a": f.string(header="X"), "b": f.object({"c": f.string(header="x")})},
        "b.c: header 'x' is taken by a; names ignore case",
    ),
]


@pytest.mark.parametrize(("declared", "text"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_said_with_what_to_write(declared, text):
    """Each mistake is a fault of the field with its correction, never an exception."""
    assert any(line == text or text in line for line in faults_of(declared))


def test_all_faults_of_a_form_are_reported_in_field_order():
    """All invalid fields are reported together."""
    declared = {
        "a": f.integer(default=60, max=50),
        "b": f.string(bogus=1),
        "c": str,
        "d": f.string(pattern="("),
    }

    assert [line.partition(":")[0] for line in faults_of(declared)] == ["a", "b", "d"]


def test_a_default_beside_a_pattern_that_cannot_be():
    """One mistake of a field is not reported twice."""
    (line,) = faults_of({"a": f.string(pattern="(", default="x")})
    assert line.startswith('a: "("')


def test_options_that_ask_for_nothing():
    """unique=False and None are the same as no option."""
    assert schema_of({"a": f.array(str, unique=False, min=None)})["properties"]["a"] == {
        "type": "array",
        "items": {"type": "string"},
    }


def test_header_is_published_on_nested_plain_fields():
    """`header=` becomes x-mcp-header on any field that is nested in objects only."""
    schema = schema_of(
        {"region": f.string(header="Region"), "a": f.object({"b": f.integer(header="Deep-1")})}
    )

    assert schema["properties"]["region"]["x-mcp-header"] == "Region"
    assert schema["properties"]["a"]["properties"]["b"]["x-mcp-header"] == "Deep-1"


def test_an_output_may_have_the_same_forms():
    """Outputs are read like inputs, without the rules for inputs."""
    _shape, faults = read_shape({"hits": f.integer(required=True)}, input=False)

    assert faults == []
    assert dump_value({"hits": 3}) == {"hits": 3}


def test_a_class_as_a_field():
    """A Schema class in a mapping is a nested object, delivered as its instance."""

    class Point(Schema):
        x: int

    shape, faults = read_shape({"at": Point, "any": object})

    assert faults == []
    assert Point(x=1) == shape.build({"at": {"x": 1.0}}).at
    assert shape.schema["properties"]["any"] == {}


def test_a_bound_beyond_all_floats():
    """The bound of an integer may exceed every float."""
    shape, faults = read_shape({"a": f.integer(max=10**400)})
    assert faults == []
    assert [shape.compiled.is_valid({"a": 10**400 + n}) for n in (0, 1)] == [True, False]


def test_an_example_of_an_item():
    """An example that does not fit the items is a fault of the field with the array."""
    _shape, faults = read_shape({"ids": f.array(f.integer(examples=[1, "x"]))})
    wrong = 'the example "x" breaks its own schema: expected integer, got string "x"'
    assert [(("ids",), wrong)] == [(fault.path, fault.text) for fault in faults]


def test_a_default_beside_a_wrong_pattern():
    """An invalid pattern is reported once, and the default is not checked against it."""
    _shape, (fault,) = read_shape({"id": f.string(pattern="(", default="x")})
    assert fault.path == ("id",)
    assert '"(" cannot be used' in fault.text


def test_a_field_is_shown_as_it_was_written():
    """The `repr` of a field is its source form, also in messages."""
    shown = [repr(field(min=1, title="Size")), repr(f.string("x", max_length=3))]
    assert shown == ["field(min=1, title='Size')", "f.string('x', max_length=3)"]
