"""Did you mean: finds the declared word nearest to an unknown word."""

from collections.abc import Iterable, Sequence
from itertools import islice

# Longer words are no typos, and the distance takes the product of their lengths in steps.
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
        if len(candidate) > 2 * _MAX_LENGTH:
            continue
        other = _plain(candidate)
        # One slip accounts for one letter that the other word lacks: most words are told by that.
        if len(letters.difference(other)) > limit:
            continue
        found = _distance(plain, other, limit)
        if found <= limit and candidate != word:
            best, limit = candidate, found - 1
    return best


def hint_at(name: str, names: Sequence[str]) -> str:
    """Hint at the names that may be meant by an unknown one."""
    meant = nearest(name, names)
    return f"did you mean {meant}?" if meant else f"there are: {', '.join(names) or 'none'}"


def _plain(word: str) -> str:
    return word[:_MAX_LENGTH].lower().replace("-", "").replace("_", "")


def _distance(left: str, right: str, limit: int) -> int:
    """Return the optimal string alignment distance; anything above `limit` means too far.

    A column of the table at a time, as bits: whether each cell is one more, or one less, than the
    one above it (Hyyrö 2003, "A Bit-Vector Algorithm for Computing Levenshtein and Damerau Edit
    Distances"). Cell by cell it would take twenty times as long, and a peer chooses the words.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    places: dict[str, int] = {}
    for i, letter in enumerate(left):
        places[letter] = places.get(letter, 0) | 1 << i
    every = (1 << len(left)) - 1
    last = every ^ every >> 1
    more, less, same, before, found = every, 0, 0, 0, len(left)
    for letter in right:
        equal = places.get(letter, 0)
        swapped = (~same & equal) << 1 & before
        same = ((((equal & more) + more) ^ more) | equal | less | swapped) & every
        right_more, right_less = (less | ~(same | more)) & every, same & more
        found += bool(right_more & last) - bool(right_less & last)
        right_more = right_more << 1 | 1
        more = (right_less << 1 | ~(same | right_more)) & every
        less, before = right_more & same, equal
    return found
