"""Handlers of 2026-07-28 that are parked between the POSTs of one call."""

import trio

from noizu_mcp import Context, Limits, Schema, Server, Toolkit, mcp

from ...kit.messages import CAPABILITIES, call
from .wire import serving, settled

ASKABLE = {"_meta": {CAPABILITIES: {"elicitation": {}}}}


class Name(Schema):
    name: str


class Desk(Toolkit):
    def __init__(self):
        self.done = []
        self.ended = trio.Event()

    @mcp
    async def order(self, ctx: Context, what: str = "tea"):
        """Do something, and ask."""
        self.done.append(what)
        try:
            first = (await ctx.elicit("first", Name)).content.name
            await ctx.report_progress(1)
            return f"{first} {(await ctx.elicit('second', Name)).content.name}"
        finally:
            self.ended.set()

    @mcp
    async def stay(self, ctx: Context):
        """Ask, and go on for ever."""
        try:
            await ctx.elicit("first", Name)
            await trio.sleep_forever()
        finally:
            self.ended.set()

    @mcp
    async def work(self, ctx: Context):
        self.done.append("began")
        await trio.sleep_forever()


class Office(Server, name="office", version="1"):
    def __init__(self):
        self.desk = Desk()
        self.tools.add(self.desk)


def retry(answer, name="order", /, **params):
    """Make the retry of a call that was answered with one question."""
    result = answer["result"]
    (key,) = result["inputRequests"]
    given = {key: {"action": "accept", "content": {"name": "N"}}}
    return call(name, inputResponses=given, requestState=result["requestState"], **params)


async def test_a_call_in_three_posts():
    """The handler continues in each POST, and its last answer has what it has done."""
    office = Office()
    async with serving(office) as wire:
        first = (await wire.send_modern(call("order", **ASKABLE))).json
        assert office.telemetry.parked_handlers() == 1
        token = {"_meta": {**ASKABLE["_meta"], "progressToken": "t"}}
        second = await wire.send_modern(retry(first, **token))
        progress, answer = second.messages  # the progress turns it into a stream
        assert progress["params"]["progressToken"] == "t"
        third = (await wire.send_modern(retry(answer, **ASKABLE))).json
        assert third["result"]["content"] == [{"type": "text", "text": "N N"}]
        assert office.desk.done == ["tea"]
        assert office.telemetry.parked_handlers() == 0


async def test_a_client_that_leaves():
    """A disconnect of the current POST cancels the handler, one of an earlier POST does not."""
    office = Office()
    async with serving(office) as wire:
        exchange = wire.modern(call("stay", **ASKABLE))
        await exchange.ended.wait()
        again = wire.modern(retry(exchange.json, "stay", **ASKABLE))
        await settled()
        exchange.leave()
        await settled()
        assert not office.desk.ended.is_set()
        again.leave()
        await office.desk.ended.wait()


class Cancelling:
    """Cancels a POST at the moment when its request begins."""

    def __call__(self, event):
        self.exchange.cancel.cancel()


async def test_a_host_that_cancels():
    """A POST that is cancelled before or while its handler runs ends the handler."""
    office = Office()
    async with serving(office) as wire:
        exchange = wire.modern(call("work", **ASKABLE))
        exchange.cancel.cancel()
        await exchange.ended.wait()
        assert office.desk.done == []
        # The two tasks begin in any order, as trio shuffles them.
        office.telemetry.add(cancel := Cancelling())
        before = len(wire.tasks)
        for _ in range(30):
            cancel.exchange = exchange = wire.modern(call("work", **ASKABLE))
            await exchange.ended.wait()
            await settled()
            assert len(wire.tasks) == before
        assert len(office.desk.done) < 30
        office.telemetry.remove(cancel)
        exchange = wire.modern(call("stay", **ASKABLE))
        await exchange.ended.wait()
        again = wire.modern(retry(exchange.json, "stay", **ASKABLE))
        await settled()
        again.cancel.cancel()
        await office.desk.ended.wait()


async def test_a_client_that_cannot_be_asked():
    """Handlers without capabilities to ask need no task besides that of the POST."""
    async with serving(Office()) as wire:
        tasks = len(wire.tasks)
        exchange = wire.modern(call("work"))
        await settled()
        plain = len(wire.tasks)
        other = wire.modern(call("work", **ASKABLE))
        await settled()
        # `plain` has a task that watches the client; the other one has a task for its handler.
        assert (plain - tasks, len(wire.tasks) - plain) == (1, 1)
        exchange.leave()
        other.leave()


async def test_the_end_of_the_application():
    """The end waits for no parked handler, and does not report it as running."""
    office = Office()
    async with serving(office) as wire:
        await wire.send_modern(call("stay", **ASKABLE))
        assert wire.app.working == []
        again = wire.modern(retry((await wire.send_modern(call("stay", **ASKABLE))).json, "stay"))
        await settled()
        assert [each.params["name"] for each in wire.app.working] == ["stay"]
        again.leave()
        await settled()
        assert wire.app.working == []
        began = trio.current_time()
    assert office.desk.ended.is_set()
    assert trio.current_time() - began < 1


class Small(Office, name="small", version="1", limits=Limits(parked=8)):
    pass


async def test_the_share_of_a_client():
    """Beyond a quarter of the limit a client's own oldest handler makes room."""
    office = Small()
    async with serving(office) as wire:
        other = wire.at("192.0.2.2")
        theirs = [(await other.send_modern(call("order", **ASKABLE))).json for _ in range(2)]
        mine = [(await wire.send_modern(call("order", **ASKABLE))).json for _ in range(3)]
        assert office.telemetry.parked_handlers() == 4
        del office.desk.done[:]
        for answer in theirs:
            await other.send_modern(retry(answer, **ASKABLE))
        assert office.desk.done == []
        await wire.send_modern(retry(mine[0], **ASKABLE))
        assert office.desk.done == ["tea"]


async def test_all_clients_together():
    """Beyond `Limits.parked` the oldest handler of all makes room."""
    office = Small()
    async with serving(office) as wire:
        calls = [call("order", {"what": str(n)}, **ASKABLE) for n in range(9)]
        answers = [
            (await wire.at(f"192.0.2.{n}").send_modern(each)).json for n, each in enumerate(calls)
        ]
        assert office.telemetry.parked_handlers() == 8
        del office.desk.done[:]
        for n, answer in reversed([*enumerate(answers)]):
            again = retry(answer, **ASKABLE)
            again["params"]["arguments"] = {"what": str(n)}
            await wire.at(f"192.0.2.{n}").send_modern(again)
        assert office.desk.done == ["0"]


async def test_the_bytes_of_a_client():
    """A client may use a quarter of `parked_memory`."""

    class Light(Office, name="light", version="1", limits=Limits(parked_memory=800_000)):
        pass

    office = Light()
    async with serving(office) as wire:
        large = {"what": "x" * 90_000}
        for _ in range(4):
            await wire.send_modern(call("order", large, **ASKABLE))
        assert office.telemetry.parked_handlers() == 2
        await wire.at("192.0.2.2").send_modern(call("order", large, **ASKABLE))
        assert office.telemetry.parked_handlers() == 3


async def test_another_node():
    """A retry at another node runs the handler again there."""
    secret = "a secret of two nodes, 0123456789"

    class Node(Office, name="node", version="1", state_keys=[secret]):
        pass

    one, two = Node(), Node()
    async with serving(one) as wire, serving(two) as other:
        first = (await wire.send_modern(call("order", **ASKABLE))).json
        second = (await other.send_modern(retry(first, **ASKABLE))).json
        third = (await other.send_modern(retry(second, **ASKABLE))).json
    assert third["result"]["content"] == [{"type": "text", "text": "N N"}]
    assert (one.desk.done, two.desk.done) == (["tea"], ["tea"])
