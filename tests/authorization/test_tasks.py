"""Tasks of calls that need scopes: their requests need the same scopes."""

import pytest
import trio

from noizu_mcp import Context, Resource, Schema, Server, Toolkit, mcp
from noizu_mcp.auth import InsufficientScope, RequireScopes, parse_challenges
from noizu_mcp.jsonrpc import INSUFFICIENT_SCOPE

PATIENCE = 60
KNOWS = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}


class Name(Schema):
    name: str


class Secret(Resource, uri="docs://secret", requires="docs:write"):
    def read(self):
        return "secret"


class Jobs(Toolkit):
    def __init__(self):
        self.go_on = trio.Event()

    @mcp(task="optional", requires="docs:write")
    async def write(self, args, ctx: Context):
        return (await ctx.elicit("Name?", Name)).content.name

    @mcp(task="optional")
    async def read(self, args, ctx: Context):
        """Find out late that somebody must hold something."""
        await self.go_on.wait()
        return (await ctx.read_resource("docs://secret")).contents[0].text

    @mcp(task="optional")
    def demand(self, args, ctx: Context):
        """Ask for a scope in a thread."""
        ctx.require(RequireScopes("docs:read"))
        ctx.require("docs:write")
        return "written"

    @mcp(task="optional")
    async def refuse(self):
        raise InsufficientScope(["docs:write"])

    @mcp(task="optional")
    async def demand_too_much(self, args, ctx: Context):
        ctx.require(["docs:all", "docs:more"])

    @mcp
    async def demand_at_once(self, args, ctx: Context):
        ctx.require(["docs:write"])
        return "may write"


class Office(Server, name="office", version="1", requires="docs:read", task_poll_interval=0.01):
    tools = [Jobs]
    resources = [Secret]


class Renaming(Office, name="renaming", version="1"):
    """Calls another tool than the one that is named."""

    async def call_tool(self, name, args, ctx):
        return await super().call_tool("write" if name == "refuse" else name, args, ctx)


class Desk:
    """Sends requests of tasks."""

    def __init__(self, http):
        self.http = http

    async def ask(self, method, token, **params):
        return await self.http.stateless(method, params, token=token, capabilities=KNOWS)

    async def begin(self, tool, token="ada-writes"):
        answer = await self.ask("tools/call", token, name=tool)
        await trio.testing.wait_all_tasks_blocked()
        return answer.json["result"]["taskId"]

    async def end(self, id_, token="ada-writes"):
        with trio.fail_after(PATIENCE):
            while True:
                task = (await self.ask("tasks/get", token, taskId=id_)).json["result"]
                if task["status"] in ("completed", "failed"):
                    return task

    async def refused(self, id_, method="tasks/get", token="ada-reads"):
        answer = await self.ask(method, token, taskId=id_, inputResponses={})
        assert answer.status == 403
        assert answer.json["error"]["code"] == INSUFFICIENT_SCOPE
        [challenge] = parse_challenges(answer.headers["www-authenticate"])
        scopes = answer.json["error"]["data"]["requiredScopes"]
        assert dict(challenge.params)["scope"].split() == scopes
        return scopes

    async def listen(self, *ids, token="ada-writes"):
        """Listen to tasks; return the request, once it is acknowledged."""
        params = {"notifications": {"taskIds": ids}}
        listening = self.http.open_stateless(
            "subscriptions/listen", params, token=token, capabilities=KNOWS
        )
        with trio.fail_after(PATIENCE):
            await listening.until(lambda each: each.events)
        return listening


@pytest.fixture
def kit():
    return Jobs()


@pytest.fixture
async def desk(serve_app, bearer, kit):
    class Own(Office, name="own", version="1"):
        tools = [kit]

    async with serve_app(Own(), auth=bearer()) as http:
        yield Desk(http)


async def test_what_the_call_needed_is_needed_for_its_task(desk):
    """Each request needs them; the same user with another token gets the missing scopes."""
    id_ = await desk.begin("write")
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert await desk.refused(id_, method) == ["docs:read", "docs:write"]
    task = (await desk.ask("tasks/get", "ada-writes", taskId=id_)).json["result"]
    assert task["status"] == "input_required"
    others = await desk.ask("tasks/get", "bob-writes", taskId=id_)
    assert others.json["error"]["code"] == -32602


async def test_who_may_not_see_a_task_may_not_listen_to_it(desk):
    """The task is left out of the acknowledged filter."""
    id_ = await desk.begin("write")
    agreed = []
    for token in ("ada-reads", "ada-writes"):
        listening = await desk.listen(id_, token=token)
        agreed.append(listening.events[0]["params"]["notifications"])
        listening.leave()
    assert agreed == [{}, {"taskIds": [id_]}]


async def test_what_a_task_asked_for_on_its_way_is_needed_from_then_on(desk, kit):
    """After the task reads a resource, listeners need its scopes, too."""
    id_ = await desk.begin("read")
    narrow = await desk.listen(id_, token="ada-reads")
    wide = await desk.listen(id_)
    found = await desk.ask("tasks/get", "ada-reads", taskId=id_)
    assert found.json["result"]["status"] == "working"
    kit.go_on.set()
    with trio.fail_after(PATIENCE):
        await wide.until(lambda each: len(each.events) == 3)
    assert wide.events[-1]["params"]["result"]["content"][0]["text"] == "secret"
    assert await desk.refused(id_) == ["docs:read", "docs:write"]
    assert [each["params"].get("status") for each in narrow.events] == [None, "working"]


async def test_what_a_handler_asks_for_itself_is_needed_too(desk):
    """`ctx.require` is recorded, also from threads; a refused request gets no information."""
    id_ = await desk.begin("demand")
    assert (await desk.end(id_))["result"]["content"][0]["text"] == "written"
    assert await desk.refused(id_) == ["docs:read", "docs:write"]
    for tool in ("demand", "refuse"):
        task = await desk.end(await desk.begin(tool, "ada-reads"), "ada-reads")
        assert (task["status"], task["error"]["code"]) == ("failed", INSUFFICIENT_SCOPE)
        assert task["error"]["data"] == {"requiredScopes": ["docs:read", "docs:write"]}
    task = await desk.end(await desk.begin("demand_too_much"))
    assert task["error"]["data"] == {"requiredScopes": ["docs:read", "docs:all", "docs:more"]}


async def test_asking_for_scopes_in_a_request(desk):
    """It ends like any other refusal."""
    refused = await desk.ask("tools/call", "ada-reads", name="demand_at_once")
    assert refused.status == 403
    served = await desk.ask("tools/call", "ada-writes", name="demand_at_once")
    assert served.json["result"]["content"][0]["text"] == "may write"


async def test_an_override_may_call_what_needs_more(serve_app, bearer):
    """The scopes of the tool that an override calls count, too."""
    async with serve_app(Renaming(), auth=bearer()) as http:
        desk = Desk(http)
        id_ = await desk.begin("refuse")
        assert await desk.refused(id_) == ["docs:read", "docs:write"]
