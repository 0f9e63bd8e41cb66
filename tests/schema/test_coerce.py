"""Text that stands for other types is read where the schema allows no string."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import Limits
from noizu_mcp.schema import Schema, Shape, coerce_text, read_raw, read_shape

LIMITS = Limits()
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)


def raw(schema):
    shape, faults = read_raw(schema, input=False)
    assert faults == []
    return shape


def read(schema, value, limits=LIMITS):
    return coerce_text(raw(schema), value, limits)


def of(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
TREE = {
    "$ref": "#/$defs/T",
    "$defs": {"T": {"type": "object", "properties": {
        "n": INTEGER, "kids": {"type": "array", "items": {"$ref": "#/$defs/T"}}}}},
}  # fmt: skip
PETS = {
    "oneOf": [
        of(kind={"const": "cat"}, age=INTEGER, tags={"type": "array", "items": INTEGER}),
        of(kind={"enum": ["dog"]}, age=TEXT, tags={"type": "array", "items": TEXT}),
    ]
}


@pytest.mark.parametrize(
    ("schema", "sent", "meant"),
    [
        (INTEGER, "3", 3),
        (INTEGER, "-12", -12),
        (INTEGER, "3.0", 3.0),
        ({"type": "number"}, "0.5", 0.5),
        ({"type": "number"}, "-1e-3", -0.001),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "false", False),
        ({"type": ["integer", "null"]}, "3", 3),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": 2}, "2", 2),
        ({"const": True}, "true", True),
        ({"type": "array"}, ' [1, "2"]\n', [1, "2"]),
        ({"type": "array", "items": INTEGER}, '["1", 2]', [1, 2]),
        ({"type": "array", "prefixItems": [TEXT, INTEGER]}, ["1", "2", "3"], ["1", 2, "3"]),
        (of(a=INTEGER), '{"a": "1"}', {"a": 1}),
        (of(a=of(b=INTEGER)), {"a": '{"b": "1"}'}, {"a": {"b": 1}}),
        (of(a={"type": "array", "items": of(b=INTEGER)}), {"a": [{"b": "1"}]}, {"a": [{"b": 1}]}),
        ({"type": "object", "additionalProperties": INTEGER}, {"x": "1"}, {"x": 1}),
        ({"allOf": [of(a={}), of(a=INTEGER)]}, {"a": "1"}, {"a": 1}),
        ({"anyOf": [INTEGER, {"type": "array", "items": INTEGER}]}, '["1"]', [1]),
        (
            TREE,
            {"kids": [{"n": "1", "kids": '[{"n": "2"}]'}]},
            {"kids": [{"n": 1, "kids": [{"n": 2}]}]},
        ),
        (
            PETS,
            {"kind": "cat", "age": "3", "tags": '["1"]'},
            {"kind": "cat", "age": 3, "tags": [1]},
        ),
        (PETS, '{"kind": "cat", "age": "3", "tags": []}', {"kind": "cat", "age": 3, "tags": []}),
        ({"anyOf": [of(a=INTEGER), of(b=TEXT)]}, {"a": "1"}, {"a": 1}),
        ({"anyOf": [of(a=INTEGER), INTEGER]}, {"a": "1"}, {"a": 1}),
        ({"anyOf": [of(v={"const": 1}), of(v={"const": 2})]}, {"v": "2"}, {"v": 2}),
        ({"type": "array"}, "[0.5, 1]", [0.5, 1]),
    ],
)
def test_what_is_read(schema, sent, meant):
    """Numbers, booleans, and JSON text for objects and arrays, at any depth."""
    before = json.dumps(sent)
    made = read(schema, sent)

    assert made == meant
    assert repr(made) == repr(meant)
    assert raw(schema).compiled.is_valid(made)
    assert json.dumps(sent) == before


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (TEXT, "3"),
        ({}, "3"),
        (True, "3"),
        (False, "3"),
        ({"type": ["string", "integer"]}, "3"),
        ({"enum": ["3", 4]}, "4"),
        ({"anyOf": [INTEGER, TEXT]}, "3"),
        ({"anyOf": [INTEGER, {}]}, "3"),
        (of(a=TEXT), {"a": "[1]"}),
        ({"type": "object"}, {"a": "1"}),
        ({"type": "object", "patternProperties": {"a": INTEGER}}, {"a": "1"}),
        ({"type": "array", "items": True}, ["1"]),
        (INTEGER, "3 "),
        (INTEGER, "+3"),
        (INTEGER, "03"),
        (INTEGER, "1_000"),
        (INTEGER, "0x1"),
        (INTEGER, "٣"),
        (INTEGER, "three"),
        (INTEGER, ""),
        (INTEGER, "null"),
        (INTEGER, "9" * 5000),
        ({"type": "number"}, "1e9999"),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "Infinity"),
        ({"type": "boolean"}, "True"),
        ({"type": "boolean"}, "yes"),
        ({"type": "boolean"}, "1"),
        ({"type": "null"}, "null"),
        ({"type": "array"}, "1, 2"),
        ({"type": "array"}, "['a']"),
        ({"type": "array"}, "[NaN]"),
        ({"type": "array"}, "[1e9999]"),
        ({"type": "array"}, '["\\ud800"]'),
        ({"type": "array"}, "[" * 100_000),
        ({"type": "array"}, "[1] x"),
        ({"type": "array"}, "{}"),
        ({"type": "object"}, "[]"),
        (of(a=INTEGER), 3),
        (PETS, {"kind": "dog", "age": "3", "tags": ["1"]}),
        (PETS, {"kind": "cow", "age": "3", "tags": []}),
        (PETS, {"kind": ["cat"], "age": "3", "tags": []}),
        (PETS, {"age": "3"}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "3"),
        ({"anyOf": [of(**{f"a{n}": INTEGER}) for n in range(65)]}, {"a0": "1"}),
        ({"anyOf": [of(a={"anyOf": [INTEGER] * 9}), of(a={"anyOf": [INTEGER] * 60})]}, {"a": "1"}),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"t": TEXT},
             "properties": {"a": {"$ref": "#/definitions/t", "type": "integer"}}},
            {"a": "3"},
        ),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
             "items": [INTEGER]},
            ["3"],
        ),
    ],
)  # fmt: skip
def test_what_is_left_alone(schema, sent):
    """Text stays if a string is allowed, if it is ambiguous, or if it is not valid JSON."""
    # Some of these schemas are not valid for a tool.
    shape = Shape(schema=schema)

    assert coerce_text(shape, sent, LIMITS) is sent


def test_limits_of_messages_hold_for_json_text():
    """Depth and number of values are limited, over all texts together."""
    arrays = {"type": "object", "additionalProperties": {"type": "array"}}
    small = Limits(message_depth=4, message_values=10)

    assert read(arrays, {"a": "[[[1]]]"}, small) == {"a": [[[1]]]}
    for sent in (
        {"a": "[[[[[1]]]]]"},
        {"a": "[[[[1]]]]"},
        {"a": "[1,2,3,4,5,6,7,8,9,10,11]"},
    ):
        assert read(arrays, sent, small) is sent
    both = read(arrays, {"a": "[1,2,3,4,5,6]", "b": "[1,2,3,4,5,6]"}, small)
    assert both == {"a": [1, 2, 3, 4, 5, 6], "b": "[1,2,3,4,5,6]"}


def test_text_in_text_is_bounded():
    """JSON text within JSON text is not read deeper than a message may be."""
    value, schema = (
        "[]",
        {"$ref": "#/$defs/L", "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}}},
    )
    for _ in range(6):
        value = json.dumps([[[[value]]]])

    assert read(schema, value) != value
    assert read(schema, value, Limits(message_depth=12)) is value


def test_a_large_value_takes_one_walk():
    """A hundred thousand items are read, though a report of violations would stop earlier."""
    made = read({"type": "array", "items": INTEGER}, [str(n) for n in range(100_000)])

    assert made == list(range(100_000))


def test_what_a_client_chooses_is_not_remembered_for_ever():
    """The cache of sets of alternatives is bounded."""
    branches = [
        {"type": "object", "properties": {f"k{n}": {"const": "x"}, "deep": of(a=INTEGER)}}
        for n in range(12)
    ]
    shape = raw({"anyOf": branches})
    for mask in range(1500):
        sent = {f"k{n}": "y" for n in range(12) if mask & 1 << n} | {"deep": {"a": "1"}}
        assert coerce_text(shape, sent, LIMITS)["deep"] == {"a": 1}


def test_forms_say_if_they_coerce():
    """Typed and data forms do, raw schemas do not."""

    class Input(Schema):
        a: int

    assert read_shape(Input)[0].coerces
    assert read_shape({"a": int})[0].coerces
    assert not read_shape({"type": "object"})[0].coerces


# Laws

SCALARS = st.sampled_from(
    [INTEGER, TEXT, {"type": "number"}, {"type": "boolean"}, {"enum": [1, 2]}]
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: (
        inner.map(lambda item: {"type": "array", "items": item})
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda p: of(**p))
        | st.lists(inner, min_size=2, max_size=3).map(lambda each: {"anyOf": each})
    ),
    max_leaves=8,
)  # fmt: skip


def values(schema):
    if "anyOf" in schema:
        return st.one_of(map(values, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=3)
    if kind == "object":
        return st.fixed_dictionaries({n: values(s) for n, s in schema["properties"].items()})
    scalars = {"integer": st.integers(), "number": NUMBERS, "boolean": st.booleans()}
    text = st.sampled_from(["3", "0.5", "true", "[1]", '{"a": "1"}', "", "x"])
    return scalars.get(kind, text)


def as_text(schema, value, draw):
    """Write parts of a value as text where the schema allows no string."""
    if schema.get("type") == "array":
        value = [as_text(schema["items"], each, draw) for each in value]
    elif schema.get("type") == "object":
        value = {n: as_text(schema["properties"][n], each, draw) for n, each in value.items()}
    allowed = schema.get("type") == "string" or "anyOf" in schema
    return value if allowed or not draw(st.booleans()) else json.dumps(value)


@st.composite
def pairs(draw):
    schema = draw(SCHEMAS)
    return schema, draw(values(schema))


@given(pairs())
def test_a_valid_value_is_never_changed(pair):
    """It is returned unchanged."""
    schema, value = pair

    assert raw(schema).compiled.is_valid(value)
    assert read(schema, value) is value


@given(pairs(), st.data())
def test_text_is_read_as_what_was_written(pair, data):
    """Text is read only where the schema allows no string; a second pass changes nothing."""
    schema, value = pair
    sent = as_text(schema, value, data.draw)
    made = read(schema, sent)

    assert raw(schema).compiled.is_valid(made)
    assert made == value
    assert read(schema, made) is made


JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(["3", "true", "[]", "x", "{}", '["1"]']),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(SCHEMAS, JSON)
def test_any_value_is_read_once(schema, value):
    """Coercion ends, does not modify its input, and a second pass changes nothing."""
    before = json.dumps(value)
    made = read(schema, value)

    assert read(schema, made) is made
    assert json.dumps(value) == before
