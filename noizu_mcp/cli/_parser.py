"""The parser of the command line, and its help."""

import argparse
import math
import os
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any, Final, NoReturn, get_args

from .._limits import CLIENT_LIMITS, MIB, Limits
from .._version import __version__
from ..client import TIMEOUT
from ..protocol import REVISIONS
from ..types import LogLevel
from ..workers import VARIABLE
from ._commands import KINDS, call_tool, complete, get_prompt, list_offers, read_resource
from ._describe import describe
from ._errors import OK, USAGE, CommandError
from ._say import marked_stderr
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
_HOSTS: Final = f"""\
Hosts: claude-desktop, claude-code, cursor, vscode, windsurf, zed, gemini, codex, copilot, opencode,
       kiro, lmstudio

{_TARGET}"""
_ASKING: Final = """\
A server may ask in between. On a terminal its form is shown, and read there; --answers answers
without one, and otherwise the question is declined. An answer is an object with values by the names
of fields, or "accept", "decline", "cancel"; a list has one for each question.
"""
_STATUS: Final = """\
Exit status: 0 done, 1 it failed, 2 it was asked wrongly, 130 it was interrupted.
"""
_FINDINGS: Final = """\
Exit status: 0 no finding is an error, 1 one is, 2 it was asked wrongly, 130 it was interrupted.
"""
_SEVERITIES: Final = """\
Exit status: 0 no finding counts, 1 one does, 2 it was asked wrongly, 130 it was interrupted.
"""
_CHANGES: Final = """\
Exit status: 0 compatible, 1 a change is breaking, 2 it was asked wrongly, 130 it was interrupted.
"""
#: Seconds that `doctor` waits for an answer: it asks for nothing that takes long.
PATIENCE: Final = 10.0
_FOUND: Final = """\
Exit status: 0 nothing was found, 1 something was, or the server failed, 2 it was asked wrongly, 130
it was interrupted.
"""
#: Seconds of `fuzz` for a whole run and for one answer; valid values for each component.
FUZZ_BUDGET: Final = 30.0
FUZZ_TIMEOUT: Final = 5.0
FUZZ_EXAMPLES: Final = 100
_RUN: Final = f"""\
Examples: noizu-mcp run app.py:Docs
          noizu-mcp run app.py:Docs --http --port 8000
          noizu-mcp run --config mcp.json

{_STATUS}"""


class _Parser(argparse.ArgumentParser):
    """Takes whole options only, prints its epilog as it is, and fails with one line."""

    def __init__(self, **options: Any) -> None:
        # No abbreviations: `--p` would mean another option as soon as one more begins so.
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(allow_abbrev=False, formatter_class=form, **options)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}; see {self.prog} --help", USAGE)

    def add_flag(self, name: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=text)

    def add_value(self, name: str, metavar: str, text: str, **options: Any) -> None:
        """Add an option with a value."""
        self.add_argument(name, metavar=metavar, help=text, **options)

    def add_list(self, name: str, metavar: str, text: str, **options: Any) -> None:
        """Add an option that may be repeated."""
        self.add_value(name, metavar, text, action="append", default=[], **options)

    def add_header(self) -> None:
        """Add the headers of a server at a URL."""
        text = "a header for a server at a URL, or 'NAME: VALUE'; may be repeated"
        self.add_list("--header", "NAME=VALUE", text)

    def add_rest(self, text: str, metavar: str = "name=value") -> None:
        """Add the arguments: all other words."""
        self.add_argument("arguments", nargs="*", metavar=metavar, help=text)


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
    # Before argparse, which would take the options of the other command for its own.
    process: list[str] | None = None
    if "--" in words:
        at = words.index("--")
        words, process = words[:at], words[at + 1 :]
        if not process:
            raise CommandError("give the command of a server after --", USAGE)
    parser = _parser(with_target=process is None)
    if not words and process is None:
        # A script that passes no arguments by mistake must not see success.
        parser.print_help(sys.stderr)
        return lambda _: USAGE, argparse.Namespace()
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
    about = "Serve and use Model Context Protocol servers."
    epilog = f"{_TARGET}\n{_ONLY_RUN}\n{_STATUS}"
    parser = _Parser(prog="noizu-mcp", description=about, epilog=epilog)
    parser.add_argument("--version", action="version", version=f"noizu-mcp {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, text: str, function: Command, epilog: str, group: Any = commands) -> _Parser:
        about = f"{text[0].upper()}{text[1:]}."
        added: _Parser = group.add_parser(name, help=text, description=about, epilog=epilog)
        added.add_flag("--debug", "show the traceback of a failure")
        added.set_defaults(command=function)
        return added

    def using(
        name: str,
        text: str,
        function: Command,
        example: str,
        *,
        asking: bool = False,
        status: str = _STATUS,
        timeout: float | None = None,
        group: Any = commands,
    ) -> _Parser:
        asks = f"{_ASKING}\n" if asking else ""
        epilog = f"{_TARGET}\n{asks}Example: noizu-mcp {example}\n\n{status}"
        added = add(name, text, function, epilog, group)
        # A command after `--` takes the place of the target.
        if with_target:
            added.add_argument("target", metavar="SERVER", help="see below")
        added.add_header()
        added.add_flag("--json", "print JSON")
        if timeout is None:
            _add_client(added)
            timeout = TIMEOUT
        text = f"for each answer of the server, {timeout:g} unless given"
        added.add_value("--timeout", "SECONDS", text, type=_seconds, default=timeout)
        return added

    running = add("run", "serve a server on stdin and stdout, or over HTTP", _run, _RUN)
    text = "module:Server or path/to/file.py:Server; may be left out with --config"
    running.add_argument("target", nargs="?", help=text)
    text = "serve the servers of a file of the mcpServers form, too: a gateway"
    running.add_value("--config", "FILE", text)
    running.add_flag("--reload", "for development: start again when a Python file changes")
    add_http(running)
    _add_using_commands(using)
    _add_doctor(using)
    _add_lint(using)
    text = "write down what a server offers, and check later versions against it"
    contracts = commands.add_parser("contract", help=text, description=f"{text.capitalize()}.")
    _add_contract(partial(using, group=contracts.add_subparsers(metavar="ACTION", required=True)))
    _add_fuzz(using)
    _add_host_commands(add, with_target=with_target)
    _add_login(add)
    return parser


def _add_using_commands(using: Callable[..., _Parser]) -> None:
    text = "list what a server offers: its tools, or what is asked for"
    listing = using("list", text, list_offers, "list --all https://mcp.example.com/mcp")
    for kind in KINDS:
        full = "resource templates" if kind == "templates" else kind
        listing.add_flag(f"--{kind}", f"list its {full}")
    listing.add_flag("--all", "list everything that it offers")
    text = "describe a tool, a resource, a template or a prompt: all that it takes and gives"
    describing = using("describe", text, describe, "describe app.py:Docs search")
    describing.add_argument("name", metavar="NAME", help="its name, its URI or its URI template")
    text, example = "call a tool of a server", "call app.py:Docs search query=install"
    calling = using("call", text, call_tool, example, asking=True)
    calling.add_argument("tool", metavar="TOOL", help="the name of the tool")
    text = "an argument, if any; a value is read as the tool declares it, else as JSON or text"
    calling.add_rest(text)
    calling.add_value("--args", "JSON", "arguments as one JSON object")
    text, example = "read a resource of a server", "read app.py:Docs config://app > app.json"
    reading = using("read", text, read_resource, example, asking=True)
    reading.add_argument("uri", metavar="URI", help="the URI of the resource")
    text, example = "get a prompt of a server", "prompt app.py:Docs code_review code=x style=strict"
    prompting = using("prompt", text, get_prompt, example, asking=True)
    prompting.add_argument("name", metavar="NAME", help="the name of the prompt")
    prompting.add_rest("an argument, if any; a value is text")
    for saving in (calling, reading):
        text = "write images and other contents to a file, several to numbered ones"
        saving.add_value("--output", "FILE", text)
        saving.add_flag("--force", "replace files that exist")
    for asking in (calling, reading, prompting):
        text = "answer what the server asks; see below"
        asking.add_value("--answers", "JSON", text)
        text = "print log messages of the server to stderr, from this level on; info on a terminal"
        asking.add_value("--log-level", "LEVEL", text, choices=get_args(LogLevel))
    text = "complete an argument of a prompt or a template"
    example = "complete app.py:Docs code_review style s --context code=x"
    completing = using("complete", text, complete, example)
    completing.add_argument("ref", metavar="REF", help="the name of a prompt, or a URI template")
    completing.add_argument("argument", metavar="ARGUMENT", help="the argument, or the variable")
    completing.add_rest("what is typed so far", "PREFIX")
    text = "another argument that is filled in already"
    completing.add_list("--context", "name=value", text)


def _add_doctor(using: Callable[..., _Parser]) -> None:
    text, example = "check a server, and say what to do", "doctor https://mcp.example.com/mcp"
    command = _late("._doctor", "doctor")
    parser = using("doctor", text, command, example, status=_FINDINGS, timeout=PATIENCE)
    parser.add_value("--call", "TOOL", "call this tool, and check its result")
    parser.add_rest("an argument of the tool, if any")
    parser.add_value("--args", "JSON", "arguments as one JSON object")


def _add_lint(using: Callable[..., _Parser]) -> None:
    text = "check names, descriptions and schemas of tools, as models and their APIs read them"
    example = "lint app.py:Docs --ignore strict --fail-on warning"
    linting = using("lint", text, _late("._lint", "lint"), example, status=_SEVERITIES)
    linting.add_list("--ignore", "RULE", "a rule that is not checked; may be repeated")
    text = "an API whose limits are checked, in place of anthropic, openai and gemini; may be"
    linting.add_list("--api", "NAME", f"{text} repeated")
    text = "the least severity that counts; error unless given"
    choices = ("error", "warning", "note")
    linting.add_argument("--fail-on", choices=choices, default="error", help=text)


def _add_contract(using: Callable[..., _Parser]) -> None:
    text = "write everything that a server lists to a file"
    command = _late("._contract", "write_contract")
    writing = using("write", text, command, "contract write app.py:Docs")
    text = "tools, resources, templates or prompts alone; may be repeated"
    writing.add_list("--only", "KIND", text, choices=tuple(KINDS))
    text = "compare a server with the file, and print the changes"
    example = "contract check app.py:Docs --exact"
    command = _late("._contract", "check_contract")
    checking = using("check", text, command, example, status=_CHANGES)
    checking.add_flag("--exact", "count every change, so that the file stays up to date")
    for parser in (writing, checking):
        text = "the file, contract.json unless given"
        parser.add_value("--file", "FILE", text, default="contract.json")


def _add_fuzz(using: Callable[..., _Parser]) -> None:
    text, example = "call everything that a server offers, to break it", "fuzz app.py:Docs"
    command = _late("._fuzz", "fuzz")
    parser = using("fuzz", text, command, example, status=_FOUND, timeout=FUZZ_TIMEOUT)
    text = "the seed of all values; the same seed makes the same calls"
    parser.add_value("--seed", "NUMBER", text, type=int, default=0)
    text = f"for the whole run, {FUZZ_BUDGET:g} unless given"
    parser.add_value("--budget", "SECONDS", text, type=_seconds, default=FUZZ_BUDGET)
    text = f"valid values for each component, {FUZZ_EXAMPLES} unless given"
    parser.add_value("--examples", "NUMBER", text, type=int, default=FUZZ_EXAMPLES)
    parser.add_flag("--destructive", "call tools, too, that say that they may destroy something")
    parser.add_value("--keep", "FILE", "add the findings to a file")
    parser.add_value("--replay", "FILE", "only take the findings of a file again")


def _add_login(add: Callable[[str, str, Command, str], _Parser]) -> None:
    text, example = "log in at a server, in the browser", "login https://mcp.example.com/mcp"
    epilog, command = f"Example: noizu-mcp {example}\n\n{_STATUS}", _late("._login", "log_in")
    entering = add("login", text, command, epilog)
    entering.add_list("--scope", "NAME", "a scope to ask for; may be repeated")
    text = "the name of this program there, if it is registered; NOIZU_MCP_CLIENT_SECRET may have"
    entering.add_value("--client-id", "ID", f"{text} its secret")
    text = "the only authorization server to log in at; needed with a secret"
    entering.add_value("--issuer", "URL", text)
    entering.add_flag("--no-browser", "print the URL of the login only")
    text = "delete the login of a server, and revoke its tokens"
    epilog = epilog.replace("login", "logout")
    leaving = add("logout", text, _late("._login", "log_out"), epilog)
    for parser in (entering, leaving):
        parser.add_argument("url", metavar="URL", help="the URL of the server")


def _add_host_commands(
    add: Callable[[str, str, Command, str], _Parser], *, with_target: bool
) -> None:
    module = ".hosts._install"
    text, example = "add a server to the settings of a host", "install cursor app.py:Docs"
    epilog, command = f"{_HOSTS}\nExample: noizu-mcp {example}\n", _late(module, "install")
    installing = add("install", text, command, epilog)
    text, example = "print the settings of a host that name a server", "config vscode app.py:Docs"
    epilog, command = f"{_HOSTS}\nExample: noizu-mcp {example}\n", _late(module, "show_config")
    printing = add("config", text, command, epilog)
    for parser in (installing, printing):
        parser.add_argument("host", metavar="HOST", help="the host; see below")
        if with_target:
            parser.add_argument("target", metavar="SERVER", nargs="?", help="the server; see below")
        text = "the file: that of the user, which is the default, or one in this folder"
        parser.add_argument("--scope", choices=("user", "project"), default="user", help=text)
        parser.add_argument("--name", help="the name of the server in the settings")
        parser.add_list("--env", "NAME=VALUE", "a variable for the command; may be repeated")
        parser.add_header()
    installing.add_flag("--remove", "remove the server; --name alone is enough")
    installing.add_flag("--dry-run", "print the change, and write nothing")


def _add_client(parser: _Parser) -> None:
    parser.add_flag("--trace", "print every message to stderr")
    known = tuple(REVISIONS)
    text = f"use one protocol revision: {', '.join(known)}"
    parser.add_value("--protocol", "VERSION", text, choices=known)
    size = f"{CLIENT_LIMITS.message_size // MIB}M"
    text = f"largest message of the server, like 64M; {size} unless given"
    parser.add_value("--max-message", "SIZE", text, type=_limits, default=CLIENT_LIMITS)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be seconds above 0, got {text!r}")
    return seconds


def _limits(text: str) -> Limits:
    found = re.fullmatch(r"(\d{1,9})([KMG]?)(?:i?B)?", text, re.ASCII | re.IGNORECASE)
    size = int(found[1]) * 1024 ** " KMG".index(found[2].upper() or " ") if found else 0
    if not size:
        raise argparse.ArgumentTypeError(f"must be bytes, like 64M or 67108864, got {text!r}")
    # As many values for each byte as by default; a smaller message needs no limit of its own.
    share = max(1.0, size / CLIENT_LIMITS.message_size)
    return Limits(message_size=size, message_values=int(CLIENT_LIMITS.message_values * share))


def _late(module: str, name: str) -> Command:
    """Return the command of a module that loads when the command runs."""

    def command(args: argparse.Namespace) -> int:
        found: Command = getattr(import_module(module, __package__), name)
        return found(args)

    return command


def _run(args: argparse.Namespace) -> int:
    if args.process is not None:
        raise CommandError("run serves module:Server; a command serves itself", USAGE)
    if args.target is None and args.config is None:
        text = "run needs a server, module:Server or path/to/file.py:Server, or --config FILE"
        raise CommandError(text, USAGE)
    if args.reload and args.config is not None:
        raise CommandError("--reload starts one server again, and takes no --config", USAGE)
    # With a file it starts servers of others; with workers, each of them does.
    is_plain = args.config is None or (args.workers is not None and VARIABLE not in os.environ)
    with nullcontext() if is_plain else marked_stderr():
        if args.http:
            return serve(args)
        check_stdio(args)
        if args.reload:
            from ._relay import run_relay

            return run_relay(args.target)
        return run(args.target, args.config)
