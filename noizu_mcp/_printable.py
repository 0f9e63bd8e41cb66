r"""Texts of others, made safe to print.

A server, a file or a URL may bring characters that steer a terminal (ANSI sequences, C1 controls),
that turn a line around (bidi overrides), or that show nothing at all (zero-width characters, tags).
Each of them is printed as its code point, `\u{202E}`, or in JSON as `\u202e`.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Final, TextIO

#: The control characters that a text with several lines keeps.
LINES: Final = "\n\t"

# Patterns are texts: compiling the first one takes as long as importing twenty files, and most
# programs print plain text only.
#: The characters that are looked at. All others are assigned, and visible.
_SUSPECT: Final = (
    r"[^ -~\u00a1-\u00ac\u00ae-\u034e\u0350-\u0377\u0400-\u052f\u2010-\u2027\u2030-\u205e"
    r"\u3041-\u3096\u3099-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
)
#: Control, surrogate, private use and unassigned characters; separators of lines and paragraphs.
_UNSEEN_KINDS: Final = frozenset({"Cc", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Characters of other kinds that show nothing: Default_Ignorable_Code_Point (Unicode section 5.21),
#: and the marks of annotations between lines.
_UNSEEN: Final = (
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINERS: Final = "\u200c\u200d"
_ZERO_WIDTH_JOINER: Final = "\u200d"
#: Scripts that join their letters: Arabic and related ones, scripts of India and South-East Asia,
#: Mongolian, Adlam.
_JOINING: Final = (
    r"[\u0600-\u061b\u061d-\u109f\u1780-\u17b3\u17b6-\u180a\u1820-\u18af\u1a20-\u1c4f\ua840-\ua87f"
    r"\ua8e0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
#: The canonical combining class of a virama.
_VIRAMA: Final = 9
_MONGOLIAN: Final = r"[\u1820-\u18af]"
_MONGOLIAN_FORMS: Final = "\u180b\u180c\u180d\u180e\u180f"
#: The variation selectors that show a sign as text, and as an emoji.
_STYLES: Final = "\ufe0e\ufe0f"
#: Signs that are emoji in that style; the others are symbols (So).
_SIGNS: Final = r"[\u203c\u2049\u2139\u2194\u2934\u2935\u25fb-\u25fe\u3030\u303d]"
_KEYCAP: Final = r"[0-9#*]\ufe0f\u20e3"
#: What may stand between an emoji and a joiner: its style, or a colour of skin.
_MODIFIERS: Final = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


def printable(text: str, out: TextIO | None = None, *, kept: str = "") -> str:
    r"""Make a text of others safe to print.

    A character that steers a terminal, reorders the text or shows nothing is written as its code
    point, `\u{202E}`. Joiners and styles inside emoji stay, and joiners between letters of scripts
    that need them.

    Args:
        text: The text.
        out: Where it will be printed: letters that this stream cannot write are escaped, too.
        kept: Control characters that stay. By default none does, so the result is one line; `LINES`
            keeps the lines of a text.
    """
    safe = _escape(text, kept, "\\u{{{:X}}}".format)
    return safe if out is None else encodable(safe, out)


def printable_json(text: str) -> str:
    """Make JSON text safe to print: with escapes of JSON, its value is the same.

    Args:
        text: JSON text. Lines between its tokens stay.
    """
    return _escape(text, LINES, _json_escape)


def encodable(text: str, out: TextIO) -> str:
    """Escape the letters that a stream cannot write.

    Args:
        text: Any text.
        out: The stream.
    """
    encoding = out.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _escape(text: str, kept: str, escape: Callable[[int], str]) -> str:
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_SUSPECT, partial(_shown, kept=kept, escape=escape), text)


def _shown(found: re.Match[str], kept: str, escape: Callable[[int], str]) -> str:
    letter = found[0]
    if letter in kept or _is_seen(letter) or _is_meant(found.string, found.start()):
        return letter
    return escape(ord(letter))


def _is_seen(letter: str) -> bool:
    return unicodedata.category(letter) not in _UNSEEN_KINDS and not re.match(_UNSEEN, letter)


def _is_meant(text: str, at: int) -> bool:
    """Tell whether a character that shows nothing forms those beside it, as their script wants."""
    mark, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if mark in _STYLES:
        return _is_emoji(before) or bool(re.match(_KEYCAP, text[max(at - 1, 0) : at + 2]))
    if mark in _MONGOLIAN_FORMS:
        return bool(re.match(_MONGOLIAN, before))
    if mark not in _JOINERS:
        return False
    if re.match(_JOINING, before):
        # Behind a virama it chooses the form of the letter before, also at the end of a word.
        return bool(re.match(_JOINING, after)) or unicodedata.combining(before) == _VIRAMA
    if before and before in _MODIFIERS:
        before = text[at - 2 : at - 1]
    return mark == _ZERO_WIDTH_JOINER and _is_emoji(before) and _is_emoji(after)


def _is_emoji(letter: str) -> bool:
    return bool(letter) and (unicodedata.category(letter) == "So" or bool(re.match(_SIGNS, letter)))


def _json_escape(code: int) -> str:
    # A character beyond the first plane is written as a surrogate pair (RFC 8259 section 7).
    data = chr(code).encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))
