"""What the Python engine does not serve; it refuses by name, and never guesses."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..._errors import SchemaUnsupported
from ..jsonschema._dialects import LATEST, dialect_of
from ..jsonschema._refs import Refs, is_local, names, reachable
from ..jsonschema._violation import show

_HINT = "install the native engine, which can: pip install jsonschema-rs"

_UNSERVED = (
    "unevaluatedProperties",
    "unevaluatedItems",
    "dependencies",
    "$dynamicRef",
    "$recursiveRef",
    "$vocabulary",
)


def unsupported(keyword: str, text: str) -> SchemaUnsupported:
    """Return the refusal of a keyword, with the way out."""
    return SchemaUnsupported(f"the Python engine cannot serve {text}; {_HINT}", keyword)


def check_served(schema: Any) -> None:
    """Refuse a valid 2020-12 schema that is outside of what is proven right.

    Raises:
        SchemaUnsupported: It uses what is not served.
        LookupError: It refers to what is not there.
    """
    if dialect_of(schema) != LATEST:
        raise unsupported("$schema", f'"$schema": {show(dialect_of(schema))}')
    anchors = names(schema)
    if len(set(anchors)) != len(anchors):
        raise unsupported("$anchor", "two anchors of one name")
    refs = Refs(schema)
    for node in reachable(schema, refs):
        _check_object(node, root=node is schema)
    if _is_endless(schema, refs):
        raise unsupported("$ref", 'a "$ref" that leads back to itself without going deeper')


def _check_object(node: Mapping[str, Any], *, root: bool) -> None:
    for keyword in _UNSERVED:
        if keyword in node:
            raise unsupported(keyword, f'"{keyword}"')
    if "$id" in node and not root:
        raise unsupported("$id", f'an "$id" inside of the schema ({show(node["$id"])})')
    if "$ref" in node and not is_local(node["$ref"]):
        raise unsupported("$ref", f'"$ref": {show(node["$ref"])}, which is not local')


def _is_endless(schema: Any, refs: Refs) -> bool:
    """Tell if some subschema is applied to a value on the way to applying itself to that value."""
    done: set[int] = set()
    for start in reachable(schema, refs):
        active: set[int] = set()
        waiting: list[tuple[Any, bool]] = [(start, False)]
        while waiting:
            node, leaving = waiting.pop()
            if leaving:
                active.discard(id(node))
                done.add(id(node))
            elif id(node) in active:
                return True
            elif isinstance(node, dict) and id(node) not in done:
                active.add(id(node))
                waiting.append((node, True))
                waiting.extend((child, False) for child in _in_place(node, refs))
    return False


def _in_place(node: Mapping[str, Any], refs: Refs) -> Iterator[Any]:
    """Yield the subschemas that judge the same value."""
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from node.get(keyword, ())
    for keyword in ("not", "if", "then", "else"):
        if keyword in node:
            yield node[keyword]
    yield from node.get("dependentSchemas", {}).values()
    if "$ref" in node:
        yield refs.find(node["$ref"])[1]
