"""`fuzz` with servers that are odd in other ways than by one fault of a tool."""

import attrs
import pytest
import trio

from noizu_mcp import Limits, TransportError
from noizu_mcp.check.fuzz import Case, Finding, Step, _fuzz, fuzz, replay
from noizu_mcp.check.fuzz._case import Listed
from noizu_mcp.check.fuzz._fuzzed_server import FuzzedServer
from noizu_mcp.check.fuzz._hostile import attack
from noizu_mcp.check.fuzz._minimise import Suspicion, _replace, minimise
from noizu_mcp.check.fuzz._probes import find

from .seeded import KEEP, SAY, Refusal, Seeded


class Sound(Seeded):
    """A server without faults, to be changed."""

    def __init__(self):
        super().__init__("none")


def found(report):
    return {(each.check, each.name) for each in report.findings}


class Malformed(Sound):
    """One definition is malformed, and another one has an invalid schema."""

    def list_tools(self, params):
        if "cursor" in params:
            raise Refusal(-32602, "no such cursor")
        broken = {**SAY, "inputSchema": {"type": "object", "properties": {"a": {"type": "objekt"}}}}
        return {"tools": [{"name": 7}, {**broken, "name": "broken"}, KEEP]}


async def test_definitions_that_cannot_be_used(in_process, autojump_clock):
    """A malformed definition is a finding; a tool without a usable schema is listed."""
    report = await fuzz(Malformed, examples=1)

    assert found(report) == {("message", "tools/list")}
    assert report.unusable == ["broken"]


class Refusing(Sound):
    def list_tools(self, params):
        if "cursor" in params:
            raise Refusal(-32602, "no such cursor")
        return {"tools": [SAY], "nextCursor": "x"}


class Repeating(Sound):
    def list_tools(self, params):
        return {"tools": [SAY], "nextCursor": "x"}


class Endless(Sound):
    def list_tools(self, params):
        return {"tools": [SAY], "nextCursor": f"{params.get('cursor', '')}x"}


class Changing(Sound):
    pages = 0

    def list_tools(self, params):
        self.pages += 1
        more = {} if "cursor" in params else {"nextCursor": "x"}
        return {"tools": [{**SAY, "name": f"say{self.pages}"}], **more}


PAGES = {
    "leads to": Refusing,
    "again, or no text": Repeating,
    "no end after": Endless,
    "another page": Changing,
}


@pytest.mark.parametrize(("seen", "server"), PAGES.items(), ids=PAGES)
async def test_cursors(seen, server, in_process, autojump_clock):
    """Cursors that lead nowhere, in a circle, on for ever, or to other pages are findings."""
    report = await fuzz(server, examples=1)

    assert any(each.check == "cursors" and seen in each.seen for each in report.findings)


async def test_a_list_that_is_too_large(in_process, autojump_clock, monkeypatch):
    """It is read up to the limits of a list."""
    monkeypatch.setattr("noizu_mcp.check.fuzz._probes.LIMITS", Limits(list_size=1000))
    report = await fuzz(Endless, examples=1)

    seen = [each.seen for each in report.findings if each.check == "cursors"]
    assert any("tools/list has more than 1000 bytes" in each for each in seen)


class Deaf(Sound):
    """Its decoder refuses half of a surrogate pair."""

    def receive(self, line):
        if b"\\ud800" in line:
            self.write(self.error(None, -32700, "no JSON"))
        else:
            super().receive(line)


async def test_half_a_surrogate_pair_may_be_no_json(in_process, autojump_clock):
    """If a server refuses it as malformed, arguments of tools do not contain it."""
    report = await fuzz(Deaf, examples=1)

    assert found(report) == set()


class Unknown(Sound):
    """It answers a request for an old revision with an unknown revision."""

    def answer(self, method, params):
        found = super().answer(method, params)
        is_old = params.get("protocolVersion") == "2025-03-26"
        return {**found, "protocolVersion": "1999-01-01"} if is_old else found


async def test_a_revision_that_does_not_exist(in_process, autojump_clock):
    """An unknown revision in an answer is a finding."""
    report = await fuzz(Unknown, examples=1)

    assert [each.seen for each in report.findings] == ["the revision '1999-01-01'"]


class Outdated(Sound):
    """One of its tools fails in an older revision."""

    asked = ""

    def answer(self, method, params):
        self.asked = params.get("protocolVersion", self.asked)
        return super().answer(method, params)

    def say(self, text, stateless, tone="calm"):
        if self.asked == "2025-06-18":
            raise IndexError("list index out of range")
        return self.text(text)


async def test_a_tool_that_fails_in_an_older_revision(in_process, autojump_clock):
    """The finding has the revision, and the one call that fails in it."""
    report = await fuzz(Outdated, examples=1)

    assert found(report) == {("revisions", "2025-06-18")}
    (finding,) = report.findings
    assert [each.params["name"] for each in finding.case.steps] == ["say"]
    with pytest.raises(AssertionError, match="2025-06-18"):
        await replay(Outdated, finding)


class Shaky(Sound):
    """Each text is a failure once."""

    texts = set()

    def say(self, text, stateless, tone="calm"):
        if text not in self.texts:
            self.texts.add(text)
            raise IndexError("list index out of range")
        return self.text(text)


async def test_a_fault_that_is_not_shown_again(in_process, autojump_clock):
    """A failure that no new connection repeats is reported once, as unrepeatable."""
    report = await fuzz(Shaky, examples=4)

    assert [(each.check, each.name, each.steady) for each in report.findings] == [
        ("crash", "say", False)
    ]
    assert any("did not show it again" in line for line in report.lines())


class Mortal(Sound):
    """It exits on a space, and cannot be restarted."""

    is_dead = False

    def receive(self, line):
        if type(self).is_dead:
            raise SystemExit
        super().receive(line)

    def say(self, text, stateless, tone="calm"):
        if text == " ":
            type(self).is_dead = True
            raise SystemExit
        return self.text(text)


async def test_a_server_that_does_not_start_again(in_process, autojump_clock):
    """The run ends normally, and the last call is the finding."""
    report = await fuzz(Mortal, examples=1)

    assert ("crash", "say") in found(report)


class Old(Sound):
    """It has the handshake revisions only."""

    def answer(self, method, params):
        if method == "server/discover":
            raise Refusal(-32601, "no such method")
        return super().answer(method, params)


async def test_one_era_alone(in_process, autojump_clock):
    """A server of one era has no findings for the other, whose findings are not replayed."""
    report = await fuzz(Old, examples=1)

    assert report.findings == []
    assert report.facts["revisions"] == "2025-11-25"
    step = Step("tools/call", {"name": "say", "arguments": {"text": ""}})
    with pytest.raises(TransportError, match="does not speak the era"):
        await replay(Old, Finding("crash", "tool", "say", Case(True, (step,)), ""))


class Slow(Sound):
    """One tool takes seconds, and cannot be cancelled."""

    def __init__(self):
        super().__init__()
        self.tools["wait"] = {**SAY, "name": "wait"}

    def respond(self, id_, method, params):
        if method == "tools/call" and params.get("name") == "wait":
            progress = {"progressToken": params["_meta"]["progressToken"], "progress": 1}
            method = "notifications/progress"
            self.write({"jsonrpc": "2.0", "method": method, "params": progress})
            self.write_later(7.0, self.result(id_, params, self.text("done")))
        else:
            super().respond(id_, method, params)


async def test_a_slow_tool_that_tells_its_progress(in_process, autojump_clock):
    """It is not silent, and it is called less often."""
    report = await fuzz(Slow, examples=4)

    assert found(report) == set()
    assert list(report.slow) == ["wait"]


NOTE = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


CREATE = Listed("tool", "keep_note", {}, NOTE)


async def search(target, check, steps, *, stateless=False):
    """Reduce a suspicion, and return the reported findings."""
    told = []
    async with trio.open_nursery() as nursery:
        subject = FuzzedServer(target, 5.0, nursery)
        await minimise(subject, Suspicion(check, stateless, steps, "x"), told.append)
        await subject.aclose()
    return told


class Tired(Sound):
    """It fails for a `b`, and from its fourth call on for everything."""

    called = 0

    def call(self, params):
        self.called += 1
        if self.called > 3 or "b" in params["arguments"]["title"]:
            raise IndexError("list index out of range")
        return self.text("")


async def test_a_smaller_case_is_shown_on_a_new_connection(in_process, autojump_clock):
    """A smaller value that failed only because of earlier calls is not reported."""
    told = await search(Tired, "crash", [(CREATE, CREATE.step({"title": "xbx"}))])

    assert told[-1].case.steps[0].params["arguments"] == {"title": "xbx"}


async def test_an_answer_that_came_late_once(in_process, autojump_clock):
    """A server that was slow only once has no finding."""
    assert await search(Sound, "silence", [(CREATE, CREATE.step({"title": "a"}))]) == []


def test_a_value_is_replaced_at_any_depth():
    """Values in lists are replaced; resources have no arguments."""
    step = CREATE.step({"title": ["a", {"b": "a"}]})
    page = Listed("resource", "a:b", {}, {})

    assert _replace((CREATE, step), "a", "")[1] == CREATE.step({"title": ["", {"b": ""}]})
    assert _replace((page, page.step("a:b")), "a:b", "") == (page, page.step("a:b"))


async def judge(target, check, steps, *, stateless=False, times=1):
    """Take steps, and return the result of a check."""
    async with trio.open_nursery() as nursery:
        subject = FuzzedServer(target, 5.0, nursery)
        for _ in range(times):
            seen = await find(subject, check, CREATE, Case(stateless, tuple(steps)))
        await subject.aclose()
    return seen


class Fragile(Sound):
    """It exits on a space, and on a cancellation."""

    def receive(self, line):
        if b"cancelled" in line or b'" "' in line:
            raise SystemExit
        super().receive(line)

    def respond(self, id_, method, params):
        if params.get("name") != "wait":
            super().respond(id_, method, params)


SPACE = Step("tools/call", {"name": "say", "arguments": {"text": " "}})
WAIT = Step("tools/call", {"name": "wait"}, cancel_after=0.1)


@pytest.mark.parametrize("check", ["eras", "cancel", "notice", "crash"])
async def test_a_server_that_dies_too_early(check, in_process, autojump_clock):
    """If an earlier step ends the server, the last one is not checked."""
    assert await judge(Fragile, check, [SPACE, WAIT]) is None


async def test_a_cancellation_that_ends_the_server(in_process, autojump_clock):
    """The end of the server is a finding."""
    assert await judge(Fragile, "cancel", [WAIT]) == "the server answers no more"


class Young(Sound):
    """It only has 2026-07-28, where one of its lists is longer."""

    def answer(self, method, params):
        if method == "initialize":
            raise Refusal(-32601, "no such method")
        return super().answer(method, params)


async def test_a_check_in_an_era_that_is_not_spoken(in_process, autojump_clock):
    """Nothing is checked."""
    assert await judge(Young, "notice", [WAIT]) is None
    assert await judge(Young, "crash", [WAIT], times=2) is None
    async with trio.open_nursery() as nursery:
        seen, _ = await attack(FuzzedServer(Young, 5.0, nursery), "null", stateless=False)
    assert seen == "it does not start again"


class Divided(Sound):
    """One of its tools is listed on 2026-07-28 only."""

    def list_tools(self, params):
        found = super().list_tools(params)
        return found if self.is_stateless(params) else {"tools": found["tools"][1:]}


async def test_lists_that_differ_between_eras(in_process, autojump_clock):
    """Each era must list the same components."""
    report = await fuzz(Divided, examples=1)

    assert ("eras", "tools/list") in found(report)


class Once(Sound):
    """It answers an unknown method with a result, and loses a tool: each only once."""

    has_answered = has_lost = False

    def __init__(self):
        super().__init__()
        if type(self).has_lost:
            del self.tools["read_note"]

    def answer(self, method, params):
        if "no-such" in method and not type(self).has_answered:
            type(self).has_answered = True
            return {}
        return super().answer(method, params)

    def keep_note(self, title, stateless):
        type(self).has_lost = True
        self.tools.pop("read_note", None)
        return self.text("kept")


async def test_what_happens_once_is_no_finding(in_process, autojump_clock):
    """A reaction to a message, and a change of a list, must occur on a new connection, too."""
    report = await fuzz(Once, examples=1)

    assert {check for check, _ in found(report)} <= {"eras"}


async def test_steps_that_do_not_matter_are_left_out(in_process, autojump_clock):
    """The steps before a fault are reduced to the necessary ones, with the smallest arguments."""
    used = [
        ("completion", "greet name", "x"),
        ("tool", "say", {"text": "x"}),
        ("tool", "keep_note", {"title": "xyz"}),
        ("tool", "say", {"text": "y"}),
        ("tool", "drop_note", {"title": "xyz"}),
        ("tool", "read_note", {"title": "xyz"}),
    ]
    greet = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name"}}
    steps = []
    for kind, name, value in used:
        component = Listed(kind, name, greet if kind == "completion" else {}, NOTE)
        steps.append((component, component.step(value)))
    told = await search("sequence", "crash", steps)

    assert [each.params["name"] for each in told[-1].case.steps] == [
        "keep_note",
        "drop_note",
        "read_note",
    ]
    assert attrs.asdict(told[-1].case.steps[-1])["params"]["arguments"] == {"title": "a"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("https://a.example/mcp", "https://a.example/mcp"), ("app.py:Docs", "app.py:Docs")],
)
def test_targets(text, expected):
    """A string is a URL, or names a server that is started as a process."""
    target = _fuzz.read_target(text)

    assert expected in (getattr(target, "url", ""), *getattr(target, "args", ()))


class Late(Sound):
    """It answers `say` a second time, together with the next request."""

    def __init__(self):
        super().__init__()
        self.waiting = []

    def receive(self, line):
        late, self.waiting = self.waiting, []
        for each in late:
            self.write(each)
        super().receive(line)

    def say(self, text, stateless, tone="calm"):
        return self.text(text)

    def respond(self, id_, method, params):
        super().respond(id_, method, params)
        if method == "tools/call" and params.get("name") == "say":
            self.waiting.append(self.result(id_, params, self.text("again")))


async def test_a_second_answer_that_comes_late(in_process, autojump_clock):
    """The finding names the previous call, once, whatever call is suspected."""
    report = await fuzz(Late, examples=4)

    assert [(each.check, each.name) for each in report.findings] == [("one-answer", "say")]


class Untyped(Sound):
    """Optional members of its first results have a wrong type."""

    def answer(self, method, params):
        found = super().answer(method, params)
        return {**found, "instructions": 7} if "capabilities" in found else found


async def test_the_form_of_the_first_result(in_process, autojump_clock):
    """The results of `initialize` and `server/discover` must fit the revision."""
    report = await fuzz(Untyped, examples=1)

    assert found(report) >= {("message", "2025-11-25"), ("message", "server/discover")}
    assert all("/instructions: expected string" in each.seen for each in report.findings)


class Wrong(Sound):
    """An optional member of its second page has a wrong type."""

    def list_tools(self, params):
        if params.get("cursor") == "x":
            return {"tools": [{**KEEP, "title": None}]}
        if "cursor" in params:
            raise Refusal(-32602, "no such cursor")
        return {"tools": [SAY], "nextCursor": "x"}


@pytest.mark.parametrize("server", [Untyped, Wrong])
async def test_findings_about_forms_are_replayed(server, in_process, autojump_clock):
    """A finding about the first result, or about a page, is reproduced by `replay`."""
    for finding in (await fuzz(server, examples=1)).findings:
        with pytest.raises(AssertionError, match="expected string"):
            await replay(server, finding)
    assert found(await fuzz(Sound, examples=1)) == set()
