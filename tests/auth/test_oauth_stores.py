"""Stores of credentials: in memory, in a file, in a keyring."""

import json
import os
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest
import trio

from noizu_mcp import AuthError
from noizu_mcp.auth import FileStore, KeyringStore, MemoryStore


class Keyring:
    """A keyring in memory, with the functions of the package `keyring`."""

    def __init__(self):
        self.values = {}
        self.is_locked = False

    def get_password(self, service, key):
        if self.is_locked:
            raise RuntimeError("the keyring is locked")
        return self.values.get((service, key))

    def set_password(self, service, key, value):
        self.values[service, key] = value

    def delete_password(self, service, key):
        del self.values[service, key]


@pytest.fixture
def keyring(monkeypatch, tmp_path):
    """Replace the keyring of the system by one in memory."""
    made = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", made)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return made


@pytest.fixture(params=["memory", "file", "keyring"])
def store(request, tmp_path, keyring):
    """Each of the stores."""
    if request.param == "file":
        return FileStore(tmp_path / "folder" / "credentials.json")
    return MemoryStore() if request.param == "memory" else KeyringStore()


async def test_values_come_back(store):
    """A value is loaded unchanged by its key, until it is deleted."""
    assert await store.load("a") is None
    await store.save("a", {"x": [1, "é"], "y": None})
    await store.save("b", {})
    assert await store.load("a") == {"x": [1, "é"], "y": None}
    await store.save("a", {"z": 1})
    assert await store.load("a") == {"z": 1}
    await store.delete("a")
    await store.delete("a")
    assert await store.load("a") is None
    assert await store.load("b") == {}


async def test_one_at_a_time(store):
    """A lock excludes others, for one key."""
    inside, most = 0, 0

    async def enter():
        nonlocal inside, most
        async with store.lock("a"):
            inside += 1
            most = max(most, inside)
            await trio.testing.wait_all_tasks_blocked()
            inside -= 1

    with trio.fail_after(60):
        async with store.lock("b"), trio.open_nursery() as nursery:
            nursery.start_soon(enter)
            nursery.start_soon(enter)

    assert most == 1


async def test_the_file_belongs_to_its_owner(tmp_path):
    """The folder and the files in it are accessible to their owner only."""
    store = FileStore(tmp_path / "new" / "credentials.json")
    await store.save("a", {"token": "secret"})

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    files = list((tmp_path / "new").iterdir())
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert repr(store) == f"FileStore({str(store.path)!r})"
    assert json.loads(store.path.read_text()) == {"a": {"token": "secret"}}


async def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """The old file is complete, and no partial new one remains."""
    store = FileStore(tmp_path / "credentials.json")
    await store.save("a", {"x": 1})

    def fail(*args):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(AuthError, match=r"credentials.json cannot be used: the disk is full"):
        await store.save("a", {"x": 2})

    assert await store.load("a") == {"x": 1}
    assert [each.name for each in tmp_path.iterdir() if "lock" not in each.name] == [
        "credentials.json"
    ]


@pytest.mark.parametrize("text", ["[]", "{", ""])
async def test_a_file_of_something_else(tmp_path, text):
    """A file with other content is not changed."""
    store = FileStore(tmp_path / "credentials.json")
    store.path.write_text(text)

    with pytest.raises(AuthError, match="cannot be used"):
        await store.load("a")
    with pytest.raises(AuthError, match="cannot be used"):
        await store.save("a", {})
    assert store.path.read_text() == text


async def test_a_value_of_something_else(tmp_path, keyring):
    """A value of another form counts as missing."""
    store = FileStore(tmp_path / "credentials.json")
    store.path.write_text('{"a": 5}')
    assert await store.load("a") is None

    keyring.values["noizu-mcp", "a"] = "5"
    assert await KeyringStore().load("a") is None
    keyring.values["noizu-mcp", "a"] = "{"
    assert await KeyringStore().load("a") is None


async def test_a_folder_that_cannot_be_made(tmp_path):
    """It raises `AuthError`."""
    (tmp_path / "file").write_text("")
    store = FileStore(tmp_path / "file" / "credentials.json")

    with pytest.raises(AuthError, match="the credentials cannot be locked"):
        await store.save("a", {})


async def test_a_keyring_that_fails(keyring):
    """It raises `AuthError`, whatever the backend raises: some pass on errors of the system."""
    keyring.is_locked = True

    with pytest.raises(AuthError, match="the keyring cannot be used: the keyring is locked"):
        await KeyringStore().load("a")


def test_without_the_package(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "keyring", None)

    with pytest.raises(ImportError, match="pip install keyring"):
        KeyringStore()


def test_the_file_of_all_programs(monkeypatch, tmp_path):
    """It is in the system's folder for program data."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert FileStore().path == tmp_path / "noizu-mcp" / "credentials.json"

    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert FileStore().path == tmp_path / ".local/share/noizu-mcp/credentials.json"


OTHER = """\
import sys, trio
from noizu_mcp.auth import FileStore
async def main():
    store = FileStore(sys.argv[1])
    async with store.lock("a"):
        print("locked", flush=True)
        sys.stdin.readline()
        await store.save("a", {"by": "the other"})
trio.run(main)
"""


@pytest.mark.slow
async def test_a_lock_holds_among_processes(tmp_path, autojump_clock):
    """A lock ends with its process at the latest; other processes then see its changes."""
    store = FileStore(tmp_path / "credentials.json")
    command = [sys.executable, "-c", OTHER, str(store.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as other:  # noqa: ASYNC220 - it answers at once
        assert other.stdout.readline() == b"locked\n"
        with trio.move_on_after(1):
            async with store.lock("a"):
                raise AssertionError
        other.stdin.write(b"\n")
        other.stdin.flush()
        other.wait(60)

    async with store.lock("a"):
        assert await store.load("a") == {"by": "the other"}


async def test_locks_where_there_is_no_fcntl(monkeypatch, tmp_path, autojump_clock):
    """Windows has another module for locks."""
    taken = []

    def locking(descriptor, mode, size):
        if taken:
            raise PermissionError
        taken.append((mode, size))

    store = FileStore(tmp_path / "credentials.json")
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    async with store.lock("a"):
        with trio.move_on_after(1):
            async with store.lock("a"):
                raise AssertionError

    assert taken == [(2, 1)]


async def test_the_real_package(monkeypatch, tmp_path):
    """`keyring` has the functions that the store uses."""
    keyring = pytest.importorskip("keyring")
    backend = pytest.importorskip("keyring.backend")

    class InMemory(Keyring, backend.KeyringBackend):
        priority = 1

        def get_password(self, service, key):
            if self.is_locked:
                raise keyring.errors.KeyringLocked("the keyring is locked")
            return self.values.get((service, key))

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    before = keyring.get_keyring()
    keyring.set_keyring(InMemory())
    try:
        store = KeyringStore("tests")
        await store.save("a", {"x": 1})
        assert await store.load("a") == {"x": 1}
        await store.delete("a")
        assert await store.load("a") is None
        keyring.get_keyring().is_locked = True
        with pytest.raises(AuthError, match="the keyring is locked"):
            await store.load("a")
    finally:
        keyring.set_keyring(before)
