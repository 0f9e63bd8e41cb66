"""Whether a schema is a valid 2020-12 schema, told by the tables of `_keywords`."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin

from ._fault import Fault
from ._keywords import RULES, Path, is_number, walk
from ._nearest import nearest
from ._not_json import is_encodable
from ._refs import Refs, is_local, names
from ._violation import show

# The metaschemas: the native engine has them built in.
_STANDARD = ("https://json-schema.org/draft", "http://json-schema.org/draft")

Compile = Callable[[str], object]


def schema_faults(
    schema: Any, documents: Mapping[str, Any], compile_pattern: Compile
) -> list[Fault]:
    """Return everything that keeps a 2020-12 schema from being compiled.

    Args:
        schema: The schema, not nested too deep.
        documents: Other documents that it may refer to, by URI.
        compile_pattern: Compiles a regular expression; raises ValueError for a bad one.
    """
    return (
        data_faults(schema)
        or structure_faults(schema)
        or [
            *pattern_faults(schema, compile_pattern),
            *ref_faults(schema, documents),
            *anchor_faults(schema),
        ]
    )


def structure_faults(schema: Any) -> list[Fault]:
    """Return every keyword whose value is not what the dialect asks for."""
    found: list[Fault] = []
    for path, node in walk(schema):
        found.extend(_object_faults(path, node))
    return found


def _object_faults(path: Path, node: Mapping[Any, Any]) -> list[Fault]:
    found: list[Fault] = []
    for keyword, value in node.items():
        if not isinstance(keyword, str):
            found.append(Fault(path, f"a keyword is a string, not {show(keyword)}"))
        elif keyword in RULES and not RULES[keyword].holds(value):
            wanted = RULES[keyword].wanted
            found.append(Fault((*path, keyword), f"takes {wanted}, not {show(value)}"))
    return found


def data_faults(schema: Any) -> list[Fault]:
    """Return what JSON cannot express anywhere in a schema: it could not be published."""
    waiting: list[tuple[Path, Any]] = [((), schema)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            waiting.extend(((*path, str(name)), item) for name, item in node.items())
        elif isinstance(node, list):
            waiting.extend(((*path, index), item) for index, item in enumerate(node))
        elif isinstance(node, str) and is_encodable(node):
            continue
        elif not (node is None or isinstance(node, bool) or is_number(node)):
            return [Fault(path, f"{show(node)} is nothing that JSON can express")]
    return []


def typo_faults(schema: Any) -> list[Fault]:
    """Return every unknown keyword that looks like a slip of a known one.

    Unknown keywords are allowed (2020-12 core section 6.5); those named `x-…` are never suspected.
    """
    found: list[Fault] = []
    for path, node in walk(schema):
        for keyword in node:
            if keyword in RULES or not isinstance(keyword, str) or keyword.startswith("x-"):
                continue
            meant = nearest(keyword, RULES)
            if meant:
                text = f'no such keyword; "{meant}" is, and "x-{keyword}" is free for your own use'
                found.append(Fault((*path, keyword), text))
    return found


def pattern_faults(schema: Any, compile_pattern: Compile) -> list[Fault]:
    """Return every regular expression that the engine cannot compile.

    Args:
        schema: The schema.
        compile_pattern: Raises ValueError for a bad one.
    """
    found: list[Fault] = []
    for path, node in walk(schema):
        places: list[tuple[Path, Any]] = [((*path, "pattern"), node.get("pattern"))]
        named = node.get("patternProperties")
        if isinstance(named, dict):
            places += [((*path, "patternProperties", name), name) for name in named]
        for place, pattern in places:
            if isinstance(pattern, str):
                found.extend(_pattern_fault(place, pattern, compile_pattern))
    return found


def _pattern_fault(path: Path, pattern: str, compile_pattern: Compile) -> list[Fault]:
    try:
        compile_pattern(pattern)
    except ValueError as error:
        reason = getattr(error, "reason", "not a regular expression of ECMA-262")
        return [Fault(path, f"{show(pattern)} cannot be used: {reason}")]
    return []


def ref_faults(schema: Any, documents: Mapping[str, Any]) -> list[Fault]:
    """Return every reference that leads nowhere, and every one that would have to be fetched."""
    refs = Refs(schema)
    base = schema.get("$id", "") if isinstance(schema, dict) else ""
    embedded = any("$id" in node for path, node in walk(schema) if path)
    found: list[Fault] = []
    for path, node in walk(schema):
        ref = node.get("$ref")
        if not isinstance(ref, str):
            continue
        text = _local_fault(refs, ref) if is_local(ref) else _remote_fault(ref, base, documents)
        # Below an embedded `$id` both kinds mean something else; there the engine decides.
        if text and not embedded:
            found.append(Fault((*path, "$ref"), text))
    return found


def _local_fault(refs: Refs, ref: str) -> str | None:
    try:
        target = refs.find(ref)[1]
    except LookupError as error:
        return f"{show(ref)} leads nowhere: {error.args[0]}"
    if not isinstance(target, (dict, bool)):
        return f"{show(ref)} leads to {show(target)}, which is no schema"
    return None


def _remote_fault(ref: str, base: str, documents: Mapping[str, Any]) -> str | None:
    uri = urljoin(base, ref).partition("#")[0]
    if uri in documents or uri == base.removesuffix("#") or uri.startswith(_STANDARD):
        return None
    return (
        f"{show(ref)} is another document, and nothing is ever fetched; "
        f"pass it in documents={{{show(uri)}: …}} or move it into $defs"
    )


def anchor_faults(schema: Any) -> list[Fault]:
    """Return every anchor that is declared twice: which one is meant would be a guess."""
    if any("$id" in node for path, node in walk(schema) if path):
        return []
    seen = names(schema)
    twice = dict.fromkeys(name for name in seen if seen.count(name) > 1)
    return [Fault((), f'"$anchor": "{name}" is declared twice; rename one') for name in twice]
