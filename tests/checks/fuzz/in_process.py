"""The server of `seeded.py` without a process, for tests with a mock clock."""

import json

import trio

from noizu_mcp.check.raw import MemoryLink, StreamLink

from .seeded import Seeded


class Hangs(BaseException):
    """The server hangs."""


class InProcess(MemoryLink):
    """A connection to its own server.

    Args:
        fault: The fault, or a class of servers.
        notes: Receives faults of messages.
    """

    def __init__(self, fault, notes):
        StreamLink.__init__(self, notes)
        self._replies = []
        self._nursery = None
        self._server = Seeded(fault) if isinstance(fault, str) else fault()
        self._server.write = self._replies.append
        self._server.write_later = lambda *late: self._nursery.start_soon(self._take_late, *late)
        self._server.hang = self._hang
        self._hangs = False
        self._scope = trio.CancelScope()

    def _hang(self):
        self._hangs = True
        raise Hangs

    async def serve(self):
        with self._scope:
            async with trio.open_nursery() as self._nursery:
                await trio.sleep_forever()

    async def _take_late(self, seconds, reply):
        await trio.sleep(seconds)
        await self.take(json.dumps(reply).encode())

    async def read(self):
        """Nothing is read: what the server writes is delivered at once."""

    async def write(self, message):
        if self._hangs or self.ended:
            return not self.ended
        try:
            self._server.receive(message)
        except Hangs:
            return True
        except SystemExit:
            await self.end_reading()
            return True
        replies, self._replies[:] = list(self._replies), []
        for each in replies:
            await self.take(json.dumps(each).encode())
        return True

    async def aclose(self):
        self._scope.cancel()
        await trio.lowlevel.checkpoint()
