"""Did you mean: the declared word nearest to one that is not declared."""

from collections.abc import Iterable
from itertools import islice

# Longer words are nobody's slip of the hand, and the distance takes their product in steps.
_MAX_LENGTH = 40
_MAX_CANDIDATES = 500


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `word` was probably meant to be, or None.

    At most one slip in three letters is forgiven: a letter too many, too few, wrong, or two letters
    swapped. Differences of case, of `-` and of `_` are free. Of equals the first one wins.
    """
    plain = _plain(word)
    best: str | None = None
    # Of two letters one may be wrong; of one letter nothing would be left.
    limit = len(plain) // 3 or len(plain) - 1
    letters = set(plain)
    for candidate in islice(candidates, _MAX_CANDIDATES):
        other = _plain(candidate)
        # One slip accounts for one letter that the other word lacks: most words are told by that.
        if len(letters.difference(other)) > limit:
            continue
        found = _distance(plain, other, limit)
        if found <= limit and candidate != word:
            best, limit = candidate, found - 1
    return best


def _plain(word: str) -> str:
    return word[:_MAX_LENGTH].lower().replace("-", "").replace("_", "")


def _distance(left: str, right: str, limit: int) -> int:
    """Return the optimal string alignment distance; anything above `limit` means too far."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    # Two rows back is needed for swapped neighbours.
    older: list[int] = []
    above = list(range(len(right) + 1))
    for i, letter in enumerate(left, 1):
        row = [i]
        for j, other in enumerate(right, 1):
            steps = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == other:
                steps = min(steps, older[j - 2] + 1)
            row.append(steps)
        older, above = above, row
    return above[-1]
