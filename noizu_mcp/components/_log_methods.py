"""The log messages of a handler: one method for each level."""

import abc
from collections.abc import Awaitable

from ..types import LogLevel


class LogMethods(abc.ABC):
    """The part of a context that sends log messages."""

    __slots__ = ()

    @abc.abstractmethod
    def log(self, level: LogLevel, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message, if the client wants that level.

        Args:
            level: One of the eight syslog levels.
            data: Any JSON value. No secrets: it leaves the program.
            logger: The name of the logger.

        Raises:
            ValueError: There is no such level.
        """

    # The eight levels of `server/utilities/logging` (RFC 5424), written out: editors complete them,
    # and a type checker finds a wrong one.

    def debug(self, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `debug`."""
        return self.log("debug", data, logger)

    def info(self, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `info`."""
        return self.log("info", data, logger)

    def notice(self, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `notice`."""
        return self.log("notice", data, logger)

    def warning(self, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `warning`."""
        return self.log("warning", data, logger)

    def error(self, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `error`."""
        return self.log("error", data, logger)

    def critical(self, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `critical`."""
        return self.log("critical", data, logger)

    def alert(self, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `alert`."""
        return self.log("alert", data, logger)

    def emergency(self, data: object, logger: str | None = None) -> Awaitable[None]:
        """Send a log message of level `emergency`."""
        return self.log("emergency", data, logger)
