"""Every limit by name: what a peer can make this program hold or do."""

from typing import TYPE_CHECKING, Any, Final

import attrs

from ._value import Value

if TYPE_CHECKING:
    Field = attrs.Attribute[int]

MIB: Final = 1024 * 1024
#: Of what is there for all, one client may have this part.
PART: Final = 4


def _at_least_one(_: object, field: "Field", value: Any) -> None:
    if type(value) is not int or value < 1:
        raise ValueError(f"Limits.{field.name} must be an integer of at least 1, not {value!r}")


def _limit(default: int) -> Any:
    return attrs.field(default=default, validator=_at_least_one)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Limits(Value):
    """The limits of one connection. A breach costs the message that commits it, nothing else.

    Attributes:
        message_size: Bytes of one message. Room for a photograph in base64; past it the message
            is dropped and answered with -32600.
        message_values: Values in one message: members and elements, at any depth. Two bytes of text
            can be one, and each of them costs time to read; half a second for all is the most.
        message_depth: Nesting of one message. Real ones stay below 20, validators recurse.
        batch: Messages in one array (2025-03-26). Each one costs a task.
        in_flight: Requests of one peer that have no answer yet; the next is answered with an error.
        subscriptions: Open `subscriptions/listen` requests and watched URIs of one peer.
        outbox: Bytes waiting to be written. Past it the peer's requests are no longer read, and
            progress and log messages that nobody awaits are dropped.
        threads: Sync handlers that run at the same time, over all connections of a server.
        task_threads: The same of calls that go on as tasks: they may take long, and would keep
            the threads of all others.
        tasks: Tasks that are kept at once, ended ones too, over all connections over HTTP.
        tasks_per_principal: How many of them may be of one verified principal.
        task_memory: Bytes that they hold: what those that run were sent, and what came of those
            that have ended. One verified principal may have a quarter.

    Raises:
        ValueError: A limit is no integer, or below 1.
    """

    message_size: int = _limit(16 * MIB)
    message_values: int = _limit(500_000)
    message_depth: int = _limit(128)
    batch: int = _limit(100)
    in_flight: int = _limit(1000)
    subscriptions: int = _limit(1000)
    outbox: int = _limit(8 * MIB)
    threads: int = _limit(40)
    task_threads: int = _limit(40)
    tasks: int = _limit(10_000)
    tasks_per_principal: int = _limit(1000)
    task_memory: int = _limit(256 * MIB)


#: What holds where nothing else is said.
DEFAULTS: Final = Limits()
