"""A stream that passes a copy of each message to a tap."""

from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from ..engine import MessageStream, Unanswered
from ..jsonrpc import Received

TapDirection = Literal["sent", "received"]
#: Called with every message, in order. Must not raise and must not wait.
Tap = Callable[[TapDirection, bytes], None]


class TappedStream(MessageStream):
    """Passes every message on, and shows it to a tap.

    Args:
        stream: The wrapped stream; closed together with this one.
        tap: Called with the messages.
    """

    def __init__(self, stream: MessageStream, tap: Tap) -> None:
        # One shared object: the client writes to it, and the wrapped stream reads it.
        self.mirrored = stream.mirrored
        self.address = stream.address
        self._stream = stream
        self._tap = tap

    @property
    def credentials(self) -> Hashable:
        """The credentials of the messages; see `MessageStream`."""
        return self._stream.credentials

    async def receive(self) -> Sequence[Received | Unanswered]:
        """Wait for messages; see `MessageStream`."""
        messages = await self._stream.receive()
        for message in messages:
            # An `Unanswered` has no bytes: it replaces an answer that never came.
            if not isinstance(message, Unanswered):
                self._tap("received", message.data)
        return messages

    def send_nowait(self, messages: Sequence[bytes]) -> bool:
        """Write as many messages as possible without waiting; see `MessageStream`."""
        self._show(messages)
        return self._stream.send_nowait(messages)

    async def send(self, messages: Sequence[bytes]) -> None:
        """Write messages, waiting if necessary; see `MessageStream`."""
        self._show(messages)
        await self._stream.send(messages)

    def _show(self, messages: Sequence[bytes]) -> None:
        for message in messages:
            self._tap("sent", message)

    async def wait_session_end(self) -> None:
        """Wait until the session is over; see `MessageStream`."""
        await self._stream.wait_session_end()

    def observe_gaps(self, tell: Callable[[], object]) -> None:
        """Call a function when messages may have been lost; see `MessageStream`."""
        self._stream.observe_gaps(tell)

    async def aclose(self) -> None:
        """Close the wrapped stream."""
        await self._stream.aclose()
