"""Handlers that store session state for clients of 2026-07-28, which has no sessions."""

import pytest

from noizu_mcp import (
    Context,
    McpError,
    PromptMessage,
    Server,
    connect,
    prompt,
    resource,
    tool,
)

NO_SESSION = (
    "This needs a session, and protocol version 2026-07-28 has no sessions; it works for clients of"
    " earlier versions only"
)
CURE = "2026-07-28 has no sessions: return a handle and take it back as an argument"


async def login(ctx: Context) -> str:
    await ctx.put_session("user", "ann")
    return "hello"


async def greet(ctx: Context) -> list[PromptMessage]:
    return [PromptMessage.user(await login(ctx))]


class Mail(Server, name="mail", version="1"):
    tools = [login, tool(login, name="on_asyncio", loop="asyncio")]
    prompts = [prompt(greet)]
    resources = [resource(login, uri="mail://login")]

    async def call_tool(self, name, arguments, ctx):
        if name == "overridden":
            return await login(ctx)
        return await super().call_tool(name, arguments, ctx)


class PlainMail(Mail, name="plain", version="1"):
    call_tool = Server.call_tool


@pytest.mark.parametrize(
    ("server", "name", "source"),
    [
        (PlainMail, "login", "login"),
        (PlainMail, "on_asyncio", "login"),
        (Mail, "overridden", "call_tool of"),
    ],
)
async def test_a_tool_says_that_it_needs_a_session(server, name, source, caplog):
    """The model gets one sentence; the log has one line that says what to change."""
    async with connect(server) as client:
        result = await client.call_tool(name)
    assert (result.is_error, result.text) == (True, NO_SESSION)
    (record,) = caplog.records
    assert source in record.getMessage()
    assert record.getMessage().endswith(f" cannot keep session state: {CURE}")
    assert record.exc_info is None


async def test_prompts_and_resources_say_it_too(caplog):
    """Requests of prompts and resources fail with the same text."""
    async with connect(Mail) as client:
        for asked in (client.get_prompt("greet"), client.read_resource("mail://login")):
            with pytest.raises(McpError) as caught:
                await asked
            assert (caught.value.code, caught.value.message) == (-32603, NO_SESSION)
    assert [each.getMessage() for each in caplog.records] == [
        f"{__name__}.{handler} cannot keep session state: {CURE}" for handler in ("greet", "login")
    ]


async def test_with_a_session_they_work():
    """Up to 2025-11-25 there are sessions, and the handlers work."""
    async with connect(Mail, version="2025-11-25") as client:
        for name in ("login", "on_asyncio", "overridden"):
            assert (await client.call_tool(name)).text == "hello"
        assert (await client.get_prompt("greet")).messages[0].content.text == "hello"
        assert (await client.read_resource("mail://login")).contents[0].text == "hello"
