"""Hostile servers beside a good one: each request ends, and the good server is not affected."""

import logging
from functools import partial
from itertools import cycle

import pytest
import trio

from noizu_mcp import (
    AuthError,
    ConnectionClosed,
    Limits,
    McpError,
    ProtocolError,
    Remote,
    RequestTimeout,
    Server,
    TransportError,
    connect,
    connect_all,
    prompt,
    resource,
    tool,
)
from noizu_mcp.cli import main
from noizu_mcp.transports import memory_pair

from .conftest import front_of
from .hostile import MISBEHAVIOURS, MODERN, Hostile
from .hostile_http import WEB, hostile_http, hostile_thread

ERAS = ("2025-11-25", MODERN)
LIMITS = Limits(message_size=500_000, message_values=50_000, list_entries=100, list_size=2_000_000)
#: The exceptions that a request to a hostile server may raise.
FAILURES = (AuthError, ConnectionClosed, McpError, ProtocolError, RequestTimeout, TransportError)
#: Seconds of a request to the hostile server, and of a whole test; on a clock that jumps.
TIMEOUT, LONG = 5, 3600
#: Maximum of log lines of one hostile server, and of characters in each.
LINES, LENGTH = 60, 2000


async def echo() -> str:
    return "good"


class Good(Server, name="good", version="1"):
    """The good server."""

    tools = [tool(echo, name="echo"), tool(echo, name="other")]
    prompts = [prompt(echo, name="hello")]
    resources = [resource(echo, uri="a://1", name="one")]


GOOD_TOOLS = {"b_good_echo", "b_good_other"}


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """No traceback is logged, and neither many lines nor long ones."""
    caplog.set_level(logging.INFO, "noizu_mcp")
    yield
    records = [each for each in caplog.get_records("call") if each.levelno >= logging.INFO]
    assert [each.getMessage() for each in records if each.exc_info] == []
    assert len(records) <= LINES
    assert max((len(each.getMessage()) for each in records), default=0) <= LENGTH


async def attempt(request, *args, **options):
    """Send a request, which may fail as a request to any server."""
    try:
        return await request(*args, **options)
    except FAILURES as error:
        return error


async def use(client, prefix="", uri=""):
    """Use all methods of the hostile server."""
    for listing in ("tools", "prompts", "resources", "resource_templates", "skills"):
        await attempt(getattr(client, f"list_{listing}"))
    for _ in range(3):
        await attempt(client.call_tool, f"{prefix}echo", {"a": 1}, progress=lambda _: None)
    await attempt(client.get_prompt, f"{prefix}hello")
    await attempt(client.read_resource, f"{uri}a://1")
    await attempt(client.read_resource, f"{uri}b://2")
    ref = {"type": "ref/prompt", "name": f"{prefix}hello"}
    await attempt(client.complete, ref, "a", "b")
    if client.protocol_version != MODERN:
        await attempt(client.subscribe, f"{uri}a://1")
        await attempt(client.unsubscribe, f"{uri}a://1")


async def check_neighbour(client):
    """Check the lists and calls of the good server, which take no time on the test's clock."""
    began = trio.current_time()
    await check_lists(client)
    assert trio.current_time() == began


async def check_lists(client):
    """Check the lists of the good server."""
    listed = [each.name for each in await client.list_tools()]
    assert {name for name in listed if name.startswith("b_good_")} == GOOD_TOOLS
    assert len(listed) == len(set(listed))
    assert (await client.call_tool("b_good_echo")).text == "good"
    assert "b_good_hello" in [each.name for each in await client.list_prompts()]
    assert (await client.get_prompt("b_good_hello")).messages[0].content.text == "good"
    assert "b-good+a://1" in [each.uri for each in await client.list_resources()]
    assert (await client.read_resource("b-good+a://1")).contents[0].text == "good"


@pytest.mark.slow
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("name", MISBEHAVIOURS)
async def test_behind_a_gateway(name, version, autojump_clock):
    """Its requests end; lists and calls of the other server are answered at once."""
    before = trio.lowlevel.current_statistics().tasks_living
    with trio.fail_after(LONG):
        async with trio.open_nursery() as nursery:
            server = Hostile(name, nursery, partial(memory_pair, LIMITS))
            options = {"version": version, "call_timeout": TIMEOUT, "list_timeout": 1}
            bad = Remote(server, prefix="b", limits=LIMITS, **options)
            front = front_of(bad, Remote(Good, prefix="b_good"))
            async with connect(front, version=version) as client:
                await client.list_tools()
                await trio.sleep(2)
                async with trio.open_nursery() as using:
                    using.start_soon(use, client, "b_", "b+")
                    for _ in range(3):
                        await check_neighbour(client)
                        await trio.sleep(1)
                await check_neighbour(client)
            nursery.cancel_scope.cancel()
    assert trio.lowlevel.current_statistics().tasks_living == before
    assert server.asked <= 2000


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("name", MISBEHAVIOURS)
async def test_among_several_clients(name, version, autojump_clock):
    """Its requests end; the tools of the other server are listed and called."""
    before = trio.lowlevel.current_statistics().tasks_living
    with trio.fail_after(LONG):
        async with trio.open_nursery() as nursery:
            server = Hostile(name, nursery, partial(memory_pair, LIMITS))
            options = {"version": version, "timeout": TIMEOUT, "start_timeout": 1}
            targets = {"b": server, "b_good": Good}
            async with connect_all(targets, limits=LIMITS, **options) as clients:
                began = trio.current_time()
                assert (await clients.call_tool("b_good_echo")).text == "good"
                assert trio.current_time() == began
                if clients.status["b"] == "connected":
                    await use(clients["b"])
                await attempt(clients.call_tool, "b_echo")
                listed = {each.name for each in await clients.list_tools()}
                assert {each for each in listed if each.startswith("b_good_")} == GOOD_TOOLS
                assert (await clients.call_tool("b_good_echo")).text == "good"
            nursery.cancel_scope.cancel()
    assert trio.lowlevel.current_statistics().tasks_living == before
    assert server.asked <= 2000


async def use_over_http(client, prefix=""):
    """Use all methods of the hostile server over HTTP."""
    for _ in range(2):
        await attempt(client.list_prompts)
        await attempt(client.call_tool, f"{prefix}echo", {})
    await attempt(client.list_tools)


SLOW_OLD = (pytest.param(ERAS[0], marks=pytest.mark.slow), MODERN)


@pytest.mark.parametrize("version", SLOW_OLD)
@pytest.mark.parametrize("name", WEB)
async def test_over_http(name, version):
    """With any misbehaviour of HTTP its requests end, and the other server is not affected."""
    with trio.fail_after(LONG):
        async with hostile_http(name) as server:
            options = {"version": version, "limits": LIMITS}
            bad = Remote(server.url, prefix="b", call_timeout=0.5, list_timeout=0.5, **options)
            async with connect(front_of(bad, Remote(Good, prefix="b_good"))) as client:
                await use_over_http(client, "b_")
                await check_lists(client)
            async with connect_all(
                {"b": server.url, "b_good": Good}, timeout=0.5, **options
            ) as clients:
                assert clients.status == dict.fromkeys(clients, "connected")
                await use_over_http(clients["b"])
                assert (await clients.call_tool("b_good_echo")).text == "good"
                assert len(await clients.list_tools()) == 3
            assert server.requests <= 100


#: Need real time, since a server is silent, or goes on for ever.
PATIENCE = ("--timeout", "0.5")
COMMANDS = (("list", "{url}"), ("describe", "{url}", "echo"), ("call", "{url}", "echo"))
#: Each page comes in time: a command reads until there are too many.
ENDLESS = ("pages_without_end", "empty_pages_without_end")
NAMES = [name for name in (*WEB, *MISBEHAVIOURS) if name not in ENDLESS]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), [*zip(NAMES, cycle(ERAS), strict=False)])
@pytest.mark.time_limit(360)
def test_on_the_command_line(name, version, capsys):
    """Each command ends with a status and a few lines, and never with a traceback."""
    with hostile_thread(name) as server:
        for words in COMMANDS:
            given = [word.format(url=server.url) for word in words]
            assert main([*given, *PATIENCE, "--protocol", version]) in (0, 1, 2)
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert len(err) < 20_000
    assert server.requests <= 2000
