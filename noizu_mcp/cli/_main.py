"""The root of the command line: arguments in, exit status out, one line for a failure."""

import os
import sys
import traceback
from collections.abc import Sequence
from itertools import takewhile

from .._errors import PEER_FAILURES, DefinitionError, McpError
from .._limits import RAISE_LIMIT
from .._log import indented
from .._printable import encodable
from ..jsonrpc import MISSING_CLIENT_CAPABILITY
from ..transports import open_standard_descriptors
from ._errors import FAILED, INTERRUPTED, CommandError
from ._say import note
from ._target import run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments, without the name of the program; this process's by default.

    Returns:
        The exit status: 0 done, 1 it failed, 2 it was asked wrongly, 130 it was interrupted.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    # A program may be started without stdout or stderr: it prints to nowhere then.
    open_standard_descriptors()
    for name, fd in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(fd, "w", closefd=False))
    try:
        status = _dispatch(words)
        # A closed pipe is noticed here, and not when the interpreter exits.
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it exits, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED
    except BaseException as error:
        group = BaseExceptionGroup("", [error])
        if group.subgroup(KeyboardInterrupt) is not None:
            return INTERRUPTED
        if not isinstance(error, Exception):
            raise
        # After `--` comes the command of a server, with options of its own.
        ours = takewhile(lambda word: word != "--", words)
        return _fail(error, debug="--debug" in ours)
    return status


def _dispatch(words: list[str]) -> int:
    # A client waits for the start of its server: nothing is loaded to read these two words.
    if len(words) == 2 and words[0] == "run" and not words[1].startswith("-"):
        return run(words[1])
    from ._parser import parse

    command, args = parse(words)
    return command(args)


def _reason(error: Exception) -> str:
    """Describe a failure; name a capability that is missing, and the option of a limit."""
    if isinstance(error, McpError) and error.code == MISSING_CLIENT_CAPABILITY:
        needs = error.data.get("requiredCapabilities") if isinstance(error.data, dict) else None
        if needs and isinstance(needs, dict):
            names = [
                ".".join((name, *(parts if isinstance(parts, dict) else ())))
                for name, parts in needs.items()
            ]
            return f"{error.message}: {', '.join(names)} ({error.code})"
    text = str(error)
    for limit in ("message_size", "message_values"):
        # The advice is for programs; here it is an option.
        text = text.replace(RAISE_LIMIT.format(limit), "--max-message SIZE allows more")
    return text


def _fail(error: Exception, *, debug: bool) -> int:
    if debug:
        text = indented("".join(traceback.format_exception(error)))
        sys.stderr.write(f"{encodable(text, sys.stderr)}\n")
    cause = error.__cause__ if isinstance(error, CommandError) else error
    if isinstance(cause, DefinitionError):
        lines = [str(problem) for problem in cause.problems]
    elif isinstance(error, (CommandError, *PEER_FAILURES)):
        # Their text is enough: a traceback would add nothing for the user.
        lines = [_reason(error)]
    else:
        lines = [f"{type(error).__name__}: {error} (--debug shows where)"]
    for line in lines:
        note(line)
    return error.status if isinstance(error, CommandError) else FAILED
