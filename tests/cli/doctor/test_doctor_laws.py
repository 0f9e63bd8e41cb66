"""Laws of `noizu-mcp doctor`, whatever a server answers."""

import json

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp.check.doctor import RULES, Report
from noizu_mcp.check.doctor._checked_conversation import (
    CheckedConversation,
    check_answers,
    discover,
    shake_hands,
)
from noizu_mcp.check.doctor._lists import check_call, check_lists
from noizu_mcp.check.raw import Exchange, Receiver

names = st.sampled_from(
    [
        *("tools", "resources", "resourceTemplates", "prompts", "nextCursor", "name", "uri"),
        *("inputSchema", "outputSchema", "uriTemplate", "type", "protocolVersion", "capabilities"),
        *("serverInfo", "supportedVersions", "_meta", "resultType", "ttlMs", "content", "version"),
        *("structuredContent", "isError", "arguments", "description", "x-mcp-header"),
    ]
)
texts = st.sampled_from(["", "a", "object", "complete", "2026-07-28", "2025-11-25", "a://b{c}"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=6),
    max_leaves=12,
)
RIGHT = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}},
        "serverInfo": {"name": "a", "version": "1"},
    },
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "resultType": "complete",
    },
    "tools/list": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]},
}


class Anything:
    """A `Link` to a server that answers arbitrary values."""

    def __init__(self, data, report):
        self.data = data
        self.receiver = Receiver(report)

    async def exchange(self, message, headers, patience):
        await trio.lowlevel.checkpoint()
        found = Exchange(message["method"])
        if "id" not in message:
            return found
        self.receiver.expect(message["id"])
        draw = self.data.draw
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        kind = draw(st.sampled_from(["right", "result", "error", "mixed", "nothing", "bytes"]))
        right = RIGHT.get(message["method"], {})
        if kind == "bytes":
            self.receiver.take(draw(st.binary(max_size=20)), "x")
        elif kind == "right":
            answer["result"] = right
        elif kind == "result":
            answer["result"] = {**right, **draw(st.dictionaries(names, values, max_size=4))}
        elif kind == "error":
            answer["error"] = draw(st.just({"code": -32601, "message": ""}) | values)
        else:
            answer = draw(values)
        if kind not in ("bytes", "nothing"):
            self.receiver.take(json.dumps(answer).encode(), "x")
        found.answer = self.receiver.answer_to(message["id"])
        return found


@pytest.mark.slow
@given(st.data(), st.booleans())
def test_any_answers_make_a_report(data, stateless):
    """No answer stops the checks, and each finding has a rule and a text of one line."""
    report = Report()

    async def main():
        talk = CheckedConversation(Anything(data, report), report, 1.0, stateless=stateless)
        if stateless:
            result = await discover(talk, is_alive=True) or {}
        else:
            result = (await shake_hands(talk, 1.0)).result or {}
        await check_answers(talk)
        tools = await check_lists(talk, result.get("capabilities"))
        await check_call(talk, tools, "a", {})

    trio.run(main)
    assert {each.rule for each in report.findings} <= RULES.keys()
    assert all("\n" not in line for line in report.lines())
    assert json.loads(json.dumps(report.to_json()))["checked"]
