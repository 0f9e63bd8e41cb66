"""The frontmatter of a `SKILL.md`, read and checked (agentskills.io, "Specification")."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

from .._util import got
from .._value import JSONObject

#: Agent Skills, "`name` field": no hyphen at either end, no two in a row.
_NAME: Final = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
#: Characters of `description` and of `compatibility` (Agent Skills, "Frontmatter").
_DESCRIPTION: Final = 1024
_COMPATIBILITY: Final = 500
#: Keys of `metadata` that belong to extensions of the protocol; there are none yet (SEP-2640).
_RESERVED: Final = "io.modelcontextprotocol/"
#: Characters of frontmatter that a client compares; real ones have a few hundred.
MAX_FRONTMATTER: Final = 65_536


class FrontmatterFault(NamedTuple):
    """One mistake in a `SKILL.md`.

    Attributes:
        text: The mistake and its correction.
        line: The line, counted from 1.
    """

    text: str
    line: int


def read_frontmatter(text: str, folder: str) -> tuple[JSONObject, list[FrontmatterFault]]:
    """Read the frontmatter of a `SKILL.md`.

    Args:
        text: The whole file.
        folder: The name of the folder of the skill; `name` must be equal to it.

    Returns:
        The frontmatter as JSON values, and the mistakes in it. The frontmatter is complete if there
        are none.
    """
    block = _cut(text)
    if isinstance(block, FrontmatterFault):
        return {}, [block]
    reader = _yaml_reader()
    try:
        values, places = reader.read_yaml(block)
    except reader.BadYaml as bad:
        return {}, [FrontmatterFault(str(bad), bad.line)]
    return values, [
        FrontmatterFault(f"{key}: {text}", places.get(key, 1))
        for key, text in _check(values, folder)
    ]


def compare_frontmatter(text: str, frontmatter: JSONObject) -> str | None:
    """Compare the frontmatter of a `SKILL.md` with that of the skill's entry ("Frontmatter").

    Args:
        text: The whole file.
        frontmatter: The frontmatter in the entry, as a server sent it.

    Returns:
        A text about the first difference, or about what is no frontmatter; None if the two agree.
    """
    block = _cut(text)
    if isinstance(block, FrontmatterFault):
        return f"the file {block.text}"
    # Reading YAML takes a second for each megabyte.
    if len(block) > MAX_FRONTMATTER:
        return f"the frontmatter has more than {MAX_FRONTMATTER} characters"
    reader = _yaml_reader()
    try:
        place = reader.find_difference(reader.compose(block), frontmatter)
    except reader.BadYaml as bad:
        return f"line {bad.line} of the file {bad}"
    return place and f"{place} in the file differs from the entry"


def _cut(text: str) -> str | FrontmatterFault:
    """Cut the frontmatter out of a file: its YAML, or the mistake."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines[0] != "---":
        return FrontmatterFault(
            "must begin with a line `---`, then name and description, then `---`", 1
        )
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip(" ") == "---"), None)
    if end is None:
        return FrontmatterFault("has no line `---` that ends its frontmatter", 1)
    # The empty first line replaces `---`, so that the lines of YAML are the lines of the file.
    return "\n".join(["", *lines[1:end], ""])


def _yaml_reader() -> ModuleType:
    try:
        # An extra: it loads with the first skill.
        return import_module("._yaml", __package__)
    except ImportError as error:
        raise ImportError("reading skills needs PyYAML: pip install 'noizu-mcp[skills]'") from error


def _check(values: Mapping[str, object], folder: str) -> Iterator[tuple[str, str]]:
    """Find the mistakes in the fields: pairs of a key and a text."""
    for key in ("name", "description"):
        if key not in values:
            yield key, "is missing"
    for key, check in _CHECKS.items():
        if key in values:
            yield from ((key, text) for text in check(values[key]))
    name = values.get("name", folder)
    if isinstance(name, str) and _NAME.fullmatch(name) and name != folder:
        yield "name", f"must be that of the folder, {folder!r}, got {name!r}"


def _check_name(value: object) -> Iterator[str]:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        yield (
            "must be 1 to 64 characters of a-z 0-9 and -, with no - at an end and none behind"
            f" another, {got(value)}"
        )


def _text(limit: float = math.inf) -> Callable[[object], Iterator[str]]:
    def check(value: object) -> Iterator[str]:
        if not isinstance(value, str) or not value.strip():
            yield f"must be a text that is not empty, {got(value)}"
        elif len(value) > limit:
            yield f"must have at most {limit} characters, got {len(value)}"

    return check


def _check_metadata(value: object) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"must be a mapping, {got(value)}"
        return
    for key in value:
        if key.startswith(_RESERVED):
            yield f"the key {key!r} is reserved by the protocol; use a prefix of your own"


def _check_tools(value: object) -> Iterator[str]:
    listed = isinstance(value, list) and all(isinstance(each, str) for each in value)
    if not isinstance(value, str) and not listed:
        yield f"must be a text or a list of texts, {got(value)}"


_CHECKS: Final[Mapping[str, Callable[[object], Iterator[str]]]] = {
    "name": _check_name,
    "description": _text(_DESCRIPTION),
    "license": _text(),
    "compatibility": _text(_COMPATIBILITY),
    "metadata": _check_metadata,
    "allowed-tools": _check_tools,
}
