"""Docstrings → what they say: the first paragraph, and the section that describes parameters.

Two styles are read: Google (`Args:`, `Attributes:`, …) and NumPy (`Parameters` underlined).
"""

import re
from collections.abc import Iterator, Sequence
from inspect import cleandoc

_GOOGLE = frozenset(
    {"Args:", "Arguments:", "Parameters:", "Params:", "Attributes:", "Keyword Args:"}
)
_NUMPY = frozenset({"Parameters", "Other Parameters", "Attributes"})
# `name (int): text`, `*names: text`, `name : int`: the name, then the text after the colon.
_BLANK = re.compile(r"\n\s*\n")
_GOOGLE_ENTRY = re.compile(r"(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")


def docstring_summary(text: str | None) -> str | None:
    """Return the first paragraph of a docstring as one line, or None if there is none."""
    if not text:
        return None
    paragraph = _BLANK.split(cleandoc(text).strip())[0]
    return " ".join(paragraph.split()) or None


def docstring_parameters(text: str | None) -> dict[str, str]:
    """Return what a docstring says about each parameter or attribute, each as one line.

    Args:
        text: A docstring with a Google or NumPy section, or one without, or None.
    """
    if not text:
        return {}
    lines = cleandoc(text).expandtabs().split("\n")
    found: dict[str, str] = {}
    for index, line in enumerate(lines):
        if line in _GOOGLE:
            found.update(_google(lines[index + 1 :]))
        elif line in _NUMPY and lines[index + 1 : index + 2] and _is_rule(lines[index + 1]):
            found.update(_numpy(lines[index + 2 :]))
    return found


def _google(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the entries of a section: indented lines, the first indentation is that of names."""
    section: list[str] = []
    for line in lines:
        if line and not line.startswith(" "):
            break
        section.append(line)
    depth = min((_indent(line) for line in section if line.strip()), default=0)
    for head, body in _entries(section, depth):
        match = _GOOGLE_ENTRY.fullmatch(head)
        if match is not None:
            yield from _named(match[1], [match[2], *body])


def _numpy(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the entries of a section: names stand at the margin, texts are indented."""
    section: list[str] = []
    for index, line in enumerate(lines):
        if lines[index + 1 : index + 2] and _is_rule(lines[index + 1]):
            break
        section.append(line)
    for head, body in _entries(section, 0):
        match = _NUMPY_ENTRY.fullmatch(head)
        if match is not None:
            yield from _named(match[1], body)


def _entries(lines: Sequence[str], depth: int) -> Iterator[tuple[str, list[str]]]:
    entry: tuple[str, list[str]] | None = None
    for line in filter(str.strip, lines):
        if _indent(line) > depth and entry is not None:
            entry[1].append(line.strip())
        else:
            if entry is not None:
                yield entry
            entry = (line.strip(), [])
    if entry is not None:
        yield entry


def _named(names: str, body: Sequence[str]) -> Iterator[tuple[str, str]]:
    text = " ".join(part for part in body if part)
    for name in names.split(","):
        if text:
            yield name.strip().lstrip("*"), text


def _is_rule(line: str) -> bool:
    return len(line) > 2 and set(line) == {"-"}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
