"""The part of YAML that frontmatter is written in, read so that every reader agrees.

Mappings by indentation, lists of scalars, plain and quoted scalars, block scalars. Whatever else
YAML has, and whatever YAML 1.1 and 1.2 read differently (`yes`, `012`, a bare date), is refused
with what to write instead: a host compares its own reading with ours, field by field. A library
for all of YAML would be a dependency for a dozen lines of text, and read more than hosts do.
"""

import re
from typing import Any, Final, NamedTuple

from ._scalars import Scalars, indent_of

_KEY: Final = re.compile(
    r"""(?P<key>[A-Za-z0-9_][A-Za-z0-9_./-]*|"[^"\\]*"|'[^']*'):(?: +(?P<rest>.*))?"""
)
#: Spaces before a key: bounds how deep mappings nest.
_DEEPEST: Final = 100


class _Line(NamedTuple):
    """A line that says something, without its indentation and what trails it."""

    indent: int
    text: str


def read_yaml(lines: list[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """Read a mapping.

    Args:
        lines: The lines, as decoded from UTF-8, without what ends them.

    Returns:
        The mapping as JSON values, and the line of each of its keys, counted from 1.

    Raises:
        YamlFault: It is none, or it is written in a way that is not read here.
    """
    reader = _Reader(lines)
    return reader.mapping(0), reader.places


class _Reader(Scalars):
    """Reads lines from the first to the last."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines)
        self.places: dict[str, int] = {}

    def peek(self) -> _Line | None:
        """Look at the next line that says something; go past those that do not."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            text = line.strip(" ")
            if text and not text.startswith("#"):
                return _Line(indent_of(line), text)
            self.at += 1
        return None

    def mapping(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (line := self.peek()) is not None and line.indent == indent:
            key, rest = self.key(line.text)
            if key in found:
                self.fail(f"the key {key!r} stands there twice")
            if indent == 0:
                self.places[key] = self.at + 1
            self.at += 1
            found[key] = self.value(rest, indent)
        if line is not None and line.indent > indent:
            self.fail("is indented further than what it belongs to")
        return found

    def key(self, text: str) -> tuple[str, str]:
        match = _KEY.fullmatch(text)
        if match is None:
            self.fail("expected `key: value`")
        key = match["key"]
        if key[0] in "'\"":
            key = key[1:-1]
        elif not isinstance(self.resolve(key), str):
            self.fail(f"the key {key} is no text; write it in quotes")
        return key, (match["rest"] or "").strip(" ")

    def value(self, rest: str, indent: int) -> Any:
        """Read what stands behind a key, on its line or on those below it."""
        if rest and not rest.startswith("#"):
            return self.block(rest, indent) if rest[0] in "|>" else self.scalar(rest, indent)
        begun, line = self.at, self.peek()
        if line is None or line.indent < indent:
            return None
        if line.text == "-" or line.text.startswith("- "):
            return self.sequence(line.indent)
        if line.indent == indent:
            return None
        if _KEY.fullmatch(line.text):
            if line.indent > _DEEPEST:
                self.fail(f"is indented by more than {_DEEPEST}")
            return self.mapping(line.indent)
        if rest or any(map(str.strip, self.lines[begun : self.at])):
            self.fail("a comment stands between the key and its text; take it out", begun - 1)
        self.at += 1
        return self.scalar(line.text, indent)

    def sequence(self, indent: int) -> list[Any]:
        found = []
        while (line := self.peek()) is not None and line.indent == indent:
            if line.text != "-" and not line.text.startswith("- "):
                break
            item = line.text[1:].strip(" ")
            if not item or item.startswith("#"):
                self.fail("an item of a list needs a value on its line")
            self.at += 1
            found.append(self.scalar(item, indent))
        return found
