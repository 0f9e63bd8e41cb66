"""`connect_all`: clients of several servers, and one list of their tools."""

import hashlib
import inspect
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import trio

from .._errors import McpError, TargetError
from .._log import SHOWN, ThrottledLog
from .._nearest import hint_at, nearest
from ..engine import check_on_trio, single_failure
from ..jsonrpc import INVALID_PARAMS
from ..types import ToolDefinition, ToolResult
from ._client import Client
from ._connect import connect
from ._handlers import ClientHandler
from ._kept_connection import KeptConnection, Status
from ._list_reader import TOOLS
from ._progress import Progress
from ._several_live import ToolReaders
from ._targets import read_entry, read_servers
from ._views import LiveList

#: Seconds that the block waits for its servers: `npx` may have to download one first.
START_TIMEOUT: Final = 30.0
#: Seconds that a list waits for a server.
LIST_TIMEOUT: Final = 10.0
#: Characters of the name of a tool (2025-11-25 `server/tools`, "Tool Names").
MAX_NAME: Final = 128
#: Characters at the end of a name that was cut.
_DIGEST: Final = 8
#: Characters that no name of a tool has.
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")
#: Options that `connect_all` sets itself.
_OWN: Final = frozenset({"target", "handler"})

_ELSEWHERE: Final = "under asyncio and in notebooks write `async with noizu_mcp.aio.connect_all(…)`"

#: Makes the handler of a server from the name of the server.
HandlerFactory = Callable[[str], ClientHandler]


class Clients:
    """Connections to several servers; `connect_all` makes it.

    `clients["name"]` is the `Client` of a server. It is another one after a server was started
    again. Iteration gives the names of all servers, connected or not.

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
        # The server of each tool that was listed, also of those that are down, and its name there.
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

        `waiting` is the pause before another attempt. `failed`: there will be none.
        """
        return {name: each.status for name, each in self._connections.items()}

    @property
    def failures(self) -> dict[str, BaseException]:
        """The exception of each server that is not connected, for as long as it is not."""
        found = self._connections.items()
        return {name: each.failure for name, each in found if each.failure is not None}

    async def list_tools(self) -> list[ToolDefinition]:
        """List the tools of all servers, with their prefixes, in the order of the servers.

        The servers are asked at the same time. The tools of a server that is not connected, fails
        to list them, or takes longer than the `list_timeout` of `connect_all` are left out. An
        attempt to connect that runs is waited for.

        A name that begins with the prefix of a server is of no other server. Of two tools with one
        name, the one counts that had it before, and otherwise the first. The log names the other.
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

        It has the names of `list_tools`. A server that ends takes its tools with it, and brings
        them back when it is connected again. The block goes on while servers come and go; it waits
        for none that is being connected. The tools of a server that is connected and fails to list
        them stay as they were, and are asked for again. Each server is asked by itself: one that
        does not answer delays the changes of no other, and the beginning of the block by
        `list_timeout` at most.
        """
        readers = ToolReaders(list(self._connections.values()), self._list_timeout)
        return LiveList(TOOLS, self._read_present, readers.watch, readers.ask)

    async def _read_present(self) -> list[ToolDefinition]:
        """Return the tools that the connected servers listed last, for `tools`."""
        found = self._connections.items()
        return self._merge({name: each.tools for name, each in found if each.client is not None})

    def _merge(self, listed: Mapping[str, Mapping[str, ToolDefinition]]) -> list[ToolDefinition]:
        """Put the tools of some servers into one list."""
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

        While its server is being connected, the call waits for that, for at most `timeout`. While
        its server is down, the call fails at once.

        Args:
            name: Its name, with the prefix.
            arguments: Its arguments.
            timeout: Seconds; those of the client by default. Progress starts it again.
            progress: Called with each `Progress`.

        Returns:
            The result; see `Client.call_tool`.

        Raises:
            McpError: No server has such a tool, or its server answered with an error.
            ConnectionClosed: The server is not connected, or ended meanwhile; the text names it. A
                call that was sent is not sent again.
            RequestTimeout: The server did not connect, or did not answer, in time.
        """
        connection, tool = await self._find(name)
        patience = connection.timeout if timeout is None else timeout
        client = await connection.ready(patience)
        with connection.named_in_failures():
            return await client.call_tool(tool, arguments, timeout=patience, progress=progress)

    def _known(self, name: str) -> tuple[KeptConnection, Client, str] | None:
        """Find a tool that was listed, with its name there, if its server is connected now."""
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
                # It is down, and says so, or has its tools again by now.
                return home, name.removeprefix(self._start_of(home))
        meant = nearest(name, self._owners)
        text = f"Unknown tool: {name}" + (f"; did you mean {meant}?" if meant else "")
        if self.failures:
            text += f"; not connected: {', '.join(self.failures)}"
        raise McpError(INVALID_PARAMS, text)

    def _start_of(self, connection: KeptConnection) -> str:
        """Return the beginning of the names of a server; empty without a prefix."""
        prefix = self._prefixes[connection.name]
        return f"{prefix}_" if prefix else ""

    def _homes_of(self, name: str) -> list[KeptConnection]:
        """List the servers with the longest prefix that a name has."""
        starts = {each: self._start_of(each) for each in self._connections.values()}
        longest = max(filter(name.startswith, starts.values()), key=len, default="")
        return [each for each, start in starts.items() if start and start == longest]

    def _settle_owners(self) -> None:
        """Find the server of each name; see `list_tools`."""
        before, self._owners = self._owners, {}
        for connection in self._connections.values():
            own = len(self._start_of(connection))
            others = tuple(
                start
                for each in self._connections.values()
                if len(start := self._start_of(each)) > own
            )
            for tool in connection.tools:
                name = join_name(self._prefixes[connection.name], tool)
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


def join_name(prefix: str, tool: str) -> str:
    """Make the name of a tool among those of other servers; see `bound_name`.

    Args:
        prefix: The prefix of its server; empty for none.
        tool: Its name at its server.
    """
    return bound_name(f"{prefix}_{tool}") if prefix else tool


def bound_name(name: str) -> str:
    """Return a name that was made of two.

    If it is too long it is cut and ends in a digest of the whole: it is the same in every list,
    whatever else there is.
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
    **options: Any,
) -> AsyncIterator[Clients]:
    """Connect to several servers for as long as the block runs.

    The servers start side by side. One that fails, now or later, takes no other down: its failure
    is in `clients.failures` and in the log, and it is connected again, with growing pauses. At the
    end of the block all connections are closed at the same time.

    Args:
        config: The path of a file of the `mcpServers` form, its content as a mapping, or a mapping
            of names to targets of `connect`.
        handler: Answers the questions of all servers and takes their notifications; or a class or
            a function that is called with the name of each server and returns its handler. A
            handler that takes notifications gets those of changed lists, on every revision.
        prefix: True: the tools of a server are called `server_tool`. A mapping gives some servers
            another prefix, `{"github": "gh", "files": ""}`. None: tools keep their names.
        per_server: Options of `connect` for some servers, by name; they take precedence:
            `{"github": {"auth": OAuth()}}`.
        start_timeout: Seconds that the block waits for the servers at its beginning; those that
            take longer are connected later.
        list_timeout: Seconds that `list_tools`, and the beginning of a block with `clients.tools`,
            wait for a server. The tools of one that takes longer are left out.
        **options: Options of `connect` for all servers, but for `auth`.

    Yields:
        The clients.

    Raises:
        RuntimeError: No trio task runs here; `noizu_mcp.aio.connect_all` is for asyncio.
        TransportError: The file cannot be read, or names no servers.
        TypeError: An option is unknown, `auth` is given for all servers, or `handler` makes no
            `ClientHandler`.
        ValueError: A prefix has characters that names of tools must not have, or `prefix` or
            `per_server` names no server.
    """
    check_on_trio("connect_all", _ELSEWHERE)
    entries = read_servers(config)
    own = per_server or {}
    _check_options(options, own)
    prefixes = _read_prefixes(prefix, list(entries))
    for name in own:
        _check_name("per_server", name, list(entries))
    connections: dict[str, KeptConnection] = {}
    for name, entry in entries.items():
        given = {**options, **own.get(name, {})}
        handling = _handler_of(handler, name)
        connections[name] = KeptConnection(name, _read(entry, name), handling, given)
    with single_failure():
        async with trio.open_nursery() as nursery:
            for each in connections.values():
                nursery.start_soon(each.run)
            with trio.move_on_after(start_timeout):
                for each in connections.values():
                    await each.wait_settled()
            yield Clients(connections, prefixes, list_timeout)
            nursery.cancel_scope.cancel()


def _read(entry: object, name: str) -> Any:
    """Read an entry; a malformed entry is a failure of its server."""
    try:
        return read_entry(entry, name)
    except (TargetError, ValueError) as error:
        return error


def _check_options(options: Mapping[str, object], own: Mapping[str, Mapping[str, object]]) -> None:
    if "auth" in options:
        raise TypeError(
            "auth= would send the credentials of one server to all of them; write "
            "per_server={'name': {'auth': …}}"
        )
    known = set(inspect.signature(connect).parameters) - _OWN
    for given in (options, *own.values()):
        for name in given:
            if name not in known:
                text = f"connect_all has no option {name} of a server"
                raise TypeError(f"{text}; {hint_at(name, sorted(known))}")


def _check_name(option: str, name: str, servers: list[str]) -> None:
    if name not in servers:
        raise ValueError(f"{option} names no server {name}; {hint_at(name, servers)}")


def _read_prefixes(prefix: bool | Mapping[str, str] | None, servers: list[str]) -> dict[str, str]:
    """Find the prefix of each server; a name of a server may have any characters."""
    if not prefix and not isinstance(prefix, Mapping):
        return dict.fromkeys(servers, "")
    found = {name: _UNFIT.sub("_", name) for name in servers}
    if isinstance(prefix, Mapping):
        for name, text in prefix.items():
            _check_name("prefix", name, servers)
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
