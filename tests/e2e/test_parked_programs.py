"""A program on 2026-07-28 whose handler is parked while its client is asked."""

import re
import subprocess
import sys
from contextlib import contextmanager

import pytest
import trio

from noizu_mcp import Accept, ClientHandler, Stdio, connect

APP = """
from pathlib import Path

from noizu_mcp import Context, Schema, Server


class Form(Schema):
    name: str


async def order(mails: str, ctx: Context) -> str:
    with Path(mails).open("a") as file:
        file.write("a mail\\n")
    first = await ctx.elicit("Who pays?", Form)
    second = await ctx.elicit("Who gets it?", Form)
    return f"{first.content.name}, {second.content.name}"


class App(Server, name="app", version="1", loop="{loop}"):
    tools = [order]
"""


class Human(ClientHandler):
    """Answers each question with its text."""

    async def handle_elicitation(self, params):
        return Accept({"name": params["message"]})


@contextmanager
def target(transport, path):
    """Serve a program on a transport; yields the target for a client."""
    command = [sys.executable, "-m", "noizu_mcp", "run", path]
    if transport == "stdio":
        yield Stdio(*command)
        return
    process = subprocess.Popen(
        [*command, "--http", "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        yield found[0]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("loop", ["trio", "asyncio"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_one_mail_and_two_questions(transport, loop, tmp_path):
    """The handler continues after each answer, so it sends its mail once."""
    path, mails = tmp_path / "app.py", tmp_path / "mails"
    path.write_text(APP.replace("{loop}", loop))
    with trio.fail_after(60), target(transport, str(path)) as server:
        async with connect(server, handler=Human(), version="2026-07-28") as client:
            result = await client.call_tool("order", {"mails": str(mails)})
    assert result.content[0].text == "Who pays?, Who gets it?"
    assert mails.read_text() == "a mail\n"
