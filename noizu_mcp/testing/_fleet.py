"""`Fleet`: several nodes of one server in this process, behind a proxy, for tests.

Theory of operation. Each node is a server of its own on the HTTP host of this package. It listens
on a Unix socket in a temporary folder, and shares a `FaultyMemory` with the other nodes, which it
reaches over a link of its own. A connection carries one request, so the proxy needs no HTTP: it
opens each connection of a client to another node. No port is used. On a virtual clock nothing waits
for the network, since a Unix socket has what was sent at once.

`kill` first cuts the link to the backend and the connections of the clients, and then cancels the
tasks of the node. Code that runs while it is cancelled reaches neither of them, like the code of a
process that is gone.
"""

import itertools
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Final, Self

import httpcore2
import trio

from .._util import final
from ..client import Client, connect
from ..engine import single_failure
from ..server import Server
from ..transports import Http
from ..transports.http import Host, HostOptions, HttpApp, HttpOptions, serve_asgi
from ._faulty_memory import FaultyMemory

#: Ports in the URLs of fleets, on which nothing listens. Clients remember what they learned about a
#: server by its URL, so no two fleets of a process have the same.
_PORTS: Final = itertools.count(1)
_MAX_PORT: Final = 65535
#: The clock of every fleet begins here, so that two runs round alike.
_START: Final = 2.0**31
#: One request for each connection, so that the proxy chooses a node for each.
_ONE: Final = 1
#: Seconds for running requests beyond the grace of the application, as when serving.
_MARGIN: Final = 2.0


@final
class Fleet:
    """Several nodes of one server in this process, behind a proxy: `async with Fleet(Shop) as f:`.

    The proxy sends each HTTP request to one of the running nodes, drawn from the seed. On
    `trio.testing.MockClock` no test waits; the same operations on the same seed then meet the same
    nodes and faults, if trio runs tasks that are ready at one time in the same order.

    Args:
        server: The class of the server, or a function that makes one; called for each node.
        nodes: The number of nodes that are started at once. Their numbers begin with 0.
        seed: The seed of all random choices.
        lease: Seconds that a node lives in the backend after each renewal.
        options: How each node is served: the attributes of `HttpOptions`, without `backend`.

    Attributes:
        backend: What the nodes share.

    Raises:
        TypeError: `server` is an instance, or `backend` is given.
    """

    def __init__(
        self,
        server: Callable[[], Server],
        *,
        nodes: int = 2,
        seed: object = 0,
        lease: float = 10.0,
        **options: Any,
    ) -> None:
        if not callable(server):
            raise TypeError(f"each node has a server of its own: give the class, not {server!r}")
        if "backend" in options:
            raise TypeError("a fleet makes its own backend: leave backend= out")
        self.backend: Final = FaultyMemory(seed=seed, lease=lease, start=_START)
        self._make: Final = server
        self._options: Final = options
        self._wanted: Final = nodes
        self._seed: Final = seed
        self._clients: Final = itertools.count()
        self._starts: Final = itertools.count()
        self._members: Final[dict[int, _Member]] = {}
        self._url: Final = f"http://127.0.0.1:{next(_PORTS) % _MAX_PORT or 1}/mcp"
        self._opened: Final = self._open()
        self._folder: Path
        self._nursery: trio.Nursery

    async def __aenter__(self) -> Self:
        await self._opened.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._opened.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        with single_failure(), tempfile.TemporaryDirectory() as folder:
            self._folder = Path(folder)
            async with trio.open_nursery() as self._nursery:
                try:
                    for number in range(self._wanted):
                        await self.start(number)
                    yield
                    async with trio.open_nursery() as ending:
                        for number in self.running:
                            ending.start_soon(self.stop, number)
                finally:
                    # Nodes that were killed may still be ending.
                    self._nursery.cancel_scope.cancel()

    @property
    def running(self) -> list[int]:
        """The numbers of the nodes that run."""
        return sorted(self._members)

    def app(self, node: int) -> HttpApp:
        """Return the application of a node that runs; its `server` is the server.

        Args:
            node: Its number.

        Raises:
            ValueError: No such node runs.
        """
        return self._find(node).app

    def connect(
        self,
        *,
        node: int | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> AbstractAsyncContextManager[Client]:
        """Connect a client through the proxy while the block runs.

        Args:
            node: The number of the node that gets all its requests; None for another one each time.
            headers: The headers of each request, such as a token.
            options: The options of `noizu_mcp.connect`.
        """
        return connect(self.target(node=node, headers=headers), **options)

    def target(self, *, node: int | None = None, headers: Mapping[str, str] | None = None) -> Http:
        """Return a target of `connect` that the proxy stands before; see `connect`."""
        random = Random(f"{self._seed}-{next(self._clients)}")
        return _Proxied(self._url, headers, _Proxy(partial(self._choose, random, node)))

    async def start(self, node: int) -> None:
        """Start a node; return when it serves.

        Args:
            node: Its number: any that does not run.

        Raises:
            ValueError: It runs.
            BaseException: It could not be started, as when serving.
        """
        if node in self._members:
            raise ValueError(f"node {node} runs already")
        link = self.backend.link()
        options: dict[str, Any] = {**self._options, "backend": link}
        app = HttpApp(self._make(), HttpOptions(**options))
        member = _Member(app, link, str(self._folder / str(next(self._starts))))
        member.host = await self._nursery.start(member.run)
        member.endpoint = app.endpoint
        self._members[node] = member

    async def stop(self, node: int) -> None:
        """End a node in order, as a signal does; return when it has ended.

        Args:
            node: Its number.

        Raises:
            ValueError: No such node runs.
        """
        member = self._find(node)
        del self._members[node]
        member.host.stop()
        await member.ended.wait()

    def kill(self, node: int) -> None:
        """End a node at once: its connections break, and nothing of it reaches the backend.

        Handlers are cancelled, since Python cannot stop them: what they do then is not undone.

        Args:
            node: Its number.

        Raises:
            ValueError: No such node runs.
        """
        member = self._find(node)
        del self._members[node]
        member.cut()
        # Its handlers get no time to end.
        self._nursery.start_soon(member.endpoint.settle, 0)
        member.scope.cancel()

    def freeze(self, node: int, seconds: float) -> None:
        """Let nothing of a node reach its clients and the backend, like a process that is stopped.

        What it does meanwhile arrives afterwards.

        Args:
            node: Its number.
            seconds: The time.

        Raises:
            ValueError: No such node runs.
        """
        self._nursery.start_soon(self._find(node).freeze, seconds)

    def _find(self, node: int) -> "_Member":
        found = self._members.get(node)
        if found is None:
            raise ValueError(f"no node {node} runs; there are: {self.running}")
        return found

    def _choose(self, random: Random, node: int | None) -> "_Member":
        if node is None:
            node = random.choice(self.running) if self._members else 0
        found = self._members.get(node)
        if found is None:
            raise httpcore2.ConnectError(f"node {node} does not run")
        return found


class _Member:
    """A node while it runs.

    Args:
        app: The server as an application.
        link: Its way to the backend.
        path: The Unix socket.

    Attributes:
        host: Serves the application.
        endpoint: The endpoint of the application.
        scope: The tasks of the node.
        ended: Set when all of them have ended.
        connections: The connections of clients to it.
    """

    host: Host
    endpoint: Any

    def __init__(self, app: HttpApp, link: Any, path: str) -> None:
        self.app: Final = app
        self.link: Final = link
        self.path: Final = path
        self.scope: Final = trio.CancelScope()
        self.ended: Final = trio.Event()
        self.connections: Final[dict[_Connection, None]] = {}

    async def run(self, *, task_status: trio.TaskStatus[Host]) -> None:
        """Serve until the host is stopped or the scope is cancelled."""
        try:
            with self.scope:
                await serve_asgi(
                    self.app,
                    config=HostOptions(uds=self.path, max_requests=_ONE),
                    lifespan=self.app.lifespan(),
                    leaving=self.app.leave,
                    stopping=self.app.settle,
                    grace=self.app.options.limits.grace + _MARGIN,
                    task_status=task_status,
                )
        finally:
            self.ended.set()

    def cut(self) -> None:
        """Break the connections to clients and to the backend."""
        self.link.cut()
        for each in list(self.connections):
            each.cut()

    async def freeze(self, seconds: float) -> None:
        """Let nothing pass for a time."""
        self.link.freeze()
        try:
            await trio.sleep(seconds)
        finally:
            self.link.thaw()


class _Proxied(Http):
    """A server behind the proxy."""

    def __init__(self, url: str, headers: Mapping[str, str] | None, network: "_Proxy") -> None:
        super().__init__(url, headers=headers)
        object.__setattr__(self, "network", network)


class _Proxy(httpcore2.AsyncNetworkBackend):
    """Opens each connection of one client to a node.

    Args:
        choose: Returns the node.
    """

    def __init__(self, choose: Callable[[], _Member]) -> None:
        self._choose = choose
        self._inner = httpcore2.TrioBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> "_Connection":
        member = self._choose()
        inner = await self._inner.connect_unix_socket(member.path, timeout)
        return _Connection(inner, member)


class _Connection(httpcore2.AsyncNetworkStream):
    """A connection to a node, for one request.

    Args:
        inner: The connection.
        member: The node.
    """

    def __init__(self, inner: httpcore2.AsyncNetworkStream, member: _Member) -> None:
        self._inner = inner
        self._member = member
        member.connections[self] = None

    def cut(self) -> None:
        """Break the connection at once."""
        self._inner.get_extra_info("socket").close()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._inner.read(max_bytes, timeout)
        await self._member.link.thawed()
        if self._member.link.is_cut:
            raise httpcore2.ReadError("the node was killed")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # Not to a frozen node only when it goes on: the system takes the bytes meanwhile.
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        self._member.connections.pop(self, None)
        await self._inner.aclose()
