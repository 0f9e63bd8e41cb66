"""Resources, prompts, questions and notices, in the official Python SDK: its high-level class."""

from typing import Annotated

import bench_offer
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmptyResult,
    InputRequiredResult,
    SubscribeRequestParams,
)
from pydantic import BaseModel, Field

LEGACY = "2025-11-25"
URIS = bench_offer.uris(bench_offer.asked())
server = MCPServer(bench_offer.NAME, log_level="WARNING")
watched: set[str] = set()


class Count(BaseModel):
    count: Annotated[int, Field(ge=1, le=10)]


@server.resource(bench_offer.NOTE, mime_type=bench_offer.MIME)
async def note() -> str:
    return bench_offer.NOTED


@server.resource("bench://items/{number}")
async def item(number: str) -> str:
    return number


@server.prompt()
async def write(
    topic: Annotated[str, Field(description=bench_offer.TOPIC)], style: str = "plain"
) -> str:
    return bench_offer.instruct(topic, style)


async def how_many() -> Elicit[Count]:
    return Elicit(bench_offer.QUESTION, Count)


@server.tool(structured_output=False)
async def ask(text: str, answer: Annotated[Count, Resolve(how_many)]) -> str:
    return bench_offer.served(text, answer.count)


@server.tool(structured_output=False)
async def live(text: str, ctx: Context) -> str:
    answer = await ctx.elicit(bench_offer.QUESTION, Count)
    if answer.action != "accept":
        return answer.action
    return bench_offer.served(text, answer.data.count)


@server.tool(structured_output=False)
async def raw(text: str, ctx: Context) -> str | InputRequiredResult:
    answer = (ctx.input_responses or {}).get(bench_offer.KEY)
    if not isinstance(answer, ElicitResult):
        params = ElicitRequestFormParams(
            message=bench_offer.QUESTION, requested_schema=bench_offer.SCHEMA
        )
        question = ElicitRequest(params=params)
        return InputRequiredResult(
            input_requests={bench_offer.KEY: question}, request_state=bench_offer.STATE
        )
    return bench_offer.served(text, (answer.content or {})["count"])


@server.tool(structured_output=False)
async def touch(ctx: Context) -> str:
    # The one reaches listen requests only; the other, sessions with a handshake only.
    if ctx.protocol_version == LEGACY:
        for uri in URIS:
            if uri in watched:
                await ctx.session.send_resource_updated(uri)
    else:
        for uri in URIS:
            await ctx.notify_resource_updated(uri)
    return "touched"


async def subscribe(_: object, params: SubscribeRequestParams) -> EmptyResult:
    watched.add(str(params.uri))
    return EmptyResult()


# `MCPServer` has no way of its own to take `resources/subscribe`.
server._lowlevel_server.add_request_handler(
    "resources/subscribe", SubscribeRequestParams, subscribe
)

if __name__ == "__main__":
    server.run("stdio")
