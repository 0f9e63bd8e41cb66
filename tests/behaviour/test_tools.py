"""`tools/list` and `tools/call`: every row of the table of results, in every revision."""

import json
import logging

import pytest

from noizu_mcp import McpError

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
FAILED = {"content": [{"type": "text", "text": "Tool execution failed"}], "isError": True}

handshake = pytest.mark.parametrize("revision", HANDSHAKE, indirect=True)


def texts(*values):
    return {"content": [{"type": "text", "text": value} for value in values]}


def with_structured(revision, value):
    """Return the form of a structured result in a revision, for a tool without an object."""
    shown = {"structuredContent": value if revision == STATELESS else {"result": value}}
    return shown if revision != "2025-03-26" else {}


def of_object(revision, value):
    return {"structuredContent": value} if revision != "2025-03-26" else {}


# tools/list


async def test_tools_are_listed_in_the_order_of_their_registration(kitchen, revision):
    """Hidden tools are left out, aliases are listed; 2026-07-28 has a TTL."""
    first = (await kitchen.ask("tools/list"))["result"]
    names = [tool["name"] for tool in first["tools"]]
    assert names[:4] == ["echo", "say_again", "quick", "text"]
    assert names == sorted(names, key=names.index)
    assert not {"add", "remove", "catalog"} & set(names)
    if revision == STATELESS:
        assert (first["ttlMs"], first["cacheScope"]) == (1500, "public")
    else:
        assert not {"ttlMs", "cacheScope", "resultType"} & set(first)
    again = (await kitchen.ask("tools/list"))["result"]
    assert again == first
    assert len(names) == 50  # a page


async def test_definitions_have_the_fields_of_their_revision(kitchen, revision):
    """Title, icons, `_meta` and the output schema exist if the revision has them."""
    tools = {tool["name"]: tool for tool in (await kitchen.ask("tools/list"))["result"]["tools"]}
    echo, alias = tools["echo"], tools["say_again"]
    fields = {"name", "description", "inputSchema", "annotations"}
    if revision != "2025-03-26":
        fields |= {"title", "outputSchema", "_meta"}
    if revision in ("2025-11-25", STATELESS):
        fields |= {"icons"}
    assert set(echo) == fields
    hints = {"readOnlyHint": True}
    title = {"title": "Echo it"} if revision == "2025-03-26" else {}
    assert echo["annotations"] == {**title, **hints}
    assert alias["description"] == "An alias of echo"
    assert echo["inputSchema"]["required"] == ["message"]
    if revision != "2025-03-26":
        assert (echo["title"], alias["title"]) == ("Echo it", "Again")
        assert (echo["_meta"], alias["_meta"]) == ({"category": "Talk"}, {"category": "More"})


async def test_output_schemas_without_an_object_are_wrapped_before_2026(kitchen, revision):
    """`list[int]` is published unchanged in 2026-07-28, as `{"result": …}` before."""
    tools = {tool["name"]: tool for tool in (await kitchen.ask("tools/list"))["result"]["tools"]}
    array = {"type": "array", "items": {"type": "integer"}}
    wrapped = {"type": "object", "properties": {"result": array}, "required": ["result"]}
    expected = {"2025-03-26": None, STATELESS: array}.get(revision, wrapped)
    assert tools["integers"].get("outputSchema") == expected


async def test_lists_come_in_pages(opened, revision):
    """Cursors are opaque and lead through all pages; every page has a TTL."""
    async with opened("Paged") as wire:
        names, sizes, cursor = [], [], None
        while True:
            params = {} if cursor is None else {"cursor": cursor}
            page = (await wire.ask("tools/list", params))["result"]
            sizes.append(len(page["tools"]))
            names += [tool["name"] for tool in page["tools"]]
            assert ("ttlMs" in page) == (revision == STATELESS)
            cursor = page.get("nextCursor")
            if cursor is None:
                break
            assert cursor.replace("_", "").replace("-", "").isalnum()
        assert sizes == [50, 50, 20]
        assert names == [f"tool-{number:03}" for number in range(120)]
        null = (await wire.ask("tools/list", {"cursor": None}))["result"]
        assert null["tools"][0]["name"] == "tool-000"


@pytest.mark.parametrize(
    "cursor", ["", "garbage", "bzow", "LTU6eA", "MDp0b29s", 5, True, [], {"a": 1}, "é", "a" * 999]
)
async def test_invalid_cursors_are_refused(opened, cursor):
    """A cursor that is not the server's is -32602."""
    async with opened("Paged") as wire:
        answer = await wire.ask("tools/list", {"cursor": cursor})
        assert answer["error"] == {"code": -32602, "message": "Invalid cursor"}


async def test_our_client_walks_all_pages(connected):
    """`list_tools` returns every tool, once."""
    async with connected("Paged") as client:
        names = [tool.name for tool in await client.list_tools()]
        assert names == [f"tool-{number:03}" for number in range(120)]


async def test_hidden_tools_are_callable_and_in_the_catalog(kitchen):
    """`hidden` removes a tool from the list only; the catalog has all tools."""
    text = await kitchen.text("catalog", {"type": "tools", "query": "catalog"})
    (entry,) = json.loads(text)["tools"]
    assert (entry["name"], entry["hidden"]) == ("catalog", True)


# tools/call


async def test_texts_and_content(kitchen, revision):
    """Strings, blocks, lists of blocks and None are results."""
    assert await kitchen.result("text") == texts("plain")
    assert await kitchen.result("content") == texts("block")
    assert await kitchen.result("nothing") == {"content": []}
    assert await kitchen.result("quick") == texts("quick")
    blocks = (await kitchen.result("blocks"))["content"]
    link = "text" if revision == "2025-03-26" else "resource_link"
    assert [b["type"] for b in blocks] == ["text", "text", "image", "audio", link, "resource"]


async def test_declared_structures(kitchen, revision):
    """Declared output is `structuredContent`, and the same JSON as text."""
    for name, value in (("declared", {"hits": 3}), ("typed", {"x": 1, "y": 2})):
        expected = {**texts(json.dumps(value, separators=(",", ":"))), **of_object(revision, value)}
        assert await kitchen.result(name) == expected


async def test_values_that_are_no_objects_are_wrapped_before_2026(kitchen, revision):
    """Lists, numbers and null are plain text, and wrapped if structures are objects."""
    for name, value in (("integers", [1, 2, 3]), ("number", 7), ("nothing_declared", None)):
        text = json.dumps(value, separators=(",", ":"))
        expected = {**texts(text), **with_structured(revision, value)}
        assert await kitchen.result(name) == expected


async def test_values_without_a_declaration(kitchen, revision):
    """Mappings and instances are structured, too; other values are JSON texts."""
    for name, value in (("mapping", {"a": [1, None]}), ("instance", {"x": 3, "y": 4})):
        expected = {**texts(json.dumps(value, separators=(",", ":"))), **of_object(revision, value)}
        assert await kitchen.result(name) == expected
    assert await kitchen.result("bare_list") == texts('[1,"two"]')


async def test_ready_results_and_deliberate_errors(kitchen, revision):
    """`ToolResult` is sent unchanged, `ToolError` as `isError`, `McpError` as an error."""
    meta = {"_meta": {"example.com/k": 1}}
    verbatim = {**texts("v"), **of_object(revision, {"v": 1}), "isError": True, **meta}
    assert await kitchen.result("verbatim") == verbatim
    assert await kitchen.result("tool_error") == {**texts("try another file"), "isError": True}
    many = {**texts("a", "b"), "isError": True, **meta}
    assert await kitchen.result("tool_error_content") == many
    error = (await kitchen.call("mcp_error"))["error"]
    assert error == {"code": 4001, "message": "not today", "data": {"when": "tomorrow"}}
    error = (await kitchen.call("inline_mcp_error"))["error"]
    assert error == {"code": 4002, "message": "not inline"}
    advice = await kitchen.result("tool_error_in_a_nursery")
    assert advice == {**texts("advice from a nursery"), "isError": True}


@pytest.mark.parametrize(
    "name",
    [
        "raises",
        "exits",
        "exits_in_thread",
        "exits_inline",
        "group",
        "group_of_exits",
        "group_of_exits_inline",
        "bad_content",
        "worse_content",
        "content_that_exits",
        "not_json",
        "not_finite",
    ],
)
async def test_crashes_say_nothing_of_the_program(kitchen, name, caplog):
    """The client gets one sentence for any failure of a handler, and can go on."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    assert await kitchen.result(name) == FAILED
    await kitchen.is_alive()


async def test_the_log_has_the_details_of_a_crash(opened, transport, caplog):
    """The log has the details that the client does not get."""
    async with opened("Kitchen") as wire:
        assert await wire.result("raises") == FAILED
    if transport == "memory":
        (record,) = caplog.records
        assert "the secret of the author" in str(record.exc_info)


async def test_a_broken_output_contract_is_the_fault_of_the_tool(kitchen, caplog):
    """Output that violates its own schema is an error that does not blame the arguments."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    result = await kitchen.result("broken_contract")
    assert result["isError"] is True
    assert "contract" in result["content"][0]["text"]
    assert "secret" not in json.dumps(result)


async def test_bad_arguments_are_a_result_the_model_can_act_on(kitchen):
    """Each violation is in the text, and for programs in `_meta`."""
    result = await kitchen.result("echo", {"repeat": "11", "mode": 5})
    assert result["isError"] is True
    (block,) = result["content"]
    assert block["text"].startswith("Invalid arguments for tool echo:")
    violations = result["_meta"]["com.noizu.mcp/violations"]
    assert {tuple(v["path"]) if isinstance(v["path"], list) else v["path"] for v in violations}
    assert len(violations) == 3
    for word in ("message", "repeat", "mode"):
        assert word in block["text"]


async def test_arguments_may_be_absent_or_null(kitchen):
    """`arguments` may be left out or null."""
    for params in ({"name": "quick"}, {"name": "quick", "arguments": None}):
        answer = await kitchen.ask("tools/call", params)
        assert kitchen.bare(answer["result"]) == texts("quick")


async def test_malformed_calls_are_protocol_errors(kitchen, transport):
    """No name, an invalid name, arguments that are not an object, an unknown tool: -32602.

    Without a name its mirrored header is missing, which 2026-07-28 checks first over HTTP.
    """
    cases = [
        ({}, "tools/call requires a tool name"),
        ({"name": 5}, "tools/call requires a tool name"),
        ({"name": "echo", "arguments": [1]}, "arguments of tools/call must be an object"),
        ({"name": "nope"}, "Unknown tool: nope"),
        ({"name": "nope", "arguments": {"message": 5}}, "Unknown tool: nope"),
    ]
    for params, text in cases:
        error = (await kitchen.ask("tools/call", params))["error"]
        unnamed = not isinstance(params.get("name"), str)
        if transport == "http" and kitchen.stateless and unnamed:
            assert error == {"code": -32020, "message": "Mcp-Name header is missing"}
        else:
            assert error == {"code": -32602, "message": text}


async def test_handlers_know_their_request(kitchen, revision, transport):
    """The context has the caller, the transport and the revision."""
    about = json.loads(await kitchen.text("about", id_="an id"))
    assert about == {
        "id": "an id",
        "version": revision,
        "client": "wire",
        "transport": transport.partition(",")[0],
        "server": "kitchen",
        "auth": None,
        "state": True,
        "sampling": False,
        "meta": sorted(kitchen.meta()),
        "cancelled": False,
    }


async def test_our_client_reads_every_answer(connected, revision):
    """`Client.call_tool` returns the same table."""
    async with connected("Kitchen") as client:
        result = await client.call_tool("text")
        assert (result.content[0].text, result.is_error, result.meta) == ("plain", False, None)
        result = await client.call_tool("declared")
        assert result.structured == (None if revision == "2025-03-26" else {"hits": 3})
        result = await client.call_tool("verbatim")
        assert (result.is_error, result.meta) == (True, {"example.com/k": 1})
        result = await client.call_tool("nothing_declared")
        assert result.has_structured == (revision != "2025-03-26")
        with pytest.raises(McpError) as caught:
            await client.call_tool("nope")
        assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: nope")
        raw = await client.request("tools/list", {})
        assert ("resultType" in raw) == (revision == STATELESS)


# Servers that override


async def test_overrides_need_no_registrations(opened, revision):
    """A server may compute its tools and their results itself."""
    async with opened("Overriding") as wire:
        first = (await wire.ask("tools/list"))["result"]
        assert [tool["name"] for tool in first["tools"]] == ["one"]
        assert ("ttlMs" in first) == (revision == STATELESS)
        second = (await wire.ask("tools/list", {"cursor": first["nextCursor"]}))["result"]
        assert second["tools"][0].get("title") == (None if revision == "2025-03-26" else "Two")
        assert "nextCursor" not in second
        result = await wire.result("anything", {"a": 1})
        assert json.loads(result["content"][0]["text"]) == {"name": "anything", "args": {"a": 1}}


async def test_overrides_fail_like_handlers(opened, caplog):
    """An exception or a wrong return value of an override fails its own request only."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    async with opened("Overriding") as wire:
        for cursor in ("broken", "bad item", "exit"):
            answer = await wire.ask("tools/list", {"cursor": cursor})
            assert answer["error"] == {"code": -32603, "message": "Request handler failed"}
        answer = await wire.ask("tools/list", {"cursor": "error"})
        assert answer["error"] == {"code": 4003, "message": "no such page"}
        for name in ("unknown", "parent"):
            error = (await wire.call(name))["error"]
            assert error == {"code": -32602, "message": f"Unknown tool: {name}"}
        assert await wire.result("exit") == FAILED
        call = await wire.begin_call("wait")
        await wire.cancel(call)
        await wire.is_alive()
        assert wire.answers == {}


async def test_an_override_may_wrap_the_registered_tools(opened, revision):
    """`super().call_tool` validates, runs and answers as without the override."""
    async with opened("Wrapping") as wire:
        result = await wire.result("echo", {"message": "hi", "repeat": 2})
        assert result == {**texts('{"said":"hihi"}'), **of_object(revision, {"said": "hihi"})}
        assert (await wire.result("echo"))["isError"] is True
        assert await wire.result("integers") == {
            **texts("[1,2,3]"),
            **with_structured(revision, [1, 2, 3]),
        }


async def test_overrides_have_the_timeout_of_the_server(opened):
    """After it a call has an error result, and a list an error."""
    async with opened("Wrapping") as wire:
        assert await wire.text("hold", {"key": "k"}) == "Tool execution timed out"
        answer = await wire.ask("tools/list")
        assert answer["error"] == {"code": -32603, "message": "Request timed out"}
