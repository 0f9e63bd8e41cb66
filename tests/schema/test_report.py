"""Violations and their lines, which a model reads to correct itself."""

import json
import math
from collections import OrderedDict
from http import HTTPStatus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.schema import Violation, compile_schema, describe, find_not_json

LINE = {"properties": {"kind": {"const": "line"}, "x": {"type": "number"}}, "required": ["x"]}
DOT = {"properties": {"kind": {"const": "dot"}, "y": {"type": "number"}}, "required": ["y"]}
SHAPES = {"oneOf": [{"type": "object", **LINE}, {"type": "object", **DOT}]}

# Each schema and value, with the lines that both engines must give.
REPORTS = [
    ({"type": "integer"}, "3", ['(root): expected integer, got string "3"']),
    ({"type": ["string", "null"]}, [1], ["(root): expected string or null, got array [1]"]),
    ({"type": "integer"}, 1.5, ["(root): expected integer, got number 1.5"]),
    ({"enum": [1]}, b"", ["(root): must be one of [1], got <bytes>"]),
    ({"type": "string"}, None, ["(root): expected string, got null"]),
    ({"type": "number"}, math.nan, ["(root): expected number, got NaN, which JSON cannot express"]),
    (
        {"enum": ["CZ", "US", "DE"]},
        "cz",
        ['(root): must be one of ["CZ", "US", "DE"], got "cz", did you mean "CZ"?'],
    ),
    ({"enum": [1, "one"]}, 2, ['(root): must be one of [1, "one"], got 2']),
    (
        {"enum": list(range(20))},
        99,
        ["(root): must be one of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … 8 more], got 99"],
    ),
    ({"const": {"a": [1]}}, 2, ['(root): must be {"a": [1]}, got 2']),
    (
        {"items": {"enum": ["on", "off"]}},
        [1, "on", 2],
        ['/0: must be one of ["on", "off"], got 1', '/2: must be one of ["on", "off"], got 2'],
    ),
    ({"minimum": 1}, 0, ["(root): 0 is less than the minimum of 1"]),
    ({"maximum": 14}, 15, ["(root): 15 is greater than the maximum of 14"]),
    ({"exclusiveMinimum": 1}, 1, ["(root): 1 must be greater than 1"]),
    ({"exclusiveMaximum": 1}, 1.5, ["(root): 1.5 must be less than 1"]),
    ({"multipleOf": 0.5}, 0.7, ["(root): 0.7 is not a multiple of 0.5"]),
    ({"minLength": 2}, "a", ["(root): has 1 character, but needs at least 2"]),
    ({"maxLength": 2}, "abc", ["(root): has 3 characters, but may have at most 2"]),
    ({"pattern": "^[0-9]{5}$"}, "11", ['(root): "11" does not match "^[0-9]{5}$"']),
    ({"minItems": 2}, [1], ["(root): has 1 item, but needs at least 2"]),
    ({"maxItems": 0}, [1, 2], ["(root): has 2 items, but may have at most 0"]),
    ({"uniqueItems": True}, [1, 2, 1.0], ["(root): items 0 and 2 are equal, but all must differ"]),
    ({"minProperties": 1}, {}, ["(root): has 0 properties, but needs at least 1"]),
    ({"maxProperties": 0}, {"a": 1}, ["(root): has 1 property, but may have at most 0"]),
    (
        {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
        ["a", 1],
        ['/0: expected integer, got string "a"', "/1: expected string, got integer 1"],
    ),
    ({"items": False}, [1], ["/0: nothing is allowed here, got 1"]),
    (
        {"items": {"properties": {"sku": {}}, "required": ["sku"]}},
        [{}, {"sku": 1}, {"skuu": 1}],
        ["/0/sku: required, but missing", '/2/sku: required, but missing; was it sent as "skuu"?'],
    ),
    (
        {"properties": {"customer": {}}, "additionalProperties": False},
        {"custommer": 1, "zzz": 2},
        [
            '(root): unknown property "custommer", did you mean "customer"?',
            '(root): unknown property "zzz", known are ["customer"]',
        ],
    ),
    ({"additionalProperties": False}, {"a": 1}, ['(root): unknown property "a"']),
    (
        {"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": {"type": "null"}},
        {"a/b": 1, "c": 2},
        ["/a~1b: expected string, got integer 1", "/c: expected null, got integer 2"],
    ),
    (
        {"propertyNames": {"maxLength": 2}},
        {"abc": 1, "ab": 2},
        ['(root): property name "abc" is not allowed: has 3 characters, but may have at most 2'],
    ),
    (
        {"dependentRequired": {"a": ["b"], "c": ["d"]}},
        {"a": 1},
        ['/b: required when "a" is given, but missing'],
    ),
    (
        {"dependentSchemas": {"a": {"required": ["b"]}, "c": False}},
        {"a": 1},
        ["/b: required, but missing"],
    ),
    ({"not": {"type": "string"}}, "a", ['(root): "a" is not allowed here']),
    (
        {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}},
        "a",
        ["(root): has 1 character, but needs at least 2"],
    ),
    (
        {"if": {"type": "string"}, "else": {"minimum": 2}},
        1,
        ["(root): 1 is less than the minimum of 2"],
    ),
    (
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}},
        1,
        ["(root): expected null, got integer 1"],
    ),
    (
        {"allOf": [{"minimum": 2}, {"minimum": 2}, {"minimum": 3}]},
        1,
        ["(root): 1 is less than the minimum of 2", "(root): 1 is less than the minimum of 3"],
    ),
    # Alternatives that differ only by type or by constant are merged.
    (
        {"anyOf": [{"type": "string"}, {"type": ["null", "boolean"]}]},
        1,
        ["(root): expected string or null or boolean, got integer 1"],
    ),
    (
        {"oneOf": [{"const": "on"}, {"enum": ["off", "auto"]}]},
        "of",
        ['(root): must be one of ["on", "off", "auto"], got "of", did you mean "on"?'],
    ),
    # The type decides, then the constant that identifies the alternative, then the number of
    # faults.
    (
        {"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]},
        "a",
        ["(root): has 1 character, but needs at least 2"],
    ),
    (SHAPES, {"kind": "line", "x": "no"}, ['/x: expected number, got string "no"']),
    (SHAPES, 3, ["(root): expected object, got integer 3"]),
    (
        {"anyOf": [{"required": ["a", "b"]}, {"required": ["c"]}]},
        {},
        ["/c: required, but missing"],
    ),
    (
        SHAPES,
        {"kind": "circle"},
        ['/kind: must be one of ["line", "dot"], got "circle"'],
    ),
    (
        {"anyOf": [{"minimum": 5}, {"multipleOf": 2}]},
        1,
        ["(root): matches none of 2 alternatives; closest: 1 is less than the minimum of 5"],
    ),
    ({"anyOf": [{"minimum": 5}]}, 1, ["(root): 1 is less than the minimum of 5"]),
    (
        {"oneOf": [{"minimum": 1}, {"minimum": 2}, {"minimum": 9}]},
        3,
        ["(root): matches 2 alternatives, but exactly one is allowed"],
    ),
]


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize(("schema", "value", "lines"), REPORTS)
def test_lines(engine, schema, value, lines):
    """Each fault has its line, the same one on both engines."""
    assert lines == describe(compile_schema(schema, engine).violations(value))


# Schemas that only the native engine serves are reported in the same words.
NATIVE_REPORTS = [
    (
        {"contains": {"type": "string"}},
        [1],
        ["(root): no item is of the kind that the list must contain"],
    ),
    (
        {"contains": {"const": 1}, "minContains": 2},
        [1],
        ["(root): 1 items are of the kind that the list must contain 2 of"],
    ),
    (
        {"contains": {"const": 1}, "maxContains": 1},
        [1, 1],
        ["(root): 2 items are of a kind of which the list may contain 1"],
    ),
    (
        {"properties": {"name": {}}},
        {"nam": 1},
        ['(root): unknown property "nam", did you mean "name"?'],
    ),
    ({}, {"a": 1}, ['(root): unknown property "a"']),
    (
        {"properties": {"a": {"type": "string"}}},
        {"a": 1},
        ["/a: expected string, got integer 1"],
    ),
    ({"required": ["a"]}, {}, ["/a: required, but missing"]),
    ({"required": ["a"], "type": "object"}, [], ["(root): expected object, got array []"]),
    (
        {"allOf": [{"properties": {"a": {}}, "additionalProperties": False}]},
        {"b": 1},
        ['(root): unknown property "b", known are ["a"]'],
    ),
    (
        {"allOf": [{"additionalProperties": {"minimum": 2}}]},
        {"b": 1},
        ["/b: 1 is less than the minimum of 2"],
    ),
    ({"properties": {"a": False}}, {"a": 1}, ["/a: nothing is allowed here, got 1"]),
    (
        {"properties": {"a": {"uniqueItems": True}}},
        {"a": [1, 2, 1]},
        ["/a: items 0 and 2 are equal, but all must differ"],
    ),
    (
        {"properties": {"a": {"contains": {"const": 1}}}},
        {"a": []},
        ["/a: no item is of the kind that the list must contain"],
    ),
    (
        {"propertyNames": {"maxLength": 1}, "additionalProperties": True},
        {"ab": 1},
        ['(root): property name "ab" is not allowed: has 2 characters, but may have at most 1'],
    ),
    (
        {"oneOf": [{"properties": {"a": {}}}, {"properties": {"a": {}}}]},
        {"a": 1},
        ["(root): matches 2 alternatives, but exactly one is allowed"],
    ),
    ({"anyOf": [{"required": ["a"]}, {"type": "string"}]}, {}, ["/a: required, but missing"]),
    (
        {"properties": {"a": {"additionalProperties": False}}},
        {"a": {"b": 1}},
        ['/a: unknown property "b"'],
    ),
    (
        {"items": {"unevaluatedItems": False}},
        [[1, 2]],
        ["/0/0: nothing is allowed here, got 1", "/0/1: nothing is allowed here, got 2"],
    ),
    (
        {"items": {"prefixItems": [True], "contains": {"const": 2}, "unevaluatedItems": False}},
        [[1, 2, 3]],
        ["/0/2: nothing is allowed here, got 3"],
    ),
    (
        {"items": {"allOf": [{"items": True}], "unevaluatedItems": False}, "maxItems": 1},
        [[1], [2]],
        ["(root): has 2 items, but may have at most 1"],
    ),
    (
        {
            "properties": {"kind": {}},
            "if": {"properties": {"kind": {"const": "dot"}}},
            "then": {"properties": {"x": {}}},
            "else": {"properties": {"size": {}}},
            "dependentSchemas": {"note": {"properties": {"note": {}}}},
            "anyOf": [
                {"properties": {"a": {}}, "required": ["a"]},
                {"patternProperties": {"^b": {}}},
            ],
        },
        {"kind": "dot", "x": 1, "note": "", "bb": 1, "sise": 1},
        ['(root): unknown property "sise", known are ["kind", "x", "note"]'],
    ),
    (
        {"anyOf": [{"required": ["a"], "properties": {"b": {}}}], "properties": {"c": {}}},
        {"b": 1, "c": 1},
        ["/a: required, but missing"],
    ),
    (
        {"properties": {"a": {"dependencies": {"b": ["c"], "d": {"required": ["e"]}, "x": False}}}},
        {"a": {"b": 1, "d": 1}},
        ['/a/c: required when "b" is given, but missing', "/a/e: required, but missing"],
    ),
    (
        {"unevaluatedProperties": {"type": "string"}, "properties": {"a": {}}},
        {"a": 1, "b": 1},
        ["/b: expected string, got integer 1"],
    ),
    (
        {"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
        {"a": {"type": "strin"}},
        ['/a: {"type": "strin"} does not match "https://json-schema.org/draft/2020-12/schema"'],
    ),
    (
        {"additionalProperties": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
        {"a": {}, "b": 1},
        ['/b: 1 does not match "https://json-schema.org/draft/2020-12/schema"'],
    ),
    (
        # The reference is relative, and no known document has its target.
        {
            "$id": "https://json-schema.org/draft/2020-12/own",
            "properties": {"a": {"$ref": "schema"}},
        },
        {"a": 5},
        ['/a: 5 does not match "schema"'],
    ),
    (
        # The engine treats both as one document; a part of it cannot be evaluated alone.
        {
            "$id": "http://example.com/a",
            "$defs": {"text": {"type": "string"}},
            "properties": {"a": {"$ref": "HTTP://EXAMPLE.COM/a#/$defs/text"}},
        },
        {"a": 5},
        ["(root): does not match the schema"],
    ),
]


@pytest.mark.parametrize(("schema", "value", "lines"), NATIVE_REPORTS)
def test_native_lines(schema, value, lines):
    """Rejections that only the native engine can evaluate are reported in the same words."""
    found = describe(compile_schema({"unevaluatedProperties": False, **schema}).violations(value))
    assert lines == found


METASCHEMA = "https://json-schema.org/draft/2020-12/schema"
# Each part of a schema that may evaluate names and items, with the names that are left.
LEFT_OVER = [
    (True, {"b": 1}, ['(root): unknown property "b"']),
    (
        False,
        {"b": 1},
        ['(root): nothing is allowed here, got {"b": 1}', '(root): unknown property "b"'],
    ),
    ({"$ref": "#/$defs/a"}, {"a": 1, "b": 1}, ['(root): unknown property "b", known are ["a"]']),
    (
        {"if": {"required": ["a"]}, "then": True, "else": {"properties": {"e": {}}}},
        {"b": 1, "e": 1},
        ['(root): unknown property "b", known are ["e"]'],
    ),
    (
        {"if": {"required": ["b"]}, "else": {"properties": {"e": {}}}},
        {"b": 1, "e": 1},
        ['(root): unknown property "b"', '(root): unknown property "e"'],
    ),
    (
        {"if": {"properties": {"a": {}}}, "else": False},
        {"a": 1, "b": 1},
        ['(root): unknown property "b", known are ["a"]'],
    ),
    (
        {"dependentSchemas": {"a": {"properties": {"b": {}}}}},
        {"b": 1},
        ['(root): unknown property "b"'],
    ),
    (
        {"dependentSchemas": {"a": {"properties": {"a": {}}}}},
        {"a": 1, "b": 1},
        ['(root): unknown property "b", known are ["a"]'],
    ),
    # The engine uses a metaschema, and does not report which names it knows.
    ({"$ref": METASCHEMA}, {"type": "null", "b": 1}, ["(root): does not match the schema"]),
    (
        {"$ref": METASCHEMA, "properties": {"a": {"type": "null"}}},
        {"type": "null", "a": 1, "b": 1},
        ["/a: expected null, got integer 1"],
    ),
    (
        {"$ref": METASCHEMA},
        {"type": "no", "b": 1},
        [f'(root): {{"type": "no", "b": 1}} does not match "{METASCHEMA}"'],
    ),
    (
        {"allOf": [{"$ref": METASCHEMA}], "prefixItems": [True]},
        [1, 2],
        [f'(root): [1, 2] does not match "{METASCHEMA}"'],
    ),
    ({"contains": {"const": 1}}, [1, 2], ["/1: nothing is allowed here, got 2"]),
]


@pytest.mark.parametrize(("part", "value", "lines"), LEFT_OVER)
def test_names_and_items_that_nothing_judges(part, value, lines):
    """Names and items that no applicable part of a schema evaluates are reported, and no others."""
    schema = {
        "type": ["object", "array"],
        "allOf": [part],
        "unevaluatedProperties": False,
        "unevaluatedItems": False,
        "$defs": {"a": {"properties": {"a": {}}}},
    }
    assert lines == describe(compile_schema(schema, "native").violations(value))


def test_contains_asks_nothing_of_a_value_that_is_no_list():
    """A number is not searched for an item, and its other faults are reported."""
    compiled = compile_schema({"contains": {"const": 1}, "minimum": 2}, "native")
    assert describe(compiled.violations(1)) == ["(root): 1 is less than the minimum of 2"]


def test_a_dynamic_reference_to_a_plain_anchor():
    """A `$dynamicRef` to an anchor that is not dynamic is the same as `$ref`."""
    schema = {"$dynamicRef": "#a", "$defs": {"d": {"$anchor": "a", "type": "null"}}}
    lines = ["(root): expected null, got integer 1"]
    assert lines == describe(compile_schema(schema, "native").violations(1))


VOCABULARY = "https://json-schema.org/draft/2020-12/vocab"


@pytest.mark.parametrize(
    ("dialect", "lines"),
    [
        (METASCHEMA, ["/1: expected string, got integer 1"]),
        (
            "urn:formats",
            ['/0: "no" is not in the format "ipv4"', "/1: expected string, got integer 1"],
        ),
    ],
)
def test_a_dialect_that_asserts_formats(dialect, lines):
    """A format is reported only if the author's own dialect asserts formats."""
    used = ("core", "applicator", "validation", "format-assertion")
    metaschema = {
        "$id": "urn:formats",
        "$schema": METASCHEMA,
        "$vocabulary": {f"{VOCABULARY}/{name}": True for name in used},
    }
    schema = {"$schema": dialect, "items": {"type": "string", "format": "ipv4"}}
    compiled = compile_schema(schema, "native", {"urn:formats": metaschema})
    assert lines == describe(compiled.violations(["no", 1, "127.0.0.1"]))


TREE = {"$recursiveAnchor": True, "properties": {"children": {"items": {"$recursiveRef": "#"}}}}

# Older drafts have other keywords for some things; the messages stay.
OLDER_REPORTS = [
    (
        "http://json-schema.org/draft-07/schema#",
        {"items": [{"type": "string"}], "additionalItems": {"type": "null"}},
        ["a", 1, None],
        ["/1: expected null, got integer 1"],
    ),
    (
        "http://json-schema.org/draft-07/schema#",
        {"$ref": "#/definitions/a", "type": "null", "definitions": {"a": {"minimum": 2}}},
        1,
        ["(root): 1 is less than the minimum of 2"],
    ),
    (
        "http://json-schema.org/draft-07/schema#",
        {"items": {"$ref": "#a"}, "definitions": {"a": {"$id": "#a", "type": "null"}}},
        [1],
        ["/0: expected null, got integer 1"],
    ),
    (
        "http://json-schema.org/draft-07/schema#",
        {"prefixItems": [{"type": "null"}], "dependencies": {"a": ["b"]}, "maxItems": 0},
        [1],
        ["(root): has 1 item, but may have at most 0"],
    ),
    (
        "http://json-schema.org/draft-04/schema#",
        {"items": {"$ref": "urn:a"}, "definitions": {"a": {"id": "urn:a", "type": "null"}}},
        [1],
        ["/0: expected null, got integer 1"],
    ),
    (
        "http://json-schema.org/draft-04/schema#",
        {"minimum": 1, "exclusiveMinimum": True},
        0,
        ["(root): 0 is less than the minimum of 1"],
    ),
    (
        "http://json-schema.org/draft-04/schema#",
        {"items": {"minimum": 1, "exclusiveMinimum": True, "maximum": 2, "exclusiveMaximum": True}},
        [1, 1.5, 2.0],
        ["/0: 1 must be greater than 1", "/2: 2.0 must be less than 2"],
    ),
    (
        "http://json-schema.org/draft-04/schema#",
        {"maximum": 2, "exclusiveMaximum": False},
        3,
        ["(root): 3 is greater than the maximum of 2"],
    ),
    (
        "http://json-schema.org/draft-07/schema#",
        {
            "$id": "urn:root",
            "definitions": {
                "a": {"$id": "urn:a", "$ref": "#/definitions/b"},
                "b": {"type": "null"},
            },
            "items": {"$ref": "#/definitions/a"},
        },
        [1],
        ["/0: expected null, got integer 1"],
    ),
    (
        "https://json-schema.org/draft/2019-09/schema",
        {"$id": "urn:strict", **TREE, "required": ["name"]},
        {"name": 1, "children": [{"name": 1}, {}]},
        ["/children/1/name: required, but missing"],
    ),
    (
        "https://json-schema.org/draft/2019-09/schema",
        {"contains": {"const": 1}, "items": [True], "unevaluatedItems": False},
        [1, 2],
        ["/1: nothing is allowed here, got 2"],
    ),
]


@pytest.mark.parametrize(("dialect", "schema", "value", "lines"), OLDER_REPORTS)
def test_lines_of_older_drafts(dialect, schema, value, lines):
    """A schema of an older draft is explained by its own rules."""
    compiled = compile_schema({"$schema": dialect, **schema})
    assert lines == describe(compiled.violations(value))


BOTH_LEAD_BACK = {
    "anyOf": [
        {"properties": {"op": {"const": name}, "args": {"items": {"$ref": "#"}}}}
        for name in ("and", "or", "not")
    ],
    "type": "object",
    "$defs": {"unused": {"unevaluatedItems": False}},
}


@pytest.mark.parametrize("levels", [3, 60])
def test_a_deep_value_is_explained(levels):
    """Recursive alternatives are distinguished at every level, however deep the fault is."""
    value = 1
    for _ in range(levels):
        value = {"op": "and", "args": [value]}
    (line,) = describe(compile_schema(BOTH_LEAD_BACK).violations(value))
    assert line == f"{'/args/0' * levels}: expected object, got integer 1"


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_large_value_is_explained(size):
    """Valid parts of any size do not affect the report of a missing name."""
    schema = {"required": [f"name{n}" for n in range(200)], "unevaluatedProperties": False}
    found = compile_schema({**schema, "properties": {"a": {}}}).violations({"a": [0] * size})
    assert len(found) == 100


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({1: 2}, '(root): unknown property 1, known are ["a"]'),
        ({"a": ["\ud800", "b"]}, '/a/0: "\\ud800" has half of a surrogate pair'),
    ],
)
def test_what_the_engine_cannot_read(value, line):
    """If the engine fails instead of a verdict, the reason is searched for."""
    schema = {"unevaluatedProperties": False, "properties": {"a": {"uniqueItems": True}}}
    assert describe(compile_schema(schema).violations(value)) == [line]


def test_names_that_another_document_declares():
    """A reference into another document is followed, and names are suggested from there."""
    schema = {
        "$id": "urn:a",
        "$ref": "urn:b#/$defs/c",
    }
    other = {"$defs": {"c": {"properties": {"ab": {}}, "additionalProperties": False}}}
    compiled = compile_schema(schema, documents={"urn:b": other})
    assert describe(compiled.violations({"ac": 1})) == [
        '(root): unknown property "ac", did you mean "ab"?'
    ]


EVERY_KEYWORD = {
    "minimum": 1,
    "multipleOf": 2,
    "minLength": 1,
    "pattern": "a",
    "minItems": 1,
    "prefixItems": [False],
    "items": False,
    "uniqueItems": True,
    "properties": {"a": False},
    "required": ["a"],
    "additionalProperties": False,
    "propertyNames": False,
    "minProperties": 1,
    "dependentRequired": {"a": ["b"]},
    "dependentSchemas": {"a": False},
}


@pytest.mark.parametrize("engine", ["native", "python"])
def test_keywords_of_other_types_ask_nothing(engine):
    """A keyword for numbers does not apply to strings, and so on for every type."""
    compiled = compile_schema({**EVERY_KEYWORD, "not": {"type": "null"}}, engine)
    assert describe(compiled.violations(None)) == ["(root): null is not allowed here"]
    assert compiled.is_valid(True)
    assert {found.keyword for found in compiled.violations(1)} == {"multipleOf"}


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_violation_says_only_what_is_wrong(engine):
    """Satisfied keywords are not mentioned beside a violated one."""
    schema = {
        "properties": {
            "a": {"enum": [True, 1]},
            "b": {"const": 1},
            "c": {"pattern": "^c"},
            "l": {"prefixItems": [True], "uniqueItems": True},
        },
        "oneOf": [True, False],
        "anyOf": [False, True],
        "if": False,
        "then": False,
        "dependentRequired": {"a": ["b"], "z": ["a"]},
        "required": ["a", "d"],
    }
    found = compile_schema(schema, engine).violations({"a": 1, "b": 1, "c": "cc", "l": [1]})
    assert describe(found) == ["/d: required, but missing"]


def test_twenty_lines():
    """More than twenty faults are twenty lines and a count; equal lines are merged."""
    found = compile_schema({"items": {"type": "string"}}).violations(list(range(49)))
    lines = describe([*found, *found])
    assert (len(lines), lines[0], lines[-1]) == (
        21,
        "/0: expected string, got integer 0",
        "… and 29 more",
    )
    assert len(describe(found[:20])) == 20


#: Subschemas that an explanation looks at, for one place of the value each.
MAX_STEPS = 50_000
UNKNOWN = {"type": "object", "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"type": "string"}}, list(range(101))),
        (UNKNOWN, dict.fromkeys(map(str, range(101)))),
        ({"required": [str(name) for name in range(101)]}, {}),
        ({"uniqueItems": True}, [1] * 102),
        ({"propertyNames": {"maxLength": 0}}, dict.fromkeys(map(str, range(101)))),
        ({"unevaluatedProperties": False}, dict.fromkeys(map(str, range(101)))),
        ({"properties": {"a": {"items": False}}, "unevaluatedItems": True}, {"a": [1] * 101}),
    ],
)
def test_a_hundred_violations(schema, value):
    """At most a hundred are listed, and the result says that there are more."""
    found = compile_schema(schema, "native").violations(value)
    assert len(found) == 100
    assert describe(found)[-1] == "… and at least 80 more"


def test_an_equal_violation_takes_no_room():
    """Equal violations from several parts of a schema are merged, and others still follow."""
    schema = {"allOf": [{"type": "string"}] * 150 + [{"const": 2}]}
    found = compile_schema(schema).violations(1)
    assert [violation.keyword for violation in found] == ["type", "const"]


class CountedName(str):
    """A name that counts how often it is put into a message."""

    looks = 0
    __slots__ = ()

    def __len__(self):
        CountedName.looks += 1
        return super().__len__()


def test_alternatives_are_explained_in_bounded_time(monkeypatch):
    """Names and messages count as work, also for faults that are not reported in the end."""
    names = dict.fromkeys((CountedName(f"n{n}") for n in range(500)), 1)
    monkeypatch.setattr(CountedName, "looks", 0)
    assert len(compile_schema(UNKNOWN, "python").violations(names)) == 100
    looks, rest = divmod(CountedName.looks, 101)
    assert (looks > 0, rest) == (True, 0)
    CountedName.looks = 0
    schema = {"items": {"anyOf": [UNKNOWN, {**UNKNOWN, "minProperties": 1}]}}
    assert compile_schema(schema, "python").violations([names] * 500)
    assert 101 < CountedName.looks / looks <= MAX_STEPS / 10


def test_names_of_any_size_take_little_room():
    """A name in a path comes from the value; it is shortened in the output."""
    schema = {"$ref": "#/$defs/d", "$defs": {"d": {"additionalProperties": {"$ref": "#/$defs/d"}}}}
    schema["$defs"]["d"]["type"] = "object"
    value = 1
    for _ in range(20):
        value = {"n" * 10_000: value}
    (found,) = compile_schema(schema).violations(value)
    assert len(found.path) == 20
    assert len(found.to_wire()["path"]) == len(found.pointer) == 1000
    assert describe([found])[0].startswith(f"/{'n' * 199}…/nnn")
    (found,) = compile_schema({**schema, "anyOf": [{"$ref": "#/$defs/d"}] * 2}).violations(value)[
        1:
    ]
    assert len(found.message) < 1200


def test_to_wire():
    """A violation on the wire is small JSON without empty keys."""
    (found,) = compile_schema({"properties": {"a": {"enum": ["one", "two"]}}}).violations(
        {"a": "tow"}
    )
    assert found.to_wire() == {
        "path": "/a",
        "keyword": "enum",
        "message": 'must be one of ["one", "two"], got "tow", did you mean "two"?',
        "expected": ["one", "two"],
        "got": "tow",
        "nearest": "two",
    }
    (found,) = compile_schema({"maxItems": 1}).violations(list(range(99)))
    assert found.to_wire()["got"] == "[0, 1, 2, 3, 4, 5, 6, 7, …]"
    for value, shown in ((math.nan, "NaN"), ({"a": {1}}, '{"a": <set>}'), ("\ud800", '"\\ud800"')):
        assert Violation((), "k", "m", got=value).to_wire()["got"] == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (10**1000, "<integer of 3322 bits>"),
        (-(10**50), "-<integer of 167 bits>"),
        (True, "true"),
        (None, "null"),
        (math.inf, "Infinity"),
        ("\ud800", '"\\ud800"'),
        ("x" * 1000, '"' + "x" * 58 + "…"),
        ({"a": {1: object}}, '{"a": {1: <type>}}'),
        ([[[[[[1]]]]]], "[[[[[…]]]]]"),
        ((), "[]"),
    ],
)
def test_show(value, shown):
    """A value of any kind is shown in one short line."""
    (violation,) = compile_schema({"const": "c"}).violations(value)
    assert violation.message == f'must be "c", got {shown}'


def test_show_an_integer_that_python_does_not_print():
    """An integer with more digits than Python converts is described by its size."""
    (violation,) = compile_schema({"const": "c"}).violations(10**5000)
    assert violation.message == 'must be "c", got <integer of 16610 bits>'


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(anything, anything, st.lists(st.text(st.characters()) | st.integers(), max_size=3))
def test_to_wire_is_always_json(expected, got, path):
    """A violation with any content is sent as JSON in UTF-8, with shortened values."""
    wire = Violation(tuple(path), "k", "m", expected, got).to_wire()
    json.dumps(wire, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize(
    ("value", "path", "text"),
    [
        ({"a": ["\ud800"]}, ("a", 0), '"\\ud800" has half of a surrogate pair'),
        ({"a": {1: 2}}, ("a",), "1 cannot be the name of a property"),
        ([{"\ud800": 2}], (0,), '"\\ud800" cannot be the name of a property'),
        ((1, math.nan), (1,), "JSON cannot express NaN"),
        (b"", (), "JSON cannot express <bytes>"),
    ],
)
def test_what_json_cannot_express(value, path, text):
    """A value that JSON cannot express is found with its path."""
    found = find_not_json(value)
    assert found == (path, text)


def test_what_json_can_express():
    """For JSON values the search ends without a result."""
    assert find_not_json({"a": [1, "b", None, 1.5, True]}) is None
    endless = []
    endless.append(endless)
    assert find_not_json(endless) is None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "null"),
        (True, "boolean true"),
        (1, "integer 1"),
        (HTTPStatus.OK, "integer 200"),
        (1.5, "number 1.5"),
        ({}, "object {}"),
        (OrderedDict(), "object {}"),
        ([], "array []"),
        ((), "array []"),
        (b"", "<bytes>, which JSON cannot express"),
        (math.nan, "NaN, which JSON cannot express"),
    ],
)
def test_type_of_everything(value, told):
    """Each JSON type has its name; other values are not JSON."""
    (violation,) = compile_schema({"type": "string"}).violations(value)
    assert violation.message == f"expected string, got {told}"


@pytest.mark.slow
def test_a_huge_value_is_explained_in_bounded_time():
    """The report stops after a number of steps, with the faults found so far."""
    schema = {"items": {"allOf": [{"type": "integer"}] * 9}}
    value = [*[1] * (MAX_STEPS // 5), "x"]
    compiled = compile_schema(schema)
    assert [found.message for found in compiled.violations(value)] == ["does not match the schema"]
    early = compiled.violations(["x", *value])
    assert [found.message for found in early] == ['expected integer, got string "x"']


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, f'/{MAX_STEPS // 5}/i: expected integer, got string "x"'),
        # Also if the schema is recursive.
        (
            {"additionalProperties": {"$ref": "#"}},
            f'/{MAX_STEPS // 5}/i: expected integer, got string "x"',
        ),
    ],
)
def test_what_fits_takes_no_steps(more, line):
    """The report skips the parts that fit: one fault is found among any number of them."""
    names = "abcdefghi"
    item = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    value = [*[dict.fromkeys(names, 1)] * (MAX_STEPS // 5), {"i": "x"}]
    compiled = compile_schema({"items": item, **more}, "native")
    assert describe(compiled.violations(value)) == [line]


@pytest.mark.parametrize(
    ("part", "more"),
    [
        ({"items": {"$ref": "#/x-it"}, "x-it": True}, {"x-it": {"type": "string"}}),
        ({"$ref": "#/x-part"}, {"x-part": {"items": {"type": "string"}, "title": 5}}),
        ({"items": {"type": "string"}, "$schema": "http://json-schema.org/draft-04/schema#"}, {}),
    ],
)
def test_parts_that_the_engine_cannot_judge_alone(part, more):
    """Parts with a reference, an irrelevant mistake or a dialect are walked."""
    compiled = compile_schema({"properties": {"list": part}, **more}, "native")
    assert describe(compiled.violations({"list": [1]})) == [
        "/list/0: expected string, got integer 1"
    ]


def test_a_schema_that_leads_back_to_itself():
    """A reference to itself demands nothing, so the rest is explained."""
    schema = {"$ref": "#/$defs/a", "minimum": 2, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}
    assert describe(compile_schema(schema, "native").violations(1)) == [
        "(root): 1 is less than the minimum of 2"
    ]


def test_a_null_of_the_wrong_type_is_reported() -> None:
    """A null of the wrong type is in `got`; for a missing name there is no `got`."""
    compiled = compile_schema(
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}
    )
    wrong = {each.keyword: each.to_wire() for each in compiled.violations({"a": None})}

    assert wrong["type"]["got"] is None
    assert "got" not in wrong["required"]
