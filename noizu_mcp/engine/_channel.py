"""Where the messages of one request go: a whole connection, or the answer to one HTTP request."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol

from ..jsonrpc import encode_batch


class Delivery:
    """A notice that is on its way; awaiting it waits until there is room for more.

    Args:
        room: Waits for room; a checkpoint.
    """

    __slots__ = ("_room",)

    def __init__(self, room: Callable[[], Awaitable[None]]) -> None:
        self._room = room

    def __await__(self) -> Generator[Any, Any, None]:
        return self._room().__await__()


class Channel(Protocol):
    """Takes messages to the peer, in order, without waiting."""

    def answer(self, message: bytes, code: int | None = None, /) -> None:
        """Send the answer to the request, or to all requests of an array.

        Args:
            message: The answer.
            code: The code of the error that it is, if it is one.
        """

    def abandon(self) -> None:
        """Expect no answer: what was asked was cancelled."""

    def release(self, seconds: float, /) -> None:
        """Let the peer come back for the rest, where it can (2025-11-25 over HTTP).

        Args:
            seconds: How long it is to wait before.
        """

    def deliver(self, message: bytes) -> None:
        """Send a message that must not get lost."""

    def offer(self, message: bytes) -> None:
        """Send a message that can do without being sent: it is dropped if there is no room."""

    @property
    def has_room(self) -> bool:
        """False while too much is waiting to be written."""

    async def room(self) -> None:
        """Wait until there is room for more; a checkpoint."""


class Collector:
    """Gathers the answers to one array of messages into one array (2025-03-26).

    Args:
        expected: How many of the messages will be answered or cancelled.
        channel: Where the array goes.
    """

    def __init__(self, expected: int, channel: Channel) -> None:
        self._expected = expected
        self._channel = channel
        self._answers: list[bytes] = []

    def add(self, answer: bytes | None) -> None:
        """Take one answer, or None for a request that gets none; the last sends the array."""
        self._expected -= 1
        if answer is not None:
            self._answers.append(answer)
        if self._expected == 0 and self._answers:
            self._channel.answer(encode_batch(self._answers))
        elif self._expected == 0:
            self._channel.abandon()
