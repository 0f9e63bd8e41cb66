"""The errors for messages that cannot be read."""

import tracemalloc

import pytest

from noizu_mcp.jsonrpc import decode, malformed, too_large, unreadable

REQUESTS = [
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{', 1),
    (b'{"jsonrpc":"2.0","method":"m","id":"a b","params":{', "a b"),
    (b'{"method":"m","jsonrpc":"2.0","id":-5,"params":[[[', -5),
    (b'\xef\xbb\xbf { "id" : 0 , "method" : "m" , "params": \xff', 0),
    (b'{"jsonrpc":"2.0","id":"\xc3\xa9","method":"m","params":\xff', "é"),
    (b'{"jsonrpc":"2.0","id":8,"method":"m","result":{', 8),
    (b'{"params":{"x":NaN},"jsonrpc":"2.0","method":"m","id":7}', 7),
    (b'{"params":{"x":"\xff"},"method":"m","id":"q"}', "q"),
    (b'{"params":{"x":"\\ud800"},"method":"m","id":"a\\tb"}', "a\tb"),
    (b'{"params":1e999,"method":"m","id":12345678901234567890123}', 12345678901234567890123),
]

NOTHING = [
    b"",
    b"{",
    b"[1",
    b"NaN",
    b"[NaN]",
    b'{"jsonrpc":"2.0","id":007,"method":"m","params":{',
    b'{"jsonrpc":"2.0","id":"a\nb","method":"m","params":{',
    b'{"jsonrpc":"2.0","id":"\xff","method":"m","params":{',
    b'{"jsonrpc":"2.0","id":1,"params":{"method":"m"',
    b'{"jsonrpc":"2.0","params":{"id":1,"method":"m",',
    b'{"jsonrpc":"2.0","id":1.5,"method":"m","params":{',
    b'{"jsonrpc":"2.0","id":true,"method":"m","params":NaN}',
    b'{"jsonrpc":"2.0","id":null,"method":"m","params":NaN}',
    b'{"jsonrpc":"2.0","method":"m","params":NaN}',
    b'{"params":NaN,"id":"\xff","method":"m"}',
    b'{"params":NaN,"id":"\\ud800","method":"m"}',
    b'{"params":NaN,"id":1,"method":5}',
    b'{"params":NaN,"id":' + b"9" * 5000 + b',"method":"m"}',
    b'{"params":' + b"[" * 100_000,
]

ANSWERS = [
    (b'{"jsonrpc":"2.0","id":3,"result":{"x":NaN}}', 3),
    (b'{"jsonrpc":"2.0","id":"s","error":{', "s"),
    (b'{"result":{"x":NaN},"id":4}', 4),
    (b'{"error":NaN}', None),
]

#: Bytes of a message that is read once more, leniently, for its id.
MAX_LENIENT = 256 * 1024


@pytest.mark.parametrize(("data", "id_"), REQUESTS)
def test_requests(data, id_):
    """The error for a broken request has its id."""
    assert type(id_) is type(unreadable(data, -1, "x").error.id)
    assert malformed(-1, "x", id_) == unreadable(data, -1, "x")


@pytest.mark.parametrize("data", NOTHING)
def test_nothing(data):
    """An uncertain id is left out, and the error is sent nevertheless."""
    assert malformed(-1, "x") == unreadable(data, -1, "x")


@pytest.mark.parametrize(("data", "id_"), ANSWERS)
def test_answers(data, id_):
    """A broken response is never answered, since its id belongs to our own request."""
    assert malformed(-1, "x", id_, answer=False) == unreadable(data, -1, "x")
    assert not decode(data).answer


def test_members_without_end_cost_nothing():
    """They cost neither memory nor a second pass."""
    data = b"{" + b'"id":1,' * 200_000
    tracemalloc.start()
    try:
        assert decode(data).error.id is None
        assert tracemalloc.get_traced_memory()[1] < 5 * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["\\ud800", "[" * 200 + "]" * 200], ids=["surrogate", "depth"])
def test_what_was_read_is_not_read_again(text):
    """Valid JSON that breaks another rule has its id found anywhere, at any size."""
    bad = text if text.startswith("[") else f'"{text}"'
    start = b'{"params":{"pad":"%b","x":%b},' % (b"y" * MAX_LENIENT, bad.encode())
    assert decode(start + b'"method":"m","id":7}').error.id == 7
    assert decode(start + b'"result":{},"id":7}').answer is False


def test_only_the_head_is_looked_at():
    """Of a message that is too large only the first bytes are searched."""
    head = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":"'
    assert too_large(head + b"y" * 5000).error.id == 1
    assert unreadable(head + b"y" * 2 * MAX_LENIENT, -1, "x").error.id == 1
    late = b'{"jsonrpc":"2.0","method":"m",' + b" " * 2000 + b'"id":1,"params":{}}'
    assert too_large(late).error.id is None
