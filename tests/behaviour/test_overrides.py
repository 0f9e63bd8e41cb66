"""Overrides that delegate change nothing; nested calls have their own timeouts."""

import logging

import pytest

from noizu_mcp import AuthError

ELICITING = ("2025-06-18", "2025-11-25", "2026-07-28")
STATELESS = "2026-07-28"
PROGRESS = "notifications/progress"
EXTENSION = "io.modelcontextprotocol/tasks"
TIMED_OUT = {
    "content": [{"type": "text", "text": "Tool execution timed out"}],
    "isError": True,
}

eliciting = pytest.mark.parametrize("revision", ELICITING, indirect=True)
live = pytest.mark.parametrize("revision", ELICITING[:2], indirect=True)
stateless = pytest.mark.parametrize("revision", [STATELESS], indirect=True)
servers = pytest.mark.parametrize("name", ["Punctual", "PunctualBehind"])
in_this_process = pytest.mark.parametrize("transport", ["memory", "http"])

#: Requests with the same answer with overrides and without.
REQUESTS = [
    ("tools/call", {"name": "slow"}),
    ("tools/call", {"name": "default"}),
    ("tools/call", {"name": "hurries"}),
    ("tools/call", {"name": "release", "arguments": {"key": "x"}}),
    ("tools/call", {"name": "release", "arguments": {"key": 5}}),
    ("tools/call", {"name": "crashes"}),
    ("tools/call", {"name": "breaks_its_contract"}),
    ("tools/call", {"name": "guarded"}),
    ("tools/call", {"name": "unknown"}),
    ("tools/call", {"name": "calls", "arguments": {"name": "slow"}}),
    ("resources/read", {"uri": "x:slow"}),
    ("resources/read", {"uri": "x:slow/a"}),
    ("resources/read", {"uri": "x:quick"}),
    ("resources/read", {"uri": "x:guarded"}),
    ("resources/read", {"uri": "x:unknown"}),
    ("prompts/get", {"name": "slow_prompt"}),
    ("prompts/get", {"name": "quick_prompt"}),
    ("prompts/get", {"name": "guarded_prompt"}),
    ("prompts/get", {"name": "unknown"}),
]


@pytest.fixture(autouse=True)
def quiet(caplog):
    """Keep expected failures out of the output of the tests."""
    caplog.set_level(logging.CRITICAL, "noizu_mcp")


@pytest.fixture
def able(opened, revision, loaded):
    """Return a function that connects a client with all capabilities."""

    def open_wire(name):
        manager = opened(name, start=False)
        return Able(manager, loaded("asking").ABLE[revision])

    return open_wire


class Able:
    """Makes a client declare all capabilities, and starts it."""

    def __init__(self, manager, capabilities):
        self._manager = manager
        self._capabilities = capabilities

    async def __aenter__(self):
        wire = await self._manager.__aenter__()
        wire.capabilities = self._capabilities
        await wire.start()
        return wire

    async def __aexit__(self, *details):
        return await self._manager.__aexit__(*details)


async def let_time_pass(wire):
    """Wait for longer than all timeouts of the servers."""
    assert await wire.result("default") == TIMED_OUT


async def ask(wire, request):
    """Send a request; return its response, or the corresponding HTTP status."""
    try:
        return await wire.ask(*request)
    except AuthError as error:
        return str(error).partition("answered")[2]


async def patient(wire, name="patient", arguments=None):
    """Begin a call that waits for its release; return its id."""
    id_ = await wire.begin_call(name, {"key": "p", **(arguments or {})}, progressToken="p")
    assert (await wire.notice(PROGRESS))["progressToken"] == "p"
    return id_


async def release(wire, id_):
    """Release a call, and return its text."""
    assert await wire.text("release", {"key": "p"}) == "released"
    return (await wire.answer(id_))["result"]["content"][0]["text"]


# The request


@servers
@pytest.mark.parametrize("tool", ["slow", "slow_thread", "slow_and_crashing", "default", "hurries"])
async def test_a_tool_has_its_time(opened, name, tool):
    """It has its own timeout, or the server's; nested calls do not extend it."""
    async with opened(name) as wire:
        assert await wire.result(tool) == TIMED_OUT
        await wire.is_alive()


@servers
@pytest.mark.parametrize("tool", ["patient", "one_at_a_time"])
async def test_a_tool_without_limit_outlasts_the_server_s(opened, name, tool):
    """`timeout=None` means no limit."""
    async with opened(name) as wire:
        id_ = await patient(wire, tool)
        await let_time_pass(wire)
        assert await release(wire, id_) == "patient p"


@servers
async def test_resources_and_prompts_have_their_time(opened, name):
    """An error reports the timeout."""
    async with opened(name) as wire:
        for method, params in [
            ("resources/read", {"uri": "x:slow"}),
            ("resources/read", {"uri": "x:default"}),
            ("resources/read", {"uri": "x:slow/a"}),
            ("prompts/get", {"name": "slow_prompt"}),
            ("prompts/get", {"name": "default_prompt"}),
        ]:
            error = (await wire.ask(method, params))["error"]
            assert error == {"code": -32603, "message": "Request timed out"}, params


async def test_an_override_that_answers_by_itself_has_the_time_of_what_it_answers(opened):
    """An override has the timeout of the registered component, or else the server's."""
    async with opened("PunctualAlone") as wire:
        id_ = await patient(wire)
        for tool in ("slow", "default", "unknown", "alias"):
            assert await wire.result(tool) == TIMED_OUT, tool
        for method, params in [
            ("resources/read", {"uri": "x:slow"}),
            ("resources/read", {"uri": "x:unknown"}),
            ("prompts/get", {"name": "slow_prompt"}),
            ("prompts/get", {"name": "unknown"}),
        ]:
            error = (await wire.ask(method, params))["error"]
            assert error == {"code": -32603, "message": "Request timed out"}, params
        assert await release(wire, id_) == "patient p"


async def test_every_answer_is_the_same_behind_overrides(opened):
    """Timeouts, invalid arguments, crashes, contracts, scopes, and unknown names."""
    answers = []
    for name in ("Punctual", "PunctualBehind"):
        async with opened(name) as wire:
            answers.append([await ask(wire, request) for request in REQUESTS])
    plain, behind = answers
    assert plain == behind


@in_this_process
async def test_listeners_hear_the_same_behind_overrides(opened, transport):
    """The end event of each request has the same outcome."""
    heard = []
    for name in ("Punctual", "PunctualBehind"):
        async with opened(name) as wire:
            for request in REQUESTS:
                await ask(wire, request)
            server = (wire.app if transport == "http" else wire.connection.running).server
            ends = [each for each in server.heard if each.outcome and each.name]
            heard.append([(each.name, each.target, each.outcome, each.code) for each in ends])
    plain, behind = heard
    assert len(REQUESTS) == len(plain)
    assert plain == behind
    assert plain[0] == ("slow", "slow", "timed_out", None)
    assert ("x:slow", "x:slow", "timed_out", -32603) in plain
    assert ("slow_prompt", "slow_prompt", "timed_out", -32603) in plain


@in_this_process
async def test_listeners_hear_what_ran_out_of_time_under_another_name(opened, transport):
    """If an override calls a tool by another name, the outcome is that of the tool."""
    async with opened("PunctualAlone") as wire:
        await wire.result("alias")
        server = (wire.app if transport == "http" else wire.connection.running).server
        (end,) = [each for each in server.heard if each.outcome and each.name]
    assert (end.name, end.target, end.outcome) == ("alias", None, "timed_out")


@servers
async def test_places_are_shared(opened, name):
    """With `max_concurrency=1` the second of two calls begins when the first has ended."""
    async with opened(name) as wire:
        ids = {}
        for key in "xy":
            arguments = {"key": key}
            ids[key] = await wire.begin_call("one_at_a_time", arguments, progressToken=key)
        first = (await wire.notice(PROGRESS))["progressToken"]
        await let_time_pass(wire)
        assert wire.notices == []
        other = "y" if first == "x" else "x"
        for key in (first, other):
            await wire.text("release", {"key": key})
            answer = await wire.answer(ids[key])
            assert answer["result"]["content"][0]["text"] == f"patient {key}"


# Tasks


@stateless
@servers
async def test_a_task_has_its_time(opened, name):
    """It is the timeout of its tool; the result reports it."""
    async with opened(name) as wire:
        wire.capabilities = {"extensions": {EXTENSION: {}}}
        task = await begin_task(wire, "timely_job")
        task = await end_of_task(wire, task)
        assert task["status"] == "completed"
        assert task["result"]["content"] == TIMED_OUT["content"]


@stateless
@servers
async def test_a_task_outlasts_the_time_of_requests(opened, name):
    """The timeout of the server applies to requests only."""
    async with opened(name) as wire:
        wire.capabilities = {"extensions": {EXTENSION: {}}}
        task = await begin_task(wire, "patient_job", key="p")
        await let_time_pass(wire)
        assert await wire.text("release", {"key": "p"}) == "released"
        task = await end_of_task(wire, task)
        assert task["status"] == "completed"
        assert task["result"]["content"][0]["text"] == "patient p"


@in_this_process
@stateless
@servers
async def test_listeners_hear_how_a_task_ended(opened, transport, name):
    """The event of a task has the timeout, whatever wraps its tool."""
    async with opened(name) as wire:
        wire.capabilities = {"extensions": {EXTENSION: {}}}
        await end_of_task(wire, await begin_task(wire, "timely_job"))
        server = (wire.app if transport == "http" else wire.connection.running).server
        (end,) = [each for each in server.heard if each.outcome and each.task]
    assert (end.target, end.outcome) == ("timely_job", "timed_out")


async def begin_task(wire, tool, **arguments):
    """Call a tool; return the id of its task."""
    answer = await wire.call(tool, arguments)
    assert answer["result"]["resultType"] == "task", answer
    return answer["result"]["taskId"]


async def end_of_task(wire, id_):
    """Poll a task until it has ended; return it."""
    while True:
        task = wire.bare((await wire.ask("tasks/get", {"taskId": id_}))["result"])
        if task["status"] != "working":
            return task


# Nested calls


@servers
@pytest.mark.parametrize("tool", ["slow", "slow_thread", "slow_and_crashing", "default"])
async def test_a_nested_call_has_its_own_time(opened, name, tool):
    """After it the call is cancelled; the caller reads the result, and goes on."""
    async with opened(name) as wire:
        said = await wire.text("calls", {"name": tool})
        assert said == f"{tool}: Tool execution timed out"


@servers
async def test_a_nested_call_without_limit_outlasts_the_server_s(opened, name):
    """`timeout=None` means no limit, as in a request."""
    async with opened(name) as wire:
        id_ = await patient(wire, "calls", {"name": "patient"})
        await let_time_pass(wire)
        assert await release(wire, id_) == "patient: patient p"


@servers
async def test_nested_reads_and_prompts_have_their_own_time(opened, name):
    """The error is the same as for a client."""
    async with opened(name) as wire:
        for uri in ("x:slow", "x:default", "x:slow/a"):
            assert await wire.text("reads", {"uri": uri}) == "-32603 Request timed out"
        for prompt in ("slow_prompt", "default_prompt"):
            assert await wire.text("gets", {"name": prompt}) == "-32603 Request timed out"
        assert await wire.text("reads", {"uri": "x:quick"}) == "read"
        assert await wire.text("gets", {"name": "quick_prompt"}) == "got"


# Asking


@eliciting
@servers
@pytest.mark.parametrize("nested", [False, True])
async def test_a_call_may_ask(able, loaded, name, nested):
    """A nested call may ask in every era, at any depth."""
    async with able(name) as wire:
        asking = loaded("asking")
        person = asking.Person(wire, lambda _: asking.accept(name="Ann"))
        # The first check of a process loads the engine, which `asks` has no time for.
        assert await wire.text("release", {"key": "x"}) == "released"
        if nested:
            assert await person.text("calls", {"name": "asks"}) == "asks: Ann"
        else:
            assert await person.text("asks") == "Ann"


@live
@servers
@pytest.mark.parametrize("nested", [False, True])
async def test_clocks_stand_while_a_person_is_asked(able, name, nested):
    """Timeouts at any depth are paused during a question."""
    async with able(name) as wire:
        for tool, names in [("asks", ["Ann"]), ("asks_twice_at_once", ["Ann", "Bob"])]:
            id_ = await begin_asking(wire, tool, nested)
            questions = {}
            for _ in names:
                question = await wire.question()
                questions[question["params"]["message"]] = question
            for answer, message in zip(names, sorted(questions), strict=True):
                await let_time_pass(wire)
                result = {"action": "accept", "content": {"name": answer}}
                await wire.respond(questions[message], result=result)
            text = (await wire.answer(id_))["result"]["content"][0]["text"]
            assert text == (f"{tool}: " if nested else "") + " ".join(names)


@live
@servers
@pytest.mark.parametrize("nested", [False, True])
async def test_clocks_go_on_after_an_answer(able, name, nested):
    """Afterwards the remaining time passes."""
    async with able(name) as wire:
        id_ = await begin_asking(wire, "asks_and_waits", nested)
        result = {"action": "accept", "content": {"name": "Ann"}}
        await wire.respond(await wire.question(), result=result)
        text = (await wire.answer(id_))["result"]["content"][0]["text"]
        assert text == ("asks_and_waits: " if nested else "") + "Tool execution timed out"


async def begin_asking(wire, tool, nested):
    """Call a tool, directly or nested; return the id of the request."""
    if nested:
        return await wire.begin_call("calls", {"name": tool})
    return await wire.begin_call(tool)
