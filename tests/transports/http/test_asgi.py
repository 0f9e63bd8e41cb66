"""Bodies that are too long, too slow, in parts, or cut off."""

import json

import pytest
import trio

from noizu_mcp import Limits, Server, Tool

from ...kit.messages import META, call
from .shop import Echo, Shop
from .wire import serving

MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo"}
BODY = json.dumps(call("echo", {"text": "é" * 20}, _meta=META)).encode()


class Small(Server, name="small", version="1", limits=Limits(message_size=1000)):
    tools = [Echo]


def part(body, *, more=True):
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_body_comes_in_parts(autojump_clock, size):
    """A body may be split anywhere."""
    parts = [part(BODY[at : at + size]) for at in range(0, len(BODY), size)]
    async with serving(Shop()) as wire:
        for end in (part(b"", more=False), {"type": "http.request"}):
            done = await wire.send("POST", None, MODERN, parts=[*parts, end])
            assert done.status == 200


async def test_a_body_that_is_too_long(autojump_clock):
    """It is refused with 413 as soon as it is too long; the rest is not read."""
    async with serving(Small()) as wire:
        rest = [part(b" " * 600), part(b" " * 600), part(b" " * 600, more=False)]
        done = await wire.send("POST", None, MODERN, parts=rest)
        assert (done.status, done.error) == (413, -32600)
        assert "1000 bytes" in done.json["error"]["message"]
        padded = [part(BODY + b" " * (1000 - len(BODY)), more=False)]
        assert (await wire.send("POST", None, MODERN, parts=padded)).status == 200


async def test_a_body_that_is_too_slow(autojump_clock):
    """It is refused with 408 after the timeout for the whole body, at any pace."""
    async with serving(Shop(), limits={"body_time": 5}) as wire:
        exchange = wire.make("POST", None, MODERN)

        async def receive():
            await trio.sleep(1)
            return part(b" ")

        exchange.receive = receive
        await exchange.run()
        assert (exchange.status, exchange.error) == (408, -32600)
        assert trio.current_time() == pytest.approx(5)


async def test_a_client_that_leaves_in_its_body(autojump_clock, caplog):
    """A client that disconnects within its body gets no response, and nothing runs."""
    async with serving(Shop()) as wire:
        parts = [part(BODY[:10]), {"type": "http.disconnect"}]
        done = await wire.send("POST", None, MODERN, parts=parts)
        assert done.sent == []
        assert not wire.endpoint.open
    assert not caplog.records


async def test_headers_are_read_as_they_may_come(autojump_clock):
    """White space around values is ignored; clients without an address are served."""
    async with serving(Shop()) as wire:
        headers = {**MODERN, "mcp-name": "\t echo ", "host": "evil.com"}
        done = await wire.send("POST", BODY, headers, client=None)
        assert done.status == 421
        done = await wire.send("POST", BODY, {**headers, "host": " localhost "})
        assert done.status == 200


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_a_slow_body_takes_no_time_from_its_handler(autojump_clock, era):
    """The timeout of the handler begins after the body was read."""

    class Late(Tool, timeout=2.0):
        async def call(self, args):
            await trio.sleep(args["seconds"])
            return "done"

    class Slow(Server, name="slow", version="1"):
        tools = [Late]

    async with serving(Slow(), limits={"body_time": 5, "silence": 60}) as wire:
        headers = {**MODERN, "mcp-name": "late"}
        if era != "2026-07-28":
            headers = (await wire.session(era)).headers
        meta = {"_meta": META} if era == "2026-07-28" else {}
        for seconds, text in ((1.5, "done"), (3, "Tool execution timed out")):
            exchange = wire.make("POST", call("late", {"seconds": seconds}, **meta), headers)
            at_once, began = exchange.receive, trio.current_time()

            async def receive(at_once=at_once):
                await trio.sleep(4)
                return await at_once()

            exchange.receive = receive
            await exchange.run()
            assert exchange.json["result"]["content"][0]["text"] == text
            assert trio.current_time() - began == pytest.approx(4 + min(seconds, 2))
