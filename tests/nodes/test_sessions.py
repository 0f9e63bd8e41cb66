"""Sessions that many nodes serve: their state, their ends, and `init`."""

import pytest
import trio

from noizu_mcp import Server, Toolkit, mcp
from noizu_mcp.backends import Memory

from ..kit.messages import INITIALIZED, call, message
from .fleet import KEYS, LEASE, error_of, fleet, settled, text_of


class Kit(Toolkit):
    @mcp
    async def put(self, ctx, *, key: str, value: str) -> str:
        """Store a value."""
        await ctx.put_session(key, value)
        return "stored"

    @mcp
    async def flag(self, ctx, *, value: bool) -> str:
        """Store true, or the number 1."""
        await ctx.put_session("flag", True if value else 1)
        return "stored"

    @mcp
    async def odd(self, ctx) -> str:
        """Store a value that is not JSON."""
        errors = []
        for value in ((1, 2), object()):
            try:
                await ctx.put_session("odd", value)
            except TypeError as error:
                errors.append(str(error))
        return "\n".join(errors)

    @mcp
    async def much(self, ctx) -> str:
        """Store too much."""
        try:
            await ctx.put_session("much", "x" * 300_000)
        except ValueError as error:
            return str(error)

    @mcp
    async def get(self, ctx) -> str:
        """Return the values, and the level."""
        return f"{sorted(ctx.session.items())} {ctx.log_level}"

    @mcp
    async def wait(self, ctx) -> str:
        """Wait."""
        await trio.sleep_forever()


class Plain(Server, name="shop", version="1", state_keys=KEYS, tool_timeout=None):
    tools = [Kit]


def level(name):
    return message("logging/setLevel", {"level": name}, 5)


async def test_a_session_is_served_anywhere(autojump_clock):
    """Each node serves each request, from the first after `initialize`."""
    async with fleet(Plain) as nodes:
        first, second = await nodes.session(ready=False)
        assert (await second.post(INITIALIZED)).status == 202
        assert text_of(await first.post(call("get"))) == "[] debug"
        assert text_of(await second.post(call("get"))) == "[] debug"


async def test_what_is_stored_at_one_node_holds_at_the_other(autojump_clock):
    """Values and the level are there once they are answered."""
    async with fleet(Plain) as nodes:
        first, second = await nodes.session()
        await first.post(call("put", {"key": "a", "value": "1"}))
        assert text_of(await second.post(call("get"))) == "[('a', '1')] debug"
        await second.post(level("error"))
        await second.post(call("put", {"key": "b", "value": "2"}))
        assert text_of(await first.post(call("get"))) == "[('a', '1'), ('b', '2')] error"


async def test_true_is_not_one(autojump_clock):
    """A value of another type is another value, also where Python says that they are equal."""
    async with fleet(Plain) as nodes:
        first, second = await nodes.session()
        await first.post(call("flag", {"value": False}))
        await second.post(call("flag", {"value": True}))
        assert text_of(await first.post(call("get"))) == "[('flag', True)] debug"


async def test_two_nodes_that_store_at_a_time_lose_nothing(autojump_clock):
    """Different keys, stored at two nodes at a time, are both there."""
    async with fleet(Plain) as nodes:
        sessions = await nodes.session()

        async def put(number):
            key = {"key": f"k{number}", "value": "v"}
            assert text_of(await sessions[number % 2].post(call("put", key, number))) == "stored"

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(put, number)
        text = text_of(await sessions[0].post(call("get")))
        assert text.count("'v'") == 20


async def test_values_are_json_of_a_bounded_size(autojump_clock):
    """A value that would change on its way is refused, and so are too many bytes."""
    async with fleet(Plain) as nodes:
        _, second = await nodes.session()
        odd = text_of(await second.post(call("odd"))).splitlines()
        text = "put_session('odd'): with a backend a value is JSON, not"
        assert odd == [f"{text} tuple", f"{text} object"]
        much = text_of(await second.post(call("much")))
        assert "300,011 bytes of JSON; at most 262,144" in much
        assert text_of(await second.post(call("get"))) == "[] debug"


async def test_a_session_that_is_deleted_is_unknown_everywhere(autojump_clock):
    """Its handlers are refused, and its streams end, at every node."""
    async with fleet(Plain) as nodes:
        first, second = await nodes.session()
        running = first.open(call("wait"))
        stream = first.get()
        await settled()
        assert (await second.delete()).status == 200
        assert (await second.post(call("get"))).status == 404
        assert (await first.post(call("get"))).status == 404
        await running.ended.wait()
        await stream.ended.wait()
        assert error_of(running) == (-32603, "The session has ended")
        assert stream.complete
        assert (await first.delete()).status == 404


async def test_the_bound_of_sessions_is_of_all_nodes(autojump_clock):
    """A session too many is refused; an idle one of this client ends for it after a minute."""
    async with fleet(Plain, limits={"sessions": 2}) as nodes:
        one = await nodes.session()
        await nodes.session(node=1)
        for wire in nodes.wires:
            with pytest.raises(AssertionError, match="More than 2 sessions"):
                await wire.session()
        await trio.sleep(100)
        await nodes.session()
        assert (await one[1].post(call("get"))).status == 404


async def test_a_session_in_use_elsewhere_does_not_end_for_another(autojump_clock):
    """A node asks when another one used the session, and whether it has a stream there."""
    async with fleet(Plain, limits={"sessions": 2}) as nodes:
        one = await nodes.session()
        two = await nodes.session()
        await trio.sleep(100)
        assert text_of(await one[1].post(call("get"))) == "[] debug"
        two[1].get()
        await trio.sleep(1)
        with pytest.raises(AssertionError, match="More than 2 sessions"):
            await nodes.session()
        assert (await one[0].post(call("get"))).status == 200


async def test_idle_time_counts_over_all_nodes(autojump_clock):
    """A session lives while any node uses it, and a running request is a use."""
    async with fleet(Plain, limits={"session_idle": 100.0}) as nodes:
        first, second = await nodes.session()
        for _ in range(4):
            await trio.sleep(80)
            assert (await second.post(call("get"))).status == 200
        assert not len(nodes.wires[0].endpoint.sessions)
        assert (await first.post(call("get"))).status == 200
        first.open(call("wait"))
        await trio.sleep(300)
        assert (await second.post(call("get"))).status == 200
        stream = second.get()
        await trio.sleep(60)
        assert not stream.ended.is_set()
        await first.post(message("notifications/cancelled", {"requestId": 1}))
        await trio.sleep(300)
        assert (await first.post(call("get"))).status == 200
        stream.leave()
        await trio.sleep(300)
        assert (await first.post(call("get"))).status == 404


async def test_a_copy_that_is_dropped_ends_nothing(autojump_clock):
    """A node with too many copies drops one, and takes the session up again."""
    backend = Memory(lease=LEASE)
    limits = {"sessions": 1}
    async with fleet(Plain, 1, backend) as big, fleet(Plain, 1, backend, limits=limits) as small:
        one = (await big.session())[0]
        two = (await big.session())[0]
        for _ in range(2):
            for each in (one, two):
                again = small.at(0, each)
                assert (await again.post(call("get"))).status == 200


async def test_a_node_that_ends_ends_no_session(autojump_clock):
    """The others go on, with all values."""
    backend = Memory(lease=LEASE)
    async with fleet(Plain, 1, backend) as staying:
        async with fleet(Plain, 1, backend) as leaving:
            session = (await leaving.session())[0]
            await session.post(call("put", {"key": "a", "value": "1"}))
        again = staying.at(0, session)
        assert text_of(await again.post(call("get"))) == "[('a', '1')] debug"


class Slow(Plain, name="shop", version="1", state_keys=KEYS, tool_timeout=None):
    ran = 0
    fails = False

    async def init(self, ctx):
        type(self).ran += 1
        await trio.sleep(1)
        if self.fails:
            raise ValueError("no")
        await ctx.put_session("set", "up")


async def test_init_runs_once(autojump_clock):
    """Requests at other nodes wait for it, and see what it has stored."""

    class Once(Slow, name="shop", version="1", state_keys=KEYS, tool_timeout=None):
        pass

    async with fleet(Once, 3) as nodes:
        sessions = await nodes.session()
        seen = []

        async def ask(session):
            seen.append(text_of(await session.post(call("get"))))

        async with trio.open_nursery() as nursery:
            for session in sessions:
                nursery.start_soon(ask, session)
        assert seen == ["[('set', 'up')] debug"] * 3
        assert Once.ran == 1


async def test_init_that_fails_ends_the_session_everywhere(autojump_clock, caplog):
    """Requests that wait for it are answered, and the session is gone."""

    class Fails(Slow, name="shop", version="1", state_keys=KEYS, tool_timeout=None):
        fails = True

    async with fleet(Fails) as nodes:
        first, second = await nodes.session()
        open_ = second.open(call("get"))
        await open_.ended.wait()
        await settled()
        assert error_of(open_)[0] == -32603
        assert (await first.post(call("get"))).status == 404
        assert (await second.post(call("get"))).status == 404
    assert Fails.ran == 1


async def test_init_of_a_dead_node_runs_again(autojump_clock):
    """Another node takes it over once the lease is over."""

    class Dies(Slow, name="shop", version="1", state_keys=KEYS, tool_timeout=None):
        async def init(self, ctx):
            type(self).ran += 1
            if type(self).ran == 1:
                await trio.sleep_forever()
            await ctx.put_session("set", "up")

    backend = Memory(lease=LEASE)
    async with fleet(Dies, 1, backend) as staying:
        async with fleet(Dies, 1, backend, limits={"grace": 0.1}) as dying:
            session = (await dying.session())[0]
            await settled()
            again = staying.at(0, session).open(call("get"))
            await settled()
        await again.ended.wait()
        assert text_of(again) == "[('set', 'up')] debug"
    assert Dies.ran == 2
