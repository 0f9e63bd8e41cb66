"""Suggestions for misspelt words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp.schema import compile_schema


def nearest(word, choices):
    """Return the choice that a report takes a wrong word for."""
    (violation,) = compile_schema({"enum": choices}).violations(word)
    return violation.nearest


@pytest.mark.parametrize(
    ("word", "candidates", "meant"),
    [
        ("minLenght", ["minLength", "maxLength"], "minLength"),
        ("maxlength", ["minLength", "maxLength"], "maxLength"),
        ("custommer", ["customer"], "customer"),
        ("lmiit", ["limit"], "limit"),
        ("user-id", ["userId"], "userId"),
        ("q", ["r", "s"], None),
        ("di", ["id"], "id"),
        ("q", ["query"], None),
        ("colour", ["flavour"], None),
        ("n" * 60, ["n" * 59 + "m"], "n" * 59 + "m"),
        ("n" * 60, ["n" * 81], None),
        ("ab", [f"x{i}" for i in range(600)] + ["abc"], "x0"),
    ],
)
def test_nearest(word, candidates, meant):
    """A typo is recognized, another word is not."""
    assert nearest(word, candidates) == (meant if meant != "x0" else None)


def distance(left, right):
    """Return the optimal string alignment distance, by its definition."""
    if not left or not right:
        return len(left) + len(right)
    steps = [
        distance(left[1:], right) + 1,
        distance(left, right[1:]) + 1,
        distance(left[1:], right[1:]) + (left[0] != right[0]),
    ]
    if len(left) > 1 and left[1::-1] == right[:2]:
        steps.append(distance(left[2:], right[2:]) + 1)
    return min(steps)


short = st.text("abcd", min_size=1, max_size=5)


@settings(max_examples=200, deadline=None)
@given(short, st.lists(short, max_size=4))
def test_nearest_is_the_first_of_the_least_distance(word, candidates):
    """The early exits of the search change no result: the distance alone decides."""
    choices = [choice for choice in candidates if choice != word]
    limit = len(word) // 3 or len(word) - 1
    ranked = [(distance(word, other), place) for place, other in enumerate(choices)]
    close = [pair for pair in ranked if pair[0] <= limit]
    assert nearest(word, choices) == (choices[min(close)[1]] if close else None)
