"""Calls that become tasks (the extension `io.modelcontextprotocol/tasks` of 2026-07-28)."""

from typing import Any

import pytest
import trio

STATELESS = "2026-07-28"
EXTENSION = "io.modelcontextprotocol/tasks"
KNOWS = {
    "extensions": {EXTENSION: {}},
    "elicitation": {"form": {}},
    "sampling": {},
    "roots": {},
}
TAG = "io.modelcontextprotocol/subscriptionId"
ENDED = ("completed", "failed", "cancelled")
NEEDED = {
    "code": -32021,
    "message": "Missing required client capability",
    "data": {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
}
MODERN = pytest.mark.parametrize("revision", [STATELESS])
HANDSHAKE = pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])


def named(name: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


async def begin(wire: Any, tool: str, **arguments: Any) -> Any:
    """Call a tool; return the id of the resulting task."""
    answer = await wire.call(tool, arguments)
    assert answer["result"]["resultType"] == "task", answer
    return answer["result"]["taskId"]


async def look(wire: Any, id_: str, *until: str) -> dict[str, Any]:
    """Poll a task until it has one of some statuses; return it."""
    with trio.fail_after(60):
        while True:
            task = wire.bare((await wire.ask("tasks/get", {"taskId": id_}))["result"])
            assert task["taskId"] == id_
            if not until or task["status"] in until:
                return task
            assert task["status"] not in ENDED, task
            await trio.lowlevel.checkpoint()


async def end(wire: Any, id_: str) -> dict[str, Any]:
    return await look(wire, id_, *ENDED)


async def answer(wire: Any, id_: str, **answers: Any) -> None:
    params = {"taskId": id_, "inputResponses": answers}
    assert wire.bare((await wire.ask("tasks/update", params))["result"]) == {}


async def text(wire: Any, tool: str, **arguments: Any) -> str:
    """Call a tool, wait for its task; return the one text of its result."""
    task = await end(wire, await begin(wire, tool, **arguments))
    assert task["status"] == "completed", task
    (block,) = task["result"]["content"]
    return block["text"]


def asked(task: dict[str, Any]) -> dict[str, str]:
    """Return the messages that a task asks, by key."""
    return {key: each["params"]["message"] for key, each in task["inputRequests"].items()}


@pytest.fixture
def agency(opened: Any) -> Any:
    """Return a function that connects a client with tasks."""

    def open_wire(name: str = "Agency", **options: Any) -> Any:
        wire = opened(name, **options)
        return Knowing(wire)

    return open_wire


class Knowing:
    """Makes a client declare tasks."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    async def __aenter__(self) -> Any:
        wire = await self._manager.__aenter__()
        wire.capabilities = KNOWS
        return wire

    async def __aexit__(self, *details: object) -> Any:
        return await self._manager.__aexit__(*details)


@MODERN
async def test_a_call_goes_on_as_a_task(agency):
    """The answer is a task, which is found at once, and finally has the result."""
    async with agency() as wire:
        created = (await wire.call("work", {"name": "tea"}))["result"]
        task = await look(wire, created["taskId"])
        assert task["status"] == created["status"] == "working"
        assert created["ttlMs"] == 3_600_000
        assert created["pollIntervalMs"] == 10
        await wire.text("release", {"name": "tea"})
        task = await end(wire, created["taskId"])
        assert task["status"] == "completed"
        assert task["result"]["content"] == [{"type": "text", "text": "did tea"}]
        assert task["result"]["resultType"] == "complete"
        assert "_meta" not in task["result"]
        assert task["createdAt"] == created["createdAt"] <= task["lastUpdatedAt"]
        assert task["ttlMs"] >= created["ttlMs"]
        assert await look(wire, created["taskId"]) == task


@MODERN
async def test_sync_handlers_and_what_they_return(agency):
    """A sync handler can be a task, with the result that a call would have."""
    async with agency() as wire:
        assert await text(wire, "think", name="tea") == "thought of tea"
        assert await text(wire, "ponder") == "cancelled: False"
        task = await end(wire, await begin(wire, "babble"))
        wire.capabilities = {}
        assert {k: v for k, v in task["result"].items() if k != "resultType"} == (
            await wire.result("babble")
        )


@MODERN
async def test_tools_without_tasks(agency):
    """They return results; the `task` of an older revision is ignored."""
    async with agency() as wire:
        assert await wire.text("greet", {"name": "Ann"}) == "Hello, Ann!"
        params = {"name": "greet", "arguments": {"name": "Bob"}, "task": {"ttl": 60000}}
        result = wire.bare((await wire.ask("tools/call", params))["result"])
        assert result["content"][0]["text"] == "Hello, Bob!"


@MODERN
async def test_wrong_arguments_are_answered_at_once(agency):
    """Invalid arguments are refused without a task."""
    async with agency() as wire:
        result = await wire.result("think", {"name": 5})
        assert result["isError"] is True


@MODERN
async def test_failures_are_distinguished(agency):
    """A failed tool has a result; only a protocol error makes a task fail."""
    async with agency() as wire:
        task = await end(wire, await begin(wire, "fail"))
        assert task["status"] == "completed"
        assert task["result"]["isError"] is True
        assert task["result"]["content"][0]["text"] == "no luck"
        assert await text(wire, "crash") == "Tool execution failed"
        assert await text(wire, "dawdle") == "Tool execution timed out"
        task = await end(wire, await begin(wire, "refuse"))
        assert task["status"] == "failed"
        assert task["error"] == {"code": 4003, "message": "not now", "data": {"why": "because"}}
        assert task["statusMessage"] == "not now"
        task = await end(wire, await begin(wire, "refuse_badly"))
        assert task["error"] == {"code": 4003, "message": "not now"}
        assert await text(wire, "begin_wrongly") == "Tool execution failed"


@MODERN
async def test_a_task_asks(agency):
    """A question is visible until it is answered; then the handler goes on."""
    async with agency() as wire:
        id_ = await begin(wire, "confirm")
        task = await look(wire, id_, "input_required")
        assert list(asked(task).values()) == ["Name?"]
        (key,) = task["inputRequests"]
        assert (await look(wire, id_))["inputRequests"] == task["inputRequests"]
        await answer(wire, id_, **{key: named("Ann")})
        assert (await end(wire, id_))["result"]["content"][0]["text"] == "Ann"


@MODERN
async def test_a_wrong_answer_is_asked_again_under_another_key(agency):
    """Keys are never reused; answers to old and unknown keys are ignored."""
    async with agency() as wire:
        id_ = await begin(wire, "confirm")
        (first,) = (await look(wire, id_, "input_required"))["inputRequests"]
        await answer(wire, id_, **{first: {"action": "accept", "content": {"name": 5}}})
        (second,) = (await look(wire, id_, "input_required"))["inputRequests"]
        assert second != first
        await answer(wire, id_, **{first: named("Old"), "unknown": named("No")})
        assert list((await look(wire, id_))["inputRequests"]) == [second]
        await answer(wire, id_, **{second: {"action": "decline"}})
        assert (await end(wire, id_))["result"]["content"][0]["text"] == "decline"
        await answer(wire, id_, **{second: named("Late")})


@MODERN
async def test_some_answers_at_a_time(agency):
    """An answered question is removed at once, the others stay."""
    async with agency() as wire:
        id_ = await begin(wire, "both")
        while len(messages := asked(await look(wire, id_, "input_required"))) < 2:
            pass
        keys = {message: key for key, message in messages.items()}
        await answer(wire, id_, **{keys["first?"]: named("Ada")})
        task = await look(wire, id_)
        assert task["status"] == "input_required"
        assert asked(task) == {keys["last?"]: "last?"}
        await answer(wire, id_, **{keys["last?"]: named("Lovelace")})
        task = await look(wire, id_, "input_required")
        ((key, message),) = asked(task).items()
        assert message == "first?"
        assert key not in messages
        await answer(wire, id_, **{key: named("Third")})
        assert (await end(wire, id_))["result"]["content"][0]["text"] == "Ada Lovelace Third"


@MODERN
async def test_roots_and_models(agency):
    """They are asked in the same way."""
    async with agency() as wire:
        id_ = await begin(wire, "model")
        task = await look(wire, id_, "input_required")
        ((key, question),) = task["inputRequests"].items()
        assert question["method"] == "roots/list"
        await answer(wire, id_, **{key: {"roots": [{"uri": "file:///a"}]}})
        task = await look(wire, id_, "input_required")
        ((key, question),) = task["inputRequests"].items()
        assert question["method"] == "sampling/createMessage"
        content = {"type": "text", "text": "here"}
        sampled = {"role": "assistant", "content": content, "model": "m"}
        await answer(wire, id_, **{key: sampled})
        assert (await end(wire, id_))["result"]["content"][0]["text"] == "here"


@MODERN
async def test_asking_for_what_the_client_cannot_do(agency):
    """It ends the task with a protocol error."""
    async with agency() as wire:
        wire.capabilities = {"extensions": {EXTENSION: {}}}
        task = await end(wire, await begin(wire, "confirm"))
        assert task["status"] == "failed"
        assert task["error"]["code"] == -32021
        assert task["error"]["data"]["requiredCapabilities"] == {"elicitation": {}}


@MODERN
async def test_asking_by_hand(agency):
    """The task asks the questions of an `InputRequired`; then its handler runs again."""
    async with agency() as wire:
        id_ = await begin(wire, "by_hand")
        while len(messages := asked(await look(wire, id_, "input_required"))) < 2:
            pass
        answers = {key: named(message[0].upper()) for key, message in messages.items()}
        await answer(wire, id_, **answers)
        assert (await end(wire, id_))["result"]["content"][0]["text"] == "A B asked"


@MODERN
async def test_the_time_of_a_person_does_not_count(agency):
    """The timeout of the tool is paused while the task asks."""
    async with agency() as wire:
        id_ = await begin(wire, "be_patient")
        (key,) = (await look(wire, id_, "input_required"))["inputRequests"]
        await text(wire, "dawdle")
        await wire.is_alive()
        await answer(wire, id_, **{key: named("Ann")})
        assert (await end(wire, id_))["result"]["content"][0]["text"] == "Ann"


@MODERN
async def test_progress_is_what_a_task_says(agency):
    """Progress is in the status message; tasks send no progress or log notifications."""
    async with agency() as wire:
        params = {"name": "report", "arguments": {}}
        meta = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}
        created = (await wire.ask("tools/call", params, **meta))["result"]
        id_ = created["taskId"]
        said = []
        for name in ("a", "b", "c"):
            while (task := await look(wire, id_)).get("statusMessage") in (None, *said):
                pass
            said.append(task["statusMessage"])
            await wire.text("release", {"name": name})
        assert said == ["1 of 4", "2", "nearly"]
        task = await end(wire, id_)
        assert "statusMessage" not in task
        (block,) = task["result"]["content"]
        assert block["text"].endswith("cancelled: False")
        assert wire.notices == []


@MODERN
async def test_cancelling(agency):
    """The answer is an acknowledgement; an ended task does not change."""
    async with agency() as wire:
        id_ = await begin(wire, "work", name="never")
        for _ in range(2):
            assert wire.bare((await wire.ask("tasks/cancel", {"taskId": id_}))["result"]) == {}
        assert (await end(wire, id_))["status"] == "cancelled"
        id_ = await begin(wire, "confirm")
        await look(wire, id_, "input_required")
        await wire.ask("tasks/cancel", {"taskId": id_})
        assert (await end(wire, id_))["status"] == "cancelled"
        id_ = await begin(wire, "think", name="tea")
        task = await end(wire, id_)
        assert "result" in await wire.ask("tasks/cancel", {"taskId": id_})
        assert await look(wire, id_) == task


@MODERN
async def test_cancelling_the_request_does_not_stop_the_task(agency, transport):
    """The request was already answered; its task goes on."""
    if transport == "http":
        pytest.skip("the end of the HTTP request cancels it: an answer on its way is lost")
    async with agency() as wire:
        request = await wire.begin_call("work", {"name": "tea"})
        await wire.cancel(request)
        id_ = (await wire.answer(request))["result"]["taskId"]
        await wire.text("release", {"name": "tea"})
        assert (await end(wire, id_))["status"] == "completed"


@MODERN
async def test_a_client_that_does_not_know_tasks(opened):
    """It gets a result or an error; what it declared before does not count."""
    async with opened("Agency") as wire:
        wire.capabilities = KNOWS
        id_ = await begin(wire, "work", name="tea")
        for capabilities in ({}, {"extensions": {}}, {"extensions": 5}, {"tasks": {}}):
            wire.capabilities = capabilities
            assert await wire.text("think", {"name": "tea"}) == "thought of tea"
            assert (await wire.call("fail"))["error"] == NEEDED
            assert (await wire.call("by_hand_later"))["error"] == NEEDED
            for method in ("get", "update", "cancel"):
                params = {"taskId": id_, "inputResponses": {}}
                assert (await wire.ask(f"tasks/{method}", params))["error"] == NEEDED
            wanted = {"notifications": {"taskIds": [id_]}}
            assert (await wire.ask("subscriptions/listen", wanted))["error"] == NEEDED


@MODERN
async def test_unknown_tasks_and_wrong_params(agency, transport):
    """They are invalid params; the methods of the older form do not exist."""
    async with agency() as wire:
        id_ = await begin(wire, "work", name="tea")
        for method in ("get", "update", "cancel"):
            for unknown in ("nope", 5, None):
                params = {"taskId": unknown, "inputResponses": {}}
                code = (await wire.ask(f"tasks/{method}", params))["error"]["code"]
                # Over HTTP the mirrored header of an id that is not a string is checked first.
                unnamed = transport == "http" and unknown != "nope"
                assert code == (-32020 if unnamed else -32602)
        for answers in (None, [], "x"):
            params = {"taskId": id_, "inputResponses": answers}
            assert (await wire.ask("tasks/update", params))["error"]["code"] == -32602
        for method in ("tasks/result", "tasks/list"):
            assert (await wire.ask(method, {"taskId": id_}))["error"]["code"] == -32601


@MODERN
async def test_a_server_without_tasks(agency):
    """It does not declare tasks, has none of the methods, and accepts no task filter."""
    async with agency("Kitchen") as wire:
        discovered = (await wire.ask("server/discover"))["result"]
        assert "extensions" not in discovered["capabilities"]
        for method in ("get", "update", "cancel"):
            assert (await wire.ask(f"tasks/{method}", {"taskId": "x"}))["error"]["code"] == -32601
        await wire.begin("subscriptions/listen", {"notifications": {"taskIds": ["x"]}})
        params = await wire.notice("notifications/subscriptions/acknowledged")
        assert params["notifications"] == {}


@MODERN
async def test_the_extension_is_offered(agency):
    """A registered tool with tasks adds the extension."""
    async with agency() as wire:
        discovered = (await wire.ask("server/discover"))["result"]
        assert discovered["capabilities"]["extensions"] == {EXTENSION: {}}
        assert "tasks" not in discovered["capabilities"]
        for tool in (await wire.ask("tools/list"))["result"]["tools"]:
            assert "execution" not in tool


@HANDSHAKE
async def test_revisions_with_a_handshake(opened):
    """They have no tasks: such a tool returns a result, or an error with what it needs."""
    async with opened("Agency", start=False) as wire:
        wire.capabilities = {"extensions": {EXTENSION: {}}}
        result = await wire.start()
        assert {"tasks", "extensions"}.isdisjoint(result["capabilities"])
        assert await wire.text("think", {"name": "tea"}) == "thought of tea"
        assert await wire.text("at_once") == "begun"
        result = await wire.result("fail")
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("This tool runs as a task")
        for method in ("get", "update", "cancel", "result", "list"):
            assert (await wire.ask(f"tasks/{method}", {"taskId": "x"}))["error"]["code"] == -32601


@MODERN
async def test_a_task_that_its_handler_begins(agency):
    """Earlier questions are asked in rounds, later ones in the task; steps run once."""
    async with agency() as wire:
        first = (await wire.call("later"))["result"]
        assert first["resultType"] == "input_required"
        assert "taskId" not in first
        (key,) = first["inputRequests"]
        params = {"name": "later", "arguments": {}, "requestState": first["requestState"]}
        second = (await wire.ask("tools/call", {**params, "inputResponses": {key: named("Ada")}}))[
            "result"
        ]
        assert second["resultType"] == "task"
        task = await look(wire, second["taskId"], "input_required")
        ((key, message),) = asked(task).items()
        assert message == "Last?"
        await answer(wire, task["taskId"], **{key: named("Lovelace")})
        task = await end(wire, task["taskId"])
        assert task["result"]["content"][0]["text"] == "Ada Lovelace 1 2"


@MODERN
async def test_a_handler_that_begins_no_task(agency):
    """Its result is the response, whatever the client declares."""
    async with agency() as wire:
        arguments = {"go_on": False}
        for turn, capabilities in enumerate((KNOWS, {"elicitation": {}}), start=1):
            wire.capabilities = capabilities
            first = (await wire.call("later", arguments))["result"]
            (key,) = first["inputRequests"]
            params = {"name": "later", "arguments": arguments}
            params |= {"requestState": first["requestState"], "inputResponses": {key: named("A")}}
            result = wire.bare((await wire.ask("tools/call", params))["result"])
            assert result["content"][0]["text"] == f"A {turn}, at once"


@MODERN
async def test_a_task_that_is_begun_before_anything_else(agency):
    """It begins once, also if begun again; without client support there is no task."""
    async with agency() as wire:
        assert await text(wire, "at_once") == "begun"
        assert await text(wire, "at_once", stubborn=True) == "begun"
        wire.capabilities = {}
        assert await wire.text("at_once") == "begun"


@MODERN
async def test_asking_by_hand_before_the_task(agency):
    """Answers and state of the rounds are available in the task."""
    async with agency() as wire:
        first = (await wire.call("by_hand_later"))["result"]
        assert list(first["inputRequests"]) == ["a"]
        params = {"name": "by_hand_later", "arguments": {}, "requestState": first["requestState"]}
        params["inputResponses"] = {"a": named("Ann")}
        second = (await wire.ask("tools/call", params))["result"]
        task = await end(wire, second["taskId"])
        assert task["result"]["content"][0]["text"] == "Ann asked"


@MODERN
async def test_a_call_tool_of_its_own(agency):
    """A server that overrides `call_tool` answers in the task, too."""
    async with agency("Bureau") as wire:
        assert await text(wire, "work", name="return") == "work by hand"
        assert await text(wire, "think", name="tea") == "thought of tea"
        assert (await end(wire, await begin(wire, "refuse")))["error"]["code"] == 4003
        assert await text(wire, "at_once") == "begun"
        assert (await wire.call("unknown"))["error"]["code"] == -32602
        assert await wire.text("greet", {"name": "Ann"}) == "Hello, Ann!"
        wire.capabilities = {}
        assert await wire.text("at_once") == "begun"
        assert (await wire.call("fail"))["error"] == NEEDED


async def listen(wire: Any, *ids: str, **more: Any) -> Any:
    """Listen to tasks; return the id of the request, and the accepted filter."""
    id_ = await wire.begin("subscriptions/listen", {"notifications": {"taskIds": ids, **more}})
    params = await wire.notice("notifications/subscriptions/acknowledged")
    return id_, params["notifications"]


async def told(wire: Any, *until: str) -> list[dict[str, Any]]:
    """Receive notices of a task until it has a status; return all of them."""
    heard = []
    while not heard or heard[-1]["status"] not in until:
        heard.append(await wire.notice("notifications/tasks"))
    return heard


@MODERN
async def test_hearing_of_tasks(agency):
    """The listener gets its current state, and then each change, as a whole task."""
    async with agency() as wire:
        id_ = await begin(wire, "confirm")
        task = await look(wire, id_, "input_required")
        number, agreed = await listen(wire, id_, "unknown", toolsListChanged=True)
        assert agreed == {"toolsListChanged": True, "taskIds": [id_]}
        first = await wire.notice("notifications/tasks")
        assert first.pop("_meta") == {"io.modelcontextprotocol/subscriptionId": number}
        assert first == task
        (key,) = task["inputRequests"]
        await answer(wire, id_, **{key: named("Ann")})
        last = (await told(wire, "completed"))[-1]
        del last["_meta"]
        assert last == await look(wire, id_)
        await text(wire, "think", name="another one")
        assert wire.notices == []


@MODERN
async def test_listening_to_what_has_ended(agency):
    """Its end is sent, so that a late listener does not wait for ever."""
    async with agency() as wire:
        id_ = await begin(wire, "think", name="tea")
        await end(wire, id_)
        await listen(wire, id_)
        (heard,) = await told(wire, "completed")
        assert heard["result"]["content"][0]["text"] == "thought of tea"


async def cancel_listener_and_task(wire: Any, listener: Any, id_: str) -> None:
    """Cancel a listen request and then a task, in messages that the server reads together."""
    params = {"requestId": listener}
    notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    request = wire.message("tasks/cancel", {"taskId": id_})
    await wire.send(notice, request)
    assert "result" in await wire.answer(request["id"])


@MODERN
async def test_listening_twice_to_one_task(agency, transport):
    """A cancelled listen request gets no later change; another one gets all of them."""
    if transport == "http":
        pytest.skip("each request is a connection of its own")
    async with agency() as wire:
        id_ = await begin(wire, "confirm")
        await look(wire, id_, "input_required")
        first, _ = await listen(wire, id_)
        await told(wire, "input_required")
        second, _ = await listen(wire, id_)
        with trio.fail_after(60):
            while (await wire.notice("notifications/tasks"))["_meta"][TAG] != second:
                pass
        await cancel_listener_and_task(wire, first, id_)
        # One notice or two: the question is withdrawn before the task ends, which makes it
        # `working` again, and both changes are one notice if they are in one merge window.
        assert {second} == {each["_meta"][TAG] for each in await told(wire, "cancelled")}
        assert wire.notices == []


@MODERN
async def test_the_last_listener_to_a_task(agency, transport):
    """After its only listen request was cancelled no notice of a task is sent."""
    if transport == "http":
        pytest.skip("each request is a connection of its own")
    async with agency() as wire:
        id_ = await begin(wire, "work", name="never")
        first, _ = await listen(wire, id_)
        await told(wire, "working")
        await cancel_listener_and_task(wire, first, id_)
        await end(wire, id_)
        second, _ = await listen(wire, id_)
        # A notice for the first would be sent together with this one.
        assert [second] == [each["_meta"][TAG] for each in await told(wire, "cancelled")]
        assert wire.notices == []


@MODERN
async def test_what_is_no_list_of_ids(agency):
    """It is an invalid filter."""
    async with agency() as wire:
        for ids in ("x", [5], {}):
            wanted = {"notifications": {"taskIds": ids}}
            assert (await wire.ask("subscriptions/listen", wanted))["error"]["code"] == -32602


@MODERN
async def test_the_end_with_running_tasks(agency):
    """They get the grace period, then they are cancelled; asking ones are cancelled at once."""
    async with agency(grace=0.05) as wire:
        await begin(wire, "work", name="never")
        id_ = await begin(wire, "confirm")
        await look(wire, id_, "input_required")
