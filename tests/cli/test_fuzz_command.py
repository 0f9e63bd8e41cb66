"""`noizu-mcp fuzz`: its output, its files and its exit status."""

import json
import sys
from pathlib import Path

import pytest

from noizu_mcp.cli import main

SEEDED = Path(__file__).parents[1] / "checks" / "fuzz" / "seeded.py"
FEW = ("--examples", "2", "--timeout", "2")


def fuzz(*words, fault="crash"):
    return main(["fuzz", *words, "--", sys.executable, str(SEEDED), fault])


def test_a_finding_is_an_exit_status(capsys, tmp_path):
    """A finding is printed as a test, stored, and replayed until it is fixed; the status is 1."""
    kept = tmp_path / "findings.jsonl"

    assert fuzz(*FEW, "--keep", str(kept)) == 1
    assert "def test_say_crash" in capsys.readouterr().out
    assert fuzz("--replay", str(kept)) == 1
    shown = capsys.readouterr().out
    assert "a deliberate error" in shown
    assert shown.endswith("1 findings, 1 still there\n")
    assert fuzz("--replay", str(kept), fault="none") == 0


def test_a_program_reads_json(capsys):
    """With `--json` the report is an object, and nothing else is printed."""
    assert fuzz(*FEW, "--json") == 1

    report = json.loads(capsys.readouterr().out)
    assert [each["check"] for each in report["findings"]] == ["crash"]
    assert report["complete"]


def test_no_finding_is_success(capsys):
    """The status of a server without a fault is 0."""
    assert fuzz(*FEW, fault="none") == 0
    assert capsys.readouterr().out.endswith("0 findings\n")


WRONG = [
    (["fuzz"], 2),
    (["fuzz", "app.py:Docs", "--header", "a=b"], 2),
    (["fuzz", "app.py:Docs", "--budget", "0"], 2),
    (["fuzz", "http://127.0.0.1:9/mcp"], 1),
    (["fuzz", "--", "noizu-mcp-no-such-command"], 1),
    (["fuzz", "--", sys.executable, "-c", "pass"], 1),
]


@pytest.mark.parametrize(
    ("words", "status"),
    WRONG,
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else None,
)
def test_what_cannot_be_fuzzed(words, status, capsys):
    """A wrong command line, and a server that does not start, are reported in one line."""
    assert main(words) == status
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_that_is_no_list_of_findings(tmp_path, capsys):
    """The file of `--replay` is checked."""
    path = tmp_path / "findings.jsonl"
    path.write_text("{}\n")

    assert fuzz("--replay", str(path)) == 1
    assert "not a finding" in capsys.readouterr().err


def test_the_extra_is_named(monkeypatch, capsys):
    """Without Hypothesis the command says what to install."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    for name in ("_run", "_values"):
        monkeypatch.delitem(sys.modules, f"noizu_mcp.check.fuzz.{name}", raising=False)

    assert main(["fuzz", "app.py:Docs"]) == 1
    assert "pip install 'noizu-mcp[testing]'" in capsys.readouterr().err
