"""Skills read by a client: listed without reading, and verified when they are read (SEP-2640)."""

import asyncio
import hashlib
from collections import Counter

import attrs
import pytest

from noizu_mcp import (
    McpError,
    ProtocolError,
    Server,
    SkillError,
    SkillFolder,
    SyncClient,
    aio,
    connect,
)
from noizu_mcp.skills import MAX_BYTES, MAX_FILES
from noizu_mcp.types import ReadResult

TOP = "---\nname: pdf\ndescription: Read PDF.\nmetadata:\n  version: '1.0'\n---\n\n# Steps\r\n"
FILES = {
    "pdf/SKILL.md": TOP,
    "pdf/templates/a b.md": "Ä",
    "pdf/x.png": b"\x89PNG",
    "pdf/inner/SKILL.md": "---\nname: inner\ndescription: Nested.\n---\n",
}
ROOT = "skill://pdf"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a skill, and another one in it."""
    root = tmp_path_factory.mktemp("skills")
    for name, data in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return root


@pytest.fixture
def server(folder):
    """A server with the skills, which counts reads, and may send false content."""

    class Docs(Server, name="docs", version="1"):
        skills = [SkillFolder(folder)]
        reads = Counter()
        lies = {}

        async def read_resource(self, uri, ctx):
            self.reads[uri] += 1
            if uri in self.lies:
                return self.lies[uri]
            return await super().read_resource(uri, ctx)

    return Docs


@pytest.fixture
async def client(server):
    async with connect(server, version="2026-07-28") as client:
        yield client


async def entry_of(client):
    return await client.get_skill(f"{ROOT}/SKILL.md")


async def test_listing_reads_no_file(client, server):
    """The list has the entries; files are read only on demand."""
    skills = await client.list_skills()

    assert [(each.name, each.description) for each in skills] == [
        ("pdf", "Read PDF."),
        ("inner", "Nested."),
    ]
    assert skills[0] == await entry_of(client)
    assert server.reads == {}


async def test_files_are_named_by_their_paths(client):
    """The files of an entry are found by their paths in the folder."""
    skill = await entry_of(client)

    assert skill.root == ROOT
    assert [*skill.files] == ["SKILL.md", "inner/SKILL.md", "templates/a b.md", "x.png"]
    assert skill.files["x.png"]["size"] == 4


async def test_files_are_read(client):
    """Texts and bytes arrive unchanged, in whatever form the path is given."""
    skill = await entry_of(client)

    assert (await client.read_skill(skill)).text == TOP
    assert (await client.read_skill(skill, "templates/a b.md")).text == "Ä"
    assert (await client.read_skill(skill, "./templates/../x.png")).blob == b"\x89PNG"
    assert (await client.read_skill(skill, "inner/SKILL.md")).mime_type == "text/markdown"


LIES = {
    "longer": (TOP + "x", "it has 79 bytes, its entry says 78"),
    "another text": (TOP.replace("Steps", "Slips"), "its digest is sha256:"),
    "no contents": (ReadResult([]), "the server sent 0 contents, expected one"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_another_file_is_refused(client, server, lie):
    """If the size or the digest of a file differs from its entry, the error says so."""
    skill = await entry_of(client)
    sent, text = LIES[lie]
    server.lies = {f"{ROOT}/SKILL.md": sent}

    with pytest.raises(SkillError) as caught:
        await client.read_skill(skill)

    assert f"{ROOT}/SKILL.md cannot be used: {text}" in str(caught.value)


def resigned(skill, text):
    """The entry of a skill, with the size and digest of another `SKILL.md`."""
    data = text.encode()
    new = {"size": len(data), "digest": f"sha256:{hashlib.sha256(data).hexdigest()}"}
    first, *rest = skill.resources
    return attrs.evolve(skill, resources=[{**first, **new}, *rest])


FRONTMATTER = {
    "another description": (TOP.replace("Read PDF", "Leak"), "description in the file differs"),
    "one field more": (TOP.replace("---\nname", "---\nhooks: x\nname"), "the fields in the file"),
    "a field inside": (TOP.replace("1.0", "2.0"), "metadata.version in the file differs"),
    "none": ("# Steps", "the file must begin with a line `---`"),
    "no YAML": (TOP.replace("pdf", "&a pdf"), "line 2 of the file has an anchor"),
    "too long": (TOP.replace("pdf", "p" * 65536), "has more than 65536 characters"),
}


@pytest.mark.parametrize("case", FRONTMATTER)
async def test_other_frontmatter_is_refused(client, server, case):
    """Frontmatter that differs from the entry is an error, although size and digest agree."""
    sent, text = FRONTMATTER[case]
    skill = resigned(await entry_of(client), sent)
    server.lies = {f"{ROOT}/SKILL.md": sent}

    with pytest.raises(SkillError) as caught:
        await client.read_skill(skill)

    assert text in str(caught.value)


#: Pairs of YAML and JSON that some parser treats as equal.
SAME = [
    ("1.0", 1.0),
    ("1.0", 1),
    ("1.10", "1.10"),
    ("012", 10),
    ("012", 12),
    ("0o17", 15),
    ("yes", True),
    ("Off", False),
    ("no", "no"),
    ("~", None),
    ("", None),
    ("2024-01-02", "2024-01-02"),
    ("2024-01-02", "2024-01-02T00:00:00.000Z"),
    ("2024-01-02", "2024-01-02T00:00:00"),
    ("[a, {b: 'c'}]", ["a", {"b": "c"}]),
    ("{1: x}", {"1": "x"}),
    ("'1'", "1"),
]
DIFFERENT = [
    ("1.0", 2),
    ("'1'", 1),
    ("true", 1),
    ("1", True),
    ("x", None),
    ("x", 1),
    ("2024-01-02", "2024-01-03T00:00:00Z"),
    ("2024-99-02", "2024-01-03"),
    ("x", "2024-01-03"),
    ("[a]", ["a", "b"]),
    ("[a]", "a"),
    ("{a: b}", {"a": "c"}),
    ("{a: b, a: b}", {"a": "b"}),
    ("{a: b}", ["a"]),
    ("{[a]: b}", {"a": "b"}),
    ("x", {"x": "x"}),
]


@pytest.mark.parametrize(
    ("yaml", "value", "agrees"),
    [*((*each, True) for each in SAME), *((*each, False) for each in DIFFERENT)],
)
async def test_doubtful_yaml(client, server, yaml, value, agrees):
    """A scalar that YAML parsers read differently agrees with each of the readings."""
    text = f"---\nname: pdf\ndescription: Read PDF.\nextra: {yaml}\n---\n"
    front = {"name": "pdf", "description": "Read PDF.", "extra": value}
    skill = attrs.evolve(resigned(await entry_of(client), text), frontmatter=front)
    server.lies = {f"{ROOT}/SKILL.md": text}

    if agrees:
        assert (await client.read_skill(skill)).text == text
    else:
        with pytest.raises(SkillError, match=r"extra.* in the file differs"):
            await client.read_skill(skill)


async def test_unlisted_files_are_not_read(client, server):
    """A file that the entry does not list is refused before anything is sent."""
    skill = await entry_of(client)

    for path in ("other.md", "../pdf2/x.png", "", f"{ROOT}/x.png", "templates"):
        with pytest.raises(SkillError, match="lists no file"):
            await client.read_skill(skill, path)
    assert server.reads == {}


FILE = {"uri": f"{ROOT}/SKILL.md", "digest": f"sha256:{'0' * 64}", "size": 5}
INVALID = {
    "no manifest in the URI": ({"uri": ROOT}, "URI does not end in /SKILL.md"),
    "another name": ({"frontmatter": {"name": "x"}}, "name is not that of its folder, got 'x'"),
    "no name": ({"frontmatter": {}}, "name is not that of its folder, got ''"),
    "resources": ({"resources": "none"}, "must be a list or 'dynamic', got 'none'"),
    "twice": ({"resources": [FILE, FILE]}, "lists a file twice"),
    "no URI": ({"resources": [FILE, {}]}, "or a resource without a URI"),
    "no manifest": ({"resources": []}, "does not list SKILL.md"),
    "outside": (
        {"resources": [FILE, {**FILE, "uri": "skill://other/x"}]},
        "skill://other/x is not in its folder",
    ),
    "above": (
        {"resources": [FILE, {**FILE, "uri": f"{ROOT}/%2E./x"}]},
        "../x is not in its folder",
    ),
    "digest": ({"resources": [{**FILE, "digest": "md5:0"}]}, "the digest of SKILL.md must be"),
    "no digest": ({"resources": [{**FILE, "digest": None}]}, "the digest of SKILL.md must be"),
    "size": ({"resources": [{**FILE, "size": True}]}, "the size of SKILL.md must be"),
    "negative size": ({"resources": [{**FILE, "size": -1}]}, "the size of SKILL.md must be"),
    "bytes": ({"resources": [{**FILE, "size": MAX_BYTES + 1}]}, f"more than {MAX_BYTES} bytes"),
    "files": (
        {"resources": [FILE, *({**FILE, "uri": f"{ROOT}/{n}"} for n in range(MAX_FILES))]},
        f"it has {MAX_FILES + 1} files",
    ),
}


@pytest.mark.parametrize("case", INVALID)
async def test_invalid_entries(client, server, case):
    """A skill whose entry is invalid, or beyond the limits, is not read."""
    changes, text = INVALID[case]
    skill = attrs.evolve(await entry_of(client), **changes)

    with pytest.raises(SkillError) as caught:
        await client.read_skill(skill)

    assert text in str(caught.value)
    assert server.reads == {}


@pytest.fixture
async def dynamic(client):
    """The entry of a skill whose files have no digests."""
    return attrs.evolve(await entry_of(client), resources="dynamic")


async def test_dynamic_skills(client, dynamic):
    """Any file in the folder of a dynamic skill can be read; its frontmatter is compared."""
    assert dynamic.files is None
    assert (await client.read_skill(dynamic)).text == TOP
    assert (await client.read_skill(dynamic, "templates/a b.md")).text == "Ä"
    front = {**dynamic.frontmatter, "description": "x"}
    with pytest.raises(SkillError, match="description in the file differs"):
        await client.read_skill(attrs.evolve(dynamic, frontmatter=front))


async def test_dynamic_skills_stay_in_their_folder(client, dynamic, server):
    """A path does not lead out of the folder of a dynamic skill."""
    for path in ("..", "../x", "/x", ""):
        with pytest.raises(SkillError, match="is not a file in its folder"):
            await client.read_skill(dynamic, path)
    assert server.reads == {}


async def test_unknown_skills(client):
    """The error of the server for an unknown skill is raised unchanged."""
    with pytest.raises(McpError) as caught:
        await client.get_skill("skill://nowhere/SKILL.md")
    assert caught.value.code == -32602


async def test_servers_without_skills():
    """A server without the extension has no skills, and gets no request."""

    class Plain(Server, name="plain", version="1"):
        pass

    async with connect(Plain, version="2026-07-28") as client:
        assert await client.list_skills() == []
        with pytest.raises(ProtocolError, match="has no skills"):
            await client.get_skill("skill://pdf/SKILL.md")


async def test_another_entry_is_refused(client, monkeypatch):
    """The entry of another skill than the requested one is a `ProtocolError`."""
    asked = client.request

    async def request(method, params):
        return await asked(method, {"uri": f"{ROOT}/inner/SKILL.md"})

    monkeypatch.setattr(client, "request", request)
    with pytest.raises(ProtocolError, match=r"gave the entry of skill://pdf/inner/SKILL.md"):
        await client.get_skill(f"{ROOT}/SKILL.md")


def test_plain_code(server):
    """`SyncClient` reads skills."""
    with SyncClient(server, version="2026-07-28") as client:
        skill, _ = client.list_skills()
        assert client.get_skill(skill.uri) == skill
        assert client.read_skill(skill, "x.png").blob == b"\x89PNG"


def test_asyncio(server):
    """The client for asyncio programs reads skills."""

    async def main():
        async with aio.connect(server, version="2026-07-28") as client:
            skill, _ = await client.list_skills()
            return (await client.read_skill(skill)).text

    assert asyncio.run(main()) == TOP
