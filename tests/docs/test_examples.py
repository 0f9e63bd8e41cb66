"""Every example serves a client over stdio."""

import json
import runpy
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio

from noizu_mcp import (
    Accept,
    Client,
    ClientHandler,
    McpError,
    Root,
    SamplingResult,
    Stdio,
    TaskStarted,
    ToolResult,
    connect,
)
from noizu_mcp.types import TASKS, ClientCapabilities, Reference, Task

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
Open = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def serve() -> Open:
    """Start an example as a process and connect to it; a hang becomes a failure."""

    @asynccontextmanager
    async def open_example(name: str, **options: Any) -> AsyncIterator[Client]:
        file, _, server = name.partition(":")
        target = f"{EXAMPLES / file}.py{':' if server else ''}{server}"
        command = Stdio(sys.executable, "-m", "noizu_mcp", "run", target)
        with trio.fail_after(60):
            async with connect(command, **options) as client:
                yield client

    return open_example


class Changes(ClientHandler):
    """Waits for list changes."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[str](10)

    async def handle_notification(self, method: str, params: Mapping[str, Any]) -> None:
        await self._send.send(method)

    async def wait(self) -> str:
        return await self._receive.receive()


def text(result: ToolResult) -> str:
    return str(result.content[0].text)


async def names(client: Client) -> list[str]:
    return [tool.name for tool in await client.list_tools()]


def test_every_example_is_here() -> None:
    """A new example needs a test."""
    tested = {"asking", "dynamic", "everything", "gated", "prompts", "raw_schema", "resources"}
    tested |= {"library", "pydantic_shop", "search", "toolkit", "upstream", "weather"}
    tested |= {"baskets", "gateway", "petstore"}
    tested |= {"fastapi_app"}  # of `test_application.py`: it serves over HTTP

    assert tested == {path.stem for path in EXAMPLES.glob("*.py")}


async def test_weather(serve: Open) -> None:
    """Typed input and output, and an error that the tool chose."""
    async with serve("weather") as client:
        assert client.server_info.name == "weather"
        assert client.protocol_version == "2026-07-28"
        assert await names(client) == ["get_weather"]
        result = await client.call_tool("get_weather", {"city": "Oslo"})
        assert result.structured == {"celsius": -3.5, "sky": "snow"}
        unknown = await client.call_tool("get_weather", {"city": "Rome"})
        assert unknown.is_error
        assert text(unknown) == "No report from Rome; there are: Lima, Nairobi, Oslo"


async def test_search(serve: Open) -> None:
    """Defaults, an enum, an alias and a hidden catalog."""
    async with serve("search") as client:
        assert client.instructions == "Search before you answer."
        assert await names(client) == ["search_docs", "search"]
        for name in ("search_docs", "search"):
            result = await client.call_tool(name, {"query": "install"})
            assert result.structured == {
                "hits": 2,
                "pages": ["guides/install", "guides/first-server"],
            }
        none = await client.call_tool("search", {"query": "install", "scope": "reference"})
        assert none.structured == {"hits": 0, "pages": []}
        wrong = await client.call_tool("search", {"query": "install", "scope": "guide"})
        assert wrong.is_error
        assert '"guides"' in text(wrong)
        catalog = await client.call_tool("catalog", {"type": "tools", "query": "alias"})
        assert [each["name"] for each in catalog.structured["tools"]] == ["search"]


async def test_toolkit(serve: Open) -> None:
    """Each way to declare a tool of a toolkit, and the entries of the catalog."""
    async with serve("toolkit") as client:
        assert await names(client) == ["files.read", "server_time", "add", "book"]
        assert text(await client.call_tool("add", {"a": 2})) == "3"
        assert "class Utilities" in text(
            await client.call_tool("files.read", {"path": "toolkit.py"})
        )
        outside = await client.call_tool("files.read", {"path": "../index.md"})
        assert outside.is_error
        assert text(await client.call_tool("lookup", {"q": "word"})) == "word"
        assert text(await client.call_tool("server_time")).startswith("20")
        booked = await client.call_tool("book", {"guest": "Ada", "nights": 2})
        assert booked.structured == {"text": "Ada, 2 night(s)", "total": 160}
        found = await client.call_tool("catalog", {"category": "files"})
        assert [each["name"] for each in found.structured["tools"]] == ["files.read"]


async def test_baskets(serve: Open) -> None:
    """Handles: made, changed, read, merged and deleted, and a question in between."""

    class Buyer(ClientHandler):
        async def handle_elicitation(self, params: Mapping[str, Any]) -> Accept[Any]:
            return Accept({"buy": params["message"] == "Buy this for 9?"})

    async with serve("baskets", handler=Buyer()) as client:
        one, two = [(await client.call_tool("open_basket")).structured["id"] for _ in range(2)]
        await client.call_tool("add_item", {"basket": one, "item": "tea", "count": 2})
        added = await client.call_tool("add_item", {"basket": two, "item": "milk"})
        assert added.structured == {"id": two, "items": {"milk": 1}}
        wrong = await client.call_tool("add_item", {"basket": two, "item": "gold"})
        assert text(wrong) == "No gold here; there are: tea, milk, salt"
        assert text(await client.call_tool("order", {"basket": one})).startswith("The user does")
        merged = await client.call_tool("merge", {"source": one, "target": two})
        assert merged.structured == {"id": two, "items": {"milk": 1, "tea": 2}}
        assert (await client.call_tool("price", {"basket": one})).is_error
        assert (await client.call_tool("price", {"basket": two})).structured == 9
        assert text(await client.call_tool("order", {"basket": two})) == "Ordered for 9"
        assert (await client.call_tool("price", {"basket": two})).is_error


async def test_raw_schema(serve: Open) -> None:
    """Raw schemas validate the arguments and pass them on unchanged."""
    async with serve("raw_schema") as client:
        converted = await client.call_tool("convert", {"amount": 10, "from": "eur", "to": "usd"})
        assert converted.structured == {"amount": 12.5, "currency": "usd"}
        wrong = await client.call_tool("convert", {"amount": -1, "from": "eur", "to": "gbp"})
        assert wrong.is_error
        assert "/amount" in text(wrong)
        assert "/to" in text(wrong)
        assert text(await client.call_tool("route", {"stops": ["Oslo", "Lima"]})) == "Oslo → Lima"
        assert (await client.call_tool("route", {"stops": ["Lima", "Oslo"]})).is_error


async def test_gated_session(serve: Open) -> None:
    """A session that unlocks hears of the change and sees more tools."""
    changes = Changes()
    async with serve("gated", version="2025-11-25", handler=changes) as client:
        assert await names(client) == ["unlock"]
        assert (await client.call_tool("drop_table", {"table": "users"})).is_error
        assert (await client.call_tool("unlock", {"password": "please"})).is_error
        assert not (await client.call_tool("unlock", {"password": "sesame"})).is_error
        assert await changes.wait() == "notifications/tools/list_changed"
        assert await names(client) == ["unlock", "drop_table"]
        dropped = await client.call_tool("drop_table", {"table": "users"})
        assert text(dropped) == "Dropped users"


async def test_gated_without_session(serve: Open) -> None:
    """Without sessions, a key replaces the state of the session."""
    async with serve("gated", version="2026-07-28") as client:
        unlocked = text(await client.call_tool("unlock", {"password": "sesame"}))
        key = unlocked.rpartition("=")[2]
        dropped = await client.call_tool("drop_table", {"table": "users", "key": key})
        assert text(dropped) == "Dropped users"
        assert await names(client) == ["unlock"]


async def test_dynamic_notes(serve: Open) -> None:
    """A server without registrations lists and calls computed tools."""
    async with serve("dynamic:Notes") as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools] == ["note:groceries", "note:Tech News Digest"]
        assert tools[0].description == "A note for noizu-mcp"
        assert text(await client.call_tool("note:groceries")) == "bread, milk"
        with pytest.raises(McpError, match="Unknown tool: note:none"):
            await client.call_tool("note:none")


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_dynamic_plugins(serve: Open, version: str) -> None:
    """Tools come and go while a client is connected, and it is notified, in either era."""
    changes = Changes()
    async with serve("dynamic:Plugins", version=version, handler=changes) as client:
        if version == "2026-07-28":
            async with client.listen(tools=True):
                await client.call_tool("load", {"plugin": "shout"})
                assert await changes.wait() == "notifications/tools/list_changed"
        else:
            await client.call_tool("load", {"plugin": "shout"})
            assert await changes.wait() == "notifications/tools/list_changed"
        assert await names(client) == ["load", "unload", "shout"]
        assert text(await client.call_tool("shout", {"text": "hey"})) == "HEY"
        assert (await client.call_tool("load", {"plugin": "shout"})).is_error
        await client.call_tool("unload", {"plugin": "shout"})
        assert await names(client) == ["load", "unload"]
        assert (await client.call_tool("unload", {"plugin": "shout"})).is_error


class Person(ClientHandler):
    """Accepts everything."""

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Accept[dict[str, Any]]:
        answers = {"string": "Ada", "boolean": True}
        fields = params["requestedSchema"]["properties"].items()
        return Accept({name: answers[field["type"]] for name, field in fields})


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_everything(serve: Open, version: str) -> None:
    """Questions with `ctx` and by hand, resources, prompts and completion, in either era."""
    async with serve("everything", version=version, handler=Person()) as client:
        assert (await names(client))[0] == "test_simple_text"
        for name, answer in {
            "test_input_required_result_elicitation": "Hello, Ada!",
            "test_input_required_result_request_state": "The state came back: state-ok",
            "test_input_required_result_multi_round": "Ada likes Ada",
        }.items():
            assert text(await client.call_tool(name)) == answer
        listed = [resource.uri for resource in await client.list_resources()]
        own = ["test://static-text", "test://static-binary", "test://watched-resource"]
        skill = "skill://release-notes"
        assert listed == [*own, f"{skill}/SKILL.md", f"{skill}/templates/notes.md"]
        notes = (await client.read_resource(f"{skill}/SKILL.md")).contents[0]
        assert str(notes.text).startswith("---\nname: release-notes\n")
        record = await client.read_resource("test://template/123/data")
        assert "Data for ID: 123" in str(record.contents[0].text)
        asked = await client.get_prompt("test_input_required_result_prompt")
        assert asked.messages[0].content.text == "Explain this, in the context of Ada."
        reference = Reference.prompt("test_prompt_with_arguments")
        found = await client.complete(reference, "arg2", "o", {"arg1": "one"})
        assert list(found.values) == ["one2"]


async def ended(client: Client, tool: str, **arguments: Any) -> Task:
    """Call a tool as a task, answer its questions, and wait for its end."""
    with pytest.raises(TaskStarted) as started:
        await client.call_tool(tool, arguments)
    task: Task = started.value.task
    while not task.ended:
        await trio.sleep((task.poll_interval_ms or 0) / 1000)
        task = Task.from_wire(await client.request("tasks/get", {"taskId": task.task_id}))
        answer = {"action": "accept", "content": {"name": "Ada", "confirm": True}}
        answers = dict.fromkeys(task.input_requests or {}, answer)
        params = {"taskId": task.task_id, "inputResponses": answers}
        await client.request("tasks/update", params)
    return task


async def test_everything_as_tasks(autojump_clock: object) -> None:
    """The jobs of the conformance suite, for a client with tasks, in memory with a mock clock."""
    everything = runpy.run_path(str(EXAMPLES / "everything.py"))["Everything"]
    knows = ClientCapabilities(extensions={TASKS: {}})
    both = connect(everything, version="2026-07-28", handler=Person(), capabilities=knows)
    async with both as client:
        assert text(await client.call_tool("greet", {"name": "Ada"})) == "Hello, Ada!"
        for tool, arguments, answer in (
            ("slow_compute", {"seconds": 60, "label": "pi"}, "Computed pi for 60 s"),
            ("failing_job", {}, "This job always fails"),
            ("confirm_delete", {"filename": "a.txt"}, "Deleted a.txt"),
            ("multi_input", {}, "You are Ada Ada"),
            ("test_tool_with_task", {}, "Hello from the task, Ada!"),
        ):
            task = await ended(client, tool, **arguments)
            result = ToolResult.from_wire(task.result)
            assert (text(result), result.is_error) == (answer, tool == "failing_job")
        task = await ended(client, "protocol_error_job")
        assert (task.status, (task.error or {})["code"]) == ("failed", -1)


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_resources(serve: Open, version: str) -> None:
    """A document, instances of a template, completion, and a notification of a change."""
    news = Changes()
    async with serve("resources", version=version, handler=news) as client:
        uris = [each.uri for each in await client.list_resources()]
        notes = ["notes://2025/trip", "notes://2026/groceries", "notes://2026/tax"]
        assert uris == ["config://app", "log://today", *notes]
        config = (await client.read_resource("config://app")).contents[0]
        assert (config.text, config.mime_type) == (
            '{"theme":"dark","beta":false}',
            "application/json",
        )
        note = await client.read_resource("notes://2026/groceries")
        assert note.contents[0].text == "Bread and milk."
        for uri in ("notes://2026/nothing", "notes://soon/tax"):
            with pytest.raises(McpError, match="not found"):
                await client.read_resource(uri)
        ref = Reference.resource("notes://{year}/{title}")
        assert list((await client.complete(ref, "year", "202")).values) == ["2025", "2026"]
        found = await client.complete(ref, "title", "t", {"year": "2026"})
        assert list(found.values) == ["tax"]
        if version == "2026-07-28":
            async with client.listen(uris=["log://today"]):
                await client.call_tool("note", {"text": "one"})
                assert await news.wait() == "notifications/resources/updated"
        else:
            await client.subscribe("log://today")
            await client.call_tool("note", {"text": "one"})
            assert await news.wait() == "notifications/resources/updated"
        assert (await client.read_resource("log://today")).contents[0].text == "one"


async def test_prompts(serve: Open) -> None:
    """Typed arguments, defaults, and completion that depends on other arguments."""
    async with serve("prompts") as client:
        assert [each.name for each in await client.list_prompts()] == ["code_review", "translate"]
        review = await client.get_prompt("code_review", {"code": "x = 1", "limit": "2"})
        assert [(each.role, each.content.text) for each in review.messages] == [
            ("user", "Review this code, at most 2 remarks:\nx = 1"),
            ("assistant", "Here is a strict review:"),
        ]
        for wrong in ({}, {"code": "x", "limit": "many"}, {"code": "x", "style": "rude"}):
            with pytest.raises(McpError) as caught:
                await client.get_prompt("code_review", wrong)
            assert caught.value.code == -32602
        ref = Reference.prompt("translate")
        assert list((await client.complete(ref, "language", "E")).values) == ["English"]
        found = await client.complete(ref, "dialect", "a", {"language": "English"})
        assert list(found.values) == ["American", "Australian"]


class Guests(ClientHandler):
    """Names two guests, accepts the rest, and has a model and a root."""

    def __init__(self) -> None:
        self.forms = [{"guest": "Ada", "room": "view", "more": True}, {"guest": "Bob"}, {}]

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Accept[Any]:
        if params.get("mode") == "url":
            assert params["url"] == "https://calendar.example/oauth"
            return Accept(None)
        return Accept(self.forms.pop(0))

    async def handle_sampling(self, params: Mapping[str, Any]) -> SamplingResult:
        asked = params["messages"][0]["content"]["text"]
        return SamplingResult(role="assistant", content=f"Yes: {asked}", model="none")

    async def list_roots(self) -> list[Root]:
        return [Root("file:///home/ada/inn", "Inn")]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_asking(serve: Open, version: str) -> None:
    """The questions are equal in either era, and a side effect runs once."""
    async with serve("asking", version=version, handler=Guests()) as client:
        booked = text(await client.call_tool("book"))
        assert booked == "Ada (view), Bob (quiet); 2 booked, confirmation sent"
        assert text(await client.call_tool("connect_calendar")) == "signing in"
        assert text(await client.call_tool("slogan")) == "Yes: A slogan for Inn"


class Customer(ClientHandler):
    """Names the recipient of the parcel."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Accept[dict[str, Any]]:
        self.asked.append(params["requestedSchema"])
        return Accept({"name": "Ada"})


async def shop(client: Client, customer: Customer) -> None:
    """Use each tool of the shop with valid and invalid arguments."""
    found = await client.call_tool("find", {"text": "mug", "limit": "1"})
    row = {"sku": "MUG-1", "name": "Mug", "price": "12.00"}
    assert text(found) == json.dumps([row], separators=(",", ":"))
    lines = [{"sku": "TEA-1", "quantity": 2}, {"sku": "MUG-1"}]
    invoice = {"method": "invoice", "due": "2026-01-15"}
    receipt = await client.call_tool("order", {"lines": lines, "payment": invoice})
    assert receipt.structured == {
        "lines": [lines[0], {"sku": "MUG-1", "quantity": 1}],
        "total": "21.00",
        "paid_by": invoice,
        "delivery": {"name": "Ada", "gift": False},
        "summary": "3 items for Ada",
    }
    assert customer.asked == [
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Full name", "minLength": 2},
                "gift": {"type": "boolean", "title": "Wrap it as a gift?", "default": False},
            },
            "required": ["name"],
        }
    ]
    late = {"method": "invoice", "due": "2027-01-01"}
    wrong = await client.call_tool("order", {"lines": lines, "payment": late})
    assert text(wrong) == (
        "Invalid arguments for tool order:\n"
        '/payment/due: an invoice is due within 30 days, got string "2027-01-01"'
    )
    none = await client.call_tool("order", {"lines": [{"sku": "X"}], "payment": invoice})
    assert text(none) == "No product X; there are: TEA-1, TEA-2, MUG-1"


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_pydantic_shop_in_memory(version: str) -> None:
    """Models of pydantic work in every place, on each version with questions."""
    server = runpy.run_path(str(EXAMPLES / "pydantic_shop.py"))["PydanticShop"]
    customer = Customer()
    async with connect(server, version=version, handler=customer) as client:
        await shop(client, customer)


async def test_pydantic_shop(serve: Open) -> None:
    """They also work over stdio."""
    customer = Customer()
    async with serve("pydantic_shop", handler=customer) as client:
        await shop(client, customer)


async def test_gateway(serve: Open) -> None:
    """Two servers and a tool of the gateway form one list; each answers under its prefix."""
    async with serve("gateway") as client:
        assert await names(client) == ["servers", "weather_get_weather"]
        assert "Remote weather" in text(await client.call_tool("servers"))
        assert "snow" in text(await client.call_tool("weather_get_weather", {"city": "Oslo"}))
        arguments = {"code": "x = 1"}
        prompt = await client.get_prompt("prompts_code_review", arguments)
        assert "x = 1" in prompt.messages[0].content.text


class Store(BaseHTTPRequestHandler):
    """A pet store that answers with the request."""

    def do_GET(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        seen = {"path": self.path, "key": self.headers.get("api_key")}
        answer = json.dumps({**seen, "body": self.rfile.read(size).decode()}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET  # noqa: N815 - a name of the library

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def store() -> Iterator[str]:
    """Yield the URL of a pet store."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v3"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_petstore(store: str) -> None:
    """The operations of the document work, except excluded ones."""
    environment = {"PETSTORE_URL": store, "PETSTORE_KEY": "s3cret"}
    words = ("-m", "noizu_mcp", "run", str(EXAMPLES / "petstore.py"))
    command = Stdio(sys.executable, *words, env=environment)
    with trio.fail_after(60):
        async with connect(command) as client:
            found = await names(client)
            pet = await client.call_tool("getPetById", {"petId": 7})
            arguments = {"status": ["sold", "pending"]}
            some = await client.call_tool("findPetsByStatus", arguments)
            body = {"name": "Rex", "photoUrls": [], "category": {"parent": {"name": "dogs"}}}
            made = await client.call_tool("addPet", {"body": body})
            wrong = await client.call_tool("addPet", {"body": {"name": 3}})
    assert found[:2] == ["addPet", "updatePet"]
    assert not {"deletePet", "loginUser"} & set(found)
    assert pet.structured == {"path": "/v3/pet/7", "key": None, "body": ""}
    assert some.structured["path"] == "/v3/pet/findByStatus?status=sold&status=pending"
    assert (made.structured["key"], json.loads(made.structured["body"])) == ("s3cret", body)
    assert wrong.is_error
    assert "photoUrls" in text(wrong)
