"""Results of resources, templates and prompts, made of the values that handlers return.

A value that cannot be sent raises a `TypeError`, a `ValueError` or a `ProtocolError` whose text is
for the log: it quotes the value, and a client must not see that.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from ..._util import is_uri
from ..._value import JSONObject
from ...schema import dump_value
from ...types import PromptResult, ResourceContents, ResourceDefinition
from ._bound import PromptSpec, TemplateSpec
from ._handler import refuse_coroutine
from ._tool_calls import text_of

#: The media type of a value that is sent as its JSON, unless one is declared.
_JSON: Final = "application/json"

# A mapping in a list with no other keys is contents in the form of the wire; others are data.
_CONTENTS_KEYS: Final = frozenset({"uri", "mimeType", "text", "blob", "_meta"})


def to_contents(mime_type: str | None, uri: str, value: object) -> list[ResourceContents]:
    """Turn the value that `read` returned into contents.

    Args:
        mime_type: The declared media type, if there is one.
        uri: The URI that was read.
        value: A text, bytes, `ResourceContents`, a list of these and of contents mappings, or any
            other JSON value or instance, which is sent as its JSON.

    Returns:
        The contents, at least one.

    Raises:
        TypeError: None, an empty list, a coroutine, or a value that has no JSON form.
        ValueError: NaN, an infinity or a circular reference.
        ProtocolError: A contents mapping with a wrong field.
    """
    _refuse_nothing("read", value, "return '' for an empty text")
    # server/resources, 2026-07-28: empty contents must not stand for a missing resource. And an
    # empty list may as well be meant as JSON.
    if isinstance(value, list | tuple) and not value:
        raise TypeError("read returned no contents; return '' for an empty text, '[]' for JSON")
    if (one := _contents_of(mime_type, uri, value)) is not None:
        return [one]
    if isinstance(value, list | tuple):
        several = [_contents_of(mime_type, uri, item, in_list=True) for item in value]
        found = [each for each in several if each is not None]
        # All or none: a list with other values among its texts is data, and sent as one JSON text.
        if len(found) == len(several):
            return found
        # These have no JSON form, so it cannot be data either.
        if any(isinstance(item, ResourceContents | bytes) for item in value):
            raise TypeError(f"expected a list of contents, texts and bytes only, got {value!r}")
    return [ResourceContents(uri, mime_type or _JSON, text=text_of(dump_value(value)))]


def _contents_of(
    mime_type: str | None, uri: str, value: object, *, in_list: bool = False
) -> ResourceContents | None:
    """Make contents of one value; None for a value that is sent as its JSON."""
    if isinstance(value, ResourceContents):
        return value
    if isinstance(value, str):
        return ResourceContents(uri, mime_type, text=value)
    if isinstance(value, bytes | bytearray | memoryview):
        return ResourceContents(uri, mime_type, blob=bytes(value))
    if not in_list or not isinstance(value, Mapping) or not value.keys() <= _CONTENTS_KEYS:
        return None
    # The schema of contents demands one of the two.
    if ("text" in value) == ("blob" in value):
        return None
    found = ResourceContents.from_wire({"uri": uri, **value}, "contents")
    return found if found.mime_type else attrs.evolve(found, mime_type=mime_type)


def to_listed(spec: TemplateSpec, value: object) -> list[JSONObject]:
    """Turn the value that `list` of a template returned into entries of `resources/list`.

    Args:
        spec: The template.
        value: `ResourceDefinition`s, mappings in the shape of 2026-07-28, URIs, and `Resource`
            classes or instances. A missing name is the URI, a missing media type that of the
            template.

    Returns:
        New JSON-ready dicts.

    Raises:
        TypeError: An item is anything else.
        ProtocolError: A mapping with a wrong field.
    """
    _refuse_nothing("list", value, "return [] for none")
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"expected a list of resources, got {value!r}")
    return [_listed(spec, item) for item in value]


def _listed(spec: TemplateSpec, item: Any) -> JSONObject:
    # A `Resource` class or instance; a template is not an entry.
    declared = getattr(item, "__mcp__", ())
    if declared and declared[0].kind.key == "uri":
        definition: JSONObject = item.definition()
        return definition
    if isinstance(item, ResourceDefinition):
        wire = item.to_wire()
    elif isinstance(item, str):
        if not is_uri(item):
            raise TypeError(f"expected an absolute URI like 'db://users', got {item!r}")
        wire = {"uri": item, "name": item}
    elif isinstance(item, Mapping):
        named = item if "name" in item else {**item, "name": item.get("uri")}
        wire = ResourceDefinition.from_wire(named, "resource").to_wire()
    else:
        raise TypeError(
            f"expected a ResourceDefinition, a mapping, a URI or a Resource, got {item!r}"
        )
    # Most instances of a template have one type; an entry that has a type keeps it.
    if spec.mime_type is not None:
        wire.setdefault("mimeType", spec.mime_type)
    return wire


def to_prompt_result(spec: PromptSpec | None, value: object) -> PromptResult:
    """Turn the value that `get` returned into a result.

    Args:
        spec: The prompt; None for an answer that belongs to no prompt, as an override may give one.
        value: A text, which the user says, a `PromptMessage`, content, a list of these, or a
            `PromptResult`.

    Returns:
        The result, with the description of the prompt if it lacks one.

    Raises:
        TypeError: The value is anything else.
        ProtocolError: A mapping that is neither message nor content.
    """
    _refuse_nothing("get", value, "return a message")
    result = value if isinstance(value, PromptResult) else PromptResult(value)
    if result.description is None and spec is not None and spec.description is not None:
        return attrs.evolve(result, description=spec.description)
    return result


def _refuse_nothing(method: str, value: object, instead: str) -> None:
    """Refuse None and coroutines, which are surely not meant as an answer."""
    refuse_coroutine(value, method)
    if value is None:
        raise TypeError(f"{method} returned None; {instead}")
