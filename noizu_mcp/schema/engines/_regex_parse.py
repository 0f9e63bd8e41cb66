"""The part of the regular expressions of ECMA-262 that Python's engine can serve, as a tree.

Whatever is left out is refused with its reason: it means something else in Python, or something
else in the native engine, or nothing at all.
"""

import attrs

from . import _regex_sets as sets
from ._regex_sets import Ranges


class PatternRefusedError(ValueError):
    """A pattern that cannot be served here.

    Attributes:
        reason: Why, in words for its author.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@attrs.frozen
class Chars:
    """One character out of a set."""

    ranges: Ranges


@attrs.frozen
class Edge:
    """The start or the end of the text."""

    source: str


@attrs.frozen
class Look:
    """A lookahead: what must follow, or must not."""

    source: str
    body: "Node"


@attrs.frozen
class Sequence:
    """One part after the other."""

    parts: tuple["Node", ...]


@attrs.frozen
class Choice:
    """One of several."""

    options: tuple["Node", ...]


@attrs.frozen
class Repeat:
    """A part repeated; `most` is None without a limit."""

    body: "Node"
    least: int
    most: int | None
    lazy: bool


Node = Chars | Edge | Look | Sequence | Choice | Repeat

# Work and memory of the analysis; a longer pattern is a table that belongs into `enum`.
MAX_PATTERN = 2000
# Python compiles a bounded repetition by copying in places; nobody writes more by hand.
_MAX_REPEAT = 1000
_MAX_NESTING = 30
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
# Escapes of punctuation that every engine reads as the character itself.
_IDENTITY = _SYNTAX | frozenset("-_'\"!#%&,:;=@~ ")
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_GROUPS = {"(?:": None, "(?=": "(?=", "(?!": "(?!"}


def parse(pattern: str) -> Node:
    """Return the tree of a pattern.

    Raises:
        PatternRefusedError: It is not valid, or not in the part that is served.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternRefusedError(f"longer than {MAX_PATTERN} characters")
    reader = _Reader(pattern)
    node = reader.choice(0)
    if reader.peek():
        raise PatternRefusedError(f'unbalanced "{reader.peek()}"')
    return node


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def take(self, count: int = 1) -> str:
        taken = self._text[self._at : self._at + count]
        if len(taken) < count:
            raise PatternRefusedError("it ends too early")
        self._at += count
        return taken

    def eat(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def choice(self, depth: int) -> Node:
        if depth > _MAX_NESTING:
            raise PatternRefusedError(f"groups nested deeper than {_MAX_NESTING}")
        options = [self._sequence(depth)]
        while self.eat("|"):
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self._quantified(self._atom(depth)))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _atom(self, depth: int) -> Node:
        sign = self.take()
        if sign == "(":
            return self._group(depth)
        if sign == "[":
            return self._class()
        if sign == "\\":
            return Chars(self._escape(in_class=False))
        if sign == ".":
            return Chars(sets.ANY_BUT_LINE_ENDS)
        if sign in "^$":
            return Edge(r"\A" if sign == "^" else r"\Z")
        if sign in "*+?{}]":
            raise PatternRefusedError(f'"{sign}" stands where nothing can be repeated or closed')
        return Chars(sets.of(sign))

    def _group(self, depth: int) -> Node:
        self._at -= 1
        look = None
        for opening, source in _GROUPS.items():
            if self.eat(opening):
                look = source
                break
        else:
            self.take()
            if self.peek() == "?":
                raise PatternRefusedError("named groups, lookbehind and flags are not served")
        body = self.choice(depth + 1)
        if not self.eat(")"):
            raise PatternRefusedError('a group without ")"')
        return Look(look, body) if look else body

    def _quantified(self, atom: Node) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return atom
        if isinstance(atom, (Edge, Look)):
            raise PatternRefusedError("an anchor or a lookahead cannot be repeated")
        lazy = self.eat("?")
        if self.peek() in ("*", "+", "?", "{"):
            raise PatternRefusedError("two quantifiers in a row")
        return Repeat(atom, *bounds, lazy)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.eat(sign):
                return bounds
        return self._braces() if self.eat("{") else None

    def _braces(self) -> tuple[int, int | None]:
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at : max(end, 0)].partition(",")
        if end < 0 or not _is_count(low) or not (_is_count(high) or high == ""):
            raise PatternRefusedError('"{" must begin a quantifier such as {2} or {2,5}')
        self._at = end + 1
        least = int(low)
        most = int(high) if high else (None if comma else least)
        if least > _MAX_REPEAT or (most is not None and not least <= most <= _MAX_REPEAT):
            raise PatternRefusedError(f"a repetition out of order or above {_MAX_REPEAT}")
        return least, most

    def _class(self) -> Node:
        negated = self.eat("^")
        if self.peek() == "]":
            raise PatternRefusedError("an empty class")
        members: list[Ranges] = []
        while not self.eat("]"):
            members.append(self._member())
        merged = sets.union(*members)
        return Chars(sets.complement(merged) if negated else merged)

    def _member(self) -> Ranges:
        first = self._class_atom()
        if self.peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return first
        self.take()
        last = self._class_atom()
        low, high = _single(first), _single(last)
        if low is None or high is None or low > high:
            raise PatternRefusedError("a range out of order, or with a class at its end")
        return ((low, high),)

    def _class_atom(self) -> Ranges:
        sign = self.take()
        if sign == "\\":
            return self._escape(in_class=True)
        if sign == "[" or (sign in "&~-" and self.peek() == sign):
            raise PatternRefusedError(f'"{sign}" in a class must be written "\\{sign}"')
        return sets.of(sign)

    def _escape(self, *, in_class: bool) -> Ranges:
        sign = self.take()
        if sign in sets.CLASSES:
            return sets.CLASSES[sign]
        if sign in _CONTROLS:
            return sets.of(_CONTROLS[sign])
        if sign in ("x", "u"):
            return self._code(sign)
        if sign in _IDENTITY:
            return sets.of(sign)
        where = " in a class" if in_class else ""
        raise PatternRefusedError(f'the escape "\\{sign}"{where} is not served')

    def _code(self, sign: str) -> Ranges:
        if sign == "u" and self.eat("{"):
            end = self._text.find("}", self._at)
            digits = self.take(max(end - self._at, 0))
            self.take()
        else:
            digits = self.take(2 if sign == "x" else 4)
        try:
            code = int(digits, 16)
        except ValueError:
            raise PatternRefusedError(f'"\\{sign}{digits}" is no character') from None
        if code > sets.MAX_CODE or 0xD800 <= code <= 0xDFFF:
            raise PatternRefusedError(f'"\\{sign}{digits}" is no character by itself')
        return ((code, code),)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _single(ranges: Ranges) -> int | None:
    ((low, high), *rest) = ranges
    return low if low == high and not rest else None
