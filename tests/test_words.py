"""Turns of phrase that make sentences hard to read; their numbers may only fall."""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("noizu_mcp", "tests", "docs", "benchmarks")
SUFFIXES = (".py", ".md", ".mjs")
#: Generated from docstrings, like the folder `api`; and this file.
DRAWN = ("names.md", Path(__file__).name)

#: Maximum number of places of each phrase in code, documents and names of the project.
MOST = {
    "is none": 0,
    "those of": 6,
    "of ours": 0,
    "is told": 1,
    "any more": 2,
    "nobody": 54,
    "one that": 11,
    "but for": 1,
}


def pattern(phrase: str) -> re.Pattern[str]:
    """Make the pattern of a phrase, which may begin a sentence and continue on the next line.

    `is None` of code does not match.
    """
    space = r"\s+(?:#:?\s+)?"
    first, rest = phrase[0], phrase[1:].replace(" ", space)
    return re.compile(rf"\b[{first}{first.upper()}]{rest}\b")


def files() -> Iterator[Path]:
    """Find the files that people write, without third-party and generated ones."""
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
    """Find the places of each phrase."""
    places: dict[str, list[str]] = {phrase: [] for phrase in MOST}
    patterns = {phrase: pattern(phrase) for phrase in MOST}
    for file in files():
        text = file.read_text(encoding="utf-8")
        words = " ".join(text.lower().replace("#", " ").split())
        for phrase in MOST:
            # Most files contain none of the phrases, which this check finds in a tenth of the time.
            for match in patterns[phrase].finditer(text) if phrase in words else ():
                line = text.count("\n", 0, match.start()) + 1
                places[phrase].append(f"{file.relative_to(ROOT).as_posix()}:{line}")
    return places


@pytest.mark.parametrize(("phrase", "most"), MOST.items())
def test_hard_turns_become_fewer(phrase: str, most: int) -> None:
    """The number of places of a phrase may only fall; a change that removes some lowers it."""
    places = places_of_phrases()[phrase]

    assert len(places) <= most, "\n".join(places)
