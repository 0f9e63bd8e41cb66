"""The Python engine: its refusals, the rewriting of schemas, and its limits."""

import pytest

from noizu_mcp import SchemaError
from noizu_mcp.schema import SchemaUnsupported, compile_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

REFUSALS = [
    ("$dynamicRef", {"$dynamicRef": "#a"}),
    ("$recursiveRef", {"$recursiveRef": "#"}),
    ("$vocabulary", {"$vocabulary": {}}),
    ("$id", {"items": {"$id": "urn:a"}}),
    ("$ref", {"$id": "urn:a", "items": {"$ref": "urn:a"}}),
    ("$ref", {"$ref": "https://json-schema.org/draft/2020-12/schema"}),
    ("$schema", {"$schema": "http://json-schema.org/draft-04/schema#"}),
    ("$schema", {"$schema": "http://json-schema.org/draft-07/schema#", "if": True}),
    ("$ref", {"$ref": "#"}),
    ("$ref", {"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}),
    ("$ref", {"items": {"dependentSchemas": {"a": {"$ref": "#/items"}}}}),
    ("$ref", {"items": {"if": {"anyOf": [True, {"$ref": "#/items"}]}}}),
    ("pattern", {"pattern": r"\p{L}"}),
    ("pattern", {"patternProperties": {"(a*)*": True}}),
]


@pytest.mark.parametrize(("keyword", "schema"), REFUSALS)
def test_refusals(keyword, schema):
    """An unsupported keyword is refused by name, and the error suggests the native engine."""
    with pytest.raises(SchemaUnsupported, match="pip install jsonschema-rs") as caught:
        compile_schema(schema, "python")
    assert caught.value.keyword == keyword


def test_a_number_that_python_does_not_print():
    """A schema that the generator cannot write is evaluated without generated code."""
    compiled = compile_schema({"minimum": 10**5000}, "python")
    assert (compiled.is_valid(10**5000), compiled.is_valid(1)) == (True, False)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        # Keywords beside a reference apply, and a reference to a bool is one.
        ({"$ref": "#/$defs/a", "minimum": 2, "$defs": {"a": {"maximum": 3}}}, [2, 3, "a"], [1, 4]),
        ({"items": {"$ref": "#/$defs/no"}, "$defs": {"no": False}}, [[], 1], [[1]]),
        ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "null"}}}, [None], [1]),
        ({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}}, [None], [1]),
        # Unknown keywords may contain schemas with references to them.
        ({"$ref": "#/vendor/0", "vendor": [{"type": "null"}]}, [None], [1]),
        ({"const": 1, "enum": [1, 2]}, [1, 1.0], [2, True]),
        ({"prefixItems": [{"type": "null"}]}, [[], [None, 1]], [[1]]),
        ({"prefixItems": [True], "items": {"type": "null"}}, [[1, None]], [[1, 1]]),
        ({"prefixItems": [True], "items": True}, [[1, 1]], []),
        ({"items": {}, "minItems": 1}, [[1]], [[]]),
        ({"additionalProperties": {}, "required": ["a"]}, [{"a": 1, "b": 2}], [{"b": 2}]),
        ({"properties": {}, "patternProperties": {}, "dependentRequired": {}}, [{"a": 1}], []),
        (
            # Two spellings of one pattern.
            {"patternProperties": {"^a": {"minimum": 2}, "^[a]": {"maximum": 3}}},
            [{"ab": 2}],
            [{"ab": 1}, {"ab": 4}],
        ),
        (
            {"patternProperties": {"^a": True}, "additionalProperties": False},
            [{"a1": 1}],
            [{"b": 1}],
        ),
        ({"propertyNames": {"maxLength": 2.0}}, [{"ab": 1}], [{"abc": 1}]),
        ({"minContains": 2, "maxContains": 0}, [[1], []], []),
        ({"contentSchema": False}, ["a"], []),
        ({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"not": {}}}}, [[]], [[1]]),
        ({"if": True}, [1], []),
        ({"if": {"type": "null"}, "then": False, "else": {"minimum": 2}}, [2], [None, 1]),
        ({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": False}}, [{}], [{"a": 1}]),
        ({"not": {"type": "null"}}, [1], [None]),
        ({"properties": {"a": {"unevaluatedProperties": False}}}, [{"a": {}}], [{"a": {"b": 1}}]),
        ({"prefixItems": [True], "unevaluatedItems": False}, [[1]], [[1, 2]]),
        ({"$ref": "#/vendor", "vendor": {"unevaluatedItems": False}}, [[]], [[1]]),
        ({"dependencies": {"a": ["b"], "c": False}}, [{"b": 1}], [{"a": 1}, {"c": 1}]),
        (
            # Up to draft 7 keywords beside a reference are ignored.
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "$ref": "#/definitions/a",
                "minimum": 2,
                "definitions": {"a": {"maximum": 3}},
            },
            [1],
            [4],
        ),
        ({"contains": {"type": "null"}, "maxContains": 1}, [[1, None]], [[1], [None, None]]),
        ({"not": {"required": ["a"]}, "items": {}}, [{}], [{"a": 1}]),
        ({"allOf": [{"minimum": 2}], "$ref": "#/$defs/a", "$defs": {"a": {}}}, [2], [1]),
    ],
)
def test_rewriting_keeps_the_meaning(schema, good, bad):
    """A rewritten schema keeps its meaning where the generator differs from 2020-12."""
    compiled = compile_schema(schema, "python")
    assert [compiled.is_valid(value) for value in good] == [True] * len(good)
    assert [compiled.is_valid(value) for value in bad] == [False] * len(bad)


@pytest.mark.parametrize("levels", [5, 25, 60])
def test_deep_schemas(levels):
    """Python allows 20 nested blocks; a schema may be deeper."""
    schema, good, bad = {"type": "null"}, None, 1
    for _ in range(levels):
        schema = {"type": "array", "items": {"anyOf": [schema, False]}}
        good, bad = [good], [bad]
    compiled = compile_schema(schema, "python")
    assert (compiled.is_valid(good), compiled.is_valid(bad)) == (True, False)


def test_a_long_chain_of_references_never_raises():
    """Too many references in a row for the stack reject the value, with a message."""
    schema = {"$defs": {"d1500": {}}, "$ref": "#/$defs/d0"}
    for level in range(1500):
        schema["$defs"][f"d{level}"] = {"$ref": f"#/$defs/d{level + 1}"}
    compiled = compile_schema(schema, "python")
    assert not compiled.is_valid(1)
    assert compiled.violations(1)


def test_bad_references_inside_of_python():
    """A reference without a target is the author's mistake, not a refusal."""
    with pytest.raises(SchemaError, match="leads nowhere") as caught:
        compile_schema({"$schema": DIALECT, "items": {"$ref": "#/$defs/a"}}, "python")
    assert not isinstance(caught.value, SchemaUnsupported)


def test_a_definition_with_several_references():
    """A definition that others refer to is written once, in whatever order they come."""
    small = {"type": "integer", "maximum": 9}
    for names in (("a", "b"), ("b", "a")):
        properties = {name: {"$ref": f"#/$defs/{name}"} for name in names}
        outer = {"properties": {"x": {"$ref": "#/$defs/b"}}}
        schema = {"properties": properties, "$defs": {"a": outer, "b": small}}
        compiled = compile_schema(schema, "python")
        assert compiled.is_valid({"a": {"x": 1}, "b": 2})
        assert not compiled.is_valid({"a": {"x": 10}, "b": 2})
        assert not compiled.is_valid({"a": {}, "b": 10})
