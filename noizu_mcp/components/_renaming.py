"""Names and URIs of a server that another server offers under a prefix.

The tool `search` of a server under the prefix `github` is `github_search`, and its resource
`repo://a` is `github+repo://a`. `Mount`, `Remote` and `OpenAPI` share these rules.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from .. import types
from .._value import JSONObject
from ..types import Content, PromptMessage, ResourceContents, ToolResult
from .declare._options import add_prefix, read_prefix

#: The values that have content, and the member that holds it.
_HOLDERS: Final[tuple[tuple[type[Any], str], ...]] = (
    (ToolResult, "content"),
    (PromptMessage, "content"),
    (types.ReadResult, "contents"),
    (types.PromptResult, "messages"),
)

_Renamed = TypeVar("_Renamed")


class Renaming:
    """Converts between the names of a server and the names that clients see.

    Args:
        prefix: The prefix; empty: all names stay as they are.

    Attributes:
        prefix: See Args.

    Raises:
        ValueError: The prefix has characters that names of tools must not have.
    """

    def __init__(self, prefix: str) -> None:
        if prefix:
            try:
                read_prefix(prefix)
            except ValueError as error:
                raise ValueError(f"prefix {error}") from None
        self.prefix = prefix
        self._name_start = add_prefix(prefix, "name", "") if prefix else ""
        self._uri_start = add_prefix(prefix, "uri", "") if prefix else ""

    def start(self, key: str) -> str:
        """Return the text with which all names, or all URIs, begin; empty without a prefix.

        Args:
            key: `name`, `uri` or `uri_template`.
        """
        return self._name_start if key == "name" else self._uri_start

    def rename(self, key: str, value: str) -> str:
        """Return the name or URI that clients see.

        Args:
            key: `name`, `uri` or `uri_template`.
            value: The name or URI in the server.
        """
        return self.start(key) + value

    def rename_uri(self, uri: str, is_served: Callable[[str], bool] = lambda _: True) -> str:
        """Return the URI that clients see.

        Args:
            uri: The URI in the server.
            is_served: Tells whether the server serves a URI; others, as of links, stay as they are.
        """
        return self._uri_start + uri if is_served(uri) else uri

    def restore(self, key: str, value: str) -> str | None:
        """Return the name or URI in the server; None for one without the prefix.

        Args:
            key: `name`, `uri` or `uri_template`.
            value: The name or URI that a client has sent.
        """
        start = self.start(key)
        return value.removeprefix(start) if value.startswith(start) else None

    def rename_skill(self, entry: Mapping[str, Any]) -> JSONObject:
        """Return the entry of a skill, in the form of the wire, with the URIs that clients see."""
        files = entry["resources"]
        if isinstance(files, list):
            files = [{**each, "uri": self.rename_uri(each["uri"])} for each in files]
        return {**entry, "uri": self.rename_uri(entry["uri"]), "resources": files}

    def rename_directory(self, page: JSONObject) -> JSONObject:
        """Return a page of a directory, in the form of the wire, with the URIs that clients see."""
        entries = page.get("resources")
        if not isinstance(entries, list):
            return page
        return {**page, "resources": [self._rename_entry(each) for each in entries]}

    def _rename_entry(self, entry: object) -> object:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("uri"), str):
            return entry  # malformed: the client that reads it reports that
        return {**entry, "uri": self.rename_uri(entry["uri"])}

    def rename_answer(
        self, answer: _Renamed, is_served: Callable[[str], bool] = lambda _: True
    ) -> _Renamed:
        """Return the answer of a tool, a prompt or a resource with the URIs that clients see.

        Args:
            answer: The return value of the handler.
            is_served: See `rename_uri`.
        """
        if not self.prefix:
            return answer
        renamed: _Renamed = self._rename_answer(answer, is_served)
        return renamed

    def _rename_answer(self, value: Any, is_served: Callable[[str], bool]) -> Any:
        rename = partial(self._rename_answer, is_served=is_served)
        if isinstance(value, list | tuple):
            return [rename(item) for item in value]
        if isinstance(value, ResourceContents):
            return attrs.evolve(value, uri=self.rename_uri(value.uri, is_served))
        if isinstance(value, Content):
            fields = value.fields
            if value.type == "resource_link":
                fields = {**fields, "uri": self.rename_uri(fields["uri"], is_served)}
            elif value.type == "resource":
                fields = {"resource": rename(fields["resource"])}
            return attrs.evolve(value, fields=fields)
        for cls, member in _HOLDERS:
            if isinstance(value, cls):
                return attrs.evolve(value, **{member: rename(getattr(value, member))})
        return value

    def head_instructions(self, name: str, instructions: str) -> str:
        """Put the name of the server before its instructions, and the prefix of its tools.

        The instructions name tools as the server does.
        """
        parts = [f"## {name}", instructions]
        if self.prefix:
            parts.insert(1, f"Its tools and prompts have the prefix {self._name_start} here.")
        return "\n\n".join(parts)
