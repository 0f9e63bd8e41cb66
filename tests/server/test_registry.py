"""The registry, its pages, and the bus of changes."""

import json
import sys
import threading
from collections import Counter

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from noizu_mcp import (
    ClientHandler,
    DefinitionError,
    McpError,
    Prompt,
    ProtocolError,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
    Toolkit,
    connect,
    mcp,
    prompt,
    resource,
    tool,
)
from noizu_mcp.components import expand
from noizu_mcp.engine import Outbox
from noizu_mcp.protocol import REVISIONS
from noizu_mcp.server import MERGE_WINDOW, ChangeFeed, Registry, RunningServer
from noizu_mcp.transports import memory_pair
from noizu_mcp.types import Page


class Kit(Toolkit):
    """Three tools."""

    @mcp
    def a(self):
        pass

    @mcp(hidden=True)
    def b(self):
        pass

    @mcp(category="Last")
    def c(self):
        pass


class Kits(Server, name="kits", version="1", page_size=2):
    tools = [Kit]


def test_what_is_registered_can_be_asked_for():
    """Registrations are found by name, as wire definitions, as specs, and with `hidden` flags."""
    registry = Kits().registry
    assert registry.find_tool("b").hidden
    assert registry.find_tool("nope") is None
    assert [each["name"] for each in registry.list()] == ["a", "c"]
    assert [spec.name for spec in registry.expand()] == ["a", "b", "c"]
    assert [(d["name"], hidden) for d, hidden in registry.entries("tools")] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]
    assert list(registry.entries("prompts")) == []
    first = registry.list_tools(include_hidden=True)
    assert [spec.name for spec in first.items] == ["a", "b"]
    assert [s.name for s in registry.list_tools(first.next_cursor, include_hidden=True).items] == [
        "c"
    ]
    assert list(Registry().expand()) == []


def test_each_registration_has_its_own_instance():
    """A class is made once for each registration; an instance is used itself."""

    class Who(Tool):
        def call(self):
            return str(id(self))

    who = Who()

    class S(Server, name="s", version="1"):
        tools = [who, tool(Who, name="second"), tool(Who, name="third")]

    answers = [spec.invoke({}, None) for spec in S().registry.expand()]
    assert answers[0] == str(id(who))
    assert len(set(answers)) == 3


class Small(Tool):
    def call(self):
        pass


def of_names(*names, page_size=2):
    """Make a server with tools of these names."""
    options = {"tools": [tool(Small, name=name) for name in names], "page_size": page_size}
    return type("Named", (Server,), options, name="named", version="1")()


_NAMES = st.text("abcXYZ019_-.", min_size=1, max_size=30)


@settings(max_examples=50)
@given(st.lists(_NAMES, min_size=1, max_size=10, unique=True), st.integers(1, 4))
def test_pages_have_every_tool_once(names, size):
    """The cursor of each page leads to the next one; no other spelling of it is accepted."""
    registry = of_names(*names, page_size=size).registry
    cursor, found = None, []
    while cursor is not None or not found:
        page = registry.list_tools(cursor)
        found += [spec.name for spec in page.items]
        cursor = page.next_cursor
        if cursor is not None:
            with pytest.raises(McpError):
                registry.list_tools(cursor + "=")
    assert found == names


@pytest.mark.parametrize(
    ("removed", "added", "expected"),
    [
        ("", "", "cd"),
        ("a", "", "cd"),
        ("a", "a", "cda"),
        ("ac", "ac", "dac"),
        ("b", "", "cd"),
        ("bc", "b", ""),
        ("bcd", "", ""),
        ("abcd", "x", ""),
    ],
)
def test_cursors_hold_when_the_list_changes(removed, added, expected):
    """The next page begins after the last entry that was seen, wherever that is now."""
    server = of_names(*"abcd")
    cursor = server.registry.list_tools().next_cursor
    for name in removed:
        server.tools.remove(name)
    for name in added:
        server.tools.add(tool(Small, name=name))
    page, found = server.registry.list_tools(cursor), []
    while page.items:
        found += [spec.name for spec in page.items]
        if page.next_cursor is None:
            break
        page = server.registry.list_tools(page.next_cursor)
    assert "".join(found) == expected


def test_what_an_override_may_return():
    """An override may return a page or a list, and nothing else."""
    page = Page([1], "next")
    shelf = Registry().tools
    assert shelf.read(page) == page
    assert shelf.read((1, 2)) == Page((1, 2))
    with pytest.raises(TypeError, match="a list of tools must be a Page or a list, not 'x'"):
        shelf.read("x")


def test_pages_are_kept_for_each_revision():
    """Each revision gets pages of its own shape, from the cache, too."""

    class Titled(Tool, title="A"):
        def call(self):
            pass

    shelf = Registry(expand([Titled])).tools
    for _ in range(2):
        titles = {
            name: json.loads(b"{%b}" % shelf.rendered(None, REVISIONS[name]))["tools"][0].get(
                "title"
            )
            for name in ("2025-03-26", "2025-06-18", "2026-07-28")
        }
        assert titles == {"2025-03-26": None, "2025-06-18": "A", "2026-07-28": "A"}


def test_a_tool_that_is_replaced_has_its_new_number_of_places():
    """The new limit applies; with an equal limit new calls wait for those that still run."""

    class Narrow(Tool, max_concurrency=1):
        def call(self):
            pass

    class Wide(Tool, name="narrow", max_concurrency=5):
        def call(self):
            pass

    server = Kits()
    server.tools.add(Narrow)
    places = server.registry.slots(server.registry.find_tool("narrow"), 9)
    server.tools.replace(Wide)
    assert server.registry.slots(server.registry.find_tool("narrow"), 9).total_tokens == 5
    server.tools.replace(Narrow)
    assert server.registry.slots(server.registry.find_tool("narrow"), 9) is places


def test_changes_from_many_threads_are_all_kept():
    """Concurrent writers lose no changes; readers always see a complete set."""
    server = Kits()

    def work(number):
        for index in range(20):
            server.tools.add(tool(Small, name=f"t{number}-{index}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(server.tools) == 3 + 8 * 20


class Heard(ClientHandler):
    """Records the notifications of a server, and when they came."""

    def __init__(self):
        self.heard = []

    async def handle_notification(self, method, params):
        self.heard.append((trio.current_time(), method.split("/")[1]))


async def test_bursts_become_two_notices(autojump_clock):
    """A burst sends its first change at once, and the rest as one; each kind on its own."""
    server, handler = Kitchen(), Heard()
    async with connect(server, version="2025-11-25", handler=handler) as client:
        await client.ping()
        start = trio.current_time()
        for change in ("resources", "resources", "prompts", "resources"):
            server.notify_changed(change)
        await trio.testing.wait_all_tasks_blocked()
        assert handler.heard == [(start, "resources"), (start, "prompts")]
        await trio.sleep(10 * MERGE_WINDOW)
        end = pytest.approx(start + MERGE_WINDOW, abs=MERGE_WINDOW / 2)
        assert handler.heard[2:] == [(end, "resources")]
        server.notify_changed("resources")
        await trio.testing.wait_all_tasks_blocked()
        assert len(handler.heard) == 4


async def test_a_change_without_subscribers_opens_no_window(autojump_clock):
    """A change without subscribers opens no window: the next change is sent at once."""
    server, handler = Kitchen(), Heard()
    async with connect(server, version="2026-07-28", handler=handler) as client:
        server.notify_changed("prompts")
        async with client.listen(prompts=True):
            start = trio.current_time()
            server.notify_changed("prompts")
            await trio.testing.wait_all_tasks_blocked()
        assert handler.heard == [(start, "prompts")]


class Subscriber:
    """Receives changes, and records them."""

    def __init__(self):
        self.told = []

    def tell(self, change, notice):
        self.told.append(change)
        if self.told.count("prompts") == 2 and change == "prompts":
            raise RuntimeError("the second one cannot be told")
        return True


async def test_a_change_for_one_subscriber(nursery, autojump_clock):
    """Changes for one subscriber are merged on their own, and not sent to others."""
    merger = RunningServer(Kits(), {}, None, "memory", nursery.start_soon).merger
    subscribers = [Subscriber(), Subscriber()]
    merger.subscribers = dict.fromkeys(subscribers)
    for _ in range(2):
        for each in subscribers:
            merger.report("tools", each)
    merger.report("tools")
    assert [len(each.told) for each in subscribers] == [2, 2]
    await trio.sleep(10 * MERGE_WINDOW)
    assert [len(each.told) for each in subscribers] == [3, 3]


async def test_a_notice_that_fails_ends_no_window(nursery, autojump_clock, caplog):
    """A notice that fails does not end the windows, which all connections share."""
    merger, subscriber = (
        RunningServer(Kits(), {}, None, "memory", nursery.start_soon).merger,
        Subscriber(),
    )
    merger.subscribers[subscriber] = None
    for _ in range(2):
        merger.report("prompts")
        merger.report("resources")
    await trio.sleep(2 * MERGE_WINDOW)
    assert subscriber.told[2:] == ["prompts", "resources"]
    assert "a change could not be sent" in caplog.text
    merger.report("tools")
    assert len(subscriber.told) == 5


class Slow:
    """A session whose client leaves a large message unread while changes are reported."""

    listeners = ()

    def __init__(self, nursery):
        ours, self.theirs = memory_pair()
        self.channel = Outbox(ours, 100)
        nursery.start_soon(self.channel.write)
        self.running = RunningServer(Kits(), {}, None, "memory", nursery.start_soon)
        self.feed = ChangeFeed(self.running, self, 10)
        self.feed.push()
        self.channel.put(b"x" * 2_000_000)

    async def read(self):
        """Read everything that is waiting; return the methods."""
        self.channel.flush_soon()
        await self.theirs.receive()
        await trio.sleep(5 * MERGE_WINDOW)
        with trio.move_on_after(1):
            return [each.message.method for each in await self.theirs.receive()]
        return []


@pytest.mark.parametrize("changes", [1, 100])
async def test_a_client_that_does_not_read_costs_one_notice(nursery, autojump_clock, changes):
    """The notice is sent when there is room, also if no other change follows."""
    slow = Slow(nursery)
    for _ in range(changes):
        slow.running.server.notify_changed("tools")
        await trio.sleep(MERGE_WINDOW)
    await trio.sleep(32 * MERGE_WINDOW)
    assert await slow.read() == ["notifications/tools/list_changed"]


async def test_a_change_that_waits_for_a_client_that_leaves(nursery, autojump_clock):
    """A change that is pending when the client leaves is dropped."""
    slow = Slow(nursery)
    slow.running.server.notify_changed("tools")
    slow.feed.close()
    assert await slow.read() == []


def test_the_bus_tells_every_listener():
    """The bus of a server calls every listener until it is discarded."""
    bus, first, second = Kits().bus, [], []
    bus.add(first.append)
    bus.add(second.append)
    bus.publish("tools")
    bus.discard(first.append)
    bus.publish("prompts")
    bus.discard(second.append)
    bus.discard(second.append)
    bus.publish("resources")
    assert (first, second) == (["tools"], ["tools", "prompts"])


class Kitchen(Server, name="kitchen", version="1", page_size=1):
    """One of each kind, and one that is hidden."""

    class Salt(Resource, uri="kitchen://salt"):
        def read(self):
            return "salt"

    class Spice(Resource, uri="kitchen://spice", hidden=True):
        def read(self):
            return "spice"

    class Shelf(ResourceTemplate, uri_template="shelf://{number}"):
        def read(self, uri, args):
            return args.number

    class Cook(Prompt):
        def get(self):
            return "cook"

    class Bake(Prompt):
        def get(self):
            return "bake"

    resources = [Salt, Spice, Shelf]
    prompts = [Cook, Bake]


def test_every_kind_can_be_asked_for():
    """Each kind has pages of its list, with and without hidden items, and a lookup by URI."""
    registry = Kitchen().registry
    page = registry.list_resources()
    assert [spec.uri for spec in page.items] == ["kitchen://salt"]
    assert page.next_cursor is None
    page = registry.list_resources(include_hidden=True)
    page = registry.list_resources(page.next_cursor, include_hidden=True)
    assert [spec.uri for spec in page.items] == ["kitchen://spice"]
    (template,) = registry.list_resource_templates().items
    assert template.definition["uriTemplate"] == "shelf://{number}"
    page = registry.list_prompts()
    assert [spec.name for spec in page.items] == ["cook"]
    assert [spec.name for spec in registry.list_prompts(page.next_cursor).items] == ["bake"]
    assert registry.find_prompt("bake").name == "bake"
    assert registry.find_prompt("nope") is None
    spec, variables = registry.find_resource("shelf://7")
    assert (spec.name, variables.number) == ("shelf://{number}", "7")
    assert registry.find_resource("kitchen://spice")[1] is None
    assert registry.find_resource("nope://x") is None
    assert [(d["uri"], hidden) for d, hidden in registry.entries("resources")] == [
        ("kitchen://salt", False),
        ("kitchen://spice", True),
    ]
    assert [d["name"] for d, _ in registry.entries("resource_templates")] == ["shelf://{number}"]
    assert registry.tools.specs == {}
    assert "tools" not in registry.offered
    assert "completions" in registry.offered
    assert not registry.can_be_watched


def test_running_sets_of_every_kind():
    """Resources and templates form one set; names that are taken are reported by kind."""
    server = Kitchen()
    assert len(server.resources) == 3
    assert "shelf://{number}" in server.resources
    assert "kitchen://spice" in server.resources
    assert [spec.name for spec in server.prompts] == ["cook", "bake"]
    with pytest.raises(DefinitionError, match="resource 'kitchen://salt': is registered already"):
        server.resources.add(Kitchen.Salt)
    with pytest.raises(DefinitionError, match=r"resource template 'shelf://\{number\}'"):
        server.resources.add(Kitchen.Shelf)
    server.resources.remove("shelf://{number}")
    with pytest.raises(KeyError):
        server.resources.remove("shelf://{number}")
    server.resources.replace(resource(Kitchen.Salt, title="Salt"))
    assert server.registry.find_resource("kitchen://salt")[0].definition["title"] == "Salt"
    server.prompts.remove("cook")
    server.prompts.replace(prompt(Kitchen.Bake, description="b"))
    assert server.registry.find_prompt("bake").definition["description"] == "b"
    for wrong in (5, Kit, Kitchen.Cook):
        with pytest.raises(DefinitionError):
            server.resources.add(wrong)
    with pytest.raises(ValueError, match="no list 'nope'"):
        server.notify_changed("nope")


@pytest.mark.parametrize("item", [5, "x", None, object()])
def test_what_no_list_can_hold(item):
    """Only specs, definitions and mappings in wire form are accepted; the error says so."""
    shelf = Kitchen().registry.resources
    with pytest.raises(TypeError, match="is no resource: give specs, definitions or mappings"):
        shelf.cut([item], None)


def test_mappings_are_checked_before_a_client_sees_them():
    """An invalid mapping raises before it reaches a client."""
    shelf = Kitchen().registry.resources
    with pytest.raises(ProtocolError):
        shelf.cut([{"uri": 5}], None)


def calls_to_add(number):
    """Count the calls of Python functions that it takes to add kits one by one."""
    server, calls = Kits(), Counter()

    def count(frame, event, argument):
        calls[event] += 1

    sys.setprofile(count)
    try:
        for each in range(number):
            server.tools.add(tool(Kit, prefix=f"n{each}_"))
    finally:
        sys.setprofile(None)
    assert len(server.registry.list_tools(None).items) == 2
    return calls["call"]


def test_adding_one_by_one_takes_linear_work():
    """The work to add a tool does not grow with the number of tools."""
    assert calls_to_add(200) <= 5 * calls_to_add(50)


def test_what_was_read_does_not_change():
    """A list that was read stays the same while others change the registry."""
    server = Kits()
    tools = server.registry.tools
    before, listed = tools.specs, tools.shown
    names, shown = list(before), list(listed)
    reading = iter(before)
    next(reading)
    server.tools.add(tool(Kit, prefix="more_"))
    assert [names[0], *reading] == names
    assert list(listed) == shown
    assert len(tools.specs) == 2 * len(names)
    assert len(tools.shown) == 2 * len(shown)
    assert tools.specs is tools.specs
