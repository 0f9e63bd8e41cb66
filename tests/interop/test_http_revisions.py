"""The revisions with a handshake over HTTP, byte for byte, as clients of that time.

The conformance suite negotiates only the newest of them.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..kit.http_client import HttpClient, messages_of

SERVER = Path(__file__).parents[2] / "docs" / "examples" / "everything.py"
OLDEST, FORMS, SESSION = "2025-03-26", "2025-06-18", "2025-11-25"
REVISIONS = [OLDEST, FORMS, SESSION]


@pytest.fixture(scope="module")
def url(serve_url: Callable[[str, str], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return serve_url(f"{SERVER}:Everything", str(tmp_path_factory.mktemp("journal") / "unused"))


@pytest.fixture(params=REVISIONS)
def client(request: pytest.FixtureRequest, url: str) -> Iterator[HttpClient]:
    """Begin a session of a revision."""
    session = HttpClient(url).begin(request.param)
    yield session
    session.close()


def test_a_session(client):
    """From the handshake to the end each revision has its members and headers, and no others."""
    assert client.ask("ping")["result"] == {}
    tools = {tool["name"]: tool for tool in client.ask("tools/list")["result"]["tools"]}
    assert "outputSchema" not in tools["test_simple_text"]
    assert all(("title" in tool) <= (client.version != OLDEST) for tool in tools.values())
    result = client.ask("tools/call", {"name": "test_simple_text"})["result"]
    assert result["content"][0]["text"] == "This is a simple text response for testing."
    assert "resultType" not in result
    assert client.send("DELETE").status == 200
    gone = client.send("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert gone.status == 404
    assert client.send("DELETE").status == 404


def test_progress_comes_before_the_answer(client):
    """It is sent as events on the call's stream; 2025-11-25 begins with an id to resume with."""
    params = {"name": "test_tool_with_progress", "_meta": {"progressToken": "p"}}
    message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
    response = client.send("POST", message)
    first = response.readline()
    assert first.startswith(b"id: ")
    assert response.readline().startswith(b"retry: " if client.version == SESSION else b"event: ")
    *notices, answer = messages_of(response)
    assert {each["method"] for each in notices} == {"notifications/progress"}
    assert answer["id"] == 5


def test_the_version_header(client):
    """It may be missing, as the negotiated version counts; an unknown version is refused."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for version in ("", *REVISIONS):
        assert client.send("POST", ping, MCP_Protocol_Version=version).status == 200
    refused = client.send("POST", ping, MCP_Protocol_Version="1999-01-01")
    assert refused.status == 400
    assert messages_of(refused)[0]["error"]["code"] == -32022


def test_the_session_header(client):
    """Without it a request is refused, and with an unknown one it is 404."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert client.send("POST", ping, Mcp_Session_Id="").status == 400
    assert client.send("POST", ping, Mcp_Session_Id="unknown").status == 404
    assert client.send("GET", Mcp_Session_Id="unknown", Accept="text/event-stream").status == 404


def test_the_standing_stream(client):
    """It stays open until the client leaves, and has messages that belong to no request."""
    stream = client.send("GET", Accept="text/event-stream")
    assert stream.status == 200
    assert stream.headers.get_content_type() == "text/event-stream"
    client.ask("tools/call", {"name": "test_trigger_tool_change"})
    line = stream.readline()
    while not line.startswith(b"data: {"):
        line = stream.readline()
    assert client.send("DELETE").status == 200
    # The list is also changed back, which may send a second notice.
    told = [line, *(rest for rest in stream if rest.startswith(b"data: {"))]
    methods = {json.loads(each[6:])["method"] for each in told}
    assert methods == {"notifications/tools/list_changed"}


def test_arrays(client):
    """2025-03-26 answers an array with an array; later revisions refuse it."""
    array = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/x"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "no_such"}},
        {
            "jsonrpc": "2.0",
            "id": "c",
            "method": "tools/call",
            "params": {"name": "test_simple_text", "arguments": {}},
        },
    ]
    response = client.send("POST", array)
    if client.version != OLDEST:
        assert response.status == 400
        assert messages_of(response)[0]["error"]["code"] == -32600
        return
    assert response.status == 200
    (answers,) = messages_of(response)
    found = {each["id"]: each for each in answers}
    assert set(found) == {"a", "b", "c"}
    assert found["a"]["result"] == {}
    assert found["b"]["error"]["code"] == -32602
    assert found["c"]["result"]["content"][0]["type"] == "text"
    quiet = client.send("POST", array[1:2])
    assert (quiet.status, quiet.read()) == (202, b"")


@pytest.mark.parametrize("asked", ["2024-11-05", "2026-07-28", "1999-01-01"])
def test_a_version_that_has_no_handshake_here(url, asked):
    """The newest version with a handshake is offered instead."""
    client = HttpClient(url)
    assert client.initialize(asked)["protocolVersion"] == SESSION
    client.close()
