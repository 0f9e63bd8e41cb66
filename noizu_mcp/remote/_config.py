"""Servers of a file of the `mcpServers` form, and names for servers without one."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .._nearest import hint_at
from .._value import JSONObject
from ..client import Target, read_servers
from ..transports import Http, Stdio

#: Characters of a name of a server that a prefix does not have, and of a prefix.
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")
_PREFIX_LENGTH: Final = 64


def read_config(
    config: str | os.PathLike[str] | Mapping[str, Any],
    per_server: Mapping[str, Mapping[str, Any]] | None,
    options: Mapping[str, Any],
) -> Iterator[tuple[Target, JSONObject]]:
    """Read the servers of a file, each with the options of its `Remote`; see `Remote.from_config`.

    Raises:
        TransportError: The file cannot be read, or names no servers.
        TypeError: `auth` is given for all.
        ValueError: `per_server` names no server.
    """
    if "auth" in options:
        raise TypeError(
            "auth= would send the credentials of one server to all of them; write "
            "per_server={'name': {'auth': …}}"
        )
    entries, own = read_servers(config), per_server or {}
    for name in own:
        if name not in entries:
            raise ValueError(f"per_server names no server {name}; {hint_at(name, list(entries))}")
    for name, entry in entries.items():
        yield entry, {"prefix": _fitting(name), "label": name, **options, **own.get(name, {})}


def _fitting(name: str) -> str:
    """Return the name of a server as a prefix."""
    text = _UNFIT.sub("_", name)
    return (text if text[:1].isalpha() else f"x{text}")[:_PREFIX_LENGTH]


def label_of(target: Any) -> str:
    """Name a server that has no prefix; without arguments and queries, which may be secret."""
    if isinstance(target, Http):
        return target.shown
    if isinstance(target, Stdio):
        return target.command
    options = getattr(target, "options", None)
    return type(target).__name__ if options is None else str(options.name)
