"""Errors of several tasks that are meant for the client, and cursors that are not strings."""

import pytest
import trio

from noizu_mcp import ClientHandler, Context, McpError, Server, ToolError, Toolkit, connect, mcp


class Together(Toolkit):
    """Tools that fail in several tasks at once."""

    async def _fail(self, *errors: Exception) -> None:
        async def fail(error: Exception) -> None:
            raise error

        async with trio.open_nursery() as nursery:
            for each in errors:
                nursery.start_soon(fail, each)

    @mcp
    async def ask_twice(self, ctx: Context) -> str:
        """Ask two things at the same time."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ctx.list_roots)
            nursery.start_soon(ctx.list_roots)
        return "done"

    @mcp
    async def advise(self) -> str:
        """Fail in two ways that a model can read."""
        await self._fail(ToolError("advice"), ToolError("advice"))
        return "done"

    @mcp
    async def crash(self) -> str:
        """Fail, and crash beside it."""
        await self._fail(ToolError("advice"), LookupError("secret"))
        return "done"


class Busy(Server, name="busy", version="1.0.0"):
    tools = [Together]

    async def list_tools(self, cursor, ctx):
        return await super().list_tools(None, ctx)


async def test_questions_that_are_refused_together():
    """A client without the capability gets one error, not a crash."""
    async with connect(Busy, version="2026-07-28") as client:
        with pytest.raises(McpError, match="Missing required client capability"):
            await client.call_tool("ask_twice")
    async with connect(Busy, version="2025-11-25") as client:
        result = await client.call_tool("ask_twice")
    assert result.content[0].text == "Capability not supported by the client: roots"


class Refusing(ClientHandler):
    async def list_roots(self):
        raise McpError(-1, "not now")


async def test_refusals_of_the_client_are_one():
    """Equal refusals from several tasks become one error for the model."""
    async with connect(Busy, handler=Refusing(), version="2025-11-25") as client:
        result = await client.call_tool("ask_twice")

    assert result.content[0].text == "The client refused roots/list: not now (-1)"


async def test_advice_of_several_tasks_is_one():
    """Errors of several tasks become one text for the model."""
    async with connect(Busy) as client:
        result = await client.call_tool("advise")

    assert result.content[0].text == "advice"


async def test_a_crash_beside_advice_is_a_crash(caplog):
    """An author's failure is reported as a crash, even beside an error for the model."""
    async with connect(Busy) as client:
        result = await client.call_tool("crash")

    assert result.content[0].text == "Tool execution failed"
    assert "secret" in caplog.text


async def test_a_cursor_is_a_text():
    """A cursor that is not a string is refused before an override gets it."""
    async with connect(Busy) as client:
        with pytest.raises(McpError, match="Invalid cursor"):
            await client.request("tools/list", {"cursor": 7})
