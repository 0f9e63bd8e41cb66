"""Servers and a clock that tests of several folders use."""

from noizu_mcp import Server


class Small(Server, name="small", version="1"):
    """Nothing but a server."""


class Clock:
    """A clock that the test moves.

    Attributes:
        now: The time in seconds.
    """

    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now
