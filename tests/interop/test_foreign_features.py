"""Our client with foreign servers that ask, with resources, prompts and completion.

All scenarios run once on one connection for each server and revision; each test checks one.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest
import trio

from noizu_mcp import Accept, Client, Decline, McpError, Stdio
from noizu_mcp.types import Reference

from .talking import Person, converse, look_up, texts

OLDEST, FORMS, SESSION, LATEST = "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
SESSIONS = (OLDEST, FORMS, SESSION)
SERVERS = {
    "python": (*SESSIONS, LATEST),
    "typescript-2": (*SESSIONS, LATEST),
    "typescript-1": SESSIONS,
}
SCRIPTS = {
    "typescript-2": ("features_v2.mjs", "@modelcontextprotocol/server"),
    "typescript-1": ("features_v1.mjs", "@modelcontextprotocol/sdk"),
}
WORDS = "test://text"


class Wavering(Person):
    """Answers as a test sets, or never."""

    sampling_tools = True

    def __init__(self) -> None:
        super().__init__()
        #: None: no answer.
        self.answers: Callable[[Mapping[str, Any]], Accept[Any] | Decline] | None = self.accept
        self.called, self.dismissed = trio.Event(), trio.Event()

    async def handle_elicitation(self, params: Mapping[str, Any]) -> Accept[Any] | Decline:
        self.asked.append(params)
        if self.answers is not None:
            return self.answers(params)
        self.called.set()
        try:
            return await trio.sleep_forever()
        finally:
            self.dismissed.set()


@attrs.define
class Conversation:
    """One connection to a foreign server; each method is a scenario and returns its result."""

    client: Client
    person: Wavering

    async def resources(self) -> Any:
        listed = await self.client.list_resources()
        return listed, await self.client.list_resource_templates()

    async def read(self) -> Any:
        uris = (WORDS, "test://blob", "test://records/12")
        return [(await self.client.read_resource(uri)).contents for uri in uris]

    async def no_resource(self) -> Any:
        return await self.client.read_resource("test://nowhere")

    async def prompts(self) -> Any:
        return await self.client.list_prompts()

    async def prompt(self) -> Any:
        full = await self.client.get_prompt("review", {"code": "x = 1", "style": "friendly"})
        return full, await self.client.get_prompt("review", {"code": "x = 1"})

    async def no_argument(self) -> Any:
        return await self.client.get_prompt("review", {})

    async def complete(self) -> Any:
        review, record = Reference.prompt("review"), Reference.resource("test://records/{number}")
        return (
            await self.client.complete(review, "style", "f"),
            await self.client.complete(review, "style", "x", {"code": "x"}),
            await self.client.complete(record, "number", "1"),
        )

    async def watch(self) -> Any:
        updated = "notifications/resources/updated"
        if self.client.protocol_version == LATEST:
            async with self.client.listen(uris=[WORDS]) as agreed:
                await self.client.call_tool("touch")
                return agreed, await self.person.next(updated)
        if not (self.client.capabilities.resources or {}).get("subscribe"):
            return None
        await self.client.subscribe(WORDS)
        await self.client.call_tool("touch")
        notice = await self.person.next(updated)
        await self.client.unsubscribe(WORDS)
        return None, notice

    async def ask_everything(self) -> Any:
        return await self._asked("ask_everything")

    async def ask_page(self) -> Any:
        return await self._asked("ask_page")

    async def give_up(self) -> Any:
        self.person.answers = None
        with trio.CancelScope() as waiting:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.client.call_tool, "ask_everything")
                await self.person.called.wait()
                waiting.cancel()
        await self.person.dismissed.wait()
        self.person.answers = self.person.accept
        return await self.client.call_tool("touch")

    async def decline(self) -> Any:
        self.person.answers = lambda _: Decline()
        result = await self._asked("ask_page")
        self.person.answers = self.person.accept
        return result

    async def _asked(self, tool: str) -> Any:
        self.person.asked = []
        result = await self.client.call_tool(tool)
        return result, list(self.person.asked)


SCENARIOS = (
    *("resources", "read", "no_resource", "prompts", "prompt", "no_argument", "complete", "watch"),
    *("ask_everything", "ask_page", "decline"),
)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((server, version), id=f"{server}-{version}")
        for server, versions in SERVERS.items()
        for version in versions
    ],
)
def conversation(request: pytest.FixtureRequest, foreign: Callable[..., Stdio]) -> dict[str, Any]:
    """Talk to one server in one revision; return the results of our client."""
    server, version = request.param
    command = foreign(server, "foreign_features.py", SCRIPTS)
    # Before 2025-06-18 there are no questions to cancel.
    names = SCENARIOS if version == OLDEST else (*SCENARIOS, "give_up")
    found = trio.run(converse, command, version, Wavering(), Conversation, names)
    return {**found, "server": server, "version": version}


@pytest.fixture
def server(conversation: dict[str, Any]) -> str:
    return conversation["server"]


@pytest.fixture
def version(conversation: dict[str, Any]) -> str:
    return conversation["version"]


@pytest.fixture
def seen(conversation: dict[str, Any]) -> Callable[[str], Any]:
    return look_up(conversation)


def test_resources(seen):
    """Resources and templates are listed."""
    resources, templates = seen("resources")
    assert [each.uri for each in resources] == [WORDS, "test://blob"]
    assert [each.mime_type for each in resources] == ["text/plain", "image/png"]
    assert [each.uri_template for each in templates] == ["test://records/{number}"]


def test_read(seen):
    """Text, bytes and instances of templates are read."""
    words, blob, record = seen("read")
    assert [(each.uri, each.mime_type, each.text) for each in words] == [
        (WORDS, "text/plain", "words")
    ]
    assert blob[0].blob.startswith(b"\x89PNG")
    assert record[0].text == "record 12"


def test_no_resource(seen, server, version):
    """A missing resource is a protocol error."""
    with pytest.raises(McpError) as caught:
        seen("no_resource")
    assert caught.value.code in (-32602, -32002)


def test_prompts(seen):
    """A prompt has its arguments, required or not."""
    (review,) = seen("prompts")
    assert (review.name, review.description) == ("review", "Review code.")
    needed = {each.name: bool(each.required) for each in review.arguments}
    assert needed == {"code": True, "style": False}


def test_prompt(seen):
    """A prompt is filled in."""
    full, short = seen("prompt")
    assert [each.content.text for each in full.messages] == ["x = 1 friendly"]
    assert [(each.role, each.content.text) for each in short.messages] == [("user", "x = 1 strict")]


def test_no_argument(seen):
    """A missing argument is a protocol error."""
    with pytest.raises(McpError):
        seen("no_argument")


def test_complete(seen):
    """Arguments and variables are completed, depending on the others."""
    plain, informed, variable = seen("complete")
    assert list(plain.values) == ["friendly"]
    assert list(informed.values) == ["x-like"]
    assert list(variable.values) == ["12", "13"]


def test_watch(seen, version):
    """An update reaches the handler."""
    if seen("watch") is None:
        pytest.skip("this server has no resources/subscribe in a session")
    agreed, notice = seen("watch")
    assert notice["uri"] == WORDS
    assert agreed == ({"resourceSubscriptions": [WORDS]} if version == LATEST else None)


def test_ask_everything(seen, version):
    """The user, the model and the roots answer, live or in an input-required result."""
    if version == OLDEST:
        pytest.skip("2025-03-26 cannot ask a person")
    result, asked = seen("ask_everything")
    assert texts(result) == ["Ada 3, thought, file:///work"]
    form = next(each for each in asked if "requestedSchema" in each)
    assert form["message"] == "Who?"
    model = next(each for each in asked if "messages" in each)
    assert model["maxTokens"] == 10


@pytest.mark.parametrize(("scenario", "action"), [("ask_page", "accept"), ("decline", "decline")])
def test_ask_page(seen, version, scenario, action):
    """A URL is asked for, and the answer arrives."""
    if version < SESSION:
        pytest.skip("URLs came with 2025-11-25")
    result, (asked,) = seen(scenario)
    assert texts(result) == [action]
    assert (asked["mode"], asked["url"]) == ("url", "https://example.com/login")


def test_give_up(seen, server, version):
    """Cancelling a call during a question ends the question, and nothing else."""
    if version == OLDEST:
        pytest.skip("2025-03-26 cannot ask a person")
    assert texts(seen("give_up")) == ["touched"]
