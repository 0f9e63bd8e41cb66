"""A client under control of a test, which checks every answer against the schemas."""

import json
from pathlib import Path
from typing import Any

import trio
from task_shapes import SHAPES

from noizu_mcp.engine import MessageStream

SCHEMAS = Path(__file__).resolve().parents[2] / ".." / "shared" / "schema"
STATELESS = "2026-07-28"
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", STATELESS)
PREFIX = "io.modelcontextprotocol/"
#: Seconds; only used up by a hang.
PATIENCE = 60

RESULTS = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "server/discover": "DiscoverResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "logging/setLevel": "EmptyResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "tasks/get": "GetTaskResult",
    "tasks/update": "TaskAcknowledgement",
    "tasks/cancel": "TaskAcknowledgement",
    # Responses of clients.
    "elicitation/create": "ElicitResult",
    "sampling/createMessage": "CreateMessageResult",
    "roots/list": "ListRootsResult",
}
#: Methods whose results may ask (2026-07-28 `basic/patterns/mrtr`).
ASKING = ("tools/call", "prompts/get", "resources/read")


class Official:
    """The official schemas, with one validator per definition; without them nothing is checked."""

    def __init__(self) -> None:
        self.documents: dict[str, Any] = {}
        self._validators: dict[tuple[str, str], Any] = {}
        for revision in REVISIONS:
            path = SCHEMAS / revision / "schema.json"
            if path.exists():
                self.documents[revision] = json.loads(path.read_text())
        if STATELESS in self.documents:
            self.documents[STATELESS]["$defs"].update(SHAPES)

    def check(self, revision: str, message: dict[str, Any], method: str | None) -> None:
        """Check a whole message, and then its result or params by its method.

        Args:
            revision: The revision that it belongs to.
            message: The message.
            method: Of the request that a response belongs to; None if that is unknown.
        """
        document = self.documents.get(revision)
        if document is None:
            return
        definitions = document.get("$defs") or document["definitions"]
        if "error" in message and "id" not in message and revision < "2025-11-25":
            # The older schemas have no response to unreadable messages.
            message = {"id": 0, **message}
        self._check(revision, "JSONRPCMessage", message)
        if "method" in message:
            self._check(revision, self._named(definitions, message["method"]), message)
        elif "result" in message and method is not None:
            name = RESULTS[method]
            if message["result"].get("resultType") == "input_required":
                assert method in ASKING
                assert revision == STATELESS
                name = "InputRequiredResult"
            if message["result"].get("resultType") == "task":
                assert method == "tools/call"
                assert revision == STATELESS
                name = "CreateTaskResult"
            self._check(revision, name, message["result"])

    def _named(self, definitions: dict[str, Any], method: str) -> str:
        for name, schema in definitions.items():
            if schema.get("properties", {}).get("method", {}).get("const") == method:
                return name
        raise AssertionError(f"the revision has no {method}")

    def _check(self, revision: str, name: str, value: Any) -> None:
        validator = self._validators.get((revision, name))
        if validator is None:
            import jsonschema_rs

            document = self.documents[revision]
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
    """Follows a conversation from the client's side and checks our own messages."""

    def __init__(self, official: Official, revision: str, *, check_sent: bool) -> None:
        self.log: list[tuple[str, Any]] = []
        self._official = official
        self.revision = revision
        self._check_sent = check_sent
        self._sent: dict[Any, tuple[str, str]] = {}
        self._asked: dict[Any, str] = {}

    def __call__(self, direction: str, data: bytes) -> None:
        """Record a message, as a tap."""
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
        revision = self.revision
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        if isinstance(meta, dict) and f"{PREFIX}protocolVersion" in meta:
            revision = STATELESS
        id_, method = message.get("id"), message.get("method")
        if isinstance(id_, str | int) and isinstance(method, str):
            self._sent[type(id_), id_] = (method, revision)
        if self._check_sent:
            asked = self._asked.get(id_) if method is None else None
            self._official.check(revision, message, asked)

    def received(self, message: dict[str, Any]) -> None:
        id_ = message.get("id")
        method, revision = self._sent.get((type(id_), id_), (None, self.revision))
        if f"{PREFIX}subscriptionId" in (message.get("params") or {}).get("_meta", {}):
            revision = STATELESS
        if "method" in message and id_ is not None:
            assert not self._is_stateless(), "2026-07-28 has no requests of servers"
            self._asked[id_] = message["method"]
        known = method if method in RESULTS else None
        self._official.check(revision, message, known)

    def _is_stateless(self) -> bool:
        return self.revision == STATELESS


class Wire:
    """A client that sends exactly what the test says, and returns what was received."""

    def __init__(self, stream: MessageStream, revision: str, official: Official) -> None:
        self.stream = stream
        self.revision = revision
        self.stateless = revision == STATELESS
        self.notices: list[dict[str, Any]] = []
        self.answers: dict[Any, dict[str, Any]] = {}
        self.recorder = Recorder(official, revision, check_sent=False)
        #: Its server, if that is in this process: in memory and over HTTP.
        self.connection: Any = None
        self.app: Any = None
        #: The two nodes that serve, if there are two.
        self.fleet: Any = None
        self.capabilities: dict[str, Any] = {}
        self._inbox: list[Any] = []
        self._id = 0

    def switch(self, revision: str) -> None:
        """Continue in another revision, on the same connection."""
        self.stateless = revision == STATELESS
        if not self.stateless:
            self.recorder.revision = revision

    def new_id(self) -> int:
        self._id += 1
        return self._id

    def meta(self, **more: Any) -> dict[str, Any]:
        """Make the `_meta` of a request; `log_level` and other protocol keys have short names."""
        meta: dict[str, Any] = {}
        if self.stateless:
            meta = {
                f"{PREFIX}protocolVersion": STATELESS,
                f"{PREFIX}clientCapabilities": self.capabilities,
                f"{PREFIX}clientInfo": {"name": "wire", "version": "0"},
            }
        return {**meta, **more}

    def message(
        self, method: str, params: Any = None, *, id_: Any = None, **meta: Any
    ) -> dict[str, Any]:
        """Make a request with the `_meta` of its revision."""
        body = dict(params or {})
        whole = self.meta(**meta)
        if whole:
            body["_meta"] = whole
        id_ = self.new_id() if id_ is None else id_
        message = {"jsonrpc": "2.0", "id": id_, "method": method}
        return {**message, "params": body} if body or params is not None else message

    async def start(self) -> dict[str, Any]:
        """Begin like a client of the revision; return the first result."""
        if self.stateless:
            return (await self.ask("server/discover"))["result"]
        result = await self.initialize()
        await self.notify("notifications/initialized")
        return result["result"]

    async def initialize(self, version: str | None = None) -> dict[str, Any]:
        params = {
            "protocolVersion": version or self.recorder.revision,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "wire", "version": "0"},
        }
        return await self.ask("initialize", params)

    async def send(self, *messages: Any) -> None:
        """Send messages unchanged; bytes are sent as such."""
        raw = []
        for message in messages:
            if not isinstance(message, bytes):
                for each in message if isinstance(message, list) else [message]:
                    self.recorder.sent(each)
            raw.append(message if isinstance(message, bytes) else json.dumps(message).encode())
        with trio.fail_after(PATIENCE):
            await self.stream.send(raw)

    async def begin(self, method: str, params: Any = None, **more: Any) -> Any:
        """Send a request without waiting; return its id."""
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
        """Send a request and wait for its response."""
        return await self.answer(await self.begin(method, params, **more))

    async def call(self, name: str, args: Any = None, **more: Any) -> dict[str, Any]:
        """Call a tool and wait for its response."""
        return await self.answer(await self.begin_call(name, args, **more))

    async def result(self, name: str, args: Any = None, **more: Any) -> dict[str, Any]:
        """Call a tool and return its result without the envelope of its era."""
        answer = await self.call(name, args, **more)
        assert "result" in answer, answer
        return self.bare(answer["result"])

    async def text(self, name: str, args: Any = None, **more: Any) -> str:
        """Call a tool and return its one text."""
        result = await self.result(name, args, **more)
        (block,) = result["content"]
        return block["text"]

    def bare(self, result: dict[str, Any]) -> dict[str, Any]:
        """Remove the envelope of 2026-07-28 from a result; other revisions have none."""
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
            for received in arrived:
                assert received.size is not None
                self.recorder("received", received.data)
                self._inbox.append(self.recorder.log[-1][1])
        return self._inbox.pop(0)

    async def answer(self, id_: Any) -> dict[str, Any]:
        """Wait for the response to a request; other messages are kept."""
        while True:
            for known in list(self.answers):
                if type(known) is type(id_) and known == id_:
                    return self.answers.pop(known)
            self.sort(await self.receive())

    def sort(self, message: Any) -> None:
        for each in message if isinstance(message, list) else [message]:
            if "method" in each:
                self.notices.append(each)
            else:
                assert each["id"] not in self.answers, f"two answers: {each}"
                self.answers[each["id"]] = each

    async def notice(self, method: str) -> dict[str, Any]:
        """Wait for a notification of a method; return its params."""
        while True:
            for index, each in enumerate(self.notices):
                if each["method"] == method:
                    return self.notices.pop(index).get("params", {})
            self.sort(await self.receive())

    async def question(self) -> dict[str, Any]:
        """Wait for a request of the server (up to 2025-11-25)."""
        while True:
            for index, each in enumerate(self.notices):
                if "id" in each:
                    return self.notices.pop(index)
            self.sort(await self.receive())

    async def respond(self, question: dict[str, Any], **answer: Any) -> None:
        """Answer a request of the server, with `result=` or `error=`."""
        await self.send({"jsonrpc": "2.0", "id": question["id"], **answer})

    async def is_alive(self) -> None:
        """Make a request that every server answers, as a barrier: earlier messages have arrived."""
        method = "server/discover" if self.stateless else "ping"
        assert "result" in await self.ask(method)

    async def end(self) -> list[Any]:
        """Read until the server closes the connection; return the messages."""
        rest = []
        while True:
            try:
                rest.append(await self.receive())
            except EOFError:
                return rest
