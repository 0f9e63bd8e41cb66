"""Texts of peers on a terminal, in JSON and in logs."""

import io
import json
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import _log
from noizu_mcp._printable import LINES, printable, printable_json
from noizu_mcp.auth import _verifier as auth
from noizu_mcp.transports.host import _options as http

#: Characters that are dangerous, and their neighbours in texts of people.
PIECES = [
    *("\x1b", "\x07", "\x9b", "\x85", "\x7f", "\r", "\n", "\t", "\u202e", "\u2066", "\u200b"),
    *("\u200c", "\u200d", "\u00ad", "\ufeff", "\u061c", "\u3164", "\ufe0e", "\ufe0f", "\u2028"),
    *("\U000e0041", "\U000e0100", "\ue000", "\u0378", "\ud800", "\u180b", "\u180e", "\u20e3"),
    *("a", "1", "#", " ", "é", "م", "ک", "क", "्", "ᠨ", "漢", "ⓜ", "❤", "👩", "🏽", "🚀", "‼", "°"),
]
texts = st.lists(st.sampled_from(PIECES) | st.characters()).map("".join)
#: Invisible characters that may change their neighbours.
FORMING = "\u200c\u200d\ufe0e\ufe0f\u180b\u180c\u180d\u180e\u180f"
BAD = ("Cc", "Cs", "Co", "Cn", "Zl", "Zp")


def is_safe(letter):
    if letter in FORMING:
        return True
    # Some characters of the category Cf are visible: signs of Arabic numbers, of hieroglyphs.
    is_seen = unicodedata.category(letter) != "Cf" or unicodedata.name(letter).startswith(
        ("ARABIC", "SYRIAC", "KAITHI", "EGYPTIAN")
    )
    return is_seen and letter != "\u061c" and unicodedata.category(letter) not in BAD


@given(texts)
def test_nothing_unseen_is_left(text):
    """The output is one line of visible characters; a second pass changes nothing."""
    shown = printable(text)

    assert all(map(is_safe, shown))
    assert shown == printable(shown)


@given(texts)
def test_lines_of_a_text_stay(text):
    """Line feeds and tabs are kept on request, and nothing else."""
    shown = printable(text, kept=LINES)

    assert shown.split("\n") == [printable(line, kept="\t") for line in text.split("\n")]


@given(texts)
def test_json_keeps_its_value(text):
    """In JSON the escapes are JSON's own."""
    value = {text: [text]}
    shown = printable_json(json.dumps(value, ensure_ascii=False, indent=1))

    assert json.loads(shown) == value
    assert all(map(is_safe, shown.replace("\n", "")))


@pytest.mark.parametrize(
    "text",
    [
        *("👨‍👩‍👧‍👦", "❤️‍🔥", "👩🏽‍🚀", "🏳️‍🌈", "👁️‍🗨️", "1️⃣", "‼️", "☺︎"),
        *("می‌خواهم", "क्‍ष", "ക്‍", "ᠨᠢ᠋ᠭᠡ", "ශ්‍රී"),
        *("naïve", "漢字", "한글", "Привет", "e\u0301", "a\u00a0b", "x\u3000y", "١٢٣", "€½™"),
    ],
)
def test_what_people_write_stays(text):
    """Joiners and variation selectors are kept in emoji, and between letters that need them."""
    assert text == printable(text)
    assert text == printable_json(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p\u200dy", "p\\u{200D}y"),
        ("\u200dx", "\\u{200D}x"),
        ("👩\u200d", "👩\\u{200D}"),
        ("👩\u200dx", "👩\\u{200D}x"),
        ("x\ufe0f\u200d🔥", "x\\u{FE0F}\\u{200D}🔥"),
        ("م\u200c\u200cم", "م\\u{200C}\\u{200C}م"),
        ("م\u200ca", "م\\u{200C}a"),
        ("1\ufe0f", "1\\u{FE0F}"),
        ("\u180bx", "\\u{180B}x"),
        ("\U000e0041\U000e007f", "\\u{E0041}\\u{E007F}"),
        ("a\U000e0100", "a\\u{E0100}"),
    ],
)
def test_marks_without_a_meaning(text, shown):
    """Elsewhere a joiner or variation selector hides something."""
    assert shown == printable(text)


def test_a_stream_that_cannot_write_a_letter():
    """A character that the stream cannot encode is escaped, too."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")

    assert printable("é漢\u202e", out) == "é\\u6f22\\u{202E}"


@pytest.mark.parametrize("log", [_log.logger, auth.logger, http.logger])
def test_a_record_is_one_line(log, caplog):
    """A peer's text cannot forge a line of a log; a traceback is indented below it."""
    log.warning("%s said: %s", "a\u202e", "b\nWARNING forged\x1b[2J")
    log.error("%d%% failed", 100, exc_info=RuntimeError("c\nWARNING forged\x85d"))

    assert caplog.messages == ["a\\u{202E} said: b\\u{A}WARNING forged\\u{1B}[2J", "100% failed"]
    shown = logging.Formatter("%(levelname)s %(message)s").format(caplog.records[1])
    first, *rest = shown.split("\n")
    assert first == "ERROR 100% failed"
    assert rest[-2:] == ["  RuntimeError: c", "  WARNING forged\\u{85}d"]
    assert all(line.startswith("  ") for line in rest)
