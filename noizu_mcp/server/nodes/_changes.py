"""Changes of lists and resources, from the peers of one node to the peers of all others."""

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING

from ..._value import JSON
from ._node import CHANGED, Node

if TYPE_CHECKING:
    from .._running import RunningServer


class SharedChanges:
    """Sends each change of this node to the others, and their changes to the peers of this one.

    Args:
        node: The node.
        running: The server while it is served.
    """

    def __init__(self, node: Node, running: "RunningServer") -> None:
        self._node = node
        self._running = running
        node.receivers[CHANGED] = self._receive
        node.on_gap.append(self.report_all)

    def begin(self) -> None:
        """Send changes to the other nodes from now on."""
        self._running.server.bus.add(self._publish)

    def end(self) -> None:
        """Send no more changes."""
        self._running.server.bus.discard(self._publish)

    def _publish(self, change: Hashable) -> None:
        # From any thread: the node belongs to the loop.
        text: JSON = list(change) if isinstance(change, tuple) else str(change)
        self._running.portal.run_soon(partial(self._node.tell, CHANGED, text))

    def _receive(self, _sender: str, change: JSON) -> None:
        if change is None:
            self.report_all()
        else:
            # To the peers of this node only: the sender has told all nodes.
            self._running.merger.report(decode_change(change))

    def report_all(self) -> None:
        """Notify each peer of everything that it has subscribed to: a change may be missing."""
        for subscriber in list(self._running.merger.subscribers):
            subscriber.report_all()


def decode_change(change: JSON) -> Hashable:
    """Return the change of a message, as the merger takes it."""
    return tuple(change) if isinstance(change, list) else change
