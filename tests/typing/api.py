"""The public names as type checkers see them: checked by mypy, never run."""

from typing import Any, assert_type

from noizu_mcp import (
    Client,
    Context,
    Schema,
    Server,
    Stdio,
    Tool,
    Toolkit,
    ToolResult,
    connect,
    field,
    mcp,
    tool,
)
from noizu_mcp.types import Page, ResourceDefinition, ToolDefinition


class Add(Tool, name="plus", timeout=2.0):
    """Add two numbers."""

    class Input(Schema):
        a: int = field(min=0)
        b: int = 1
        tags: list[str] = field(factory=list)

    class Output(Schema):
        sum: int

    async def call(self, args: Input, ctx: Context) -> Output:
        assert_type(args.a, int)
        assert_type(args.tags, list[str])
        await ctx.report_progress(1, total=2)
        await ctx.info({"a": args.a})
        assert_type(ctx.protocol_version, str)
        return self.Output(sum=args.a + args.b)


class Kit(Toolkit, category="Numbers"):
    @mcp
    def double(self, *, a: int) -> int:
        return 2 * a

    @mcp(name="half", hidden=True)
    async def halve(self, args: Add.Input) -> float:
        return args.a / 2


class Numbers(Server, name="numbers", version="1.0.0"):
    tools = [Add, tool(Add, name="add", timeout=None), tool(Kit, hidden=False)]


async def use() -> None:
    assert_type(Kit().double(a=1), int)
    assert_type(Add.definition(), dict[str, Any])
    async with connect(Numbers, version="2025-11-25") as client:
        assert_type(client, Client)
        assert_type(await client.call_tool("plus", {"a": 1}, timeout=2), ToolResult)
        assert_type([each.name for each in await client.list_tools()], list[str])
        page = await client.list_tools(page="")
        assert_type(page, Page[ToolDefinition])
        assert_type([each.name for each in page], list[str])
        async with client.tools as tools, client.resources as resources:
            assert_type(tools["plus"], ToolDefinition)
            assert_type(resources.get("a:b"), ResourceDefinition | None)
            assert_type(await tools.wait_changed(), None)
    async with connect(Stdio("server", "--flag", env={"KEY": "value"})) as client:
        assert_type(client.protocol_version, str)


# Wrong uses are errors; `warn_unused_ignores` fails where one is no longer an error.
Add.Input()  # type: ignore[call-arg]
Add.Input(a="1")  # type: ignore[arg-type]
Add.Output(sum=1).sum = 2  # type: ignore[misc]
tool(Add, bogus=1)  # type: ignore[call-overload]
