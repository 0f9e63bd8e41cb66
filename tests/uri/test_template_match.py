"""Matching of URI templates: the values of a URI, and URIs that do not match."""

import re
import string
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.uri import UriTemplate

#: Characters of the longest URI that is matched.
MAX_URI = 8192

MATCHES: dict[str, dict[str, Any]] = {
    "db://{table}/schema": {
        "db://users/schema": {"table": "users"},
        "db://a%20b/schema": {"table": "a b"},
        "db://%C3%A9/schema": {"table": "é"},
        "db://a,b;c=d@e/schema": {"table": "a,b;c=d@e"},
        "db://a%2Fb/schema": {"table": "a/b"},
        "db://a+b/schema": {"table": "a+b"},
        "db://%2561/schema": {"table": "%61"},
        "db:///schema": None,
        "db://a/b/schema": None,
        "db://a?b/schema": None,
        "db://a#b/schema": None,
        "db://a/schema\n": None,
        "xdb://a/schema": None,
        "DB://a/schema": {"table": "a"},
        "db://%zz/schema": None,
        "db://%/schema": None,
        "db://%ff/schema": None,
        "db://\ud800/schema": None,
    },
    "x:{a,b}": {"x:1,2": {"a": "1", "b": "2"}, "x:1": None, "x:1,2,3": None},
    "x:{a}-{b}": {"x:1-2-3": {"a": "1-2", "b": "3"}, "x:1": None},
    "x:{a:3}": {"x:abc": {"a": "abc"}, "x:abcd": None},
    "x:{a*}": {"x:1,2": {"a": ["1", "2"]}},
    "x:{+a}": {"x:a/b?c#d": {"a": "a/b?c#d"}, "x:": None},
    "x:{+a}/end": {"x:a/b/end": {"a": "a/b"}, "x:/end": None, "x:a/end/": None},
    "x:{+a}-{b}": {"x:x-y/z-w": {"a": "x-y/z", "b": "w"}},
    "x:{+a,b}": {"x:a/b,c/d": {"a": "a/b", "b": "c/d"}},
    "x:{+a}{?q}": {"x:a/b?q=1": {"a": "a/b", "q": "1"}, "x:a": {"a": "a"}},
    "x:{+a}{#f}": {"x:a#b": {"a": "a", "f": "b"}, "x:a/b": {"a": "a/b"}},
    "x{#f}": {"x#a/b?c": {"f": "a/b?c"}, "x": {}, "x#": None},
    "x:{n}{.e}": {"x:a.b.c": {"n": "a.b", "e": "c"}, "x:a": {"n": "a"}},
    "x:f{.e}": {"x:f.tar.gz": {"e": "tar.gz"}, "x:f": {}},
    "x:f{.e*}": {"x:f.tar.gz": {"e": ["tar", "gz"]}},
    "x:f{.a,b}": {"x:f.1.2": {"a": "1", "b": "2"}, "x:f.1": {"a": "1"}, "x:f.1.2.3": None},
    "x:{/a,b}": {"x:/1/2": {"a": "1", "b": "2"}, "x:/1": {"a": "1"}, "x:": {}, "x:/1/": None},
    "x:{/a*}": {"x:/1/2": {"a": ["1", "2"]}, "x:/1%2F2": {"a": ["1/2"]}, "x:/1?2": None},
    "x:{/a*}{/b}": {"x:/1/2/3": {"a": ["1", "2"], "b": "3"}, "x:/1": {"a": ["1"]}},
    "x:{/a}/end": {"x:/1/end": {"a": "1"}, "x:/end": {}},
    "x:{a}{;p,q*}": {
        "x:1;p=2": {"a": "1", "p": "2"},
        "x:1;q=2;p;q=3": {"a": "1", "p": "", "q": ["2", "3"]},
        "x:1;r=2": None,
        "x:1;p=2;p=3": None,
    },
    "x:{a}{?q,r*,s:2}": {
        "x:1": {"a": "1"},
        "x:1?q=2&r=3": {"a": "1", "q": "2", "r": ["3"]},
        "x:1?r=3&q=/%20?&r=": {"a": "1", "q": "/ ?", "r": ["3", ""]},
        "x:1?q=": {"a": "1", "q": ""},
        "x:1?q": {"a": "1", "q": ""},
        "x:1?s=ab": {"a": "1", "s": "ab"},
        "x:1?s=abc": None,
        "x:1?q=1&q=2": None,
        "x:1?other=1": None,
        "x:1?q=1&": None,
        "x:1?": None,
        "x:1?q=1#f": None,
    },
    "x:{?a}{&b}": {
        "x:?b=1&a=2": {"a": "2", "b": "1"},
        "x:?b=1": {"b": "1"},
        "x:&b=1": {"b": "1"},
        "x:b=1": None,
    },
    "x:{a}{?b}{&c}": {"x:1&c=2": {"a": "1", "c": "2"}, "x:1": {"a": "1"}},
    "x:{+a}{?b}{&c}": {"x:1&2?c=3": {"a": "1&2", "c": "3"}, "x:1&c=3": {"a": "1&c=3"}},
    "x:{?a}{&b}{&c}{#f}": {"x:?c=3&b=1#g": {"b": "1", "c": "3", "f": "g"}},
    "x:s?k=1{&a}": {"x:s?k=1&a=2": {"a": "2"}, "x:s?k=1": {}, "x:s?a=2&k=1": None},
    "x:s?q={q}&l={l}": {"x:s?q=1&l=2": {"q": "1", "l": "2"}, "x:s?l=2&q=1": None},
    "x:{a}{&b}": {"x:1&b=2": {"a": "1", "b": "2"}, "x:1": {"a": "1"}},
    "x:é{a}": {"x:%C3%A91": {"a": "1"}, "x:é1": None},
    "{a}://x": {"b://x": {"a": "b"}},
    "{?a}": {"?a=1": {"a": "1"}, "": {}},
    "x:{a}/{b.c}": {"x:1/2": {"a": "1", "b.c": "2"}},
    "x:y": {"x:y": {}, "x:z": None},
    "": {"": {}, "x": None},
}


@pytest.mark.parametrize("text", MATCHES)
def test_matches(text: str) -> None:
    """The whole URI matches, and is decoded once, or it does not match."""
    template = UriTemplate(text)
    found = {uri: template.match(uri) for uri in MATCHES[text]}
    assert found == MATCHES[text]


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("x:{a}", "x:.."),
        ("x:{a}", "x:%2e%2E"),
        ("x:{a}", "x:..%2fetc"),
        ("x:{a}", "x:b%2F..%2F"),
        ("x:{a}", "x:..\\etc"),
        ("x:{a}", "x:b%5C.."),
        ("x:{a}", "x:a%00b"),
        ("x:{a}", "x:a%0Ab"),
        ("x:{a}", "x:a\x7f"),
        ("x:{a}", "x:%C2%85"),
        ("x:{a}", "x:%2Fetc%2Fpasswd"),
        ("x:{a}", "x:%5C%5Chost"),
        ("x:{a}", "x:C:%5Cx"),
        ("x:{+a}", "x:b/../../etc"),
        ("x:{+a}", "x:/.."),
        ("x:///b/{+a}", "x:///b//etc/hosts"),
        ("x:///b/{+a}", "x:///b/%2Fetc/hosts"),
        ("x:///b/{+a}", "x:///b/%5C%5Chost"),
        ("x:{/a*}", "x:/b/../c"),
        ("x:{/a*}", "x:/b/%2Fetc"),
        ("x:{?a}", "x:?a=../b"),
        ("x:{?a*}", "x:?a=b&a=.."),
        ("x:{#a}", "x:#.."),
    ],
)
def test_traversal_is_refused(text: str, uri: str) -> None:
    """A value that could leave a handler's directory matches only if that is allowed."""
    assert UriTemplate(text).match(uri) is None
    assert UriTemplate(text, traversal=True).match(uri) is not None


@pytest.mark.parametrize(
    ("text", "uri", "value"),
    [
        ("x:{a}", "x:...", "..."),
        ("x:{a}", "x:a..b", "a..b"),
        ("x:{a}", "x:.", "."),
        ("x:{a}", "x:b%2F..c", "b/..c"),
        ("x:{a}", "x:C:b", "C:b"),
        ("x:{a}", "x:b%5Cc", "b\\c"),
        ("x:{+a}", "x:/etc/hosts", "/etc/hosts"),
        ("x://{+a}", "x:///etc/hosts", "/etc/hosts"),
        ("x://b{+a}", "x://b/etc/hosts", "/etc/hosts"),
        ("x:{?a}", "x:?a=/etc/hosts", "/etc/hosts"),
    ],
)
def test_what_is_no_traversal(text: str, uri: str, value: str) -> None:
    """Dots that do not change the directory are values, and absolute paths are where allowed."""
    assert UriTemplate(text).match(uri) == {"a": value}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{a}{b}", "the variables 'a' and 'b' cannot be told apart; put a text between them"),
        ("{+a}{+b}", "the variables 'a' and 'b' cannot be told apart"),
        ("{+a}{/b*}", "the variables 'a' and 'b' cannot be told apart"),
        ("{/a*}{/b*}", "the variables 'a' and 'b' cannot be told apart"),
        ("{/a*,b*}", "the variables 'a' and 'b' cannot be told apart"),
        ("{/a}{b}", "the variables 'a' and 'b' cannot be told apart"),
        ("{a}{.b*}", "the variables 'a' and 'b' cannot be told apart"),
        ("{+a}{&b}", "the variables 'a' and 'b' cannot be told apart"),
        ("{?a,b}{?c}", "the variables 'b' and 'c' cannot be told apart"),
        ("{a}-{a}", "the variable 'a' stands in it 2 times; give each a name of its own"),
        ("{?a}{&a}", "the variable 'a' stands in it 2 times; give each a name of its own"),
    ],
)
def test_what_cannot_be_matched(text: str, fault: str) -> None:
    """Variables that cannot be separated are a fault for matching; expansion works."""
    template = UriTemplate(text)
    assert template.faults[0].startswith(fault)
    assert template.expand({}) == ("-" if "-" in text else "")
    with pytest.raises(ValueError, match=r"cannot be matched: the variable"):
        template.match("x")


@pytest.mark.parametrize(
    "text",
    ["{/a*}{/b}", "{+a}{/b}", "{+a}/{+b}", "{a}{.b}", "{.a}{.b}", "{+a}{?b}{#c}", "{a}{;b}{?c}"],
)
def test_what_can_be_told_apart(text: str) -> None:
    """A text between variables, or a character that only one of them allows, is enough."""
    assert UriTemplate(text).faults == ()


HOSTILE = {
    "x:{a}-{b}-{c}-{d}-{e}-{f}/end": "-",
    "x:{+a}/{+b}/{+c}/{+d}/{+e}!": "/",
    "x:{/a*}/b{/c*}/b{/d*}/b!": "/b",
    "x:{a}{.b}.{c}{.d}!": ".",
    "x:{+a}aa{+b}aa{+c}aa{+d}!": "a",
    "x:{a}{?b,c,d*}": "?b=1&d=2&",
    "x:{a}{;b*}": ";b",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_uris_take_linear_time(text: str) -> None:
    """The longest URI made for backtracking takes time linear in its length."""
    template = UriTemplate(text)

    def cost(length: int) -> float:
        uri = "x:" + (HOSTILE[text] * length)[: length - 2]
        best = 1.0
        for _ in range(3):
            start = time.thread_time()
            template.match(uri)
            best = min(best, time.thread_time() - start)
        return best

    # Backtracking over six variables would take years; a square would take 64 times as long.
    assert cost(MAX_URI) < max(30 * cost(MAX_URI // 8), 0.05)


def test_longer_uris_match_nothing() -> None:
    """Longer URIs are not matched."""
    template = UriTemplate("x:{a}")
    assert template.match("x:" + "a" * (MAX_URI - 2)) is not None
    assert template.match("x:" + "a" * (MAX_URI - 1)) is None


PLAIN = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="."), min_size=1, max_size=12
).filter(lambda text: not re.match(r"[/\\]|[A-Za-z]:[/\\]", text))
# Unchanged in `{+var}`; neither an escape nor a separator.
RESERVED = st.text(string.ascii_letters + "/:@!$&'()*+;=-_~ é", min_size=1, max_size=12)
ANY = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="."), max_size=12)
LAWS = {
    "x:{a}": {"a": PLAIN},
    "db://{a}/b/{c}": {"a": PLAIN, "c": PLAIN},
    "x:{a,b}/{c*}": {"a": PLAIN, "b": PLAIN, "c": st.lists(PLAIN, min_size=1, max_size=4)},
    "x:{+a}": {"a": RESERVED},
    "x:{+a}{?q}{#f}": {"a": RESERVED, "q": st.none() | ANY, "f": st.none() | RESERVED},
    "x:{a}{.b}": {"a": PLAIN, "b": st.none() | PLAIN},
    "x:{/a*}{/b}": {"a": st.lists(PLAIN, min_size=1, max_size=4), "b": PLAIN},
    "x:{/a,b}": {"a": PLAIN, "b": st.none() | PLAIN},
    "x:y{.a*}": {"a": st.lists(PLAIN, min_size=1, max_size=4)},
    "x:{a}{;b,c*}": {
        "a": PLAIN,
        "b": st.none() | ANY,
        "c": st.none() | st.lists(ANY, min_size=1, max_size=4),
    },
    "x:{a}{?b,c*}{&d}": {
        "a": PLAIN,
        "b": st.none() | ANY,
        "c": st.none() | st.lists(ANY, min_size=1, max_size=4),
        "d": st.none() | ANY,
    },
    "x:s?a={a}&b={b}{&c}": {"a": PLAIN, "b": PLAIN, "c": st.none() | ANY},
}


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_matching_undoes_expanding(data: st.DataObject) -> None:
    """Matching an expansion returns the expanded values."""
    text = data.draw(st.sampled_from(list(LAWS)))
    template = UriTemplate(text)
    values = {name: data.draw(strategy) for name, strategy in LAWS[text].items()}
    uri = template.expand(values)
    given_values = {name: value for name, value in values.items() if value is not None}
    assert template.match(uri) == given_values


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_expanding_undoes_matching(data: st.DataObject) -> None:
    """A URI that matches is the expansion of its values, except for encoding and order."""
    text = data.draw(st.sampled_from(["x:{a}", "x:{+a}", "x:{a}-{b}", "x:{/a*}{?b}", "x:{a}{.b}"]))
    uri = "x:" + data.draw(st.sampled_from(["", "/"])) + data.draw(st.text("ab.-?=é", max_size=12))
    template = UriTemplate(text, traversal=True)
    values = template.match(uri)
    if values is not None:
        assert template.match(template.expand(values)) == values


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(MATCHES)), st.text(max_size=40))
def test_any_text_is_matched_or_not(text: str, uri: str) -> None:
    """No URI raises an exception."""
    found = UriTemplate(text).match(uri)
    assert found is None or found.keys() <= set(UriTemplate(text).variables)
