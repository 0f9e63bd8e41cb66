"""Policies and capabilities as type checkers must see them."""

from typing import Any, assert_type

from noizu_mcp import Context, Server, Tool, ToolResult
from noizu_mcp.policies import (
    AllowTools,
    AuditLog,
    AuditTable,
    Capability,
    Denied,
    DenyTools,
    Policy,
    PolicyCall,
    RateLimit,
    TimeWindow,
)
from noizu_mcp.types import Principal


class Waits(Policy):
    kinds = frozenset({"tool"})

    async def check(self, call: PolicyCall, ctx: Context) -> None:
        assert_type(call.caller, Principal | None)
        assert_type(call.depth, int)
        assert_type(call.arguments.get("x"), Any | None)
        if call.name == "shell":
            raise Denied("no shell")


class Decides(Policy):
    def check(self, call: PolicyCall, ctx: Context) -> None:
        assert_type(call.chain, tuple[str, ...])


class Calls(Tool):
    async def call(self, ctx: Context, text: str) -> str:
        assert_type(ctx.capability, Capability)
        narrow = ctx.capability.attenuate(tools=["a*"], expires_in=5.0, depth=1, arguments={"x": 1})
        assert_type(narrow, Capability)
        opened = await ctx.open_capability(text)
        assert_type(await ctx.call_tool("a", {"x": 1}, capability=opened), ToolResult)
        assert_type(await ctx.call_tool("a", capability=text), ToolResult)
        return str(narrow)


class House(Server, name="house", version="1"):
    tools = [Calls]
    policies = [DenyTools("a"), AllowTools("*"), RateLimit(1, per=60, key="both"), Waits()]
    telemetry = [AuditLog("audit.jsonl", fsync=True), AuditTable("audit.db")]


OTHERS: list[Policy] = [Decides(), TimeWindow("08:00", "18:00", tz="UTC")]
RateLimit(1, 60, "user")  # type: ignore[arg-type]
