"""Servers that misbehave: each call ends in its answer or in one clear exception."""

import sys
from pathlib import Path

import pytest
import trio

from noizu_mcp import ConnectionClosed, Limits, McpError, RequestTimeout, Stdio, connect
from noizu_mcp.engine import _dispatcher

HERE = Path(__file__).parent
ERAS = ("2025-11-25", "2026-07-28")
#: Seconds that a test waits for what must arrive, and a call for what never does.
PATIENCE, NEVER = 60, 0.05
#: Without `site` and the environment: the interpreter starts twice as fast.
SERVER = Stdio(sys.executable, "-IS", str(HERE / "misbehaving.py"), exit_timeout=NEVER)
#: Bytes of the longest message that the client accepts.
MOST = 500_000
ANSWERED = (None, "mine")
CLOSED = (ConnectionClosed, "before tools/call was answered")
SILENT = (RequestTimeout, "tools/call was not answered within 0.05 s")
BROKEN = (McpError, "Not a valid JSON-RPC response")

#: For each tool the exception type that a call raises, None if it is answered, and its text.
FATES = {
    "echo": ANSWERED,
    "leave": CLOSED,
    "die": CLOSED,
    "half": CLOSED,
    "close_stdout": CLOSED,
    "close_stdin": ANSWERED,
    "hang": SILENT,
    "half_and_hang": SILENT,
    "wrong_id": SILENT,
    "late": SILENT,
    "twice": ANSWERED,
    "garbage": ANSWERED,
    "flood": ANSWERED,
    "ask": ANSWERED,
    "cancel": ANSWERED,
    "no_result": BROKEN,
    "no_answer": BROKEN,
    "no_json": (McpError, "Parse error"),
    "huge": (McpError, f"Message over {MOST} bytes"),
}
#: The result of the next call, if it is not answered.
NEXT = {
    **dict.fromkeys(("leave", "die", "half", "close_stdout"), ConnectionClosed),
    "close_stdin": ConnectionClosed,
    "half_and_hang": RequestTimeout,  # its line begins within another line
}


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    """Shorten the wait for servers that do not read."""
    monkeypatch.setattr(_dispatcher, "LAST_WORDS", NEVER)


async def outcome_of(client, tool, token, error):
    """Call a tool; return the text of its answer, or the exception."""
    timeout = NEVER if error is RequestTimeout else PATIENCE
    try:
        return (await client.call_tool(tool, {"token": token}, timeout=timeout)).text
    except (ConnectionClosed, McpError, RequestTimeout) as failure:
        return failure


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("tool", FATES)
async def test_a_call_over_stdio(tool, era):
    """It ends as the table says, and the next call is answered or finds the connection closed."""
    error, said = FATES[tool]
    with trio.fail_after(PATIENCE):
        async with connect(SERVER, version=era, limits=Limits(message_size=MOST)) as client:
            outcome = await outcome_of(client, tool, "mine", error)
            after = await outcome_of(client, "echo", "next", NEXT.get(tool))
    if error is None:
        assert outcome == said
    else:
        assert type(outcome) is error
        assert said in str(outcome)
    if tool in NEXT:
        assert type(after) is NEXT[tool]
    else:
        assert after == "next"
