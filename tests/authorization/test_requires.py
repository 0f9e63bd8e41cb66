"""The option `requires`: where it is read, and checks before any code of the author."""

import sys
from functools import partial

import pytest
import trio

from noizu_mcp import (
    Cache,
    DefinitionError,
    McpError,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    SkillFolder,
    Stdio,
    Tool,
    Toolkit,
    connect,
    mcp,
    prompt,
    resource,
    resource_template,
    tool,
)
from noizu_mcp.auth import InsufficientScope, Principal, RequireScopes
from noizu_mcp.jsonrpc import INSUFFICIENT_SCOPE
from noizu_mcp.transports import memory_pair, serve_descriptors
from noizu_mcp.types import ClientCapabilities, Reference

VERSIONS = ("2025-11-25", "2026-07-28")
READER = Principal(subject="ada", scopes=["docs:read"])
WRITER = Principal(subject="ada", scopes=["docs:read", "docs:write"])


async def refused(work):
    """Return the scopes that a refused request lacks."""
    with pytest.raises(McpError) as caught:
        await work
    assert caught.value.code == INSUFFICIENT_SCOPE
    return caught.value.data["requiredScopes"]


# Where it is set


@pytest.mark.parametrize(
    "given",
    ["docs:read", ["docs:read"], ("docs:read",), RequireScopes("docs:read")],
    ids=["text", "list", "tuple", "object"],
)
def test_every_component_takes_it(given):
    """Scopes may be an object, one name, or several."""

    class Read(Tool, requires=given):
        def call(self): ...

    class Kit(Toolkit, requires="kit"):
        @mcp(requires=given)
        def own(self): ...

        @mcp
        def inherited(self): ...

    class File(Resource, uri="a://b", requires=given):
        def read(self): ...

    class Files(ResourceTemplate, uri_template="a://b/{c}", requires=given):
        def read(self, uri, args): ...

    class Ask(Prompt, requires=given):
        def get(self): ...

    class All(Server, name="all", version="1", requires=given):
        tools = [Read, Kit]
        resources = [File, Files]
        prompts = [Ask]

    registry, wanted = All().registry, RequireScopes("docs:read")
    assert All.options.requires == wanted
    assert {name: spec.requires for name, spec in registry.tools.specs.items()} == {
        "read": wanted,
        "own": wanted,
        "inherited": RequireScopes("kit"),
    }
    shelves = (registry.resources, registry.templates, registry.prompts)
    assert [spec.requires for shelf in shelves for spec in shelf.specs.values()] == [wanted] * 3


def test_a_registration_replaces_it():
    """None removes it; without the option it stays."""

    class Read(Tool, requires="a"):
        def call(self): ...

    class File(Resource, uri="a://b", requires="a"):
        def read(self): ...

    class Files(ResourceTemplate, uri_template="a://b/{c}", requires="a"):
        def read(self, uri, args): ...

    class Ask(Prompt, requires="a"):
        def get(self): ...

    class All(Server, name="all", version="1"):
        tools = [tool(Read, name="other", requires=["b", "c"]), tool(Read, requires=None)]
        resources = [resource(File, requires="b"), resource_template(Files, requires="b")]
        prompts = [prompt(Ask, requires=None), prompt(Ask, name="same")]

    registry = All().registry
    tools = [spec.requires for spec in registry.tools.specs.values()]
    assert tools == [RequireScopes("b", "c"), None]
    shelves = (registry.resources, registry.templates)
    found = [spec.requires for shelf in shelves for spec in shelf.specs.values()]
    assert found == [RequireScopes("b")] * 2
    prompts = [spec.requires for spec in registry.prompts.specs.values()]
    assert prompts == [None, RequireScopes("a")]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (7, "must be RequireScopes('read'), the name of a scope or a list of names, got 7"),
        ({"a"}, "must be RequireScopes('read'), the name of a scope or a list of names, got {'a'}"),
        ("", "'' is not the name of a scope"),
        ("two words", "'two words' is not the name of a scope: RFC 6749 allows no spaces"),
        ([], "RequireScopes needs the name of a scope: RequireScopes('read')"),
        ([1], "1 is not the name of a scope"),
    ],
)
def test_what_is_wrong_is_said_by_the_class(given, text):
    """The class statement of a tool or a server refuses it."""
    with pytest.raises(DefinitionError) as of_tool:

        class Bad(Tool, requires=given):
            def call(self): ...

    with pytest.raises(DefinitionError) as of_server:

        class Worse(Server, name="worse", version="1", requires=given):
            pass

    assert f"Bad.requires: {text}" in str(of_tool.value)
    assert f"Worse.requires: {text}" in str(of_server.value)


# What is checked


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tool_is_called_by_who_may(docs, version):
    """Other callers get all required scopes, before arguments are checked."""
    async with connect(docs, version=version, principal=READER) as client:
        scopes = await refused(client.call_tool("write", {"bad": 1}))
        free = await client.call_tool("draft")
    async with connect(docs, version=version, principal=WRITER) as client:
        result = await client.call_tool("write")

    assert scopes == ["docs:read", "docs:write"]
    assert free.content[0].text == result.content[0].text == "written"


async def test_one_scope_may_stand_for_another(docs):
    """A `hierarchy` of scopes applies to calls."""
    admin = Principal(subject="ada", scopes=["docs:read", "docs:admin"])
    async with connect(docs, principal=admin) as client:
        result = await client.call_tool("write")

    assert result.content[0].text == "written"


@pytest.mark.parametrize("version", VERSIONS)
async def test_everything_else_is_asked_too(docs, version):
    """Resources, templates, prompts and completion are checked; items without scopes are free."""
    prompt_, page = Reference.prompt("review"), Reference.resource("docs://pages/{name}")
    async with connect(docs, version=version, principal=READER) as client:
        denied = [
            await refused(work)
            for work in (
                client.read_resource("docs://secret"),
                client.read_resource("docs://pages/one"),
                client.get_prompt("review", {"code": "x"}),
                client.complete(prompt_, "code", "p"),
                client.complete(page, "name", "o"),
            )
        ]
        public = await client.read_resource("docs://public")
    async with connect(docs, version=version, principal=WRITER) as client:
        secret = await client.read_resource("docs://secret")
        one = await client.read_resource("docs://pages/one")
        review = await client.get_prompt("review", {"code": "x"})
        values = [
            *(await client.complete(prompt_, "code", "p")).values,
            *(await client.complete(page, "name", "o")).values,
        ]

    assert denied == [["docs:read", "docs:write"]] * 5
    texts = [each.contents[0].text for each in (public, secret, one)]
    assert texts == ["hello", "42", "one"]
    assert review.messages[0].content.text == "x"
    assert values == ["python", "one"]


async def test_lists_show_what_takes_scopes(docs):
    """Items that need scopes are listed, but not what their templates compute."""
    async with connect(docs, principal=READER) as client:
        tools = [each.name for each in await client.list_tools()]
        prompts = [each.name for each in await client.list_prompts()]
        templates = [each.uri_template for each in await client.list_resource_templates()]
        resources = [each.uri for each in await client.list_resources()]
    async with connect(docs, principal=WRITER) as client:
        computed = [each.uri for each in await client.list_resources()]

    assert {"write", "publish"} <= {*tools}
    assert (prompts, templates) == (["review"], ["docs://pages/{name}"])
    assert resources == ["docs://secret", "docs://public"]
    assert computed == [*resources, "docs://pages/one"]


async def test_handlers_reach_no_more_than_their_callers(docs):
    """`ctx.read_resource` reads with the principal of the request."""
    async with connect(docs, principal=READER) as client:
        scopes = await refused(client.call_tool("peek"))
    async with connect(docs, principal=WRITER) as client:
        result = await client.call_tool("peek")

    assert scopes == ["docs:read", "docs:write"]
    assert result.content[0].text == "42"


async def test_who_may_not_read_may_not_watch(docs):
    """A subscription is refused; a listen request goes on without the resource."""
    uris = ["docs://secret", "docs://public"]
    async with connect(docs, version="2025-11-25", principal=READER) as client:
        scopes = await refused(client.subscribe(uris[0]))
        await client.subscribe(uris[1])
        await client.unsubscribe(uris[0])  # other URIs are accepted
    agreed = []
    for who in (READER, WRITER):
        async with (
            connect(docs, version="2026-07-28", principal=who) as client,
            client.listen(uris=[*uris, "docs://nowhere"]) as listening,
        ):
            agreed.append(sorted(listening["resourceSubscriptions"]))

    assert scopes == ["docs:read", "docs:write"]
    assert agreed == [["docs://public"], ["docs://public", "docs://secret"]]


async def test_a_server_may_refuse_to_be_watched():
    """`InsufficientScope` from `subscribe` leaves the resource out."""

    class Own(Server, name="own", version="1"):
        async def read_resource(self, uri, ctx):
            return ""

        async def subscribe(self, uri, ctx):
            if uri.endswith("secret"):
                raise InsufficientScope("own:watch")

    async with (
        connect(Own, version="2026-07-28") as client,
        client.listen(uris=["a://secret", "a://b"]) as listening,
    ):
        assert listening["resourceSubscriptions"] == ["a://b"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_server_asks_for_every_request(docs, version):
    """Only discovery and `ping` are exempt."""
    async with connect(docs, version=version, principal=Principal(subject="cyd")) as client:
        scopes = [await refused(client.list_tools()), await refused(client.call_tool("write"))]
        scopes.append(await refused(client.call_tool("nothing")))
        if version == "2025-11-25":
            await client.ping()

    assert scopes == [["docs:read"], ["docs:read", "docs:write"], ["docs:read"]]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": 7}),
        ("resources/read", {}),
        ("prompts/get", {"name": None}),
        ("completion/complete", {"ref": "x"}),
        ("completion/complete", {"ref": {"type": "ref/resource"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": []}}),
    ],
)
async def test_malformed_requests_take_what_the_server_does(docs, method, params):
    """They need the scopes of the server; with them the error is the usual one."""
    async with connect(docs, principal=Principal(subject="cyd")) as client:
        scopes = await refused(client.request(method, params))
    async with connect(docs, principal=READER) as client:
        with pytest.raises(McpError) as caught:
            await client.request(method, params)

    assert scopes == ["docs:read"]
    assert caught.value.code == -32602


class Overriding(Server, name="overriding", version="1"):
    """Serves what is registered under other names, too."""

    async def call_tool(self, name, args, ctx):
        return await super().call_tool(name.removeprefix("my-"), args, ctx)

    async def read_resource(self, uri, ctx):
        return await super().read_resource(uri.removeprefix("my-"), ctx)

    async def get_prompt(self, name, args, ctx):
        return await super().get_prompt(name.removeprefix("my-"), args, ctx)

    async def complete(self, ref, argument, prefix, ctx):
        page, review = Reference.resource("docs://pages/{name}"), Reference.prompt("review")
        return await super().complete(page if ref.uri else review, argument, prefix, ctx)


async def test_overrides_are_asked_like_the_rest(docs):
    """A registered component keeps its scopes, whichever override answers."""

    class Own(Overriding, name="own", version="1"):
        tools, resources, prompts = type(docs).tools, type(docs).resources, type(docs).prompts

    async with connect(Own, principal=READER) as client:
        for work in (
            client.call_tool("write"),
            client.call_tool("my-write"),
            client.call_tool("peek"),
            client.read_resource("docs://secret"),
            client.read_resource("my-docs://secret"),
            client.get_prompt("review", {"code": "x"}),
            client.get_prompt("my-review", {"code": "x"}),
            client.complete(Reference.prompt("other"), "code", ""),
            client.complete(Reference.resource("a://other/{name}"), "name", ""),
        ):
            assert await refused(work) == ["docs:write"]
    async with connect(Own, principal=WRITER) as client:
        result = await client.call_tool("peek")
        secret = await client.read_resource("my-docs://secret")

    assert result.content[0].text == secret.contents[0].text == "42"


async def test_an_override_that_computes_is_asked_before(docs):
    """A registered resource keeps its scopes, also if an override replaces its `read`."""

    class Computing(Server, name="computing", version="1"):
        tools, resources = type(docs).tools, type(docs).resources

        async def read_resource(self, uri, ctx):
            return "computed"

    async with connect(Computing, principal=READER) as client:
        for work in (client.read_resource("docs://secret"), client.call_tool("peek")):
            assert await refused(work) == ["docs:write"]
        public = await client.read_resource("docs://anything")

    assert public.contents[0].text == "computed"


async def test_what_is_registered_later_is_asked_too():
    """The first component with scopes may be added while the server runs."""

    class Write(Tool, requires="docs:write"):
        def call(self): ...

    class Empty(Server, name="empty", version="1"):
        tools = []

    server = Empty()
    server.tools.add(Write)
    async with connect(server, principal=READER) as client:
        assert await refused(client.call_tool("write")) == ["docs:write"]
        server.tools.replace(tool(Write, requires=None))
        await client.call_tool("write")


@pytest.mark.parametrize(
    ("scope", "code", "text"),
    [
        (
            "docs:late",
            INSUFFICIENT_SCOPE,
            "Insufficient scope: tools/call needs docs:read docs:late",
        ),
        ("two words", -32603, "Request handler failed"),
    ],
)
async def test_a_task_may_find_a_scope_missing(scope, code, text):
    """It begins for allowed callers, and fails if its handler lacks a scope."""

    class Slow(Tool, requires="docs:read", task="required"):
        async def call(self):
            raise InsufficientScope(scope)

    class Tasks(Server, name="tasks", version="1"):
        tools = [Slow]

    knows_tasks = ClientCapabilities(extensions={"io.modelcontextprotocol/tasks": {}})
    given = {"capabilities": knows_tasks, "version": "2026-07-28"}
    async with connect(Tasks, principal=Principal(subject="cyd"), **given) as client:
        assert await refused(client.request("tools/call", {"name": "slow"})) == ["docs:read"]
    async with connect(Tasks, principal=READER, **given) as client:
        task = await client.request("tools/call", {"name": "slow"})
        await trio.testing.wait_all_tasks_blocked()
        ended = await client.request("tasks/get", {"taskId": task["taskId"]})

    assert (ended["status"], ended["error"]["code"]) == ("failed", code)
    assert ended["error"]["message"] == text


# Callers without authentication


@pytest.mark.parametrize("version", VERSIONS)
async def test_anonymous_callers_hold_no_scopes(docs, version, caplog):
    """Unless the serving program passes a principal, scopes refuse."""
    async with connect(docs, version=version) as client:
        with pytest.raises(McpError, match="nobody has verified who is calling"):
            await client.call_tool("whoami")

    assert "nobody verifies who calls on memory" in caplog.text


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_program_says_who_is_calling(docs, version):
    """It is passed to `connect` in memory."""
    async with connect(docs, version=version, principal=READER) as client:
        result = await client.call_tool("whoami")

    assert result.content[0].text == "ada"


async def test_the_program_says_who_is_calling_on_descriptors(docs, pipe_stream):
    """It is passed as to `serve_stdio`."""
    stream, read_fd, write_fd = pipe_stream
    async with trio.open_nursery() as nursery:
        serve = partial(serve_descriptors, docs, read_fd, write_fd, principal=READER)
        nursery.start_soon(serve)
        async with connect(stream) as client:
            result = await client.call_tool("whoami")

    assert result.content[0].text == "ada"


PROGRAM = """
from noizu_mcp import Server, Tool
from noizu_mcp.auth import Principal

class Whoami(Tool, requires="read"):
    def call(self, args, ctx):
        return ctx.auth.subject

class Program(Server, name="program", version="1"):
    tools = [Whoami]

Program().run(principal=Principal(subject="ada", scopes=["read"]))
"""


async def test_the_program_says_who_is_calling_on_stdio():
    """On stdio it is passed to `run`."""
    async with connect(Stdio(sys.executable, "-c", PROGRAM)) as client:
        result = await client.call_tool("whoami")

    assert result.content[0].text == "ada"


async def test_init_hears_it(docs):
    """`ctx.auth` is set in `init`."""
    seen = []

    class Greeting(Server, name="greeting", version="1"):
        async def init(self, ctx):
            seen.append(ctx.auth)

    async with connect(Greeting, version="2025-11-25", principal=READER) as client:
        await client.ping()
        await trio.testing.wait_all_tasks_blocked()

    assert seen == [READER]


async def test_a_principal_is_for_servers_in_memory():
    """Every other server authenticates by itself."""
    ours, _ = memory_pair()
    for target in (Stdio("true"), ours):
        with pytest.raises(TypeError, match="principal= is for a server in memory"):
            async with connect(target, principal=READER):
                pass


# Caching


EVERYTHING_PUBLIC = Cache(ttl=300, scope="public")


class Open(Resource, uri="docs://open"):
    def read(self):
        return "open"


class Board(Resource, uri="docs://board", requires="docs:read"):
    def read(self):
        return "for the board"


class Minutes(ResourceTemplate, uri_template="docs://minutes/{day}", requires="docs:read"):
    def read(self, uri, args):
        return args.day


async def scope_of(client, method, **params):
    """Return the cache scope of a result, as the client reads it."""
    result = await client.request(method, params)
    assert result["ttlMs"] == 300_000
    return result["cacheScope"]


async def test_what_needs_scopes_is_for_its_caller_only():
    """It is private, whatever `cache` says, since shared caches check no scopes."""

    class Docs(Server, name="docs", version="1", cache=EVERYTHING_PUBLIC):
        resources = [Open, Board, Minutes]

    async with connect(Docs, principal=READER) as client:
        found = {
            uri: await scope_of(client, "resources/read", uri=uri)
            for uri in ("docs://open", "docs://board", "docs://minutes/monday")
        }
        listed = await scope_of(client, "resources/list")

    assert found == {
        "docs://open": "public",
        "docs://board": "private",
        "docs://minutes/monday": "private",
    }
    assert listed == "public"  # its definition is listed to every caller


async def test_an_override_guards_no_less():
    """A registered resource needs its scopes, whichever code reads it."""

    class Docs(Server, name="docs", version="1", cache=EVERYTHING_PUBLIC):
        resources = [Board]

        async def read_resource(self, uri, ctx):
            return "computed"

    async with connect(Docs, principal=READER) as client:
        assert await scope_of(client, "resources/read", uri="docs://board") == "private"
        assert await scope_of(client, "resources/read", uri="docs://other") == "public"


async def test_what_a_server_requires_guards_all_but_discovery():
    """Lists are protected, too; only `server/discover` answers every caller."""

    class Docs(Server, name="docs", version="1", cache=EVERYTHING_PUBLIC, requires="docs:read"):
        resources = [Open, Minutes]

    async with connect(Docs, principal=READER) as client:
        assert await scope_of(client, "resources/read", uri="docs://open") == "private"
        for kind in ("resources", "resources/templates"):
            assert await scope_of(client, f"{kind}/list") == "private"
        assert await scope_of(client, "server/discover") == "public"


async def test_a_list_that_is_computed_for_somebody_is_theirs():
    """Overrides and templates make lists private; without authentication they are public."""

    class Days(Minutes, uri_template="docs://days/{day}", requires="docs:write"):
        def list(self, ctx):
            return [{"uri": "docs://days/one", "name": "one"}]

    class Docs(Server, name="docs", version="1", cache=EVERYTHING_PUBLIC):
        resources = [Open, Days]

        async def list_tools(self, cursor, ctx):
            return []

    for caller, scope in ((WRITER, "private"), (READER, "private"), (None, "public")):
        async with connect(Docs, principal=caller) as client:
            assert await scope_of(client, "resources/list") == scope
            assert await scope_of(client, "tools/list") == scope
            assert await scope_of(client, "resources/templates/list") == "public"


async def test_a_skill_that_needs_scopes_is_for_its_caller_only(tmp_path):
    """The list of skills is the same for all."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: notes\ndescription: Notes.\n---\nWrite.\n")

    class Docs(Server, name="docs", version="1", cache=EVERYTHING_PUBLIC):
        skills = [SkillFolder(tmp_path, requires="docs:read")]

    async with connect(Docs, principal=READER) as client:
        [listed] = (await client.request("skills/list"))["skills"]
        assert await scope_of(client, "skills/get", uri=listed["uri"]) == "private"
        assert await scope_of(client, "resources/read", uri=listed["uri"]) == "private"
        assert await scope_of(client, "skills/list") == "public"
