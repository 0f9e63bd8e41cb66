"""What happens between the steps of a session at several nodes."""

import trio

from noizu_mcp import Server, Toolkit, mcp
from noizu_mcp.auth import BearerAuth, StaticVerifier
from noizu_mcp.backends import Memory
from noizu_mcp.types import Principal

from ..kit.messages import call
from .fleet import KEYS, LEASE, fleet, text_of


class Kit(Toolkit):
    @mcp
    async def get(self, ctx) -> str:
        """Return the values."""
        return f"{sorted(ctx.session.items())}"

    @mcp
    async def count(self, ctx, *, to: int) -> str:
        """Log numbers, slowly."""
        for number in range(to):
            await ctx.info(number)
            await trio.sleep(1)
        return "counted"


class Shop(Server, name="shop", version="1", state_keys=KEYS, tool_timeout=None):
    tools = [Kit]


class Slow(Memory):
    """A backend whose reads take a while, once a test says so."""

    seconds = 0.0

    async def get(self, key, **options):
        found = await super().get(key, **options)
        await trio.sleep(self.seconds)
        return found


async def test_requests_at_a_time_make_one_copy(autojump_clock):
    """Also where each of them has read the record before the first copy is there."""
    backend = Slow(lease=LEASE)
    async with fleet(Shop, backend=backend) as nodes:
        _, second = await nodes.session()
        backend.seconds = 1
        opened = [second.open(call("get", id_=number)) for number in range(5)]
        for each in opened:
            await each.ended.wait()
            assert text_of(each) == "[]"
        assert len(nodes.wires[1].endpoint.sessions) == 1
        backend.seconds = 0


async def test_a_copy_that_is_dropped_under_a_request_is_made_again(autojump_clock):
    """The request goes on with the new copy."""
    backend = Slow(lease=LEASE)
    async with fleet(Shop, 1, backend, limits={"sessions": 2}) as nodes:
        (session,) = await nodes.session()
        backend.seconds = 1
        request = session.open(call("get"))
        await trio.sleep(0.5)
        (copy,) = nodes.wires[0].endpoint.sessions
        copy.evict()
        await request.ended.wait()
        assert text_of(request) == "[]"
        backend.seconds = 0


async def test_a_session_that_ends_under_a_get_is_unknown(autojump_clock):
    """Nothing follows an answer for it, and nothing reads its changes."""
    backend = Slow(lease=LEASE)
    async with fleet(Shop, backend=backend) as nodes:
        first, second = await nodes.session()
        answer = first.open(call("count", {"to": 1}))
        last = (await answer.event(1))["id"]
        await answer.ended.wait()
        await second.post(call("get"))
        for event_id in (last, None):
            backend.seconds = 0.4
            stream = second.get(event_id)
            await trio.sleep(0.6)
            backend.seconds = 0
            await first.delete()
            await stream.ended.wait()
            assert stream.status == 404
            first, second = await nodes.session()
            await second.post(call("get"))


async def test_a_session_of_another_principal_is_unknown(autojump_clock):
    """At the node that has a copy, at the others, and in an outage."""
    tokens = {name: Principal(subject=name) for name in ("ann", "eve")}
    auth = BearerAuth(
        StaticVerifier(tokens), resource="http://localhost/mcp", authorization_servers=[]
    )
    async with fleet(Shop, auth=auth) as nodes:
        ann = {"authorization": "Bearer ann"}
        first, second = await nodes.session(headers=ann)
        eve = {"authorization": "Bearer eve"}
        for session in (first, second, second):
            assert (await session.post(call("get"), eve)).status == 404
            assert (await session.post(call("get"), ann)).status == 200
        nodes.lines[1].cut()
        assert (await second.post(call("get"), eve)).status == 404
        assert (await second.post(call("get"), ann)).status == 200
        nodes.lines[1].mend()
