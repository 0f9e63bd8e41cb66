"""One server, four revisions, two transports; everything that we send is checked by schema."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trio

from noizu_mcp import connect
from noizu_mcp.engine import MessageStream
from noizu_mcp.jsonrpc import Oversized
from noizu_mcp.server import open_connection
from noizu_mcp.transports import LineStream, memory_pair

HERE = Path(__file__).parent
SCHEMAS = HERE.parents[1] / ".." / "shared" / "schema"
STATELESS = "2026-07-28"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", STATELESS)
HANDSHAKE = REVISIONS[:-1]
PREFIX = "io.modelcontextprotocol/"
#: Seconds; reached only where something hangs.
PATIENCE = 10

RESULTS = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "server/discover": "DiscoverResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "logging/setLevel": "EmptyResult",
}


def load(name: str) -> ModuleType:
    """Load a module that stands beside this file."""
    full = f"behaviour_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[full]


class Official:
    """The official schemas, one validator for each definition; knows nothing where they are not."""

    def __init__(self) -> None:
        self._documents: dict[str, Any] = {}
        self._validators: dict[tuple[str, str], Any] = {}
        for revision in REVISIONS:
            path = SCHEMAS / revision / "schema.json"
            if path.exists():
                self._documents[revision] = json.loads(path.read_text())

    def check(self, revision: str, message: dict[str, Any], method: str | None) -> None:
        """Check a whole message, and then its result or params by what its method says.

        Args:
            revision: The revision that it belongs to.
            message: The message.
            method: Of the request that an answer belongs to; None if that is unknown.
        """
        document = self._documents.get(revision)
        if document is None:
            return
        definitions = document.get("$defs") or document["definitions"]
        if message.get("id", 0) is None:
            # JSON-RPC 2.0 section 5 wants null for an id that could not be read; the schemas since
            # 2025-11-25 want nothing, the older ones have no such answer.
            message = {"id": 0, **{k: v for k, v in message.items() if k != "id"}}
        self._check(revision, "JSONRPCMessage", message)
        if "method" in message:
            self._check(revision, self._named(definitions, message["method"]), message)
        elif "result" in message and method is not None:
            self._check(revision, RESULTS[method], message["result"])

    def _named(self, definitions: dict[str, Any], method: str) -> str:
        for name, schema in definitions.items():
            if schema.get("properties", {}).get("method", {}).get("const") == method:
                return name
        raise AssertionError(f"the revision has no {method}")

    def _check(self, revision: str, name: str, value: Any) -> None:
        validator = self._validators.get((revision, name))
        if validator is None:
            import jsonschema_rs

            document = self._documents[revision]
            where = "$defs" if "$defs" in document else "definitions"
            schema = {
                "$schema": document["$schema"],
                "$ref": f"#/{where}/{name}",
                where: document[where],
            }
            validator = jsonschema_rs.validator_for(schema)
            self._validators[revision, name] = validator
        errors = [f"{list(e.instance_path)}: {e.message}" for e in validator.iter_errors(value)]
        assert not errors, f"{revision} {name}: {errors}\n{value}"


class Recorder:
    """Follows a conversation from the client's side and checks what is ours in it."""

    def __init__(self, official: Official, revision: str, *, check_sent: bool) -> None:
        self.log: list[tuple[str, Any]] = []
        self._official = official
        self._revision = revision
        self._check_sent = check_sent
        self._sent: dict[Any, tuple[str, str]] = {}

    def __call__(self, direction: str, data: bytes) -> None:
        """Take a message as a tap does."""
        message = json.loads(data)
        self.log.append((direction, message))
        for each in message if isinstance(message, list) else [message]:
            if direction == "sent":
                self.sent(each)
            else:
                self.received(each)

    def sent(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        revision = self._revision
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        if isinstance(meta, dict) and f"{PREFIX}protocolVersion" in meta:
            revision = STATELESS
        id_, method = message.get("id"), message.get("method")
        if isinstance(id_, str | int) and isinstance(method, str):
            self._sent[type(id_), id_] = (method, revision)
        if self._check_sent:
            self._official.check(revision, message, None)

    def received(self, message: dict[str, Any]) -> None:
        id_ = message.get("id")
        method, revision = self._sent.get((type(id_), id_), (None, self._revision))
        if f"{PREFIX}subscriptionId" in (message.get("params") or {}).get("_meta", {}):
            revision = STATELESS
        known = method if method in RESULTS else None
        self._official.check(revision, message, known)


class Wire:
    """A client that says exactly what the test says, and hears exactly what was sent."""

    def __init__(self, stream: MessageStream, revision: str, official: Official) -> None:
        self.stream = stream
        self.revision = revision
        self.stateless = revision == STATELESS
        self.notices: list[dict[str, Any]] = []
        self.answers: dict[Any, dict[str, Any]] = {}
        self.recorder = Recorder(official, revision, check_sent=False)
        self.connection: Any = None
        self._inbox: list[Any] = []
        self._id = 0

    def switch(self, revision: str) -> None:
        """Go on in another revision, on the same connection."""
        self.stateless = revision == STATELESS
        if not self.stateless:
            self.recorder._revision = revision

    def new_id(self) -> int:
        self._id += 1
        return self._id

    def meta(self, **more: Any) -> dict[str, Any]:
        """Make `_meta` of a request; `log_level` and other keys of the protocol by short name."""
        meta: dict[str, Any] = {}
        if self.stateless:
            meta = {
                f"{PREFIX}protocolVersion": STATELESS,
                f"{PREFIX}clientCapabilities": {},
                f"{PREFIX}clientInfo": {"name": "wire", "version": "0"},
            }
        return {**meta, **more}

    def message(
        self, method: str, params: Any = None, *, id_: Any = None, **meta: Any
    ) -> dict[str, Any]:
        """Make a request, with what its revision wants in `_meta`."""
        body = dict(params or {})
        whole = self.meta(**meta)
        if whole:
            body["_meta"] = whole
        id_ = self.new_id() if id_ is None else id_
        message = {"jsonrpc": "2.0", "id": id_, "method": method}
        return {**message, "params": body} if body or params is not None else message

    async def start(self) -> dict[str, Any]:
        """Begin as a client of the revision does; gives the first result."""
        if self.stateless:
            return (await self.ask("server/discover"))["result"]
        result = await self.initialize()
        await self.notify("notifications/initialized")
        return result["result"]

    async def initialize(self, version: str | None = None) -> dict[str, Any]:
        params = {
            "protocolVersion": version or self.recorder._revision,
            "capabilities": {},
            "clientInfo": {"name": "wire", "version": "0"},
        }
        return await self.ask("initialize", params)

    async def send(self, *messages: Any) -> None:
        """Send messages, as they are; bytes are sent as such."""
        raw = []
        for message in messages:
            if not isinstance(message, bytes):
                for each in message if isinstance(message, list) else [message]:
                    self.recorder.sent(each)
            raw.append(message if isinstance(message, bytes) else json.dumps(message).encode())
        with trio.fail_after(PATIENCE):
            await self.stream.send(raw)

    async def begin(self, method: str, params: Any = None, **more: Any) -> Any:
        """Send a request and do not wait; gives its id."""
        message = self.message(method, params, **more)
        await self.send(message)
        return message["id"]

    async def begin_call(self, name: str, args: Any = None, **more: Any) -> Any:
        return await self.begin("tools/call", {"name": name, "arguments": args or {}}, **more)

    async def notify(self, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        await self.send({**message, "params": params} if params is not None else message)

    async def cancel(self, id_: Any) -> None:
        await self.notify("notifications/cancelled", {"requestId": id_, "reason": "test"})

    async def ask(self, method: str, params: Any = None, **more: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        return await self.answer(await self.begin(method, params, **more))

    async def call(self, name: str, args: Any = None, **more: Any) -> dict[str, Any]:
        """Call a tool and wait for its answer."""
        return await self.answer(await self.begin_call(name, args, **more))

    async def result(self, name: str, args: Any = None, **more: Any) -> dict[str, Any]:
        """Call a tool and give its result without the envelope of its era."""
        answer = await self.call(name, args, **more)
        assert "result" in answer, answer
        return self.bare(answer["result"])

    async def text(self, name: str, args: Any = None, **more: Any) -> str:
        """Call a tool and give its one text."""
        result = await self.result(name, args, **more)
        (block,) = result["content"]
        return block["text"]

    def bare(self, result: dict[str, Any]) -> dict[str, Any]:
        """Take the envelope of 2026-07-28 off a result; nobody else has any of it."""
        if not self.stateless:
            assert "resultType" not in result
            assert "ttlMs" not in result
            assert f"{PREFIX}serverInfo" not in result.get("_meta", {})
            return result
        assert result["resultType"] == "complete"
        meta = dict(result["_meta"])
        assert "name" in meta.pop(f"{PREFIX}serverInfo")
        rest = {k: v for k, v in result.items() if k not in ("resultType", "_meta")}
        return {**rest, "_meta": meta} if meta else rest

    async def receive(self) -> Any:
        """Wait for the next message, checked against the official schema."""
        while not self._inbox:
            with trio.fail_after(PATIENCE):
                arrived = await self.stream.receive()
            if not arrived:
                raise EOFError
            for data in arrived:
                assert not isinstance(data, Oversized)
                self.recorder("received", data)
                self._inbox.append(self.recorder.log[-1][1])
        return self._inbox.pop(0)

    async def answer(self, id_: Any) -> dict[str, Any]:
        """Wait for the answer to a request; what else comes is kept."""
        while True:
            for known in list(self.answers):
                if type(known) is type(id_) and known == id_:
                    return self.answers.pop(known)
            self._sort(await self.receive())

    def _sort(self, message: Any) -> None:
        for each in message if isinstance(message, list) else [message]:
            if "method" in each:
                self.notices.append(each)
            else:
                assert each["id"] not in self.answers, f"two answers: {each}"
                self.answers[each["id"]] = each

    async def notice(self, method: str) -> dict[str, Any]:
        """Wait for a notification of a method; gives its params."""
        while True:
            for index, each in enumerate(self.notices):
                if each["method"] == method:
                    return self.notices.pop(index).get("params", {})
            self._sort(await self.receive())

    async def is_alive(self) -> None:
        """Ask something that every server answers, as a barrier: all that came before is in."""
        method = "server/discover" if self.stateless else "ping"
        assert "result" in await self.ask(method)

    async def end(self) -> list[Any]:
        """Read until the server ends the connection; gives what came."""
        rest = []
        while True:
            try:
                rest.append(await self.receive())
            except EOFError:
                return rest


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


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["memory", "stdio"])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def in_memory(server: Any, grace: float) -> AsyncIterator[tuple[MessageStream, Any]]:
    """Serve in this process; at the end nothing may be left."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    ours, theirs = memory_pair(server.options.limits.message_size)
    async with (
        open_connection(server, theirs, transport="memory") as connection,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(connection.run, grace)
        try:
            yield ours, connection
        finally:
            await ours.aclose()
    assert await load("leaks").leaks(connection) == []
    # The task of the test itself may have ended before this, in the fixture of a connection.
    assert trio.lowlevel.current_statistics().tasks_living <= tasks


@asynccontextmanager
async def in_a_process(
    zygote: Zygote, name: str, grace: float, *, stderr: Any
) -> AsyncIterator[MessageStream]:
    """Serve in a process of its own; it must end by itself, with status 0 and nothing left."""
    child_in, our_out = os.pipe()
    our_in, child_out = os.pipe()
    pid = zygote.run(name, grace, [child_in, child_out, stderr.fileno()])
    os.close(child_in)
    os.close(child_out)
    stream = LineStream(our_in, our_out, 64 * 1024 * 1024)
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


@pytest.fixture(scope="session")
def loaded() -> Any:
    """Give what loads a module that stands beside this file."""
    return load


@pytest.fixture(scope="session")
def served(servers: ModuleType, official: Official) -> Any:
    """Give what serves a class of `servers.py` in this process, for a client of a revision."""

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
    """Give what serves a class of `servers.py` in a process of its own."""

    @asynccontextmanager
    async def serve(name: str, revision: str, grace: float) -> AsyncIterator[Wire]:
        with tempfile.TemporaryFile("w+") as stderr:
            async with in_a_process(zygote, name, grace, stderr=stderr) as stream:
                yield Wire(stream, revision, official)

    return serve


@pytest.fixture
def opened(revision: str, transport: str, served: Any, forked: Any) -> Any:
    """Give what opens a connection to a server, by the name of its class in `servers.py`."""

    @asynccontextmanager
    async def open_wire(
        name: str, *, start: bool = True, grace: float = 0.2
    ) -> AsyncIterator[Wire]:
        serve = served if transport == "memory" else forked
        async with serve(name, revision, grace) as wire:
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
    """Give what connects `noizu_mcp`'s own client; its messages are checked too."""

    @asynccontextmanager
    async def open_client(name: str, **options: Any) -> AsyncIterator[Any]:
        recorder = Recorder(official, revision, check_sent=True)
        options = {"version": revision, **options}
        async with opened(name, start=False) as wire:
            async with connect(wire.stream, tap=recorder, **options) as client:
                client.recorder = recorder
                yield client

    return open_client
