"""Protected Resource Metadata (RFC 9728)."""

import json

import pytest

from noizu_mcp.auth import BearerAuth, Principal, StaticVerifier

ROOT = "/.well-known/oauth-protected-resource"
VERIFIER = StaticVerifier({"t": Principal(subject="ada")})


def auth(resource="https://mcp.example.com/mcp", **options):
    given = {"authorization_servers": ["https://issuer.example.com"], **options}
    return BearerAuth(VERIFIER, resource=resource, **given)


def document(auth, path="/mcp"):
    (body,) = set(auth.metadata_documents(path).values())
    return json.loads(body)


def test_a_small_one():
    """A small document has the required members, and no empty ones."""
    assert document(auth()) == {
        "resource": "https://mcp.example.com/mcp",
        "authorization_servers": ["https://issuer.example.com"],
        "bearer_methods_supported": ["header"],
    }


def test_a_large_one():
    """A document can have all members."""
    found = document(
        auth(
            scopes_supported=["read", "write"],
            required_scopes=["read"],
            resource_name="Docs",
            resource_documentation="https://docs.example.com/?page=1",
            extra={"resource_policy_uri": "https://docs.example.com/policy"},
        )
    )

    assert found["scopes_supported"] == ["read", "write"]
    assert found["resource_name"] == "Docs"
    assert found["resource_documentation"] == "https://docs.example.com/?page=1"
    assert found["resource_policy_uri"] == "https://docs.example.com/policy"


def test_scopes_are_those_that_are_required():
    """By default `scopes_supported` has the required scopes."""
    assert document(auth(required_scopes=["read"]))["scopes_supported"] == ["read"]


@pytest.mark.parametrize(
    ("resource", "endpoint", "paths"),
    [
        ("https://a.example/mcp", "/mcp", {ROOT, f"{ROOT}/mcp"}),
        ("https://a.example", "/", {ROOT}),
        ("https://a.example/", "/", {ROOT}),
        # A proxy removes a prefix.
        ("https://a.example/api/mcp", "/mcp", {ROOT, f"{ROOT}/mcp", f"{ROOT}/api/mcp"}),
        ("http://localhost:8000/a/b/", "/a/b/", {ROOT, f"{ROOT}/a/b/"}),
    ],
)
def test_where_clients_look(resource, endpoint, paths):
    """The document is at the path of the endpoint, of the resource, and at the root."""
    found = auth(resource).metadata_documents(endpoint)

    assert found.keys() == paths
    assert len(set(found.values())) == 1
    assert auth(resource).resource == resource


def test_nothing_to_discover():
    """Without an authorization server there is no document."""
    assert auth(authorization_servers=()).metadata_documents("/mcp") == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resource": "http://mcp.example.com/mcp"}, "resource .* must be https"),
        ({"resource": "/mcp"}, "resource .* must be absolute"),
        ({"resource": "https://mcp.example.com/mcp#x"}, "resource .* no fragment"),
        ({"resource": "https://mcp.example.com/mcp?a=b"}, "resource .* no query"),
        ({"authorization_servers": ["issuer"]}, "an authorization server .* absolute"),
        ({"authorization_servers": ["http://issuer.example.com"]}, "must be https"),
        ({"scopes_supported": ["two words"]}, "is not the name of a scope"),
        ({"scopes_supported": ["a", "offline_access"]}, "scopes_supported must not hold offline"),
        ({"required_scopes": ["offline_access"]}, "required_scopes must not hold offline"),
        ({"resource_documentation": "docs.html"}, "resource_documentation .* absolute"),
        ({"extra": {"resource": "x", "resource_name": "y"}}, "extra must not hold resource, reso"),
        ({"extra": {"x": object()}}, "extra: object has no JSON form"),
        ({"extra": {"x": float("nan")}}, "not JSON compliant|JSON"),
    ],
)
def test_what_is_wrong_is_an_error_where_it_is_written(options, message):
    """A mistake raises where it is written, not with the first client."""
    with pytest.raises(ValueError, match=message):
        auth(**options)


def test_one_text_is_no_list():
    """A single string is refused, since it would be a list of letters."""
    with pytest.raises(TypeError, match="a list of URLs"):
        auth(authorization_servers="https://issuer.example.com")
