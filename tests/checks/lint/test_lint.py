"""`lint`: findings about tools, as models and their APIs read them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import McpError, Server, SyncClient, Toolkit, connect, field, mcp, tool
from noizu_mcp.check.lint import RULES, Finding, estimate_tokens, lint, lint_tools
from noizu_mcp.types import ToolDefinition

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "docs" / "examples").glob("*.py"))
TEXT = {"type": "string", "description": "Some text, such as a line."}


def define(name="find_file", description="Search the disk.", schema=None, **properties):
    schema = schema or {"type": "object", "properties": properties}
    return ToolDefinition(name, description=description, input_schema=schema)


def found(*tools, rule=None, **options):
    """List the findings: rule, tool, path and severity."""
    findings = lint_tools(tools, **options).findings
    return [
        (each.rule, each.tool, each.path, each.severity)
        for each in findings
        if rule is None or each.rule == rule
    ]


def texts(*tools, rule, **options):
    return [each.text for each in lint_tools(tools, **options).findings if each.rule == rule]


class Notes(Toolkit):
    """Notes."""

    @mcp
    def add_note(self, text: str = field(description="The note, in Markdown.")) -> str:
        """Append a note to the notebook of today."""
        return text


class Notebook(Server, name="notebook", version="1"):
    """A server without findings."""

    tools = (Notes,)


def test_a_good_tool_has_no_finding():
    """A tool with a good name, descriptions and types has no findings."""
    report = lint(Notebook)

    assert report.findings == ()
    assert str(report) == "no findings"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_no_error(example):
    """Every host and every API accepts the tools of the documentation's examples."""
    if "Server" not in example.read_text(encoding="utf-8"):
        pytest.skip("no server")
    pytest.importorskip("pydantic")

    server = {"dynamic": ":Plugins"}.get(example.stem, "")
    assert lint(f"{example}{server}").at_least("error") == ()


@pytest.mark.parametrize(("code", "fails"), [(-32601, False), (-32603, True)])
def test_a_server_that_cannot_list(code, fails):
    """A server without tools has no findings; any other error is raised."""

    class Bare(Server, name="bare", version="1"):
        """It answers the list of tools with an error."""

        async def list_tools(self, cursor, ctx):
            raise McpError(code, "no")

    if fails:
        with pytest.raises(McpError, match="no"):
            lint(Bare)
    else:
        assert lint(Bare).tokens == {}


async def test_an_async_test_gives_the_tools():
    """In a trio task `lint` refers to `lint_tools`, which takes the tools of a client."""
    with pytest.raises(RuntimeError, match="plain function"):
        lint(Notebook)
    async with connect(Notebook) as client:
        assert lint_tools(await client.list_tools()).findings == ()


def test_a_client_of_plain_code_lists_the_same():
    """The tokens are the same for the tools that a client lists."""
    with SyncClient(Notebook) as client:
        (listed,) = client.list_tools()

    report = lint(Notebook)
    assert report.tokens == {"add_note": estimate_tokens(listed)}
    assert report.total_tokens == estimate_tokens(listed)


def test_the_estimate_is_a_quarter_of_the_bytes():
    """Only name, description and input schema count, as compact JSON in UTF-8."""
    plain = ToolDefinition("ab", description="é", title="Long title", input_schema={"a": 1})
    size = len('{"name":"ab","description":"é","inputSchema":{"a":1}}'.encode())

    assert estimate_tokens(plain) == -(-size // 4)


@given(st.text(), st.text())
def test_a_longer_description_takes_no_fewer_tokens(first, second):
    """Adding text to a description never reduces the estimate."""
    short, long = (define(description=text) for text in (first, first + second))

    assert estimate_tokens(short) <= estimate_tokens(long)


def test_duplicate_names():
    """Two tools with one name are one error, and each is checked once."""
    twice = [define(query=TEXT), define(query=TEXT)]

    assert found(*twice) == [("duplicate-name", "find_file", "", "error")]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"title": "x"}, 'its "type" is not "object"'),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "properties.a.type"),
        ({"type": "object", "$ref": "#/$defs/gone"}, "gone"),
    ],
)
def test_a_schema_that_is_not_valid(schema, text):
    """Its only finding about parameters says what is wrong."""
    (seen,) = texts(define(schema=schema), rule="tool-schema")

    assert text in seen
    assert {rule for rule, *_ in found(define(schema=schema))} == {"tool-schema"}


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": ["array", "null"]}])
def test_a_list_without_items(schema):
    """It is an error at any depth."""
    inner = {"type": "object", "properties": {"rows": {**schema, "description": "All rows."}}}
    nested = define(table={**inner, "description": "One table."})
    path = "/properties/table/properties/rows"

    assert ("array-items", "find_file", path, "error") in found(nested)
    complete = define(rows={**schema, "description": "All rows.", "items": {"type": "string"}})
    assert found(complete, rule="array-items") == []


@pytest.mark.parametrize(
    ("name", "severity"),
    [("file-name", "warning"), ("file.name", "warning"), ("1st", "warning"), ("a b", "error")],
)
def test_names_of_parameters(name, severity):
    """A name that only Gemini refuses is a warning, a name that Anthropic refuses an error."""
    path = f"/properties/{name}"

    assert found(define(**{name: TEXT}), rule="parameter-name") == [
        ("parameter-name", "find_file", path, severity)
    ]
    assert found(define(**{name: TEXT}), rule="parameter-name", apis=["openai"]) == []


@pytest.mark.parametrize("name", ["x" * 65, ""])
def test_names_of_parameters_have_a_length(name):
    """1 to 64 characters are accepted."""
    assert [each[3] for each in found(define(**{name: TEXT}), rule="parameter-name")] == ["error"]
    assert found(define(**{"x" * 64: TEXT}), rule="parameter-name") == []


def test_names_of_nested_parameters():
    """The path is a JSON pointer, with its escapes."""
    inner = {"type": "object", "description": "A map.", "properties": {"a~/": TEXT}}
    (finding,) = found(define(map=inner), rule="parameter-name")

    assert finding[2] == "/properties/map/properties/a~0~1"


def test_names_of_tools():
    """A name is compared with the limits of each selected API."""
    assert texts(define("files.read"), rule="tool-name") == [
        "anthropic, openai cannot take the name"
    ]
    assert texts(define("files.read"), rule="tool-name", apis=["gemini"]) == []
    assert len(texts(define("x" * 65), rule="tool-name")) == 1


def test_a_missing_description():
    """White space is not a description, nor is a title."""
    for text in (None, "", " \n"):
        assert ("description-missing", "find_file", "", "warning") in found(
            define(description=text)
        )


def test_equal_descriptions():
    """Case and white space are ignored; the finding lists all tools."""
    tools = [define("a_one", "Search all."), define("b_two", "search\n all."), define("c_three")]

    assert texts(*tools, rule="description-duplicate") == ["a_one, b_two have one description"]


def test_equal_descriptions_of_parameters():
    """Two parameters of one tool are compared, too."""
    same = {"type": "string", "description": "Where it goes."}

    assert found(define(source=same, target=same)) == [
        ("description-duplicate", "find_file", "/properties/target", "warning")
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [("getUser", "get_user"), ("list-users", "list_user"), ("HTTPGet", "http_get")],
)
def test_similar_names(one, other):
    """Names that differ only in case, separators or plural are the same to a model."""
    tools = [define(one, "Search the disk."), define(other, "Search the tape.")]

    assert found(*tools, rule="similar-names") == [("similar-names", other, "", "warning")]
    parameters = define(**{one: TEXT, other: {**TEXT, "description": "Some other text."}})
    assert found(parameters, rule="similar-names") == [
        ("similar-names", "find_file", f"/properties/{other}", "warning")
    ]


@pytest.mark.parametrize("text", ["Find file", "The find-file tool.", "find_file"])
def test_a_description_that_repeats_the_name(text):
    """Words that every description has do not count."""
    assert found(define(description=text)) == [
        ("description-repeats-name", "find_file", "", "note")
    ]


def test_a_description_that_repeats_the_parameter():
    """`path: the path` has no information."""
    echo = {"type": "string", "description": "The path."}

    assert found(define(path=echo)) == [
        ("description-repeats-name", "find_file", "/properties/path", "note")
    ]


def test_a_vague_name():
    """One word that fits every tool is vague."""
    assert found(define("Run")) == [("vague-name", "Run", "", "note")]


DEFINITIONS = {
    "Text": TEXT,
    "Any": {"description": "Something."},
    "Loop": {"anyOf": [{"$ref": "#/$defs/Text"}, {"$ref": "#/$defs/Text"}]},
}


def parameter(schema):
    root = {"type": "object", "properties": {"p": schema}, "$defs": DEFINITIONS}
    return {rule for rule, _, path, _ in found(define(schema=root)) if path == "/properties/p"}


@pytest.mark.parametrize(
    "schema",
    [
        TEXT,
        {"$ref": "#/$defs/Text"},
        {"$ref": "#/$defs/Loop"},
        {"allOf": [{"$ref": "#/$defs/Any"}, {"type": "string"}]},
        {"anyOf": [TEXT, {"type": "null"}]},
        {"enum": ["a", "b"], "description": "One letter."},
        {"const": 1, "description": "The version."},
    ],
)
def test_types_and_descriptions_are_followed(schema):
    """A type or description may come from a reference or an alternative."""
    assert parameter(schema) & {"parameter-type", "parameter-description"} == set()


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"title": "P"},
        {"minLength": 1, "maximum": 3},
        {"anyOf": [{"type": "string"}, {}]},
        {"oneOf": [True]},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    ],
)
def test_a_parameter_without_type(schema):
    """It has a finding for the type, and one for the description."""
    assert {"parameter-type", "parameter-description"} <= parameter(schema)


def test_references_that_branch():
    """Each schema is read once, however many references lead to it."""
    root = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"items": True, "anyOf": [{"$ref": "#/$defs/a"}] * 9}},
    }
    report = lint_tools([define(schema=root)], apis=[])

    assert {each.rule for each in report.findings} == {"parameter-type", "parameter-description"}


def test_no_value_is_a_type():
    """A parameter that must not be sent needs no type."""
    assert "parameter-type" not in parameter(False)


def test_parameters_in_parameters_are_notes():
    """A model sees them in their context."""
    inner = {"type": "object", "description": "A point.", "properties": {"x": {}}}
    place = "/properties/at/properties/x"
    findings = [each for each in found(define(at=inner)) if each[2] == place]

    assert ("parameter-type", "find_file", place, "note") in findings
    assert ("parameter-description", "find_file", place, "note") in findings


@pytest.mark.parametrize(
    ("schema", "severity"),
    [
        ({"type": "array", "items": TEXT}, "note"),
        ({"type": "array", "items": {"type": "object", "properties": {"x": TEXT}}}, "note"),
        ({"anyOf": [{"type": "object", "properties": {"x": TEXT}}, {"type": "null"}]}, "note"),
        ({"type": "object", "properties": {"x": TEXT, "y": {"type": "string"}}}, "warning"),
        ({"type": "array", "items": {"type": "string"}}, "warning"),
        ({"type": "object", "properties": {}}, "warning"),
    ],
)
def test_members_tell_what_a_parameter_is_for(schema, severity):
    """If all members have a description, their object or list needs it less."""
    place = ("parameter-description", "find_file", "/properties/p", severity)

    assert place in found(define(p=schema))


def test_alternatives_at_the_root():
    """No API accepts them; one finding lists all APIs."""
    one, other = ({"required": [name]} for name in ("a", "b"))
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "anyOf": [one, other]}
    (text,) = texts(define(schema=schema), rule="root-alternatives")

    assert text.startswith("anthropic, openai, gemini: anyOf: ")


def test_keywords_that_an_api_does_not_take():
    """The finding has the mode of the API; equal reasons are merged."""
    number = {"type": "integer", "minimum": 1, "maximum": 9}
    numbers = {name: {**number, "description": f"The {name} one."} for name in ("left", "right")}
    tools = [define(**numbers)]
    two = "it; the description tells it (and at 1 other place)"

    assert texts(*tools, rule="keyword") == [
        f"anthropic strict: minimum, maximum: the API does not take {two}"
    ]
    third = {**number, "description": "The middle one."}
    (text,) = texts(define(**numbers, middle=third), rule="keyword")
    assert text.endswith("(and at 2 other places)")
    assert texts(*tools, rule="keyword", apis=["openai"]) == []


def test_a_tool_that_cannot_be_strict():
    """Each tool has a finding with the reason and the path."""
    free = {"type": "object", "description": "Headers by name."}

    assert found(define(headers=free), rule="strict") == [
        ("strict", "find_file", "/properties/headers", "note")
    ]


def test_tools_that_cannot_be_strict_together():
    """Each of these tools is within the limits of a request, but together they are not."""
    tools = [
        define(f"find_{letter}_file", f"Search disk {letter}.")
        for letter in "abcdefghijklmnopqrstu"
    ]

    assert found(*tools, apis=["anthropic"]) == [("strict-together", "", "", "note")]
    assert found(*tools[1:], apis=["anthropic"]) == []


def test_a_schema_too_large_to_describe():
    """A schema that grows exponentially by its references is not given to a model."""
    levels = {
        f"L{level}": {
            "type": "object",
            "properties": {
                name: {"$ref": f"#/$defs/L{level + 1}", "description": f"Side {name}, below."}
                for name in ("left", "right")
            },
        }
        for level in range(13)
    }
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/L0", "description": "All of it."}},
        "$defs": {**levels, "L13": {"type": "string"}},
    }

    assert [each[0] for each in found(define(schema=schema), apis=["gemini"])] == [
        "undescribed-schema"
    ]


def test_too_many_tools():
    """More than 50 are a note; more than an API accepts are an error."""
    tools = [
        define(f"find_{chr(97 + n % 26) * (n // 26 + 1)}_file", f"Disk {n}.") for n in range(129)
    ]

    assert found(*tools, rule="many-tools") == [("many-tools", "", "", "note")]
    assert found(*tools[:50], rule="many-tools") == []
    assert texts(*tools, rule="tool-count") == [
        "129 tools; openai takes at most 128 in one request"
    ]
    assert found(*tools[:128], rule="tool-count") == []
    assert found(*tools, rule="tool-count", apis=["anthropic"]) == []


def test_sizes():
    """A large tool is a note, and a large list a warning."""
    tools = [define(f"find_{letter}_file", f"Disk {letter}. " * 700) for letter in "abcdefgh"]

    assert found(tools[0], rule="tool-size") == [("tool-size", "find_a_file", "", "note")]
    assert found(tools[0], rule="total-size") == []
    assert found(*tools, rule="total-size") == [("total-size", "", "", "warning")]


def test_rules_can_be_left_out():
    """An ignored rule has no findings; an unknown rule or API is refused."""
    bad = define("run", None)

    assert {each[0] for each in found(bad, ignore=["vague-name"])} == {"description-missing"}
    with pytest.raises(ValueError, match="unknown rule 'nope'; there are: duplicate-name"):
        lint_tools([bad], ignore=["nope"])
    with pytest.raises(ValueError, match="unknown API 'nope'; there are: anthropic"):
        lint_tools([bad], apis=["nope"])
    with pytest.raises(ValueError, match="unknown severity 'nope'; there are: error"):
        lint_tools([bad]).at_least("nope")


def test_the_report():
    """The worst findings come first; `at_least` selects them; the JSON has all of them."""
    report = lint_tools([define("run", None, rows={"type": "array"})])
    severities = [each.severity for each in report.findings]

    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert report.at_least("note") == report.findings
    assert [each.rule for each in report.at_least("error")] == ["array-items"]
    assert {each.severity for each in report.at_least("warning")} == {"error", "warning"}
    wire = json.loads(json.dumps(report.to_json()))
    assert wire["tokens"] == {"run": wire["totalTokens"]}
    assert wire["findings"][0] == {
        "severity": "error",
        "rule": "array-items",
        "tool": "run",
        "path": "/properties/rows",
        "seen": "a list without `items`",
        "do": RULES["array-items"].remedy,
        "source": RULES["array-items"].source,
    }
    assert str(report).splitlines()[0] == (
        "error: run /properties/rows: a list without `items` (array-items); "
        + RULES["array-items"].remedy
    )


def test_the_place_of_a_finding_about_all_tools():
    """It is described in words."""
    assert Finding("many-tools", "", "", "60 tools", "note").place == "all tools"


def test_a_list_in_place_of_a_server():
    """`lint` accepts the targets of `connect`."""

    def seek(path: str) -> str:
        """Move the head of the tape."""
        return path

    class Tape(Server, name="tape", version="1"):
        """A server with one function."""

        tools = (tool(seek),)

    assert [each.rule for each in lint(Tape()).findings] == ["parameter-description"]
