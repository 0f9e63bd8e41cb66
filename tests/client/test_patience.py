"""The timeouts of a client are paused while its own user is asked."""

import trio

from noizu_mcp import Accept, ClientHandler, Context, RequestTimeout, Schema, Server, Tool, connect


class Form(Schema):
    name: str


class Ask(Tool):
    """Ask, and then hang for a while."""

    class Input(Schema):
        hang: float = 0.0

    async def call(self, args: Input, ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Form)
        for _ in range(3):
            await ctx.report_progress(_)
        await trio.sleep(args.hang)
        return answer.content.name


class Asking(Server, name="asking", version="1", tool_timeout=None):
    tools = [Ask]


class Slow(ClientHandler):
    """A person who takes two minutes; the server speaks meanwhile."""

    async def handle_elicitation(self, params):
        await trio.sleep(120)
        return Accept({"name": "Ann"})


async def test_a_slow_person_ends_no_call(autojump_clock):
    """A question of two minutes does not end a call with a timeout of twenty seconds."""
    async with connect(Asking, handler=Slow(), version="2025-11-25", timeout=20) as client:
        result = await client.call_tool("ask", progress=lambda _: None)
    assert result.content[0].text == "Ann"


async def test_the_timeout_goes_on_with_the_answer(autojump_clock):
    """After an answer the server has the whole timeout again, and no more."""
    async with connect(Asking, handler=Slow(), version="2025-11-25", timeout=20) as client:
        start = trio.current_time()
        try:
            await client.call_tool("ask", {"hang": 1000})
        except RequestTimeout:
            waited = trio.current_time() - start
    assert 139 < waited < 141


async def test_the_pause_has_a_maximum(autojump_clock):
    """After ten timeouts in all a call ends, also during a question."""
    async with connect(Asking, handler=Slow(), version="2025-11-25", timeout=5) as client:
        start = trio.current_time()
        try:
            await client.call_tool("ask")
        except RequestTimeout:
            waited = trio.current_time() - start
    assert 49 < waited < 51


async def test_progress_during_a_question_shortens_nothing(autojump_clock):
    """Progress of a paused call does not resume its timeout."""

    class Both(Tool):
        """Report while a person thinks."""

        async def call(self, args, ctx: Context) -> str:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ctx.elicit, "Who?", Form)
                await trio.sleep(60)
                await ctx.report_progress(1)
            return "done"

    class Reporting(Server, name="reporting", version="1", tool_timeout=None):
        tools = [Both]

    async with connect(Reporting, handler=Slow(), version="2025-11-25", timeout=20) as client:
        result = await client.call_tool("both", progress=lambda _: None)
    assert result.content[0].text == "done"
