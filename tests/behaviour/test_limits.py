"""Limits by name, arrays of messages, and invalid messages."""

import json

import pytest

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"

handshake = pytest.mark.parametrize("revision", HANDSHAKE, indirect=True)
batches = pytest.mark.parametrize("revision", ["2025-03-26"], indirect=True)
no_batches = pytest.mark.parametrize(
    "revision", ["2025-06-18", "2025-11-25", STATELESS], indirect=True
)
stateless = pytest.mark.parametrize("revision", [STATELESS], indirect=True)


async def unreadable(wire, data):
    """Send bytes that are not a request; return the error, which has no id."""
    await wire.send(data)
    message = await wire.receive()
    assert "id" not in message
    return message["error"]


async def test_messages_have_a_largest_size(opened, transport):
    """A longer message is dropped and answered, with its id if that can be read."""
    async with opened("Tight") as wire:
        big = wire.message("tools/call", {"name": "echo", "arguments": {"message": "x" * 3000}})
        error = (await wire.answer((await wire.send(big)) or big["id"]))["error"]
        noun = "The body is" if transport == "http" else "Message"
        assert error == {"code": -32600, "message": f"{noun} over 2000 bytes"}
        assert (await unreadable(wire, b"[" + b"1" * 5000))["code"] == -32600
        if transport == "http":
            await wire.is_alive()
            return  # what expects no response gets a status, and no message
        late = {"jsonrpc": "2.0", "id": 1, "result": {"x": "y" * 3000}}
        await wire.send(late)
        notice = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "y" * 3000}}
        assert (await unreadable(wire, json.dumps(notice).encode()))["code"] == -32600
        await wire.is_alive()


async def test_messages_have_a_greatest_depth(opened):
    """A message that is too deep is refused, with its id."""
    async with opened("Tight") as wire:
        deep = []
        for _ in range(20):
            deep = [deep]
        message = wire.message("tools/call", {"name": "quick", "arguments": {"text": deep}})
        await wire.send(message)
        error = (await wire.answer(message["id"]))["error"]
        assert error["code"] == -32700
        assert "10 levels" in error["message"]
        await wire.is_alive()


async def test_requests_in_flight_are_bounded(opened, transport, revision):
    """One more than the limit gets an error; every response makes room."""
    if transport == "http" and revision == STATELESS:
        pytest.skip("each request stands alone over HTTP; `HttpLimits.streams` bounds their number")
    async with opened("Tight") as wire:
        for key in "abcd":
            await wire.begin_call("hold", {"key": key}, id_=key, progressToken=key)
        for _ in range(4):
            await wire.notice("notifications/progress")
        answer = await wire.call("quick")
        assert answer["error"]["code"] == -32603
        assert "4 requests in flight" in answer["error"]["message"]
        await wire.cancel("a")
        assert await wire.text("quick") == "quick"
        for key in "bcd":
            await wire.call("release", {"key": key})
            assert "result" in await wire.answer(key)


@stateless
async def test_subscriptions_are_bounded(opened, transport):
    """One listen request more than the limit is refused; ending one makes room."""
    if transport == "http":
        pytest.skip("each request stands alone over HTTP; `HttpLimits.streams` bounds their number")
    async with opened("Tight") as wire:
        wanted = {"notifications": {"toolsListChanged": True}}
        for id_ in "ab":
            await wire.begin("subscriptions/listen", wanted, id_=id_)
            await wire.notice("notifications/subscriptions/acknowledged")
        error = (await wire.ask("subscriptions/listen", wanted))["error"]
        assert (error["code"], "More than 2" in error["message"]) == (-32602, True)
        await wire.cancel("a")
        await wire.begin("subscriptions/listen", wanted, id_="c")
        await wire.notice("notifications/subscriptions/acknowledged")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{", -32700),
        (b"nonsense", -32700),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b"5", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b'"text"', -32600),
        (b'\xff\xfe{"jsonrpc"}', -32700),
    ],
)
async def test_what_is_no_message_is_answered_without_an_id(kitchen, data, code):
    """Parse errors are -32700, others -32600; the session goes on."""
    assert (await unreadable(kitchen, data))["code"] == code
    await kitchen.is_alive()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"jsonrpc": "1.0"}, -32600),
        ({"params": [1]}, -32600),
        ({"params": "x"}, -32600),
        ({"method": 5}, -32600),
        ({"params": {"x": float("nan")}}, -32700),
    ],
)
async def test_a_broken_request_is_answered_by_its_id(kitchen, change, code):
    """The error has its id, so that its client does not wait."""
    await kitchen.send({**kitchen.message("tools/list", id_="mine"), **change})
    assert (await kitchen.answer("mine"))["error"]["code"] == code
    await kitchen.is_alive()


async def test_unexpected_responses_are_dropped(kitchen):
    """Late, forged and malformed responses are never answered."""
    await kitchen.send(
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": "forged", "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": 1, "result": 5},
        {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": 2, "error": "x"},
        {"jsonrpc": "2.0", "method": "notifications/unknown"},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}},
        {"jsonrpc": "2.0", "method": "tools/list"},
    )
    await kitchen.is_alive()
    assert (kitchen.notices, kitchen.answers) == ([], {})


# Arrays


@no_batches
async def test_only_2025_03_26_has_arrays(kitchen):
    """On other revisions an array is one error."""
    await kitchen.send([kitchen.message("tools/list"), kitchen.message("tools/list")])
    message = await kitchen.receive()
    assert (message.get("id"), message["error"]["code"]) == (None, -32600)
    await kitchen.is_alive()


@handshake
async def test_no_arrays_before_the_handshake(opened):
    """No revision is negotiated yet that allows an array, not even for `initialize`."""
    async with opened("Kitchen", start=False) as wire:
        await wire.send([wire.message("ping")])
        assert (await wire.receive())["error"]["code"] == -32600


@batches
async def test_the_answers_to_an_array_are_one_array(kitchen):
    """Slow and quick requests, errors and notifications have one array when the last is done."""
    whole = [
        kitchen.message("tools/call", {"name": "text"}, id_="text"),
        kitchen.message("tools/call", {"name": "nope"}, id_="unknown"),
        {"jsonrpc": "2.0", "method": "notifications/x"},
        kitchen.message("tools/call", {"name": "quick"}, id_="quick"),
        kitchen.message("ping", id_="quick"),
        kitchen.message("nope", id_="method"),
        kitchen.message("initialize", id_="init"),
        {"jsonrpc": "2.0", "id": "late", "result": {}},
        5,
        kitchen.message("tools/call", {"name": "hold", "arguments": {"key": "h"}}, id_="held"),
    ]
    await kitchen.send(whole)
    await kitchen.call("release", {"key": "h"}, id_="release")
    assert kitchen.answers == {}
    answers = await kitchen.receive()
    assert isinstance(answers, list)
    assert sorted(str(each.get("id")) for each in answers) == sorted(
        ["text", "unknown", "quick", "quick", "method", "init", "None", "held"]
    )
    codes = {each.get("id"): each["error"]["code"] for each in answers if "error" in each}
    assert codes == {
        "unknown": -32602,
        "quick": -32600,
        "method": -32601,
        "init": -32600,
        None: -32600,
    }


@batches
async def test_cancelling_inside_an_array(kitchen):
    """A cancelled request is missing from the array; an array of only such is not sent."""
    held = kitchen.message("tools/call", {"name": "hold", "arguments": {"key": "h"}}, id_="held")
    cancel = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": "held"},
    }
    await kitchen.send([held, cancel, kitchen.message("ping", id_="ping")])
    (answer,) = await kitchen.receive()
    assert answer["id"] == "ping"
    assert await kitchen.text("running") == "0"
    quick = kitchen.message("tools/call", {"name": "quick"}, id_="held")
    await kitchen.send([quick, cancel])  # too late: it was already answered
    (answer,) = await kitchen.receive()
    assert answer["result"]["content"][0]["text"] == "quick"
    await kitchen.send([held, cancel])
    held["params"]["_meta"] = {"progressToken": 1}
    await kitchen.send([held])
    await kitchen.notice("notifications/progress")
    await kitchen.cancel("held")
    await kitchen.is_alive()
    assert kitchen.answers == {}


@batches
async def test_arrays_of_nothing_and_of_too_much(opened):
    """An empty array is one error, one of notifications has no answer, a long one is refused."""
    async with opened("Tight") as wire:
        assert (await unreadable(wire, b"[]"))["code"] == -32600
        await wire.send([{"jsonrpc": "2.0", "method": "notifications/x"}])
        ping = {"jsonrpc": "2.0", "method": "ping"}
        error = await unreadable(wire, json.dumps([{**ping, "id": n} for n in range(4)]).encode())
        assert error == {"code": -32600, "message": "More than 3 messages in one array"}
        await wire.is_alive()


@batches
async def test_a_stateless_request_is_no_part_of_an_array(kitchen):
    """2026-07-28 has no arrays, whatever session shares the pipe."""
    kitchen.switch(STATELESS)
    inside = kitchen.message("tools/list", id_="modern")
    kitchen.switch("2025-03-26")
    await kitchen.send([inside])
    (answer,) = json.loads(json.dumps(await kitchen.receive()))
    assert answer["error"]["code"] == -32600
