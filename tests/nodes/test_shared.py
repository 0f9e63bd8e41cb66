"""What the nodes of a server share: changes, rates, capability texts, states of questions."""

import logging
from types import SimpleNamespace

import pytest
import trio

from noizu_mcp import Schema, Server, Toolkit, mcp
from noizu_mcp.policies import Denied, RateLimit
from noizu_mcp.server import digest_of

from ..kit.messages import CAPABILITIES, call, message
from .kit import Faulty, known, nodes


class Yes(Schema):
    yes: bool


class Kit(Toolkit):
    """Tools whose effects other nodes must see."""

    @mcp
    async def changed(self, ctx, uri: str = "") -> str:
        """Change the tools, or a resource."""
        if uri:
            ctx.notify.resource_updated(uri)
        else:
            ctx.notify.tools()
        return "changed"

    @mcp
    async def pay(self, ctx) -> str:
        """Ask, and then pay."""
        await ctx.elicit("Pay?", Yes)

        async def pay() -> int:
            return 1

        return f"paid {await ctx.step(pay)}"

    @mcp
    async def share(self, ctx) -> str:
        """Write a capability."""
        return str(ctx.capability)

    @mcp
    async def use(self, ctx, text: str) -> str:
        """Open a capability."""
        result = await ctx.call_tool("changed", {}, capability=text)
        return result.text


def make(limits=()):
    """Make a server."""

    class Shop(Server, name="shop", version="1"):
        tools = [Kit]
        policies = limits

    return Shop()


def listen(wire, **wanted):
    """Listen to changes at a node."""
    return wire.modern(message("subscriptions/listen", {"notifications": wanted}, 1))


async def text_of(wire, name, arguments=None, **params):
    """Call a tool at a node; return the text of its result."""
    answer = await wire.send_modern(call(name, arguments, **params))
    return answer.json["result"]["content"][0]["text"]


async def test_a_change_at_one_node_reaches_the_clients_of_the_others(autojump_clock):
    """Lists and resources."""
    async with nodes(make, 3) as (one, two, three):
        heard = listen(two, toolsListChanged=True), listen(three, toolsListChanged=True)
        for each in heard:
            await each.event(0)
        await text_of(one, "changed")

        for each in heard:
            notice = (await each.event(1))["data"]
            assert notice["method"] == "notifications/tools/list_changed"


async def test_changes_of_an_outage_are_told_after_it(autojump_clock):
    """They wait at the node."""
    backend = Faulty()
    async with nodes(make, backend=backend) as (one, two):
        heard = listen(two, toolsListChanged=True)
        await heard.event(0)
        backend.down = True
        await text_of(one, "changed")
        await trio.sleep(60)
        assert len(heard.events) == 1
        backend.down = False

        assert (await heard.event(1))["data"]["method"] == "notifications/tools/list_changed"


async def test_after_a_loss_of_the_data_anything_may_have_changed(autojump_clock, caplog):
    """A change may have been lost with it."""
    backend = Faulty()
    async with nodes(make, backend=backend) as (_, two):
        heard = listen(two, toolsListChanged=True)
        await heard.event(0)
        backend.clear()

        assert (await heard.event(1))["data"]["method"] == "notifications/tools/list_changed"
        await known()
    assert "the backend has lost its data" in caplog.text


async def test_a_burst_of_changes_is_merged(autojump_clock):
    """Two hundred changes in a second are at most twelve notifications."""
    async with nodes(make) as (one, two):
        heard = listen(two, toolsListChanged=True)
        await heard.event(0)
        for _ in range(200):
            await text_of(one, "changed")
            await trio.sleep(0.005)
        await trio.sleep(5)

        assert 2 <= len(heard.events) - 1 <= 12


async def test_an_outage_is_logged_once_and_shown_by_readyz(autojump_clock, caplog):
    """The node stays ready."""
    caplog.set_level(logging.INFO, "noizu_mcp")
    backend = Faulty()
    async with nodes(make, backend=backend, health=True) as (one, _):
        assert (await one.send("GET", path="/readyz")).body == b"ok\n"
        backend.down = True
        await trio.sleep(30)
        answer = await one.send("GET", path="/readyz")
        backend.down = False
        await known()

        assert (answer.status, answer.body) == (200, b"ok\nbackend: cannot be reached\n")
        assert (await one.send("GET", path="/readyz")).body == b"ok\n"
    texts = [record.getMessage() for record in caplog.records]
    assert texts.count("the backend cannot be reached: it was taken down") == 2  # one of each node
    assert texts.count("the backend can be reached again") == 2


@pytest.mark.parametrize("strict", [False, True])
async def test_a_rate_limit_counts_the_calls_of_all_nodes(autojump_clock, strict):
    """Exactly; in an outage each node counts for itself, or refuses if the limit is strict."""

    def limited():
        return make([RateLimit(4, per=100, strict=strict, clock=trio.current_time)])

    backend = Faulty()
    async with nodes(limited, backend=backend) as wires:
        texts = []

        async def one(wire):
            texts.append(await text_of(wire, "changed"))

        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(one, wires[number % 2])
        denied = [text for text in texts if text != "changed"]
        assert len(denied) == 6
        assert all("rate limit exceeded: max 4/100s; try again in" in text for text in denied)
        await trio.sleep(101)
        backend.down = True
        texts = [await text_of(wires[number % 2], "changed") for number in range(10)]

        if strict:
            assert all("cannot be counted now" in text for text in texts)
        else:
            assert texts.count("changed") == 8  # four of each


async def test_an_empty_bucket_is_remembered(autojump_clock):
    """A client that goes on calling costs the backend nothing, and takes little memory."""
    asked = []

    class Node:
        async def count(self, name, *, limit, period):
            asked.append(name)
            return 60.0

    limit = RateLimit(1, per=60, key="principal", clock=trio.current_time)
    server = make([limit])
    ctx = SimpleNamespace(running=SimpleNamespace(node=Node()), server=server)
    clients = [SimpleNamespace(caller=None, client=f"192.0.2.{n}") for n in range(10_001)]
    for client in [clients[0], clients[0], *clients[1:], clients[-1], clients[0]]:
        with pytest.raises(Denied, match="try again in 60 s"):
            await limit.check(client, ctx)

    # The first one was forgotten for the last one.
    assert len(asked) == 10_002


async def test_a_capability_opens_once_at_all_nodes(autojump_clock):
    """In an outage it does not open at all."""
    backend = Faulty()
    async with nodes(make, backend=backend) as (one, two):
        text = await text_of(one, "share")
        assert await text_of(two, "use", {"text": text}) == "changed"
        assert "the capability is not valid" in await text_of(one, "use", {"text": text})
        text = await text_of(one, "share")
        backend.down = True

        assert "try again" in await text_of(two, "use", {"text": text})


ASKABLE = {"_meta": {CAPABILITIES: {"elicitation": {}}}}


def retry(answer):
    """Make the retry of a payment that was answered with a question."""
    result = answer.json["result"]
    (key,) = result["inputRequests"]
    given = {key: {"action": "accept", "content": {"yes": True}}}
    state = result["requestState"]
    return call("pay", inputResponses=given, requestState=state, **ASKABLE)


@pytest.mark.parametrize("first", [0, 1])
async def test_a_question_is_answered_at_any_node_once(autojump_clock, first):
    """The handler that waits at another node is given up; the step runs once."""
    async with nodes(make) as wires:
        asked = await wires[0].send_modern(call("pay", **ASKABLE))
        again = retry(asked)
        done = await wires[first].send_modern(again)
        await known()
        waiting = [wire.app.server.telemetry.parked_handlers() for wire in wires]
        others = [await wire.send_modern(again) for wire in wires]

    assert done.json["result"]["content"][0]["text"] == "paid 1"
    assert waiting == [0, 0]
    assert ["was used before" in each.json["error"]["message"] for each in others] == [True, True]


async def test_only_the_answered_handler_is_given_up(autojump_clock):
    """Other questions go on waiting at the node."""
    async with nodes(make) as (one, two):
        asked = [await one.send_modern(call("pay", **ASKABLE)) for _ in range(2)]
        await two.send_modern(retry(asked[1]))
        await known()
        waiting = one.app.server.telemetry.parked_handlers()
        done = await one.send_modern(retry(asked[0]))

    assert waiting == 1
    assert done.json["result"]["content"][0]["text"] == "paid 1"


async def test_an_answer_to_a_tool_that_this_node_does_not_have(autojump_clock):
    """It is refused at once."""
    async with nodes(make) as (one, two):
        asked = await one.send_modern(call("pay", **ASKABLE))
        two.app.server.tools.remove("pay")
        done = await two.send_modern(retry(asked))

    assert "pay" in done.json["error"]["message"]


async def test_the_same_answer_at_two_nodes_at_once_pays_once(autojump_clock):
    """One of them is refused."""
    async with nodes(make, 3) as wires:
        again = retry(await wires[0].send_modern(call("pay", **ASKABLE)))
        answers = [wire.modern(again) for wire in wires]
        for each in answers:
            await each.ended.wait()

    texts = [each.body.decode() for each in answers]
    assert sum("paid" in text for text in texts) == 1
    assert sum("was used before" in text for text in texts) == 2


async def test_a_state_that_another_node_has_claimed_is_refused_where_its_handler_waits(
    autojump_clock,
):
    """The handler is given up."""
    backend = Faulty()
    async with nodes(make, backend=backend) as (one, _):
        again = retry(await one.send_modern(call("pay", **ASKABLE)))
        state = again["params"]["requestState"]
        await backend.put(f"state:{digest_of(state)}", b"", ttl=60)
        done = await one.send_modern(again)
        waiting = one.app.server.telemetry.parked_handlers()

    assert "was used before" in done.json["error"]["message"]
    assert waiting == 0


async def test_in_an_outage_a_question_is_answered_without_a_claim(autojump_clock):
    """Requests without a session do not notice the outage."""
    backend = Faulty()
    async with nodes(make, backend=backend) as (one, two):
        again = retry(await one.send_modern(call("pay", **ASKABLE)))
        backend.down = True
        done = await two.send_modern(again)
        backend.down = False

    assert "paid" in done.json["result"]["content"][0]["text"]


async def test_a_forged_state_takes_no_room_in_the_backend(autojump_clock):
    """It is refused before."""
    async with nodes(make) as (one, two):
        again = retry(await one.send_modern(call("pay", **ASKABLE)))
        again["params"]["requestState"] += "A"
        done = await two.send_modern(again)

    assert done.json["error"]["message"] == "Invalid requestState"
