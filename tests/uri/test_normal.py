"""The normal form of URIs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.uri import UriTemplate, normalize

NORMAL = {
    "x:%61%7E%2d%2f%c3%a9": "x:a~-%2F%C3%A9",
    "File:///%41": "file:///A",
    "notes://Inbox/A": "notes://Inbox/A",
    "HTTPS://Me%40@Example.COM%2f:80/A?B#C": "https://Me%40@example.com%2F:80/A?B#C",
    "https:/A": "https:/A",
    "http://": "http://",
    "x:100%": "x:100%",
    "x:%%36%35": "x:%%36%35",
    "x:%2565": "x:%2565",
    "no scheme%41": "no schemeA",
    "": "",
}


@pytest.mark.parametrize("uri", NORMAL)
def test_normal_forms(uri):
    """Escapes, the scheme and hosts are normalized; a text that is not a URI is unchanged."""
    assert normalize(uri) == NORMAL[uri]
    assert normalize(NORMAL[uri]) == NORMAL[uri]


@given(st.text("aA%25eE/:@.~-xX ", max_size=20))
def test_a_normal_form_is_final(text):
    """Normalizing again changes nothing, so that no layer decodes more than another."""
    assert normalize(normalize(f"x:{text}")) == normalize(f"x:{text}")
    assert normalize(normalize(f"http://{text}")) == normalize(f"http://{text}")


@pytest.mark.parametrize("uri", ["db://%61b/c/x", "DB://ab/%63/%78", "db://ab/c/x"])
@pytest.mark.parametrize("text", ["db://ab/c/{v}", "Db://%61b/%63/{v}", "db:{+a}/c/{v}"])
def test_a_template_matches_every_spelling(text, uri):
    """The literals of the template may have any spelling, too."""
    assert UriTemplate(text).match(uri)["v"] == "x"
