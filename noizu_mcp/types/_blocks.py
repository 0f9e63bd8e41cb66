"""Lists of content blocks from what authors write."""

from collections.abc import Iterable, Mapping
from typing import Any

from .._util import json_text
from ._content import Content


def as_blocks(value: Any) -> tuple[Content, ...]:
    """Turn what an author may write for content into blocks.

    Args:
        value: A text, a block, a content mapping with a `type` key, or an iterable of these.

    Returns:
        The blocks.

    Raises:
        TypeError: Anything else.
        ProtocolError: A mapping that is no content block.
    """
    if isinstance(value, (list, tuple)):
        return tuple([_as_block(item) for item in value])
    if isinstance(value, (str, Content, Mapping)):
        return (_as_block(value),)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return tuple(map(_as_block, value))
    raise TypeError(f"expected content, got {type(value).__name__}; wrap it: Content.text(…)")


def _as_block(value: Any) -> Content:
    if value.__class__ is Content:
        return value  # a final class: no other is one
    if isinstance(value, str):
        return Content.text(value)
    if isinstance(value, Mapping):
        return Content.from_wire(value)
    raise TypeError(f"expected a content block, got {type(value).__name__}")


def plain_text(text: str) -> list[Content]:
    """Make the content of an answer that is one text.

    Args:
        text: What the model reads.

    Returns:
        A list of one text block, ready to be returned by a tool.
    """
    return [Content.text(text)]


def text_content(value: Any) -> list[Content]:
    """Make the content of an answer that is one text: the JSON of a value.

    Args:
        value: Any JSON value.

    Returns:
        A list of one text block, ready to be returned by a tool.

    Raises:
        TypeError: The value has no JSON form.
        ValueError: NaN, an infinity or a circular reference.
    """
    return [Content.text(json_text(value))]
