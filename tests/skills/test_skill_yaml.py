"""Frontmatter is read as every reader of YAML reads it, or refused with what to write instead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.skills._scalars import YamlFault
from noizu_mcp.skills._yaml import read_yaml


def read(text):
    return read_yaml(text.split("\n"))[0]


READ = {
    "plain": ("a: some text, with a colon:and a# b", {"a": "some text, with a colon:and a# b"}),
    "comments": ("# first\na: b # c\n\n  # d\nc: d", {"a": "b", "c": "d"}),
    "types": (
        "a: null\nb: true\nc: false\nd: 12\ne: -3\nf: 1.50\ng: 0\nh:\ni: # nothing",
        {"a": None, "b": True, "c": False, "d": 12, "e": -3, "f": 1.5, "g": 0, "h": None}
        | {"i": None},
    ),
    "texts that look like something": (
        "a: 1.2.3\nb: 3 files\nc: -x\nd: nope\ne: v2",
        {"a": "1.2.3", "b": "3 files", "c": "-x", "d": "nope", "e": "v2"},
    ),
    "quotes": (
        "a: 'it''s: #1'  # yes\nb: \"x\\n\\u00e9\\\"\"\n\"c d\": ''\n'e': \"\"",
        {"a": "it's: #1", "b": 'x\né"', "c d": "", "e": ""},
    ),
    "plain over lines": (
        "a: one\n  two\n\n  three\n\n\n  four\nb:\n  five\n   six # end\nc: x\n\n# end",
        {"a": "one two\nthree\n\nfour", "b": "five six", "c": "x"},
    ),
    "quotes below": ("a:\n\n  'b'\nc: d", {"a": "b", "c": "d"}),
    "literal": (
        "a: |\n  x\n   y\n\n  z\nb: |-\n  x\n\nc: d",
        {"a": "x\n y\n\nz\n", "b": "x", "c": "d"},
    ),
    "folded": (
        "a: >  # note\n\n  x\n  y\n\n  z\nb: >-\n  x\n  y",
        {"a": "\nx y\nz\n", "b": "x y"},
    ),
    "kept": ("a: |+\n  x\n\nb: >+\n\nc: |\nd: |-", {"a": "x\n\n", "b": "\n", "c": "", "d": ""}),
    "mappings": (
        "a:\n  b: c\n  d:\n    e: f\n  g: h\ni: j",
        {"a": {"b": "c", "d": {"e": "f"}, "g": "h"}, "i": "j"},
    ),
    "lists": (
        "a:\n- x\n- 2 # two\nb:\n  - Bash(git:*)\n  - long\n    text\nc: [x, 'y, z', 3] # d\ne: []",
        {"a": ["x", 2], "b": ["Bash(git:*)", "long text"], "c": ["x", "y, z", 3], "e": []},
    ),
    "a list after a list": ("a:\n  b:\n  - c\n  d: e", {"a": {"b": ["c"], "d": "e"}}),
    "a list in a list of keys": ("a:\n- b\nc:\n", {"a": ["b"], "c": None}),
    "nothing": ("", {}),
}

REFUSED = {
    "a: b: c": (1, "a text with a colon and a space in it must stand in quotes"),
    "a: b\n  c: d": (2, "a text with a colon and a space in it must stand in quotes"),
    "a: b:": (1, "a text with a colon and a space in it must stand in quotes"),
    "a: b\na: c": (2, "the key 'a' stands there twice"),
    "a": (1, "expected `key: value`"),
    "a:b": (1, "expected `key: value`"),
    "- a": (1, "expected `key: value`"),
    " a: b": (1, "is indented further than what it belongs to"),
    "a: 'b'\n  c: d": (2, "is indented further than what it belongs to"),
    "a:\n   b: c\n  d: e": (3, "is indented further than what it belongs to"),
    "a:\n  - b\n  c: d": (3, "is indented further than what it belongs to"),
    "z: b\n1: a": (2, "the key 1 is no text; write it in quotes"),
    "yes: a": (1, "not every reader takes yes for the same; write it in quotes"),
    "a:\tb": (1, "has the character '\\t'; use spaces and text"),
    "a: b\n\ufeffc: d": (2, "has the character '\\ufeff'; use spaces and text"),
    "a: &b c": (1, "a text that begins with '&' must stand in quotes"),
    "a: {b: c}": (1, "a text that begins with '{' must stand in quotes"),
    "a: - b": (1, "a text that begins with '-' must stand in quotes"),
    "a: 'b": (
        1,
        "the quotes are not closed on this line; for a long text write `>-`",
    ),
    "a: 'b' c": (1, "did not expect 'c' behind the value"),
    'a: "\\q"': (1, "has an escape that JSON does not have"),
    'a: "\\ud800"': (1, "has an escape that JSON does not have"),
    "a: [b": (1, "expected `,` or `]` on this line"),
    "a: [b c: d]": (1, "a text with a colon and a space in it must stand in quotes"),
    "a: [b, ]": (1, "a list in brackets needs values, and stands on one line"),
    "a: [": (1, "a list in brackets needs values, and stands on one line"),
    "a: [b #c]": (1, "a list in brackets needs values, and stands on one line"),
    "a: ['b' 'c']": (1, "expected `,` or `]` on this line"),
    "a:\n  -\n  - b": (2, "an item of a list needs a value on its line"),
    "a:\n  - # b": (2, "an item of a list needs a value on its line"),
    "a: |2\n  b": (1, "expected `|`, `>`, `|-` or `>-`, got '|2'"),
    "a: >\n  b\n   c": (3, "is indented further, inside of `>`; write `|`"),
    "a: |\n  b\n   \n  c": (3, "an empty line has spaces that would count; take them out"),
    "a: # b\n  c": (1, "a comment stands between the key and its text; take it out"),
    "a:\n# b\n  c": (1, "a comment stands between the key and its text; take it out"),
    f"a:\n{' ' * 101}b: c": (2, "is indented by more than 100"),
}

DOUBTFUL = ("y", "No", "ON", "True", "~", "NULL", "012", "1_000", "+1", "-0", "1.", ".5", "1e3")
DOUBTFUL += ("0x1F", "0o7", "0b1", "12:30", "1:30:00.5", "2024-01-01", "2024-1-1 12:00", ".inf")
DOUBTFUL += ("-.INF", ".nan", "=", "<<", "1234567890123456", "1.5e+3", "1.2_3")


@pytest.mark.parametrize(("text", "values"), READ.values(), ids=READ)
def test_what_is_read(text, values):
    """Scalars, texts over several lines, mappings and lists."""
    assert read(text) == values


@pytest.mark.parametrize(("text", "fault"), REFUSED.items(), ids=map(repr, REFUSED))
def test_what_is_refused(text, fault):
    """The fault has the line, and says what to write instead."""
    with pytest.raises(YamlFault) as caught:
        read(text)

    assert (caught.value.line, caught.value.text) == fault
    assert str(caught.value) == f"line {fault[0]}: {fault[1]}"


@pytest.mark.parametrize("text", DOUBTFUL)
def test_what_readers_disagree_on(text):
    """A text that some reader takes for a number, a flag or a date must stand in quotes."""
    for line in (f"a: {text}", f"a: [{text}]", f"a:\n  - {text}"):
        with pytest.raises(YamlFault, match="not every reader takes"):
            read(line)

    assert read(f"a: '{text}'") == {"a": text}


def test_the_places_of_the_keys():
    """Each key of the outermost mapping has its line; others have none."""
    assert read_yaml(["# c", "a: b", "c:", "  d: e", "'f': g"])[1] == {"a": 2, "c": 3, "f": 5}


BODY = st.lists(
    st.sampled_from(
        ["foo", "bar", " ", "  ", ".", ",", "x:y", "#", " #", "'", "é", "-", "1", "no"]
    ),
    max_size=6,
).map("".join)


def lines(*prefixes, min_size=0):
    line = st.builds(str.__add__, st.sampled_from(prefixes), BODY)
    return st.lists(line, min_size=min_size, max_size=4).map("\n".join)


BLOCKS = st.sampled_from(["|", "|-", "|+", ">", ">-", ">+"])
VALUES = st.one_of(
    st.builds("{}\n{}".format, BODY, lines("", "  ", " ", "   ")),
    st.builds("{}\n{}".format, BLOCKS, lines("  ", "   ", "")),
    st.builds("\n{}".format, lines("- ", "  - ")),
    st.builds("\n{}".format, lines("  x: ", "  y: ")),
    st.builds("[{}]".format, lines("").map(lambda text: text.replace("\n", ", "))),
    st.builds('"{}"'.format, BODY),
    st.builds("'{}'".format, BODY),
)


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_agrees_with_a_library(values):
    """Whatever is read, PyYAML reads the same; it is not needed otherwise."""
    yaml = pytest.importorskip("yaml")
    text = "\n".join(f"{key}: {value}" for key, value in zip("abc", values, strict=False))
    try:
        found = read(text)
    except YamlFault:
        return

    assert repr(yaml.safe_load(f"{text}\n")) == repr(found)
