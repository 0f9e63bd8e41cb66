"""Connections to the server that the command line names, and their trio loop."""

import argparse
import contextlib
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

import trio

from .._errors import AuthError, McpError
from ..client import Client, connect
from ..engine import single_failure
from ..jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND
from ..schema.jsonschema._nearest import nearest
from ..server import Server
from ..transports import Http, Stdio, diverted_stdio
from ._ask import Respondent, respondent
from ._errors import USAGE, CommandError
from ._output import TracePrinter, one_line_log
from ._target import load_server

#: A name of a header is a token (RFC 9110 section 5.1); `:` or `=` ends it, whichever comes first.
_HEADER: Final = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ ]*[:=][ ]*([\x20-\x7e\t]*)")


def is_url(target: str) -> bool:
    """Tell a URL from a module and a file."""
    return "://" in target


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


def _header(text: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(text)
    if found is None:  # its text may be a secret, so the error does not repeat it
        raise CommandError("write headers as NAME=VALUE or 'NAME: VALUE', in ASCII", USAGE)
    name, value = found.groups()
    return name.lower(), value.strip()


Result = TypeVar("Result")


def run_loop(function: Callable[[], Awaitable[Result]]) -> Result:
    """Run an async function to its end.

    Ctrl-C cancels it, whatever it is doing, instead of raising in the middle of it: so servers
    that it started are ended, and no half-done work fails on its own.

    Raises:
        KeyboardInterrupt: It was interrupted, and has ended.
    """
    interrupted = False

    async def watch(
        scope: trio.CancelScope,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        nonlocal interrupted
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                interrupted = True
                scope.cancel()

    results: list[Result] = []

    async def main() -> None:
        with single_failure():
            async with trio.open_nursery() as nursery:
                await nursery.start(watch, nursery.cancel_scope)
                results.append(await function())
                nursery.cancel_scope.cancel()

    trio.run(main)
    if interrupted:
        raise KeyboardInterrupt
    return results[0]


Work = Callable[[Client], Awaitable[Result]]

#: Error codes of servers for an unknown name.
_NOT_THERE = (INVALID_PARAMS, RESOURCE_NOT_FOUND)
#: The key of definitions that are not known by their name.
_KEYS = {"resource": "uri", "template": "uri_template"}


def use(args: argparse.Namespace, work: Work[Result]) -> Result:
    """Connect to a server and use it.

    Args:
        args: The options of a connection, and `answers` where the server may ask.
        work: Called with the client.

    Raises:
        CommandError: The server cannot be loaded, wants other credentials, or a question cannot be
            answered.
    """
    with contextlib.ExitStack() as stack:
        if not args.debug:
            stack.enter_context(one_line_log())
        asked = stack.enter_context(respondent(args.answers, args.timeout)) if _asks(args) else None
        target: Stdio | Http | Server | None = _elsewhere(args)
        if target is None:
            # A server in this process may print: that must not mix with the answer on stdout.
            stack.enter_context(diverted_stdio())
            target = load_server(args.target)
        try:
            return run_loop(partial(_connected, args, target, asked, work))
        except AuthError as error:
            hint = "give a token with --header 'Authorization: Bearer TOKEN'"
            raise CommandError(f"{error}; {hint}") from error


def _elsewhere(args: argparse.Namespace) -> Stdio | Http | None:
    """Read a target outside of this process; None for a server that is imported."""
    if args.process is None and is_url(args.target):
        return read_url(args.target, args.header)
    if args.header:
        raise CommandError("--header goes with a URL; any other server sees no headers", USAGE)
    return None if args.process is None else Stdio(*args.process)


def _asks(args: argparse.Namespace) -> bool:
    return hasattr(args, "answers")


async def _connected(
    args: argparse.Namespace, target: Any, asked: Respondent | None, work: Work[Result]
) -> Result:
    tap = TracePrinter(sys.stderr) if args.trace else None
    async with connect(
        target, handler=asked, version=args.protocol, timeout=args.timeout, tap=tap
    ) as client:
        return await (work(client) if asked is None else asked.during(client, work))


async def suggest(
    kind: str, name: str, list_names: Callable[[], Awaitable[Sequence[Any]]], error: McpError
) -> NoReturn:
    """Suggest the name that was meant; raise the server's error if the name exists.

    Args:
        kind: The kind of component: `tool`, `prompt`, `resource`, `template`.
        name: The name on the command line.
        list_names: Lists the definitions of the server.
        error: The error of the server.

    Raises:
        CommandError: The server has no component of that name, or none of that kind.
        McpError: It has one, or the error has another cause.
    """
    if error.code == METHOD_NOT_FOUND:
        raise CommandError(f"the server has no {kind}s") from error
    if error.code not in _NOT_THERE:
        raise error
    key = _KEYS.get(kind, "name")
    names = [getattr(each, key) for each in await list_names()]
    if name in names:
        raise error
    meant = nearest(name, names)
    hint = f"did you mean {meant}?" if meant else f"there are: {', '.join(names) or 'none'}"
    raise CommandError(f"no {kind} {name}; {hint}", USAGE) from error
