"""Requests of a server to a client, and their answers: elicitation, sampling, roots.

They serve both eras: live requests up to 2025-11-25, and input requests inside an
`InputRequiredResult` since 2026-07-28.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

import attrs

from .._util import final
from .._value import Value
from ._content import Content, as_blocks
from ._wire import Item, Wire, kind_of, read_items

Answer = TypeVar("Answer")

ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"


class _Outcome:
    """The outcome of an elicitation, compared by value. Not an attrs class: those load slowly."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _held(other) == _held(self)

    def __hash__(self) -> int:
        return hash((type(self), *map(repr, _held(self))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, _held(self)))})"


def _held(outcome: Any) -> list[Any]:
    return [getattr(outcome, name) for name in outcome.__slots__]


@final
class Accept(_Outcome, Generic[Answer]):
    """The user filled in the form, or agreed to open the URL.

    Attributes:
        content: The data of the form; None for a URL. On the server it is an instance of the class
            that was asked for; a client handler gives a mapping, or an instance.
    """

    __slots__ = ("content",)
    action: Final = "accept"

    def __init__(self, content: Answer) -> None:
        self.content = content


@final
class Decline(_Outcome):
    """The user refused."""

    __slots__ = ()
    action: Final = "decline"


@final
class Cancel(_Outcome):
    """The user dismissed the question without a choice."""

    __slots__ = ()
    action: Final = "cancel"


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
    meta: dict[str, Any] | None = attrs.field(default=None, kw_only=True)


#: All fields but `content`, which is one block or a list of blocks.
_FIELDS: Final = (
    Item("role", "role", kind_of(str), required=True),
    Item("model", "model", kind_of(str), required=True),
    Item("stop_reason", "stopReason", kind_of(str), required=False),
    Item("meta", "_meta", kind_of(dict), required=False),
)


@final
@attrs.frozen(kw_only=True, eq=False, repr=False)
class SamplingResult(Value):
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
    content: Sequence[Content] = attrs.field(converter=as_blocks)
    model: str
    stop_reason: str | None = None
    meta: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text of all text blocks."""
        return "".join(block.text for block in self.content if block.type == "text")

    @classmethod
    def from_wire(cls, value: Any, where: str = "sampling result") -> "SamplingResult":
        """Read a `CreateMessageResult`.

        Raises:
            ProtocolError: A field is missing or has the wrong type; the message names it.
        """
        found, rest = read_items(_FIELDS, value, where)
        content = rest.get("content")
        blocks = content if isinstance(content, list) else [content]
        return cls(
            content=[Content.from_wire(block, f"{where}.content") for block in blocks], **found
        )

    def to_wire(self) -> dict[str, Any]:
        """Write the JSON object; a single block is not in a list, so every revision can read it."""
        blocks = [block.to_wire() for block in self.content]
        wire: dict[str, Any] = {
            "role": self.role,
            "content": blocks[0] if len(blocks) == 1 else blocks,
            "model": self.model,
        }
        if self.stop_reason is not None:
            wire["stopReason"] = self.stop_reason
        if self.meta is not None:
            wire["_meta"] = dict(self.meta)
        return wire


class InputRequest(NamedTuple):
    """One request of an `InputRequired`, in the form of the wire.

    It is sent unchanged, with one exception: for a client of 2025-06-18 its form is rewritten in
    the schema of that revision, like the form of `ctx.elicit`.

    Attributes:
        method: `elicitation/create`, `sampling/createMessage` or `roots/list`.
        params: The parameters, JSON-ready.
    """

    method: str
    params: Mapping[str, Any] = MappingProxyType({})

    def to_wire(self) -> dict[str, Any]:
        """Write the JSON object."""
        return {"method": self.method, "params": dict(self.params)}


@final
@attrs.frozen(eq=False, repr=False)
class InputRequired(Value):
    """Result of a handler that needs input: the handler runs again with the answers.

    The answers are then in `ctx.input_responses`, the state in `ctx.request_state`. It serves
    clients of both eras (2026-07-28, basic/patterns/mrtr).

    Attributes:
        requests: The requests to the client, by keys that the handler chooses. If empty, the client
            just sends its request again with the state.
        state: A string for the next run of the handler; it travels encrypted.

    Raises:
        ValueError: Neither requests nor a state is given.
    """

    requests: Mapping[str, InputRequest] = attrs.field(factory=dict)
    state: str | None = None

    def __attrs_post_init__(self) -> None:
        if not self.requests and self.state is None:
            raise ValueError("InputRequired needs requests, a state, or both")
