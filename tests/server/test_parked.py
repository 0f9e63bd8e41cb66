"""Handlers of 2026-07-28 that are parked until their clients answer, and then resume."""

import logging
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from noizu_mcp import (
    Accept,
    ClientHandler,
    Context,
    InputRequest,
    InputRequired,
    Limits,
    McpError,
    Prompt,
    Resource,
    Schema,
    Server,
    TaskStarted,
    Toolkit,
    connect,
    mcp,
)
from noizu_mcp.engine import logger
from noizu_mcp.types import TASKS, ClientCapabilities, Principal

ABLE = ClientCapabilities(elicitation={})
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
BY_HAND = InputRequest("elicitation/create", {"message": "by hand", "requestedSchema": FORM})


class Name(Schema):
    name: str


class Desk(Toolkit):
    """Tools with side effects and questions."""

    def __init__(self):
        self.done = []
        self.seen = []
        self.event = trio.Event()

    def send(self, what):
        self.done.append(what)
        return what

    async def ask(self, ctx, what):
        return (await ctx.elicit(what, Name)).content.name

    @mcp
    async def order(self, ctx: Context, what: str = "tea"):
        """Send a mail, and ask twice."""
        self.send(what)
        first = await self.ask(ctx, "first")
        second = await self.ask(ctx, "second")
        return f"{first} {second}"

    @mcp
    async def careful(self, ctx: Context):
        """Do the same in steps."""
        await ctx.step(self.send, "before")
        first = await self.ask(ctx, "first")
        await ctx.step(self.send, "between")
        return f"{first} {await self.ask(ctx, 'second')}"

    @mcp
    async def at_once(self, ctx: Context):
        return await self.ask(ctx, "only")

    @mcp
    async def both(self, ctx: Context):
        """Ask twice at the same time."""
        self.send("both")
        told = {}

        async def one(what):
            told[what] = await self.ask(ctx, what)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, "left")
            nursery.start_soon(one, "right")
        return " ".join(told[what] for what in sorted(told))

    @mcp
    async def busy(self, ctx: Context):
        """Ask in one task; work, ask and run a step in another one while it waits."""
        told = {}

        async def work():
            await self.event.wait()
            self.seen.append(ctx.cancelled)
            told["late"] = await self.ask(ctx, "late")

        async def step():
            await self.event.wait()
            await ctx.step(self.send, "step")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            nursery.start_soon(step)
            told["first"] = await self.ask(ctx, "first")
            self.seen.append(list(self.done))
        return f"{told['first']} {told['late']}"

    @mcp
    async def impatient(self, ctx: Context, fails: bool = False):
        """Go on without an answer."""
        with trio.move_on_after(5):
            await ctx.elicit("quick", Name)
        self.send("gave up")
        if fails:
            raise McpError(-5, "nobody there")
        return "nobody there"

    @mcp(timeout=10)
    async def slow(self, ctx: Context):
        """Work for 8 seconds around a question, and then for ever."""
        await trio.sleep(4)
        await self.ask(ctx, "first")
        await trio.sleep(4)
        self.send("worked")
        await trio.sleep_forever()

    @mcp(max_concurrency=1)
    async def single(self, ctx: Context):
        return await self.ask(ctx, "one")

    @mcp
    async def context(self, ctx: Context):
        """Report what the context says before and after a question."""
        for what in ("before", "after"):
            await ctx.report_progress(1)
            await ctx.info(what)
            self.seen.append((ctx.request_id, ctx.meta.get("com.example/n"), ctx.cancelled))
            if what == "before":
                await self.ask(ctx, what)

    @mcp
    async def watched(self, ctx: Context):
        try:
            await self.ask(ctx, "still there?")
            await trio.sleep_forever()
        finally:
            self.send("end")
            self.event.set()

    @mcp
    async def mixed(self, ctx: Context):
        """Ask, and then ask by hand."""
        self.send("run")
        first = await self.ask(ctx, "first")
        if "q" not in ctx.input_responses:
            return InputRequired({"q": BY_HAND}, "state")
        return f"{first} {ctx.input_responses['q']['content']['name']}"

    @mcp(task="optional", starts_task=True)
    async def later(self, ctx: Context):
        self.send("run")
        first = await self.ask(ctx, "first")
        await ctx.start_task()
        return first


class Log(Resource, uri="log://all"):
    def __init__(self, desk):
        self.desk = desk

    async def read(self, ctx: Context):
        self.desk.send("read")
        return await self.desk.ask(ctx, "which?")


class Letter(Prompt):
    def __init__(self, desk):
        self.desk = desk

    async def get(self, ctx: Context):
        self.desk.send("get")
        return await self.desk.ask(ctx, "whom?")


class Office(Server, name="office", version="1"):
    """A server whose tools, prompt and resource share one desk."""

    def __init__(self):
        self.desk = Desk()
        self.tools.add(self.desk)
        self.resources.add(Log(self.desk))
        self.prompts.add(Letter(self.desk))


class Answering(ClientHandler):
    """Gives its message back as the answer."""

    async def handle_elicitation(self, params):
        return Accept({"name": params["message"].upper()})


class Round:
    """Drives a call round by round.

    Args:
        client: The client.
        name: The tool.
        arguments: Its arguments.
    """

    def __init__(self, client, name, arguments=None):
        self.client = client
        self.params = {"name": name, "arguments": arguments or {}}
        self.result = {}

    async def send(self, answers=None, *, state=..., **params):
        """Send the call, or the retry of its last round; the answers by the text of a question."""
        if self.result:
            asked = self.result.get("inputRequests", {})
            keys = {each["params"]["message"]: key for key, each in asked.items()}
            given = {keys[text]: form(name) for text, name in (answers or {}).items()}
            state = self.result["requestState"] if state is ... else state
            params |= {"inputResponses": given, "requestState": state}
        self.result = await self.client.request("tools/call", {**self.params, **params})
        return self.asked

    @property
    def asked(self):
        """The questions of the last round, or the text of the result."""
        if self.result["resultType"] == "input_required":
            asked = self.result["inputRequests"].values()
            return sorted(each["params"]["message"] for each in asked)
        return self.result["content"][0]["text"]


def form(name):
    return {"action": "accept", "content": {"name": name}}


@asynccontextmanager
async def serving(server=Office, **options):
    """Serve an office in memory; return the client and the desk."""
    office = server() if isinstance(server, type) else server
    async with connect(office, version="2026-07-28", capabilities=ABLE, **options) as client:
        yield client, office.desk


# Side effects


@pytest.mark.parametrize(
    ("version", "replay", "mails"),
    [("2025-11-25", False, 1), ("2026-07-28", False, 1), ("2026-07-28", True, 3)],
)
async def test_a_mail_and_two_questions(version, replay, mails, caplog):
    """A parked handler sends one mail, a replayed one three, which the log reports once."""
    office = Office()
    with caplog.at_level(logging.WARNING, logger.name):
        async with connect(office, handler=Answering(), version=version, replay=replay) as client:
            for _ in range(2):
                result = await client.call_tool("order")
    assert result.content[0].text == "FIRST SECOND"
    assert office.desk.done == ["tea"] * 2 * mails
    named = [each.getMessage() for each in caplog.records]
    assert len(named) == (1 if replay else 0)
    assert not replay or named[0].startswith("Desk.order (")


@pytest.mark.parametrize("replay", [False, True])
async def test_steps(replay, caplog):
    """Steps run once, parked or replayed, and a handler with steps is not reported in the log."""
    office = Office()
    with caplog.at_level(logging.WARNING, logger.name):
        async with connect(office, handler=Answering(), replay=replay) as client:
            assert (await client.call_tool("careful")).content[0].text == "FIRST SECOND"
            assert (await client.call_tool("at_once")).content[0].text == "ONLY"
    assert office.desk.done == ["before", "between"]
    assert caplog.records == []


@pytest.mark.parametrize("replay", [False, True])
async def test_prompts_and_resources(replay):
    """Prompts and resources are parked, too."""
    office = Office()
    async with connect(office, handler=Answering(), replay=replay) as client:
        assert (await client.read_resource("log://all")).contents[0].text == "WHICH?"
        assert (await client.get_prompt("letter")).messages[0].content.text == "WHOM?"
    assert office.desk.done == (["read", "read", "get", "get"] if replay else ["read", "get"])


# Rounds


async def test_the_questions_of_several_tasks():
    """Questions of several tasks share a round; an unanswered one is asked again."""
    async with serving() as (client, desk):
        call = Round(client, "both")
        assert await call.send() == ["left", "right"]
        assert await call.send({"left": "L"}) == ["right"]
        assert await call.send() == ["right"]
        assert await call.send({"right": "R"}) == "L R"
    assert desk.done == ["both"]


async def test_invalid_answers():
    """A question with an invalid answer is asked again, three times."""
    async with serving() as (client, desk):
        call = Round(client, "order")
        await call.send()
        for _ in range(3):
            assert await call.send({"first": 5}) == ["first"]
        assert await call.send({"first": "x"}) == ["second"]
        call = Round(client, "order")
        await call.send()
        for _ in range(3):
            await call.send({"first": 5})
        with pytest.raises(McpError, match='No valid answer to "first" in 4 tries'):
            await call.send({"first": 5})
    assert desk.done == ["tea", "tea"]


@pytest.mark.parametrize("replay", [False, True])
async def test_too_many_rounds(replay):
    """A client that never answers all questions gets the same error as with replays."""
    async with serving(replay=replay) as (client, _):
        call = Round(client, "both")
        for _ in range(50):
            assert await call.send() == ["left", "right"]
        with pytest.raises(McpError, match="More than 50 rounds"):
            await call.send({"left": "L"})


async def test_work_goes_on_while_it_is_parked():
    """Other tasks run while a handler is parked; their questions join the next round."""
    async with serving() as (client, desk):
        call = Round(client, "busy")
        assert await call.send() == ["first"]
        desk.event.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (desk.seen, desk.done) == ([False], [])
        assert await call.send({"first": "F"}) == ["late"]
        assert desk.done == ["step"]
        assert await call.send({"late": "L"}) == "F L"


async def test_an_answer_to_a_question_that_was_not_shown():
    """An answer to a question that was not in the round is ignored."""
    async with serving() as (client, desk):
        first = Round(client, "busy")
        desk.event.set()
        assert await first.send() == ["first", "late"]
        (key,) = (k for k, each in first.result["inputRequests"].items() if "late" in str(each))
        desk.event = trio.Event()
        call = Round(client, "busy")
        assert await call.send() == ["first"]
        desk.event.set()
        await trio.testing.wait_all_tasks_blocked()
        (own,) = call.result["inputRequests"]
        forged = {key: form("forged"), own: form("F")}
        state = call.result["requestState"]
        result = await client.request(
            "tools/call", {**call.params, "inputResponses": forged, "requestState": state}
        )
        assert list(result["inputRequests"]) == [key]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_handler_that_ends_while_it_is_parked(fails, autojump_clock):
    """The result or the error of a handler that ended while parked answers the retry."""
    async with serving() as (client, desk):
        call = Round(client, "impatient", {"fails": fails})
        assert await call.send() == ["quick"]
        await trio.sleep(100)
        assert desk.done == ["gave up"]
        if fails:
            with pytest.raises(McpError, match="nobody there"):
                await call.send({"quick": "too late"})
        else:
            assert await call.send({"quick": "too late"}) == "nobody there"
    assert desk.done == ["gave up"]


async def test_a_handler_that_gives_up_before_its_round_ends():
    """If the asking task is cancelled before the round is sent, the question is not sent."""

    class Hasty(Toolkit):
        @mcp
        async def hasty(self, ctx: Context):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ctx.elicit, "never mind", Name)
                await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            return (await ctx.elicit("this one", Name)).content.name

    class Hurry(Server, name="hurry", version="1"):
        tools = [Hasty]
        desk = None

    async with serving(Hurry) as (client, _):
        call = Round(client, "hasty")
        assert await call.send() == ["this one"]
        assert await call.send({"this one": "T"}) == "T"


@pytest.mark.parametrize("replay", [False, True])
async def test_questions_by_hand_come_after(replay):
    """A handler that returns `InputRequired` has ended: it is called again with the answers."""
    async with serving(replay=replay) as (client, desk):
        call = Round(client, "mixed")
        assert await call.send() == ["first"]
        assert await call.send({"first": "F"}) == ["by hand"]
        assert await call.send({"by hand": "H"}) == "F H"
    assert desk.done == ["run"] * (3 if replay else 2)


async def test_a_slow_task_of_a_replay(autojump_clock):
    """In a replay a slower task gets one second to ask its question."""

    class Slower(Toolkit):
        def __init__(self):
            self.runs = 0

        @mcp
        async def slower(self, ctx: Context):
            self.runs += 1
            async with trio.open_nursery() as nursery:
                if self.runs > 1:
                    nursery.start_soon(ctx.elicit, "new", Name)
                    await trio.sleep(0.5)
                await ctx.elicit("old", Name)
            return "done"

    class Slow(Server, name="slow", version="1"):
        tools = [Slower]
        desk = None

    async with serving(Slow, replay=True) as (client, _):
        call = Round(client, "slower")
        assert await call.send() == ["old"]
        assert await call.send({"old": "O"}) == ["new"]
        assert await call.send({"new": "N"}) == "done"


async def test_a_question_of_a_cancelled_handler():
    """A question that is asked during cancellation is not sent."""

    class Leaving(Toolkit):
        def __init__(self):
            self.event = trio.Event()

        @mcp
        async def leave(self, ctx: Context):
            try:
                await trio.sleep_forever()
            finally:
                try:
                    await ctx.elicit("why?", Name)
                finally:
                    self.event.set()

    class Left(Server, name="left", version="1"):
        def __init__(self):
            self.desk = Leaving()
            self.tools.add(self.desk)

    async with serving(Left) as (client, desk):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Round(client, "leave").send)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        with trio.fail_after(5):
            await desk.event.wait()


# Retries


@pytest.mark.parametrize("replay", [False, True])
async def test_a_state_that_comes_twice(replay):
    """One retry resumes the handler; every other retry with the same state is refused."""
    async with serving(replay=replay) as (client, desk):
        call = Round(client, "order")
        await call.send()
        key = next(iter(call.result["inputRequests"]))
        params = {**call.params, "requestState": call.result["requestState"]}
        results, refused = [], []

        async def retry(answer):
            try:
                more = {"inputResponses": {key: form(answer)}}
                results.append(await client.request("tools/call", {**params, **more}))
            except McpError as error:
                refused.append(str(error))

        async with trio.open_nursery() as nursery:
            for answer in "FGHI":
                nursery.start_soon(retry, answer)
        (call.result,) = results
        assert call.asked == ["second"]
        assert (await call.send({"second": "S"}))[1:] == " S"
        done = list(desk.done)
        await retry("F")
        assert len(refused) == 4
        assert set(refused) == {
            "This requestState was used before; make the call again without it (-32602)"
        }
        assert desk.done == done


async def test_a_state_of_another_call():
    """A state of another call is refused, and the handler waits for its own retry."""
    async with serving() as (client, desk):
        call = Round(client, "order")
        await call.send()
        with pytest.raises(McpError, match="Invalid requestState"):
            await client.request(
                "tools/call",
                {
                    **call.params,
                    "arguments": {"what": "x"},
                    "requestState": call.result["requestState"],
                },
            )
        with pytest.raises(McpError, match="Invalid requestState"):
            await client.request("tools/call", {**call.params, "requestState": 5})
        assert await call.send({"first": "F"}) == ["second"]
    assert desk.done == ["tea"]


async def test_the_context_is_that_of_the_retry():
    """Id, `_meta`, progress token and log level are the retry's."""
    heard = []

    class Hearing(ClientHandler):
        async def handle_notification(self, method, params):
            heard.append((method, params.get("data")))

    async with serving(handler=Hearing()) as (client, desk):
        call = Round(client, "context")
        level = {"io.modelcontextprotocol/logLevel": "info"}
        told = []
        first = await client.request(
            "tools/call", {**call.params, "_meta": {"com.example/n": 1}}, progress=told.append
        )
        call.result = first
        (key,) = first["inputRequests"]
        more = {"inputResponses": {key: form("x")}, "requestState": first["requestState"]}
        again = []
        await client.request(
            "tools/call",
            {**call.params, **more, "_meta": {"com.example/n": 2, **level}},
            progress=again.append,
        )
    (one, n, cancelled), (two, m, still) = desk.seen
    assert (n, m, cancelled, still) == (1, 2, False, False)
    assert one != two
    assert (len(told), len(again)) == (1, 1)
    assert heard == [("notifications/message", "after")]


# Time, and other limits


async def test_the_timeout_of_the_tool(autojump_clock):
    """The timeout of a tool is paused during questions, and then resumes."""
    async with serving() as (client, desk):
        call = Round(client, "slow")
        await call.send()
        await trio.sleep(300)
        began = trio.current_time()
        assert await call.send({"first": "F"}) == "Tool execution timed out"
        assert trio.current_time() - began == pytest.approx(6)
    assert desk.done == ["worked"]


async def test_a_parked_call_takes_no_slot():
    """A parked call holds no concurrency slot."""
    async with serving() as (client, _):
        calls = [Round(client, "single") for _ in range(3)]
        for call in calls:
            assert await call.send() == ["one"]
        for call in calls:
            assert await call.send({"one": "O"}) == "O"


async def test_it_is_given_up_in_time(autojump_clock):
    """After `parked_seconds` the handler is cancelled; a later retry runs it again."""

    class Hurried(Office, name="hurried", version="1", limits=Limits(parked_seconds=60)):
        pass

    async with serving(Hurried) as (client, desk):
        calls = [Round(client, "order"), Round(client, "order"), Round(client, "watched")]
        for call in calls:
            await call.send()
        await trio.sleep(59)
        assert await calls[0].send({"first": "F"}) == ["second"]
        assert desk.done == ["tea", "tea"]
        await trio.sleep(2)
        assert desk.done == ["tea", "tea", "end"]
        assert await calls[1].send({"first": "F"}) == ["second"]
        assert desk.done == ["tea", "tea", "end", "tea"]
        await trio.sleep(100)
        assert await calls[0].send({"second": "S"}) == "F S"


async def test_it_lives_no_longer_than_its_state(autojump_clock):
    """An expired state is refused, even if its handler is still parked."""

    class Brief(Office, name="brief", version="1", state_ttl=5):
        pass

    async with serving(Brief) as (client, desk):
        await Round(client, "watched").send()
        await trio.sleep(6)
        assert desk.done == ["end"]


async def test_the_oldest_makes_room():
    """Beyond `Limits.parked` the oldest handler is cancelled; its retry runs it again."""

    class Small(Office, name="small", version="1", limits=Limits(parked=2)):
        pass

    async with serving(Small) as (client, desk):
        calls = [Round(client, "order", {"what": what}) for what in "abc"]
        for call in calls:
            await call.send()
        for call in reversed(calls):
            assert await call.send({"first": "F"}) == ["second"]
            assert await call.send({"second": "S"}) == "F S"
        assert desk.done == ["a", "b", "c", "a"]


@pytest.mark.parametrize("limits", [Limits(parked=0), Limits(parked_memory=1000)])
async def test_no_room_at_all(limits):
    """With no room for parked handlers the handler is run again for each answer."""

    class Full(Office, name="full", version="1", limits=limits):
        pass

    async with serving(Full) as (client, desk):
        call = Round(client, "order")
        await call.send()
        assert await call.send({"first": "F"}) == ["second"]
        assert await call.send({"second": "S"}) == "F S"
    assert desk.done == ["tea"] * 3


async def test_its_bytes_are_counted():
    """A request counts with its size in memory against the limit."""

    class Heavy(Office, name="heavy", version="1", limits=Limits(parked_memory=300_000)):
        pass

    async with serving(Heavy) as (client, desk):
        calls = [Round(client, "order", {"what": what * 120_000}) for what in "abc"]
        for call in calls:
            await call.send()
        for call in reversed(calls):
            await call.send({"first": "F"})
            await call.send({"second": "S"})
        assert [each[0] for each in desk.done] == ["a", "b", "c", "a"]


# Its end


async def test_a_cancelled_retry():
    """Cancelling a retry cancels the handler that it resumed."""
    async with serving() as (client, desk):
        call = Round(client, "watched")
        await call.send()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call.send, {"still there?": "yes"})
            await trio.testing.wait_all_tasks_blocked()
            assert desk.done == []
            nursery.cancel_scope.cancel()
        with trio.fail_after(5):
            await desk.event.wait()


async def test_the_end_of_the_connection():
    """The end of the connection cancels its parked handlers."""
    office = Office()
    with trio.fail_after(5):
        async with serving(office) as (client, _):
            await Round(client, "watched").send()
            assert office.telemetry.parked_handlers() == 1
        await office.desk.event.wait()


async def test_it_is_counted():
    """Telemetry counts the parked handlers."""
    office = Office()
    async with serving(office) as (client, _):
        calls = [Round(client, "order") for _ in range(3)]
        for number, call in enumerate(calls, 1):
            await call.send()
            assert office.telemetry.parked_handlers() == number
        await calls[0].send({"first": "F"})
        assert office.telemetry.parked_handlers() == 3
        await calls[0].send({"second": "S"})
        assert office.telemetry.parked_handlers() == 2


async def test_a_tool_that_begins_a_task():
    """A call that becomes a task is run again in the task, and not parked before."""
    office = Office()
    capabilities = ClientCapabilities(elicitation={}, extensions={TASKS: {}})
    async with connect(office, handler=Answering(), capabilities=capabilities) as client:
        with pytest.raises(TaskStarted):
            await client.call_tool("later")
        await trio.testing.wait_all_tasks_blocked()
    assert office.desk.done == ["run"] * 3


async def test_an_override_is_parked_with_its_tool():
    """An override is parked and resumed with its tool."""

    class Counted(Office, name="counted", version="1"):
        def __init__(self):
            super().__init__()
            self.calls = 0

        async def call_tool(self, name, args, ctx):
            self.calls += 1
            return await super().call_tool(name, args, ctx)

    office = Counted()
    async with connect(office, handler=Answering()) as client:
        assert (await client.call_tool("order")).content[0].text == "FIRST SECOND"
    assert (office.calls, office.desk.done) == (1, ["tea"])


async def test_a_caller_in_memory():
    """States of a verified caller in memory are bound to that caller."""
    office = Office()
    async with connect(office, handler=Answering(), principal=Principal(subject="ada")) as client:
        await client.call_tool("order")
    assert office.desk.done == ["tea"]


def test_replay_is_for_servers_in_memory():
    """`replay` only concerns a server in memory; any other one uses its own limits."""

    async def main():
        async with connect("http://127.0.0.1:9/mcp", replay=True):
            pass

    with pytest.raises(TypeError, match="replay= is for a server in memory"):
        trio.run(main)
