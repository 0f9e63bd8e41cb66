"""Servers that are nodes of each other, sessions that go from one to the next, and faults."""

from contextlib import AsyncExitStack, asynccontextmanager

import trio

from noizu_mcp.backends import Backend, BackendUnavailable, Memory

from ..transports.http.wire import Session, serving

#: What all nodes share.
KEYS = ["a secret that is long enough for it"]
#: Seconds of a lease: short, since a node judges others after one.
LEASE = 2.0


class Line(Backend):
    """The way of one node to a backend, with faults.

    Attributes:
        calls: The operations, in order.
        failing: The operations that fail.
    """

    def __init__(self, shared):
        self.shared = shared
        self.lease = shared.lease
        self.calls = []
        self.failing = set()
        self._is_down = self._is_silent = False
        self._running = set()

    @asynccontextmanager
    async def open(self, name):
        async with self.shared.open(name):
            yield self

    @property
    def epoch(self):
        return self.shared.epoch

    def now(self):
        return self.shared.now()

    def cut(self):
        """Fail each operation from now on."""
        self._is_down = True
        for scope in self._running:
            scope.cancel()

    def stop(self):
        """Give no answer from now on: each operation fails after a second."""
        self._is_silent = True

    def mend(self):
        """Work again."""
        self._is_down = self._is_silent = False

    async def _do(self, operation, *args, **options):
        self.calls.append(operation)
        if self._is_silent:
            await trio.sleep(1)
            raise BackendUnavailable("no answer within a second")
        with trio.CancelScope() as scope:
            self._running.add(scope)
            try:
                if not self._is_down and operation not in self.failing:
                    return await getattr(self.shared, operation)(*args, **options)
            finally:
                self._running.discard(scope)
        raise BackendUnavailable("the line is cut")


def _forward(operation):
    async def forward(self, *args, **options):
        return await self._do(operation, *args, **options)

    return forward


for _name in ("get", "put", "delete", "members", "take", "append", "read", "end_of"):
    setattr(Line, _name, _forward(_name))
Line.__abstractmethods__ = frozenset()


class Fleet:
    """Nodes on one backend.

    Attributes:
        backend: What they share.
        lines: The way of each to the backend.
        wires: A wire to each of them.
    """

    def __init__(self, backend, lines, wires):
        self.backend = backend
        self.lines = lines
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
    backend = backend or Memory(lease=LEASE)
    lines = [Line(backend) for _ in range(count)]
    async with AsyncExitStack() as stack:
        wires = [
            await stack.enter_async_context(serving(make(), backend=line, **options))
            for line in lines
        ]
        yield Fleet(backend, lines, wires)


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
