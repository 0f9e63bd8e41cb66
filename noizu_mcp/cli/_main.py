"""The root of the command line: arguments in, exit status out."""

import argparse
import sys
from collections.abc import Sequence

from .._errors import (
    ConnectionClosed,
    DefinitionError,
    McpError,
    ProtocolError,
    RequestTimeout,
    TransportError,
)
from .._version import __version__
from . import _call, _run
from ._errors import FAILED, USAGE, CommandError

_EXPECTED = (
    ConnectionClosed,
    DefinitionError,
    McpError,
    ProtocolError,
    RequestTimeout,
    TransportError,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments, without the name of the program; those of this process by default.

    Returns:
        The exit status: 0 done, 1 it failed, 2 it was asked wrongly.
    """
    words, process = _split(list(sys.argv[1:] if argv is None else argv))
    try:
        args = _parser(with_target=process is None).parse_args(words)
        args.process = process
        status: int = args.command(args)
    except CommandError as error:
        return _fail(str(error), error.status)
    except _EXPECTED as error:
        return _fail(str(error), FAILED)
    except ValueError as error:
        return _fail(str(error), USAGE)
    except (KeyboardInterrupt, BrokenPipeError):
        return FAILED
    return status


def _split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Split at `--`: what follows is the command of a server."""
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _parser(*, with_target: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="noizu-mcp", description="Model Context Protocol tools")
    parser.add_argument("--version", action="version", version=f"noizu-mcp {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _run.add_parser(commands)
    _call.add_parsers(commands, with_target=with_target)
    return parser


def _fail(message: str, status: int) -> int:
    for line in message.splitlines():
        print(f"noizu-mcp: {line}", file=sys.stderr)
    return status
