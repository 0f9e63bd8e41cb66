"""Frontmatter is read if all YAML parsers agree, and otherwise refused with the correction."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.skills._yaml import BadYaml, read_yaml


def read(text):
    return read_yaml(text)[0]


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
    "a: {b: c}": ("a: {b: c}", {"a": {"b": "c"}}),
    "a: [b c: d]": ("a: [b c: d]", {"a": [{"b c": "d"}]}),
    "a: [b, ]": ("a: [b, ]", {"a": ["b"]}),
    "a:\n  -\n  - b": ("a:\n  -\n  - b", {"a": [None, "b"]}),
    "a:\n  - # b": ("a:\n  - # b", {"a": [None]}),
    "a: |2\n  b": ("a: |2\n  b", {"a": "b"}),
    "a: >\n  b\n   c": ("a: >\n  b\n   c", {"a": "b\n c"}),
    "a: |\n  b\n   \n  c": ("a: |\n  b\n   \n  c", {"a": "b\n \nc"}),
    "a: # b\n  c": ("a: # b\n  c", {"a": "c"}),
    "a:\n# b\n  c": ("a:\n# b\n  c", {"a": "c"}),
}

REFUSED = {
    "a: b: c": (1, "a text with a colon and a space in it must stand in quotes"),
    "a: b\n  c: d": (2, "a text with a colon and a space in it must stand in quotes"),
    "a: b:": (1, "a text with a colon and a space in it must stand in quotes"),
    "a: b\na: c": (2, "the key 'a' stands there twice"),
    "a": (1, "expected `key: value`"),
    "a:b": (1, "expected `key: value`"),
    "- a": (1, "expected `key: value`"),
    "a: 'b'\n  c: d": (2, "is not YAML: expected <block end>, but found '<block mapping start>'"),
    "a:\n   b: c\n  d: e": (
        3,
        "is not YAML: expected <block end>, but found '<block mapping start>'",
    ),
    "a:\n  - b\n  c: d": (3, "is not YAML: expected <block end>, but found '?'"),
    "z: b\n1: a": (2, "the key 1 is no text; write it in quotes"),
    "yes: a": (1, "not every reader takes yes for the same; write it in quotes"),
    "a:\tb": (1, "is not YAML: found character '\\t' that cannot start any token"),
    "a: b\n\ufeffc: d": (2, "has the character '\\ufeff'; use spaces and text"),
    "a: &b c": (1, "has an anchor, an alias or a tag; write the value itself"),
    "a: - b": (1, "is not YAML: sequence entries are not allowed here"),
    "a: 'b": (1, "is not YAML: found unexpected end of stream"),
    "a: 'b' c": (1, "is not YAML: expected <block end>, but found '<scalar>'"),
    'a: "\\q"': (1, "is not YAML: found unknown escape character 'q'"),
    'a: "\\ud800"': (1, "has an escape that is no character"),
    "a: [b": (1, "is not YAML: expected ',' or ']', but got '<stream end>'"),
    "a: [": (1, "is not YAML: expected the node content, but found '<stream end>'"),
    "a: [b #c]": (1, "is not YAML: expected ',' or ']', but got '<stream end>'"),
    "a: ['b' 'c']": (1, "is not YAML: expected ',' or ']', but got '<scalar>'"),
    "a: *b": (1, "has an anchor, an alias or a tag; write the value itself"),
    "a: !!str 1": (1, "has an anchor, an alias or a tag; write the value itself"),
    "a: \x00": (1, "has the character '\\x00'; use spaces and text"),
    "[a]": (1, "expected `key: value`"),
    "? {a: b}\n: c": (1, "the key {'a': 'b'} is no text; write it in quotes"),
    "a: b\n---\nc: d": (2, "is not YAML: but found another document"),
    f"a: {'[' * 2000}{']' * 2000}": (1, "nests deeper than 100 levels"),
    "a: b\x85c": (1, "has the character '\\x85'; use spaces and text"),
}

DOUBTFUL = ("y", "No", "ON", "True", "~", "NULL", "012", "1_000", "+1", "-0", "1.", ".5", "1e3")
DOUBTFUL += ("0x1F", "0o7", "0b1", "12:30", "1:30:00.5", "2024-01-01", "2024-1-1 12:00", ".inf")
DOUBTFUL += ("-.INF", ".nan", "=", "<<", "1234567890123456", "1.5e+3", "1.2_3")


@pytest.mark.parametrize(("text", "values"), READ.values(), ids=READ)
def test_what_is_read(text, values):
    """Scalars, multi-line texts, mappings and lists are read."""
    assert read(text) == values


@pytest.mark.parametrize(("text", "fault"), REFUSED.items(), ids=map(repr, REFUSED))
def test_what_is_refused(text, fault):
    """The fault has the line, and says what to write instead."""
    with pytest.raises(BadYaml) as caught:
        read(text)

    assert (caught.value.line, str(caught.value)) == fault


@pytest.mark.parametrize("text", DOUBTFUL)
def test_what_readers_disagree_on(text):
    """A text that some parser reads as a number, a boolean or a date must be quoted."""
    for line in (f"a: {text}", f"a: [{text}]", f"a:\n  - {text}"):
        with pytest.raises(BadYaml, match="not every reader takes"):
            read(line)

    assert read(f"a: '{text}'") == {"a": text}


def test_the_places_of_the_keys():
    """Each key of the outermost mapping has its line; inner keys have none."""
    assert read_yaml("# c\na: b\nc:\n  d: e\n'f': g")[1] == {"a": 2, "c": 3, "f": 5}


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


@pytest.mark.slow
@given(st.lists(VALUES, min_size=1, max_size=3))
def test_agrees_with_pyyaml(values):
    """A value is read as PyYAML resolves it."""
    text = "\n".join(f"{key}: {value}" for key, value in zip("abc", values, strict=False))
    try:
        found = read(text)
    except BadYaml:
        return

    assert repr(yaml.safe_load(text)) == repr(found)
