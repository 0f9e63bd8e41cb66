"""`TerminalHandler`: questions of a server to the user at the terminal."""

import asyncio
import logging
import os
import pty
import sys
from contextlib import contextmanager

import pytest
import trio

from noizu_mcp import (
    Accept,
    Context,
    SamplingResult,
    Schema,
    Server,
    SyncClient,
    TerminalHandler,
    Toolkit,
    aio,
    connect,
    field,
    mcp,
)

from ..person import Person

VERSIONS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
CONSENT = {"type": "object", "properties": {}}


class Trip(Schema):
    """A trip."""

    city: str
    seats: int = field(default=2, min=1, max=8)


class Kit(Toolkit):
    """Asks."""

    @mcp
    async def book(self, ctx: Context) -> str:
        answer = await ctx.elicit("Where to?", Trip)
        if not isinstance(answer, Accept):
            return answer.action
        return f"{answer.content.seats} to {answer.content.city}"

    @mcp
    async def visit(self, ctx: Context) -> str:
        return (await ctx.elicit_url("Log in, please", "https://example.com/login")).action

    @mcp
    async def agree(self, question: str, ctx: Context) -> str:
        return (await ctx.elicit(question, CONSENT)).action

    @mcp
    async def think(self, ctx: Context) -> str:
        return (await ctx.sample("Hm?", max_tokens=9)).content[0].text


class Agency(Server, name="agency", title="The agency", version="1"):
    tools = [Kit]


@pytest.fixture
def talking(monkeypatch):
    """Make a terminal the stdin and stderr of the program while the block runs."""

    @contextmanager
    def talking(*exchange):
        master, slave = pty.openpty()
        try:
            with (
                Person(master, exchange) as screen,
                os.fdopen(slave, "r") as stdin,
                os.fdopen(os.dup(slave), "w") as stderr,
                monkeypatch.context() as patch,
            ):
                # Within the test: pytest's capture replaces them before it.
                patch.setattr(sys, "stdin", stdin)
                patch.setattr(sys, "stderr", stderr)
                yield screen
        finally:
            os.close(master)

    return talking


BOOKED = (
    ("The agency asks:", ""),
    ("  | Where to?", ""),
    ("Answer? yes, no, cancel [yes]:", "\n"),
    ("city:", "Ulm\n"),
    ("seats [2]:", "9\n"),
    ("9 is greater than the maximum of 8; once more", ""),
    ("seats [2]:", "\n"),
    ("Send it?", "yes\n"),
)


@VERSIONS
async def test_a_form(talking, version):
    """The form is filled in field by field, with defaults and checks."""
    with talking(*BOOKED) as screen:
        async with connect(Agency, handler=TerminalHandler(), version=version) as client:
            result = await client.call_tool("book")
    assert result.content[0].text == "2 to Ulm", screen.text


@VERSIONS
@pytest.mark.parametrize(
    ("typed", "action"), [("no\n", "decline"), ("c\n", "cancel"), ("\x04", "cancel")]
)
async def test_a_refusal(talking, version, typed, action):
    """The user may decline or cancel."""
    with talking(("Answer?", typed)):
        async with connect(Agency, handler=TerminalHandler(), version=version) as client:
            assert (await client.call_tool("book")).content[0].text == action


@VERSIONS
async def test_a_url(talking, version):
    """The URL is printed, and only "yes" accepts."""
    with talking(("/login", ""), ("browser of yours?", "yes\n")) as screen:
        async with connect(Agency, handler=TerminalHandler(), version=version) as client:
            assert (await client.call_tool("visit")).content[0].text == "accept"
    assert "It leads to \x1b[1;7mexample.com\x1b[0m." in screen.text


async def test_questions_of_two_connections(talking):
    """There is one terminal: questions are asked one after the other."""
    found = []

    async def ask(client):
        result = await client.call_tool("agree", {"question": "Really?"})
        found.append(result.content[0].text)

    with talking(("Answer?", "yes\n"), ("Answer?", "no\n")) as screen:
        async with (
            connect(Agency, handler=TerminalHandler()) as first,
            connect(Agency, handler=TerminalHandler()) as second,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(ask, first)
            nursery.start_soon(ask, second)
    assert sorted(found) == ["accept", "decline"]
    assert screen.text.count("The agency asks:") == 2


@VERSIONS
def test_under_asyncio(talking, version):
    """The terminal is read on trio, and the asyncio loop goes on."""

    async def main():
        async with aio.connect(Agency, handler=TerminalHandler(), version=version) as client:
            return (await client.call_tool("book")).content[0].text

    with talking(*BOOKED) as screen:
        found = asyncio.run(main())
    assert found == "2 to Ulm", screen.text


def test_a_subclass_under_asyncio(talking):
    """It may inspect the question on its own loop first."""

    class Mine(TerminalHandler):
        async def handle_elicitation(self, params):
            await asyncio.sleep(0)
            seen.append(params["message"])
            return await super().handle_elicitation(params)

    async def main():
        async with aio.connect(Agency, handler=Mine()) as client:
            return (await client.call_tool("book")).content[0].text

    seen = []
    with talking(*BOOKED) as screen:
        found = asyncio.run(main())
    assert (found, seen) == ("2 to Ulm", ["Where to?"]), screen.text


def test_in_plain_code(talking):
    """A `SyncClient` asks in the same way."""
    with talking(*BOOKED) as screen, SyncClient(Agency, handler=TerminalHandler()) as client:
        found = client.call_tool("book").content[0].text
    assert found == "2 to Ulm", screen.text


@VERSIONS
@pytest.mark.parametrize("missing", ["stdin", "stderr", "nothing", "closed"])
async def test_no_terminal(monkeypatch, caplog, version, missing, tmp_path):
    """Nothing is read: the question is declined, and the log says so."""
    path = tmp_path / "input"
    path.write_text("yes\nUlm\n")
    with path.open() as file:
        if missing == "closed":
            file.close()
        for name in ("stdin", "stderr"):
            there = missing in ("nothing", "closed") or name != missing
            monkeypatch.setattr(sys, name, file if there else None)
        async with connect(Agency, handler=TerminalHandler(), version=version) as client:
            with caplog.at_level(logging.WARNING, "noizu_mcp"):
                assert (await client.call_tool("book")).content[0].text == "decline"
        if missing != "closed":
            assert file.tell() == 0
    (record,) = caplog.records
    assert "declined a question of The agency" in record.getMessage()
    assert "Where to?" in record.getMessage()


@VERSIONS
async def test_sampling(version):
    """Sampling is refused without a function, which may be plain or async."""

    def say(params):
        return SamplingResult(role="assistant", content="plain", model="m")

    async def say_later(params):
        return SamplingResult(role="assistant", content="async", model="m")

    for sampling, said in ((say, "plain"), (say_later, "async")):
        handler = TerminalHandler(sampling=sampling)
        async with connect(Agency, handler=handler, version=version) as client:
            assert (await client.call_tool("think")).content[0].text == said
    async with connect(Agency, handler=TerminalHandler(), version=version) as client:
        assert "sampling" not in client._session.peer.capabilities


def test_sampling_under_asyncio():
    """The function of the program runs on the loop of the program."""

    async def say(params):
        await asyncio.sleep(0)
        return SamplingResult(role="assistant", content="asyncio", model="m")

    async def main():
        async with aio.connect(Agency, handler=TerminalHandler(sampling=say)) as client:
            return (await client.call_tool("think")).content[0].text

    assert asyncio.run(main()) == "asyncio"
