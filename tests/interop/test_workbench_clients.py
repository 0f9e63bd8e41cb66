"""The official clients see a skill of the workbench appear, change and vanish."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .reports import Mode, call, look_up, mode, texts, ways

SERVER = Path(__file__).parent / "workbench_server.py"
SESSION, LATEST = "2025-11-25", "2026-07-28"
MODES = {
    "python": [mode("handshake", SESSION), mode("pin", LATEST)],
    "typescript-2": [mode("handshake", SESSION), mode("pin", LATEST)],
    "typescript-1": [mode("handshake", SESSION)],
}
NAMES = ["put", "skill:remember", "skill:recall", "skill:digest", "skill:headlines", "skill:seal"]
NEWS = "workflow:Tech News Digest"


def _changes(name: str, first: str, second: str) -> dict[str, Any]:
    """Make the scenario of two changes: the client waits for each notice and lists the tools."""
    steps = {"add": call("put", language=first), "remove": call("put", language=second)}
    return {"name": name, "kind": "changes", **steps}


SCENARIOS: list[dict[str, Any]] = [
    {"name": "list", "kind": "list"},
    _changes("appear and change", "english", "german"),
    {"name": "changed", "kind": "list"},
    call("skill:greet", "german", who="Ada"),
    _changes("change and vanish", "english", "none"),
    call("skill:greet", "vanished", who="Ada"),
    call(NEWS, "digest", input="# One\n# Two"),
    {"name": "notes", "kind": "read", "uri": "workbench://notes/list"},
    {"name": "settings", "kind": "read", "uri": "workbench://config/list"},
]

pytestmark = pytest.mark.parametrize(
    ("reports", "mode"), ways(MODES), indirect=["reports"], scope="module"
)


@pytest.fixture(scope="module")
def reports(
    request: pytest.FixtureRequest, run_modes: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    """Return the report of one client in all its modes, over one transport."""
    return run_modes(request.param, MODES, f"{SERVER}:Changing", SCENARIOS)


@pytest.fixture
def seen(reports: dict[str, Any], mode: Mode) -> Callable[[str], Any]:
    return look_up(reports[mode["label"]])


def test_a_skill_appears_changes_and_vanishes(seen: Callable[[str], Any]) -> None:
    """Each change sends a notice, and the list after it is right."""
    with_greet = [*NAMES[:4], "skill:greet", *NAMES[4:], NEWS]
    assert seen("appear and change") == {"add": with_greet, "remove": with_greet}
    assert seen("change and vanish") == {"add": with_greet, "remove": [*NAMES, NEWS]}


def test_the_definition_and_the_code_change(seen: Callable[[str], Any]) -> None:
    """The list after the notice describes the file, and a call runs its code."""
    tools = {tool["name"]: tool for tool in seen("changed")["tools"]}
    assert tools["skill:greet"]["description"] == "Greet in German. [dynamic]"
    assert texts(seen("german")) == ["Hallo Ada"]


def test_a_vanished_skill_is_unknown(seen: Callable[[str], Any]) -> None:
    """The error has its name."""
    error = seen("vanished")["error"]
    assert (error["code"], error["message"].endswith("Unknown skill: greet")) == (-32602, True)


def test_a_workflow_runs_its_steps(seen: Callable[[str], Any]) -> None:
    """The result contains the results of its steps, one of which stores a note."""
    found = seen("digest")["structuredContent"]
    assert (found["steps"], found["result"]["text"]) == (["find", "digest", "seal"], "One; Two")
    assert '"text": "One; Two"' in seen("notes")["contents"][0]["text"]


def test_settings_show_no_secret(seen: Callable[[str], Any]) -> None:
    """The value is redacted, and the key is kept."""
    assert "[REDACTED]" in seen("settings")["contents"][0]["text"]
