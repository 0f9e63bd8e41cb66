"""Which change notices one connection asked for, in either era."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from .._errors import McpError
from ..jsonrpc import INVALID_PARAMS, Id, Notification
from ..types import META_SUBSCRIPTION_ID
from ._methods import CHANGES

RESOURCE_UPDATED: Final = "notifications/resources/updated"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_URIS: Final = "resourceSubscriptions"


class Listening(NamedTuple):
    """One open `subscriptions/listen` request (2026-07-28 `basic/patterns/subscriptions`).

    Attributes:
        id: The id of the request; every notice is tagged with it.
        kinds: The lists whose changes it wants.
        uris: The resources whose updates it wants.
    """

    id: Id
    kinds: frozenset[str]
    uris: frozenset[str]

    @property
    def size(self) -> int:
        """What it counts against the limit: the request, and each resource."""
        return 1 + len(self.uris)

    def agreed(self) -> dict[str, Any]:
        """Write the filter that was agreed on."""
        kinds: dict[str, Any] = {CHANGES[kind][1]: True for kind in CHANGES if kind in self.kinds}
        return {**kinds, _URIS: sorted(self.uris)} if self.uris else kinds

    def tag(self, method: str, params: Mapping[str, Any]) -> Notification:
        """Make a notice that names this subscription."""
        return Notification(method, {**params, "_meta": {META_SUBSCRIPTION_ID: self.id}})


class Interests:
    """The notices that one connection asked for.

    Args:
        limit: Listen requests and watched URIs, together, that may be open at once.

    Attributes:
        pushed: True once a client with a handshake is ready: it gets list changes unasked.
    """

    def __init__(self, limit: int) -> None:
        self.pushed = False
        self._limit = limit
        self._listening: dict[Id, Listening] = {}
        self._watched: dict[str, None] = {}  # an empty set is three times as large
        self._used = 0  # listen requests, their URIs and watched URIs

    def read(
        self, id_: Id, params: Mapping[str, Any], capabilities: Mapping[str, Any]
    ) -> Listening:
        """Read what a listen request wants of what the server can tell; the rest is left out.

        Raises:
            McpError: The filter is no filter, or holds more than may ever be open.
        """
        wanted = params.get("notifications")
        if not isinstance(wanted, Mapping):
            raise McpError(INVALID_PARAMS, "subscriptions/listen requires a notifications object")
        uris = _read_uris(wanted)
        kinds = {
            kind
            for kind, (_, key) in CHANGES.items()
            if wanted.get(key) is True and _can(capabilities, kind, "listChanged")
        }
        if not _can(capabilities, "resources", "subscribe"):
            uris = frozenset()
        listening = Listening(id_, frozenset(kinds), uris)
        self._check(listening.size)
        return listening

    def listen(self, listening: Listening) -> None:
        """Open a listen request.

        Raises:
            McpError: The limit is reached.
        """
        self._take_room(listening.size)
        self._listening[listening.id] = listening

    def drop(self, id_: Id) -> frozenset[str]:
        """Close a listen request, if there is one with that id.

        Returns:
            The resources that it watched.
        """
        listening = self._listening.pop(id_, None)
        if listening is None:
            return frozenset()
        self._used -= listening.size
        return listening.uris

    def watches(self, uri: str) -> bool:
        """Tell whether a client with a handshake watches a resource."""
        return uri in self._watched

    def watch(self, uri: str) -> None:
        """Watch one resource for a client with a handshake (`resources/subscribe`).

        Raises:
            McpError: The limit is reached.
        """
        if uri not in self._watched:
            self._take_room(1)
            self._watched[uri] = None

    def unwatch(self, uri: str) -> None:
        """Stop watching; a URI that is not watched is fine."""
        if uri in self._watched:
            del self._watched[uri]
            self._used -= 1

    def close(self) -> frozenset[str]:
        """Watch nothing any more for a client with a handshake: the connection has ended.

        Returns:
            The resources that it watched still.
        """
        watched = frozenset(self._watched)
        self._used -= len(watched)
        self._watched.clear()
        return watched

    def changed(self, kind: str) -> list[Notification]:
        """Make the notices for a changed list: `tools`, `prompts` or `resources`."""
        method = CHANGES[kind][0]
        notices = [Notification(method)] if self.pushed else []
        notices += [each.tag(method, {}) for each in self._listening.values() if kind in each.kinds]
        return notices

    def updated(self, uri: str) -> list[Notification]:
        """Make the notices for an updated resource."""
        params = {"uri": uri}
        notices = [Notification(RESOURCE_UPDATED, params)] if uri in self._watched else []
        notices += [
            each.tag(RESOURCE_UPDATED, params)
            for each in self._listening.values()
            if uri in each.uris
        ]
        return notices

    def _take_room(self, more: int) -> None:
        self._check(self._used + more)
        self._used += more

    def _check(self, used: int) -> None:
        if used > self._limit:
            text = f"More than {self._limit} subscriptions on this connection"
            raise McpError(INVALID_PARAMS, text)


def _read_uris(wanted: Mapping[str, Any]) -> frozenset[str]:
    uris = wanted.get(_URIS)
    if uris is None:
        return frozenset()
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise McpError(INVALID_PARAMS, f"{_URIS} must be a list of strings")
    return frozenset(uris)


def _can(capabilities: Mapping[str, Any], feature: str, ability: str) -> bool:
    return bool((capabilities.get(feature) or {}).get(ability))
