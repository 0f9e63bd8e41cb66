"""Strategies for messages: valid by the official schema, and each answered once by a server."""

import json
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import trio
import trio.testing
from hypothesis import Phase, given, settings

from noizu_mcp import Server, Toolkit, mcp
from noizu_mcp.server import serve
from noizu_mcp.testing import conversations, messages
from noizu_mcp.transports import memory_pair

from .drawing import QUIET, draw

SCHEMAS = Path(__file__).resolve().parents[3] / "shared" / "schema"
VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
HANDSHAKE = VERSIONS[:3]
#: The newest revision of each era; others are similar.
NEWEST = VERSIONS[2:]
every_version = pytest.mark.parametrize(
    "version",
    [pytest.param(each, marks=[] if each in NEWEST else pytest.mark.slow) for each in VERSIONS],
)


class Numbers(Toolkit):
    @mcp
    async def add(self, a: int, b: int = 1) -> int:
        """Add."""
        return a + b


class Calculator(Server, name="calculator", version="1"):
    tools = [Numbers]
    resources = []


@every_version
def test_messages_are_valid(version):
    """Each message is a client's, by the official schema of the revision."""
    path = SCHEMAS / version / "schema.json"
    if not path.exists():
        pytest.skip("no official schemas beside the checkout")
    document = json.loads(path.read_text())
    definitions = "$defs" if "$defs" in document else "definitions"
    judges = {
        name: jsonschema.validators.validator_for(document)(
            {**document, "$ref": f"#/{definitions}/{name}"}
        )
        for name in ("ClientRequest", "ClientNotification")
    }
    found = draw(messages(version), 20)
    found += [message for drawn in draw(conversations(version), 5) for message in drawn]
    for message in found:
        judge = judges["ClientRequest" if "id" in message else "ClientNotification"]
        assert [error.message for error in judge.iter_errors(message)] == []


@pytest.mark.slow
@every_version
def test_methods_are_all_drawn(version):
    """Every client method of the revision is drawn, and none of another revision."""
    methods = {message["method"] for message in draw(messages(version), 200)}
    assert ("ping" in methods) is ("logging/setLevel" in methods) is (version in HANDSHAKE)
    assert ("server/discover" in methods) is (version not in HANDSHAKE)
    assert {"tools/call", "resources/read", "notifications/cancelled"} <= methods


def test_calls_of_known_tools():
    """Calls have the names of the caller's tools, with valid arguments."""
    found = [each for each in draw(messages(tools=[Numbers.add]), 50) if "tools/call" in str(each)]
    assert found
    assert all(each["params"]["arguments"]["a"] % 1 == 0 for each in found)


@pytest.mark.slow
def test_a_failing_call_is_shown_as_it_is():
    """The output of a failing test has the message, not the calls that built it."""

    @settings(QUIET, phases=[Phase.generate, Phase.shrink, Phase.explain])
    @given(messages(tools=[Numbers.add]))
    def check(message):
        assert "a" not in message["params"].get("arguments", ())

    with pytest.raises(AssertionError) as caught:
        check()
    note = "\n".join(caught.value.__notes__)
    assert "message={'jsonrpc': '2.0', 'method': 'tools/call'" in note
    assert "'arguments': {'a': 0}" in note


def test_unknown_revisions():
    """The error for an unknown revision lists the known ones."""
    with pytest.raises(ValueError, match=r"version is one of 2026-07-28, .*, not '2024-01-01'"):
        messages("2024-01-01")


@every_version
def test_conversations_have_an_order(version):
    """The handshake is first, ids are unique, and most cancellations name a request."""
    found = draw(conversations(version), 12)
    for sent in found:
        ids = [message["id"] for message in sent if "id" in message]
        assert len(set(ids)) == len(ids)
        if version in HANDSHAKE:
            assert [m["method"] for m in sent[:2]] == ["initialize", "notifications/initialized"]
    cancelled = [
        (m["params"]["requestId"], sent)
        for sent in found
        for m in sent
        if m["method"] == "notifications/cancelled"
    ]
    assert any(id_ in [m.get("id") for m in sent] for id_, sent in cancelled)


async def talk(sent):
    """Send messages to a server; return its answers, once it has ended."""
    answers = []
    near, far = memory_pair()
    async with trio.open_nursery() as nursery:

        async def collect():
            while True:
                answers.extend(json.loads(message.data) for message in await near.receive())

        nursery.start_soon(lambda: serve(Calculator(), far, transport="memory"))
        await near.send([json.dumps(message).encode() for message in sent])
        nursery.start_soon(collect)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return answers


@pytest.mark.parametrize("version", NEWEST)
async def test_a_server_answers_each_request_once(version):
    """Our server answers every request of a conversation once, except cancelled ones."""
    for sent in draw(conversations(version, tools=[Numbers.add]), 8):
        answers = await talk(sent)
        counts = Counter(answer["id"] for answer in answers if "id" in answer)
        assert set(counts.values()) <= {1}
        assert not [answer for answer in answers if answer.get("error", {}).get("code") == -32603]
        cancelled = {m["params"].get("requestId") for m in sent}
        due = {
            m["id"] for m in sent if "id" in m and m["method"] != "subscriptions/listen"
        } - cancelled
        assert due <= set(counts)
