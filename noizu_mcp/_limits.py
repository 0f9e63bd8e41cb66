"""Every limit by name: what a peer can make this program hold or do."""

from typing import Final

import attrs

MIB: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class Limits:
    """The limits of one connection. A breach costs the message that commits it, nothing else.

    Attributes:
        message_size: Bytes of one message. Room for a photograph in base64; past it the message
            is dropped and answered with -32600.
        message_depth: Nesting of one message. Real ones stay below 20, validators recurse.
        batch: Messages in one array (2025-03-26). Each one costs a task.
        in_flight: Requests of one peer that have no answer yet; the next is answered with an error.
        subscriptions: Open `subscriptions/listen` requests and watched URIs of one peer.
        outbox: Bytes waiting to be written. Past it the peer's requests are no longer read, and
            progress and log messages that nobody awaits are dropped.
        threads: Sync handlers that run at the same time, over all connections of a server.
    """

    message_size: int = 16 * MIB
    message_depth: int = 128
    batch: int = 100
    in_flight: int = 1000
    subscriptions: int = 1000
    outbox: int = 8 * MIB
    threads: int = 40
