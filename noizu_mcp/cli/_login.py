"""`noizu-mcp login` and `logout`: the login of a person, kept for the other commands.

The tokens are in the file that `FileStore()` names, which programs may share.
"""

import argparse
import os
import webbrowser
from collections.abc import Awaitable
from functools import partial
from typing import Final

from .._errors import AuthError
from .._util import Returned
from ..auth.client import FileStore, OAuth, ProtectedServer
from ..client import connect
from ..transports import Http
from ._errors import OK, USAGE, CommandError
from ._output import one_line_log
from ._say import note, say
from ._stored_login import stored_headers
from ._use import read_url, run_loop

#: The variable for the secret of `--client-id`: words of a command are seen by other users.
VARIABLE: Final = "NOIZU_MCP_CLIENT_SECRET"


def log_in(args: argparse.Namespace) -> int:
    """Log in at a server in the browser, and keep the tokens.

    Args:
        args: `url`, `scope`, `client_id`, `issuer` and `no_browser`.

    Raises:
        CommandError: It is not the URL of a server, or the login was not completed.
    """
    target = _server_at(args.url)
    secret = os.environ.get(VARIABLE) if args.client_id else None
    if secret and not args.issuer:
        text = f"{VARIABLE} is set: give --issuer URL, the authorization server that it belongs to"
        raise CommandError(text, USAGE)
    try:
        auth = OAuth(
            args.scope or None,
            client_id=args.client_id,
            client_secret=secret or None,
            issuer=args.issuer,
            store=FileStore(),
            open_browser=partial(_show, no_browser=args.no_browser),
        )
        auth.bind(ProtectedServer(target.url))
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error

    async def begin() -> tuple[str, bool]:
        # An earlier login may belong to another person, or lack a scope.
        await auth.forget(target.url)
        async with connect(target, auth=auth) as client:
            return client.server_info.name, bool(await stored_headers(target))

    with one_line_log():
        name, has_login = _run(begin())
    if has_login:
        text = f"logged in to {name}; the other commands use it for {target.shown}"
    else:
        text = f"{name} wants no login"
    say(text)
    return OK


def log_out(args: argparse.Namespace) -> int:
    """Delete the tokens for a server, and revoke them where its issuer can.

    Args:
        args: `url`.

    Raises:
        CommandError: It is no URL of a server, or the tokens cannot be deleted.
    """
    target = _server_at(args.url)
    with one_line_log():
        was_there = _run(OAuth(store=FileStore()).forget(target.url))
    say("logged out" if was_there else f"there is no login for {target.shown}")
    return OK


def _run(work: Awaitable[Returned]) -> Returned:
    async def run() -> Returned:
        return await work

    try:
        return run_loop(run)
    except AuthError as error:
        raise CommandError(str(error)) from error


def _server_at(url: str) -> Http:
    if "://" not in url:
        raise CommandError("give the URL of a server; servers on stdio need no login", USAGE)
    return read_url(url, ())


def _show(url: str, *, no_browser: bool) -> None:
    """Show the page of the login to the person."""
    note(f"to log in, open {url}")
    if not no_browser:
        webbrowser.open(url)
