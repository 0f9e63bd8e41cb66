"""Exit statuses, and the error that ends a command with one line on stderr."""

from typing import Final

#: The command succeeded.
OK: Final = 0
#: The server, the tool, or the program behind the target failed.
FAILED: Final = 1
#: The command line is wrong.
USAGE: Final = 2
#: Ctrl-C: the status of a program that SIGINT ended, as shells report it.
INTERRUPTED: Final = 130


class CommandError(Exception):
    """Ends a command with a message for the user.

    Args:
        message: The problem and its remedy, in one line.
        status: The exit status.
    """

    def __init__(self, message: str, status: int = FAILED) -> None:
        self.status = status
        super().__init__(message)
