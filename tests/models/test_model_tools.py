"""`tools_for`: names, calls, strict mode and its limits."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import Server, ToolError, Toolkit, connect, mcp
from noizu_mcp.models import ModelCall, tools_for
from noizu_mcp.types import ToolDefinition

NOTHING = {"type": "object"}


def tool(name="t", schema=NOTHING, **options):
    return ToolDefinition(name, input_schema=schema, **options)


def described(**properties):
    return {"type": "object", "properties": properties}


def names(provider, *given):
    """Return the names that a model gets for tools with these names."""
    made = tools_for(provider, [tool(name) for name in given])
    if provider == "gemini":
        return [each["name"] for each in made[0]["functionDeclarations"]]
    return [each.get("function", each)["name"] for each in made]


def called(provider, name, arguments):
    """Return a call as the API sends it."""
    return {
        "anthropic": {"type": "tool_use", "id": "1", "name": name, "input": arguments},
        "openai": {"id": "1", "function": {"name": name, "arguments": arguments}},
        "openai-responses": {"id": "fc", "call_id": "1", "name": name, "arguments": arguments},
        "gemini": {"functionCall": {"id": "1", "name": name, "args": arguments}},
    }[provider]


EACH = pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses", "gemini"])


def test_the_shapes():
    """Each API gets the value of its parameter `tools`."""
    one = tool("add", described(a={"type": "integer"}), description="Add.")
    schema = described(a={"type": "integer"})

    assert tools_for("anthropic", [one]) == [
        {"name": "add", "description": "Add.", "input_schema": schema}
    ]
    assert tools_for("openai", [one]) == [
        {
            "type": "function",
            "function": {"name": "add", "description": "Add.", "parameters": schema},
        }
    ]
    assert tools_for("openai-responses", [one]) == [
        {
            "type": "function",
            "name": "add",
            "description": "Add.",
            "parameters": schema,
            "strict": False,
        }
    ]
    adapted = {"type": "OBJECT", "properties": {"a": {"type": "INTEGER"}}}
    assert tools_for("gemini", [one]) == [
        {"functionDeclarations": [{"name": "add", "description": "Add.", "parameters": adapted}]}
    ]


@EACH
async def test_a_call_reaches_its_tool(provider):
    """Tools of a server are listed, called by a model, and run."""

    class Kit(Toolkit):
        @mcp(name="math.add")
        def add(self, a: int, b: int = 1) -> int:
            return a + b

    class Sums(Server, name="sums", version="1"):
        tools = [Kit]

    async with connect(Sums) as client:
        tools = tools_for(provider, await client.list_tools())
        (name,) = names(provider, "math.add")
        call = tools.call_of(called(provider, name, {"a": 2}))
        result = await client.call_tool(call.name, call.arguments)

    assert call == ModelCall("1", "math.add", {"a": 2}, name)
    assert result.structured == 3
    assert tools.report == ()


@EACH
def test_no_tools(provider):
    """No tools are an empty list."""
    assert tools_for(provider, []) == []


def test_a_tool_without_a_description():
    """The description is replaced by the title, or else by the name."""
    made = tools_for("anthropic", [tool("a", title="An A"), tool("b")])

    assert [each["description"] for each in made] == ["An A", "b"]


def test_names():
    """Characters that an API refuses are replaced; a duplicate name gets a digest."""
    assert names("anthropic", "files.read", "say_hi") == ["files_read", "say_hi"]
    assert names("gemini", "files.read", "2d", "a b") == ["files.read", "_d", "a_b"]
    assert names("openai", "a.b", "a_b", "a b") == ["a_b_2e7336dc", "a_b", "a_b_c8687a08"]
    assert names("openai", "x" * 65) == ["x" * 55 + "_9537c5fd"]


@EACH
@given(given_names=st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=8))
def test_each_name_leads_back(provider, given_names):
    """Every name is legal, unique, independent of the order, and can be mapped back."""
    made = names(provider, *given_names) if given_names else []
    tools = tools_for(provider, map(tool, given_names))

    assert all(0 < len(name) <= 64 and name.isascii() for name in made)
    assert len(set(made)) == len(made)
    assert [tools.name_of(name) for name in made] == given_names
    if given_names:
        assert names(provider, *given_names[::-1])[::-1] == made


def test_two_tools_of_one_name():
    """Two tools of one name are refused, as calls could not distinguish them."""
    with pytest.raises(ValueError, match="two tools have the name 'a'; give the servers prefixes"):
        tools_for("openai", [tool("a"), tool("b"), tool("a")])


def test_unknown_names_stay():
    """A call of an unknown tool keeps its name, for the error of the server."""
    tools = tools_for("openai", [tool("a.b")])

    assert tools.call_of(called("openai", "made_up", "{}")).name == "made_up"


def test_unknown_providers():
    """The error for an unknown provider lists the known ones."""
    with pytest.raises(
        ValueError, match="unknown provider 'mistral'; there are: anthropic, openai"
    ):
        tools_for("mistral", [])


def test_gemini_has_no_strict_mode():
    """Strict mode is refused where the API has none."""
    with pytest.raises(ValueError, match="gemini has no strict mode"):
        tools_for("gemini", [], strict=True)


ARGUMENTS = {
    "text": ('{"a": 1}', {"a": 1}),
    "no text": ("", {}),
    "nothing": (None, {}),
    "a mapping": ({"a": 1}, {"a": 1}),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments(case):
    """Arguments are JSON text or a mapping; None means no arguments."""
    sent, expected = ARGUMENTS[case]

    assert tools_for("openai", []).call_of(called("openai", "t", sent)).arguments == expected


WRONG = {
    "no JSON": ('{"a": ', "The arguments are not JSON: "),
    "too deep": ("[" * 100_000, "The arguments are not JSON: "),
    "a list": ("[1]", "The arguments must be a JSON object"),
    "a number": (1, "The arguments must be a JSON object"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    """Arguments that are not a JSON object are an error for the model."""
    sent, text = WRONG[case]

    with pytest.raises(ToolError) as caught:
        tools_for("openai", []).call_of(called("openai", "t", sent))

    assert str(caught.value).startswith(text)


@EACH
@pytest.mark.parametrize("sent", [None, {}, "text", SimpleNamespace(type="text")])
def test_what_is_no_call(provider, sent):
    """Another part of a reply is refused."""
    with pytest.raises(TypeError, match="expected a call of a tool, got "):
        tools_for(provider, []).call_of(sent)


def test_objects_are_read():
    """The objects of a provider's package are read by their attributes."""
    call = SimpleNamespace(id="1", name="t", input={"a": 1})

    assert tools_for("anthropic", []).call_of(call) == ModelCall("1", "t", {"a": 1}, "t")


# Strict mode


def strict(schema, provider="openai"):
    """Return the schema of a tool in strict mode, and a function that reads arguments."""
    tools = tools_for(provider, [tool("t", schema)], strict=True)
    made = tools[0].get("function", tools[0])
    assert made["strict"] is True, tools.report
    adapted = made.get("parameters") or made["input_schema"]
    return adapted, lambda sent: tools.call_of(called(provider, "t", sent)).arguments


def test_optional_properties_are_null():
    """With OpenAI an optional property is required, and null means absence."""
    schema = described(
        a={"type": "string"},
        b={"type": ["integer", "null"]},
        c={"type": ["integer", "null"], "default": 3},
        d={"type": "array", "items": described(e={"enum": ["x"]})},
    ) | {"required": ["a"]}

    adapted, read = strict(schema)

    assert adapted["required"] == ["a", "b", "c", "d"]
    assert adapted["additionalProperties"] is False
    assert adapted["properties"]["a"] == {"type": "string"}
    assert adapted["properties"]["c"]["description"] == "(default: 3)"
    inner = adapted["properties"]["d"]["items"]["properties"]["e"]
    assert inner == {"type": ["string", "null"], "enum": ["x", None]}
    # For `b` null is a value; for `c` the default would be lost.
    assert read({"a": "x", "b": None, "c": None, "d": None}) == {"a": "x", "b": None}
    assert read({"a": "x", "d": [{"e": None}, {"e": "x"}]}) == {"a": "x", "d": [{}, {"e": "x"}]}
    # Without strict mode a model may send anything.
    assert read({"d": 1, "e": {"f": None}}) == {"d": 1, "e": {"f": None}}
    assert read({"d": [1]}) == {"d": [1]}


def test_nulls_in_alternatives():
    """Null is removed by the alternative that the value belongs to."""
    cat = described(kind={"const": "cat"}, lives={"type": "integer"}) | {"required": ["kind"]}
    dog = described(kind={"const": "dog"}, lives={"type": ["null", "integer"]})
    dog["required"] = ["kind", "lives"]
    _, read = strict(described(pet={"anyOf": [cat, dog, {"type": "string"}]}))

    assert read({"pet": {"kind": "cat", "lives": None}}) == {"pet": {"kind": "cat"}}
    assert read({"pet": {"kind": "dog", "lives": None}}) == {"pet": {"kind": "dog", "lives": None}}
    assert read({"pet": "x"}) == {"pet": "x"}
    assert read({"pet": {"kind": "bird"}}) == {"pet": {"kind": "bird"}}


def test_a_pattern_that_no_engine_knows():
    """An alternative with an invalid pattern accepts its value; the server checks it."""
    cat = described(name={"type": "string", "pattern": "["}, age={"type": "integer"})
    _, read = strict(described(pet={"anyOf": [cat, {"type": "string"}]}))

    assert read({"pet": {"name": "x", "age": None}}) == {"pet": {"name": "x"}}


TREE = {"$ref": "#/$defs/node", "$defs": {"node": None}}
TREE["$defs"]["node"] = described(
    name={"type": "string"}, below={"type": "array", "items": {"$ref": "#/$defs/node"}}
)


def test_recursive_schemas():
    """OpenAI accepts a recursive schema, and its nulls are removed at any depth."""
    adapted, read = strict(TREE)

    assert adapted["$defs"].keys() == {"node"}
    sent = {"name": None, "below": [{"name": "a", "below": [{"name": "b", "below": None}]}]}
    assert read(sent) == {"below": [{"name": "a", "below": [{"name": "b"}]}]}


def test_tools_without_arguments():
    """A tool without arguments has none in strict mode."""
    adapted, _ = strict(NOTHING)

    assert adapted == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


NO = "not strict: strict mode takes no"
OPEN = f"t /properties/a additionalProperties: {NO} object with names of any kind"
LONG = "t: not strict: strict mode takes 15000 characters in a long enum, and there would be 15060"
REFUSED = {
    "any value": (
        described(a={}),
        "t /properties/a type: not strict: strict mode takes no value of any type",
    ),
    "an open object": (
        described(a={"type": "object", "additionalProperties": {"type": "string"}}),
        OPEN,
    ),
    "an object of nothing": (
        described(a={"type": "object"}),
        OPEN,
    ),
    "places of a list": (
        described(a={"type": "array", "prefixItems": [{"type": "string"}]}),
        f"t /properties/a prefixItems: {NO} list with a schema for each place",
    ),
    "required and unknown": (
        described(a={"type": "string"}) | {"required": ["b"]},
        "t required: not strict: b is required and has no schema",
    ),
    "recursion with more": (
        described(a={"$ref": "#/$defs/a"})
        | {"$defs": {"a": described(b={"$ref": "#/$defs/a", "minProperties": 1})}},
        f"t /properties/a/properties/b $ref: {NO} schema that leads to itself",
    ),
    "depth": (
        described(a=json.loads('{"type":"array","items":' * 10 + '{"type":"string"}' + "}" * 10)),
        "t: not strict: strict mode takes 10 levels, and there would be 11",
    ),
    "enum": (
        described(a={"enum": list(range(1001))}) | {"required": ["a"]},
        "t: not strict: strict mode takes 1000 enum values, and there would be 1001",
    ),
    "a long enum": (
        described(a={"enum": [f"{n:060}" for n in range(251)]}) | {"required": ["a"]},
        LONG,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_strict_mode_does_not_take(case):
    """A tool that strict mode cannot express is sent without it, and reported."""
    schema, text = REFUSED[case]
    tools = tools_for("openai", [tool("t", schema)], strict=True)

    assert "strict" not in tools[0]["function"]
    assert tools[0]["function"]["parameters"] == schema
    (loss,) = tools.report
    assert str(loss) == text


def test_limits_of_one_request():
    """With Anthropic the limits apply to all tools together; further tools are not strict."""
    wide = described(**{f"p{n}": {"type": "string"} for n in range(20)})
    tools = tools_for("anthropic", [tool("a", wide), tool("b", wide), tool("c")], strict=True)

    assert [each.get("strict", False) for each in tools] == [True, False, True]
    assert [str(each) for each in tools.report] == [
        "b: not strict: strict mode takes 24 optional properties, and there would be 40"
    ]


def test_the_number_of_strict_tools():
    """Anthropic allows twenty strict tools."""
    tools = tools_for("anthropic", [tool(f"t{n}") for n in range(22)], strict=True)

    assert sum(each.get("strict", False) for each in tools) == 20
    assert [each.tool for each in tools.report] == ["t20", "t21"]


def test_the_number_of_tools():
    """More tools than the API allows are reported, and described nevertheless."""
    tools = tools_for("openai", [tool(f"t{n}") for n in range(129)])

    assert len(tools) == 129
    (loss,) = tools.report
    assert str(loss) == "tools: narrower: 129 tools; the API documents at most 128 in one request"
