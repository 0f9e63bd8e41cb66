"""Limits on the memory and the work that a peer can cause, by name."""

from typing import TYPE_CHECKING, Any, Final

import attrs

from ._value import Value

if TYPE_CHECKING:
    Field = attrs.Attribute[int]

MIB: Final = 1024 * 1024
#: One client may use at most one part in so many of a resource that all clients share.
PART: Final = 4
#: Seconds that running requests get to end once their peer has gone or the program stops. Container
#: supervisors kill a process after ten seconds: this leaves time for `unsubscribe` and lifespan.
GRACE: Final = 5.0


def _at_least(least: int) -> Any:
    def check(_: object, field: "Field", value: object) -> None:
        if type(value) is not int or value < least:
            text = f"must be an integer of at least {least}, not {value!r}"
            raise ValueError(f"Limits.{field.name} {text}")

    return check


def _limit(default: int, least: int = 1) -> Any:
    return attrs.field(default=default, validator=_at_least(least))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Limits(Value):
    """The limits of one connection. A message over a limit is rejected; the connection stays open.

    Attributes:
        message_size: Bytes of one message, enough for a photograph in base64. A larger message is
            answered with error -32600.
        message_values: Members and elements in one message, at any depth. A value can be two
            bytes of text, and each takes time to parse: this many take a tenth of a second.
        message_depth: Nesting of one message. Real messages stay below 20; validators recurse.
        batch: Messages in one array (2025-03-26). Each message may start a task.
        in_flight: Requests of one peer that have no answer yet. The next request gets an error.
        subscriptions: Open `subscriptions/listen` requests and watched URIs of one peer.
        outbox: Bytes waiting to be written. While there are more, no requests of the peer are read,
            and progress and log messages that no handler awaits are dropped.
        threads: Sync handlers that run at the same time, over all connections of a server.
        task_threads: Sync handlers that run at the same time in tasks. Tasks may run for long, so
            they must not occupy the threads of requests.
        tasks: Tasks that are kept at the same time, including finished tasks, over all sessions of
            an HTTP application.
        tasks_per_principal: Tasks that one verified principal may have.
        task_memory: Bytes of the arguments of running tasks and of the results of finished tasks.
            One verified principal may use a quarter.
        handles: Handles that are kept at the same time; see `Handle`. With a backend, over all
            nodes.
        handles_per_principal: Handles that one verified principal may have.
        handle_memory: Bytes of the fields of handles as JSON that a process has stored. One
            verified principal may use a quarter.
        parked: Handlers of 2026-07-28 that wait for the answers of their clients at the same time,
            over all connections of an HTTP application, where one client may have a quarter. If
            there are more, the oldest is cancelled, and runs again from its start when its answers
            come. 0: every handler does.
        parked_seconds: Seconds for which such a handler waits.
        parked_memory: Bytes of the requests and states of these handlers; over HTTP one client may
            use a quarter.
        call_depth: Calls of tools that may be nested in each other by `ctx.call_tool`.
        call_queue: Calls that wait for a tool with `max_concurrency`, unless it has `max_queue`.
            One client may use a part. The next call gets a result with `isError`.
        abandoned_threads: Threads of one sync handler that go on after their calls, since Python
            cannot stop them. While there are so many, its calls are refused.
        list_size: Bytes of the JSON of a list that a client reads page by page, and 64 more for
            each value in it, which is about the memory that it takes. This limit and the next two
            end the reading; a list on a single page is bounded by the limits of a message.
        list_entries: Entries of such a list.
        list_seconds: Seconds after which no further page of such a list is asked for.

    Raises:
        ValueError: A limit is not an integer of at least 1; of `parked` and `call_queue`, of at
            least 0.
    """

    message_size: int = _limit(16 * MIB)
    message_values: int = _limit(100_000)
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
    handles: int = _limit(10_000)
    handles_per_principal: int = _limit(1000)
    handle_memory: int = _limit(64 * MIB)
    parked: int = _limit(1000, least=0)
    parked_seconds: int = _limit(600)
    parked_memory: int = _limit(64 * MIB)
    call_depth: int = _limit(8)
    call_queue: int = _limit(1000, least=0)
    abandoned_threads: int = _limit(10)
    list_size: int = _limit(64 * MIB)
    list_entries: int = _limit(50_000)
    list_seconds: int = _limit(120)


#: The advice for an answer over a limit, which the caller on this side can raise.
RAISE_LIMIT: Final = "limits=Limits({}=…) allows more"
#: The limits of a server without `limits`.
DEFAULTS: Final = Limits()
#: The limits of a client without `limits`. Clients trust their server more than servers trust their
#: clients, and its results may be tables.
CLIENT_LIMITS: Final = Limits(message_values=500_000)
