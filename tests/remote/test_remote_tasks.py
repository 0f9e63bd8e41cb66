"""Calls that become tasks of a server behind a `Remote`."""

from functools import partial
from itertools import pairwise

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from noizu_mcp import (
    Accept,
    Context,
    InputRequest,
    InputRequired,
    Limits,
    McpError,
    Mount,
    Remote,
    RequestTimeout,
    Schema,
    Server,
    TaskStarted,
    ToolError,
    Toolkit,
    connect,
    mcp,
)
from noizu_mcp.testing import ScriptedHandler
from noizu_mcp.types import ClientCapabilities, Principal

from .conftest import Life, front_of

OLD, NEW = "2025-11-25", "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
KNOWS = ClientCapabilities(extensions={TASKS: {}}, elicitation={})


class Form(Schema):
    """A form."""

    name: str


class Jobs(Toolkit):
    """Tools whose calls may go on as tasks."""

    entered = None
    left = None

    @mcp
    async def plain(self) -> str:
        return "at once"

    @mcp(task="optional")
    async def slow(self, ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await trio.sleep(10)
        return "slow"

    @mcp(task="required")
    async def needy(self, ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await trio.sleep(3)
        answer = await ctx.elicit("who?", Form)
        return f"needy {answer.content.name}"

    @mcp(task="optional")
    async def fail(self) -> str:
        raise ToolError("do this instead")

    @mcp(task="optional")
    async def refuse(self) -> str:
        raise McpError(-32000, "refused", {"why": 1})

    @mcp(task="optional")
    async def hang(self) -> str:
        Jobs.entered.set()
        try:
            await trio.sleep_forever()
        finally:
            Jobs.left.set()

    @mcp(task="optional")
    async def ask_two(self, ctx: Context) -> str:
        answers = {}

        async def ask(what):
            answers[what] = (await ctx.elicit(f"{what}?", Form)).content.name

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "first")
            nursery.start_soon(ask, "last")
        return f"{answers['first']} {answers['last']}"

    @mcp(task="optional")
    async def give_up(self, ctx: Context) -> str:
        try:
            await ctx.elicit("who?", Form, timeout=5)
        except RequestTimeout:
            await trio.sleep(30)
        return "gave up"

    @mcp(task="required", starts_task=True)
    async def ask_first(self, ctx: Context) -> str | InputRequired:
        if "who" not in ctx.input_responses:
            form = {"type": "object", "properties": {"name": {"type": "string"}}}
            params = {"message": "who?", "requestedSchema": form}
            return InputRequired({"who": InputRequest("elicitation/create", params)})
        await ctx.start_task()
        await trio.sleep(1)
        return f"hello {ctx.input_responses['who']['content']['name']}"


class Up(Server, name="up", version="1", task_poll_interval=0.2):
    """The server behind the front."""

    tools = [Jobs]


@pytest.fixture(autouse=True)
def events():
    Jobs.entered, Jobs.left = trio.Event(), trio.Event()


async def start(client, tool, **arguments):
    """Create a task; return the params that name it."""
    with pytest.raises(TaskStarted) as started:
        await client.call_tool(tool, arguments)
    return {"taskId": started.value.task.task_id}


async def state(client, task, *wanted):
    """Return the state of a task, once it has one of these statuses."""
    with trio.fail_after(3600):
        while True:
            found = await client.request("tasks/get", task)
            if found["status"] in wanted:
                return found
            await trio.sleep(0.1)


END = ("completed", "failed", "cancelled")


@pytest.mark.parametrize("name", ["slow", "fail", "refuse"])
async def test_the_end_of_a_task_is_that_of_the_server(behind, name, autojump_clock):
    """Results, failures and errors are the same as for a client of the server itself."""
    ends = []
    for target, tool in ((Up, name), (behind(Up), f"up_{name}")):
        async with connect(target, version=NEW, capabilities=KNOWS) as client:
            found = await state(client, await start(client, tool), *END)
            ends.append({key: found.get(key) for key in ("status", "result", "error")})
            ends[-1]["result"] = {**(ends[-1]["result"] or {}), "_meta": None}
    assert ends[0] == ends[1]


async def test_a_short_call_needs_no_task(behind, autojump_clock):
    """A call that the server answers at once is answered at once."""
    async with connect(behind(Up), version=NEW, capabilities=KNOWS) as client:
        assert (await client.call_tool("up_plain")).text == "at once"


async def test_the_extension_is_offered_from_the_start(behind, autojump_clock):
    """A client sees the extension before it lists anything."""
    async with connect(behind(Up), version=NEW) as client:
        assert client.capabilities.extensions == {TASKS: {}}


async def test_status_messages_pass(behind, autojump_clock):
    """Progress of the tool is the status message of the task."""
    async with connect(behind(Up), version=NEW, capabilities=KNOWS) as client:
        task = await start(client, "up_slow")
        await trio.sleep(5)
        found = await client.request("tasks/get", task)
    assert (found["status"], found["statusMessage"]) == ("working", "half")


async def test_notices_of_status(behind, autojump_clock):
    """A client that listens to the front's task is notified of each change at the server."""
    handler = ScriptedHandler()
    options = {"version": NEW, "capabilities": KNOWS, "handler": handler}
    async with connect(behind(Up), **options) as client, trio.open_nursery() as nursery:
        task = await start(client, "up_slow")
        wanted = {"notifications": {"taskIds": [task["taskId"]]}}
        nursery.start_soon(partial(client.request, "subscriptions/listen", wanted, timeout=100))
        await trio.sleep(30)
        nursery.cancel_scope.cancel()
    told = [params for method, params in handler.notifications if method == "notifications/tasks"]
    assert "half" in [each.get("statusMessage") for each in told]
    assert told[-1]["result"]["content"][0]["text"] == "slow"


async def test_questions_pass(behind, autojump_clock):
    """Questions are in the front's task, and each answer reaches its question."""
    async with connect(behind(Up), version=NEW, capabilities=KNOWS) as client:
        task = await start(client, "up_ask_two")
        await trio.sleep(5)
        asked = (await state(client, task, "input_required"))["inputRequests"]
        keys = {each["params"]["message"]: key for key, each in asked.items()}
        for message, name in (("last?", "Li"), ("first?", "Bo")):
            answer = {"action": "accept", "content": {"name": name}}
            answers = {keys[message]: answer}
            await client.request("tasks/update", {**task, "inputResponses": answers})
            await trio.sleep(5)
        found = await state(client, task, *END)
    assert sorted(keys) == ["first?", "last?"]
    assert found["result"]["content"][0]["text"] == "Bo Li"


async def test_a_question_is_withdrawn(behind, autojump_clock):
    """A question that the server withdraws is removed."""
    async with connect(behind(Up), version=NEW, capabilities=KNOWS) as client:
        task = await start(client, "up_give_up")
        await state(client, task, "input_required")
        await state(client, task, "working")
        assert (await state(client, task, *END))["result"]["content"][0]["text"] == "gave up"


async def test_a_question_to_a_caller_without_the_capability(behind, autojump_clock):
    """A caller without the capability fails the task, and cancels it at the server."""
    knows = ClientCapabilities(extensions={TASKS: {}})
    async with connect(behind(Up), version=NEW, capabilities=knows) as client:
        found = await state(client, await start(client, "up_ask_two"), *END)
    assert found["error"]["code"] == -32021


async def test_cancellation(behind, autojump_clock):
    """Cancelling the front's task cancels that of the server."""
    async with connect(behind(Up), version=NEW, capabilities=KNOWS) as client:
        task = await start(client, "up_hang")
        await Jobs.entered.wait()
        await client.request("tasks/cancel", task)
        assert (await state(client, task, *END))["status"] == "cancelled"
        await Jobs.left.wait()


async def test_a_question_first(behind, autojump_clock):
    """Questions of the request precede the task, as at the server itself."""
    handler = ScriptedHandler(elicitation={"": {"name": "Bo"}})
    async with connect(behind(Up), version=NEW, capabilities=KNOWS, handler=handler) as client:
        task = await start(client, "up_ask_first")
        found = await state(client, task, *END)
    assert found["result"]["content"][0]["text"] == "hello Bo"


async def test_a_task_belongs_to_its_principal(behind, autojump_clock):
    """Other principals get "unknown task"."""
    front, up = behind(Up)(), {"version": NEW, "capabilities": KNOWS}
    async with connect(front, principal=Principal(subject="ada"), **up) as client:
        task = await start(client, "up_slow")
        await client.request("tasks/get", task)
    async with connect(front, principal=Principal(subject="eve"), **up) as client:
        with pytest.raises(McpError, match="Unknown task"):
            await client.request("tasks/get", task)


async def test_a_client_that_does_not_declare_tasks(behind, autojump_clock):
    """It gets results in its requests, or the error of the server."""
    async with connect(behind(Up), version=NEW) as client:
        assert (await client.call_tool("up_slow")).text == "slow"
        with pytest.raises(McpError) as caught:
            await client.call_tool("up_needy")
        with pytest.raises(McpError, match="refused"):
            await client.call_tool("up_refuse")
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


async def test_a_client_that_cannot_declare_tasks(behind, autojump_clock):
    """Clients of earlier revisions can call a tool that needs a task: their request waits."""
    handler, seen = ScriptedHandler(elicitation={"": {"name": "Bo"}}), []
    async with connect(behind(Up, version=NEW), version=OLD, handler=handler) as client:
        result = await client.call_tool("up_needy", progress=lambda each: seen.append(each.message))
    assert result.text == "needy Bo"
    assert seen == ["half"]


async def test_a_call_that_is_cancelled_cancels_the_task(behind, autojump_clock):
    """Cancelling a request cancels the server's task that it waits for."""
    async with connect(behind(Hanging), version=OLD) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "up_hang")
        await Jobs.entered.wait()
        nursery.cancel_scope.cancel()
    await Jobs.left.wait()


class HangKit(Toolkit):
    @mcp(task="required")
    async def hang(self) -> str:
        return await Jobs().hang()


class Hanging(Up, name="up", version="1"):
    tools = [HangKit]


@pytest.mark.parametrize("replay", [False, True])
async def test_a_handler_may_call_such_a_tool(behind, replay, autojump_clock):
    """A nested call waits for the task."""

    async def around(ctx: Context) -> str:
        return (await ctx.call_tool("up_needy")).text

    front = front_of(Remote(Up, prefix="up"), tools=[around])
    handler = ScriptedHandler(elicitation={"": Accept({"name": "Bo"})})
    options = {"version": NEW, "handler": handler, "capabilities": KNOWS, "replay": replay}
    async with connect(front, **options) as client:
        assert (await client.call_tool("around")).text == "needy Bo"


async def test_no_room_for_a_task(autojump_clock):
    """Without room for a task at the front the server is asked for a result without one."""
    front = type(Server)(
        "Front",
        (Server,),
        {"providers": [Remote(Up, prefix="up")]},
        name="front",
        version="1",
        limits=Limits(tasks=1),
    )
    async with connect(front, version=NEW, capabilities=KNOWS) as client:
        task = await start(client, "up_hang")
        assert (await client.call_tool("up_slow")).text == "slow"
        with pytest.raises(McpError, match="Too many tasks"):
            await client.call_tool("up_needy")
        await client.request("tasks/cancel", task)


async def test_a_remote_in_a_mounted_server(autojump_clock):
    """Tasks pass a mount and a remote."""
    front = front_of(Mount(front_of(Remote(Up, prefix="up")), prefix="in"))
    async with connect(front, version=NEW, capabilities=KNOWS) as client:
        assert client.capabilities.extensions == {TASKS: {}}
        found = await state(client, await start(client, "in_up_slow"), *END)
    assert found["result"]["content"][0]["text"] == "slow"


async def test_a_server_that_has_lost_its_tasks(behind, autojump_clock):
    """The front's task waits for the server, and fails if its task is unknown there."""
    life = Life(tools=[Jobs])
    async with connect(behind(life.server), version=NEW, capabilities=KNOWS) as client:
        task = await start(client, "up_hang")
        await Jobs.entered.wait()
        life.kill()
        found = await state(client, task, *END)
    assert found["error"]["code"] == -32602
    assert life.runs > 1


def states(*answers):
    """Return answers of `tasks/get`, one after the other; the last one repeats."""
    left = list(answers)

    def answer(_):
        return made(**(left.pop(0) if len(left) > 1 else left[0]))

    return answer


def made(**members):
    """Make a task in wire form."""
    times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    return {"taskId": "t", "status": "working", **times, "ttlMs": None, **members}


@pytest.fixture
async def odd(scripted, behind):
    """Call the tool of a server whose tasks are data; return the end of the front's task."""
    discover = {
        "supportedVersions": [NEW],
        "capabilities": {"tools": {}, "extensions": {TASKS: {}}},
        "serverInfo": {"name": "odd", "version": "1"},
    }
    listed = {"tools": [{"name": "tool", "inputSchema": {"type": "object"}}]}

    async def call(get, begun=None):
        sent = []
        up = scripted(
            server__discover=discover,
            tools__list=listed,
            tools__call={**(begun or made()), "resultType": "task"},
            tasks__get=get,
            tasks__cancel=lambda request: sent.append(request) or {},
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(up.script)
            async with connect(behind(up), version=NEW, capabilities=KNOWS) as client:
                found = await state(client, await start(client, "up_tool"), *END)
                await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        return found, len(sent)

    return call


async def test_a_task_that_the_server_cancels(odd, autojump_clock):
    """The front's task fails with the reason."""
    found, cancels = await odd(states({}, {"status": "cancelled"}))
    assert found["error"]["message"] == "up has cancelled the task"
    assert cancels == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "completed"},
        {"status": "failed"},
        {"status": "failed", "error": {"code": "x"}},
        {"status": 7},
        {"status": "input_required", "inputRequests": {"a": {}}},
    ],
)
async def test_malformed_tasks(odd, wrong, autojump_clock):
    """A task that violates the specification fails with a clear error."""
    found, _ = await odd(states({}, wrong))
    assert found["status"] == "failed"
    assert found["error"]["message"].startswith("up gave a malformed task: ")


async def test_a_malformed_beginning(scripted, behind, odd, autojump_clock):
    """A call that creates a task without an id fails."""
    found, cancels = await odd(states({}), {"status": "working"})
    assert found["error"]["message"].startswith("up gave a malformed task: ")
    assert cancels == 0


@pytest.mark.parametrize(("wanted", "pause"), [(0, 0.05), (None, 1)])
async def test_the_pace(odd, wanted, pause, autojump_clock):
    """The server is polled at its own interval, within bounds."""
    times = []
    answer = states(*[{"pollIntervalMs": wanted}] * 3, {"status": "completed", "result": {}})

    def get(request):
        times.append(trio.current_time())
        return answer(request)

    await odd(get)
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == pytest.approx([pause] * 3)


async def test_a_server_that_never_comes_back(scripted, behind, autojump_clock):
    """A stream cannot be reopened: the task ends with a result that says so."""
    asked = trio.Event()

    async def end():
        await asked.wait()
        await up.aclose()

    discover = {
        "supportedVersions": [NEW],
        "capabilities": {"tools": {}, "extensions": {TASKS: {}}},
        "serverInfo": {"name": "odd", "version": "1"},
    }
    up = scripted(
        server__discover=discover,
        tools__list={"tools": [{"name": "tool", "inputSchema": {"type": "object"}}]},
        tools__call={**made(), "resultType": "task"},
        tasks__get=lambda _: asked.set(),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(up.script)
        nursery.start_soon(end)
        async with connect(behind(up), version=NEW, capabilities=KNOWS) as client:
            found = await state(client, await start(client, "up_tool"), *END)
        nursery.cancel_scope.cancel()
    assert found["result"]["isError"]
