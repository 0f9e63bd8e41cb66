"""`Context`: all that a handler may touch, the same in both eras."""

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from ..types import ClientCapabilities, Implementation, LogLevel


class Outbound(Protocol):
    """What a context needs from the request that it belongs to; the server supplies it."""

    @property
    def request_id(self) -> str | int: ...
    @property
    def protocol_version(self) -> str: ...
    @property
    def client_info(self) -> Mapping[str, Any] | None: ...
    @property
    def client_capabilities(self) -> Mapping[str, Any]: ...
    @property
    def transport(self) -> str: ...
    @property
    def server(self) -> Any: ...
    @property
    def state(self) -> Any: ...
    @property
    def auth(self) -> Any: ...
    @property
    def session(self) -> Mapping[str, Any]: ...
    @property
    def meta(self) -> Mapping[str, Any]: ...
    @property
    def cancelled(self) -> bool: ...
    def progress(
        self, progress: float, total: float | None, message: str | None
    ) -> Awaitable[None]: ...
    def log(self, level: LogLevel, data: Any, logger: str | None) -> Awaitable[None]: ...
    async def put_session(self, key: str, value: Any) -> None: ...


class Notify:
    """Tells clients what changed; the same as on the server, here for handlers: `ctx.notify`."""

    __slots__ = ("_server",)

    def __init__(self, server: Any) -> None:
        self._server = server

    def tools(self) -> None:
        """Say that the list of tools changed."""
        self._server.notify_changed("tools")

    def prompts(self) -> None:
        """Say that the list of prompts changed."""
        self._server.notify_changed("prompts")

    def resources(self) -> None:
        """Say that the list of resources changed."""
        self._server.notify_changed("resources")

    def resource_updated(self, uri: str) -> None:
        """Say that one resource changed.

        Args:
            uri: The URI of the resource.
        """
        self._server.notify_resource_updated(uri)


class Context:
    """The request that a handler is working on.

    Handlers get it as their second argument; it is not made by hand. Whatever the era of the
    client, it means the same. Progress and log messages go out when the method is called; awaiting
    what it returns also waits until the connection has room, so a loop that awaits cannot outrun
    its client. In a sync handler, which runs in a thread, just call them.
    """

    __slots__ = ("_outbound",)

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    @property
    def request_id(self) -> str | int:
        """The JSON-RPC id of the request."""
        return self._outbound.request_id

    @property
    def protocol_version(self) -> str:
        """The revision that the request is served under: `2025-11-25`."""
        return self._outbound.protocol_version

    @property
    def client_info(self) -> Implementation | None:
        """Who the client says it is; None if it does not say. Never decide security by it."""
        info = self._outbound.client_info
        return None if info is None else Implementation.from_wire(info, "clientInfo")

    @property
    def client_capabilities(self) -> ClientCapabilities:
        """What the client can do."""
        return ClientCapabilities.from_wire(self._outbound.client_capabilities, "capabilities")

    @property
    def transport(self) -> str:
        """How the request came: `stdio`, `http` or `memory`."""
        return self._outbound.transport

    @property
    def server(self) -> Any:
        """The server that serves the request."""
        return self._outbound.server

    @property
    def state(self) -> Any:
        """What the server's `lifespan` yielded."""
        return self._outbound.state

    @property
    def auth(self) -> Any:
        """The verified claims of the caller, or None."""
        return self._outbound.auth

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta` of the request, as sent."""
        return self._outbound.meta

    @property
    def session(self) -> Mapping[str, Any]:
        """What `put_session` stored before this request began; read-only; empty on 2026-07-28."""
        return self._outbound.session

    async def put_session(self, key: str, value: Any) -> None:
        """Store a value for later requests of the same session.

        This request keeps its snapshot: `ctx.session` does not change under a handler.

        Raises:
            NoSessionError: The revision has no sessions (2026-07-28). Hand out a handle instead
                and take it back as an argument.
        """
        await self._outbound.put_session(key, value)

    @property
    def cancelled(self) -> bool:
        """True once the client has cancelled the request; for sync handlers that run long."""
        return self._outbound.cancelled

    @property
    def notify(self) -> Notify:
        """Tells all clients of the server what changed."""
        return Notify(self._outbound.server)

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Report progress, if the client asked for it.

        Args:
            progress: How far it is; a report that is not above the last one is not sent
                (`basic/utilities/progress`: it must increase).
            total: How far it will go, if known.
            message: What is being done.
        """
        return self._outbound.progress(progress, total, message)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message, if the client wants that level.

        Args:
            level: One of the eight syslog levels.
            data: Any JSON value. No secrets: it leaves the program.
            logger: The name of the logger.

        Raises:
            ValueError: There is no such level.
        """
        return self._outbound.log(level, data, logger)

    def debug(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `debug`."""
        return self._outbound.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `info`."""
        return self._outbound.log("info", data, logger)

    def notice(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `notice`."""
        return self._outbound.log("notice", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `warning`."""
        return self._outbound.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `error`."""
        return self._outbound.log("error", data, logger)

    def critical(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `critical`."""
        return self._outbound.log("critical", data, logger)

    def alert(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `alert`."""
        return self._outbound.log("alert", data, logger)

    def emergency(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `emergency`."""
        return self._outbound.log("emergency", data, logger)
