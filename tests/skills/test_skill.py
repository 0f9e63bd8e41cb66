"""Folders of skills: what is read, what is refused, and the metadata of files."""

import hashlib
import os
import runpy
import sys

import pytest

from noizu_mcp import DefinitionError, SkillFolder, Tool
from noizu_mcp.skills import MAX_BYTES, MAX_FILES, check_skills

TOP = "---\nname: {}\ndescription: Do it.\n---\n\n# Steps\n"


class Someone(Tool):
    def call(self):
        return "x"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write files into the working directory: texts, bytes, or frontmatter by its name."""
    monkeypatch.chdir(tmp_path)

    def write_files(files):
        for name, data in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return tmp_path

    return write_files


def skill(name):
    return {f"{name}/SKILL.md": TOP.format(name.rpartition("/")[2])}


def test_the_reader_of_frontmatter_is_an_extra(write, monkeypatch):
    """Without PyYAML the first skill says what to install."""
    root = write(skill("a"))
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "noizu_mcp.skills._yaml", raising=False)
    with pytest.raises(ImportError, match=r"needs PyYAML: pip install 'noizu-mcp\[skills\]'"):
        check_skills([SkillFolder(root / "a")])


def problems(*folders):
    """Return the problems that a server would report, with their places if known."""
    return list(map(str, check_skills(folders)))


def test_a_folder_is_a_skill(write):
    """Each of its files has a URI, a digest and a size; the manifest is first."""
    top = b"---\nname: pdf\ndescription: Read PDF.\nlicense: MIT\n---\nText\r\n"
    files = {"SKILL.md": top, "A.md": b"a", "refs/b c.txt": b"\xc3\xa9", "z/1.png": b"\xff"}
    root = write({f"pdf/{name}": data for name, data in files.items()})
    (found,) = SkillFolder(root / "pdf").skills

    assert found.uri == "skill://pdf/SKILL.md"
    assert found.root == "skill://pdf"
    assert not found.hidden
    assert repr(found) == "SkillSpec('skill://pdf/SKILL.md')"
    assert found.definition["frontmatter"] == {
        "name": "pdf",
        "description": "Read PDF.",
        "license": "MIT",
    }
    assert found.definition["resources"] == [
        {
            "uri": f"skill://pdf/{name.replace(' ', '%20')}",
            "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
            "size": len(data),
        }
        for name, data in files.items()
    ]
    manifest, *_, image = found.files.values()
    assert manifest.definition == {
        "uri": "skill://pdf/SKILL.md",
        "name": "pdf",
        "description": "Read PDF.",
        "mimeType": "text/markdown",
        "size": len(top),
    }
    assert manifest.invoke("", None) == top.decode()
    assert image.definition["name"] == "1.png"
    assert image.invoke("", None) == b"\xff"


def test_a_folder_of_skills(write):
    """They are found at any depth; parent folders are part of the URI, other files are ignored."""
    write(
        {"all/README.md": "x", **skill("all/b"), **skill("all/acme/billing/a"), "all/c/x.md": "x"}
    )
    folder = SkillFolder(write({}) / "all", prefix="my team/docs", hidden=True)

    assert [found.uri for found in folder.skills] == [
        "skill://my%20team/docs/acme/billing/a/SKILL.md",
        "skill://my%20team/docs/b/SKILL.md",
    ]
    assert all(found.hidden for found in folder.skills)
    assert all(file.hidden for found in folder.skills for file in found.files.values())


def test_skills_within_skills(write):
    """An inner skill is a skill of its own, and its files belong to both."""
    write({**skill("outer"), **skill("outer/inner"), "outer/inner/x.md": "x", "outer/y.md": "y"})
    outer, inner = SkillFolder(write({}) / "outer").skills

    assert (outer.uri, inner.uri) == ("skill://outer/SKILL.md", "skill://outer/inner/SKILL.md")
    assert [*inner.files] == ["skill://outer/inner/SKILL.md", "skill://outer/inner/x.md"]
    assert [*outer.files] == [outer.uri, *inner.files, "skill://outer/y.md"]
    assert all(outer.files[uri] is file for uri, file in inner.files.items())
    assert inner.files[inner.uri].definition["name"] == "inner"


def test_what_is_left_out(write):
    """Hidden files and caches are left out."""
    names = (".env", ".git/config", "__pycache__/a.pyc", "node_modules/x/SKILL.md", "b/.x/SKILL.md")
    write({**skill("a"), **{f"a/{name}": "x" for name in names}})
    (found,) = SkillFolder(write({}) / "a").skills

    assert [*found.files] == ["skill://a/SKILL.md"]


def test_a_relative_path_begins_at_the_program(write, monkeypatch):
    """A relative path starts at the program's file, or without one at the working directory."""
    text = "from noizu_mcp import SkillFolder\nfolder = SkillFolder('../all/./a')\n"
    root = write({**skill("all/a"), "app/main.py": text, "else/x": ""})
    monkeypatch.chdir(root / "else")

    assert runpy.run_path(root / "app" / "main.py")["folder"].path == root / "all" / "a"
    names = {"SkillFolder": SkillFolder}
    assert repr(eval("SkillFolder('x')", names)) == f"SkillFolder({str(root / 'else' / 'x')!r})"


def test_files_are_read_once(write):
    """Later changes are not served, since they would break the digests."""
    root = write(skill("a"))
    folder = SkillFolder(root / "a")
    before = folder.skills
    write({"a/SKILL.md": "gone", "a/new.md": "x"})

    assert folder.skills == before
    assert folder.problems == ()


@pytest.mark.parametrize(
    ("name", "data", "mime_type", "text"),
    [
        ("a.MD", b"\xef\xbb\xbfx\r\n", "text/markdown", True),
        ("a.md", b"\xff", "text/markdown", False),
        ("a.json", b"{}", "application/json", True),
        ("a.svg", b"<svg/>", "image/svg+xml", True),
        ("a.yml", b"a: b", "application/yaml", True),
        ("a.pdf", b"%PDF", "application/pdf", False),
        ("a.tar.gz", b"x", "application/gzip", False),
        ("a.xz", b"x", "application/octet-stream", False),
        ("LICENSE", b"MIT", "text/plain", True),
        ("a.unheard-of", b"a\0b", "application/octet-stream", False),
        ("b.unheard-of", b"\xff", "application/octet-stream", False),
    ],
)
def test_media_types(write, name, data, mime_type, text):
    """They follow the suffix, the same on every machine; text files are sent as text, unchanged."""
    write({**skill("a"), f"a/files/{name}": data})
    (found,) = SkillFolder(write({}) / "a").skills
    file = found.files[f"skill://a/files/{name}"]

    assert file.mime_type == mime_type
    assert file.invoke("", None) == (data.decode() if text else data)


WRONG = [
    ("# a", (1, "must begin with a line `---`, then name and description, then `---`")),
    (
        "\ufeff---\nname: a\n---",
        (1, "must begin with a line `---`, then name and description, then `---`"),
    ),
    ("---\nname: a", (1, "has no line `---` that ends its frontmatter")),
    ("---\r\nname: a\r\nx:y\r\n---", (3, "expected `key: value`")),
    ("---\n---", (1, "name: is missing"), (1, "description: is missing")),
    (
        "---\ndescription: x\nname: b\n--- ",
        (3, "name: must be that of the folder, 'a', got 'b'"),
    ),
    (
        "---\nname: a\ndescription:\n---",
        (3, "description: must be a text that is not empty, got None"),
    ),
    (
        f"---\nname: a\ndescription: {'x' * 1025}\n---",
        (3, "description: must have at most 1024 characters, got 1025"),
    ),
    (
        f"---\nname: a\ndescription: x\ncompatibility: {'x' * 501}\nlicense: 1\n---",
        (5, "license: must be a text that is not empty, got 1"),
        (4, "compatibility: must have at most 500 characters, got 501"),
    ),
    (
        "---\nname: a\ndescription: x\nmetadata: x\nallowed-tools: [1]\n---",
        (4, "metadata: must be a mapping, got 'x'"),
        (5, "allowed-tools: must be a text or a list of texts, got [1]"),
    ),
    (
        "---\nname: a\ndescription: x\nmetadata:\n  io.modelcontextprotocol/x: z\n---",
        (
            4,
            (
                "metadata: the key 'io.modelcontextprotocol/x' is reserved by the protocol; use a"
                " prefix of your own"
            ),
        ),
    ),
]


@pytest.mark.parametrize(("text", "found"), [(case[0], case[1:]) for case in WRONG])
def test_wrong_manifests(write, text, found):
    """Each problem has the file and the line."""
    folder = SkillFolder(write({"a/SKILL.md": text}) / "a")
    expected = [f"a/SKILL.md:{line}: skills[0]: {problem}" for line, problem in found]

    assert problems(folder) == expected
    assert folder.skills == ()


@pytest.mark.parametrize("name", ["A", "a--b", "-a", "a-", "a_b", "x" * 65, "1", "''"])
def test_wrong_names(write, name):
    """Names follow the rule of Agent Skills, whatever the folder is called."""
    (problem,) = problems(SkillFolder(write({"a/SKILL.md": TOP.format(name)}) / "a"))

    assert problem.startswith(
        "a/SKILL.md:2: skills[0]: name: must be 1 to 64 characters of a-z 0-9 and -, with no - at"
        " an end and none behind another, got "
    )


def test_manifests_of_all_kinds(write):
    """A manifest that Agent Skills allows is accepted, with unknown fields, too."""
    more = "a\nallowed-tools: Read Write\ncompatibility: any\nmetadata:\n  a: '1'\nnew: [x]"
    listed = TOP.format("b\nallowed-tools:\n- x")
    write({"all/a/SKILL.md": TOP.format(more), "all/b/SKILL.md": listed})
    first, second = (each.definition for each in SkillFolder(write({}) / "all").skills)

    assert first["frontmatter"] == {
        "name": "a",
        "allowed-tools": "Read Write",
        "compatibility": "any",
        "metadata": {"a": "1"},
        "new": ["x"],
        "description": "Do it.",
    }
    assert second["frontmatter"]["allowed-tools"] == ["x"]


def test_wrong_folders(write):
    """A missing folder, a folder without skills, and a manifest that is not text are refused."""
    root = write({"file": "x", "none/README.md": "x", "raw/SKILL.md": b"---\xff", **skill("a")})

    assert problems(SkillFolder(root / "nowhere")) == [
        "skills[0]: nowhere cannot be read: No such file or directory"
    ]
    assert problems(SkillFolder(root / "file")) == [
        "skills[0]: file cannot be read: Not a directory"
    ]
    assert problems(SkillFolder(root / "none")) == [
        "skills[0]: none has no folder with a SKILL.md in it"
    ]
    assert problems(SkillFolder(root / "a"), SkillFolder(root / "raw")) == [
        "skills[1]: raw/SKILL.md is not UTF-8"
    ]


def test_what_is_no_folder():
    """A bare path, a class, and other objects are refused."""
    assert problems("skills", SkillFolder, Someone, Someone()) == [
        "skills[0]: 'skills' is not a skill; write SkillFolder('skills')",
        f"skills[1]: {SkillFolder!r} is not a skill; write SkillFolder('skills')",
        "skills[2]: Someone is not a skill; register it in tools = […]",
        "skills[3]: Someone is not a skill; register it in tools = […]",
    ]


def test_one_skill_is_served_once(write):
    """A skill is served once, and not again within its outer skill."""
    root = write({**skill("a"), **skill("a/b")})
    folder = SkillFolder(root / "a")

    assert problems(folder, SkillFolder(root / "a" / "b", prefix="a")) == [
        "skills: skill://a/b/SKILL.md is served by 2 of them; give all but one another prefix"
    ]
    assert problems(folder, SkillFolder(root / "a", prefix="c")) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"path": 5}, "SkillFolder.path: must be a folder, got 5"),
        ({"path": ""}, "SkillFolder.path: must be a folder, got ''"),
        (
            {"prefix": "a/../b"},
            "SkillFolder.prefix: must be names with / between them, got 'a/../b'",
        ),
        ({"prefix": "/a"}, "SkillFolder.prefix: must be names with / between them, got '/a'"),
        ({"prefix": "a\n"}, "SkillFolder.prefix: must be names with / between them, got 'a\\n'"),
        ({"prefix": None}, "SkillFolder.prefix: must be names with / between them, got None"),
        ({"hidden": 1}, "SkillFolder.hidden: must be True or False, got 1"),
        (
            {"requires": 1},
            (
                "SkillFolder.requires: must be RequireScopes('read'), the name of a scope or a"
                " list of names, got 1"
            ),
        ),
    ],
)
def test_wrong_arguments(given, problem):
    """They are refused at their own line."""
    with pytest.raises(DefinitionError) as caught:
        SkillFolder(**{"path": "x", **given})

    (found,) = caught.value.problems
    assert f"{found.where}: {found.text}" == problem
    assert found.file.endswith("test_skill.py")


# Other things than plain files in a folder


@pytest.fixture
def links(write):
    """A skill, and targets for its links."""
    root = write({**skill("all/a"), "all/a/x.md": "x", "all/b/y.md": "y", "all/.env": "secret"})
    write({"outside.md": "o", "elsewhere/z.md": "z"})
    return root / "all"


def test_links_to_files_within(links):
    """A link to a file of the folder is read as that file."""
    (links / "a" / "y.md").symlink_to(links / "b" / "y.md")
    (links / "b" / "unused.md").symlink_to("/etc/passwd")
    (found,) = SkillFolder(links).skills

    assert found.files["skill://a/y.md"].invoke("", None) == "y"


def test_a_link_to_a_skill(links):
    """It is reported, not followed; a folder that is given explicitly may be a link."""
    (links.parent / "else" / "c").mkdir(parents=True)
    (links.parent / "else" / "c" / "SKILL.md").write_text(TOP.format("c"))
    (links / "c").symlink_to(links.parent / "else" / "c")

    assert problems(SkillFolder(links)) == [
        "skills[0]: all/c is a link to a skill; give it a SkillFolder of its own"
    ]
    assert problems(SkillFolder(links / "c")) == []


def test_the_folder_may_be_a_link(links):
    """Deployments have such links; the name is that of the link."""
    (links.parent / "current").symlink_to(links)
    (links / "a" / "y.md").symlink_to("../b/y.md")
    (found,) = SkillFolder(links.parent / "current").skills

    assert [*found.files] == ["skill://a/SKILL.md", "skill://a/x.md", "skill://a/y.md"]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("/etc/passwd", "is a link that leads out of what is served; copy the file"),
        ("../../outside.md", "is a link that leads out of what is served; copy the file"),
        ("../.env", "is a link that leads out of what is served; copy the file"),
        ("../b", "is a link to a folder; copy what it needs"),
        ("..", "is a link to a folder; copy what it needs"),
        ("/", "is a link to a folder; copy what it needs"),
        ("nothing", "is a link to nothing that can be read"),
        ("link", "is a link to nothing that can be read"),
    ],
)
def test_links_that_lead_elsewhere(links, target, problem):
    """Nothing outside of the folder is read, and circular links are not followed."""
    (links / "a" / "link").symlink_to(target)

    assert problems(SkillFolder(links)) == [f"skills[0]: all/a/link {problem}"]


def test_a_fault_is_said_once(links):
    """This includes a file that belongs to two skills."""
    (links / "a" / "b").mkdir()
    (links / "a" / "b" / "SKILL.md").symlink_to("/etc/passwd")

    assert problems(SkillFolder(links)) == [
        "skills[0]: all/a/b/SKILL.md is a link that leads out of what is served; copy the file"
    ]


def test_what_is_no_file(links):
    """A pipe is not opened, since that would wait for its other end."""
    os.mkfifo(links / "a" / "pipe")

    assert problems(SkillFolder(links)) == ["skills[0]: all/a/pipe is no file"]


def test_names_that_cannot_be_shown(links):
    """Names must be encodable as UTF-8."""
    (links / "a" / "x\ny").write_text("x")
    (links / "a" / os.fsdecode(b"\xff")).write_text("x")

    assert problems(SkillFolder(links)) == [
        r"skills[0]: 'all/a/x\ny' has a name that is not printable",
        r"skills[0]: 'all/a/\udcff' has a name that is not printable",
    ]


def test_files_that_cannot_be_read(links, monkeypatch):
    """An error of the system is reported once for each file, without a traceback."""

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    (links / "a" / "x").mkdir()
    (links / "a" / "x" / "SKILL.md").touch()

    assert problems(SkillFolder(links)) == [
        f"skills[0]: all/a/{name} cannot be read: Permission denied"
        for name in ("SKILL.md", "x/SKILL.md", "x.md")
    ]


def test_files_that_go_away(links, monkeypatch):
    """A file may vanish after the folder was listed."""

    def refuse(path):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("pathlib.Path.lstat", refuse)

    assert problems(SkillFolder(links))[0] == (
        "skills[0]: all/a/SKILL.md cannot be read: No such file or directory"
    )


def test_limits(links, monkeypatch):
    """A skill above the size that hosts must accept is refused, as is a folder of other things."""
    large = links / "a" / "large.bin"
    large.touch()
    os.truncate(large, MAX_BYTES)
    text = f"skills[0]: all/a has {MAX_BYTES + 46} bytes; a skill has at most {MAX_BYTES}"
    assert problems(SkillFolder(links)) == [text]
    for number in range(MAX_FILES - 2):
        (links / "a" / f"{number}.md").touch()
    text = f"skills[0]: all/a has {MAX_FILES + 1} files; a skill has at most {MAX_FILES}"
    assert problems(SkillFolder(links)) == [text]
    monkeypatch.setattr("noizu_mcp.skills._files.MAX_ENTRIES", 4)
    text = "skills[0]: all has more than 4 files; name the skill"
    assert problems(SkillFolder(links)) == [text]


def test_the_limits_of_the_extension():
    """They are the numbers of SEP-2640."""
    assert (MAX_FILES, MAX_BYTES) == (512, 16_777_216)
