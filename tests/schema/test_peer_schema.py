"""Schemas and values of a peer: whatever would take long is not checked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import SchemaError
from noizu_mcp.schema import PeerSchema, compile_schema, describe

#: The checks up to which violations are listed, and the characters up to which texts are matched.
MAX_EXPLAINED, MAX_MATCHED = 100_000, 200_000
LINEAR = [
    r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    r"^[0-9a-f]{8}-[0-9a-f]{4}$",
    r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$",
    "(a+)+$",
]


@pytest.mark.parametrize("pattern", LINEAR)
def test_patterns_of_every_day(pattern):
    """Usual patterns are served, also those with which another engine would backtrack."""
    (violation,) = PeerSchema({"pattern": pattern}).violations("a" * 50 + "!")
    assert violation.keyword == "pattern"


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=(a+)+$)b",
        r"^(a+)+\1$",
        r"[\p{L}\p{N}]{500}",
        "(a{1000}){1000}",
    ],
)
@pytest.mark.parametrize("dialect", ["2020-12/schema", "2019-09/schema"])
def test_patterns_that_could_take_long(pattern, dialect):
    """Lookarounds, backreferences and patterns that are large once compiled are refused."""
    schema = {"$schema": f"https://json-schema.org/draft/{dialect}", "pattern": pattern}
    with pytest.raises(SchemaError, match=r"lookaround or a backreference|not served for a peer"):
        PeerSchema(schema)


@pytest.mark.parametrize(
    "patterns", [[f"a{n}" for n in range(101)], ["a?" * 2500, "b?" * 2501]], ids=["many", "long"]
)
def test_many_patterns(patterns):
    """Their number and their length are limited, at any place in the schema."""
    for schema in (
        {"allOf": [{"pattern": each} for each in patterns]},
        {"patternProperties": dict.fromkeys(patterns, True)},
        {"$ref": "#/x-hidden", "x-hidden": {"anyOf": [{"pattern": each} for each in patterns]}},
    ):
        with pytest.raises(SchemaError, match="more than 100 or than 10000"):
            PeerSchema(schema)


def test_the_same_pattern_in_many_places():
    """It counts once."""
    schema = {"properties": {f"p{n}": {"pattern": "^a+$"} for n in range(500)}}
    assert PeerSchema(schema).violations({"p1": "a"}) == []


def any_of(count):
    return {"items": {"anyOf": [{"type": "string", "minLength": n} for n in range(count)]}}


# Checks of a value before any engine.
MOST = 5_000_000
LISTED = {"enum": [[n] for n in range(1000)]}
COSTLY = {
    "alternatives": (any_of(1000), ["a"] * (MOST // 1000)),
    "an enum": ({"items": LISTED}, [[999]] * (MOST // 2000)),
    "an enum behind references": (
        {
            "items": {"allOf": [{"$ref": "#/$defs/a"}] * 50},
            "$defs": {"a": LISTED},
        },
        [[999]] * (MOST // 80_000),
    ),
    "a const": ({"items": {"const": list(range(1000))}}, [list(range(1000))] * 5),
    "texts": ({"items": {"pattern": "b"}}, ["a" * 1000] * (MAX_MATCHED // 1000 + 1)),
    "names": ({"patternProperties": {"b": {}}}, {"a" * MAX_MATCHED + "a": 1}),
    "patterns": ({"allOf": [{"pattern": f"b{n}"} for n in range(50)]}, "a" * (MAX_MATCHED // 49)),
}


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", COSTLY)
def test_a_value_that_would_take_long(name, engine):
    """A large value is not checked, a small one is."""
    schema, value = COSTLY[name]
    compiled = PeerSchema(schema, engine)
    assert compiled.violations(value) is None
    small = type(value)()
    assert compiled.violations(small) is not None


def test_a_large_value_has_one_line():
    """It has one line, as finding each violation would take longer than validation."""
    compiled = PeerSchema(any_of(100))
    large = ["a"] * (MAX_EXPLAINED // 100)
    assert compiled.violations([*large, "a" * 99]) == []
    assert describe(compiled.violations([*large, 1])) == ["(root): does not match the schema"]
    assert describe(compiled.violations(["a", 1])) != ["(root): does not match the schema"]


def test_true_and_false_are_schemas():
    """True accepts everything, False nothing."""
    assert PeerSchema(True).violations(5) == []
    assert len(PeerSchema(False).violations(5)) == 1


SCHEMAS = st.sampled_from(
    [
        {"type": "integer", "minimum": 3},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"items": {"enum": [1, "a", None]}},
        {"$ref": "#/$defs/t", "$defs": {"t": {"items": {"$ref": "#/$defs/t"}, "maxItems": 2}}},
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=10,
)


@given(schema=SCHEMAS, value=VALUES)
def test_small_values_are_judged_like_others(schema, value):
    """The bounds and the engine do not change the verdict."""
    expected = compile_schema(schema).violations(value)
    assert PeerSchema(schema, "native").violations(value) == expected
    assert PeerSchema(schema, "python").violations(value) == expected
