"""Headers that mirror a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.jsonrpc import HEADER_MISMATCH, Request
from noizu_mcp.protocol import (
    Dispatch,
    Origin,
    decode_value,
    encode_value,
    param_fault,
    read_stateless,
)

from ..kit.messages import META


@given(st.text())
def test_values_travel_as_they_are(text):
    """Any text is restored from visible ASCII without surrounding space."""
    sent = encode_value(text)
    assert all(" " <= char <= "~" for char in sent)
    assert sent.strip() == sent
    assert decode_value(sent) == text


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("", ""),
        ("plain text", "plain text"),
        (" x", "=?base64?IHg=?="),
        ("x\t", "=?base64?eAk=?="),
        ("é", "=?base64?w6k=?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ("=?base64?=", "=?base64?="),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
        ("=?base64?eA==", "=?base64?eA=="),
    ],
)
def test_how_values_travel(text, sent):
    """Only unsafe values, and values that look encoded, are encoded."""
    assert encode_value(text) == sent
    assert decode_value(sent) == text


@pytest.mark.parametrize(
    "sent", ["=?base64?eA?=", "=?base64?e A==?=", "=?base64?/w==?=", "=?base64?e-A_?=", "é", "a\tb"]
)
def test_invalid_values(sent):
    """Bad base64, bad UTF-8, and unencoded special characters are refused."""
    with pytest.raises(ValueError, match="base64"):
        decode_value(sent)


def raw(headers, prefix=""):
    """Return headers as they come over HTTP."""
    return {f"{prefix}{name}".encode(): value.encode("latin-1") for name, value in headers.items()}


@pytest.mark.parametrize(
    ("method", "params", "headers", "fault"),
    [
        ("tools/list", None, {"mcp-method": "tools/list"}, None),
        ("tools/list", None, {"mcp-method": "tools/list", "mcp-name": "x"}, None),
        ("tools/list", None, {}, "Mcp-Method header is missing"),
        ("tools/list", None, {"mcp-method": "Tools/list"}, "Mcp-Method header differs"),
        (
            "tools/call",
            {"name": "é"},
            {"mcp-method": "tools/call", "mcp-name": "=?base64?w6k=?="},
            None,
        ),
        ("prompts/get", {"name": "x"}, {"mcp-method": "prompts/get"}, "Mcp-Name header is miss"),
        (
            "resources/read",
            {"uri": "a:b"},
            {"mcp-method": "resources/read", "mcp-name": "a:b"},
            None,
        ),
        ("tasks/get", {"taskId": "1"}, {"mcp-method": "tasks/get", "mcp-name": "2"}, "taskId"),
        (
            "tools/call",
            None,
            {"mcp-method": "tools/call", "mcp-name": ""},
            "Mcp-Name header differs",
        ),
        (
            "tools/call",
            {"name": 1},
            {"mcp-method": "tools/call", "mcp-name": "1"},
            "differs from name",
        ),
        ("tools/call", {"name": "x"}, {"mcp-method": "tools/call", "mcp-name": "é"}, "is invalid"),
    ],
)
def test_the_standard_headers(method, params, headers, fault):
    """The method is always mirrored, the name if there is one; other requests are refused."""
    sent = raw({"mcp-protocol-version": "2026-07-28", **headers})
    request = Request(1, method, {**(params or {}), "_meta": META})
    event = read_stateless(request, Origin(headers=sent))
    if fault is None:
        assert isinstance(event, Dispatch)
    else:
        assert event.message.code == HEADER_MISMATCH
        assert fault in event.message.message


DECLARED = {"Region": ("region",), "Deep": ("a", "b")}


@pytest.mark.parametrize(
    ("arguments", "headers", "fault"),
    [
        ({}, {}, None),
        ({"region": None}, {}, None),
        ({"region": "x"}, {"region": "x", "unknown": "y"}, None),
        ({"region": "x"}, {"region": "X"}, "differs"),
        ({"region": "x"}, {}, "is missing"),
        ({"region": None}, {"region": ""}, "without its argument"),
        ({"region": ""}, {"region": ""}, None),
        ({"region": "é"}, {"region": "=?base64?w6k=?="}, None),
        ({"region": "é"}, {"region": "=?base64?w6k?="}, "is invalid"),
        ({"region": 0}, {"region": "0"}, None),
        ({"region": 42}, {"region": "42.0"}, None),
        ({"region": 42}, {"region": "43"}, "differs"),
        ({"region": 42}, {"region": "x"}, "differs"),
        ({"region": 42}, {"region": "NaN"}, "differs"),
        ({"region": True}, {"region": "true"}, None),
        ({"region": False}, {"region": "false"}, None),
        ({"region": False}, {"region": "0"}, "differs"),
        ({"region": ["x"]}, {"region": "x"}, "differs"),
        ({"a": {"b": "x"}}, {"deep": "x"}, None),
        ({"a": {}}, {"deep": "x"}, "without its argument"),
        ({"a": "x"}, {"deep": "x"}, "without its argument"),
    ],
)
def test_the_headers_of_arguments(arguments, headers, fault):
    """Declared arguments are mirrored; null counts as absent, numbers by their value."""
    found = param_fault(DECLARED, arguments, raw(headers, "mcp-param-"))
    assert (found is None) if fault is None else fault in found
