"""Errors for unknown components. They suggest the nearest name that the caller may use.

Components that are hidden, unavailable or need scopes that the caller lacks are never named. If a
server overrides a list, no component of that kind is named.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..._errors import McpError
from ..._nearest import nearest
from ...jsonrpc import INVALID_PARAMS, RESOURCE_NOT_FOUND
from ...protocol import REVISIONS
from ..registry._collection import Collection
from ._scope_checks import holds

if TYPE_CHECKING:
    from ...components import Context


def unknown(collection: Collection[Any], name: str, context: "Context") -> McpError:
    """Make the error for a tool or a prompt that is not registered (-32602).

    Args:
        collection: The tools or the prompts.
        name: The name that was sent.
        context: The request.
    """
    providers = context.server.registry.providers
    text = None if providers is None else providers.unknown(name)
    if text is not None:
        return McpError(INVALID_PARAMS, text)
    meant = nearest(name, _usable(collection, context))
    return McpError(INVALID_PARAMS, f"Unknown {collection.kind.name}: {name}{_hint(meant)}")


def unknown_template(text: str, context: "Context") -> McpError:
    """Make the error for a resource template that is not registered (-32602)."""
    meant = _nearest_uri(text, _usable(context.server.registry.templates, context))
    return McpError(INVALID_PARAMS, f"Unknown resource template: {text}{_hint(meant)}")


def unknown_word(noun: str, word: str, known: Iterator[str] | tuple[str, ...]) -> McpError:
    """Make the error for an unknown argument of a known prompt or template (-32602)."""
    return McpError(INVALID_PARAMS, f"Unknown {noun}: {word}{_hint(nearest(word, known))}")


def not_found(uri: str, context: "Context") -> McpError:
    """Make the error for an unknown resource.

    2026-07-28 forbids -32002 and answers -32602 (`server/resources`, "Error Handling").
    """
    registry = context.server.registry
    meant = _nearest_uri(uri, _usable(registry.resources, context))
    meant = meant or _nearest_uri(uri, _usable(registry.templates, context))
    stateless = REVISIONS[context.protocol_version].stateless
    code = INVALID_PARAMS if stateless else RESOURCE_NOT_FOUND
    return McpError(code, f"Resource not found{_hint(meant)}", {"uri": uri})


def _hint(meant: str | None) -> str:
    return "" if meant is None else f"; did you mean {meant!r}?"


def _usable(collection: Collection[Any], context: "Context") -> Iterator[str]:
    """Yield the names of the listed components that the caller may use."""
    listing = f"list_{collection.kind.name.replace(' ', '_')}s"
    if context.server.registry.overrides(listing):
        # The override decides who sees what, and would have to run for each unknown name.
        return iter(())
    caller = context.auth
    return (collection.key_of(spec) for spec in collection.shown_to(context) if holds(spec, caller))


def _nearest_uri(uri: str, known: Iterator[str]) -> str | None:
    """Return the first URI or template that differs in one part by a typo, or None."""
    # Part by part: long URIs of one server may differ in a few letters that are not typos.
    given = uri.split("/")
    for each in known:
        parts = each.split("/")
        if len(parts) != len(given):
            continue
        pairs = zip(given, parts, strict=True)
        differing = [(a, b) for a, b in pairs if a != b and "{" not in b]
        if len(differing) == 1 and nearest(differing[0][0], [differing[0][1]]):
            return each
    return None
