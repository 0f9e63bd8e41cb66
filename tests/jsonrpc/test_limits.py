"""Limits are checked when they are made."""

import attrs
import pytest

from noizu_mcp import Limits
from noizu_mcp.jsonrpc import LineBuffer

NAMES = [field.name for field in attrs.fields(Limits)]


def test_defaults():
    """The defaults leave room for a photograph and for real nesting."""
    limits = Limits()
    assert (limits.message_size, limits.message_values) == (16 * 1024 * 1024, 100_000)
    assert (limits.message_depth, limits.batch) == (128, 100)


def test_one_source():
    """The framing has the same default as the limits."""
    assert Limits().message_size == LineBuffer().limit


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "10", None])
def test_refused(name, value):
    """A limit must be a positive integer; two of them may be 0."""
    least = 0 if name in ("parked", "call_queue") else 1
    with pytest.raises(
        ValueError, match=rf"^Limits\.{name} must be an integer of at least {least}, not "
    ):
        Limits(**{name: value if value != 0 else least - 1})


@pytest.mark.parametrize("name", NAMES)
def test_smallest(name):
    """A limit may be 1."""
    assert getattr(Limits(**{name: 1}), name) == 1
