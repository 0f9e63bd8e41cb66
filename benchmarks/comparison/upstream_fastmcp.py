"""The tracker of docs/examples/upstream.py, written for FastMCP."""

import os
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

import httpx2
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.lifespan import lifespan
from pydantic import BaseModel, Field

URL = os.environ.get("TRACKER_URL", "http://127.0.0.1:8080/")
REASONS = {
    401: "The tracker refused the token; tell the user to renew it",
    404: "There is no such issue; list_issues shows all",
    429: "The tracker takes no more requests for now; try again in a minute",
}


class Issue(BaseModel):
    number: int
    title: str
    state: Literal["open", "closed"]
    body: str | None = None


@lifespan
async def pool(server: FastMCP) -> AsyncGenerator[dict[str, object]]:
    token = os.environ.get("TRACKER_TOKEN", "")
    async with httpx2.AsyncClient(
        base_url=URL,
        headers={"Authorization": f"Bearer {token}"},
        limits=httpx2.Limits(max_connections=10),
        timeout=httpx2.Timeout(10.0),
    ) as tracker:
        yield {"tracker": tracker}


mcp = FastMCP("tracker", version="1.0.0", lifespan=pool)


async def ask(ctx: Context, method: str, path: str, **options: Any) -> Any:
    """Send a request to the tracker, and return the JSON of its answer."""
    try:
        response = await ctx.lifespan_context["tracker"].request(method, path, **options)
        response.raise_for_status()
        return response.json()
    except httpx2.HTTPStatusError as error:
        status = error.response.status_code
        reason = REASONS.get(status, f"The tracker failed with status {status}")
        raise ToolError(reason) from error
    except (httpx2.TransportError, ValueError) as error:
        raise ToolError("The tracker gives no usable answer; try again later") from error


@mcp.tool(annotations={"readOnlyHint": True, "openWorldHint": True}, timeout=20.0)
async def list_issues(
    ctx: Context,
    state: Literal["open", "closed"] = "open",
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> list[Issue]:
    """List the issues, the newest first."""
    query = {"state": state, "limit": limit}
    return [Issue.model_validate(each) for each in await ask(ctx, "GET", "issues", params=query)]


@mcp.tool(annotations={"readOnlyHint": True, "openWorldHint": True}, timeout=20.0)
async def read_issue(number: int, ctx: Context) -> Issue:
    """Read one issue with its text."""
    return Issue.model_validate(await ask(ctx, "GET", f"issues/{number}"))


@mcp.tool(annotations={"readOnlyHint": False, "destructiveHint": False}, timeout=20.0)
async def comment(number: int, text: Annotated[str, Field(min_length=1)], ctx: Context) -> str:
    """Write a comment under an issue."""
    await ask(ctx, "POST", f"issues/{number}/comments", json={"text": text})
    return f"The comment stands under issue {number}"


if __name__ == "__main__":
    mcp.run()
