"""A server behind a `Remote` has the same answers, across eras."""

import re
from contextlib import AsyncExitStack

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from noizu_mcp import (
    Accept,
    Annotations,
    Cancel,
    ClientHandler,
    Content,
    Context,
    Decline,
    Icon,
    InputRequest,
    InputRequired,
    McpError,
    Mount,
    PromptMessage,
    Remote,
    ResourceContents,
    ResourceNotFound,
    Schema,
    Server,
    ToolError,
    Toolkit,
    ToolResult,
    connect,
    mcp,
    resource,
)
from noizu_mcp.testing import ScriptedHandler
from noizu_mcp.types import Principal, Reference

from .conftest import front_of

OLD, NEW = "2025-11-25", "2026-07-28"
#: The revision of the client, and that of the server behind the front.
ERAS = pytest.mark.parametrize(
    ("front", "back"), [(NEW, NEW), (NEW, OLD), (OLD, NEW), (OLD, OLD), ("2025-06-18", NEW)]
)


class Form(Schema):
    """A form."""

    name: str


class Kit(Toolkit):
    """Tools of every kind."""

    entered = None
    left = None

    @mcp(
        title="Echo",
        annotations=Annotations(read_only_hint=True),
        icons=[Icon("https://x.test/i.png")],
        meta={"com.example/key": [1]},
    )
    async def echo(self, text: str) -> str:
        """Return the text.

        Args:
            text: Any text.
        """
        return text

    @mcp
    async def structured(self) -> dict[str, int]:
        return {"a": 1}

    @mcp
    async def rich(self) -> ToolResult:
        inside = ResourceContents("db://x/1", "text/plain", text="row", meta={"k": 1})
        return ToolResult(
            [
                Content.text("t", meta={"com.example/m": 2}),
                Content.image(b"\x00", "image/png"),
                Content.resource_link("db://x/1", "one"),
                Content.resource(inside),
            ],
            meta={"com.example/r": 3},
            extra={"com.example/unknown": True},
        )

    @mcp
    async def fail(self) -> str:
        raise ToolError("do this instead")

    @mcp
    async def refuse(self) -> str:
        raise McpError(-32000, "refused", {"why": 1})

    @mcp
    async def crash(self) -> str:
        raise ZeroDivisionError

    @mcp
    async def work(self, ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await ctx.info("said", logger="up")
        await ctx.debug("whispered")
        return str(dict(ctx.meta).get("com.example/in"))

    @mcp
    async def hang(self) -> str:
        Kit.entered.set()
        try:
            await trio.sleep_forever()
        finally:
            Kit.left.set()

    @mcp
    async def ask(self, ctx: Context) -> str:
        answer = await ctx.elicit("who?", Form)
        return f"accept {answer.content.name}" if isinstance(answer, Accept) else answer.action

    @mcp
    async def ask_all(self, ctx: Context) -> str:
        url = await ctx.elicit_url("log in", "https://x.test/login")
        said = await ctx.sample("hello", max_tokens=5)
        roots = await ctx.list_roots()
        return f"{url.action} {said.text} {[root.uri for root in roots]}"

    @mcp
    async def by_hand(self, ctx: Context) -> str | InputRequired:
        if ctx.request_state is None:
            form = {"type": "object", "properties": {"name": {"type": "string"}}}
            params = {"message": "who?", "requestedSchema": form}
            return InputRequired({"q": InputRequest("elicitation/create", params)}, "mine")
        return f"{ctx.request_state} {ctx.input_responses['q']['content']['name']}"

    @mcp
    async def who(self, ctx: Context) -> str:
        return str(ctx.auth)


async def config() -> str:
    """The configuration."""
    return "cfg"


async def row(id: str, ctx: Context) -> str:  # noqa: A002 - the name of the variable
    if id == "asks":
        return str(await ctx.elicit("row?", Form))
    if id == "gone":
        raise ResourceNotFound
    return f"row {id}"


async def greet(who: str, ctx: Context) -> list:
    """Greet somebody."""
    if who == "asks":
        return [PromptMessage.user((await ctx.elicit("whom?", Form)).content.name)]
    link = Content.resource_link("db://x/1", "one")
    inside = Content.resource(ResourceContents("db://x/2", text="two"))
    return [PromptMessage.user(f"Hi {who}"), PromptMessage.user(link), PromptMessage.user(inside)]


class Up(Server, name="up", version="1"):
    """The server behind the front."""

    tools = [Kit]
    resources = [
        resource(config, uri="cfg://app", mime_type="text/x-cfg", subscribable=True),
        resource(row, uri="db://x/{id}"),
    ]
    prompts = [greet]

    async def complete(self, ref, argument, prefix, ctx):
        return [f"{ref.name or ref.uri} {argument} {prefix} {dict(ctx.completion_arguments)}"]


@pytest.fixture(autouse=True)
def events():
    Kit.entered, Kit.left = trio.Event(), trio.Event()


def unprefixed(value):
    """Return a value with the names and URIs of the server itself."""
    if isinstance(value, dict):
        return {key: unprefixed(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [unprefixed(each) for each in value]
    return value.removeprefix("up_").removeprefix("up+") if isinstance(value, str) else value


CALLS = [
    ("echo", {"text": "hi"}),
    ("echo", {}),
    ("structured", {}),
    ("rich", {}),
    ("fail", {}),
    ("refuse", {}),
    ("crash", {}),
]


async def outcome(work):
    """Return the result of some work, or its error, in wire form."""
    try:
        return (await work).to_wire()
    except McpError as error:
        return (error.code, error.message, error.data)


@ERAS
async def test_answers_equal_the_servers_answers(behind, front, back):
    """Every list and every answer is the server's own, except for prefixes."""
    async with (
        connect(Up, version=front) as direct,
        connect(behind(Up, version=back), version=front) as client,
    ):
        for kind in ("tools", "resources", "resource_templates", "prompts"):
            expected = [each.to_wire() for each in await getattr(direct, f"list_{kind}")()]
            found = [each.to_wire() for each in await getattr(client, f"list_{kind}")()]
            assert unprefixed(found) == expected
            assert found != expected
        for name, arguments in CALLS:
            expected = await outcome(direct.call_tool(name, arguments))
            assert unprefixed(await outcome(client.call_tool(f"up_{name}", arguments))) == (
                unprefixed(expected)
            )
        for uri in ("cfg://app", "db://x/7", "db://x/gone", "no://where"):
            expected = await outcome(direct.read_resource(uri))
            assert unprefixed(await outcome(client.read_resource(f"up+{uri}"))) == (
                unprefixed(expected)
            )
        for arguments in ({"who": "me"}, {}):
            expected = await outcome(direct.get_prompt("greet", arguments))
            found = await outcome(client.get_prompt("up_greet", arguments))
            assert unprefixed(found) == unprefixed(expected)


async def test_uris_are_mapped(behind):
    """URIs in results are rewritten so that the client can read them."""
    async with connect(behind(Up)) as client:
        result = await client.call_tool("up_rich")
        message = await client.get_prompt("up_greet", {"who": "me"})
        (contents,) = (await client.read_resource("up+db://x/1")).contents

    assert [block.uri for block in result.content if block.type == "resource_link"] == [
        "up+db://x/1"
    ]
    assert result.content[-1].resource.uri == "up+db://x/1"
    assert result.content[-1].resource.meta == {"k": 1}
    assert result.extra == {"com.example/unknown": True}
    assert message.messages[1].content.uri == "up+db://x/1"
    assert message.messages[2].content.resource.uri == "up+db://x/2"
    assert contents.uri == "up+db://x/1"


async def test_without_a_prefix():
    """Names and URIs are unchanged; a URI that is not listed is not found."""
    async with connect(front_of(Remote(Up))) as client:
        assert (await client.call_tool("echo", {"text": "a"})).text == "a"
        assert (await client.call_tool("rich")).content[2].uri == "db://x/1"
        assert (await client.read_resource("db://x/7")).contents[0].text == "row 7"
        with pytest.raises(McpError, match="Resource not found"):
            await client.read_resource("no://where")


@ERAS
async def test_progress_and_log(behind, front, back):
    """Progress goes to its call, and log messages of the requested level to its caller."""
    handler, seen = ScriptedHandler(), []
    async with connect(behind(Up, version=back), version=front, handler=handler) as client:
        await client.set_log_level("info")
        meta = {"com.example/in": "carried", "io.modelcontextprotocol/odd": 1}
        for _ in range(2):
            result = await client.request(
                "tools/call",
                {"name": "up_work", "arguments": {}, "_meta": meta},
                progress=lambda each: seen.append((each.progress, each.total, each.message)),
            )
        await wait_all_tasks_blocked()

    assert result["content"][0]["text"] == "carried"
    assert seen == [(1, 2, "half")] * 2
    told = [params for method, params in handler.notifications if method.endswith("/message")]
    assert [(each["level"], each["data"], each["logger"]) for each in told] == [
        ("info", "said", "up")
    ] * 2


@ERAS
async def test_cancellation(behind, front, back):
    """A call that the client cancels is cancelled at the server."""
    async with connect(behind(Up, version=back), version=front) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "up_hang")
            await Kit.entered.wait()
            nursery.cancel_scope.cancel()
        with trio.fail_after(60):
            await Kit.left.wait()


REPLAY = pytest.mark.parametrize("replay", [False, True])


@ERAS
@REPLAY
async def test_questions(behind, front, back, replay):
    """Questions reach the caller, and answers the server, in any combination of eras."""
    handler = ScriptedHandler(
        elicitation={"log in": Accept(None), "": {"name": "Bo"}},
        sampling=["a text"],
        roots=["file:///srv"],
    )
    modes = front != "2025-06-18"
    async with connect(
        behind(Up, version=back), version=front, handler=handler, replay=replay
    ) as client:
        assert (await client.call_tool("up_ask")).text == "accept Bo"
        assert (await client.call_tool("up_by_hand")).text == "mine Bo"
        if modes:
            text = "accept a text ['file:///srv']"
            assert (await client.call_tool("up_ask_all")).text == text
        assert "Bo" in (await client.read_resource("up+db://x/asks")).contents[0].text
        assert (await client.get_prompt("up_greet", {"who": "asks"})).messages[0].content.text == (
            "Bo"
        )


@ERAS
@pytest.mark.parametrize("answer", [Decline(), Cancel()])
async def test_refused_questions(behind, front, back, answer):
    """A caller may decline."""
    handler = ScriptedHandler(elicitation={"": answer})
    async with connect(behind(Up, version=back), version=front, handler=handler) as client:
        assert (await client.call_tool("up_ask")).text == answer.action


@ERAS
async def test_callers_that_cannot_be_asked(behind, front, back):
    """A caller without the capability gets an error, as from the server itself."""
    async with connect(behind(Up, version=back), version=front) as client:
        found = await outcome(client.call_tool("up_ask"))
        if front == NEW:
            assert found[0] == -32021
        else:
            assert found["isError"]
        assert (await client.call_tool("up_echo", {"text": "on"})).text == "on"


async def test_errors_of_the_caller(behind):
    """The server gets the error with which the caller answers a question."""
    handler = ScriptedHandler(elicitation={"": McpError(-32000, "busy")})
    async with connect(behind(Up, version=OLD), version=OLD, handler=handler) as client:
        result = await client.call_tool("up_ask")

    assert result.text == "The client refused elicitation/create: busy (-32000)"


async def test_a_caller_that_does_not_answer(behind, mock_clock):
    """The timeout of a question applies to the server, too."""
    asked = trio.Event()

    class Silent(ClientHandler):
        async def handle_elicitation(self, params):
            asked.set()
            await trio.sleep_forever()

    async with (
        connect(behind(Up, version=OLD), version=OLD, handler=Silent(), timeout=10_000) as client,
        trio.open_nursery() as nursery,
    ):

        async def call():
            result = await client.call_tool("up_ask")
            assert result.is_error
            assert "not" in result.text

        nursery.start_soon(call)
        await asked.wait()
        await wait_all_tasks_blocked()
        mock_clock.jump(301)


@pytest.mark.parametrize("back", [OLD, NEW])
async def test_completion(behind, back):
    """The server completes arguments and variables, with the values of the others."""
    async with connect(behind(Up, version=back)) as client:
        of_prompt = await client.complete(Reference.prompt("up_greet"), "who", "B", {"x": "1"})
        of_template = await client.complete(Reference.resource("up+db://x/{id}"), "id", "7")

    assert of_prompt.values == ("greet who B {'x': '1'}",)
    assert of_template.values == ("db://x/{id} id 7 {}",)


async def test_a_completion_cannot_ask(behind):
    """A question during a completion is refused."""

    class Odd(Up, name="odd", version="1"):
        async def complete(self, ref, argument, prefix, ctx):
            with pytest.raises(McpError, match="only tools, prompts and resources can ask"):
                await odd_session(ctx)
            return ["fine"]

    async def odd_session(ctx):
        return await ctx.dispatcher.send_request(
            ctx.dispatcher.peer.ledger.open("roots/list", None)
        )

    handler = ScriptedHandler(roots=[])
    async with connect(behind(Odd, version=OLD), handler=handler) as client:
        found = await client.complete(Reference.prompt("up_greet"), "who", "B")

    assert found.values == ("fine",)


async def test_callers_stay_here(behind):
    """The identity of a caller is not sent to the server."""
    caller = Principal(subject="alice")
    async with connect(behind(Up), principal=caller) as client:
        assert (await client.call_tool("up_who")).text == "None"


async def test_a_call_is_one_round_trip(behind):
    """Once the lists are known, only the call is sent to the server."""
    seen = []
    front = behind(Up, tap=lambda way, data: seen.append((way, data)))
    async with connect(front) as client:
        await client.list_tools()
        await wait_all_tasks_blocked()
        seen.clear()
        await client.call_tool("up_echo", {"text": "a"})
        assert [b'"tools/call"' in data for _, data in seen] == [True, False]


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_remote_in_a_mounted_server(version, autojump_clock):
    """A server with a `Remote` can be mounted; questions and updates pass both."""
    up = Up()
    front = front_of(Mount(front_of(Remote(up, prefix="up")), prefix="inner"), Mount(Up))
    handler = ScriptedHandler(elicitation={"": {"name": "Bo"}})
    async with connect(front, handler=handler, version=version) as client:
        assert (await client.call_tool("inner_up_echo", {"text": "a"})).text == "a"
        assert (await client.call_tool("inner_up_ask")).text == "accept Bo"
        uri = "inner+up+cfg://app"
        async with AsyncExitStack() as stack:
            if version == NEW:
                await stack.enter_async_context(client.listen(uris=[uri, "cfg://app"]))
            else:
                await client.subscribe(uri)
                await client.subscribe("cfg://app")
            up.notify_resource_updated("cfg://app")
            await trio.sleep(10)
        if version == OLD:
            await client.unsubscribe(uri)
            await client.unsubscribe("cfg://app")
        told = [params["uri"] for name, params in handler.notifications if "updated" in name]
        assert told == [uri]
        up.notify_resource_updated("cfg://app")
        await trio.sleep(10)
        assert len([name for name, _ in handler.notifications if "updated" in name]) == 1


async def test_two_servers_may_share_a_remote(behind):
    """Each front that is served has its own connection, which ends with it."""
    front = behind(Up)
    async with connect(front) as first, trio.open_nursery() as nursery:
        async with connect(front) as second:
            assert (await second.call_tool("up_echo", {"text": "b"})).text == "b"
            nursery.start_soon(first.call_tool, "up_hang")
            await Kit.entered.wait()
        assert (await first.call_tool("up_echo", {"text": "a"})).text == "a"
        assert not Kit.left.is_set()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("call_timeout", -1, "call_timeout must be seconds above 0, or None for no limit, got -1"),
        ("list_timeout", "5", "list_timeout must be seconds above 0, or None for no limit"),
        ("connections", 0, "connections must be a whole number above 0, got 0"),
        ("connections", 1.5, "connections must be a whole number above 0, got 1.5"),
    ],
)
def test_numbers_that_cannot_be(option, value, text):
    """They are refused where they are written, not in the first call."""
    with pytest.raises(ValueError, match=re.escape(text)):
        Remote("no.py", **{option: value})
