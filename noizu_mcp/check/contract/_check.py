"""Contracts in tests: write the file of a server, and check the server against it."""

import os
from collections.abc import Iterable
from functools import partial
from typing import Any

from ..._errors import McpException
from ...client import Target
from .._use_server import use_server
from ._catalogue import KINDS, ListKind, fetch, read, save
from ._changes import Change, compare


class ContractError(McpException, AssertionError):
    """A server breaks its contract.

    Attributes:
        changes: All changes, the worst first.
    """

    def __init__(self, path: object, changes: tuple[Change, ...]) -> None:
        self.changes = changes
        lines = "".join(f"\n  {change}" for change in changes)
        advice = "if this is meant, write it again: noizu-mcp contract write"
        super().__init__(f"the server differs from {path}; {advice}{lines}")


def write(
    target: Target, path: str | os.PathLike[str], kinds: Iterable[ListKind] = KINDS, **options: Any
) -> None:
    """Write the contract of a server to a file. No tool is called.

    Args:
        target: A server, a command, a URL or a file, as for `connect`.
        path: The path of the file, which is replaced.
        kinds: The kinds of components. Leave out kinds that change by themselves.
        options: Options of `connect`, such as `auth=` and `principal=`.

    Raises:
        OSError: The file cannot be written.
        RuntimeError: It is called in a trio task.
        BaseException: See `connect`.
    """
    save(use_server(target, partial(fetch, kinds=tuple(kinds)), **options), path)


def check(
    target: Target, path: str | os.PathLike[str], *, exact: bool = False, **options: Any
) -> tuple[Change, ...]:
    """Check a server against its contract. No tool is called.

    The protocol version and the kinds of components are taken from the file.

    Args:
        target: A server, a command, a URL or a file, as for `connect`.
        path: The path of the file that `write` wrote.
        exact: True to refuse every change, so that the file stays up to date.
        options: Options of `connect`; see `write`.

    Returns:
        The changes that are allowed, the worst first.

    Raises:
        ContractError: A change is breaking, or `exact` is set and there is a change.
        OSError: The file cannot be read.
        ValueError: It is not a contract.
        RuntimeError: It is called in a trio task.
        BaseException: See `connect`.
    """
    old = read(path)
    kinds = [kind for kind in KINDS if kind in old]
    chosen = {"version": old["protocol"], **options}
    new = use_server(target, partial(fetch, kinds=kinds), **chosen)
    changes = compare(old, new)
    if changes and (exact or changes[0].effect == "breaking"):
        raise ContractError(path, changes)
    return changes
