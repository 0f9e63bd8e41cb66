"""Values of resources."""

from typing import Any

import pytest

from noizu_mcp import ProtocolError
from noizu_mcp.types import (
    ContentAnnotations,
    Icon,
    ReadResult,
    ResourceContents,
    ResourceDefinition,
    ResourceTemplateDefinition,
)

RESOURCE = ResourceDefinition(
    "test://static-text",
    "text",
    title="Text",
    description="A text",
    mime_type="text/plain",
    size=3,
    annotations=ContentAnnotations(audience=["user"], priority=0.5),
    icons=[Icon("data:,")],
    meta={"k": 1},
)
TEMPLATE = ResourceTemplateDefinition(
    "test://template/{id}/data",
    "data",
    title="Data",
    description="Some data",
    mime_type="application/json",
    annotations=ContentAnnotations(priority=1),
    icons=[Icon("data:,")],
    meta={"k": 1},
)
READ = ReadResult(
    [
        ResourceContents("test://static-text", "text/plain", text="x"),
        ResourceContents("test://static-binary", "image/png", blob=b"\x00\xff"),
    ],
    meta={"k": 1},
)


@pytest.mark.parametrize(
    ("name", "value"), [("Resource", RESOURCE), ("ResourceTemplate", TEMPLATE)]
)
def test_official_definitions(name: str, value: Any, official: Any) -> None:
    """A definition is valid in every revision, and restored from its wire form."""
    official(name, value.to_wire())
    assert type(value).from_wire(value.to_wire()) == value


def test_official_result(official: Any, revision: str) -> None:
    """A result is valid in every revision; 2026-07-28 requires the envelope, too."""
    modern = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    envelope = modern if revision == "2026-07-28" else {}
    official("ReadResourceResult", {**READ.to_wire(), **envelope})


def test_keys_of_the_wire() -> None:
    """Only given fields are written, in a fixed order."""
    assert ResourceDefinition("a:b", "n").to_wire() == {"uri": "a:b", "name": "n"}
    assert list(RESOURCE.to_wire()) == [
        "uri", "name", "title", "description", "mimeType", "size", "annotations", "icons", "_meta"
    ]  # fmt: skip
    assert TEMPLATE.to_wire()["uriTemplate"] == "test://template/{id}/data"


def test_read_result_from_a_peer() -> None:
    """The envelope is dropped, but not the caching members."""
    wire = {
        "resultType": "complete",
        "ttlMs": 5,
        "contents": [{"uri": "a:b", "blob": "AP8=", "mimeType": "image/png"}],
    }
    result = ReadResult.from_wire(wire)
    (contents,) = result.contents
    assert (contents.uri, contents.text, contents.blob) == ("a:b", None, b"\x00\xff")
    assert (contents.mime_type, result.meta, result.extra) == ("image/png", None, {"ttlMs": 5})
    assert result.to_wire() == {"contents": wire["contents"], "ttlMs": 5}


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (None, "result: expected an object, got null"),
        ({}, "result.contents: expected a list, got nothing"),
        ({"contents": [{}]}, "result.contents[0].uri: expected a string, got nothing"),
        ({"contents": [{"uri": "a:b"}]}, "result.contents[0]: give either text= or blob="),
    ],
)
def test_read_result_errors(wire: Any, message: str) -> None:
    """A malformed value of a peer is a protocol error with the field."""
    with pytest.raises(ProtocolError) as caught:
        ReadResult.from_wire(wire)
    assert str(caught.value) == message
