"""Skills over HTTP: the application serves them as any other request."""

import json

import pytest

from noizu_mcp import Server, SkillFolder
from noizu_mcp.transports.http.server._app import HttpApp
from noizu_mcp.transports.http.server._http_options import HttpOptions

PREFIX = "io.modelcontextprotocol/"
META = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}}


@pytest.fixture
async def app(tmp_path):
    """The application of a server with one skill, running."""
    (tmp_path / "pdf" / "refs").mkdir(parents=True)
    (tmp_path / "pdf" / "SKILL.md").write_text("---\nname: pdf\ndescription: Read PDF.\n---\n")
    (tmp_path / "pdf" / "refs" / "a.md").write_text("a")

    class Docs(Server, name="docs", version="1"):
        skills = [SkillFolder(tmp_path / "pdf")]

    app = HttpApp(Docs(), HttpOptions())
    async with app.lifespan():
        yield app


async def post(app, method, **params):
    """Send one request of 2026-07-28, and give the status and the message that came back."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    headers = {
        "host": "localhost",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
    }
    if method == "resources/read":
        headers["mcp-name"] = params["uri"]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
    }
    events = [{"type": "http.request", "body": json.dumps(message).encode()}]
    sent = []

    async def receive():
        return events.pop() if events else {"type": "http.disconnect"}

    async def send(event):
        sent.append(event)

    await app(scope, receive, send)
    body = b"".join(event.get("body", b"") for event in sent[1:])
    return sent[0]["status"], json.loads(body)


async def test_the_way_of_a_host(app):
    """It discovers the extension, lists the skills, looks around, and reads a file."""
    _, found = await post(app, "server/discover")
    _, listed = await post(app, "skills/list")
    (skill,) = listed["result"]["skills"]
    _, got = await post(app, "skills/get", uri=skill["uri"])
    _, below = await post(app, "resources/directory/read", uri="skill://pdf/refs")
    (child,) = below["result"]["resources"]
    status, read = await post(app, "resources/read", uri=child["uri"])

    extensions = found["result"]["capabilities"]["extensions"]
    assert extensions == {f"{PREFIX}skills": {"directoryRead": True}}
    assert got["result"]["skill"] == skill
    assert child["uri"] == skill["resources"][1]["uri"]
    assert (status, read["result"]["contents"][0]["text"]) == (200, "a")


async def test_what_is_not_there(app):
    """An error of the protocol in an answer that is none of HTTP."""
    for method in ("skills/get", "resources/directory/read", "resources/read"):
        status, answer = await post(app, method, uri="skill://pdf/../x")
        assert (status, answer["error"]["code"]) == (200, -32602)
