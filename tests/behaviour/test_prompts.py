"""Prompts and completion in every revision."""

import logging

import pytest

from noizu_mcp import McpError

STATELESS = "2026-07-28"


@pytest.fixture
async def wire(opened):
    async with opened("Pantry") as wire:
        yield wire


async def get(wire, name, **arguments):
    return await wire.ask("prompts/get", {"name": name, "arguments": arguments})


async def messages(wire, name, **arguments):
    return (await get(wire, name, **arguments))["result"]["messages"]


async def complete(wire, name, argument, value="", **filled):
    """Complete an argument of a prompt, or a variable of a template."""
    kind = {"type": "ref/prompt", "name": name}
    params = {
        "ref": {"type": "ref/resource", "uri": name} if "://" in name else kind,
        "argument": {"name": argument, "value": value},
    }
    if filled:
        params["context"] = {"arguments": filled}
    return await wire.ask("completion/complete", params)


async def values(wire, *args, **filled):
    return (await complete(wire, *args, **filled))["result"]["completion"]["values"]


async def test_the_list(wire, revision):
    """Prompts have their arguments, and the fields of the revision; hidden ones are left out."""
    prompts = (await wire.ask("prompts/list"))["result"]["prompts"]
    assert [each["name"] for each in prompts] == [
        *("review", "typed", "kinds", "raw", "crash_prompt", "refuse_prompt", "slow_prompt"),
        *("many", "many_by_method"),
    ]
    full = {
        "name": "review",
        "title": "Review it",
        "description": "Review code.",
        "icons": [{"src": "https://example.com/r.png"}],
        "_meta": {"example.com/k": 1},
        "arguments": [
            {"name": "code", "title": "Source", "description": "The code", "required": True},
            {"name": "style"},
            {"name": "field"},
            {"name": "language"},
        ],
    }
    missing = {"2025-03-26": {"title", "icons", "_meta"}, "2025-06-18": {"icons"}}
    found = dict(prompts[0])
    arguments = [
        {k: v for k, v in each.items() if (k, v) != ("required", False)}
        for each in found["arguments"]
    ]
    found["arguments"] = arguments
    if "title" in missing.get(revision, ()):
        del full["arguments"][0]["title"]
    assert found == {k: v for k, v in full.items() if k not in missing.get(revision, ())}


async def test_arguments(wire):
    """Strings on the wire become typed values; absent arguments have their defaults."""
    user, assistant = await messages(wire, "review", code="x=1", style="strict")
    assert user == {"role": "user", "content": {"type": "text", "text": "x=1 strict web"}}
    assert assistant["role"] == "assistant"
    (only,) = await messages(wire, "typed", count="41", mode="b", loud="true")
    assert only["content"]["text"] == "42 b True"
    (only,) = await messages(wire, "typed", count="1")
    assert only["content"]["text"] == "2 a False"
    (only,) = await messages(wire, "raw", b="2", a="1")
    assert only["content"]["text"] == "a=1 b=2"
    assert (await messages(wire, "hush"))[0]["content"]["text"] == "found"
    answer = await wire.ask("prompts/get", {"name": "hush"})
    assert "result" in answer


async def test_wrong_arguments(wire):
    """They are -32602 with the reason."""
    for name, arguments, said in (
        ("review", {}, "code"),
        ("review", {"code": 5}, "code"),
        ("typed", {}, "count"),
        ("typed", {"count": "many"}, "count"),
        ("typed", {"count": "0"}, "count"),
        ("typed", {"count": "1", "mode": "c"}, "mode"),
        ("nope", {}, "Unknown prompt: nope"),
    ):
        error = (await get(wire, name, **arguments))["error"]
        assert error["code"] == -32602
        assert said in error["message"]


@pytest.mark.parametrize(
    "params", [{}, {"name": 5}, {"name": "kinds", "arguments": 5}, {"name": None, "arguments": {}}]
)
async def test_a_malformed_get(wire, transport, params):
    """A request without a name is invalid; over HTTP the mirrored header is checked first."""
    unnamed = transport == "http" and wire.stateless and not isinstance(params.get("name"), str)
    code = (await wire.ask("prompts/get", params))["error"]["code"]
    assert code == (-32020 if unnamed else -32602)


async def test_messages_of_all_kinds(wire, revision):
    """Each kind of content arrives; a link is a text in revisions without links."""
    result = (await get(wire, "kinds"))["result"]
    assert result["description"] == "All kinds"
    found = [each["content"] for each in result["messages"]]
    link = "text" if revision == "2025-03-26" else "resource_link"
    kinds = ["text", "image", "audio", "resource", "resource", link]
    assert [each["type"] for each in found] == kinds
    assert found[3]["resource"] == {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "a"}
    assert found[4]["resource"]["blob"] == "AA=="
    assert "file:///c" in (found[5].get("uri") or found[5]["text"])
    assert [each["role"] for each in result["messages"]][2] == "assistant"
    assert (await get(wire, "review", code="x"))["result"]["description"] == "Review code."


async def test_handlers_that_fail(wire, caplog):
    """A crash has no details, an `McpError` is sent unchanged, and a timeout is an error."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    crashed = {"code": -32603, "message": "Request handler failed"}
    assert (await get(wire, "crash_prompt"))["error"] == crashed
    refused = {"code": 4002, "message": "not this one"}
    assert (await get(wire, "refuse_prompt"))["error"] == refused
    timed_out = {"code": -32603, "message": "Request timed out"}
    assert (await get(wire, "slow_prompt"))["error"] == timed_out
    assert (await complete(wire, "many_by_method", "crash"))["error"] == crashed


# Completion


async def test_static_completion(wire):
    """Values that start with the prefix are listed in order; without a source there are none."""
    assert await values(wire, "review", "style") == ["strict", "friendly", "Formal"]
    assert await values(wire, "review", "style", "f") == ["friendly"]
    assert await values(wire, "review", "style", "x") == []
    assert await values(wire, "review", "code", "x") == []
    assert await values(wire, "many", "nothing") == []


async def test_completion_by_what_is_filled_in(wire):
    """`context.arguments` reach the function, except values that are not strings."""
    assert await values(wire, "review", "language") == []
    assert await values(wire, "review", "language", field="web") == ["js", "ts"]
    assert await values(wire, "review", "language", "p", field="data") == ["python"]
    assert await values(wire, "review", "language", field=5) == []
    template = "item://{number}{?unit}"
    assert await values(wire, template, "number", "4") == ["number:4:"]
    assert await values(wire, template, "unit", "k", number="1") == ["unit:k:number=1"]
    for context in (5, {"arguments": 5}, {}):
        ref = {"type": "ref/prompt", "name": "review"}
        params = {"ref": ref, "argument": {"name": "language", "value": ""}, "context": context}
        answer = await wire.ask("completion/complete", params)
        assert answer["result"]["completion"]["values"] == []


async def test_at_most_a_hundred(wire):
    """More values set `hasMore`; a `Completion` of the author is sent unchanged."""
    found = (await complete(wire, "many", "listed"))["result"]["completion"]
    assert found["values"] == [f"v{number:03}" for number in range(100)]
    assert found["hasMore"] is True
    assert found.get("total", 150) == 150
    found = (await complete(wire, "many", "listed", "v00"))["result"]["completion"]
    assert len(found["values"]) == 10
    assert found.get("hasMore", False) is False
    found = (await complete(wire, "many_by_method", "thread", "x"))["result"]["completion"]
    assert found["values"][:2] == ["x0", "x1"]
    assert len(found["values"]) == 100
    assert found["hasMore"] is True
    found = (await complete(wire, "many_by_method", "said"))["result"]["completion"]
    assert found == {"values": ["one"], "total": 7, "hasMore": True}


async def test_what_cannot_be_completed(wire):
    """The error is -32602 with the unknown name."""
    for name, argument, said in (
        ("nope", "x", "Unknown prompt: nope"),
        ("review", "nope", "Unknown prompt argument: nope"),
        ("nope://{x}", "x", "Unknown resource template: nope://{x}"),
        ("item://{number}{?unit}", "nope", "Unknown template variable: nope"),
        ("pantry://text", "x", "Unknown resource template: pantry://text"),
    ):
        error = (await complete(wire, name, argument))["error"]
        assert error == {"code": -32602, "message": said}
    ref, argument = {"type": "ref/prompt", "name": "review"}, {"name": "style", "value": ""}
    for params in (
        {},
        {"ref": ref},
        {"argument": argument},
        {"ref": ref, "argument": {"name": "style"}},
        {"ref": ref, "argument": {"name": 5, "value": ""}},
        {"ref": ref, "argument": "style"},
        {"ref": {"type": "ref/nope", "name": "x"}, "argument": argument},
        {"ref": {"type": "ref/prompt"}, "argument": argument},
        {"ref": {"type": "ref/resource", "uri": 5}, "argument": argument},
        {"ref": 5, "argument": argument},
    ):
        assert (await wire.ask("completion/complete", params))["error"]["code"] == -32602


async def test_our_client(connected):
    """It returns typed values, and raises errors."""
    async with connected("Pantry") as client:
        found = {each.name: each for each in await client.list_prompts()}
        code = found["review"].arguments[0]
        titled = client.protocol_version != "2025-03-26"
        assert (code.name, code.title) == ("code", "Source" if titled else None)
        result = await client.get_prompt("review", {"code": "x"})
        assert [each.role for each in result.messages] == ["user", "assistant"]
        assert result.messages[0].content.text == "x None web"
        with pytest.raises(McpError) as caught:
            await client.get_prompt("nope")
        assert caught.value.code == -32602
        prompt = {"type": "ref/prompt", "name": "review"}
        assert (await client.complete(prompt, "style", "f")).values == ("friendly",)
        context = {"field": "web"}
        assert (await client.complete(prompt, "language", "", context)).values == ("js", "ts")
