"""`noizu-mcp doctor`: check a server in any language, and say what to do about each finding."""

import argparse
import os
from collections.abc import Mapping
from functools import partial

from ..check.doctor import Report, examine
from ..transports import Http, Stdio
from ._arguments import read_arguments
from ._errors import FAILED, OK, USAGE, CommandError
from ._output import print_json
from ._say import say
from ._stored_login import stored_headers
from ._use import read_elsewhere, run_loop
from .hosts._entry import own_program


def doctor(args: argparse.Namespace) -> int:
    """Check a server and print the findings.

    Args:
        args: `target` or `process`, `header`, `call`, `args`, `arguments`, `timeout` and `json`.

    Returns:
        The exit status: 1 if a finding is an error, else 0.

    Raises:
        CommandError: The target or an option is malformed.
        TransportError: See `examine`.
    """
    if args.call is None and (args.args is not None or args.arguments):
        raise CommandError("arguments go with --call NAME", USAGE)
    target = read_elsewhere(args)
    if target is None:
        # As a host runs it; with the variables that it has in this program.
        target = Stdio(*own_program(), "run", args.target, env=dict(os.environ))
    report = run_loop(partial(_examine, args, target))
    facts = {"target": " ".join(args.process or [args.target]), **report.facts}
    if args.json:
        print_json({**report.to_json(), "facts": facts})
    else:
        report.facts = facts
        for line in report.lines():
            say(line)
    return FAILED if report.failed else OK


async def _examine(args: argparse.Namespace, target: Stdio | Http) -> Report:
    if isinstance(target, Http):
        given = target.headers if isinstance(target.headers, Mapping) else {}
        if "authorization" not in given:
            target = Http(target.url, headers={**await stored_headers(target), **given})
    arguments = partial(read_arguments, args.arguments, args.args)
    return await examine(target, args.timeout, call=args.call, arguments=arguments)
