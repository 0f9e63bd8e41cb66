"""Edits of JSON text: one member changes, and every other character stays."""

import json
import string
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.cli.hosts._json_edit import (
    MAX_DEPTH,
    EditError,
    read_json_text,
    remove_member,
    set_member,
)

names = st.sampled_from(["a", "b", "é", "servers", 'q"', ""])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(string.printable, max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(names, st.dictionaries(names, values, max_size=4), max_size=4)
gaps = st.sampled_from(["", " ", "\n", "\n  ", "\t", "// one\n", "/* , } */", " // {\n\t"])


@st.composite
def texts(draw, comments):
    """Draw a document and one of its possible texts."""
    document = draw(documents)
    kinds = gaps if comments else st.sampled_from(["", " ", "\n", "\r\n  ", "\t"])
    found = cycle(draw(st.lists(kinds, min_size=1, max_size=8)))
    comma = cycle(draw(st.lists(st.booleans(), min_size=1, max_size=4)))

    def gap():
        return next(found)

    def shown(value):
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=next(comma))
        if isinstance(value, dict):
            items = [f"{json.dumps(k)}{gap()}:{gap()}{shown(v)}" for k, v in value.items()]
        else:
            items = [shown(v) for v in value]
        ends = "{}" if isinstance(value, dict) else "[]"
        text = ",".join(f"{gap()}{item}{gap()}" for item in items)
        last = f",{gap()}" if comments and items and next(comma) else ""
        return f"{ends[0]}{gap()}{text}{last}{ends[1]}"

    return document, f"{gap()}{shown(document)}{gap()}"


@pytest.mark.slow
@pytest.mark.parametrize("comments", [False, True])
def test_a_set_member_changes_nothing_else(comments):
    """The edited text has the member; all other values and comments are unchanged."""

    @given(drawn=texts(comments), outer=names, name=names, value=values)
    def check(drawn, outer, name, value):
        document, text = drawn
        edited = set_member(text, (outer, name), value, comments=comments)
        expected = {**document, outer: {**document.get(outer, {}), name: value}}
        assert expected == read_json_text(edited, comments=comments)
        if name not in document.get(outer, {}):
            # All characters of the old text are there, in order.
            rest = iter(edited)
            assert all(letter in rest for letter in text if not letter.isspace())

    check()


@pytest.mark.slow
@pytest.mark.parametrize("comments", [False, True])
def test_a_removed_member_takes_nothing_else(comments):
    """Only the member is removed; without such a member the text is unchanged."""

    @given(drawn=texts(comments), outer=names, name=names)
    def check(drawn, outer, name):
        document, text = drawn
        edited = remove_member(text, (outer, name), comments=comments)
        if name not in document.get(outer, {}):
            assert text == edited
            return
        inner = {key: value for key, value in document[outer].items() if key != name}
        assert {**document, outer: inner} == read_json_text(edited, comments=comments)
        assert edited.count("// one") <= text.count("// one")

    check()


SETTINGS = """\
{
    // My theme.
    "theme": "dark", // not light
    "servers": {
        "one": {"command": "x"} // the first
    },
}
"""


def test_an_added_member_looks_like_its_neighbours():
    """Indentation and comments are as in the rest of the file."""
    edited = set_member(SETTINGS, ("servers", "two"), {"url": "y"}, comments=True)

    assert (
        edited
        == """\
{
    // My theme.
    "theme": "dark", // not light
    "servers": {
        "one": {"command": "x"}, // the first
        "two": {
            "url": "y"
        }
    },
}
"""
    )
    assert SETTINGS.replace("}, // the", "} // the") == remove_member(
        edited, ("servers", "two"), comments=True
    )


def test_an_added_object_goes_to_the_end():
    """A missing object of the servers is added at the end, also after a trailing comma."""
    edited = set_member(SETTINGS, ("others", "two"), 1, comments=True)

    end = '    },\n    "others": {\n        "two": 1\n    },\n}\n'
    assert edited.endswith(end)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "s": {\n    "n": 1\n  }\n}\n'),
        ("{}", '{\n  "s": {\n    "n": 1\n  }\n}'),
        ('{"a": 1}', '{"a": 1,\n  "s": {\n    "n": 1\n  }\n}'),
        ('{"s": {}}', '{"s": {\n  "n": 1\n}}'),
        ('{\r\n\t"a": 1\r\n}', '{\r\n\t"a": 1,\r\n\t"s": {\r\n\t\t"n": 1\r\n\t}\r\n}'),
        ('{\n "s": {"n": 2, "m": 3}}', '{\n "s": {"n": 1, "m": 3}}'),
        ('{"s": {"n": 0}, "s": {"n": 2}}', '{"s": {"n": 0}, "s": {"n": 1}}'),
    ],
)
def test_small_files(text, expected):
    """Empty files, files of one line and files with CRLF keep their form."""
    assert expected == set_member(text, ("s", "n"), 1, comments=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"s": {"n": 1}}', '{"s": {}}'),
        ('{"s": {"a": 0, "n": 1}}', '{"s": {"a": 0 }}'),
        ('{"s": {"n": 1, "a": 0}}', '{"s": {"a": 0}}'),
        ('{\n"s": {\r\n "n": 1,\r\n "a": 0\r\n}}', '{\n"s": {\r\n "a": 0\r\n}}'),
        ('{"n": {"s": 1}}', '{"n": {"s": 1}}'),
        ('{"s": 1}', '{"s": 1}'),
        ("", ""),
    ],
)
def test_small_files_without_a_member(text, expected):
    """Commas are removed with the member that they belong to."""
    assert expected == remove_member(text, ("s", "n"), comments=False)


@pytest.mark.parametrize(
    ("text", "comments", "message"),
    [
        ("{", False, "line 1, column 2: a name in quotes is missing here"),
        ("{1: 2}", False, "line 1, column 2: a name in quotes"),
        ('{"a" 1}', False, "line 1, column 6: a colon is missing"),
        ('{"a": }', False, "line 1, column 7: a JSON value is missing"),
        ('{"a": 01}', False, "a JSON value is missing"),
        ('{"a": "\t"}', False, "a JSON value is missing"),
        ('{"a": 1 "b": 2}', False, "line 1, column 9: a comma or } is missing"),
        ('{"a": [1 2]}', False, "a comma or ] is missing"),
        ('{"a": 1,}', False, "line 1, column 8: a comma before }"),
        ('{\n// x\n"a": 1}', False, "line 2, column 1: a name in quotes is missing here (the host"),
        ("{} x", True, "line 1, column 4: unexpected text"),
        ('{"a": /* 1}', True, "a JSON value is missing"),
        ('{"a": ' + "[" * (MAX_DEPTH + 2), True, "nested too deep"),
        ("[]", False, "the whole is [], not an object"),
        ('{"s": null}', False, "s is null, not an object"),
    ],
)
def test_faults(text, comments, message):
    """A file that cannot be read, or has another form, is refused with the position."""
    with pytest.raises(EditError) as caught:
        set_member(text, ("s", "n"), 1, comments=comments)

    assert message in str(caught.value)


def test_half_a_letter_is_escaped():
    """Half of a surrogate pair is escaped."""
    edited = set_member("{}", ("s",), "\ud800", comments=False)

    assert json.loads(edited.encode()) == {"s": "\ud800"}
