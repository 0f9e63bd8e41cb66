"""`noizu-mcp run`: serve a server."""

import argparse
import sys

from ._errors import OK
from ._target import load_server


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Describe the command."""
    parser = commands.add_parser("run", help="serve a server on stdin and stdout")
    parser.add_argument("target", help="module:Server or path/to/file.py:Server")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Serve until the client ends it."""
    server = load_server(args.target)
    if sys.stdin is not None and sys.stdin.isatty():
        text = "serving on this terminal; a client should start this command. Ctrl-C ends it."
        print(f"noizu-mcp: {text}", file=sys.stderr)
    server.run()
    return OK
