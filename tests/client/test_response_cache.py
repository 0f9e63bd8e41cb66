"""Results that a server allows its client to cache."""

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noizu_mcp import Cache, ClientHandler, Server, Tool, connect

TOOL = {"name": "t", "inputSchema": {"type": "object"}}
CAPABLE = {"tools": {"listChanged": True}, "resources": {"listChanged": True}, "prompts": {}}
NOTICE = "notifications/{}/list_changed"
UPDATED = "notifications/resources/updated"


def kept(ttl=60_000, scope="private", **members):
    return {"resultType": "complete", "ttlMs": ttl, "cacheScope": scope, **members}


def count(script, method):
    return [each["method"] for each in script.received if "method" in each].count(method)


READS = {
    "list_tools": ("tools/list", (), {"tools": [TOOL]}),
    "list_prompts": ("prompts/list", (), {"prompts": [{"name": "p"}]}),
    "list_resources": ("resources/list", (), {"resources": [{"uri": "a:b", "name": "r"}]}),
    "list_resource_templates": (
        "resources/templates/list",
        (),
        {"resourceTemplates": [{"uriTemplate": "a:{b}", "name": "r"}]},
    ),
    "read_resource": ("resources/read", ("a:b",), {"contents": [{"uri": "a:b", "text": "hi"}]}),
}


@pytest.mark.parametrize("name", READS)
async def test_an_answer_is_kept_for_its_time(scripted, autojump_clock, name):
    """It replaces a request until its TTL is over."""
    method, args, members = READS[name]
    async with scripted({method: kept(10_000, **members)}) as (client, script):
        read = getattr(client, name)
        first = await read(*args)
        await trio.sleep(9.9)
        assert await read(*args) == first
        assert count(script, method) == 1
        await trio.sleep(0.2)
        assert await read(*args) == first
        assert count(script, method) == 2


@pytest.mark.parametrize("ttl", [0, -1, None, "1000", 1.5, True])
async def test_an_answer_without_a_time_is_not_kept(scripted, ttl):
    """A TTL is a positive integer; anything else means no caching."""
    async with scripted({"tools/list": kept(ttl, tools=[TOOL])}) as (client, script):
        await client.list_tools()
        await client.list_tools()
        assert count(script, "tools/list") == 2


async def test_no_answer_is_kept_for_ever(scripted, autojump_clock):
    """The longest TTL is a day."""
    async with scripted({"tools/list": kept(10**400, tools=[TOOL])}) as (client, script):
        await client.list_tools()
        await trio.sleep(24 * 3600 - 1)
        await client.list_tools()
        assert count(script, "tools/list") == 1
        await trio.sleep(1)
        await client.list_tools()
        assert count(script, "tools/list") == 2


async def test_nothing_is_cached_without_the_option(scripted):
    """`cache=False` sends each request."""
    answers = {"tools/list": kept(tools=[TOOL])}
    async with scripted(answers, cache=False) as (client, script):
        await client.list_tools()
        await client.list_tools()
        assert count(script, "tools/list") == 2


async def test_nothing_is_kept_of_earlier_revisions(scripted):
    """Up to 2025-11-25 the members have no meaning."""
    answers = {"tools/list": kept(tools=[TOOL])}
    async with scripted(answers, version="2025-11-25") as (client, script):
        await client.list_tools()
        await client.list_tools()
        assert count(script, "tools/list") == 2


async def test_a_request_by_hand_is_sent(scripted):
    """`request` and a ping always ask the server."""
    async with scripted({"tools/list": kept(tools=[TOOL])}) as (client, script):
        await client.list_tools()
        await client.request("tools/list", {})
        await client.ping()
        await client.ping()
        assert count(script, "tools/list") == 2
        assert count(script, "server/discover") == 3


async def test_resources_and_pages_are_kept_apart(scripted):
    """Each URI and each cursor has a separate result and TTL."""

    def read(request):
        uri = request["params"]["uri"]
        return kept(contents=[{"uri": uri, "text": uri}])

    def page(request):
        if "cursor" in request["params"]:
            return kept(0, tools=[{**TOOL, "name": "b"}])
        return kept(tools=[TOOL], nextCursor="2")

    answers = {"resources/read": read, "tools/list": page}
    async with scripted(answers) as (client, script):
        for _ in range(2):
            for uri in ("a:1", "a:2"):
                assert (await client.read_resource(uri)).contents[0].text == uri
            assert [tool.name for tool in await client.list_tools()] == ["t", "b"]
        cursors = [
            m["params"].get("cursor") for m in script.received if m["method"] == "tools/list"
        ]
        assert count(script, "resources/read") == 2
        assert cursors == [None, "2", "2"]


async def test_a_cursor_that_ended_drops_the_pages(scripted):
    """A cached page may lead to a cursor that is not valid: then the list is read again."""
    first = kept(tools=[TOOL], nextCursor="2")
    gone = ValueError(-32602, "Invalid cursor")
    pages = [first, kept(0, tools=[TOOL]), gone, kept(tools=[]), gone]
    async with scripted({"tools/list": pages}) as (client, script):
        assert len(await client.list_tools()) == 2
        assert len(await client.list_tools()) == 0
        assert count(script, "tools/list") == 4


@pytest.mark.parametrize(
    ("method", "params", "dropped"),
    [
        (NOTICE.format("tools"), None, {"list_tools"}),
        (NOTICE.format("prompts"), None, {"list_prompts"}),
        (NOTICE.format("resources"), None, {"list_resources", "list_resource_templates"}),
        (UPDATED, {"uri": "a:b"}, {"read_resource"}),
        (UPDATED, {"uri": "a:b/part"}, {"read_resource"}),
        (UPDATED, {"uri": "a:"}, {"read_resource"}),
        (UPDATED, {"uri": "c:d"}, set()),
        (UPDATED, {"uri": 5}, set()),
        (UPDATED, None, set()),
        ("notifications/message", {"level": "info", "data": 1}, set()),
    ],
)
async def test_a_notice_drops_what_it_concerns(scripted, method, params, dropped):
    """A notice drops the results that it concerns, and no others."""
    answers = {each: kept(**members) for each, _, members in READS.values()}
    seen = trio.Event()

    class Handler(ClientHandler):
        async def handle_notification(self, method, params):
            seen.set()

    async with scripted(answers, handler=Handler()) as (client, script):
        for name, (_, args, _) in READS.items():
            await getattr(client, name)(*args)
        await script.say(method=method, **({} if params is None else {"params": params}))
        await seen.wait()
        sent_again = set()
        for name, (asked, args, _) in READS.items():
            await getattr(client, name)(*args)
            if count(script, asked) == 2:
                sent_again.add(name)
        assert sent_again == dropped


async def test_an_answer_that_a_notice_overtook_is_not_kept(scripted):
    """A result that a notice overtook is returned, but not cached."""
    async with scripted() as (client, script):
        asked = []

        async def list_tools():
            assert [tool.name for tool in await client.list_tools()] == ["t"]

        script.answers["tools/list"] = asked.append
        async with trio.open_nursery() as nursery:
            nursery.start_soon(list_tools)
            await script.until("tools/list")
            await script.say(method=NOTICE.format("tools"))
            await script.say(id=asked[0]["id"], result=kept(tools=[TOOL]))
        script.answers["tools/list"] = kept(tools=[])
        assert await client.list_tools() == []


async def test_an_answer_to_answers_is_not_kept(scripted):
    """A result after rounds with the user is not cached."""

    class Handler(ClientHandler):
        async def list_roots(self):
            return []

    def read(request):
        if "requestState" in request["params"]:
            return kept(contents=[{"uri": "a:b", "text": "yours"}])
        asked = {"r": {"method": "roots/list"}}
        return {"resultType": "input_required", "inputRequests": asked, "requestState": "s"}

    async with scripted({"resources/read": read}, handler=Handler()) as (client, script):
        for _ in range(2):
            assert (await client.read_resource("a:b")).contents[0].text == "yours"
        assert count(script, "resources/read") == 4


async def test_memory_is_bounded(scripted):
    """The least recently used result is dropped first; a result that is too large is not cached."""

    def read(request):
        uri = request["params"]["uri"]
        text = "x" * (9_000_000 if uri == "a:large" else 2_200_000)
        return kept(contents=[{"uri": uri, "text": text}])

    async with scripted({"resources/read": read}) as (client, script):

        async def is_kept(uri):
            before = count(script, "resources/read")
            await client.read_resource(uri)
            return count(script, "resources/read") == before

        for uri in ("a:1", "a:2", "a:3"):
            assert not await is_kept(uri)
        assert await is_kept("a:1")
        assert not await is_kept("a:4")
        assert [await is_kept(uri) for uri in ("a:4", "a:1", "a:3")] == [True, True, True]
        assert not await is_kept("a:large")
        assert not await is_kept("a:large")
        assert await is_kept("a:3")
        assert not await is_kept("a:2")


async def test_a_private_answer_belongs_to_its_credentials(scripted):
    """Other credentials have separate results; a public result is for all."""
    current = ["ada"]
    answers = {
        "tools/list": kept(tools=[TOOL]),
        "prompts/list": kept(scope="public", prompts=[]),
    }
    async with scripted(answers, credentials=lambda: current[0]) as (client, script):

        async def read():
            await client.list_tools()
            await client.list_prompts()
            return count(script, "tools/list"), count(script, "prompts/list")

        assert await read() == (1, 1)
        current[0] = "bob"
        assert await read() == (2, 1)
        assert await read() == (2, 1)
        current[0] = None
        assert await read() == (3, 1)
        assert await read() == (4, 1)


async def test_credentials_that_change_on_the_way(scripted):
    """It is unclear whose result it is, so it is not cached."""
    current = ["ada"]

    def answer(_):
        current[0] = "bob"
        return kept(tools=[TOOL])

    async with scripted({"tools/list": answer}, credentials=lambda: current[0]) as (client, script):
        await client.list_tools()
        for name, requests in (("ada", 2), ("ada", 3), ("bob", 4), ("bob", 4)):
            current[0] = name
            await client.list_tools()
            assert count(script, "tools/list") == requests


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("wait"), st.floats(0.1, 15)),
            st.tuples(st.sampled_from(["change", "tell", "read"]), st.none()),
        ),
        max_size=25,
    ),
    ttl=st.integers(0, 10_000),
)
def test_an_answer_is_never_older_than_its_time(scripted, steps, ttl):
    """A cached result is younger than its TTL, and newer than the last notice."""

    async def main():
        versions = [(trio.current_time(), 0)]
        told = 0

        def read(_):
            text = str(versions[-1][1])
            return kept(ttl, contents=[{"uri": "a:b", "text": text}])

        async with scripted({"resources/read": read}) as (client, script):
            for step, seconds in steps:
                if step == "wait":
                    await trio.sleep(seconds)
                elif step == "change":
                    versions.append((trio.current_time(), versions[-1][1] + 1))
                elif step == "tell":
                    told = versions[-1][1]
                    await script.say(method=UPDATED, params={"uri": "a:b"})
                    await client.ping()
                else:
                    got = int((await client.read_resource("a:b")).contents[0].text)
                    oldest = trio.current_time() - ttl / 1000
                    true_then = max(v for at, v in versions if at <= oldest or v == 0)
                    assert got >= max(told, true_then)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_results_of_our_server_are_cached():
    """The server's option `cache` reaches the client; a notice of changes drops the result."""

    class Echo(Tool):
        """Echo."""

        def call(self):
            return "hi"

    class Demo(Server, name="demo", version="1", cache={"tools": Cache(ttl=60)}):
        tools = [Echo]

    def add() -> str:
        """Add."""
        return "3"

    server = Demo()
    told = trio.Event()

    class Handler(ClientHandler):
        async def handle_notification(self, method, params):
            told.set()

    async with connect(server, handler=Handler()) as client, client.listen(tools=True):
        first = await client.list_tools()
        assert (await client.list_tools())[0] is first[0]
        server.tools.add(add)
        await told.wait()
        assert [tool.name for tool in await client.list_tools()] == ["echo", "add"]
