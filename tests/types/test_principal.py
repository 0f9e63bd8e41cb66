"""The caller of a request."""

import copy
import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.types import Principal

names = st.none() | st.text(min_size=1)


def test_claims_are_read_like_a_mapping():
    """Handlers write `ctx.auth["sub"]`."""
    ada = Principal(subject="ada", claims={"sub": "ada", "groups": ["a", "b"]})

    assert ada["sub"] == ada.get("sub") == "ada"
    assert ada.get("nothing") is None
    assert ada.get("nothing", 1) == 1
    assert "sub" in ada
    assert "nothing" not in ada
    with pytest.raises(KeyError):
        ada["nothing"]


def test_claims_cannot_be_changed():
    """One principal may serve many requests, which must not affect each other."""
    given = {"realm": {"roles": ["read"]}, "list": [{"a": 1}]}
    ada = Principal(subject="ada", claims=given)
    given["realm"]["roles"].append("admin")

    for change in (
        lambda: ada.claims.update(a=1),
        lambda: ada.claims.__setitem__("a", 1),
        lambda: ada["realm"].__setitem__("roles", ()),
        lambda: ada["realm"].pop("roles"),
        ada["list"][0].clear,
        lambda: ada["realm"].__delitem__("roles"),
    ):
        with pytest.raises(TypeError, match="claims cannot be changed"):
            change()
    assert ada["realm"]["roles"] == ("read",)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        ada.subject = "bob"


def test_claims_can_be_sent_on_and_copied():
    """They can be encoded as JSON, and a deep copy is mutable."""
    ada = Principal(subject="ada", claims={"realm": {"roles": ["read"]}})
    mine = copy.deepcopy(ada.claims)
    mine["realm"]["roles"] = ["write"]

    assert json.dumps(ada.claims) == '{"realm": {"roles": ["read"]}}'
    assert ada["realm"]["roles"] == ("read",)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"issuer": "i"},
        {"subject": ""},
        {"client_id": ""},
        {"subject": "ada", "issuer": ""},
        {"subject": 1},
    ],
)
def test_a_principal_needs_a_name(fields):
    """A principal without a name is refused, as its sessions would be shared."""
    with pytest.raises(ValueError, match=r"Principal"):
        Principal(**fields)


def test_scopes_are_names():
    """A single string is refused, as it would be a set of letters."""
    assert Principal(subject="ada", scopes=["a", "b", "a"]).scopes == {"a", "b"}
    with pytest.raises(TypeError, match="not one string"):
        Principal(subject="ada", scopes="read write")


def test_logs_do_not_show_claims():
    """They contain addresses and names."""
    ada = Principal(subject="ada", claims={"email": "ada@example.com"})

    assert "example.com" not in repr(ada)
    assert hash(ada) == hash(Principal(subject="ada"))
    assert ada != Principal(subject="ada")


@given(st.tuples(names, names, names), st.tuples(names, names, names))
def test_keys_never_collide(one, other):
    """Two callers share a key exactly if issuer and user, or issuer and client, are the same."""

    def who(names):
        issuer, subject, client = names
        return (issuer, "sub", subject) if subject else (issuer, "client", client)

    def key(names):
        issuer, subject, client = names
        if not subject and not client:
            return None
        return Principal(issuer=issuer, subject=subject, client_id=client).key

    if key(one) and key(other):
        assert (key(one) == key(other)) == (who(one) == who(other))


def test_the_key_is_of_the_user_whatever_the_token():
    """Other tokens and other clients of the same user access the same things."""
    one = Principal(issuer="i", subject="ada", client_id="x", expires_at=1, scopes=["a"])
    other = Principal(issuer="i", subject="ada", client_id="y", claims={"jti": "2"})

    assert one.key == other.key == '["i","sub","ada"]'
    assert Principal(client_id="ada", issuer="i").key == '["i","client_id","ada"]'
