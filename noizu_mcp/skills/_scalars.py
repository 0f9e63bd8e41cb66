"""Scalars of the part of YAML that frontmatter is written in; see `_skill_yaml.py`."""

import json
import re
from typing import Any, Final, NoReturn

# YAML 1.2, 5.1: not printable, or a line break to some readers. A tab means too many things.
_STRANGE: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_DOUBLE: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_SINGLE: Final = re.compile(r"'(?:[^']|'')*'")
_COMMENT: Final = re.compile(r" +#")
_BLOCK: Final = re.compile(r"(?P<style>[|>])(?P<chomp>[+-]?)(?: +#.*)?")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,14}")
_FLOAT: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}")
_WORDS: Final = {"null": None, "true": True, "false": False}
# What some revision of YAML, or some reader of it, takes for something else than a text.
_DOUBTFUL: Final = re.compile(
    r"""(?isx)
    y | n | yes | no | on | off | true | false | null | ~ | = | <<
    | [-+]? \.? [0-9] [0-9_]* \.? [0-9_]* (?: e [-+]? [0-9]* )?  # numbers, also with _ and e
    | [-+]? 0 [xob] [0-9a-f_]*
    | [-+]? [0-9] [0-9_]* (?: : [0-9]{1,2} )+ (?: \. [0-9_]* )?    # base 60: 12:30
    | [0-9]{4} - [0-9]{1,2} - [0-9]{1,2} .*                        # dates
    | [-+]? \. (?: inf | nan )
    """
)
_INDICATORS: Final = ",[]{}#&*!|>'\"%@`?:"


class YamlFault(ValueError):
    """Text that is no such YAML.

    Attributes:
        text: What is wrong and what to write instead.
        line: The line, counted from 1.
    """

    def __init__(self, text: str, line: int) -> None:
        self.text = text
        self.line = line
        super().__init__(f"line {line}: {text}")


class Scalars:
    """Lines with scalars in them; `at` is the next line, the one of a scalar has been taken.

    Args:
        lines: The lines.

    Raises:
        YamlFault: From every method: the text cannot be read, or not in one way only.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        for index, line in enumerate(lines):
            if found := _STRANGE.search(line):
                self.fail(f"has the character {found[0]!a}; use spaces and text", index)

    def fail(self, text: str, index: int | None = None) -> NoReturn:
        """Say what is wrong at a line; the next one by default."""
        raise YamlFault(text, (self.at if index is None else index) + 1)

    def scalar(self, text: str, indent: int) -> Any:
        if text[0] in "'\"":
            return self.last(*self.quoted(text))
        if text[0] == "[":
            return self.last(*self.flow(text))
        return self.plain(text, indent)

    def last(self, value: Any, rest: str) -> Any:
        """Check that nothing but a comment follows on the line."""
        if rest.strip(" ") and not _COMMENT.match(rest):
            self.fail(f"did not expect {rest.strip(' ')!r} behind the value", self.at - 1)
        return value

    def quoted(self, text: str) -> tuple[str, str]:
        """Read a text in quotes, and return what follows it."""
        match = (_DOUBLE if text[0] == '"' else _SINGLE).match(text)
        if match is None:
            self.fail(
                "the quotes are not closed on this line; for a long text write `>-`", self.at - 1
            )
        inner, rest = match[0], text[match.end() :]
        if inner[0] == "'":
            return inner[1:-1].replace("''", "'"), rest
        try:
            value: str = json.loads(inner)
            value.encode()
        except ValueError:
            self.fail("has an escape that JSON does not have", self.at - 1)
        return value, rest

    def flow(self, text: str) -> tuple[list[Any], str]:
        """Read `[a, b]` on one line, and return what follows it."""
        found: list[Any] = []
        rest = text[1:].lstrip(" ")
        while not rest.startswith("]"):
            if found:
                if not rest.startswith(","):
                    self.fail("expected `,` or `]` on this line", self.at - 1)
                rest = rest[1:].lstrip(" ")
            value, rest = self.flow_item(rest)
            found.append(value)
            rest = rest.lstrip(" ")
        return found, rest[1:]

    def flow_item(self, text: str) -> tuple[Any, str]:
        if text[:1] in ("'", '"'):
            return self.quoted(text)
        end = next((at for at, char in enumerate(text) if char in ",[]{}"), len(text))
        item = text[:end].strip(" ")
        if not item or _COMMENT.search(text[:end]):
            self.fail("a list in brackets needs values, and stands on one line", self.at - 1)
        self.check_plain(item, self.at - 1, first=True)
        return self.resolve(item, self.at - 1), text[end:]

    def plain(self, text: str, indent: int) -> Any:
        """Read a text without quotes, and the lines that go on with it."""
        begun = self.at - 1
        piece, *comment = _COMMENT.split(text, maxsplit=1)
        self.check_plain(piece, begun, first=True)
        pieces = [piece]
        while not comment:
            blank = self.blank_lines()
            line = self.lines[self.at] if self.at < len(self.lines) else ""
            text = line.strip(" ")
            if indent_of(line) <= indent or text.startswith("#"):
                break
            piece, *comment = _COMMENT.split(text, maxsplit=1)
            self.check_plain(piece, self.at, first=False)
            pieces += [*[""] * blank, piece]
            self.at += 1
        return self.resolve(_fold(pieces), begun)

    def blank_lines(self) -> int:
        start = self.at
        while self.at < len(self.lines) and not self.lines[self.at].strip(" "):
            self.at += 1
        return self.at - start

    def check_plain(self, text: str, index: int, *, first: bool) -> None:
        bare_dash = text == "-" or text.startswith("- ")
        if first and (text[0] in _INDICATORS or bare_dash):
            self.fail(f"a text that begins with {text[0]!r} must stand in quotes", index)
        if ": " in text or text.endswith(":"):
            self.fail("a text with a colon and a space in it must stand in quotes", index)

    def resolve(self, text: str, index: int | None = None) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if _DOUBTFUL.fullmatch(text):
            self.fail(f"not every reader takes {text} for the same; write it in quotes", index)
        return text

    def block(self, header: str, indent: int) -> str:
        """Read a text below `|` or `>`."""
        match = _BLOCK.fullmatch(header)
        if match is None:
            self.fail(f"expected `|`, `>`, `|-` or `>-`, got {header!r}", self.at - 1)
        begun, lines = self.at, self.block_lines(indent)
        if match["style"] == ">":
            for index, line in enumerate(lines, begun):
                if line.startswith(" "):
                    self.fail("is indented further, inside of `>`; write `|`", index)
        kept = len(lines)
        while kept and not lines[kept - 1]:
            kept -= 1
        text = "\n".join(lines[:kept]) if match["style"] == "|" else _fold(lines[:kept])
        ends = {"-": 0, "": 1, "+": 1 + len(lines) - kept}[match["chomp"]]
        # Where there is no text, nothing ends it; `+` keeps the empty lines.
        return text + "\n" * (ends if text else ends - 1)

    def block_lines(self, indent: int) -> list[str]:
        """Take the lines of a block, without its indentation."""
        begun, inner = self.at, 0
        while self.at < len(self.lines):
            line = self.lines[self.at]
            own = indent_of(line)
            if line.strip(" "):
                if own <= max(indent, inner - 1):
                    break
                inner = inner or own
            self.at += 1
        found = self.lines[begun : self.at]
        for index, line in enumerate(found, begun):
            if len(line) > inner and not line.strip(" "):
                self.fail("an empty line has spaces that would count; take them out", index)
        return [line[inner:] for line in found]


def indent_of(line: str) -> int:
    """Count the spaces that a line begins with."""
    return len(line) - len(line.lstrip(" "))


def _fold(lines: list[str]) -> str:
    """Join lines: one break is a space, each empty line a break."""
    text, breaks = "", 0
    for index, line in enumerate(lines):
        if not line:
            breaks += 1
            continue
        text += "\n" * breaks if breaks or not index else " "
        text += line
        breaks = 0
    return text
