"""Changes of lists and resources, from the peers of one node to the peers of all others."""

from collections.abc import Callable, Hashable
from functools import partial

from ..._value import JSON
from ..nodes._node import Node
from ..nodes._queue import CHANGED
from ._bus import Bus, Merger


class SharedChanges:
    """Sends each change of this node to the others, and their changes to the peers of this one.

    Args:
        node: The node.
        bus: The changes of the server in this process.
        merger: Notifies the peers of this node.
        run_soon: Runs a function in the thread of the loop, from any thread.
    """

    def __init__(
        self, node: Node, bus: Bus, merger: Merger, run_soon: Callable[[Callable[[], object]], None]
    ) -> None:
        self._node = node
        self._bus = bus
        self._merger = merger
        self._run_soon = run_soon
        node.receivers[CHANGED] = self._receive
        node.on_gap.append(self.report_all)

    def begin(self) -> None:
        """Send changes to the other nodes from now on."""
        self._bus.add(self._publish)

    def end(self) -> None:
        """Send no more changes."""
        self._bus.discard(self._publish)

    def _publish(self, change: Hashable) -> None:
        # From any thread: the node belongs to the loop.
        text: JSON = list(change) if isinstance(change, tuple) else str(change)
        self._run_soon(partial(self._node.tell, CHANGED, text))

    def _receive(self, _sender: str, change: JSON) -> None:
        if change is None:
            self._node.note_gap()
        else:
            # To the peers of this node only: the sender has told all nodes.
            self._merger.report(decode_change(change))

    def report_all(self) -> None:
        """Notify each peer of everything that it has subscribed to: a change may be missing."""
        for subscriber in list(self._merger.subscribers):
            subscriber.report_all()


def decode_change(change: JSON) -> Hashable:
    """Return the change of a message, as the merger takes it."""
    return tuple(change) if isinstance(change, list) else change
