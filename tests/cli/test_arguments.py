"""Arguments of a tool from the command line."""

import pytest

from noizu_mcp.cli._arguments import read_arguments
from noizu_mcp.cli._errors import CommandError


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (None, "5", 5),
        (None, "five", "five"),
        (None, '{"a": [1]}', {"a": [1]}),
        ({}, "true", True),
        (True, "null", None),
        ({"type": "string"}, "5", "5"),
        ({"type": "string"}, '"5"', '"5"'),
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, "5.0", 5.0),
        ({"type": "integer"}, "5.5", 5.5),
        ({"type": "integer"}, "five", "five"),
        ({"type": "number"}, "5", 5),
        ({"type": "boolean"}, "false", False),
        ({"type": "array"}, "[1]", [1]),
        ({"type": "object"}, "{}", {}),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "5", "5"),
        ({"type": ["string", "integer"]}, "5", 5),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"const": "1"}, "1", "1"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "5", "5"),
        ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        # From servers with invalid schemas.
        ({"type": None, "enum": None, "anyOf": 5}, "5", 5),
        ({"type": [["string"]]}, "5", 5),
        ([], "5", 5),
    ],
)
def test_a_value_is_read_as_its_schema_wants_it(schema, text, value):
    """The tool's types decide between JSON and text; without a type the value's form does."""
    found = read_arguments([f"x={text}"], None, {"properties": {"x": schema}})
    assert found == {"x": value}
    assert type(found["x"]) is type(value)


@pytest.mark.parametrize("schema", [{"properties": None}, {"properties": ["x"]}, {}])
def test_an_invalid_schema(schema):
    """Every value is read by its form."""
    assert read_arguments(["x=5"], None, schema) == {"x": 5}


def test_single_arguments_win_over_the_object():
    """Both forms may be combined; the value is what follows the first =."""
    found = read_arguments(["a=b=c", "n=1"], '{"a": 1, "z": null}', {})
    assert found == {"a": "b=c", "z": None, "n": 1}


@pytest.mark.parametrize(
    ("pairs", "text", "message"),
    [
        (["word"], None, "write arguments as name=value, not 'word'"),
        (["=5"], None, "write arguments as name=value, not '=5'"),
        ([], "{", "--args is not JSON: "),
        ([], "[1]", "--args must be a JSON object"),
    ],
)
def test_what_is_no_argument(pairs, text, message):
    """The message says what to write; the status is that of wrong usage."""
    with pytest.raises(CommandError, match=message) as caught:
        read_arguments(pairs, text, {})
    assert caught.value.status == 2
