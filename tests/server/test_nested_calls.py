"""`ctx.call_tool`: calls of tools by handlers, in both eras."""

import json

import pytest
import trio

from noizu_mcp import (
    Accept,
    ClientHandler,
    Context,
    InputRequest,
    InputRequired,
    Limits,
    McpError,
    Prompt,
    PromptMessage,
    ProtocolError,
    Schema,
    Server,
    Tool,
    ToolError,
    Toolkit,
    mcp,
)
from noizu_mcp.policies import DenyTools, Policy
from noizu_mcp.testing import connect
from noizu_mcp.types import Principal, RequireScopes

from .tasking import KNOWS, result_of, start

VERSIONS = ["2025-11-25", "2026-07-28"]


class Name(Schema):
    name: str


class Kit(Toolkit):
    def __init__(self):
        self.ran = []

    @mcp
    async def echo(self, text: str = "", dry: bool = False) -> str:
        self.ran.append("echo")
        return text

    @mcp
    def threaded(self) -> str:
        return "threaded"

    @mcp(inline=True)
    def inline(self) -> str:
        return "inline"

    @mcp
    async def count(self, n: int) -> int:
        return n + 1

    @mcp
    async def fails(self) -> str:
        raise ToolError("it failed")

    @mcp
    async def breaks(self) -> str:
        raise McpError(-32000, "broken")

    @mcp(timeout=1.0)
    async def sleeps(self) -> str:
        await trio.sleep_forever()

    @mcp(requires=RequireScopes("write"))
    async def writes(self) -> str:
        return "written"

    @mcp(task="optional", starts_task=True)
    async def begins(self, ctx: Context) -> str:
        await ctx.start_task()
        return "no task"

    @mcp
    async def asks(self, ctx: Context, question: str = "Name?") -> str:
        self.ran.append(f"asks {question}")
        return (await ctx.elicit(question, Name)).content.name

    @mcp
    async def asks_by_hand(self, ctx: Context) -> str:
        if "name" in ctx.input_responses:
            return f"{ctx.input_responses['name']['content']['name']} {ctx.request_state}"
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        request = InputRequest(
            "elicitation/create", {"mode": "form", "message": "Name?", "requestedSchema": form}
        )
        return InputRequired({"name": request}, state="kept")

    @mcp
    async def progresses(self, ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await ctx.info("working")
        return f"{ctx.request_id is not None} {ctx.transport} {ctx.auth} {dict(ctx.meta) != {}}"

    @mcp
    async def call(self, ctx: Context, tool: str, given: str = "{}") -> str:
        self.ran.append(f"call {tool}")
        result = await ctx.call_tool(tool, json.loads(given))
        return f"{tool}: {'!' if result.is_error else ''}{result.text}"

    @mcp
    async def call_other(self, ctx: Context, tool: str) -> str:
        return (await ctx.call_tool("call", {"tool": tool})).text

    @mcp(loop="asyncio")
    async def call_on_asyncio(self, ctx: Context, tool: str) -> str:
        narrow = ctx.capability.attenuate(tools=["echo", "asks"])
        return (await ctx.call_tool(tool, {}, capability=narrow)).text

    @mcp
    async def narrow(self, ctx: Context, tool: str, given: str = "{}", depth: int = 1) -> str:
        capability = ctx.capability.attenuate(tools=["call*", "echo"], depth=depth)
        return (await ctx.call_tool(tool, json.loads(given), capability=capability)).text

    @mcp
    async def escapes(self, ctx: Context, tool: str) -> str:
        return (await ctx.server.call_tool(tool, {}, ctx)).text

    @mcp
    async def narrow_escape(self, ctx: Context, tool: str) -> str:
        capability = ctx.capability.attenuate(tools=["escapes", "echo"])
        result = await ctx.call_tool("escapes", {"tool": tool}, capability=capability)
        return result.text

    @mcp
    async def give(self, ctx: Context) -> str:
        return str(ctx.capability.attenuate(tools=["echo"], arguments={"dry": True}))

    @mcp
    async def use(self, ctx: Context, text: str, tool: str = "echo", dry: bool = True) -> str:
        args = {"text": "used", "dry": dry} if tool == "echo" else {}
        return (await ctx.call_tool(tool, args, capability=text)).text

    @mcp
    async def use_and_ask(self, ctx: Context, text: str) -> str:
        capability = await ctx.open_capability(text)
        await ctx.elicit("Name?", Name)
        args = {"text": "used", "dry": True}
        first = await ctx.call_tool("echo", args, capability=capability)
        second = await ctx.call_tool("echo", args, capability=capability)
        return f"{first.text} {second.text}"

    @mcp(loop="asyncio")
    async def open_on_asyncio(self, ctx: Context, text: str) -> str:
        capability = await ctx.open_capability(text)
        args = {"text": "used", "dry": True}
        return (await ctx.call_tool("echo", args, capability=capability)).text

    @mcp
    async def both(self, ctx: Context) -> str:
        results = {}

        async def one(question):
            results[question] = (await ctx.call_tool("asks", {"question": question})).text

        async with trio.open_nursery() as nursery:
            for question in ("One?", "Two?"):
                nursery.start_soon(one, question)
        return json.dumps(results, sort_keys=True)

    @mcp
    async def wrong(self, ctx: Context) -> str:
        await ctx.call_tool("echo", capability=3)

    @mcp
    async def lists(self, ctx: Context) -> str:
        try:
            await ctx.call_tool("echo", ["a"])
        except TypeError as error:
            return str(error)


class House(Server, name="house", version="1", task_poll_interval=0.1):
    tools = [Kit]


class Ann(ClientHandler):
    def __init__(self):
        self.asked = []

    async def handle_elicitation(self, params):
        message = params["message"]
        self.asked.append(message)
        return Accept({"name": f"Ann{message[:-1]}"})


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tool_of_any_kind_can_be_called(version):
    """The result of a nested call is the same as for a client."""
    async with connect(House, version=version) as client:
        for tool in ("threaded", "inline"):
            assert (await client.call_tool("call", {"tool": tool})).text == f"{tool}: {tool}"
        assert (await client.call_tool("call", {"tool": "count", "given": '{"n": 1}'})).text == (
            "count: 2"
        )
        wrong = await client.call_tool("call", {"tool": "count", "given": '{"n": []}'})
        assert wrong.text.startswith("count: !Invalid arguments for tool count:")
        failed = await client.call_tool("call", {"tool": "fails"})
        assert (failed.is_error, failed.text) == (False, "fails: !it failed")
        with pytest.raises(McpError, match="broken"):
            await client.call_tool("call", {"tool": "breaks"})
        with pytest.raises(McpError, match="Unknown tool: nothing"):
            await client.call_tool("call", {"tool": "nothing"})
        assert (await client.call_tool("wrong")).text == "Tool execution failed"
        text = "arguments must be a mapping, got ['a']"
        assert (await client.call_tool("lists")).text == text


async def test_its_timeout_is_its_own(autojump_clock):
    """The result reports the timeout, and the calling handler goes on."""
    async with connect(House) as client:
        result = await client.call_tool("call", {"tool": "sleeps"})
        assert result.text == "sleeps: !Tool execution timed out"


async def test_its_scopes_hold():
    """A missing scope in a nested call is an error that names the scopes for the client."""
    async with connect(House, principal=Principal(subject="ada")) as client:
        with pytest.raises(McpError) as raised:
            await client.call_tool("call", {"tool": "writes"})
        assert (raised.value.code, raised.value.data) == (-31403, {"requiredScopes": ["write"]})
    writer = Principal(subject="ada", scopes={"write"})
    async with connect(House, principal=writer) as client:
        assert (await client.call_tool("call", {"tool": "writes"})).text == "writes: written"


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_request_is_that_of_the_handler(version):
    """A nested handler has the request's progress, log messages, metadata and other context."""
    seen = []
    async with connect(House, version=version) as client:
        result = await client.call_tool("call", {"tool": "progresses"}, progress=seen.append)
    assert result.text == "progresses: True memory None True"
    assert [(each.progress, each.total, each.message) for each in seen] == [(1, 2, "half")]


@pytest.mark.parametrize("version", VERSIONS)
async def test_it_is_cancelled_with_the_request(version):
    """Cancelling the request cancels the nested call completely."""
    left = trio.Event()

    class Waits(Tool):
        async def call(self):
            try:
                await trio.sleep_forever()
            finally:
                left.set()

    class Waiting(Server, name="waiting", version="1"):
        tools = [Kit, Waits]

    async with connect(Waiting, version=version) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "call", {"tool": "waits"})
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True), trio.fail_after(60):
            await left.wait()


@pytest.mark.parametrize(
    ("version", "replay"), [("2025-11-25", False), ("2026-07-28", False), ("2026-07-28", True)]
)
@pytest.mark.parametrize(
    ("tool", "args", "answer"),
    [
        ("call", {"tool": "asks"}, "asks: AnnName"),
        ("call_other", {"tool": "asks"}, "asks: AnnName"),
        ("call_on_asyncio", {"tool": "asks"}, "AnnName"),
        ("call", {"tool": "asks_by_hand"}, "asks_by_hand: AnnName kept"),
        ("both", {}, '{"One?": "AnnOne", "Two?": "AnnTwo"}'),
    ],
)
async def test_it_may_ask_the_client(version, replay, tool, args, answer):
    """A nested handler can ask like any other: live, parked, and run again."""
    handler = Ann()
    async with connect(House, version=version, replay=replay, handler=handler) as client:
        assert (await client.call_tool(tool, args)).text == answer
    assert len(handler.asked) == (2 if tool == "both" else 1)


async def test_it_begins_no_task():
    """A nested call creates no task; inside of a task it runs, and may ask."""
    async with connect(House, capabilities=KNOWS) as client:
        assert (await client.call_tool("call", {"tool": "begins"})).text == "begins: no task"

    class Long(Tool, task="required"):
        async def call(self, ctx: Context):
            return (await ctx.call_tool("asks")).text

    class Office(House, name="office", version="1", task_poll_interval=0.1):
        tools = [Kit, Long]

    async with connect(Office, capabilities=KNOWS) as client:
        task = await start(client, "long")
        asked = (await client.request("tasks/get", task))["inputRequests"]
        answers = {key: {"action": "accept", "content": {"name": "Bob"}} for key in asked}
        await client.request("tasks/update", {**task, "inputResponses": answers})
        assert await result_of(client, task) == "Bob"


# Bounds


@pytest.mark.parametrize("version", VERSIONS)
async def test_calls_do_not_go_in_circles(version):
    """Recursive calls are refused at any distance."""
    events = []
    server = House()
    server.telemetry.add(events.append)
    async with connect(server, version=version) as client:
        result = await client.call_tool("call", {"tool": "call", "given": '{"tool": "call"}'})
        assert result.text == "call: !Denied: the calls go in a circle: call > call"
        result = await client.call_tool("call_other", {"tool": "call_other"})
        assert result.text == (
            "call_other: !Denied: the calls go in a circle: call_other > call > call_other"
        )
    decisions = [(e.name, e.decision, e.policy) for e in events if e.kind == "decision"]
    assert decisions == [("call", "deny", "call_depth"), ("call_other", "deny", "call_depth")]


async def test_calls_are_nested_so_deep_and_no_deeper():
    """The limit on the depth counts the calls within the first one."""

    def link(number):
        async def call(ctx: Context) -> str:
            inner = await ctx.call_tool(f"link_{number + 1}")
            return f"{number} {inner.text}"

        return mcp(name=f"link_{number}")(call)

    class Chain(Server, name="chain", version="1", limits=Limits(call_depth=3)):
        tools = [link(number) for number in range(6)]

    async with connect(Chain) as client:
        text = (await client.call_tool("link_0")).text
    assert text == "0 1 2 3 Denied: more than 3 calls are nested in each other"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_prompt_may_call_tools(version):
    """Prompts and resources can call tools; `init` and completions cannot."""
    errors = []

    class Greet(Prompt):
        async def get(self, args, ctx):
            result = await ctx.call_tool("call", {"tool": "echo", "given": '{"text": "hi"}'})
            return [PromptMessage.user(result.text)]

    class Talking(Server, name="talking", version="1"):
        tools = [Kit]
        prompts = [Greet]

        async def init(self, ctx):
            for ask in (lambda: ctx.call_tool("echo"), lambda: ctx.capability):
                with pytest.raises(ProtocolError) as raised:
                    await ask()
                errors.append(str(raised.value).rpartition(": ")[2])

    async with connect(Talking, version=version) as client:
        assert (await client.get_prompt("greet")).messages[0].content.text == "echo: hi"
    expected = ["it calls no tools", "it has no capability"]
    assert errors == (expected if version == "2025-11-25" else [])


# Overrides


@pytest.mark.parametrize("policies", [[], [DenyTools("nothing")]])
@pytest.mark.parametrize("version", VERSIONS)
async def test_an_override_answers_calls_of_handlers_too(version, policies):
    """Overrides also answer nested calls, for tools that only they know; the depth counts once."""

    class Own(House, name="own", version="1"):
        async def call_tool(self, name, args, ctx):
            if name == "made_up":
                return f"made up for {args}"
            return await super().call_tool(name, args, ctx)

    server = Own()
    server.policies.replace(policies)
    async with connect(server, version=version, handler=Ann()) as client:
        result = await client.call_tool("call", {"tool": "made_up", "given": '{"a": 1}'})
        assert result.text == "made_up: made up for {'a': 1}"
        result = await client.call_tool("narrow", {"tool": "echo", "given": '{"text": "a"}'})
        assert result.text == "a"
        assert (await client.call_tool("call", {"tool": "asks"})).text == "asks: AnnName"


# Capabilities


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_call_has_the_capability_that_it_was_made_under(version):
    """A nested call has the capability of its call, one level deeper, and cannot exceed it."""
    server = House()
    async with connect(server, version=version) as client:
        assert (await client.call_tool("narrow", {"tool": "threaded"})).text == (
            "Denied: the capability does not allow tool 'threaded'"
        )
        args = {"tool": "call", "given": '{"tool": "echo", "given": "{\\"text\\": \\"a\\"}"}'}
        assert (await client.call_tool("narrow", {**args, "depth": 2})).text == "echo: a"
        assert (await client.call_tool("narrow", {**args, "depth": 1})).text == (
            "echo: !Denied: the capability allows no deeper calls"
        )
        args["given"] = '{"tool": "threaded"}'
        assert (await client.call_tool("narrow", {**args, "depth": 2})).text == (
            "threaded: !Denied: the capability does not allow tool 'threaded'"
        )
        assert (await client.call_tool("call_on_asyncio", {"tool": "threaded"})).text == (
            "Denied: the capability does not allow tool 'threaded'"
        )


async def test_the_server_is_no_way_around_a_capability():
    """`ctx.server.call_tool` in a handler is subject to the handler's capability."""
    events = []
    server = House()
    server.telemetry.add(events.append)
    async with connect(server) as client:
        assert (await client.call_tool("escapes", {"tool": "threaded"})).text == "threaded"
        assert (await client.call_tool("narrow_escape", {"tool": "echo"})).text == ""
        assert (await client.call_tool("narrow_escape", {"tool": "threaded"})).text == (
            "Denied: the capability does not allow tool 'threaded'"
        )
    (event,) = [e for e in events if e.kind == "decision"]
    assert (event.name, event.policy, event.decision) == ("threaded", "capability", "deny")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_text_is_used_in_another_request(version):
    """A text can be used once, by the same principal, for what it allows."""
    server = House()
    async with connect(server, version=version, principal=Principal(subject="ada")) as client:
        text, other, third = [(await client.call_tool("give")).text for _ in range(3)]
        assert (await client.call_tool("use", {"text": text})).text == "used"
        again = await client.call_tool("use", {"text": text})
        assert again.text == "Denied: the capability is not valid"
        assert (await client.call_tool("use", {"text": third, "dry": False})).text == (
            "Denied: the capability demands another value of the argument 'dry'"
        )
    async with connect(server, version=version, principal=Principal(subject="bob")) as client:
        stolen = await client.call_tool("use", {"text": other})
        assert stolen.text == "Denied: the capability is not valid"
    async with connect(server, version=version, principal=Principal(subject="ada")) as client:
        assert (await client.call_tool("use", {"text": other, "tool": "threaded"})).text == (
            "Denied: the capability does not allow tool 'threaded'"
        )


@pytest.mark.parametrize(
    ("version", "replay"), [("2025-11-25", False), ("2026-07-28", False), ("2026-07-28", True)]
)
async def test_a_handler_that_runs_again_opens_its_text_again(version, replay):
    """A handler that is run again may open its text again; another request may not."""
    options = {"version": version, "replay": replay, "handler": Ann()}
    async with connect(House, **options) as client:
        text = (await client.call_tool("give")).text
        assert (await client.call_tool("use_and_ask", {"text": text})).text == "used used"
        refused = await client.call_tool("use_and_ask", {"text": text})
        assert (refused.is_error, refused.text) == (True, "Denied: the capability is not valid")


async def test_a_nested_call_may_open_a_text():
    """A nested call may open a text of its request."""
    async with connect(House) as client:
        text = (await client.call_tool("give")).text
        args = json.dumps({"text": text})
        result = await client.call_tool("call", {"tool": "use", "given": args})
        assert result.text == "use: used"
        result = await client.call_tool("call", {"tool": "use", "given": args})
        assert result.text == "use: Denied: the capability is not valid"


async def test_a_handler_on_asyncio_may_open_a_text():
    """A handler on asyncio may open a text once, as one on trio."""
    async with connect(House) as client:
        text = (await client.call_tool("give")).text
        assert (await client.call_tool("open_on_asyncio", {"text": text})).text == "used"
        refused = await client.call_tool("open_on_asyncio", {"text": text})
        assert (refused.is_error, refused.text) == (True, "Denied: the capability is not valid")


async def test_policies_see_the_whole_chain():
    """A policy sees the chain of calling tools."""

    class FromCallOnly(Policy):
        async def check(self, call, ctx):
            if call.name == "echo" and call.chain[-1:] != ("call",):
                raise PermissionError

    server = House()
    server.policies.replace([FromCallOnly()])
    async with connect(server) as client:
        assert (await client.call_tool("call_other", {"tool": "echo"})).text == "echo: "
        assert (await client.call_tool("echo")).text == "Denied: policy failed"
