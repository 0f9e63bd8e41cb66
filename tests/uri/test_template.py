"""Expansion of URI templates: the examples of RFC 6570, section 3.2, and invalid templates."""

from typing import Any

import pytest

from noizu_mcp.uri import UriTemplate

# Section 3.2: the values of all examples.
VALUES: dict[str, Any] = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "empty_keys": [],
    "undef": None,
}
EXAMPLES = {
    "3.2.1 variables": {
        "{count}": "one,two,three",
        "{count*}": "one,two,three",
        "{/count}": "/one,two,three",
        "{/count*}": "/one/two/three",
        "{;count}": ";count=one,two,three",
        "{;count*}": ";count=one;count=two;count=three",
        "{?count}": "?count=one,two,three",
        "{?count*}": "?count=one&count=two&count=three",
        "{&count*}": "&count=one&count=two&count=three",
    },
    "3.2.2 simple": {
        "{var}": "value",
        "{hello}": "Hello%20World%21",
        "{half}": "50%25",
        "O{empty}X": "OX",
        "O{undef}X": "OX",
        "{x,y}": "1024,768",
        "{x,hello,y}": "1024,Hello%20World%21,768",
        "?{x,empty}": "?1024,",
        "?{x,undef}": "?1024",
        "?{undef,y}": "?768",
        "{var:3}": "val",
        "{var:30}": "value",
        "{list}": "red,green,blue",
        "{list*}": "red,green,blue",
        "{keys}": "semi,%3B,dot,.,comma,%2C",
        "{keys*}": "semi=%3B,dot=.,comma=%2C",
    },
    "3.2.3 reserved": {
        "{+var}": "value",
        "{+hello}": "Hello%20World!",
        "{+half}": "50%25",
        "{base}index": "http%3A%2F%2Fexample.com%2Fhome%2Findex",
        "{+base}index": "http://example.com/home/index",
        "O{+empty}X": "OX",
        "O{+undef}X": "OX",
        "{+path}/here": "/foo/bar/here",
        "here?ref={+path}": "here?ref=/foo/bar",
        "up{+path}{var}/here": "up/foo/barvalue/here",
        "{+x,hello,y}": "1024,Hello%20World!,768",
        "{+path,x}/here": "/foo/bar,1024/here",
        "{+path:6}/here": "/foo/b/here",
        "{+list}": "red,green,blue",
        "{+list*}": "red,green,blue",
        "{+keys}": "semi,;,dot,.,comma,,",
        "{+keys*}": "semi=;,dot=.,comma=,",
    },
    "3.2.4 fragment": {
        "{#var}": "#value",
        "{#hello}": "#Hello%20World!",
        "{#half}": "#50%25",
        "foo{#empty}": "foo#",
        "foo{#undef}": "foo",
        "{#x,hello,y}": "#1024,Hello%20World!,768",
        "{#path,x}/here": "#/foo/bar,1024/here",
        "{#path:6}/here": "#/foo/b/here",
        "{#list}": "#red,green,blue",
        "{#list*}": "#red,green,blue",
        "{#keys}": "#semi,;,dot,.,comma,,",
        "{#keys*}": "#semi=;,dot=.,comma=,",
    },
    "3.2.5 label": {
        "{.who}": ".fred",
        "{.who,who}": ".fred.fred",
        "{.half,who}": ".50%25.fred",
        "www{.dom*}": "www.example.com",
        "X{.var}": "X.value",
        "X{.empty}": "X.",
        "X{.undef}": "X",
        "X{.var:3}": "X.val",
        "X{.list}": "X.red,green,blue",
        "X{.list*}": "X.red.green.blue",
        "X{.keys}": "X.semi,%3B,dot,.,comma,%2C",
        "X{.keys*}": "X.semi=%3B.dot=..comma=%2C",
        "X{.empty_keys}": "X",
        "X{.empty_keys*}": "X",
    },
    "3.2.6 path": {
        "{/who}": "/fred",
        "{/who,who}": "/fred/fred",
        "{/half,who}": "/50%25/fred",
        "{/who,dub}": "/fred/me%2Ftoo",
        "{/var}": "/value",
        "{/var,empty}": "/value/",
        "{/var,undef}": "/value",
        "{/var,x}/here": "/value/1024/here",
        "{/var:1,var}": "/v/value",
        "{/list}": "/red,green,blue",
        "{/list*}": "/red/green/blue",
        "{/list*,path:4}": "/red/green/blue/%2Ffoo",
        "{/keys}": "/semi,%3B,dot,.,comma,%2C",
        "{/keys*}": "/semi=%3B/dot=./comma=%2C",
    },
    "3.2.7 parameters of a path": {
        "{;who}": ";who=fred",
        "{;half}": ";half=50%25",
        "{;empty}": ";empty",
        "{;v,empty,who}": ";v=6;empty;who=fred",
        "{;v,bar,who}": ";v=6;who=fred",
        "{;x,y}": ";x=1024;y=768",
        "{;x,y,empty}": ";x=1024;y=768;empty",
        "{;x,y,undef}": ";x=1024;y=768",
        "{;hello:5}": ";hello=Hello",
        "{;list}": ";list=red,green,blue",
        "{;list*}": ";list=red;list=green;list=blue",
        "{;keys}": ";keys=semi,%3B,dot,.,comma,%2C",
        "{;keys*}": ";semi=%3B;dot=.;comma=%2C",
    },
    "3.2.8 query": {
        "{?who}": "?who=fred",
        "{?half}": "?half=50%25",
        "{?x,y}": "?x=1024&y=768",
        "{?x,y,empty}": "?x=1024&y=768&empty=",
        "{?x,y,undef}": "?x=1024&y=768",
        "{?var:3}": "?var=val",
        "{?list}": "?list=red,green,blue",
        "{?list*}": "?list=red&list=green&list=blue",
        "{?keys}": "?keys=semi,%3B,dot,.,comma,%2C",
        "{?keys*}": "?semi=%3B&dot=.&comma=%2C",
    },
    "3.2.9 query, continued": {
        "{&who}": "&who=fred",
        "{&half}": "&half=50%25",
        "?fixed=yes{&x}": "?fixed=yes&x=1024",
        "{&x,y,empty}": "&x=1024&y=768&empty=",
        "{&var:3}": "&var=val",
        "{&list}": "&list=red,green,blue",
        "{&list*}": "&list=red&list=green&list=blue",
        "{&keys}": "&keys=semi,%3B,dot,.,comma,%2C",
        "{&keys*}": "&semi=%3B&dot=.&comma=%2C",
    },
}


@pytest.mark.parametrize("section", EXAMPLES)
def test_examples_of_the_rfc(section: str) -> None:
    """Every example of section 3.2 has the expansion of the RFC."""
    expected = EXAMPLES[section]
    assert {text: UriTemplate(text).expand(VALUES) for text in expected} == expected


@pytest.mark.parametrize(
    ("text", "value", "uri"),
    [
        ("x:{a}", 3, "x:3"),
        ("x:{a}", 1.5, "x:1.5"),
        ("x:{a}", True, "x:true"),
        ("x:{a}", False, "x:false"),
        ("x:{a}", "é€", "x:%C3%A9%E2%82%AC"),
        ("x:{+a}", "50%20 %x", "x:50%20%20%25x"),
        ("x:é{a}", "b", "x:%C3%A9b"),
        ("x:{?a}", {"k": None}, "x:?a=k"),
        ("x:{?a*}", ["", "b"], "x:?a=&a=b"),
        ("x:{a:2}", "éèê", "x:%C3%A9%C3%A8"),
        ("x:y", 1, "x:y"),
    ],
)
def test_more_values(text: str, value: Any, uri: str) -> None:
    """Numbers and booleans are written as text; non-ASCII is encoded; escapes stay in `+`."""
    assert UriTemplate(text).expand({"a": value}) == uri


@pytest.mark.parametrize(
    ("text", "value", "error", "message"),
    [
        ("{a}", object, TypeError, "a: expected a text, a number, a list or a mapping, got <class"),
        ("{a}", [[1]], TypeError, "a: expected a text, a number, a list or a mapping, got [1]"),
        ("{a:2}", ["b"], ValueError, "a: a prefix is cut from a text, got ['b']"),
        ("{a}", "\ud800", ValueError, "'utf-8' codec can't encode character"),
    ],
)
def test_wrong_values(text: str, value: Any, error: Any, message: str) -> None:
    """A value without a text form is refused by name."""
    with pytest.raises(error) as caught:
        UriTemplate(text).expand({"a": value})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x:{a", "at 3 in 'x:{a': '{' is never closed; write '}' behind the variable"),
        ("x:a}", "at 4 in 'x:a}': '}' closes nothing; write '{' before the variable"),
        ("x:{=a}", "at 3 in 'x:{=a}': '=' is no operator; there are: + # . / ; ? &"),
        ("x:{}", "at 3 in 'x:{}': '' is no variable; write a name of A-Z a-z 0-9 and _, with :3"),
        ("x:{+}", "at 3 in 'x:{+}': '' is no variable"),
        ("x:{a b}", "at 3 in 'x:{a b}': 'a b' is no variable"),
        ("x:{a,,b}", "at 3 in 'x:{a,,b}': '' is no variable"),
        ("x:{a:0}", "at 3 in 'x:{a:0}': 'a:0' is no variable"),
        ("x:{a:10000}", "at 3 in 'x:{a:10000}': 'a:10000' is no variable"),
        ("x:{a:3*}", "at 3 in 'x:{a:3*}': 'a:3*' is no variable"),
        ("x:{.a.}", "at 3 in 'x:{.a.}': 'a.' is no variable"),
        ("x:{{a}}", "at 3 in 'x:{{a}}': '{a' is no variable"),
        ("x:%zz", "at 3 in 'x:%zz': '%' needs two hexadecimal digits; write %25 for a percent"),
        ("x: {a}", "at 3 in 'x: {a}': ' ' cannot stand in a URI; percent-encode it"),
    ],
)
def test_what_is_no_template(text: str, message: str) -> None:
    """The message has the position, and says what to write."""
    with pytest.raises(ValueError, match="at ") as caught:
        UriTemplate(text)
    assert str(caught.value).startswith(message)


def test_what_a_template_says_of_itself() -> None:
    """A template lists its variables, which of them are lists, and which are optional."""
    template = UriTemplate("x:{a}{/b*}{?c,d.e*}")
    assert (template.text, repr(template)) == (
        "x:{a}{/b*}{?c,d.e*}",
        "UriTemplate('x:{a}{/b*}{?c,d.e*}')",
    )
    assert template.variables == ("a", "b", "c", "d.e")
    assert template.lists == {"b", "d.e"}
    assert template.optional == {"b", "c", "d.e"}
    assert (template.traversal, template.faults) == (False, ())
