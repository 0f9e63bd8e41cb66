"""A record of what two peers said to each other."""

import json
from collections.abc import Iterator
from typing import Any, Literal

import attrs
import trio

from .._util import final

Direction = Literal["sent", "received"]


@attrs.frozen
class Entry:
    """One message.

    Attributes:
        direction: `sent` or `received`, as the client sees it.
        data: Its bytes, as they went over the wire.
        message: The decoded JSON; None for bytes that are no JSON.
    """

    direction: Direction
    data: bytes
    message: Any


@final
class Transcript:
    """Records every message of a connection: `connect(server, tap=transcript)`.

    Attributes:
        entries: The messages, in order; arrays of 2025-03-26 are one each.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._unclaimed: list[dict[str, Any]] = []
        self._arrived = trio.Event()

    def __call__(self, direction: Direction, data: bytes) -> None:
        """Take a message; this is what makes it a tap."""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            message = None
        self.entries.append(Entry(direction, data, message))
        if direction == "received":
            self._unclaimed += [each for each in _each(message) if "id" not in each]
            self._arrived.set()
            self._arrived = trio.Event()

    def sent(self, method: str | None = None) -> list[dict[str, Any]]:
        """List what the client sent.

        Args:
            method: Only messages of this method; None for everything, answers too.
        """
        return self._find("sent", method)

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """List what the server sent.

        Args:
            method: Only messages of this method; None for everything, answers too.
        """
        return self._find("received", method)

    def _find(self, direction: Direction, method: str | None) -> list[dict[str, Any]]:
        entries = [entry for entry in self.entries if entry.direction == direction]
        found = [each for entry in entries for each in _each(entry.message)]
        return [each for each in found if method is None or each.get("method") == method]

    def claim(self, method: str, **params: Any) -> dict[str, Any] | None:
        """Take the first notification of a method that nobody has taken yet.

        Args:
            method: The method.
            params: What its params must hold, among others.

        Returns:
            Its params, or None if there is no such notification.
        """
        for index, message in enumerate(self._unclaimed):
            given = message.get("params", {})
            fits = all(key in given and given[key] == value for key, value in params.items())
            if message.get("method") == method and fits:
                del self._unclaimed[index]
                return dict(given)
        return None

    async def wait(self) -> None:
        """Wait until the server has sent another message."""
        await self._arrived.wait()


def _each(message: Any) -> Iterator[dict[str, Any]]:
    for each in message if isinstance(message, list) else [message]:
        if isinstance(each, dict):
            yield each
