"""Messages to other nodes, until they are appended to a stream; bounded."""

from typing import Final

from ...engine import logger
from ...jsonrpc import render

#: The kind of a message about changes. Its body is a change, or None for any change.
CHANGED: Final = "changed"
#: Bytes of the messages in one entry. Sealed, they fit into an entry of a backend.
MAX_ENTRY: Final = 60 * 1024
#: Messages that wait in one queue.
MAX_QUEUED: Final = 10_000
#: The message that takes the place of changes that do not fit.
EVERYTHING: Final = render([CHANGED, None])


class MessageQueue:
    """Messages that wait to be appended to one stream, in order, each change once.

    Attributes:
        messages: The texts of the messages.
    """

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self._changes: set[bytes] = set()

    def add(self, message: bytes, *, is_change: bool) -> None:
        """Add a message; a change only if no equal one waits."""
        if message in self._changes:
            return
        if len(self.messages) >= MAX_QUEUED:
            if not is_change:
                logger.warning("a message to another node was dropped: too many wait")
                return
            # The changes become one message, which says the most.
            self.messages = [each for each in self.messages if each not in self._changes]
            self._changes.clear()
            message = EVERYTHING
        if is_change:
            self._changes.add(message)
        self.messages.append(message)

    def take(self) -> list[bytes]:
        """Remove and return the first messages that fit into an entry."""
        size = count = 0
        for message in self.messages:
            size += len(message) + 1
            if count and size > MAX_ENTRY:
                break
            count += 1
        taken = self.messages[:count]
        del self.messages[:count]
        # From now on an equal change is news.
        self._changes.difference_update(taken)
        return taken

    def put_back(self, taken: list[bytes]) -> None:
        """Put messages back to the front."""
        self.messages[:0] = taken
