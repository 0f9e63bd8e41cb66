"""Strategies for schemas whose values are rare, many or large: the default health checks hold."""

import string

import pytest
from hypothesis import given, settings

from noizu_mcp.testing import Unsatisfiable, from_schema, violating

from .drawing import draw

LETTERS = [*string.ascii_lowercase]
HARD = {
    "a repetition of a length": {
        "type": "string",
        "pattern": "^[a-z]+(-[a-z]+)*$",
        "minLength": 30,
        "maxLength": 40,
    },
    "a single length": {
        "type": "string",
        "pattern": "^(ab){2,}$",
        "minLength": 63,
        "maxLength": 64,
    },
    "one of two repetitions": {
        "type": "string",
        "pattern": "^a*(bcd)+$",
        "minLength": 62,
        "maxLength": 62,
    },
    "no room around a pattern": {"type": "string", "pattern": "[0-9]{3}", "maxLength": 3},
    "a pattern without repetitions": {"type": "string", "pattern": "a.?b", "minLength": 20},
    "an escaped sign": {"type": "string", "pattern": r"^\+[+*]+\)*$", "minLength": 20},
    "the set of another pattern": {
        "type": "string",
        "allOf": [{"pattern": "^[a-z0-9-]+$"}, {"pattern": "^[^-].*[^-]$"}],
        "not": {"pattern": "--"},
        "minLength": 3,
        "maxLength": 63,
    },
    "a pattern that the set of another excludes": {
        "type": "string",
        "anyOf": [{"allOf": [{"pattern": "^[a-z]+$"}, {"pattern": "[0-9]"}]}, {"maxLength": 3}],
    },
    "lookaheads": {"type": "string", "pattern": "^(?=.*[A-Z])(?=.*[0-9]).{8,}$"},
    "many members": {
        "type": "object",
        "minProperties": 30,
        "additionalProperties": {"type": "boolean"},
    },
    "all names of a list": {
        "type": "object",
        "propertyNames": {"enum": LETTERS[:4]},
        "minProperties": 4,
        "additionalProperties": {"type": "integer"},
    },
    "all values of a type": {
        "type": "array",
        "items": {"type": ["boolean", "null"]},
        "uniqueItems": True,
        "minItems": 3,
    },
    "many members that differ": {
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": 12},
        "uniqueItems": True,
        "minItems": 10,
    },
    "many items": {
        "type": "array",
        "items": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        "minItems": 1_000,
    },
    "a long list of values": {
        "enum": [f"{a}{b}{c}" for a in LETTERS for b in LETTERS for c in "ab"]
    },
}


@pytest.mark.parametrize("make", [from_schema, violating])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=[] if "pattern" in str(HARD[each]) else pytest.mark.slow)
        for each in HARD
    ],
)
def test_hard_schemas_pass_the_health_checks(name, make):
    """A test with the default settings runs its examples."""
    seen = []

    @settings(database=None, derandomize=True, deadline=None, max_examples=20)
    @given(make(HARD[name]))
    def check(value):
        seen.append(value)

    check()
    assert seen


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3},
        {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3},
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": 2},
            "uniqueItems": True,
            "minItems": 3,
        },
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 3},
        {"type": "object", "propertyNames": {"pattern": "^[ab]$"}, "minProperties": 3},
        {"type": "object", "propertyNames": {"maxLength": 0}, "minProperties": 2},
        {
            "type": "object",
            "required": ["a"],
            "patternProperties": {"^[ab]$": {}},
            "additionalProperties": False,
            "minProperties": 3,
        },
        {
            "type": "array",
            "items": {"type": "string", "pattern": "^(a|b{0,1})$"},
            "uniqueItems": True,
            "minItems": 4,
        },
    ],
)
def test_too_few_values(schema):
    """Demanding more different items or names than exist is refused at once."""
    with pytest.raises(Unsatisfiable, match=r"^no value fits the schema$"):
        from_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
        {
            "type": "array",
            "items": {"type": "integer"},
            "contains": {"type": "integer"},
            "maxContains": 2,
            "minItems": 3,
        },
    ],
)
def test_contradictions_that_only_draws_show(schema):
    """The error names the schema without values as the cause, not a filter of the strategy."""
    with pytest.raises(Unsatisfiable, match="none was found in 40 tries"):
        draw(from_schema(schema), 100)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("^[ab]$", "a b"),
        (r"^x\d$", " ".join(f"x{digit}" for digit in range(10))),
        ("^(ab?|(?:c|d){2})$", "a ab cc cd dc dd"),
        ("^[a-c]{0,1}?x$", "x ax bx cx"),
    ],
)
def test_all_names_of_a_pattern_are_drawn(pattern, names):
    """A pattern with few matches becomes a list of names: an object may have all of them."""
    every = frozenset(names.split())
    schema = {"propertyNames": {"pattern": pattern}, "minProperties": len(every)}
    values = draw(from_schema({"type": "object", **schema}), 20)
    assert {frozenset(value) for value in values} == {every}


@pytest.mark.parametrize(
    "pattern", ["^[a-z]{2}$", r"^\p{Lu}$", "^a", r"^(a)\1$", "^.$", "^a*$", "^[^a]$"]
)
def test_names_of_a_pattern_that_are_not_listed(pattern):
    """Names of a pattern with many or unknown matches are drawn one by one."""
    schema = {"type": "object", "propertyNames": {"pattern": pattern}, "minProperties": 1}
    assert all(draw(from_schema(schema), 10))


def test_the_empty_text_alone():
    """A string of length 0 is the empty string."""
    assert set(draw(from_schema({"type": "string", "maxLength": 0}), 5)) == {""}


def test_names_of_two_patterns():
    """If all names of one pattern are used, others come from another pattern."""
    schema = {
        "type": "object",
        "patternProperties": {"^[ab]$": {}, "^[b-d]$": {}},
        "additionalProperties": False,
        "minProperties": 4,
    }
    assert {frozenset(value) for value in draw(from_schema(schema), 20)} == {frozenset("abcd")}


def test_all_names_of_a_list_are_drawn():
    """The remaining names of a list are members, and no others."""
    schema = {"type": "object", "propertyNames": {"enum": ["a", "b", 3]}, "maxProperties": 2}
    names = {frozenset(value) for value in draw(from_schema(schema), 60)}
    assert names == {frozenset(each) for each in ("", "a", "b", "ab")}
