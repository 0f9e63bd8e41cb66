"""A server written with the official Python package that asks, and has resources and prompts."""

from typing import Annotated, Any

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.shared.exceptions import MCPDeprecationWarning
from pydantic import BaseModel

server = MCPServer("foreign", version="2.3", log_level="CRITICAL")
PAGE = "https://example.com/login"


class Person(BaseModel):
    name: str
    nights: int = 3


def who() -> Elicit[Person]:
    return Elicit("Who?", Person)


def thought() -> Sample:
    text = types.TextContent(type="text", text="Think")
    return Sample([types.SamplingMessage(role="user", content=text)], max_tokens=10)


def places() -> ListRoots:
    return ListRoots()


def text(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)])


@server.tool()
def ask_everything(
    person: Annotated[Person, Resolve(who)],
    answer: Annotated[types.CreateMessageResult, Resolve(thought)],
    roots: Annotated[types.ListRootsResult, Resolve(places)],
) -> types.CallToolResult:
    """Ask the user, the model and the client."""
    return text(f"{person.name} {person.nights}, {answer.content.text}, {roots.roots[0].uri}")


@server.tool()
async def ask_page(ctx: Context[Any]) -> types.CallToolResult | types.InputRequiredResult:
    """Ask the user to open a page."""
    if ctx.protocol_version < "2026-07-28":
        return text((await ctx.elicit_url("Sign in", PAGE, "id-1")).action)
    if ctx.input_responses:
        return text(ctx.input_responses["page"].action)
    params = types.ElicitRequestURLParams(mode="url", message="Sign in", url=PAGE)
    request = types.ElicitRequest(params=params)
    return types.InputRequiredResult(input_requests={"page": request}, request_state="asked")


@server.tool()
async def touch(ctx: Context[Any]) -> types.CallToolResult:
    """Say that a resource changed."""
    await ctx.notify_resource_updated("test://text")
    return text("touched")


@server.resource("test://text", mime_type="text/plain")
def words() -> str:
    """A text."""
    return "words"


@server.resource("test://blob", mime_type="image/png")
def blob() -> bytes:
    """Bytes."""
    return b"\x89PNG"


@server.resource("test://records/{number}", mime_type="text/plain")
def record(number: str) -> str:
    """A record for every number."""
    return f"record {number}"


@server.prompt()
def review(code: str, style: str = "strict") -> UserMessage:
    """Review code."""
    return UserMessage(f"{code} {style}")


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
    """Complete from what is typed and filled in."""
    filled = (context.arguments if context else None) or {}
    values = ["strict", "friendly", *(f"{code}-like" for code in filled.values())]
    if isinstance(ref, types.ResourceTemplateReference):
        values = ["12", "13", "20"]
    found = [value for value in values if value.startswith(argument.value)]
    return types.Completion(values=found, total=len(found), has_more=False)


if __name__ == "__main__":
    import warnings

    # What 2026-07-28 deprecates is still part of the older revisions.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    server.run()
