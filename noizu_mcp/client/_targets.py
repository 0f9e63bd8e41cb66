"""Targets of `connect`: all forms of naming a server, and the configuration files of hosts.

These files have the format of the hosts: an object with an entry for each server, under
`mcpServers` (Claude, Cursor and most others) or `servers` (VS Code). Hosts add their own members,
which are ignored unless they change how a server is reached.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Union, cast

from .._errors import TargetError
from .._nearest import hint_at
from .._value import JSON, JSONObject
from ..engine import MessageStream
from ..transports import Http, Stdio

if TYPE_CHECKING:
    from ..server import Server

#: The targets that remain once texts, files and mappings are read.
Opened = Union["Server", type["Server"], Stdio, Http, MessageStream]
#: The targets of `connect`; a context manager yields one of the other forms.
Target = Opened | str | os.PathLike[str] | Mapping[str, object] | AbstractAsyncContextManager[Any]

#: The member of a file with the servers, in order of preference.
_SERVERS: Final = ("mcpServers", "servers")
#: Values of `type`; hosts spell Streamable HTTP in several ways.
_LOCAL: Final = ("stdio", "local")
_REMOTE: Final = ("http", "streamable-http", "streamableHttp", "streamable_http")
#: The members in which variables are replaced.
_FILLED: Final = ("command", "args", "env", "cwd", "url", "headers")
#: `package.module`, `package.module:Name`, `path/to/file.py` and `path/to/file.py:Name`.
_CODE: Final = re.compile(r"(.+\.py|\w+(\.\w+)*)(:\w+)?")
_VARIABLE: Final = re.compile(r"\$\{([^{}]*)\}")
_NAME: Final = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def read_target(target: Target) -> Opened:
    """Read a target of `connect`.

    Args:
        target: The target.

    Returns:
        A server, its class, a command, a URL or a stream. Anything else is returned unchanged, for
        the caller to refuse.

    Raises:
        TargetError: A text, a file or a mapping names no server, or several.
        ValueError: The URL is not valid.
    """
    if isinstance(target, os.PathLike):
        target = os.fspath(target)
    if isinstance(target, Mapping):
        return read_entry(_only_entry(target), "the configuration")
    if not isinstance(target, str):
        return cast(Opened, target)
    if "://" in target:
        return Http(target)
    path, _, name = target.partition("#")
    if path.endswith(".json"):
        return _read_named(path, name)
    if _CODE.fullmatch(target):
        # A client of another process loads no server code.
        from ..server import load_server

        return load_server(target)
    raise TargetError(
        f"cannot connect to {target!r}: give http://… or https://…, path/to/file.py, "
        "package.module:Server, or a file such as mcp.json; a command is Stdio('program', 'word')"
    )


def read_servers(config: str | os.PathLike[str] | Mapping[str, object]) -> dict[str, object]:
    """Read a configuration of several servers.

    Args:
        config: The path of a file; a mapping of the same form; or a mapping of names to targets.

    Returns:
        The entry of each server, for `read_entry`, without servers that are `disabled`.

    Raises:
        TargetError: The file cannot be read, or has no servers.
    """
    if isinstance(config, Mapping):
        key = next((each for each in _SERVERS if each in config), None)
        servers = config if key is None else config[key]
        where = "the configuration"
    else:
        where = os.fspath(config)
        document = _load(where)
        key = next((each for each in _SERVERS if each in document), None)
        if key is None:
            raise TargetError(f"{where} has no member {_SERVERS[0]}")
        servers = document[key]
    if not isinstance(servers, Mapping):
        raise TargetError(f"{where}: {key} must be an object, not {servers!r}")
    if any(isinstance(servers.get(each), str) for each in ("command", "url")):
        raise TargetError(f"{where} is the entry of one server; write {{'name': {{…}}}}")
    return {str(name): entry for name, entry in servers.items() if not _is_disabled(entry)}


def read_several(
    config: str | os.PathLike[str] | Mapping[str, object],
    options: Mapping[str, object],
    per_server: Mapping[str, Mapping[str, object]] | None,
) -> dict[str, tuple[object, dict[str, object]]]:
    """Read a configuration of several servers, and the options of each.

    Args:
        config: See `read_servers`.
        options: Options for all servers.
        per_server: Options for some servers, by name; they have priority.

    Returns:
        The entry of each server, for `read_entry`, and its options.

    Raises:
        TargetError: The file cannot be read, or has no servers.
        TypeError: `auth` is given for all servers.
        ValueError: `per_server` names an unknown server.
    """
    if "auth" in options:
        raise TypeError(
            "auth= would send the credentials of one server to all of them; write "
            "per_server={'name': {'auth': …}}"
        )
    servers, own = read_servers(config), per_server or {}
    check_names("per_server", own, list(servers))
    return {name: (each, {**options, **own.get(name, {})}) for name, each in servers.items()}


def check_names(option: str, names: Iterable[str], servers: list[str]) -> None:
    """Check that the names in an option are names of servers.

    Raises:
        ValueError: A name is unknown.
    """
    for name in names:
        if name not in servers:
            raise ValueError(f"{option} names no server {name}; {hint_at(name, servers)}")


def read_entry(entry: object, where: str) -> Opened:
    """Read the entry of one server.

    Args:
        entry: `{"command": …}` or `{"url": …}` with the members that hosts use, or a target.
        where: Names the entry in errors.

    Returns:
        The target, as `read_target` returns it.

    Raises:
        TargetError: The entry is malformed, or something that it needs is missing.
    """
    if not isinstance(entry, Mapping):
        return read_target(cast(Target, entry))
    try:
        return _read_members(entry)
    except (TypeError, ValueError) as error:
        raise TargetError(f"{where}: {error}") from error


def _load(path: str) -> Mapping[str, object]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise TargetError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TargetError(f"{path} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise TargetError(f"{path} must hold an object")
    return document


def _is_disabled(entry: object) -> bool:
    return isinstance(entry, Mapping) and entry.get("disabled") is True


def _read_named(path: str, name: str) -> Opened:
    """Read one server of a file, by name or the only one."""
    servers = read_servers(path)
    if name:
        if name not in servers:
            raise TargetError(f"{path} has no server {name}; {hint_at(name, list(servers))}")
    elif len(servers) == 1:
        (name,) = servers
    else:
        raise TargetError(f"{path} has {_counted(servers, f'write {path}#NAME for one of them')}")
    return read_entry(servers[name], f"{path}: {name}")


def _only_entry(config: Mapping[str, object]) -> object:
    """Return the entry of a mapping with one server."""
    if "command" in config or "url" in config:
        return config
    servers = read_servers(config)
    if len(servers) != 1:
        text = _counted(servers, "give the entry of one of them")
        raise TargetError(f"the configuration has {text}")
    return next(iter(servers.values()))


def _counted(servers: Mapping[str, object], one: str) -> str:
    if not servers:
        return "no servers"
    return f"several servers: {', '.join(servers)}; {one}, or connect to all with connect_all"


def _read_members(entry: Mapping[str, object]) -> Stdio | Http:
    """Make the target of an entry.

    Raises:
        TypeError: A member has a wrong type.
        ValueError: The value of a member is not valid, or a variable is not set.
    """
    has_command, has_url = "command" in entry, "url" in entry
    if has_command == has_url:
        raise ValueError("an entry has a command, or a url, and not both")
    kind = entry.get("type", _LOCAL[0] if has_command else _REMOTE[0])
    if kind == "sse":
        raise ValueError(
            'type "sse" is the transport of 2024-11-05, which this client does not speak; most '
            'such servers have a URL for type "http", too'
        )
    if kind not in (_LOCAL if has_command else _REMOTE):
        wanted = '"stdio" with a command' if has_command else '"http" with a url'
        raise ValueError(f"type must be {wanted}, not {kind!r}")
    if "envFile" in entry:
        raise ValueError("envFile is not read; set its variables, and name them in env")
    filled: JSONObject = {name: _fill_in(entry[name]) for name in _FILLED if name in entry}
    if has_url:
        return Http(filled["url"], headers=_mapping(filled, "headers"))
    args = filled.get("args", [])
    if not isinstance(args, list | tuple):
        raise TypeError(f"args must be a list, not {args!r}")
    command, cwd = filled["command"], filled.get("cwd")
    for name, value in (
        ("command", command),
        ("cwd", cwd or ""),
        *(("args", each) for each in args),
    ):
        if not isinstance(value, str):  # often a port, which is a number in JSON
            raise TypeError(f"{name} must be text, got {value!r}")
    return Stdio(command, *args, env=_mapping(filled, "env"), cwd=cwd)


def _mapping(entry: Mapping[str, object], name: str) -> Mapping[str, str] | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} must be an object")
    return value


def _fill_in(value: object) -> JSON:
    """Replace the variables in a text, in a list, or in the values of an object.

    Claude Code writes `${VAR}` and `${VAR:-default}`; VS Code and Cursor write `${env:VAR}`.
    """
    if isinstance(value, str):
        return _VARIABLE.sub(_value_of, value)
    if isinstance(value, list | tuple):
        return [_fill_in(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _fill_in(each) for name, each in value.items()}
    return value


def _value_of(found: re.Match[str]) -> str:
    named = _NAME.fullmatch(found[1])
    if named is None:
        # Without replacement, the text would be a wrong password or folder.
        raise ValueError(f"{found[0]} is not known here; write ${{VAR}} or ${{VAR:-default}}")
    name, default = named.groups()
    value = os.environ.get(name, default)
    if value is None:
        raise ValueError(f"the environment variable {name} is not set")
    return value
