"""Results of a client: the answer of its model, and its roots."""

from collections.abc import Mapping
from typing import Any, Self

import attrs

from .._util import final
from .._value import JSONObject
from ._content import Content, as_blocks
from ._wire import Wire


@final
@attrs.frozen(eq=False, repr=False)
class Root(Wire):
    """A directory or file that the client lets the server work in (client/roots).

    Attributes:
        uri: A `file://` URI.
        name: The name for people.
        meta: `_meta` of the root.
    """

    uri: str
    name: str | None = None
    meta: JSONObject | None = attrs.field(default=None, kw_only=True)


@final
@attrs.frozen(kw_only=True, eq=False, repr=False)
class SamplingResult(Wire):
    """The answer of the client's model (client/sampling, CreateMessageResult).

    Attributes:
        role: `assistant`, or `user`.
        content: The blocks; `tool_use` blocks among them if tools were offered.
        model: The name of the model.
        stop_reason: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or another word of the
            provider.
        meta: `_meta` of the result.
    """

    role: str
    content: tuple[Content, ...] = attrs.field(converter=as_blocks)
    model: str
    stop_reason: str | None = None
    meta: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text of all text blocks."""
        return "".join(block.text for block in self.content if block.type == "text")

    @classmethod
    def from_wire(cls, value: object, where: str | None = None) -> Self:
        """Read a `CreateMessageResult`, whose content is one block or a list of blocks.

        Args:
            value: The decoded JSON value.
            where: Its name in errors; `sampling result` by default.

        Raises:
            ProtocolError: A field is missing or has the wrong type; the message names it.
        """
        # A missing block becomes a list with null in it, which fails with the place of the block.
        if isinstance(value, Mapping) and not isinstance(value.get("content"), list):
            value = {**value, "content": [value.get("content")]}
        return super().from_wire(value, where or "sampling result")

    def to_wire(self) -> JSONObject:
        """Write the JSON object; a single block is not in a list, so every revision can read it."""
        wire = super().to_wire()
        # Lists came with 2025-11-25 (client/sampling); earlier revisions have one block.
        if len(self.content) == 1:
            wire["content"] = wire["content"][0]
        return wire
