"""Bytes to messages: every rule by example."""

import json
import sys
import tracemalloc

import pytest

from noizu_mcp import Limits
from noizu_mcp.jsonrpc import (
    INVALID_REQUEST,
    LARGE,
    PARSE_ERROR,
    Batch,
    ErrorResponse,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    malformed,
    memory_bound,
    parse_json,
    too_deep,
    too_large,
)

NOT_JSONRPC = "Expected a JSON-RPC 2.0 object"
NOT_A_MESSAGE = "Not a valid JSON-RPC request, notification, or response"
NOT_AN_ANSWER = "Not a valid JSON-RPC response"


def wire(**members):
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def invalid(message, id_=None, answer=True):
    return Malformed(ErrorResponse(id_, INVALID_REQUEST, message), answer)


GOOD = [
    (wire(id=1, method="ping"), Request(1, "ping")),
    (wire(id="1", method="ping"), Request("1", "ping")),
    (wire(id="", method=""), Request("", "")),
    (wire(id=0, method="ping", params={}), Request(0, "ping", {})),
    (wire(id=-7, method="ping", params=None), Request(-7, "ping")),
    (wire(id=10**300, method="ping"), Request(10**300, "ping")),
    (wire(id=1, method="m", params={"a": [1.5]}), Request(1, "m", {"a": [1.5]})),
    (wire(id=1, method="m", result={}), Request(1, "m")),
    (wire(method="n"), Notification("n")),
    (wire(method="n", params={"b": None}), Notification("n", {"b": None})),
    (wire(id=1, result={}), Response(1, {})),
    (wire(id="a", result={"x": 1}), Response("a", {"x": 1})),
    (wire(id=1, error={"code": -1, "message": "no"}), ErrorResponse(1, -1, "no")),
    (
        wire(id=None, error={"code": -1, "message": "no", "data": [1]}),
        ErrorResponse(None, -1, "no", [1]),
    ),
    (wire(error={"code": -32700, "message": ""}), ErrorResponse(None, -32700, "")),
    (wire(id=1.0, error={"code": 1, "message": ""}), ErrorResponse(None, 1, "")),
    (b'\xef\xbb\xbf {"jsonrpc":"2.0","method":"n"} ', Notification("n")),
    (b' \t\r\n{"jsonrpc":"2.0","method":"n"}\r', Notification("n")),
    (b'{"jsonrpc":"2.0","method":"\\ud83d\\ude00"}', Notification("\U0001f600")),
    (b'{"jsonrpc":"2.0","method":"\\\\ud83d"}', Notification("\\ud83d")),
]


@pytest.mark.parametrize(("data", "message"), GOOD)
def test_messages(data, message):
    """Well-formed text becomes a message."""
    assert message == decode(data)


@pytest.mark.parametrize(("data", "_"), GOOD)
def test_ids_keep_their_type(data, _):
    """An id is the int or the string that was sent."""
    sent = parse_json(data).get("id")
    message = decode(data)
    if not isinstance(sent, float) and not isinstance(message, Notification):
        assert type(sent) is type(message.id)


@pytest.mark.parametrize("id_", [None, True, False, 1.0, 1.5, [], {}])
def test_bad_ids(id_):
    """Only strings and integers are ids; null is not an id, and True is not 1."""
    assert invalid("id must be a string or integer") == decode(wire(id=id_, method="ping"))


@pytest.mark.parametrize("params", [[], [1], "x", 0, False])
def test_bad_params(params):
    """Params must be an object; a request gets an error, a notification does not."""
    text = "params must be an object"
    assert invalid(text, 3) == decode(wire(id=3, method="m", params=params))
    assert invalid(text, None, answer=False) == decode(wire(method="m", params=params))


@pytest.mark.parametrize("data", [b"1", b'"x"', b"null", b"true", b"1.5"])
def test_no_object(data):
    """A bare value is not a message."""
    assert invalid(NOT_JSONRPC) == decode(data)


@pytest.mark.parametrize("version", ["1.0", 2.0, 2, None, "2.0 ", ["2.0"]])
def test_other_versions(version):
    """Without `jsonrpc: "2.0"` a value is not a message; an apparent response is not answered."""
    assert invalid(NOT_JSONRPC, 1) == decode(wire(id=1, method="m", jsonrpc=version))
    assert invalid(NOT_JSONRPC) == decode(wire(method="m", jsonrpc=version))
    assert invalid(NOT_JSONRPC, 1, answer=False) == decode(wire(id=1, result={}, jsonrpc=version))


def test_version_missing():
    """`jsonrpc` may not be left out."""
    assert invalid(NOT_JSONRPC, 1) == decode(b'{"id":1,"method":"ping"}')


@pytest.mark.parametrize("members", [{}, {"method": 5}, {"method": None}, {"params": {}}])
def test_no_kind(members):
    """An object that is neither call nor response gets an error with its id."""
    assert invalid(NOT_A_MESSAGE, 4) == decode(wire(id=4, **members))
    assert invalid(NOT_A_MESSAGE) == decode(wire(id=4.5, **members))


@pytest.mark.parametrize(
    "members",
    [
        {"result": None},
        {"result": []},
        {"result": "x"},
        {"error": None},
        {"error": "x"},
        {"error": {}},
        {"error": {"code": 1}},
        {"error": {"message": "x"}},
        {"error": {"code": "1", "message": "x"}},
        {"error": {"code": True, "message": "x"}},
        {"error": {"code": 1.0, "message": "x"}},
        {"error": {"code": 1, "message": None}},
        {"error": {"code": 1, "message": "x"}, "result": {}},
    ],
)
def test_bad_answers(members):
    """A malformed response is never answered, and keeps its id for the waiting request."""
    assert invalid(NOT_AN_ANSWER, 9, answer=False) == decode(wire(id=9, **members))


@pytest.mark.parametrize("id_", [None, 1.5, True])
def test_result_without_id(id_):
    """A result needs an id; only errors may lack it."""
    assert invalid(NOT_AN_ANSWER, answer=False) == decode(wire(id=id_, result={}))


def test_batch():
    """An array becomes a batch, each member on its own."""
    members = [
        {"jsonrpc": "2.0", "id": 1, "method": "a"},
        5,
        [],
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "method": "n", "params": []},
    ]
    expected = (
        Request(1, "a"),
        invalid(NOT_JSONRPC),
        invalid(NOT_JSONRPC),
        Response(1, {}),
        invalid("params must be an object", None, answer=False),
    )
    assert Batch(expected) == decode(json.dumps(members).encode())


def test_batch_limits():
    """An empty array, and a too long one, are not a batch."""
    assert invalid("An empty array is not a message") == decode(b"[]")
    limits = Limits(batch=2)
    assert Batch((invalid(NOT_JSONRPC),) * 2) == decode(b"[1,2]", limits)
    assert invalid("More than 2 messages in one array") == decode(b"[1,2,3]", limits)
    assert invalid("More than 100 messages in one array") == decode(b"[" + b"1," * 100 + b"1]")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        (b"{", "Expecting property name"),
        (b"{} {}", "extra data after the first JSON value (char 2)"),
        (b"{}\x0b", "extra data"),
        (b"NaN", "NaN is not JSON"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"1e999", "1e999 is beyond the range of a double"),
        (b"-1e999", "-1e999 is beyond the range of a double"),
        (b"\xff{}", "the bytes are not UTF-8"),
        (b'"\xed\xa0\x80"', "the bytes are not UTF-8"),
        (b'"\\ud800"', "a string holds a lone surrogate, which is no Unicode text"),
        (b'{"\\udc00\\ud800":1}', "a string holds a lone surrogate"),
        (b"9" * 5000, "an integer has too many digits"),
        (b"[" * 129 + b"]" * 129, "nested deeper than 128 levels"),
        (b"[" * 100_000, "nested too deep to be read"),
        (b'"\x00"', "Invalid control character"),
        (b"'a'", "Expecting value"),
        ("{}".encode("utf-16"), "the bytes are not UTF-8"),
    ],
)
def test_no_json(data, reason):
    """Invalid JSON is a parse error with its reason and without an id."""
    refused = decode(data)
    assert refused.error.code == PARSE_ERROR
    assert refused.error.message.startswith(f"Parse error: {reason}")
    assert refused.error.id is None
    assert refused.answer


#: Digits up to which CPython reads an integer in linear time.
MAX_DIGITS = sys.int_info.str_digits_check_threshold


@pytest.mark.parametrize("size", [LARGE, LARGE + 1])
@pytest.mark.parametrize("digits", [MAX_DIGITS, MAX_DIGITS + 1])
def test_long_integers_of_large_messages(size, digits):
    """Parsing them is quadratic, so large messages may only have short ones."""
    data = wire(id=1, method="m", params={"a": int("9" * digits)})
    read = decode(data + b" " * (size - len(data)))
    if size > LARGE and digits > MAX_DIGITS:
        text = "Parse error: an integer has over 640 digits, in a large message"
        assert read == malformed(PARSE_ERROR, text, read.error.id)
    else:
        assert len(str(read.params["a"])) == digits


def test_depth():
    """Nesting counts arrays and objects, also empty ones, up to the limit."""
    limits = Limits(message_depth=3)
    assert isinstance(decode(b"[[[]]]", limits), Batch)
    for data in (b"[[[[]]]]", b'[[[{"a":1}]]]', b'[[{"a":[]}]]'):
        refused = decode(data + b" " * 10, limits)
        assert refused.error.message == "Parse error: nested deeper than 3 levels"


def test_wide_is_not_deep():
    """Many brackets side by side are not deep."""
    data = wire(id=1, method="m", params={"a": [[{}]] * 300})
    assert Request(1, "m", {"a": [[{}]] * 300}) == decode(data)


@pytest.mark.parametrize(
    ("value", "depth"),
    [(1, 0), ("[[", 0), ([], 1), ({}, 1), ([1, "x"], 1), ({"a": {}}, 2), ([[], {"a": [1]}], 3)],
)
def test_too_deep(value, depth):
    """The limit is the number of allowed levels."""
    assert not too_deep(value, depth)
    if depth:
        assert too_deep(value, depth - 1)


def test_values():
    """Members and elements count at any depth; the contents of strings do not."""
    message = wire(id=1, method="m", params={"a": [1, [2], {"b": 3}], "c": []})
    assert isinstance(decode(message, Limits(message_values=12)), Request)
    refused = decode(message, Limits(message_values=11))
    assert refused == malformed(PARSE_ERROR, "Parse error: more than 11 values", 1)
    text = wire(id=1, method="m", params={"a": '[,{"\\' * 50})
    assert isinstance(decode(text, Limits(message_values=5)), Request)


def test_what_is_over_the_limit_of_values_is_not_made():
    """Values are counted before they are made, in memory below a multiple of the message."""
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[' + b"[]," * 1_000_000 + b"1]}}"
    tracemalloc.start()
    try:
        assert decode(data).error.message == "Parse error: more than 100000 values"
        assert tracemalloc.get_traced_memory()[1] < len(data) / 4
    finally:
        tracemalloc.stop()


def test_the_search_for_a_bound_of_memory_ends_early():
    """Once the bound exceeds the available memory, the rest of the text is not read."""
    data = b"[" + b"[]," * 100_000 + b"1]"
    whole = memory_bound(data)
    assert memory_bound(data, whole) == whole
    assert whole // 4 < memory_bound(data, whole // 4) < whole // 2


def test_size():
    """A message above the size is refused with its id, whatever did the framing."""
    data = wire(id=8, method="m", params={"x": "y" * 100})
    limits = Limits(message_size=len(data) - 1)
    assert invalid(f"Message over {len(data) - 1} bytes", 8) == decode(data, limits)
    assert Request(8, "m", {"x": "y" * 100}) == decode(data, Limits(message_size=len(data)))
    assert invalid("Message over 16777216 bytes", 8) == too_large(data[:60])


def test_an_answer_over_a_limit_names_it():
    """Only errors of responses name it: a peer reads other errors, and cannot raise our limits."""
    limits = Limits(message_size=40, message_values=3)
    answer = b'{"jsonrpc":"2.0","id":1,"result":{"a":"%b"}}' % (b"x" * 40)
    refused = decode(answer, limits)
    assert not refused.answer
    assert refused.error.message == (
        "Message over 40 bytes; limits=Limits(message_size=…) allows more"
    )
    answer = b'{"id":1,"result":[1,2,3]}'
    assert decode(answer, limits).error.message == (
        "Parse error: more than 3 values; limits=Limits(message_values=…) allows more"
    )
    question = answer.replace(b"result", b"params")
    assert decode(question, limits).error.message == "Parse error: more than 3 values"
