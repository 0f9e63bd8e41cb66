"""A connected pair of streams in memory; messages still travel as bytes."""

from collections.abc import Sequence
from typing import Final

import trio

from .._limits import DEFAULTS, Limits
from ..engine import MessageStream
from ..jsonrpc import HEAD, Oversized, Received, read_message

#: Bytes that may wait at one end before the other end has to wait.
CAPACITY: Final = 1024 * 1024


class _Pipe:
    """One direction: the messages that one end has sent and the other has not received."""

    def __init__(self, limits: Limits) -> None:
        self.closed = False
        self._limits = limits
        self._messages: list[bytes | Oversized] = []
        self._size = 0
        self._arrived = trio.Event()
        self._taken = trio.Event()

    @property
    def has_room(self) -> bool:
        return self._size <= CAPACITY

    def put(self, messages: Sequence[bytes]) -> None:
        for message in messages:
            # The limit of the receiver, as on a wire; only the head is kept, to find the id in it.
            fits = len(message) <= self._limits.message_size
            self._messages.append(message if fits else Oversized(message[:HEAD]))
            self._size += len(message)
        self._arrived.set()

    async def take(self) -> Sequence[Received]:
        # A checkpoint also if nothing has to be waited for, as trio demands of async functions.
        if self._messages or self.closed:
            await trio.lowlevel.checkpoint()
        while not self._messages and not self.closed:
            self._arrived = trio.Event()
            await self._arrived.wait()
        messages, self._messages = self._messages, []
        self._size = 0
        self._taken.set()
        # Decoded here and not in `put`: the receiver pays for its own messages.
        return [read_message(message, self._limits) for message in messages]

    async def wait_room(self) -> None:
        # `close` sets the event as well, so a sender never waits for an end that has gone.
        while not self.has_room and not self.closed:
            self._taken = trio.Event()
            await self._taken.wait()

    def close(self) -> None:
        self.closed = True
        self._arrived.set()
        self._taken.set()


class MemoryStream(MessageStream):
    """One end of a pair; `memory_pair` makes both."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> Sequence[Received]:
        """Wait for messages; see `MessageStream`."""
        return await self._incoming.take()

    def send_nowait(self, messages: Sequence[bytes]) -> bool:
        """Hand messages to the other end; see `MessageStream`."""
        if self._outgoing.closed:
            raise trio.BrokenResourceError
        self._outgoing.put(messages)
        return self._outgoing.has_room

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages to the other end and wait until it has room; see `MessageStream`."""
        await trio.lowlevel.checkpoint()
        if not self.send_nowait(messages):
            await self._outgoing.wait_room()

    async def aclose(self) -> None:
        """Close both directions; the other end reads the messages that are left, then the end."""
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
    there, back = _Pipe(theirs), _Pipe(limits)
    return MemoryStream(back, there), MemoryStream(there, back)
