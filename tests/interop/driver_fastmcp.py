"""Drive the everything server over HTTP with FastMCP's client and print its report as JSON.

The arguments are the URL and the mode of the client: `legacy`, or a revision without a handshake.
"""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

PATIENCE = 90


def wire(value: Any) -> Any:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


async def drive(url: str, mode: str) -> dict[str, Any]:
    found: dict[str, Any] = {"progress": [], "logs": [], "asked": []}

    async def progress(value: float, total: float | None, message: str | None) -> None:
        found["progress"].append([value, total, message])

    async def log(message: Any) -> None:
        found["logs"].append(message.data)

    async def elicit(message: str, *rest: Any) -> ElicitResult:
        found["asked"].append(message)
        return ElicitResult(action="accept", content={"username": "ann", "email": "a@b.c"})

    async def sample(*rest: Any) -> str:
        return "a model's answer"

    client = Client(
        url,
        mode=mode,
        progress_handler=progress,
        log_handler=log,
        elicitation_handler=elicit,
        sampling_handler=sample,
        roots=["file:///work"],
    )
    async with client:
        found["tools"] = [each.name for each in await client.list_tools()]
        for tool, arguments in (
            ("test_simple_text", {}),
            ("test_tool_with_progress", {}),
            ("test_tool_with_logging", {}),
            ("test_elicitation", {"message": "Who?"}),
            ("test_sampling", {"prompt": "What is a plum?"}),
            ("roots", {}),
            ("test_x_mcp_header", {"region": "north"}),
        ):
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            found[tool] = [wire(each) for each in result.content]
        found["resource"] = [
            wire(each) for each in await client.read_resource("test://static-text")
        ]
        arguments = {"arg1": "a", "arg2": "b"}
        prompt = await client.get_prompt("test_prompt_with_arguments", arguments)
        found["prompt"] = [wire(each) for each in prompt.messages]
        found["templates"] = [each.name for each in await client.list_resource_templates()]
    return found


if __name__ == "__main__":
    report = asyncio.run(asyncio.wait_for(drive(*sys.argv[1:]), PATIENCE))
    sys.stdout.write(json.dumps(report))
