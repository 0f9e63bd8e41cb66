"""`noizu-mcp fuzz`: call everything that a server offers, and report what breaks."""

import argparse
import sys
from functools import partial

from .._errors import TransportError
from ..check import fuzz as engine
from ..client import Progress
from ..transports import Http, Stdio
from ._display import Display
from ._errors import FAILED, OK, CommandError
from ._output import print_json
from ._say import marked_stderr, say
from ._use import read_elsewhere, run_loop


def fuzz(args: argparse.Namespace) -> int:
    """Fuzz a server and print what was found.

    Args:
        args: `target` or `process`, `header`, `seed`, `budget`, `examples`, `timeout`,
            `destructive`, `keep`, `replay` and `json`.

    Returns:
        The exit status: 0 without findings, 1 with one.

    Raises:
        CommandError: The target, or an option, is malformed; or the server cannot be reached.
    """
    target = read_elsewhere(args) or str(args.target)
    try:
        with marked_stderr():
            if args.replay is not None:
                return _replay(args.replay, target)
            report = _run(args, target)
        if args.keep is not None:
            engine.keep(args.keep, report.findings)
    except (TransportError, ValueError, OSError, ImportError) as error:
        raise CommandError(str(error)) from error
    if args.json:
        print_json(report.to_json())
    else:
        for line in report.lines():
            say(line)
    return FAILED if report.findings else OK


def _run(args: argparse.Namespace, target: str | Stdio | Http) -> engine.Report:
    display = Display(None if args.json else sys.stderr)
    try:
        return run_loop(
            partial(
                engine.fuzz,
                target,
                seed=args.seed,
                budget=args.budget,
                timeout=args.timeout,
                examples=args.examples,
                destructive=args.destructive,
                on_progress=lambda share, what: display.report(Progress(share, 1.0, what)),
            )
        )
    finally:
        display.clear()


def _replay(path: str, target: str | Stdio | Http) -> int:
    """Take the steps of kept findings again."""
    findings = engine.load(path)
    still = 0
    for finding in findings:
        try:
            run_loop(partial(engine.replay, target, finding))
        except AssertionError as error:
            still += 1
            say(str(error))
    say(f"{len(findings)} findings, {still} still there")
    return FAILED if still else OK
