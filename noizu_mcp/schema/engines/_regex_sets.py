"""Sets of characters as sorted ranges of code points, and the classes that ECMA-262 names."""

from collections.abc import Iterable

MAX_CODE = 0x10FFFF

# Sorted, and no two touch.
Ranges = tuple[tuple[int, int], ...]


def union(*parts: Iterable[tuple[int, int]]) -> Ranges:
    """Return the union of sets."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for part in parts for pair in part):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """Return every character that is not in a set."""
    outside: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            outside.append((start, low - 1))
        start = high + 1
    if start <= MAX_CODE:
        outside.append((start, MAX_CODE))
    return tuple(outside)


def overlap(left: Ranges, right: Ranges) -> bool:
    """Tell if two sets share a character."""
    return any(a <= d and c <= b for a, b in left for c, d in right)


def of(*characters: str) -> Ranges:
    """Return the set of single characters, and of ranges written as two."""
    return union((ord(text[0]), ord(text[-1])) for text in characters)


DIGITS = of("09")
WORD = of("az", "AZ", "09", "_")
# ECMA-262 WhiteSpace and LineTerminator; Python's \s differs in both directions.
SPACE = of(
    "\t\r",
    " ",
    "\xa0",
    "\u1680",
    "\u2000\u200a",
    "\u2028\u2029",
    "\u202f",
    "\u205f",
    "\u3000",
    "\ufeff",
)
LINE_ENDS = of("\n", "\r", "\u2028\u2029")

CLASSES: dict[str, Ranges] = {
    "d": DIGITS,
    "D": complement(DIGITS),
    "w": WORD,
    "W": complement(WORD),
    "s": SPACE,
    "S": complement(SPACE),
}
ANY_BUT_LINE_ENDS = complement(LINE_ENDS)
