"""Policies: they run once for each run of a handler, however it is called, and fail closed."""

import asyncio
import contextvars
import logging
import threading

import pytest
import trio
import trio.lowlevel

from noizu_mcp import (
    Accept,
    Cache,
    ClientHandler,
    Completion,
    Context,
    DefinitionError,
    Limits,
    McpError,
    Mount,
    Prompt,
    PromptMessage,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Tool,
    Toolkit,
    argument,
    connect,
    mcp,
)
from noizu_mcp.policies import Denied, DenyTools, Policy
from noizu_mcp.testing import connect as open_client
from noizu_mcp.types import Principal, Reference, RequireScopes

from .passing_on import PassingOn
from .tasking import KNOWS, result_of, start

VERSIONS = ["2025-11-25", "2026-07-28"]
DENIED = -31404
WRONG = (
    lambda call, ctx: {}["secret"],
    lambda call, ctx: False,
    lambda call, ctx: trio.lowlevel.checkpoint(),  # noqa: ASYNC105 - what it returns is not awaited
)


class Name(Schema):
    name: str


class Kit(Toolkit):
    """Notes which of its tools have run."""

    def __init__(self):
        self.ran = []

    @mcp
    async def echo(self, text: str = "") -> str:
        self.ran.append("echo")
        return text

    @mcp
    def threaded(self) -> str:
        self.ran.append("threaded")
        return "threaded"

    @mcp(inline=True)
    def inline(self) -> str:
        self.ran.append("inline")
        return "inline"

    @mcp(task="optional")
    async def task(self) -> str:
        self.ran.append("task")
        return "task"

    @mcp(hidden=True)
    async def secret(self) -> str:
        self.ran.append("secret")
        return "secret"

    @mcp
    async def asks(self, ctx: Context) -> str:
        answer = await ctx.elicit("Name?", Name)
        self.ran.append("asks")
        return answer.content.name

    @mcp
    async def calls(self, tool: str, ctx: Context) -> str:
        return (await ctx.call_tool(tool)).text

    @mcp
    async def calls_server(self, tool: str, ctx: Context) -> str:
        return (await ctx.server.call_tool(tool, {}, ctx)).text

    @mcp
    async def reads(self, uri: str, ctx: Context) -> str:
        return (await ctx.read_resource(uri)).contents[0].text


class Page(Resource, uri="page://one"):
    async def read(self, uri, ctx):
        return "one"


class Attic(Resource, uri="attic://one", hidden=True):
    async def read(self, uri, ctx):
        return "attic"


class Row(ResourceTemplate, uri_template="row://{number}"):
    async def read(self, uri, args, ctx):
        return args.number

    async def complete(self, variable, prefix, ctx):
        return ["1", "2"]


class Cellar(ResourceTemplate, uri_template="cellar://{number}", hidden=True):
    async def read(self, uri, args, ctx):
        return args.number


class Greet(Prompt):
    class Arguments(Schema):
        name: str = argument(complete=["Ann", "Bob"])

    async def get(self, args, ctx):
        return [PromptMessage.user(f"Hello {args.name}")]


class Whisper(Prompt, hidden=True):
    async def get(self, args, ctx):
        return [PromptMessage.user("psst")]


class House(Server, name="house", version="1"):
    tools = [Kit]
    resources = [Page, Attic, Row, Cellar]
    prompts = [Greet, Whisper]


class Refusing(Policy):
    """Refuses everything, and notes what it was asked."""

    def __init__(self, *names):
        self.names = names
        self.calls = []

    async def check(self, call, ctx):
        self.calls.append(call._replace(arguments=dict(call.arguments)))
        if not self.names or call.name in self.names:
            raise Denied("not today")


def made(*policies, kit=None, base=House):
    """Make a server with these policies and its own kit."""
    kit = kit or Kit()

    class Made(base, name="made", version="1", task_poll_interval=0.1):
        tools = [kit]

    server = Made()
    server.policies.replace(policies)
    return server, kit


async def failure(awaitable):
    """Return the code and the text of the error that a client gets."""
    with pytest.raises(McpError) as raised:
        await awaitable
    return raised.value.code, raised.value.message


# Every way to a handler


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tool", ["echo", "threaded", "inline"])
async def test_a_tool_is_refused_with_the_reason(tool, version):
    """The model gets the reason, and the handler does not run."""
    server, kit = made(Refusing())
    async with connect(server, version=version) as client:
        result = await client.call_tool(tool)
    assert (result.is_error, result.text, kit.ran) == (True, "Denied: not today", [])


@pytest.mark.parametrize("version", VERSIONS)
async def test_prompts_resources_and_completions_are_refused_with_an_error(version):
    """The same hook is called with the kind of the component, and refusals are errors."""
    policy = Refusing()
    server, _ = made(policy)
    refused = DENIED, "Denied: not today"
    async with connect(server, version=version) as client:
        assert await failure(client.get_prompt("greet", {"name": "Ann"})) == refused
        assert await failure(client.read_resource("page://one")) == refused
        assert await failure(client.read_resource("row://7")) == refused
        of_prompt = Reference("ref/prompt", name="greet")
        assert await failure(client.complete(of_prompt, "name", "A")) == refused
        of_row = Reference("ref/resource", uri="row://{number}")
        assert await failure(client.complete(of_row, "number", "")) == refused
    assert [(call.kind, call.name, dict(call.arguments)) for call in policy.calls] == [
        ("prompt", "greet", {"name": "Ann"}),
        ("resource", "page://one", {}),
        ("resource", "row://7", {"number": "7"}),
        ("completion", "greet", {"argument": "name", "value": "A"}),
        ("completion", "row://{number}", {"argument": "number", "value": ""}),
    ]
    assert [call.registered for call in policy.calls][2] == "row://{number}"
    assert {call.tool for call in policy.calls} == {None}


class Note(ResourceTemplate, uri_template="note://{name}"):
    async def read(self, uri, args, ctx):
        return f"{uri} {args.name}"


class Odd(Resource, uri="odd:%61"):
    def read(self, uri, ctx):
        return uri


class Reader(Tool, input={"uri": str}):
    async def call(self, args, ctx):
        return (await ctx.read_resource(args.uri)).contents[0].text


class Library(Server, name="library", version="1"):
    tools = [Reader]
    resources = [Note, Odd]


class Gate(Library, name="gate", version="1"):
    """Has an override between policies and resources."""

    async def read_resource(self, uri, ctx):
        return await super().read_resource(uri.replace("/alias", "/%73ecret"), ctx)


def alone(cls):
    server = cls()
    return server, server


def mounted(cls):
    inner = cls()

    class Outer(Server, name="outer", version="1"):
        providers = [Mount(inner)]

    return Outer(), inner


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("cls", [Library, Gate])
@pytest.mark.parametrize("make", [alone, mounted])
@pytest.mark.parametrize("by_name", [True, False])
async def test_no_spelling_of_a_uri_passes_a_policy(version, cls, make, by_name):
    """A policy gets the URI and its decoded variable, from requests, handlers and overrides."""

    class NoSecrets(Policy):
        kinds = {"resource"}

        def check(self, call, ctx):
            name = call.name == "note://secret"
            if name if by_name else call.arguments.get("name") == "secret":
                raise Denied("secret")

    server, owner = make(cls)
    owner.policies.replace([NoSecrets()])
    spellings = ["note://secret", "note://s%65cret", "NOTE://%73ecret", "note://%73%65cret"]
    spellings += ["note://alias"] if cls is Gate else []
    async with connect(server, version=version) as client:
        for uri in spellings:
            assert await failure(client.read_resource(uri)) == (DENIED, "Denied: secret")
            assert (await client.call_tool("reader", {"uri": uri})).is_error
        contents = (await client.read_resource("NOTE://a%7e%2fb")).contents[0]
        assert contents.text == "note://a~%2Fb a~/b"
        # As it was registered, whatever its normal form is.
        assert (await client.read_resource("odd:%61")).contents[0].text == "odd:%61"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_policy_that_allows_changes_nothing(version):
    """Every feature answers in the same way with a policy that allows everything."""
    server, _ = made(Refusing("nothing"))
    async with connect(server, version=version) as client:
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"
        assert (await client.call_tool("echo", {"text": 3})).is_error
        assert (await client.get_prompt("greet", {"name": "Ann"})).messages[0].role == "user"
        assert (await client.read_resource("page://one")).contents[0].text == "one"
        of_prompt = Reference("ref/prompt", name="greet")
        assert (await client.complete(of_prompt, "name", "A")).values == ("Ann",)
        assert await failure(client.call_tool("nothing_there")) == (
            -32602,
            "Unknown tool: nothing_there",
        )


async def test_a_task_does_not_begin():
    """A task whose call is refused is not created."""
    server, kit = made(Refusing())
    async with connect(server, capabilities=KNOWS) as client:
        assert (await client.call_tool("task")).text == "Denied: not today"
    assert kit.ran == []


async def test_a_task_is_asked_about_once():
    """The policy runs in the request, and not again in the task."""
    policy = Refusing("nothing")
    for base in (House, Passing):
        server, kit = made(policy, base=base)
        async with connect(server, capabilities=KNOWS) as client:
            task = await start(client, "task")
            await result_of(client, task)
        assert kit.ran == ["task"]
    assert [call.name for call in policy.calls] == ["task", "task"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_calls_of_handlers_are_asked_about(version):
    """Nested calls of each kind are checked; the chain names the calling tools."""
    policy = Refusing("echo", "page://one")
    server, kit = made(policy)
    async with connect(server, version=version) as client:
        assert (await client.call_tool("calls", {"tool": "echo"})).text == "Denied: not today"
        result = await client.call_tool("calls_server", {"tool": "echo"})
        assert result.text == "Denied: not today"
        result = await client.call_tool("reads", {"uri": "page://one"})
        assert (result.is_error, result.text) == (True, "Denied: not today")
        assert (await client.call_tool("reads", {"uri": "row://7"})).text == "7"
        assert (await client.call_tool("calls", {"tool": "threaded"})).text == "threaded"
    assert kit.ran == ["threaded"]
    assert [(call.name, call.chain, call.depth) for call in policy.calls] == [
        ("calls", (), 0),
        ("echo", ("calls",), 1),
        ("calls_server", (), 0),
        ("echo", ("calls_server",), 1),
        ("reads", (), 0),
        ("page://one", ("reads",), 1),
        ("reads", (), 0),
        ("row://7", ("reads",), 1),
        ("calls", (), 0),
        ("threaded", ("calls",), 1),
    ]


class Passing(PassingOn, House, name="passing", version="1"):
    """Overrides everything, and passes everything on."""


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_override_that_passes_a_call_on_is_asked_about_once(version):
    """A call that an override passes on is checked once, so that rates count it once."""
    policy = Refusing("nothing")
    server, _ = made(policy, base=Passing)
    async with connect(server, version=version) as client:
        await client.call_tool("echo", {"text": "a"})
        await client.call_tool("calls", {"tool": "echo"})
        await client.get_prompt("greet", {"name": "Ann"})
        await client.read_resource("page://one")
        await client.call_tool("reads", {"uri": "page://one"})
        await client.complete(Reference("ref/prompt", name="greet"), "name", "A")
        await client.complete(Reference("ref/resource", uri="row://{number}"), "number", "")
    assert [call.name for call in policy.calls] == [
        *("echo", "calls", "echo", "greet", "page://one", "reads", "page://one", "greet"),
        "row://{number}",
    ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_override_does_not_run_if_the_call_is_refused(version):
    """An override is the author's code, so it does not run if the call is refused."""
    server, kit = made(Refusing(), base=Passing)
    async with connect(server, version=version) as client:
        assert (await client.call_tool("echo")).text == "Denied: not today"
        assert (await failure(client.get_prompt("greet", {"name": "A"})))[0] == DENIED
        assert (await failure(client.read_resource("page://one")))[0] == DENIED
        of_prompt = Reference("ref/prompt", name="greet")
        assert (await failure(client.complete(of_prompt, "name", "A")))[0] == DENIED
    assert kit.ran == []


class Rewriting(House, name="rewriting", version="1"):
    """Calls something else, or with other arguments, or twice."""

    async def call_tool(self, name, args, ctx):
        if name == "alias":
            return await super().call_tool("echo", args, ctx)
        if name == "twice":
            await super().call_tool("echo", {}, ctx)
            return await super().call_tool("echo", {}, ctx)
        if name == "echo":
            args["text"] = "changed"
        return await super().call_tool(name, args, ctx)

    async def get_prompt(self, name, args, ctx):
        return await super().get_prompt("greet", {"name": "Bob"}, ctx)

    async def read_resource(self, uri, ctx):
        return await super().read_resource("page://one", ctx)

    async def complete(self, ref, argument, prefix, ctx):
        if ref.name == "made_up":
            return Completion(("x",))
        return await super().complete(Reference("ref/prompt", name="greet"), "name", "B", ctx)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_call_that_an_override_makes_or_changes_is_asked_about(version):
    """Calls that an override adds or changes are checked: a rule also applies to aliases."""
    policy = Refusing("echo", "greet", "page://one")
    server, kit = made(policy, base=Rewriting)
    async with connect(server, version=version) as client:
        assert (await client.call_tool("alias")).text == "Denied: not today"
        assert (await client.call_tool("twice")).text == "Denied: not today"
        assert (await failure(client.get_prompt("other")))[0] == DENIED
        assert (await failure(client.read_resource("other://x")))[0] == DENIED
        result = await client.call_tool("reads", {"uri": "other://x"})
        assert result.text == "Denied: not today"
        of_other = Reference("ref/prompt", name="other")
        assert (await failure(client.complete(of_other, "name", "B")))[0] == DENIED
        made_up = Reference("ref/prompt", name="made_up")
        assert (await client.complete(made_up, "x", "")).values == ("x",)
        policy.names = ("nothing",)
        policy.calls.clear()
        assert (await client.call_tool("echo", {"text": "sent"})).text == "changed"
    assert [dict(call.arguments) for call in policy.calls] == [
        {"text": "sent"},
        {"text": "changed"},
    ]
    assert kit.ran == ["echo"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_reading_in_init_is_asked_about(version):
    """Reads in `init` are checked; on 2026-07-28 there is no session and no `init`."""
    policy = Refusing("page://one")
    found = []

    class Early(Passing, name="early", version="1"):
        policies = [policy]

        async def init(self, ctx):
            for uri in ("page://one", "row://1", "row://1"):
                try:
                    found.append((await ctx.read_resource(uri)).contents[0].text)
                except Denied as denied:
                    found.append(str(denied))

    async with connect(Early, version=version) as client:
        await client.list_tools()
    assert found == (["Denied: not today", "1", "1"] if version == "2025-11-25" else [])


# Runs


class Ann(ClientHandler):
    async def handle_elicitation(self, params):
        return Accept({"name": "Ann"})


@pytest.mark.parametrize(
    ("version", "replay", "asked"),
    [("2025-11-25", False, 1), ("2026-07-28", False, 1), ("2026-07-28", True, 2)],
)
async def test_each_run_of_a_handler_is_asked_about(version, replay, asked):
    """A parked handler is checked once, a replayed one for each run."""
    policy = Refusing("nothing")
    server, kit = made(policy)
    options = {"version": version, "handler": Ann(), "replay": replay}
    async with open_client(server, **options) as client:
        assert (await client.call_tool("asks")).text == "Ann"
    assert [call.name for call in policy.calls] == ["asks"] * asked
    assert kit.ran == ["asks"]


async def test_a_retry_with_a_state_that_is_not_valid_reaches_no_policy():
    """A retry with an invalid state is refused before any code of the author runs."""
    policy = Refusing()
    server, _ = made(policy)
    async with connect(server) as client:
        params = {"name": "asks", "arguments": {}, "requestState": "made up"}
        assert (await failure(client.request("tools/call", params)))[0] == -32602
    assert policy.calls == []


# What a policy gets


async def test_a_call_tells_all_that_there_is():
    """It gets name, arguments, registration, caller and transport; arguments are immutable."""
    seen = []

    class Look(Policy):
        async def check(self, call, ctx):
            seen.append(call)
            with pytest.raises(TypeError):
                call.arguments["text"] = "other"
            assert ctx.auth is call.caller

    server, _ = made(Look())
    ada = Principal(subject="ada")
    async with connect(server, principal=ada) as client:
        await client.call_tool("echo", {"text": "hi", "more": 1})
    (call,) = seen
    assert (call.kind, call.name, call.arguments) == ("tool", "echo", {"text": "hi", "more": 1})
    assert call.tool is call.spec is server.registry.find_tool("echo")
    assert (call.caller, call.transport, call.client) == (ada, "memory", None)


async def test_a_tool_that_only_an_override_knows_has_no_registration():
    """Rules by name apply to tools that only an override knows; their registration is None."""
    policy = Refusing("alias")
    server, _ = made(policy, base=Rewriting)
    async with connect(server) as client:
        assert (await client.call_tool("alias")).text == "Denied: not today"
    assert (policy.calls[0].tool, policy.calls[0].registered) == (None, None)


async def test_scopes_come_before_policies_and_arguments_after():
    """Missing scopes reveal no rules, and a refusal reveals no schema."""
    policy = Refusing()

    class Guarded(Tool, requires=RequireScopes("write")):
        async def call(self, n: int):
            pass

    class Other(Server, name="other", version="1"):
        tools = [Guarded]
        policies = [policy]

    async with connect(Other, principal=Principal(subject="ada")) as client:
        assert (await failure(client.call_tool("guarded", {"n": "x"})))[0] == -31403
    assert policy.calls == []
    ada = Principal(subject="ada", scopes={"write"})
    async with connect(Other, principal=ada) as client:
        assert (await client.call_tool("guarded", {"n": "x"})).text == "Denied: not today"


async def test_the_first_refusal_counts():
    """The first refusal decides, and later policies are not asked."""
    first, second = Refusing("echo"), Refusing()
    server, _ = made(first, second)
    async with connect(server) as client:
        await client.call_tool("echo")
        await client.call_tool("threaded")
    assert [call.name for call in first.calls] == ["echo", "threaded"]
    assert [call.name for call in second.calls] == ["threaded"]


async def test_a_policy_is_asked_about_its_kinds_only():
    """A policy is not asked about other kinds than its own."""

    class Tools(Refusing):
        kinds = frozenset({"tool"})

    server, _ = made(Tools())
    async with connect(server) as client:
        assert (await client.call_tool("echo")).is_error
        assert (await client.read_resource("page://one")).contents[0].text == "one"


# Hidden components


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_refusal_does_not_tell_that_a_hidden_component_exists(version):
    """On each way to a hidden component a refusal has the exact error of an unknown one."""
    server, _ = made(Refusing(), DenyTools("*"))
    hidden_prompt = Reference("ref/prompt", name="whisper")
    unknown_prompt = Reference("ref/prompt", name="whisperx")
    hidden_row = Reference("ref/resource", uri="cellar://{number}")
    unknown_row = Reference("ref/resource", uri="cellarx://{number}")
    async with connect(server, version=version) as client:
        pairs = [
            (client.call_tool("secret"), client.call_tool("secretx")),
            (client.get_prompt("whisper"), client.get_prompt("whisperx")),
            (client.read_resource("attic://one"), client.read_resource("attic://onex")),
            (client.read_resource("cellar://1"), client.read_resource("cellarx://1")),
            (
                client.complete(hidden_prompt, "a", ""),
                client.complete(unknown_prompt, "a", ""),
            ),
            (client.complete(hidden_row, "number", ""), client.complete(unknown_row, "n", "")),
        ]
        for hidden, unknown in pairs:
            code, text = await failure(hidden)
            other_code, other_text = await failure(unknown)
            assert (code, text) == (
                other_code,
                other_text.replace("secretx", "secret")
                .replace("whisperx", "whisper")
                .replace("cellarx", "cellar"),
            )


async def test_a_handler_does_not_learn_of_hidden_components_either():
    """A handler gets the same errors, since it may pass on names from clients."""
    server, _ = made(Refusing("secret", "attic://one"))
    async with connect(server) as client:
        unknown = -32602, "Unknown tool: secret"
        assert await failure(client.call_tool("calls", {"tool": "secret"})) == unknown
        assert await failure(client.call_tool("calls_server", {"tool": "secret"})) == unknown
        code, text = await failure(client.call_tool("reads", {"uri": "attic://one"}))
        assert (code, text) == (-32602, "Resource not found")


# Failures


class Sync(Policy):
    """Decides with a plain function."""

    def __init__(self, decide):
        self.decide = decide

    def check(self, call, ctx):
        return self.decide(call, ctx)


class Async(Sync):
    async def check(self, call, ctx):
        return self.decide(call, ctx)


@pytest.mark.parametrize("kind", [Sync, Async])
@pytest.mark.parametrize("wrong", WRONG)
async def test_a_policy_that_fails_denies(kind, wrong, caplog):
    """An exception or a returned value denies the call; only the log has the details."""
    server, kit = made(kind(wrong))
    async with connect(server) as client:
        assert (await client.call_tool("echo")).text == "Denied: policy failed"
        assert await failure(client.read_resource("page://one")) == (
            DENIED,
            "Denied: policy failed",
        )
    assert kit.ran == []
    assert f"the policy {kind.__name__} failed; the call was denied" in caplog.text


@pytest.mark.parametrize("error", [SystemExit(), GeneratorExit(), Denied("by a group")])
@pytest.mark.parametrize("kind", [Sync, Async])
async def test_whatever_a_policy_raises_is_a_refusal(kind, error):
    """No exception of a policy ends the connection; a `Denied` alone in a group is unwrapped."""

    def fail(call, ctx):
        if isinstance(error, Denied):
            raise BaseExceptionGroup("of a nursery", [error])
        raise error

    server, _ = made(kind(fail))
    async with connect(server) as client:
        text = "by a group" if isinstance(error, Denied) else "policy failed"
        for _ in range(2):
            assert (await client.call_tool("echo")).text == f"Denied: {text}"


class Slow(Policy):
    """Waits for ever, in one of several ways."""

    timeout = 2.0

    def __init__(self, way):
        self.way = way

    async def check(self, call, ctx):
        if self.way == "plain":
            await trio.sleep_forever()
        elif self.way == "swallows":
            with trio.move_on_after(1000, shield=True), trio.CancelScope() as scope:
                scope.cancel()
                await trio.sleep_forever()
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                return
        else:
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(trio.sleep_forever)
                    try:
                        await trio.sleep_forever()
                    finally:
                        raise ZeroDivisionError
            finally:
                pass


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", ["plain", "swallows", "fails"])
async def test_a_policy_that_takes_too_long_denies(autojump_clock, caplog, way, version):
    """A policy has its own timeout; the timeout of the tool begins after it."""
    server, kit = made(Slow(way))
    server.policies.replace([Slow(way)])
    async with connect(server, version=version) as client:
        before = trio.current_time()
        assert (await client.call_tool("echo")).text == "Denied: policy failed"
        assert trio.current_time() - before == pytest.approx(2, abs=0.5)
        with pytest.raises(McpError, match="policy failed"):
            await client.get_prompt("greet", {"name": "Ann"})
        result = await client.call_tool("calls", {"tool": "echo"})
        assert result.text == "Denied: policy failed"
    assert kit.ran == []


async def test_a_policy_that_waits_uses_up_no_time_of_the_tool(autojump_clock):
    """Each policy has its own timeout, and none counts against the timeout of the tool."""

    class Waiting(Policy):
        async def check(self, call, ctx):
            await trio.sleep(4)
            await trio.sleep(0.5)

    class Quick(Tool, timeout=1.0):
        async def call(self):
            await trio.sleep(0.9)
            return "in time"

    class Late(Tool, timeout=1.0):
        async def call(self):
            await trio.sleep(1.1)
            return "too late"

    class Two(Server, name="two", version="1"):
        tools = [Quick, Late]
        policies = [Waiting(), Waiting()]

    async with connect(Two) as client:
        assert (await client.call_tool("quick")).text == "in time"
        assert (await client.call_tool("late")).text == "Tool execution timed out"


async def test_a_client_that_cancels_cancels_the_policy(autojump_clock):
    """The handler does not run, and no failure is logged."""
    left = []

    class Waiting(Policy):
        async def check(self, call, ctx):
            try:
                await trio.sleep_forever()
            finally:
                left.append(call.name)

    server, kit = made(Waiting())
    async with connect(server) as client:
        with trio.move_on_after(1):
            await client.call_tool("echo")
        await trio.testing.wait_all_tasks_blocked()
        assert (left, kit.ran) == (["echo"], [])


async def test_a_database_that_is_gone_denies(caplog):
    """Every call that needs the database for its policy is denied."""

    class Rules(Policy):
        async def check(self, call, ctx):
            raise ConnectionRefusedError("postgres://admin:hunter2@db")

    server, kit = made(Rules(), base=Passing)
    async with connect(server, capabilities=KNOWS) as client:
        for tool, args in [("echo", {}), ("task", {}), ("calls", {"tool": "echo"})]:
            assert (await client.call_tool(tool, args)).text == "Denied: policy failed"
        for call in (
            client.get_prompt("greet", {"name": "Ann"}),
            client.read_resource("page://one"),
            client.complete(Reference("ref/prompt", name="greet"), "name", ""),
        ):
            assert await failure(call) == (DENIED, "Denied: policy failed")
    assert kit.ran == []
    assert "hunter2" in caplog.text


async def test_a_policy_may_run_on_asyncio():
    """A policy runs on asyncio by its own option, or by that of its server."""

    class Pool(Policy):
        async def check(self, call, ctx):
            await asyncio.sleep(0)
            if call.name == "echo":
                raise Denied(f"on asyncio, {ctx.transport}")

    class Own(Pool):
        loop = "asyncio"

    server, _ = made(Own())
    async with connect(server) as client:
        assert (await client.call_tool("echo")).text == "Denied: on asyncio, memory"
        assert (await client.call_tool("threaded")).text == "threaded"

    class OnAsyncio(Server, name="on", version="1", loop="asyncio"):
        tools = [Kit]
        policies = [Pool(), DenyTools("inline")]

    async with connect(OnAsyncio) as client:
        assert (await client.call_tool("echo")).text == "Denied: on asyncio, memory"
        assert (await client.call_tool("inline")).is_error
        assert (await client.call_tool("threaded")).text == "threaded"


async def test_a_policy_that_calls_the_wrong_loop_denies(caplog):
    """The log says what to write instead."""

    class Pool(Policy):
        async def check(self, call, ctx):
            await asyncio.sleep(0)

    server, kit = made(Pool())
    async with connect(server) as client:
        assert (await client.call_tool("echo")).text == "Denied: policy failed"
    assert kit.ran == []
    assert 'write loop="asyncio"' in caplog.text


# Replacing


@pytest.mark.parametrize("version", VERSIONS)
async def test_policies_are_replaced_while_a_server_serves(version):
    """They are replaced at once, from any thread; a call that is being checked keeps its own."""
    server, _ = made()
    assert len(server.policies) == 0
    async with connect(server, version=version) as client:
        assert (await client.call_tool("echo", {"text": "1"})).text == "1"
        first = DenyTools("echo")
        thread = threading.Thread(target=server.policies.replace, args=([first],))
        thread.start()
        thread.join()
        assert list(server.policies) == [first]
        assert repr(server.policies) == "<PolicySet [DenyTools('echo')]>"
        assert (await client.call_tool("echo")).is_error
        server.policies.replace([])
        assert (await client.call_tool("echo", {"text": "2"})).text == "2"


async def test_a_call_meets_one_set_of_policies():
    """A call is never checked by a mixture of the old set and the new one."""

    class Replacing(Policy):
        async def check(self, call, ctx):
            ctx.server.policies.replace([])
            await trio.lowlevel.checkpoint()

    server, _ = made(Replacing(), Refusing())
    async with connect(server) as client:
        assert (await client.call_tool("echo")).text == "Denied: not today"
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"


async def test_wrong_policies_replace_nothing():
    """If a new policy is not valid, the old ones stay."""
    server, _ = made(Refusing())
    with pytest.raises(DefinitionError, match=r"policies\[1\]: must be a Policy, got 3"):
        server.policies.replace([DenyTools("x"), 3])
    async with connect(server) as client:
        assert (await client.call_tool("echo")).text == "Denied: not today"


# Mistakes


def test_each_wrong_policy_of_a_class_is_named():
    """A class statement names each invalid policy of its server."""

    class Empty(Policy):
        pass

    with pytest.raises(DefinitionError) as raised:

        class Wrong(Server, name="wrong", version="1"):
            policies = [Refusing, "x", Empty()]

    assert [problem.text for problem in raised.value.problems] == [
        "must be an instance: write Refusing(…)",
        "must be a Policy, got 'x'",
        "Empty has no check; write `async def check(self, call, ctx)`",
    ]
    with pytest.raises(DefinitionError, match="must be a list of policies"):

        class NoList(Server, name="no", version="1"):
            policies = Refusing()

    # A subclass may call the method that it overrides.
    assert Policy().check(None, None) is None


def test_each_mistake_in_a_policy_is_named():
    """The class statement of a policy names each mistake with its place."""
    with pytest.raises(DefinitionError) as raised:

        class Wrong(Policy):
            kinds = {"tools"}
            timeout = 0
            loop = "twisted"

            async def check(self, call):
                pass

    texts = [str(problem) for problem in raised.value.problems]
    assert [text.partition(": ")[2] for text in texts] == [
        "Wrong.check: must be `async def check(self, call, ctx)`",
        "Wrong.kinds: must be a set of completion, prompt, resource, tool, got {'tools'}",
        "Wrong.timeout: must be seconds above 0, got 0",
        "Wrong.loop: must be 'trio' or 'asyncio', got 'twisted'",
    ]
    assert "test_policies.py" in texts[0]
    with pytest.raises(DefinitionError, match="check: must be"):

        class NoFunction(Policy):
            check = 3

    with pytest.raises(DefinitionError, match="kinds: must be a set"):

        class Text(Policy):
            kinds = "tool"


def test_options_of_a_policy_stand_in_its_statement():
    """Options of a policy are keywords or attributes of its class."""

    class Slow(Policy, timeout=3, kinds={"tool"}):
        def check(self, call, ctx): ...

    assert (Slow.timeout, Slow.kinds) == (3, {"tool"})


async def test_a_keyboard_interrupt_goes_through_a_policy():
    """Ctrl-C in a policy ends the program."""

    class Interrupted(Policy):
        def check(self, call, ctx):
            raise KeyboardInterrupt

    server, kit = made(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        async with connect(server) as client:
            await client.call_tool("echo")
    assert kit.ran == []


# Context variables


TENANT = contextvars.ContextVar("tenant", default="nobody")


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_variable_that_a_policy_sets_reaches_its_handler(version, waits):
    """A context variable that a policy sets is visible to its handler, and to no other call."""

    class Plain(Policy):
        def check(self, call, ctx):
            if call.arguments:
                TENANT.set(call.arguments["text"])

    class Waiting(Policy):
        async def check(self, call, ctx):
            Plain.check(self, call, ctx)
            await trio.lowlevel.checkpoint()

    class Rooms(Toolkit):
        @mcp
        async def room(self, text: str = "") -> str:
            return TENANT.get()

        @mcp(inline=True)
        def short(self, text: str = "") -> str:
            return TENANT.get()

    server, _ = made(Waiting() if waits else Plain(), kit=Rooms())
    async with connect(server, version=version) as client:
        for tool in ("room", "short"):
            assert (await client.call_tool(tool, {"text": "ada"})).text == "ada"
            assert (await client.call_tool(tool)).text == "nobody"


# Telemetry


@pytest.mark.parametrize("version", VERSIONS)
async def test_decisions_are_events(version):
    """The events have name, principal, policy and reason; a refused request ends as denied."""
    events = []
    server, _ = made(Refusing("echo", "page://one", "secret"))
    server.telemetry.add(events.append)
    ada = Principal(subject="ada")
    async with connect(server, version=version, principal=ada) as client:
        await client.call_tool("echo")
        await client.call_tool("threaded")
        await failure(client.read_resource("page://one"))
        await failure(client.call_tool("secret"))
    decisions = [event for event in events if event.kind == "decision"]
    assert [(e.method, e.name, e.decision, e.policy, e.reason) for e in decisions] == [
        ("tools/call", "echo", "deny", "Refusing", "not today"),
        ("tools/call", "threaded", "allow", None, None),
        ("resources/read", "page://one", "deny", "Refusing", "not today"),
        ("tools/call", "secret", "deny", "Refusing", "not today"),
    ]
    assert {(e.principal, e.transport) for e in decisions} == {(ada.key, "memory")}
    ends = {e.key: e for e in events if e.outcome}
    assert [ends[e.parent].outcome for e in decisions] == ["denied", "ok", "denied", "denied"]
    assert [ends[e.parent].kind for e in decisions] == ["error", "stop", "error", "error"]


async def test_decisions_of_calls_within_tasks_and_init_have_no_request():
    """Decisions outside of a request are reported as events without a request."""
    events = []

    class Early(House, name="early", version="1"):
        policies = [Refusing("nothing")]
        telemetry = [events.append]

        async def init(self, ctx):
            await ctx.read_resource("page://one")

    async with connect(Early, version="2025-11-25") as client:
        await client.ping()
    (event,) = [event for event in events if event.kind == "decision"]
    assert (event.name, event.parent, event.session is None) == ("page://one", None, False)


async def test_a_policy_may_have_a_label():
    """Labels distinguish two policies of one class."""
    events = []
    policy = Refusing()
    policy.label = "curfew"
    server, _ = made(policy)
    server.telemetry.add(events.append)
    async with connect(server) as client:
        await client.call_tool("echo")
    assert [e.policy for e in events if e.kind == "decision"] == ["curfew"]


async def test_a_handler_may_raise_denied_itself():
    """A tool returns an error result, a prompt its own error."""

    class Picky(Tool):
        async def call(self):
            raise Denied("not for you")

    class Shy(Prompt):
        async def get(self, args, ctx):
            raise Denied("not for you")

    class Own(Server, name="own", version="1", limits=Limits(), cache=Cache()):
        tools = [Picky]
        prompts = [Shy]

    async with connect(Own) as client:
        result = await client.call_tool("picky")
        assert (result.is_error, result.text) == (True, "Denied: not for you")
        assert await failure(client.get_prompt("shy")) == (DENIED, "Denied: not for you")


def test_no_policy_leaves_a_trace_in_the_log(caplog):
    """A server without policies logs nothing about them."""
    caplog.set_level(logging.DEBUG)
    made()
    assert caplog.text == ""
