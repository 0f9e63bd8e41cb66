"""The official clients with our server, in all of their revisions.

A driver runs all scenarios once for each mode of its client; each test checks one of them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .reports import Mode, call, failure, look_up, mode, texts, ways

FIXTURE = Path(__file__).parent / "fixture_server.py"
LATEST = "2026-07-28"
HANDSHAKES = ("2025-03-26", "2025-06-18", "2025-11-25")
SUPPORTED = [LATEST, *reversed(HANDSHAKES)]
IDENTITY = {"name": "interop", "version": "1.2.3"}
CAPABILITIES = {"logging": {}, "tools": {"listChanged": True}}
NAMES = [
    *("echo", "weigh", "count", "mixed"),
    *("refuse", "protocol_error", "crash", "stall"),
    *("steps", "proceed", "shout"),
    *("endless", "was_cancelled", "meet", "thread", "who"),
    *("remember", "recall", "add_extra", "remove_extra"),
]
LONG = "é😀\u2028\n"


_WITH_HANDSHAKE = [mode("handshake", version) for version in HANDSHAKES]
_ALL = [*_WITH_HANDSHAKE, mode("pin", LATEST), mode("auto", LATEST, label="auto")]
MODES = {"python": _ALL, "typescript-2": _ALL, "typescript-1": _WITH_HANDSHAKE}


SCENARIOS: list[dict[str, Any]] = [
    {"name": "handshake", "kind": "handshake"},
    {"name": "alive", "kind": "alive"},
    {"name": "list", "kind": "list"},
    call("echo", "text", message="hi"),
    call("echo", "long", message=LONG, repeat=50_000),
    call("weigh", city="Oslo"),
    call("count", text="four"),
    call("mixed"),
    call("refuse"),
    call("protocol_error"),
    call("crash"),
    call("stall"),
    call("echo", "bad_arguments", message="", repeat="often"),
    call("nowhere", "unknown_tool"),
    call("secret", "hidden"),
    call("thread"),
    call("who"),
    call("remember", word="plum"),
    call("recall"),
    {
        "name": "progress",
        "kind": "progress",
        "tool": "steps",
        "arguments": {"count": 3},
        "then": "proceed",
    },
    {"name": "logging", "kind": "logging", "tool": "shout"},
    {"name": "cancel", "kind": "cancel", "tool": "endless", "after": "was_cancelled"},
    {"name": "concurrent", "kind": "concurrent", "tool": "meet", "count": 10},
    {"name": "unknown_method", "kind": "unknown_method"},
    {
        "name": "changes",
        "kind": "changes",
        "add": {"tool": "add_extra"},
        "remove": {"tool": "remove_extra"},
    },
]

pytestmark = pytest.mark.parametrize(
    ("reports", "mode"), ways(MODES), indirect=["reports"], scope="module"
)


@pytest.fixture(scope="module")
def reports(
    request: pytest.FixtureRequest, run_modes: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    """Return the report of one client in all its modes, over one transport."""
    return run_modes(request.param, MODES, f"{FIXTURE}:Interop", SCENARIOS)


@pytest.fixture
def version(mode: Mode) -> str:
    """Return the revision that must have been negotiated."""
    return mode["version"]


@pytest.fixture
def seen(reports: dict[str, Any], mode: Mode) -> Callable[[str], Any]:
    return look_up(reports[mode["label"]])


def test_handshake(seen, reports, mode, version):
    """The client gets the requested revision, and the server info."""
    found = seen("handshake")
    assert found["version"] == version
    if (reports["client"], mode["kind"]) == ("python", "pin"):
        # It asks nothing before the first request, so it knows nothing.
        assert found["server"] is None
        return
    titled = {} if version == "2025-03-26" else {"title": "Interoperability"}
    assert found["server"] == {**IDENTITY, **titled}
    assert found["capabilities"] == CAPABILITIES
    assert found["instructions"] == "Call anything."


def test_alive(seen, version):
    """A session answers pings; 2026-07-28, which has none, answers `server/discover`."""
    found = seen("alive")
    if version == LATEST:
        assert found["supportedVersions"] == SUPPORTED
    else:
        assert found == {}


def test_list(seen):
    """All pages of the list arrive, in order of registration, without the hidden tool."""
    found = seen("list")
    assert [tool["name"] for tool in found["tools"]] == NAMES
    assert found["pages"] == 4


def test_definitions(seen, version):
    """A definition has the fields of the revision, such as titles and output schemas."""
    tools = {tool["name"]: tool for tool in seen("list")["tools"]}
    echo = tools["echo"]
    assert echo["description"] == "Answer with the text that came."
    assert echo["inputSchema"]["required"] == ["message"]
    if version == "2025-03-26":
        assert echo["annotations"] == {"title": "Echo a text", "readOnlyHint": True}
        assert "outputSchema" not in tools["weigh"]
        return
    assert echo["title"] == "Echo a text"
    assert echo["annotations"] == {"readOnlyHint": True}
    assert tools["weigh"]["outputSchema"]["required"] == ["city", "celsius"]
    root = tools["count"]["outputSchema"]
    assert root["type"] == ("integer" if version == LATEST else "object")


def test_text(seen):
    """A text is returned unchanged."""
    assert texts(seen("text")) == ["hi"]


def test_long(seen):
    """A long text with newlines, scripts and separators arrives complete."""
    assert texts(seen("long")) == [LONG * 50_000]


def test_weigh(seen, version):
    """An object is structured content if the revision has it, and always a text."""
    found = seen("weigh")
    assert texts(found) == ['{"city":"Oslo","celsius":21.5}']
    structured = None if version == "2025-03-26" else {"city": "Oslo", "celsius": 21.5}
    assert found.get("structuredContent") == structured


def test_count(seen, version):
    """A bare value is structured content, wrapped in an object before 2026-07-28."""
    found = seen("count")
    assert texts(found) == ["4"]
    expected = {"2025-03-26": None, LATEST: 4}.get(version, {"result": 4})
    assert found.get("structuredContent") == expected


def test_mixed(seen, version):
    """Every kind of content block arrives; a link is a text in the revision without links."""
    words, image, audio, link, resource = seen("mixed")["content"]
    assert words == {"type": "text", "text": "words"}
    assert image == {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    assert audio == {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    if version == "2025-03-26":
        assert link == {"type": "text", "text": "notes: file:///notes.txt"}
    else:
        target = {"name": "notes", "uri": "file:///notes.txt", "mimeType": "text/plain"}
        assert link == {"type": "resource_link", **target}
    assert resource["resource"] == {"uri": "file:///a.txt", "text": "inside"}


def test_refuse(seen):
    """A tool's own error is an error result."""
    assert failure(seen("refuse")) == ["the shop is closed"]


def test_protocol_error(seen):
    """A protocol error keeps its code, message and data."""
    error = seen("protocol_error")["error"]
    assert error["code"] == 4004
    assert error["message"].endswith("no such shelf")
    assert error["data"] == {"shelf": 7}


def test_crash(seen):
    """A bug in a tool is an error result without details."""
    assert failure(seen("crash")) == ["Tool execution failed"]


def test_stall(seen):
    """A tool that exceeds its timeout is cancelled."""
    assert failure(seen("stall")) == ["Tool execution timed out"]


def test_bad_arguments(seen):
    """Wrong arguments have an error result that lists each, as text and for programs."""
    found = seen("bad_arguments")
    (text,) = failure(found)
    assert "/message" in text
    assert "/repeat" in text
    violations = found["_meta"]["com.noizu.mcp/violations"]
    assert {each["path"] for each in violations} == {"/message", "/repeat"}


def test_unknown_tool(seen):
    """An unknown tool is a protocol error."""
    error = seen("unknown_tool")["error"]
    assert error["code"] == -32602
    assert error["message"].endswith("Unknown tool: nowhere")


def test_hidden(seen):
    """A hidden tool can be called."""
    assert texts(seen("hidden")) == ["found"]


def test_thread(seen):
    """A plain function runs in its own thread."""
    assert texts(seen("thread")) == ["worker"]


def test_who(seen, reports, version):
    """The server has the revision and the name of its client."""
    (text,) = texts(seen("who"))
    name = {"python": "mcp"}.get(reports["client"], reports["client"])
    assert (
        text == f'{{"version":"{version}","transport":"{reports["transport"]}","client":"{name}"}}'
    )


def test_session(seen, version):
    """The state of a session is kept for later requests; 2026-07-28 has no sessions."""
    if version == LATEST:
        assert "2026-07-28 has no sessions" in failure(seen("remember"))[0]
        assert texts(seen("recall")) == ["None"]
    else:
        assert texts(seen("remember")) == ["stored"]
        assert texts(seen("recall")) == ["plum"]


def test_progress(seen):
    """Progress arrives while the call runs, and other calls are served meanwhile."""
    found = seen("progress")
    assert found["seen"] == [[1, 3, "step 1"], [2, 3, "step 2"], [3, 3, "step 3"]]
    assert texts(found["result"]) == ["finished"]


def test_logging(seen):
    """Log messages arrive from the client's level on."""
    found = seen("logging")
    assert texts(found["result"]) == ["logged"]
    disk = {"level": "warning", "logger": "disk", "data": {"disk": "almost full"}}
    assert found["seen"] == [disk, {"level": "error", "data": "on fire"}]


def test_cancel(seen):
    """A cancelled call ends at the client and in the server, and the connection goes on."""
    found = seen("cancel")
    assert found["cancelled"] is True
    assert texts(found["after"]) == ["yes"]


def test_concurrent(seen):
    """Ten calls that wait for each other are served concurrently, each with its result."""
    answers = [texts(answer) for answer in seen("concurrent")]
    assert answers == [[f"{number} of 10"] for number in range(10)]


def test_unknown_method(seen, reports, mode):
    """An unknown method is refused, and the connection goes on."""
    kind = (reports["client"], reports["transport"], mode["version"])
    if kind == ("typescript-2", "http", LATEST):
        # The client treats the status that 2026-07-28 demands, 404, as the transport's.
        failed = reports[mode["label"]]["unknown_method"]["failed"]
        assert '"error":{"code":-32601,"message":"Method not found: no/such"}' in failed
        return
    error = seen("unknown_method")["error"]
    assert error["code"] == -32601
    assert error["message"].endswith("Method not found: no/such")


def test_changes(seen):
    """Each change of the tools sends a notice, and the next list has it."""
    found = seen("changes")
    assert found["add"] == [*NAMES, "extra"]
    assert found["remove"] == NAMES


def test_closing(seen, reports, mode):
    """The server ends normally when its client closes; only one call was cancelled."""
    seen("handshake")
    if reports["transport"] == "http":
        pytest.skip("the server outlives its clients")
    lines = (reports["journals"] / mode["label"]).read_text().splitlines()
    # The TypeScript client probes the era with a separate process, which it ends by a signal.
    probed = (reports["client"], mode["version"]) == ("typescript-2", LATEST)
    probe = ["started", "ended"] if probed else []
    assert lines == [*probe, "started", "cancelled True", "ended"]
