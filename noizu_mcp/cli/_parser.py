"""The words of the command line, read and explained."""

import argparse
import math
from collections.abc import Callable
from typing import Any, Final, NoReturn

from .._version import __version__
from ..client import TIMEOUT
from ..protocol import REVISIONS
from ._commands import KINDS, call_tool, complete, get_prompt, list_offers, read_resource
from ._errors import OK, USAGE, CommandError
from ._serve import add_http, check_stdio, serve
from ._target import run

Command = Callable[[argparse.Namespace], int]

_TARGET: Final = """\
The server is one of
  module:Server            a class or an instance, imported from here
  path/to/file.py:Server   the same, from a file; :Server may be left out if there is only one
  https://…, http://…      a server that runs elsewhere, over Streamable HTTP
  -- COMMAND ARGUMENT …    any server that speaks stdio, in any language; goes last
"""
_ONLY_RUN: Final = """\
`run` takes the first two: it serves a server, the others use one.
"""
_ASKING: Final = """\
A server may ask in between. On a terminal its form is shown, and read there; --answers answers
without one, and otherwise the question is declined. An answer is an object with values by the names
of fields, or "accept", "decline", "cancel"; a list has one for each question.
"""
_STATUS: Final = """\
Exit status: 0 done, 1 it failed, 2 it was asked wrongly, 130 it was interrupted.
"""


def _examples(example: str, *, asking: bool = False) -> str:
    asks = f"{_ASKING}\n" if asking else ""
    return f"{_TARGET}\n{asks}Example: noizu-mcp {example}\n\n{_STATUS}"


_EXAMPLES: Final[dict[str | None, str]] = {
    None: f"{_TARGET}\n{_ONLY_RUN}\n{_STATUS}",
    "run": f"""\
Examples: noizu-mcp run app.py:Docs
          noizu-mcp run app.py:Docs --http --port 8000

{_STATUS}""",
    "list": _examples("list --all https://mcp.example.com/mcp"),
    "call": _examples("call app.py:Docs search query=install", asking=True),
    "read": _examples("read app.py:Docs config://app > app.json", asking=True),
    "prompt": _examples("prompt app.py:Docs code_review code=x style=strict", asking=True),
    "complete": _examples("complete app.py:Docs code_review style s --context code=x"),
}

_NAMES: Final = {
    "tools": "tools",
    "resources": "resources",
    "templates": "resource templates",
    "prompts": "prompts",
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
        The function of the command, and its arguments.

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
    running = _command(commands, "run", "serve a server on stdin and stdout, or over HTTP", _run)
    running.add_argument("target", help="module:Server or path/to/file.py:Server")
    add_http(running)
    _add_using_commands(commands, with_target=with_target)
    return parser


def _add_using_commands(
    commands: "argparse._SubParsersAction[_Parser]", *, with_target: bool
) -> None:
    def using(name: str, text: str, function: Command) -> argparse.ArgumentParser:
        parser = _command(commands, name, text, function)
        _add_connection(parser, with_target=with_target)
        return parser

    listing = using(
        "list", "list what a server offers: its tools, or what is asked for", list_offers
    )
    for kind in KINDS:
        listing.add_argument(f"--{kind}", action="store_true", help=f"list its {_NAMES[kind]}")
    listing.add_argument("--all", action="store_true", help="list everything that it offers")
    calling = using("call", "call a tool of a server", call_tool)
    calling.add_argument("tool", help="the name of the tool")
    _add_arguments(calling, "a value is read as the tool declares it, else as JSON, else as text")
    calling.add_argument("--args", metavar="JSON", help="arguments as one JSON object")
    reading = using("read", "read a resource of a server", read_resource)
    reading.add_argument("uri", metavar="URI", help="the URI of the resource")
    prompting = using("prompt", "get a prompt of a server", get_prompt)
    prompting.add_argument("name", help="the name of the prompt")
    _add_arguments(prompting, "a value is text")
    for asking in (calling, reading, prompting):
        asking.add_argument(
            "--answers", metavar="JSON", help="answer what the server asks; see below"
        )
    _add_completion(using("complete", "complete an argument of a prompt or a template", complete))


def _add_arguments(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("arguments", nargs="*", metavar="name=value", help=f"an argument; {text}")


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="the name of a prompt, or a URI template")
    parser.add_argument("argument", metavar="ARGUMENT", help="the argument, or the variable")
    parser.add_argument("arguments", nargs="*", metavar="PREFIX", help="what is typed so far")
    parser.add_argument(
        "--context",
        action="append",
        default=[],
        metavar="name=value",
        help="another argument that is filled in already",
    )


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
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a header for a server at a URL, or 'NAME: VALUE'; may be repeated",
    )
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
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be seconds above 0, got {text!r}")
    return seconds


def _run(args: argparse.Namespace) -> int:
    if args.process is not None:
        raise CommandError("run serves module:Server; a command serves itself", USAGE)
    if args.http:
        return serve(args)
    check_stdio(args)
    return run(args.target)
