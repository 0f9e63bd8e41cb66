"""`noizu-mcp contract write` and `contract check`: files, output and exit status."""

import json

import pytest

ONE = """
from noizu_mcp import Server, Toolkit, field, mcp

class Kit(Toolkit):
    @mcp
    def find(self, query: str, limit: int = field(default=5{})):
        "Find pages."
        return query

class Docs(Server, name="docs", version="1"):
    tools = [Kit]
"""


@pytest.fixture
def edit(folder):
    """A server in `app.py`, and its next version in `new.py`."""

    def edit(text="", name="new.py"):
        (folder / name).write_text(ONE.replace("{}", text), encoding="utf-8")

    edit("", "app.py")
    return edit


def test_write_and_check(run, edit, folder):
    """A server conforms to the contract that was written for it."""
    status, out, _ = run("contract", "write", "app.py")

    assert (status, out) == (
        0,
        "contract.json: tools: 1, resources: 0, templates: 0, prompts: 0\n",
    )
    assert json.loads((folder / "contract.json").read_text(encoding="utf-8"))["tools"].keys() == {
        "find"
    }
    assert run("contract", "check", "app.py")[:2] == (0, "no changes\n")


def test_a_breaking_change(run, edit):
    """It is shown with an example and its reason; the status is 1."""
    run("contract", "write", "app.py")
    edit(", max=10, description='Most.'")
    status, out, _ = run("contract", "check", "new.py:Docs")

    assert status == 1
    assert out.splitlines() == [
        "BREAKING  tool find inputSchema",
        "  it refuses arguments that it took",
        '  example  {"limit":11,"query":""}',
        "           /limit: 11 is greater than the maximum of 10",
        "VISIBLE  tool find inputSchema/properties/limit/description",
        '  it is new: "Most."',
        "1 breaking, 1 visible to the model",
    ]


def test_json(run, edit):
    """The JSON has the changes, and what was written."""
    assert json.loads(run("contract", "write", "app.py", "--json", "--only", "tools")[1]) == {
        "file": "contract.json",
        "tools": 1,
    }
    edit(", max=10")
    status, out, _ = run("contract", "check", "new.py", "--json")
    found = json.loads(out)

    assert (status, found["ok"]) == (1, False)
    assert found["changes"][0]["example"]["limit"] == 11


def test_exact(run, edit):
    """A compatible change passes, unless the file must be up to date."""
    run("contract", "write", "app.py", "--file", "c.json")
    edit(", description='Most.'")

    assert run("contract", "check", "new.py", "--file", "c.json")[0] == 0
    assert run("contract", "check", "new.py", "--file", "c.json", "--exact")[0] == 1


def test_wrong_files(run, edit, folder):
    """A file that is missing or not a contract is wrong usage; the error says what to do."""
    status, _, err = run("contract", "check", "app.py")
    assert status == 2
    assert "there is no contract.json; `noizu-mcp contract write` writes it" in err

    (folder / "contract.json").write_text("{", encoding="utf-8")
    status, _, err = run("contract", "check", "app.py")
    assert status == 2
    assert "contract.json is not JSON" in err

    status, _, err = run("contract", "write", "app.py", "--file", "no/where.json")
    assert status == 1
    assert "cannot write no/where.json: No such file or directory" in err


def test_the_action_is_needed(run):
    """`contract` without an action is wrong usage."""
    assert run("contract")[0] == 2
