"""How a command fails: one line on stderr and an exit status."""

from typing import Final

#: It did what was asked.
OK: Final = 0
#: It could not: the server, the tool or the program that was named failed.
FAILED: Final = 1
#: It was asked wrongly.
USAGE: Final = 2
#: Ctrl-C: what shells call a program that SIGINT ended.
INTERRUPTED: Final = 130


class CommandError(Exception):
    """Ends a command with a message for the user.

    Args:
        message: What is wrong and what to do, in one line.
        status: The exit status.
    """

    def __init__(self, message: str, status: int = FAILED) -> None:
        self.status = status
        super().__init__(message)
