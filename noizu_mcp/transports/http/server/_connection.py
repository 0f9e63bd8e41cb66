"""A connection of a server over HTTP: a session with a handshake, or one 2026-07-28 request."""

import weakref
from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

import attrs

from ...._errors import McpError
from ....engine import Channel, Desk, Exchange, LoopGate, run_leading
from ....jsonrpc import Decoded
from ....protocol import SUPPORTED_VERSIONS, Dispatch, Event
from ....server import ROUTES, Connection, Place, Server, TaskStore, Windows, hear_at
from ._asgi import JSON, HttpRequest
from ._event_writer import Pace
from ._http_options import HttpOptions
from ._quotas import Accounts
from ._reply import Reply
from ._task_group import TaskSet, Work

VERSION: Final = "mcp-protocol-version"


@attrs.frozen(eq=False, repr=False)
class Host:
    """What all connections of one application share while it runs.

    Attributes:
        server: The server.
        state: What its lifespan yielded.
        options: How it is served.
        tasks: What goes on when a connection has ended: the last words to both sides.
        gate: The way in for other threads.
        pace: How streams treat their readers.
        task_store: Where calls go on that outlive their requests.
        windows: Those in which change notices are merged.
        accounts: What each client holds.
        working: The requests that are being worked on; they may have been refused by now.
    """

    server: Server
    state: Any
    options: HttpOptions
    tasks: TaskSet
    gate: LoopGate
    pace: Pace
    task_store: TaskStore
    windows: Windows
    accounts: Accounts
    working: dict[Exchange, None] = attrs.field(factory=dict)

    def hear(self, http: HttpRequest, message: Decoded, event: Event | None) -> None:
        """Tell who listens of a message that reaches no connection."""
        telemetry = self.server.telemetry
        if telemetry.listeners:
            version = http.headers.get(VERSION)
            place = Place("http", version if version in SUPPORTED_VERSIONS else None)
            hear_at(telemetry, place, message, event, http.size)


class HttpDesk(Desk):
    """The requests of one connection.

    Args:
        connection: What serves them.
        channel: Where messages go that belong to none of them.
        working: Those that are being worked on, and those of all other connections.
    """

    def __init__(
        self, connection: "HttpConnection", channel: Channel, working: dict[Exchange, None]
    ) -> None:
        # Its owner by a weak reference: every request of 2026-07-28 has both, and a cycle would
        # leave them to the garbage collector.
        owner = weakref.proxy(connection)
        super().__init__(connection.peer, owner, channel)
        self.watch(connection.listeners, owner)
        self._tasks = connection.tasks
        self._working = working

    async def work(self, exchange: Exchange, work: Awaitable[None]) -> None:
        """Do the rest of the work on a request; see `Desk`."""
        self._working[exchange] = None
        try:
            await super().work(exchange, work)
        finally:
            del self._working[exchange]

    def spawn(self, work: Work) -> None:
        """Run something beside the requests; see `Desk`."""
        self._tasks.spawn(work)

    async def lead(self, event: Dispatch, reply: Reply, *, tied: bool) -> None:
        """Serve one request in the calling task, and answer it.

        Args:
            event: The request.
            reply: Its answer.
            tied: The end of the HTTP request cancels it.
        """
        exchange, job = self.begin(event, reply)
        try:
            if tied:
                reply.on_gone = partial(self.drop, exchange)
            if job is not None:
                await self.work(exchange, run_leading(job(), reply.attend))
            await reply.finish()
        finally:
            if not exchange.answered and not exchange.cancelled:
                self.drop(exchange)  # whoever hosts us has cancelled the task


class HttpConnection(Connection):
    """One connection.

    Args:
        host: What it shares with the others.

    Attributes:
        tasks: What it runs beside its requests.
    """

    desk: HttpDesk

    def __init__(self, host: Host) -> None:
        super().__init__(
            host.server,
            ROUTES,
            host.state,
            "http",
            host.gate,
            tasks=host.task_store,
            windows=host.windows,
        )
        # Beyond 30 attributes each instance has a table of their names: 1.5 KiB of each session.
        self.tasks = host.tasks.sibling()
        self._host = host

    def begin(self, channel: Channel) -> None:
        """Begin to take requests.

        Args:
            channel: Where messages go that belong to none of them.
        """
        self.desk = HttpDesk(self, channel, self._host.working)

    def deny(self, exchange: Exchange, error: McpError) -> None:
        """Answer somebody who lacks scopes, and say where to get them; see `Connection`."""
        channel, auth = exchange.channel, self._host.options.auth
        if isinstance(channel, Reply) and auth is not None:
            headers = auth.challenge(error.data["requiredScopes"]).headers
            channel.challenge = [each for each in headers if each[0] != JSON[0]]
        super().deny(exchange, error)

    def stop(self) -> None:
        """End; see `Connection`."""
        self.end()

    def linger(self, work: Work) -> None:
        """Run something that ends after the requests; see `Connection`."""
        self._host.tasks.spawn(work)

    def end(self) -> None:
        """End: what has no answer is refused, and what still runs is cancelled."""
        self.close()
        self.desk.close("The session has ended")
        self.tasks.close()
