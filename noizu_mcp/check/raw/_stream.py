"""A connection that carries messages in sequence, in both directions."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Final

import trio

from ..._limits import Limits
from ...server import Server, serve
from ...transports import memory_pair
from ._exchange import Exchange, Notes, RawMessage, Receiver, method_of, requests_of

#: Maximum bytes of one message from a server in memory.
MAX_MESSAGE: Final = 16 * 1024 * 1024
#: Minimum seconds for a server to read one message.
READ_TIMEOUT: Final = 10.0


class StreamLink(ABC):
    """A connection over a stream; see `Link`.

    Args:
        notes: Gets the faults of the messages.

    Attributes:
        ended: True once the server has closed its end.
        receiver: The messages of the server.
        notes: See Args.
        where: The message that the server is answering, briefly.
    """

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.receiver = Receiver(notes)
        self.ended = False
        self.where = "nothing yet"
        self._news = trio.Condition()

    @abstractmethod
    async def write(self, message: bytes) -> bool:
        """Write a message; False if the server no longer reads."""

    @abstractmethod
    async def _last_words(self) -> str:
        """Describe how the server ended."""

    async def exchange(
        self, message: RawMessage, headers: Mapping[str, str], patience: float
    ) -> Exchange:
        """Send a message and wait for the answer; see `Link`."""
        del headers
        found = Exchange(method_of(message))
        self.where = found.sent
        ids = [each["id"] for each in requests_of(message)]
        for each in ids:
            self.receiver.expect(each)
        began = trio.current_time()
        with trio.move_on_after(max(patience, READ_TIMEOUT)) as reading:
            is_read = await self.write(json.dumps(message).encode())
        if reading.cancelled_caught:
            # No message can follow a partially written one.
            self.ended = found.ended = True
            found.failure = "the server does not read"
            return found
        if not is_read or not ids:
            found.ended = self.ended
            return await self._with_last_words(found)
        with trio.move_on_after(patience):
            async with self._news:
                while not self.ended and not self.receiver.has_answers(ids):
                    await self._news.wait()
        if self.receiver.has_answers(ids):
            found.answer = self.receiver.answer_to(ids[0])
        found.ended = self.ended and found.answer is None
        found.seconds = trio.current_time() - began
        return await self._with_last_words(found)

    async def _with_last_words(self, found: Exchange) -> Exchange:
        if found.ended:
            found.failure = await self._last_words()
        return found

    async def take(self, message: bytes) -> None:
        """Handle one message of the server, and answer it if it is a request."""
        text = message.decode(errors="replace").strip()
        # Empty lines contain no message, and are harmless.
        looks = text.startswith(("{", "["))
        if not self.notes.check("stdout", looks or not text, self.where, text) or not text:
            return
        reply = self.receiver.take(message, self.where)
        if reply is not None:
            await self.write(json.dumps(reply).encode())
        async with self._news:
            self._news.notify_all()

    async def end_reading(self) -> None:
        """Record that no more messages come."""
        async with self._news:
            self.ended = True
            self._news.notify_all()


class MemoryLink(StreamLink):
    """A server in this process, connected in memory. Messages are passed as bytes.

    `serve` and `read` run while the connection is open.

    Args:
        server: The server.
        notes: Gets the faults of the messages.
    """

    def __init__(self, server: Server, notes: Notes) -> None:
        super().__init__(notes)
        limits = Limits(message_size=MAX_MESSAGE)
        self._ours, theirs = memory_pair(limits, theirs=server.options.limits)
        self._serve = partial(serve, server, theirs, transport="memory", grace=0.0)
        self._scope = trio.CancelScope()

    async def serve(self) -> None:
        """Serve the connection."""
        with self._scope:
            await self._serve()

    async def read(self) -> None:
        """Read the messages of the server to their end."""
        while messages := await self._ours.receive_bytes():
            for message in messages:
                await self.take(message)
        await self.end_reading()

    async def write(self, message: bytes) -> bool:
        """Write a message; see `StreamLink`."""
        try:
            await self._ours.send([message])
        except trio.BrokenResourceError:
            self.ended = True
            return False
        return True

    async def _last_words(self) -> str:
        return "the server has ended"

    async def aclose(self) -> None:
        """End the connection at once."""
        self._scope.cancel()
        await self._ours.aclose()
