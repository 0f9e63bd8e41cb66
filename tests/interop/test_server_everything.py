"""Our client with the reference server of the protocol, in two revisions.

All scenarios run once on one connection for each revision; each test checks one.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from noizu_mcp import Accept, Client, McpError, Progress, Stdio
from noizu_mcp.types import Reference

from .talking import Person, converse, look_up, texts

PACKAGE = "@modelcontextprotocol/server-everything"
FORMS, SESSION = "2025-06-18", "2025-11-25"
TEXT, BLOB = "demo://resource/dynamic/text/7", "demo://resource/dynamic/blob/7"


class Filler(Person):
    """Accepts the defaults of a form, and omits other fields."""

    def accept(self, params: Mapping[str, Any]) -> Accept[Any]:
        if params.get("mode") == "url":
            return Accept(None)
        fields = params["requestedSchema"]["properties"].items()
        given = {name: field["default"] for name, field in fields if "default" in field}
        return Accept({"name": "Ada", **given})


@attrs.define
class Conversation:
    """One connection; each method is a scenario and returns its result."""

    client: Client
    person: Person

    async def handshake(self) -> Any:
        return self.client.protocol_version, self.client.server_info

    async def tools(self) -> Any:
        # The tools that ask appear once the server knows the client's capabilities.
        await self.person.next("notifications/tools/list_changed")
        return {tool.name for tool in await self.client.list_tools()}

    async def resources(self) -> Any:
        listed = await self.client.list_resources()
        return listed, await self.client.list_resource_templates()

    async def read(self) -> Any:
        uris = ("demo://resource/static/document/features.md", TEXT, BLOB)
        return [(await self.client.read_resource(uri)).contents[0] for uri in uris]

    async def no_resource(self) -> Any:
        return await self.client.read_resource("demo://nowhere")

    async def prompts(self) -> Any:
        return [each.name for each in await self.client.list_prompts()]

    async def prompt(self) -> Any:
        located = await self.client.get_prompt("args-prompt", {"city": "Oslo"})
        wanted = {"resourceType": "Text", "resourceId": "7"}
        return located, await self.client.get_prompt("resource-prompt", wanted)

    async def complete(self) -> Any:
        team = Reference.prompt("completable-prompt")
        dynamic = Reference.resource("demo://resource/dynamic/text/{resourceId}")
        return (
            await self.client.complete(team, "department", "S"),
            await self.client.complete(team, "name", "", {"department": "Sales"}),
            await self.client.complete(dynamic, "resourceId", "7"),
        )

    async def watch(self) -> Any:
        await self.client.subscribe(TEXT)
        await self.client.call_tool("toggle-subscriber-updates")
        notice = await self.person.next("notifications/resources/updated")
        await self.client.call_tool("toggle-subscriber-updates")
        await self.client.unsubscribe(TEXT)
        return notice

    async def progress(self) -> Any:
        seen: list[Progress] = []
        arguments = {"duration": 0.1, "steps": 2}
        tool = "trigger-long-running-operation"
        result = await self.client.call_tool(tool, arguments, progress=seen.append)
        return result, seen

    async def elicit(self) -> Any:
        return await self._asked("trigger-elicitation-request")

    async def sample(self) -> Any:
        return await self._asked("trigger-sampling-request", prompt="Think", maxTokens=10)

    async def roots(self) -> Any:
        return await self.client.call_tool("get-roots-list")

    async def page(self) -> Any:
        address = {"url": "https://example.com/login", "message": "Sign in"}
        return await self._asked("trigger-url-elicitation", **address)

    async def page_first(self) -> Any:
        address = {"url": "https://example.com/first", "message": "Sign in", "errorPath": True}
        return await self.client.call_tool("trigger-url-elicitation", address)

    async def _asked(self, tool: str, **arguments: Any) -> Any:
        self.person.asked = []
        result = await self.client.call_tool(tool, arguments)
        return result, self.person.asked


SCENARIOS = (
    *("handshake", "tools", "resources", "read", "no_resource", "prompts", "prompt", "complete"),
    *("watch", "progress", "elicit", "sample", "roots", "page", "page_first"),
)


@pytest.fixture(scope="module", params=[FORMS, SESSION])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def conversation(node_package: Callable[[str], Path], version: str) -> dict[str, Any]:
    """Talk to the server in one revision; return the results of our client."""
    command = Stdio("node", str(node_package(PACKAGE) / "dist" / "index.js"), "stdio")
    return trio.run(converse, command, version, Filler(), Conversation, SCENARIOS)


@pytest.fixture
def seen(conversation: dict[str, Any]) -> Callable[[str], Any]:
    return look_up(conversation)


def text(result: Any) -> str:
    return "".join(texts(result))


def test_handshake(seen, version):
    """The client has the revision and the server info on entry."""
    agreed, info = seen("handshake")
    assert agreed == version
    assert info.name == "mcp-servers/everything"


def test_tools(seen, version):
    """The capabilities of the client determine the tools."""
    tools = seen("tools")
    assert {"echo", "trigger-elicitation-request", "trigger-sampling-request"} <= tools
    assert {"get-roots-list"} <= tools
    assert ("trigger-url-elicitation" in tools) == (version == SESSION)


def test_resources(seen):
    """Resources and templates are listed."""
    resources, templates = seen("resources")
    assert "demo://resource/static/document/features.md" in {each.uri for each in resources}
    assert len(templates) == 2


def test_read(seen):
    """Files, texts and bytes are read."""
    document, words, blob = seen("read")
    assert document.mime_type == "text/markdown"
    assert document.text
    assert words.text.startswith("Resource 7: ")
    assert blob.blob.startswith(b"Resource 7: ")


def test_no_resource(seen):
    """A missing resource is a protocol error."""
    with pytest.raises(McpError) as caught:
        seen("no_resource")
    assert caught.value.code in (-32602, -32002)


def test_prompts(seen):
    """Prompts are listed and filled in, with embedded resources."""
    assert {"simple-prompt", "args-prompt", "resource-prompt"} <= set(seen("prompts"))
    located, resource = seen("prompt")
    assert [each.content.text for each in located.messages] == ["What's weather in Oslo?"]
    assert resource.messages[1].content.resource.uri == TEXT


def test_complete(seen):
    """Arguments and variables are completed, depending on the others."""
    department, name, variable = seen("complete")
    assert list(department.values) == ["Sales", "Support"]
    assert list(name.values) == ["David", "Eve", "Frank"]
    assert list(variable.values) == ["7"]


def test_watch(seen):
    """An update of a resource reaches the handler."""
    assert seen("watch")["uri"] == TEXT


def test_progress(seen):
    """Progress reaches the call."""
    result, reports = seen("progress")
    assert "completed" in text(result)
    assert [(each.progress, each.total) for each in reports] == [(1, 2), (2, 2)]


def test_elicitation(seen):
    """A form with every kind of field is filled in."""
    result, (asked,) = seen("elicit")
    fields = asked["requestedSchema"]["properties"]
    assert {"enum", "oneOf", "format", "items"} <= {key for each in fields.values() for key in each}
    assert "Ada" in text(result)


def test_sampling(seen):
    """The model of the client answers."""
    result, (asked,) = seen("sample")
    assert asked["maxTokens"] == 10
    assert "thought" in text(result)


def test_roots(seen):
    """The roots of the client arrive."""
    assert "file:///work" in text(seen("roots"))


def test_page(seen, version):
    """A URL reaches the user; a call that needs one first is an error that says so."""
    if version == FORMS:
        pytest.skip("URLs came with 2025-11-25")
    result, (asked,) = seen("page")
    assert asked["url"] == "https://example.com/login"
    assert "completed" in text(result)
    with pytest.raises(McpError) as caught:
        seen("page_first")
    assert caught.value.code == -32042
    assert caught.value.data["elicitations"][0]["mode"] == "url"
