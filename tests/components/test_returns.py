"""Return values of handlers, on the wire."""

import dataclasses
import datetime as dt
import enum
import math
import uuid
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from noizu_mcp import ToolError
from noizu_mcp.components import Tool, ToolSpec, error_result, expand, to_result
from noizu_mcp.schema import Schema
from noizu_mcp.types import Content, ResourceContents, ToolResult, plain_text


def spec(**options: Any) -> ToolSpec:
    cls: Any = type(Tool)("Answer", (Tool,), {"call": lambda self: None}, **options)
    return expand([cls])[0]


class Level(enum.Enum):
    """A key with a value that is no text."""

    HIGH = 2


PLAIN = spec()
HITS = spec(output_schema={"type": "object", "properties": {"hits": {"type": "integer"}}})
NUMBERS = spec(output_schema={"type": "array", "items": {"type": "integer"}})
NULLABLE = spec(output_schema={"type": ["string", "null"], "maxLength": 3})


@attrs.frozen
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Pair:
    a: Point
    b: list[Point]


class Colour(enum.Enum):
    RED = "red"


class Word(str):
    __slots__ = ()


TEXT = {"type": "text", "text": "x"}
#: Marks a result that replaces a value which breaks the output schema.
BROKE = {"com.noizu.mcp/broken-output": True}


@pytest.mark.parametrize(
    ("tool", "value", "wire"),
    [
        (PLAIN, "x", {"content": [TEXT]}),
        (PLAIN, Word("x"), {"content": [TEXT]}),
        (PLAIN, None, {"content": []}),
        (PLAIN, Colour.RED, {"content": [{"type": "text", "text": "red"}]}),
        (PLAIN, 3, {"content": [{"type": "text", "text": "3"}]}),
        (PLAIN, [1, "é"], {"content": [{"type": "text", "text": '[1,"é"]'}]}),
        (PLAIN, [], {"content": [{"type": "text", "text": "[]"}]}),
        (
            PLAIN,
            {"b": 1, "a": None},
            {
                "content": [{"type": "text", "text": '{"b":1,"a":null}'}],
                "structuredContent": {"b": 1, "a": None},
            },
        ),
        (
            PLAIN,
            Pair(Point(1), [Point(2)]),
            {
                "content": [{"type": "text", "text": '{"a":{"x":1,"y":0},"b":[{"x":2,"y":0}]}'}],
                "structuredContent": {"a": {"x": 1, "y": 0}, "b": [{"x": 2, "y": 0}]},
            },
        ),
        (PLAIN, Content.text("x"), {"content": [TEXT]}),
        (PLAIN, [Content.text("x"), "x", TEXT], {"content": [TEXT, TEXT, TEXT]}),
        (PLAIN, [TEXT], {"content": [TEXT]}),
        (PLAIN, (Content.text("x"),), {"content": [TEXT]}),
        (PLAIN, plain_text("x"), {"content": [TEXT]}),
        (PLAIN, [{"type": "cat"}], {"content": [{"type": "text", "text": '[{"type":"cat"}]'}]}),
        (
            PLAIN,
            TEXT,
            {
                "content": [{"type": "text", "text": '{"type":"text","text":"x"}'}],
                "structuredContent": TEXT,
            },
        ),
        (
            HITS,
            {"hits": 1},
            {"content": [{"type": "text", "text": '{"hits":1}'}], "structuredContent": {"hits": 1}},
        ),
        (
            NUMBERS,
            (1, 2),
            {"content": [{"type": "text", "text": "[1,2]"}], "structuredContent": [1, 2]},
        ),
        (
            NULLABLE,
            None,
            {"content": [{"type": "text", "text": "null"}], "structuredContent": None},
        ),
        (
            NULLABLE,
            "abc",
            {"content": [{"type": "text", "text": "abc"}], "structuredContent": "abc"},
        ),
        (
            NULLABLE,
            Colour.RED,
            {"content": [{"type": "text", "text": "red"}], "structuredContent": "red"},
        ),
        (
            PLAIN,
            ToolResult("x", structured=Point(1), meta={"k": 1}),
            {"content": [TEXT], "structuredContent": {"x": 1, "y": 0}, "_meta": {"k": 1}},
        ),
        (HITS, ToolResult.error("x"), {"content": [TEXT], "isError": True}),
        (NULLABLE, ToolResult("x", None), {"content": [TEXT], "structuredContent": None}),
        (HITS, ToolResult("x", {"hits": 2}), {"content": [TEXT], "structuredContent": {"hits": 2}}),
        (
            HITS,
            ToolResult.error("x", structured={"hits": "no"}),
            {"content": [TEXT], "structuredContent": {"hits": "no"}, "isError": True},
        ),
        (
            PLAIN,
            Content.resource(ResourceContents("a:b", blob=b"x")),
            {"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "eA=="}}]},
        ),
    ],
)
def test_table(tool: ToolSpec, value: Any, wire: Any) -> None:
    """Each kind of value becomes what the specification defines for it."""
    result, detail = to_result(tool, value)
    assert detail is None
    assert result.to_wire() == wire


def test_data_that_looks_like_content() -> None:
    """If a declared schema accepts the list, it is data."""
    rows = spec(output_schema={"type": "array", "items": {"required": ["type", "text"]}})
    result, _ = to_result(rows, [TEXT])
    assert result.structured == [TEXT]


def test_typed_output() -> None:
    """An instance of the declared class, or a matching mapping, is structured content."""

    class Search(Tool):
        class Output(Schema):
            hits: int

        def call(self) -> Output:
            return self.Output(hits=3)

    (search,) = expand([Search])
    for value in (Search().call(), {"hits": 3}):
        result, detail = to_result(search, value)
        assert (result.structured, detail) == ({"hits": 3}, None)
    result, detail = to_result(search, {"hits": "3"})
    assert result == ToolResult.error("Tool search broke its output contract", meta=BROKE)
    assert detail is not None
    assert "/hits: expected integer" in detail


class Closed:
    """A class without a JSON form."""


async def _coroutine() -> None: ...


CYCLE: list[Any] = []
CYCLE.append(CYCLE)

BROKEN = {
    "object": (PLAIN, Closed),
    "nested object": (PLAIN, lambda: {"a": [Closed()]}),
    "nan": (PLAIN, lambda: math.nan),
    "infinity inside": (PLAIN, lambda: {"a": [math.inf]}),
    "cycle": (PLAIN, lambda: CYCLE),
    "tuple as key": (PLAIN, lambda: {(1, 2): "a"}),
    "bytes as key": (PLAIN, lambda: [{b"k": "a"}]),
    "nan as key": (PLAIN, lambda: {math.nan: "a"}),
    "one key twice": (PLAIN, lambda: {1: "a", "1": "b"}),
    "tuple as key with a schema": (HITS, lambda: {"hits": 1, (1, 2): 2}),
    "bytes": (PLAIN, lambda: b"x"),
    "huge integer": (PLAIN, lambda: 10**5000),
    "coroutine": (PLAIN, _coroutine),
    "generator": (PLAIN, lambda: (i for i in ())),
    "content and data": (PLAIN, lambda: [Content.text("x"), 3]),
    "malformed content": (PLAIN, lambda: [{"type": "text"}]),
    "result with an object": (PLAIN, lambda: ToolResult("x", Closed())),
    "result with nan": (PLAIN, lambda: ToolResult("x", math.nan)),
    "meta with an object": (PLAIN, lambda: ToolResult("x", meta={"a": Closed()})),
    "breach": (HITS, lambda: {"hits": "3"}),
    "breach by kind": (HITS, lambda: 3),
    "breach by a text": (HITS, lambda: "x"),
    "breach by a long text": (NULLABLE, lambda: "abcd"),
    "breach by nothing": (HITS, lambda: None),
    "content alone": (HITS, lambda: Content.text("x")),
    "a list of content alone": (HITS, lambda: [Content.text("x"), "x"]),
    "mappings of content alone": (HITS, lambda: [TEXT]),
    "content alone, null allowed": (NULLABLE, lambda: Content.text("x")),
    "a result without structured content": (HITS, lambda: ToolResult("x")),
    "a result without structured content, null allowed": (NULLABLE, lambda: ToolResult("x")),
    "breach of a result": (HITS, lambda: ToolResult("x", {"hits": "3"})),
    "object with a schema": (NUMBERS, lambda: [Closed()]),
    "nan with a schema": (NUMBERS, lambda: [math.nan]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_sent(name: str) -> None:
    """The client gets an error, and the log the reason."""
    tool, make = BROKEN[name]
    result, detail = to_result(tool, make())
    broke = ToolResult.error("Tool answer broke its output contract", meta=BROKE)
    assert result == (ToolResult.error("Tool execution failed") if tool is PLAIN else broke)
    assert detail is not None
    assert detail.startswith(f"the answer of {tool.source} was not sent: ")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (1, "1"),
        (-2.5, "-2.5"),
        (True, "true"),
        (None, "null"),
        (Level.HIGH, "2"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_keys_that_are_no_text(key: Any, text: str) -> None:
    """They become strings as in `json.dumps`, or the text of their value, at any depth."""
    result, detail = to_result(PLAIN, {key: {key: [1]}})
    assert (None, {text: {text: [1]}}) == (detail, result.structured)
    assert Content.text(f'{{"{text}":{{"{text}":[1]}}}}') == result.content[0]
    result, detail = to_result(PLAIN, ToolResult.ok("x", structured={key: 1}))
    assert (None, {text: 1}) == (detail, result.structured)
    result, detail = to_result(None, {key: 1})
    assert (None, {text: 1}) == (detail, result.structured)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({(1, 2): "a"}, "the keys of a JSON object are text, and tuple has none"),
        ({b"k": "a"}, "the keys of a JSON object are text, and bytes has none"),
        ({1: "a", "1": "b"}, "two keys of one object would both be '1' in JSON"),
    ],
)
def test_the_log_names_the_type_of_a_key(value: Any, why: str) -> None:
    """A key without an obvious form, or with the text of another key, is named in the log."""
    _, detail = to_result(PLAIN, value)
    assert detail is not None
    assert why in detail


@pytest.mark.parametrize(
    ("tool", "value", "why"),
    [
        (PLAIN, {"values": [1.0, math.nan]}, "/values/1: JSON cannot express NaN"),
        (PLAIN, -math.inf, "(root): JSON cannot express -Infinity"),
        (PLAIN, ToolResult("x", [math.inf]), "/0: JSON cannot express Infinity"),
        (PLAIN, {"n": 10**5000}, "Exceeds the limit"),
        (NUMBERS, [1, math.nan], "/1: expected integer, got NaN, which JSON cannot express"),
        (PLAIN, [Closed()], "Closed has no JSON form; return JSON values"),
        (PLAIN, SecretStr, "has no JSON form"),
    ],
)
def test_the_log_names_the_place_or_the_type(tool: Any, value: Any, why: str) -> None:
    """JSON has no NaN, which is not replaced silently; other values are named by their type."""
    _, detail = to_result(tool, value)
    assert detail is not None
    assert why in detail


def test_values_of_the_standard_library_are_results() -> None:
    """Each becomes its standard text, alone and inside of containers."""
    shown = {"path": Path("a/b"), "for": dt.timedelta(hours=1), "secret": SecretStr("word")}
    result, detail = to_result(PLAIN, shown)
    assert detail is None
    assert result.structured == {"path": "a/b", "for": "PT1H", "secret": "**********"}
    assert to_result(PLAIN, Path("a"))[0] == ToolResult(Content.text("a"))


def test_an_answer_without_a_tool() -> None:
    """The result of a `call_tool` override is read as without a schema."""
    assert to_result(None, {"a": 1}) == (ToolResult('{"a":1}', {"a": 1}), None)
    assert to_result(None, ToolResult("x", 1)) == (ToolResult("x", 1), None)
    result, detail = to_result(None, Closed())
    assert result == ToolResult.error("Tool execution failed")
    assert detail is not None
    assert detail.startswith("the answer of an override was not sent: TypeError(")


def test_the_log_says_what_is_missing() -> None:
    """Content alone cannot fulfil an output schema; the log says how to."""
    _, detail = to_result(HITS, ToolResult("x"))
    assert detail is not None
    assert "no structured content" in detail
    assert "ToolResult(content, structured=…)" in detail


@pytest.mark.parametrize(
    ("error", "wire"),
    [
        (ToolError("x"), {"content": [TEXT], "isError": True}),
        (ToolError(Content.text("x")), {"content": [TEXT], "isError": True}),
        (
            ToolError(["x", TEXT], meta={"k": 1}),
            {"content": [TEXT, TEXT], "isError": True, "_meta": {"k": 1}},
        ),
        (
            ToolError(),
            {"content": [{"type": "text", "text": "Tool execution failed"}], "isError": True},
        ),
        (
            ToolError(3),
            {"content": [{"type": "text", "text": "Tool execution failed"}], "isError": True},
        ),
        (
            ToolError({"a": 1}),
            {"content": [{"type": "text", "text": "Tool execution failed"}], "isError": True},
        ),
    ],
)
def test_tool_errors(error: ToolError, wire: Any) -> None:
    """The model reads the content of the error."""
    assert error_result(error).to_wire() == wire


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.sampled_from([PLAIN, HITS, NUMBERS, NULLABLE]), JSON)
def test_anything_becomes_a_result(tool: ToolSpec, value: Any) -> None:
    """No value raises, and what is sent can be read back."""
    result, detail = to_result(tool, value)
    assert (detail is not None) == result.is_error
    # server/tools, Output Schema: conforming content is required whenever the tool succeeded.
    assert tool is PLAIN or result.is_error or result.has_structured
    assert ToolResult.from_wire(result.to_wire()) == result
