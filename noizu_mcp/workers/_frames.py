"""Frames: byte strings of any contents over one stream, each with its length before it."""

from typing import Final

import trio

#: Bytes of the length, big-endian.
_HEAD: Final = 4
#: Bytes that are read at once.
_CHUNK: Final = 64 * 1024


class FrameStream:
    """Frames between two processes that trust each other.

    Args:
        stream: The bytes; closed by the caller.
        most: Maximum bytes of a frame that is received.
    """

    def __init__(self, stream: trio.abc.Stream, most: int) -> None:
        self._stream = stream
        self._most = most
        self._read = bytearray()

    @property
    def has_more(self) -> bool:
        """Whether `receive` returns a frame without waiting."""
        return len(self._read) >= _HEAD + int.from_bytes(self._read[:_HEAD], "big")

    async def send(self, *frames: bytes) -> None:
        """Send frames at once. The caller waits for the end of a call before the next one.

        Raises:
            trio.BrokenResourceError: The other process has ended.
        """
        parts = [part for each in frames for part in (len(each).to_bytes(_HEAD, "big"), each)]
        await self._stream.send_all(b"".join(parts))

    async def receive(self) -> bytes | None:
        """Receive the next frame; None if the other process has ended, or sends a larger one."""
        head = await self._take(_HEAD)
        size = int.from_bytes(head or b"", "big")
        return None if head is None or size > self._most else await self._take(size)

    async def _take(self, size: int) -> bytes | None:
        while len(self._read) < size:
            try:
                data = await self._stream.receive_some(_CHUNK)
            except trio.BrokenResourceError:
                return None
            if not data:
                return None
            self._read += data
        taken = bytes(self._read[:size])
        del self._read[:size]
        return taken
