"""Contracts: the streams and reply channels of transports, and the observer of a request."""

import abc
from collections.abc import (
    Awaitable,
    Callable,
    Generator,
    Hashable,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol, Self

import trio

from .._errors import ConnectionClosed
from .._value import JSONMapping
from ..jsonrpc import Decoded, Id, Received, Rendered, Request
from ..protocol import Revision


class SessionEnded(ConnectionClosed):
    """The peer no longer knows the session of a request, so it has not processed the request."""


class Unanswered(NamedTuple):
    """A substitute for an answer that will not come.

    For streams on which one message can fail while others succeed.

    Attributes:
        id: The id of the request.
        error: The reason; raised where the answer is awaited.
    """

    id: Id
    error: Exception


class Outgoing(bytes):
    """The bytes of a request or notification of a client, with the facts that routing needs.

    Streamable HTTP uses them to choose the headers of each message. Otherwise it would have to
    decode the bytes again. Pipes, taps and recordings treat it like any other bytes.

    Args:
        data: The bytes.
        message: The message that they encode.
        revision: The revision that the message is written in.

    Attributes:
        message: See Args.
        revision: See Args.
    """

    # No slots: a subclass of `bytes` cannot have any.

    def __new__(cls, data: bytes, message: Decoded, revision: Revision) -> Self:
        made = super().__new__(cls, data)
        made.message, made.revision = message, revision
        return made

    message: Decoded
    revision: Revision


class MessageStream(abc.ABC):
    """Carries JSON-RPC messages between this program and one peer.

    It decodes each received message once, within its limits; no layer above parses bytes. It sends
    bytes without framing. If it sends each message separately, the requests and notifications of a
    client are `Outgoing`.

    One task receives and one task sends; `send_nowait` may be called from any task of the loop
    while no task is inside `send`.

    Attributes:
        mirrored: The argument that each `Mcp-Param-*` header mirrors, by tool, set by the client;
            None if the stream has no headers.
        address: Identifies the server on later connections, too: its URL or its command; None if
            unknown.
    """

    mirrored: MutableMapping[str, Mapping[str, tuple[str, ...]]] | None = None
    address: Hashable = None

    @property
    def credentials(self) -> Hashable:
        """A value that changes with the credentials of the messages; None if changes are unknown.

        They never change on a pipe.
        """
        return ()

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
        """Accept messages, and write as much as possible without waiting.

        Returns:
            True if nothing is left to write; otherwise `send` must be called.

        Raises:
            trio.BrokenResourceError: The peer is gone.
        """

    @abc.abstractmethod
    async def send(self, messages: Sequence[bytes]) -> None:
        """Write messages, after those that `send_nowait` left; a checkpoint.

        Raises:
            trio.BrokenResourceError: The peer is gone.
        """

    async def wait_session_end(self) -> None:
        """Wait until the transport learns, without a request, that the session has expired.

        One task waits. By default, for streams without such sessions, it waits forever.
        """
        await trio.sleep_forever()

    def observe_gaps(self, tell: Callable[[], object]) -> None:
        """Call a function whenever messages that the peer sent on its own may have been lost.

        Args:
            tell: The function; must not raise.
        """
        del tell  # a pipe loses no messages

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Close both directions; a second call does nothing."""


class ReplyChannel(Protocol):
    """Sends the messages of one request to the peer, in order, without waiting.

    On a pipe it is the outbox of the connection; over HTTP, the answer to one POST.

    Attributes:
        is_broken: True once the peer is known to accept no more messages; over HTTP messages fail
            separately.
    """

    is_broken: bool

    def reserve(self, size: int, /) -> bool:
        """Reserve memory for an answer, or a part of it, before it is sent.

        Args:
            size: Bytes of the answer.

        Returns:
            False if there is no room: then a short error must be sent instead.
        """

    def answer(self, message: bytes, code: int | None = None, /) -> None:
        """Send the answer to the request, or the batch of answers.

        Args:
            message: The answer.
            code: The error code of the answer; None for a result.
        """

    def abandon(self) -> None:
        """Expect no answer: the peer has cancelled the request."""

    def release(self, seconds: float, /) -> None:
        """Let the peer reconnect for the rest, if possible (2025-11-25 over HTTP).

        Args:
            seconds: Time that the peer must wait before it reconnects.
        """

    def deliver(self, message: bytes) -> None:
        """Send a message that must not be lost."""

    def offer(self, message: bytes) -> None:
        """Send a message that is dropped if there is no room."""

    @property
    def has_room(self) -> bool:
        """False while too many bytes are waiting to be written."""

    async def room(self) -> None:
        """Wait until there is room for more; a checkpoint."""


class Delivery:
    """A notification that was passed on. Awaiting it waits until there is room for more.

    Args:
        room: Waits for room; a checkpoint.
    """

    __slots__ = ("_room",)

    def __init__(self, room: Callable[[], Awaitable[None]]) -> None:
        self._room = room

    def __await__(self) -> Generator[Any, Any, None]:
        return self._room().__await__()


#: The ending of a request, if its answer does not show it.
Ending = Literal["crashed", "timed_out", "denied"]


class RequestObserver(Protocol):
    """Observes one request of the peer. No method may raise."""

    def mark(self, ending: Ending) -> None:
        """Store the ending that the answer will not show."""

    def observe_result(self, result: JSONMapping | Rendered) -> None:
        """Observe the result, before `observe_answer`."""

    def observe_answer(self, size: int, code: int | None) -> None:
        """Observe the answer.

        Args:
            size: Bytes of the answer.
            code: The error code; None for a result.
        """

    def observe_cancellation(self) -> None:
        """Observe that the peer has stopped waiting for the answer."""

    def surround_question(self, request: Request) -> AbstractContextManager[None]:
        """Observe a request to the peer that belongs to it, while the block runs."""
