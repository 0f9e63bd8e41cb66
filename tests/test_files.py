"""Files that the package writes: never through a link from somebody else."""

from contextlib import suppress

import pytest

from noizu_mcp import AuthError
from noizu_mcp.auth import FileStore
from noizu_mcp.check.contract import save
from noizu_mcp.check.fuzz import keep
from noizu_mcp.cli import main
from noizu_mcp.testing import record

SERVER = """
from noizu_mcp import Server, resource

class App(Server, name="app", version="1"):
    resources = [resource(lambda: "text", uri="x://y", name="y")]
"""


def write_cassette(path):
    with record(path):
        pass


def write_contract(path):
    save({"contract": 1}, path)


def write_findings(path):
    keep(path, [])


WRITERS = [write_cassette, write_contract, write_findings]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_to_a_file_is_not_written(exists, write, tmp_path):
    """The error has the name of the file behind it, which is not changed."""
    target, link = tmp_path / "target", tmp_path / "link"
    if exists:
        target.write_text("")
    link.symlink_to(target)
    with pytest.raises(OSError, match=r"it is a link to .*target; name that file"):
        write(link)

    assert target.exists() is exists
    assert not exists or target.read_text() == ""


@pytest.mark.parametrize("write", WRITERS)
def test_a_link_to_a_device_is_written(write, tmp_path):
    """`/dev/stdout` is a link, and can be used."""
    (tmp_path / "link").symlink_to("/dev/null")
    write(tmp_path / "link")

    assert (tmp_path / "link").is_symlink()


def test_a_folder_is_no_file(tmp_path):
    """Other errors of the system are raised unchanged."""
    with pytest.raises(IsADirectoryError):
        write_contract(tmp_path)


@pytest.mark.parametrize(
    ("words", "text"),
    [(("--force",), "cannot write link: it is a link to "), ((), "link exists; --force replaces")],
)
def test_contents_are_not_written_through_a_link(words, text, tmp_path, monkeypatch, capsys):
    """`--output` with `--force` replaces a file, but not the file behind a link."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(SERVER)
    (tmp_path / "target").write_text("precious")
    (tmp_path / "link").symlink_to("target")
    assert main(["read", "app.py", "x://y", "--output", "link", *words]) != 0

    assert text in capsys.readouterr().err
    assert (tmp_path / "target").read_text() == "precious"


async def test_a_lock_of_credentials_is_no_link(tmp_path):
    """No file is created behind a link with the name of the lock."""
    store = FileStore(tmp_path / "credentials.json")
    await store.save("key", {})
    [lock] = [each for each in tmp_path.iterdir() if each.suffix == ".lock"]
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with suppress(AuthError):
        await store.save("key", {"a": 1})

    assert not (tmp_path / "elsewhere").exists()
    assert await store.load("key") == {}
