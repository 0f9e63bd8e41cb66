"""`shrink`: smaller JSON values that still show a fault."""

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.check.fuzz._shrink import shrink, simpler, size_of

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def least(value, fault, **options):
    async def holds(candidate):
        return fault(candidate)

    async def run():
        return await shrink(value, holds, **options)

    return trio.run(run)


CASES = [
    ({"a": "text", "b": [1, 2]}, lambda value: True, {}),
    ({"a": 1, "b": 2, "c": 3}, lambda value: "b" in value, {"b": 0}),
    ({"n": 9731}, lambda value: value.get("n", 0) >= 56, {"n": 56}),
    ({"n": -9731}, lambda value: value.get("n", 0) <= -56, {"n": -56}),
    ({"n": 1e300}, lambda value: value.get("n", 0) > 10, {"n": 11}),
    ({"t": "abc\U0001f600def"}, lambda value: max(value.get("t", "") + " ") > "\uffff", None),
    ([5, 6, 7, 8, 9], lambda value: len(value) > 2, [0, 0, 0]),
    ({"a": {"b": [True]}}, lambda value: bool(value.get("a", {}).get("b")), {"a": {"b": [True]}}),
]


@pytest.mark.parametrize(("value", "fault", "expected"), CASES)
def test_the_least_value(value, fault, expected):
    """Irrelevant parts are removed, and bounds are found."""
    found = least(value, fault)

    assert fault(found)
    assert expected is None or found == expected


def test_attempts_are_limited():
    """The number of attempts is limited, as they may be expensive."""
    tried = []

    def fault(value):
        tried.append(value)
        return False

    assert least(list(range(50)), fault, attempts=5) == list(range(50))
    assert len(tried) == 5


@given(JSON)
def test_sizes_fall(value):
    """The search ends, since it accepts only smaller values."""
    found = least(value, lambda _: True, attempts=1000)

    assert size_of(found) <= size_of(value)
    assert all(size_of(each) >= size_of(found) for each in simpler(found))
