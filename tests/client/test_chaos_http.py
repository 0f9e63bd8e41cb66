"""Servers over HTTP that misbehave: each call ends in its answer or in one clear exception."""

import pytest
import trio

from noizu_mcp import (
    ConnectionClosed,
    Limits,
    McpError,
    ProtocolError,
    RequestTimeout,
    TransportError,
    connect,
)

from .misbehaving_http import misbehaving

ERAS = ("2025-11-25", "2026-07-28")
#: Seconds that a test waits for what must arrive, and a call for what never does.
PATIENCE, NEVER = 60, 0.05
#: Bytes of the longest message that the client accepts.
MOST = 500_000
FAILURES = (ConnectionClosed, McpError, ProtocolError, RequestTimeout, TransportError)
ANSWERED = (None, "mine")
BROKE = (ConnectionClosed, "before tools/call was answered")
SILENT = (RequestTimeout, "tools/call was not answered within 0.05 s")
NO_MESSAGE = (ProtocolError, "the answer to tools/call is not a JSON-RPC message")

#: For each tool the exception type that a call raises, None if it is answered, and its text.
FATES = {
    "echo": ANSWERED,
    "leave": BROKE,
    "half_head": BROKE,
    "half_body": BROKE,
    "no_http": BROKE,
    "huge_head": BROKE,
    "bad_chunks": BROKE,
    "hang": SILENT,
    "half_head_and_hang": SILENT,
    "half_body_and_hang": SILENT,
    "silent_stream": SILENT,
    "empty": NO_MESSAGE,
    "too_short": NO_MESSAGE,
    "no_unicode": NO_MESSAGE,
    "no_result": NO_MESSAGE,
    "accepted": NO_MESSAGE,
    "page": (ProtocolError, "text/html"),
    "wrong_id": (ConnectionClosed, "the answer to tools/call broke off"),
    "broken_stream": (ConnectionClosed, "the answer to tools/call broke off"),
    "huge": (ProtocolError, f"is over the size limit of {MOST} bytes"),
    "huge_event": (ProtocolError, f"is over the size limit of {MOST} bytes"),
    "fail": (TransportError, "answered 500"),
    "busy": (TransportError, "answered 503"),
    "move": (ConnectionClosed, "it redirects in circles"),
    "drip": ANSWERED,
    "packed": ANSWERED,
    "last_words": ANSWERED,
    "twice": ANSWERED,
    "garbage": ANSWERED,
    "flood": ANSWERED,
    "endless_stream": ANSWERED,
}


async def outcome_of(client, tool, token, error=None):
    """Call a tool; return the text of its answer, or the exception."""
    timeout = NEVER if error is RequestTimeout else PATIENCE
    try:
        return (await client.call_tool(tool, {"token": token}, timeout=timeout)).text
    except FAILURES as failure:
        return failure


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("tool", FATES)
async def test_a_call_over_http(tool, era):
    """It ends as the table says, and the next call is answered."""
    error, said = FATES[tool]
    with trio.fail_after(PATIENCE):
        async with misbehaving() as server:
            limits = Limits(message_size=MOST)
            async with connect(server.url, version=era, limits=limits) as client:
                outcome = await outcome_of(client, tool, "mine", error)
                after = await outcome_of(client, "echo", "next")
    if error is None:
        assert outcome == said
    else:
        assert type(outcome) is error
        assert said in str(outcome)
    assert after == "next"
