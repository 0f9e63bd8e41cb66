"""Turns of phrase that make sentences hard to read: their numbers only fall."""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("noizu_mcp", "tests", "docs", "benchmarks")
SUFFIXES = (".py", ".md", ".mjs")
#: Made of docstrings, as the folder `api` is; and this file.
DRAWN = ("names.md", Path(__file__).name)

#: How often each may stand in code, documents and names of the project.
MOST = {
    "is none": 26,
    "those of": 62,
    "of ours": 15,
    "is told": 78,
    "any more": 15,
    "nobody": 184,
    "one that": 102,
    "but for": 7,
}


def pattern(phrase: str) -> re.Pattern[str]:
    """Make the pattern of a phrase, which may begin a sentence and go on in the next line.

    `is None` of code does not match.
    """
    space = r"\s+(?:#:?\s+)?"
    first, rest = phrase[0], phrase[1:].replace(" ", space)
    return re.compile(rf"\b[{first}{first.upper()}]{rest}\b")


def files() -> Iterator[Path]:
    """Find the files that people write: not those that others have, or that programs draw."""
    for place in PLACES:
        for folder, folders, names in os.walk(ROOT / place):
            folders[:] = [each for each in folders if each not in ("node_modules", "api")]
            for name in names:
                if name.endswith(SUFFIXES) and name not in DRAWN:
                    yield Path(folder, name)
    yield ROOT / "README.md"
    yield ROOT / "CHANGELOG.md"


@cache
def places_of_phrases() -> dict[str, list[str]]:
    """Find where each phrase stands."""
    places: dict[str, list[str]] = {phrase: [] for phrase in MOST}
    patterns = {phrase: pattern(phrase) for phrase in MOST}
    for file in files():
        text = file.read_text(encoding="utf-8")
        words = " ".join(text.lower().replace("#", " ").split())
        for phrase in MOST:
            # Most files have none of them, and this says so in a tenth of the time.
            for match in patterns[phrase].finditer(text) if phrase in words else ():
                line = text.count("\n", 0, match.start()) + 1
                places[phrase].append(f"{file.relative_to(ROOT).as_posix()}:{line}")
    return places


@pytest.mark.parametrize(("phrase", "most"), MOST.items())
def test_hard_turns_become_fewer(phrase: str, most: int) -> None:
    """A phrase stands in no more places than before; who takes some away lowers the number."""
    places = places_of_phrases()[phrase]

    assert len(places) <= most, "\n".join(places)
