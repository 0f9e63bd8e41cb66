"""Docstrings: the first paragraph, and the descriptions of parameters.

Two styles are read: Google (`Args:`, `Attributes:`, …) and NumPy (`Parameters` underlined).
"""

import re
from collections.abc import Iterator, Sequence
from inspect import cleandoc
from itertools import takewhile

_BLANK = re.compile(r"\n\s*\n")
_GOOGLE = frozenset(
    {"Args:", "Arguments:", "Parameters:", "Params:", "Attributes:", "Keyword Args:"}
)
_NUMPY = frozenset({"Parameters", "Other Parameters", "Attributes"})
# `name (int): text`, `*names: text`: the name, then the text after the colon.
_GOOGLE_ENTRY = r"(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)"
# `name : int`, `one, two : int`: the names; the text stands below.
_NUMPY_ENTRY = r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?()"


def docstring_summary(text: str | None) -> str | None:
    """Return the first paragraph of a docstring as one line; None without one."""
    if not text:
        return None
    paragraph = _BLANK.split(cleandoc(text).strip())[0]
    return " ".join(paragraph.split()) or None


def docstring_parameters(text: str | None) -> dict[str, str]:
    """Return the description of each parameter or attribute in a docstring, each as one line.

    Args:
        text: A docstring with a Google or NumPy section, or one without, or None.
    """
    if not text:
        return {}
    lines = cleandoc(text).expandtabs().split("\n")
    found: dict[str, str] = {}
    for index, line in enumerate(lines):
        rest = lines[index + 1 :]
        if line in _GOOGLE:
            section = list(takewhile(lambda each: each[:1] in ("", " "), rest))
            # Names have the first indentation.
            depth = min((_indent(each) for each in section if each.strip()), default=0)
            found.update(_entries(section, depth, _GOOGLE_ENTRY))
        elif line in _NUMPY and _is_underlined(lines, index):
            # The section ends before the next title.
            ends = (n for n in range(index + 2, len(lines)) if _is_underlined(lines, n))
            section = lines[index + 2 : next(ends, len(lines))]
            found.update(_entries(section, 0, _NUMPY_ENTRY))
    return found


def _entries(lines: Sequence[str], depth: int, head: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each entry: a line at a depth, and the deeper ones below it."""
    entries: list[list[str]] = []
    for line in filter(str.strip, lines):
        if _indent(line) > depth and entries:
            entries[-1].append(line.strip())
        else:
            entries.append([line.strip()])
    for first, *body in entries:
        match = re.fullmatch(head, first)
        if match is not None:
            text = " ".join(part for part in (match[2], *body) if part)
            if text:
                yield from ((name.strip().lstrip("*"), text) for name in match[1].split(","))


def _is_underlined(lines: Sequence[str], index: int) -> bool:
    rule = lines[index + 1] if index + 1 < len(lines) else ""
    return len(rule) > 2 and set(rule) == {"-"}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
