"""`noizu-mcp install` and `noizu-mcp config`: a server in the settings of a host."""

import argparse
import difflib
import os
import sys
from pathlib import Path
from typing import Final

from ..._files import folder_lock, read_regular, replace_file, write_new
from ..._nearest import hint_at
from ..._value import JSONObject
from .._errors import OK, USAGE, CommandError
from .._output import json_of, print_text
from .._say import note, say
from ._entry import NamedEntry, read_entry, shown_path
from ._hosts import HOSTS, HostEntry, McpHost
from ._json_edit import EditError, read_json_text, remove_member, set_member
from ._toml_edit import read_toml_text, remove_table, set_table

#: The end of the name of the file before the first change.
BACKUP: Final = ".noizu-mcp.bak"
_BOM: Final = "\ufeff"


def install(args: argparse.Namespace) -> int:
    """Write a server into the settings of a host, or remove it.

    Everything else in the file stays as it is. The file before the first change is kept beside it.

    Raises:
        CommandError: The host has no such file, or the file is not valid, cannot be written, leads
            out of the project, or does not have the server that is to be removed.
    """
    host = _host(args)
    path = _place(host, args)
    if args.remove and args.name is not None:
        name, table = args.name, None
    else:
        _need_target(args)
        name, entry = read_entry(args)
        table = None if args.remove else _form(host, entry)
    while True:
        before = _read(path)
        edited = _edit(host, path, before, name, table)
        if edited == before and args.remove:
            raise CommandError(f"{shown_path(path)} has no server {name}", USAGE)
        if args.dry_run:
            old, new = before.splitlines(keepends=True), edited.splitlines(keepends=True)
            changes = difflib.unified_diff(old, new, shown_path(path), shown_path(path))
            for line in "".join(map(_ended, changes)).splitlines():
                say(line)
            return OK
        if edited == before:
            say(f"{name}: {shown_path(path)} has it already")
            return OK
        # Another program that has changed the file meanwhile keeps its change.
        if _write(path, before, edited, private=args.scope == "user"):
            break
    verb = "removed from" if args.remove else "added to"
    kept = f"; the file before the first change is {_backup(path).name}" if before else ""
    say(f"{name}: {verb} {shown_path(path)}{kept}")
    say(f"{host.title}: {host.removed if args.remove else host.after}")
    return OK


def show_config(args: argparse.Namespace) -> int:
    """Print the entry of a server as the host wants it, and name the file on stderr."""
    host = _host(args)
    path = _place(host, args)
    _need_target(args)
    print_text(_snippet(host, read_entry(args)), sys.stdout)
    note(f"it goes into {shown_path(path)}")
    return OK


def _host(args: argparse.Namespace) -> McpHost:
    host = HOSTS.get(args.host)
    if host is None:
        raise CommandError(f"no host {args.host}; {hint_at(args.host, list(HOSTS))}", USAGE)
    return host


def _place(host: McpHost, args: argparse.Namespace) -> Path:
    path = host.place(args.scope)
    if path is None:
        raise CommandError(f"{host.title} has no settings in a project; leave --scope out", USAGE)
    # A project comes from others: its links must not lead to files of the user.
    real = os.path.realpath(path)
    if args.scope == "project" and not Path(real).is_relative_to(os.path.realpath(Path.cwd())):
        text = f"{shown_path(path)} leads out of the project, to {real}; nothing was changed"
        raise CommandError(f"{text}: remove the link")
    return path


def _need_target(args: argparse.Namespace) -> None:
    if args.process is None and args.target is None:
        text = "give the server, or --name with --remove" if hasattr(args, "remove") else ""
        raise CommandError(text or "give the server", USAGE)


def _form(host: McpHost, entry: HostEntry) -> JSONObject:
    """Write an entry in the form of the host.

    Raises:
        CommandError: The host reaches no URLs.
    """
    if entry.url and not host.remote:
        forward = f"-- npx -y mcp-remote {entry.url}"
        text = f"{host.title} starts commands only; give the command that forwards: {forward}"
        raise CommandError(text, USAGE)
    return host.entry(entry)


def _snippet(host: McpHost, named: NamedEntry) -> str:
    table = _form(host, named.entry)
    if host.toml:
        return set_table("", (host.key, named.name), table)
    return f"{json_of({host.key: {named.name: table}})}\n"


def _read(path: Path) -> str:
    try:
        return read_regular(path).decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise CommandError(f"{shown_path(path)} is not UTF-8; nothing was changed") from None
    except OSError as error:
        raise CommandError(f"cannot read {shown_path(path)}: {error.strerror}") from error


def _edit(host: McpHost, path: Path, text: str, name: str, table: JSONObject | None) -> str:
    """Add an entry, or remove it; see `_json_edit` and `_toml_edit`.

    Raises:
        CommandError: The text is not valid, or cannot be edited.
    """
    where = (host.key, name)
    # Windows programs may begin a file with this mark; it stays.
    mark = _BOM if text.startswith(_BOM) else ""
    bare = text.removeprefix(_BOM)
    try:
        if host.toml:
            read_toml_text(bare)
            edited = remove_table(bare, where) if table is None else set_table(bare, where, table)
        else:
            edited = _edit_json(bare, where, table, comments=host.comments)
    except EditError as error:
        advice = "" if table is None else ", or add by hand what `noizu-mcp config` prints"
        text = f"{shown_path(path)}: {error}; nothing was changed: mend the file{advice}"
        raise CommandError(text) from error
    return mark + edited


def _edit_json(
    text: str, where: tuple[str, str], table: JSONObject | None, *, comments: bool
) -> str:
    key, name = where
    before = read_json_text(text, comments=comments)
    if table is None:
        return remove_member(text, where, comments=comments)
    servers = before.get(key) if isinstance(before, dict) else None
    if isinstance(servers, dict) and servers.get(name) == table:
        return text
    return set_member(text, where, table, comments=comments)


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _backup(path: Path) -> Path:
    """Return the path of the file before the first change; it is beside the file itself."""
    # Dotfiles are often links into another folder: the link stays one.
    real = Path(os.path.realpath(path))
    return real.with_name(f"{real.name}{BACKUP}")


def _write(path: Path, before: str, text: str, *, private: bool) -> bool:
    """Replace a file in one step, and keep the one before the first change beside it.

    Args:
        path: The file; its folder is made if it is missing.
        before: Its text; empty if it does not exist, or is empty.
        text: The new text.
        private: True to make a new file unreadable for other users: it may contain secrets.

    Returns:
        False if the file has another text than `before`: it stays as it is.

    Raises:
        CommandError: It cannot be written, or something else has the name of the backup.
    """
    backup = _backup(path)
    real = backup.with_name(backup.name.removesuffix(BACKUP))
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        with folder_lock(real.parent):
            if _read(real) != before:
                return False
            if before and (backup.is_symlink() or not backup.is_file()):
                write_new(backup, before.encode(), 0o600)
            replace_file(real, text.encode(), 0o600 if private else 0o666, keep_mode=True)
    except FileExistsError as error:
        text = f"{shown_path(Path(error.filename))} is in the way; nothing was changed: remove it"
        raise CommandError(text) from error
    except OSError as error:
        raise CommandError(f"cannot write {shown_path(path)}: {error.strerror}") from error
    return True
