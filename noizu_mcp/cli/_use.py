"""Connections to the server that the command line names, and their trio loop."""

import argparse
import contextlib
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from .._errors import AuthError, TargetError
from .._util import Returned
from ..client import Client, Progress, connect, read_target
from ..engine import single_failure
from ..server import Server
from ..transports import Http, Stdio, diverted_stdio
from ._ask import Respondent, respondent
from ._display import Display
from ._errors import USAGE, CommandError
from ._output import TracePrinter, one_line_log
from ._say import marked_stderr
from ._target import load_cassette, load_server

if TYPE_CHECKING:
    from ..auth.client import AuthStrategy
    from ..testing import Replay

_LOGIN: Final = "noizu-mcp login"
#: A name of a header is a token (RFC 9110 section 5.1); `:` or `=` ends it, whichever comes first.
_HEADER: Final = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ ]*[:=][ ]*([\x20-\x7e\t]*)")


def read_url(url: str, headers: Iterable[str]) -> Http:
    """Read a URL and the headers that go with each request.

    Args:
        url: Its URL.
        headers: `NAME=VALUE` or `NAME: VALUE` each; the last one of a name counts.

    Raises:
        CommandError: The URL cannot be one of a server, or a header is malformed.
    """
    try:
        return Http(url, headers=dict(map(_header, headers)))
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error


def read_elsewhere(args: argparse.Namespace) -> Http | Stdio | None:
    """Read a URL or a command; None for another target.

    Args:
        args: `target` or `process`, and `header`.

    Raises:
        CommandError: The URL or a header is malformed, or there are headers without a URL.
    """
    if args.process is None and "://" in args.target:
        return read_url(args.target, args.header)
    if args.header:
        raise CommandError("--header goes with a URL; any other server sees no headers", USAGE)
    return None if args.process is None else Stdio(*args.process)


def _header(text: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(text)
    if found is None:  # its text may be a secret, so the error does not repeat it
        raise CommandError("write headers as NAME=VALUE or 'NAME: VALUE', in ASCII", USAGE)
    name, value = found.groups()
    return name.lower(), value.strip()


def run_loop(function: Callable[[], Awaitable[Returned]]) -> Returned:
    """Run an async function to its end.

    Ctrl-C cancels it, instead of raising an exception at any point of it. So the servers that it
    started are ended.

    Raises:
        KeyboardInterrupt: It was interrupted, and has ended.
    """
    results: list[Returned] = []

    async def main() -> None:
        with single_failure():
            async with trio.open_nursery() as nursery:
                # Opened here and not in the task, which may start later than the function.
                with trio.open_signal_receiver(signal.SIGINT) as signals:
                    # It listens before the function begins, which may end without waiting once.
                    await nursery.start(_cancel_on, signals, nursery.cancel_scope)
                    results.append(await function())
                nursery.cancel_scope.cancel()

    trio.run(main)
    if not results:
        raise KeyboardInterrupt
    return results[0]


async def _cancel_on(
    signals: AsyncIterator[int],
    scope: trio.CancelScope,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    task_status.started()
    async for _ in signals:
        scope.cancel()


class Connected(NamedTuple):
    """A connection to a server.

    Attributes:
        client: The client.
        server: The server, if it runs in this process.
        report: Takes the progress of a call, where the server may ask.
    """

    client: Client
    server: Server | None
    report: Callable[[Progress], None] | None


def use(args: argparse.Namespace, work: Callable[[Connected], Awaitable[Returned]]) -> Returned:
    """Connect to a server and use it.

    Args:
        args: The options of a connection, and `answers` where the server may ask.
        work: Called with the connection.

    Raises:
        CommandError: The server cannot be loaded, wants other credentials, or a question cannot be
            answered.
    """
    target: Stdio | Http | Replay | Server | None = _elsewhere(args)
    with contextlib.ExitStack() as stack:
        if isinstance(target, Stdio):
            stack.enter_context(marked_stderr())
        if not args.debug:
            stack.enter_context(one_line_log())
        asked: Respondent | None = None
        display = Display(None)
        if hasattr(args, "answers"):
            is_shown = args.log_level or (not args.json and sys.stderr.isatty())
            display = Display(sys.stderr if is_shown else None, args.log_level or "info")
            asked = stack.enter_context(respondent(args.answers, args.timeout, display))
        # A trace has every message already.
        tap = TracePrinter(sys.stderr) if args.trace else display.tap if display.active else None
        if target is None:
            # A server in this process may print: that must not mix with the answer on stdout.
            stack.enter_context(diverted_stdio())
            target = load_server(args.target)
        connecting = partial(
            connect,
            target,
            auth=_login_for(target),
            handler=asked,
            version=args.protocol,
            timeout=args.timeout,
            tap=tap,
            limits=args.max_message,
        )

        server = target if isinstance(target, Server) else None

        async def connected() -> Returned:
            async with connecting() as client:
                if asked is None:
                    return await work(Connected(client, server, None))
                return await asked.during(
                    client, partial(work, Connected(client, server, asked.report))
                )

        try:
            return run_loop(connected)
        except AuthError as error:
            hint = f"give a token with --header 'Authorization: Bearer TOKEN', or {_LOGIN}"
            # The error may say so itself.
            text = str(error) if _LOGIN in str(error) else f"{error}; {hint} {args.target}"
            raise CommandError(text) from error


def _login_for(target: "Stdio | Http | Replay | Server") -> "AuthStrategy | None":
    """Find the login of a person for a URL, unless a header has other credentials."""
    if not isinstance(target, Http):
        return None
    from ._stored_login import StoredLogin

    headers = target.headers if isinstance(target.headers, Mapping) else {}
    return StoredLogin(given="authorization" in headers)


def _elsewhere(args: argparse.Namespace) -> "Stdio | Http | Replay | None":
    """Read a target outside of this process, or a cassette; None for a server to be imported."""
    elsewhere = read_elsewhere(args)
    if elsewhere is not None:
        return elsewhere
    if args.target.partition("#")[0].endswith(".json"):
        return _configured(args.target)
    return load_cassette(args.target)


def _configured(target: str) -> Stdio | Http:
    """Read a server of a host's file: `mcp.json`, or `mcp.json#name`."""
    try:
        found = read_target(target)
    except (TargetError, ValueError) as error:
        raise CommandError(str(error), USAGE) from error
    if not isinstance(found, Stdio | Http):
        raise CommandError(f"{target}: an entry is an object with a command or a url", USAGE)
    return found
