"""Providers and mounts under a strict type checker; nothing runs them."""

from collections.abc import Iterable, Sequence
from typing import Any

from noizu_mcp import (
    Context,
    Mount,
    Provider,
    Server,
    Tool,
    Toolkit,
    ToolProvider,
    ToolResult,
    mcp,
    tool,
)
from noizu_mcp.components import Changes, Registration, ResourceSpec, ToolSpec, bind_definition
from noizu_mcp.types import ResourceDefinition, ToolDefinition


class Echo(Tool):
    def call(self, text: str) -> str:
        return text


class Kit(Toolkit):
    @mcp
    def one(self) -> int:
        return 1


class Skills(ToolProvider, timeout=1.0, stale=5.0, shared=True):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    async def run(self, args: dict[str, Any], ctx: Context) -> ToolResult:
        return ToolResult(f"{args} {ctx.request_id}")

    async def tools(self, ctx: Context) -> list[Registration]:
        return [tool(self.run, name=name, input_schema={"type": "object"}) for name in self.names]

    async def watch(self, changed: Changes) -> None:
        changed()
        changed("tools")
        changed.resource_updated("db://orders")

    def unknown(self, name: str) -> str | None:
        return f"Unknown skill: {name}"


class Everything(Provider):
    stale = 60.0

    async def tools(self, ctx: Context) -> Iterable[Any]:
        async def call(arguments: dict[str, Any], ctx: Context) -> str:
            return str(arguments)

        spec: ToolSpec = bind_definition(
            ToolDefinition("far", input_schema={"type": "object"}), call, timeout=3.0
        )
        return [spec, Echo, Kit()]

    async def resources(self, ctx: Context) -> Iterable[Any]:
        async def read(uri: str, ctx: Context) -> str:
            return uri

        spec: ResourceSpec = bind_definition(ResourceDefinition("x:1", "one"), read)
        return [spec]


class Inner(Server, name="inner", version="1"):
    tools = [tool(Kit(), prefix="eu_"), tool(Echo, prefix="eu")]


class Outer(Server, name="outer", version="1"):
    providers = [Skills(["a"]), Everything(), Mount(Inner, prefix="inner"), Mount(Inner())]


def change(server: Server) -> None:
    """Change the running set."""
    server.providers.add(Skills(["b"]))
