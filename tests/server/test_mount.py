"""`Mount`: a server inside another one, with its own names, context, lifespan and limits."""

import gc
import logging
import weakref
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from noizu_mcp import (
    Accept,
    ClientHandler,
    Completion,
    Content,
    DefinitionError,
    InputRequest,
    InputRequired,
    McpError,
    Mount,
    Prompt,
    PromptMessage,
    PromptResult,
    Resource,
    ResourceContents,
    ResourceProvider,
    ResourceTemplate,
    Server,
    TaskStarted,
    Tool,
    Toolkit,
    ToolProvider,
    ToolResult,
    connect,
    mcp,
    resource,
    tool,
)
from noizu_mcp.engine import logger
from noizu_mcp.server import MERGE_WINDOW
from noizu_mcp.types import (
    ClientCapabilities,
    Page,
    Principal,
    PromptDefinition,
    ReadResult,
    Reference,
    RequireScopes,
    ResourceDefinition,
    ToolDefinition,
)

SESSION, STATELESS = "2025-11-25", "2026-07-28"
ADA = Principal(subject="ada", scopes=["pay", "admin", "read"])
EVE = Principal(subject="eve", scopes=["read"])


@pytest.fixture(params=[SESSION, STATELESS])
def version(request):
    return request.param


@pytest.fixture(autouse=True)
def _logged(caplog):
    caplog.set_level(logging.INFO, logger=logger.name)


class Bills(Toolkit):
    @mcp
    async def charge(self, amount: int, ctx) -> str:
        """Charge somebody."""
        found = await ctx.read_resource("db://orders")
        return f"{ctx.server.options.name} {ctx.state} {amount} {found.contents[0].text}"

    @mcp
    def links(self):
        return [
            Content.resource_link("db://orders", "orders"),
            Content.resource(ResourceContents("db://a/schema", text="x")),
            Content.resource_link("https://example.com/", "web"),
            Content.text("text"),
        ]

    @mcp
    def linked(self):
        return ToolResult(Content.resource_link("db://orders", "orders"), structured={"a": 1})

    @mcp(inline=True)
    def short(self, ctx):
        return ctx.server.options.name

    @mcp(hidden=True)
    def secret(self):
        return "secret"

    @mcp
    async def talk(self, ctx):
        await ctx.report_progress(1, 2)
        await ctx.info("working")
        answer = await ctx.elicit("Sure?", {"yes": bool})
        stepped = await ctx.step(lambda: "stepped")
        return f"{answer.content['yes']} {stepped} {ctx.request_id is not None} {ctx.cancelled}"


class Orders(Resource, uri="db://orders", subscribable=True):
    def read(self):
        return "orders"


class Parts(Resource, uri="db://parts", name="parts"):
    def read(self):
        return [ResourceContents("db://parts", text="1"), ResourceContents("x:y", text="2")]


class Whole(Resource, uri="db://whole"):
    def read(self):
        return ReadResult([ResourceContents("db://whole", text="whole")])


class Schema(ResourceTemplate, uri_template="db://{table}/schema"):
    def read(self, uri, table: str):
        return f"schema of {table} at {uri}"

    async def complete(self, variable, prefix, ctx):
        return [f"{prefix}{ctx.server.options.name}"]

    async def list(self, ctx):
        return ["db://a/schema"]


class Rows(ResourceTemplate, uri_template="db://rows/{row}"):
    def read(self, row: int):
        return str(row)

    def list(self):
        return ["db://rows/1"]


class Plain(ResourceTemplate, uri_template="plain://{name}"):
    def read(self, name: str):
        return name


class Remind(Prompt):
    class Arguments:
        who: str

    def get(self, args, ctx):
        return PromptResult(
            [
                PromptMessage.user(f"{ctx.server.options.name} reminds {args.who}"),
                PromptMessage.user(Content.resource_link("db://orders", "orders")),
            ]
        )

    def complete(self, argument, prefix, ctx):
        return [f"{prefix}!"]


class Billing(Server, name="billing", version="1"):
    tools = [Bills]
    resources = [Orders, Parts, Whole, Schema, Rows, Plain]
    prompts = [Remind]

    def __init__(self):
        self.lives = []

    @asynccontextmanager
    async def lifespan(self):
        self.lives.append("begins")
        try:
            yield "open"
        finally:
            await trio.lowlevel.checkpoint()
            self.lives.append("ends")


def front(*providers, **body):
    """Make a server with providers."""
    given = {"providers": list(providers), **body}
    return type("Front", (Server,), given, name="front", version="1")()


def tools_of(server):
    """Return the tools that an anonymous caller listed last, by name."""
    request = type("Request", (), {"auth": None, "dispatcher": None, "session": {}})()
    lists = next(iter(server.bus.running)).provider_lists
    return lists.attach(request).lists["tools"].specs


async def names(client):
    return [each.name for each in await client.list_tools()]


class Handler(ClientHandler):
    def __init__(self):
        self.heard = []

    async def handle_elicitation(self, params):
        return Accept({"yes": True})

    async def handle_notification(self, method, params):
        self.heard.append((method.rpartition("/")[2], params.get("uri")))


async def test_everything_has_a_new_name(version):
    """Tools, prompts, resources and templates are listed and used under their prefixed names."""
    async with connect(front(Mount(Billing, prefix="billing")), version=version) as client:
        tools = ["charge", "links", "linked", "short", "talk"]
        assert await names(client) == [f"billing_{name}" for name in tools]
        assert (await client.call_tool("billing_secret", {})).text == "secret"
        assert [each.name for each in await client.list_prompts()] == ["billing_remind"]
        assert [(each.uri, each.name) for each in await client.list_resources()] == [
            ("billing+db://orders", "billing+db://orders"),
            ("billing+db://parts", "parts"),
            ("billing+db://whole", "billing+db://whole"),
            ("billing+db://a/schema", "db://a/schema"),
            ("billing+db://rows/1", "db://rows/1"),
        ]
        templates = [each.uri_template for each in await client.list_resource_templates()]
        assert templates == [
            "billing+db://{table}/schema",
            "billing+db://rows/{row}",
            "billing+plain://{name}",
        ]
        read = await client.read_resource("billing+db://x/schema")
        assert read.contents[0].text == "schema of x at db://x/schema"
        assert read.contents[0].uri == "billing+db://x/schema"
        with pytest.raises(McpError, match="Unknown tool: charge"):
            await client.call_tool("charge", {"amount": 1})


async def test_without_a_prefix_the_names_stay(version):
    """Without a prefix components keep the names of the mounted server."""
    async with connect(front(Mount(Billing)), version=version) as client:
        assert (await client.call_tool("charge", {"amount": 1})).text == "billing open 1 orders"
        assert (await client.read_resource("db://parts")).contents[1].uri == "x:y"


async def test_the_context_is_that_of_the_mounted_server(version):
    """Server and state are the mounted server's; client, progress and logs are the call's."""
    seen, handler = [], Handler()
    mount = Mount(Billing(), prefix="b")
    async with connect(front(mount), version=version, handler=handler) as client:
        assert (await client.call_tool("b_charge", {"amount": 2})).text == "billing open 2 orders"
        assert (await client.call_tool("b_short", {})).text == "billing"
        if version == SESSION:
            await client.set_log_level("info")
        answer = await client.call_tool("b_talk", {}, progress=seen.append)
        assert answer.text == "True stepped True False"
        assert [(each.progress, each.total) for each in seen][-1] == (1, 2)


async def test_uris_in_answers(version):
    """URIs in results are rewritten so that a client can read them from the parent."""
    async with connect(front(Mount(Billing, prefix="b_1")), version=version) as client:
        blocks = (await client.call_tool("b_1_links", {})).content
        assert blocks[0].uri == "b-1+db://orders"
        assert blocks[1].resource.uri == "b-1+db://a/schema"
        assert blocks[2].uri == "https://example.com/"
        assert (await client.read_resource(blocks[0].uri)).contents[0].text == "orders"
        result = await client.call_tool("b_1_linked", {})
        assert (result.content[0].uri, result.structured) == ("b-1+db://orders", {"a": 1})
        parts = (await client.read_resource("b-1+db://parts")).contents
        assert [each.uri for each in parts] == ["b-1+db://parts", "x:y"]
        whole = (await client.read_resource("b-1+db://whole")).contents
        assert [each.uri for each in whole] == ["b-1+db://whole"]
        messages = (await client.get_prompt("b_1_remind", {"who": "Eve"})).messages
        assert messages[0].content.text == "billing reminds Eve"
        assert messages[1].content.uri == "b-1+db://orders"


async def test_completion(version):
    """The mounted server completes arguments and variables."""
    async with connect(front(Mount(Billing, prefix="b")), version=version) as client:
        ref = Reference("ref/prompt", name="b_remind")
        assert await client.complete(ref, "who", "E") == Completion(["E!"])
        ref = Reference("ref/resource", uri="b+db://{table}/schema")
        assert await client.complete(ref, "table", "t") == Completion(["tbilling"])
        ref = Reference("ref/resource", uri="b+db://rows/{row}")
        assert await client.complete(ref, "row", "t") == Completion([])


async def test_the_lifespan(version):
    """The mounted lifespan lasts as long as its parent serves, and in memory as the connection."""
    billing = Billing()
    async with connect(front(Mount(billing)), version=version) as client:
        assert billing.lives == ["begins"]
        await names(client)
    assert billing.lives == ["begins", "ends"]


async def test_mounting_and_unmounting(version):
    """A server can be mounted while its parent serves; its lifespan outlasts its last call."""
    began, go_on = trio.Event(), trio.Event()

    class Slow(Tool):
        async def call(self, ctx):
            began.set()
            await go_on.wait()
            return str(ctx.server.lives)

    billing = Billing()
    billing.tools.add(Slow)
    mount = Mount(billing, prefix="b")
    server = front(tools=[])
    async with connect(server, version=version) as client, trio.open_nursery() as nursery:
        assert await names(client) == []
        server.providers.add(mount)
        await trio.testing.wait_all_tasks_blocked()
        assert "b_slow" in await names(client)

        @nursery.start_soon
        async def call():
            assert (await client.call_tool("b_slow", {})).text == "['begins']"

        await began.wait()
        server.providers.remove(mount)
        await trio.testing.wait_all_tasks_blocked()
        assert await names(client) == []
        assert billing.lives == ["begins"]
        go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        assert billing.lives == ["begins", "ends"]
        server.providers.add(mount)
        await trio.testing.wait_all_tasks_blocked()
        server.providers.remove(mount)
        await trio.testing.wait_all_tasks_blocked()
        assert billing.lives == ["begins", "ends"] * 2


async def test_a_call_after_the_end(version):
    """A call that was found before the unmounting, and begins after it, is refused."""
    server = front(Mount(Billing, prefix="b"))
    async with connect(server, version=version) as client:
        await names(client)
        (mounted,) = next(iter(server.bus.running)).provider_lists.served.values()
        mounted.end()
        await trio.testing.wait_all_tasks_blocked()
        for name in ("b_charge", "b_short"):
            with pytest.raises(McpError, match="billing is not served now"):
                await client.call_tool(name, {"amount": 1})


async def test_a_lifespan_that_fails(version, caplog, autojump_clock):
    """Only the mounted server is missing until its lifespan has begun."""

    class Broken(Billing, name="broken", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            self.lives.append("begins")
            if len(self.lives) < 3:
                raise ValueError("no database")
            yield "open"

    handler, server = Handler(), front(Mount(Broken), tools=[tool(lambda: "", name="steady")])
    async with connect(server, version=version, handler=handler) as client:
        assert await names(client) == ["steady"]
        assert [each[:3] for each in server.providers.health()] == [
            ("Mount(broken)", ("lifespan failed",), 1)
        ]
        await trio.sleep(4)
        assert "charge" in await names(client)
        assert [each[:3] for each in server.providers.health()] == [("Mount(broken)", (), 2)]
        assert caplog.text.count("it begins again, with growing pauses") == 1


async def test_a_lifespan_that_is_slow(version, autojump_clock):
    """The parent serves after some seconds; the mounted server follows once it is ready."""

    class Late(Billing, name="late", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            await trio.sleep(20)
            yield "open"

    handler, start = Handler(), trio.current_time()
    async with connect(front(Mount(Late)), version=version, handler=handler) as client:
        assert await names(client) == []
        assert trio.current_time() <= start + 5
        async with client.listen(tools=True) if version == STATELESS else trio.open_nursery():
            await trio.sleep(20)
            assert ("list_changed", None) in handler.heard
            assert "charge" in await names(client)


async def test_a_lifespan_that_hangs_at_the_end(autojump_clock):
    """The mounted lifespan is cancelled after some seconds."""

    class Hanging(Billing, name="hanging", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            yield
            await trio.sleep_forever()

    async with connect(front(Mount(Hanging))) as client:
        await names(client)
    assert trio.current_time() < 60


async def test_a_broken_lifespan_is_given_up_at_the_end(autojump_clock):
    """A server that ends does not wait for the next attempt to start the lifespan."""

    class Never(Billing, name="never", version="1"):
        @asynccontextmanager
        async def lifespan(self):
            raise ValueError
            yield

    start = trio.current_time()
    async with connect(front(Mount(Never), tools=[])) as client:
        await trio.sleep(20)
        await client.list_tools()
    assert trio.current_time() == pytest.approx(start + 20)


# Changes


async def test_changes_of_the_mounted_server(version):
    """Notices reach the clients of the parent, and lists that are requested afterwards are new."""
    billing, handler = Billing(), Handler()
    server = front(Mount(billing, prefix="b"))
    uri = "b+db://orders"
    async with connect(server, version=version, handler=handler) as client:
        assert client.capabilities.to_wire()["resources"]["subscribe"]
        if version == SESSION:
            await client.subscribe(uri)
        async with (
            client.listen(tools=True, uris=[uri]) if version == STATELESS else trio.open_nursery()
        ):
            await trio.testing.wait_all_tasks_blocked()
            billing.tools.add(tool(lambda: "new", name="new"))
            billing.notify_resource_updated("db://orders")
            billing.notify_resource_updated("db://other")
            await trio.testing.wait_all_tasks_blocked()
            assert sorted(handler.heard) == [("list_changed", None), ("updated", uri)]
            assert (await client.call_tool("b_new", {})).text == "new"
            billing.tools.remove("new")
            with pytest.raises(McpError, match="Unknown tool: b_new"):
                await client.call_tool("b_new", {})


async def test_a_change_makes_nothing_else_anew():
    """Components that stay are the same objects in the next list of the parent."""
    billing = Billing()
    server = front(Mount(billing, prefix="b"))
    async with connect(server, version=STATELESS) as client:
        await names(client)
        before = tools_of(server)["b_charge"]
        billing.tools.remove("links")
        assert "b_links" not in await names(client)
        assert tools_of(server)["b_charge"] is before


async def test_a_server_that_is_gone_hears_nothing():
    """A mounted server does not keep its former parents alive."""
    billing = Billing()
    mount = Mount(billing)
    server = front(mount)
    del type(server).providers
    gone = weakref.ref(server.providers)
    del server
    gc.collect()
    assert gone() is None
    billing.notify_changed("tools")
    assert list(billing.bus) == []


async def test_changes_of_kinds_that_are_not_offered():
    """A kind that a mounted server begins to offer is announced to its own clients only."""

    class Tools(Server, name="tools", version="1"):
        tools = [tool(lambda: "", name="one")]

    inner = Tools()
    server = front(Mount(inner))
    async with connect(server, version=SESSION) as client:
        inner.prompts.add(Remind)
        assert await names(client) == ["one"]
        with pytest.raises(McpError, match="Method not found"):
            await client.list_prompts()


# Limits and rights


async def test_timeouts(version, autojump_clock):
    """A mounted tool without a timeout has the timeout of its own server."""

    class Slow(Tool):
        async def call(self):
            await trio.sleep(5)
            return "done"

    class Patient(Server, name="patient", version="1", tool_timeout=10.0):
        tools = [Slow, tool(Slow, name="quick", timeout=1.0)]

    class Front(Server, name="front", version="1", tool_timeout=1.0):
        providers = [Mount(Patient, prefix="p")]

    async with connect(Front, version=version) as client:
        assert (await client.call_tool("p_slow", {})).text == "done"
        assert (await client.call_tool("p_quick", {})).text == "Tool execution timed out"


class Guarded(Server, name="guarded", version="1", requires="pay"):
    tools = [
        tool(lambda: "plain", name="plain"),
        tool(lambda: "admin", name="admin", requires=RequireScopes("admin")),
        tool(lambda: "ada", name="ada", available=lambda ctx: ctx.server.knows(ctx)),
    ]

    def knows(self, ctx):
        return ctx.auth is not None and ctx.auth.subject == "ada"


async def test_bounds_of_results(version):
    """The bound is the tool's, else the mounted server's, else the parent's."""

    def fill(size: int) -> str:
        return "x" * size

    sizes = [tool(fill, name="plain"), tool(fill, name="tight", max_result_bytes=200)]
    bounded = type("B", (Server,), {"tools": sizes}, name="b", version="1", max_result_bytes=500)
    loose = type("L", (Server,), {"tools": sizes}, name="l", version="1")
    outer = {"providers": [Mount(bounded, prefix="b"), Mount(loose, prefix="l")]}
    server = type("F", (Server,), outer, name="f", version="1", max_result_bytes=900)
    async with connect(server, version=version) as client:
        for name, most in (("b_plain", 500), ("l_plain", 900), ("b_tight", 200), ("l_tight", 200)):
            assert not (await client.call_tool(name, {"size": most - 100})).is_error
            text = (await client.call_tool(name, {"size": most + 1})).text
            assert text.endswith(f"may have {most}: ask for less")


async def test_scopes_and_availability(version):
    """Scopes of the mounted server and its tools apply, and so does `available`."""
    server = front(Mount(Guarded, prefix="g"))
    async with connect(server, version=version, principal=ADA) as client:
        assert await names(client) == ["g_plain", "g_admin", "g_ada"]
        for name in ("plain", "admin", "ada"):
            assert (await client.call_tool(f"g_{name}", {})).text == name
    async with connect(server, version=version, principal=EVE) as client:
        assert await names(client) == ["g_plain", "g_admin"]
        for name, scopes in (("plain", "pay"), ("admin", "pay admin")):
            with pytest.raises(McpError, match=f"needs {scopes}"):
                await client.call_tool(f"g_{name}", {})
        with pytest.raises(McpError, match="Unknown tool"):
            await client.call_tool("g_ada", {})


async def test_notices_of_a_resource_that_is_not_available(version, autojump_clock):
    """Only callers to whom a resource is available can watch it, and get its updates."""

    class Friends(Server, name="friends", version="1"):
        resources = [resource(Orders, available=lambda ctx: ctx.auth.subject in friends)]

    friends = {"ada", "eve"}
    inner = Friends()
    server = front(Mount(inner, prefix="f"), tools=[])
    uri, handler = "f+db://orders", Handler()
    async with connect(server, version=version, principal=EVE, handler=handler) as client:
        if version == SESSION:
            await client.subscribe(uri)
        async with client.listen(uris=[uri]) if version == STATELESS else trio.open_nursery():
            inner.notify_resource_updated("db://orders")
            await trio.testing.wait_all_tasks_blocked()
            assert handler.heard == [("updated", uri)]
            friends.remove("eve")
            await trio.sleep(2 * MERGE_WINDOW)
            inner.notify_resource_updated("db://orders")
            await trio.testing.wait_all_tasks_blocked()
            assert handler.heard == [("updated", uri)]
            assert await client.list_resources() == []


async def test_an_availability_after_the_end():
    """A tool of a server that is no longer served is not available to any caller."""
    server = front(Mount(Guarded, prefix="g"))
    async with connect(server, version=STATELESS, principal=ADA) as client:
        await names(client)
        spec = tools_of(server)["g_ada"]
        (mounted,) = next(iter(server.bus.running)).provider_lists.served.values()
        mounted.end()
        await trio.testing.wait_all_tasks_blocked()
        assert not spec.available(None)


# Mounts in mounts, providers in mounts


def saying(word):
    """Make a tool that says its name."""

    async def say() -> str:
        return word

    return tool(say, name=word)


class Lists(ToolProvider):
    def __init__(self):
        self.error = None
        self.listed = ["one"]

    async def tools(self, ctx):
        if self.error is not None:
            raise self.error
        return [saying(name) for name in self.listed]

    def unknown(self, name):
        return f"Unknown word: {name}"


async def test_a_mounted_server_with_providers(version, autojump_clock):
    """Providers of a mounted server are asked for each caller; failures show, and they recover."""
    lists = Lists()
    inner = front(lists, tools=[])
    middle = type(
        "Middle", (Server,), {"providers": [Mount(inner, prefix="i")]}, name="m", version="1"
    )
    server = front(Mount(middle, prefix="m"))
    async with connect(server, version=version) as client:
        assert await names(client) == ["m_i_one"]
        assert (await client.call_tool("m_i_one", {})).text == "one"
        with pytest.raises(McpError, match="Unknown word: two"):
            await client.call_tool("m_i_two", {})
        with pytest.raises(McpError, match="Unknown tool: two"):
            await client.call_tool("two", {})
        lists.error = ValueError()
        inner.notify_changed("tools")
        assert await names(client) == []
        name = "Mount(m).Mount(front).Lists"
        assert server.providers.health()[-1] == (name, ("tools failed",), 1, {"tools": 0})
        lists.error = None
        await trio.sleep(10)
        assert await names(client) == ["m_i_one"]
        inner.providers.remove(lists)
        assert await names(client) == []
    assert inner.bus.running == {}


async def test_a_session_of_a_mounted_server_with_providers():
    """A handler that changes its session sees the new list, and its client is notified."""

    class Unlock(Tool):
        async def call(self, ctx):
            await ctx.put_session("unlocked", True)
            ctx.notify.tools(here=True)

    class Locked(ToolProvider):
        async def tools(self, ctx):
            return [tool(lambda: "", name="open")] if ctx.session.get("unlocked") else ()

    inner = front(Locked(), tools=[Unlock])
    handler = Handler()
    async with connect(front(Mount(inner)), version=SESSION, handler=handler) as client:
        assert await names(client) == ["unlock"]
        await client.call_tool("unlock", {})
        assert await names(client) == ["unlock", "open"]
        assert handler.heard == [("list_changed", None)]


async def test_a_session_that_changes_during_a_call():
    """A handler that changes its session can still read the items of a mounted provider."""

    class Reports(ResourceProvider):
        async def resources(self, ctx):
            return [Orders] if not ctx.session.get("unlocked") else ()

    class Unlock(Tool):
        async def call(self, ctx):
            await ctx.put_session("unlocked", True)
            return (await ctx.read_resource("i+db://orders")).contents[0].text

    inner = front(Reports(), resources=[])
    server = front(Mount(inner, prefix="i"), tools=[Unlock])
    async with connect(server, version=SESSION) as client:
        assert (await client.call_tool("unlock", {})).text == "orders"
        assert await client.list_resources() == []
        assert server.providers.health()[0][:3] == ("Mount(front)", (), 0)


async def test_mounting_again_at_once():
    """A mount that is removed and added at once is served again."""
    billing = Billing()
    mount = Mount(billing)
    server = front(mount)
    async with connect(server) as client:
        running = next(iter(server.bus.running))
        (first,) = running.provider_lists.served.values()
        entry = server.providers.entries[0]
        server.bus.running.clear()  # as a thread would, before the loop is notified
        server.providers.remove(mount)
        server.providers.add(mount)
        server.bus.running[running] = None
        running.update_providers()
        await trio.testing.wait_all_tasks_blocked()
        assert (await client.call_tool("short", {})).text == "billing"
        assert billing.lives in (["begins", "begins", "ends"], ["begins", "ends", "begins"])
        assert server.providers.entries[0] is not entry
        assert first not in running.provider_lists.served.values()


# Overrides


class Computing(Server, name="computing", version="1"):
    """Overrides all that a mounted server may override."""

    tools = [tool(lambda: "registered", name="registered"), tool(lambda: "x", name="unlisted")]
    resources = [Orders, Schema]
    prompts = [Remind]

    async def list_tools(self, cursor, ctx):
        if cursor is None:
            return Page([self.registry.find_tool("registered")], "more")
        return Page([ToolDefinition("computed", input_schema={"type": "object"})])

    async def call_tool(self, name, args, ctx):
        return f"{self.options.name} calls {name} {args}"

    async def list_resources(self, cursor, ctx):
        return [ResourceDefinition("db://computed", "computed")]

    async def read_resource(self, uri, ctx):
        return f"{self.options.name} reads {uri}"

    async def list_prompts(self, cursor, ctx):
        return [PromptDefinition("computed"), self.registry.find_prompt("remind")]

    async def get_prompt(self, name, args, ctx):
        return f"{self.options.name} gets {name} {args}"

    async def complete(self, ref, argument, prefix, ctx):
        return [f"{ref.name or ref.uri} {argument} {prefix}"]


async def test_overrides(version):
    """Overrides of the mounted server compute its lists, and answer for its items."""
    async with connect(front(Mount(Computing, prefix="c")), version=version) as client:
        assert await names(client) == ["c_registered", "c_computed"]
        for name in ("registered", "computed", "unlisted"):
            answer = await client.call_tool(f"c_{name}", {"a": 1})
            assert answer.text == f"computing calls {name} {{'a': 1}}"
        assert (await client.list_resources())[0].uri == "c+db://computed"
        for uri in ("db://computed", "db://orders", "db://a/schema", "any://thing"):
            read = await client.read_resource(f"c+{uri}")
            assert read.contents[0].text == f"computing reads {uri}"
        listed = [each.name for each in await client.list_prompts()]
        assert listed == ["c_computed", "c_remind"]
        got = await client.get_prompt("c_remind", {})
        assert got.messages[0].content.text == "computing gets remind {}"
        ref = Reference("ref/prompt", name="c_remind")
        assert await client.complete(ref, "who", "x") == Completion(["remind who x"])
        ref = Reference("ref/resource", uri="c+db://{table}/schema")
        assert await client.complete(ref, "table", "x") == Completion(
            ["db://{table}/schema table x"]
        )


class Calling(Server, name="calling", version="1"):
    """Overrides `call_tool`, and calls the default."""

    async def call_tool(self, name, args, ctx):
        return await super().call_tool(name, args, ctx)


class Guided(Toolkit):
    """Handlers that need more of a context than others."""

    @mcp
    async def twice(self, number: int, ctx) -> str:
        await ctx.release_stream()
        first = await ctx.elicit("First?", {"yes": bool})
        second = await ctx.elicit("Second?", {"yes": bool})
        return f"{number} {first.content['yes']} {second.content['yes']}"

    @mcp
    async def by_hand(self, ctx):
        if not ctx.input_responses:
            schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}}
            form = {"message": "Sure?", "requestedSchema": schema}
            return InputRequired({"q": InputRequest("elicitation/create", form)}, "s")
        return f"{ctx.request_state} {ctx.input_responses['q']['content']}"

    @mcp(task="required", starts_task=True)
    async def long(self, ctx):
        await ctx.start_task()
        return f"{ctx.server.options.name} is done"

    @mcp
    async def tell(self, ctx):
        ctx.notify.tools(here=True)


@pytest.mark.parametrize("cls", [Billing, Calling])
@pytest.mark.parametrize("replay", [False, True])
async def test_questions_and_coercion(version, cls, replay):
    """A mounted handler can ask repeatedly, also behind an override that calls `super()`."""
    inner = cls()
    inner.tools.add(Guided)
    server = front(Mount(inner, prefix="g"))
    async with connect(server, version=version, handler=Handler(), replay=replay) as client:
        answer = await client.call_tool("g_twice", {"number": "3"})
        assert answer.text == "3 True True"
        assert (await client.call_tool("g_by_hand", {})).text == "s {'yes': True}"


class Slowly(Handler):
    async def handle_elicitation(self, params):
        await trio.sleep(5)
        return await super().handle_elicitation(params)


@pytest.mark.parametrize("cls", [Billing, Calling])
async def test_a_handler_that_does_not_wait_for_the_answer(version, cls, autojump_clock):
    """The result of a handler that ends while its question is open answers the next request."""

    class Hasty(Tool):
        async def call(self, ctx):
            with trio.move_on_after(1):
                await ctx.elicit("Sure?", {"yes": bool})
            return "gave up"

    inner = cls()
    inner.tools.add(Hasty)
    async with connect(front(Mount(inner)), version=version, handler=Slowly()) as client:
        assert (await client.call_tool("hasty", {})).text == "gave up"


async def test_tasks():
    """A mounted tool creates a task of the parent."""
    inner = Calling()
    inner.tools.add(Guided)
    server = front(Mount(inner, prefix="g"))
    knows = ClientCapabilities(extensions={"io.modelcontextprotocol/tasks": {}})
    async with connect(server, version=STATELESS, capabilities=knows) as client:
        await names(client)
        with pytest.raises(TaskStarted) as started:
            await client.call_tool("g_long", {})
        await trio.testing.wait_all_tasks_blocked()
        task = await client.request("tasks/get", {"taskId": started.value.task.task_id})
        assert task["result"]["content"][0]["text"] == "calling is done"


async def test_a_notice_to_one_session():
    """A mounted handler can notify only its own client that a list changed."""
    inner, handler = Billing(), Handler()
    inner.tools.add(Guided)
    async with connect(front(Mount(inner)), version=SESSION, handler=handler) as client:
        await client.call_tool("tell", {})
        await client.ping()
        assert handler.heard == [("list_changed", None)]


async def test_a_list_without_end():
    """A list whose cursors never end is cut off after 1,000 pages."""

    class Endless(Server, name="endless", version="1"):
        async def list_tools(self, cursor, ctx):
            page = int(cursor or 0)
            tool = ToolDefinition(f"t{page}", input_schema={"type": "object"})
            return Page([tool], str(page + 1))

        async def call_tool(self, name, args, ctx):
            return name

    async with connect(front(Mount(Endless))) as client:
        assert sorted(await names(client)) == sorted(f"t{page}" for page in range(1000))
        assert (await client.call_tool("t1", {})).text == "t1"


# Mistakes


class Needy(Billing, name="needy", version="1"):
    def __init__(self, database):
        super().__init__()


MISTAKES = {
    "value": (lambda: Mount(3), ["takes a server, got 3"]),
    "prefix": (lambda: Mount(Billing, prefix="1"), None),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_mounts(name):
    """Values that cannot be mounted are refused at the line that mounts them."""
    make, texts = MISTAKES[name]
    with pytest.raises(DefinitionError) as caught:
        make()
    assert texts is None or [each.text for each in caught.value.problems] == texts
    assert {each.file.rpartition("/")[2] for each in caught.value.problems} == {"test_mount.py"}


def test_a_server_in_itself():
    """A server cannot be mounted in itself, at any depth."""
    inner = front(tools=[])
    server = front(Mount(inner))
    for mounting in (inner, server):
        with pytest.raises(DefinitionError, match="mounts the server in itself"):
            mounting.providers.add(Mount(server))


def test_names_that_clash():
    """Static name clashes are refused with the class; a prefix avoids them."""
    with pytest.raises(DefinitionError) as caught:

        class Clash(Server, name="clash", version="1"):
            tools = [tool(lambda: "", name="short")]
            resources = [Orders]
            providers = [Mount(Billing), Lists(), Mount(Billing, prefix="b"), Mount(Billing)]

    texts = [each.text for each in caught.value.problems]
    assert texts[0] == (
        "Mount(billing) has 'db://orders', which stands in resources already; give a prefix="
    )
    assert texts[1] == "Mount(billing) has 'short', which stands in tools already; give a prefix="
    assert {each.where for each in caught.value.problems} == {
        "Clash.providers[0]",
        "Clash.providers[3]",
    }


def test_how_it_shows():
    """The `repr` of a mount names its server and its prefix."""
    mount = Mount(Billing, prefix="b")
    assert repr(mount) == "Mount(<Billing billing 1>, prefix='b')"
    assert mount.name == "Mount(billing)"
