"""The peers that are measured over HTTP, and their set-ups."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ._harness import Settings
from ._peers import (
    ERAS,
    PEERS,
    SERVERS,
    node_package_version,
    package_version,
    script_folder,
)


@dataclass(frozen=True)
class Setup:
    """A way to serve over HTTP.

    Attributes:
        row: Its row in the tables.
        peer: Whose it is, for `--peers`.
        flags: Options of its program beside port and tools.
        packages: What it needs beside its peer.
        joins: Whether each session calls `join`, to be told of changes.
        listens: The revisions in which changes reach its streams.
    """

    row: str
    peer: str
    flags: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    joins: bool = False
    listens: tuple[str, ...] = ERAS

    def command(self, tools: int, *flags: str) -> Callable[[int], list[str]]:
        """Return what takes a port and returns the command.

        Args:
            tools: How many tools it offers.
            flags: More flags.

        Raises:
            Unavailable: Something is not installed.
        """
        peer = PEERS[self.peer]
        peer.version()
        if peer.python is None:
            for package in self.packages:
                node_package_version(package)
            program = ["node", f"{script_folder()}/http_{self.peer}.mjs"]
        else:
            for package in self.packages:
                package_version(peer.python, package)
            program = [peer.python, str(SERVERS / f"http_{self.peer}.py")]
        return lambda port: [*program, str(port), str(tools), *self.flags, *flags]


#: In the order of the tables. `mcp` is as `pip install mcp` gives it: uvicorn on asyncio and h11.
#: `trio` is no framework: an ASGI application that answers by hand, on hypercorn as it comes. The
#: same on the host of `noizu` shows the cost of that host alone.
SETUPS = (
    Setup("noizu", "noizu", packages=("httptools",)),
    Setup("noizu, asgi() on hypercorn", "noizu", ("hypercorn",), ("hypercorn",)),
    Setup("raw ASGI on the same host", "noizu", ("raw",), ("httptools",)),
    Setup("mcp", "mcp", joins=True),
    Setup("mcp, JSON + uvloop + httptools", "mcp", ("fast",), ("uvloop", "httptools"), joins=True),
    Setup("fastmcp", "fastmcp", joins=True, listens=ERAS[:1]),
    Setup("ts2", "ts2", packages=("@modelcontextprotocol/node",), joins=True),
    Setup("raw ASGI on hypercorn", "trio", packages=("hypercorn",)),
)


def among(settings: Settings, setups: Iterable[Setup] = SETUPS) -> Iterator[Setup]:
    """Iterate over those whose peer was asked for."""
    return (setup for setup in setups if setup.peer in settings.peers)
