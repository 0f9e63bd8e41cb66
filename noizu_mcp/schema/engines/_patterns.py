r"""Regular expressions of ECMA-262, translated for Python's `re` if they run in linear time.

JSON Schema asks for the dialect of ECMA-262 (2020-12 core section 6.4). Each token is translated by
itself, because `\d`, `\w`, `\s`, `.` and `$` mean something else in Python. A token that is not in
the table (a lookaround, a backreference, `\b`, `\p`) is refused.

Python's engine backtracks: it tries one alternative after the other. A choice costs nothing if the
next character decides it, as in `[a-z]+-`. Otherwise the ways through the pattern multiply, as in
`.*.*`, or double with each character, as in `(a+)+`. `_PatternPart.ways` counts them. An unanchored
pattern starts anew at each character. So a text of n characters takes at most

    n * ways * (1 if the pattern begins with ^, else the length of its longest match)

steps, and a pattern is served if that is a small multiple of n.
"""

import re
import sys
from collections.abc import Callable, Sequence
from math import inf

import attrs

#: Steps for each character of a text, a few microseconds: enough for a word of a few dozen
#: characters that may start anywhere.
MAX_STEPS = 256
#: A longer pattern is a table that belongs into `enum`.
MAX_PATTERN = 2000
# Python compiles some bounded repetitions by copying; larger ones are not written by hand.
_MAX_COUNT = 1000
_MAX_NESTING = 30

# Inside of a class. ECMA-262 WhiteSpace and LineTerminator; Python's \s differs in both directions.
_CLASSES = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": "0-9A-Z_a-z",
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    "s": r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff",
    "S": r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e"
    r"\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff",
}
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_ASCII = "".join(map(chr, range(128)))

# Punctuation that every engine reads as itself after a backslash.
_ESCAPE = r"""\\(?:[dDwWsStnvfr]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}"""
_ESCAPE += r"""|[-^$\\.*+?()\[\]{}|/_'"!#%&,:;=@~\x20])"""
_MEMBER = re.compile(rf"{_ESCAPE}|[^\\\[\]]", re.DOTALL)
_TOKEN = re.compile(
    rf"""(?P<open>\((?:\?:|(?!\?)))|(?P<close>\))|(?P<bar>\|)|(?P<edge>[\^$])
    |(?P<repeat>(?:[*+?]|\{{[0-9]{{1,9}}(?:,[0-9]{{0,9}})?\}})\??)
    |(?P<chars>\[(?:\^|(?!\^))(?:{_MEMBER.pattern})+\]|{_ESCAPE}|[^\\^$*+?()\[\]{{}}|])""",
    re.VERBOSE | re.DOTALL,
)


class PatternRefusedError(ValueError):
    """A pattern that is not served; the text is the reason, in words for its author."""


def match_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells if a pattern of ECMA-262 is found in a text.

    Raises:
        PatternRefusedError: The pattern is not valid, not served, or not linear.
    """
    search = re.compile(translate(pattern)).search
    return lambda text: search(text) is not None


def translate(pattern: str) -> str:
    """Return a regular expression of ECMA-262 as Python writes it.

    Raises:
        PatternRefusedError: The pattern is not valid, not served, or not linear.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternRefusedError(f"longer than {MAX_PATTERN} characters")
    reader = _PatternReader(pattern)
    whole = reader.choice(0)
    if reader.kind:
        raise PatternRefusedError('a ")" without its "("')
    steps = whole.ways(frozenset()) * (1 if whole.anchored else whole.longest)
    # Not `>`: an infinity times 0 is NaN.
    if not steps <= MAX_STEPS:
        raise PatternRefusedError(
            "it can take too long, because one text may match it in many ways; begin it with ^, "
            "and let no repetition begin like what follows it"
        )
    return "".join(reader.source)


@attrs.frozen
class _PatternPart:
    """A set of characters, or parts one after the other.

    Attributes:
        first: The characters that it can begin with: each of ASCII by itself, all others as "é".
        empty: Whether it can match nothing.
        longest: The length of the longest match.
        anchored: Whether it matches at the start of the text only.
        parts: The parts; none for a set, an edge or an empty group.
    """

    first: frozenset[str]
    empty: bool
    longest: float
    anchored: bool = False
    parts: Sequence["_PatternPart"] = ()

    def ways(self, after: frozenset[str]) -> float:
        """Return how many ways there are through it, before the characters that can follow."""
        count = 1.0
        for part in reversed(self.parts):
            count *= part.ways(after)
            after = part.first | after if part.empty else part.first
        return count


@attrs.frozen
class _Choice(_PatternPart):
    """One of several parts, its `parts`."""

    def ways(self, after: frozenset[str]) -> float:
        counts = [option.ways(after) for option in self.parts]
        firsts = [option.first for option in self.parts]
        # An empty option begins with what follows.
        firsts += [after for option in self.parts if option.empty]
        apart = sum(map(len, firsts)) == len(frozenset().union(*firsts))
        vague = sum(option.empty for option in self.parts) > 1
        return max(counts) if apart and not vague else sum(counts)


@attrs.frozen
class _Repeat(_PatternPart):
    """A part repeated: its only one.

    Attributes:
        least: The number of rounds at least.
        most: The number of rounds at most; infinite if there is no limit.
    """

    least: int = 0
    most: float = inf

    def ways(self, after: frozenset[str]) -> float:
        (body,), fixed = self.parts, self.least == self.most
        if body.empty and self.most > 1:
            # Rounds that match nothing are ways too.
            return inf
        apart = body.first.isdisjoint(after) and not body.empty
        if self.most <= 1:
            return body.ways(after) + (not fixed and not apart)
        if fixed:
            # A counter decides whether another round follows or the rest.
            inside = max(body.ways(body.first), body.ways(after))
            return inside**self.most if inside == 1 or self.most <= _FEW else inf
        if body.ways(body.first | after) > 1:
            return inf
        return 1 if apart else self.most - self.least + 1


# Rounds of a body with several ways: above, their product is too large for any text.
_FEW = 8


class _PatternReader:
    """Reads a pattern token by token, and writes each in Python's words.

    Attributes:
        source: The translation so far.
        kind: The name of the next token; None at the end.
    """

    def __init__(self, pattern: str) -> None:
        self.source: list[str] = []
        self.kind: str | None = None
        self._pattern = pattern
        self._at = 0
        self._text = ""
        self._next("")

    def _next(self, translation: str) -> None:
        """Go to the next token.

        Args:
            translation: The current one in Python's words.
        """
        self.source.append(translation)
        found = _TOKEN.match(self._pattern, self._at)
        if found is None and self._at < len(self._pattern):
            rest = self._pattern[self._at : self._at + 10]
            raise PatternRefusedError(f'"{rest}" is not valid in it, or not served')
        self.kind, self._text = (found.lastgroup, found[0]) if found else (None, "")
        self._at = found.end() if found else self._at

    def choice(self, depth: int) -> _PatternPart:
        """Read alternatives, up to the end of their group."""
        if depth > _MAX_NESTING:
            raise PatternRefusedError(f"groups nested deeper than {_MAX_NESTING}")
        options = [self._row(depth)]
        while self.kind == "bar":
            self._next("|")
            options.append(self._row(depth))
        if len(options) == 1:
            return options[0]
        return _Choice(
            frozenset[str]().union(*(option.first for option in options)),
            any(option.empty for option in options),
            max(option.longest for option in options),
            all(option.anchored for option in options),
            options,
        )

    def _row(self, depth: int) -> _PatternPart:
        parts: list[_PatternPart] = []
        anchored = False
        while self.kind not in (None, "bar", "close"):
            if self.kind == "edge":
                anchored = anchored or (self._text == "^" and not parts)
                self._next("^" if self._text == "^" else r"\Z")
                if self.kind == "repeat":
                    raise PatternRefusedError("an anchor cannot be repeated")
            else:
                parts.append(self._repeated(self._atom(depth)))
        first: frozenset[str] = frozenset()
        for part in parts:
            first |= part.first
            if not part.empty:
                break
        empty = all(part.empty for part in parts)
        anchored = anchored or (bool(parts) and parts[0].anchored)
        return _PatternPart(first, empty, sum(part.longest for part in parts), anchored, parts)

    def _atom(self, depth: int) -> _PatternPart:
        if self.kind == "open":
            self._next("(?:")
            inner = self.choice(depth + 1)
            if self.kind != "close":
                raise PatternRefusedError('a "(" without its ")"')
            self._next(")")
            return inner
        if self.kind != "chars":
            raise PatternRefusedError(f'"{self._text}" stands where nothing can be repeated')
        source, first = _set(self._text)
        self._next(source)
        return _PatternPart(first, empty=False, longest=1)

    def _repeated(self, body: _PatternPart) -> _PatternPart:
        if self.kind != "repeat":
            return body
        least, most = _bounds(self._text.removesuffix("?") or "?")
        self._next(self._text)
        if self.kind == "repeat":
            raise PatternRefusedError("two quantifiers in a row")
        longest = body.longest * most if body.longest else 0
        empty = body.empty or least == 0
        anchored = body.anchored and not empty
        return _Repeat(body.first, empty, longest, anchored, (body,), least, most)


def _bounds(text: str) -> tuple[int, float]:
    if text in "*+?":
        return int(text == "+"), 1 if text == "?" else inf
    low, comma, high = text[1:-1].partition(",")
    least, most = int(low), int(high or _MAX_COUNT) if comma else int(low)
    if not least <= most <= _MAX_COUNT:
        raise PatternRefusedError(f"a repetition out of order or above {_MAX_COUNT}")
    return least, inf if comma and not high else most


def _set(text: str) -> tuple[str, frozenset[str]]:
    """Return a set of characters in Python's words, and its members as in `_PatternPart.first`."""
    if text == ".":
        negated, content = True, r"\n\r\u2028\u2029"
    elif text[0] == "[":
        negated = text[1] == "^"
        content = _members(text[1 + negated : -1])
    else:
        negated, content = False, _member(text)
    source = f"[{'^' if negated else ''}{content}]"
    # Beyond ASCII sets are not compared, so each that has one such character overlaps the others.
    others = {"é"} if negated or "\\u" in content or "\\U" in content else set[str]()
    return source, frozenset(re.findall(source, _ASCII)).union(others)


def _members(body: str) -> str:
    if any(sign in body for sign in ("&&", "--", "~~")):
        # The native engine reads these as operations on sets.
        raise PatternRefusedError(f'"[{body}]" has a sign twice; write it once')
    members = _MEMBER.findall(body)
    content = ""
    while members:
        low, *rest = members
        if len(rest) > 1 and rest[0] == "-":
            high, members = rest[1], rest[2:]
            first, last = _code(low), _code(high)
            if first is None or last is None or first > last:
                raise PatternRefusedError(f'"{low}-{high}" is not a range in order')
            content += f"{_member(low)}-{_member(high)}"
        else:
            content, members = content + _member(low), rest
    return content


def _member(text: str) -> str:
    """Return a character or the name of a class as Python writes it inside of a class."""
    code = _code(text)
    if code is None:
        return _CLASSES[text[1]]
    # Escaped, even where it need not be: anything could mean something to `re`.
    return f"\\x{code:02x}" if code < 128 else f"\\U{code:08x}"


def _code(text: str) -> int | None:
    """Return the code point of a character; None for the name of a class."""
    if text[0] != "\\":
        return ord(text)
    if text[1] in _CLASSES:
        return None
    if text[1] not in "xu":
        return ord(_CONTROLS.get(text[1], text[1]))
    code = int(text[2:].strip("{}"), 16)
    if code > sys.maxunicode or 0xD800 <= code <= 0xDFFF:
        raise PatternRefusedError(f'"{text}" is no character by itself')
    return code
