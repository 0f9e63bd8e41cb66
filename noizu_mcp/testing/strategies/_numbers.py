"""Strategies for numbers: limits, multiples, and values at the edge of what programs can store."""

from math import ceil, floor, inf, isfinite, nextafter
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ._case import ValueCase, common_multiple, fraction, identity, integer_range

# Programs lose integers at these: 32 bits, exact floats, 64 bits, and no machine word.
_EDGES: Final = (2**31, 2**32, 2**53, 2**63, 2**64, 10**30)
# Up to it floats are exact.
_EXACT: Final = 2**53
# One of more than so many integers is a float.
_RARE: Final = 8
# Factors of a divisor, where there is no limit.
_FACTORS: Final = 10**6


def integers(case: ValueCase, *, whole_floats: bool) -> SearchStrategy[float]:
    """Return the strategy for the integers of a case; the least and the greatest are likely.

    Args:
        case: The case.
        whole_floats: True to draw some as floats, such as 1.0.
    """
    low, high, step = integer_range(case)
    least = None if low == -inf else int(low)
    most = None if high == inf else int(high)
    ranges = [(least, most)]
    if least is not None and most != least:
        ranges.append((least, least + 1))
    if most is not None and most != least:
        ranges.append((most - 1, most))
    edges = [near for edge in _EDGES for near in (edge // step, -edge // step)]
    near_edges = [(near - 1, near + 1) for near in edges if low <= near - 1 and near + 1 <= high]
    # The limits together are as likely as the edges. The whole range is first: all examples shrink
    # into it, since the other ranges are parts of it.
    weight = max(1, len(near_edges) // len(ranges))
    ints = [st.integers(*each) for each in (*ranges * weight, *near_edges)]
    made: SearchStrategy[float] = st.one_of(ints)
    if whole_floats:
        rare = ints * (_RARE // len(ints) + 1)
        made = st.one_of([*rare, ints[0].map(lambda factor: _as_float(factor, step))])
    if step != 1:
        made = made.map(lambda number: number * step)
    if not case.excluded and not case.not_multiples:
        return made
    return made.filter(lambda number: _is_allowed(number, case))


def _as_float(factor: int, step: int) -> float:
    """Return a factor of a divisor as a float if that is exact."""
    return float(factor) if abs(factor * step) <= _EXACT else factor


def in_limits(number: float, case: ValueCase) -> bool:
    """Tell if a number is within the limits of a case."""
    exact = fraction(number)
    low, high = case.low, case.high
    return (
        (low is None or number > low[0] or (number == low[0] and not low[1]))
        and (high is None or number < high[0] or (number == high[0] and not high[1]))
        and all(exact % each == 0 for each in case.multiples)
        and _is_allowed(number, case)
    )


def _is_allowed(number: float, case: ValueCase) -> bool:
    exact = fraction(number)
    return identity(number) not in case.excluded and not any(
        exact % divisor == 0 for divisor in case.not_multiples
    )


def float_range(case: ValueCase) -> tuple[float, float]:
    """Return the least and the greatest float of a case; none if the least is above the greatest.

    A limit that is not there is the greatest float.
    """
    low, high = nextafter(-inf, 0), nextafter(inf, 0)
    if case.low is not None:
        low = max(low, _float_above(*case.low))
    if case.high is not None:
        high = min(high, -_float_above(-case.high[0], case.high[1]))
    if "integer" not in case.kinds and low >= 2.0**53:
        # Each larger float is an integer; so is each below the opposite.
        return inf, -inf
    if "integer" not in case.kinds and (high <= -(2.0**53) or (low == high and low.is_integer())):
        return inf, -inf
    return low, high


def _float_above(limit: float, exclusive: bool) -> float:
    """Return the least float that is at least, or above, a limit of any size."""
    try:
        near = float(limit)
    except OverflowError:
        return inf if limit > 0 else nextafter(-inf, 0)
    if near < limit or (exclusive and near == limit):
        return nextafter(near, inf)
    return near


def floats(case: ValueCase) -> SearchStrategy[float]:
    """Return the strategy for the numbers of a case that are floats."""
    low, high = float_range(case)
    found: SearchStrategy[float]
    if case.multiples:
        found = _multiples(case, low, high)
    else:
        found = st.floats(low, high, allow_nan=False, allow_infinity=False)

    def fits(number: float) -> bool:
        return ("integer" in case.kinds or not number.is_integer()) and _is_allowed(number, case)

    narrow = "integer" not in case.kinds or case.excluded or case.not_multiples
    return found.filter(fits) if narrow else found


def _multiples(case: ValueCase, low: float, high: float) -> SearchStrategy[float]:
    """Return floats that are multiples in decimal: 0.3 is one of 0.1."""
    step = common_multiple(case.multiples)
    least, most = ceil(fraction(low) / step), floor(fraction(high) / step)
    least = max(least, min(-_FACTORS, most - _FACTORS))
    most = min(most, max(_FACTORS, least + _FACTORS))

    def exact(number: float) -> bool:
        return (
            isfinite(number)
            and low <= number <= high
            and all(fraction(number) % each == 0 for each in case.multiples)
        )

    return st.integers(least, most).map(lambda factor: float(factor * step)).filter(exact)
