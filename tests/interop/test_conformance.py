"""The conformance suite, over stdio, with the everything server: the suite itself has HTTP only.

The tests write and read the lines themselves, so that they see all messages.
"""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "docs" / "examples" / "everything.py"
VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
BY_HAND = "test_input_required_result_"
ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
ACCEPTED = {
    "elicitation/create": {"action": "accept", "content": {"name": "Alice", "ok": True}},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Paris"},
        "model": "tiny",
    },
    "roots/list": {"roots": [{"uri": "file:///work"}]},
}
#: Seconds; only used up by a hang.
PATIENCE = 60


class Wire:
    """Sends one request after the other, and keeps the notifications before each response."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._buffer = b""
        self._number = 0
        self.notices: list[dict[str, Any]] = []

    async def send(self, method: str, can: dict[str, Any] = ALL, **params: Any) -> int:
        """Send a request; return its id."""
        self._number += 1
        meta = {
            f"{PREFIX}protocolVersion": VERSION,
            f"{PREFIX}clientInfo": {"name": "suite", "version": "1"},
            f"{PREFIX}clientCapabilities": can,
        }
        await self.write(id=self._number, method=method, params={"_meta": meta, **params})
        return self._number

    async def write(self, **message: Any) -> None:
        """Send a message unchanged."""
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        await self._process.stdin.send_all(line)

    async def greet(self, version: str) -> None:
        """Do the handshake of an older revision, with all client capabilities."""
        who = {"clientInfo": {"name": "suite", "version": "1"}, "capabilities": ALL}
        await self.write(id=0, method="initialize", params={"protocolVersion": version, **who})
        assert (await self.read())["result"]["protocolVersion"] == version
        await self.write(method="notifications/initialized")

    async def read(self, *, request: bool = False) -> dict[str, Any]:
        """Read a message, which must be a request, or must not."""
        while b"\n" not in self._buffer:
            data = await self._process.stdout.receive_some()
            assert data, "the server ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        assert ({"method", "id"} <= message.keys()) == request, message
        return message

    async def ask(self, method: str, can: dict[str, Any] = ALL, **params: Any) -> dict[str, Any]:
        """Send a request and read the answer."""
        self.notices = []
        number = await self.send(method, can, **params)
        while (message := await self.read()).get("id") != number:
            self.notices.append(message)
        return message

    async def call(self, tool: str, can: dict[str, Any] = ALL, **params: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        answer = await self.ask("tools/call", can, name=tool, arguments={}, **params)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result


@asynccontextmanager
async def serving(target: str = str(EXAMPLE)) -> AsyncIterator[Wire]:
    command = [sys.executable, "-m", "noizu_mcp", "run", target]
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            run = partial(trio.run_process, command, **pipes)
            process: trio.Process = await nursery.start(run)
            yield Wire(process)
            await process.stdin.aclose()
            await process.wait()
            nursery.cancel_scope.cancel()


def answers(result: dict[str, Any]) -> dict[str, Any]:
    """Answer each question, by its key."""
    return {key: ACCEPTED[each["method"]] for key, each in result["inputRequests"].items()}


def asked(result: dict[str, Any]) -> dict[str, str]:
    """Return the methods of the questions by their keys, in a result that must ask."""
    assert result["resultType"] == "input_required"
    return {key: each["method"] for key, each in result["inputRequests"].items()}


@pytest.mark.parametrize(
    ("tool", "questions"),
    [
        ("elicitation", {"user_name": "elicitation/create"}),
        ("sampling", {"capital_question": "sampling/createMessage"}),
        ("list_roots", {"client_roots": "roots/list"}),
        ("request_state", {"confirm": "elicitation/create"}),
        (
            "multiple_inputs",
            {
                "user_name": "elicitation/create",
                "greeting": "sampling/createMessage",
                "client_roots": "roots/list",
            },
        ),
    ],
)
async def test_questions(tool, questions):
    """A tool that asks by hand sends its questions with its keys, then its result."""
    async with serving() as wire:
        first = await wire.call(BY_HAND + tool)
        assert asked(first) == questions
        assert first["requestState"]
        second = await wire.call(
            BY_HAND + tool, inputResponses=answers(first), requestState=first["requestState"]
        )
        assert second["resultType"] == "complete"
        assert second["content"]


async def test_rounds():
    """Each round has its own state, and the last round has the result."""
    async with serving() as wire:
        tool = f"{BY_HAND}multi_round"
        first = await wire.call(tool)
        (key,) = asked(first)
        reply = {key: {"action": "accept", "content": {"name": "Alice"}}}
        second = await wire.call(tool, inputResponses=reply, requestState=first["requestState"])
        (key,) = asked(second)
        assert second["requestState"] != first["requestState"]
        reply = {key: {"action": "accept", "content": {"color": "blue"}}}
        third = await wire.call(tool, inputResponses=reply, requestState=second["requestState"])
        assert third["content"][0]["text"] == "Alice likes blue"


async def test_bad_answers():
    """A missing answer repeats the question; an unrequested one changes nothing."""
    async with serving() as wire:
        tool = f"{BY_HAND}elicitation"
        first = again = await wire.call(tool)
        for wrong in ({"other": ACCEPTED["roots/list"]}, {"user_name": 12345}, {}, None):
            again = await wire.call(tool, inputResponses=wrong, requestState=again["requestState"])
            assert asked(again) == {"user_name": "elicitation/create"}
        more = {**answers(first), "other": ACCEPTED["roots/list"]}
        last = await wire.call(tool, inputResponses=more, requestState=again["requestState"])
        assert last["content"][0]["text"] == "Hello, Alice!"


async def test_tampered_state():
    """A state that was changed, or belongs to another tool, is an error."""
    async with serving() as wire:
        first = await wire.call(f"{BY_HAND}tampered_state")
        given, state = answers(first), first["requestState"]
        for tool, changed in (("tampered_state", f"{state}-TAMPERED"), ("multi_round", state)):
            answer = await wire.ask(
                "tools/call",
                name=BY_HAND + tool,
                arguments={},
                inputResponses=given,
                requestState=changed,
            )
            assert answer["error"] == {"code": -32602, "message": "Invalid requestState"}


async def test_prompt():
    """A prompt asks in the same way."""
    async with serving() as wire:
        name = f"{BY_HAND}prompt"
        first = (await wire.ask("prompts/get", name=name))["result"]
        assert asked(first) == {"user_context": "elicitation/create"}
        reply = {"user_context": {"action": "accept", "content": {"context": "tests"}}}
        state = first["requestState"]
        last = await wire.ask("prompts/get", name=name, inputResponses=reply, requestState=state)
        assert "tests" in last["result"]["messages"][0]["content"]["text"]


async def test_capabilities():
    """A client is only asked within its capabilities."""
    async with serving() as wire:
        first = await wire.call(f"{BY_HAND}capabilities", {"sampling": {}})
        assert set(asked(first).values()) == {"sampling/createMessage"}
        answer = await wire.ask("tools/call", {}, name="test_missing_capability", arguments={})
        assert answer["error"]["code"] == -32021
        assert answer["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


async def test_notifications():
    """Unrequested notices are not sent, and a tool that asks sends no request."""
    async with serving() as wire:
        assert "content" in await wire.call("test_logging_tool")
        assert wire.notices == []
        first = await wire.call("test_streaming_elicitation")
        assert set(asked(first).values()) == {"elicitation/create"}
        assert wire.notices == []


async def test_listening():
    """A stream begins with the accepted filter, and has its notices only."""
    async with serving() as wire:
        wanted = {"toolsListChanged": True}
        number = await wire.send("subscriptions/listen", notifications=wanted)
        opened = await wire.read()
        assert opened["method"] == "notifications/subscriptions/acknowledged"
        assert opened["params"]["notifications"] == wanted
        for trigger in ("test_trigger_prompt_change", "test_trigger_tool_change"):
            await wire.send("tools/call", name=trigger, arguments={})
        seen = [await wire.read() for _ in range(3)]
        (change,) = [each for each in seen if "method" in each]
        assert change["method"] == "notifications/tools/list_changed"
        assert change["params"]["_meta"][f"{PREFIX}subscriptionId"] == number


@pytest.mark.parametrize(
    "method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
)
async def test_lists(method):
    """Lists are complete results with a TTL, the same each time."""
    async with serving() as wire:
        first, second = [(await wire.ask(method))["result"] for _ in range(2)]
        assert first == second
        assert first["resultType"] == "complete"
        assert first["ttlMs"] >= 0
        assert first["cacheScope"] in ("public", "private")


async def test_read():
    """A resource has a TTL; a missing one is an error with its URI."""
    async with serving() as wire:
        result = (await wire.ask("resources/read", uri="test://static-text"))["result"]
        assert (result["ttlMs"] >= 0, result["cacheScope"]) == (True, "private")
        uri = "test://nonexistent-resource-for-conformance-testing"
        error = (await wire.ask("resources/read", uri=uri))["error"]
        assert (error["code"], error["data"]) == (-32602, {"uri": uri})


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
@pytest.mark.parametrize("tool", ["open_page", "use_tools"])
async def test_too_old(version, tool):
    """A question of 2025-11-25 is not sent before, whatever the client declares."""
    async with serving(f"{HERE / 'everything_server.py'}:Interop") as wire:
        await wire.greet(version)
        await wire.write(id=1, method="tools/call", params={"name": tool, "arguments": {}})
        result = (await wire.read())["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("Capability not supported by the client")


async def test_url():
    """2025-11-25 needs a unique id with every URL."""
    async with serving(f"{HERE / 'everything_server.py'}:Interop") as wire:
        await wire.greet("2025-11-25")
        ids = set()
        for number in (1, 2):
            params = {"name": "open_page", "arguments": {}}
            await wire.write(id=number, method="tools/call", params=params)
            question = await wire.read(request=True)
            ids.add(question["params"].pop("elicitationId"))
            page = "https://example.com/login"
            assert question["params"] == {"mode": "url", "message": "Sign in", "url": page}
            await wire.write(id=question["id"], result={"action": "accept"})
            assert (await wire.read())["result"]["content"][0]["text"] == "accept"
        assert len(ids) == 2
