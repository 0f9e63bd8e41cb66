"""Providers: lists computed for a caller, kept until they change, and called like others."""

import logging
from contextlib import nullcontext

import pytest
import trio
import trio.testing

from noizu_mcp import (
    Accept,
    Cache,
    ClientHandler,
    Completion,
    DefinitionError,
    McpError,
    Prompt,
    PromptProvider,
    Provider,
    Resource,
    ResourceProvider,
    ResourceTemplate,
    Server,
    Tool,
    ToolProvider,
    ToolResult,
    connect,
    resource,
    tool,
)
from noizu_mcp.auth import BearerAuth, TokenVerifier
from noizu_mcp.components import BaseProvider, Introduction, bind_definition
from noizu_mcp.engine import logger
from noizu_mcp.tools import Catalog
from noizu_mcp.types import (
    Principal,
    PromptArgument,
    PromptDefinition,
    Reference,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)

from ..kit.messages import message, modern_request
from ..transports.http.wire import serving as http_serving

SESSION, STATELESS = "2025-11-25", "2026-07-28"
ERAS = pytest.mark.parametrize("version", [SESSION, STATELESS])
ADA = Principal(subject="ada", scopes=["admin"])
EVE = Principal(subject="eve")


@pytest.fixture(params=[SESSION, STATELESS])
def version(request):
    return request.param


def run_skill(args, ctx):
    """Answer with the arguments."""
    return ToolResult(f"ran {args}")


class Skills(ToolProvider):
    """Lists the tools that stand in `store`."""

    def __init__(self, *names):
        self.store = {}
        self.asked = 0
        self.changed = None
        self.watching = 0
        self.add(*names)

    def add(self, *names, **options):
        for name in names:
            self.store[name] = tool(
                run_skill, name=f"skill:{name}", input_schema={"type": "object"}, **options
            )

    async def tools(self, ctx):
        self.asked += 1
        await trio.lowlevel.checkpoint()
        return list(self.store.values())

    async def watch(self, changed):
        self.changed = changed
        self.watching += 1
        try:
            await trio.sleep_forever()
        finally:
            self.watching -= 1

    def unknown(self, name):
        return f"Unknown skill: {name[6:]}" if name.startswith("skill:") else None


class Echo(Tool):
    def call(self, text: str) -> str:
        return text


def serving(*providers, **options):
    """Make a server with a tool of its own, and providers."""
    given = {"tools": [Echo, tool(Catalog, hidden=True)], **options}
    if providers:
        given["providers"] = list(providers)
    cls = type("Work", (Server,), given, name="work", version="1")
    return cls()


async def names(client):
    return [each.name for each in await client.list_tools()]


class Hearing(ClientHandler):
    """Counts the notices."""

    def __init__(self):
        self.heard = []

    async def handle_notification(self, method, params):
        self.heard.append(method.removeprefix("notifications/"))


def hearing(client, version, **wanted):
    """Listen to changes in the way of the revision."""
    return client.listen(**wanted) if version == STATELESS else nullcontext()


# Lists and calls


async def test_what_a_provider_lists_stands_behind_the_registrations(version):
    """A provider's items are listed after the registrations, in its order, and can be called."""
    async with connect(serving(Skills("a", "b")), version=version) as client:
        assert await names(client) == ["echo", "skill:a", "skill:b"]
        assert (await client.call_tool("skill:b", {"x": 1})).text == "ran {'x': 1}"


async def test_a_call_alone_finds_it(version):
    """A call finds a provider's tool without a list before it."""
    async with connect(serving(Skills("a")), version=version) as client:
        assert (await client.call_tool("skill:a", {})).text == "ran {}"


async def test_a_registration_asks_no_provider(version):
    """A call of a registered tool does not ask the providers."""
    skills = Skills("a")
    async with connect(serving(skills), version=version) as client:
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"
    assert skills.asked == 0


async def test_a_list_is_kept_until_it_changes(version):
    """A provider is asked once for each change, whatever is listed and called."""
    skills = Skills("a")
    async with connect(serving(skills), version=version) as client:
        for _ in range(2):
            assert await names(client) == ["echo", "skill:a"]
            await client.call_tool("skill:a", {})
        assert skills.asked == 1
        del skills.store["a"]
        skills.add("b")
        await client.call_tool("skill:a", {})  # no notice has been sent yet
        skills.changed()
        with pytest.raises(McpError, match="Unknown skill: a"):
            await client.call_tool("skill:a", {})
        assert await names(client) == ["echo", "skill:b"]
        assert skills.asked == 2


async def test_changes_are_told(version):
    """A change sends one notice from any thread, and the list after it is the new one."""
    skills, handler = Skills("a"), Hearing()
    async with (
        connect(serving(skills), version=version, handler=handler) as client,
        hearing(client, version, tools=True),
    ):
        await trio.testing.wait_all_tasks_blocked()
        skills.add("b")
        await trio.to_thread.run_sync(skills.changed, "tools")
        while not handler.heard:
            await trio.testing.wait_all_tasks_blocked()
        assert handler.heard == ["tools/list_changed"]
        assert await names(client) == ["echo", "skill:a", "skill:b"]


async def test_a_storm_of_changes(version, autojump_clock):
    """A thousand changes in a second cause few notices, and the last list is right."""
    skills, handler = Skills(), Hearing()
    async with (
        connect(serving(skills), version=version, handler=handler) as client,
        hearing(client, version, tools=True),
    ):
        await trio.testing.wait_all_tasks_blocked()
        for number in range(1000):
            skills.store.clear()
            skills.add(str(number))
            skills.changed()
            await trio.sleep(0.001)
        await trio.sleep(5)
        assert 2 <= len(handler.heard) <= 8
        assert await names(client) == ["echo", "skill:999"]
        assert skills.asked == 1


async def test_the_first_of_two_wins(version, caplog):
    """A registration precedes a provider, which precedes later ones; the log names the clash."""
    echo = tool(run_skill, name="echo", input_schema={"type": "object"})
    first, second = Skills("a"), Skills("a", "b")
    first.store["echo"] = echo
    async with connect(serving(first, second), version=version) as client:
        assert await names(client) == ["echo", "skill:a", "skill:b"]
        assert (await client.call_tool("echo", {"text": "mine"})).text == "mine"
    assert "the tool 'echo' of" in caplog.text
    assert "is left out: the name is taken by" in caplog.text


async def test_unknown_names(version):
    """A provider words the error for its own names; other errors are the usual ones with a hint."""
    async with connect(serving(Skills("a"), Bare(), PromptsOnly()), version=version) as client:
        for name, text in (
            ("skill:zzz", "Unknown skill: zzz"),
            ("nope", "Unknown tool: nope"),
            ("ecko", "Unknown tool: ecko; did you mean 'echo'?"),
        ):
            with pytest.raises(McpError) as caught:
                await client.call_tool(name, {})
            assert (caught.value.code, caught.value.message) == (-32602, text)
        with pytest.raises(McpError, match="Unknown skill: q"):
            await client.get_prompt("skill:q")


class Bare(ToolProvider):
    """Fails to word an error."""

    async def tools(self, ctx):
        return ()

    def unknown(self, name):
        raise RuntimeError("no words")


async def test_hidden_items_and_the_catalog(version):
    """A hidden item can be called, and the catalog contains it."""
    skills = Skills("a")
    skills.add("secret", hidden=True)
    async with connect(serving(skills), version=version) as client:
        found = await client.call_tool("catalog", {"type": "tools"})
        listed = [each["name"] for each in found.structured["tools"]]
        assert listed == ["echo", "catalog", "skill:a", "skill:secret"]
        assert await names(client) == ["echo", "skill:a"]
        assert (await client.call_tool("skill:secret", {})).text == "ran {}"


async def test_pages(version):
    """A page continues where the last one ended, also if the list has changed in between."""
    skills = Skills("a", "b", "c", "d")
    server = serving(skills, page_size=2)
    async with connect(server, version=version) as client:
        first = await client.list_tools(page="")
        assert [each.name for each in first] == ["echo", "skill:a"]
        skills.store = {"0": skills.store["a"], **skills.store}
        skills.store["new"] = tool(run_skill, name="new", input_schema={"type": "object"})
        skills.changed()
        rest = await client.list_tools(page=first.next_cursor)
        assert [each.name for each in rest] == ["skill:b", "skill:c"]
        del skills.store["c"]
        skills.changed()
        rest = await client.list_tools(page=rest.next_cursor)
        assert [each.name for each in rest] == ["skill:d", "new"]


async def test_items_are_read_once():
    """Objects that were in the list before are not bound again when others come and go."""
    made = []

    class Counted(Tool, name="counted"):
        def __init__(self):
            made.append(self)

        def call(self):
            return str(len(made))

    skills = Skills("a")
    skills.store["class"] = Counted
    async with connect(serving(skills)) as client:
        for _ in range(3):
            assert (await client.call_tool("counted", {})).text == "1"
            skills.add("b")
            skills.changed()
    assert skills.asked == 3


async def test_a_wrong_item_is_left_out(version, caplog):
    """Other items are listed, and the log has the reason."""
    skills = Skills("a")
    skills.store["wrong"] = 3
    async with connect(serving(skills), version=version) as client:
        assert await names(client) == ["echo", "skill:a"]
    assert "an item of Skills is left out" in caplog.text
    assert "3 is not a tool" in caplog.text


# Callers


class Personal(Skills):
    """Lists one tool for each caller, and one for administrators."""

    async def tools(self, ctx):
        self.asked += 1
        self.store.clear()
        self.add("nobody" if ctx.auth is None else ctx.auth.subject)
        if ctx.session.get("unlocked"):
            self.add("unlocked")
        found = list(self.store.values())
        if ctx.auth is not None:
            ctx.require("admin")
        return found


class Unlock(Tool):
    async def call(self, ctx):
        await ctx.put_session("unlocked", True)
        ctx.notify.tools(here=True)
        try:
            await ctx.read_resource("no:where")
        except McpError:
            return "unlocked"


async def test_each_caller_has_a_list(version):
    """Lists differ by caller; a caller without the provider's scopes gets none of its items."""
    personal = Personal()
    server = serving(personal)
    for principal, listed in ((None, ["skill:nobody"]), (ADA, ["skill:ada"]), (EVE, [])):
        async with connect(server, version=version, principal=principal) as client:
            assert await names(client) == ["echo", *listed]
            assert await names(client) == ["echo", *listed]
    assert personal.asked == 3
    assert server.registry.providers.health() == [("Personal", (), 0, {"tools": 0})]


async def test_a_list_of_a_session(caplog):
    """A list is requested again when session values change; on 2026-07-28 there are none."""
    handler = Hearing()
    server = serving(Personal(), ResourcesOnly(), tools=[Unlock])
    async with connect(server, version=SESSION, handler=handler) as client:
        assert await names(client) == ["unlock", "skill:nobody"]
        await client.call_tool("unlock", {})
        assert await names(client) == ["unlock", "skill:nobody", "skill:unlocked"]
        assert handler.heard == ["tools/list_changed"]


async def test_the_authors_own_notice_counts(version):
    """`notify_changed`, and `ctx.notify` for one session, ask the providers as `changed` does."""
    skills = Skills("a")

    class Say(Tool):
        def call(self, ctx):
            ctx.notify.tools(here=version == SESSION)

    server = serving(skills, tools=[Say])
    async with connect(server, version=version) as client:
        assert await names(client) == ["say", "skill:a"]
        skills.add("b")
        await client.call_tool("say", {})
        assert await names(client) == ["say", "skill:a", "skill:b"]
        skills.add("c")
        server.notify_changed("tools")
        server.notify_changed("prompts")
        assert (await names(client))[-1] == "skill:c"


async def test_lists_of_callers_are_private():
    """Shared caches may keep a list that is the same for all callers, and no other list."""
    for shared, scope in ((False, "private"), (True, "public")):
        skills = Skills("a")
        skills.shared = shared
        server = serving(skills, cache=Cache(60, "public"))
        async with connect(server, version=STATELESS) as client:
            for method in ("tools/list", "resources/list", "resources/templates/list"):
                if method.startswith("resources"):
                    server.resources.add(resource(run_echo, uri="a:b"))
                    server.resources.remove("a:b")
                    assert (await client.request(method, {}))["cacheScope"] == "public"
                else:
                    assert (await client.request(method, {}))["cacheScope"] == scope


async def test_a_shared_list_is_asked_for_once():
    """If many callers come at once after a change, the provider is asked once."""
    skills = Skills("a")
    skills.shared = True
    server = serving(skills)
    async with connect(server, version=STATELESS) as client, trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(names, client)
    assert skills.asked == 1


async def test_a_provider_for_each_caller_comes_and_goes(version):
    """Callers have separate lists while the provider is there, and one list without it."""
    shared, personal = Skills("a"), Personal()
    shared.shared = True
    server = serving(shared)
    async with connect(server, version=version, principal=ADA) as client:
        assert await names(client) == ["echo", "skill:a"]
        server.providers.add(personal)
        assert await names(client) == ["echo", "skill:a", "skill:ada"]
        async with connect(server, version=version) as other:
            assert await names(other) == ["echo", "skill:a", "skill:nobody"]
        shared.add("b")
        server.providers.remove(personal)
        server.notify_changed("tools")
        assert await names(client) == ["echo", "skill:a", "skill:b"]


class Anyone(TokenVerifier):
    """Takes every token for the name of a caller."""

    async def verify(self, token, request):
        return Principal(subject=token)


async def test_the_lists_of_few_principals_are_kept():
    """Lists of the last 256 principals are kept; for another one the provider is asked again."""
    skills = Skills("a")
    issuer = "https://auth.example.com"
    resource = "https://mcp.example.com/mcp"
    auth = BearerAuth(Anyone(), resource=resource, authorization_servers=[issuer])
    body, headers = modern_request(message("tools/list", {}, 1))
    async with http_serving(serving(skills), auth=auth) as wire:

        async def ask(name):
            given = {**headers, "authorization": f"Bearer {name}"}
            done = await wire.send("POST", body, given)
            listed = done.json["result"]["tools"]
            assert [each["name"] for each in listed] == ["echo", "skill:a"]
            return skills.asked

        assert [await ask("ada"), await ask("ada")] == [1, 1]
        for number in range(256):
            await ask(f"caller-{number}")
        assert [await ask("caller-0"), await ask("ada"), await ask("ada")] == [257, 258, 258]
        assert await ask("caller-0") == 259


async def test_an_older_answer_does_not_replace_a_newer_one():
    """If two lists overlap with a change, the list that was requested later is kept."""
    held, go_on = trio.Event(), trio.Event()

    class Slow(Skills):
        async def tools(self, ctx):
            found = list(self.store.values())
            self.asked += 1
            if self.asked == 1:
                held.set()
                await go_on.wait()
            return found

    slow = Slow("old")
    async with connect(serving(slow), version=STATELESS) as client, trio.open_nursery() as nursery:
        nursery.start_soon(names, client)
        await held.wait()
        slow.store.clear()
        slow.add("new")
        slow.changed()
        assert await names(client) == ["echo", "skill:new"]
        go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (await client.call_tool("skill:new", {})).text == "ran {}"
        assert slow.asked == 2


# Prompts and resources


class Ask(Prompt, name="ask"):
    def get(self, what: str, ctx):
        return f"ask {what}"

    def complete(self, argument, prefix, ctx):
        return [f"{prefix}!"]


class Orders(Resource, uri="db://orders", subscribable=True, requires="admin"):
    def read(self):
        return "orders"


class Table(ResourceTemplate, uri_template="db://{table}/schema"):
    def read(self, table: str):
        return f"schema of {table}"

    def complete(self, variable, prefix, ctx):
        return [f"{prefix}?"]

    def list(self, ctx):
        return ["db://a/schema"]


class Everything(Provider, shared=True):
    def __init__(self):
        self.changed = None
        self.listed = [Orders]

    async def prompts(self, ctx):
        return [Ask]

    async def resources(self, ctx):
        return self.listed

    async def templates(self, ctx):
        return [Table]

    async def watch(self, changed):
        self.changed = changed


class ResourcesOnly(ResourceProvider):
    """Has no templates."""

    async def resources(self, ctx):
        return [resource(lambda: "text", uri="only://this", name="only")]


class PromptsOnly(PromptProvider):
    async def prompts(self, ctx):
        return [Ask]


class Reader(Tool):
    async def call(self, uri: str, ctx):
        return (await ctx.read_resource(uri)).contents[0].text


async def test_prompts_resources_and_templates(version):
    """Items of all kinds are listed, used, completed and read within a handler."""
    server = serving(Everything(), ResourcesOnly(), tools=[Reader])
    async with connect(server, version=version, principal=ADA) as client:
        assert [each.name for each in await client.list_prompts()] == ["ask"]
        uris = [each.uri for each in await client.list_resources()]
        assert uris == ["db://orders", "only://this", "db://a/schema"]
        templates = await client.list_resource_templates()
        assert [each.uri_template for each in templates] == ["db://{table}/schema"]
        assert (await client.get_prompt("ask", {"what": "it"})).messages[0].content.text == "ask it"
        assert (await client.read_resource("db://b/schema")).contents[0].text == "schema of b"
        assert (await client.call_tool("reader", {"uri": "only://this"})).text == "text"
        ref = Reference("ref/prompt", name="ask")
        assert await client.complete(ref, "what", "x") == Completion(["x!"])
        ref = Reference("ref/resource", uri="db://{table}/schema")
        assert await client.complete(ref, "table", "x") == Completion(["x?"])


async def test_what_is_offered(version):
    """A provider makes a server offer its kinds, also before anything is listed."""
    for provider, offered in (
        (Everything(), {"prompts", "resources", "completions"}),
        (PromptsOnly(), {"prompts", "completions"}),
        (ResourcesOnly(), {"resources", "completions"}),
    ):
        cls = type("Offering", (Server,), {"providers": [provider]}, name="o", version="1")
        async with connect(cls, version=version) as client:
            assert client.capabilities.to_wire().keys() == offered | {"logging"}
    assert Everything().offers == {"prompts", "resources"}


async def test_scopes_of_a_resource(version):
    """A caller without the scopes of a provider's resource can neither read nor watch it."""
    async with connect(serving(Everything()), version=version, principal=EVE) as client:
        with pytest.raises(McpError, match="Insufficient scope: resources/read needs admin"):
            await client.read_resource("db://orders")
        if version == STATELESS:
            async with client.listen(uris=["db://orders"]) as agreed:
                assert agreed == {}
        else:
            with pytest.raises(McpError, match="needs admin"):
                await client.subscribe("db://orders")


async def test_watching_a_resource(version):
    """Watchers are notified of changes for as long as the provider lists the resource."""
    provider, handler = Everything(), Hearing()
    server = serving(provider)
    uri = "db://orders"
    async with connect(server, version=version, principal=ADA, handler=handler) as client:
        if version == SESSION:
            await client.subscribe(uri)
        async with hearing(client, version, uris=[uri], resources=True):
            await trio.testing.wait_all_tasks_blocked()
            provider.changed.resource_updated(uri)
            await trio.testing.wait_all_tasks_blocked()
            assert handler.heard == ["resources/updated"]
            with pytest.raises(McpError):
                await client.read_resource("db://nothing")
        if version == SESSION:
            await client.unsubscribe(uri)
            with pytest.raises(McpError, match="Resource not found"):
                await client.subscribe("db://nothing")


@pytest.mark.parametrize("unavailable", [True, False])
async def test_a_resource_that_is_not_available(version, unavailable):
    """An unavailable resource cannot be watched, as if the provider had not listed it."""
    provider = Everything()
    gate = (lambda ctx: not unavailable) if unavailable else None
    provider.listed = [resource(Orders, requires=None, available=gate)]
    async with connect(serving(provider), version=version) as client:
        if version == STATELESS:
            async with client.listen(uris=["db://orders"]) as agreed:
                assert bool(agreed) != unavailable
        elif unavailable:
            with pytest.raises(McpError, match="Resource not found"):
                await client.subscribe("db://orders")
        else:
            await client.subscribe("db://orders")


async def test_definitions_with_functions(version):
    """A provider may list raw definitions with functions that take the arguments as sent."""

    async def call(arguments, ctx):
        return ToolResult("called", structured=arguments["x"])

    async def get(arguments, ctx):
        return f"got {arguments}"

    async def read(uri, *rest):
        return f"{uri} {rest[0]}" if len(rest) == 2 else uri

    async def complete(name, prefix, ctx):
        return [f"{name}={prefix}"]

    class Upstream(Provider):
        async def tools(self, ctx):
            definition = ToolDefinition(
                "far", input_schema={"type": "object"}, output_schema={"type": "array"}
            )
            return [bind_definition(definition, call, timeout=3.0)]

        async def prompts(self, ctx):
            arguments = (PromptArgument("a", required=True),)
            return [bind_definition(PromptDefinition("p", arguments=arguments), get, complete)]

        async def resources(self, ctx):
            return [bind_definition(ResourceDefinition("x:1", "one"), read)]

        async def templates(self, ctx):
            return [
                bind_definition(ResourceTemplateDefinition("y:{n}", "y"), read, complete),
                bind_definition(ResourceTemplateDefinition("z:{n}", "z"), read),
            ]

    async with connect(serving(Upstream()), version=version) as client:
        result = await client.call_tool("far", {"x": [1]})
        assert result.text == "called"
        assert result.structured == ([1] if version == STATELESS else {"result": [1]})
        assert (await client.get_prompt("p", {})).messages[0].content.text == "got {}"
        assert (await client.read_resource("x:1")).contents[0].text == "x:1"
        assert (await client.read_resource("y:2")).contents[0].text == "y:2 {'n': '2'}"
        ref = Reference("ref/prompt", name="p")
        assert await client.complete(ref, "a", "x") == Completion(["a=x"])
        ref = Reference("ref/resource", uri="z:{n}")
        assert await client.complete(ref, "n", "x") == Completion([])


# Overrides, questions, tasks


class Computing(Server, name="computing", version="1", loop="asyncio"):
    """Overrides methods, on asyncio; the defaults find what providers offer."""

    providers = [Everything(), Skills("a")]

    async def call_tool(self, name, args, ctx):
        await self.registry.prepare(ctx, "tools", name)
        assert self.registry.find_tool(name, ctx) is not None
        return await super().call_tool(name, args, ctx)

    async def read_resource(self, uri, ctx):
        return await super().read_resource(uri, ctx)

    async def get_prompt(self, name, args, ctx):
        return await super().get_prompt(name, args, ctx)


async def test_overrides_find_what_providers_offer(version):
    """The methods of `Server` and of its registry include the items for the request's caller."""
    async with connect(Computing, version=version, principal=ADA) as client:
        assert (await client.call_tool("skill:a", {})).text == "ran {}"
        assert (await client.read_resource("db://orders")).contents[0].text == "orders"
        assert (await client.get_prompt("ask", {"what": "x"})).messages[0].content.text == "ask x"


class Asking(ToolProvider):
    """Lists a tool that asks, which another revision of the list replaces."""

    def __init__(self):
        self.runs = 0
        self.changed = None
        self.listed = [tool(self.greet)]

    async def greet(self, ctx) -> str:
        self.runs += 1
        answer = await ctx.elicit("Your name?", {"name": str})
        return f"Hello {answer.content['name']}"

    async def tools(self, ctx):
        return self.listed

    async def watch(self, changed):
        self.changed = changed


class Answering(ClientHandler):
    def __init__(self, asking, *, changes):
        self.asking = asking
        self.changes = changes

    async def handle_elicitation(self, params):
        if self.changes:
            self.asking.changed()
        return Accept({"name": "Ada"})


@pytest.mark.parametrize("changes", [False, True])
async def test_a_question_of_a_tool(version, changes):
    """The call resumes with the answer; it runs again if its provider must be asked meanwhile."""
    asking = Asking()
    handler = Answering(asking, changes=changes)
    async with connect(serving(asking), version=version, handler=handler) as client:
        assert (await client.call_tool("greet", {})).text == "Hello Ada"
    assert asking.runs == (2 if changes and version == STATELESS else 1)


async def test_a_call_that_runs_while_its_tool_is_removed(version):
    """A call of a tool that is removed meanwhile ends normally."""
    began, go_on = trio.Event(), trio.Event()
    skills = Skills()

    async def wait() -> str:
        began.set()
        await go_on.wait()
        return "done"

    skills.store["wait"] = tool(wait)
    async with connect(serving(skills), version=version) as client, trio.open_nursery() as nursery:

        @nursery.start_soon
        async def call():
            assert (await client.call_tool("wait", {})).text == "done"

        await began.wait()
        skills.store.clear()
        skills.changed()
        with pytest.raises(McpError, match="Unknown tool: wait"):
            await client.call_tool("wait", {})
        go_on.set()


async def test_a_tool_with_tasks():
    """A server offers tasks once a provider has listed a tool with tasks."""
    skills = Skills()
    skills.store["long"] = tool(
        run_skill, name="long", input_schema={"type": "object"}, task="optional"
    )
    server = serving(skills)
    async with connect(server, version=STATELESS) as client:
        assert not server.registry.has_tasks
        await names(client)
        assert server.registry.has_tasks


async def test_listeners_see_the_tool(version):
    """The events of a request name the provider's tool, once it is known."""
    seen = []
    server = serving(Skills("a"), telemetry=[seen.append])
    async with connect(server, version=version) as client:
        await names(client)
        await client.call_tool("skill:a", {})
    assert "skill:a" in [event.target for event in seen]


# The running set


async def test_adding_and_removing_providers(version):
    """Clients are notified, the tools appear and vanish, and the watch begins and ends."""
    handler, skills = Hearing(), Skills("a")
    server = serving()
    server.tools.add(run_echo)
    assert "providers" not in vars(server)
    async with (
        connect(server, version=version, handler=handler) as client,
        hearing(client, version, tools=True),
    ):
        server.providers.add(skills)
        assert (skills in server.providers, len(server.providers)) == (True, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert (list(server.providers), skills.watching) == ([skills], 1)
        assert handler.heard == ["tools/list_changed"]
        assert await names(client) == ["echo", "run_echo", "skill:a"]
        server.tools.add(tool(run_echo, name="another"))
        assert await names(client) == ["echo", "run_echo", "another", "skill:a"]
        await trio.to_thread.run_sync(server.providers.remove, skills)
        await trio.testing.wait_all_tasks_blocked()
        assert skills.watching == 0
        assert await names(client) == ["echo", "run_echo", "another"]
        asked = skills.asked
        skills.changed()
        assert await names(client) == ["echo", "run_echo", "another"]
        assert skills.asked == asked


def run_echo() -> str:
    """Return nothing."""
    return ""


class Misspelt(ToolProvider):
    async def tool(self, ctx):
        return ()


class Empty(BaseProvider):
    pass


class Introducing(BaseProvider):
    """It has instructions, and no lists."""

    async def introduce(self, ctx):
        return Introduction("Be kind.")


def test_wrong_providers():
    """A provider must be an instance, and be in the list once."""
    server, skills = serving(), Skills("a")
    server.providers.add(skills)
    for item, text in (
        (Skills, "is a class; write an instance: Skills(…)"),
        (3, "3 is not a provider; write class …(ToolProvider)"),
        (skills, "Skills is in the list already"),
        (Misspelt(), "Misspelt lists nothing; write `async def tools(self, ctx)`"),
        (Empty(), "Empty lists nothing; write class …(ToolProvider)"),
    ):
        with pytest.raises(DefinitionError) as caught:
            server.providers.add(item)
        assert [problem.text for problem in caught.value.problems] == [text]
    with pytest.raises(ValueError, match="is not among the providers"):
        server.providers.remove(Skills())
    with pytest.raises(ValueError, match="Skills has no list 'prompts'; there are: tools"):
        server.providers.entries[0]("prompts")


async def test_a_provider_of_instructions_alone(version):
    """A provider without lists can give instructions to clients."""
    server = serving()
    server.providers.add(Introducing())
    async with connect(server, version=version) as client:
        assert "Be kind." in client.instructions


WRONG = {
    "option": (
        "class P(ToolProvider, tiemout=3): pass",
        "P.tiemout: unknown option; did you mean timeout?",
    ),
    "timeout": (
        "class P(ToolProvider, timeout=0): pass",
        "P.timeout: must be seconds, above 0, got 0",
    ),
    "stale": (
        "class P(ToolProvider):\n    stale = True",
        "P.stale: must be seconds, 0 or more, got True",
    ),
    "shared": (
        "class P(ToolProvider, shared=3): pass",
        "P.shared: must be True or False, got 3",
    ),
    "loop": (
        "class P(ToolProvider):\n    loop = 'asyncio'",
        "P.loop: a provider runs on trio; write `await noizu_mcp.aio.run(function, …)`",
    ),
    "sync": (
        "class P(ToolProvider):\n    def tools(self, ctx): ...",
        "P.tools: must be `async def tools(self, ctx)`",
    ),
    "arity": (
        "class P(ToolProvider):\n    async def watch(self): ...",
        "P.watch: must be `async def watch(self, changed)`",
    ),
    "value": (
        "class P(ToolProvider):\n    unknown = 3",
        "P.unknown: must be `def unknown(self, name)`",
    ),
    "kind": (
        "class P(ToolProvider):\n    async def templates(self, ctx): ...",
        "P.templates: is not read; make it a ResourceProvider",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_classes(name):
    """Every problem of a provider class is named when the class is made."""
    source, message = WRONG[name]
    with pytest.raises(DefinitionError) as caught:
        exec(source, {"ToolProvider": ToolProvider})
    (problem,) = caught.value.problems
    assert f"{problem.where}: {problem.text}" == message


async def test_the_bases_list_nothing():
    """A subclass may call the method that it overrides."""
    base = Provider()
    for method in (base.tools, base.prompts, base.resources, base.templates):
        assert await method(None) == ()
    assert await base.watch(None) is None


async def test_a_provider_of_templates_alone(version):
    """It need not define `resources`."""

    class Templates(ResourceProvider):
        async def templates(self, ctx):
            return [Table]

    async with connect(serving(Templates()), version=version) as client:
        assert (await client.read_resource("db://b/schema")).contents[0].text == "schema of b"


def test_options_are_keywords_or_attributes():
    """An option is a keyword or an attribute of the class; a property is the author's."""

    class Quick(ToolProvider, timeout=1.0, stale=2.0, shared=True):
        pass

    class Computed(Quick):
        @property
        def stale(self):
            return 5.0

    assert (Quick().timeout, Quick().stale, Quick().shared) == (1.0, 2.0, True)
    assert (Computed().stale, Computed().name) == (5.0, "Computed")


@pytest.fixture(autouse=True)
def _logged(caplog):
    caplog.set_level(logging.INFO, logger=logger.name)
