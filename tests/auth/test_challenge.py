"""`WWW-Authenticate`, encoded and parsed."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from noizu_mcp.auth import AuthChallenge, format_challenge, parse_challenges

TCHAR = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
tokens = st.text(TCHAR, min_size=1, max_size=12)
values = st.text(
    st.characters(max_codepoint=0xFF, exclude_categories=["Cc"]) | st.just("\t"), max_size=30
)
params = st.dictionaries(tokens.map(str.lower), values, max_size=5)
token68s = st.from_regex(r"[A-Za-z0-9\-._~+/]+=*", fullmatch=True)
challenges = st.builds(AuthChallenge, tokens, params) | st.builds(
    AuthChallenge, tokens, st.just({}), token68s
)


@pytest.mark.slow
@given(st.lists(challenges, min_size=1, max_size=4))
@example([AuthChallenge("Bearer", {"a": '\\"'}), AuthChallenge("Basic", {}), AuthChallenge("X")])
def test_what_is_written_is_read(given):
    """Any challenges are the same after encoding and parsing."""
    assert parse_challenges(", ".join(map(format_challenge, given))) == given


@given(st.text(max_size=200) | st.text('Bearer a=",\\ \t', max_size=60))
def test_garbage_is_an_error_or_a_challenge(text):
    """Any header is parsed, or raises `ValueError`."""
    try:
        found = parse_challenges(text)
    except ValueError:
        return
    for challenge in found:
        assert challenge.scheme


def test_a_real_one():
    """The header has exactly these bytes."""
    challenge = AuthChallenge(
        "Bearer", {"error": "invalid_token", "error_description": 'say "no" to \\', "scope": "a b"}
    )

    assert (
        format_challenge(challenge)
        == r'Bearer error="invalid_token", error_description="say \"no\" to \\", scope="a b"'
    )
    assert format_challenge(AuthChallenge("Bearer")) == "Bearer"
    assert format_challenge(AuthChallenge("Negotiate", {}, "abc==")) == "Negotiate abc=="
    assert challenge.is_scheme("bearer")
    assert not challenge.is_scheme("Basic")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" , ", []),
        ("Bearer", [("Bearer", {}, None)]),
        ("bearer  REALM=x", [("bearer", {"realm": "x"}, None)]),
        ('Bearer a = "1" ,, b= 2 ,', [("Bearer", {"a": "1", "b": "2"}, None)]),
        (r'X a="\"\\\q"', [("X", {"a": '"\\q'}, None)]),
        (
            'Negotiate abc==, Basic realm="x, y", Bearer resource_metadata=https://h/p?a=b, Digest',
            [
                ("Negotiate", {}, "abc=="),
                ("Basic", {"realm": "x, y"}, None),
                ("Bearer", {"resource_metadata": "https://h/p?a=b"}, None),
                ("Digest", {}, None),
            ],
        ),
    ],
)
def test_forms(text, expected):
    """Lists, spaces around `=`, empty elements, and URLs without quotes are parsed."""
    assert [(c.scheme, dict(c.params), c.token68) for c in parse_challenges(text)] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"x"', "no scheme of a challenge at character 0"),
        ("=", "no scheme of a challenge at character 0"),
        ('Bearer a="x" b="y"', "no scheme of a challenge at character 7"),
        ('Bearer a="x', "no scheme of a challenge at character 7"),
        ('Bearer a="\x00"', "no scheme of a challenge at character 7"),
        ('Bearer a="x", A=y', "the parameter 'a' comes twice"),
        ("x" * 16_385, "more than 16384 characters"),
    ],
)
def test_malformed(text, message):
    """The error has the problem and its position."""
    with pytest.raises(ValueError, match=message):
        parse_challenges(text)


@pytest.mark.parametrize(
    ("challenge", "message"),
    [
        (AuthChallenge("Two words"), "is not a token"),
        (AuthChallenge("X", {"na me": "x"}), "is not a token"),
        (AuthChallenge("X", {"a": "line\r\nSet-Cookie: x"}), "no header can carry"),
        (AuthChallenge("X", {"a": "\u20ac"}), "no header can carry"),
        (AuthChallenge("X", {}, "a b"), "or one token68, not both"),
        (AuthChallenge("X", {"a": "b"}, "abc"), "or one token68, not both"),
    ],
)
def test_what_no_header_can_carry(challenge, message):
    """No character can end its quoted string."""
    with pytest.raises(ValueError, match=message):
        format_challenge(challenge)
