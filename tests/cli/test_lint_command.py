"""`noizu-mcp lint`: the report on a terminal and as JSON, the options, and its page."""

import json
from pathlib import Path

import pytest

from noizu_mcp.check.lint import RULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "lint.md"
BAD = """
from noizu_mcp import Server, tool

def make(name, **properties):
    def work(args):
        return ""
    schema = {"type": "object", "properties": properties}
    return tool(work, name=name, description=f"Work on {name} things.", input_schema=schema)

class Bad(Server, name="bad", version="1"):
    tools = [
        make("rows", rows={"type": "array", "description": "All rows.\\u0007"}),
        *(make(f"part_{letter}", value={"type": "string"}) for letter in "abcdefghijklm"),
    ]
"""


@pytest.fixture
def bad(folder):
    """A server with an error and many warnings."""
    (folder / "bad.py").write_text(BAD, encoding="utf-8")
    return "bad.py"


def test_the_report(run, bad):
    """Tools by size, then findings by rule; long lists are cut; an error makes the status 1."""
    status, out, err = run("lint", bad)
    lines = out.splitlines()

    assert (status, err) == (1, "")
    assert lines[0].split() == ["TOOL", "TOKENS,", "ESTIMATED"]
    assert lines[1].split()[0] == "rows"
    assert lines[11].startswith("all 14 tools")
    at = lines.index("ERROR  array-items")
    assert lines[at + 1] == "  at    rows /properties/rows: a list without `items`"
    assert lines[at + 2].startswith("  do    add `items` to the list")
    at = lines.index("WARNING  parameter-description")
    assert lines[at + 11] == "        and 3 more; --json prints all"
    assert lines[-1].startswith("1 error, 13 warnings, ")


def test_one_tool_has_no_sum(run, folder):
    """The table of one tool is its row; a report without findings says so."""
    (folder / "good.py").write_text(
        "from noizu_mcp import Server, Toolkit, mcp\n"
        "class Kit(Toolkit):\n"
        "    @mcp\n"
        "    def greet(self):\n"
        "        'Say hello to the one who asks.'\n"
        "class Good(Server, name='good', version='1'):\n"
        "    tools = [Kit]\n",
        encoding="utf-8",
    )
    status, out, _ = run("lint", "good.py")

    assert status == 0
    assert [line.split()[0] for line in out.splitlines() if line] == ["TOOL", "greet", "no"]


def test_json(run, bad):
    """JSON has all findings and sizes."""
    status, out, _ = run("lint", bad, "--json")
    found = json.loads(out)

    assert status == 1
    assert len(found["tokens"]) == 14
    assert sum(each["rule"] == "parameter-description" for each in found["findings"]) == 13


def test_options(run, bad):
    """Options exclude rules, and set the severity and the APIs."""
    assert run("lint", bad, "--ignore", "array-items")[0] == 0
    assert run("lint", bad, "--ignore", "array-items", "--fail-on", "warning")[0] == 1
    assert "gemini" not in run("lint", bad, "--api", "openai")[1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--ignore", "nope"), "--ignore nope: there are duplicate-name, "),
        (("--api", "nope"), "--api nope: there are anthropic, openai, openai-responses, gemini"),
    ],
)
def test_unknown_names(run, words, text):
    """They are refused before the server starts."""
    status, out, err = run("lint", "nowhere.py", *words)

    assert (status, out) == (2, "")
    assert text in err


def test_the_page_has_every_rule():
    """The table of the documentation is the same as in the code."""
    text = PAGE.read_text(encoding="utf-8")
    rows = [f"| `{name}` | {rule.severity} | {rule.remedy} |" for name, rule in RULES.items()]

    assert [
        row for row in text.splitlines() if row.startswith("| `") and row.count("|") == 4
    ] == rows
