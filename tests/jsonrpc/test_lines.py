"""Newline framing."""

import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.jsonrpc import HEAD, LineBuffer, Oversized

PIECES = st.lists(st.sampled_from([b"\n", b"\r\n", b" ", b"a", b"bc" * 20, b"\x00", b"{}\n"]))


def fed(limit, *chunks):
    buffer = LineBuffer(limit)
    return [line for chunk in chunks for line in buffer.feed(chunk)]


def test_lines():
    """Lines are returned complete and in order, as soon as their newline arrives."""
    buffer = LineBuffer()
    assert buffer.feed(b"ab") == []
    assert buffer.pending == 2
    assert buffer.feed(b"cd\ne\nf") == [b"abcd", b"e"]
    assert buffer.pending == 1
    assert buffer.feed(b"") == []
    assert buffer.feed(b"\n") == [b"f"]
    assert buffer.pending == 0


def test_blank_lines():
    """Blank lines are skipped; a carriage return is left to the JSON parser."""
    assert fed(10, b"\n\r\n \t\n", b"", b" ", b"\n", b"a\r\n") == [b"a\r"]


@pytest.mark.parametrize(
    "chunks",
    [
        (b"abcdef\nok\n",),
        (b"abcd", b"ef\nok\n"),
        (b"abcdef", b"gh", b"i\nok\n"),
        (b"abcde", b"\nok\n"),
    ],
)
def test_oversized(chunks):
    """A line above the limit is reported once with its beginning; other lines are not affected."""
    assert [Oversized(b"abcd"), b"ok"] == fed(4, *chunks)


def test_oversized_at_once():
    """It is reported before its newline, which may never come."""
    buffer = LineBuffer(4)
    assert [Oversized(b"abcd")] == buffer.feed(b"abcde")
    assert buffer.feed(b"f" * 100) == []
    assert buffer.pending == 0
    assert buffer.feed(b"g\nx\n") == [b"x"]


def test_exactly_the_limit():
    """A line of exactly the limit passes."""
    assert fed(4, b"ab", b"cd\n") == [b"abcd"]


def test_head():
    """The first bytes of a large line are kept, for its id."""
    assert [Oversized(b"x" * HEAD)] == fed(5000, b"x" * 4000, b"x" * 4000)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(pieces=PIECES, limit=st.integers(1, 60), cuts=st.lists(st.integers(0, 400)))
def test_chunking_changes_nothing(pieces, limit, cuts):
    """The same bytes make the same lines, however they are split."""
    data = b"".join(pieces)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(edges)]
    assert fed(limit, data) == fed(limit, *chunks)
    assert fed(limit, data) == fed(limit, *(data[i : i + 1] for i in range(len(data))))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(chunks=st.lists(st.binary(max_size=300) | PIECES.map(b"".join)), limit=st.integers(1, 500))
def test_memory_is_bounded(chunks, limit):
    """The buffer keeps no more than the limit for any input."""
    buffer = LineBuffer(limit)
    for chunk in chunks:
        buffer.feed(chunk)
        assert buffer.pending <= limit


@pytest.mark.slow
def test_memory_of_small_chunks():
    """A line that arrives byte by byte needs about its own size."""
    limit = 100_000
    buffer = LineBuffer(limit)
    tracemalloc.start()
    try:
        for _ in range(limit):
            buffer.feed(b"xy"[:1])
        assert limit == buffer.pending
        assert tracemalloc.get_traced_memory()[0] < limit * 1.2
        assert [Oversized(b"x" * HEAD)] == buffer.feed(b"x")
        assert tracemalloc.get_traced_memory()[0] < 5000
    finally:
        tracemalloc.stop()
