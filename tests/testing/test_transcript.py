"""The test kit: recorded messages, and assertions that wait for messages."""

import json

import pytest
import trio

from noizu_mcp import Server, Tool
from noizu_mcp.testing import (
    Transcript,
    assert_notification,
    assert_progress,
    connect,
    refute_notification,
)

CHANGED = "notifications/tools/list_changed"
MESSAGE = "notifications/message"


class Talk(Tool):
    """Says this and that."""

    async def call(self, args, ctx):
        await ctx.report_progress(1, total=2)
        await ctx.report_progress(2, total=2, message="done")
        await ctx.info("first")
        await ctx.error("second", logger="talk")
        ctx.notify.tools()


class Talking(Server, name="talking", version="1"):
    tools = [Talk]


@pytest.fixture
def transcript():
    return Transcript()


async def test_everything_is_recorded(transcript):
    """Messages of both directions are recorded in order, as bytes and decoded."""
    async with connect(Talking, tap=transcript, version="2025-11-25") as client:
        await client.list_tools()
    assert [each["method"] for each in transcript.sent()] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
    ]
    assert len(transcript.sent("tools/list")) == 1
    (first, *_) = transcript.received()
    assert first["result"]["serverInfo"]["name"] == "talking"
    entry = transcript.entries[0]
    assert (entry.direction, json.loads(entry.data)) == ("sent", entry.message)


async def test_notifications_are_waited_for_and_claimed(transcript, autojump_clock):
    """Each satisfies one assertion, in any order; the error says what did not arrive."""
    async with connect(Talking, tap=transcript, version="2025-11-25") as client:
        await client.call_tool("talk", progress=lambda _: None)
        assert (await assert_notification(transcript, MESSAGE, level="error"))["data"] == "second"
        assert (await assert_notification(transcript, MESSAGE))["data"] == "first"
        assert await assert_notification(transcript, CHANGED) == {}
        assert (await assert_progress(transcript, 2, total=2))["message"] == "done"
        await refute_notification(transcript, MESSAGE)
        with pytest.raises(AssertionError, match=f"Timed out awaiting {MESSAGE} notification$"):
            await assert_notification(transcript, MESSAGE)
        text = r"Timed out awaiting notifications/progress notification with \{'progress': 3\}"
        with pytest.raises(AssertionError, match=text):
            await assert_progress(transcript, 3, timeout=5)


async def test_what_comes_later_is_noticed(transcript, autojump_clock):
    """The assertions wait for messages that have not arrived yet."""
    async with (
        connect(Talking, tap=transcript, version="2025-06-18") as client,
        trio.open_nursery() as nursery,
    ):

        async def later():
            await trio.sleep(0.05)
            await client.call_tool("talk")

        nursery.start_soon(later)
        await assert_notification(transcript, CHANGED)
        nursery.start_soon(later)
        with pytest.raises(AssertionError, match=f"Expected no {CHANGED} notification, got: {{}}"):
            await refute_notification(transcript, CHANGED)


def test_bytes_that_are_no_messages_are_kept(transcript):
    """A tap must not raise for any bytes; arrays are split."""
    for data in (b"junk", b"[" * 100_000, b"5", b'[{"jsonrpc":"2.0","method":"a"},5]'):
        transcript("received", data)
    assert [entry.message is None for entry in transcript.entries] == [True, True, False, False]
    assert transcript.received() == [{"jsonrpc": "2.0", "method": "a"}]
    assert transcript.claim("a") == {}
    assert transcript.claim("a") is None


def test_a_transcript_is_text() -> None:
    """A transcript shows one line per message, the last ones of many, cut and escaped."""
    transcript = Transcript()
    transcript("sent", b'{"id":1}')
    transcript("received", b"\xff" + b"a" * 20)

    assert transcript.render() == 'sent     {"id":1}\nreceived \\xffaaaaaaaaaaaaaaaaaaaa'
    assert transcript.render(most=1, width=16) == "(1 more before)\nreceived \\xffaa…"
    assert Transcript().render() == ""
