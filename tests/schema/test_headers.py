"""Headers in raw schemas, as servers declare them and clients read them."""

import pytest

from noizu_mcp.schema import header_faults, header_paths, read_raw


def schema_with(**properties):
    return {"type": "object", "properties": properties}


WRONG = {
    "no text": (schema_with(a={"type": "string", "x-mcp-header": 3}), "is not an HTTP token"),
    "no token": (schema_with(a={"type": "string", "x-mcp-header": "a b"}), "is not an HTTP token"),
    "the root": ({"type": "object", "x-mcp-header": "A"}, "only plain fields"),
    "a list": (
        schema_with(a={"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}),
        "only plain fields",
    ),
    "no type": (schema_with(a={"x-mcp-header": "A"}), "not any type"),
    "nullable": (schema_with(a={"type": ["string", "null"], "x-mcp-header": "A"}), "not null"),
    "taken": (
        schema_with(
            a={"type": "string", "x-mcp-header": "A"}, b={"type": "string", "x-mcp-header": "a"}
        ),
        "is taken by a",
    ),
}


@pytest.mark.parametrize(("schema", "text"), WRONG.values(), ids=WRONG)
def test_a_wrong_header_is_refused(schema, text):
    """The server refuses its definition, and a client applies the same rules."""
    _, faults = read_raw(schema)

    assert any(text in fault.text for fault in faults)
    assert any(text in fault.text for fault in header_faults(schema))


def test_the_properties_that_headers_mirror():
    """Each header leads to its property, through objects."""
    inner = {"type": "integer", "x-mcp-header": "Deep"}
    schema = schema_with(
        a={"type": "string", "x-mcp-header": "Region"},
        b={"type": "object", "properties": {"c": inner}},
    )

    assert header_paths(schema) == {"Region": ("a",), "Deep": ("b", "c")}
