"""Contracts of the session of many nodes: with its table, and with its feed and its reader.

They stand below the classes that use each other, so that types are imported one way.
"""

from typing import Any, Protocol

from ...._value import JSONObject
from ....server import ChangeFeed, Node, ServerContext
from ._asgi import HttpRequest
from ._event_writer import EventWriter, TaskWork
from ._http_options import HttpLimits
from ._shared_parts import Edit
from ._shared_streams import SharedGetStream


class CopyTable(Protocol):
    """The copies of sessions at one node, as a copy uses them; see `SharedSessions`."""

    node: Node

    def has(self, session: Any, /) -> bool:
        """Tell whether a copy is in the table."""

    def touch(self, session: Any, /) -> None:
        """Record the end of a use."""

    def end(self, session: Any, /) -> None:
        """End a copy, and remove it."""

    def write_soon(self, work: TaskWork, /) -> None:
        """Start a task that writes to the backend."""

    async def restore(self, session: Any, /) -> None:
        """Write a record again, which the backend has lost."""

    async def look_up(self, session: Any, /) -> bool:
        """Use the record of a copy; False if the session has ended."""

    async def delete_record(self, session: Any, /) -> None:
        """End a session at all nodes."""


class SessionCopy(Protocol):
    """The copy of a session, as its feed and its reader use it; see `SharedSession`."""

    node: Node
    limits: HttpLimits
    digest: str
    key: str
    record: JSONObject

    @property
    def table(self) -> CopyTable:
        """The table with the copy."""

    @property
    def get_stream(self) -> SharedGetStream:
        """The GET stream."""

    @property
    def feed(self) -> ChangeFeed:
        """The changes that the client is notified of."""

    @property
    def polls(self) -> bool:
        """True if the server may end a stream before its answer."""

    def context(self) -> ServerContext:
        """Make a context for code that belongs to the session and to no request."""

    def spawn(self, work: TaskWork, /) -> None:
        """Run something beside the requests."""

    def make_writer(self, http: HttpRequest, /) -> EventWriter:
        """Make the writer of a GET."""

    async def change(self, edit: Edit, /) -> bool:
        """Change the record; False if the session has ended."""

    async def store(self, edit: Edit, noun: str, /) -> None:
        """Change the record for a client, which relies on it."""
