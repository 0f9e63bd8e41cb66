"""What crosses the wire about prompts: their definitions, messages and what getting one gives."""

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import attrs

from .._errors import ProtocolError
from .._util import final
from ._blocks import as_blocks
from ._common import Icon
from ._content import Content
from ._results import Result
from ._wire import Item, Wire, as_tuple, kind_of, merge_extra, read_items

Role = Literal["user", "assistant"]

_ROLES: Final = ("user", "assistant")


@final
@attrs.frozen(eq=False, repr=False)
class PromptArgument(Wire):
    """An argument of a prompt; its value is a text.

    Attributes:
        name: The name for programs.
        title: The name for people (2025-06-18 and later).
        description: What to fill in.
        required: Whether it must be given; no when absent.
    """

    name: str
    title: str | None = attrs.field(default=None, kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)
    required: bool | None = attrs.field(default=None, kw_only=True)


@final
@attrs.frozen(eq=False, repr=False)
class PromptDefinition(Wire):
    """A prompt as `prompts/list` describes it (server/prompts, Prompt).

    Attributes:
        name: What `prompts/get` calls it.
        title: The name for people (2025-06-18 and later).
        description: What it is good for.
        arguments: What can be filled in.
        icons: Pictures of it (2025-11-25 and later).
        meta: `_meta` of the prompt (2025-06-18 and later).
    """

    name: str
    title: str | None = attrs.field(default=None, kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)
    arguments: tuple[PromptArgument, ...] = attrs.field(
        default=(), converter=as_tuple, kw_only=True
    )
    icons: tuple[Icon, ...] = attrs.field(default=(), converter=as_tuple, kw_only=True)
    meta: dict[str, Any] | None = attrs.field(default=None, kw_only=True)


def _as_content(value: Any) -> Content:
    if not isinstance(value, (str, Content, Mapping)):
        raise TypeError(
            f"a message has one text or content block, got {type(value).__name__}; make a message"
            " of each"
        )
    return as_blocks(value)[0]


_ROLE: Final = Item("role", "role", kind_of(str), required=True)
_BLOCK: Final = Item("content", "content", kind_of(dict), required=True)


@final
@attrs.frozen(eq=False, repr=False)
class PromptMessage(Wire):
    """One message of a prompt: who says it, and one content block.

    Attributes:
        role: `user` or `assistant`.
        content: The block. Given as a text, a block or a content mapping.
        extra: Keys that this version of the package does not know, as they came.

    Raises:
        TypeError: There is no such role, or `content` is not one block.
    """

    role: Role
    content: Content = attrs.field(converter=_as_content)

    def __attrs_post_init__(self) -> None:
        if self.role not in _ROLES:
            raise TypeError(f"a message is of the role 'user' or 'assistant', got {self.role!r}")

    @classmethod
    def user(cls, content: Any) -> Self:
        """Make a message of the user.

        Args:
            content: A text, a block or a content mapping.

        Raises:
            TypeError: `content` is not one block.
        """
        return cls("user", content)

    @classmethod
    def assistant(cls, content: Any) -> Self:
        """Make a message of the assistant.

        Args:
            content: A text, a block or a content mapping.

        Raises:
            TypeError: `content` is not one block.
        """
        return cls("assistant", content)

    @classmethod
    def from_wire(cls, value: Any, where: str | None = None) -> Self:
        """Read a message that a peer sent.

        Args:
            value: The decoded JSON value.
            where: What errors call it; `message` by default.

        Raises:
            ProtocolError: A field is missing or has the wrong type; the message names it.
        """
        where = where or "message"
        found, rest = read_items((_ROLE, _BLOCK), value, where)
        content = Content.from_wire(found["content"], f"{where}.content")
        try:
            return cls(found["role"], content, extra=rest)
        except TypeError as error:
            raise ProtocolError(f"{where}.role: {error}") from None

    def to_wire(self) -> dict[str, Any]:
        """Write the JSON object of the message.

        Returns:
            A new JSON-ready dict.
        """
        return merge_extra({"role": self.role, "content": self.content.to_wire()}, self.extra)


def as_messages(value: Any) -> tuple[PromptMessage, ...]:
    """Turn what an author may write for messages into messages.

    Args:
        value: A message, a message mapping with a `role` key, a text or a content block, which the
            user says, or a list of these.

    Returns:
        The messages.

    Raises:
        TypeError: Anything else.
        ProtocolError: A mapping that is neither message nor content block.
    """
    if isinstance(value, (list, tuple)):
        return tuple(map(_as_message, value))
    return (_as_message(value),)


def _as_message(value: Any) -> PromptMessage:
    if isinstance(value, PromptMessage):
        return value
    if isinstance(value, Mapping) and "role" in value:
        return PromptMessage.from_wire(value)
    if isinstance(value, (str, Content, Mapping)):
        return PromptMessage.user(value)
    raise TypeError(
        f"expected a message, got {type(value).__name__}; make one: PromptMessage.user(…)"
    )


@final
@attrs.frozen(eq=False, repr=False)
class PromptResult(Result):
    """What `prompts/get` answers (server/prompts, GetPromptResult), on both ends.

    Attributes:
        messages: The messages. Given as a message, a text, which the user says, or a list.
        description: What the prompt is good for; that of its definition when None.
        meta: `_meta` of the result.
        extra: Keys that this version of the package does not know, as they came.

    Raises:
        TypeError: `messages` is nothing of the kind, or another field has the wrong type.
    """

    messages: tuple[PromptMessage, ...] = attrs.field(converter=as_messages)
    description: str | None = None
    meta: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """Write the JSON object of the result, without the envelope of 2026-07-28.

        Returns:
            A new JSON-ready dict: `description` and `_meta` where they are there, `messages`, then
            `extra`.
        """
        wire: dict[str, Any] = {}
        if self.description is not None:
            wire["description"] = self.description
        wire["messages"] = [message.to_wire() for message in self.messages]
        if self.meta is not None:
            wire["_meta"] = dict(self.meta)
        return merge_extra(wire, self.extra)
