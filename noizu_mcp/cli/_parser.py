"""The words of the command line, read and explained."""

import argparse
import math
from collections.abc import Callable
from typing import Any, Final, NoReturn

from .._version import __version__
from ..client import TIMEOUT
from ..protocol import REVISIONS
from ._call import call_tool, list_tools
from ._errors import OK, USAGE, CommandError
from ._run import run

Command = Callable[[argparse.Namespace], int]

_TARGET: Final = """\
The server is one of
  module:Server            a class or an instance, imported from here
  path/to/file.py:Server   the same, from a file; :Server may be left out if there is only one
  -- COMMAND ARGUMENT …    any server that speaks stdio, in any language; goes last
"""
_STATUS: Final = """\
Exit status: 0 done, 1 it failed, 2 it was asked wrongly, 130 it was interrupted.
"""
_EXAMPLES: Final[dict[str | None, str]] = {
    None: f"{_TARGET}\n{_STATUS}",
    "run": f"Example: noizu-mcp run app.py:Docs\n\n{_STATUS}",
    "list": f"{_TARGET}\nExample: noizu-mcp list -- npx -y some-server\n\n{_STATUS}",
    "call": f"{_TARGET}\nExample: noizu-mcp call app.py:Docs search query=install\n\n{_STATUS}",
}


class _Parser(argparse.ArgumentParser):
    """Fails with one line."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}; see {self.prog} --help", USAGE)


def parse(words: list[str]) -> tuple[Command, argparse.Namespace]:
    """Read the command line.

    Args:
        words: The arguments, without the name of the program. What follows `--` is the command of
            a server.

    Returns:
        What does it, and with what.

    Raises:
        CommandError: It cannot be read.
    """
    process: list[str] | None = None
    if "--" in words:
        at = words.index("--")
        words, process = words[:at], words[at + 1 :]
        if not process:
            raise CommandError("give the command of a server after --", USAGE)
    parser = _parser(with_target=process is None)
    try:
        args, rest = parser.parse_known_args(words)
    except SystemExit:  # help was asked for, and given
        return lambda _: OK, argparse.Namespace()
    # argparse takes positional words in one run only; options may stand between ours.
    if any(word.startswith("-") for word in rest) or (rest and not hasattr(args, "arguments")):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        args.arguments += rest
    args.process = process
    return args.command, args


def _parser(*, with_target: bool) -> argparse.ArgumentParser:
    description = "Serve and use Model Context Protocol servers."
    parser = _Parser(prog="noizu-mcp", description=description, **_form(None))
    parser.add_argument("--version", action="version", version=f"noizu-mcp {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    running = _command(commands, "run", "serve a server on stdin and stdout", _run)
    running.add_argument("target", help="module:Server or path/to/file.py:Server")
    listing = _command(commands, "list", "list the tools of a server", list_tools)
    _add_connection(listing, with_target=with_target)
    calling = _command(commands, "call", "call a tool of a server", call_tool)
    _add_connection(calling, with_target=with_target)
    calling.add_argument("tool", help="the name of the tool")
    calling.add_argument(
        "arguments",
        nargs="*",
        metavar="name=value",
        help="an argument; a value is read as the tool declares it, else as JSON, else as text",
    )
    calling.add_argument("--args", metavar="JSON", help="arguments as one JSON object")
    return parser


def _form(name: str | None) -> dict[str, Any]:
    return {
        "epilog": _EXAMPLES[name],
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }


def _command(
    commands: "argparse._SubParsersAction[_Parser]", name: str, text: str, function: Command
) -> argparse.ArgumentParser:
    description = f"{text[0].upper()}{text[1:]}."
    parser = commands.add_parser(name, help=text, description=description, **_form(name))
    parser.add_argument("--debug", action="store_true", help="show the traceback of a failure")
    parser.set_defaults(command=function)
    return parser


def _add_connection(parser: argparse.ArgumentParser, *, with_target: bool) -> None:
    if with_target:
        parser.add_argument("target", metavar="SERVER", help="see below")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--trace", action="store_true", help="print every message to stderr")
    parser.add_argument(
        "--protocol",
        metavar="VERSION",
        choices=tuple(REVISIONS),
        help=f"use one protocol revision: {', '.join(REVISIONS)}",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=TIMEOUT,
        help=f"for each answer of the server, {TIMEOUT:g} unless given",
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < math.inf:
        raise ValueError(text)
    return seconds


def _run(args: argparse.Namespace) -> int:
    if args.process is not None:
        raise CommandError("run serves module:Server; a command serves itself", USAGE)
    return run(args.target)
