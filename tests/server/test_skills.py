"""Skills on the wire: lists, entries, directories, and files as resources (SEP-2640)."""

import hashlib

import pytest

from noizu_mcp import Cache, DefinitionError, McpError, Resource, Server, SkillFolder, connect
from noizu_mcp.types import Principal

STATELESS = "2026-07-28"
HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
FILES = {
    "pdf/SKILL.md": "---\nname: pdf\ndescription: Read PDF.\nlicense: MIT\n---\n\n# Steps\r\n",
    "pdf/templates/a b.md": "a",
    "pdf/templates/more/x.png": b"\x89PNG",
    "acme/refunds/SKILL.md": "---\nname: refunds\ndescription: Refund.\n---\n",
    "secret/SKILL.md": "---\nname: secret\ndescription: Hush.\n---\n",
}


def bytes_of(name):
    data = FILES[name]
    return data if isinstance(data, bytes) else data.encode()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with two skills, and a third one beside them."""
    folder = tmp_path_factory.mktemp("skills")
    for name in FILES:
        path = folder / ("hidden" if name.startswith("secret") else "all") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes_of(name))
    return folder


class Config(Resource, uri="config://app"):
    def read(self):
        return "dark"


@pytest.fixture
def server(root):
    class Docs(Server, name="docs", version="1", cache={"skills": Cache(60, "public")}):
        resources = [Config]
        skills = [
            SkillFolder(root / "all"),
            SkillFolder(root / "hidden", prefix="acme", hidden=True),
        ]

    return Docs


@pytest.fixture
async def client(server):
    async with connect(server, version=STATELESS) as client:
        yield client


def entry(folder, *names, frontmatter):
    """Build the entry of a skill as the extension defines it."""
    resources = [
        {
            "uri": f"skill://{name.replace(' ', '%20')}",
            "digest": f"sha256:{hashlib.sha256(bytes_of(name)).hexdigest()}",
            "size": len(bytes_of(name)),
        }
        for name in names
    ]
    return {
        "uri": f"skill://{folder}/SKILL.md",
        "frontmatter": frontmatter,
        "resources": resources,
    }


PDF = entry(
    "pdf",
    "pdf/SKILL.md",
    "pdf/templates/a b.md",
    "pdf/templates/more/x.png",
    frontmatter={"name": "pdf", "description": "Read PDF.", "license": "MIT"},
)
REFUNDS = entry(
    "acme/refunds",
    "acme/refunds/SKILL.md",
    frontmatter={"name": "refunds", "description": "Refund."},
)


async def error_of(client, method, params):
    with pytest.raises(McpError) as caught:
        await client.request(method, params)
    return caught.value.code, caught.value.message, caught.value.data


async def test_the_extension_is_declared(client, server):
    """The declaration includes directories and the resource capability that they need."""
    capabilities = client.capabilities.to_wire()

    assert capabilities["extensions"] == {"io.modelcontextprotocol/skills": {"directoryRead": True}}
    assert "resources" in capabilities
    assert client.capabilities.has("extensions.io.modelcontextprotocol/skills")
    assert [skill.root for skill in server().skills] == [
        "skill://acme/refunds",
        "skill://pdf",
        "skill://acme/secret",
    ]


async def test_without_skills_nothing_is_declared():
    """Without skills the extension's methods are not found."""

    class Plain(Server, name="plain", version="1"):
        resources = [Config]

    async with connect(Plain, version=STATELESS) as client:
        assert "extensions" not in client.capabilities.to_wire()
        for method in ("skills/list", "skills/get", "resources/directory/read"):
            code, message, _ = await error_of(client, method, {"uri": "skill://pdf"})
            assert (code, message) == (-32601, f"Method not found: {method}")


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_sessions_see_resources(server, version):
    """The extension belongs to 2026-07-28; in a session skills are only resources."""
    async with connect(server, version=version) as client:
        assert "extensions" not in client.capabilities.to_wire()
        assert (await error_of(client, "skills/list", {}))[0] == -32601
        assert len(await client.list_resources()) == 5
        read = await client.read_resource("skill://pdf/SKILL.md")
        assert read.contents[0].text == FILES["pdf/SKILL.md"]
        with pytest.raises(McpError) as caught:
            await client.read_resource("skill://pdf/nothing.md")
        assert caught.value.code == -32002


async def test_the_list(client):
    """The list has complete manifests and a TTL, and no hidden skills."""
    result = await client.request("skills/list")
    del result["_meta"]

    assert result == {
        "resultType": "complete",
        "skills": [REFUNDS, PDF],
        "ttlMs": 60000,
        "cacheScope": "public",
    }


async def test_the_list_in_pages(root):
    """Cursors lead through the list; a skill is never split."""

    class Docs(Server, name="docs", version="1", page_size=1):
        skills = [SkillFolder(root / "all")]

    async with connect(Docs, version=STATELESS) as client:
        first = await client.request("skills/list")
        second = await client.request("skills/list", {"cursor": first["nextCursor"]})
        assert first["skills"] + second["skills"] == [REFUNDS, PDF]
        assert "nextCursor" not in second
        assert (second["ttlMs"], second["cacheScope"]) == (0, "private")
        for method in ("skills/list", "resources/directory/read"):
            params = {"uri": "skill://pdf", "cursor": "x"}
            assert (await error_of(client, method, params))[:2] == (-32602, "Invalid cursor")


async def test_one_skill(client):
    """A single skill has the same entry as in the list, also if it is hidden; no cursor."""
    result = await client.request("skills/get", {"uri": "skill://pdf/SKILL.md"})
    hidden = await client.request("skills/get", {"uri": "skill://acme/secret/SKILL.md"})
    del result["_meta"]

    assert result == {
        "resultType": "complete",
        "skill": PDF,
        "ttlMs": 60000,
        "cacheScope": "public",
    }
    assert hidden["skill"]["frontmatter"] == {"name": "secret", "description": "Hush."}


@pytest.mark.parametrize(
    "uri",
    [
        "skill://nothing/SKILL.md",
        "skill://pdf",
        "skill://pdf/templates/a%20b.md",
        "skill://pdf/../pdf/SKILL.md",
        "skill://pdf/%53KILL.md",
        "config://app",
    ],
)
async def test_what_is_no_skill(client, uri):
    """An unknown skill is an "invalid params" error with the URI."""
    assert await error_of(client, "skills/get", {"uri": uri}) == (
        -32602,
        "Skill not found",
        {"uri": uri},
    )


@pytest.mark.parametrize("method", ["skills/get", "resources/directory/read"])
@pytest.mark.parametrize("params", [{}, {"uri": 5}, {"uri": None}])
async def test_a_uri_is_needed(client, method, params):
    """The URI is required, and must be a string."""
    assert await error_of(client, method, params) == (-32602, f"{method} requires a uri", None)


async def test_directories(client):
    """A directory has its direct children: files as in the resource list, and directories."""

    async def read(uri):
        result = await client.request("resources/directory/read", {"uri": uri})
        del result["_meta"]
        assert result.pop("resultType") == "complete"
        return result.pop("resources"), result

    def directory(uri):
        return {"uri": uri, "name": uri.rpartition("/")[2], "mimeType": "inode/directory"}

    manifest = {
        "uri": "skill://pdf/SKILL.md",
        "name": "pdf",
        "description": "Read PDF.",
        "mimeType": "text/markdown",
        "size": len(FILES["pdf/SKILL.md"]),
    }
    template = {
        "uri": "skill://pdf/templates/a%20b.md",
        "name": "a b.md",
        "mimeType": "text/markdown",
        "size": 1,
    }
    assert await read("skill://pdf") == ([manifest, directory("skill://pdf/templates")], {})
    assert await read("skill://pdf/templates") == (
        [template, directory("skill://pdf/templates/more")],
        {},
    )
    assert await read("skill://acme") == ([directory("skill://acme/refunds")], {})
    children, _ = await read("skill://acme/secret")
    assert [child["name"] for child in children] == ["secret"]


async def test_directories_in_pages(root):
    """Cursors lead through a directory as through any list."""

    class Docs(Server, name="docs", version="1", page_size=1):
        skills = [SkillFolder(root / "all")]

    async with connect(Docs, version=STATELESS) as client:
        params = {"uri": "skill://pdf"}
        first = await client.request("resources/directory/read", params)
        params["cursor"] = first["nextCursor"]
        second = await client.request("resources/directory/read", params)
        assert [each["name"] for each in first["resources"] + second["resources"]] == [
            "pdf",
            "templates",
        ]
        assert "nextCursor" not in second


@pytest.mark.parametrize(
    "uri",
    [
        "skill://pdf/SKILL.md",
        "skill://pdf/",
        "skill://pdf/..",
        "skill://pdf/templates/../..",
        "skill://pdf/%2e%2e",
        "skill://",
        "skill:/",
        "skill://nothing",
        "file:///etc",
    ],
)
async def test_what_is_no_directory(client, uri):
    """Files, unknown paths and paths outside of the skill are refused."""
    assert await error_of(client, "resources/directory/read", {"uri": uri}) == (
        -32602,
        "Directory not found",
        {"uri": uri},
    )


async def test_files_are_resources(client):
    """Files are listed with their metadata after other resources, and read unchanged."""
    listed = await client.list_resources()
    manifest = next(each for each in listed if each.name == "pdf")

    assert [each.uri for each in listed] == [
        "config://app",
        "skill://acme/refunds/SKILL.md",
        "skill://pdf/SKILL.md",
        "skill://pdf/templates/a%20b.md",
        "skill://pdf/templates/more/x.png",
    ]
    assert (manifest.description, manifest.mime_type) == ("Read PDF.", "text/markdown")
    for uri, mime_type in {
        "skill://pdf/SKILL.md": "text/markdown",
        "skill://pdf/templates/more/x.png": "image/png",
        "skill://acme/secret/SKILL.md": "text/markdown",
    }.items():
        (contents,) = (await client.read_resource(uri)).contents
        name = uri.removeprefix("skill://").replace("acme/secret", "secret")
        data = contents.blob if contents.text is None else contents.text.encode()
        assert (data, contents.uri, contents.mime_type) == (bytes_of(name), uri, mime_type)


@pytest.mark.parametrize(
    "uri",
    [
        "skill://pdf",
        "skill://pdf/nothing.md",
        "skill://pdf/../pdf/SKILL.md",
        "skill://pdf/templates/a b.md",
        "skill://pdf/..%2F..%2Fetc/passwd",
    ],
)
async def test_other_files_are_not_there(client, uri):
    """A URI is looked up, and never turned into a path."""
    assert await error_of(client, "resources/read", {"uri": uri}) == (
        -32602,
        "Resource not found",
        {"uri": uri},
    )


async def test_scopes_of_skills(root):
    """Getting a skill and reading its files need the scopes; the lists show it to everyone."""

    class Docs(Server, name="docs", version="1"):
        skills = [SkillFolder(root / "all" / "pdf", requires="docs:read")]

    uri = "skill://pdf/SKILL.md"
    async with connect(Docs, version=STATELESS) as client:
        for method in ("skills/get", "resources/read"):
            _, message, data = await error_of(client, method, {"uri": uri})
            assert message.startswith(f"Insufficient scope: {method} needs docs:read")
            assert data == {"requiredScopes": ["docs:read"]}
        assert (await client.request("skills/list"))["skills"] == [PDF]
    ada = Principal(subject="ada", scopes={"docs:read"})
    async with connect(Docs, version=STATELESS, principal=ada) as client:
        assert (await client.request("skills/get", {"uri": uri}))["skill"] == PDF
        read = await client.read_resource(uri)
        assert read.contents[0].text == FILES["pdf/SKILL.md"]


# What the class statement refuses


def test_problems_have_their_places(root, tmp_path, monkeypatch):
    """Problems have the line of the manifest or of the class, and are reported together."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").write_text("---\nname: b\ndescription: x\n---\n")
    with pytest.raises(DefinitionError) as caught:

        class Docs(Server, name="docs", version="1"):
            skills = [SkillFolder(tmp_path / "a"), SkillFolder(root / "nothing"), "x"]

    lines = sorted(str(caught.value).splitlines())
    assert len(lines) == 3
    assert lines[-1] == (
        "a/SKILL.md:2: Docs.skills[0]: name: must be that of the folder, 'a', got 'b'"
    )
    assert "test_skills.py:" in lines[0]
    assert "Docs.skills[1]: " in lines[0]
    assert lines[0].endswith("cannot be read: No such file or directory")
    assert lines[1].endswith("Docs.skills[2]: 'x' is not a skill; write SkillFolder('skills')")


def test_skills_are_a_list(root):
    """A single folder instead of a list is refused, as a single tool is."""
    with pytest.raises(DefinitionError, match="must be a list of skills, got SkillFolder"):

        class Docs(Server, name="docs", version="1"):
            skills = SkillFolder(root)


def test_a_near_miss_is_found(root):
    """A misspelt attribute name is refused, and the right one suggested."""
    with pytest.raises(DefinitionError, match="did you mean 'skills'"):

        class Docs(Server, name="docs", version="1"):
            skils = [SkillFolder(root / "all")]


def test_a_file_is_no_other_resource(root):
    """A file of a skill cannot have the URI of another resource."""

    class Own(Resource, uri="skill://pdf/SKILL.md"):
        def read(self):
            return "x"

    with pytest.raises(DefinitionError) as caught:

        class Docs(Server, name="docs", version="1"):
            resources = [Config, Own]
            skills = [SkillFolder(root / "all")]

    (problem,) = caught.value.problems
    assert (problem.where, problem.text) == (
        "Docs.skills",
        "skill://pdf/SKILL.md is a resource of the server, too; one of the two needs another URI",
    )
    assert problem.file.endswith("test_skills.py")
