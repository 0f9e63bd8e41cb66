"""The outbound filters, revision by revision."""

import copy

import pytest

from noizu_mcp.protocol import (
    REVISIONS,
    adapt_block,
    adapt_definition,
    adapt_implementation,
    adapt_output_schema,
    adapt_tool,
    adapt_tool_result,
)

A, B, C, D = "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
ICONS = [{"src": "https://x/i.png"}]
IMPLEMENTATION = {
    "name": "n",
    "version": "1",
    "title": "T",
    "description": "d",
    "websiteUrl": "https://x",
    "icons": ICONS,
}
PROMPT = {
    "name": "p",
    "title": "T",
    "icons": ICONS,
    "_meta": {"k": 1},
    "arguments": [{"name": "a", "title": "A", "required": True}],
}
RESOURCE = {
    "name": "r",
    "uri": "r:",
    "title": "T",
    "annotations": {"priority": 1, "lastModified": "2025-01-01T00:00:00Z"},
}
TOOL = {
    "name": "t",
    "title": "T",
    "icons": ICONS,
    "_meta": {"k": 1},
    "execution": {"taskSupport": "optional"},
    "annotations": {"readOnlyHint": True},
    "inputSchema": {"type": "object", "properties": {"any": True, "none": False, "x": {}}},
    "outputSchema": {"type": "object", "properties": {"any": True}},
}


def without(value, *keys):
    return {key: item for key, item in value.items() if key not in keys}


@pytest.fixture
def unchanged():
    """Watch values; after the test they must be unchanged."""
    watched = []

    def watch(value):
        watched.append((value, copy.deepcopy(value)))
        return value

    yield watch
    for value, before in watched:
        assert value == before


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        (A, ["name", "version"]),
        (B, ["name", "version", "title"]),
        (C, list(IMPLEMENTATION)),
        (D, list(IMPLEMENTATION)),
    ],
)
def test_implementation(unchanged, name, fields):
    """The `Implementation` of the server has the fields of the revision."""
    adapted = adapt_implementation(unchanged(IMPLEMENTATION), REVISIONS[name])
    assert adapted == {field: IMPLEMENTATION[field] for field in fields}


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        (A, {"name": "p", "arguments": [{"name": "a", "required": True}]}),
        (B, without(PROMPT, "icons")),
        (C, PROMPT),
        (D, PROMPT),
    ],
)
def test_prompt(unchanged, name, prompt):
    """Titles and `_meta` exist since 2025-06-18, icons since 2025-11-25."""
    assert adapt_definition(unchanged(PROMPT), REVISIONS[name]) == prompt


@pytest.mark.parametrize("name", REVISIONS)
def test_resource(unchanged, name):
    """2025-03-26 has no `lastModified`."""
    expected = {"name": "r", "uri": "r:", "annotations": {"priority": 1}} if name == A else RESOURCE
    assert adapt_definition(unchanged(RESOURCE), REVISIONS[name]) == expected


@pytest.mark.parametrize("name", REVISIONS)
def test_bare_definition(unchanged, name):
    """A definition without special fields is written unchanged."""
    assert adapt_definition(unchanged({"name": "x"}), REVISIONS[name]) == {"name": "x"}
    for schema in ({"type": "object"}, {"type": "object", "properties": {"a": {}}}):
        tool = {"name": "x", "inputSchema": schema}
        assert adapt_tool(unchanged(tool), REVISIONS[name]) == tool
    assert adapt_tool(unchanged({"name": "x"}), REVISIONS[name]) == {"name": "x"}


def test_tool(unchanged):
    """A tool has the fields of each revision."""
    watched = unchanged(TOOL)
    objects = {"any": {}, "none": {"not": {}}, "x": {}}
    old = {
        "name": "t",
        "annotations": {"title": "T", "readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": objects},
    }
    handshake = {
        **TOOL,
        "inputSchema": {"type": "object", "properties": objects},
        "outputSchema": {"type": "object", "properties": {"any": {}}},
    }
    assert adapt_tool(watched, REVISIONS[A]) == old
    assert adapt_tool(watched, REVISIONS[B]) == without(handshake, "icons", "execution")
    assert adapt_tool(watched, REVISIONS[C]) == handshake
    assert adapt_tool(watched, REVISIONS[D]) == without(TOOL, "execution")


@pytest.mark.parametrize("annotations", [{}, {"annotations": None}, {"annotations": {}}])
def test_tool_title(annotations):
    """On 2025-03-26 the title is an annotation; an existing annotation stays."""
    tool = {"name": "t", "title": "T", "inputSchema": {"type": "object"}, **annotations}
    if annotations.get("annotations") is None:
        tool.pop("annotations", None)
    assert adapt_tool(tool, REVISIONS[A])["annotations"] == {"title": "T"}
    tool["annotations"] = {"title": "Mine"}
    assert adapt_tool(tool, REVISIONS[A])["annotations"] == {"title": "Mine"}


@pytest.mark.parametrize(
    "schema", [{"type": "integer"}, {}, {"type": ["object", "null"]}, {"properties": {}}]
)
def test_output_schema(unchanged, schema):
    """A schema that is not an object's is wrapped for revisions that only have objects."""
    wrapped = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    unchanged(schema)
    assert adapt_output_schema(schema, REVISIONS[A]) is None
    assert adapt_output_schema(schema, REVISIONS[B]) == wrapped
    assert adapt_output_schema(schema, REVISIONS[C]) == wrapped
    assert adapt_output_schema(schema, REVISIONS[D]) is schema
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
    assert "outputSchema" not in adapt_tool(unchanged(tool), REVISIONS[A])
    assert adapt_tool(tool, REVISIONS[B])["outputSchema"] == wrapped


ABSENT = object()
OBJECT, NUMBER = {"type": "object"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("value", "schema", "name", "sent"),
    [
        ({"a": 1}, OBJECT, A, ABSENT),
        ({"a": 1}, OBJECT, B, {"a": 1}),
        ({"a": 1}, None, C, {"a": 1}),
        ({}, OBJECT, B, {}),
        ({}, None, C, {}),
        ({"a": 1}, NUMBER, C, {"result": {"a": 1}}),
        ({"a": 1}, OBJECT, D, {"a": 1}),
        (5, NUMBER, A, ABSENT),
        (5, NUMBER, B, {"result": 5}),
        (0, NUMBER, C, {"result": 0}),
        (None, {"type": "null"}, C, {"result": None}),
        ([], {"type": "array"}, C, {"result": []}),
        (5, None, A, ABSENT),
        (5, None, B, {"result": 5}),
        (5, OBJECT, C, ABSENT),
        (None, None, C, {"result": None}),
        (None, None, D, None),
        ([], NUMBER, D, []),
        (0, None, D, 0),
    ],
)
def test_structured_content(unchanged, value, schema, name, sent):
    """Structured output is absent, an object or any value; the text has it in any case."""
    content = [{"type": "text", "text": "x"}]
    result = unchanged({"content": content, "structuredContent": value, "isError": False})
    adapted = adapt_tool_result(result, unchanged(schema), REVISIONS[name])
    expected = {"content": content, "isError": False}
    if sent is not ABSENT:
        expected["structuredContent"] = sent
    assert adapted == expected


@pytest.mark.parametrize("name", REVISIONS)
def test_result_without_structure(unchanged, name):
    """Nothing is added."""
    result = unchanged({"content": [], "_meta": {"k": 1}})
    assert adapt_tool_result(result, NUMBER, REVISIONS[name]) == result
    assert adapt_tool_result({}, None, REVISIONS[name]) == {}


LINK = {"type": "resource_link", "uri": "r:1", "name": "n", "title": "T", "_meta": {"k": 1}}


@pytest.mark.parametrize(
    ("block", "old"),
    [
        (LINK, {"type": "text", "text": "T: r:1"}),
        (without(LINK, "title"), {"type": "text", "text": "n: r:1"}),
        (without(LINK, "title", "name"), {"type": "text", "text": "r:1"}),
        (
            {**LINK, "annotations": {"priority": 1, "lastModified": "x"}},
            {"type": "text", "text": "T: r:1", "annotations": {"priority": 1}},
        ),
        ({"type": "text", "text": "x", "_meta": {}}, {"type": "text", "text": "x"}),
        (
            {"type": "audio", "data": "", "mimeType": "a/b", "annotations": {"audience": ["user"]}},
            {"type": "audio", "data": "", "mimeType": "a/b", "annotations": {"audience": ["user"]}},
        ),
        (
            {"type": "resource", "_meta": {}, "resource": {"uri": "r:", "text": "", "_meta": {}}},
            {"type": "resource", "resource": {"uri": "r:", "text": ""}},
        ),
    ],
)
def test_blocks(unchanged, block, old):
    """2025-03-26 has no links, no `_meta` and no `lastModified`; later blocks are unchanged."""
    assert adapt_block(unchanged(block)) == old
    result = {"content": [block]}
    assert adapt_tool_result(result, None, REVISIONS[A]) == {"content": [old]}
    assert adapt_tool_result(result, None, REVISIONS[B]) == result
