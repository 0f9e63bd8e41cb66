"""Servers that are nodes of each other, sessions that go from one to the next, and faults."""

from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import trio

from noizu_mcp.backends import BackendUnavailable, Memory

from ..transports.http.wire import Session, serving

#: Seconds of a lease: short, since a node judges others after one.
LEASE = 2.0


class Faulty(Memory):
    """A backend in memory with faults.

    Attributes:
        down: Operations fail.
        silent: Operations do not end.
        calls: The operations, in order.
    """

    def __init__(self):
        super().__init__(lease=LEASE)
        self.down = self.silent = False
        self.calls = []

    @contextmanager
    def observed(self, operation):
        with super().observed(operation):
            self.calls.append(operation)
            if self.down:
                raise BackendUnavailable("it was taken down")
            yield

    async def get(self, key, **options):
        if self.silent:
            await trio.sleep_forever()
        return await super().get(key, **options)


class Fleet:
    """Nodes on one backend.

    Attributes:
        backend: What they share.
        wires: A wire to each of them.
    """

    def __init__(self, backend, wires):
        self.backend = backend
        self.wires = wires

    def at(self, number, session):
        """Return a session at one node."""
        version = session.headers["mcp-protocol-version"]
        return Session(self.wires[number], session.id, version, ())

    async def session(self, *args, node=0, **options):
        """Begin a session at one node; return it at each of them."""
        begun = await self.wires[node].session(*args, **options)
        return [self.at(number, begun) for number in range(len(self.wires))]


@asynccontextmanager
async def fleet(make, count=2, backend=None, **options):
    """Serve servers as nodes of each other.

    Args:
        make: Makes the server of a node.
        count: The number of nodes.
        backend: What they share.
        options: As for `serving`.
    """
    backend = backend or Faulty()
    async with AsyncExitStack() as stack:
        wires = [
            await stack.enter_async_context(serving(make(), backend=backend, **options))
            for _ in range(count)
        ]
        yield Fleet(backend, wires)


async def settled():
    """Wait until every node has read what others have told."""
    await trio.sleep(0.1)


def text_of(answer):
    """Return the text of the result of a tool."""
    return result_of(answer)["content"][0]["text"]


def result_of(answer):
    """Return the result of a request."""
    found = answer.messages[-1] if answer.is_stream else answer.json
    assert "result" in found, found
    return found["result"]


def error_of(answer):
    """Return the error of a request: its code and message."""
    found = answer.messages[-1] if answer.is_stream else answer.json
    return found["error"]["code"], found["error"]["message"]
