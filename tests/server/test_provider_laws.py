"""No interleaving of changes, lists and calls loses a call or leaves a wrong list.

A script is played by several tasks at once on one connection: changes of two providers and of the
registrations, lists, calls, and calls that run meanwhile. Each answer must be true, part by part,
for some moment between its request and its arrival. In the end the list that the client requested
after the last notice must be the present one.
"""

from contextlib import nullcontext

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import MockClock

from noizu_mcp import ClientHandler, McpError, Mount, Server, ToolProvider, connect, tool

SESSION, STATELESS = "2025-11-25", "2026-07-28"
#: Sources of tools: the registrations, two providers, a mounted server.
PLACES = ("own", "one", "two", "far")


class World(ToolProvider):
    """One place with tools, and all of its past."""

    def __init__(self, place, *, shared):
        self.place = place
        self.shared = shared
        self.known = {}
        self.past = [()]
        self.there = True
        self.changed = None
        self.patience = 0

    def make(self, number):
        """Make a tool that waits for a while, and returns its name."""
        name = f"{self.place}_{number}"

        async def say(seconds: float) -> str:
            await trio.sleep(seconds)
            return name

        return self.known.setdefault(name, tool(say, name=name))

    async def tools(self, ctx):
        found = [self.known[name] for name in self.past[-1]]
        await trio.sleep(self.patience)
        return found

    async def watch(self, changed):
        self.changed = changed

    def now(self):
        """Return the current list."""
        return self.past[-1] if self.there else ()


class Stage:
    """Plays a script on a server, and checks what a client receives."""

    def __init__(self):
        self.worlds = {
            place: World(place, shared=place == "one") for place in ("own", "one", "two", "far")
        }
        self.history = [self.state()]
        self.inner = type("Inner", (Server,), {"tools": []}, name="inner", version="1")()
        providers = [self.worlds["one"], self.worlds["two"], Mount(self.inner, prefix="far")]
        given = {"tools": [], "providers": providers}
        self.server = type("Outer", (Server,), given, name="outer", version="1")()
        self.last = None

    def state(self):
        return {place: self.worlds[place].now() for place in PLACES}

    def change(self, place, number):
        """Add a tool, or remove it if it is there."""
        world = self.worlds[place]
        made = world.make(number)
        name = f"{place}_{number}"
        present = world.past[-1]
        gone = name in present
        world.past.append(
            tuple(each for each in present if each != name) if gone else (*present, name)
        )
        if place in ("own", "far"):
            tools = (self.server if place == "own" else self.inner).tools
            inner_name = name if place == "own" else str(number)
            if gone:
                tools.remove(inner_name)
            else:
                tools.add(tool(made, name=inner_name))
        self.history.append(self.state())
        if place in ("one", "two") and world.there and world.changed is not None:
            world.changed("tools")

    def come_or_go(self, place):
        """Remove a provider, or add it again."""
        world = self.worlds[place]
        world.there = not world.there
        if world.there:
            self.server.providers.add(world)
        else:
            self.server.providers.remove(world)
        self.history.append(self.state())

    async def list(self, client):
        start = len(self.history) - 1
        listed = [each.name for each in await client.list_tools()]
        for place in PLACES:
            part = sorted(name for name in listed if name.startswith(place))
            moments = self.history[start:]
            assert part in [sorted(moment[place]) for moment in moments], (place, part, moments)
        return listed

    async def call(self, client, place, number, seconds):
        start = len(self.history) - 1
        name = f"{place}_{number}"
        refused = ""
        try:
            answer = await client.call_tool(name, {"seconds": seconds})
        except McpError as error:
            refused = error.message
        moments = [name in moment[place] for moment in self.history[start:]]
        if refused:
            assert refused.startswith(f"Unknown tool: {name}")
            assert not all(moments)
        else:
            assert answer.text == name
            assert any(moments)

    async def play(self, script, version):
        handler = Relisting(self)
        async with connect(self.server, version=version, handler=handler) as client:
            listening = client.listen(tools=True) if version == STATELESS else nullcontext()
            async with listening, trio.open_nursery() as nursery:
                handler.nursery = nursery
                await trio.sleep(0.01)
                for op, *values in script:
                    if op == "list":
                        nursery.start_soon(self.list, client)
                    elif op == "call":
                        nursery.start_soon(self.call, client, *values)
                    elif op == "sleep":
                        await trio.sleep(*values)
                    elif op == "patience":
                        self.worlds[values[0]].patience = values[1]
                    else:
                        getattr(self, op)(*values)
                await trio.sleep(60)
                expected = [name for place in PLACES for name in self.state()[place]]
                listed = await self.list(client)
                assert sorted(listed) == sorted(expected)
                if len(self.history) > 1:
                    assert sorted(handler.last) == sorted(expected)


class Relisting(ClientHandler):
    """Asks for the list after each notice, as a good client does."""

    def __init__(self, stage):
        self.stage = stage
        self.asked = 0
        self.answered = 0
        self.last = None

    async def handle_notification(self, method, params):
        self.nursery.start_soon(self.relist)

    async def relist(self):
        self.asked += 1
        number = self.asked
        listed = await self.stage.list(self.client)
        # The answer to the last request counts, whenever it arrives.
        if number > self.answered:
            self.answered, self.last = number, listed


place = st.sampled_from(PLACES)
number = st.integers(0, 3)
seconds = st.sampled_from([0, 0.001, 0.04, 0.3, 2.0])
ops = st.one_of(
    st.tuples(st.just("change"), place, number),
    st.tuples(st.just("change"), place, number),
    st.tuples(st.just("come_or_go"), st.sampled_from(["one", "two"])),
    st.tuples(st.just("patience"), st.sampled_from(["one", "two"]), seconds),
    st.tuples(st.just("list")),
    st.tuples(st.just("call"), place, number, seconds),
    st.tuples(st.just("sleep"), seconds),
)


def asking(slow):
    """Begin a script in which a provider is about to return an outdated list."""
    return [("patience", slow, 2.0), ("change", slow, 0), ("list",), ("sleep", 0.3)]


@pytest.mark.slow
@pytest.mark.parametrize("version", [SESSION, STATELESS])
@given(script=st.lists(ops, max_size=30))
@example(script=[*asking("one"), ("change", "one", 1)])
@example(script=[*asking("two"), ("change", "two", 1)])
@example(script=[*asking("two"), ("patience", "two", 0), ("change", "two", 1), ("list",)])
@example(script=[*asking("one"), ("come_or_go", "one")])
@example(script=[("change", "far", 1), ("call", "far", 1, 2.0), ("change", "far", 1)])
def test_every_answer_is_true(version, script):
    """Lists and calls match the state of some moment in between; the last list is right."""
    trio.run(Stage().play, script, version, clock=MockClock(autojump_threshold=0))
