"""Parts of the tests of telemetry: a server whose requests end in every way, and a listener."""

import json
from contextlib import asynccontextmanager

import pytest
import trio
from opentelemetry import trace

from noizu_mcp import (
    Context,
    Limits,
    McpError,
    Prompt,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    TaskStarted,
    Tool,
    ToolError,
)
from noizu_mcp.server import open_session
from noizu_mcp.transports import memory_pair
from noizu_mcp.transports.http import HttpApp, HttpOptions
from noizu_mcp.types import TASKS, ClientCapabilities

KNOWS = ClientCapabilities(extensions={TASKS: {}})
STATELESS = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
#: Seconds after which a wait fails.
PATIENCE = 60


async def soon(event):
    """Wait for an event that must be set."""
    with trio.fail_after(PATIENCE):
        await event.wait()


class Form(Schema):
    name: str


class Echo(Tool):
    """Say it again."""

    class Input(Schema):
        text: str

    async def call(self, args):
        await trio.lowlevel.checkpoint()
        return args.text


class Now(Tool, inline=True):
    """Answer at once."""

    def call(self):
        return "now"


class Fail(Tool):
    """Fail in a way that is asked for."""

    class Input(Schema):
        how: str

    async def call(self, args):
        if args.how == "tool":
            raise ToolError("no")
        if args.how == "error":
            raise McpError(-32099, "no")
        if args.how == "time":
            await trio.sleep_forever()
        raise RuntimeError("a secret")


class Ask(Tool):
    """Ask the client."""

    async def call(self, args, ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Form, timeout=args.get("timeout", 60.0))
        return answer.action


class Hang(Tool, timeout=None):
    """Wait for ever, after saying so."""

    async def call(self, args, ctx: Context):
        ctx.server.hanging.set()
        await trio.sleep_forever()


class Tidy(Tool, timeout=None):
    """Wait for ever, and then clean up for as long as the test wants."""

    async def call(self, args, ctx: Context):
        ctx.server.hanging.set()
        try:
            await trio.sleep_forever()
        finally:
            ctx.server.cleaning.set()
            with trio.CancelScope(shield=True):
                await ctx.server.clean.wait()


class Talk(Tool):
    """Log a line."""

    async def call(self, args, ctx: Context):
        await ctx.log("error", "hello")


class Config(Resource, uri="config://app", subscribable=True):
    """Configuration."""

    def read(self):
        return "c"


class Table(ResourceTemplate, uri_template="db://{table}/schema"):
    """A table."""

    def read(self, uri, args):
        return "t"

    def complete(self, variable, prefix, ctx):
        return ["users"]


class Review(Prompt):
    """Review; `how` is what to do."""

    class Arguments(Schema):
        how: str | None = None

    async def get(self, args):
        if args.how == "crash":
            raise RuntimeError("a secret")
        if args.how == "time":
            await trio.sleep_forever()
        return "Review it"


class Job(Tool, task="required", timeout=20.0):
    """Go on as a task, and end in a way that is asked for."""

    class Input(Schema):
        how: str

    async def call(self, args, ctx: Context):
        ctx.server.seen[args.how] = trace.get_current_span().get_span_context()
        if args.how in ("wait", "time"):
            await trio.sleep_forever()
        if args.how == "tool":
            raise ToolError("no")
        if args.how == "error":
            raise McpError(-32099, "no")
        if args.how == "crash":
            raise RuntimeError("a secret")
        return "done"


async def begin(client, name, **arguments):
    """Call a tool as a task; return the initial task."""
    with pytest.raises(TaskStarted) as caught:
        await client.call_tool(name, arguments)
    return caught.value.task


class App(Server, name="app", version="1", tool_timeout=5.0):
    """Everything above."""

    tools = [Echo, Now, Fail, Ask, Hang, Tidy, Talk]
    resources = [Config, Table]
    prompts = [Review]

    def __init__(self):
        self.hanging, self.cleaning, self.clean = trio.Event(), trio.Event(), trio.Event()
        self.seen = {}


class Heard(list):
    """A listener that records its events."""

    def __call__(self, event):
        self.append(event)

    def of(self, method, *kinds):
        return [e for e in self if e.method == method and e.kind in (kinds or (e.kind,))]

    def end(self, method):
        """Return the one end of the one request of a method."""
        (start,) = self.of(method, "start")
        (end,) = self.of(method, "stop", "error", "cancelled")
        assert end.key == start.key
        return end


@asynccontextmanager
async def raw(server, limits=None):
    """Connect to a server with raw bytes: yields functions to send and to receive a message."""
    ours, theirs = memory_pair(theirs=limits or Limits())
    inbox = []

    def send(message):
        ours.send_nowait([message if type(message) is bytes else json.dumps(message).encode()])

    async def receive():
        with trio.fail_after(PATIENCE):
            while not inbox:
                inbox.extend([received.data for received in await ours.receive()])
        return inbox.pop(0)

    async with (
        open_session(server, theirs, transport="memory") as connection,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(connection.run, 0)
        yield send, receive
        connection.stop()
    await ours.aclose()


class Http:
    """A client of an ASGI application, without a socket."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, body=b"", method="POST", path="/mcp", gone=None, **headers):
        """Send one request; setting `gone` disconnects the client."""
        head = {"host": "localhost", "content-type": "application/json", **headers}
        names = [(k.replace("_", "-").encode(), v.encode()) for k, v in head.items()]
        scope = {"type": "http", "method": method, "path": path, "headers": names}
        data = body if type(body) is bytes else json.dumps(body).encode()
        parts, sent = [{"type": "http.request", "body": data}], []

        async def receive():
            if parts:
                return parts.pop()
            await (trio.Event() if gone is None else gone).wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        if not sent:
            return None  # the client has gone
        answer = b"".join(each.get("body", b"") for each in sent[1:])
        return sent[0]["status"], dict(sent[0]["headers"]), answer

    async def ask(self, method, params=None, **more):
        """Send one request of 2026-07-28, with its headers."""
        params = {**(params or {}), "_meta": {**META, **(params or {}).get("_meta", {})}}
        headers = {"mcp_protocol_version": STATELESS, "mcp_method": method}
        if "name" in params:
            headers["mcp_name"] = params["name"]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self(body, **headers, **more)


@asynccontextmanager
async def over_http(server, **options):
    """Serve a server over HTTP until the end of the block."""
    app = HttpApp(server, HttpOptions(**options))
    async with app.lifespan():
        yield Http(app)
