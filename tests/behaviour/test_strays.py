"""A handler that raises a stray `Cancelled` or `KeyboardInterrupt` fails alone."""

import logging

import pytest

from noizu_mcp import ConnectionClosed

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
PROGRESS = "notifications/progress"
EXTENSION = "io.modelcontextprotocol/tasks"

handshake = pytest.mark.parametrize("revision", HANDSHAKE, indirect=True)
stateless = pytest.mark.parametrize("revision", [STATELESS], indirect=True)
servers = pytest.mark.parametrize("name", ["Straying", "StrayingBehind"])
in_this_process = pytest.mark.parametrize("transport", ["memory", "http"])

TOOLS = [
    "at_first",
    "after_a_wait",
    "thread",
    "inline",
    "scope_of_its_own",
    "shield_of_its_own",
    "group",
    "group_with_others",
    "group_inline",
    "group_in_thread",
    "interrupt_in_thread",
    "interrupt_in_a_group_in_thread",
    "interrupt_in_a_step",
    "beside_a_nursery",
    "unreadable",
    "unreadable_content",
    "with_a_place",
    "with_a_place",  # the slot is free again
    "stray_job",
]
REQUESTS = [
    ("prompts/get", {"name": "stray_prompt"}),
    ("prompts/get", {"name": "stray_prompt_in_thread"}),
    ("resources/read", {"uri": "x:stray"}),
    ("resources/read", {"uri": "x:thread"}),
    ("resources/read", {"uri": "x:of/y"}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "x:of/{a}"},
            "argument": {"name": "a", "value": "b"},
        },
    ),
]
LISTS = [
    ("tools/list", {}),
    ("prompts/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
]


@pytest.fixture(autouse=True)
def quiet(caplog):
    """Keep expected failures out of the output of the tests."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")


async def hold(wire):
    """Begin a call that lasts until the end of the test; return its id."""
    id_ = await wire.begin_call("hold", {"key": "k"}, progressToken="k")
    assert (await wire.notice(PROGRESS))["progressToken"] == "k"
    return id_


async def release(wire, id_):
    """Release the call; it must have missed nothing."""
    assert await wire.text("release", {"key": "k"}) == "released"
    assert (await wire.answer(id_))["result"]["content"][0]["text"] == "held k"
    assert wire.answers == {}


@servers
async def test_each_tool_fails_alone(opened, name):
    """Async, in a thread, inline, in groups: the call fails, and another call goes on."""
    async with opened(name) as wire:
        held = await hold(wire)
        for tool in TOOLS:
            result = await wire.result(tool)
            text = {"type": "text", "text": "Tool execution failed"}
            assert {"content": [text], "isError": True} == result, tool
        await release(wire, held)


async def test_all_at_once_fail_alone(opened):
    """Messages that arrive together are all answered, also after a failure."""
    async with opened("Straying") as wire:
        messages = [wire.message("tools/call", {"name": name}) for name in TOOLS]
        await wire.send(*messages)
        for message in messages:
            assert (await wire.answer(message["id"]))["result"]["isError"] is True
        assert wire.answers == {}


@servers
async def test_every_other_handler_fails_alone(opened, name):
    """Prompts, resources, lists and completion: an error each, and another call goes on."""
    async with opened(name) as wire:
        held = await hold(wire)
        for method, params in REQUESTS:
            error = (await wire.ask(method, params))["error"]
            assert error == {"code": -32603, "message": "Request handler failed"}, method
        await release(wire, held)


async def test_every_override_fails_alone(opened):
    """A method of the server may fail like its components."""
    async with opened("StrayOverrides") as wire:
        for method, params in [*LISTS, *REQUESTS]:
            error = (await wire.ask(method, params))["error"]
            assert error == {"code": -32603, "message": "Request handler failed"}, method
        assert (await wire.result("any"))["isError"] is True
        await wire.is_alive()


async def test_checks_of_arguments_fail_alone(opened):
    """The author's own check of an argument runs before the handler."""
    async with opened("Straying") as wire:
        answer = await wire.call("check", {"name": "stray"})
        assert "error" in answer or answer["result"]["isError"] is True
        assert await wire.text("check", {"name": "good"}) == "good"


@handshake
async def test_a_subscription_fails_alone(opened):
    """The hook of a subscription is a handler, too."""
    async with opened("Straying") as wire:
        held = await hold(wire)
        answer = await wire.ask("resources/subscribe", {"uri": "x:stray"})
        assert answer["error"] == {"code": -32603, "message": "Request handler failed"}
        await release(wire, held)


@stateless
async def test_a_listen_request_fails_alone(opened):
    """The same hook fails in a listen request."""
    async with opened("Straying") as wire:
        held = await hold(wire)
        params = {"notifications": {"resourceSubscriptions": ["x:stray"]}}
        answer = await wire.ask("subscriptions/listen", params)
        assert answer["error"] == {"code": -32603, "message": "Request handler failed"}
        await release(wire, held)


@stateless
async def test_a_task_fails_alone(opened):
    """Its result reports the failure; the server can run other tasks."""
    async with opened("Straying") as wire:
        wire.capabilities = {"extensions": {EXTENSION: {}}}
        for _ in range(2):
            id_ = (await wire.call("stray_job"))["result"]["taskId"]
            task = {"status": "working"}
            while task["status"] == "working":
                task = wire.bare((await wire.ask("tasks/get", {"taskId": id_}))["result"])
            assert task["status"] == "completed"
            assert task["result"]["isError"] is True


@handshake
async def test_init_ends_its_session(opened, transport):
    """A session whose `init` fails ends normally, as with every other failure."""
    async with opened("StrayInit") as wire:
        if transport != "http":
            assert await wire.end() == []
            return
        with pytest.raises(ConnectionClosed, match="has ended the session"):
            await ask_for_ever(wire)


async def ask_for_ever(wire):
    """Ask until the session ends."""
    while True:
        await wire.ask("tools/list")


@servers
async def test_a_handler_may_go_on_after_a_call_that_fails(opened, name):
    """A tool that calls a failing tool gets an error result, as a client would."""
    async with opened(name) as wire:
        assert await wire.text("passes_on") == "isError: True"


@servers
async def test_what_is_raised_beside_it_counts(opened, name):
    """Of a group the model gets the part that is meant for it."""
    async with opened(name) as wire:
        assert await wire.text("advises") == "advice"


@servers
@pytest.mark.parametrize(
    "tool",
    [
        "too_slow",
        "too_slow_and_stray",
        "too_slow_in_a_shield",
        "too_slow_and_all_at_once",
        "too_slow_in_thread",
    ],
)
async def test_a_real_timeout_goes_on(opened, name, tool):
    """A handler that is cancelled by its timeout has timed out, whatever it raises."""
    async with opened(name) as wire:
        held = await hold(wire)
        text = {"type": "text", "text": "Tool execution timed out"}
        assert await wire.result(tool) == {"content": [text], "isError": True}
        await release(wire, held)


@servers
async def test_a_real_cancellation_goes_on(opened, name):
    """A cancelled request has no response, whatever its handler raises."""
    async with opened(name) as wire:
        held = await hold(wire)
        id_ = await wire.begin_call("cancelled", {"key": "c"}, progressToken="c")
        assert (await wire.notice(PROGRESS))["progressToken"] == "c"
        await wire.cancel(id_)
        assert await wire.text("outcome", {"key": "c"}) == "cancelled"
        await release(wire, held)


async def test_the_end_of_the_server_goes_on(opened):
    """Calls are cancelled at the end, and the server ends normally, whatever they raise."""
    async with opened("Straying", grace=0) as wire:
        await wire.begin_call("cancelled", {"key": "c"}, progressToken="c")
        await wire.notice(PROGRESS)


@in_this_process
@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("after_a_wait", "RuntimeError: the handler raised Cancelled"),
        ("thread", "RuntimeError: the handler raised Cancelled"),
        ("inline", "RuntimeError: the handler raised Cancelled"),
        ("interrupt_in_thread", "RuntimeError: the handler raised KeyboardInterrupt"),
        ("group_with_others", "ValueError: secret"),
    ],
)
async def test_the_log_names_it(opened, transport, caplog, tool, said):
    """There is one entry with the traceback of the author's code."""
    async with opened("Straying") as wire:
        caplog.set_level(logging.ERROR, "noizu_mcp")
        assert (await wire.result(tool))["isError"] is True
        caplog.set_level(logging.CRITICAL, "noizu_mcp")
    (record,) = caplog.records
    assert tool in record.getMessage()
    assert said in caplog.text
    assert "strays.py" in caplog.text
