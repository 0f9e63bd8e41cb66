"""Tasks at clients that declare them and at clients that do not."""

import pytest

from noizu_mcp import (
    Accept,
    ClientHandler,
    McpError,
    ProtocolError,
    Server,
    TaskStarted,
    Tool,
    connect,
)
from noizu_mcp.types import TASKS, ClientCapabilities, Task

KNOWS = ClientCapabilities(extensions={TASKS: {}})


class Long(Tool, task="required"):
    """Takes long."""

    async def call(self):
        return "done"


class Asking(Tool, task="optional", starts_task=True):
    """Asks first."""

    async def call(self, args, ctx):
        answer = await ctx.elicit("Name?", {"name": str})
        await ctx.start_task()
        return answer.content.name


class Office(Server, name="office", version="1"):
    tools = [Long, Asking]


class Person(ClientHandler):
    async def handle_elicitation(self, params):
        return Accept({"name": "Ann"})


async def ended(client, task):
    while not task.ended:
        task = Task.from_wire(await client.request("tasks/get", {"taskId": task.task_id}))
    return task


@pytest.mark.parametrize("version", [None, "2026-07-28"])
async def test_a_call_goes_on_as_a_task(version):
    """The task is raised as an exception; any request can follow."""
    async with connect(Office, version=version, capabilities=KNOWS) as client:
        with pytest.raises(TaskStarted, match="goes on as the task") as caught:
            await client.call_tool("long")
        task = caught.value.task
        assert task.status == "working"
        assert task.meta is None
        assert task.extra == {}
        assert (await ended(client, task)).result["content"] == [{"type": "text", "text": "done"}]


async def test_questions_before_the_task():
    """They are answered as usual; the task is created in the last round."""
    both = connect(Office, capabilities=KNOWS, handler=Person())
    async with both as client:
        with pytest.raises(TaskStarted) as caught:
            await client.call_tool("asking")
        task = await ended(client, caught.value.task)
        assert task.result["content"][0]["text"] == "Ann"


async def test_a_single_request_may_declare_tasks():
    """A request may declare the extension for itself; earlier revisions have none."""
    knows = ClientCapabilities(extensions={"com.example/x": {"a": 1}})
    sent = []
    tapped = connect(Office, capabilities=knows, tap=lambda _, data: sent.append(bytes(data)))
    async with tapped as client:
        begun = await client.request("tools/call", {"name": "long"}, extensions=[TASKS])
        assert begun["resultType"] == "task"
        with pytest.raises(McpError) as caught:
            await client.request("tools/call", {"name": "long"})
    assert caught.value.code == -32021
    declared = b'"extensions":{"com.example/x":{"a":1},"io.modelcontextprotocol/tasks":{}}'
    assert [declared in data for data in sent if b'"tools/call"' in data] == [True, False]
    async with connect(Office, version="2025-11-25") as client:
        found = await client.request("tools/call", {"name": "long"}, extensions=[TASKS])
        assert found["isError"]


async def test_a_client_that_does_not_know_tasks():
    """It is refused, or served in its request."""
    async with connect(Office, handler=Person()) as client:
        with pytest.raises(McpError) as caught:
            await client.call_tool("long")
        assert caught.value.code == -32021
        assert (await client.call_tool("asking")).content[0].text == "Ann"


TASK = {
    "resultType": "task",
    "taskId": "t",
    "status": "working",
    "createdAt": "2026-07-28T00:00:00Z",
    "lastUpdatedAt": "2026-07-28T00:00:00Z",
    "ttlMs": None,
}


@pytest.mark.parametrize("capabilities", [None, ClientCapabilities(extensions={"x.y/z": {}})])
async def test_an_undeclared_task(scripted, capabilities):
    """A server must not create a task for a client that does not declare tasks."""
    async with scripted({"tools/call": TASK}, capabilities=capabilities) as (client, _):
        with pytest.raises(ProtocolError, match="unknown kind of result: 'task'"):
            await client.call_tool("long")


async def test_tasks_in_other_places(scripted):
    """Only calls of tools become tasks; elsewhere such a result is invalid."""
    answers = {"tools/call": {**TASK, "taskId": 5}, "prompts/get": TASK, "resources/read": TASK}
    async with scripted(answers, capabilities=KNOWS) as (client, _):
        with pytest.raises(ProtocolError, match="taskId: expected a string"):
            await client.call_tool("long")
        with pytest.raises(ProtocolError, match="unknown kind of result: 'task'"):
            await client.get_prompt("p")
        with pytest.raises(ProtocolError, match="unknown kind of result: 'task'"):
            await client.read_resource("r:")
