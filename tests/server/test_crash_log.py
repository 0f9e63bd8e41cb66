"""Failures are logged with their place, and a client cannot flood the log."""

import logging
from contextlib import suppress

import attrs
import pytest

from noizu_mcp import (
    ClientHandler,
    Context,
    McpError,
    Prompt,
    Resource,
    ResourceTemplate,
    Schema,
    Server,
    Toolkit,
    connect,
    mcp,
)
from noizu_mcp.engine import SHOWN, ThrottledLog

VERSIONS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
#: Number of calls in a flood.
MANY = 60
MORE = "more of these are counted, not shown, for up to a minute"


def fail(text):
    raise RuntimeError(text)


class Failing(Toolkit):
    @mcp
    async def first(self):
        fail("first")

    @mcp
    def second(self):
        fail("second")

    @mcp(inline=True)
    def third(self):
        fail("third")

    @mcp
    async def fourth(self):
        raise GeneratorExit

    @mcp
    async def unfit(self):
        return {(1, 2): 3}


class One(Resource, uri="x:one"):
    def read(self, uri):
        fail(uri)


class Two(Resource, uri="x:two"):
    async def read(self, uri):
        raise GeneratorExit


class Three(ResourceTemplate, uri_template="y:{z}"):
    def read(self, uri, args):
        fail(args.z)

    def list(self):
        fail("list")

    def complete(self, variable, prefix):
        fail(prefix)


class Four(Prompt):
    def get(self):
        fail("prompt")


def listener(event):
    fail(event.kind)


class Broken(Server, name="broken", version="1"):
    tools = [Failing]
    resources = [One, Two, Three]
    prompts = [Four]


class Overriding(Broken, name="overriding", version="1"):
    async def call_tool(self, name, args, ctx):
        fail(name)


class Heard(Server, name="heard", version="1"):
    telemetry = [listener]


REQUESTS = {
    "first": ("tools/call", {"name": "first", "arguments": {}}),
    "second": ("tools/call", {"name": "second", "arguments": {}}),
    "third": ("tools/call", {"name": "third", "arguments": {}}),
    "fourth": ("tools/call", {"name": "fourth", "arguments": {}}),
    "unfit": ("tools/call", {"name": "unfit", "arguments": {}}),
    "one": ("resources/read", {"uri": "x:one"}),
    "two": ("resources/read", {"uri": "x:two"}),
    "three": ("resources/read", {"uri": "y:three"}),
    "list": ("resources/list", {}),
    "prompt": ("prompts/get", {"name": "four"}),
    "completion": (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "y:{z}"},
            "argument": {"name": "z", "value": "a"},
        },
    ),
}


@pytest.fixture(autouse=True)
def errors(caplog):
    """Return a function that returns the new entries: their texts, and the number of tracebacks."""
    caplog.set_level(logging.WARNING, "noizu_mcp")

    def read():
        records = list(caplog.records)
        caplog.clear()
        traced = sum(record.exc_info is not None for record in records)
        return [record.getMessage() for record in records], traced

    return read


async def flood(client, name, count=MANY):
    """Send a request many times; ignore the answers."""
    method, params = REQUESTS[name]
    for _ in range(count):
        with suppress(McpError):
            await client.request(method, params)


@VERSIONS
@pytest.mark.parametrize("name", REQUESTS)
async def test_a_handler_that_fails_without_end(errors, version, name):
    """The first failures are logged in full, then one line says that more follow."""
    async with connect(Broken(), version=version) as client:
        await flood(client, name)
        texts, traced = errors()
        assert len(texts) == SHOWN + 1
        assert len(set(texts[:SHOWN])) == 1
        assert texts[SHOWN] == f"{texts[0][:200]}: {MORE}"
        assert traced == (0 if name == "unfit" else SHOWN)


@VERSIONS
async def test_no_flood_hides_another_handler(errors, version):
    """The first failures of every other handler are logged with tracebacks, also of one method."""
    async with connect(Broken(), version=version) as client:
        await flood(client, "first", 500)
        errors()
        for name in REQUESTS:
            if name != "first":
                await flood(client, name, 1)
                texts, traced = errors()
                assert len(texts) == 1, name
                assert traced == (0 if name == "unfit" else 1)


@VERSIONS
async def test_the_number_comes_with_the_next_minute(errors, version):
    """The next minute's first entry has the number and the text of the suppressed failures."""
    now = [0.0]
    server = Broken()
    server.crash_log = ThrottledLog(lambda: now[0], shown=SHOWN)
    async with connect(server, version=version) as client:
        await flood(client, "first")
        (failed, *_), _ = errors()
        now[0] = 60
        await flood(client, "second", 1)
        (number, _), traced = errors()
        assert number == f"{failed}: {MANY - SHOWN} more within a minute"
        assert traced == 1
        await flood(client, "first", 1)
        assert errors() == ([failed], 1)


@VERSIONS
async def test_an_override_that_fails_without_end(errors, version):
    """An override counts as one handler, whatever a client calls."""
    async with connect(Overriding(), version=version) as client:
        for number in range(MANY):
            assert (await client.call_tool(f"tool-{number}")).is_error
    texts, traced = errors()
    assert (len(texts), traced) == (SHOWN + 1, SHOWN)


async def test_each_server_has_a_log_of_its_own(errors):
    """Failures of one server do not suppress others in the same process."""
    for _ in range(2):
        async with connect(Broken()) as client:
            await flood(client, "first")
            assert errors()[1] == SHOWN


async def test_a_listener_that_fails_without_end(errors):
    """Failures of listeners are limited, although every request causes several of them."""
    async with connect(Heard(), version="2026-07-28") as client:
        for _ in range(MANY):
            with suppress(McpError):
                await client.request("tools/list", {})
    texts, traced = errors()
    assert (len(texts), traced) == (SHOWN + 1, SHOWN)


class Hooked(Server, name="hooked", version="1"):
    """Lets everything be watched, and fails at each end."""

    async def read_resource(self, uri, ctx):
        return uri

    async def can_watch(self, uri, ctx):
        return True

    async def unsubscribe(self, uri, ctx):
        fail(uri)


async def test_a_hook_that_fails_without_end(errors):
    """URIs are chosen by clients, so they do not make separate kinds of entries."""
    async with connect(Hooked(), version="2025-11-25") as client:
        for number in range(MANY):
            await client.subscribe(f"x:{number}")
    texts, traced = errors()
    assert (len(texts), traced) == (SHOWN + 1, SHOWN)


class Asking(Toolkit):
    @mcp
    async def ask(self, args, ctx):
        await ctx.sample("Say something", max_tokens=10)


class Asks(Server, name="asks", version="1"):
    tools = [Asking]


class FailingClient(ClientHandler):
    async def handle_sampling(self, request):
        fail("sampling")


async def test_a_client_whose_handler_fails_without_end(errors):
    """Failures of a client's handler are limited, however often the server asks."""
    async with connect(Asks, handler=FailingClient(), version="2025-11-25") as client:
        for _ in range(MANY):
            assert (await client.call_tool("ask")).is_error
    texts, traced = errors()
    # A period may end here in the log of the process, which counts failures of other tests.
    texts = [text for text in texts if "sampling/createMessage" in text]
    assert (len(texts), traced) == (SHOWN + 1, SHOWN)


class Fragile(Schema):
    text: str

    def __attrs_post_init__(self):
        raise KeyError("secret")


def crash(_instance, _attribute, _value):
    raise KeyError("secret")


@attrs.define
class Validated:
    text: str = attrs.field(validator=crash)


class Delicate(Toolkit):
    @mcp(input=Fragile)
    async def asynchronous(self, args): ...

    @mcp(input=Validated)
    def threaded(self, args): ...

    @mcp(input=Fragile, inline=True)
    def inline(self, args): ...

    @mcp(input={"tool": str})
    async def nested(self, args, ctx: Context):
        return await ctx.call_tool(args.tool, {"text": "x"})

    @mcp(input={"tool": str})
    async def on_server(self, args, ctx: Context):
        return await ctx.server.call_tool(args.tool, {"text": "x"}, ctx)


class DelicatePrompt(Prompt):
    arguments = Fragile

    def get(self, args): ...


class Breaking(Server, name="breaking", version="1"):
    tools = [Delicate]
    prompts = [DelicatePrompt]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("way", ["request", "nested", "on_server"])
async def test_a_validator_that_crashes_has_failed_the_call(version, way, caplog):
    """The model gets a result without details; the log names each tool once."""
    tools = ["asynchronous", "threaded", "inline"]
    async with connect(Breaking, version=version) as client:
        for tool in tools:
            if way == "request":
                result = await client.call_tool(tool, {"text": "x"})
            else:
                result = await client.call_tool(way, {"tool": tool})
            assert result.is_error
            assert result.content[0].text == "Tool execution failed"
    named = [record.getMessage().splitlines()[0] for record in caplog.records]
    assert named == [f"{__name__}.Delicate.{tool} failed" for tool in tools]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_validator_of_a_prompt_that_crashes(version, caplog):
    """A prompt has no error result, so the request fails; the log names the prompt."""
    async with connect(Breaking, version=version) as client:
        with pytest.raises(McpError, match="Request handler failed"):
            await client.get_prompt("delicate_prompt", {"text": "x"})
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{__name__}.DelicatePrompt failed")
