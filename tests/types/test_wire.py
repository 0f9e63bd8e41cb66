"""The base of wire values: names, kinds, unknown keys, errors."""

import json
from types import MappingProxyType
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import ProtocolError
from noizu_mcp.jsonrpc import render
from noizu_mcp.types import (
    Annotations,
    Completion,
    Content,
    ContentAnnotations,
    Icon,
    Implementation,
    ResourceContents,
    ServerCapabilities,
    ToolDefinition,
    Wire,
    as_tuple,
    camel_case,
)


@pytest.mark.parametrize(
    ("name", "key"),
    [("name", "name"), ("website_url", "websiteUrl"), ("meta", "_meta"), ("ttl_ms", "ttlMs")],
)
def test_camel_case(name: str, key: str) -> None:
    """Fields are camelCase on the wire, and `meta` is `_meta`."""
    assert camel_case(name) == key


def test_round_trip_keeps_everything() -> None:
    """Decoding and encoding returns the same object, with unknown keys at the end."""
    wire = {
        "name": "docs",
        "version": "1",
        "title": "Docs",
        "websiteUrl": "https://example.com",
        "icons": [{"src": "data:,", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}],
        "x-new": {"a": None},
    }
    value = Implementation.from_wire(wire)
    assert value.icons[0].sizes == ("48x48",)
    assert value.extra == {"x-new": {"a": None}}
    assert list(value.to_wire().items()) == list(wire.items())


def test_null_and_empty_are_left_out() -> None:
    """Optional fields with null or empty values have no key."""
    value = Implementation.from_wire({"name": "a", "version": "1", "title": None, "icons": []})
    assert value.to_wire() == {"name": "a", "version": "1"}


def test_extra_never_wins() -> None:
    """An unknown key cannot replace a known one."""
    assert Icon("a", extra={"src": "b", "c": 1}).to_wire() == {"src": "a", "c": 1}


@pytest.mark.parametrize(
    ("cls", "wire", "message"),
    [
        (Implementation, [], "Implementation: expected an object, got []"),
        (Implementation, {"name": "a"}, "Implementation.version: expected a string, got nothing"),
        (Implementation, {"name": 1}, "Implementation.name: expected a string, got 1"),
        (
            Implementation,
            {"name": "a", "version": "1", "icons": [{"src": "x"}, {"src": 3}]},
            "Implementation.icons[1].src: expected a string, got 3",
        ),
        (
            Implementation,
            {"name": "a", "version": "1", "icons": "x"},
            'Implementation.icons: expected a list, got "x"',
        ),
        (
            Annotations,
            {"readOnlyHint": 1},
            "Annotations.readOnlyHint: expected true or false, got 1",
        ),
        (
            ContentAnnotations,
            {"priority": True},
            "ContentAnnotations.priority: expected a number, got true",
        ),
        (
            ResourceContents,
            {"uri": "a:b", "blob": 1},
            "ResourceContents.blob: expected a base64 string, got 1",
        ),
        (
            ResourceContents,
            {"uri": "a:b", "blob": "x" * 99},
            f'ResourceContents.blob: expected base64, got "{"x" * 58}…',
        ),
        (
            ResourceContents,
            {"uri": "a:b"},
            "ResourceContents: give either text= or blob=",
        ),
        (
            ToolDefinition,
            {"name": "a", "inputSchema": None},
            "ToolDefinition.inputSchema: expected an object, got nothing",
        ),
        (Icon, {"src": {1, 2}}, "Icon.src: expected a string, got set"),
    ],
)
def test_errors_name_the_field(cls: type[Wire], wire: Any, message: str) -> None:
    """A malformed value of a peer is a protocol error with the field."""
    with pytest.raises(ProtocolError) as caught:
        cls.from_wire(wire)
    assert str(caught.value) == message


def test_constructors_check_too() -> None:
    """A wrong value raises where it is given."""
    with pytest.raises(TypeError, match=r"^Icon\.src: expected a string, got 3$"):
        # Type checkers refuse it; the class has to, for callers without one.
        Icon(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^Implementation\.icons: expected a list, got"):
        Implementation("a", "1", icons=["x"])
    with pytest.raises(TypeError, match="expected a list, got the string 'abc'"):
        Icon("a", sizes="abc")
    with pytest.raises(TypeError, match=r"^give either text= or blob=$"):
        ResourceContents("a:b", text="", blob=b"")


def test_as_tuple_takes_none() -> None:
    """None becomes an empty tuple."""
    assert as_tuple(None) == ()
    assert as_tuple(iter([1])) == (1,)


def test_values_are_values() -> None:
    """Values of one class with equal fields are equal; mappings inside prevent a hash."""
    assert Icon("a", sizes=["1x1"]) == Icon("a", sizes=("1x1",))
    assert Icon("a") != Icon("b")
    assert Icon("a") != Implementation("a", "1")
    assert repr(Icon("a", theme="dark")) == "Icon(src='a', theme='dark')"
    assert repr(ServerCapabilities(logging={})) == "ServerCapabilities(logging={})"
    with pytest.raises(TypeError):
        hash(Icon("a"))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        # Type checkers refuse it; the class has to, for callers without one.
        Icon("a").src = "b"  # type: ignore[misc]


def test_anything_is_a_kind() -> None:
    """A field may accept any JSON value."""

    @attrs.frozen(eq=False, repr=False)
    class Anything(Wire):
        value: Any
        count: int | None = None

    assert Anything.from_wire({"value": [1], "count": 2}).to_wire() == {"value": [1], "count": 2}


def test_mappings_are_written_as_objects() -> None:
    """A mapping of any class is accepted, and written as plain JSON."""
    meta = MappingProxyType({"k": 1})
    # The annotation is a dict, which readers get; callers may pass another mapping.
    contents = ResourceContents("a:b", text="", meta=meta)  # type: ignore[arg-type]
    block = Content.text("x", meta=meta)  # type: ignore[arg-type]

    assert json.loads(render(contents.to_wire()))["_meta"] == {"k": 1}
    assert json.loads(render(block.to_wire()))["_meta"] == {"k": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.sampled_from([Icon, Implementation, Annotations, ToolDefinition, ResourceContents]), JSON)
def test_anything_from_a_peer_is_read_or_refused(cls: type[Wire], wire: Any) -> None:
    """No JSON value raises anything but ProtocolError."""
    try:
        value = cls.from_wire(wire)
    except ProtocolError:
        return
    assert cls.from_wire(value.to_wire()) == value


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=3), st.text(), st.text())
def test_unknown_keys_survive(extra: dict[str, Any], name: str, version: str) -> None:
    """Unknown keys are sent on unchanged."""
    wire = {**extra, "name": name, "version": version}
    for known in ("title", "description", "websiteUrl", "icons"):
        wire.pop(known, None)
    assert Implementation.from_wire(wire).to_wire() == wire


def test_an_integer_may_be_written_with_a_point() -> None:
    """JSON does not distinguish `3` from `3.0`; a fraction is refused."""
    found = Completion.from_wire({"completion": {"values": [], "total": 3.0}})
    assert found.total == 3
    assert type(found.total) is int
    with pytest.raises(ProtocolError, match=r"total: expected an integer, got 3\.5"):
        Completion.from_wire({"completion": {"values": [], "total": 3.5}})
