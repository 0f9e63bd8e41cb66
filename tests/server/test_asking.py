"""Questions to the client: timeouts, failures, and the methods that may not ask."""

import json
import logging

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
    Resource,
    Schema,
    Server,
    Tool,
    Toolkit,
    connect,
    mcp,
)
from noizu_mcp.components import ELICIT_TIMEOUT, SAMPLE_TIMEOUT
from noizu_mcp.protocol import CLIENT_REQUESTS
from noizu_mcp.server import serve
from noizu_mcp.server.features import ROUTES
from noizu_mcp.transports import memory_pair

ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


class Name(Schema):
    """A form."""

    name: str


RAW = {"type": "object", "properties": {"name": {"type": "string"}}}
BY_HAND = InputRequest("elicitation/create", {"message": "m", "requestedSchema": RAW})


class Questions(Toolkit):
    """Tools that ask."""

    @mcp
    async def form(self, args, ctx: Context):
        answer = await ctx.elicit("m", Name)
        return answer.content.name

    @mcp(timeout=None)
    async def unlimited(self, args, ctx: Context):
        return (await ctx.elicit("m", Name)).content.name

    @mcp
    async def model(self, args, ctx: Context):
        return (await ctx.sample("m", max_tokens=1)).text

    @mcp(max_concurrency=1)
    async def hand(self, args, ctx: Context):
        given = ctx.input_responses
        return given["q"]["content"]["name"] if given else InputRequired({"q": BY_HAND}, "st")

    @mcp(inline=True)
    def inline(self, args, ctx: Context):
        return InputRequired(state="never")

    @mcp
    async def half(self, args, ctx: Context):
        """Ask in the time that is left."""
        await trio.sleep(20)
        await ctx.elicit("m", Name)
        await trio.sleep(20)


class SlowResource(Resource, uri="ask://slow"):
    """Asks and waits."""

    async def read(self, uri, ctx):
        return (await ctx.elicit("m", Name)).content.name


class HandPrompt(Prompt, name="hand"):
    """Comes back for ever."""

    async def get(self):
        return InputRequired(state="again")


class Asking(Server, name="asking", version="1"):
    tools = [Questions]
    resources = [SlowResource]
    prompts = [HandPrompt]


class Person(ClientHandler):
    """Takes its time."""

    sampling_tools = True

    def __init__(self, seconds=0.0):
        self.seconds = seconds

    async def handle_elicitation(self, params):
        await trio.sleep(self.seconds)
        return Accept({"name": "Ann"})

    async def handle_sampling(self, params):
        await trio.sleep_forever()


@pytest.mark.parametrize(
    ("tool", "seconds"),
    [("form", ELICIT_TIMEOUT), ("hand", ELICIT_TIMEOUT), ("model", SAMPLE_TIMEOUT)],
)
async def test_who_never_answers_times_out(autojump_clock, tool, seconds):
    """A question has its own timeout; the timeout of the handler is paused meanwhile."""
    async with connect(Asking, handler=Person(9999), version="2025-11-25", timeout=1000) as client:
        start = trio.current_time()
        result = await client.call_tool(tool)
        assert trio.current_time() - start == pytest.approx(seconds)
        assert result.is_error
        assert result.content[0].text.startswith("The client did not answer in time: ")
        await client.ping()


async def test_a_resource_that_waits_in_vain(autojump_clock):
    """A resource result has no `isError`, so a timed-out question becomes a protocol error."""
    async with connect(Asking, handler=Person(9999), version="2025-11-25", timeout=1000) as client:
        with pytest.raises(McpError, match="did not answer in time") as caught:
            await client.read_resource("ask://slow")
        assert caught.value.code == -32603


@ERAS
async def test_a_slow_person_is_no_slow_handler(autojump_clock, version):
    """An answer may take 200 seconds although the timeout of the handler is 30 seconds."""
    async with connect(Asking, handler=Person(200), version=version, timeout=1000) as client:
        for tool in ("form", "unlimited", "hand"):
            assert (await client.call_tool(tool)).content[0].text == "Ann"


async def test_the_clock_goes_on_with_what_was_left(autojump_clock):
    """Twenty seconds before the question and ten after it use up a timeout of thirty."""
    async with connect(Asking, handler=Person(200), version="2025-11-25", timeout=1000) as client:
        start = trio.current_time()
        result = await client.call_tool("half")
        assert result.content[0].text == "Tool execution timed out"
        assert trio.current_time() - start == pytest.approx(230)


@pytest.mark.parametrize("parked", [0, 10])
@pytest.mark.parametrize("tool", ["data", "typed"])
async def test_a_handler_may_change_its_arguments(tool, parked):
    """The answer to its question still belongs to the same call."""

    class Changing(Toolkit):
        @mcp(input_schema={"type": "object"})
        async def data(self, args, ctx: Context):
            args.clear()
            return (await ctx.elicit("m", Name)).content.name

        @mcp
        async def typed(self, names: list, ctx: Context):
            names.append((await ctx.elicit("first", Name)).content.name)
            names.append((await ctx.elicit("second", Name)).content.name)
            return ", ".join(names)

    class Changes(Server, name="changes", version="1", limits=Limits(parked=parked)):
        tools = [Changing]

    async with connect(Changes(), handler=Person(), version="2026-07-28") as client:
        result = await client.call_tool(tool, {"names": ["Bob"]})
        assert result.content[0].text == ("Ann" if tool == "data" else "Bob, Ann, Ann")


@ERAS
async def test_what_cannot_ask(version, caplog):
    """An inline handler must not wait; a prompt that ignores its answers exceeds the rounds."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")
    async with connect(Asking, handler=Person(), version=version) as client:
        result = await client.call_tool("inline")
        assert result.content[0].text == "Tool execution failed"
        with pytest.raises(McpError, match="50 rounds"):
            await client.get_prompt("hand")


class Stubborn(ClientHandler):
    """Never fills in the form that asks for a name, and any other one."""

    def __init__(self):
        self.asked = []

    async def handle_elicitation(self, params):
        self.asked.append(params["message"])
        return Accept({"name": 5 if params["message"] == "name" else "Ann"})


class Patient(Server, name="patient", version="1"):
    """Has something else to ask."""

    class Ask(Tool):
        async def call(self, args, ctx: Context):
            first = (await ctx.elicit("first", Name)).content.name
            try:
                await ctx.elicit("name", Name)
            except McpError as error:
                last = (await ctx.elicit("last", Name)).content.name
                return f"{first}, {last}: {error.message}"

    tools = [Ask]


@ERAS
async def test_a_handler_may_go_on_without_an_answer(version):
    """After four invalid answers the question raises in the handler, also in every later round."""
    handler = Stubborn()
    async with connect(Patient, handler=handler, version=version) as client:
        result = await client.call_tool("ask")
    assert result.content[0].text == 'Ann, Ann: No valid answer to "name" in 4 tries'
    assert handler.asked == ["first", *["name"] * 4, "last"]


class Everywhere(Server, name="everywhere", version="1"):
    """Asks where nobody may."""

    def __init__(self):
        self.said = []

    async def _try(self, ctx):
        for ask in (lambda: ctx.elicit("m", Name), lambda: ctx.step(len, "x")):
            try:
                await ask()
            except Exception as error:
                self.said.append(f"{type(error).__name__}: {error}")

    async def init(self, ctx):
        await self._try(ctx)
        try:
            await ctx.start_task()
        except Exception as error:
            self.said.append(f"{type(error).__name__}: {error}")

    async def list_tools(self, cursor, ctx):
        await self._try(ctx)
        return []

    async def complete(self, ref, argument, prefix, ctx):
        await self._try(ctx)
        return []

    async def call_tool(self, name, args, ctx):
        if name == "form":
            return (await ctx.elicit("m", Name)).content.name
        given = ctx.input_responses
        return given["q"]["content"]["name"] if given else InputRequired({"q": BY_HAND})


@ERAS
async def test_only_tools_prompts_and_resources_ask(version):
    """On 2026-07-28 only these methods can return questions, so no other method asks in any era."""
    server = Everywhere()
    async with connect(server, handler=Person(), version=version) as client:
        assert await client.list_tools() == []
        await client.complete({"type": "ref/prompt", "name": "p"}, "a", "v")
    refused = "LocalProtocolError: only tools, prompts and resources can ask, or run steps"
    begin = (
        "LocalProtocolError: init, and the end of a session, belong to no request:"
        " there is nobody to ask"
    )
    task = "LocalProtocolError: only a tool with starts_task=True begins a task by itself"
    expected = [begin, begin, task] if version == "2025-11-25" else []
    assert server.said == [*expected, *([refused] * 4)]


@ERAS
async def test_an_override_asks_as_a_tool_does(version):
    """An override can ask with `ctx` and by hand, and gets an error if the client cannot answer."""
    async with connect(Everywhere, handler=Person(), version=version) as client:
        for tool in ("form", "hand"):
            assert (await client.call_tool(tool)).content[0].text == "Ann"
    async with connect(Everywhere, version="2025-11-25") as client:
        for tool in ("form", "hand"):
            result = await client.call_tool(tool)
            assert result.is_error
            text = "Capability not supported by the client: elicitation"
            assert result.content[0].text == text


async def test_a_client_that_goes_away_is_no_crash(caplog):
    """The handler ends when its client disconnects, and no traceback is logged."""
    caplog.set_level(logging.INFO, "noizu_mcp")
    ours, theirs = memory_pair()
    asked = trio.Event()

    class Away(ClientHandler):
        async def handle_elicitation(self, params):
            asked.set()
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:

        async def run():
            await serve(Asking(), theirs, transport="memory")

        nursery.start_soon(run)
        async with (
            connect(ours, handler=Away(), version="2025-11-25") as client,
            trio.open_nursery() as calls,
        ):
            calls.start_soon(client.call_tool, "form")
            with trio.fail_after(60):
                await asked.wait()
            calls.start_soon(client.read_resource, "ask://slow")
            await client.ping()
            await ours.aclose()
            calls.cancel_scope.cancel()
    assert caplog.records == []


class Failing(Tool):
    """Fails on its way out."""

    async def call(self, args, ctx: Context):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._fail)
            await ctx.report_progress(1)
            await trio.sleep_forever()

    async def _fail(self):
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("on the way out")


class Failures(Server, name="failures", version="1"):
    """Has a tool, and a session, that fail while they are cancelled."""

    tools = [Failing]

    async def init(self, ctx):
        if ctx.client_info.name == "waits":
            await Failing().call({}, ctx)


@pytest.mark.parametrize("where", ["call", "init"])
async def test_failing_while_the_server_ends_is_logged_only(where, caplog):
    """A failure during the cancellation of everything is logged, and the server ends normally."""
    from noizu_mcp.types import Implementation

    ours, theirs = memory_pair()
    server = Failures()
    async with trio.open_nursery() as nursery:

        async def run():
            await serve(server, theirs, transport="memory", grace=0)

        nursery.start_soon(run)
        info = Implementation("waits" if where == "init" else "calls", "1")
        async with connect(ours, version="2025-11-25", client_info=info) as client:
            if where == "init":
                await client.ping()
            else:
                started = trio.Event()
                async with trio.open_nursery() as calls:

                    async def call():
                        await client.call_tool("failing", progress=lambda _: started.set())

                    calls.start_soon(call)
                    with trio.fail_after(60):
                        await started.wait()
                    await ours.aclose()
                    calls.cancel_scope.cancel()
    assert any("failed" in record.getMessage() for record in caplog.records)


async def test_failing_in_an_array_while_the_server_ends(caplog):
    """A failure during cancellation is only logged, also for requests of a batch (2025-03-26)."""
    ours, theirs = memory_pair()

    def message(method, id_=None, **params):
        made = {"jsonrpc": "2.0", "method": method, "params": params}
        return made if id_ is None else {**made, "id": id_}

    async def send(value):
        await ours.send([json.dumps(value).encode()])

    async with trio.open_nursery() as nursery:

        async def run():
            await serve(Failures(), theirs, transport="memory", grace=0)

        nursery.start_soon(run)
        info = {"name": "raw", "version": "0"}
        version = "2025-03-26"
        await send(
            message("initialize", 1, protocolVersion=version, capabilities={}, clientInfo=info)
        )
        await ours.receive()
        await send(message("notifications/initialized"))
        call = message("tools/call", 2, name="failing", _meta={"progressToken": 1})
        await send([call, message("ping", 3)])
        with trio.fail_after(60):
            while b"notifications/progress" not in b"".join(
                [each.data for each in await ours.receive()]
            ):
                pass
        await ours.aclose()
    assert "tools/call failed" in [record.getMessage() for record in caplog.records]


def test_every_method_has_its_route():
    """Each client method has a route that serves or refuses it."""
    assert ROUTES.keys() == CLIENT_REQUESTS.keys()


async def test_twins_that_change_places(autojump_clock):
    """Two tasks that ask the same question get their answers, in whichever order they ask."""
    runs: list[int] = []
    asked: list[str] = []

    class Answer(Schema):
        name: str

    class Twins(Tool):
        """Ask from two tasks; from the third run on the other one comes first."""

        async def call(self, args, ctx: Context) -> str:
            runs.append(1)
            early = len(runs) < 3
            got = {}

            async def first():
                if not early:
                    await trio.sleep(0.1)
                got["first"] = (await ctx.elicit("same", Answer)).content.name
                got["more"] = (await ctx.elicit("more", Answer)).content.name

            async def second():
                if early:
                    await trio.sleep_forever()
                got["second"] = (await ctx.elicit("same", Answer)).content.name

            async with trio.open_nursery() as nursery:
                nursery.start_soon(first)
                nursery.start_soon(second)
            return " ".join(sorted(got))

    class Twin(Server, name="twin", version="1"):
        tools = [Twins]

    class Person(ClientHandler):
        async def handle_elicitation(self, params):
            asked.append(params["message"])
            return Accept({"name": params["message"]})

    async with connect(Twin, handler=Person(), version="2026-07-28", replay=True) as client:
        result = await client.call_tool("twins")
    assert result.content[0].text == "first more second"
    assert asked == ["same", "more", "same"]
