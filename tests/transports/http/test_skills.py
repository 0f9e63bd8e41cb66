"""Skills over HTTP: the application serves them like any other request."""

import pytest

from noizu_mcp import Server, SkillFolder

from ...kit.messages import message
from .wire import serving


@pytest.fixture
async def post(tmp_path):
    """Serve one skill; return a function that sends a request and returns status and answer."""
    (tmp_path / "pdf" / "refs").mkdir(parents=True)
    (tmp_path / "pdf" / "SKILL.md").write_text("---\nname: pdf\ndescription: Read PDF.\n---\n")
    (tmp_path / "pdf" / "refs" / "a.md").write_text("a")

    class Docs(Server, name="docs", version="1"):
        skills = [SkillFolder(tmp_path / "pdf")]

    async with serving(Docs()) as wire:

        async def post(method, **params):
            done = await wire.send_modern(message(method, params, 1))
            return done.status, done.json

        yield post


async def test_the_way_of_a_host(post):
    """It discovers the extension, lists skills and directories, and reads a file."""
    _, found = await post("server/discover")
    _, listed = await post("skills/list")
    (skill,) = listed["result"]["skills"]
    _, got = await post("skills/get", uri=skill["uri"])
    _, below = await post("resources/directory/read", uri="skill://pdf/refs")
    (child,) = below["result"]["resources"]
    status, read = await post("resources/read", uri=child["uri"])

    extensions = found["result"]["capabilities"]["extensions"]
    assert extensions == {"io.modelcontextprotocol/skills": {"directoryRead": True}}
    assert got["result"]["skill"] == skill
    assert child["uri"] == skill["resources"][1]["uri"]
    assert (status, read["result"]["contents"][0]["text"]) == (200, "a")


async def test_what_is_not_there(post):
    """A missing skill is a protocol error with status 200."""
    for method in ("skills/get", "resources/directory/read", "resources/read"):
        status, answer = await post(method, uri="skill://pdf/../x")
        assert (status, answer["error"]["code"]) == (200, -32602)
