"""`noizu-mcp lint`: the tools of a server as models and their APIs read them."""

import argparse
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from .._value import JSONObject
from ..check.lint import RULES, LintReport, fetch_tools, lint_tools
from ..models import PROVIDERS
from ._errors import FAILED, OK, USAGE, CommandError
from ._output import print_json, print_table
from ._say import say
from ._use import use

#: Tools in the table of sizes, the largest ones.
_MAX_SIZES: Final = 10
#: Places of one rule that are printed.
_MAX_PLACES: Final = 10


def lint(args: argparse.Namespace) -> int:
    """Check the tools of a server and print what was found.

    Args:
        args: The options of a connection, and `api`, `ignore` and `fail_on`.

    Returns:
        The exit status: 1 if a finding is as bad as `fail_on`, or worse.

    Raises:
        CommandError: There is no such rule or API; or see `use`.
    """
    for option, names, known in (("ignore", args.ignore, RULES), ("api", args.api, PROVIDERS)):
        if unknown := [name for name in names if name not in known]:
            text = f"--{option} {unknown[0]}: there are {', '.join(known)}"
            raise CommandError(text, USAGE)
    tools = use(args, lambda connected: fetch_tools(connected.client))
    chosen: JSONObject = {"apis": args.api} if args.api else {}
    report = lint_tools(tools, ignore=args.ignore, **chosen)
    if args.json:
        print_json(report.to_json())
    else:
        _show(report)
    return FAILED if report.at_least(args.fail_on) else OK


def _show(report: LintReport) -> None:
    sizes = sorted(report.tokens.items(), key=lambda each: -each[1])
    rows = [(name, f"{size:,}") for name, size in sizes[:_MAX_SIZES]]
    if len(sizes) > 1:
        rows.append((f"all {len(sizes)} tools", f"{report.total_tokens:,}"))
    print_table(("TOOL", "TOKENS, ESTIMATED"), rows)
    for line in _lines(report):
        say(line)


def _lines(report: LintReport) -> Iterator[str]:
    kinds = groupby(report.findings, key=lambda each: (each.severity, each.rule))
    for (severity, rule), group in kinds:
        found = list(group)
        yield ""
        yield f"{severity.upper()}  {rule}"
        for each in found[:_MAX_PLACES]:
            yield f"  at    {each.place}: {' '.join(each.text.split())}"
        if len(found) > _MAX_PLACES:
            yield f"        and {len(found) - _MAX_PLACES} more; --json prints all"
        yield f"  do    {RULES[rule].remedy}"
        yield f"        ({RULES[rule].source})"
    yield ""
    counts = [
        f"{len(number)} {severity}{'' if len(number) == 1 else 's'}"
        for severity in ("error", "warning", "note")
        if (number := [each for each in report.findings if each.severity == severity])
    ]
    yield ", ".join(counts) or "no findings"
