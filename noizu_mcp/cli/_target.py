"""Servers of this program: found as `module:Server` or `path/to/file.py:Server`, and served.

A cassette, `path/to/file.jsonl`, stands for the server that it was recorded from.
With `--config` the servers of a file stand behind one of them, or behind a gateway of nothing else.
"""

import sys
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from .. import server
from .._errors import TargetError
from .._serving import Server as PublicServer
from .._serving import run_stdio
from .._version import __version__
from ..engine import single_failure
from ..server import Server
from ..transports import LineStream, ending_on_signals, take_stdio
from ._errors import FAILED, OK, USAGE, CommandError
from ._say import note

if TYPE_CHECKING:
    from ..testing import Replay

_CASSETTE = ".jsonl"


def load_server(target: str) -> Server:
    """Import a server and make it ready; see `noizu_mcp.server.load_server`.

    Args:
        target: `module:Server` or `path/to/file.py:Server`.

    Raises:
        CommandError: It cannot be imported, is not there, is no server, or is a URL.
    """
    try:
        return server.load_server(target)
    except TargetError as error:
        status = USAGE if error.is_wrong else FAILED
        raise CommandError(str(error), status) from error.__cause__


def load_cassette(target: str) -> "Replay | None":
    """Open a cassette; None for a target of another kind.

    Args:
        target: `path/to/file.jsonl`, or something else.

    Raises:
        CommandError: It cannot be read, or is no cassette.
    """
    if not target.endswith(_CASSETTE):
        return None
    from ..testing import replay

    try:
        return replay(target, repeat=True)
    except OSError as error:
        raise CommandError(f"cannot read {target}: {error.strerror}", USAGE) from error
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error


def open_server(target: str | None, config: str | None = None) -> Server:
    """Make the server of `run`.

    Args:
        target: The server; see `load_server`. None for an empty server.
        config: The path of a file of the `mcpServers` form, whose servers become parts of it; None
            for none.

    Raises:
        CommandError: The server cannot be imported, or the file cannot be read, or there is nothing
            to serve.
    """
    if config is None and target is not None:
        return load_server(target)
    from ..remote import Remote  # loads the client

    try:
        remotes = Remote.from_config(config or "")
    except TargetError as error:
        raise CommandError(str(error), USAGE) from error
    if not remotes and target is None:
        text = "names no servers, or all of them are disabled"
        raise CommandError(f"{config} {text}", USAGE)
    make: Any = type(PublicServer)
    if target is not None:
        front = load_server(target)
    else:
        front = make("Gateway", (PublicServer,), {}, name="gateway", version=__version__)()
    front.providers.add(*remotes)
    return front


def run(target: str | None, config: str | None = None) -> int:
    """Serve until the client ends it.

    Args:
        target: The server; see `open_server`. Its prints go to stderr, also during the import. Or a
            cassette; see `load_cassette`.
        config: See `open_server`.

    Raises:
        CommandError: See there.
    """
    cassette = load_cassette(target) if target is not None and config is None else None
    if sys.stdin is not None and sys.stdin.isatty():
        text = "serving on this terminal; a client should start this command. Ctrl-C ends it."
        note(text)
    if cassette is None:
        run_stdio(partial(open_server, target, config))
    else:
        trio.run(_play, cassette, *take_stdio())
    return OK


async def _play(cassette: "Replay", read_fd: int, write_fd: int) -> None:
    """Pass messages between a client on two descriptors and a cassette."""
    client = LineStream(read_fd, write_fd)
    everything = trio.CancelScope()
    with single_failure(), ending_on_signals(everything.cancel), everything:
        async with aclosing(client), trio.open_nursery() as nursery:
            nursery.start_soon(_answer, cassette, client)
            while messages := await client.receive():
                cassette.send_nowait([each.data for each in messages])
            # The answers that are left are sent, then their task ends.
            await cassette.aclose()


async def _answer(cassette: "Replay", client: LineStream) -> None:
    with suppress(trio.BrokenResourceError):  # the client has left
        while messages := await cassette.receive():
            await client.send([each.data for each in messages])
