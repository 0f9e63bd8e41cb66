"""Edits of JSON text that leave everything else as it is: comments, order, indentation.

The text is read into nodes that know their places. An edit changes only the characters of one
member, so the rest of a file stays as its author wrote it.
"""

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ..._value import JSON, JSONObject

_SPACE: Final = re.compile(r"[ \t\r\n]*")
#: What may stand between tokens in JSON with comments, as VS Code and Zed read it.
_SPACE_OR_COMMENT: Final = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
#: Nested values; a file of settings has a few, and more would exhaust the stack.
MAX_DEPTH: Final = 100


class EditError(Exception):
    """The text cannot be read, or cannot be edited safely."""


class _JsonNode(NamedTuple):
    """A value in the text.

    Attributes:
        value: The decoded value.
        start: The index of its first character.
        end: The index behind its last character.
        members: The members of an object, in order; None for any other value.
    """

    value: JSON
    start: int
    end: int
    members: "list[_Member] | None" = None


class _Member(NamedTuple):
    """A member of an object; `comma` is the index of the comma behind it, or None."""

    name: str
    start: int
    node: _JsonNode
    comma: int | None


class _JsonReader:
    """Reads a text into nodes.

    Args:
        text: The text.
        comments: True for JSON with comments and commas before a closing bracket.
    """

    def __init__(self, text: str, *, comments: bool) -> None:
        self._text = text
        self._comments = comments
        self._gap = _SPACE_OR_COMMENT if comments else _SPACE

    def read(self) -> _JsonNode:
        node = self._value(self.skip(0), 0)
        end = self.skip(node.end)
        if end != len(self._text):
            raise self._error("unexpected text", end)
        return node

    def skip(self, at: int) -> int:
        found = self._gap.match(self._text, at)
        return found.end() if found else at

    def _error(self, what: str, at: int) -> EditError:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        hint = ""
        if not self._comments and self._text.startswith(("//", "/*"), at):
            hint = " (the host reads no comments in this file)"
        return EditError(f"line {line}, column {column}: {what}{hint}")

    def _value(self, at: int, depth: int) -> _JsonNode:
        if depth > MAX_DEPTH:
            raise self._error("nested too deep", at)
        start = self._text[at : at + 1]
        if start == "{":
            return self._object(at, depth)
        if start == "[":
            return self._array(at, depth)
        found = _STRING.match(self._text, at) or _SCALAR.match(self._text, at)
        text = found[0] if found else ""
        try:
            return _JsonNode(json.loads(text), at, at + len(text))
        except ValueError:
            raise self._error("a JSON value is missing here", at) from None

    def _object(self, at: int, depth: int) -> _JsonNode:
        members: list[_Member] = []
        value: JSONObject = {}
        here = self.skip(at + 1)
        while self._text[here : here + 1] != "}":
            if not _STRING.match(self._text, here):
                raise self._error("a name in quotes is missing here", here)
            name = self._value(here, depth)
            colon = self.skip(name.end)
            if self._text[colon : colon + 1] != ":":
                raise self._error("a colon is missing here", colon)
            node = self._value(self.skip(colon + 1), depth + 1)
            here, comma = self._next(node.end, "}")
            members.append(_Member(name.value, name.start, node, comma))
            value[name.value] = node.value
        return _JsonNode(value, at, here + 1, members)

    def _array(self, at: int, depth: int) -> _JsonNode:
        items: list[JSON] = []
        here = self.skip(at + 1)
        while self._text[here : here + 1] != "]":
            node = self._value(here, depth + 1)
            items.append(node.value)
            here, _ = self._next(node.end, "]")
        return _JsonNode(items, at, here + 1)

    def _next(self, at: int, close: str) -> tuple[int, int | None]:
        """Find the next item, or the end; and the comma before it."""
        here = self.skip(at)
        if self._text[here : here + 1] == close:
            return here, None
        if self._text[here : here + 1] != ",":
            raise self._error(f"a comma or {close} is missing here", here)
        comma, here = here, self.skip(here + 1)
        if self._text[here : here + 1] == close and not self._comments:
            raise self._error(f"a comma before {close}", comma)
        return here, comma


def read_json_text(text: str, *, comments: bool) -> JSON:
    """Decode a JSON text.

    Args:
        text: The text; empty text counts as an empty object.
        comments: True for JSON with comments and trailing commas.

    Raises:
        EditError: It is not valid; the message has the line and the column.
    """
    return _root(text, comments=comments).value


def _root(text: str, *, comments: bool) -> _JsonNode:
    # An empty file is what some programs create before the first setting.
    reader = _JsonReader(text, comments=comments)
    if reader.skip(0) == len(text):
        return _JsonNode({}, len(text), len(text))
    return reader.read()


def set_member(text: str, path: Sequence[str], value: JSON, *, comments: bool) -> str:
    """Set a member of an object, with the objects around it where they are missing.

    Args:
        text: The JSON text.
        path: The names of the objects from the outside, and of the member.
        value: The JSON value.
        comments: See `read_json_text`.

    Returns:
        The text with the member; nothing else is changed.

    Raises:
        EditError: The text is not valid, or something on the path is no object.
    """
    node = _root(text, comments=comments)
    line_end = "\r\n" if "\r\n" in text else "\n"
    if node.members is None and node.start == node.end:
        return text + _render(_wrap(path, value), "", "  ", line_end) + line_end
    found = _INDENT.search(text)
    unit = found[1] if found else "  "
    for depth, name in enumerate(path):
        if node.members is None:
            place = "/".join(path[:depth]) or "the whole"
            raise EditError(f"{place} is {json.dumps(node.value)[:40]}, not an object")
        # The last one of a name counts, as for every reader of JSON.
        member = next((each for each in reversed(node.members) if each.name == name), None)
        if member is None:
            wrapped = _wrap(path[depth + 1 :], value)
            return _insert(text, node, (name, wrapped), unit, line_end)
        node = member.node
    shown = _render(value, _indent_at(text, node.start), unit, line_end)
    return text[: node.start] + shown + text[node.end :]


def _wrap(path: Sequence[str], value: JSON) -> JSON:
    for name in reversed(path):
        value = {name: value}
    return value


def _render(value: JSON, margin: str, unit: str, line_end: str) -> str:
    text = json.dumps(value, indent=unit, ensure_ascii=False)
    # A lone surrogate has no bytes; in JSON its escape means the same.
    text = text.encode("utf-8", "backslashreplace").decode()
    return text.replace("\n", line_end + margin)


def _indent_at(text: str, at: int) -> str:
    """Return the white space at the beginning of the line of a character."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _insert(text: str, node: _JsonNode, member: tuple[str, JSON], unit: str, line_end: str) -> str:
    outer = _indent_at(text, node.start)
    members = node.members or []
    inner = _indent_at(text, members[-1].start) if members else ""
    # Members beside their bracket have its indentation, and the new one goes to a line of its own.
    inner = inner if len(inner) > len(outer) else outer + unit
    name, value = member
    added = f"{json.dumps(name, ensure_ascii=False)}: {_render(value, inner, unit, line_end)}"
    close = node.end - 1
    # Comments behind the last member stay where they are.
    tail = len(text[:close].rstrip())
    before, after = text[:tail], text[tail:]
    if members and members[-1].comma is None:
        end = members[-1].node.end
        before = f"{text[:end]},{text[end:tail]}"
    elif members:
        added += ","
    if "\n" not in text[tail:close]:
        after = f"{line_end}{outer}{text[close:]}"
    return f"{before}{line_end}{inner}{added}{after}"


def remove_member(text: str, path: Sequence[str], *, comments: bool) -> str:
    """Remove a member of an object; comments beside it stay.

    Args:
        text: The JSON text.
        path: The names of the objects from the outside, and of the member.
        comments: See `read_json_text`.

    Returns:
        The text without the member; unchanged if the member is missing.

    Raises:
        EditError: The text is not valid.
    """
    node = _root(text, comments=comments)
    members: list[_Member] = []
    at = 0
    for name in path:
        members = node.members or []
        at = next((i for i, each in reversed([*enumerate(members)]) if each.name == name), -1)
        if at < 0:
            return text
        node = members[at].node
    member = members[at]
    start, end = member.start, member.node.end
    if member.comma is not None:
        end = member.comma + 1
    elif at and (comma := members[at - 1].comma) is not None:
        # The last member goes with the comma before it, as no other one may follow it.
        text = f"{text[:comma]}{text[comma + 1 :]}"
        start, end = start - 1, end - 1
    begin = len(text[:start].rstrip(" \t"))
    rest = text[end:].lstrip(" \t")
    # A line that had only the member goes as a whole.
    if text[:begin].endswith("\n") and rest.startswith(("\n", "\r\n")):
        return text[:begin].removesuffix("\n").removesuffix("\r") + rest
    return text[:start] + rest
