"""Equality, hash and repr of values."""

import pytest

from noizu_mcp import Cache, Content, InputRequired, Limits, Problem, Stdio, ToolResult


def test_equal_fields_make_equal_values() -> None:
    """Values of one class with equal fields are equal, and have the same hash."""
    assert Problem("a", "b") == Problem("a", "b") != Problem("a", "c")
    assert Limits() == Limits() != Limits(batch=1)
    assert Cache() != Limits()
    assert Cache() != 0
    assert len({Limits(), Limits(), Limits(batch=1), Cache(1.0), Cache(1)}) == 3
    assert ToolResult("x") == ToolResult("x") != ToolResult("x", None)
    assert Content.text("x") != Content.text("y")
    with pytest.raises(TypeError):
        hash(ToolResult("x"))


def test_the_repr_names_every_field() -> None:
    """The repr is the call that makes the value."""
    assert repr(Cache(1.0)) == "Cache(ttl=1.0, scope='private')"
    assert repr(Problem("a", "b")) == "Problem(where='a', text='b', file=None, line=None)"
    assert repr(InputRequired(state="s")) == "InputRequired(requests={}, state='s')"
    assert repr(Stdio("cat")) == "Stdio('cat')"
    command = Stdio("cat", "-n", env={"KEY": "secret"}, cwd="/", stderr=-3)
    assert repr(command) == "Stdio('cat', '-n', env=['KEY'], cwd='/', stderr=-3)"


def test_values_hold_nothing_else() -> None:
    """They have slots."""
    assert not hasattr(Limits(), "__dict__")
    assert not hasattr(Content.text("x"), "__dict__")
