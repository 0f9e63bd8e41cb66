"""`fuzz` against a server at a URL, with components of every kind."""

import logging
from functools import partial

import pytest
import trio

from noizu_mcp import (
    Context,
    Prompt,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Tool,
    Toolkit,
    argument,
    mcp,
    serve_http,
)
from noizu_mcp.check.fuzz import fuzz, replay
from noizu_mcp.check.raw import Conversation
from noizu_mcp.testing import serve_over


class Say(Tool):
    """Say a text."""

    def call(self, text: str) -> str:
        return text[0]


async def first(prefix, ctx):
    return [prefix[0]]


class Greet(Prompt):
    """Greet somebody."""

    class Arguments(Schema):
        name: str = argument(complete=first)

    def get(self, args: Arguments) -> str:
        return args.name[0]


class Page(Resource, uri="page://one"):
    """A page."""

    def read(self) -> str:
        raise LookupError("one")


class Pages(ResourceTemplate, uri_template="pages://{title}"):
    """Pages."""

    class Arguments(Schema):
        title: str

    def read(self, uri: str, args: Arguments) -> str:
        return {"a": "b"}[args.title]


class Delete(Tool):
    """Delete everything."""

    annotations = {"destructive_hint": True}

    def call(self) -> str:
        raise LookupError("everything")


class Shelf(Server, name="shelf", version="1.0.0"):
    """A server that fails in each of its components."""

    tools = [Say, Delete]
    prompts = [Greet]
    resources = [Page, Pages]


@pytest.fixture
async def url(nursery):
    logging.getLogger("noizu_mcp").setLevel(logging.CRITICAL)
    host = await nursery.start(partial(serve_http, Shelf(), port=0))
    yield f"{host.urls[0]}/mcp"
    logging.getLogger("noizu_mcp").setLevel(logging.NOTSET)


async def test_components_of_every_kind(url):
    """Every kind of component is called; destructive tools are not."""
    report = await fuzz(url, examples=6)

    found = {(each.check, each.kind, each.name) for each in report.findings}
    assert found == {
        ("crash", "tool", "say"),
        ("crash", "prompt", "greet"),
        ("crash", "completion", "greet name"),
        ("crash", "resource", "page://one"),
        ("crash", "template", "pages://{title}"),
    }
    assert report.skipped == ["delete"]
    assert report.unannotated == ["say"]
    assert report.facts["revisions"] == "2026-07-28, 2025-11-25"


@pytest.mark.slow
async def test_destructive_tools_on_request(url):
    """Destructive tools are called with the option; progress is reported."""
    told = []

    report = await fuzz(
        url,
        examples=2,
        destructive=True,
        on_progress=lambda share, what: told.append((share, what)),
    )

    assert ("crash", "delete") in {(each.check, each.name) for each in report.findings}
    assert "tool delete" in {what for _, what in told}
    assert all(0.0 <= share <= 1.0 for share, _ in told)


async def test_a_finding_at_a_url_is_replayed(url):
    """A server that cannot be restarted gets a new session instead."""
    report = await fuzz(url, examples=2)
    (finding,) = [each for each in report.findings if each.kind == "tool"]

    with pytest.raises(AssertionError, match="say"):
        await replay(url, finding)


async def test_the_time_is_limited(url):
    """A run whose time is over reports that it is incomplete."""
    report = await fuzz(url, budget=0.01)

    assert not report.is_complete
    await trio.lowlevel.checkpoint()


class Patience(Toolkit):
    """Tools that take their time."""

    @mcp
    async def wait(self) -> str:
        """Wait for a while."""
        await trio.sleep(0.3)
        return "done"

    @mcp
    async def resume(self, ctx: Context) -> str:
        """Answer after the stream has ended, so that the client asks for the rest."""
        await ctx.release_stream(retry_after=0.01)
        await trio.sleep(0.05)
        return "done"


class Patient(Server, name="patient", version="1.0.0"):
    tools = [Patience]


async def test_slow_calls_are_cancelled_and_streams_resumed():
    """On 2026-07-28 the end of a stream cancels a request; on 2025-11-25 it is resumed."""
    async with serve_over(Patient, "http") as url:
        report = await fuzz(url, examples=1)

    assert [each.to_json() for each in report.findings] == []


class Endless(Tool, name="wait"):
    """Wait until the call is cancelled, and count the calls that were."""

    cancelled = 0

    async def call(self):
        try:
            await trio.sleep_forever()
        finally:
            type(self).cancelled += 1


class Hanging(Server, name="hanging", version="1.0.0"):
    tools = [Endless]


async def test_a_call_that_is_given_up():
    """A call without an answer in time is cancelled by the end of its stream."""
    async with serve_over(Hanging, "http") as url:
        report = await fuzz(url, examples=1, timeout=0.05)

        assert {(each.check, each.name) for each in report.findings} == {("silence", "wait")}
        assert Endless.cancelled


def test_a_header_carries_no_half_pair():
    """An argument that no header can contain has no header."""
    talk = Conversation(None, 1.0, stateless=True, name="test")
    talk.mirrored = {"say": {"Text": ("text",)}}

    def headers(text):
        params = {"name": "say", "arguments": {"text": text}, "_meta": talk.envelope()}
        return talk.headers_of({"method": "tools/call", "params": params})

    assert headers("a")["mcp-param-text"] == "a"
    assert headers("\ud800").keys() == {"mcp-method", "mcp-protocol-version"}
