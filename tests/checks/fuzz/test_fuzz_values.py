"""Values of a run: valid ones, invalid ones, and those at the limits."""

import pytest

from noizu_mcp.check.fuzz._case import Listed
from noizu_mcp.check.fuzz._probes import _variables
from noizu_mcp.check.fuzz._shrink import simpler
from noizu_mcp.check.fuzz._values import MAX_SIZE, Drawer, has_half_pair


def tool(properties, required=()):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Listed("tool", "x", {"name": "x"}, schema)


def drawn(component, **options):
    return Drawer(0).draw(component, 6, 0, **options)


LIMITS = {
    "maximum": ({"type": "integer", "maximum": 7}, {7, 8}),
    "minimum": ({"type": "integer", "minimum": -3}, {-3, -4}),
    "maxLength": ({"type": "string", "maxLength": 2}, {"aa", "aaa"}),
    "minLength": ({"type": "string", "minLength": 1}, {"a", ""}),
    "enum": ({"type": "string", "enum": ["b"]}, {"b", "bb"}),
}


@pytest.mark.parametrize(("part", "expected"), LIMITS.values(), ids=LIMITS)
def test_limits(part, expected):
    """The value at a limit is sent, and the one beyond it, labelled with its keyword."""
    values = drawn(tool({"a": part}, ["a"]))
    found = {
        each.value["a"]: each.keyword
        for each in values
        if isinstance(each.value.get("a"), int | str)
    }

    assert expected <= found.keys()
    assert {keyword for value, keyword in found.items() if value in expected} - {None}


def test_lists_at_their_limit():
    """A list is made of a valid item; a very large limit is skipped."""
    part = {"type": "array", "items": {"type": "integer"}, "maxItems": 3, "minItems": 1}
    huge = {"type": "array", "maxItems": MAX_SIZE + 1}
    found = [each.value for each in drawn(tool({"a": part, "b": huge}, ["a"]))]

    assert {3, 4} <= {len(each["a"]) for each in found if isinstance(each.get("a"), list)}
    assert max(len(each.get("b", ())) for each in found if isinstance(each.get("b"), list)) < 100


def test_schemas_without_values():
    """An unsatisfiable schema has only invalid values, and an invalid schema has none."""
    never = drawn(tool({"a": False}, ["a"]))

    assert never
    assert all(each.keyword for each in never)
    assert drawn(tool({"a": {"type": "objekt"}})) == []


def test_known_values_are_filled_in():
    """A known value is sent, with special strings beside it."""
    component = tool({"a": {"type": "string"}, "b": {"type": "string"}}, ["a", "b"])
    found = [each.value for each in drawn(component, fill=lambda value: {**value, "a": "known"})]

    assert {"a": "known", "b": "99999999999999999999"} in found


def test_half_pairs():
    """Half of a surrogate pair is found at any depth."""
    assert has_half_pair({"a": ["b", "\udc00"]})
    assert not has_half_pair({"a": ["\U0001f600", 1, None]})


def test_a_malformed_template():
    """A malformed URI template has no variables."""
    assert _variables("a://{b") == []


def test_numbers_beyond_all_limits():
    """A large number is approached in a limited number of steps."""
    assert len(list(simpler(10**40))) < 100
