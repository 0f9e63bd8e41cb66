"""Messages of clients that belong to a request at another node: answers, progress, cancellations.

The id of a question to the client begins with the node that asks, so an answer says where it
belongs. The id of a client's request does not, so its cancellation goes to all nodes. The receiver
acts only if it has the session.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ...._limits import Limits
from ...._value import JSON
from ....backends import BackendUnavailable
from ....jsonrpc import (
    Batch,
    Decoded,
    ErrorResponse,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    encode,
    render,
)
from ....server import Node
from ._shared_parts import MESSAGE, STORED
from ._shared_streams import FITS, RETRY, WriteSoon, node_of

if TYPE_CHECKING:
    from ._shared_session import SharedSession

#: Seconds for which a large message waits in a record.
MESSAGE_TTL: Final = 60.0
#: The form of the id of a node. Clients may send anything, and must not name streams.
_NODE: Final = re.compile(r"[0-9a-f]{16}")


class ClientMessages:
    """Passes messages of clients on to other nodes, and acts on those that come from them.

    Args:
        node: This node.
        limits: The limits of messages.
        write_soon: Starts a task.
    """

    def __init__(self, node: Node, limits: Limits, write_soon: WriteSoon) -> None:
        self._node = node
        self._limits = limits
        self._write_soon = write_soon
        #: What is done with each kind of message, for a session.
        self.acts: dict[str, Callable[..., object]] = {
            MESSAGE: self._take,
            STORED: self._take_stored,
        }

    async def pass_on(self, session: "SharedSession", message: Decoded) -> Decoded | None:
        """Send other nodes what belongs to their requests.

        Returns:
            The rest, which belongs here; None for nothing.
        """
        if isinstance(message, Batch):
            ids = [each.id for each in message.messages if isinstance(each, Request)]
            passed = [
                each if _cancels(each, ids) else await self.pass_on(session, each)
                for each in message.messages
            ]
            rest = tuple(each for each in passed if each is not None)
            return Batch(rest) if rest or not message.messages else None  # type: ignore[arg-type]
        node = _find_node(session, message)
        if node == self._node.id or not (node is None or await self._is_alive(node)):
            return message
        sent = message.error if isinstance(message, Malformed) else message
        text = encode(sent).decode()
        if len(render(text)) <= FITS:
            self._node.tell(MESSAGE, session.digest, text, to=node)
        else:
            self._write_soon(partial(self._send_stored, session.digest, text, node))
        return None

    async def _is_alive(self, node: str) -> bool:
        try:
            return bool(_NODE.fullmatch(node)) and await self._node.is_alive(node)
        except BackendUnavailable:
            return False

    async def _send_stored(self, digest: str, text: str, to: str | None) -> None:
        # An entry of a log is smaller than the value of a record.
        key = f"m:{os.urandom(16).hex()}"
        await self._node.records.put(key, text, ttl=MESSAGE_TTL)
        self._node.tell(STORED, digest, key, to=to)

    def _take(self, session: "SharedSession", text: JSON) -> None:
        message = decode(text.encode(), self._limits)
        event = session.decide(message)
        if session.listeners:
            session.observe_received(message, event, len(text))
        if event is not None:
            session.take(event, session.get_stream)

    def _take_stored(self, session: "SharedSession", key: str) -> None:
        session.spawn(partial(self._fetch, session, key))

    async def _fetch(self, session: "SharedSession", key: str) -> None:
        while True:
            try:
                stored = await self._node.records.get(key)
                break
            except BackendUnavailable:
                await trio.sleep(RETRY)
        if stored is not None:
            self._take(session, stored.value)


def _cancels(message: Decoded, ids: list[str | int]) -> bool:
    """Tell whether a message cancels a request of its own batch, which is not yet in flight."""
    if not isinstance(message, Notification) or message.method != "notifications/cancelled":
        return False
    id_ = (message.params or {}).get("requestId")
    return any(type(each) is type(id_) and each == id_ for each in ids)


def _find_node(session: "SharedSession", message: Decoded) -> str | None:
    """Find the node of the request that a message is about; None where any node may have it."""
    here, name = session.node.id, None
    if isinstance(message, Malformed):
        name = None if message.answer else message.error.id
    elif isinstance(message, Response | ErrorResponse):
        name = message.id
    elif isinstance(message, Notification):
        params = message.params or {}
        if message.method == "notifications/progress":
            name = params.get("progressToken")
        elif message.method == "notifications/cancelled":
            id_ = params.get("requestId")
            is_here = not isinstance(id_, str | int) or session.ledger.holds(id_)
            return here if is_here else None
    return node_of(name) or here
