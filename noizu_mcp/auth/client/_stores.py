"""Stores of credentials: in memory, in a file, in the keyring of the system.

A store maps keys to JSON objects. The keys name servers and issuers; the values contain tokens,
refresh tokens and client secrets, in clear text. A refresh token can often be used only once, so
two programs that share it take turns: each holds the `lock` of its key.
"""

import contextlib
import hashlib
import importlib
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import trio

from ..._errors import AuthError
from ..._files import NOFOLLOW, replace_file
from ..._util import Returned
from ..._value import JSONObject
from ._discovery import read_object

#: Seconds between two attempts to get a lock that another process holds.
LOCK_PAUSE: Final = 0.05


class CredentialStore(Protocol):
    """The interface of stores: a class with these four methods is a store."""

    async def load(self, key: str, /) -> JSONObject | None:
        """Return the value of a key, or None."""

    async def save(self, key: str, value: JSONObject, /) -> None:
        """Set the value of a key, atomically."""

    async def delete(self, key: str, /) -> None:
        """Delete a key, if it exists."""

    def lock(self, key: str, /) -> AbstractAsyncContextManager[object]:
        """Return a lock for a key; other users of the store wait while the block runs."""


class MemoryStore:
    """A `CredentialStore` in memory: it ends with the program."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._locks: dict[str, threading.Lock] = {}

    async def load(self, key: str, /) -> JSONObject | None:
        """Return the value of a key; see `CredentialStore`."""
        await trio.lowlevel.checkpoint()
        found = self._values.get(key)
        # A copy each time, as from a file: no caller changes the value of another one.
        return None if found is None else json.loads(found)

    async def save(self, key: str, value: JSONObject, /) -> None:
        """Set the value of a key; see `CredentialStore`."""
        await trio.lowlevel.checkpoint()
        self._values[key] = json.dumps(value)

    async def delete(self, key: str, /) -> None:
        """Delete a key; see `CredentialStore`."""
        await trio.lowlevel.checkpoint()
        self._values.pop(key, None)

    def lock(self, key: str, /) -> AbstractAsyncContextManager[object]:
        """Lock a key for this program; see `CredentialStore`."""
        # Not a lock of trio: clients of several threads may share the store, each with a loop.
        return _thread_lock(self._locks.setdefault(key, threading.Lock()))


class FileStore:
    """A `CredentialStore` in one JSON file, which only its owner can read (mode 0600).

    Several processes may use it at the same time: each change replaces the whole file, and the
    locks are files beside it.

    Args:
        path: The file; None: `noizu-mcp/credentials.json` in the folder for data of programs, which
            is `$XDG_DATA_HOME` or `~/.local/share`.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = default_path() if path is None else Path(path)

    def __repr__(self) -> str:
        return f"FileStore({str(self.path)!r})"

    async def load(self, key: str, /) -> JSONObject | None:
        """Return the value of a key; see `CredentialStore`.

        Raises:
            AuthError: The file cannot be read, or is not a JSON object.
        """
        found = (await self._run(self._read)).get(key)
        return found if isinstance(found, dict) else None

    async def save(self, key: str, value: JSONObject, /) -> None:
        """Set the value of a key; see `CredentialStore`.

        Raises:
            AuthError: The file cannot be written.
        """
        await self._change(lambda values: values.update({key: value}))

    async def delete(self, key: str, /) -> None:
        """Delete a key; see `CredentialStore`.

        Raises:
            AuthError: The file cannot be written.
        """
        await self._change(lambda values: values.pop(key, None))

    def lock(self, key: str, /) -> AbstractAsyncContextManager[object]:
        """Lock a key for all programs; see `CredentialStore`."""
        return file_lock(_lock_path(self.path, key))

    async def _change(self, change: Callable[[JSONObject], object]) -> None:
        def run() -> None:
            values = self._read()
            change(values)
            replace_file(self.path, json.dumps(values, indent=1).encode())

        async with file_lock(_lock_path(self.path, "")):
            await self._run(run)

    async def _run(self, work: Callable[[], Returned]) -> Returned:
        try:
            return await trio.to_thread.run_sync(work)
        except (OSError, ValueError) as error:
            raise AuthError(f"the credentials in {self.path} cannot be used: {error}") from error

    def _read(self) -> JSONObject:
        try:
            values = read_object(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        if values is None:
            raise ValueError("the file is not a JSON object")
        return values


class KeyringStore:
    """A `CredentialStore` in the keyring of the system; needs the package `keyring`.

    Args:
        service: The name of the entries there.

    Raises:
        ImportError: `keyring` is not installed.
    """

    def __init__(self, service: str = "noizu-mcp") -> None:
        try:
            self._keyring: Any = importlib.import_module("keyring")
        except ImportError as error:
            raise ImportError("KeyringStore needs keyring: pip install keyring") from error
        self._service = service

    async def load(self, key: str, /) -> JSONObject | None:
        """Return the value of a key; see `CredentialStore`.

        Raises:
            AuthError: The keyring cannot be used; so for the other methods.
        """
        text = await self._run(self._keyring.get_password, key)
        with contextlib.suppress(TypeError, ValueError):
            value = json.loads(text)
            return value if isinstance(value, dict) else None
        return None

    async def save(self, key: str, value: JSONObject, /) -> None:
        """Set the value of a key; see `CredentialStore`."""
        await self._run(self._keyring.set_password, key, json.dumps(value))

    async def delete(self, key: str, /) -> None:
        """Delete a key; see `CredentialStore`."""
        if await self._run(self._keyring.get_password, key) is not None:
            await self._run(self._keyring.delete_password, key)

    def lock(self, key: str, /) -> AbstractAsyncContextManager[object]:
        """Lock a key for all programs of this user; see `CredentialStore`."""
        return file_lock(_lock_path(default_path().with_name(self._service), key))

    async def _run(self, function: Callable[..., Returned], key: str, *more: str) -> Returned:
        try:
            return await trio.to_thread.run_sync(function, self._service, key, *more)
        except Exception as error:
            # Of `keyring`, or of the system below it: a backend passes these on.
            raise AuthError(f"the keyring cannot be used: {error}") from error


def default_path() -> Path:
    """Return the default file of credentials, which programs share."""
    folder = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(folder) / "noizu-mcp" / "credentials.json"


def _lock_path(path: Path, key: str) -> Path:
    """Name the file that locks a key; the whole file for an empty key."""
    # A digest, since a key holds URLs.
    digest = hashlib.sha256(key.encode()).hexdigest()[:16] if key else "all"
    return path.with_name(f".{path.name}.{digest}.lock")


@asynccontextmanager
async def file_lock(path: Path) -> AsyncIterator[None]:
    """Hold a lock of all processes while the block runs; it ends with the process.

    Args:
        path: The file of the lock, which is empty and is not deleted.

    Raises:
        AuthError: The file cannot be created.
    """
    try:
        await trio.to_thread.run_sync(lambda: path.parent.mkdir(0o700, parents=True, exist_ok=True))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NOFOLLOW, 0o600)
    except OSError as error:
        raise AuthError(f"the credentials cannot be locked: {error}") from error
    try:
        await _wait_until(partial(_try_lock, descriptor))
        yield
    finally:
        # Closing ends the lock.
        os.close(descriptor)


@asynccontextmanager
async def _thread_lock(lock: threading.Lock) -> AsyncIterator[None]:
    await _wait_until(partial(lock.acquire, blocking=False))
    try:
        yield
    finally:
        lock.release()


async def _wait_until(is_done: Callable[[], bool]) -> None:
    # Polled: waiting for a lock of another process, or thread, cannot be cancelled.
    await trio.lowlevel.checkpoint()
    while True:
        if is_done():
            return
        await trio.sleep(LOCK_PAUSE)


def _try_lock(descriptor: int) -> bool:
    # By name: each of the two modules exists on some systems only.
    try:
        if os.name == "posix":
            fcntl: Any = importlib.import_module("fcntl")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt: Any = importlib.import_module("msvcrt")
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    return True
