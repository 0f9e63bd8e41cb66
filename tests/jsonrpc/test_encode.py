"""Messages and values to bytes."""

import json
from types import MappingProxyType

import pytest

from noizu_mcp.jsonrpc import (
    CODE_NAMES,
    HTTP_STATUS,
    MODERN_CODES,
    ErrorResponse,
    Notification,
    Request,
    Response,
    encode,
    encode_batch,
    encode_error,
    encode_result,
    render,
    render_sorted,
)
from noizu_mcp.jsonrpc._encode import make_writer


@pytest.mark.parametrize(
    ("message", "data"),
    [
        (Request(1, "ping"), b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        (Request("a", "m", {}), b'{"jsonrpc":"2.0","id":"a","method":"m","params":{}}'),
        (Notification("n"), b'{"jsonrpc":"2.0","method":"n"}'),
        (Notification("n", {"a": 1}), b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}'),
        (Response(1, {}), b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        (Response("1", {"é": "\n"}), '{"jsonrpc":"2.0","id":"1","result":{"é":"\\n"}}'.encode()),
        (Response(0, (b'{"r"', b":1}")), b'{"jsonrpc":"2.0","id":0,"result":{"r":1}}'),
        (
            ErrorResponse(2, -1, "no"),
            b'{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}',
        ),
        (
            ErrorResponse(None, -1, "no", {"d": 0}),
            b'{"jsonrpc":"2.0","error":{"code":-1,"message":"no","data":{"d":0}}}',
        ),
        (
            ErrorResponse('"', -1, "", False),
            b'{"jsonrpc":"2.0","id":"\\"","error":{"code":-1,"message":"","data":false}}',
        ),
    ],
)
def test_messages(message, data):
    """The output is compact, in the order of JSON-RPC, without absent members."""
    assert data == encode(message)


def test_huge_id():
    """An integer id of any size is written with all digits."""
    id_ = -(10**4000)
    assert f'{{"jsonrpc":"2.0","id":{id_},"result":{{}}}}'.encode() == encode_result(id_, {})


def test_batch():
    """Answers to an array are sent as one array."""
    first, second = encode_result(1, {}), encode_error(ErrorResponse(2, -1, "no"))
    assert [json.loads(first), json.loads(second)] == json.loads(encode_batch([first, second]))


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud800\ud83d\ude00\udfff", "\ufffd\U0001f600\ufffd"),
    ],
)
def test_lone_surrogates(text, sent):
    """Lone surrogates are replaced one by one, and the answer is sent."""
    assert {sent: [sent]} == json.loads(render({text: [text]}))


def test_one_line():
    """Encoded JSON never contains a newline, whatever the strings contain."""
    assert b"\n" not in render(["\n", "\r", "\u2028", {"\n": "\n"}])


def circle():
    value = []
    value.append(value)
    return value


def tower():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), [float("-inf")], {"a": float("nan")}]
)
def test_not_finite(value):
    """NaN and infinities raise."""
    with pytest.raises(ValueError, match="JSON compliant"):
        render(value)


def test_equal_values_have_one_sorted_form():
    """Neither the order of members nor the class of a mapping matters; any text is written."""
    value = {"b": [1, "\ud800"], "a": {}}
    other = MappingProxyType({"a": MappingProxyType({}), "b": [1, "\ud800"]})
    assert render_sorted(value) == render_sorted(other) != render_sorted({"b": [1], "a": {}})


@pytest.mark.parametrize("render", [render, render_sorted])
@pytest.mark.parametrize("make", [circle, tower])
def test_bottomless(make, render):
    """A value that contains itself, or is too deep, is refused without a crash."""
    with pytest.raises(ValueError, match="contains itself or nests too deep"):
        render(make())


def test_refused_value_leaves_nothing_behind():
    """The next value is written normally."""
    shared = {"a": 1}
    for _ in range(2):
        with pytest.raises(ValueError, match="JSON"):
            render([shared, float("nan")])
    assert render([shared, shared]) == b'[{"a":1},{"a":1}]'


@pytest.mark.parametrize("native", [json.encoder.c_make_encoder, None])
def test_writers(native):
    """The native and the portable writer have the same output and the same refusals."""
    write = make_writer(native)
    assert write({"a": [1, "é", None, True, 1.5], 1: {}}) == '{"a":[1,"é",null,true,1.5],"1":{}}'
    with pytest.raises(TypeError, match="set has no JSON form"):
        write({"a": {1}})
    with pytest.raises(TypeError, match="keys must be"):
        write({(1,): 1})


def test_codes():
    """Every code with its own HTTP status has a name, and modern codes have the status 400."""
    assert set(HTTP_STATUS) <= set(CODE_NAMES)
    assert {400} == {HTTP_STATUS[code] for code in MODERN_CODES}
    assert HTTP_STATUS[-32601] == 404
