"""The connection of a `Remote`: questions, changes, and servers that fail."""

import logging
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from types import SimpleNamespace

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from noizu_mcp import (
    Context,
    McpError,
    Remote,
    Schema,
    Stdio,
    Toolkit,
    ToolProvider,
    TransportError,
    connect,
    field,
    mcp,
    resource,
    serve_http,
    tool,
)
from noizu_mcp.jsonrpc import HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY
from noizu_mcp.server import serve
from noizu_mcp.testing import ScriptedHandler
from noizu_mcp.transports import memory_pair
from noizu_mcp.types import Principal

from .conftest import Life, acknowledged, front_of, until

OLD, NEW = "2025-11-25", "2026-07-28"
ERAS = pytest.mark.parametrize("version", [OLD, NEW])
BOTH = pytest.mark.parametrize(("front", "back"), [(NEW, NEW), (NEW, OLD), (OLD, NEW), (OLD, OLD)])


class Form(Schema):
    """A form."""

    name: str


class Askers(Toolkit):
    """Tools that ask, and others that only wait."""

    def __init__(self):
        self.entered = []
        self.go = trio.Event()

    @mcp
    async def ask(self, ctx: Context) -> str:
        try:
            return (await ctx.elicit("who?", Form)).content.name
        except McpError as error:
            return str(error)

    @mcp
    async def wait(self) -> str:
        self.entered.append("wait")
        await self.go.wait()
        return "done"

    @mcp
    async def shout(self, ctx: Context) -> str:
        self.entered.append("shout")
        await ctx.error("loud")
        # A notice of a later revision.
        ctx.dispatcher.send_notice("notifications/odd", {})
        return "done"


@asynccontextmanager
async def two_callers(server, first, second):
    """Run two clients of one running server, as over HTTP, but in memory."""
    async with trio.open_nursery() as nursery:
        clients = []
        ready = trio.Event()

        async def one(caller, handler, version):
            ours, theirs = memory_pair()
            nursery.start_soon(lambda: serve(server, theirs, transport="memory", principal=caller))
            async with connect(ours, handler=handler, version=version) as client:
                clients.append(client)
                if len(clients) == 2:
                    ready.set()
                await trio.sleep_forever()

        nursery.start_soon(one, *first)
        nursery.start_soon(one, *second)
        await ready.wait()
        yield clients
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("connections", [1, 2])
async def test_several_callers_are_not_mixed_up(behind, connections):
    """A question is sent to its caller over a separate connection, or else refused."""
    kit = Askers()
    life = Life(tools=[kit])
    server = behind(life.server, version=OLD, connections=connections)()
    alice = (Principal(subject="alice"), ScriptedHandler({"": {"name": "A"}}), OLD)
    bob = (Principal(subject="bob"), ScriptedHandler({"": {"name": "B"}}), NEW)
    async with two_callers(server, alice, bob) as clients:
        await check_callers(kit, clients, connections)
        assert life.runs == connections
    told = [
        method
        for _, handler, _ in (alice, bob)
        for method, _ in handler.notifications
        if method == "notifications/message"
    ]
    assert len(told) < connections


async def check_callers(kit, clients, connections):
    first, second = clients
    names = [(await each.call_tool("up_ask")).text for each in clients]
    assert set(names) == {"A", "B"}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.call_tool, "up_wait")
        await wait_all_tasks_blocked()
        # Another request of the same caller is allowed.
        assert (await first.call_tool("up_ask")).text == names[0]
        for _ in range(2):
            result = await second.call_tool("up_ask")
            if connections == 1:
                assert "several callers have a request in flight here" in result.text
            else:
                assert result.text == names[1]
        await second.call_tool("up_shout")
        kit.go.set()


async def test_further_connections_are_closed(behind, autojump_clock):
    """A connection that was idle for a minute is closed, except the first one."""
    kit = Askers()
    life = Life(tools=[kit])
    server = behind(life.server, version=OLD)()
    alice = (Principal(subject="alice"), ScriptedHandler({"": {"name": "A"}}), NEW)
    bob = (Principal(subject="bob"), ScriptedHandler({"": {"name": "B"}}), NEW)
    async with two_callers(server, alice, bob) as (first, second):
        name = (await second.call_tool("up_ask")).text
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.call_tool, "up_wait")
            await until(lambda: kit.entered)
            assert (await second.call_tool("up_ask")).text == name
            # Longer than the first check of the connection.
            await trio.sleep(15)
            assert (await second.call_tool("up_ask")).text == name
            assert life.running == 2
            kit.go.set()
        await trio.sleep(200)
        assert life.running == 1
        assert (await second.call_tool("up_ask")).text == name


async def test_questions_outside_of_requests(behind):
    """A server that asks outside of any request gets an error, and goes on."""
    refused = []

    class Early(Life().server, name="early", version="1"):
        async def init(self, ctx):
            try:
                await ctx.dispatcher.send_request(
                    ctx.dispatcher.peer.ledger.open("roots/list", None)
                )
            except McpError as error:
                refused.append(str(error))

    async with connect(behind(Early, version=OLD), version=OLD) as client:
        await client.ping()
        await wait_all_tasks_blocked()

    assert refused == [
        "no caller has a request in flight here, so nobody can tell whom to ask (-32600)"
    ]


@BOTH
async def test_changes_pass_on(behind, front, back, autojump_clock):
    """A change of a list at the server is reported here, and the new list is right."""
    life = Life(tools=[])
    server = life.server()
    handler = ScriptedHandler()

    async def echo(text: str) -> str:
        return text

    async with (
        connect(behind(server, version=back), version=front, handler=handler) as client,
        client.listen(tools=True),
    ):
        assert await client.list_tools() == []
        await trio.sleep(10)  # the clock jumps: notices in sequence are merged
        handler.notifications.clear()
        server.tools.add(echo)
        await until(lambda: "notifications/tools/list_changed" in dict(handler.notifications))
        assert [each.name for each in await client.list_tools()] == ["up_echo"]
        assert (await client.call_tool("up_echo", {"text": "x"})).text == "x"


async def config() -> str:
    return "cfg"


def watchable():
    return Life(
        resources=[
            resource(config, uri="cfg://app", subscribable=True),
            resource(config, uri="cfg://two", subscribable=True),
        ]
    )


def updated(handler):
    method = "notifications/resources/updated"
    return [params["uri"] for name, params in handler.notifications if name == method]


@pytest.mark.parametrize("back", [OLD, NEW])
async def test_watched_resources(behind, back, autojump_clock):
    """A subscription is sent to the server once, and its updates go to all watchers."""
    life = watchable()
    server, handler = life.server(), ScriptedHandler()
    front = behind(server, version=back)
    async with connect(front, version=OLD, handler=handler) as client:
        await client.subscribe("up+cfg://app")
        await client.subscribe("up+cfg://two")
        server.notify_resource_updated("cfg://app")
        await until(lambda: updated(handler) == ["up+cfg://app"])
        await client.unsubscribe("up+cfg://app")
        await trio.sleep(10)
        handler.notifications.clear()
        server.notify_resource_updated("cfg://app")
        server.notify_resource_updated("cfg://two")
        await trio.sleep(10)
        assert updated(handler) == ["up+cfg://two"]
        await client.unsubscribe("up+cfg://two")


@pytest.mark.parametrize("back", [OLD, NEW])
async def test_listen_requests(behind, back, autojump_clock):
    """The same holds for the listen requests of 2026-07-28, two of them at a time."""
    life = watchable()
    server, handler = life.server(), ScriptedHandler()
    front = behind(server, version=back)
    async with (
        connect(front, version=NEW, handler=handler) as client,
        client.listen(uris=["up+cfg://app"]),
    ):
        async with client.listen(uris=["up+cfg://app", "up+cfg://two"]):
            pass
        await trio.sleep(10)
        handler.notifications.clear()
        server.notify_resource_updated("cfg://app")
        server.notify_resource_updated("cfg://two")
        await trio.sleep(10)
        assert updated(handler) == ["up+cfg://app"]


async def test_resources_that_cannot_be_watched(behind):
    """A resource that the server refuses to watch is refused."""
    life = Life(resources=[resource(config, uri="cfg://app", subscribable=True)])

    class Strict(life.server, name="strict", version="1"):
        async def can_watch(self, uri, ctx):
            return False

    async with connect(behind(Strict, version=OLD), version=OLD) as client:
        with pytest.raises(McpError, match="Resource is not subscribable: cfg://app"):
            await client.subscribe("up+cfg://app")


@pytest.mark.parametrize("back", [OLD, NEW])
async def test_watched_resources_after_a_restart(behind, back, autojump_clock):
    """After a reconnection resources are watched again, and reported as updated."""
    life = watchable()
    handler = ScriptedHandler()
    made = []

    class Counted(life.server, name="counted", version="1"):
        async def can_watch(self, uri, ctx):
            made.append(uri)
            return len(made) != 4 and await super().can_watch(uri, ctx)

    async with connect(behind(Counted, version=back), version=OLD, handler=handler) as client:
        await client.subscribe("up+cfg://app")
        await client.subscribe("up+cfg://two")
        handler.notifications.clear()
        life.kill()
        await until(lambda: life.runs == 2 and len(updated(handler)) >= 2)
        assert set(updated(handler)) == {"up+cfg://app", "up+cfg://two"}
        await client.unsubscribe("up+cfg://app")
        life.refusal = LookupError("down")
        life.kill()
        await until(lambda: life.runs > 2)
        await client.unsubscribe("up+cfg://two")
        with pytest.raises(McpError):
            await client.subscribe("up+cfg://app")


@ERAS
async def test_a_dead_server_hides_only_itself(version, autojump_clock, caplog):
    """Others work; an open call ends with one error; the server reconnects by itself."""
    kit = Askers()
    dying, other = Life("dying", tools=[kit]), Life("other", tools=[Askers()])
    handler = ScriptedHandler()
    front = front_of(Remote(dying.server, prefix="a"), Remote(other.server, prefix="b"))
    async with connect(front, version=version, handler=handler) as client:
        names = [each.name for each in await client.list_tools()]
        assert names == ["a_ask", "a_wait", "a_shout", "b_ask", "b_wait", "b_shout"]
        dying.refusal = LookupError("down")

        async def call():
            result = await client.call_tool("a_wait")
            assert result.is_error
            assert result.text.startswith("a: ")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await until(lambda: kit.entered)
            dying.kill()
        await until(lambda: dying.runs > 1)
        await trio.sleep(0.2)
        assert [each.name for each in await client.list_tools()] == names[3:]
        assert (await client.call_tool("b_shout")).text == "done"
        with pytest.raises(McpError, match="a is not connected: LookupError: down"):
            await client.call_tool("a_wait")
        dying.refusal = None
        await trio.sleep(200)
        assert [each.name for each in await client.list_tools()] == names
        assert (await client.call_tool("a_shout")).text == "done"
    warned = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert all(record.exc_info is None for record in warned)
    assert len(warned) < 10


async def test_a_slow_start_delays_only_the_first_list(autojump_clock, behind):
    """The items of a server that starts slowly appear later."""
    started = trio.Event()

    class Slow(Life(tools=[Askers()]).server, name="slow", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            await started.wait()
            yield

    handler = ScriptedHandler()
    front = front_of(Remote(Slow, prefix="slow", list_timeout=2), tools=[ready])
    async with connect(front, handler=handler) as client:
        assert [each.name for each in await client.list_tools()] == ["ready"]
        assert (await client.call_tool("ready")).text == "yes"
        started.set()
        await trio.sleep(5)
        assert "slow_ask" in [each.name for each in await client.list_tools()]


async def ready() -> str:
    return "yes"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (Stdio("no-such-command"), "command not found"),
        ("no-such-module:Server", "cannot connect to"),
        ({"url": 3}, "up: "),
    ],
)
async def test_targets_that_fail(behind, target, reason, caplog):
    """A target that cannot be reached has an empty list, and one logged reason."""
    async with connect(behind(target)) as client:
        assert await client.list_tools() == []
        with pytest.raises(McpError, match="up is not connected: ") as caught:
            await client.call_tool("up_x")

    assert reason in str(caught.value)
    assert reason in caplog.text


async def test_unserved():
    """Before the server runs the list is empty."""
    remote = Remote(Life().server)
    with pytest.raises(Exception, match="up is not connected: the server is not served"):
        await remote.tools(SimpleNamespace(server=None))
    assert remote.unknown("x") is None


@pytest.mark.parametrize(
    ("answers", "request_", "reason"),
    [
        ({"tools__call": {"content": 3}}, "tool", "up gave a malformed result: "),
        ({"tools__call": {"content": [{"type": "resource"}]}}, "tool", "malformed result"),
        (
            {"tools__call": {"resultType": "odd"}},
            "tool",
            "up gave an unknown kind of result: 'odd'",
        ),
        ({"tools__call": {"resultType": "input_required"}}, "tool", "malformed"),
        (
            {"tools__call": {"resultType": "input_required", "inputRequests": []}},
            "tool",
            "InputRequired needs",
        ),
        (
            {"tools__call": {"resultType": "input_required", "requestState": 3}},
            "tool",
            "an input_required result is malformed",
        ),
        (
            {"tools__call": {"resultType": "input_required", "inputRequests": {"a": 3}}},
            "tool",
            "an input request has no method",
        ),
        ({"tools__call": Exception(-32000, "no")}, "tool", "no (-32000)"),
        ({"prompts__get": {"messages": [3]}}, "prompt", "malformed result"),
        ({"prompts__get": {"messages": 3}}, "prompt", "malformed result"),
        ({"resources__read": {"contents": [{"uri": 3}]}}, "resource", "malformed result"),
        ({"resources__read": {"contents": 3}}, "resource", "malformed result"),
        ({"resources__read": Exception(-32602, "odd")}, "resource", "odd (-32602)"),
    ],
)
async def test_malformed_results(scripted, answers, request_, reason):
    """A result that violates the protocol is one clear error."""
    listed = {
        "tools__list": {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]},
        "prompts__list": {"prompts": [{"name": "x"}]},
        "resources__list": {"resources": [{"name": "x", "uri": "x://y"}]},
    }
    ours = scripted(**listed, **answers)
    front = front_of(Remote(ours, prefix="up"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front) as client:
            asking = {
                "tool": partial(client.call_tool, "up_x"),
                "prompt": partial(client.get_prompt, "up_x"),
                "resource": partial(client.read_resource, "up+x://y"),
            }
            with pytest.raises(McpError) as caught:
                await asking[request_]()
        nursery.cancel_scope.cancel()

    assert reason in str(caught.value)


async def test_headers_that_changed(scripted):
    """A call that is refused for its headers is sent again, after the tools were listed."""
    seen = []

    def call(request):
        seen.append(request.method)
        if seen.count("tools/call") == 1:
            return Exception(HEADER_MISMATCH, "headers")
        return {"content": [{"type": "text", "text": "ok"}]}

    def listing(request):
        seen.append(request.method)
        return {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}

    ours = scripted(tools__call=call, tools__list=listing)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front_of(Remote(ours, prefix="up"))) as client:
            assert (await client.call_tool("up_x")).text == "ok"
        nursery.cancel_scope.cancel()

    assert seen == ["tools/list", "tools/call", "tools/list", "tools/call"]


async def test_silence_is_an_error(scripted, autojump_clock):
    """A server that does not answer in time ends the call, not the connection."""
    ours = scripted(
        tools__list={"tools": [{"name": "x", "inputSchema": {"type": "object"}}]},
        prompts__list={"prompts": [{"name": "x"}]},
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front_of(Remote(ours, prefix="up", call_timeout=5))) as client:
            result = await client.call_tool("up_x")
            with pytest.raises(McpError, match="up did not answer in time"):
                await client.get_prompt("up_x")
        nursery.cancel_scope.cancel()

    assert (result.is_error, result.text) == (True, "up did not answer in time")


X = {"name": "x", "inputSchema": {"type": "object"}}


async def test_lists_that_fail(scripted, autojump_clock, caplog):
    """A list that fails is left out at once, and read again after growing pauses."""
    count = iter(range(100))

    def listing(request):
        return Exception(-32000, "not now") if next(count) < 3 else {"tools": [X]}

    ours = scripted(tools__list=listing)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front_of(Remote(ours, prefix="up", list_timeout=100))) as client:
            began = trio.current_time()
            assert await client.list_tools() == []
            assert trio.current_time() == began
            await trio.sleep(10)
            assert [each.name for each in await client.list_tools()] == ["up_x"]
        nursery.cancel_scope.cancel()

    assert "listing tools of up failed, and is tried again: not now (-32000)" in caplog.messages


@pytest.mark.parametrize("answer", [Exception(-32000, "not now"), None])
async def test_a_list_that_fails_delays_no_other(scripted, answer, autojump_clock):
    """A list has its own pauses: changes of the others are reported at once."""
    tools = []
    ours = scripted(
        prompts__list=lambda _: answer,
        tools__list=lambda _: {"tools": tools},
        subscriptions__listen=acknowledged,
    )
    front = front_of(Remote(ours, prefix="up", list_timeout=3))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front) as client:
            await trio.sleep(30)
            began = trio.current_time()
            assert await client.list_prompts() == []
            tools.append(X)
            ours.say("notifications/tools/list_changed")
            while not await client.list_tools():  # noqa: ASYNC110 - nothing tells of it
                await trio.sleep(0.05)
            assert trio.current_time() - began < 1
        nursery.cancel_scope.cancel()


async def test_notices_without_end(scripted, autojump_clock):
    """They cause at most ten lists and ten notices to clients a second."""
    read = []

    def listing(request):
        read.append(trio.current_time())
        return {"tools": [X]}

    ours = scripted(tools__list=listing, subscriptions__listen=acknowledged)
    handler = ScriptedHandler()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with (
            connect(front_of(Remote(ours, prefix="up")), handler=handler) as client,
            client.listen(tools=True),
        ):
            await trio.sleep(10)
            handler.notifications.clear()
            before = len(read)
            for _ in range(1000):
                ours.say("notifications/tools/list_changed")
                await trio.sleep(0.01)
            await trio.sleep(10)
            assert [each.name for each in await client.list_tools()] == ["up_x"]
        nursery.cancel_scope.cancel()
    assert 50 < len(read) - before <= 101
    assert 0 < len(handler.notifications) <= 101


async def test_a_list_that_the_server_does_not_have(scripted):
    """Resources are listed although the server has no templates, or no such method."""
    listed = {"resources": [{"name": "x", "uri": "x://y"}]}
    ours = scripted(
        resources__list=listed, resources__templates__list=Exception(-32601, "Method not found")
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front_of(Remote(ours, prefix="up"))) as client:
            assert [each.uri for each in await client.list_resources()] == ["up+x://y"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("is_error", [False, True])
@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("method", ["roots/list", "elicitation/create", "sampling/createMessage"])
async def test_a_question_of_the_server_itself(old_script, method, version, is_error):
    """A question of the server is refused if the waiting caller takes no questions.

    A call that fails for lack of an answer has the error of 2026-07-28 that says so. Roots are no
    reason: servers ask for them at any time.
    """
    ours = old_script(method, {"content": [], "isError": is_error})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front_of(Remote(ours, prefix="up")), version=version) as client:
            for _ in range(2):
                if is_error and version == NEW and method != "roots/list":
                    with pytest.raises(McpError) as caught:
                        await client.call_tool("up_x")
                    assert caught.value.code == MISSING_CLIENT_CAPABILITY
                else:
                    assert (await client.call_tool("up_x")).is_error == is_error
        nursery.cancel_scope.cancel()

    assert len(ours.refusals) == 2


async def test_listen_requests_that_fail(scripted, caplog):
    """If the listen request fails, its resources are not reported."""
    listed = {"resources": [{"name": "x", "uri": "x://y"}]}
    ours = scripted(resources__list=listed, subscriptions__listen=Exception(-32000, "full"))
    front = front_of(Remote(ours, prefix="up", call_timeout=5))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front, version=OLD) as client:
            await client.subscribe("up+x://y")
        nursery.cancel_scope.cancel()

    assert "resources of up are not watched: full (-32000)" in caplog.text


async def test_an_error_for_want_of_an_answer(old_script):
    """It becomes the error that says so."""
    ours = old_script("elicitation/create", Exception(-32000, "no answer"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front_of(Remote(ours, prefix="up")), version=NEW) as client:
            with pytest.raises(McpError) as caught:
                await client.call_tool("up_x")
        nursery.cancel_scope.cancel()
    assert caught.value.code == MISSING_CLIENT_CAPABILITY


def test_configurations(tmp_path):
    """Each server in a file of the `mcpServers` form becomes a `Remote`."""
    file = tmp_path / "mcp.json"
    file.write_text(
        '{"mcpServers": {"my files": {"command": "x"}, "2": {"url": "https://x.test/mcp"},'
        ' "off": {"command": "y", "disabled": true}, "bad": {}}}'
    )

    found = Remote.from_config(file, call_timeout=3, per_server={"2": {"prefix": "two"}})

    assert [each.name for each in found] == ["Remote my files", "Remote 2", "Remote bad"]
    assert [each.namespace("name") for each in found] == ["my_files_", "two_", "bad_"]
    assert Remote.from_config({"2": Stdio("x")})[0].namespace("name") == "x2_"


def test_wrong_options(tmp_path):
    """Wrong options raise errors that name them."""
    life = Life()
    with pytest.raises(TypeError, match="Remote has no option autth; did you mean auth"):
        Remote(life.server, autth=1)
    with pytest.raises(TypeError, match="Remote has no option handler"):
        Remote(life.server, handler=1)
    with pytest.raises(ValueError, match="prefix must be a letter, then"):
        Remote(life.server, prefix="a b")
    with pytest.raises(TypeError, match="auth= would send the credentials of one server to all"):
        Remote.from_config({"a": life.server}, auth=1)
    with pytest.raises(ValueError, match="per_server names no server b"):
        Remote.from_config({"a": life.server}, per_server={"b": {}})
    with pytest.raises(TransportError, match="cannot read"):
        Remote.from_config(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    ("target", "label"),
    [
        (Life("named").server, "Remote named"),
        (Life("named").server(), "Remote named"),
        ("https://x.test/mcp?key=secret", "Remote https://x.test/mcp"),
        (Stdio("server", "--key", "secret"), "Remote server"),
        ({"command": "server", "args": ["secret"]}, "Remote server"),
        (memory_pair()[0], "Remote MemoryStream"),
    ],
)
def test_names_hold_no_secrets(target, label):
    """Without a prefix a `Remote` has the name of its target, without arguments and queries."""
    assert Remote(target).name == label


async def test_long_names(behind):
    """A name that is too long is shortened, and can be called."""
    name = "x" * 128
    life = Life(tools=[tool(ready, name=name)])
    async with connect(behind(life.server)) as client:
        (listed,) = await client.list_tools()
        assert len(listed.name) == 128
        assert (await client.call_tool(listed.name)).text == "yes"


async def test_a_call_while_the_server_comes_back(behind, autojump_clock):
    """A call waits for a running attempt to connect, until its timeout."""
    again = trio.Event()
    life = Life(tools=[ready], resources=[resource(config, uri="cfg://app", subscribable=True)])

    class Slow(life.server, name="slow", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            async with super().lifespan():
                if life.runs > 1:
                    await again.wait()
                yield

    async with connect(behind(Slow, call_timeout=5), version=OLD) as client:
        assert (await client.call_tool("up_ready")).text == "yes"
        await client.subscribe("up+cfg://app")
        await trio.sleep(60)
        life.kill()
        await until(lambda: life.runs == 2)
        assert "up did not connect within 5 s" in (await client.call_tool("up_ready")).text
        await client.unsubscribe("up+cfg://app")
        with pytest.raises(McpError, match=r"up (did not connect within|is not connected)"):
            await client.subscribe("up+cfg://app")
        again.set()
        await until(lambda: life.running == 1)
        await trio.sleep(100)
        assert (await client.call_tool("up_ready")).text == "yes"


async def test_other_resources_can_be_watched(behind):
    """Subscriptions of the front's own resources are not sent to the server."""

    class Plain(ToolProvider):
        async def tools(self, ctx):
            return []

    life = watchable()
    front = front_of(
        Remote(life.server, prefix="up"),
        Plain(),
        resources=[resource(config, uri="own://x", subscribable=True)],
    )
    async with connect(front, version=OLD) as client:
        await client.subscribe("own://x")
        await client.unsubscribe("own://x")
        await client.subscribe("up+cfg://app")
        await client.unsubscribe("up+cfg://app")
        assert (await client.read_resource("own://x")).contents[0].text == "cfg"


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_callers_over_http(behind, version):
    """A request without a session and without an authenticated caller is its own caller."""
    kit = Askers()
    front = behind(Life(tools=[kit]).server, version=OLD)
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, front(), port=0))
        url = f"{host.urls[0]}/mcp"
        handler = ScriptedHandler({"": {"name": "A"}})
        async with connect(url, version=version, handler=handler) as client:
            assert (await client.call_tool("up_ask")).text == "A"
            assert (await client.call_tool("up_shout")).text == "done"
        host.stop()


async def test_definitions_that_are_left_out(scripted, caplog):
    """Malformed templates and headers are logged by name."""
    header = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": {}}}}
    good = {"name": "y", "inputSchema": {"type": "object"}}
    templates = [
        {"name": "bad", "uriTemplate": "x://{"},
        {"name": "good", "uriTemplate": "x://{a}"},
    ]
    ours = scripted(
        tools__list={"tools": [{"name": "x", "inputSchema": header}, good]},
        resources__templates__list={"resourceTemplates": templates},
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.script)
        async with connect(front_of(Remote(ours, prefix="up"))) as client:
            assert [each.name for each in await client.list_tools()] == ["up_y"]
            assert [each.name for each in await client.list_resource_templates()] == ["good"]
        nursery.cancel_scope.cancel()

    assert "left out 'x' of up: " in caplog.text
    assert "left out 'bad' of up: " in caplog.text


@pytest.mark.parametrize("scopes", [frozenset(), frozenset({"up"})])
async def test_scopes_in_front(behind, scopes):
    """A caller without the required scopes of a `Remote` cannot use its server."""
    life = Life(tools=[ready], resources=[resource(config, uri="cfg://app")])
    front = behind(life.server, requires="up")
    async with connect(front, principal=Principal(subject="a", scopes=scopes)) as client:
        for work in (
            partial(client.call_tool, "up_ready"),
            partial(client.read_resource, "up+cfg://app"),
        ):
            with nullcontext() if scopes else pytest.raises(McpError, match="scope"):
                await work()


class Mirrored(Toolkit):
    """A tool whose argument is mirrored in a header."""

    @mcp
    async def search(self, region: str = field(header="Region"), limit: int = 1) -> str:
        return f"{region} {limit}"


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_headers_of_arguments(version):
    """Over HTTP each side has its own headers, and the front checks them."""
    async with trio.open_nursery() as nursery:
        back = await nursery.start(partial(serve_http, Life(tools=[Mirrored]).server(), port=0))
        remote = Remote(f"{back.urls[0]}/mcp", prefix="up")
        front = await nursery.start(partial(serve_http, front_of(remote)(), port=0))
        async with connect(f"{front.urls[0]}/mcp", version=version) as client:
            (listed,) = await client.list_tools()
            assert listed.input_schema["properties"]["region"]["x-mcp-header"] == "Region"
            arguments = {"region": "eu", "limit": 2}
            assert (await client.call_tool("up_search", arguments)).text == "eu 2"
        front.stop()
        back.stop()
