"""check_schema: all faults of a schema at once, with their places."""

import math
import re

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.schema import Document, Fault, check_schema, compile_schema, read_schema

DRAFT_7 = "http://json-schema.org/draft-07/schema#"

FAULTS = [
    ([], (), "a schema is an object, true or false, not []"),
    ({"type": "strin"}, ("type",), "takes one of null, boolean, object, array, number, string"),
    ({"type": []}, ("type",), "or a list of them, not []"),
    (
        {"properties": {"q": {"minLength": "2"}}},
        ("properties", "q", "minLength"),
        'takes an integer of 0 or more, not "2"',
    ),
    ({"properties": {"q": 1}}, ("properties",), "takes an object whose values are schemas"),
    ({"allOf": []}, ("allOf",), "takes a list of one schema or more, not []"),
    ({"multipleOf": 0}, ("multipleOf",), "takes a number above 0, not 0"),
    ({"$anchor": "#a"}, ("$anchor",), "takes a name"),
    ({"$id": "a#b"}, ("$id",), "takes a URI reference without a fragment"),
    ({"dependentRequired": {"a": "b"}}, ("dependentRequired",), "whose values are lists of names"),
    ({"dependencies": {"a": 1}}, ("dependencies",), "takes an object of schemas or lists of names"),
    ({"$vocabulary": {"a": 1}}, ("$vocabulary",), "takes an object of true and false"),
    ({"items": {1: 2}}, ("items",), "1 cannot be the name of a property"),
    ({"minimum": math.nan}, ("minimum",), "JSON cannot express NaN"),
    ({"enum": [1, {2}]}, ("enum", 1), "JSON cannot express <set>"),
    ({"const": "\ud800"}, ("const",), "has half of a surrogate pair"),
    (
        {"properties": {"q": {"type": "string", "minLenght": 2}}},
        ("properties", "q", "minLenght"),
        'no such keyword; "minLength" is, and "x-minLenght" is free for your own use',
    ),
    ({"additionalproperties": False}, ("additionalproperties",), '"additionalProperties" is'),
    ({"pattern": "("}, ("pattern",), '"(" cannot be used: not a regular expression of ECMA-262'),
    ({"patternProperties": {"[": {}}}, ("patternProperties", "["), '"[" cannot be used'),
    ({"$ref": "#/$defs/a"}, ("$ref",), '"#/$defs/a" leads nowhere: there is no "$defs"'),
    ({"$ref": "#a"}, ("$ref",), 'leads nowhere: no "$anchor": "a" in the schema'),
    ({"$ref": "#/allOf/1", "allOf": [{}]}, ("$ref",), 'there is no item "1" in a list of 1'),
    ({"$ref": "#/title", "title": "a"}, ("$ref",), '"#/title" leads to "a", which is not a schema'),
    (
        {"items": {"$ref": "https://example.com/a#/b"}},
        ("items", "$ref"),
        'nothing is ever fetched; pass it in documents={"https://example.com/a": …} or move it',
    ),
    (
        {"$defs": {"a": {"$anchor": "x"}, "b": {"$dynamicAnchor": "x"}}},
        (),
        '"$anchor": "x" is declared twice; rename one',
    ),
    (
        {"$schema": "http://example.com/own"},
        ("$schema",),
        "cannot be checked; use https://json-sch",
    ),
    ({"$schema": DRAFT_7, "type": 1}, (), "type: not valid in http://json-schema.org/draft-07"),
    (
        {"properties": {"n": {"type": "integer", "default": "x"}}},
        ("properties", "n", "default"),
        'the default "x" breaks its own schema: expected integer, got string "x"',
    ),
    (
        {"type": "object", "properties": {"a": {"type": "null"}}, "default": {"a": 1}},
        ("default",),
        'the default {"a": 1} breaks its own schema: /a: expected null, got integer 1',
    ),
    (
        {"maximum": 1, "examples": [1, 2]},
        ("examples", 1),
        "the example 2 breaks its own schema: 2 is",
    ),
    (
        {"$ref": "#/$defs/a", "default": 1, "$defs": {"a": {"type": "string"}}},
        ("default",),
        "expected string, got integer 1",
    ),
    (
        {"unevaluatedProperties": False, "properties": {"a%/b": {"type": "null", "default": 1}}},
        ("properties", "a%/b", "default"),
        "expected null, got integer 1",
    ),
    (
        {"$schema": DRAFT_7, "properties": {"a": {"type": "null", "default": 1}}},
        ("properties", "a", "default"),
        "expected null, got integer 1",
    ),
    ({"description": "x" * 300_000}, (), "bytes of JSON, more than the 262144"),
]

#: Every keyword of 2020-12, and the keywords of older drafts that are read.
KEYWORDS = [
    *("$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id"),
    *("$recursiveAnchor", "$recursiveRef", "$ref", "$schema", "$vocabulary"),
    *("additionalProperties", "allOf", "anyOf", "const", "contains", "contentEncoding"),
    *("contentMediaType", "contentSchema", "default", "definitions", "dependencies"),
    *("dependentRequired", "dependentSchemas", "deprecated", "description", "else", "enum"),
    *("examples", "exclusiveMaximum", "exclusiveMinimum", "format", "if", "items"),
    *("maxContains", "maxItems", "maxLength", "maxProperties", "maximum", "minContains"),
    *("minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf"),
    *("pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "readOnly"),
    *("required", "then", "title", "type", "unevaluatedItems", "unevaluatedProperties"),
    *("uniqueItems", "writeOnly"),
]


@pytest.mark.parametrize(("schema", "path", "text"), FAULTS)
def test_fault(schema, path, text):
    """Each mistake has its fault, with its place and the correction."""
    (fault,) = check_schema(schema)
    assert (fault.path, text in fault.text) == (path, True), fault
    assert "\n" not in fault.text


def test_all_faults_at_once():
    """Faults of all kinds are reported together: a typo does not hide an invalid default."""
    schema = {"properties": {"a": {"minLenght": 1, "type": "string", "default": 1}}, "requierd": []}
    assert [fault.path for fault in check_schema(schema)] == [
        ("requierd",),
        ("properties", "a", "minLenght"),
        ("properties", "a", "default"),
    ]
    schema = {"pattern": "(", "$ref": "#/no", "minLenght": 1, "items": {"$ref": "urn:a"}}
    assert [fault.path for fault in check_schema(schema)] == [
        ("pattern",),
        ("$ref",),
        ("items", "$ref"),
        ("minLenght",),
    ]


def test_deep_schemas_are_faults():
    """A schema that is too deep is one fault."""
    schema = {}
    for _ in range(10_000):
        schema = {"items": schema}
    assert check_schema(schema) == [Fault((), "nested deeper than 64 levels")]


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"x-minLenght": 1, "vendor": {"minLenght": 1}, "properties": {"minLenght": {}}},
        {"const": {"minLenght": 1}, "default": {"minLenght": 1}},
        {"$ref": "#/vendor/a", "vendor": {"a": {"type": "string"}}},
        {"$ref": "#/$defs/a%25b~1c", "$defs": {"a%b/c": {}}},
        {"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}},
        {"$id": "urn:own", "items": {"$ref": "urn:own#/items"}},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"$ref": "inner", "$defs": {"a": {"$id": "inner", "$anchor": "x"}}, "$anchor": "x"},
        {"type": "string", "default": "a", "examples": ["b", "c"]},
        {"examples": [1, "a"]},
        {"$schema": DRAFT_7, "definitions": {}, "minLenght": 1},
    ],
)
def test_sound_schemas(schema):
    """An unusual but valid schema has no faults, and is compiled by the check."""
    compiled, faults = read_schema(schema)
    assert faults == []
    assert compiled.schema == schema


def test_the_first_value_may_be_one_that_the_engine_cannot_read():
    """A valid schema is compiled with its first value, and refuses it like later ones."""
    compiled, _ = read_schema({"type": "string"})
    assert [compiled.is_valid(value) for value in ("\ud800", "a", "\ud800")] == [False, True, False]


def test_documents():
    """A reference into a given document is valid, one to another document is not."""
    documents = {"urn:a": {"$defs": {"b": {"type": "string"}}}}
    schema = {"properties": {"p": {"$ref": "urn:a#/$defs/b", "default": "x"}}}
    assert check_schema(schema, documents) == []
    schema["properties"]["p"]["default"] = 1
    assert [fault.path for fault in check_schema(schema, documents)] == [
        ("properties", "p", "default")
    ]
    own = {"$id": "urn:meta", "$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert check_schema({"$schema": "urn:meta"}, {"urn:meta": own}) == []


def test_the_python_engine_names_what_it_cannot():
    """For the Python engine an unsupported keyword is a fault with the alternative."""
    compiled, (fault,) = read_schema({"$dynamicRef": "#a"}, engine="python")
    assert compiled is None
    assert 'cannot serve "$dynamicRef"; install the native engine' in fault.text
    _, (fault,) = read_schema({"pattern": r"\p{L}"}, engine="python")
    assert fault.text == r'"\\p{L}" cannot be used: "\p{L}" is not valid in it, or not served'
    _, (fault,) = read_schema({"pattern": "^a$", "default": "b"}, engine="python")
    assert 'does not match "^a$"' in fault.text


texts = st.sampled_from(["", "a", "string", "#", "a#b", "1", "/"])
some_values = st.recursive(
    st.none() | st.booleans() | st.sampled_from([-1, 0, 1, 1.0, 1.5]) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYWORDS), some_values, max_size=2))
def test_the_tables_are_the_metaschema(schema):
    """The keyword tables accept exactly what the metaschema of 2020-12 accepts, except format."""
    if is_plain_regex(schema.get("pattern")) and schema.get("$schema", "") == "":
        assert (not keyword_faults(schema)) is is_valid_by_metaschema(schema)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYWORDS), some_values, max_size=3))
def test_no_engine_refuses_a_sound_schema(schema):
    """A self-contained schema without faults compiles, so it may be compiled later."""
    document = Document(schema)
    if document.is_self_contained() and not document.faults():
        for engine in ("native", "python"):
            compile_schema(schema, engine)


def test_what_is_looked_up_is_compiled_at_once():
    """A schema with its own `$id` or anchor is not self-contained, wherever that is."""
    assert Document({"items": {"minimum": 1, "default": 2}}).is_self_contained()
    assert not Document({"items": {"$anchor": "here"}}).is_self_contained()
    assert not Document({"properties": {"p": {"pattern": "a"}}}).is_self_contained()


def keyword_faults(schema):
    """Return the faults of keyword values alone."""
    return [fault for fault in Document(schema).faults() if fault.text.startswith("takes ")]


def is_plain_regex(pattern):
    """Tell whether a pattern is not a string, or compiles on every engine."""
    return not isinstance(pattern, str) or re.fullmatch("[a-z1]*", pattern) is not None


def is_valid_by_metaschema(schema):
    """Return the verdict of the metaschema itself, without formats."""
    metaschema = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    validator = jsonschema_rs.Draft202012Validator(metaschema, validate_formats=False)
    return validator.is_valid(schema)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYWORDS), some_values, max_size=3))
def test_sound_means_compilable(schema):
    """A schema without faults compiles, and a schema with faults is not returned."""
    compiled, faults = read_schema(schema)
    assert (compiled is None) is bool(faults)
    if not faults:
        compile_schema(schema, "native", trusted=False)
