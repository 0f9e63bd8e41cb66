"""`noizu-mcp contract`: a file with everything that a server lists, and the changes since then."""

import argparse
from functools import partial

from .._util import UNSET
from .._value import JSONObject
from ..check.contract import KINDS, Change, ListKind, compare, fetch, read, save
from ._errors import FAILED, OK, USAGE, CommandError
from ._output import print_json
from ._say import say
from ._use import Connected, use


def write_contract(args: argparse.Namespace) -> int:
    """Write the contract of a server to a file, and print how much is in it.

    Args:
        args: The options of a connection, `file` and `only`.

    Raises:
        CommandError: The file cannot be written; or see `use`.
    """
    kinds = [kind for kind in KINDS if not args.only or kind in args.only]
    found = use(args, partial(_fetch, kinds))
    try:
        save(found, args.file)
    except OSError as error:
        raise CommandError(f"cannot write {args.file}: {error.strerror}") from error
    counts = {kind: len(found[kind]) for kind in kinds}
    if args.json:
        print_json({"file": args.file, **counts})
    else:
        say(f"{args.file}: {', '.join(f'{kind}: {count}' for kind, count in counts.items())}")
    return OK


def check_contract(args: argparse.Namespace) -> int:
    """Compare a server with its contract, and print the changes.

    Args:
        args: The options of a connection, `file` and `exact`. The protocol version is that of the
            file unless given.

    Returns:
        The exit status: 1 if a change is breaking, or if there is one and `exact` is set.

    Raises:
        CommandError: The file cannot be read; or see `use`.
    """
    try:
        old = read(args.file)
    except FileNotFoundError as error:
        text = f"there is no {args.file}; `noizu-mcp contract write` writes it"
        raise CommandError(text, USAGE) from error
    except (OSError, ValueError) as error:
        raise CommandError(str(error), USAGE) from error
    args.protocol = args.protocol or old["protocol"]
    new = use(args, partial(_fetch, [kind for kind in KINDS if kind in old]))
    changes = compare(old, new)
    is_broken = bool(changes) and (args.exact or changes[0].effect == "breaking")
    if args.json:
        print_json({"ok": not is_broken, "changes": [each.to_json() for each in changes]})
    else:
        _show(changes)
    return FAILED if is_broken else OK


async def _fetch(kinds: list[ListKind], connected: Connected) -> JSONObject:
    return await fetch(connected.client, kinds)


def _show(changes: tuple[Change, ...]) -> None:
    for change in changes:
        lines = [f"{change.effect.upper()}  {change.place}", f"  {change.text}"]
        if change.example is not UNSET:
            lines.append(f"  example  {change.shown_example}")
            lines += [f"           {reason}" for reason in change.reasons]
        for line in lines:
            say(line)
    counts = {
        words: number
        for effect, words in (
            ("breaking", "breaking"),
            ("visible", "visible to the model"),
            ("compatible", "compatible"),
        )
        if (number := sum(change.effect == effect for change in changes))
    }
    say(", ".join(f"{number} {words}" for words, number in counts.items()) or "no changes")
