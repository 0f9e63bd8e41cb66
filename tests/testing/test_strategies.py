"""Strategies for JSON Schemas: valid values, near misses, limits, and small examples."""

import math
from collections import Counter

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import SchemaError
from noizu_mcp.testing import Unsatisfiable, Violation, from_schema, violating

from .drawing import draw, least

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name", "children"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}
CHAIN = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
    "required": ["next"],
}
SHAPE = {
    "oneOf": [
        {
            "type": "object",
            "properties": {
                "kind": {"const": kind},
                side: {"type": "number", "exclusiveMinimum": 0},
            },
            "required": ["kind", side],
        }
        for kind, side in (("circle", "radius"), ("square", "side"), ("line", "length"))
    ]
}
DYNAMIC = {
    "$id": "https://example.com/strings",
    "$ref": "list",
    "$defs": {
        "item": {"$dynamicAnchor": "item", "type": "string"},
        "list": {
            "$id": "list",
            "type": "array",
            "minItems": 1,
            "items": {"$dynamicRef": "#item"},
            "$defs": {"any": {"$dynamicAnchor": "item"}},
        },
    },
}
# Schemas with valid and invalid values.
SCHEMAS = {
    "false in a place": {"properties": {"a": False}},
    "types": {"type": ["null", "boolean", "array"]},
    "one literal": {"enum": [None, True, 1, "a", [1, {"b": []}], {"a": 1}]},
    "arrays within limits": {
        "enum": [5, [1], [1, 1], [1, "a"], [1, 2], [1, 2, 3], [2, 3]],
        "type": "array",
        "items": {"type": "integer"},
        "uniqueItems": True,
        "minItems": 2,
        "contains": {"const": 2},
    },
    "objects within limits": {
        "enum": [{"a": 1}, {"a": "1"}, {"b": 1}],
        "not": {"patternProperties": {"^a": {"type": "string"}}},
    },
    "literals within limits": {"enum": [1, 5, 1.5, "a"], "type": "integer", "minimum": 2},
    "not literals": {"type": ["boolean", "null"], "not": {"enum": [True, None]}},
    "not an array": {"type": "array", "not": {"enum": [[], [1]]}, "items": {"enum": [1, 2]}},
    "not an object": {"type": "object", "not": {"const": {}}},
    "integers": {"type": "integer", "minimum": -3, "exclusiveMaximum": 4},
    "large integers": {"type": "integer", "minimum": 2**60, "not": {"multipleOf": 2}},
    "between two fractions": {"type": "integer", "exclusiveMinimum": 1.5, "maximum": 2.5},
    "numbers": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "numbers beyond floats": {"type": "number", "minimum": 10**400},
    "below all floats": {"type": "number", "maximum": -(10**400)},
    "multiples": {"type": "number", "multipleOf": 0.01, "minimum": 0.05, "maximum": 100},
    "multiples of two": {"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}]},
    "multiples of 2.5": {"type": "number", "multipleOf": 2.5, "minimum": 10**9},
    "texts": {"type": "string", "minLength": 2, "maxLength": 4},
    "long texts": {"type": "string", "minLength": 1_000, "maxLength": 1_001},
    "texts up to": {"type": "string", "maxLength": 5_000},
    "pattern": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$", "maxLength": 12},
    "set with a length": {"type": "string", "pattern": r"^[\w-]+$", "minLength": 30},
    "pattern of the engine": {"type": "string", "pattern": r"(?<=a+)b\z|x*"},
    "pattern repeated twice": {"type": "string", "pattern": "(?:a{2}{3})?"},
    "two patterns": {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "[bc]$"}]},
    "part with a length": {"type": "string", "pattern": "ab+", "minLength": 12},
    "ends with a length": {"type": "string", "pattern": "^(ab)+$", "minLength": 6},
    "pattern of ECMA": {"type": "string", "pattern": r"^\p{Lu}\u{61}\cA\/\_\d$"},
    "groups": {"type": "string", "pattern": r"^(?<a>x|y)-[[&|~$]\p{N}\P{L}[\p{L}]$"},
    "not a pattern": {"type": "string", "not": {"pattern": "a"}},
    "lookahead": {"type": "string", "pattern": "^(?!ab)[a-c]{2}$"},
    "tuple": {
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "items": False,
        "type": "array",
        "minItems": 2,
    },
    "items": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    "many items": {"type": "array", "items": {"type": "null"}, "minItems": 100, "maxItems": 120},
    "tuple of draft 7": {
        "$schema": DRAFT_7,
        "type": "array",
        "items": [{"type": "null"}, {"type": "boolean"}],
        "additionalItems": {"type": "integer"},
        "minItems": 1,
    },
    "items of draft 7": {
        "$schema": DRAFT_7,
        "type": "array",
        "items": {"type": "null"},
        "additionalItems": False,
        "contains": {"type": "null"},
        "minContains": 3,
    },
    "reference of draft 7": {
        "$schema": DRAFT_7,
        "definitions": {"count": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/definitions/count", "maximum": 0}},
        "type": "object",
        "unevaluatedProperties": False,
    },
    "limits of draft 4": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "integer",
        "minimum": 3,
        "exclusiveMinimum": True,
        "maximum": 9,
        "exclusiveMaximum": False,
    },
    "recursion of 2019-09": {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$id": "https://example.com/strict",
        "$recursiveAnchor": True,
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {
            "tree": {
                "$id": "tree",
                "$recursiveAnchor": True,
                "type": "object",
                "properties": {"next": {"$recursiveRef": "#"}},
            }
        },
    },
    "unique": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2},
    "unique tuple": {
        "type": "array",
        "prefixItems": [{"type": "boolean"}, {"type": "boolean"}],
        "minItems": 2,
        "uniqueItems": True,
    },
    "contains": {
        "type": "array",
        "items": {"type": "integer"},
        "contains": {"minimum": 5},
        "minContains": 2,
        "maxContains": 3,
    },
    "contains none": {
        "type": "array",
        "contains": {"type": "string"},
        "minContains": 0,
        "maxContains": 1,
    },
    "object": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": True},
        "required": ["a"],
    },
    "closed": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": False,
    },
    "map": {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "minProperties": 2,
        "maxProperties": 3,
    },
    "large map": {
        "type": "object",
        "additionalProperties": {"type": "null"},
        "maxProperties": 12,
    },
    "closed with a least": {
        "type": "object",
        "properties": {"a": True, "b": True, "c": True},
        "additionalProperties": False,
        "minProperties": 2,
    },
    "pattern names": {
        "type": "object",
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
        "minProperties": 1,
    },
    "names": {
        "type": "object",
        "propertyNames": {"maxLength": 2, "pattern": "^[a-z]"},
        "minProperties": 1,
    },
    "names and members": {
        "type": "object",
        "propertyNames": {"enum": ["a", "b"]},
        "properties": {"c": True, "a": {"type": "null"}},
        "minProperties": 2,
    },
    "dependent names": {
        "type": "object",
        "dependentRequired": {"a": ["b", "c"]},
        "minProperties": 1,
    },
    "dependent schemas": {
        "type": "object",
        "dependentSchemas": {"a": {"required": ["b"], "maxProperties": 2}},
    },
    "dependencies": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "dependencies": {"a": ["b"]},
    },
    "all": {"allOf": [{"type": "string"}, {"minLength": 2}, {"maxLength": 3}]},
    "any": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "integer", "minimum": 5}]},
    "one": SHAPE,
    "one that overlaps": {"oneOf": [{"type": "integer"}, {"minimum": 2}]},
    "one of all": {"type": "integer", "anyOf": [{"title": "any"}, {"minimum": 3}]},
    "many together": {
        "type": "integer",
        "allOf": [
            {"anyOf": [{"minimum": at} for at in range(9)]},
            {"anyOf": [{"maximum": at + 9} for at in range(9)]},
        ],
    },
    "not": {"not": {"type": ["integer", "string"]}},
    "not those items": {"type": "array", "not": {"items": {"type": "integer"}}},
    "not dependent": {"type": "object", "not": {"dependentRequired": {"a": ["b"], "c": ["d"]}}},
    "conditional": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "if": {"properties": {"a": {"minimum": 5}}},
        "then": {"required": ["b"]},
        "else": {"required": ["c"]},
    },
    "conditional without else": {"type": "integer", "if": {"minimum": 5}, "then": {"maximum": 9}},
    "conditional without then": {"type": "integer", "if": {"minimum": 5}, "else": {"maximum": 2}},
    "unevaluated members": {
        "allOf": [{"properties": {"a": {"type": "integer"}}}],
        "type": "object",
        "patternProperties": {"^b": True},
        "unevaluatedProperties": False,
    },
    "unevaluated members of all": {
        "type": "object",
        "additionalProperties": {"type": "null"},
        "unevaluatedProperties": False,
    },
    "unevaluated items": {
        "type": "array",
        "prefixItems": [{"type": "integer"}],
        "contains": {"type": "string"},
        "unevaluatedItems": {"type": "null"},
    },
    "unevaluated items of all": {
        "type": "array",
        "items": {"type": "null"},
        "unevaluatedItems": False,
    },
    "tree": TREE,
    "chain": CHAIN,
    "dynamic reference": DYNAMIC,
    "reference to an anchor": {
        "$defs": {"count": {"$anchor": "count", "type": "integer"}},
        "$dynamicRef": "#count",
    },
    "itself": {"allOf": [{"$ref": "#"}], "type": "integer"},
    "deep": {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {
                "type": "object",
                "required": ["a"],
                "properties": {
                    "a": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "array",
                                "minItems": 1,
                                "items": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": {"type": "boolean"},
                                },
                            },
                        },
                    }
                },
            }
        },
    },
}
# The other implementation uses Python's patterns, multiplies floats, and cannot handle a schema
# that refers to itself.
UNJUDGED = {
    *("itself", "multiples", "groups"),
    *("pattern of ECMA", "pattern of the engine", "pattern repeated twice"),
}
params = pytest.mark.parametrize("name", SCHEMAS)


@params
def test_values_that_fit(name):
    """Each value is valid, also by another implementation of JSON Schema."""
    values = draw(from_schema(SCHEMAS[name]), 6)
    assert values
    judge = jsonschema.validators.validator_for(SCHEMAS[name], jsonschema.Draft202012Validator)
    if name not in UNJUDGED:
        assert [each for each in values if not judge(SCHEMAS[name]).is_valid(each)] == []


@params
def test_values_that_break(name):
    """Each near miss violates the schema, and its label has the keyword and the path."""
    values = draw(violating(SCHEMAS[name], labelled=True), 6)
    assert values
    for value, keyword, path in values:
        # The report has no message for a limit that draft 4 marks as exclusive.
        assert keyword or name == "limits of draft 4"
        part = value
        # The last step may be the missing name.
        for step in path[:-1]:
            part = part[step]


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 1.2, "maximum": 1.8},
        {"type": "number", "exclusiveMinimum": 1, "maximum": 1},
        {"type": "number", "multipleOf": 0.3, "minimum": 0.4, "exclusiveMaximum": 0.6},
        {"type": "number", "minimum": 2**53, "not": {"type": "integer"}},
        {"type": "number", "maximum": -(2**53), "not": {"type": "integer"}},
        {"type": "number", "multipleOf": 1, "minimum": 1.2, "maximum": 1.8},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "string", "minLength": 3_000_000},
        {"type": "string", "minLength": 3, "pattern": "^(a|bb)$"},
        {"type": "string", "maxLength": 2, "pattern": "[a-z]{3}"},
        {"type": "string", "allOf": [{"pattern": "^a{2}$"}, {"pattern": "^a{3}$"}]},
        {"enum": ["a", "b"], "minLength": 2},
        {"enum": []},
        {"type": "boolean", "not": {"enum": [True, False]}},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"type": "object", "required": ["a"], "propertyNames": {"maxLength": 0}},
        {"type": "object", "required": ["a"], "not": {"required": ["a"]}},
        {"type": "object", "additionalProperties": False, "minProperties": 1},
        {
            "type": "object",
            "properties": {"a": True},
            "additionalProperties": False,
            "minProperties": 2,
        },
        {"type": "array", "items": False, "minItems": 1},
        {"type": "array", "items": {"type": "integer"}, "contains": {"type": "string"}},
        {"type": "array", "contains": True, "maxItems": 0},
        {"type": "array", "uniqueItems": True, "not": {"uniqueItems": True}},
        {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"$ref": "#/$defs/none", "$defs": {"none": {"not": {}}}},
    ],
    ids=str,
)
def test_schemas_without_values(schema):
    """An unsatisfiable schema is refused at once."""
    with pytest.raises(Unsatisfiable, match=r"^no value fits the schema$"):
        from_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"description": "anything"},
        {"format": "date"},
        {"uniqueItems": False},
        {"minLength": 0},
        {"anyOf": [{}, {"type": "null"}]},
        {"type": ["integer", "number", "string", "array", "object", "null", "boolean"]},
    ],
    ids=str,
)
def test_schemas_that_nothing_breaks(schema):
    """A schema that accepts everything has no near misses."""
    with pytest.raises(Unsatisfiable, match=r"^no value breaks the schema$"):
        violating(schema)


def test_schemas_that_contradict_themselves_out_of_sight():
    """A contradiction that only the engine finds is reported when a value is drawn."""
    schema = {"type": "integer", "$ref": "https://json-schema.org/draft/2020-12/schema"}
    with pytest.raises(Unsatisfiable, match="none was found in 40 tries"):
        draw(from_schema(schema), 1_000)


def test_wrong_schemas():
    """An invalid schema raises its own error."""
    with pytest.raises(SchemaError, match="minimum"):
        from_schema({"minimum": "1"})
    with pytest.raises(SchemaError, match="type"):
        violating({"type": "text"})


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "minimum": 3, "maximum": 900}, {3, 4, 899, 900}),
        ({"type": "integer"}, {0, 2**31, 2**53 + 1, -(2**63), 2**64}),
        ({"type": "integer", "multipleOf": 5, "minimum": 1}, {5, 10}),
    ],
    ids=["limits", "any", "multiples"],
)
def test_numbers_at_the_limits(schema, expected):
    """The minimum and the maximum, and limits of machine words, are drawn often."""
    assert expected - set(draw(from_schema(schema), 300)) == set()


def test_integers_with_a_fraction_of_zero():
    """1.0 is an integer, and drawn sometimes, except for draft 4."""
    schema = {"type": "integer", "minimum": 1, "maximum": 9}
    kinds = set(map(type, draw(from_schema(schema), 100)))
    assert kinds == {int, float}
    old = {**schema, "$schema": "http://json-schema.org/draft-04/schema#"}
    assert set(map(type, draw(from_schema(old), 50))) == {int}


def test_near_misses_at_the_limits():
    """Off by one is drawn often."""
    schema = {"type": "integer", "minimum": 3, "maximum": 900}
    found = set(filter(lambda value: type(value) is int, draw(violating(schema), 300)))
    assert {2, 901} <= found


def test_texts_at_the_limits():
    """The shortest and longest strings, and characters outside of the BMP, are drawn."""
    values = draw(from_schema({"type": "string", "maxLength": 30}), 150)
    assert {0, 29, 30} <= set(map(len, values))
    assert any(max(value, default="") > "\uffff" for value in values)
    assert any("\u0301" in value for value in values)
    sizes = set(
        map(
            len,
            filter(
                lambda value: isinstance(value, str),
                draw(violating({"type": "string", "maxLength": 3_000}), 100),
            ),
        )
    )
    assert 3_001 in sizes


def test_arrays_at_the_limits():
    """The shortest and the longest arrays are drawn."""
    values = draw(from_schema({"type": "array", "items": {"type": "null"}, "maxItems": 20}), 200)
    assert {0, 20} <= set(map(len, values))


def test_floats_at_the_limits():
    """The largest float is drawn, and none that JSON cannot express."""
    values = draw(from_schema({"type": "number", "maximum": 10**400}), 100)
    floats = [value for value in values if isinstance(value, float)]
    assert all(map(math.isfinite, floats))
    assert max(map(abs, floats)) > 1e300


@pytest.mark.parametrize(
    ("schema", "condition", "expected"),
    [
        ({"type": "integer"}, lambda value: value >= 1_000, 1_000),
        ({"type": "string"}, lambda value: len(value) >= 2, "00"),
        ({"type": "array", "items": {"type": "integer"}}, lambda value: len(value) > 2, [0, 0, 0]),
        (SCHEMAS["object"], lambda value: value["a"] > 7, {"a": 8}),
        (
            TREE,
            lambda value: value["children"],
            {"name": "", "children": [{"name": "", "children": []}]},
        ),
        ({}, lambda value: value, False),
    ],
    ids=["integer", "text", "array", "object", "tree", "anything"],
)
def test_examples_are_small(schema, condition, expected):
    """A failing example shrinks to the smallest value, without irrelevant members."""
    if expected is False:
        condition = lambda value: value is False  # noqa: E731 - the simplest value by name
    assert least(from_schema(schema), condition) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "maximum": 3}, ("maximum", (), 4)),
        (SCHEMAS["closed"], ("additionalProperties", (), {"": None})),
        (SCHEMAS["object"], ("required", ("a",), {})),
        (TREE, ("type", ("children",), {"name": "", "children": None})),
    ],
    ids=["maximum", "closed", "object", "tree"],
)
def test_near_misses_are_small(schema, expected):
    """Each keyword has a near miss, and the smallest one is short."""
    keyword, path, value = expected
    found = least(violating(schema, labelled=True), lambda drawn: drawn[1:] == (keyword, path))
    assert Violation(value, keyword, path) == found


def closed(required=(), **properties):
    made = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**made, "required": list(required)} if required else made


ITEM = closed(
    e={"type": "string", "pattern": "^x", "maxLength": 9},
    f={"enum": ["u", "v"]},
)
DEEP = closed(
    ["a", "b"],
    a={"type": "string", "maxLength": 5},
    b=closed(
        ["c"],
        c={"type": "integer", "multipleOf": 7, "maximum": 100},
        d={"type": "array", "minItems": 1, "maxItems": 3, "items": ITEM},
    ),
)
#: Its keywords, by the path of the value that they apply to.
OBJECT = ["type", "required", "additionalProperties"]
PLACES = {
    "": OBJECT,
    "a": ["type", "maxLength"],
    "b": OBJECT,
    "b/c": ["type", "multipleOf", "maximum"],
    "b/d": ["type", "minItems", "maxItems"],
    "b/d/*": ["type", "additionalProperties"],
    "b/d/*/e": ["type", "pattern", "maxLength"],
    "b/d/*/f": ["enum"],
}


def places_of(drawn):
    """Count the keywords that near misses violate, by their paths."""
    found = Counter()
    for _, keyword, path in drawn:
        # The path of `required` ends with the missing member.
        steps = path[:-1] if keyword == "required" else path
        found["/".join("*" if type(each) is int else each for each in steps), keyword] += 1
    return found


@pytest.mark.slow
def test_no_keyword_is_too_deep():
    """Each keyword is violated about as often as any other, at any depth."""
    found = places_of(draw(violating(DEEP, labelled=True), 300))

    # A fair share is 300 / 20; Hypothesis prefers some branches to others.
    wanted = [(place, keyword) for place in PLACES for keyword in PLACES[place]]
    assert {each: found[each] for each in wanted if not 1 <= found[each] <= 75} == {}


def test_a_keyword_below_many_levels():
    """Levels are not a limit: eight of them end by themselves."""
    schema = {"type": "integer", "multipleOf": 7}
    for _ in range(8):
        schema = closed(["a"], a=schema)

    found = places_of(draw(violating(schema, labelled=True), 200))

    assert found["/".join("a" * 8), "multipleOf"]


def test_a_recursive_schema_below_many_levels():
    """A part that contains itself has its least values there."""
    schema = {"$ref": "#/$defs/node"}
    for _ in range(6):
        schema = closed(["a"], a=schema)
    schema["$defs"] = {"node": closed(v={"type": "integer"}, next={"$ref": "#/$defs/node"})}

    found = places_of(draw(violating(schema, labelled=True), 50))

    assert max(place.count("a") for place, _ in found) >= 5


def test_a_place_within_itself_counts_once():
    """Otherwise nearly all near misses of a recursive schema would be deep."""
    node = closed(v={"type": "integer"}, next={"$ref": "#"})
    found = places_of(draw(violating(node, labelled=True), 60))

    assert sum(count for (place, _), count in found.items() if "next/next" not in place) > 15
    assert any("next/next" in place for place, _ in found)


@settings(max_examples=50)
@given(violating(SHAPE, labelled=True))
def test_a_near_miss_of_an_alternative(violation):
    """Most near misses are objects that almost fit one of the branches."""
    assert violation.keyword in {
        "oneOf",
        "type",
        "const",
        "required",
        "exclusiveMinimum",
        "anyOf",
        "enum",
    }


@pytest.mark.parametrize(
    "name",
    [
        "date",
        "date-time",
        "time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uri",
        "uri-reference",
        "uuid",
        "json-pointer",
        "regex",
        "idn-email",
        "iri",
    ],
)
def test_formats_on_request(name):
    """Strings have their format on request, also by the rules of the specification."""
    import jsonschema_rs

    schema = {"type": "string", "format": name}
    judge = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    assert all(map(judge.is_valid, draw(from_schema(schema, formats=True))))
    assert not all(map(judge.is_valid, draw(from_schema(schema), 50)))


def test_formats_of_a_caller():
    """A strategy for another format is used, together with the other keywords."""
    schema = {"type": "string", "format": "colour", "maxLength": 4}
    formats = {"colour": st.sampled_from(["red", "blue", "green"])}
    assert {"red", "blue"} == set(draw(from_schema(schema, formats=formats)))
    assert draw(violating(schema, formats=formats))


def test_other_documents():
    """A reference to another document is followed if that is given."""
    documents = {"https://example.com/count": {"type": "integer", "minimum": 1}}
    schema = {"$ref": "https://example.com/count"}
    assert all(value >= 1 for value in draw(from_schema(schema, documents=documents)))
    assert draw(violating(schema, documents=documents))


def test_values_are_new_each_time():
    """A test may modify a drawn value."""
    schema = {"enum": [[1]]}
    for value in draw(from_schema(schema)):
        value.append(2)
    assert draw(from_schema(schema), 1) == [[1]]
    assert schema == {"enum": [[1]]}
