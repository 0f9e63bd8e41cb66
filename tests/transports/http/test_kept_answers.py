"""Over HTTP: cached results, known servers, and lists that follow notices."""

from functools import partial

import pytest
import trio

from noizu_mcp import ClientHandler, Http, Server, TransportError, connect
from noizu_mcp.transports.http import serve_http

from .scripted import EVENTS, Script, modern, serving

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


async def test_the_second_connection_sends_no_probe():
    """A URL whose server has done a handshake is not probed again, whatever its query."""
    async with serving(Script()) as script:
        for query in ("", "?tenant=1"):
            async with connect(script.url + query) as client:
                assert client.protocol_version == "2025-11-25"
        async with connect(script.url, cache=False):
            pass
        assert len(script.of("server/discover")) == 2
        assert len(script.of("initialize")) == 3


async def test_a_server_that_was_replaced():
    """If a server of 2026-07-28 at the same URL refuses the handshake, it is probed."""
    async with serving(Script()) as script:
        async with connect(script.url):
            pass

        async def refuse(heard):
            await heard.say(404, {"error": "no such method"})

        script.answers |= {"initialize": refuse, "server_discover": modern}
        for _ in range(2):
            async with connect(script.url) as client:
                assert client.protocol_version == "2026-07-28"
        assert len(script.of("initialize")) == 2
        assert len(script.of("server/discover")) == 3


async def test_a_server_that_cannot_answer_now():
    """The failure is raised, and the next connection probes."""
    async with serving(Script()) as script:
        async with connect(script.url):
            pass

        async def overloaded(heard):
            await heard.say(503)

        script.answers["initialize"] = overloaded
        with pytest.raises(TransportError, match="503"):
            async with connect(script.url):
                raise AssertionError
        del script.answers["initialize"]
        async with connect(script.url):
            pass
        assert len(script.of("server/discover")) == 2


def kept(scope):
    async def answer(heard):
        result = {"resultType": "complete", "tools": [TOOL], "ttlMs": 60_000, "cacheScope": scope}
        await heard.result(result)

    return answer


async def test_headers_that_are_refused():
    """The list is requested again, although it is cached, since it names the required headers."""
    calls = []

    async def call(heard):
        calls.append(heard.headers.get("mcp-param-place"))
        if len(calls) == 1:
            await heard.refuse(400, -32020, "Header mismatch")
        else:
            await heard.result({"resultType": "complete", "content": []})

    async def tools_list(heard):
        schema = {"type": "object", "properties": {"place": {"type": "string"}}}
        if len(script.of("tools/list")) > 1:
            schema["properties"]["place"]["x-mcp-header"] = "Place"
        tools = [{"name": "t", "inputSchema": schema}]
        await heard.result({"resultType": "complete", "tools": tools, "ttlMs": 60_000})

    script = Script(server_discover=modern, tools_list=tools_list, tools_call=call)
    async with serving(script), connect(script.url) as client:
        await client.list_tools()
        await client.call_tool("t", {"place": "here"})
    assert calls == [None, "here"]


async def for_each_request():
    return {"Authorization": "Bearer of-somebody"}


@pytest.mark.parametrize(
    ("headers", "scope", "requests"),
    [
        (None, "private", 1),
        ({"Authorization": "Bearer mine"}, "private", 1),
        (for_each_request, "private", 2),
        (for_each_request, "public", 1),
    ],
)
async def test_private_answers_need_fixed_credentials(headers, scope, requests):
    """A function may return the credentials of another user for each request."""
    script = Script(server_discover=modern, tools_list=kept(scope))
    async with serving(script):
        # The tap in between must not hide where the credentials come from.
        taps = [None, lambda *_: None]
        for tap in taps:
            async with connect(Http(script.url, headers=headers), tap=tap) as client:
                await client.list_tools()
                await client.list_tools()
        assert len(script.of("tools/list")) == requests * len(taps)


class Rotating:
    """A strategy whose token changes when a test says so, with a new proof for each request."""

    def __init__(self):
        self.token = "a"
        self.proofs = 0

    def bind(self, server):
        return self

    async def headers(self, request):
        self.proofs += 1
        return {"Authorization": f"DPoP {self.token}", "DPoP": str(self.proofs)}

    async def handle(self, refusal):
        return False


async def test_a_private_answer_belongs_to_its_token():
    """A private result is cached until a request has another token."""
    script, auth = Script(server_discover=modern, tools_list=kept("private")), Rotating()
    async with serving(script), connect(script.url, auth=auth) as client:
        for token in "aab":
            auth.token = token
            await client.list_tools()
        assert len(script.of("tools/list")) == 1
        await client.ping()
        await client.list_tools()
        await client.list_tools()
        assert len(script.of("tools/list")) == 2


class Changing(Script):
    """Lists tools that a test changes, and listens until the test breaks the stream."""

    def __init__(self):
        super().__init__()
        self.names = ["a"]
        self.streams = []
        self.break_stream = trio.Event()

    async def server_discover(self, heard):
        offered = {"tools": {"listChanged": True}}
        versions = {"supportedVersions": ["2026-07-28"], "capabilities": offered}
        await heard.result({"resultType": "complete", **versions, "ttlMs": 0})

    async def tools_list(self, heard):
        tools = [{**TOOL, "name": name} for name in self.names]
        await heard.result({"resultType": "complete", "tools": tools})

    async def subscriptions_listen(self, heard):
        await heard.head(kind=EVENTS)
        params = {
            "_meta": {SUBSCRIPTION: heard.message["id"]},
            "notifications": {"toolsListChanged": True},
        }
        await heard.event({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})
        await self.break_stream.wait()
        self.break_stream = trio.Event()


async def test_a_listen_stream_that_breaks():
    """The client opens another stream, and reads the list again."""
    async with serving(Changing()) as script:
        async with connect(script.url) as client, client.tools as tools:
            script.names = ["a", "b"]
            script.break_stream.set()
            await tools.wait_changed()
            assert [tool.name for tool in tools] == ["a", "b"]
        assert len(script.of("subscriptions/listen")) == 2


class Standing(Changing):
    """Speaks 2025-11-25; its GET stream breaks when a test says so."""

    def __init__(self, *ids):
        super().__init__()
        self.ids = ids
        self.returned = trio.Event()

    async def server_discover(self, heard):
        await heard.say(400, {"error": "no session"})

    async def initialize(self, heard):
        offered = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True}}
        info = {"name": "standing", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": offered, "serverInfo": info}
        await heard.result(result, mcp_session_id="s-1")

    async def resources_subscribe(self, heard):
        await heard.result({})

    async def GET(self, heard):  # noqa: N802 - the name of the method
        await heard.head(kind=EVENTS)
        if len(self.of("GET")) == 2:
            self.returned.set()
        await heard.event(**{"retry": "1", **({"id": self.ids[0], "data": ""} if self.ids else {})})
        await self.break_stream.wait()
        self.break_stream = trio.Event()


class Ears(ClientHandler):
    def __init__(self):
        self.told = []

    async def handle_notification(self, method, params):
        self.told.append((method, params))


async def test_a_get_stream_that_breaks():
    """A client that may have missed notices reads the list again."""
    ears = Ears()
    async with serving(Standing()) as script:
        # The tap in between must not hide the gap.
        connected = connect(script.url, handler=ears, tap=lambda *_: None)
        async with connected as client, client.tools as tools:
            await client.subscribe("a:b")
            script.names = ["a", "b"]
            script.break_stream.set()
            await tools.wait_changed()
            assert [tool.name for tool in tools] == ["a", "b"]
        assert len(script.of("GET")) == 2
    assert ears.told == [
        ("notifications/tools/list_changed", {}),
        ("notifications/resources/updated", {"uri": "a:b"}),
    ]


@pytest.mark.slow
async def test_a_get_stream_that_is_resumed():
    """A server with event ids resends missed notices, so the list is not read again."""
    ears = Ears()
    async with serving(Standing("e-1")) as script:
        async with connect(script.url, handler=ears):
            script.break_stream.set()
            await script.returned.wait()
        assert script.of("GET")[1].headers["last-event-id"] == "e-1"
    assert ears.told == []


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_lists_of_a_real_server_are_followed(version):
    """Items that a server adds and removes appear and vanish at its client, on both eras."""

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    class Demo(Server, name="demo", version="1"):
        tools = [add]

    server = Demo()
    async with trio.open_nursery() as nursery:
        host = await nursery.start(partial(serve_http, server, port=0))
        async with connect(f"{host.urls[0]}/mcp", version=version) as client, client.tools as tools:
            server.tools.remove("add")
            await tools.wait_changed()
            assert list(tools) == []
            server.tools.add(add)
            await tools.wait_changed()
            assert "add" in tools
        host.stop()
