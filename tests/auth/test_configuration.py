"""URLs of a configuration, and the requests that verifiers get."""

import pytest

from noizu_mcp.auth import AuthRequest, BearerAuth, JWTVerifier, StaticVerifier


def verifier(url):
    """Make a verifier with the keys at a URL."""
    return JWTVerifier(issuer="https://issuer.example", audience="x", jwks_uri=url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com:8443/a/b?c=d",
        "http://localhost:8000/mcp",
        "http://127.0.0.1/",
        "http://127.8.8.8/",
        "http://[::1]:80/x",
    ],
)
def test_good_urls(url):
    """Any https URL is accepted, and http on this machine."""
    verifier(url)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (5, "is not a URL"),
        (b"https://example.com", "is not a URL"),
        ("", "is not a URL"),
        ("https://exa mple.com", "is not a URL"),
        ("https://example.com\n", "is not a URL"),
        ("https://example.com\\@evil", "is not a URL"),
        ("https://b\u00fccher.example", "is not a URL"),
        ("https://[::1", "is not a URL: Invalid IPv6"),
        ("https://example.com:99999", "is not a URL: Port out of range"),
        ("/mcp", "must be absolute"),
        ("//example.com/mcp", "must be absolute"),
        ("https:///mcp", "must be absolute"),
        ("http://example.com/mcp", "must be https"),
        ("http://localhost.example.com/mcp", "must be https"),
        ("http://10.0.0.1/mcp", "must be https"),
        ("ftp://localhost/mcp", "must be https"),
        ("https://user:pw@example.com/", "must not name a user"),
        ("https://example.com/#", "must have no fragment"),
        ("https://example.com/#a", "must have no fragment"),
    ],
)
def test_bad_urls(url, problem):
    """Each problem is named, with the URL and its purpose."""
    with pytest.raises(ValueError, match=problem) as caught:
        verifier(url)
    assert str(caught.value).startswith(f"jwks_uri {url!r} ")


def test_queries_can_be_forbidden():
    """Queries can be refused, also empty ones."""
    for url in ("https://example.com/?", "https://example.com/?a=b"):
        with pytest.raises(ValueError, match="must have no query"):
            BearerAuth(StaticVerifier({}), resource=url, authorization_servers=[])


def test_headers_of_a_request():
    """ASGI pairs and mappings are accepted; the token is not shown."""
    pairs = [(b"Authorization", b"Bearer s3cret"), (b"x", b"1"), ("X", "\xff")]
    request = AuthRequest("POST", "/mcp", pairs, "192.0.2.1")

    assert request.values("authorization") == ["Bearer s3cret"]
    assert request.values("x") == ["1", "\xff"]
    assert request.values("y") == []
    assert "s3cret" not in repr(request)
    assert AuthRequest("GET", "/", {"X-Api-Key": "k"}).headers == (("x-api-key", "k"),)
