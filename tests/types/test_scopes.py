"""The scopes that an operation needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.auth import InsufficientScope
from noizu_mcp.types import Principal, RequireScopes

scopes = st.sampled_from("abcdef")


def holder(*scopes):
    return Principal(subject="ada", scopes=scopes)


def refused(need, principal):
    with pytest.raises(InsufficientScope) as caught:
        need.check(principal)
    return caught.value.scopes


def test_all_scopes_are_needed():
    """A caller that lacks one scope gets an error with all of them."""
    need = RequireScopes("read", "write", "read")

    need.check(holder("write", "read", "more"))
    assert refused(need, holder("read")) == ("read", "write")
    assert refused(need, holder()) == ("read", "write")


def test_anonymous_requests_hold_no_scopes():
    """A request without authorization cannot do anything that needs a scope."""
    assert refused(RequireScopes("read"), None) == ("read",)


def test_a_scope_may_stand_for_others():
    """Inclusion is transitive, may be circular, and has one direction."""
    ranks = {"admin": ["write"], "write": ["read"], "a": ["b"], "b": ["a"], "x": "y"}

    RequireScopes("read", "write", hierarchy=ranks).check(holder("admin"))
    RequireScopes("a", hierarchy=ranks).check(holder("b"))
    RequireScopes("y", hierarchy=ranks).check(holder("x"))
    assert refused(RequireScopes("admin", hierarchy=ranks), holder("write", "read")) == ("admin",)
    assert str(InsufficientScope(["a", "b"])) == "it needs the scopes a b"


@pytest.mark.slow
@given(st.dictionaries(scopes, st.lists(scopes)), st.lists(scopes), st.lists(scopes, min_size=1))
def test_the_law_of_hierarchies(ranks, held, needed):
    """A caller passes exactly if the hierarchy leads from its scopes to every needed one."""
    reach = set(held)
    for _ in "abcdef":
        reach |= {each for scope in reach for each in ranks.get(scope, [])}
    try:
        RequireScopes(*needed, hierarchy=ranks).check(holder(*held))
    except InsufficientScope:
        assert not reach.issuperset(needed)
    else:
        assert reach.issuperset(needed)


@pytest.mark.parametrize("bad", ["", "two words", 'quo"te', "back\\slash", "umläut", "tab\t", 5])
def test_names_of_scopes(bad):
    """They are sent in a header, within quotes."""
    with pytest.raises(ValueError, match="is not the name of a scope"):
        RequireScopes(bad)
    with pytest.raises(ValueError, match="is not the name of a scope"):
        RequireScopes("good", hierarchy={bad: []})
    with pytest.raises(ValueError, match="is not the name of a scope"):
        RequireScopes("good", hierarchy={"good": [bad]})


def test_nothing_is_no_requirement():
    """An empty requirement would allow every caller without looking like it."""
    with pytest.raises(ValueError, match="needs the name of a scope"):
        RequireScopes()


def test_it_is_a_value():
    """Requirements with equal scopes are equal."""
    assert RequireScopes("a", "b") == RequireScopes("a", "b")
    assert hash(RequireScopes("a")) == hash(RequireScopes("a", hierarchy={"x": ["a"]}))
