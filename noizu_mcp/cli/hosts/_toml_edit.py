"""Edits of TOML text: one table is added, replaced or removed, and all else stays as it is.

The standard library reads TOML and does not write it. So a table is found by its header, and each
edit is read again and compared: where text that looks like a header misled it, nothing is written.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Final

from ..._value import JSON, JSONObject
from ._json_edit import EditError

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
#: Only this ends a line of TOML; Python knows more letters that end one.
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_HEADER: Final = re.compile(r"[ \t]*\[")


def read_toml_text(text: str) -> JSONObject:
    """Decode a TOML text.

    Raises:
        EditError: It is not valid.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EditError(str(error)) from None


def set_table(text: str, path: Sequence[str], table: Mapping[str, JSON]) -> str:
    """Set a table.

    Args:
        text: The TOML text.
        path: The names of the tables from the outside, and of the table.
        table: Its values: texts, lists of texts, mappings of texts.

    Returns:
        The text with the table at its end, or in the place of the one before.

    Raises:
        EditError: The text is not valid, or has the tables in a form that cannot be extended.
    """
    lines = [f"{_key(name)} = {_value(value)}" for name, value in table.items()]
    added = "\n".join((f"[{'.'.join(map(_key, path))}]", *lines, ""))
    before, after = _cut(text, path)
    if "\r\n" in text:
        added = added.replace("\n", "\r\n")
    if after is None:
        line_end = "\r\n" if "\r\n" in text else "\n"
        gap = line_end if before else ""
        ended = "" if not before or before.endswith("\n") else line_end
        edited = f"{before}{ended}{gap}{added}"
    else:
        edited = f"{before}{added}{after}"
    return _checked(text, edited, path, table)


def remove_table(text: str, path: Sequence[str]) -> str:
    """Remove a table; see `set_table`. A missing table changes nothing."""
    if _without(read_toml_text(text), path) is None:
        return text
    before, after = _cut(text, path)
    rest = (after or "").lstrip("\r\n")
    # The empty line before a table at the end came with it; see `set_table`.
    gap = re.search(r"(?<=\n)\r?\n\Z", before)
    edited = before[: gap.start()] if gap and not rest else before + rest
    return _checked(text, edited, path, None)


def _cut(text: str, path: Sequence[str]) -> tuple[str, str | None]:
    """Divide a text at a table and the tables inside of it; None behind it if it is not there."""
    lines = _LINE.findall(text)
    ours = [number for number, line in enumerate(lines) if _names(line)[: len(path)] == [*path]]
    if not ours:
        return text, None
    last = next((n for n in range(ours[-1] + 1, len(lines)) if _HEADER.match(lines[n])), len(lines))
    # Comments and empty lines before the next header belong to that one.
    while last < len(lines) and (not lines[last - 1].strip() or lines[last - 1].lstrip()[0] == "#"):
        last -= 1
    return "".join(lines[: ours[0]]), "".join(lines[last:])


def _names(line: str) -> list[str]:
    """Read the names of a header of a table; empty for any other line."""
    if not _HEADER.match(line):
        return []
    try:
        found: JSON = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return []
    names = []
    while isinstance(found, dict) and len(found) == 1:
        [(name, found)] = found.items()
        names.append(name)
    return names


def _checked(text: str, edited: str, path: Sequence[str], table: Mapping[str, JSON] | None) -> str:
    """Compare the edited text with what was meant.

    Raises:
        EditError: Something else has changed.
    """
    expected = read_toml_text(text)
    rest = _without(expected, path)
    if table is None:
        expected = rest or {}
    else:
        inner = expected
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = dict(table)
    try:
        found: JSON = tomllib.loads(edited)
    except tomllib.TOMLDecodeError:
        found = None
    # A table that held only the removed one vanishes with it.
    if found != expected and (table is not None or _pruned(found) != _pruned(expected)):
        raise EditError(f"{'.'.join(path)} is written in a form that only you can change")
    return edited


def _pruned(value: JSON) -> JSON:
    if not isinstance(value, dict):
        return value
    inner = {name: _pruned(each) for name, each in value.items()}
    return {name: each for name, each in inner.items() if each != {}}


def _without(tables: JSONObject, path: Sequence[str]) -> JSONObject | None:
    """Copy tables without one of them; None if it is not there."""
    name, *rest = path
    inner = tables.get(name)
    if inner is None:
        return None
    others = {key: value for key, value in tables.items() if key != name}
    if not rest:
        return others
    left = _without(inner, rest) if isinstance(inner, dict) else None
    return None if left is None else {**others, name: left}


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    # JSON and TOML have the same escapes, but TOML also escapes this character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: JSON) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return _text(value)
