"""YAML as all of its readers agree on it, for the frontmatter of skills.

A host compares its own reading of the frontmatter with ours, field by field. So everything that
YAML 1.1 and YAML 1.2 read differently (`yes`, `012`, a bare date) is refused, with a correction; so
are anchors, aliases and tags, which hosts need not support.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import yaml

from .._value import JSONObject

# Line breaks in YAML 1.1 and ordinary characters in YAML 1.2; a byte order mark inside of text.
_STRANGE: Final = re.compile("[\x85\u2028\u2029\ufeff]")
_WORDS: Final = {"": None, "null": None, "true": True, "false": False}
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,14}")
# Booleans of YAML 1.1, in small letters.
_TRUE: Final = ("true", "yes", "on", "y")
_FALSE: Final = ("false", "no", "off", "n")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FLOAT: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}")
# Plain scalars that some revision of YAML, or some reader of it, does not take for a string.
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
# Texts of PyYAML for the two most frequent mistakes, which say nothing to authors.
_COLON_IN_TEXT: Final = "mapping values are not allowed here"
_NO_COLON: Final = "could not find expected ':'"


#: Nesting of frontmatter; real ones have two levels.
DEEPEST: Final = 100


class BadYaml(ValueError):
    """Text that is no such YAML.

    Attributes:
        line: The line, counted from 1.
    """

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


def read_yaml(text: str) -> tuple[JSONObject, dict[str, int]]:
    """Read a YAML mapping.

    Returns:
        The mapping as JSON values, and the line of each of its keys, counted from 1.

    Raises:
        BadYaml: The text is no mapping, or readers of YAML could disagree on it.
    """
    root = compose(text)
    return _value_of(root), {key.value: _line(key) for key, _ in root.value}


def compose(text: str) -> yaml.MappingNode:
    """Read a YAML mapping as nodes, whose plain scalars have no value yet.

    Raises:
        BadYaml: The text is no mapping, or has an anchor, an alias, a tag or a character that not
            all readers support.
    """
    for number, content in enumerate(text.split("\n"), 1):
        if found := _STRANGE.search(content):
            raise BadYaml(f"has the character {found[0]!a}; use spaces and text", number)
    try:
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            # `compose` recurses, and takes quadratic time for deep nesting.
            if depth > DEEPEST:
                raise BadYaml(f"nests deeper than {DEEPEST} levels", _line(event))
            if getattr(event, "anchor", None) or getattr(event, "tag", None):
                raise BadYaml(
                    "has an anchor, an alias or a tag; write the value itself", _line(event)
                )
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise _explain(error) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadYaml(
            f"has the character {chr(error.character)!a}; use spaces and text", line
        ) from None
    if root is None:
        return yaml.MappingNode("", [])
    if not isinstance(root, yaml.MappingNode):
        raise BadYaml("expected `key: value`", _line(root))
    return root


def _explain(error: yaml.MarkedYAMLError) -> BadYaml:
    mark: Any = error.problem_mark
    text = f"is not YAML: {error.problem}"
    if error.problem == _COLON_IN_TEXT:
        text = "a text with a colon and a space in it must stand in quotes"
    elif error.problem == _NO_COLON:
        # The problem is seen where the next line begins; the context is the key.
        text, mark = "expected `key: value`", error.context_mark
    return BadYaml(text, mark.line + 1)


def _line(marked: Any) -> int:
    """Give the line of a node or an event, counted from 1."""
    return int(marked.start_mark.line) + 1


def _value_of(node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value_of(each) for each in node.value]
    found: JSONObject = {}
    for key, value in node.value:
        name = _value_of(key)
        if not isinstance(name, str):
            raise BadYaml(f"the key {name} is no text; write it in quotes", _line(key))
        if name in found:
            raise BadYaml(f"the key {name!r} stands there twice", _line(key))
        found[name] = _value_of(value)
    return found


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadYaml("has an escape that is no character", _line(node)) from None
    if node.style is not None:  # in quotes, or a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _DOUBTFUL.fullmatch(text):
        raise BadYaml(
            f"not every reader takes {text} for the same; write it in quotes", _line(node)
        )
    return text


# The comparison of a file with the entry of another server, whose reader of YAML is unknown.


def find_difference(node: yaml.Node, value: object, path: str = "") -> str | None:
    """Find a difference between YAML and the JSON value that a peer read from it.

    A plain scalar that readers take for different values agrees with each of these.

    Args:
        node: The YAML.
        value: The JSON value.
        path: The place of both, for the answer: `metadata.version`.

    Returns:
        The place of the first difference; None if the two agree.
    """
    if isinstance(node, yaml.MappingNode) and isinstance(value, dict):
        # Keys are strings in JSON, so every reader writes `1: x` as "1".
        plain = {key.value: each for key, each in node.value if isinstance(key, yaml.ScalarNode)}
        if len(plain) < len(node.value) or plain.keys() != value.keys():
            return path or "the fields"
        pairs = ((plain[key], value[key], f"{path}.{key}" if path else key) for key in plain)
    elif isinstance(node, yaml.SequenceNode) and isinstance(value, list):
        if len(node.value) != len(value):
            return path
        both = enumerate(zip(node.value, value, strict=True))
        pairs = ((ours, theirs, f"{path}[{at}]") for at, (ours, theirs) in both)
    else:
        agrees = isinstance(node, yaml.ScalarNode) and _may_be(node, value)
        return None if agrees else path or "the fields"
    return next(filter(None, (find_difference(*each) for each in pairs)), None)


def _may_be(node: yaml.ScalarNode, value: object) -> bool:
    """Tell whether some reader takes a scalar for a value."""
    text: str = node.value
    if node.style is not None:  # in quotes, or a block
        return bool(value == text)
    if isinstance(value, bool):
        return text.lower() in (_TRUE if value else _FALSE)
    if value is None:
        return text.lower() in ("", "~", "null")
    if isinstance(value, str):
        return value == text or _instant(value) == (_instant(text) or 0)
    return isinstance(value, int | float) and any(value == each for each in _numbers(text))


def _numbers(text: str) -> Iterator[float]:
    """Read a plain scalar as the numbers that it is to YAML 1.1, to YAML 1.2, and in decimal."""
    for read in (yaml.safe_load, float, partial(int, base=0)):
        with suppress(ValueError, OverflowError, yaml.YAMLError):
            found: object = read(text)
            if isinstance(found, int | float) and not isinstance(found, bool):
                yield found


def _instant(text: str) -> datetime | None:
    """Read a date or a time: readers of YAML 1.1 write dates again as ISO 8601 times."""
    if not _DATE.match(text):
        return None
    with suppress(ValueError):
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None
