"""The cache of a client (2026-07-28 `server/utilities/caching`).

Theory of operation. An answer is stored by its method and the one parameter that selects it: the
cursor of a list, the URI of a resource. While it is stored, it is returned instead of sending a
request. It is dropped when its time is over, when a notification reports a change, or when newer
answers need its room. To make sure that no answer older than a change is stored, drops are counted:
an answer is stored only if nothing of its method was dropped since its request was sent.

Memory is bounded by the JSON of the answers. A private answer is returned only for the credentials
with which it was received; the cache belongs to one connection, so it is not shared between users.
"""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Final, NamedTuple, cast

import trio

from .._util import Returned, json_text
from .._value import JSONObject
from ..jsonrpc import Notification
from ..protocol import CHANGES, RESOURCE_UPDATED
from ._session import ClientSession

#: Characters of JSON in the cache of one connection; decoded it takes a few times as much.
CACHE_SIZE: Final = 8 * 1024 * 1024
#: Maximum seconds that an answer is stored, whatever the server allows.
MAX_TTL: Final = 24 * 3600.0

READ: Final = "resources/read"
#: The methods whose answers a notification drops.
_DROPPED: Final = {
    CHANGES["tools"][0]: ("tools/list",),
    CHANGES["prompts"][0]: ("prompts/list",),
    CHANGES["resources"][0]: ("resources/list", "resources/templates/list", "skills/list"),
}


class CacheKey(NamedTuple):
    """The key of an answer.

    Attributes:
        method: The method of its request.
        detail: The cursor or the URI; None for the first page of a list.
    """

    method: str
    detail: str | None = None


class _CachedAnswer(NamedTuple):
    """An answer.

    Attributes:
        value: The answer, as its reader returned it.
        until: The time at which it expires.
        size: Characters of its JSON.
        shared: Whether it is the same for all users.
        credentials: The credentials of its request.
    """

    value: object
    until: float
    size: int
    shared: bool
    credentials: Hashable


class ResponseCache:
    """Caches the answers of one server.

    Args:
        session: The connection; only answers of 2026-07-28 are stored.
        size: Maximum characters of JSON; 0 to store nothing.
    """

    def __init__(self, session: ClientSession, size: int = CACHE_SIZE) -> None:
        self._session = session
        self._size = size
        self._used = 0
        # The most recently used entry is the last.
        self._kept: dict[CacheKey, _CachedAnswer] = {}
        self._drops: dict[str, int] = {}

    async def answer(
        self,
        key: CacheKey,
        send: Callable[[], Awaitable[JSONObject]],
        read: Callable[[JSONObject], Returned],
    ) -> Returned:
        """Return the stored answer, or send the request.

        Args:
            key: The key of the answer.
            send: Sends the request and returns its result.
            read: Reads the result. The value that it returns is stored, and must not be changed.

        Raises:
            BaseException: Raised by `send` or `read`.
        """
        found = self._find(key)
        if found is not None:
            await trio.lowlevel.checkpoint()
            return cast(Returned, found.value)
        credentials, drops = self._session.credentials, self._drops.get(key.method, 0)
        result = await send()
        value = read(result)
        # If the credentials changed in the meantime, the server may have used either of them.
        if drops == self._drops.get(key.method, 0) and credentials == self._session.credentials:
            self._keep(key, value, result, credentials)
        return value

    def drop(self, method: str, concerns: Callable[[str | None], bool] = lambda _: True) -> None:
        """Drop answers, including those that have not arrived yet.

        Args:
            method: Their method.
            concerns: Tells by the cursor or the URI whether to drop an answer.
        """
        self._drops[method] = self._drops.get(method, 0) + 1
        for key in [key for key in self._kept if key.method == method and concerns(key.detail)]:
            self._forget(key)

    def note(self, notice: Notification) -> None:
        """Drop the answers that a notification makes stale."""
        for method in _DROPPED.get(notice.method, ()):
            self.drop(method)
        uri = (notice.params or {}).get("uri")
        if notice.method == RESOURCE_UPDATED and isinstance(uri, str):
            # It may be a part of the resource (2025-11-25 `server/resources`).
            self.drop(READ, lambda kept: str(kept).startswith(uri) or uri.startswith(str(kept)))

    def _find(self, key: CacheKey) -> _CachedAnswer | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.until <= trio.current_time():
            self._forget(key)
            return None
        if not kept.shared and kept.credentials != self._session.credentials:
            return None
        self._kept[key] = self._kept.pop(key)
        return kept

    def _keep(
        self, key: CacheKey, value: object, result: Mapping[str, object], credentials: Hashable
    ) -> None:
        ttl, shared = result.get("ttlMs"), result.get("cacheScope") == "public"
        # `True` is an integer in Python.
        if self._size == 0 or type(ttl) is not int or ttl <= 0:
            return
        if not self._session.peer.revision.stateless:
            return
        if not shared and credentials is None:
            return
        # A huge integer cannot be converted to a float.
        until = trio.current_time() + min(ttl, MAX_TTL * 1000) / 1000
        size = len(json_text(result))
        self._forget(key)
        if size <= self._size:
            self._kept[key] = _CachedAnswer(value, until, size, shared, credentials)
            self._used += size
        while self._used > self._size:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: CacheKey) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._used -= kept.size
