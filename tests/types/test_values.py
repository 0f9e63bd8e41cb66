"""Tool results and definitions, capabilities, identities."""

from typing import Any

import pytest

from noizu_mcp import ProtocolError
from noizu_mcp.types import (
    LOG_LEVELS,
    Annotations,
    ClientCapabilities,
    Content,
    Icon,
    Implementation,
    ServerCapabilities,
    ToolDefinition,
    ToolResult,
)


def test_result_keeps_null_apart_from_nothing() -> None:
    """2026-07-28 allows null as structured content."""
    nothing, null = ToolResult("x"), ToolResult("x", structured=None)
    assert (nothing.structured, nothing.has_structured) == (None, False)
    assert (null.structured, null.has_structured) == (None, True)
    assert nothing.to_wire() == {"content": [{"type": "text", "text": "x"}]}
    assert null.to_wire() == {**nothing.to_wire(), "structuredContent": None}
    assert ToolResult.from_wire(null.to_wire()) == null
    assert ToolResult.from_wire(nothing.to_wire()) == nothing


def test_repr_shows_what_is_there() -> None:
    """Null is shown, absent fields are not."""
    assert repr(ToolResult()) == "ToolResult(content=())"
    shown = repr(ToolResult("x", structured=None, meta={}))
    assert shown == (
        "ToolResult(content=(Content(type='text', text='x'),), structured=None, meta={})"
    )
    result = ToolResult.from_wire({"content": [], "isError": True, "new": 1})
    assert repr(result) == "ToolResult(content=(), is_error=True, extra={'new': 1})"
    assert repr(ToolResult(violations=["a"])) == "ToolResult(content=(), violations=['a'])"


def test_ok_and_error() -> None:
    """The two shortcuts work; a structured result without text gets its JSON as text."""
    assert ToolResult.ok().to_wire() == {"content": []}
    assert ToolResult.ok("x", meta={"a": 1}).to_wire() == {
        "content": [{"type": "text", "text": "x"}],
        "_meta": {"a": 1},
    }
    assert ToolResult.ok(structured={"a": [1]}) == ToolResult('{"a":[1]}', {"a": [1]})
    assert ToolResult.ok([], structured=1).content == ()
    error = ToolResult.error(["no", Content.text("way")], structured={})
    assert error.to_wire() == {
        "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "way"}],
        "structuredContent": {},
        "isError": True,
    }


def test_result_from_a_peer() -> None:
    """Unknown keys are kept, except the envelope of 2026-07-28."""
    wire = {
        "resultType": "complete",
        "content": [{"type": "new", "a": 1}],
        "isError": False,
        "_meta": {"k": 1},
        "other": 2,
    }
    result = ToolResult.from_wire(wire)
    assert result.content[0].extra == {"a": 1}
    assert (result.is_error, result.meta, result.extra) == (False, {"k": 1}, {"other": 2})
    assert result.to_wire() == {"content": wire["content"], "_meta": {"k": 1}, "other": 2}


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (None, "result: expected an object, got null"),
        ({}, "result.content: expected a list, got nothing"),
        ({"content": {}}, "result.content: expected a list, got {}"),
        ({"content": [{"type": 1}]}, "result.content[0].type: expected a string, got 1"),
        ({"content": [], "isError": 1}, "result.isError: expected true or false, got 1"),
        ({"content": [], "_meta": []}, "result._meta: expected an object, got []"),
    ],
)
def test_result_errors(wire: Any, message: str) -> None:
    """A malformed value of a peer is a protocol error with the field."""
    with pytest.raises(ProtocolError) as caught:
        ToolResult.from_wire(wire)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("sampling", True),
        ("sampling.tools", True),
        ("sampling.context", False),
        ("roots.listChanged", False),
        ("elicitation", False),
        ("elicitation.url", False),
        ("extensions.io.modelcontextprotocol/tasks", True),
        ("extensions.io.modelcontextprotocol/other", False),
        ("vendor.thing", True),
        ("vendor.thing.deeper", False),
    ],
)
def test_has(path: str, there: bool) -> None:
    """The key must be present; ids with dots and unknown keys are found, too."""
    wire = {
        "sampling": {"tools": {}},
        "roots": {"listChanged": False},
        "elicitation": None,
        "extensions": {"io.modelcontextprotocol/tasks": {}},
        "vendor": {"thing": True},
    }
    assert ClientCapabilities.from_wire(wire).has(path) is there


def test_log_levels_are_in_order() -> None:
    """The index of a level is its rank."""
    assert LOG_LEVELS[0] == "debug"
    assert LOG_LEVELS.index("warning") < LOG_LEVELS.index("error") < LOG_LEVELS.index("emergency")
    assert len(LOG_LEVELS) == 8


def test_values_are_final() -> None:
    """Values cannot be subclassed."""
    with pytest.raises(TypeError, match="More cannot subclass ToolResult, which is final"):
        type("More", (ToolResult,), {})


VALUES = {
    "Icon": Icon("data:,", "image/png", sizes=["any"], theme="light"),
    "Implementation": Implementation(
        "a",
        "1",
        title="A",
        description="d",
        website_url="https://x.example",
        icons=[Icon("data:,")],
    ),
    "ToolAnnotations": Annotations(
        title="t",
        read_only_hint=True,
        destructive_hint=False,
        idempotent_hint=True,
        open_world_hint=False,
    ),
    "ClientCapabilities": ClientCapabilities(
        roots={"listChanged": True}, sampling={}, elicitation={"form": {}}, experimental={"a": {}}
    ),
    "ServerCapabilities": ServerCapabilities(
        tools={"listChanged": True},
        resources={"subscribe": True},
        prompts={},
        logging={},
        completions={},
    ),
    "Tool": ToolDefinition(
        "t",
        title="T",
        description="d",
        input_schema={"type": "object"},
        output_schema={"type": "object"},
        annotations=Annotations(title="t"),
        icons=[Icon("data:,")],
        meta={"category": "c"},
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_official_schema(name: str, official: Any) -> None:
    """Every value is valid in the revisions that define it, and restored from its wire form."""
    value = VALUES[name]
    official(name, value.to_wire())
    assert type(value).from_wire(value.to_wire()) == value


@pytest.mark.parametrize(
    "result",
    [ToolResult("x"), ToolResult.error("x"), ToolResult.ok(structured={"a": 1}, meta={"k": 1})],
    ids=repr,
)
def test_official_result(result: ToolResult, official: Any, revision: str) -> None:
    """A result is valid in every revision; 2026-07-28 requires the envelope, too."""
    envelope = {"resultType": "complete"} if revision == "2026-07-28" else {}
    official("CallToolResult", {**result.to_wire(), **envelope})


def test_the_text_of_a_result():
    """Text blocks are joined by newlines; other blocks do not count."""
    picture = Content.image(b"x", "image/png")
    assert ToolResult(["one", picture, Content.text("two\n")]).text == "one\ntwo\n"
    assert ToolResult.error("no").text == "no"
    assert ToolResult([picture]).text == ToolResult().text == ""
