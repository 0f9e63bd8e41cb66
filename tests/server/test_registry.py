"""The registry, its pages, and the bus of changes."""

import threading

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from noizu_mcp import McpError, Page, Server, Tool, Toolkit, mcp, tool
from noizu_mcp.engine import Outbox
from noizu_mcp.server import Registry
from noizu_mcp.server._bus import MERGE_WINDOW, Bus, Merger
from noizu_mcp.server._pages import find_start, read_cursor, write_cursor
from noizu_mcp.transports import memory_pair


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
    """By name, as wire definitions, as specs, and everything with its `hidden` flag."""
    registry = Kits().registry
    assert registry.find("b").hidden
    assert registry.find("nope") is None
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
    """A class is made once for each registration, an instance is used as it is."""

    class Who(Tool):
        def call(self):
            return str(id(self))

    who = Who()

    class S(Server, name="s", version="1"):
        tools = [who, tool(Who, name="second"), tool(Who, name="third")]

    answers = [spec.invoke({}, None) for spec in S().registry.expand()]
    assert answers[0] == str(id(who))
    assert len(set(answers)) == 3


@given(st.integers(1, 10**9 - 1), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_cursors_read_as_they_were_written(offset, name):
    """A cursor survives the way to the client and back, whatever the tool is called."""
    cursor = write_cursor(offset, name)
    assert read_cursor(cursor) == (offset, name)
    with pytest.raises(McpError):
        read_cursor(cursor + "=")


def test_cursors_hold_when_the_list_changes():
    """The next page begins behind the last entry that was seen, wherever that stands now."""
    cursor = write_cursor(2, "b")
    assert find_start(["a", "b", "c"], cursor) == 2
    assert find_start(["b", "c"], cursor) == 1
    assert find_start(["x", "y", "a", "b", "c"], cursor) == 4
    assert find_start(["a", "c", "d"], cursor) == 2
    assert find_start(["a"], cursor) == 1


def test_what_an_override_may_return():
    """A page, or a list; nothing else."""
    page = Page([1], "next")
    shelf = Registry().tool_shelf
    assert shelf.read(page) is page
    assert shelf.read((1, 2)) == Page((1, 2))
    with pytest.raises(TypeError, match="a list of tools must be a Page or a list, not 'x'"):
        shelf.read("x")


def test_changes_from_many_threads_are_all_kept():
    """Writers do not lose each other's changes; readers always see a whole set."""

    class Any_(Tool):
        def call(self):
            pass

    server = Kits()

    def work(number):
        for index in range(20):
            server.tools.add(tool(Any_, name=f"t{number}-{index}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.tools) == 3 + 8 * 20


async def test_bursts_become_two_notices(nursery, autojump_clock):
    """The first at once, the rest as one; each kind of change by itself."""
    sent = []
    ours, _ = memory_pair()
    outbox = Outbox(ours, 100)
    merger = Merger(lambda change: sent.append((trio.current_time(), change)), outbox, nursery)
    start = trio.current_time()
    for change in ("tools", "tools", "prompts", "tools"):
        merger.report(change)
    await trio.testing.wait_all_tasks_blocked()
    assert sent == [(start, "tools"), (start, "prompts")]
    await trio.sleep(10 * MERGE_WINDOW)
    assert sent[2:] == [(pytest.approx(start + MERGE_WINDOW), "tools")]
    merger.report("tools")
    assert len(sent) == 4
    merger.close()
    merger.report("prompts")
    assert len(sent) == 4


async def test_a_client_that_does_not_read_costs_one_notice(nursery, autojump_clock):
    """While there is no room all changes are merged, and told when there is."""
    sent = []
    ours, theirs = memory_pair()
    outbox = Outbox(ours, 100)
    nursery.start_soon(outbox.write)
    outbox.put(b"x" * 2_000_000)
    merger = Merger(sent.append, outbox, nursery)
    for _ in range(100):
        merger.report("tools")
        await trio.sleep(MERGE_WINDOW)
    assert sent == []
    outbox.flush_soon()
    await theirs.receive()
    await trio.sleep(5 * MERGE_WINDOW)
    assert sent == ["tools"]


def test_the_bus_tells_every_listener():
    """Until it is discarded."""
    bus, heard = Bus(), []
    bus.add(heard.append)
    bus.add(heard.append)
    bus.publish("tools")
    bus.discard(heard.append)
    bus.publish("tools")
    assert heard == ["tools", "tools"]
