"""Event streams as a client reads them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.transports.http.client._event_reader import EventParser, EventTooLarge, ServerEvent


def parse(*chunks, limit=10_000):
    """Feed chunks to a parser; return its events and the parser."""
    parser = EventParser(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)], parser


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (b"data: x\n\n", [("message", b"x")]),
        (b"data:x\n\n", [("message", b"x")]),
        (b"data:  x\n\n", [("message", b" x")]),
        (b"data: x\r\n\r\n", [("message", b"x")]),
        (b"data: x\r\r", [("message", b"x")]),
        (b"data: a\ndata: b\n\n", [("message", b"a\nb")]),
        (b"data\n\n", [("message", b"")]),
        (b"event: other\ndata: x\n\ndata: y\n\n", [("other", b"x"), ("message", b"y")]),
        (b"event: other\n\ndata: y\n\n", [("message", b"y")]),
        (b": comment\n:\n\ndata: x\n\n", [("message", b"x")]),
        (b"unknown: 1\ndata: x\nmore\n\n", [("message", b"x")]),
        (b"\xef\xbb\xbfdata: x\n\n", [("message", b"x")]),
        (b"data: cut off\n", []),
        (b"", []),
    ],
)
def test_an_event_stream(text, events):
    """Each rule of the standard holds, for a whole stream and byte by byte."""
    expected = [ServerEvent(*each) for each in events]
    assert parse(text)[0] == expected
    assert parse(*(text[i : i + 1] for i in range(len(text))))[0] == expected


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (b"id: 1\n\n", "1"),
        (b"id: 1\ndata: x\n\n", "1"),
        (b"id: 1\ndata: x\n\ndata: y\n\n", "1"),
        (b"id: 1\n\nid\n\n", ""),
        (b"id: 1\n\nid: 2\n", "1"),
        (b"id: 1\n\nid: 2\0\n\n", "1"),
        ("id: ü\n\n".encode(), "ü"),
    ],
)
def test_the_id_to_come_back_with(text, last):
    """An id takes effect when its event is complete, also if the event has nothing else."""
    assert parse(text)[1].last_id == last


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"retry: 500\n", 0.5),
        (b"retry: 0\n", 0.0),
        (b"retry: -5\n", None),
        (b"retry: 1.5\n", None),
        (b"retry: soon\n", None),
        (b"retry:\n", None),
        (b"retry: 99999999999\n", None),
    ],
)
def test_the_time_to_wait(text, seconds):
    """Only digits are accepted for `retry`, up to a length."""
    assert parse(text)[1].retry == seconds


def test_a_new_stream_goes_on_where_the_last_one_broke_off():
    """The incomplete event is dropped; id and `retry` are kept."""
    events, parser = parse(b"id: 1\nretry: 10\ndata: x\n\nid: 2\ndata: lost")
    parser.begin()
    assert parser.feed(b"data: y\n\n") == [ServerEvent("message", b"y")]
    assert (events, parser.last_id, parser.retry) == ([ServerEvent("message", b"x")], "1", 0.01)


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + b"x" * 100],
        [b"data: " + b"x" * 50, b"x" * 50],
        [b"data: " + b"x" * 40 + b"\n"] * 3,
        [b":" + b"x" * 60, b"x" * 60],
        [b"event: " + b"x" * 100 + b"\n"],
    ],
)
def test_events_have_a_largest_size(chunks):
    """No more than the limit is ever buffered."""
    with pytest.raises(EventTooLarge):
        parse(*chunks, limit=100)


def test_many_small_events_are_no_large_one():
    """Events that were passed on do not count towards the limit."""
    events, _ = parse(*([b"data: " + b"x" * 50 + b"\n\n: a comment\n"] * 100), limit=100)
    assert len(events) == 100


LINES = st.sampled_from(
    [b"data: a", b"data:b", b"data", b"id: 1", b"id: 2", b"id", b"event: e", b": c", b"", b"", b"x"]
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=20), st.data())
def test_chunks_mean_nothing(lines, data):
    """A stream has the same events wherever it is split."""
    text = b"".join(line + end for line, end in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    edges = [0, *cuts, len(text)]
    whole, one = parse(text)
    pieces, other = parse(*(text[a:b] for a, b in itertools.pairwise(edges)))
    assert pieces == whole
    assert (other.last_id, other.retry) == (one.last_id, one.retry)


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_any_bytes_are_survived(chunks):
    """Only the size limit is an error."""
    parse(*chunks)


@pytest.mark.parametrize(
    ("retry", "failures", "idle", "seconds"),
    [
        *((None, 0, 0, 1), (None, 1, 0, 2), (None, 9, 0, 60), (None, 0, 9, 1)),
        *((0.5, 0, 0, 0.5), (0.5, 1, 0, 2), (0.5, 0, 1, 0.5), (0.5, 0, 9, 1), (90.0, 4, 9, 90)),
        *((0.0, 0, 0, 0.1), (0.0, 0, 1, 0.2), (0.0, 0, 2000, 1), (0.0, 1, 0, 2)),
    ],
)
def test_how_long_to_wait(retry, failures, idle, seconds):
    """The server sets the pause, above a minimum; streams without a message make it longer."""
    parser = EventParser(10)
    parser.retry = retry
    assert parser.resume_delay(failures, idle) == seconds
