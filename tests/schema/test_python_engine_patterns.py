"""Patterns in the Python engine: the dialect of ECMA-262, in linear time or not at all."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.schema import SchemaUnsupported, compile_schema

from .growth import is_linear


def matcher(pattern):
    """Return a search function for a pattern, without the native engine."""
    return compile_schema({"pattern": pattern}, "python").is_valid


def refusal(pattern):
    """Return the reason of a refusal."""
    with pytest.raises(SchemaUnsupported) as caught:
        matcher(pattern)
    assert caught.value.keyword == "pattern"
    return str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("", ["", "a"], []),
        ("^a$", ["a"], ["a\n", "\na", "ba"]),
        ("a|b|", ["a", ""], []),
        ("^(?:a|b)$", ["a", "b"], ["ab"]),
        ("^.$", ["a", "\U0001f600", "\x85"], ["\n", "\r", "\u2028", "\u2029", ""]),
        (r"^\d\D$", ["1a", "1\u0663"], ["\u0663a", "11"]),
        (r"^\w\W$", ["_\u00e9"], ["\u00e9a", "a_"]),
        (r"^\s\S$", ["\ufeffa", "\u2003a", "\u00a0\u200b"], ["\u200ba", "a "]),
        (r"^[\d_]+$", ["1_"], ["a"]),
        (r"^[^\d\s]$", ["a", "\U0001f600"], ["1", "\ufeff"]),
        (r"^[\s\S]$", ["\n", "a"], ["ab"]),
        (r"^[^\s\S]$", [], ["a", ""]),
        (r"^[a\-z][-a][a-]$", ["---", "zaa"], ["b--"]),
        (r"^[$^.|?*+(){}]+$", ["$^.|?*+(){}"], ["a"]),
        (r"^\$\^\.\|\?\*\+\(\)\{\}\[\]\\\/\-$", [r"$^.|?*+(){}[]\/-"], ["a"]),
        (r"^[a-c\x64\u0065]+$", ["abcde"], ["f"]),
        (r"^\u{1F600}\t\n\v\f\r$", ["\U0001f600\t\n\v\f\r"], ["t"]),
        ("^a{2}b{1,}c{0,2}d?$", ["aab", "aabbccd"], ["ab", "aabccc"]),
        ("^a+?b*?$", ["aab"], ["b"]),
        (r"^[a-z]+(-[a-z]+)*$", ["a", "ab-cd"], ["a-", "-a"]),
        (r"^(\d{1,3}\.){3}\d{1,3}$", ["127.0.0.1"], ["127.0.0"]),
        ("^(?:(?:a|b)c)+$", ["acbc"], ["ab"]),
        ("^(a{16}){2}$", ["a" * 32], ["a" * 31]),
        ("^(?:a?b){2,3}$", ["abb", "bbab"], ["a"]),
        ("^(?:(?:)b)*$", ["", "bb"], ["a"]),
    ],
)
def test_matches(pattern, good, bad):
    """A pattern has the meaning of ECMA-262 where Python's own dialect differs."""
    matches = matcher(pattern)
    assert [text for text in good if not matches(text)] == []
    assert [text for text in bad if matches(text)] == []


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", 'a "(" without its ")"'),
        (")", 'a ")" without its "("'),
        ("*a", '"*" stands where nothing can be repeated'),
        ("a**", "two quantifiers in a row"),
        ("a*+", "two quantifiers in a row"),
        ("a{2}{3}", "two quantifiers in a row"),
        ("^*", "an anchor cannot be repeated"),
        ("a{3,2}", "out of order or above 1000"),
        ("a{1001}", "out of order or above 1000"),
        ("a{1,1001}", "out of order or above 1000"),
        (r"\u{110000}", "is no character by itself"),
        (r"\ud83d\udc32", r'"\ud83d" is no character by itself'),
        (r"[\d-z]", r'"\d-z" is not a range in order'),
        (r"[z-a]", '"z-a" is not a range in order'),
        ("[a&&b]", '"[a&&b]" has a sign twice'),
        ("[a--b]", '"[a--b]" has a sign twice'),
        ("[--b]", '"[--b]" has a sign twice'),
        ("(" * 40 + ")" * 40, "groups nested deeper than 30"),
        ("a" * 2001, "longer than 2000 characters"),
    ],
)
def test_refused(pattern, reason):
    """A pattern that is invalid, or would have another meaning, is refused with the reason."""
    assert reason in refusal(pattern)


@pytest.mark.parametrize(
    "rest",
    [
        *("[a", "\\", "[]", "[^]", "]", "a]", "{", "{,3}", "{x}", "{1,x}", "}", "[[a]"),
        *("(?<n>a)", "(?<=a)b", "(?=a)b", "(?!a)b", "(?i)a", "(?"),
        *(r"\p{L}", r"[\b]", r"\bword", r"\B", r"\1", r"\k<n>", r"\cA", r"\0"),
        *(r"\xZZ", r"\u{}", r"\u{41", r"\u12"),
    ],
)
def test_not_in_the_table(rest):
    """A token that cannot be translated is refused at its position."""
    at = rest[1:] if rest == "a]" else rest
    assert f'"{at[:10]}" is not valid in it, or not served' in refusal(f"^{rest}")


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a*)*$",
        "^(a|a)*$",
        "^(a|ab)*$",
        "^(a|b|ab)*c$",
        "(b(|a?))+",
        "(b(a?)?)+",
        "(x+x+)+y",
        "((a|b)*c?)*",
        r"^(\w+\s?)*$",
        "(?:a{1,30}){1,30}",
        ".*.*.*x",
        "^a*a*a*a*$",
        r"^[^@]+@[^@]+\.[^@]+$",
        "^([a-z]{4})*([a-z]{2}==)?$",
        "(?:){9}",
        "^(?:a|b|ab|ba){9}$",
    ],
)
def test_explosive(pattern):
    """A pattern that can match one text in exponentially many ways is refused."""
    assert "it can take too long" in refusal(pattern)


SPACES = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("d", set("0123456789")),
        ("w", set("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")),
        ("s", set(SPACES)),
    ],
)
def test_classes(name, members):
    """A class has the members of ECMA-262, and its complement has all others."""
    inside, outside = matcher(rf"^\{name}$"), matcher(rf"^\{name.upper()}$")
    characters = [chr(code) for code in (*range(0x3100), 0xFEFF, 0xFF10, 0x1D7CE, 0x10FFFF)]
    assert {character for character in characters if inside(character)} == members
    assert {character for character in characters if not outside(character)} == members


atoms = st.sampled_from(["a", "b", "[ab]", ".", "(?:a|b)", "(?:ab|c)"])
written = st.recursive(
    atoms,
    lambda inner: (
        st.builds("{}{}".format, inner, inner)
        | st.builds("(?:{}|{})".format, inner, inner)
        | st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}"]))
    ),
    max_leaves=6,
).flatmap(lambda pattern: st.sampled_from([pattern, f"^{pattern}", f"^{pattern}$"]))


def served(pattern):
    """Return a search function for a pattern, or None if it is refused."""
    try:
        return matcher(pattern)
    except SchemaUnsupported:
        return None


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(written, st.text("ab", max_size=8))
def test_translation_keeps_the_meaning(pattern, text):
    """For patterns that both dialects read alike the translation matches the same strings."""
    matches = served(pattern)
    if matches is not None:
        assert matches(text) is (re.search(pattern, text) is not None)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(written)
def test_whatever_is_served_is_bounded(pattern):
    """A text that almost matches takes linear time with every served pattern."""

    def match_all(texts):
        for text in texts:
            matches(text)

    def make(size):
        return ("a" * size + "!", "ab" * (size // 2) + "!", "ba" * (size // 2), "b" * size + "\n")

    matches = served(pattern)
    if matches is not None:
        assert is_linear(match_all, make, 1000)
