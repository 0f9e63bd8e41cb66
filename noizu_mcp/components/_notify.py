"""`ctx.notify`: notices of changes, from handlers."""

from collections.abc import Callable
from typing import Any


class Notify:
    """Tells clients of changes; the notices of the server, for handlers: `ctx.notify`.

    `here=True` tells the client of this session alone, where `ctx.put_session` has changed what it
    may list. On 2026-07-28 it notifies no client: there is no session that could change a list. A
    change of the rights of a principal is told without `here`.
    """

    __slots__ = ("_changed_here", "_server")

    # The class of a server stands in a layer above, which this one must not import.
    def __init__(self, server: Any, changed_here: Callable[[str], None]) -> None:
        self._server = server
        self._changed_here = changed_here

    def tools(self, *, here: bool = False) -> None:
        """Say that the list of tools changed.

        Args:
            here: For this session only.
        """
        self._changed("tools", here)

    def prompts(self, *, here: bool = False) -> None:
        """Say that the list of prompts changed.

        Args:
            here: For this session only.
        """
        self._changed("prompts", here)

    def resources(self, *, here: bool = False) -> None:
        """Say that the list of resources changed.

        Args:
            here: For this session only.
        """
        self._changed("resources", here)

    def _changed(self, kind: str, here: bool) -> None:
        if here:
            self._changed_here(kind)
        else:
            self._server.notify_changed(kind)

    def resource_updated(self, uri: str) -> None:
        """Say that one resource changed.

        Args:
            uri: The URI of the resource.
        """
        self._server.notify_resource_updated(uri)
