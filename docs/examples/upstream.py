"""Tools over the HTTP API of an issue tracker. All calls share one pool of connections.

    export TRACKER_URL=https://tracker.example.com/api/ TRACKER_TOKEN=…
    noizu-mcp call docs/examples/upstream.py list_issues state=open
    noizu-mcp call docs/examples/upstream.py read_issue number=7
    noizu-mcp call docs/examples/upstream.py comment number=7 text='It works again.'

It needs the extra `http`, for httpx2, and pydantic.
"""

import os
from typing import Annotated, Any, Literal

import httpx2
from pydantic import BaseModel

from noizu_mcp import Annotations, Context, Server, ToolError, Toolkit, field, mcp

URL = os.environ.get("TRACKER_URL", "http://127.0.0.1:8080/")
REASONS = {
    401: "The tracker refused the token; tell the user to renew it",
    404: "There is no such issue; list_issues shows all",
    429: "The tracker takes no more requests for now; try again in a minute",
}


class Issue(BaseModel):
    """The fields that the tools show; the tracker sends more."""

    number: int
    title: str
    state: Literal["open", "closed"]
    body: str | None = None


async def ask(tracker: httpx2.AsyncClient, method: str, path: str, **options: Any) -> Any:
    """Send a request to the tracker, and return the JSON of its answer.

    Raises:
        ToolError: The request failed; the text tells the model what to do.
    """
    try:
        response = await tracker.request(method, path, **options)
        response.raise_for_status()
        return response.json()
    except httpx2.HTTPStatusError as error:
        status = error.response.status_code
        reason = REASONS.get(status, f"The tracker failed with status {status}")
        raise ToolError(reason) from error
    except (httpx2.TransportError, ValueError) as error:
        raise ToolError("The tracker gives no usable answer; try again later") from error


class Tracker(Toolkit, annotations=Annotations(read_only_hint=True, open_world_hint=True)):
    """Tools over the tracker; `ctx.state` is the client with the pool."""

    @mcp
    async def list_issues(
        self,
        ctx: Context,
        state: Literal["open", "closed"] = "open",
        limit: Annotated[int, field(min=1, max=100)] = 20,
    ) -> list[Issue]:
        """List the issues, the newest first."""
        query = {"state": state, "limit": limit}
        return [
            Issue.model_validate(each)
            for each in await ask(ctx.state, "GET", "issues", params=query)
        ]

    @mcp
    async def read_issue(self, number: int, ctx: Context) -> Issue:
        """Read one issue with its text."""
        return Issue.model_validate(await ask(ctx.state, "GET", f"issues/{number}"))

    @mcp(annotations=Annotations(read_only_hint=False, destructive_hint=False))
    async def comment(
        self, number: int, text: Annotated[str, field(min_length=1)], ctx: Context
    ) -> str:
        """Write a comment under an issue."""
        await ask(ctx.state, "POST", f"issues/{number}/comments", json={"text": text})
        return f"The comment stands under issue {number}"


class Upstream(Server, name="tracker", version="1.0.0", tool_timeout=20.0):
    tools = [Tracker]

    def lifespan(self) -> httpx2.AsyncClient:
        token = os.environ.get("TRACKER_TOKEN", "")
        return httpx2.AsyncClient(
            base_url=URL,
            headers={"Authorization": f"Bearer {token}"},
            limits=httpx2.Limits(max_connections=10),
            timeout=httpx2.Timeout(10.0),
        )


if __name__ == "__main__":
    Upstream().run()
