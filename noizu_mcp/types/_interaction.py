"""Requests of a server to a client, and the outcomes of an elicitation.

They serve both eras: live requests up to 2025-11-25, and input requests inside an
`InputRequiredResult` since 2026-07-28.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

import attrs

from .._util import final
from .._value import JSONObject, Value

FormContent = TypeVar("FormContent")

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
class Accept(_Outcome, Generic[FormContent]):
    """The user filled in the form, or agreed to open the URL.

    Attributes:
        content: The data of the form; None for a URL. On the server it is an instance of the class
            that was asked for; a client handler gives a mapping, or an instance.
        action: `accept`, the word of the protocol.
    """

    __slots__ = ("content",)
    action: Final = "accept"

    def __init__(self, content: FormContent) -> None:
        self.content = content


@final
class Decline(_Outcome):
    """The user refused.

    Attributes:
        action: `decline`, the word of the protocol.
    """

    __slots__ = ()
    action: Final = "decline"


@final
class Cancel(_Outcome):
    """The user dismissed the question without a choice.

    Attributes:
        action: `cancel`, the word of the protocol.
    """

    __slots__ = ()
    action: Final = "cancel"


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

    def to_wire(self) -> JSONObject:
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
