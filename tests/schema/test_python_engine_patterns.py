"""Patterns in the Python engine: the dialect of ECMA-262, and no way to explode."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.schema.engines._regex import match_pattern, translate
from noizu_mcp.schema.engines._regex_parse import MAX_PATTERN, PatternRefusedError
from noizu_mcp.schema.engines._regex_sets import MAX_CODE, complement, of, overlap, union


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("", ["", "a"], []),
        ("^a$", ["a"], ["a\n", "\na", "ba"]),
        ("a|b|", ["a", ""], []),
        ("^(?:a|b)$", ["a", "b"], ["ab"]),
        ("^(a)(?=b)b$", ["ab"], ["ac"]),
        ("^(?!a)", ["b", ""], ["a"]),
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
        (r"^[^@]+@[^@]+\.[^@]+$", ["a@b.c"], ["a@b"]),
        (r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==)?$", ["YWJj", "YQ=="], ["YQ="]),
        ("^(?:(?:a|b)c)+$", ["acbc"], ["ab"]),
        ("^(a{16}){2}$", ["a" * 32], ["a" * 31]),
        ("^(?:a?b){2,3}$", ["abb", "bbab"], ["a"]),
        ("^(?:(?:)b)*$", ["", "bb"], ["a"]),
    ],
)
def test_matches(pattern, good, bad):
    """A pattern means what ECMA-262 says, where Python's own dialect would differ."""
    matches = match_pattern(pattern)
    assert [text for text in good if not matches(text)] == []
    assert [text for text in bad if matches(text)] == []


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", 'a group without ")"'),
        (")", 'unbalanced ")"'),
        ("[a", "it ends too early"),
        ("\\", "it ends too early"),
        ("[]", "an empty class"),
        ("[^]", "an empty class"),
        ("*a", '"*" stands where nothing can be repeated'),
        ("a]", '"]" stands where'),
        ("a**", "two quantifiers in a row"),
        ("a*+", "two quantifiers in a row"),
        ("a{2}{3}", "two quantifiers in a row"),
        ("^*", "an anchor or a lookahead cannot be repeated"),
        ("(?=a)+", "an anchor or a lookahead cannot be repeated"),
        ("a{", '"{" must begin a quantifier'),
        ("a{,3}", '"{" must begin a quantifier'),
        ("a{x}", '"{" must begin a quantifier'),
        ("a{1,x}", '"{" must begin a quantifier'),
        ("a{3,2}", "out of order or above 1000"),
        ("a{1001}", "out of order or above 1000"),
        ("a{1,1001}", "out of order or above 1000"),
        ("(?<n>a)", "named groups, lookbehind and flags"),
        ("(?<=a)b", "named groups, lookbehind and flags"),
        ("(?i)a", "named groups, lookbehind and flags"),
        (r"\p{L}", r'the escape "\p" is not served'),
        (r"[\b]", r'the escape "\b" in a class is not served'),
        (r"\bword", r'the escape "\b" is not served'),
        (r"(a)\1", r'the escape "\1" is not served'),
        (r"\xZZ", r'"\xZZ" is no character'),
        (r"\u{}", r'"\u" is no character'),
        (r"\u{110000}", "is no character by itself"),
        (r"\ud83d\udc32", "is no character by itself"),
        (r"\u{41", "is no character"),
        (r"[\d-z]", "a range out of order, or with a class at its end"),
        (r"[z-a]", "a range out of order"),
        ("[[a]", r'"[" in a class must be written "\["'),
        ("[a&&b]", r'"&" in a class must be written "\&"'),
        ("[a--b]", "a range out of order"),
        ("[--b]", r'"-" in a class must be written "\-"'),
        ("(" * 40 + ")" * 40, "groups nested deeper than 30"),
        ("a" * (MAX_PATTERN + 1), "longer than 2000 characters"),
        ("(" + "(a|b)c" * 200 + ")+", "more than 300 characters"),
    ],
)
def test_refused(pattern, reason):
    """What is invalid, or would mean something else, is refused with its reason."""
    with pytest.raises(PatternRefusedError) as caught:
        translate(pattern)
    assert reason in caught.value.reason


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
        "(?=(a+)+b)",
        ".*.*.*x",
        "(?=.*.*.*x)",
        "^a*a*a*a*$",
    ],
)
def test_explosive(pattern):
    """What could match one text in several ways again and again is refused."""
    with pytest.raises(PatternRefusedError, match=r"take for ever|takes too long"):
        translate(pattern)


@pytest.mark.parametrize(
    "pattern", [r"^[a-z]+(-[a-z]+)*$", r"^(\w+\.)*\w+$", "^(?:ab|cd)*$", r"^\S+@\S+\.\S+$"]
)
def test_served_patterns_stay_fast(pattern):
    """What is served takes no time on texts that almost match."""
    matches = match_pattern(pattern)
    start = time.perf_counter()
    for text in ("a" * 2000 + "!", "ab" * 1000 + "!", "a." * 1000 + "!", "a-" * 1000, "@" * 2000):
        matches(text)
    assert time.perf_counter() - start < 1


atoms = st.sampled_from(["a", "b", "[ab]", ".", "(?:a|b)", "(?:ab|c)"])
served = st.recursive(
    atoms,
    lambda inner: (
        st.builds("{}{}".format, inner, inner)
        | st.builds("(?:{}|{})".format, inner, inner)
        | st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}"]))
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(served, st.text("ab", max_size=8))
def test_translation_keeps_the_meaning(pattern, text):
    """For patterns that both dialects read alike, the translation matches the same texts."""
    try:
        matches = match_pattern(pattern)
    except PatternRefusedError:
        return
    assert matches(text) is (re.search(pattern, text) is not None)


@settings(max_examples=200, deadline=None)
@given(served)
def test_whatever_is_served_is_bounded(pattern):
    """No pattern that is served explodes on a long text that almost matches."""
    try:
        source = translate(pattern)
    except PatternRefusedError:
        return
    search = re.compile(rf"\A(?:{source})\Z").search
    start = time.perf_counter()
    search("a" * 60 + "!")
    search("ab" * 30 + "!")
    assert time.perf_counter() - start < 1


pairs = st.tuples(st.integers(0, 50), st.integers(0, 5)).map(lambda at: (at[0], at[0] + at[1]))
sets = st.lists(pairs, max_size=5).map(union)


@given(sets, sets)
def test_sets(left, right):
    """Union, complement and overlap are those of sets of characters."""
    members = {code for low, high in left for code in range(low, high + 1)}
    others = {code for low, high in right for code in range(low, high + 1)}
    assert overlap(left, right) is bool(members & others)
    assert complement(complement(left)) == left
    assert union(left, complement(left)) == ((0, MAX_CODE),)
    assert {code for low, high in union(left, right) for code in range(low, high + 1)} == (
        members | others
    )
    assert of("a", "ac") == ((97, 99),)
