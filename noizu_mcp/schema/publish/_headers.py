"""The rules of `x-mcp-header`: a property that is mirrored as an HTTP header.

Specification 2026-07-28, transports, Streamable HTTP, custom headers. A client must drop a tool
with a wrong one, so it is refused where the tool is defined.
"""

import re
from collections.abc import Iterator, Mapping

from ..._pointer import Path
from ..jsonschema._keywords import walk
from ..jsonschema._violation import Fault

HEADER = "x-mcp-header"
_FIELD_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_TYPES = ("string", "integer", "boolean")


def header_faults(schema: Mapping[str, object]) -> Iterator[Fault]:
    """Yield a fault for each `x-mcp-header` in a schema that breaks the rules.

    Args:
        schema: The whole input schema.
    """
    seen: dict[str, str] = {}
    for path, node in walk(schema):
        if HEADER in node:
            text = _problem(path, node)
            if text is None:
                # Names of HTTP headers ignore case (RFC 9110, section 5.1).
                name, header = ".".join(_properties(path)), node[HEADER]
                other = seen.setdefault(header.lower(), name)
                if other != name:
                    text = f"header {header!r} is taken by {other}; names ignore case"
            if text is not None:
                yield Fault((*path, HEADER), text)


def header_paths(schema: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Find the properties that headers mirror, in a schema without header faults.

    Args:
        schema: The whole input schema.

    Returns:
        The names of the properties that lead to each, by the name of the header.
    """
    return {node[HEADER]: _properties(path) for path, node in walk(schema) if HEADER in node}


def _properties(path: Path) -> tuple[str, ...]:
    return tuple(str(step) for step in path[1::2])


def _problem(path: Path, node: Mapping[str, object]) -> str | None:
    header = node[HEADER]
    if not isinstance(header, str) or not re.fullmatch(_FIELD_NAME, header):
        return f"header {header!r} is not an HTTP token; use letters, digits and -"
    if not path or len(path) % 2 or any(step != "properties" for step in path[::2]):
        return "header stands in a list, a union or a recursive class; only plain fields have one"
    if node.get("type") not in _TYPES:
        shown = node.get("type", "any type")
        return f"header needs a field of type string, integer or boolean (not null), not {shown}"
    return None
