"""Reports: for users, for programs, as tests, and in files."""

import json

import pytest

from noizu_mcp import Http, Stdio
from noizu_mcp.check.fuzz import Case, Finding, Report, Step, keep, load
from noizu_mcp.testing import Replay

STEP = Step("tools/call", {"name": "say", "arguments": {"text": "\ud800"}})
FINDING = Finding("crash", "tool", "say", Case(stateless=True, steps=(STEP,)), "oh\nno")
ONCE = Finding(
    "cancel",
    "tool",
    "wait",
    Case(stateless=False, steps=(Step("tools/call", {"name": "wait"}, 0.05),)),
    "x" * 1000,
    steady=False,
)


def test_people_read_lines():
    """The text has facts, excluded tools, and each finding with a test."""
    report = Report("app.py:Docs", 7, {"server": "docs 1"}, [ONCE, FINDING])
    report.skipped.append("drop")
    lines = list(report.lines())

    assert lines[0] == "server  docs 1"
    assert "drop" in lines[1]
    assert [line for line in lines if line.startswith(("CRASH", "CANCEL"))] == [
        "CRASH  tool say",
        "CANCEL  tool wait",
    ]
    assert "  seen  oh no" in lines
    assert max(map(len, lines)) < 1100
    assert lines[-1] == "2 findings; the time was over before the examples were"


def test_a_complete_run_says_so():
    """A run that tried all examples ends with the number of findings."""
    report = Report("app.py:Docs", 7, {}, [FINDING], is_complete=True)

    assert list(report.lines())[-1] == "1 finding"


def test_programs_read_json():
    """Each finding has its rule and its test."""
    wire = json.loads(json.dumps(Report("app.py:Docs", 7, {}, [FINDING]).to_json()))

    assert wire["seed"] == 7
    assert wire["complete"] is False
    assert wire["findings"][0]["check"] == "crash"
    assert wire["findings"][0]["rule"].startswith("An answer is")
    assert "def test_say_crash" in wire["findings"][0]["test"]


TARGETS = {
    "'app.py:Docs'": "app.py:Docs",
    "Stdio('npx', 'x y')": Stdio("npx", "x y"),
    "Http('https://a.example/mcp')": Http("https://a.example/mcp"),
    "Replay": Replay,
}


@pytest.mark.parametrize(("shown", "target"), TARGETS.items(), ids=TARGETS)
def test_a_test_is_a_module(shown, target, monkeypatch):
    """The printed test runs, and replays the finding on the server."""
    replayed = []
    monkeypatch.setattr("trio.run", lambda function, *args: replayed.append((function, *args)))
    source = Report(target, 0).test_of(FINDING)
    namespace = {}

    exec(compile(source, "test_it.py", "exec"), namespace)
    namespace["test_say_crash"]()

    assert f"trio.run(replay, {shown}, finding)" in source
    ((function, _, finding),) = replayed
    assert function.__name__ == "replay"
    assert Finding.from_json(finding) == FINDING


def test_findings_are_kept(tmp_path):
    """A file has each finding once, also if it was found again."""
    path = tmp_path / "findings.jsonl"

    assert load(path) == []
    keep(path, [FINDING])
    keep(path, [FINDING, ONCE])

    assert load(path) == [FINDING, ONCE]


WRONG = [
    {},
    [],
    {**FINDING.to_json(), "steps": [{"params": {}}]},
    {**FINDING.to_json(), "steps": [{"method": "a", "params": []}]},
    {**FINDING.to_json(), "steps": 7},
]


@pytest.mark.parametrize("value", WRONG)
def test_other_json_is_no_finding(value):
    """A file that was edited by hand is refused with the mistake."""
    with pytest.raises(ValueError, match="not a"):
        Finding.from_json(value)
