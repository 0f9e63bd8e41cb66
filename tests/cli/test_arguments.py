"""Arguments of a tool from the command line."""

import json

import pytest


@pytest.fixture
def sent(run, tape):
    """Call a tool with an input schema; return the arguments that are sent."""

    def sent(schema, *words):
        tools = [{"name": "t", "inputSchema": {"type": "object", **schema}}]
        _, _, err = run("call", tape(("tools/list", {}, {"tools": tools})), "t", *words, "--trace")
        messages = [line[4:] for line in err.splitlines() if line.startswith("-->")]
        (call,) = (json.loads(each) for each in messages if '"tools/call"' in each)
        return call["params"]["arguments"]

    return sent


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
def test_a_value_is_read_as_its_schema_wants_it(sent, schema, text, value):
    """The tool's types decide between JSON and text; without a type the value's form does."""
    found = sent({"properties": {"x": schema}}, f"x={text}")
    assert found == {"x": value}
    assert type(found["x"]) is type(value)


@pytest.mark.parametrize("schema", [{"properties": None}, {"properties": ["x"]}, {}])
def test_an_invalid_schema(sent, schema):
    """Every value is read by its form."""
    assert sent(schema, "x=5") == {"x": 5}


def test_single_arguments_win_over_the_object(sent):
    """Both forms may be combined; the value is what follows the first =."""
    found = sent({}, "a=b=c", "n=1", "--args", '{"a": 1, "z": null}')
    assert found == {"a": "b=c", "z": None, "n": 1}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["word"], "write arguments as name=value, not 'word'"),
        (["=5"], "write arguments as name=value, not '=5'"),
        (["--args", "{"], "--args is not JSON: "),
        (["--args", "[1]"], "--args must be a JSON object"),
    ],
)
def test_what_is_no_argument(run, words, message):
    """The message says what to write; the status is that of wrong usage."""
    status, _, err = run("call", "demo.py", "echo", *words)
    assert status == 2
    assert message in err
