"""`--output`: images, audio, blobs and texts in files, and nothing overwritten by accident."""

import json

import pytest

SERVER = '''
from noizu_mcp import (
    Content, Resource, ResourceContents, Server, ToolError, Toolkit, ToolResult, mcp,
)

class Kit(Toolkit):
    ran = []

    @mcp
    def chart(self) -> list[Content]:
        """Draw."""
        self.ran.append(1)
        return [Content.text("here it is"), Content.image(b"\\x89PNG\\0", "image/png")]

    @mcp
    def all(self) -> list[Content]:
        """Everything."""
        return [
            Content.image(b"1", "image/png"),
            Content.audio(b"2", "audio/x-wav; rate=1"),
            Content.resource(ResourceContents("a://b", blob=b"3")),
            Content.resource(ResourceContents("a://c", "text/csv", text="4\\r\\n")),
            Content.resource_link("a://d", "d"),
        ]

    @mcp
    def rows(self) -> str:
        """A table."""
        return "a\\r\\nb\\r\\n"

    @mcp
    def nothing(self):
        """No content."""
        return ToolResult([])

    @mcp
    def fails(self) -> str:
        """Refuse."""
        raise ToolError("not today")

class Parts(Resource, uri="parts://all"):
    def read(self, uri, ctx):
        return [
            ResourceContents("parts://1", text="one"),
            ResourceContents("parts://2", "image/png", blob=b"2"),
        ]

class Drawing(Server, name="drawing", version="1"):
    tools = [Kit]
    resources = [Parts]
'''


@pytest.fixture
def drawing(folder):
    """A working directory with a server that makes images."""
    (folder / "drawing.py").write_text(SERVER)
    return folder


def wrote(name, size, kind):
    return f"noizu-mcp: wrote {name} ({size} bytes{kind and f' of {kind}'})\n"


def test_an_image(drawing, run):
    """The image is the file; its text is printed."""
    status, out, err = run("call", "drawing.py", "chart", "--output", "x.png")
    assert (status, out, err) == (0, "here it is\n", wrote("x.png", 5, "image/png"))
    assert (drawing / "x.png").read_bytes() == b"\x89PNG\0"


def test_text(drawing, run):
    """A text alone is written byte for byte."""
    status, out, err = run("call", "drawing.py", "rows", "--output", "x.csv")
    assert (status, out, err) == (0, "", wrote("x.csv", 6, "text/plain"))
    assert (drawing / "x.csv").read_bytes() == b"a\r\nb\r\n"


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("x", ["x-1.png", "x-2.wav", "x-3", "x-4.csv"]),
        ("x.bin", ["x-1.bin", "x-2.bin", "x-3.bin", "x-4.bin"]),
    ],
)
def test_several(drawing, run, output, names):
    """They are numbered, with the given suffix, or that of their media types."""
    status, out, err = run("call", "drawing.py", "all", "--output", output)
    assert status == 0
    assert json.loads(out)["uri"] == "a://d"
    assert err == (
        wrote(names[0], 1, "image/png")
        + wrote(names[1], 1, "audio/x-wav; rate=1")
        + wrote(names[2], 1, "")
        + wrote(names[3], 3, "text/csv")
    )
    assert [(drawing / name).read_bytes() for name in names] == [b"1", b"2", b"3", b"4\r\n"]


def test_a_resource_of_parts(drawing, run):
    """Each part of a resource is a file."""
    assert run("read", "drawing.py", "parts://all", "--output", "p.x")[:2] == (0, "")
    assert [(drawing / f"p-{n}.x").read_bytes() for n in (1, 2)] == [b"one", b"2"]


def test_json(drawing, run):
    """With `--json` the file has the whole result."""
    assert run("call", "drawing.py", "chart", "--json", "--output", "x.json")[:2] == (0, "")
    assert json.loads((drawing / "x.json").read_text())["content"][1]["data"] == "iVBORwA="
    assert run("read", "drawing.py", "parts://all", "--json", "--output", "y.json")[:2] == (0, "")
    assert len(json.loads((drawing / "y.json").read_text())["contents"]) == 2


def test_what_exists_stays(drawing, run):
    """The tool is not called; `--force` replaces the file."""
    (drawing / "x.png").write_text("old")
    (drawing / "link.png").symlink_to("nowhere")
    words = ("call", "drawing.py", "chart", "--trace", "--output")
    assert run(*words, "x.png") == (2, "", "noizu-mcp: x.png exists; --force replaces it\n")
    assert run(*words, "link.png")[0] == 2
    assert (drawing / "x.png").read_text() == "old"
    assert run("call", "drawing.py", "chart", "--output", "x.png", "--force")[0] == 0
    assert (drawing / "x.png").read_bytes() == b"\x89PNG\0"


def test_numbered_files_that_exist_stay(drawing, run):
    """Nothing is written if one of them would be overwritten."""
    for name in ("x-2.png", "x-3.png"):
        (drawing / name).write_text("old")
    told = "noizu-mcp: x-2.png, x-3.png exist; --force replaces it\n"
    assert run("call", "drawing.py", "all", "--output", "x.png")[::2] == (2, told)
    assert not (drawing / "x-1.png").exists()


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("chart", "--output", "sub"), 2, "--output names a file; sub is a folder"),
        (("chart", "--output", "none/x.png"), 2, "no such folder: none"),
        (("chart", "--force"), 2, "--force goes with --output"),
        (
            ("nothing", "--output", "x"),
            1,
            "the server gave nothing that could be written to a file",
        ),
        (("rows", "--output", "x" * 300), 1, f"cannot write {'x' * 300}: File name too long"),
    ],
)
def test_what_cannot_be_written(drawing, run, words, status, told):
    """One line has the reason."""
    (drawing / "sub").mkdir()
    assert run("call", "drawing.py", *words) == (status, "", f"noizu-mcp: {told}\n")


def test_a_failure_is_no_file(drawing, run):
    """The text of a failed tool goes to stderr, as usual."""
    assert run("call", "drawing.py", "fails", "--output", "x") == (1, "", "not today\n")
    assert not (drawing / "x").exists()
