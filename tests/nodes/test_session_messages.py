"""What a client sends to one node for its requests at another one."""

import trio

from noizu_mcp import Schema, Server, Toolkit, mcp

from ..kit.messages import call, message
from .fleet import KEYS, error_of, fleet, settled, text_of

#: What a client that answers questions declares.
ASKED = {"elicitation": {}, "sampling": {}, "roots": {}}


class Name(Schema):
    """A question."""

    name: str


class Kit(Toolkit):
    cancelled = False

    @mcp
    async def ask(self, ctx) -> str:
        """Ask the client."""
        answer = await ctx.elicit("Who are you?", Name)
        return answer.content.name[:20]

    @mcp
    async def look(self, ctx) -> str:
        """Ask for the roots of the client."""
        return str(len(await ctx.list_roots()))

    @mcp
    async def wait(self, ctx) -> str:
        """Wait until it is cancelled."""
        try:
            await trio.sleep_forever()
        finally:
            type(self).cancelled = True


class Shop(Server, name="shop", version="1", state_keys=KEYS):
    tools = [Kit]


def answer_to(question, name="Ann"):
    """Answer a question of the server."""
    return {
        "jsonrpc": "2.0",
        "id": question["id"],
        "result": {"action": "accept", "content": {"name": name}},
    }


def roots_for(question):
    """Answer that there are no roots."""
    return {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}


async def test_a_question_is_answered_at_any_node(autojump_clock):
    """The handler gets the answer, also where it does not fit into an entry of a log."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session(capabilities=ASKED)
        for name in ("Ann", "x" * 100_000):
            asking = first.open(call("ask"))
            question = (await asking.event(1))["data"]
            assert (await second.post(answer_to(question, name))).status == 202
            await asking.ended.wait()
            assert text_of(asking) == name[:20]


async def test_a_large_answer_waits_for_the_backend(autojump_clock, caplog):
    """The node of the question fetches it when it can; telemetry sees it there."""

    class Seen(Shop, name="shop", version="1", state_keys=KEYS):
        pass

    async with fleet(Seen) as nodes:
        events = []
        nodes.wires[0].app.server.telemetry.add(events.append)
        first, second = await nodes.session(capabilities=ASKED)
        asking = first.open(call("ask"))
        question = (await asking.event(1))["data"]
        nodes.lines[0].failing = {"get"}
        assert (await second.post(answer_to(question, "x" * 100_000))).status == 202
        await trio.sleep(2)
        assert not asking.ended.is_set()
        nodes.lines[0].failing = set()
        await asking.ended.wait()
        assert text_of(asking) == "x" * 20
        asking = first.open(call("ask"))
        question = (await asking.event(1))["data"]
        nodes.lines[0].failing = {"get"}
        assert (await second.post(answer_to(question, "x" * 100_000))).status == 202
        await trio.sleep(100)
        nodes.lines[0].failing = set()
        await trio.sleep(1)
        assert not asking.ended.is_set()
        assert events


async def test_an_error_is_an_answer(autojump_clock):
    """A refusal of the client, and a malformed answer, end the wait."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session(capabilities=ASKED)
        for answer, status in (
            ({"error": {"code": -1, "message": "no"}}, 202),
            ({"error": "no"}, 400),
            ({"error": "no"}, 400),
        ):
            asking = first.open(call("ask"))
            question = (await asking.event(1))["data"]
            wrong = {"jsonrpc": "2.0", "id": question["id"], **answer}
            assert (await second.post(wrong)).status == status
            await asking.ended.wait()
            second, first = first, second
            assert asking.messages[-1]["id"] == 1


async def test_an_answer_of_another_session_is_not_taken(autojump_clock):
    """Only the session of the question answers it, whatever the id."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session(capabilities=ASKED)
        others = await nodes.session(capabilities=ASKED)
        asking = first.open(call("ask"))
        question = (await asking.event(1))["data"]
        for other in others:
            assert (await other.post(answer_to(question, "Eve"))).status == 202
        await settled()
        assert not asking.ended.is_set()
        assert (await second.post(answer_to(question, "Ann"))).status == 202
        await asking.ended.wait()
        assert text_of(asking) == "Ann"


async def test_progress_of_an_answer_reaches_its_question(autojump_clock):
    """Progress that comes to another node is passed on, and unknown progress ignored."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session(capabilities=ASKED)
        asking = first.open(call("ask"))
        question = (await asking.event(1))["data"]
        for token in (question["id"], "unknown", 7):
            params = {"progressToken": token, "progress": 1}
            told = await second.post(message("notifications/progress", params))
            assert told.status == 202
        assert (await second.post(answer_to(question))).status == 202
        await asking.ended.wait()
        assert text_of(asking) == "Ann"


async def test_a_request_is_cancelled_at_any_node(autojump_clock):
    """The handler is cancelled where it runs, and only that of the session."""
    async with fleet(Shop, 3) as nodes:
        first, second, third = await nodes.session()
        other = (await nodes.session())[2]
        running = first.open(call("wait"))
        await settled()
        cancelled = message("notifications/cancelled", {"requestId": 1})
        assert (await other.post(cancelled)).status == 202
        await settled()
        assert not running.ended.is_set()
        malformed = message("notifications/cancelled", {"requestId": []})
        assert (await third.post(malformed)).status == 202
        assert (await third.post(cancelled)).status == 202
        await running.ended.wait()
        assert Kit.cancelled
        again = second.open(call("wait"))
        await settled()
        assert (await second.post(cancelled)).status == 202
        await again.ended.wait()


async def test_a_batch_is_divided(autojump_clock):
    """On 2025-03-26 each message of an array goes to its node; the rest is answered here."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session("2025-03-26", capabilities=ASKED)
        asking = first.open(call("look"))
        question = (await asking.event(0))["data"]
        both = await second.post([roots_for(question), message("ping", {}, 2)])
        assert [each["id"] for each in both.json] == [2]
        await asking.ended.wait()
        assert text_of(asking) == "0"
        asking = first.open([call("look", id_=3)])
        question = (await asking.event(0))["data"]
        assert (await second.post([roots_for(question)])).status == 202
        await asking.ended.wait()
        assert (await second.post([])).status == 400


async def test_a_batch_cancels_its_own_request(autojump_clock):
    """On 2025-03-26 an array may cancel a request that stands in the same array."""
    async with fleet(Shop) as nodes:
        first, _ = await nodes.session("2025-03-26")
        cancelled = message("notifications/cancelled", {"requestId": 1})
        running = first.open([call("wait"), cancelled])
        with trio.fail_after(30):
            await running.ended.wait()  # it has no answer


async def test_answers_without_a_question_are_dropped(autojump_clock):
    """A malformed request, and an answer to a node that is gone, do nothing."""
    async with fleet(Shop) as nodes:
        first, second = await nodes.session()
        gone = {"jsonrpc": "2.0", "id": "0123456789abcdef.00.1", "result": {}}
        assert (await first.post(gone)).status == 202
        nodes.lines[0].failing = {"get"}
        assert (await first.post(gone)).status == 202
        nodes.lines[0].failing = set()
        assert (await first.post({**gone, "id": "in:all.1"})).status == 202
        assert not [name for name in nodes.backend._streams if "0123456789abcdef" in name]
        assert (await first.post({"jsonrpc": "2.0", "method": 1, "id": 3})).status == 400
        assert (await second.post({"jsonrpc": "2.0", "id": None, "result": {}})).status == 400
        assert error_of(await second.post(call("unknown")))[0] == -32602
