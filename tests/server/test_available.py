"""`available=`: items that a caller can neither list nor use, as if they were not registered."""

import logging
from contextlib import nullcontext

import pytest
import trio
import trio.testing

from noizu_mcp import (
    Cache,
    ClientHandler,
    DefinitionError,
    McpError,
    Mount,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
    Toolkit,
    connect,
    mcp,
    prompt,
    resource,
    tool,
)
from noizu_mcp.engine import logger
from noizu_mcp.server import MERGE_WINDOW
from noizu_mcp.tools import Catalog
from noizu_mcp.types import Principal

VERSIONS = ["2025-11-25", "2026-07-28"]
ADMIN = Principal(subject="ada", scopes=["admin"])
GUEST = Principal(subject="eve", scopes=["read"])


def is_admin(ctx):
    return ctx.auth is not None and "admin" in ctx.auth.scopes


def has_unlocked(ctx):
    return ctx.session.get("unlocked")


class Restart(Tool, available=is_admin):
    """Restart the machine."""

    async def call(self, ctx):
        return (await ctx.read_resource("logs://today")).contents[0].text


class Restarts(Tool):
    """Count the restarts."""

    def call(self) -> int:
        return 3


class Machine(Toolkit, available=is_admin):
    """Is for administrators, but for one tool of it."""

    @mcp
    def stop(self):
        return "stopped"

    @mcp(available=None)
    def state(self):
        return "running"


class Logs(Resource, uri="logs://today", available=is_admin, subscribable=True):
    async def read(self):
        return "all is well"


class LogOf(ResourceTemplate, uri_template="logs://{day}/{line}", available=is_admin):
    async def read(self, day: str, line: int):
        return f"{day}, {line}"

    def list(self):
        return ["logs://monday/1"]


class Manual(Resource, uri="manual://state", subscribable=True):
    async def read(self):
        return "Read the lamp."


class Audit(Prompt, available=is_admin):
    def get(self, machine: str):
        return f"Audit {machine}"


class Explain(Prompt):
    def get(self, machine: str):
        return f"Explain {machine}"


class Factory(Server, name="factory", version="1", page_size=2, cache=Cache(60, "public")):
    tools = [Restart, Restarts, Machine, Catalog]
    resources = [Logs, LogOf, Manual]
    prompts = [Audit, Explain]


class Computing(Factory, name="computing", version="1"):
    """Lists by itself, without a thought of who asks."""

    async def list_tools(self, cursor, ctx):
        return self.registry.list_tools(cursor, include_hidden=True)

    async def list_prompts(self, cursor, ctx):
        return [*self.registry.prompts.specs.values()]

    async def can_watch(self, uri, ctx):
        return True


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


ALL_TOOLS = ["restart", "restarts", "stop", "state", "catalog"]
ALL_RESOURCES = ["logs://today", "manual://state", "logs://monday/1"]


@pytest.mark.parametrize(
    ("principal", "tools", "prompts", "resources", "templates"),
    [
        (GUEST, ["restarts", "state", "catalog"], ["explain"], ["manual://state"], 0),
        (ADMIN, ALL_TOOLS, ["audit", "explain"], ALL_RESOURCES, 1),
        (None, ["restarts", "state", "catalog"], ["explain"], ["manual://state"], 0),
    ],
    ids=["guest", "admin", "nobody"],
)
async def test_lists(version, principal, tools, prompts, resources, templates):
    """Each caller gets a list, in pages, of the items that it may use."""
    server = Factory()
    async with connect(server, principal=ADMIN, version=version) as client:
        assert [each.name for each in await client.list_tools()] == ALL_TOOLS
    async with connect(server, principal=principal, version=version) as client:
        assert [each.name for each in await client.list_tools()] == tools
        assert [each.name for each in await client.list_prompts()] == prompts
        assert [each.uri for each in await client.list_resources()] == resources
        assert len(await client.list_resource_templates()) == templates
        found = (await client.call_tool("catalog")).structured
        assert [each["name"] for each in found["tools"]] == tools
        assert len(found["resource_templates"]) == templates


@pytest.mark.parametrize("server", [Factory, Computing])
async def test_not_found(version, server):
    """An unavailable item is answered with the same text as an unknown one."""
    async with connect(server, principal=GUEST, version=version) as client:

        async def error_of(method, params):
            with pytest.raises(McpError) as caught:
                await client.request(method, params)
            return caught.value.code, caught.value.message

        for method, there, nowhere in [
            ("tools/call", {"name": "stop"}, {"name": "quit"}),
            ("prompts/get", {"name": "audit"}, {"name": "visit"}),
            ("resources/read", {"uri": "logs://today"}, {"uri": "cats://today"}),
            ("resources/read", {"uri": "logs://day/1"}, {"uri": "cats://day/1"}),
            ("completion/complete", ref("ref/prompt", "audit"), ref("ref/prompt", "visit")),
            (
                "completion/complete",
                ref("ref/resource", "logs://{day}/{line}"),
                ref("ref/resource", "cats://{day}/{line}"),
            ),
        ]:
            code, text = await error_of(method, nowhere)
            for unknown, known in [("quit", "stop"), ("visit", "audit"), ("cats", "logs")]:
                text = text.replace(unknown, known)
            assert await error_of(method, there) == (code, text)


def ref(kind, name):
    key = "name" if kind == "ref/prompt" else "uri"
    return {"ref": {"type": kind, key: name}, "argument": {"name": "machine", "value": ""}}


async def test_use(version):
    """A caller to whom an item is available uses it like any other item."""
    async with connect(Factory, principal=ADMIN, version=version) as client:
        assert (await client.call_tool("restart")).content[0].text == "all is well"
        assert (await client.read_resource("logs://monday/2")).contents[0].text == "monday, 2"
        found = await client.get_prompt("audit", {"machine": "press"})
        assert found.messages[0].content.text == "Audit press"


async def test_an_override_that_does_not_ask(version):
    """Items that are not available to the caller are removed from a list made by an override."""
    async with connect(Computing, principal=GUEST, version=version) as client:
        assert [each.name for each in await client.list_tools()] == ["restarts", "state", "catalog"]
        assert [each.name for each in await client.list_prompts()] == ["explain"]


@pytest.mark.parametrize("server", [Factory, Computing])
async def test_a_hidden_resource_cannot_be_watched(server):
    """An unavailable resource cannot be watched, whatever `can_watch` returns."""
    async with connect(server, principal=GUEST, version="2025-11-25") as client:
        with pytest.raises(McpError, match="Resource not found"):
            await client.subscribe("logs://today")
    uris = ["logs://today", "manual://state"]
    async with (
        connect(server, principal=GUEST) as client,
        client.listen(uris=uris) as agreed,
    ):
        assert agreed["resourceSubscriptions"] == ["manual://state"]


class Club(Server, name="club", version="1"):
    """Is open to its friends, who come and go while it serves."""

    resources = [Manual]

    def __init__(self):
        self.friends = {"eve"}
        is_friend = resource(Manual, available=lambda ctx: ctx.auth.subject in self.friends)
        self.resources.replace(is_friend)


class Hearing(ClientHandler):
    def __init__(self):
        self.send, self.receive = trio.open_memory_channel(10)

    async def handle_notification(self, method, params):
        await self.send.send(method.rpartition("/")[2])


async def test_a_watcher_who_lost_the_right(version):
    """An update is sent only to watchers to whom the resource is available at that time."""
    server, handler = Club(), Hearing()
    uri = "manual://state"
    async with connect(server, principal=GUEST, version=version, handler=handler) as client:
        if version == "2026-07-28":
            watching = client.listen(uris=[uri], resources=True)
        else:
            await client.subscribe(uri)
            watching = nullcontext()
        async with watching:
            server.notify_resource_updated(uri)
            assert await handler.receive.receive() == "updated"
            server.friends.clear()
            # Not available to this watcher: the list change arrives without a second update before
            # it.
            server.notify_resource_updated(uri)
            await trio.testing.wait_all_tasks_blocked(2 * MERGE_WINDOW)
            server.notify_changed("resources")
            assert await handler.receive.receive() == "list_changed"


class Login(Toolkit):
    @mcp
    async def login(self, ctx):
        await ctx.put_session("unlocked", True)
        ctx.notify.tools(here=True)
        ctx.notify.prompts(here=True)
        ctx.notify.resources(here=True)

    @mcp(available=has_unlocked)
    def secret(self):
        return "42"

    @mcp
    def tell(self, ctx):
        ctx.notify.tools(here=True)


class Door(Server, name="door", version="1"):
    tools = [Login]
    prompts = []
    resources = []


async def test_a_session_that_unlocks():
    """A session value takes effect with the next request, and only this client is notified."""
    mine, other = Hearing(), Hearing()
    server = Door()
    async with (
        connect(server, version="2025-11-25", handler=mine) as client,
        connect(server, version="2025-11-25", handler=other) as neighbour,
    ):
        with pytest.raises(McpError, match="Unknown tool: secret"):
            await client.call_tool("secret")
        await client.call_tool("login")
        assert {await mine.receive.receive() for _ in range(3)} == {"list_changed"}
        assert (await client.call_tool("secret")).content[0].text == "42"
        assert "secret" in [each.name for each in await client.list_tools()]
        assert "secret" not in [each.name for each in await neighbour.list_tools()]
        await client.call_tool("tell")  # from a thread
        assert await mine.receive.receive() == "list_changed"
        await trio.testing.wait_all_tasks_blocked()
        assert other.receive.statistics().current_buffer_used == 0


async def test_without_sessions():
    """On 2026-07-28 a call makes no item available to later ones, and no notice is sent."""
    handler = Hearing()
    async with connect(Door, handler=handler) as client, client.listen(tools=True):
        assert not (await client.call_tool("tell")).is_error
        with pytest.raises(McpError, match="Unknown tool: secret"):
            await client.call_tool("secret")
        await trio.testing.wait_all_tasks_blocked()
        assert handler.receive.statistics().current_buffer_used == 0


async def test_it_fails(caplog):
    """An item whose function raises is hidden; the log reports it a few times a minute at most."""

    def broken(ctx):
        raise RuntimeError("no directory")

    async def late():
        return True

    def forgetful(ctx):
        return late()

    class Failing(Server, name="failing", version="1"):
        tools = [tool(Restarts, available=broken), tool(Machine, available=forgetful)]

    with caplog.at_level(logging.ERROR, logger.name):
        async with connect(Failing) as client:
            for _ in range(20):
                assert await client.list_tools() == []
            with pytest.raises(McpError, match="Unknown tool"):
                await client.call_tool("restarts")
    assert "test_available.Restarts failed; it is hidden" in caplog.text
    assert "a coroutine was returned" in caplog.text
    assert len(caplog.records) < 20


async def test_caching():
    """A list that depends on its caller is private, and so are the contents of such a resource."""
    async with connect(Factory, principal=ADMIN) as client:
        for method, params in [
            ("tools/list", {}),
            ("prompts/list", {}),
            ("resources/list", {}),
            ("resources/templates/list", {}),
            ("resources/read", {"uri": "logs://today"}),
        ]:
            assert (await client.request(method, params))["cacheScope"] == "private"
        found = await client.request("resources/read", {"uri": "manual://state"})
        assert found["cacheScope"] == "public"


async def test_scopes_do_not_give_it_away():
    """The scopes of an unavailable item are not revealed."""

    class Both(Server, name="both", version="1"):
        tools = [tool(Restarts, requires="admin", available=is_admin)]

    async with connect(Both, principal=GUEST) as client:
        with pytest.raises(McpError, match="Unknown tool: restarts"):
            await client.call_tool("restarts")


@pytest.mark.parametrize(
    "wrong", [1, "admin", Restarts, lambda: True, lambda a, b: True, Factory.call_tool]
)
def test_refused_functions(wrong):
    """A function that cannot decide is refused where it is passed."""
    with pytest.raises(DefinitionError, match=r"available: must be a sync function of the context"):
        prompt(Explain, available=wrong)


def test_a_method_is_refused():
    """A method named `available` is refused: it would not be called."""
    with pytest.raises(DefinitionError, match=r"Closed\.available: a method is not read"):

        class Closed(Tool):
            def available(self, ctx):
                return False

            def call(self):
                return 1

    class Stock(Toolkit):
        @mcp
        def available(self, sku: str):
            """Is a tool of this name."""
            return 1

    class MoreStock(Stock):
        def available(self, sku: str):
            return 2

    assert [each["name"] for each in MoreStock.definitions()] == ["available"]


class TestDidYouMean:
    """Errors name the nearest item that the caller may use."""

    @pytest.mark.parametrize(
        ("method", "params", "meant"),
        [
            ("tools/call", {"name": "restrats"}, "'restarts'"),
            ("tools/call", {"name": "catalogue"}, "'catalog'"),
            ("prompts/get", {"name": "explian"}, "'explain'"),
            ("resources/read", {"uri": "manual://stat"}, "'manual://state'"),
            ("completion/complete", ref("ref/prompt", "explian"), "'explain'"),
        ],
    )
    async def test_a_slip(self, version, method, params, meant):
        """An error about a misspelt name suggests the right one."""
        async with connect(Factory, principal=GUEST, version=version) as client:
            with pytest.raises(McpError, match=rf"; did you mean {meant}\?"):
                await client.request(method, params)

    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("tools/call", {"name": "stopp"}),
            ("prompts/get", {"name": "audits"}),
            ("resources/read", {"uri": "logs://toady"}),
            ("resources/read", {"uri": "manual://state/of"}),
            ("resources/read", {"uri": "manuel://stat"}),
            ("completion/complete", ref("ref/resource", "logs://{day}/{lines}")),
        ],
    )
    async def test_nothing_that_the_caller_may_not_use(self, version, method, params):
        """Neither unavailable items nor names with larger differences are suggested."""
        async with connect(Factory, principal=GUEST, version=version) as client:
            with pytest.raises(McpError) as caught:
                await client.request(method, params)
            assert "did you mean" not in caught.value.message

    async def test_templates(self):
        """A misspelt URI suggests the template, for its fixed part and for another template."""
        async with connect(Factory, principal=ADMIN) as client:
            for method, params in [
                ("resources/read", {"uri": "log://monday/1"}),
                ("completion/complete", ref("ref/resource", "log://{day}/{line}")),
            ]:
                with pytest.raises(McpError, match=r"did you mean 'logs://\{day\}/\{line\}'\?"):
                    await client.request(method, params)

    async def test_hidden_and_scoped(self):
        """Neither hidden items nor items whose scopes the caller lacks are suggested."""

        class Closed(Server, name="closed", version="1"):
            tools = [tool(Restarts, hidden=True), tool(Machine, requires="admin")]

        async with connect(Closed, principal=GUEST) as client:
            for name in ("restart", "states"):
                with pytest.raises(McpError, match=rf"^Unknown tool: {name} \("):
                    await client.call_tool(name)

    @pytest.mark.parametrize("mounted", [False, True])
    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("tools/call", {"name": "restrats"}),
            ("prompts/get", {"name": "explian"}),
            ("resources/read", {"uri": "manual://stat"}),
            ("resources/read", {"uri": "log://monday/1"}),
            ("completion/complete", ref("ref/prompt", "explian")),
            ("completion/complete", ref("ref/resource", "log://{day}/{line}")),
        ],
    )
    async def test_lists_that_a_server_makes_itself(self, version, method, params, mounted):
        """Items that an override removes from a list are not suggested, even if registered."""

        class Careful(Factory, name="careful", version="1"):
            async def list_tools(self, cursor, ctx):
                return []

            async def call_tool(self, name, args, ctx):
                return await super().call_tool(name, args, ctx)

            async def list_prompts(self, cursor, ctx):
                return []

            async def list_resources(self, cursor, ctx):
                return []

            async def list_resource_templates(self, cursor, ctx):
                return []

        class Around(Server, name="around", version="1"):
            providers = [Mount(Careful)]

        server = Around if mounted else Careful
        async with connect(server, principal=ADMIN, version=version) as client:
            with pytest.raises(McpError) as caught:
                await client.request(method, params)
            assert "did you mean" not in caught.value.message

    async def test_arguments(self, version):
        """Missing arguments are matched with unknown ones, and so are names in completions."""
        async with connect(Factory, version=version) as client:
            with pytest.raises(
                McpError,
                match=r"^Missing required arguments: machine; was machine sent as 'machin'\?",
            ):
                await client.get_prompt("explain", {"machin": "press"})
            argument = {"name": "machnie", "value": ""}
            with pytest.raises(McpError, match=r"machnie; did you mean 'machine'\?"):
                await client.request(
                    "completion/complete", {**ref("ref/prompt", "explain"), "argument": argument}
                )
