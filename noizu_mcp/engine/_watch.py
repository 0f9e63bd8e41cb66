"""What may watch a connection: requests from their arrival to their end, and notices."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from ..jsonrpc import Decoded, Rendered, Request
from ..protocol import Event

#: How a request ends, where its answer does not tell.
Fate = Literal["crashed", "timed_out"]


class Record(Protocol):
    """Watches one request of the peer."""

    def mark(self, fate: Fate) -> None:
        """Take how it is about to end, where the answer does not tell. Never raises."""

    def replied(self, result: Mapping[str, Any] | Rendered) -> None:
        """See the result, before `answered`. Never raises."""

    def answered(self, size: int, code: int | None) -> None:
        """See the answer: its bytes, and the code of the error that it is. Never raises."""

    def cancelled(self) -> None:
        """See that nobody waits any more. Never raises."""

    def asking(self, request: Request) -> AbstractContextManager[None]:
        """Watch a request of ours that belongs to it, for as long as the block runs."""


class Watch(Protocol):
    """Watches one connection."""

    def heard(self, message: Decoded, event: Event | None, size: int | None) -> None:
        """See a message of the peer and what it means, before it is acted on. Never raises.

        Args:
            message: The message.
            event: What it means.
            size: Its bytes; None if they are not known.
        """

    def told(self, method: str, size: int) -> None:
        """See a notification of ours, and its bytes. Never raises."""
