"""Scenarios for an example and its counterpart in FastMCP: calls, and a report of the results."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import httpx2
import trio

from noizu_mcp import Accept, Client, ClientHandler, Decline, McpError, ToolResult
from noizu_mcp.transports.http import serve_asgi


class Reader(ClientHandler):
    """Agrees to every question, or declines the form; gives a name where a form has one.

    Attributes:
        agrees: Whether the next questions are agreed to.
        asked: The messages of all questions.
        site: The URL of the application, if the server is mounted in one.
    """

    def __init__(self) -> None:
        self.agrees = True
        self.asked: list[str] = []
        self.site = ""
        self._send, self._logs = trio.open_memory_channel[Any](100)

    async def handle_elicitation(
        self, params: Mapping[str, Any]
    ) -> Accept[dict[str, Any]] | Decline:
        self.asked.append(params["message"])
        fields = params["requestedSchema"]["properties"]
        if "name" in fields:
            return Accept({"name": "Ada"}) if self.agrees else Decline()
        (name,) = fields
        return Accept({name: self.agrees})

    async def handle_notification(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/message":
            self._send.send_nowait(params["data"])

    async def log_message(self) -> Any:
        """Wait for a log message; FastMCP wraps its text in an object."""
        data = await self._logs.receive()
        return data["msg"] if isinstance(data, dict) else data


def outcome(result: ToolResult) -> Any:
    """Return the value of a result, which before 2026-07-28 may be wrapped in an object."""
    if result.is_error:
        return f"error: {result.content[0].text}"
    value = result.structured
    if value is None:
        return result.content[0].text
    return value["result"] if isinstance(value, dict) and set(value) == {"result"} else value


async def listing(client: Client) -> dict[str, Any]:
    """Report the tools: descriptions, hints, arguments and their limits."""
    return {
        tool.name: [
            tool.description,
            tool.annotations and tool.annotations.read_only_hint,
            tool.annotations and tool.annotations.destructive_hint,
            sorted(tool.input_schema["required"]) if "required" in tool.input_schema else [],
            {
                name: {
                    key: value
                    for key, value in schema.items()
                    if key in {"type", "enum", "default", "minimum", "maximum", "minLength"}
                }
                for name, schema in tool.input_schema.get("properties", {}).items()
            },
        ]
        for tool in await client.list_tools()
    }


async def library(client: Client, handler: Reader) -> dict[str, Any]:
    """Search, export, delete, read rows and get the prompt of a library."""
    done: list[tuple[float, float | None]] = []
    report: dict[str, Any] = {"tools": await listing(client)}
    for limit in (10, 1):
        found = await client.call_tool("search", {"words": "sea", "limit": limit})
        report[f"search {limit}"] = outcome(found)
    report["too short"] = (await client.call_tool("search", {"words": "s"})).is_error
    exported = await client.call_tool(
        "export", {"table": "members"}, progress=lambda p: done.append((p.progress, p.total))
    )
    report["export"] = outcome(exported)
    report["progress"] = done
    report["wrong table"] = (await client.call_tool("export", {"table": "walls"})).is_error
    for number, handler.agrees in ((9, True), (2, False), (2, True)):
        deleted = await client.call_tool("delete_book", {"number": number})
        report[f"delete {number} {handler.agrees}"] = outcome(deleted)
    report["asked"] = handler.asked
    for uri in ("library://books/1", "library://members/2", "library://books/2"):
        try:
            contents = (await client.read_resource(uri)).contents[0]
            report[uri] = json.loads(contents.text or "")
        except McpError:
            report[uri] = "not found"
    prompt = await client.get_prompt("recommend", {"mood": "calm", "count": "2"})
    report["prompt"] = prompt.messages[0].content.text
    return report


class FakeTracker:
    """The HTTP API of an issue tracker, as an ASGI application; remembers its visitors."""

    def __init__(self) -> None:
        self.issues = [
            {"number": 8, "title": "Typo", "state": "open", "body": None, "votes": 0},
            {"number": 7, "title": "Crash", "state": "open", "body": "It fell.", "votes": 3},
            {"number": 5, "title": "Noise", "state": "closed", "body": "Hm.", "votes": 1},
        ]
        self.comments: list[tuple[int, str]] = []
        self.tokens: set[str] = set()
        self.connections: set[tuple[str, int]] = set()

    def answer(self, path: str, query: dict[str, list[str]], body: bytes) -> tuple[int, Any]:
        match path.strip("/").split("/"):
            case ["issues"]:
                found = [each for each in self.issues if [each["state"]] == query["state"]]
                return 200, found[: int(query["limit"][0])]
            case ["issues", "429"]:
                return 429, {}
            case ["issues", "500"]:
                return 500, {}
            case ["issues", number, *rest] if number in {"7", "8", "5"}:
                if rest:
                    self.comments.append((int(number), json.loads(body)["text"]))
                    return 201, {}
                return 200, next(each for each in self.issues if each["number"] == int(number))
        return 404, {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.tokens.add(dict(scope["headers"])[b"authorization"].decode())
        self.connections.add(tuple(scope["client"]))
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        status, value = self.answer(scope["path"], parse_qs(scope["query_string"].decode()), body)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(value).encode()})


@asynccontextmanager
async def open_tracker() -> AsyncIterator[tuple[FakeTracker, str]]:
    """Serve a tracker; yields it and its URL."""
    tracker = FakeTracker()
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_asgi, tracker, port=0))
        yield tracker, f"{host.urls[0]}/"
        host.stop()


async def upstream(client: Client, _: Reader) -> dict[str, Any]:
    """List, read and comment on issues, and cause each failure of the tracker."""
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("list_issues", {}),
        ("list_issues", {"state": "closed"}),
        ("list_issues", {"limit": 1}),
        ("list_issues", {"limit": 0}),
        ("read_issue", {"number": 7}),
        *(("read_issue", {"number": number}) for number in (6, 429, 500)),
        ("comment", {"number": 7, "text": "It works."}),
        ("comment", {"number": 6, "text": "It works."}),
    )
    report: dict[str, Any] = {"tools": await listing(client)}
    for tool, arguments in calls:
        result = await client.call_tool(tool, arguments)
        # Each framework words a violation of the schema differently.
        value = "refused" if arguments == {"limit": 0} and result.is_error else outcome(result)
        report[f"{tool} {arguments}"] = value
    return report


#: Orders that the models of the shop refuse, the last one by a custom validator.
WRONG_ORDERS: tuple[dict[str, Any], ...] = (
    {"lines": [], "payment": {"method": "card", "number": "1"}},
    {"lines": [{"sku": "MUG-1", "quantity": 100}], "payment": {"method": "card", "number": "1"}},
    {"lines": [{"sku": "MUG-1"}], "payment": {"method": "cash"}},
    {"lines": [{"sku": "MUG-1"}], "payment": {"method": "invoice", "due": "2027-01-01"}},
)


async def pydantic_shop(client: Client, handler: Reader) -> dict[str, Any]:
    """Find products, order them with each way to pay, and make invalid orders."""
    report: dict[str, Any] = {"tools": await listing(client)}
    for arguments in ({}, {"text": "tea", "limit": 1}, {"text": "TEA", "limit": "2"}):
        report[f"find {arguments}"] = outcome(await client.call_tool("find", arguments))
    report["too many"] = (await client.call_tool("find", {"limit": 51})).is_error
    lines = [{"sku": "TEA-1", "quantity": 2}, {"sku": "MUG-1"}]
    card = {"method": "card", "number": "4111111111111111"}
    invoice = {"method": "invoice", "due": "2026-01-15"}
    for handler.agrees, payment in ((True, card), (True, invoice), (False, invoice)):
        ordered = await client.call_tool("order", {"lines": lines, "payment": payment})
        report[f"{payment['method']} {handler.agrees}"] = outcome(ordered)
    unknown = await client.call_tool("order", {"lines": [{"sku": "X"}], "payment": card})
    report["unknown"] = outcome(unknown)
    report["asked"] = handler.asked
    for place, arguments in enumerate(WRONG_ORDERS):
        refused = await client.call_tool("order", arguments)
        # Each framework has other words around the text of the validator.
        report[f"wrong {place}"] = (
            refused.is_error,
            "due within 30 days" in refused.content[0].text,
        )
    return report


async def fastapi_app(client: Client, handler: Reader) -> dict[str, Any]:
    """Order by the route and by the tool, in turns and concurrently, and list the orders."""
    report: dict[str, Any] = {"tools": await listing(client)}

    async def order(item: str) -> None:
        report[f"order {item}"] = outcome(await client.call_tool("order", {"item": item}))

    async with httpx2.AsyncClient(base_url=handler.site) as routes:
        posted = await routes.post("/orders/milk")
        report["route"] = posted.status_code, posted.json()
        await order("tea")
        report["log"] = await handler.log_message()
        report["second route"] = (await routes.post("/orders/salt")).json()
        report["no route"] = (await routes.get("/orders")).status_code
    report["nothing"] = (await client.call_tool("order")).is_error
    report["orders"] = outcome(await client.call_tool("orders"))
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(order, f"cup {number}")
    # They arrive in any order, and each has its own number.
    cups = [report.pop(f"order cup {number}") for number in range(20)]
    report["cups"] = sorted(int(each.removeprefix("order ")) for each in cups)
    return report
