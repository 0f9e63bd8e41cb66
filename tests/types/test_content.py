"""Content blocks: made by class methods, read by attributes, base64 only on the wire."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import ProtocolError
from noizu_mcp.types import (
    Content,
    ContentAnnotations,
    Icon,
    ResourceContents,
    ToolResult,
    as_blocks,
    plain_text,
    text_content,
)

ANNOTATIONS = ContentAnnotations(
    audience=["user"], priority=0.5, last_modified="2026-01-01T00:00:00Z"
)


def test_text() -> None:
    """The same name makes a text block and reads its text."""
    block = Content.text("hi", annotations=ANNOTATIONS, meta={"k": 1})
    assert (block.type, block.text, block.meta) == ("text", "hi", {"k": 1})
    assert block.to_wire() == {
        "type": "text",
        "text": "hi",
        "annotations": {
            "audience": ["user"],
            "priority": 0.5,
            "lastModified": "2026-01-01T00:00:00Z",
        },
        "_meta": {"k": 1},
    }


@pytest.mark.parametrize(("make", "kind"), [(Content.image, "image"), (Content.audio, "audio")])
def test_binary(make: Any, kind: str) -> None:
    """Bytes in Python are base64 on the wire."""
    block = make(b"\x00\xff", "x/y")
    assert (block.type, block.data, block.mime_type) == (kind, b"\x00\xff", "x/y")
    assert block.to_wire() == {"type": kind, "data": "AP8=", "mimeType": "x/y"}


def test_resource_link() -> None:
    """A link has the fields of a resource; absent ones are None without a key."""
    block = Content.resource_link("a:b", "b", size=3, icons=[Icon("data:,")])
    assert (block.uri, block.name, block.title, block.size) == ("a:b", "b", None, 3)
    assert (block.description, block.mime_type, block.icons) == (None, None, (Icon("data:,"),))
    wire = {
        "type": "resource_link",
        "uri": "a:b",
        "name": "b",
        "size": 3,
        "icons": [{"src": "data:,"}],
    }
    assert block.to_wire() == wire
    assert Content.from_wire({"type": "resource_link", "uri": "a:b", "name": "b"}).icons == ()


def test_resource() -> None:
    """A resource is embedded as text or as bytes."""
    text = Content.resource(ResourceContents("a:b", "text/plain", text="t"))
    blob = Content.resource(ResourceContents("a:b", blob=b"t"))
    assert text.resource.text == "t"
    assert blob.resource.blob == b"t"
    assert text.to_wire()["resource"] == {"uri": "a:b", "mimeType": "text/plain", "text": "t"}
    assert blob.to_wire()["resource"] == {"uri": "a:b", "blob": "dA=="}


def test_missing_attribute() -> None:
    """A field of another type of block raises an AttributeError that lists the fields."""
    block = Content.image(b"", "x/y")
    with pytest.raises(
        AttributeError, match=r"type 'image' has no 'text'; it has data, mime_type$"
    ):
        _ = block.text
    with pytest.raises(AttributeError, match=r"type 'new' has no 'uri'; it has only \.extra$"):
        _ = Content.from_wire({"type": "new"}).uri
    assert not hasattr(block, "resource")
    assert Content.data is not None


def test_unknown_type_is_kept() -> None:
    """A block of an unknown type keeps all of its keys."""
    wire = {"type": "tool_use", "id": "1", "annotations": 7, "_meta": None}
    block = Content.from_wire(wire)
    assert block.type == "tool_use"
    assert block.extra == {"id": "1", "annotations": 7, "_meta": None}
    assert block.to_wire() == wire


def test_repr_shows_what_is_there() -> None:
    """The repr is short."""
    assert repr(Content.text("x")) == "Content(type='text', text='x')"
    shown = repr(Content.from_wire({"type": "new", "a": 1}))
    assert shown == "Content(type='new', extra={'a': 1})"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Content.text(5), "Content.text: text: expected a string, got 5"),
        (lambda: Content.image(5, "y"), "Content.image: data: expected bytes, got 5"),
        (
            lambda: Content.text("x", annotations={}),
            "Content.text: annotations: expected an instance of ContentAnnotations, got {}",
        ),
        (lambda: Content.resource("x"), "Content.resource: resource: expected an instance of"),
        (lambda: as_blocks(5), "expected content, got int; wrap it: Content.text(…)"),
        (lambda: as_blocks(b"5"), "expected content, got bytes; wrap it: Content.text(…)"),
        (lambda: as_blocks([5]), "expected a content block, got int"),
    ],
)
def test_wrong_values_are_refused(make: Any, message: str) -> None:
    """The error is raised where the value is made."""
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("x", 'content: expected an object, got "x"'),
        ({}, "content.type: expected a string, got nothing"),
        ({"type": "text"}, "content.text: expected a string, got nothing"),
        ({"type": "text", "text": 5}, "content.text: expected a string, got 5"),
        ({"type": "image", "data": "?", "mimeType": "a"}, 'content.data: expected base64, got "?"'),
        (
            {"type": "resource", "resource": {"uri": "a:b", "text": "", "blob": ""}},
            "content.resource: give either text= or blob=",
        ),
    ],
)
def test_errors_of_a_peer(wire: Any, message: str) -> None:
    """A malformed value of a peer is a protocol error with the field."""
    with pytest.raises(ProtocolError) as caught:
        Content.from_wire(wire)
    assert str(caught.value) == message


def test_blocks_from_what_authors_write() -> None:
    """A text, a block, a mapping and lists of them are content."""
    block = Content.text("x")
    assert as_blocks("x") == (block,)
    assert as_blocks(block) == (block,)
    assert as_blocks(iter([block, "x"])) == (block, block)
    assert as_blocks({"type": "text", "text": "x"}) == (block,)
    assert as_blocks(["x", block, {"type": "text", "text": "x"}]) == (block, block, block)


def test_helpers() -> None:
    """Both shortcuts make a list of one text."""
    assert plain_text("x") == [Content.text("x")]
    assert text_content({"é": [1, None]}) == [Content.text('{"é":[1,null]}')]


def blocks() -> st.SearchStrategy[Content]:
    """Return blocks of every known type."""
    text, data = st.text(), st.binary()
    contents = st.builds(ResourceContents, text, text=text) | st.builds(
        ResourceContents, text, st.none() | text, blob=data
    )
    return st.one_of(
        text.map(Content.text),
        st.builds(Content.image, data, text),
        st.builds(Content.audio, data, text, meta=st.dictionaries(text, st.integers())),
        st.builds(
            Content.resource_link,
            text,
            text,
            title=st.none() | text,
            size=st.none() | st.integers(),
        ),
        contents.map(Content.resource),
    )


@settings(max_examples=100, deadline=None)
@given(blocks())
def test_round_trip(block: Content) -> None:
    """Every block is restored from its wire form."""
    assert Content.from_wire(block.to_wire()) == block


BLOCKS = {
    "TextContent": Content.text("x", annotations=ContentAnnotations(audience=["user"], priority=1)),
    "ImageContent": Content.image(b"x", "image/png"),
    "AudioContent": Content.audio(b"x", "audio/wav"),
    "ResourceLink": Content.resource_link("a:b", "b", title="t", size=1, description="d"),
    "EmbeddedResource": Content.resource(ResourceContents("a:b", "x/y", blob=b"x")),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_official_schema(name: str, official: Any) -> None:
    """Every block is valid in the revisions that define it."""
    official(name, BLOCKS[name].to_wire())


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (Content.text, "Content.text"),
        (Content.image, "Content.image"),
        (Content.audio, "Content.audio"),
        (Content.resource_link, "Content.resource_link"),
        (Content.resource, "Content.resource"),
        (ToolResult.ok, "ToolResult.ok"),
        (ToolResult.error, "ToolResult.error"),
    ],
)
def test_errors_name_what_was_called(function: Any, name: str) -> None:
    """The error for a wrong argument has the public name of the function."""
    with pytest.raises(TypeError) as caught:
        function(foo=1)
    assert str(caught.value).startswith(f"{name}() got an unexpected keyword argument 'foo'")
    assert name.endswith(f".{function.__name__}")
