"""Laws of the codec, for any bytes and any message."""

import json
import sys
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noizu_mcp import Limits
from noizu_mcp.jsonrpc import (
    HEAD,
    Batch,
    ErrorResponse,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    encode,
    encode_batch,
    holds_more_values,
    memory_bound,
    memory_of,
    render,
    unreadable,
)

LAW = settings(max_examples=150, deadline=None)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
IDS = st.integers() | st.integers(-(10**50), 10**50) | TEXT
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=4)
MESSAGES = st.one_of(
    st.builds(Request, IDS, TEXT, st.none() | OBJECTS),
    st.builds(Notification, TEXT, st.none() | OBJECTS),
    st.builds(Response, IDS, OBJECTS),
    st.builds(ErrorResponse, st.none() | IDS, st.integers(), TEXT, VALUES),
)

#: Bytes that look like messages: fragments of JSON in any order.
FRAGMENTS = st.lists(
    st.sampled_from(
        [
            b'{"jsonrpc":"2.0",', b'"id":', b'"method":', b'"params":', b'"result":', b'"error":',
            b"1", b"-01", b"1.5", b"1e999", b"NaN", b"null", b"true", b'"x"', b'"\\ud800"', b"\\u",
            b'"a\nb"', b'""', b'"\xff"', b"{", b"}", b"[", b"]", b",", b":", b"\n", b" ",
            b"\xef\xbb\xbf",
        ]
    ),
    max_size=25,
).map(b"".join)  # fmt: skip
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2, None]),
        "id": st.sampled_from([1, "1", 1.0, True, None, [], "a\nb", 10**40]),
        "method": st.sampled_from(["m", "", 5, None]),
        "params": st.sampled_from([{}, None, [], "x", {"_meta": 1}]),
        "result": st.sampled_from([{}, None, [], 1]),
        "error": st.sampled_from([{}, None, 1, {"code": 1, "message": "m"}, {"code": True}]),
    },
)
ALMOST = st.recursive(MEMBERS | VALUES, lambda inner: st.lists(inner, max_size=3), max_leaves=4)

#: Bytes of a message that is read once more, leniently, for its id.
MAX_LENIENT = 256 * 1024


@pytest.mark.slow
@LAW
@given(data=st.binary() | FRAGMENTS | ALMOST.map(json.dumps).map(str.encode))
@example(data=b'{"jsonrpc":"2.0","id":007,"method":"m","params":')
@example(data=b'{"jsonrpc":"2.0","id":"a\nb","method":"m","params":')
@example(data=b'{"id":"\xed\xa0\x80","method":"m","params":')
@example(data=b'{"a":' * 5000)
def test_decode_never_raises(data):
    """Any bytes become a message, a batch or an error that can be sent."""
    for limits in (Limits(), Limits(message_depth=2, message_values=3, message_size=40, batch=1)):
        decoded = decode(data, limits)
        messages = decoded.messages if isinstance(decoded, Batch) else (decoded,)
        for message in messages:
            encode(message.error if isinstance(message, Malformed) else message)


@pytest.mark.slow
@LAW
@given(data=FRAGMENTS)
def test_recovered_ids_can_be_sent(data):
    """A recovered id is a string or an integer that survives encoding."""
    id_ = unreadable(data, -1, "x").error.id
    if id_ is not None:
        assert ErrorResponse(id_, 1, "") == decode(encode(ErrorResponse(id_, 1, "")))


@pytest.mark.slow
@LAW
@given(start=st.binary(max_size=50) | FRAGMENTS, ends=st.tuples(FRAGMENTS, FRAGMENTS))
def test_of_large_text_only_the_head_tells_the_id(start, ends):
    """The rest of a large text is not read, so finding the id has a constant cost."""
    text = start + b" " * HEAD
    found = [unreadable(text + b"x" * MAX_LENIENT + end, -1, "x") for end in ends]
    assert found[0] == found[1]


def count(value):
    """Count the members and elements of a value at any depth; an empty container counts twice."""
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return sum(1 + count(each) for each in inner) or 1


def weigh(value):
    """Add up the memory of a value."""
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return sys.getsizeof(value) + sum(map(weigh, inner if isinstance(value, dict | list) else ()))


@pytest.mark.slow
@LAW
@given(value=VALUES)
def test_the_memory_of_a_value(value):
    """Each of its values and names counts, at any depth."""
    assert memory_of(value) == weigh(value)


@pytest.mark.slow
@LAW
@given(value=VALUES, window=st.integers(1, 30), ascii_=st.booleans())
@example(value=["\\", '"[,', '\\"{', "\\\\"], window=1, ascii_=True)
def test_values_are_counted_from_the_text(value, window, ascii_):
    """The count equals that of the decoded values, wherever the text is split."""
    data = json.dumps(value, ensure_ascii=ascii_).encode()
    with patch("noizu_mcp.jsonrpc._decode._WINDOW", window):
        if count(value):
            assert holds_more_values(data, count(value) - 1)
        assert not holds_more_values(data, count(value))


@LAW
@given(value=VALUES, times=st.integers(1, 40), ascii_=st.booleans())
@example(value=[[]], times=600, ascii_=True)
@example(value={"a": 1000}, times=600, ascii_=True)
@example(value="\U0001f600" + 300 * "a", times=9, ascii_=True)
@example(value="\u20ac" + 300 * "a", times=9, ascii_=False)
@example(value={f"k{number}": number for number in range(700)}, times=1, ascii_=True)
def test_the_memory_of_a_text_is_bounded(value, times, ascii_):
    """No value needs more memory than the bound computed from its text."""
    value = [value] * times
    data = json.dumps(value, ensure_ascii=ascii_, separators=(",", ":")).encode()
    assert memory_of(json.loads(data)) <= memory_bound(data)


@pytest.mark.slow
@LAW
@given(message=MESSAGES)
def test_round_trip(message):
    """Every message is decoded to an equal one, on one line."""
    data = encode(message)
    assert message == decode(data)
    assert b"\n" not in data


@pytest.mark.slow
@settings(LAW, max_examples=100)
@given(messages=st.lists(MESSAGES, min_size=1, max_size=4))
def test_batch_round_trip(messages):
    """An array of messages is decoded to equal messages."""
    assert Batch(tuple(messages)) == decode(encode_batch([encode(each) for each in messages]))


@pytest.mark.slow
@LAW
@given(value=VALUES)
def test_rendered_result_is_the_result(value):
    """Encoding a result in advance changes nothing on the wire."""
    rendered = (b'{"value":', render(value), b"}")
    assert encode(Response(1, {"value": value})) == encode(Response(1, rendered))


@pytest.mark.slow
@LAW
@given(text=st.text(st.characters(categories=["Cs", "Ll", "So"])))
def test_any_python_string_can_be_sent(text):
    """Lone surrogates are replaced; other text is unchanged."""
    sent = json.loads(render(text))
    sent.encode()
    try:
        text.encode()
    except UnicodeEncodeError:
        assert "\ufffd" in sent or any(ord(c) > 0xFFFF for c in sent)
    else:
        assert text == sent
