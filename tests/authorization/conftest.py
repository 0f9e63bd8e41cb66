"""Fixtures of the tests of authorized servers: tokens, a server with scopes, HTTP in process."""

import json
import os
from contextlib import asynccontextmanager

import pytest
import trio

from noizu_mcp import (
    Accept,
    Prompt,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Tool,
    argument,
    tool,
)
from noizu_mcp.auth import BearerAuth, InsufficientScope, Principal, RequireScopes, StaticVerifier
from noizu_mcp.transports import LineStream
from noizu_mcp.transports.http import HttpApp, HttpOptions

STATELESS = "2026-07-28"
META = "io.modelcontextprotocol"
ISSUER = "https://login.example.com"
TOKENS = {
    "ada-reads": Principal(subject="ada", issuer=ISSUER, scopes=["docs:read"]),
    "ada-writes": Principal(subject="ada", issuer=ISSUER, scopes=["docs:read", "docs:write"]),
    "bob-writes": Principal(subject="bob", issuer=ISSUER, scopes=["docs:read", "docs:write"]),
    "cyd-mails": Principal(subject="cyd", issuer=ISSUER, scopes=["mail"]),
}


class Whoami(Tool):
    """Say who is calling."""

    def call(self, args, ctx):
        return ctx.auth.subject if ctx.auth else "nobody"


class Write(Tool, requires=RequireScopes("docs:write", hierarchy={"docs:admin": ["docs:write"]})):
    """Write a document."""

    def call(self):
        return "written"


class Quick(Tool, inline=True):
    """Refuse by hand, in the task of the reader."""

    def call(self):
        raise InsufficientScope("docs:quick")


class Late(Tool):
    """Find out late that a scope is missing."""

    async def call(self, args, ctx):
        await ctx.report_progress(1)
        RequireScopes("docs:late").check(ctx.auth)


class Wrong(Tool):
    """Ask for what is no scope."""

    async def call(self):
        raise InsufficientScope(["two words"])


class Peek(Tool):
    """Read a resource of the server."""

    async def call(self, args, ctx):
        return (await ctx.read_resource("docs://secret")).contents[0].text


class Book(Tool):
    """Ask the user."""

    class Answer(Schema):
        day: str

    async def call(self, args, ctx):
        answer = await ctx.elicit("Which day?", self.Answer)
        return answer.content.day if isinstance(answer, Accept) else "no"


class Secret(Resource, uri="docs://secret", requires="docs:write", subscribable=True):
    """A secret."""

    def read(self):
        return "42"


class Public(Resource, uri="docs://public", subscribable=True):
    """No secret."""

    def read(self):
        return "hello"


class Page(ResourceTemplate, uri_template="docs://pages/{name}", requires=("docs:write",)):
    """A page."""

    def read(self, uri, args):
        return args.name

    def complete(self, variable, prefix):
        return ["one"]

    def list(self, ctx):
        return [{"uri": "docs://pages/one", "name": "one"}]


class Review(Prompt, requires=["docs:write"]):
    """Review something."""

    class Arguments(Schema):
        code: str = argument(complete=["python"])

    def get(self, args):
        return args.code


class Docs(Server, name="docs", version="1", requires="docs:read"):
    tools = [
        Whoami,
        Write,
        Quick,
        Late,
        Wrong,
        Peek,
        Book,
        tool(Write, name="publish", requires=["docs:write", "docs:publish"]),
        tool(Write, name="draft", requires=None),
    ]
    resources = [Secret, Public, Page]
    prompts = [Review]


class Exchange:
    """One HTTP request in process, and its response so far."""

    def __init__(self, body):
        self.status = None
        self.headers = {}
        self.body = b""
        self.complete = False
        self._parts = [{"type": "http.request", "body": body}]
        self._gone = trio.Event()
        self._changed = trio.Event()

    async def receive(self):
        if self._parts:
            return self._parts.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.body += message.get("body", b"")
            self.complete = not message.get("more_body", False)
        self._changed.set()
        self._changed = trio.Event()
        await trio.lowlevel.checkpoint()

    async def until(self, condition):
        """Wait until a condition on the response holds."""
        while not condition(self):
            await self._changed.wait()

    def leave(self):
        self._gone.set()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        lines = self.body.decode().splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


class Http:
    """Sends requests to an application in process."""

    def __init__(self, app, nursery):
        self.app = app
        self._nursery = nursery

    def open(self, method, path="/mcp", *, token=None, body=b"", headers=()):
        """Send a request, and return before the response."""
        named = {"host": "localhost", "content-type": "application/json"} | dict(headers)
        if token is not None:
            named["authorization"] = f"Bearer {token}"
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        }
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        exchange = Exchange(content)
        self._nursery.start_soon(self.app, scope, exchange.receive, exchange.send)
        return exchange

    async def send(self, method, path="/mcp", **options):
        """Send a request, and wait for the whole response."""
        exchange = self.open(method, path, **options)
        await exchange.until(lambda each: each.complete)
        return exchange

    def open_stateless(self, method, params=None, *, token=None, capabilities=None):
        """Send a request of 2026-07-28."""
        params = params or {}
        meta = {
            f"{META}/protocolVersion": STATELESS,
            f"{META}/clientCapabilities": capabilities or {},
            **params.get("_meta", {}),
        }
        headers = {"mcp-protocol-version": STATELESS, "mcp-method": method}
        if name := params.get("name") or params.get("uri") or params.get("taskId"):
            headers["mcp-name"] = name
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": meta}}
        return self.open("POST", token=token, body=body, headers=headers)

    async def stateless(self, method, params=None, **options):
        """Send a request of 2026-07-28, and wait for the whole response."""
        exchange = self.open_stateless(method, params, **options)
        await exchange.until(lambda each: each.complete)
        return exchange

    async def initialize(self, token=None, version="2025-11-25"):
        """Begin a session; return the headers of its requests."""
        params = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        answer = await self.send("POST", token=token, body=body)
        assert answer.status == 200
        headers = {
            "mcp-session-id": answer.headers["mcp-session-id"],
            "mcp-protocol-version": version,
        }
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.send("POST", token=token, body=ready, headers=headers)
        return headers


def make_auth(verifier=None, **options):
    return BearerAuth(
        verifier or StaticVerifier(TOKENS),
        resource="https://mcp.example.com/mcp",
        authorization_servers=[ISSUER],
        **options,
    )


@asynccontextmanager
async def serving(server=None, *, auth=None, **options):
    """Run a server as an ASGI application; yields an object that sends requests to it."""
    app = HttpApp(server or Docs(), HttpOptions(auth=auth, **options))
    async with app.lifespan(), trio.open_nursery() as nursery:
        yield Http(app, nursery)
        nursery.cancel_scope.cancel()


@pytest.fixture
def docs():
    """Make the server with scopes."""
    return Docs()


@pytest.fixture
def bearer():
    """Make a `BearerAuth` that knows the tokens."""
    return make_auth


@pytest.fixture
def serve_app():
    """Serve an application in process."""
    return serving


@pytest.fixture
def tokens():
    """Return the principal of each token."""
    return TOKENS


@pytest.fixture
def pipe_stream():
    """Make a stream over two descriptors that a server can own; return it with them."""
    (there, write_fd), (read_fd, back) = os.pipe(), os.pipe()
    return LineStream(there, back), read_fd, write_fd
