"""Lists page by page, and all pages together."""

import re
from itertools import count

import pytest
import trio

from noizu_mcp import Limits, McpError, ProtocolError
from noizu_mcp.types import Page

LISTS = {
    "list_tools": ("tools/list", "tools", {"name": "t", "inputSchema": {"type": "object"}}),
    "list_prompts": ("prompts/list", "prompts", {"name": "p"}),
    "list_resources": ("resources/list", "resources", {"uri": "a:b", "name": "r"}),
    "list_resource_templates": (
        "resources/templates/list",
        "resourceTemplates",
        {"uriTemplate": "a:{b}", "name": "r"},
    ),
}


@pytest.mark.parametrize("name", LISTS)
async def test_a_list_is_read_page_by_page(scripted, name):
    """The empty string requests the first page, the cursor of a page the next one."""
    method, member, entry = LISTS[name]
    pages = [{member: [entry, entry], "nextCursor": "b"}, {member: [entry]}]
    async with scripted({method: pages}) as (client, script):
        read = getattr(client, name)
        first = await read(page="")
        assert isinstance(first, Page)
        assert [each.name for each in first] == [entry["name"]] * 2
        last = await read(page=first.next_cursor)
        assert (len(last.items), last.next_cursor) == (1, None)
        cursors = [m["params"].get("cursor") for m in script.received if m["method"] == method]
        assert cursors == [None, "b"]


async def test_a_page_that_does_not_exist(scripted):
    """A refused cursor is an error of the server, and not tried again."""
    async with scripted({"tools/list": ValueError(-32602, "Invalid cursor")}) as (client, script):
        with pytest.raises(McpError, match="Invalid cursor"):
            await client.list_tools(page="b")
        assert [m["method"] for m in script.received[1:]] == ["tools/list"]


async def test_an_empty_cursor_has_no_page(scripted):
    """It would be the first page again; the error says what to do."""
    async with scripted({"tools/list": {"tools": [], "nextCursor": ""}}) as (client, _):
        with pytest.raises(ProtocolError, match="read the list without page="):
            await client.list_tools(page="")


async def test_a_cursor_that_ends_in_the_middle(scripted):
    """If the list has changed meanwhile, it is read again from the start, once."""
    tool = LISTS["list_tools"][2]
    gone = ValueError(-32602, "Invalid cursor")
    pages = [{"tools": [tool], "nextCursor": "b"}, gone, {"tools": [tool, tool]}]
    async with scripted({"tools/list": pages}) as (client, script):
        assert len(await client.list_tools()) == 2
        script.answers["tools/list"] = [{"tools": [], "nextCursor": "b"}, gone] * 2
        with pytest.raises(McpError, match="Invalid cursor"):
            await client.list_tools()


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(list_entries=5), "has more than 5 entries; limits=Limits(list_entries=…)"),
        (Limits(list_size=5000), "has more than 5000 bytes; limits=Limits(list_size=…)"),
        (Limits(list_seconds=9), "gave pages for 9 s, and no last one; limits=Limits(list_seconds"),
    ],
)
async def test_a_list_without_an_end(scripted, name, limits, text, autojump_clock):
    """A list with endless cursors ends at each of its limits, which the error names."""
    method, member, entry = LISTS[name]
    numbers = count()

    async def answer(_):
        await trio.sleep(1)
        return {member: [entry], "nextCursor": str(next(numbers))}

    async with scripted({method: answer}, limits=limits) as (client, script):
        with pytest.raises(ProtocolError, match=f"^{method} {re.escape(text)}"):
            await getattr(client, name)()
        asked = next(numbers)
        assert asked <= 30
        # The connection goes on, and a shorter list can be read.
        script.answers[method] = [{member: [entry], "nextCursor": "b"}, {member: [entry]}]
        assert len(await getattr(client, name)()) == 2


async def test_a_list_on_one_page_is_as_large_as_a_message(scripted):
    """The limits of lists do not apply to a list with one page."""
    page = {"tools": [LISTS["list_tools"][2]] * 20}
    limits = Limits(list_entries=5, list_size=50)
    async with scripted({"tools/list": page}, limits=limits) as (client, _):
        assert len(await client.list_tools()) == 20
