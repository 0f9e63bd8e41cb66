"""Resources and templates in every revision: lists, contents, errors, and overrides."""

import base64
import logging

import pytest

STATELESS = "2026-07-28"

#: The fields of each revision for a resource with all options.
FULL = {
    "uri": "pantry://text",
    "name": "text",
    "title": "A text",
    "description": "Five letters.",
    "mimeType": "text/plain",
    "size": 5,
    "annotations": {"audience": ["user"], "priority": 0.5},
    "icons": [{"src": "https://example.com/t.png"}],
    "_meta": {"example.com/k": 1},
}
MISSING = {
    "2025-03-26": {"title", "icons", "_meta"},
    "2025-06-18": {"icons"},
    "2025-11-25": set(),
    STATELESS: set(),
}


@pytest.fixture
async def wire(opened):
    async with opened("Pantry") as wire:
        yield wire


async def pages(wire, method, key):
    found, params = [], {}
    while params is not None:
        page = (await wire.ask(method, params))["result"]
        found.append(page[key])
        params = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
    return found


async def read(wire, uri):
    return await wire.ask("resources/read", {"uri": uri})


async def contents(wire, uri):
    answer = await read(wire, uri)
    return answer["result"]["contents"]


async def test_a_template_that_fails_hides_its_own_resources_only(opened, transport, caplog):
    """A `list` that raises, or returns anything else, is left out, and logged with the reason."""
    caplog.set_level(logging.ERROR, "noizu_mcp")
    async with opened("Broken") as wire:
        (listed,) = await pages(wire, "resources/list", "resources")
        uris = ["pantry://text", "item://1", "item://2", "files:///a.txt"]
        assert [each["uri"] for each in listed] == uris
        assert len((await wire.ask("resources/templates/list"))["result"]["resourceTemplates"]) == 8
        assert (await contents(wire, "fail-async://x"))[0]["text"] == "x"
    if transport != "stdio":
        failed = [record.getMessage().rpartition("pantry.")[2] for record in caplog.records]
        names = ("Failing", "FailingInThread", "FailingWithError", "FailingInGroup", "ListingWrong")
        text = "{}.list failed; its resources are left out"
        assert [text.format(name) for name in names] == failed
        assert all(record.exc_info for record in caplog.records)


async def test_the_list(wire, revision):
    """Resources and template instances are in order, without hidden ones."""
    ((first, *rest),) = await pages(wire, "resources/list", "resources")
    assert first == {k: v for k, v in FULL.items() if k not in MISSING[revision]}
    assert [each["uri"] for each in rest] == [
        *("pantry://blob", "pantry://several", "pantry://json", "pantry://crash"),
        *("pantry://nothing", "pantry://refuse", "pantry://slow", "item://1", "item://2"),
    ]
    one, two = rest[-2:]
    assert one == {"uri": "item://1", "name": "item://1", "mimeType": "text/plain"}
    title = {} if revision == "2025-03-26" else {"title": "Two"}
    assert two == {"uri": "item://2", "name": "two", "mimeType": "text/plain", **title}


async def test_the_list_of_templates(wire):
    """Hidden templates are left out."""
    ((item,),) = await pages(wire, "resources/templates/list", "resourceTemplates")
    assert item == {
        "uriTemplate": "item://{number}{?unit}",
        "name": "item://{number}{?unit}",
        "description": "One of many.",
        "mimeType": "text/plain",
    }


async def test_lists_in_pages(opened):
    """Resources come first, then instances of templates, in pages of one length."""
    async with opened("Shelves") as wire:
        found = await pages(wire, "resources/list", "resources")
        assert [[each["uri"] for each in page] for page in found] == [
            ["pantry://text", "pantry://json"],
            ["item://1", "item://2"],
            ["files:///a.txt"],
        ]
        found = await pages(wire, "prompts/list", "prompts")
        assert [len(page) for page in found] == [2, 1]
        for method in ("resources/list", "resources/templates/list", "prompts/list"):
            error = (await wire.ask(method, {"cursor": "nope"}))["error"]
            assert (error["code"], error["message"]) == (-32602, "Invalid cursor")


async def test_text_and_bytes(wire):
    """Text is text, bytes are base64, also from a thread; hidden resources can be read."""
    text = {"uri": "pantry://text", "mimeType": "text/plain", "text": "hello"}
    assert await contents(wire, "pantry://text") == [text]
    blob = base64.b64encode(b"\x89PNG").decode()
    expected = {"uri": "pantry://blob", "mimeType": "image/png", "blob": blob}
    assert await contents(wire, "pantry://blob") == [expected]
    assert (await contents(wire, "pantry://hidden"))[0]["text"] == "found"
    assert (await contents(wire, "secret://7"))[0]["text"] == "7"


async def test_several_contents(wire, revision):
    """Each content has its own URI and type, and `_meta` if there is one."""
    one, two, three = await contents(wire, "pantry://several")
    assert one == {"uri": "pantry://several", "mimeType": "text/plain", "text": "1"}
    meta = {} if revision == "2025-03-26" else {"_meta": {"k": 2}}
    assert two == {"uri": "pantry://several/2", "mimeType": "text/csv", "text": "2", **meta}
    assert three["blob"] == base64.b64encode(b"3").decode()


async def test_other_values_are_json(wire):
    """They are sent as a text of that type."""
    (only,) = await contents(wire, "pantry://json")
    assert only["mimeType"] == "application/json"
    assert only["text"].replace(" ", "") == '{"a":[1,null]}'


async def test_what_is_not_there(wire, revision):
    """-32602 on 2026-07-28, -32002 before; with the URI, and a suggestion."""
    code = -32602 if revision == STATELESS else -32002
    for uri in ("nope://x", "", "item://x", "item://0", "item://1?unit=t", "pantry://Text"):
        error = (await read(wire, uri))["error"]
        hint = "; did you mean 'pantry://text'?" if uri == "pantry://Text" else ""
        expected = {"code": code, "message": f"Resource not found{hint}", "data": {"uri": uri}}
        assert error == expected


async def test_what_a_handler_does_not_find(wire, revision):
    """`ResourceNotFound` has the code of the revision, and the handler's URI."""
    code = -32602 if revision == STATELESS else -32002
    for uri, named in (("item://1001", "item://1001"), ("item://1001?unit=g", "item://1000")):
        expected = {"code": code, "message": "Resource not found", "data": {"uri": named}}
        assert (await read(wire, uri))["error"] == expected


@pytest.mark.parametrize("params", [{}, {"uri": 5}, {"uri": None}, {"uri": ["pantry://text"]}])
async def test_a_malformed_read(wire, transport, params):
    """A request without a URI is invalid; over HTTP the mirrored header is checked first."""
    unnamed = transport == "http" and wire.stateless
    code = (await wire.ask("resources/read", params))["error"]["code"]
    assert code == (-32020 if unnamed else -32602)


async def test_a_uri_without_end(wire):
    """A URI above the maximum length is refused before any lookup."""
    expected = {"code": -32602, "message": "uri may have 8192 characters"}
    assert (await wire.ask("resources/read", {"uri": "item://" + "x" * 8186}))["error"] == expected
    error = (await wire.ask("resources/read", {"uri": "nope://" + "x" * 8185}))["error"]
    assert error["message"] == "Resource not found"


async def test_typed_variables(wire):
    """Values that do not fit their types are not found."""
    (only,) = await contents(wire, "item://41?unit=kg")
    text = "item://41?unit=kg 42 kg"
    assert only == {"uri": "item://41?unit=kg", "mimeType": "text/plain", "text": text}
    assert (await contents(wire, "item://1"))[0]["text"] == "item://1 2 None"


async def test_traversal_matches_nothing(opened):
    """A value that leaves its directory never reaches a handler."""
    async with opened("Shelves") as wire:
        assert (await contents(wire, "files:///a/b.txt"))[0]["text"] == "a/b.txt"
        for path in ("../etc/passwd", "a/../../b", "a/%2e%2e/b", "a%00b", "..%5Cb"):
            assert "error" in await read(wire, f"files:///{path}")


async def test_handlers_that_fail(wire, caplog):
    """An `McpError` is sent unchanged; a crash has no details."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    for uri in ("pantry://crash", "pantry://nothing"):
        error = (await read(wire, uri))["error"]
        assert error == {"code": -32603, "message": "Request handler failed"}
    error = (await read(wire, "pantry://refuse"))["error"]
    assert error == {"code": 4001, "message": "not today", "data": {"when": "tomorrow"}}
    error = (await read(wire, "pantry://slow"))["error"]
    assert error == {"code": -32603, "message": "Request timed out"}


async def test_how_long_results_may_be_kept(wire, revision):
    """Only 2026-07-28 sends a TTL with its cacheable results."""
    hints = {
        "resources/read": (2000, "private"),
        "prompts/list": (3000, "public"),
        "resources/list": (0, "private"),
        "resources/templates/list": (0, "private"),
    }
    for method, (ttl, scope) in hints.items():
        params = {"uri": "pantry://text"} if method == "resources/read" else {}
        result = (await wire.ask(method, params))["result"]
        if revision == STATELESS:
            assert (result["ttlMs"], result["cacheScope"]) == (ttl, scope)
        else:
            assert "ttlMs" not in result
            assert "cacheScope" not in result


async def test_capabilities_follow_from_what_there_is(opened, revision):
    """Registered or computed kinds are offered; methods of others are unknown."""
    changing = {"listChanged": True}
    expected = {
        "Pantry": {
            "tools": changing,
            "resources": {**changing, "subscribe": True},
            "prompts": changing,
            "completions": {},
        },
        "Computing": {
            "resources": {**changing, "subscribe": True},
            "prompts": changing,
            "completions": {},
        },
        "Unwatched": {"resources": {**changing, "subscribe": False}},
        "Empty": {},
    }
    for name, capabilities in expected.items():
        async with opened(name, start=False) as wire:
            result = await wire.start()
            assert result["capabilities"] == {"logging": {}, **capabilities}
            if name != "Empty":
                continue
            for method in (
                *("resources/list", "resources/read", "resources/templates/list"),
                *("prompts/list", "prompts/get", "completion/complete"),
                *(() if wire.stateless else ("resources/subscribe", "resources/unsubscribe")),
            ):
                error = (await wire.ask(method, {"uri": "x://1", "name": "x"}))["error"]
                assert error == {"code": -32601, "message": f"Method not found: {method}"}


async def test_a_server_that_computes_everything(opened):
    """Overrides need no registrations; they may return everything that handlers may."""
    async with opened("Computing") as wire:
        found = await pages(wire, "resources/list", "resources")
        assert found == [[{"uri": "x://1", "name": "1"}], [{"uri": "x://2", "name": "2"}]]
        ((template,),) = await pages(wire, "resources/templates/list", "resourceTemplates")
        assert template == {"uriTemplate": "x://{n}", "name": "n"}
        assert await contents(wire, "any://thing") == [
            {"uri": "any://thing", "text": "read any://thing"}
        ]
        assert await contents(wire, "x://result") == [{"uri": "x://result", "text": "whole"}]
        ((prompt,),) = await pages(wire, "prompts/list", "prompts")
        assert prompt == {"name": "p", "arguments": [{"name": "a", "required": True}]}
        params = {"name": "any", "arguments": {"a": "1"}}
        (message,) = (await wire.ask("prompts/get", params))["result"]["messages"]
        assert message["content"]["text"] == "got any 1"
        for ref, said in (
            ({"type": "ref/prompt", "name": "p"}, "ref/prompt:p:a:v"),
            ({"type": "ref/resource", "uri": "x://{n}"}, "ref/resource:x://{n}:a:v"),
        ):
            params = {"ref": ref, "argument": {"name": "a", "value": "v"}}
            answer = await wire.ask("completion/complete", params)
            assert answer["result"]["completion"]["values"] == [said]


async def test_overrides_may_ask_for_what_is_registered(opened):
    """`super()` returns registered items, without instances of templates."""
    async with opened("Inheriting") as wire:
        found = await pages(wire, "resources/list", "resources")
        assert [[each["uri"] for each in page] for page in found] == [["pantry://text"]]
        ((template,),) = await pages(wire, "resources/templates/list", "resourceTemplates")
        assert template["uriTemplate"] == "item://{number}{?unit}"
        ((prompt,),) = await pages(wire, "prompts/list", "prompts")
        assert prompt["name"] == "review"
        assert (await contents(wire, "item://1"))[0]["text"] == "item://1 2 None"
        assert await wire.text("quick") == "quick"
        assert "result" in await wire.ask("prompts/get", {"name": "raw"})
        params = {"ref": {"type": "ref/prompt", "name": "review"}}
        params["argument"] = {"name": "style", "value": "s"}
        answer = await wire.ask("completion/complete", params)
        assert answer["result"]["completion"]["values"] == ["strict"]


async def test_lists_without_instances(opened):
    """Templates without instances do not change the list."""
    async with opened("Unwatched") as wire:
        ((only,),) = await pages(wire, "resources/list", "resources")
        assert only["uri"] == "pantry://json"
    async with opened("Shelves") as wire:
        ((*_, last),) = [(await pages(wire, "resources/templates/list", "resourceTemplates"))[-1]]
        assert last["uriTemplate"] == "mute://{x}"


async def test_the_running_set(wire):
    """Resources and prompts can be added and removed while the server runs."""
    assert await wire.text("restock") == "restocked"
    ((first, *rest),) = await pages(wire, "resources/list", "resources")
    assert first["uri"] == "pantry://text"
    assert first.get("title", "Another") == "Another"
    uris = [each["uri"] for each in rest]
    assert "pantry://new" in uris
    assert "files:///a.txt" in uris
    assert "item://1" not in uris
    assert (await contents(wire, "files:///b"))[0]["text"] == "b"
    assert "error" in await read(wire, "item://1")
    assert "error" in await wire.ask("prompts/get", {"name": "raw"})


async def test_our_client(connected, revision):
    """It returns typed values."""
    async with connected("Shelves") as client:
        found = await client.list_resources()
        assert [each.uri for each in found][:2] == ["pantry://text", "pantry://json"]
        assert found[0].mime_type == "text/plain"
        (template, files, _) = await client.list_resource_templates()
        assert template.uri_template == "item://{number}{?unit}"
        assert files.uri_template == "files:///{+path}"
        result = await client.read_resource("item://1")
        assert result.contents[0].text == "item://1 2 None"
        assert result.contents[0].mime_type == "text/plain"
