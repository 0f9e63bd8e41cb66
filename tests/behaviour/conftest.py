"""One server, four revisions, three transports; all of our messages are checked by schema."""

import importlib.util
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest
import trio

from noizu_mcp import Http, Limits, McpError, connect
from noizu_mcp.engine import MessageStream, Outgoing, Unanswered
from noizu_mcp.jsonrpc import Notification, Received, Request, Response, decode, read_message
from noizu_mcp.protocol import LATEST_HANDSHAKE, REVISIONS, STATELESS, is_stateless
from noizu_mcp.server import open_session
from noizu_mcp.testing import Fleet
from noizu_mcp.transports import HttpStream, LineStream, memory_pair
from noizu_mcp.transports.host import serve_hypercorn
from noizu_mcp.transports.http import HttpApp, HttpLimits, HttpOptions, serve_asgi
from noizu_mcp.transports.http.client import _network

HERE = Path(__file__).parent
#: In memory, where the Python schema engine validates everything.
PYTHON = "memory, python engine"
#: Over HTTP, by two nodes of a fleet.
NODES = "two nodes"
#: Classes whose tools meet each other in attributes, which nodes do not share.
STATEFUL = (
    ("kits", "Control"),
    ("askers", "Questions"),
    ("askers", "Forgetful"),
    ("jobs", "Jobs"),
    ("timely", "Timely"),
    ("strays", "Beside"),
    ("holding", "Baskets"),
)
_UNLIMITED = Limits(message_size=2**40, message_values=2**40, message_depth=10_000, batch=2**31)
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def load(name: str) -> ModuleType:
    """Load a module from this folder."""
    full = f"behaviour_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = module = importlib.util.module_from_spec(spec)
        before = list(sys.path)
        sys.path[:0] = [str(HERE), str(HERE.parent)]  # it imports modules of its folder
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path[:] = before
    return sys.modules[full]


_wire = load("wire")
Official, Recorder, Wire = _wire.Official, _wire.Recorder, _wire.Wire


class Zygote:
    """The process that forks servers; see `zygote.py`."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
        root = str(HERE.parents[1])
        environment["PYTHONPATH"] = root
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "zygote.py"), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def run(self, name: str, grace: float, fds: list[int]) -> int:
        socket.send_fds(self._control, [f"run {name} {grace}".encode()], fds)
        return int(self._control.recv(100))

    def wait(self, pid: int) -> int:
        self._control.send(f"wait {pid}".encode())
        return int(self._control.recv(100))

    def close(self) -> None:
        self._control.close()
        self._process.wait()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture(scope="session")
def official() -> Official:
    return Official()


@pytest.fixture(scope="session")
def servers() -> ModuleType:
    return load("servers")


@pytest.fixture(params=_wire.REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


#: The library does not close the generators of its responses; over HTTP/1.1 there are none.
_quiet = pytest.mark.filterwarnings("ignore:Async generator 'http(core|x)2:ResourceWarning")


@pytest.fixture(
    params=["memory", "stdio", "http", pytest.param("http2", marks=_quiet), NODES, PYTHON]
)
def transport(request: pytest.FixtureRequest) -> str:
    """Return the transport; HTTP/2, on hypercorn, and several nodes are forms of HTTP."""
    return "http" if request.param in ("http2", NODES) else request.param


@pytest.fixture
def on_nodes(request: pytest.FixtureRequest) -> bool:
    """Tell whether two nodes serve, and each request goes to one of them."""
    return request.node.callspec.params.get("transport") == NODES


@pytest.fixture
def http_2(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Tell whether HTTP/2 is used, by the client, too."""
    if request.node.callspec.params.get("transport") != "http2":
        return False

    def speak(context: Any, limits: httpx2.Limits, _network: Any) -> httpx2.AsyncHTTPTransport:
        # TLS is not used, and loading the system's certificates takes long.
        return httpx2.AsyncHTTPTransport(verify=_NO_TLS, http1=False, http2=True, limits=limits)

    monkeypatch.setattr(_network, "JoiningTransport", speak)
    connection = load("multiplexing").Connection
    monkeypatch.setattr("httpcore2._async.http2.AsyncHTTP2Connection", connection)
    return True


@asynccontextmanager
async def in_memory(server: Any, grace: float) -> AsyncIterator[tuple[MessageStream, Any]]:
    """Serve in this process; at the end nothing may remain."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    ours, theirs = memory_pair(theirs=server.options.limits)
    async with (
        open_session(server, theirs, transport="memory") as connection,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(connection.run, grace)
        try:
            yield ours, connection
        finally:
            await ours.aclose()
    assert await load("leaks").leaks(connection) == []
    # The task of the test may have ended before, in the fixture of a connection.
    assert trio.lowlevel.current_statistics().tasks_living <= tasks


@asynccontextmanager
async def in_a_process(
    zygote: Zygote, name: str, grace: float, *, stderr: Any
) -> AsyncIterator[MessageStream]:
    """Serve in a separate process, which must exit with status 0 and without leftovers."""
    child_in, our_out = os.pipe()
    our_in, child_out = os.pipe()
    pid = zygote.run(name, grace, [child_in, child_out, stderr.fileno()])
    os.close(child_in)
    os.close(child_out)
    stream = LineStream(our_in, our_out, Limits(message_size=64 * 1024 * 1024))
    failed = True
    try:
        yield stream
        failed = False
    finally:
        with trio.CancelScope(shield=True):
            await stream.aclose()
            status = zygote.wait(pid)
            stderr.seek(0)
            said = stderr.read()
        assert failed or status == 0, said
    assert "left behind" not in said


class Spoken(HttpStream):
    """Sends any bytes, and passes every protocol error on as a message, as on pipes."""

    #: The revision of the handshake; before it notifications belong to 2026-07-28.
    revision = STATELESS

    async def send(self, messages: Sequence[bytes]) -> None:
        await super().send([self._read(each) for each in messages])

    def _read(self, data: bytes) -> Outgoing:
        message, revision = decode(data, _UNLIMITED), self.revision
        if isinstance(message, Request):
            revision = STATELESS if is_stateless(message.params) else LATEST_HANDSHAKE
        elif not isinstance(message, Notification):
            revision = LATEST_HANDSHAKE
        return Outgoing(data, message, revision)

    async def receive(self) -> list[Received]:
        arrived = await super().receive()
        found = [each for each in arrived if isinstance(each, Received)]
        for each in found:
            result = each.message.result if isinstance(each.message, Response) else {}
            self.revision = REVISIONS.get(result.get("protocolVersion"), self.revision)
        failed = [each for each in arrived if isinstance(each, Unanswered)]
        # On a pipe a missing answer is not reported.
        errors = {id(each.error): each.error for each in failed if "broke off" not in str(each[1])}
        found += [
            read_message(_as_message(error, [each.id for each in failed if each[1] is error]))
            for error in errors.values()
        ]
        # An empty list would mean EOF.
        return found or (await self.receive() if arrived else [])


def _as_message(error: Exception, ids: list[Any]) -> bytes:
    """Convert an error without an id to a message: its request is known if there was just one."""
    if not isinstance(error, McpError):
        raise error
    whole = {"jsonrpc": "2.0", "error": {"code": error.code, "message": error.message}}
    return json.dumps({**whole, "id": ids[0]} if len(ids) == 1 else whole).encode()


@asynccontextmanager
async def over_http(
    server: Any, grace: float, http_2: bool
) -> AsyncIterator[tuple[HttpStream, HttpApp]]:
    """Serve on a local socket; at the end nothing may remain."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    app = HttpApp(server, HttpOptions(limits=HttpLimits(grace=grace or 0.01)))
    serve_on = serve_hypercorn if http_2 else serve_asgi
    serve = partial(serve_on, app, port=0, lifespan=app.lifespan(), stopping=app.settle)
    async with trio.open_nursery() as nursery:
        host = await nursery.start(serve)
        endpoint = app.endpoint
        stream = Spoken(Http(f"{host.urls[0]}/mcp"))
        await nursery.start(stream.run)
        try:
            yield stream, app
        finally:
            with trio.CancelScope(shield=True):
                await stream.aclose()
            host.stop()
    assert load("leaks").http_leaks(server, endpoint) == []
    assert trio.lowlevel.current_statistics().tasks_living <= tasks


@asynccontextmanager
async def over_nodes(make: Any, grace: float) -> AsyncIterator[tuple[HttpStream, Fleet]]:
    """Serve on two nodes; at the end nothing may remain at either."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    limits = HttpLimits(grace=grace or 0.01)
    async with Fleet(make, nodes=2, limits=limits) as fleet, trio.open_nursery() as nursery:
        apps = [fleet.app(number) for number in fleet.running]
        endpoints = [app.endpoint for app in apps]
        stream = Spoken(fleet.target())
        await nursery.start(stream.run)
        try:
            yield stream, fleet
        finally:
            with trio.CancelScope(shield=True):
                await stream.aclose()
    for app, endpoint in zip(apps, endpoints, strict=True):
        assert load("leaks").http_leaks(app.server, endpoint) == []
    assert trio.lowlevel.current_statistics().tasks_living <= tasks


@pytest.fixture(scope="session")
def loaded() -> Any:
    """Return a function that loads a module from this folder."""
    return load


@pytest.fixture(scope="session")
def served(servers: ModuleType, official: Official) -> Any:
    """Return a function that serves a class of `servers.py` in this process, for one revision."""

    @asynccontextmanager
    async def serve(name: str, revision: str, grace: float) -> AsyncIterator[Wire]:
        server = getattr(servers, name)()
        async with in_memory(server, grace) as (stream, connection):
            wire = Wire(stream, revision, official)
            wire.connection = connection
            yield wire

    return serve


@pytest.fixture(scope="session")
def forked(zygote: Zygote, official: Official) -> Any:
    """Return a function that serves a class of `servers.py` in a separate process."""

    @asynccontextmanager
    async def serve(name: str, revision: str, grace: float) -> AsyncIterator[Wire]:
        with tempfile.TemporaryFile("w+") as stderr:
            async with in_a_process(zygote, name, grace, stderr=stderr) as stream:
                yield Wire(stream, revision, official)

    return serve


@pytest.fixture(scope="session")
def hosted(servers: ModuleType, official: Official) -> Any:
    """Return a function that serves a class of `servers.py` over HTTP, in this process."""

    @asynccontextmanager
    async def serve(
        name: str, revision: str, grace: float, *, http_2: bool = False
    ) -> AsyncIterator[Wire]:
        server = getattr(servers, name)()
        async with over_http(server, grace, http_2) as (stream, app):
            wire = Wire(stream, revision, official)
            wire.app = app
            yield wire

    return serve


@pytest.fixture(scope="session")
def shared(servers: ModuleType, official: Official) -> Any:
    """Return a function that serves a class of `servers.py` on two nodes, in this process."""

    @asynccontextmanager
    async def serve(name: str, revision: str, grace: float) -> AsyncIterator[Wire]:
        with pytest.MonkeyPatch.context() as patch:
            for module, toolkit in STATEFUL:
                # As `servers.py` has imported it: `load` would make another class of that name.
                share_state(patch, getattr(sys.modules[module], toolkit))
            async with over_nodes(getattr(servers, name), grace) as (stream, fleet):
                wire = Wire(stream, revision, official)
                wire.fleet = fleet
                yield wire

    return serve


def share_state(patch: pytest.MonkeyPatch, cls: Any) -> None:
    """Give all instances of a class the same attributes, as if they were in a database."""
    make, states = cls.__init__, []

    def make_shared(self: Any) -> None:
        make(self)
        states.append(vars(self))
        self.__dict__ = states[0]

    patch.setattr(cls, "__init__", make_shared)


@pytest.fixture
def opened(
    revision: str,
    transport: str,
    http_2: bool,
    on_nodes: bool,
    shared: Any,
    served: Any,
    forked: Any,
    hosted: Any,
    servers: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Return a function that connects to a server by the name of its class in `servers.py`."""
    over_network = shared if on_nodes else partial(hosted, http_2=http_2)
    ways = {"memory": served, "stdio": forked, "http": over_network, PYTHON: served}

    @asynccontextmanager
    async def open_wire(
        name: str, *, start: bool = True, grace: float = 0.2
    ) -> AsyncIterator[Wire]:
        if transport == PYTHON:
            cls = getattr(servers, name)
            monkeypatch.setattr(cls, "options", cls.options._replace(schema_engine="python"))
            # For schemas that no server lists: forms, and checks of the client.
            monkeypatch.setenv("NOIZU_MCP_SCHEMA_ENGINE", "python")
        async with ways[transport](name, revision, grace) as wire:
            if start:
                await wire.start()
            yield wire

    return open_wire


@pytest.fixture
async def kitchen(opened: Any) -> AsyncIterator[Wire]:
    async with opened("Kitchen") as wire:
        yield wire


@pytest.fixture
def connected(opened: Any, revision: str, official: Official) -> Any:
    """Return a function that connects `noizu_mcp`'s own client; its messages are checked, too."""

    @asynccontextmanager
    async def open_client(name: str, **options: Any) -> AsyncIterator[Any]:
        recorder = Recorder(official, revision, check_sent=True)
        options = {"version": revision, **options}
        async with opened(name, start=False) as wire:
            async with connect(wire.stream, tap=recorder, **options) as client:
                client.recorder = recorder
                yield client

    return open_client
