"""`fuzz` against servers that are odd in other ways than by one fault of a tool."""

import attrs
import pytest
import trio

from noizu_mcp import TransportError
from noizu_mcp.testing.fuzz import Case, Finding, Step, _fuzz, fuzz, replay
from noizu_mcp.testing.fuzz._case import Component
from noizu_mcp.testing.fuzz._minimise import Suspicion, minimise
from noizu_mcp.testing.fuzz._subject import Subject

from .seeded import KEEP, SAY, Refusal, Seeded


class Sound(Seeded):
    """A server without a fault, to be changed."""

    def __init__(self):
        super().__init__("none")


def found(report):
    return {(each.check, each.name) for each in report.findings}


class Malformed(Sound):
    """One definition is no definition, and another has a schema that is none."""

    def list_tools(self, params):
        if "cursor" in params:
            raise Refusal(-32602, "no such cursor")
        broken = {**SAY, "inputSchema": {"type": "object", "properties": {"a": {"type": "objekt"}}}}
        return {"tools": [{"name": 7}, {**broken, "name": "broken"}, KEEP]}


async def test_definitions_that_cannot_be_used(in_process, autojump_clock):
    """A malformed definition is a finding; a tool without a usable schema is named."""
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


class Deaf(Sound):
    """Its decoder refuses half a surrogate pair."""

    def receive(self, line):
        if b"\\ud800" in line:
            self.write(self.error(None, -32700, "no JSON"))
        else:
            super().receive(line)


async def test_half_a_surrogate_pair_may_be_no_json(in_process, autojump_clock):
    """A server that refuses it as malformed gets none in the arguments of a tool."""
    report = await fuzz(Deaf, examples=1)

    assert found(report) == set()


class Unknown(Sound):
    """It answers a request for an old revision with one that does not exist."""

    def answer(self, method, params):
        found = super().answer(method, params)
        is_old = params.get("protocolVersion") == "2025-03-26"
        return {**found, "protocolVersion": "1999-01-01"} if is_old else found


async def test_a_revision_that_does_not_exist(in_process, autojump_clock):
    """A server offers a revision of the specification."""
    report = await fuzz(Unknown, examples=1)

    assert [each.seen for each in report.findings] == ["the revision '1999-01-01'"]


class Shaky(Sound):
    """Each text is too much for it once."""

    texts = set()

    def say(self, text, stateless, tone="calm"):
        if text not in self.texts:
            self.texts.add(text)
            raise IndexError("list index out of range")
        return self.text(text)


async def test_a_fault_that_is_not_shown_again(in_process, autojump_clock):
    """What no new connection shows is reported once, as such."""
    report = await fuzz(Shaky, examples=4)

    assert [(each.check, each.name, each.steady) for each in report.findings] == [
        ("crash", "say", False)
    ]
    assert any("did not show it again" in line for line in report.lines())


class Mortal(Sound):
    """It dies of a space, and no other one starts afterwards."""

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
    """The run ends in order, and the last call is the finding."""
    report = await fuzz(Mortal, examples=1)

    assert ("crash", "say") in found(report)


class Old(Sound):
    """It speaks the revisions with a handshake only."""

    def answer(self, method, params):
        if method == "server/discover":
            raise Refusal(-32601, "no such method")
        return super().answer(method, params)


async def test_one_era_alone(in_process, autojump_clock):
    """A server of one era has no findings for the other; a finding of the other is not replayed."""
    report = await fuzz(Old, examples=1)

    assert report.findings == []
    assert report.facts["revisions"] == "2025-11-25"
    step = Step("tools/call", {"name": "say", "arguments": {"text": ""}})
    with pytest.raises(TransportError, match="does not speak the era"):
        await replay(Old, Finding("crash", "tool", "say", Case(True, (step,)), ""))


class Slow(Sound):
    """One tool takes seconds, and no cancellation ends it."""

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


def test_steps_that_do_not_matter_are_left_out(in_process):
    """The steps before a fault become those that it needs, with the least arguments."""
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
        component = Component(kind, name, greet if kind == "completion" else {}, NOTE)
        steps.append((component, component.step(value)))
    told = []

    async def run():
        async with trio.open_nursery() as nursery:
            subject = Subject("sequence", 5.0, nursery)
            await minimise(subject, Suspicion("crash", False, steps, "x"), told.append)
            await subject.aclose()

    trio.run(run)
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
    """A text is a URL, or names a server that is started as a process."""
    target = _fuzz.read_target(text)

    assert expected in (getattr(target, "url", ""), *getattr(target, "args", ()))
