"""`describe`: what a user needs for a tool, a prompt, a resource or a template."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import noizu_mcp
from noizu_mcp.schema import compile_schema

ROOT = str(Path(noizu_mcp.__file__).parents[1])
SERVER = '''
from typing import Literal

from noizu_mcp import (
    Annotations, ContentAnnotations, McpError, Prompt, Resource, ResourceTemplate, Schema, Server,
    Toolkit, argument, field, mcp,
)

class Guest(Schema):
    """A guest of the hotel."""
    name: str = field(max_length=20, description="As on the door")
    tags: list[str] = []

class Kit(Toolkit):
    @mcp(annotations=Annotations(title="Book it", read_only_hint=False, open_world_hint=True))
    def book(
        self, guest: Guest, nights: int = field(min=1, max=30), wing: Literal["a", "b"] = "a"
    ) -> Guest:
        """Book a room."""
        return guest

    @mcp(hidden=True)
    def secret(self) -> list[int]:
        """Nobody sees it."""
        return [1]

    @mcp(input={}, description="No input.\\n\\nAt all.")
    def plain(self):
        return None

    @mcp(name="same")
    def other(self):
        """A tool."""

class Config(Resource, uri="config://app", name="config", mime_type="application/json", size=12,
             annotations=ContentAnnotations(audience=["user"], priority=0.5)):
    """The configuration."""
    def read(self, uri, ctx):
        return "{}"

class Note(ResourceTemplate, uri_template="note://{day}{?tags*}", name="note"):
    """The note of a day."""
    def read(self, uri, args, ctx):
        return "x"

class Same(Prompt, name="same"):
    """A prompt."""
    class Arguments(Schema):
        code: str = argument(title="Code", description="To look at")
        style: str | None = None
    def get(self, args, ctx):
        return "x"

class Hotel(Server, name="hotel", version="2"):
    tools = [Kit]
    resources = [Config, Note]
    prompts = [Same]
'''


@pytest.fixture
def hotel(folder):
    """A working directory with a server of every kind."""
    (folder / "hotel.py").write_text(SERVER)


def test_a_tool(hotel, run):
    """It has arguments with types, constraints and nesting, the output, hints, and a command."""
    status, out, err = run("describe", "hotel.py", "book")
    assert (status, err) == (0, "")
    assert out == (
        "book: a tool of hotel 2\n"
        "  Book it\n"
        "  Book a room.\n"
        "\n"
        "Arguments\n"
        "  guest   object (needed)\n"
        "          A guest of the hotel.\n"
        "    name  text of at most 20 letters (needed)\n"
        "          As on the door\n"
        "    tags  list of texts ([] unless given)\n"
        "  nights  whole number from 1 to 30 (needed)\n"
        '  wing    "a" or "b" ("a" unless given)\n'
        "\n"
        "Output\n"
        "  name  text of at most 20 letters (always)\n"
        "        As on the door\n"
        "  tags  list of texts ([] unless given)\n"
        "\n"
        "Hints\n"
        "  may change something\n"
        "  reaches other systems\n"
        "\n"
        "Example\n"
        '  noizu-mcp call hotel.py book \'guest={"name": "NAME"}\' nights=1\n'
    )


def test_the_example_works(hotel, run):
    """The command that is shown can be run unchanged."""
    line = run("describe", "hotel.py", "book")[1].splitlines()[-1]
    status, out, _ = run(*shlex.split(line)[1:])
    assert (status, json.loads(out)) == (0, {"name": "NAME", "tags": []})


def test_a_hidden_tool(hotel, run):
    """It is shown for a server in this process, and marked; its output has no fields."""
    status, out, _ = run("describe", "hotel.py", "secret")
    assert status == 0
    assert out.startswith("secret: a tool of hotel 2, hidden\n")
    assert "\nOutput\n  list of whole numbers\n" in out


def test_a_tool_without_arguments(hotel, run):
    """The text says that there are none."""
    out = run("describe", "hotel.py", "plain")[1]
    assert "  No input.\n\n  At all.\n\nArguments\n  none are named\n" in out


def test_a_resource(hotel, run):
    """A resource is found by its URI or its name."""
    status, out, _ = run("describe", "hotel.py", "config://app")
    assert run("describe", "hotel.py", "config") == (status, out, "") == (0, out, "")
    assert out.endswith(
        "\nContents\n"
        "  name        config\n"
        "  media type  application/json\n"
        "  bytes       12\n"
        "  for         user\n"
        "  priority    0.5\n"
        "\n"
        "Example\n"
        "  noizu-mcp read hotel.py config://app\n"
    )


def test_a_template(hotel, run):
    """It has variables, and an example that fills in the required ones."""
    out = run("describe", "hotel.py", "note://{day}{?tags*}")[1]
    assert "\nVariables\n  day   text (needed)\n  tags  list (optional)\n" in out
    assert out.endswith("  noizu-mcp read hotel.py note://DAY\n")


def test_two_of_one_name(hotel, run):
    """Both are described; JSON has a key for each."""
    status, out, _ = run("describe", "hotel.py", "same")
    assert status == 0
    assert "same: a tool of" in out
    assert "\n\nsame: a prompt of hotel 2\n  A prompt.\n" in out
    assert "\n  code   needed\n         Code: To look at\n  style  optional\n" in out
    assert out.endswith("  noizu-mcp prompt hotel.py same code=CODE\n")
    found = json.loads(run("describe", "hotel.py", "same", "--json")[1])
    assert {kind: each["name"] for kind, each in found.items()} == {
        "tool": "same",
        "prompt": "same",
    }


def test_a_server_of_a_command(folder, run):
    """The example contains the command; hidden components are unknown."""
    serve = f"import sys; sys.path.insert(0, {ROOT!r}); import demo; demo.Demo().run()"
    words = ("--", sys.executable, "-c", serve)
    out = run("describe", "echo", *words)[1]
    assert shlex.split(out.splitlines()[-1])[:3] == ["noizu-mcp", "call", "echo"]
    assert shlex.split(out.splitlines()[-1])[-4:] == list(words)
    assert run("describe", "secret", *words)[0] == 2


def test_an_unknown_name(hotel, run):
    """The nearest name of any kind is suggested, but not a hidden one."""
    told = "noizu-mcp: nothing is called bok; did you mean book?\n"
    assert run("describe", "hotel.py", "bok") == (2, "", told)
    assert "secret" not in run("describe", "hotel.py", "secre")[2]


def test_a_server_that_lists_half(folder, run):
    """An unknown method counts as an empty list; any other error is reported."""
    (folder / "half.py").write_text(
        "from noizu_mcp import McpError, Server\n"
        "class Half(Server, name='half', version='1'):\n"
        "    async def list_tools(self, cursor, ctx):\n"
        "        raise McpError(CODE, 'no')\n".replace("CODE", "-32601")
    )
    told = "noizu-mcp: nothing is called x; there are: none\n"
    assert run("describe", "half.py", "x") == (2, "", told)
    text = (folder / "half.py").read_text().replace("-32601", "-32603")
    (folder / "broken.py").write_text(text)
    assert run("describe", "broken.py", "x") == (1, "", "noizu-mcp: no (-32603)\n")


ODD = """
from noizu_mcp import Server

TEMPLATE = {"uriTemplate": "a://{", "name": "broken"}

class Odd(Server, name="odd", title="The \\x1b[2Jodd", version="1"):
    async def list_tools(self, cursor, ctx):
        return [
            {"name": "any", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
            {"name": "loop", "inputSchema": {"type": "object", "properties": {
                "a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}, "d": {"$ref": "#"}}}},
            {"name": "true", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object",
                "properties": {"x": True}}},
        ]
    async def list_resource_templates(self, cursor, ctx):
        return [TEMPLATE]
"""


@pytest.fixture
def described(run, tape):
    """Describe a tool with one argument; return the rows of its arguments, and its example."""

    def described(x, **schema):
        schema = {"type": "object", "properties": {"x": x}, **schema}
        taped = tape(("tools/list", {}, {"tools": [{"name": "t", "inputSchema": schema}]}))
        status, out, err = run("describe", taped, "t")
        assert (status, err) == (0, "")
        rows, example = out.partition("\nArguments\n")[2].split("\n\nExample\n")
        words = shlex.split(example)
        assert words[:4] == ["noizu-mcp", "call", taped, "t"]
        return [row.removeprefix("  ") for row in rows.split("\n")], "".join(words[4:])

    return described


def test_what_servers_send(folder, run):
    """Any schema and any template has a text of bounded length without control characters."""
    (folder / "odd.py").write_text(ODD)
    out = run("describe", "odd.py", "any")[1]
    assert out.startswith("any: a tool of The \\u{1B}[2Jodd 1\n")
    assert "\nArguments\n  none are named\n\nOutput\n  an object\n" in out
    assert len(run("describe", "odd.py", "loop")[1].splitlines()) == 206
    assert "\nOutput\n  x  any value (optional)\n" in run("describe", "odd.py", "true")[1]
    out = run("describe", "odd.py", "broken")[1]
    assert "\nVariables\n  none\n" in out
    assert out.endswith("noizu-mcp read odd.py 'a://{'\n")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (True, "any value"),
        (False, "nothing"),
        ({}, "any value"),
        ({"const": 1}, "1"),
        ({"enum": [1]}, "1"),
        ({"enum": [*range(20)]}, ", ".join(map(str, range(12))) + " or 8 others"),
        ({"type": ["string", "null"]}, "text or null"),
        ({"anyOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]}, "text or null"),
        ({"oneOf": [{"const": "a"}, {"$ref": "#/$defs/b~1c"}]}, '"a" or true or false'),
        ({"$ref": "#/$defs/none"}, "any value"),
        ({"$ref": "https://elsewhere"}, "any value"),
        ({"$ref": "#/$defs/self"}, "any value"),
        ({"type": "array"}, "list"),
        ({"type": "array", "uniqueItems": True}, "list of different items"),
        ({"type": "array", "items": {"type": "boolean"}}, "list, each true or false"),
        ({"type": "array", "minItems": 1, "maxItems": 1}, "list of exactly 1 item"),
        ({"type": "string", "minLength": 1, "maxLength": 9}, "text of 1 to 9 letters"),
        ({"type": "string", "format": "date"}, "text in the format date"),
        ({"type": "number", "exclusiveMinimum": 0}, "number above 0"),
        ({"type": "number", "maximum": 2, "multipleOf": 0.5}, "number up to 2 a multiple of 0.5"),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 1}, "any value above 1 and below 1"),
        ({"type": "odd"}, "odd"),
        ({"type": {}, "enum": 3, "anyOf": {}}, "any value"),
    ],
)
def test_schemas_in_words(described, schema, words):
    """Each common keyword has its text; others are left out."""
    root = {"$defs": {"b/c": {"type": "boolean"}, "self": {"$ref": "#/$defs/self"}}}
    assert described(x=schema, **root)[0] == [f"x  {words} (optional)"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"$ref": "#/$defs/a"}},
        {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]},
    ],
)
def test_fields_of_inner_objects(described, schema):
    """Fields of objects in lists and in alternatives are listed below them."""
    inner = {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]}
    rows, _ = described(x=schema, **{"$defs": {"a": inner}})
    assert len(rows) == 2
    assert rows[0].startswith("x ")
    assert rows[1] == "  y  text (needed)"


NUMBERS = st.integers(-5, 5)
SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "boolean"},
            {"enum": ["a", 1, None]},
            {"const": {"x": 1}},
            {"type": "string", "examples": ["e"]},
        ]
    )
    | st.builds(
        lambda kind, low: {"type": kind, "minimum": low},
        st.sampled_from(["integer", "number"]),
        NUMBERS,
    )
    | NUMBERS.map(lambda low: {"type": "integer", "exclusiveMinimum": low})
    | NUMBERS.map(lambda high: {"type": "number", "maximum": high}),
    lambda inner: (
        inner.map(lambda each: {"type": "array", "items": each})
        | st.lists(inner, min_size=1, max_size=3).map(lambda each: {"anyOf": each})
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda each: {"type": "object", "properties": each, "required": [*each][:2]}
        )
    ),
    max_leaves=6,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SCHEMAS)
def test_samples_are_valid(described, schema):
    """A generated example value fits its schema."""
    _, example = described(x=schema, required=["x"])
    text = example.removeprefix("x=")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    assert compile_schema(schema).is_valid(value)


KEYWORDS = (
    *("type", "enum", "const", "items", "properties", "required", "anyOf", "$ref", "minimum"),
    *("maximum", "minLength", "description", "default", "examples", "format", "x"),
)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYWORDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSONS)
def test_any_schema_has_words(described, schema):
    """Any value instead of a schema is accepted."""
    rows, example = described(x=schema, required=["x"])
    assert rows[0].startswith("x  ")
    assert example.startswith("x=")
