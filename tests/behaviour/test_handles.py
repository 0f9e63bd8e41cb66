"""Handles: objects that outlive the calls that use them."""

import json

UNKNOWN = (
    "No such Basket: basket is unknown, has expired, or was deleted."
    " Tools that return one: open, add, look"
)


async def shown(wire, name, args=None):
    """Call a tool that returns a handle."""
    result = await wire.result(name, args)
    assert "isError" not in result
    found = json.loads(result["content"][0]["text"])
    assert next(iter(found)) == "id"
    assert result.get("structuredContent", found) == found
    return found


async def refused(wire, name, args):
    """Call a tool; return the text of its failed result."""
    result = await wire.result(name, args)
    assert result["isError"]
    return result["content"][0]["text"]


async def test_a_handle_goes_from_call_to_call(opened):
    """It is listed as a text, shown as an object, changed, and deleted."""
    async with opened("Holding") as wire:
        listed = {each["name"]: each for each in (await wire.ask("tools/list"))["result"]["tools"]}
        assert listed["add"]["inputSchema"]["properties"]["basket"] == {
            "type": "string",
            "description": "A basket of a shop: its id, as open or add or look returned it",
        }
        basket = (await shown(wire, "open", {"items": ["tea"]}))["id"]
        assert len(basket) >= 22
        given = {"basket": basket, "item": "milk"}
        assert await shown(wire, "add", given) == {"id": basket, "items": ["tea", "milk"]}
        assert await wire.text("add_in_thread", given) == "added"
        assert await refused(wire, "add_and_fail", given) == "failed"
        assert (await shown(wire, "look", given))["items"] == ["tea", "milk", "milk"]
        assert "292 bytes" in (await refused(wire, "add", {**given, "item": "x" * 258}))
        assert await wire.text("drop", given) == "dropped"
        for id_ in (basket, "x", ""):
            assert await refused(wire, "add", {**given, "basket": id_}) == UNKNOWN


async def test_calls_wait_for_each_other(opened):
    """The second call gets what the first has stored, and reading does not wait."""
    async with opened("Holding") as wire:
        basket = (await shown(wire, "open"))["id"]
        first = await wire.begin_call("hold", {"basket": basket, "key": "a"}, progressToken="first")
        await wire.notice("notifications/progress")
        second = await wire.begin_call("add", {"basket": basket, "item": "b"})
        assert (await shown(wire, "look", {"basket": basket}))["items"] == []
        assert await wire.text("release", {"key": "a"}) == "1"
        assert "result" in await wire.answer(first)
        assert "result" in await wire.answer(second)
        assert (await shown(wire, "look", {"basket": basket}))["items"] == ["a", "b"]


async def test_a_call_that_takes_too_long(opened):
    """Its changes are dropped, and the handle is free."""
    async with opened("Holding") as wire:
        basket = (await shown(wire, "open"))["id"]
        assert await refused(wire, "too_slow", {"basket": basket}) == "Tool execution timed out"
        given = {"basket": basket, "item": "x"}
        assert (await shown(wire, "add", given))["items"] == ["x"]


async def test_a_question_in_between(opened, revision):
    """The handler keeps the handle until it has its answer, and stores once."""
    async with opened("Holding", start=False) as wire:
        wire.capabilities = {"elicitation": {}}
        await wire.start()
        basket = (await shown(wire, "open"))["id"]
        call = {"name": "ask", "arguments": {"basket": basket}}
        answer = {"action": "accept", "content": {"name": "Ann"}}
        if revision == "2026-07-28":
            result = (await wire.ask("tools/call", call))["result"]
            more = {
                "inputResponses": dict.fromkeys(result["inputRequests"], answer),
                "requestState": result["requestState"],
            }
            done = await wire.ask("tools/call", {**call, **more})
        elif revision == "2025-03-26":  # no client of it can be asked
            assert (await wire.ask("tools/call", call))["result"]["isError"]
            return
        else:
            id_ = await wire.begin("tools/call", call)
            question = await wire.question()
            await wire.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
            done = await wire.answer(id_)
        assert done["result"]["content"][0]["text"] == "answered"
        assert (await shown(wire, "look", {"basket": basket}))["items"] == ["asked", "Ann"]
