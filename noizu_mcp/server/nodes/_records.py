"""Records and log entries of a server in a backend: named by digests, sealed, read with suspicion.

A backend learns no session id, task id or value. Keys have the digest of an id, and values are
encrypted with the state keys of the server, bound to their key. So a writer of the backend can lose
data or bring an older value back, but can neither forge a value nor move it to another key. A value
that cannot be decrypted counts as missing.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ..._log import ThrottledLog
from ..._util import Returned
from ...backends import Backend, BackendUnavailable, Conflict
from ...jsonrpc import parse_json, render
from .._cipher import Cipher

_NO_GROUPS: Final[Mapping[str, int]] = MappingProxyType({})
#: Times that a record is read and written until no other node writes it in between.
ATTEMPTS: Final = 50
#: Characters of the digest in a key: 128 bits.
_DIGEST: Final = 32


class Stored(NamedTuple):
    """The value of a record.

    Attributes:
        value: A JSON value; None if the caller knows this version.
        version: The version, for a later `put`.
    """

    value: Any
    version: int


def digest_of(name: str) -> str:
    """Return the digest by which a backend knows an id."""
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]


class Records:
    """The sealed records and streams of one server.

    Args:
        backend: Stores them.
        cipher: Seals them.
        on_failure: Called when the backend cannot answer.
    """

    def __init__(
        self, backend: Backend, cipher: Cipher, on_failure: Callable[[BackendUnavailable], None]
    ) -> None:
        self._backend = backend
        self._cipher = cipher
        self._on_failure = on_failure
        self._log = ThrottledLog()

    def seal(self, key: str, text: bytes) -> bytes:
        """Seal JSON text for a key."""
        return self._cipher.encrypt(text, key.encode())

    def open(self, key: str, data: bytes) -> Any:
        """Open the sealed value of a key; None if it cannot be opened."""
        text = self.unseal(key, data)
        return None if text is None else parse_json(text)

    def unseal(self, key: str, data: bytes) -> bytes | None:
        """Return the JSON text that was sealed for a key; None if it cannot be opened."""
        try:
            return self._cipher.decrypt(data, key.encode())
        except ValueError as error:
            # The kind of the key only: the rest tells which session or task it is.
            kind = key.partition(":")[0]
            self._log.warning(kind, "a record of the backend (%s) was ignored: %s", kind, error)
            return None

    async def get(self, key: str, *, ttl: float | None = None, known: int = 0) -> Stored | None:
        """Read a record.

        Args:
            key: The key.
            ttl: Seconds from now after which the record expires; None to leave its expiry.
            known: The version that the caller has; its value is not transferred again.

        Returns:
            The record; None if it does not exist or cannot be opened.

        Raises:
            BackendUnavailable: The backend cannot answer now.
        """
        # As `_ask` does: each request of a session comes here.
        try:
            record = await self._backend.get(key, ttl=ttl, known=known)
        except BackendUnavailable as error:
            self._on_failure(error)
            raise
        if record is None:
            return None
        if known and record.version == known:
            return Stored(None, known)
        value = self.open(key, record.value)
        return None if value is None else Stored(value, record.version)

    async def put(
        self,
        key: str,
        value: object,
        *,
        ttl: float,
        version: int | None = None,
        groups: Mapping[str, int] = _NO_GROUPS,
    ) -> int:
        """Write a record; see `Store.put`.

        Raises:
            Conflict: The record has another version.
            Full: A group has no room.
            BackendUnavailable: The backend cannot answer now.
        """
        data = self.seal(key, render(value))
        put = self._backend.put(key, data, ttl=ttl, version=version, groups=groups)
        return await self._ask(put)

    async def delete(self, key: str, *, version: int | None = None) -> bool:
        """Delete a record; see `Store.delete`."""
        return await self._ask(self._backend.delete(key, version=version))

    async def change(
        self, key: str, edit: Callable[[Any], Any], *, ttl: float, attempts: int = ATTEMPTS
    ) -> Stored | None:
        """Change a record, whatever other nodes write to it meanwhile.

        Args:
            key: The key.
            edit: Returns the new value for the present one; None to leave the record alone. It may
                be called several times.
            ttl: Seconds from now after which the record expires.
            attempts: Number of times that it is tried.

        Returns:
            The record as it is now; None if it does not exist.

        Raises:
            BackendUnavailable: The backend cannot answer now, or other nodes changed the record at
                each attempt.
        """
        for _ in range(attempts):
            stored = await self.get(key)
            if stored is None:
                return None
            value = edit(stored.value)
            if value is None:
                return stored
            try:
                version = await self.put(key, value, ttl=ttl, version=stored.version)
            except Conflict:
                continue
            return Stored(value, version)
        raise BackendUnavailable("a record is changed by too many nodes at once")

    async def take(self, key: str, *, limit: int, period: float) -> float:
        """Count one use against a rate limit; see `Store.take`."""
        return await self._ask(self._backend.take(key, limit=limit, period=period))

    async def members(self, group: str) -> list[str]:
        """Return the live keys of a group."""
        return await self._ask(self._backend.members(group))

    async def _ask(self, operation: Awaitable[Returned]) -> Returned:
        try:
            return await operation
        except BackendUnavailable as error:
            self._on_failure(error)
            raise
