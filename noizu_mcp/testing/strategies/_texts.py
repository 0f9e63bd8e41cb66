"""Strategies for texts: lengths, regular expressions of ECMA-262, formats."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from functools import lru_cache
from importlib import import_module
from itertools import islice
from math import inf
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument
from hypothesis.strategies import DrawFn, SearchStrategy

from ._case import ValueCase, identity

Matches = Callable[[str, str], bool]
Texts = SearchStrategy[str]
Formats = Mapping[str, Texts]

#: Characters that programs take for others, cut in two, or do not expect.
SPECIAL: Final = (
    "\x00\t\n\r\x1b \"'\\/<>&%${}`;\u00a0\u00df\u0130\u0131e\u0301\u200b\u200d\u202e\u2028\ufeff"
    "\ufffd\uffff\U0001f600\U0001f468\U0001f3fd\U00010348\U0010ffff"
)
# A longer text is a short one repeated: it is drawn in no time, and shrinks.
_DRAWN: Final = 200
#: The longest text that is made; a schema that asks for more has no instance here.
LONGEST: Final = 2_000_000
# Draws per matching text.
_TRIES: Final = 3
# Texts that are listed; with more, a test rarely meets one twice.
_LISTED: Final = 200
# Characters beyond the least, where there is no limit.
_MORE: Final = 1_000

# Hypothesis makes its table of all characters once for each project, in more than a second. Within
# the first draw that would count as a strategy that is too slow, and fail the test.
st.text().validate()


def texts(case: ValueCase, matches: Matches, formats: Formats) -> Texts:
    """Return the strategy for the texts of a case.

    Args:
        case: The case.
        matches: Tells if a pattern of ECMA-262 is found in a text.
        formats: The strategies of the formats.
    """
    low, high = case.min_length, case.max_length

    def fits(text: str) -> bool:
        return (
            low <= len(text) <= high
            and identity(text) not in case.excluded
            and all(matches(pattern, text) for pattern in case.patterns)
            and not any(matches(pattern, text) for pattern in case.not_patterns)
        )

    known = [formats[name] for name in case.formats]
    if known:
        return st.one_of(known).filter(fits)
    if case.patterns:
        alphabet = _alphabet(case.patterns) if len(case.patterns) > 1 else None
        each = [_of_pattern(pattern, low, high, alphabet) for pattern in case.patterns]
        # One behind the other fits patterns for the beginning, the middle and the end.
        together = [st.tuples(*each).map("".join)] if len(each) > 1 else []
        return _kept(st.one_of([*together, *each]), fits)
    found = _of_length(low, high)
    for pattern in case.not_patterns:
        # Texts that miss it by one character.
        made = st.tuples(_of_pattern(pattern, low, high), st.sampled_from(" \n!\u00e9\U0001f600"))
        found = found | made.map("".join) | made.map(lambda pair: pair[1] + pair[0])
        found = found | made.map(lambda pair: pair[0][:-1])
    return _kept(found, fits) if case.excluded or case.not_patterns else found


@st.composite
def _kept(draw: DrawFn, made: Texts, fits: Callable[[str], bool]) -> str:
    """Draw a text that fits, if one of a few does.

    A filter would end the example without counting it as one without a value.
    """
    text = ""
    for _ in range(_TRIES):
        text = draw(made)
        if fits(text):
            break
    return text


def can_be_text(case: ValueCase) -> bool:
    """Tell whether a case and the lengths of its patterns leave room for a text."""
    widths = list(map(_widths, case.patterns))
    low = max([case.min_length, *(least for least, _most in widths)])
    return low <= min([case.max_length, LONGEST, *(most for _least, most in widths)])


@lru_cache(maxsize=1_000)
def _widths(pattern: str) -> tuple[int, float]:
    """Return the least and the greatest length of the texts in which a pattern is found."""
    parsed, width = _parsed(translate(pattern))
    if parsed is None:
        return 0, inf
    return width[0], width[1] if _is_whole(parsed) else inf


def _is_whole(parsed: Any) -> bool:
    """Tell if a pattern, as its parts, matches whole texts."""
    parser = import_module("re._parser")
    edges = [(parser.AT, parser.AT_BEGINNING), (parser.AT, parser.AT_END_STRING)]
    return [*parsed[:1], *parsed[-1:]] == edges


@lru_cache(maxsize=1_000)
def list_texts(pattern: str) -> tuple[str, ...] | None:
    """List the texts in which a pattern is found, and maybe others.

    Args:
        pattern: The pattern, of ECMA-262.

    Returns:
        All of them; None if they are many, or not known.
    """
    parsed, _width = _parsed(translate(pattern))
    # Of a property of Unicode only some characters are translated.
    if parsed is None or not _is_whole(parsed) or _PROPERTY.search(pattern):
        return None
    try:
        found = tuple(islice(_rows(parsed), _LISTED + 1))
    except (LookupError, RecursionError):
        return None
    return tuple(dict.fromkeys(found)) if len(found) <= _LISTED else None


def _rows(parts: Sequence[Any]) -> Iterator[str]:
    """List the texts of parts in a row; raises `LookupError` for a part that is not known."""
    if not len(parts):
        yield ""
        return
    for first in _texts_of(*parts[0]):
        for rest in _rows(parts[1:]):
            yield first + rest


def _characters(kind: Any, value: Any) -> Iterator[str]:
    """List the characters of a part of a set, as `_rows`."""
    match str(kind):
        case "LITERAL":
            yield chr(value)
        case "RANGE":
            yield from map(chr, range(value[0], value[1] + 1))
        case "CATEGORY" if str(value) == "CATEGORY_DIGIT":
            yield from "0123456789"
        case _:
            raise LookupError(kind)


def _texts_of(kind: Any, value: Any) -> Iterator[str]:
    """List the texts of a part of a parsed pattern, as `_rows`."""
    match str(kind):
        case "IN":
            for each in value:
                yield from _characters(*each)
        case "AT":
            yield ""
        case "SUBPATTERN":
            yield from _rows(value[-1])
        case "BRANCH":
            for each in value[1]:
                yield from _rows(each)
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, part = value
            for size in range(least, int(most) + 1):
                yield from _rows([*part] * size)
        case _:
            yield from _characters(kind, value)


def _parsed(source: str) -> tuple[Any, tuple[int, int]]:
    """Parse a Python regular expression: its parts, and its widths; None if it is not valid."""
    # The parser of `re`, as Hypothesis has it: `re` itself does not tell.
    try:
        parsed = import_module("re._parser").parse(source, re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None, (0, 0)
    return parsed, parsed.getwidth()


def _of_length(low: int, high: float) -> Texts:
    """Return texts of a length; the least and the greatest are as likely as the others."""
    if low > _DRAWN:
        return _repeated(low) | _repeated(int(min(high, low + 1)))
    most = int(min(high, low + _MORE))
    found = st.text(min_size=low, max_size=min(most, _DRAWN))
    if most:
        found = found | st.text(SPECIAL, min_size=low, max_size=min(most, low + 20))
    if 0 < low < most:
        found = found | st.text(min_size=low, max_size=low + 1)
    if _DRAWN < high <= LONGEST:
        found = found | _repeated(int(high))
    elif max(low, 1) < high <= _DRAWN:
        found = found | st.text(min_size=most - 1, max_size=most)
    return found


def _repeated(length: int) -> Texts:
    """Return texts of one length, made by repeating a few characters."""
    parts = st.text(min_size=1, max_size=8)
    return parts.map(lambda part: (part * (length // len(part) + 1))[:length])


def _of_pattern(pattern: str, low: int, high: float, alphabet: str | None = None) -> Texts:
    """Return texts in which a pattern of ECMA-262 is probably found.

    Args:
        pattern: The pattern.
        low: The least length.
        high: The greatest length, maybe infinite.
        alphabet: The characters of the texts; None for all.
    """
    source, (least, most) = translate(pattern), _widths(pattern)
    sized = _of_size(source, low, high) if low or high < inf else []
    # Without a variant the pattern itself is all there is; it makes short texts.
    sources = [*sized, source] if not sized or low <= least + _ROOM else sized
    # It may stand anywhere in a text if there is room for other characters.
    kinds = [True, False] if most == inf and high - least > _ROOM else [True]
    try:
        made = [
            st.from_regex(re.compile(each, re.ASCII), fullmatch=is_whole, alphabet=alphabet)
            for each in sources
            for is_whole in kinds
        ]
        for each in made:
            each.validate()
    except (re.error, RecursionError, OverflowError, InvalidArgument):
        # What Python does not know, such as sets of sets. A short text may match it.
        return _of_length(low, high)
    found: Texts = st.one_of(made)
    if low and not sized and not source.endswith(r"\Z"):
        found = found | st.tuples(found, _of_length(low, high)).map("".join)
    return found


# Free characters from which on a pattern may stand anywhere in a text.
_ROOM: Final = 8
_QUANTIFIERS: Final = re.compile(
    r"\\.|\[(?:\\.|[^\\\]])*\]|(?P<sign>[+*]|\{(?P<count>\d+),\})", re.DOTALL
)
# Repetitions beyond the least, where there is no limit.
_REPEATS: Final = 50


def _of_size(source: str, low: int, high: float) -> list[str]:
    """Return variants of a regular expression whose texts mostly have a length.

    Each variant repeats one part as often as the length asks for.
    """
    signs = [each for each in _QUANTIFIERS.finditer(source) if each["sign"] is not None]
    written = [int(each["count"] or each["sign"] == "+") for each in signs]
    # Where the length is limited, the other parts leave room.
    usual = [
        each["sign"] if high == inf else _times(n, n + 1)
        for each, n in zip(signs, written, strict=True)
    ]
    found = []
    for at in range(len(signs)):

        def repeat(times: str, at: int = at) -> str:
            each = iter([*usual[:at], times, *usual[at + 1 :]])
            return _QUANTIFIERS.sub(lambda part: next(each) if part["sign"] else part[0], source)

        once, twice = (_parsed(repeat(_times(count, count)))[1][0] for count in (1, 2))
        width = twice - once
        if width <= 0:
            continue
        least = max(written[at], 1 - (once - low) // width)
        most = least + _REPEATS if high == inf else 1 + (int(high) - once) // width
        if least <= most:
            found.append(repeat(_times(least, min(most, least + _MORE))))
    return found


def _times(least: int, most: int) -> str:
    return f"{{{least},{most}}}"


def _alphabet(patterns: Iterable[str]) -> str | None:
    """Return the characters to which one of some patterns limits whole texts; None for all."""
    for pattern in patterns:
        single = _ONE_SET.fullmatch(translate(pattern))
        if single is not None:
            one = re.compile(single["set"], re.ASCII | re.DOTALL)
            return "".join(filter(one.fullmatch, map(chr, range(_LETTERS_KNOWN)))) or None
    return None


# The first characters of Unicode, used by most alphabets.
_LETTERS_KNOWN: Final = 0x250
_ONE_SET: Final = re.compile(r"\^(?P<set>\[(?:\\.|[^\\\]])+\]|\\[dw])[+*]\\Z", re.DOTALL)
_TOKENS: Final = re.compile(
    r"""(?P<property>\\[pP]\{[^}]*\})|(?P<point>\\u\{(?P<code>[0-9A-Fa-f]{1,6})\})
    |(?P<control>\\c(?P<letter>[A-Za-z]))|(?P<named>\(\?<(?![=!]))|(?P<escape>\\.)
    |(?P<open>\[)|(?P<close>\])|(?P<end>\$)|(?P<sign>[&~|])""",
    re.VERBOSE | re.DOTALL,
)
_PROPERTY: Final = re.compile(r"\\[pP]\{")
# Characters of the properties of Unicode that patterns name, a few of each.
_PROPERTIES: Final = (
    (("Lu", "Uppercase"), "A-Z\u00c0-\u00d6\u0391-\u03a1"),
    (("Ll", "Lowercase"), "a-z\u00e0-\u00f6\u03b1-\u03c1"),
    (("N", "Digit"), "0-9\u0660-\u0669"),
    (("P", "S"), "!-/:-@"),
    (("Z", "White"), " \u00a0\u2003"),
    (("Script=Cyr", "sc=Cyr"), "\u0410-\u044f"),
    (("Script=Gr", "sc=Gr"), "\u0391-\u03a1"),
    (("Emoji",), "\U0001f600-\U0001f64f"),
)
_LETTERS: Final = "A-Za-z\u00c0-\u00d6\u03b1-\u03c1\u0430-\u044f"


def translate(pattern: str) -> str:
    r"""Return a regular expression of ECMA-262 in the words of Python, for `re.ASCII`.

    It may match fewer texts, or a few others: the schema engine checks each text. `\d` and `\w` are
    ASCII in both; `$` is the very end; of a property such as `\p{L}` some characters are
    taken.
    """
    made, at, inside = [], 0, False
    for found in _TOKENS.finditer(pattern):
        kind = found.lastgroup
        made.append(pattern[at : found.start()])
        at = found.end()
        text = found[0]
        if kind == "open":
            inside, text = True, r"\[" if inside else "["
        elif kind == "close":
            inside = False
        elif kind == "end":
            text = "$" if inside else r"\Z"
        elif kind == "property":
            text = _property(text, inside=inside)
        elif kind == "sign":
            # Two of them would be an operation on sets.
            text = f"\\{text}" if inside else text
        else:
            text = _rewritten(kind, found)
        made.append(text)
    return "".join((*made, pattern[at:]))


def _rewritten(kind: str | None, found: re.Match[str]) -> str:
    if kind == "named":
        return "(?P<"
    if kind == "control":
        return f"\\x{ord(found['letter']) % 32:02x}"
    if kind == "point":
        return f"\\U{int(found['code'], 16):08x}"
    # An escape. Python knows the same ones, but no needless ones of letters.
    letter = found[0][1]
    if letter.isascii() and letter.isalpha() and letter not in "bBdDsSwWnrtvfxu":
        return letter
    return found[0]


def _property(text: str, *, inside: bool) -> str:
    name = text[3:-1].removeprefix("General_Category=").removeprefix("gc=")
    chars = next((chars for starts, chars in _PROPERTIES if name.startswith(starts)), _LETTERS)
    if text[1] == "P":
        chars = "!-/" if chars == _LETTERS else _LETTERS
    return chars if inside else f"[{chars}]"


def _standard_formats() -> Formats:
    day, moment = st.dates(), st.datetimes(timezones=st.just(UTC))
    label = st.from_regex(re.compile(r"[a-z][a-z0-9]{0,9}(-[a-z0-9]{1,5})?"), fullmatch=True)
    hosts = st.lists(label, min_size=1, max_size=3).map(".".join)
    name = st.from_regex(re.compile(r"[a-z0-9][a-z0-9_+-]{0,9}"), fullmatch=True)
    paths = st.lists(label, max_size=3).map(lambda parts: "/" + "/".join(parts))
    uris = st.tuples(st.sampled_from(["https://", "http://"]), hosts, paths).map("".join)
    pointers = st.lists(st.text("ab0-", max_size=3), max_size=3)
    return {
        "date": day.map(str),
        "time": moment.map(lambda at: at.time().isoformat() + "Z"),
        "date-time": moment.map(lambda at: at.isoformat().replace("+00:00", "Z")),
        "duration": st.integers(0, 10_000).map(lambda seconds: f"PT{seconds}S"),
        "email": st.tuples(name, st.just("@"), label, st.just(".example.com")).map("".join),
        "idn-email": st.tuples(name, st.just("@"), label, st.just(".example.com")).map("".join),
        "hostname": hosts,
        "idn-hostname": hosts,
        "ipv4": st.ip_addresses(v=4).map(str),
        "ipv6": st.ip_addresses(v=6).map(str),
        "uri": uris,
        "iri": uris,
        "uri-reference": uris | paths,
        "iri-reference": uris | paths,
        "uuid": st.uuids().map(str),
        "json-pointer": pointers.map(lambda parts: "".join(f"/{part}" for part in parts)),
        "regex": st.sampled_from(["", "a", "^[a-z]+$", r"\d{3}"]),
    }


#: The formats of 2020-12 (validation section 7.3) and their texts.
FORMATS: Final = _standard_formats()
