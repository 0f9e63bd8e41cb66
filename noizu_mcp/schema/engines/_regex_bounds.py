"""Whether a pattern can make Python's backtracking engine explode.

A repetition is dangerous if its body can match one text in two ways: then there are 2^n ways
through n rounds. It is safe if each character decides by itself where the match stands: in the
terms of Glushkov's construction, no two ways to go on share a character. Whatever is repeated and
is not a single character is asked for that; it is stricter than needed, never laxer. Patterns
without such a repetition are polynomial, and the degree is limited by the same analysis.
"""

from collections.abc import Sequence as Many
from functools import reduce

import attrs

from ._regex_parse import Chars, Choice, Look, Node, PatternRefusedError, Repeat, Sequence
from ._regex_sets import Ranges, overlap

# A counted part is unrolled for the analysis up to here; above, it counts as any number of times.
_UNROLLED = 16
# The analysis compares places in pairs; no pattern written by hand has so many.
_MAX_PLACES = 300
# Each open-ended repetition that is not told apart from what follows multiplies the time by the
# length of the text. Two are what "something, a dot, something" in an address needs.
MAX_OPEN_ENDED = 2

_AMBIGUOUS = (
    "a repeated group in it can match one text in several ways, which can take for ever; "
    "make its parts start with different characters"
)


@attrs.frozen
class _Shape:
    """What may come first and last in a part, and whether it may be empty."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    empty: bool


_NOTHING = _Shape((), (), empty=True)


def check_bounded(node: Node) -> None:
    """Refuse a pattern that can take for ever on a text made for it.

    Raises:
        PatternRefusedError: It repeats what it cannot tell apart.
    """
    open_ended = _Places().open_ended(node)
    waiting: list[Node] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Repeat) and not isinstance(part.body, Chars) and part.most != 1:
            _Places().check_repeated(part.body)
        if isinstance(part, Look):
            open_ended += _Places().open_ended(part.body)
        waiting.extend(_children(part))
    if open_ended > MAX_OPEN_ENDED:
        raise PatternRefusedError(
            f"{open_ended} open-ended repetitions in it overlap what follows them, "
            f"which takes too long; {MAX_OPEN_ENDED} may"
        )


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, (Repeat, Look)):
        return (node.body,)
    if isinstance(node, Sequence):
        return node.parts
    return node.options if isinstance(node, Choice) else ()


class _Places:
    """The places of a pattern where a character is read, and the ways from each to the next.

    A way that exists twice counts twice: `(a+)+` goes on from `a` to `a` in two ways.
    """

    def __init__(self) -> None:
        self._sets: list[Ranges] = []
        self._ways: list[list[int]] = []
        # Whether a part can be empty in two ways: no character would decide between them.
        self._vague = False

    def open_ended(self, node: Node) -> int:
        """Return how many repetitions cannot tell whether to go on."""
        self._shape(node)
        looping = (ways for place, ways in enumerate(self._ways) if place in ways)
        return sum(not self._apart(ways) for ways in looping)

    def check_repeated(self, body: Node) -> None:
        """Refuse the body of a repetition that can match one text in several ways."""
        shape = self._shape(body)
        self._link(shape.last, shape.first)
        clear = self._apart(shape.first) and all(map(self._apart, self._ways))
        if shape.empty or self._vague or not clear:
            raise PatternRefusedError(_AMBIGUOUS)

    def _apart(self, places: Many[int]) -> bool:
        return not any(
            overlap(self._sets[a], self._sets[b])
            for index, a in enumerate(places)
            for b in places[:index]
        )

    def _link(self, last: Many[int], first: Many[int]) -> None:
        for place in last:
            self._ways[place].extend(first)

    def _shape(self, node: Node) -> _Shape:
        if isinstance(node, Chars):
            return self._place(node.ranges)
        if isinstance(node, Sequence):
            return reduce(self._then, map(self._shape, node.parts), _NOTHING)
        if isinstance(node, Choice):
            return self._choice(list(map(self._shape, node.options)))
        if isinstance(node, Repeat):
            return self._repeat(node)
        # Anchors and lookaheads read nothing; that they may fail only makes less match.
        return _NOTHING

    def _place(self, ranges: Ranges) -> _Shape:
        place = len(self._sets)
        if place == _MAX_PLACES:
            raise PatternRefusedError(f"more than {_MAX_PLACES} characters and repetitions")
        self._sets.append(ranges)
        self._ways.append([])
        return _Shape((place,), (place,), empty=False)

    def _then(self, left: _Shape, right: _Shape) -> _Shape:
        self._link(left.last, right.first)
        return _Shape(
            left.first + right.first if left.empty else left.first,
            left.last + right.last if right.empty else right.last,
            left.empty and right.empty,
        )

    def _choice(self, shapes: list[_Shape]) -> _Shape:
        self._vague |= sum(shape.empty for shape in shapes) > 1
        return _Shape(
            tuple(place for shape in shapes for place in shape.first),
            tuple(place for shape in shapes for place in shape.last),
            any(shape.empty for shape in shapes),
        )

    def _repeat(self, node: Repeat) -> _Shape:
        if node.least == node.most and 0 < node.least <= _UNROLLED:
            return reduce(self._then, [self._shape(node.body) for _ in range(node.least)])
        shape = self._shape(node.body)
        self._vague |= shape.empty
        if node.most != 1:
            self._link(shape.last, shape.first)
        return attrs.evolve(shape, empty=shape.empty or node.least == 0)
