"""A client that begins tasks."""

import pytest
import trio
import trio.testing

from noizu_mcp import TaskStarted
from noizu_mcp.types import ClientCapabilities

KNOWS = ClientCapabilities(extensions={"io.modelcontextprotocol/tasks": {}}, elicitation={})


async def start(client, tool, **arguments):
    """Call a tool as a task; return the parameters that name the task."""
    with pytest.raises(TaskStarted) as started:
        await client.call_tool(tool, arguments)
    await trio.testing.wait_all_tasks_blocked()
    return {"taskId": started.value.task.task_id}


async def result_of(client, task):
    """Wait until a task has ended; return the text of its result."""
    with trio.fail_after(60):
        while True:
            found = await client.request("tasks/get", task)
            if "result" in found:
                return found["result"]["content"][0]["text"]
            await trio.sleep(0.05)
