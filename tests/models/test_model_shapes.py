"""Tools, calls and results checked with the types of the providers' packages, if installed.

The packages are not in the extra `test`: `pip install anthropic openai google-genai` enables these
tests.
"""

from collections.abc import Iterable
from typing import get_type_hints

import pytest

from noizu_mcp import Content, ResourceContents, ToolResult
from noizu_mcp.models import result_for, tools_for
from noizu_mcp.types import ToolDefinition

pydantic = pytest.importorskip("pydantic")

TOOL = ToolDefinition(
    "files.read",
    description="Read a file.",
    input_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "lines": {"type": ["integer", "null"], "exclusiveMinimum": 0, "default": 10},
            "mode": {"enum": ["text", "bytes"]},
            "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
            "kind": {"const": 3},
            "$tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "maxItems": 3},
            "near": {"oneOf": [{"$ref": "#/$defs/tag"}, {"type": "boolean"}]},
            "any": True,
        },
        "required": ["path"],
        "$defs": {
            "tag": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "under": {"$ref": "#/$defs/tag"}},
                "required": ["name"],
            }
        },
    },
)
#: The same without a value of any type, for strict mode.
CLOSED = ToolDefinition(
    "files.read",
    description="Read a file.",
    input_schema={
        **TOOL.input_schema,
        "properties": {
            key: each
            for key, each in TOOL.input_schema["properties"].items()
            if key not in ("any", "$tags", "near")
        },
    },
)
NOTHING = ToolDefinition("now", input_schema={"type": "object"})
RESULTS = {
    "text": ToolResult("a text"),
    "nothing": ToolResult(),
    "an error": ToolResult.error("it failed"),
    "an error without text": ToolResult.error([]),
    "structured": ToolResult.ok(structured={"a": [1, None]}),
    "a number": ToolResult.ok(structured=1),
    "media": ToolResult(
        [
            "look",
            Content.image(b"\x89PNG", "image/png"),
            Content.audio(b"RIFF", "audio/wav"),
            Content.resource(ResourceContents("file:///a.pdf", "application/pdf", blob=b"%PDF")),
            Content.resource(ResourceContents("file:///a.txt", text="a")),
            Content.resource_link("file:///b.txt", "b"),
        ]
    ),
}
EACH_RESULT = pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
EACH_STRICTNESS = pytest.mark.parametrize("strict", [False, True])


def check(shape, value):
    """Check a value with a `TypedDict` of a package, including blocks; other keys are refused."""
    adapter = pydantic.TypeAdapter(shape)  # kept, since the values below refer to it
    read = adapter.validate_python(value)
    assert value.keys() <= get_type_hints(shape).keys()
    for each in read.values():
        if isinstance(each, Iterable):
            list(each)  # pydantic validates an `Iterable` when it is iterated


def tools_of(provider, strict):
    tools = tools_for(provider, [CLOSED if strict else TOOL, NOTHING], strict=strict)
    assert not any(each.effect == "not strict" for each in tools.report)
    return tools


@EACH_STRICTNESS
def test_tools_of_anthropic(strict):
    """Each tool is a `ToolParam`."""
    types = pytest.importorskip("anthropic.types")
    for each in tools_of("anthropic", strict):
        check(types.ToolParam, each)
        assert each["input_schema"]["type"] == "object"


@EACH_RESULT
def test_results_of_anthropic(result):
    """A `ToolUseBlock` is read, and its result is a `ToolResultBlockParam`."""
    types = pytest.importorskip("anthropic.types")
    block = types.ToolUseBlock(
        id="c1", name="files_read", input={"path": "a"}, type="tool_use", caller=None
    )
    call = tools_of("anthropic", strict=False).call_of(block)
    assert (call.id, call.name, call.arguments) == ("c1", "files.read", {"path": "a"})

    for each in (call, block, block.model_dump()):
        written = result_for("anthropic", each, result)
        check(types.ToolResultBlockParam, written)
        assert written["tool_use_id"] == "c1"


@EACH_STRICTNESS
def test_tools_of_openai(strict):
    """Each tool is a `ChatCompletionToolParam`."""
    types = pytest.importorskip("openai.types.chat")
    for each in tools_of("openai", strict):
        check(types.ChatCompletionFunctionToolParam, each)


@EACH_RESULT
def test_results_of_openai(result):
    """A `ChatCompletionMessageToolCall` is read, and its result is a message of a tool."""
    types = pytest.importorskip("openai.types.chat")
    sent = types.ChatCompletionMessageFunctionToolCall(
        id="c1", type="function", function={"name": "files_read", "arguments": '{"path": "a"}'}
    )
    call = tools_of("openai", strict=False).call_of(sent)
    assert (call.id, call.name, call.arguments) == ("c1", "files.read", {"path": "a"})

    for each in (call, sent, sent.model_dump()):
        check(types.ChatCompletionToolMessageParam, result_for("openai", each, result))


@EACH_STRICTNESS
def test_tools_of_openai_responses(strict):
    """Each tool is a `FunctionToolParam`."""
    types = pytest.importorskip("openai.types.responses")
    for each in tools_of("openai-responses", strict):
        check(types.FunctionToolParam, each)


@EACH_RESULT
def test_results_of_openai_responses(result):
    """A `ResponseFunctionToolCall` is read, and its result is a `function_call_output` item."""
    types = pytest.importorskip("openai.types.responses")
    params = pytest.importorskip("openai.types.responses.response_input_param")
    sent = types.ResponseFunctionToolCall(
        call_id="c1", type="function_call", name="files_read", arguments='{"path": "a"}'
    )
    call = tools_of("openai-responses", strict=False).call_of(sent)
    assert (call.id, call.name, call.arguments) == ("c1", "files.read", {"path": "a"})

    for each in (call, sent, sent.model_dump()):
        check(params.FunctionCallOutput, result_for("openai-responses", each, result))


def test_tools_of_gemini():
    """The tools are one `Tool`, whose models allow no other keys."""
    types = pytest.importorskip("google.genai.types")
    (tool,) = tools_of("gemini", strict=False)

    read = types.Tool.model_validate(tool)

    assert [each.name for each in read.function_declarations] == ["files.read", "now"]
    assert types.Tool(**tool) == read
    assert types.GenerateContentConfig(tools=[tool]).tools


@EACH_RESULT
def test_results_of_gemini(result):
    """A `Part` with a `FunctionCall` is read, and its result is a `Part`."""
    types = pytest.importorskip("google.genai.types")
    sent = types.FunctionCall(id="c1", name="files.read", args={"path": "a"})
    part = types.Part(function_call=sent)
    tools = tools_of("gemini", strict=False)

    for each in (part, sent, part.model_dump(), part.model_dump(by_alias=True)):
        call = tools.call_of(each)
        assert (call.id, call.name, call.arguments) == ("c1", "files.read", {"path": "a"})
        read = types.Part.model_validate(result_for("gemini", each, result))
        assert (read.function_response.id, read.function_response.name) == ("c1", "files.read")
