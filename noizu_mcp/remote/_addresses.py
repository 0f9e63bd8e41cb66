"""URIs of another server under a prefix: `file:///a` of `docs` is `docs+file:///a` here."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from .._value import JSONObject
from ..components import add_prefix
from ..types import ResourceDefinition, ResourceTemplateDefinition


class Addresses:
    """The URIs of a server under a prefix.

    Args:
        prefix: The prefix of its tools; empty for none: then URIs stay as they are.
    """

    def __init__(self, prefix: str) -> None:
        self._start = add_prefix(prefix, "uri", "") if prefix else ""

    @property
    def any_template(self) -> str | None:
        """A template of all URIs of the server; None without a prefix, where nothing tells them."""
        return f"{self._start}{{+uri}}" if self._start else None

    def outward(self, uri: str) -> str:
        """Return a URI of the server as clients see it."""
        return self._start + uri

    def inward(self, uri: str) -> str:
        """Return a URI that a client has sent as the server knows it."""
        return uri.removeprefix(self._start)

    def resource(self, definition: ResourceDefinition) -> ResourceDefinition:
        """Return the definition of a resource as clients see it."""
        return attrs.evolve(definition, uri=self.outward(definition.uri))

    def template(self, definition: ResourceTemplateDefinition) -> ResourceTemplateDefinition:
        """Return the definition of a template as clients see it."""
        return attrs.evolve(definition, uri_template=self.outward(definition.uri_template))

    def result(self, result: JSONObject, rewrite: "Rewrite") -> JSONObject:
        """Return a result with the URIs as clients see them.

        Args:
            result: The result of the server.
            rewrite: `in_content`, `in_contents`, `in_directory` or `in_messages`.
        """
        return result if not self._start else rewrite(self, result)


#: Rewrites the URIs in a result.
Rewrite = Callable[[Addresses, JSONObject], JSONObject]


def in_content(addresses: Addresses, result: JSONObject) -> JSONObject:
    """Rewrite the blocks of the result of a tool."""
    blocks = result.get("content")
    if not isinstance(blocks, list):
        return result
    return {**result, "content": [_block(addresses, block) for block in blocks]}


def in_contents(addresses: Addresses, result: JSONObject) -> JSONObject:
    """Rewrite the parts of a resource."""
    parts = result.get("contents")
    if not isinstance(parts, list):
        return result
    return {**result, "contents": [_with_uri(addresses, part) for part in parts]}


def in_directory(addresses: Addresses, result: JSONObject) -> JSONObject:
    """Rewrite the entries of a directory."""
    entries = result.get("resources")
    if not isinstance(entries, list):
        return result
    return {**result, "resources": [_with_uri(addresses, entry) for entry in entries]}


def in_messages(addresses: Addresses, result: JSONObject) -> JSONObject:
    """Rewrite the messages of a prompt."""
    messages = result.get("messages")
    if not isinstance(messages, list):
        return result
    return {
        **result,
        "messages": [
            {**message, "content": _block(addresses, message.get("content"))}
            if isinstance(message, Mapping)
            else message
            for message in messages
        ],
    }


def _block(addresses: Addresses, block: Any) -> Any:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "resource_link":
        return _with_uri(addresses, block)
    if kind == "resource":
        return {**block, "resource": _with_uri(addresses, block.get("resource"))}
    return block


def _with_uri(addresses: Addresses, part: Any) -> Any:
    if not isinstance(part, Mapping) or not isinstance(part.get("uri"), str):
        return part  # malformed: reading the result says so
    return {**part, "uri": addresses.outward(part["uri"])}
