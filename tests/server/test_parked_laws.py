"""Parked or run again: the answers on the wire are the same, and nothing happens twice when parked.

A script is a handler: side effects, steps, sleeps and questions, in one task or in several. A
course is the client: which questions it answers in each round, and all that can go wrong between
two rounds. Both servers live through the same course of the same script.
"""

from collections import Counter

import pytest
import trio
import trio.testing
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noizu_mcp import Context, Limits, McpError, Schema, Server, Toolkit, connect, mcp
from noizu_mcp.types import ClientCapabilities

ABLE = ClientCapabilities(elicitation={})
SECONDS = 60


class Name(Schema):
    name: str


class Actor(Toolkit):
    """Plays scripts."""

    def __init__(self):
        self.done = Counter()

    async def act(self, what):
        self.done[what] += 1
        return what

    @mcp
    async def play(self, ctx: Context, script: list):
        return " ".join(await self.run(script, ctx, "s"))

    async def run(self, script, ctx, place):
        told = []
        for number, op in enumerate(script):
            here = f"{place}{number}"
            if isinstance(op, list):
                told += await self.run_all(op, ctx, here)
            elif op == "effect":
                await self.act(f"effect {here}")
            elif op == "step":
                await ctx.step(self.act, f"step {here}")
            elif op == "sleep":
                await trio.sleep(0.1)
            else:  # `same` asks one question in several places
                text = "same" if op == "same" else here
                answer = await ctx.elicit(text, Name)
                told.append(f"{text}={answer.content.name}")
        return told

    async def run_all(self, scripts, ctx, place):
        told = {}

        async def one(number, script):
            told[number] = await self.run(script, ctx, f"{place}.{number}.")

        async with trio.open_nursery() as nursery:
            for number, script in enumerate(scripts):
                nursery.start_soon(one, number, script)
        return [each for number in range(len(scripts)) for each in told[number]]

    @mcp
    async def other(self, ctx: Context):
        await ctx.elicit("other", Name)


class Stage(Server, name="stage", version="1", limits=Limits(parked=1, parked_seconds=SECONDS)):
    def __init__(self):
        self.actor = Actor()
        self.tools.add(self.actor)


OPS = ["effect", "step", "ask", "ask"]
# Excluded from parallel branches: sleeps, because a parked handler may then ask in an earlier round
# than one whose sleep begins again; and equal questions, whose answers go to whichever task asks
# first.
BRANCH = st.lists(st.sampled_from(OPS), max_size=3)
SCRIPTS = st.lists(
    st.one_of(st.sampled_from([*OPS, "same", "sleep"]), st.lists(BRANCH, min_size=1, max_size=3)),
    max_size=4,
)
#: Before a retry: nothing, or one of the ways to lose the handler, or to use a state otherwise.
TROUBLES = st.sampled_from(
    ["", "", "", "wait", "expire", "evict", "foreign", "cancel", "twice", "at once"]
)
#: The answer to the n-th question of a round: valid, invalid, none.
ANSWERS = st.lists(st.sampled_from(["yes", "yes", "yes", "bad", "none"]), min_size=1, max_size=4)
COURSES = st.lists(st.tuples(TROUBLES, ANSWERS), max_size=6)


class Client:
    """Lives through one course."""

    def __init__(self, client, script, course):
        self.client = client
        self.call = {"name": "play", "arguments": {"script": script}}
        self.course = iter(course)
        self.seen = []

    async def send(self, params, **options):
        try:
            return await self.client.request("tools/call", params, **options)
        except McpError as error:
            return {"error": (error.code, error.message)}

    def note(self, result):
        """Record what is visible of an answer."""
        asked = result.get("inputRequests")
        if asked is None:
            self.seen.append({**result, "_meta": None})
        else:
            self.seen.append({key: each["params"]["message"] for key, each in asked.items()})
            self.seen[-1] = dict(sorted(self.seen[-1].items()))

    async def live(self):
        """Call, and retry until there is a result."""
        result = await self.send(self.call)
        self.note(result)
        rounds = 0
        while "inputRequests" in result:
            # After the course a client that answers everything.
            trouble, kinds = next(self.course, ("", ["yes"]))
            rounds += 1
            retry = self.retry(result, kinds, rounds)
            result = await self.take(trouble, retry)
            self.note(result)

    def retry(self, result, kinds, rounds):
        given = {}
        for number, key in enumerate(sorted(result["inputRequests"])):
            kind = kinds[number % len(kinds)]
            if kind == "yes":
                given[key] = {"action": "accept", "content": {"name": str(rounds)}}
            elif kind == "bad":
                given[key] = {"action": "perhaps"}
        state = result["requestState"]
        return {**self.call, "inputResponses": given, "requestState": state}

    async def take(self, trouble, retry):
        """Send a retry, with some trouble before it or beside it."""
        if trouble in ("wait", "expire"):
            await trio.sleep(SECONDS / 2 if trouble == "wait" else 2 * SECONDS)
        elif trouble == "evict":
            await self.send({"name": "other"})
        elif trouble == "foreign":
            foreign = {**retry, "arguments": {"script": ["effect"]}}
            self.note(await self.send(foreign))
        elif trouble == "cancel":
            with trio.move_on_after(0):
                await self.send(retry)
            await trio.testing.wait_all_tasks_blocked()
        elif trouble == "twice":
            result = await self.send(retry)
            self.note(await self.send(retry))
            return result
        elif trouble == "at once":
            results = []

            async def send():
                results.append(await self.send(retry))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                nursery.start_soon(send)
            results.sort(key=lambda result: "error" in result)
            self.note(results[1])
            return results[0]
        return await self.send(retry)


async def live_through(script, course, replay):
    stage = Stage()
    async with connect(stage, version="2026-07-28", capabilities=ABLE, replay=replay) as connection:
        client = Client(connection, script, course)
        await client.live()
        # What still waits belongs to states that were left behind.
        assert stage.telemetry.parked_handlers() <= 1
    return client.seen, stage.actor.done


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(script=SCRIPTS, course=COURSES)
@example(script=["effect", "ask", "effect", "ask"], course=[])
@example(script=["effect", "ask"], course=[("evict", ["yes"])])
@example(script=[["ask"], ["effect", "ask"], "same", "same"], course=[("", ["none", "yes"])])
def test_parked_and_replayed_results_are_equal(script, course):
    """Results equal replayed ones; effects and steps happen once, even if a state is reused."""

    async def main(replay):
        with trio.fail_after(100_000):
            return await live_through(script, course, replay)

    def run(replay):
        clock = trio.testing.MockClock(autojump_threshold=0)
        return trio.run(main, replay, clock=clock)

    seen, done = run(replay=False)
    expected, _ = run(replay=True)
    assert seen == expected
    troubles = {trouble for trouble, _ in course}
    if not troubles & {"expire", "evict"}:
        assert set(done.values()) <= {1}
    assert {count for what, count in done.items() if what.startswith("step")} <= {1}
