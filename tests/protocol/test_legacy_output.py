"""Wrapped schemas accept `{"result": value}` exactly when the schema accepts the value."""

import copy

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.protocol import REVISIONS, adapt_output_schema

OLD = REVISIONS["2025-06-18"]


def wrap(schema):
    return adapt_output_schema(schema, OLD)


def accepts(schema, value):
    cls = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return cls(schema).is_valid(value)


def test_plain():
    """A schema is moved into `properties` unchanged."""
    schema = {"type": "array", "items": {"$ref": "#here"}, "$anchor": "here"}
    assert wrap(schema) == {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
    }


def test_definitions_and_dialect_stay_at_the_root():
    """`$defs` and `$schema` stay where readers expect them."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    schema = {"$schema": dialect, "$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}
    assert wrap(schema) == {
        "$schema": dialect,
        "type": "object",
        "$defs": {"A": {"type": "integer"}},
        "properties": {"result": {"$ref": "#/$defs/A"}},
        "required": ["result"],
    }


def test_data_and_names_are_no_keywords():
    """Only references are rewritten: no data that looks like one, no properties of that name."""
    inner = {
        "const": {"$ref": "#"},
        "enum": [{"$ref": "#"}],
        "default": {"$ref": "#/x"},
        "examples": [{"$ref": "#"}],
        "properties": {"$ref": {"type": "string"}, "const": {"$ref": "#/properties/result"}},
        "$ref": "https://example.com/other#/x",
        "required": ["#"],
    }
    wrapped = wrap({"anyOf": [inner]})["properties"]["result"]["anyOf"][0]
    moved = copy.deepcopy(inner)
    moved["properties"]["const"] = {"$ref": "#/properties/result/properties/result"}
    assert wrapped == moved


def test_resources_of_their_own():
    """Within a schema with an `$id` `#` refers to it, so nothing in it is rewritten."""
    inner = {
        "$id": "https://example.com/tree",
        "items": {"$ref": "#"},
        "$defs": {"A": {"$ref": "#"}},
    }
    assert wrap(inner)["properties"]["result"] == inner
    assert "$defs" not in wrap(inner)
    assert wrap({"items": inner})["properties"]["result"] == {"items": inner}
    anchor = {"$id": "#old", "items": {"$ref": "#"}}
    moved = {"$id": "#old", "items": {"$ref": "#/properties/result"}}
    assert wrap(anchor)["properties"]["result"] == moved


TREE = {"type": "array", "items": {"$ref": "#"}}
SCHEMAS = [
    TREE,
    {"anyOf": [{"type": "integer"}, TREE]},
    {"type": "array", "items": {"$dynamicRef": "#"}},
    {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "type": "array",
        "items": {"$recursiveRef": "#"},
    },
    {"$ref": "#/$defs/N", "$defs": {"N": {"anyOf": [{"type": "null"}, TREE]}}},
    {"$ref": "#/%24defs/N", "$defs": {"N": {"type": "array", "items": {"$ref": "#/$defs/N"}}}},
    {"prefixItems": [{"type": "integer"}, {"$ref": "#/prefixItems/0"}], "type": "array"},
    {"items": {"$ref": "#/definitions/A"}, "definitions": {"A": {"type": ["integer", "array"]}}},
    {"$id": "https://example.com/t", "type": "array", "items": {"$ref": "#"}},
    {"$ref": "#leaf", "$defs": {"A": {"$anchor": "leaf", "type": ["integer", "null"]}}},
    {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False, "type": ["object", "null"]},
    {"const": {"$ref": "#"}},
    {"dependentSchemas": {"a": {"required": ["$ref"]}}, "properties": {"$ref": {"$ref": "#"}}},
]
VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["x", {"$ref": "#"}, {"a": {}}]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "$ref"]), inner)
    ),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(schema=st.sampled_from(SCHEMAS), value=VALUES)
def test_same_meaning(schema, value):
    """The wrapper accepts the same values, in another place."""
    before = copy.deepcopy(schema)
    wrapped = wrap(schema)
    assert schema == before
    assert accepts(wrapped, {"result": value}) is accepts(schema, value)
    assert not accepts(wrapped, {})
    assert not accepts(wrapped, value) or (isinstance(value, dict) and "result" in value)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_both_verdicts(schema):
    """Each of the schemas above accepts some value and refuses another."""
    values = [1, None, [], [1], [[1]], [["x"]], "x", {"a": 1}, {"$ref": "#"}, [1, 2], [1, "x"]]
    verdicts = {accepts(wrap(schema), {"result": value}) for value in values}
    assert verdicts == {True, False}
