"""Transcripts of connections, and assertions about the notifications in them.

Notifications arrive at any time: an assertion waits for one, or checks that none comes. Each
notification satisfies one assertion, in order of arrival.
"""

import json
from collections.abc import Iterator
from typing import Final, Literal

import attrs
import trio

from .._printable import printable
from .._util import final
from .._value import JSON, JSONObject

EntryDirection = Literal["sent", "received"]

#: Default number of messages, and of characters of each, in the text of a transcript.
MOST_SHOWN: Final = 50
WIDTH: Final = 500


@attrs.frozen
class Entry:
    """One message.

    Attributes:
        direction: `sent` or `received`, from the client's side.
        data: Its bytes.
        message: The decoded JSON; None for bytes that are not JSON.
    """

    direction: EntryDirection
    data: bytes
    message: JSON


@final
class Transcript:
    """Records every message of a connection: `connect(server, tap=transcript)`.

    Attributes:
        entries: The messages, in order; an array of 2025-03-26 is one entry.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._unclaimed: list[JSONObject] = []
        self._arrived = trio.Event()

    def __call__(self, direction: EntryDirection, data: bytes) -> None:
        """Record a message, as the tap of a connection."""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            # A test may be about invalid bytes: they are recorded, and nothing fails here.
            message = None
        self.entries.append(Entry(direction, data, message))
        if direction == "received":
            self._unclaimed += [each for each in _each(message) if "id" not in each]
            # All waiting tasks wake up and check; the next message needs a new event.
            self._arrived.set()
            self._arrived = trio.Event()

    def sent(self, method: str | None = None) -> list[JSONObject]:
        """List the messages that the client sent.

        Args:
            method: Only messages of this method; None for all messages, answers included.
        """
        return self._find("sent", method)

    def received(self, method: str | None = None) -> list[JSONObject]:
        """List the messages that the server sent.

        Args:
            method: Only messages of this method; None for all messages, answers included.
        """
        return self._find("received", method)

    def _find(self, direction: EntryDirection, method: str | None) -> list[JSONObject]:
        entries = [entry for entry in self.entries if entry.direction == direction]
        found = [each for entry in entries for each in _each(entry.message)]
        return [each for each in found if method is None or each.get("method") == method]

    def claim(self, method: str, **params: JSON) -> JSONObject | None:
        """Return the first notification of a method that was not returned before.

        Args:
            method: The method.
            params: Members that its params must have; others are ignored.

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

    def render(self, most: int = MOST_SHOWN, width: int = WIDTH) -> str:
        """Format the messages as text, one per line, for the output of a failing test.

        Characters that steer a terminal, or that show nothing, are written as code points.

        Args:
            most: Maximum number of messages; the last ones are shown.
            width: Maximum characters of a line; longer messages are cut.
        """
        shown = self.entries[-most:]
        left = len(self.entries) - len(shown)
        lines = [f"({left} more before)"] if left else []
        for entry in shown:
            said = printable(entry.data.decode(errors="backslashreplace")[: width + 1])
            text = f"{entry.direction:8} {said}"
            lines.append(text if len(text) <= width else f"{text[: width - 1]}…")
        return "\n".join(lines)

    async def wait(self) -> None:
        """Wait until the server has sent another message."""
        await self._arrived.wait()


def _each(message: JSON) -> Iterator[JSONObject]:
    for each in message if isinstance(message, list) else [message]:
        if isinstance(each, dict):
            yield each


#: Seconds to wait for an expected notification; a server in memory needs far less.
TIMEOUT: Final = 1.0
#: Seconds to wait for a notification that should not arrive.
SILENCE: Final = 0.1


async def assert_notification(
    transcript: Transcript,
    method: str,
    *,
    timeout: float = TIMEOUT,
    **params: JSON,
) -> JSONObject:
    """Wait for a notification. Each one satisfies one assertion, in order of arrival.

    Args:
        transcript: The tap of the connection: `connect(…, tap=transcript)`.
        method: Its method: `notifications/tools/list_changed`.
        timeout: Seconds.
        params: Members that its params must have; others are ignored.

    Returns:
        Its params.

    Raises:
        AssertionError: No such notification arrived in time.
    """
    # Not `fail_after`: a `TooSlowError` would not name the notification.
    with trio.move_on_after(timeout):
        while True:
            found = transcript.claim(method, **params)
            if found is not None:
                return found
            await transcript.wait()
    wanted = f" with {params!r}" if params else ""
    raise AssertionError(f"Timed out awaiting {method} notification{wanted}")


async def assert_progress(
    transcript: Transcript,
    progress: float,
    *,
    timeout: float = TIMEOUT,
    **params: JSON,
) -> JSONObject:
    """Wait for a progress notification.

    Args:
        transcript: The tap of the connection: `connect(…, tap=transcript)`.
        progress: The value of `progress`.
        timeout: Seconds.
        params: Other members that its params must have: `total=2`, `message="…"`.

    Returns:
        Its params.

    Raises:
        AssertionError: No such notification arrived in time.
    """
    return await assert_notification(
        transcript, "notifications/progress", timeout=timeout, progress=progress, **params
    )


async def refute_notification(
    transcript: Transcript, method: str, *, within: float = SILENCE, **params: JSON
) -> None:
    """Check that a notification does not arrive.

    Args:
        transcript: The tap of the connection: `connect(…, tap=transcript)`.
        method: Its method.
        within: Seconds to wait.
        params: Members of the params; a notification without them is ignored.

    Raises:
        AssertionError: Such a notification arrived.
    """
    with trio.move_on_after(within):
        while True:
            found = transcript.claim(method, **params)
            if found is not None:
                raise AssertionError(f"Expected no {method} notification, got: {found!r}")
            await transcript.wait()
