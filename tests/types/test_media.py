"""Images, audio and files as content: bytes, paths, and objects that can save themselves."""

import os
from pathlib import Path

import pytest

from noizu_mcp import Content

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("make", "name", "mime_type"),
    [
        (Content.image, "a.png", "image/png"),
        (Content.image, "A.JPG", "image/jpeg"),
        (Content.image, "a.webp", "image/webp"),
        (Content.image, "a.svg", "image/svg+xml"),
        (Content.audio, "a.wav", "audio/wav"),
        (Content.audio, "a.mp3", "audio/mpeg"),
        (Content.audio, "a.flac", "audio/flac"),
    ],
)
def test_paths_of_images_and_recordings(folder, make, name, mime_type):
    """The name of a file determines its type, unless `mime_type` is given."""
    Path(name).write_bytes(PNG)

    for path in (name, folder / name):
        block = make(path)
        assert (block.data, block.mime_type) == (PNG, mime_type)
    kind = mime_type.partition("/")[0]
    assert make(name, f"{kind}/other").mime_type == f"{kind}/other"


@pytest.mark.parametrize(
    ("make", "name", "text"),
    [
        (Content.image, "a.wav", "a.wav is audio/wav, not of the type image/…; give mime_type="),
        (Content.image, "a", "a is of an unknown type, not of the type image/…"),
        (Content.audio, "a.png", "a.png is image/png, not of the type audio/…"),
    ],
)
def test_names_that_tell_another_type(folder, make, name, text):
    """They are refused with the right function."""
    Path(name).write_bytes(PNG)

    with pytest.raises(ValueError, match="not of the type") as caught:
        make(name)
    assert str(caught.value).startswith(text)


def test_a_file_that_is_not_there(folder):
    """Python's own error is raised."""
    with pytest.raises(FileNotFoundError):
        Content.image("missing.png")


def test_bytes_need_a_type():
    """Bytes have no name; other values are refused, too."""
    with pytest.raises(TypeError, match="mime_type: expected a string, got None"):
        Content.image(PNG)
    with pytest.raises(TypeError, match="data: expected bytes, got 5"):
        Content.image(5, "image/png")
    with pytest.raises(TypeError, match="data: expected bytes"):
        Content.audio(Figure(), "audio/wav")


class Figure:
    """The relevant methods of a matplotlib figure."""

    def savefig(self, file, **options):
        file.write(options["format"].encode())


class Picture:
    """The relevant methods of a Pillow image; CMYK cannot be saved as PNG."""

    def __init__(self, mode="RGB"):
        self.mode = mode

    def save(self, file, **options):
        if self.mode == "CMYK" and options["format"] == "PNG":
            raise OSError("cannot write mode CMYK as PNG")
        file.write(f"{options['format']} {self.mode}".encode())

    def convert(self, mode):
        return Picture(mode)


@pytest.mark.parametrize(
    ("picture", "mime_type", "data"),
    [
        (Figure(), None, b"png"),
        (Figure(), "image/svg+xml", b"svg"),
        (Picture(), None, b"PNG RGB"),
        (Picture(), "image/jpeg", b"JPEG RGB"),
        (Picture("CMYK"), None, b"PNG RGB"),
    ],
)
def test_pictures_save_themselves(picture, mime_type, data):
    """They are saved as PNG, or in the given format."""
    block = Content.image(picture, mime_type)

    assert (block.data, block.mime_type) == (data, mime_type or "image/png")


@pytest.mark.parametrize(
    ("name", "data", "mime_type", "content"),
    [
        ("a.txt", b"hi", "text/plain", "hi"),
        ("a.md", b"# hi", "text/markdown", "# hi"),
        ("a.json", b"{}", "application/json", "{}"),
        ("a.svg", b"<svg/>", "image/svg+xml", "<svg/>"),
        ("a.yaml", b"a: 1", "application/yaml", "a: 1"),
        ("README", "é".encode(), "text/plain", "é"),
        ("data", b"\xff\xfe", "application/octet-stream", b"\xff\xfe"),
        ("zero", b"a\0b", "application/octet-stream", b"a\0b"),
        ("a.csv", b"\xff", "text/csv", b"\xff"),
        ("a.pdf", b"%PDF", "application/pdf", b"%PDF"),
        ("a.png", PNG, "image/png", PNG),
    ],
)
def test_files(folder, name, data, mime_type, content):
    """Text files are text, others bytes; the folder is not sent."""
    Path(name).write_bytes(data)
    resource = Content.file(folder / name).resource

    assert resource.uri == f"file:///{name}"
    assert resource.mime_type == mime_type
    assert (resource.blob if isinstance(content, bytes) else resource.text) == content


def test_a_file_with_another_uri_and_type(folder):
    """Both can be given; the default URI has valid characters only."""
    Path("my file.bin").write_bytes(b"x")

    assert Content.file("my file.bin").resource.uri == "file:///my%20file.bin"
    block = Content.file("my file.bin", "text/x-log; charset=utf-8", uri="logs://1", meta={"a": 1})
    assert (block.resource.uri, block.resource.text) == ("logs://1", "x")
    assert block.meta == {"a": 1}
    assert Content.from_wire(block.to_wire()) == block


def test_the_size_is_bounded(folder):
    """A file beyond the limit of a message is refused, and the error says what to send instead."""
    most = 10 * 1024 * 1024
    for name, size in (("a.png", most + 1), ("b.png", most)):
        Path(name).touch()
        os.truncate(name, size)

    assert len(Content.image("b.png").data) == most
    text = f"has more than {most} bytes; send a link to a resource"
    for make in (Content.image, Content.file):
        with pytest.raises(ValueError, match=text):
            make("a.png")


# The libraries themselves, where they are installed


def test_pillow_itself():
    """An image of any mode is saved as PNG, and most as JPEG."""
    image = pytest.importorskip("PIL.Image")

    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "F", "I", "HSV"):
        assert Content.image(image.new(mode, (2, 2))).data.startswith(PNG)
    jpeg = Content.image(image.new("RGBA", (2, 2)), "image/jpeg")
    assert (jpeg.data[:2], jpeg.mime_type) == (b"\xff\xd8", "image/jpeg")


def test_matplotlib_itself():
    """A figure is saved as PNG, or as SVG on request."""
    figure = pytest.importorskip("matplotlib.figure").Figure()
    figure.subplots().plot([1, 2])

    assert Content.image(figure).data.startswith(PNG)
    assert b"<svg" in Content.image(figure, "image/svg+xml").data
