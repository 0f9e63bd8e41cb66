"""A running server beyond a single request: its clients, its end, its threads."""

import json
import logging
import math
import threading
from contextlib import asynccontextmanager, nullcontext
from functools import partial

import pytest
import trio
import trio.testing

from noizu_mcp import (
    ClientHandler,
    Content,
    DefinitionError,
    Limits,
    Prompt,
    PromptMessage,
    RequestTimeout,
    Schema,
    Server,
    Tool,
    ToolError,
    connect,
)
from noizu_mcp.engine import logger
from noizu_mcp.server import open_session, serve
from noizu_mcp.transports import memory_pair
from noizu_mcp.types import Principal


class Interrupted(Tool, inline=True):
    """Somebody presses Ctrl-C while it runs."""

    def call(self):
        raise KeyboardInterrupt


class Keys(list):
    """Somebody presses Ctrl-C while it is read."""

    def __iter__(self):
        raise KeyboardInterrupt


class Advising(Tool):
    """Somebody presses Ctrl-C while its error is written."""

    async def call(self):
        raise ToolError(Keys())


class Building(Tool):
    """Somebody presses Ctrl-C while its arguments are made."""

    class Input(Schema):
        def __attrs_post_init__(self):
            raise KeyboardInterrupt

    async def call(self, args): ...


class Exiting(Tool):
    """Its arguments end the program."""

    class Input(Schema):
        def __attrs_post_init__(self):
            raise SystemExit("the secret of the author")

    async def call(self, args): ...


class Waiting(Tool):
    """Waits for ever."""

    async def call(self):
        await trio.sleep_forever()


class Small(Server, name="small", version="1"):
    tools = [Interrupted, Advising, Building, Exiting, Waiting]


@pytest.mark.parametrize("name", ["interrupted", "advising", "building"])
async def test_a_keyboard_interrupt_ends_the_program(name):
    """Ctrl-C in a handler is not caught: it is raised alone."""
    with pytest.raises(KeyboardInterrupt):
        async with connect(Small) as client:
            await client.call_tool(name)


async def test_arguments_that_exit_end_their_call_only():
    """The author's code also runs when arguments are made, and `SystemExit` ends only the call."""
    async with connect(Small) as client:
        for _ in range(2):
            result = await client.call_tool("exiting")
            assert result.is_error
            assert result.content[0].text == "Tool execution failed"


async def test_cancelling_the_server_cancels_its_calls():
    """Cancelling `serve` ends every call and raises nothing."""
    ours, theirs = memory_pair()
    server = Small()
    async with trio.open_nursery() as nursery:

        async def run():
            await serve(server, theirs, transport="memory")

        nursery.start_soon(run)
        async with connect(ours) as client, trio.open_nursery() as calls:
            calls.start_soon(client.call_tool, "waiting")
            await client.ping()
            calls.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
    assert list(server.bus) == []


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_lifespan_that_never_began_closes_the_stream(is_cancelled, autojump_clock):
    """The client reads EOF, whether the lifespan fails or is cancelled."""

    class Unready(Server, name="unready", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            if is_cancelled:
                await trio.sleep_forever()
            raise ValueError("no database")
            yield

    ours, theirs = memory_pair()
    with pytest.raises(ValueError, match="no database") if not is_cancelled else nullcontext():
        with trio.move_on_after(0 if is_cancelled else math.inf):
            await serve(Unready(), theirs, transport="memory")
    with trio.fail_after(60):
        assert list(await ours.receive()) == []


async def test_one_server_serves_many_clients():
    """A server object holds no connection: two clients with different eras share it."""
    server = Small()
    async with connect(server) as new, connect(server, version="2025-06-18") as old:
        assert (new.protocol_version, old.protocol_version) == ("2026-07-28", "2025-06-18")
        assert len(await new.list_tools()) == len(await old.list_tools()) == 5


class Slow(Server, name="slow", version="1"):
    """Sets its sessions up for ever."""

    tools = [Waiting]

    async def init(self, ctx):
        await trio.sleep_forever()


async def test_a_session_may_end_while_it_is_set_up(autojump_clock):
    """`init` is cancelled with the connection, and so are the requests that wait for it."""
    async with connect(Slow, version="2025-11-25", timeout=1) as client:
        await client.ping()
        with pytest.raises(RequestTimeout):
            await client.call_tool("waiting")


async def test_a_change_that_comes_too_late_is_dropped():
    """A change that another thread reports while the connection ends is dropped."""
    server = Small()
    async with connect(server, version="2025-11-25") as client:
        await client.ping()
        (listener,) = server.bus
    listener("tools")
    assert list(server.bus) == []


@pytest.mark.parametrize(("version", "tasks"), [("2025-11-25", 1), ("2026-07-28", 0)])
async def test_what_changes_cost(version, tasks):
    """A connection has one task for all changes, or none if the client listens to nothing."""
    server = Small()
    async with connect(server, version=version) as client:
        await client.ping()
        await trio.testing.wait_all_tasks_blocked()
        before = trio.lowlevel.current_statistics().tasks_living
        for number in range(100):
            server.notify_resource_updated(f"x:{number}")
        for kind in ("tools", "prompts", "resources"):
            server.notify_changed(kind)
        assert trio.lowlevel.current_statistics().tasks_living == before + tasks


async def test_updates_reach_the_watchers(autojump_clock):
    """An update with a URI is sent to the clients that watch this URI."""
    seen = []

    class Handler(ClientHandler):
        async def handle_notification(self, method, params):
            seen.append((method, params))

    server = Small()
    ours, theirs = memory_pair()
    async with (
        open_session(server, theirs, transport="memory") as connection,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(connection.run, 0)
        connection.feed.subscriptions.watch("file:///a")
        async with connect(ours, handler=Handler(), version="2025-11-25") as client:
            await client.ping()  # by then the server knows that the client is ready
            for uri in ("file:///a", "file:///b"):
                server.notify_resource_updated(uri)
            await client.ping()
    assert seen == [("notifications/resources/updated", {"uri": "file:///a"})]


def test_running_is_serving_on_stdio(monkeypatch):
    """`run` calls the function that serves on stdin and stdout."""
    served = []
    monkeypatch.setattr(
        "noizu_mcp._serving.run_stdio",
        lambda server, *, principal: served.append((server, principal)),
    )
    server, ada = Small(), Principal(subject="ada")
    server.run()
    server.run(principal=ada)
    assert served == [(server, None), (server, ada)]


async def test_a_client_that_does_not_read_stalls_only_itself():
    """Its requests wait with their answers; other clients of the server are not delayed."""

    class Big(Tool, inline=True):
        def call(self):
            handled.append(True)
            return "x" * 1_000_000

    class Generous(Server, name="generous", version="1", limits=Limits(outbox=1_000_000)):
        tools = [Big]

    handled = []
    server = Generous()
    ours, theirs = memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, server, theirs, transport="memory", grace=0))
        await negotiate_by_hand(ours)
        for number in range(50):
            await ours.send([call("big", number)])
            await trio.testing.wait_all_tasks_blocked()
        assert len(handled) < 10
        async with connect(server) as other:
            await other.ping()
            assert (await other.call_tool("big")).content
        answered = 0
        while answered < 50:  # a client that reads again gets everything
            answered += len(await ours.receive())
        await ours.aclose()


async def negotiate_by_hand(stream):
    """Send the handshake without a client object, which would read everything."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    initialize = {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params}
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await stream.send([json.dumps(initialize).encode()])
    await stream.receive()
    await stream.send([json.dumps(initialized).encode()])


def call(name, id_):
    params = {"name": name}
    message = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


async def test_threads_are_bounded():
    """If every thread is busy, sync handlers wait and everything else goes on."""
    release = threading.Event()

    class Block(Tool):
        def call(self):
            release.wait()
            return "released"

    class Quick(Tool):
        async def call(self):
            return "quick"

    class Narrow(Server, name="narrow", version="1", limits=Limits(threads=1)):
        tools = [Block, Quick]

    server = Narrow()
    async with connect(server) as client, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(client.call_tool, "block")
        await client.ping()
        assert (await client.call_tool("quick")).content[0].text == "quick"
        assert server.threads.borrowed_tokens == 1
        release.set()


async def test_crashes_are_logged_with_their_place(caplog):
    """The log names the handler by its name in the source."""

    class Crash(Tool):
        def call(self):
            raise RuntimeError("details")

    class Crashing(Server, name="crashing", version="1"):
        tools = [Crash]

    with caplog.at_level(logging.ERROR, logger.name):
        async with connect(Crashing) as client:
            assert (await client.call_tool("crash")).is_error
    (record,) = caplog.records
    assert "Crash" in record.getMessage()
    assert "details" in str(record.exc_info)


class Late(Tool):
    """Notifies its client from a thread, when the test lets it."""

    def __init__(self):
        self.begun, self.go_on, self.ended = (threading.Event() for _ in range(3))
        self.raised = None

    def call(self, ctx):
        self.begun.set()
        self.go_on.wait(60)
        try:
            ctx.notify.tools(here=True)
            ctx.report_progress(0.5)
        except BaseException as error:
            self.raised = error
        self.ended.set()


async def test_a_thread_notifies_its_client():
    """Notifications of a handler in a thread are sent before its result."""
    late, heard, progress = Late(), [], []

    class Handler(ClientHandler):
        async def handle_notification(self, method, params):
            heard.append(method)

    class Noisy(Server, name="noisy", version="1"):
        tools = [late]

    async with connect(Noisy, version="2025-11-25", handler=Handler()) as client:
        late.go_on.set()
        await client.call_tool("late", progress=progress.append)
        await client.ping()
    assert late.raised is None
    assert heard == ["notifications/tools/list_changed"]
    assert len(progress) == 1


def test_a_thread_that_outlives_the_loop():
    """A handler in a thread that was left gets an error where it would have to wait."""
    late = Late()

    class Noisy(Server, name="noisy", version="1"):
        tools = [late]

    async def main():
        async with connect(Noisy, version="2025-11-25") as client, trio.open_nursery() as nursery:
            call = partial(client.call_tool, "late", progress=print)
            nursery.start_soon(call)
            await trio.to_thread.run_sync(late.begun.wait, 60)
            nursery.cancel_scope.cancel()

    trio.run(main)
    late.go_on.set()
    assert late.ended.wait(60)
    assert isinstance(late.raised, trio.RunFinishedError)


class Guide(Prompt):
    """Point somewhere."""

    async def get(self):
        link = Content.resource_link("file:///guide", "guide")
        return [PromptMessage("user", link), PromptMessage.user("read it")]


@pytest.mark.parametrize(
    ("version", "kind"), [("2025-03-26", "text"), ("2025-06-18", "resource_link")]
)
async def test_a_link_in_a_prompt(version, kind):
    """A link becomes text for clients whose revision has no links."""

    class Guided(Server, name="guided", version="1"):
        prompts = [Guide]

    async with connect(Guided, version=version) as client:
        first, second = (await client.get_prompt("guide")).messages
    assert (first.content.type, second.content.type) == (kind, "text")
    assert "file:///guide" in str(first.content)


class Wait(Tool):
    """Wait for ever."""

    async def call(self):
        await trio.sleep_forever()


class Configured(Server, name="configured", version="1"):
    tools = [Wait]

    def __init__(self, **options):
        for name, value in options.items():
            setattr(self, name, value)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_options_of_an_instance(version, autojump_clock):
    """Options set in `__init__` apply in answers and at run time; the class keeps its own."""
    limits = Limits(threads=3)
    server = Configured(
        name="other",
        instructions="Hello",
        tool_timeout=5,
        limits=limits,
        state_keys=["%032x" % 7**37],
    )
    assert Configured.options.name == Configured().options.name == "configured"
    assert server.threads.total_tokens == 3
    assert server.sealer.lasting
    start = trio.current_time()
    async with connect(server, version=version) as client:
        assert client.server_info.name == "other"
        assert client.instructions == "Hello"
        assert (await client.call_tool("wait")).content[0].text == "Tool execution timed out"
        assert trio.current_time() - start == pytest.approx(5, abs=1)
        with pytest.raises(DefinitionError, match=r"title: cannot change while .* in __init__"):
            server.title = "Late"
    server.title = "Between"
    async with connect(server, version=version) as client:
        assert client.server_info.title == "Between"


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        (
            "loop",
            "asyncio",
            r"Configured\.loop: is read when .*; write class Configured\(Server, loop=",
        ),
        ("page_size", 5, "write class Configured"),
        ("abstract", True, "write class Configured"),
        ("tools", [Wait], r"Configured\.tools: .*; use its add, remove and replace"),
        ("providers", [], "use its add and remove"),
        ("policies", [], "use its replace"),
        ("skills", [], "write the list in the body of the class"),
        ("tool_timeout", 0, r"Configured\.tool_timeout: must be seconds above 0"),
        ("requires", 5, "requires"),
    ],
)
def test_assignments_without_effect_are_refused(option, value, text):
    """The error has the line, and says what to write instead."""
    with pytest.raises(DefinitionError, match=text) as caught:
        Configured(**{option: value})
    assert __file__.rpartition("/")[2] in str(caught.value)


def test_other_attributes_of_an_instance():
    """Other attributes belong to the author."""
    assert Configured(database=5).database == 5
