"""Clients of an ASGI application that control every step of their requests."""

import json
from contextlib import asynccontextmanager

import trio
import trio.testing

from noizu_mcp.transports.http import HttpApp, HttpLimits, HttpOptions

from ...kit.messages import BOTH, INITIALIZED, initialize, modern_request

#: Seconds that a test may take, on its clock; most clocks are virtual, and jump over waits.
PATIENCE = 1e6


class Exchange:
    """One HTTP request, and its response so far."""

    def __init__(self, app, scope, parts=({"type": "http.request"},)):
        self.sent = []
        self.ended = trio.Event()
        self.cancel = trio.CancelScope()
        self.broken = False
        self.failure = None
        self.scope = scope
        self._app = app
        self.parts = list(parts)
        self._gone = trio.Event()
        self._reading = trio.Event()
        self._reading.set()
        self._changed = trio.Event()

    async def run(self):
        try:
            with self.cancel:
                await self._app(self.scope, self.receive, self.send)
        except Exception as error:
            self.failure = error
        finally:
            self.ended.set()
            self._change()
            self._gone.set()  # as hosts do once the response is complete

    async def receive(self):
        if self.parts:
            await trio.lowlevel.checkpoint()
            return self.parts.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, part):
        await trio.lowlevel.checkpoint()
        await self._reading.wait()
        if self.broken:
            raise BrokenPipeError
        self.sent.append(part)
        self._change()

    def _change(self):
        self._changed.set()
        self._changed = trio.Event()

    def leave(self):
        """Disconnect."""
        self._gone.set()

    def stall(self):
        """Stop reading."""
        self._reading = trio.Event()

    def read_on(self):
        self._reading.set()

    async def until(self, condition):
        while not condition(self):
            assert not self.ended.is_set(), self.sent
            await self._changed.wait()

    async def event(self, number):
        """Wait for an event by its number."""
        await self.until(lambda self: len(self.events) > number)
        return self.events[number]

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def headers(self):
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self):
        return b"".join(part.get("body", b"") for part in self.sent[1:])

    @property
    def complete(self):
        return len(self.sent) > 1 and not self.sent[-1].get("more_body", False)

    @property
    def is_stream(self):
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def json(self):
        assert self.complete
        assert self.headers["content-type"] == "application/json", self.headers
        assert int(self.headers["content-length"]) == len(self.body)
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]["code"]

    @property
    def events(self):
        """List the events of the stream by their fields, `data` decoded, without comments."""
        found = []
        for block in self.body.decode().split("\n\n")[:-1]:
            lines = [line.partition(": ") for line in block.split("\n") if line[0] != ":"]
            if lines:
                fields = {name: value for name, _, value in lines}
                fields["data"] = json.loads(fields["data"]) if fields["data"] else None
                found.append(fields)
        return found

    @property
    def messages(self):
        return [event["data"] for event in self.events if event["data"]]


class Wire:
    """An application, and requests to it."""

    def __init__(self, app, nursery):
        self.app = app
        self.nursery = nursery
        self.address = "192.0.2.1"

    def at(self, address):
        """Return the same application, for a client at another address."""
        other = Wire(self.app, self.nursery)
        other.address = address
        return other

    @property
    def endpoint(self):
        return self.app.endpoint

    @property
    def tasks(self):
        """Count the tasks that run beside the requests."""
        return self.endpoint.app.tasks

    def make(self, method, body=None, headers=(), *, path="/mcp", parts=None, **scope):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"host": "localhost", "content-type": "application/json", "accept": BOTH}
        given.update(headers)
        raw = [(k.encode(), str(v).encode("latin-1")) for k, v in given.items() if v is not None]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": raw,
            "client": (self.address, 1),
            **scope,
        }
        first = {"type": "http.request", "body": b"" if body is None else content}
        return Exchange(self.app, scope, [first] if parts is None else parts)

    def open(self, *args, **options):
        """Begin a request."""
        exchange = self.make(*args, **options)
        self.nursery.start_soon(exchange.run)
        return exchange

    async def send(self, *args, **options):
        """Make a request, and wait for its end."""
        exchange = self.make(*args, **options)
        await exchange.run()
        if exchange.failure is not None:
            raise exchange.failure
        return exchange

    def modern(self, body, headers=(), *, method=None, **options):
        """Begin a request of 2026-07-28 with all its headers."""
        return self.open("POST", *modern_request(body, headers), **options)

    async def send_modern(self, body, headers=(), **options):
        return await self.send("POST", *modern_request(body, headers), **options)

    async def session(self, version="2025-11-25", capabilities=None, headers=(), *, ready=True):
        """Do the handshake."""
        done = await self.send("POST", initialize(version, capabilities), headers)
        assert done.status == 200, done.body
        session = Session(self, done.headers["mcp-session-id"], version, headers)
        if ready:
            assert (await session.post(INITIALIZED)).status == 202
        return session


class Session:
    """A session from a handshake."""

    def __init__(self, wire, id_, version, headers):
        self.wire = wire
        self.id = id_
        self.headers = {"mcp-session-id": id_, "mcp-protocol-version": version, **dict(headers)}

    @property
    def served(self):
        """The session object of the server."""
        (found,) = [each for each in self.wire.endpoint.sessions if each.id == self.id]
        return found

    async def post(self, body, headers=()):
        return await self.wire.send("POST", body, {**self.headers, **dict(headers)})

    def open(self, body, headers=()):
        return self.wire.open("POST", body, {**self.headers, **dict(headers)})

    def get(self, last=None, **headers):
        given = {**self.headers, "content-type": None, **headers}
        if last is not None:
            given["last-event-id"] = last
        return self.wire.open("GET", None, given)

    async def delete(self):
        return await self.wire.send("DELETE", None, self.headers)


@asynccontextmanager
async def serving(server, *, limits=None, **options):
    """Serve; at the end nothing may remain, and no test waits for longer than `PATIENCE`."""
    app = HttpApp(server, HttpOptions(limits=HttpLimits(**(limits or {})), **options))
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            async with app.lifespan():
                running = app.endpoint.app
                yield Wire(app, nursery)
            nursery.cancel_scope.cancel()
    # Whatever has failed, left or been cancelled: only kept tasks hold anything.
    kept = sum(task.size for task in running.running.tasks)
    assert (running.quotas.requests, running.quotas.held) == (0, kept)


async def settled():
    """Wait until all tasks are blocked."""
    await trio.testing.wait_all_tasks_blocked()
