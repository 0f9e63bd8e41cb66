"""Skills and instructions of servers behind a `Remote` or a `Mount`."""

import logging

import pytest
import trio

from noizu_mcp import (
    Context,
    McpError,
    Mount,
    Provider,
    Remote,
    Server,
    SkillFolder,
    Toolkit,
    connect,
    mcp,
)
from noizu_mcp.components import Introduction, SkillProvider
from noizu_mcp.types import Principal

from .conftest import Life, front_of

OLD, NEW = "2025-11-25", "2026-07-28"
SKILLS, TASKS = "io.modelcontextprotocol/skills", "io.modelcontextprotocol/tasks"
FILES = {
    "all/pdf/SKILL.md": "---\nname: pdf\ndescription: Read PDF.\n---\n\n# Steps\n",
    "all/pdf/templates/a b.md": "a",
    "all/acme/refunds/SKILL.md": "---\nname: refunds\ndescription: Refund.\n---\n",
    "hidden/secret/SKILL.md": "---\nname: secret\ndescription: Hush.\n---\n",
}


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    """A server with skills."""
    root = tmp_path_factory.mktemp("skills")
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    class Up(Server, name="up", version="1", instructions="Read the skills.", page_size=1):
        skills = [
            SkillFolder(root / "all"),
            SkillFolder(root / "hidden", hidden=True, requires="hush"),
        ]

    return Up


#: The ways to include one server in another, with their prefixes.
WAYS = pytest.mark.parametrize(
    ("way", "prefix"),
    [
        (lambda up: Remote(up, prefix="up"), "up+"),
        (Remote, ""),
        (lambda up: Mount(up, prefix="up"), "up+"),
        (Mount, ""),
        (lambda up: Mount(front_of(Remote(up, prefix="up")), prefix="in"), "in+up+"),
        (lambda up: Remote(front_of(Mount(up, prefix="up")), prefix="in"), "in+up+"),
    ],
)


@WAYS
async def test_skills_are_listed_read_and_verified(up, way, prefix):
    """A client finds every skill by its new URI, and each file matches its entry."""
    async with (
        connect(up, version=NEW) as direct,
        connect(front_of(way(up)), version=NEW) as client,
    ):
        assert client.capabilities.extensions == {SKILLS: {"directoryRead": True}}
        expected = await direct.list_skills()
        found = await client.list_skills()
        assert [each.uri for each in found] == [prefix + each.uri for each in expected]
        for skill in found:
            assert await client.get_skill(skill.uri) == skill
            for path in skill.files:
                own = f"{skill.root}/{path.replace(' ', '%20')}"
                contents = await client.read_skill(skill, path)
                assert contents.uri == own
                assert (await client.read_resource(own)).contents == (contents,)


@WAYS
async def test_directories(up, way, prefix):
    """Directories are read page by page, with files and directories."""
    async with connect(front_of(way(up)), version=NEW) as client:
        found, cursor = [], {}
        while cursor is not None:
            page = await client.request(
                "resources/directory/read", {"uri": f"{prefix}skill://pdf", **cursor}
            )
            found += [each["uri"].removeprefix(prefix) for each in page["resources"]]
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
        assert found == ["skill://pdf/SKILL.md", "skill://pdf/templates"]
        for uri in ("skill://nowhere", f"{prefix}skill://nowhere", "in+other://x"):
            with pytest.raises(McpError, match="Directory not found"):
                await client.request("resources/directory/read", {"uri": uri})
        params = {"uri": f"{prefix}skill://pdf", "cursor": "wrong"}
        with pytest.raises(McpError, match="cursor"):
            await client.request("resources/directory/read", params)


@WAYS
async def test_unknown_skills(up, way, prefix):
    """An unknown skill has the error of the specification."""
    async with connect(front_of(way(up)), version=NEW) as client:
        for uri in ("skill://nowhere/SKILL.md", f"{prefix}skill://nowhere/SKILL.md"):
            with pytest.raises(McpError) as caught:
                await client.get_skill(uri)
            assert (caught.value.code, caught.value.data) == (-32602, {"uri": uri})


async def test_a_skill_that_is_not_listed(up):
    """A hidden skill of a mounted server is found by its URI, with its scopes."""
    front = front_of(Mount(up, prefix="up"))
    uri = "up+skill://secret/SKILL.md"
    async with connect(
        front, version=NEW, principal=Principal(subject="ada", scopes=["hush"])
    ) as client:
        assert (await client.get_skill(uri)).name == "secret"
        assert uri not in [each.uri for each in await client.list_skills()]
    async with connect(
        front, version=NEW, principal=Principal(subject="ada", scopes=["other"])
    ) as client:
        with pytest.raises(McpError, match="scope"):
            await client.get_skill(uri)


async def test_scopes_of_a_remote(up):
    """A caller without the server's scopes gets no entries of skills or directories."""
    front = front_of(Remote(up, prefix="up", requires="docs"))
    uri = "up+skill://pdf/SKILL.md"
    async with connect(
        front, version=NEW, principal=Principal(subject="ada", scopes=["docs"])
    ) as client:
        assert (await client.get_skill(uri)).name == "pdf"
    async with connect(
        front, version=NEW, principal=Principal(subject="ada", scopes=["other"])
    ) as client:
        with pytest.raises(McpError, match="scope"):
            await client.get_skill(uri)


async def test_own_skills_come_first(up, tmp_path):
    """Skills of the server precede skills of providers, even with the same URI."""
    own = tmp_path / "pdf"
    own.mkdir()
    (own / "SKILL.md").write_text("---\nname: pdf\ndescription: Mine.\n---\n")
    front = front_of(Remote(up), skills=[SkillFolder(own)])
    async with connect(front, version=NEW) as client:
        listed = await client.list_skills()
        assert [each.description for each in listed] == ["Mine.", "Refund."]
        assert (await client.get_skill(listed[0].uri)).description == "Mine."
        page = await client.request("resources/directory/read", {"uri": "skill://pdf"})
        assert len(page["resources"]) == 1


async def test_a_server_without_skills(behind):
    """The extension is not offered for a server without skills."""

    class Bare(Server, name="bare", version="1"):
        tools = []

    async with connect(behind(Bare), version=NEW) as client:
        assert client.capabilities.extensions is None
        assert (await client.request("skills/list"))["skills"] == []
        for method in ("skills/get", "resources/directory/read"):
            with pytest.raises(McpError, match="not found"):
                await client.request(method, {"uri": "up+skill://a/SKILL.md"})


async def test_a_server_of_an_earlier_revision(up, behind):
    """Its skills are resources, as for its own clients."""
    async with connect(behind(up, version=OLD), version=NEW) as client:
        assert await client.list_skills() == []
        found = [each.uri for each in await client.list_resources()]
        assert "up+skill://pdf/SKILL.md" in found


@pytest.mark.parametrize("method", ["skills/get", "resources/directory/read"])
async def test_other_errors_of_the_server(scripted, behind, method):
    """An error that does not concern the URI is passed on, and does not mean "unknown skill"."""
    discover = {
        "supportedVersions": [NEW],
        "capabilities": {"resources": {}, "extensions": {SKILLS: {"directoryRead": True}}},
        "serverInfo": {"name": "odd", "version": "1"},
    }
    wrong = {method.replace("/", "__"): RuntimeError(-32000, "busy")}
    stream = scripted(server__discover=discover, skills__list={"skills": [1]}, **wrong)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.script)
        async with connect(behind(stream), version=NEW) as client:
            with pytest.raises(McpError, match="busy"):
                await client.request(method, {"uri": "up+skill://a"})
            assert await client.list_skills() == []
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("resources", [1, [2, {"uri": 3}]])
async def test_malformed_directories(scripted, behind, resources):
    """A directory with a missing or malformed list of resources is passed on unchanged."""
    discover = {
        "supportedVersions": [NEW],
        "capabilities": {"resources": {}, "extensions": {SKILLS: {"directoryRead": True}}},
        "serverInfo": {"name": "odd", "version": "1"},
    }
    answer = {"resources": resources}
    stream = scripted(server__discover=discover, resources__directory__read=answer)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.script)
        async with connect(behind(stream), version=NEW) as client:
            found = await client.request("resources/directory/read", {"uri": "up+skill://a"})
        nursery.cancel_scope.cancel()
    assert found["resources"] == resources


# Instructions


class Echo(Toolkit):
    @mcp(task="optional")
    async def echo(self) -> str:
        return "echo"


class Notes(Server, name="notes", version="1", instructions="Search before you write."):
    tools = [Echo]


VERSIONS = pytest.mark.parametrize("version", [OLD, NEW])


JOINED = """Be kind.

## a

Its tools and prompts have the prefix a_ here.

Search before you write.

## plain

Search before you write.

## notes

Its tools and prompts have the prefix b_ here.

Search before you write."""


@VERSIONS
async def test_instructions_are_joined(version):
    """Each server has a paragraph with its name and its prefix."""

    class Front(Server, name="front", version="1", instructions="Be kind."):
        providers = [
            Remote(Notes, prefix="a"),
            Remote(Notes, label="plain"),
            Mount(Notes, prefix="b"),
        ]

    async with connect(Front, version=version) as client:
        assert client.instructions == JOINED


@VERSIONS
async def test_nothing_to_say(version):
    """Without any instructions there are none."""

    class Silent(Server, name="silent", version="1"):
        tools = [Echo]

    front = front_of(Mount(Silent, prefix="a"), Remote(Silent, prefix="b"))
    async with connect(front, version=version) as client:
        assert client.instructions is None


@VERSIONS
async def test_a_server_that_is_down(behind, version):
    """It is left out, and its next attempts are not awaited."""
    life = Life()
    life.refusal = LookupError("down")
    async with connect(behind(life.server), version=version) as client:
        assert client.instructions is None
        assert client.capabilities.extensions is None


async def test_skills_of_a_server_that_is_down(behind, up, caplog, autojump_clock):
    """They are left out of the list, which is logged in one line, and requests for them fail."""
    life = Life()
    life.refusal = LookupError("down")
    front = front_of(Remote(life.server, prefix="up"), Remote(up, prefix="other"))
    async with connect(front, version=NEW) as client:
        caplog.clear()
        assert [each.name for each in await client.list_skills()] == ["refunds", "pdf"]
        with pytest.raises(McpError, match="up is not connected"):
            await client.get_skill("up+skill://a/SKILL.md")
    (entry,) = caplog.records
    assert entry.getMessage().startswith("skills of Remote up failed: up is not connected: ")
    assert entry.exc_info is None


@VERSIONS
async def test_a_server_that_does_not_answer(behind, scripted, version, autojump_clock):
    """Clients wait for it for a few seconds after the start, and then no longer."""
    stream = scripted(server__discover=lambda _: None, initialize=lambda _: None)
    front = behind(stream)()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.script)
        began = trio.current_time()
        async with connect(front, version=version) as client:
            assert trio.current_time() - began == pytest.approx(3)
            assert client.instructions is None
            began = trio.current_time()
            if version == NEW:
                await client.request("server/discover")
                assert trio.current_time() == began
        nursery.cancel_scope.cancel()


async def test_a_mounted_server_that_is_not_served(autojump_clock):
    """A mounted server whose lifespan has failed has neither instructions nor skills."""
    life = Life()
    life.refusal = LookupError("down")
    async with connect(front_of(Mount(life.server)), version=NEW) as client:
        assert client.instructions is None
        assert (await client.request("skills/list"))["skills"] == []
        for method in ("skills/get", "resources/directory/read"):
            with pytest.raises(McpError, match="not found"):
                await client.request(method, {"uri": "skill://a"})


async def test_a_remote_that_no_server_has():
    """It is not connected, and has no instructions."""

    async def ask(ctx: Context) -> str:
        return str(await Remote(Notes).introduce(ctx))

    async with connect(front_of(tools=[ask]), version=NEW) as client:
        assert (await client.call_tool("ask")).text == str(Introduction())


async def test_a_provider_of_ones_own(caplog, autojump_clock):
    """Any provider may have instructions; a provider that fails, or is late, is left out."""

    class Wise(Provider):
        async def introduce(self, ctx):
            return Introduction(f"Ask {ctx.server.options.name}.")

    class Late(Provider, timeout=1.0):
        async def introduce(self, ctx):
            await trio.sleep_forever()

    class Broken(Provider):
        async def introduce(self, ctx):
            raise LookupError("broken")

    front = front_of(Late(), Broken(), Wise())
    with caplog.at_level(logging.ERROR, "noizu_mcp"):
        async with connect(front, version=NEW) as client:
            assert client.instructions == "Ask front."
    assert [each.getMessage() for each in caplog.records] == ["introduce of Broken failed"]


async def test_generated_skills():
    """A provider may list skills whose files have no digests, and implement nothing else."""
    frontmatter = {"name": "daily", "description": "Report."}
    entry = {"uri": "skill://daily/SKILL.md", "frontmatter": frontmatter, "resources": "dynamic"}

    class Generated(SkillProvider):
        async def skills(self, ctx):
            return [entry]

    front = front_of(Mount(front_of(Generated(), SkillProvider()), prefix="up"))
    async with connect(front, version=NEW) as client:
        (skill,) = await client.list_skills()
        assert skill.to_wire() == {**entry, "uri": "up+skill://daily/SKILL.md"}
        for method in ("skills/get", "resources/directory/read"):
            with pytest.raises(McpError, match="not found"):
                await client.request(method, {"uri": skill.uri})
