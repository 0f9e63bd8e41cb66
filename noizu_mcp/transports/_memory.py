"""A connected pair of streams in memory. Messages are passed as bytes."""

from collections.abc import Sequence

import trio

from .._limits import DEFAULTS, Limits
from ..engine import MessageStream
from ..jsonrpc import HEAD, Oversized, Received, read_message
from ._inbox import Inbox

_Messages = Inbox[bytes | Oversized]


class MemoryStream(MessageStream):
    """One end of a pair; `memory_pair` makes both."""

    def __init__(
        self, incoming: _Messages, outgoing: _Messages, limits: Limits, theirs: Limits
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._limits = limits
        self._theirs = theirs

    async def receive(self) -> Sequence[Received]:
        """Wait for messages; see `MessageStream`."""
        # Decoded here and not by the sender: each end decodes the messages that it receives.
        return [read_message(each, self._limits) for each in await self._incoming.take_all()]

    async def receive_bytes(self) -> Sequence[bytes]:
        """Wait for messages, not decoded; an empty list once the other end is closed."""
        return [
            each.head if isinstance(each, Oversized) else each
            for each in await self._incoming.take_all()
        ]

    def send_nowait(self, messages: Sequence[bytes]) -> bool:
        """Hand messages to the other end; see `MessageStream`."""
        if self._outgoing.closed:
            raise trio.BrokenResourceError
        for message in messages:
            # The receiver's limit, as on a wire. Only the head is kept, to find the id in it.
            fits = len(message) <= self._theirs.message_size
            self._outgoing.put(message if fits else Oversized(message[:HEAD]), len(message))
        return self._outgoing.has_room

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages to the other end and wait until it has room; see `MessageStream`."""
        await trio.lowlevel.checkpoint()
        if not self.send_nowait(messages):
            await self._outgoing.room()

    async def aclose(self) -> None:
        """Close both directions. The other end reads the remaining messages, then the end."""
        self._incoming.close()
        self._outgoing.close()
        await trio.lowlevel.checkpoint()


def memory_pair(
    limits: Limits = DEFAULTS, theirs: Limits = DEFAULTS
) -> tuple[MemoryStream, MemoryStream]:
    """Make two connected streams.

    Args:
        limits: The limits of one message that the first stream receives.
        theirs: The limits of one message that the second stream receives.
    """
    there, back = _Messages(), _Messages()
    return MemoryStream(back, there, limits, theirs), MemoryStream(there, back, theirs, limits)
