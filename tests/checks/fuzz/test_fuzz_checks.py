"""The checks of one answer, and the texts that they recognize."""

import pytest

from noizu_mcp.check.fuzz import CHECKS, Step
from noizu_mcp.check.fuzz._case import Listed, Replies
from noizu_mcp.check.fuzz._checks import CANARY, judge, judge_one
from noizu_mcp.check.raw import Exchange

TOOL = Listed(
    "tool",
    "add",
    {
        "name": "add",
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    },
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)
TEXT = {"type": "text", "text": "1"}
RIGHT = {"content": [TEXT], "structuredContent": {"n": 1}}


def result(result, arguments=None, **more):
    step = TOOL.step({"n": 1} if arguments is None else arguments)
    return Replies(step, Exchange("tools/call", {"result": result}), **more)


def error(code, message, arguments=None, **members):
    step = TOOL.step({"n": 1} if arguments is None else arguments)
    answer = {"error": {"code": code, "message": message, **members}}
    return Replies(step, Exchange("tools/call", answer))


def failed(text, **more):
    return result({"content": [{"type": "text", "text": text}], "isError": True}, **more)


def progressing(*values, token="h1"):
    notes = [
        {"method": "notifications/progress", "params": {"progressToken": token, "progress": each}}
        for each in values
    ]
    return result(RIGHT, notifications=tuple(notes), token="h1")


def unanswered(**members):
    return Replies(TOOL.step({"n": 1}), Exchange("tools/call", **members))


LOG = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}
HELD = {
    "progress that grows": progressing(1, 2.5),
    "a log message": result(RIGHT, notifications=(LOG,)),
    "a result with a type": result({**RIGHT, "resultType": "complete"}, version="2026-07-28"),
    "a result": result(RIGHT),
    "a deliberate failure": failed("the shop is closed"),
    "a deliberate error": error(-32002, "no such thing", data={"uri": "a:b"}),
    "a deliberate failure with marks": result(
        {"content": [TEXT], "isError": True, "_meta": {"com.example/x": True}}
    ),
    "a refusal of wrong arguments": error(-32602, "Input validation error: 'n'", {}),
    "text that stands for a number": result(RIGHT, {"n": "1"}),
    "a question": result({"resultType": "input_required", "inputRequests": {}}),
    "a task": result({"task": {"taskId": "1"}}),
    "a status that refuses": unanswered(status=403),
    "a path that was sent": failed("/home/a/b is missing", arguments={"n": "/home/a/b"}),
}


@pytest.mark.parametrize("outcome", HELD.values(), ids=HELD)
def test_right_answers(outcome):
    """A valid answer has no fault."""
    assert judge(outcome, TOOL) == {}


BROKEN = {
    "progress of nobody": ({"progress"}, progressing(1, token="x")),
    "progress that stands": ({"progress"}, progressing(1, 1)),
    "progress that is no number": ({"message"}, progressing(True)),
    "a log message that nobody asked for": (
        {"log"},
        result(RIGHT, notifications=(LOG,), can_log=False),
    ),
    "our crash": ({"crash"}, failed("Tool execution failed")),
    "an internal error": ({"crash"}, error(-32603, "Internal error")),
    "an exception of Python": ({"crash"}, failed("Error: string index out of range")),
    "an exception of JavaScript": (
        {"crash"},
        failed("Cannot read properties of undefined (reading 'a')"),
    ),
    "a panic": ({"crash"}, failed("runtime error: index out of range [3]")),
    "the end of the process": ({"crash"}, unanswered(ended=True)),
    "a status of failure": ({"crash"}, unanswered(status=500)),
    "no answer": ({"silence"}, unanswered()),
    "a second answer": ({"one-answer"}, result(RIGHT, faults=(("message", "a second answer: 1"),))),
    "a line that is no message": ({"message"}, result(RIGHT, faults=(("stdout", "hello"),))),
    "content that is no list": ({"message"}, result({**RIGHT, "content": "1"})),
    "a result of 2026-07-28 without a type": ({"message"}, result(RIGHT, version="2026-07-28")),
    "no structured content": ({"output"}, result({"content": [TEXT]})),
    "a wrong type": ({"output"}, result({**RIGHT, "structuredContent": {"n": "1"}})),
    "marks that are no object": (
        {"message"},
        result({"content": [TEXT], "isError": True, "_meta": 1}),
    ),
    "our broken output contract": (
        {"output"},
        result(
            {
                "content": [{"type": "text", "text": "Tool t broke its output contract"}],
                "isError": True,
                "_meta": {"com.noizu.mcp/broken-output": True},
            }
        ),
    ),
    "a broken output contract in words": (
        {"output"},
        failed("MCP error -32602: Output validation error: 1 is not of type 'string'"),
    ),
    "a broken output contract as an error": (
        {"output"},
        error(-32602, "Output validation error: Invalid structured content for tool t"),
    ),
    "a missing argument": ({"accepts-invalid"}, result(RIGHT, {})),
    "a refusal of right arguments": ({"refuses-valid"}, error(-32602, "'n' is not of type")),
    "a traceback": ({"leak"}, failed("Traceback (most recent call last):\n ...")),
    "a stack of JavaScript": ({"leak"}, failed("oh\n    at run (/app/index.js:3:4)")),
    "a path of a person": ({"leak"}, failed("cannot open /home/ada/notes.db")),
    "a variable": ({"leak"}, failed(f"env: {CANARY}")),
    "a key": ({"leak"}, failed("using AKIAABCDEFGHIJKLMNOP")),
}


@pytest.mark.parametrize(("checks", "outcome"), BROKEN.values(), ids=BROKEN)
def test_wrong_answers(checks, outcome):
    """A fault is reported by its check, and by no other."""
    assert judge(outcome, TOOL).keys() == checks


def test_a_crash_hides_what_follows_from_it():
    """A crash that leaks is reported by both checks; the form of its result is not."""
    outcome = failed("Traceback (most recent call last):\nTypeError: no")

    assert judge(outcome, TOOL).keys() == {"crash", "leak"}
    assert judge_one("leak", outcome, TOOL)
    assert judge_one("output", outcome, TOOL) is None


def test_silence_tells_whether_the_server_lives():
    """A tool that hangs is distinguished from a server that hangs."""
    step = TOOL.step({"n": 1})
    alive = Replies(step, Exchange("tools/call", failure="no answer within 5 s"), responsive=True)
    dead = Replies(step, Exchange("tools/call"), responsive=False)
    cancelled = Replies(Step("tools/call", {}, 0.1), Exchange("tools/call"))

    assert judge_one("silence", alive, TOOL) == "no answer within 5 s"
    assert "none to the next" in judge_one("silence", dead, TOOL)
    assert judge_one("silence", cancelled, TOOL) is None


def test_completions_are_at_most_a_hundred():
    """A completion with more values is invalid by the specification."""
    component = Listed(
        "completion",
        "greet name",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name"}},
        {"type": "string"},
    )
    step = component.step("a")
    values = [str(each) for each in range(101)]
    answer = {"result": {"completion": {"values": values}}}
    outcome = Replies(step, Exchange(step.method, answer))

    assert step.params["argument"] == {"name": "name", "value": "a"}
    assert component.value_of(step) == "a"
    assert judge(outcome, component).keys() == {"message"}


HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
PICTURE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
SCOPED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
PLAIN_TOOL = {"name": "add", "inputSchema": {"type": "object"}}
# The revision, the method, the result, and the path of the fault.
FORMS = [
    (HANDSHAKE, "tools/call", {"content": [{**TEXT, "annotations": {"priority": 2}}]}, "priority"),
    (HANDSHAKE, "tools/call", {"content": [{**TEXT, "_meta": []}]}, "_meta"),
    (HANDSHAKE, "tools/call", {"content": [{**PICTURE, "data": "?"}]}, "data"),
    (HANDSHAKE, "tools/call", {"content": [{"type": "film"}]}, "type"),
    (HANDSHAKE, "tools/call", {"content": [], "isError": None}, "isError"),
    (HANDSHAKE, "tools/call", {"content": [], "structuredContent": []}, "structuredContent"),
    (STATELESS, "tools/call", {"content": [], "resultType": 1}, "resultType"),
    (STATELESS, "tools/call", {"resultType": "input_required", "requestState": 1}, "requestState"),
    (HANDSHAKE, "prompts/get", {"messages": [], "description": None}, "description"),
    (HANDSHAKE, "prompts/get", {"messages": [{"role": "system", "content": TEXT}]}, "role"),
    (HANDSHAKE, "resources/read", {"contents": [{"uri": "a:b", "blob": 1}]}, "contents"),
    (STATELESS, "resources/read", {**SCOPED, "contents": [], "ttlMs": -1}, "ttlMs"),
    (STATELESS, "tools/list", {"resultType": "complete", "tools": []}, "ttlMs"),
    (HANDSHAKE, "tools/list", {"tools": [], "nextCursor": None}, "nextCursor"),
    (HANDSHAKE, "tools/list", {"tools": [{**PLAIN_TOOL, "title": None}]}, "title"),
    ("2025-06-18", "tools/list", {"tools": [{**PLAIN_TOOL, "outputSchema": {}}]}, "outputSchema"),
    (HANDSHAKE, "prompts/list", {"prompts": [{"name": "a", "arguments": [{}]}]}, "name"),
    (HANDSHAKE, "completion/complete", {"completion": {"values": [], "total": 0.5}}, "total"),
]


@pytest.mark.parametrize(("version", "method", "answer", "place"), FORMS)
def test_members_of_a_wrong_type_are_found(version, method, answer, place):
    """Members of the revision's schema must have their types, also optional ones."""
    outcome = Replies(Step(method), Exchange(method, {"result": answer}), version=version)
    component = Listed("list", method, {}, {})

    assert judge(outcome, component).keys() == {"message"}
    assert place in judge(outcome, component)["message"]


@pytest.mark.parametrize(
    ("version", "method", "answer"),
    [
        ("2025-03-26", "tools/list", {"tools": [{**PLAIN_TOOL, "title": 7, "outputSchema": 7}]}),
        ("2025-03-26", "tools/call", {"content": [TEXT], "structuredContent": 7}),
        (STATELESS, "tools/call", {**SCOPED, "content": [TEXT], "structuredContent": 7}),
        (STATELESS, "resources/list", {**SCOPED, "resources": []}),
        (STATELESS, "ping", {"anything": 7}),
    ],
)
def test_members_that_a_revision_does_not_name(version, method, answer):
    """Unknown members, and members of other revisions, may have any value."""
    outcome = Replies(Step(method), Exchange(method, {"result": answer}), version=version)

    assert judge(outcome, Listed("list", method, {}, {})) == {}


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("message", {"level": "loud", "data": 1}),
        ("message", {"level": "info"}),
        ("progress", {"progressToken": "h1", "progress": 1, "total": "2"}),
        ("cancelled", {"requestId": "1", "reason": 5}),
        ("tools/list_changed", []),
        ("resources/updated", {}),
    ],
)
def test_notifications_of_a_wrong_form_are_found(name, params):
    """A notification beside a result must fit the revision, too."""
    note = {"method": f"notifications/{name}", "params": params}
    found = judge(result(RIGHT, notifications=(note,), token="h1"), TOOL)

    assert found.keys() == {"message"}
    assert found["message"].startswith(f"notifications/{name}: ")


def test_resources_have_no_arguments_to_check():
    """A resource that is not found is not a refusal of arguments."""
    component = Listed("resource", "a:b", {"uri": "a:b", "name": "b"}, {"const": "a:b"})
    step = component.step("a:b")
    answer = {"error": {"code": -32602, "message": "validation error"}}

    assert component.value_of(step) == "a:b"
    assert judge(Replies(step, Exchange(step.method, answer)), component) == {}


def test_a_schema_that_cannot_be_used_judges_nothing():
    """If its schema is invalid, arguments of a tool are neither valid nor invalid."""
    component = Listed("tool", "odd", {"name": "odd"}, {"type": "objekt"})

    assert component.violations({}) is None
    assert judge(Replies(component.step({}), Exchange("", {"result": RIGHT})), component) == {}


def test_a_text_with_a_format_may_be_refused():
    """`format` is an annotation, so the schema does not say which strings are valid."""
    day = {"type": "string", "format": "date"}
    schema = {"type": "object", "properties": {"day": day, "n": {"type": "integer"}}}
    component = Listed("tool", "book", {"name": "book"}, schema)
    answer = {"error": {"code": -32602, "message": "validation error"}}

    def judged(value):
        step = component.step(value)
        return judge(Replies(step, Exchange(step.method, answer)), component)

    assert judged({"day": "", "n": 1}) == {}
    assert judged({"n": 1}).keys() == {"refuses-valid"}


def test_a_step_without_params():
    """A step is printed without missing parts."""
    assert Step("tools/list").to_json() == {"method": "tools/list"}


def test_each_check_has_a_sentence_and_a_source():
    """The report and the printed tests quote them."""
    assert all(each.sentence.endswith(".") and each.source for each in CHECKS.values())
