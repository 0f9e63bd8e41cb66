"""Regular expressions of ECMA-262, served by Python's `re`: what JSON Schema asks of `pattern`."""

import re
from collections.abc import Callable

from ._regex_bounds import check_bounded
from ._regex_parse import Chars, Choice, Edge, Look, Node, Repeat, Sequence, parse
from ._regex_sets import Ranges


def translate(pattern: str) -> str:
    r"""Return a pattern as Python writes it.

    Every class is spelled out, because `\d`, `\w`, `\s` and `.` mean other sets in Python, and `$`
    would match before a line end.

    Raises:
        PatternRefusedError: It is invalid, not served here, or can take for ever.
    """
    node = parse(pattern)
    check_bounded(node)
    return _source(node)


def match_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells if a pattern is found in a text.

    Raises:
        PatternRefusedError: It is invalid, not served here, or can take for ever.
    """
    search = re.compile(translate(pattern)).search
    return lambda text: search(text) is not None


def _source(node: Node) -> str:
    if isinstance(node, Chars):
        return _set(node.ranges)
    if isinstance(node, Edge):
        return node.source
    if isinstance(node, Look):
        return f"{node.source}{_source(node.body)})"
    if isinstance(node, Sequence):
        return "".join(map(_source, node.parts))
    if isinstance(node, Choice):
        return f"(?:{'|'.join(map(_source, node.options))})"
    return _repeated(node)


def _repeated(node: Repeat) -> str:
    body = _source(node.body)
    part = body if isinstance(node.body, Chars) else f"(?:{body})"
    bounds = f"{{{node.least},{'' if node.most is None else node.most}}}"
    return f"{part}{bounds}{'?' if node.lazy else ''}"


def _set(ranges: Ranges) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _code(ranges[0][0])
    # No character at all, such as the complement of everything: never matches.
    return f"[{''.join(map(_range, ranges))}]" if ranges else r"(?!)"


def _range(pair: tuple[int, int]) -> str:
    low, high = pair
    return _code(low) if low == high else f"{_code(low)}-{_code(high)}"


def _code(code: int) -> str:
    character = chr(code)
    # Letters and digits stand for themselves; anything else could mean something to `re`.
    return character if character.isascii() and character.isalnum() else f"\\U{code:08x}"
