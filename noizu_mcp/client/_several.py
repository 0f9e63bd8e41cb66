"""`connect_all`: clients of several servers, and one list of their tools."""

import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from .._errors import McpError
from .._log import SHOWN, ThrottledLog
from .._nearest import hint_at, nearest
from ..engine import check_on_trio, single_failure
from ..jsonrpc import INVALID_PARAMS
from ..types import ToolDefinition, ToolResult
from ._client import Client
from ._connect import check_options
from ._handlers import ClientHandler
from ._kept_connection import KeptConnection, Status, read_kept
from ._list_reader import TOOLS
from ._session import Progress
from ._several_live import ToolReaders
from ._targets import check_names, read_several
from ._views import LiveList

#: Seconds that the block waits for its servers: `npx` may have to download one.
START_TIMEOUT: Final = 30.0
#: Seconds that a list waits for a server.
LIST_TIMEOUT: Final = 10.0
#: Maximum characters of a tool name (2025-11-25 `server/tools`, "Tool Names").
MAX_NAME: Final = 128
#: Characters of the digest at the end of a shortened name.
_DIGEST: Final = 8
#: Characters that tool names must not have.
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")

_ELSEWHERE: Final = "under asyncio and in notebooks write `async with noizu_mcp.aio.connect_all(…)`"

#: Makes the handler of a server from its name.
HandlerFactory = Callable[[str], ClientHandler]


class Clients:
    """Connections to several servers; made by `connect_all`.

    `clients["name"]` is the `Client` of a server. It is replaced when the server is reconnected.
    Iteration yields the names of all servers, connected or not.

    Args:
        connections: The connection to each server, by name.
        prefixes: The prefix of the tools of each server, by name.
        list_timeout: Seconds that a list waits for a server.
    """

    def __init__(
        self,
        connections: Mapping[str, KeptConnection],
        prefixes: Mapping[str, str],
        list_timeout: float,
    ) -> None:
        self._list_timeout = list_timeout
        self._connections = connections
        self._prefixes = prefixes
        # The server of each listed tool, even of servers that are down, and the tool's name there.
        self._owners: dict[str, tuple[KeptConnection, str]] = {}
        self._log = ThrottledLog(shown=SHOWN)

    def __getitem__(self, name: str) -> Client:
        connection = self._connections.get(name)
        if connection is None:
            raise KeyError(f"no server {name}; {hint_at(name, list(self._connections))}")
        client = connection.client
        if client is None:
            raise connection.unavailable()
        return client

    def __iter__(self) -> Iterator[str]:
        return iter(self._connections)

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def status(self) -> dict[str, Status]:
        """The state of each server: `connecting`, `connected`, `waiting` or `failed`.

        `waiting` is the pause before another attempt. `failed`: there will be no attempt.
        """
        return {name: each.status for name, each in self._connections.items()}

    @property
    def failures(self) -> dict[str, BaseException]:
        """The exception of each server that is not connected."""
        found = self._connections.items()
        return {name: each.failure for name, each in found if each.failure is not None}

    async def list_tools(self) -> list[ToolDefinition]:
        """List the tools of all servers, with their prefixes, in the order of the servers.

        The servers are asked concurrently. The tools of a server that is not connected, fails to
        list them, or takes longer than the `list_timeout` of `connect_all` are left out. A running
        attempt to connect is awaited.

        A name that begins with the prefix of a server belongs to that server only. If two tools
        have the same name, the server that had it before keeps it, otherwise the first one gets it.
        The other one is logged.
        """
        listed: dict[str, Mapping[str, ToolDefinition]] = {}

        async def ask(connection: KeptConnection) -> None:
            with trio.move_on_after(self._list_timeout) as scope:
                listed[connection.name] = await connection.list_tools()
            if scope.cancelled_caught:
                text = "left out the tools of %s: no list within %g s; connect_all(list_timeout=…)"
                self._log.warning(connection, text, connection.name, self._list_timeout)

        with single_failure():
            async with trio.open_nursery() as nursery:
                for each in self._connections.values():
                    nursery.start_soon(ask, each)
        return self._merge(listed)

    @property
    def tools(self) -> LiveList[ToolDefinition]:
        """The tools of all servers, as a list that follows changes: `async with clients.tools`.

        It has the names of `list_tools`. When a server disconnects its tools are removed, and when
        it is connected again they return. The block continues while servers come and go, and does
        not wait for servers that are connecting. If a connected server fails to list its tools,
        they stay as they were, and are requested again. Each server is asked separately: one that
        does not answer does not delay changes of others, and delays the start of the block by at
        most `list_timeout`.
        """
        readers = ToolReaders(list(self._connections.values()), self._list_timeout)
        return LiveList(TOOLS, self._read_present, readers.watch, readers.ask)

    async def _read_present(self) -> list[ToolDefinition]:
        """Return the tools from the last lists of the connected servers, for `tools`."""
        found = self._connections.items()
        return self._merge({name: each.tools for name, each in found if each.client is not None})

    def _merge(self, listed: Mapping[str, Mapping[str, ToolDefinition]]) -> list[ToolDefinition]:
        """Merge the tools of some servers into one list."""
        self._settle_owners()
        return [
            attrs.evolve(listed[connection.name][tool], name=name)
            for name, (connection, tool) in self._owners.items()
            if tool in listed.get(connection.name, ())
        ]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> ToolResult:
        """Call a tool by its name in `list_tools`.

        While its server is connecting, the call waits, for at most `timeout`. While its server is
        down, the call fails at once.

        Args:
            name: Its name, with the prefix.
            arguments: Its arguments.
            timeout: Seconds; the client's timeout by default. Progress restarts it.
            progress: Called with each `Progress`.

        Returns:
            The result; see `Client.call_tool`.

        Raises:
            McpError: The tool is unknown, or its server answered with an error.
            ConnectionClosed: The server is not connected, or disconnected in the meantime; the text
                names it. A call that was sent is not sent again.
            RequestTimeout: The server did not connect, or did not answer, in time.
        """
        connection, tool = await self._find(name)
        patience = connection.timeout if timeout is None else timeout
        client = await connection.ready(patience)
        with connection.named_in_failures():
            return await client.call_tool(tool, arguments, timeout=patience, progress=progress)

    def _known(self, name: str) -> tuple[KeptConnection, Client, str] | None:
        """Find a listed tool, with its name there, if its server is connected."""
        owner = self._owners.get(name)
        if owner is None:
            return None
        connection, tool = owner
        client = connection.client
        return None if client is None else (connection, client, tool)

    async def _find(self, name: str) -> tuple[KeptConnection, str]:
        """Find the server of a tool, and its name there; list the tools again if it is unknown."""
        homes = self._homes_of(name)
        if name not in self._owners:
            if len(homes) == 1:
                # No other server can have it, and others may be slow.
                await homes[0].list_tools()
                self._settle_owners()
            else:
                await self.list_tools()
        if name in self._owners:
            return self._owners[name]
        for home in homes:
            if not home.is_listed:
                # It is down and raises that, or has its tools again by now.
                return home, name.removeprefix(self._start_of(home))
        meant = nearest(name, self._owners)
        text = f"Unknown tool: {name}" + (f"; did you mean {meant}?" if meant else "")
        if self.failures:
            text += f"; not connected: {', '.join(self.failures)}"
        raise McpError(INVALID_PARAMS, text)

    def _start_of(self, connection: KeptConnection) -> str:
        """Return the prefix of the names of a server; empty without a prefix."""
        prefix = self._prefixes[connection.name]
        return f"{prefix}_" if prefix else ""

    def _homes_of(self, name: str) -> list[KeptConnection]:
        """Return the servers with the longest prefix of a name."""
        starts = {each: self._start_of(each) for each in self._connections.values()}
        longest = max(filter(name.startswith, starts.values()), key=len, default="")
        return [each for each, start in starts.items() if start and start == longest]

    def _settle_owners(self) -> None:
        """Find the server of each name; see `list_tools`."""
        before, self._owners = self._owners, {}
        for connection in self._connections.values():
            start = self._start_of(connection)
            starts = map(self._start_of, self._connections.values())
            others = tuple(each for each in starts if len(each) > len(start))
            for tool in connection.tools:
                # Without a prefix the name is that of the server, whatever its length.
                name = bound_name(f"{start}{tool}") if start else tool
                if name.startswith(others):
                    self._log_clash(name, connection, "the prefix of another server")
                    continue
                first = self._owners.setdefault(name, (connection, tool))
                if first[0] is connection:
                    continue
                if before.get(name, first)[0] is connection:
                    self._owners[name] = connection, tool
                    self._log_clash(name, first[0], connection.name)
                else:
                    self._log_clash(name, connection, first[0].name)

    def _log_clash(self, name: str, connection: KeptConnection, holder: str) -> None:
        text = "the tool %.200r of %s is left out: the name is taken by %s; connect_all(prefix=…)"
        self._log.warning(connection.name, text, name, connection.name, holder)


def bound_name(name: str) -> str:
    """Shorten a name if necessary.

    A name that is too long is cut, and ends in a digest of the whole name: it is the same in every
    list, independent of other names.
    """
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: MAX_NAME - _DIGEST - 1]}_{digest}"


@asynccontextmanager
async def connect_all(
    config: str | os.PathLike[str] | Mapping[str, object],
    *,
    handler: ClientHandler | HandlerFactory | None = None,
    prefix: bool | Mapping[str, str] | None = True,
    per_server: Mapping[str, Mapping[str, object]] | None = None,
    start_timeout: float = START_TIMEOUT,
    list_timeout: float = LIST_TIMEOUT,
    **options: object,
) -> AsyncIterator[Clients]:
    """Connect to several servers while the block runs.

    The servers start concurrently. A server that fails, now or later, does not affect others: its
    failure is in `clients.failures` and in the log, and it is connected again, with growing pauses.
    At the end of the block all connections are closed concurrently.

    Args:
        config: The path of a file in the `mcpServers` format, its content as a mapping, or a
            mapping of names to targets of `connect`.
        handler: Answers the requests of all servers and handles their notifications; or a class or
            function that is called with the name of each server and returns its handler. A handler
            of notifications is notified of changed lists, on every revision.
        prefix: True to name the tools of a server `server_tool`. A mapping gives some servers
            another prefix, `{"github": "gh", "files": ""}`. None to keep the names of tools.
        per_server: Options of `connect` for some servers, by name; they have priority: `{"github":
            {"auth": OAuth()}}`.
        start_timeout: Seconds that the block waits for the servers at its start; slower ones are
            connected later.
        list_timeout: Seconds that `list_tools`, and the start of a block with `clients.tools`, wait
            for a server. The tools of a slower one are left out.
        **options: Options of `connect` for all servers, except `auth`.

    Yields:
        The clients.

    Raises:
        RuntimeError: The caller is not a trio task; `noizu_mcp.aio.connect_all` is for asyncio.
        TransportError: The file cannot be read, or names no servers.
        TypeError: An option is unknown, `auth` is given for all servers, or `handler` does not make
            a `ClientHandler`.
        ValueError: A prefix has characters that tool names must not have, or `prefix` or
            `per_server` names an unknown server.
    """
    check_on_trio("connect_all", _ELSEWHERE)
    servers = read_several(config, options, per_server)
    prefixes = _read_prefixes(prefix, list(servers))
    connections: dict[str, KeptConnection] = {}
    for name, (entry, given) in servers.items():
        check_options("connect_all", given, ("target", "handler"))
        handling = _handler_of(handler, name)
        connections[name] = KeptConnection(name, read_kept(entry, name), handling, given)
    with single_failure():
        async with trio.open_nursery() as nursery:
            for each in connections.values():
                nursery.start_soon(each.run)
            with trio.move_on_after(start_timeout):
                for each in connections.values():
                    await each.wait_settled()
            yield Clients(connections, prefixes, list_timeout)
            nursery.cancel_scope.cancel()


def _read_prefixes(prefix: bool | Mapping[str, str] | None, servers: list[str]) -> dict[str, str]:
    """Return the prefix of each server; names of servers may have any characters."""
    if not prefix and not isinstance(prefix, Mapping):
        return dict.fromkeys(servers, "")
    found = {name: _UNFIT.sub("_", name) for name in servers}
    if isinstance(prefix, Mapping):
        check_names("prefix", prefix, servers)
        for name, text in prefix.items():
            if _UNFIT.search(text):
                raise ValueError(f"a prefix has letters, digits, _, - and . only, not {text!r}")
            found[name] = text
    return found


def _handler_of(handler: ClientHandler | HandlerFactory | None, name: str) -> ClientHandler | None:
    if handler is None or isinstance(handler, ClientHandler):
        return handler
    if not callable(handler):
        raise TypeError(f"handler must be a ClientHandler, or make one, not {handler!r}")
    made = handler(name)
    if not isinstance(made, ClientHandler):
        raise TypeError(f"handler must return an instance of a ClientHandler, not {made!r}")
    return made
