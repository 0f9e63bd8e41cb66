"""The contract of a transport: whole messages in, whole messages out."""

import abc
from collections.abc import Mapping, MutableMapping, Sequence
from typing import NamedTuple

import trio

from .._errors import ConnectionClosed
from ..jsonrpc import Id, Received


class SessionEnded(ConnectionClosed):
    """The peer does not know the session of a request any more, so it has not carried it out."""


class Unanswered(NamedTuple):
    """A stand-in for an answer that will not come.

    Where each message travels by itself one can fail while the others go on.

    Attributes:
        id: The id of the request.
        error: Why; raised where the answer is awaited.
    """

    id: Id
    error: Exception


class MessageStream(abc.ABC):
    """Carries JSON-RPC messages between this program and one peer.

    It decodes each message that it receives, once, within the limits that it was made with; no
    layer above parses bytes. It sends bytes without framing; our own requests and
    notifications are `jsonrpc.Encoded`, which a transport can route without parsing them.

    One task receives and one task sends; `send_nowait` may be called from any task of the loop
    while nobody is inside `send`.

    Attributes:
        mirrored: Where a client notes which argument each `Mcp-Param-*` header mirrors, by tool;
            None: the stream has no headers.
    """

    mirrored: MutableMapping[str, Mapping[str, tuple[str, ...]]] | None = None

    @abc.abstractmethod
    async def receive(self) -> Sequence[Received | Unanswered]:
        """Wait for messages.

        Returns:
            At least one message, in order; nothing at the end of the stream.

        Raises:
            trio.BrokenResourceError: The stream broke; no more will come.
        """

    @abc.abstractmethod
    def send_nowait(self, messages: Sequence[bytes]) -> bool:
        """Take messages, and write as much as the pipe takes without waiting.

        Returns:
            True when nothing is left to write; otherwise `send` must be called to finish.

        Raises:
            trio.BrokenResourceError: The peer is gone.
        """

    @abc.abstractmethod
    async def send(self, messages: Sequence[bytes]) -> None:
        """Write messages, after the rest that `send_nowait` left; a checkpoint.

        Raises:
            trio.BrokenResourceError: The peer is gone.
        """

    async def wait_session_end(self) -> None:
        """Wait until the peer says, with no request asked, that it does not know the session.

        One task waits. A stream on which there is no such session, as here, waits for ever.
        """
        await trio.sleep_forever()

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Close both directions; closing twice is fine."""
