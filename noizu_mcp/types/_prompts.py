"""Values of prompts: definitions, messages, results; and completion of their arguments."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Self, get_args

import attrs

from .._util import final
from .._value import JSONObject
from ._common import Icon, Result, without_envelope
from ._content import Content, as_blocks
from ._wire import Item, Wire, as_tuple, kind_of, merge_extra, read_items

Role = Literal["user", "assistant"]

_ROLES: Final = get_args(Role)


@final
@attrs.frozen(eq=False, repr=False)
class PromptArgument(Wire):
    """An argument of a prompt; its value is a string.

    Attributes:
        name: The name for programs.
        title: The name for people (2025-06-18 and later).
        description: A description of the value, for people.
        required: True if it must be given; false if absent.
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
        name: The name for `prompts/get`.
        title: The name for people (2025-06-18 and later).
        description: The purpose of the prompt.
        arguments: The arguments that it takes.
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
    meta: JSONObject | None = attrs.field(default=None, kw_only=True)


def _as_content(value: object) -> Content:
    if not isinstance(value, (str, Content, Mapping)):
        raise TypeError(
            f"a message has one text or content block, got {type(value).__name__}; make a message"
            " of each"
        )
    return as_blocks(value)[0]


@final
@attrs.frozen(eq=False, repr=False)
class PromptMessage(Wire):
    """One message of a prompt: a role, and one content block.

    Attributes:
        role: `user` or `assistant`.
        content: The block. The constructor takes a string, a block or a content mapping.
        extra: Keys that this version of the package does not know, unchanged.

    Raises:
        TypeError: The role is another one, or `content` is not one block.
    """

    role: Role
    content: Content = attrs.field(converter=_as_content)

    # In place of the check of the base: the converter has checked the content already.
    def __attrs_post_init__(self) -> None:
        if self.role not in _ROLES:
            raise TypeError(f"a message is of the role 'user' or 'assistant', got {self.role!r}")

    @classmethod
    def user(cls, content: object) -> Self:
        """Make a message of the user.

        Args:
            content: A text, a block or a content mapping.

        Raises:
            TypeError: `content` is not one block.
        """
        return cls("user", content)

    @classmethod
    def assistant(cls, content: object) -> Self:
        """Make a message of the assistant.

        Args:
            content: A text, a block or a content mapping.

        Raises:
            TypeError: `content` is not one block.
        """
        return cls("assistant", content)


def as_messages(value: object) -> tuple[PromptMessage, ...]:
    """Turn the result of a prompt's handler into messages.

    Args:
        value: A message, a message mapping with a `role` key, a string or a content block, which
            become messages of the user, or a list of these.

    Returns:
        The messages.

    Raises:
        TypeError: The value, or an item of it, is of another type.
        ProtocolError: A mapping is neither a message nor a content block.
    """
    if isinstance(value, (list, tuple)):
        return tuple(map(_as_message, value))
    return (_as_message(value),)


def _as_message(value: object) -> PromptMessage:
    if isinstance(value, PromptMessage):
        return value
    # Content blocks of the protocol have no `role`, so it tells messages from blocks.
    if isinstance(value, Mapping) and "role" in value:
        return PromptMessage.from_wire(value, "message")
    if isinstance(value, (str, Content, Mapping)):
        return PromptMessage.user(value)
    raise TypeError(
        f"expected a message, got {type(value).__name__}; make one: PromptMessage.user(…)"
    )


@final
@attrs.frozen(eq=False, repr=False)
class PromptResult(Result):
    """The result of `prompts/get` (server/prompts, GetPromptResult), on both ends.

    Attributes:
        messages: The messages. The constructor takes a message, a string, which becomes a message
            of the user, or a list.
        description: The purpose of the prompt; None stands for the description of its definition.
        meta: `_meta` of the result.
        extra: Keys that this version of the package does not know, unchanged.

    Raises:
        TypeError: A field has the wrong type.
    """

    messages: tuple[PromptMessage, ...] = attrs.field(converter=as_messages)
    description: str | None = None
    meta: Mapping[str, Any] | None = None


#: Most values in one answer (server/utilities/completion).
MAX_COMPLETIONS: Final = 100

_PROMPT: Final = "ref/prompt"
_RESOURCE: Final = "ref/resource"
# The field that each type needs.
_NEEDS: Final = {_PROMPT: "name", _RESOURCE: "uri"}


@final
@attrs.frozen(eq=False, repr=False)
class Reference(Wire):
    """Names the prompt or the resource template whose argument or variable is completed.

    Attributes:
        type: `ref/prompt` or `ref/resource`.
        name: The name of the prompt.
        uri: The URI template, from `resources/templates/list`.
        title: The name of the prompt for people (2025-06-18 and later).

    Raises:
        TypeError: The type is another one, or its name or URI is missing.
    """

    type: str
    name: str | None = attrs.field(default=None, kw_only=True)
    uri: str | None = attrs.field(default=None, kw_only=True)
    title: str | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.type not in _NEEDS:
            raise TypeError(f"type: expected {_PROMPT} or {_RESOURCE}, got {self.type!r}")
        if getattr(self, _NEEDS[self.type]) is None:
            raise TypeError(f"{_NEEDS[self.type]}: expected a string, got nothing")

    @classmethod
    def prompt(cls, name: str) -> Self:
        """Name a prompt.

        Args:
            name: The name, from `prompts/list`.
        """
        return cls(_PROMPT, name=name)

    @classmethod
    def resource(cls, uri: str) -> Self:
        """Name a resource template.

        Args:
            uri: The URI template, from `resources/templates/list`.
        """
        return cls(_RESOURCE, uri=uri)


def _as_values(values: Iterable[object]) -> tuple[str, ...]:
    found = as_tuple(values)
    for value in found:
        if not isinstance(value, str):
            raise TypeError(f"a completion is a text, got {value!r}")
    return found


_INNER: Final = Item("completion", "completion", kind_of(dict), required=True)
_META: Final = Item("meta", "_meta", kind_of(dict), required=False)
_ITEMS: Final = (
    Item("values", "values", kind_of(tuple[str, ...]), required=True),
    Item("total", "total", kind_of(int), required=False),
    Item("has_more", "hasMore", kind_of(bool), required=False),
)


@final
@attrs.frozen(eq=False, repr=False)
class Completion(Result):
    """Possible values of an argument (server/utilities/completion), on both ends.

    Attributes:
        values: The values, best first. At most 100 of them go over the wire.
        total: The number of all possible values, if known.
        has_more: True if there are more values than these. None means: if more than 100 are given.
        meta: `_meta` of the result.
        extra: Keys that this version of the package does not know, unchanged; keys next to the
            values are under `completion`.

    Raises:
        TypeError: A field has the wrong type.
    """

    values: tuple[str, ...] = attrs.field(default=(), converter=_as_values)
    total: int | None = None
    has_more: bool | None = None
    meta: JSONObject | None = attrs.field(default=None, kw_only=True)

    @classmethod
    def from_wire(cls, value: object, where: str | None = None) -> Self:
        """Read the result of `completion/complete`.

        Args:
            value: The decoded JSON value.
            where: Its name in errors; `result` by default.

        Returns:
            The completion, without the envelope of 2026-07-28.

        Raises:
            ProtocolError: A field is missing or has the wrong type; the message names it.
        """
        where = where or "result"
        outer, rest = read_items((_INNER, _META), without_envelope(value), where)
        inner, unknown = read_items(_ITEMS, outer["completion"], f"{where}.completion")
        # Unknown keys keep their level, so that `to_wire` can put them back.
        extra = {**rest, "completion": unknown} if unknown else rest
        return cls(**inner, meta=outer.get("meta"), extra=extra)

    def to_wire(self) -> JSONObject:
        """Write the JSON object of the result, without the envelope of 2026-07-28.

        Returns:
            A new JSON-ready dict; `total` only if known, `hasMore` only if true.
        """
        # Cut here, not in the constructor: the length tells whether there are more.
        inner: JSONObject = {"values": list(self.values[:MAX_COMPLETIONS])}
        if self.total is not None:
            inner["total"] = self.total
        if self.has_more or (self.has_more is None and len(self.values) > MAX_COMPLETIONS):
            inner["hasMore"] = True
        merge_extra(inner, self.extra.get("completion", {}))
        wire: JSONObject = {"completion": inner}
        if self.meta is not None:
            wire["_meta"] = dict(self.meta)
        return merge_extra(wire, self.extra)
