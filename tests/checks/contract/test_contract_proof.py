"""Proofs from the structure of two schemas, without the engine."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.check.contract import _proof
from noizu_mcp.check.contract._examples import instances
from noizu_mcp.check.contract._proof import is_taken
from noizu_mcp.schema import compile_schema

INTEGER = {"type": "integer"}
TEXT = {"type": "string"}
META = "https://json-schema.org/draft/2020-12/schema"


def shape(**properties):
    return {"type": "object", "properties": properties}


def node(**more):
    return {"$ref": "#/$defs/N", "$defs": {"N": {**shape(next={"$ref": "#/$defs/N"}), **more}}}


# The second schema accepts what the first one allows.
PROVED = {
    "nothing is asked": ({}, {"not": {}}),
    "titles": ({"title": "A", **TEXT}, {"title": "B", **TEXT}),
    "no value": (shape(a=TEXT), shape(a=False)),
    "any value": (shape(a=True), shape(a=True)),
    "types": ({"type": ["integer", "null"]}, INTEGER),
    "integers are numbers": ({"type": "number"}, INTEGER),
    "types of values": ({"type": ["string", "null", "boolean"]}, {"enum": ["a", None, True]}),
    "type of a value": ({"type": "array"}, {"const": [1]}),
    "fewer values": ({"enum": ["a", {"b": 1}]}, {"const": {"b": 1}}),
    "a constant": ({"const": 1}, {"enum": [1]}),
    "minimum": ({"minimum": 1}, {"exclusiveMinimum": 1}),
    "exclusive minimum": ({"exclusiveMinimum": 1}, {"minimum": 2}),
    "maximum": ({"maximum": 9}, {"maximum": 8}),
    "exclusive maximum": ({"exclusiveMaximum": 9}, {"exclusiveMaximum": 9}),
    "length": ({"minLength": 1, "maxLength": 5}, {"minLength": 2, "maxLength": 5}),
    "pattern": ({"pattern": "^a"}, {"pattern": "^a", "minLength": 2}),
    "unique": ({"uniqueItems": True}, {"uniqueItems": True}),
    "items": ({"items": {"type": "number"}}, {"prefixItems": [INTEGER], "items": INTEGER}),
    "first items": ({"prefixItems": [TEXT, INTEGER]}, {"prefixItems": [TEXT], "items": INTEGER}),
    "required": ({"required": ["a"]}, {"required": ["b", "a"]}),
    "a property": (shape(a={"type": "number"}), shape(a=INTEGER, b=TEXT)),
    "a property among others": (shape(a=TEXT), {"type": "object", "additionalProperties": TEXT}),
    "a property of a pattern": (
        shape(ab=TEXT),
        {"type": "object", "additionalProperties": False, "patternProperties": {"^a": TEXT}},
    ),
    "patterns of names": ({"patternProperties": {"^a": {}}}, {"patternProperties": {"^a": TEXT}}),
    "other properties": (
        {"properties": {"a": True}, "additionalProperties": TEXT},
        {"properties": {"a": INTEGER, "b": TEXT}, "additionalProperties": False},
    ),
    "reference of the taker": ({"$ref": "#/$defs/T", "$defs": {"T": TEXT}}, TEXT),
    "reference of the giver": (TEXT, {"$ref": "#/$defs/T", "$defs": {"T": TEXT}}),
    "a part of the giver": (
        {**TEXT, "minLength": 1},
        {"allOf": [True, TEXT, {"minLength": 1}]},
    ),
    "all parts of the taker": ({"allOf": [TEXT, {"minLength": 1}]}, {**TEXT, "minLength": 1}),
    "one alternative": ({"anyOf": [TEXT, INTEGER]}, INTEGER),
    "each alternative": ({"anyOf": [TEXT, INTEGER]}, {"oneOf": [INTEGER, False, TEXT]}),
    "a loop": (node(), node(required=["next"])),
    "a loop with more": (node(), node(title="N", minProperties=1)),
}
# There is a counterexample, or the proof is too difficult.
UNPROVED = {
    "no value is taken": (shape(a=False), shape(a=TEXT)),
    "types": (INTEGER, {"type": ["integer", "null"]}),
    "numbers": (INTEGER, {"type": "number"}),
    "no type": (TEXT, {"minLength": 1}),
    "more values": ({"const": "a"}, {"enum": ["a", "b"]}),
    "values": ({"const": "a"}, TEXT),
    "bounds": ({"minimum": 2}, {"minimum": 1}),
    "no bound": ({"maxLength": 5}, TEXT),
    "another pattern": ({"pattern": "^a"}, {"pattern": "^ab"}),
    "a pattern": ({"pattern": "^a"}, TEXT),
    "a reference in a keyword": (
        {"not": {"$ref": "#/$defs/T"}, "$defs": {"T": TEXT}},
        {"not": {"$ref": "#/$defs/T"}, "$defs": {"T": INTEGER}},
    ),
    "conditions": ({"if": TEXT, "then": {"minLength": 1}}, {"then": {"minLength": 1}}),
    "patterns of names": ({"patternProperties": {"^a": TEXT}}, {"patternProperties": {"^b": TEXT}}),
    "alternatives with anything": (TEXT, {"anyOf": [TEXT, True]}),
    "alternatives": (TEXT, {"anyOf": [TEXT, INTEGER]}),
    "a loop": (node(required=["next"]), node()),
    "schemas without end": ({"$ref": "#"}, {"$ref": "#"}),
    "another dialect": ({"$schema": "http://json-schema.org/draft-07/schema", **TEXT}, TEXT),
    "a metaschema": ({"$ref": META}, {"$ref": META}),
    "a wrong assumption": (
        {"anyOf": [{"items": {"$ref": "#/$defs/N"}, **INTEGER}, {"items": {"$ref": "#/$defs/N"}}]}
        | {"$defs": {"N": {"anyOf": [{"$ref": "#"}, INTEGER], "minimum": 1}}},
        {"type": "array", "items": {"type": "array"}},
    ),
}


@pytest.mark.parametrize("name", PROVED)
def test_proofs(name):
    """Every value of the first schema is valid for the second."""
    taker, giver = PROVED[name]

    assert is_taken(taker, giver)
    assert not counterexamples(taker, giver)


@pytest.mark.parametrize("name", UNPROVED)
def test_no_proof(name):
    """Nothing is proved that is false, or too difficult."""
    assert not is_taken(*UNPROVED[name])


def test_a_proof_is_bounded(monkeypatch):
    """After a number of pairs of schemas the proof ends without a result."""
    monkeypatch.setattr(_proof, "_MAX_PAIRS", 3)

    bounds = {name: {"minLength": number} for number, name in enumerate("abc")}

    assert is_taken(shape(a=TEXT), shape(a=TEXT))
    assert not is_taken(shape(**bounds), shape(**bounds))


def counterexamples(taker, giver):
    takes, gives = compile_schema(taker).is_valid, compile_schema(giver).is_valid
    values = [*islice(instances(giver), 300), *islice(instances(taker), 100)]
    return [each for each in values if gives(each) and not takes(each)]


leaves = st.sampled_from(
    [
        *({}, True, False, INTEGER, TEXT, {"type": ["number", "null"]}, {"const": 1}),
        *({"enum": ["a", 1]}, {"minimum": 1}, {"exclusiveMinimum": 1}, {"maxLength": 1}),
        *({"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"$ref": "#"}, {"uniqueItems": True}),
    ]
)
parts = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["a", "ab", "b"]), inner, max_size=2).map(
            lambda own: {"properties": own}
        ),
        inner.map(lambda part: {"additionalProperties": part}),
        inner.map(lambda part: {"patternProperties": {"^a": part}, "required": ["a"]}),
        inner.map(lambda part: {"items": part, "type": "array"}),
        st.lists(inner, min_size=1, max_size=2).map(lambda each: {"prefixItems": each}),
        st.builds(
            lambda key, each: {key: each},
            st.sampled_from(["anyOf", "allOf", "oneOf"]),
            st.lists(inner, min_size=1, max_size=2),
        ),
        st.tuples(inner, inner).map(
            lambda two: {k: v for each in two if isinstance(each, dict) for k, v in each.items()}
        ),
    ),
    max_leaves=4,
)
roots = st.builds(
    lambda root, a, b: {**(root if isinstance(root, dict) else {}), "$defs": {"A": a, "B": b}},
    *(parts, parts, parts),
)


@pytest.mark.slow
@given(roots, roots)
def test_what_is_proved_has_no_counterexample(taker, giver):
    """This includes schemas that refer to themselves and to each other."""
    if is_taken(taker, giver):
        assert counterexamples(taker, giver) == []


@pytest.mark.slow
@given(roots, parts)
def test_a_schema_takes_less_than_itself(schema, part):
    """A combination of two schemas allows no more than either."""
    if is_taken(schema, schema):
        joined = {**schema, "allOf": [*schema.get("allOf", []), part]}
        assert counterexamples(schema, joined) == []
