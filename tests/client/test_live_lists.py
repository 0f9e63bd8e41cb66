"""Live lists: they follow the server, whatever notices arrive in whatever order."""

import asyncio
import contextlib
import itertools
import json
import logging
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noizu_mcp import (
    ClientHandler,
    ConnectionClosed,
    McpError,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    SyncClient,
    aio,
    connect,
)
from noizu_mcp import (
    tool as registration,
)
from noizu_mcp.client import LiveList

ERAS = ("2025-11-25", "2026-07-28")
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CHANGED = "notifications/tools/list_changed"
DONE = {"resultType": "complete"}


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def subtract(a: int, b: int) -> int:
    """Subtract."""
    return a - b


class Note(Resource, uri="note://1"):
    """A note."""

    def read(self):
        return "hi"


class Notes(ResourceTemplate, uri_template="notes://{name}"):
    """Notes."""

    def read(self, name: str):
        return name


class Greet(Prompt):
    """Greet."""

    def get(self):
        return "hello"


class Demo(Server, name="demo", version="1"):
    tools = [add]
    resources = [Note, Notes]
    prompts = [Greet]


def named(entries):
    return [each.name for each in entries]


@pytest.mark.parametrize("version", ERAS)
async def test_a_list_follows_the_server(version):
    """Changes at the server change the list; the handler gets the notification, too."""
    told = []

    class Handler(ClientHandler):
        async def handle_notification(self, method, params):
            told.append(method)

    server = Demo()
    connected = connect(server, version=version, handler=Handler())
    async with connected as client, client.tools as tools:
        assert named(tools) == ["add"]
        server.tools.add(subtract)
        await tools.wait_changed()
        assert named(tools) == ["add", "subtract"]
        server.tools.remove("add")
        await tools.wait_changed()
        assert named(tools) == ["subtract"]
        assert tools["subtract"].description == "Subtract."
    assert told == [CHANGED] * 2


@pytest.mark.parametrize("version", ERAS)
async def test_the_four_lists(version):
    """Prompts, resources and templates are followed like tools; resources are found by URI."""
    server = Demo()
    async with (
        connect(server, version=version) as client,
        client.prompts as prompts,
        client.resources as resources,
        client.resource_templates as templates,
    ):
        assert (named(prompts), named(templates)) == (["greet"], ["notes://{name}"])
        assert "note://1" in resources
        assert resources.get("note://2") is None
        assert (len(resources), resources.items) == (1, tuple(resources))
        with pytest.raises(KeyError, match="note://2"):
            resources["note://2"]
        server.prompts.remove("greet")
        await prompts.wait_changed()
        assert len(prompts) == 0
        server.resources.remove("note://1")
        await resources.wait_changed()
        assert len(resources) == 0


async def test_a_list_outside_of_its_block():
    """Using it there raises an error that says how to begin a block."""
    async with connect(Demo) as client:
        tools = client.tools
        assert isinstance(tools, LiveList)
        for use in (list, len, lambda each: each["add"], lambda each: "add" in each):
            with pytest.raises(RuntimeError, match=r"async with client\.tools as tools"):
                use(tools)
        async with tools:
            with pytest.raises(RuntimeError, match="open already"):
                async with tools:
                    pass
            assert named(tools) == ["add"]
        with pytest.raises(RuntimeError, match="async with"):
            tools.get("add")
        async with tools:
            assert named(tools) == ["add"]


async def test_refresh_lists_now(scripted):
    """It is for servers without notices, and for programs that cannot wait."""
    lists = [{**DONE, "tools": [], "ttlMs": 60_000}, {**DONE, "tools": [entry("a")]}]
    discovered = {**DONE, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    answers = {"server/discover": discovered, "tools/list": lists}
    async with scripted(answers) as (client, script):
        async with client.tools as tools:
            await tools.refresh()
            await tools.wait_changed()
            assert named(tools) == ["a"]
        assert [each["method"] for each in script.received[1:]] == ["tools/list"] * 2


async def test_a_list_that_cannot_be_read(scripted):
    """The refusal is raised at the beginning of the block, which can be tried again."""
    refused = ValueError(-32603, "not now")
    async with scripted({"tools/list": [refused, {"tools": []}]}, version="2025-11-25") as (c, _):
        tools = c.tools
        with pytest.raises(McpError, match="not now"):
            async with tools:
                raise AssertionError
        async with tools:
            assert named(tools) == []


async def test_a_crash_in_the_block_leaves_alone():
    """An exception of the block is raised on its own, not in a group."""
    async with connect(Demo) as client:
        with pytest.raises(KeyError, match="mine"):
            async with client.tools:
                raise KeyError("mine")


def entry(name):
    return {"name": name, "inputSchema": {"type": "object"}}


class Shelf:
    """Answers for a scripted server whose tools a test changes; it acknowledges all requests."""

    def __init__(self, script, *names):
        self.script = script
        self.names = list(names)
        self.listens = []
        self.lists = 0
        script.answers |= {"tools/list": self.list, "subscriptions/listen": self.listen}

    def list(self, _):
        self.lists += 1
        return {**DONE, "tools": [entry(name) for name in self.names]}

    def listen(self, request):
        self.listens.append(request["id"])
        params = {
            "_meta": {SUBSCRIPTION: request["id"]},
            "notifications": request["params"]["notifications"],
        }
        return json.dumps({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params}).encode()


async def test_a_storm_of_notices_is_one_reading(scripted, autojump_clock):
    """Notices that arrive together cause one request."""
    async with scripted() as (client, script):
        shelf = Shelf(script, "a")
        async with client.tools as tools:
            for _ in range(500):
                await script.say(method=CHANGED)
            shelf.names.append("b")
            await tools.wait_changed()
            await trio.sleep(10)
            assert named(tools) == ["a", "b"]
            assert shelf.lists == 2


async def test_notices_without_end(scripted, autojump_clock):
    """Continuous notices cause at most ten requests a second."""
    async with scripted() as (client, script):
        shelf = Shelf(script, "a")
        async with client.tools, trio.open_nursery() as nursery:

            async def shout():
                while True:
                    await script.say(method=CHANGED)
                    await trio.sleep(0.001)

            nursery.start_soon(shout)
            await trio.sleep(1)
            assert 8 <= shelf.lists <= 11
            nursery.cancel_scope.cancel()


async def test_a_notice_without_a_change(scripted, autojump_clock):
    """If the list is the same, tasks that wait for a change are not woken."""
    async with scripted() as (client, script):
        shelf = Shelf(script, "a")
        async with client.tools as tools:
            await script.say(method=CHANGED)
            with trio.move_on_after(10) as scope:
                await tools.wait_changed()
            assert scope.cancelled_caught
            assert shelf.lists == 2


async def test_two_tasks_wait_for_changes(scripted, autojump_clock):
    """Each task is woken, and neither misses the next change."""
    async with scripted() as (client, script):
        shelf = Shelf(script)
        seen = []

        async def watch(tools):
            for _ in range(2):
                await tools.wait_changed()
                seen.append(named(tools))

        async with client.tools as tools, trio.open_nursery() as nursery:
            nursery.start_soon(watch, tools)
            nursery.start_soon(watch, tools)
            for name in "ab":
                await trio.sleep(10)
                shelf.names.append(name)
                await script.say(method=CHANGED)
        assert seen == [["a"], ["a"], ["a", "b"], ["a", "b"]]


ENDINGS = {
    "a result": lambda script, id_: script.say(id=id_, result=DONE),
    "a cancellation": lambda script, id_: script.say(
        method="notifications/cancelled", params={"requestId": id_}
    ),
    "an error": lambda script, id_: script.say(id=id_, error={"code": -32603, "message": "busy"}),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("lived", [0, 20])
async def test_a_listen_request_that_ends(scripted, autojump_clock, caplog, ending, lived):
    """Another one is sent, and the list is read again, as a change may have been missed."""
    caplog.set_level(logging.WARNING, "noizu_mcp")
    async with scripted() as (client, script):
        shelf = Shelf(script, "a")
        async with client.tools as tools:
            await trio.sleep(lived)
            shelf.names.append("b")
            await ENDINGS[ending](script, shelf.listens[0])
            await tools.wait_changed()
            assert named(tools) == ["a", "b"]
            assert len(shelf.listens) == 2
            shelf.names.append("c")
            await script.say(method=CHANGED)
            await tools.wait_changed()
            assert named(tools) == ["a", "b", "c"]
    lines = [record.message for record in caplog.records]
    assert [line.partition(":")[0] for line in lines] == (
        [] if lived else ["subscriptions/listen is sent again"]
    )


@pytest.mark.slow
async def test_a_listen_request_that_ends_all_the_time(scripted, autojump_clock):
    """It is sent again after pauses that grow to a minute."""
    async with scripted() as (client, script):
        shelf = Shelf(script)
        async with client.tools:

            async def end_each():
                ended = 0
                while True:
                    if len(shelf.listens) > ended:
                        await script.say(id=shelf.listens[-1], result=DONE)
                        ended += 1
                    await trio.sleep(0.1)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(end_each)
                await trio.sleep(3600)
                nursery.cancel_scope.cancel()
            assert 60 <= len(shelf.listens) <= 70


async def test_a_server_without_listen_requests(scripted, caplog):
    """The list is read once, and the log says so."""
    lists = [{**DONE, "tools": [entry("a")]}]
    unknown = ValueError(-32601, "Method not found")
    answers = {"tools/list": lists, "subscriptions/listen": unknown}
    async with scripted(answers) as (client, _), client.tools as tools:
        assert named(tools) == ["a"]
    (record,) = caplog.records
    assert record.message == "tools/list is read once: Method not found (-32601)"


async def test_a_listen_request_that_is_refused(scripted):
    """If a server that offers list changes refuses the request, the block fails."""
    answers = {"subscriptions/listen": ValueError(-32603, "busy")}
    async with scripted(answers) as (client, _):
        with pytest.raises(McpError, match="busy"):
            async with client.tools:
                raise AssertionError


async def test_a_reading_that_fails_is_repeated(scripted, autojump_clock, caplog):
    """The list stays the same until the server answers again; the log reports it once."""
    async with scripted() as (client, script):
        shelf = Shelf(script, "a")
        async with client.tools as tools:
            script.answers["tools/list"] = ValueError(-32603, "busy")
            shelf.names.append("b")
            await script.say(method=CHANGED)
            await trio.sleep(20)
            assert named(tools) == ["a"]
            script.answers["tools/list"] = shelf.list
            await tools.wait_changed()
            assert named(tools) == ["a", "b"]
    (record,) = caplog.records
    assert record.message == "tools/list failed, and is tried again: busy (-32603)"


async def test_a_notice_after_a_refresh(scripted, autojump_clock):
    """A list that was refreshed manually still follows notices."""
    async with scripted() as (client, script):
        shelf = Shelf(script)
        async with client.tools as tools:
            await tools.refresh()
            shelf.names.append("a")
            await script.say(method=CHANGED)
            await tools.wait_changed()
            assert named(tools) == ["a"]


async def test_a_block_that_ends_while_others_use_its_list(scripted):
    """A task outside of the block that waits for a change, or for a request, is woken."""
    async with scripted() as (client, script):
        shelf = Shelf(script)
        errors = []

        async def use(method):
            try:
                await method()
            except RuntimeError as error:
                errors.append(str(error))

        async with trio.open_nursery() as nursery:
            async with client.tools as tools:
                script.answers["tools/list"] = None
                nursery.start_soon(use, tools.wait_changed)
                nursery.start_soon(use, tools.refresh)
                await script.until("tools/list")
                await trio.testing.wait_all_tasks_blocked()
                script.answers["tools/list"] = shelf.list
            lists = [each for each in script.received if each["method"] == "tools/list"]
            await script.say(id=lists[-1]["id"], result={**DONE, "tools": []})
        with pytest.raises(RuntimeError, match="while its block runs"):
            len(tools)
        await use(tools.refresh)
        assert len(errors) == 2


async def test_a_block_leaves_nothing_behind(scripted):
    """Its listen request is cancelled at the server, and notices do not change the list."""
    async with scripted() as (client, script):
        shelf = Shelf(script)
        for _ in range(50):
            async with client.tools as tools:
                pass
        await client.ping()
        cancelled = [
            each["params"]["requestId"]
            for each in script.received
            if each["method"] == "notifications/cancelled"
        ]
        assert cancelled == shelf.listens
        assert len(shelf.listens) == 50
        await script.say(method=CHANGED)
        await client.ping()
        assert shelf.lists == 50
        with pytest.raises(RuntimeError, match="while its block runs"):
            tools.get("a")


@pytest.mark.parametrize("version", ERAS)
async def test_the_end_of_the_connection_ends_the_block(scripted, version):
    """Waiting for changes raises `ConnectionClosed`."""
    async with scripted(version=version) as (client, script):
        Shelf(script)

        async def wait():
            async with client.tools as tools:
                await script.stream.aclose()
                await tools.wait_changed()

        with pytest.raises(ConnectionClosed):
            await wait()


STEPS = st.lists(
    st.sampled_from(["add", "remove", "tell", "yield", "wait", "end", "fail", "mend", "refresh"]),
    max_size=40,
)


@pytest.mark.parametrize("version", ERAS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happens_the_list_is_right_in_the_end(scripted, version, steps):
    """After any changes, late or merged notices and ended streams, the last notice leads to it."""

    async def main():
        async with scripted(version=version) as (client, script):
            shelf = Shelf(script)
            number = itertools.count()

            async def end():
                if shelf.listens:
                    await script.say(id=shelf.listens[-1], result=DONE)

            async def refresh():
                with contextlib.suppress(McpError):
                    await tools.refresh()

            async def set_list(answer):
                script.answers["tools/list"] = answer

            async def change(edit):
                edit(shelf.names)

            ways = {
                "add": lambda: change(lambda names: names.append(f"t{next(number)}")),
                "remove": lambda: change(lambda names: names[:1] and names.pop(0)),
                "tell": lambda: script.say(method=CHANGED),
                "yield": trio.lowlevel.checkpoint,
                "wait": partial(trio.sleep, 0.07),
                "refresh": refresh,
                "end": end,
                "fail": lambda: set_list(ValueError(-32603, "busy")),
                "mend": lambda: set_list(shelf.list),
            }
            async with client.tools as tools:
                for step in [*steps, "mend", "tell"]:
                    await ways[step]()
                await trio.sleep(1000)
                assert named(tools) == shelf.names

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


CHANGES = st.lists(st.sampled_from(["add", "remove", "yield", "wait"]), max_size=25)


@pytest.mark.parametrize("version", ERAS)
@settings(max_examples=20)
@given(steps=CHANGES)
def test_a_real_server_is_followed_through_all_changes(version, steps):
    """After additions and removals the list of the client is the server's."""

    async def main():
        server, names, number = Demo(), ["add"], 0
        async with connect(server, version=version) as client, client.tools as tools:
            for step in steps:
                if step == "add":
                    number += 1
                    names.append(f"t{number}")
                    server.tools.add(registration(add, name=names[-1]))
                elif step == "remove" and names:
                    server.tools.remove(names.pop(0))
                elif step == "yield":
                    await trio.lowlevel.checkpoint()
                elif step == "wait":
                    await trio.sleep(0.07)
            await trio.sleep(10)
            assert named(tools) == names

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("version", ERAS)
def test_plain_code_has_live_lists(version):
    """A `SyncClient` has the same lists; its methods block."""
    server = Demo()
    with SyncClient(server, version=version) as client:
        with client.tools as tools, client.prompts as prompts, client.resources as resources:
            assert (named(tools), named(prompts), named(resources)) == (
                ["add"],
                ["greet"],
                ["note://1"],
            )
            server.tools.add(subtract)
            tools.wait_changed()
            assert "subtract" in tools
            tools.refresh()
            assert len(tools.items) == 2
        with client.resource_templates as templates:
            assert named(templates) == ["notes://{name}"]
        with pytest.raises(RuntimeError, match="`with` for a SyncClient"):
            list(client.tools)


@pytest.mark.parametrize("version", ERAS)
def test_asyncio_has_live_lists(version):
    """The lists of an asyncio client are used with `async with` on asyncio."""

    async def main():
        server = Demo()
        async with aio.connect(server, version=version) as client, client.tools as tools:
            assert named(tools) == ["add"]
            server.tools.add(subtract)
            await tools.wait_changed()
            assert named(tools) == ["add", "subtract"]
            await tools.refresh()
            assert isinstance(tools, LiveList)

    asyncio.run(main())


@pytest.mark.parametrize("lived", [0, 20])
async def test_listening_goes_on_when_a_request_ends(scripted, autojump_clock, lived):
    """`listen` sends it again, and notifies the handler of what may have changed meanwhile."""
    told = []

    class Handler(ClientHandler):
        async def handle_notification(self, method, params):
            told.append((method, params))

    async with scripted(handler=Handler()) as (client, script):
        shelf = Shelf(script)
        async with client.listen(tools=True, uris=["a:b"]) as agreed:
            assert agreed == {"toolsListChanged": True, "resourceSubscriptions": ["a:b"]}
            await trio.sleep(lived)
            await script.say(id=shelf.listens[0], result=DONE)
            await trio.sleep(10)
            assert len(shelf.listens) == 2
    assert told == [(CHANGED, {}), ("notifications/resources/updated", {"uri": "a:b"})]


async def test_listening_to_a_server_that_stops_telling(scripted, autojump_clock, caplog):
    """A server that refuses the method later is not asked again; the block goes on."""
    async with scripted() as (client, script):
        shelf = Shelf(script)
        async with client.listen(tools=True):
            script.answers["subscriptions/listen"] = ValueError(-32601, "Method not found")
            await script.say(id=shelf.listens[0], result=DONE)
            await trio.sleep(1000)
            await client.ping()
        listens = [each for each in script.received if each["method"] == "subscriptions/listen"]
        assert len(listens) == 2
    text = "the server no longer reports changes: Method not found (-32601)"
    assert text == caplog.records[-1].message


async def test_the_end_of_the_connection_ends_listening(scripted, autojump_clock):
    """One exception is raised, also if a call in the block fails with it."""

    async def wait(client, script, use):
        async with client.listen(tools=True):
            await script.stream.aclose()
            await use()

    for call in (False, True):
        async with scripted() as (client, script):
            Shelf(script)
            use = client.ping if call else trio.sleep_forever
            with pytest.raises(ConnectionClosed):
                await wait(client, script, use)
